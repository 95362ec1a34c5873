//! Bounds on documents, enforced while their bytes are read: the parsers have none of their own.
//!
//! A parser keeps a stack of what is nested, the text of a term until its end, and all prefixes. A
//! small document can make each of these as large as an attacker likes. So a scanner that knows
//! just enough of the format sees the bytes on their way to the parser, and ends the reading with
//! an error that names the bound that was exceeded. Scanners may count too much (a comment as
//! nesting), never too little: up to the first fault of a text, where a strict parser ends, they
//! see each token as the parser does. The reader of RDF/XML has bounds of its own, as has that of
//! texts with faults.

mod lines;
mod nesting;

use std::io::{self, Read};

use oxrdfio::RdfFormat;
use snowmelt_store::Charge;

pub(super) use lines::TripleLevels;
use nesting::{Nesting, Quotes};

use super::error::GuardError;

/// Most levels of brackets or braces in a document.
pub(super) const MOST_LEVELS: usize = 50_000;

/// Most levels of a JSON-LD document: its reader recurses once per level.
pub(super) const MOST_JSON_LEVELS: usize = 256;

/// Bytes handed to a parser between two looks at the clock. Any parser is through with them
/// within a tenth of a second.
const PIECE_BYTES: usize = 64 << 10;

/// Bytes a parser keeps for a level, without the name of its predicate; the number of levels that
/// are free of charge; and the length of a name that is.
const LEVEL_BYTES: u64 = 256;
const FREE_LEVELS: usize = 1_000;
const FREE_NAME_BYTES: usize = 256;
/// Bytes of prefixes and their IRIs that are free of charge.
const FREE_PREFIX_BYTES: usize = 64 << 10;

/// Bytes that the buffers of the parsers hold: a longer token would end them with an error that
/// names no setting.
pub(super) const TOKEN_BYTES: usize = (16 << 20) - (64 << 10);

/// Bounds of a document.
pub(super) struct Bounds {
    /// Bytes of the longest term.
    pub(super) longest: usize,
    /// Memory charge, for formats whose parsers keep the document or much of it.
    pub(super) charge: Option<Charge>,
}

/// Scans bytes on their way to a parser.
trait ByteScan {
    fn byte(&mut self, byte: u8) -> Result<(), GuardError>;
}

enum GuardScanner {
    Nesting(Nesting),
    /// bytes of the line so far, and the most: no term is longer than its line
    Lines(usize, usize, TripleLevels),
}

/// Reads a document within its bounds.
pub(super) struct Guarded<R> {
    read: R,
    scanner: GuardScanner,
    /// charged for levels, and for the bytes of JSON-LD, which is kept until the outermost object
    /// ends: a context may come last
    charge: Option<Charge>,
    json_bytes: Option<u64>,
}

/// Bytes a parser takes for each byte of JSON-LD that it keeps, and for each value: as read and as
/// expanded. Measured: documents of short members and of lists took up to 300.
const JSON_KEPT: u64 = 8;
const JSON_VALUE_BYTES: u64 = 320;

impl<R: Read> Guarded<R> {
    pub(super) fn new(read: R, format: RdfFormat, bounds: Bounds) -> Self {
        let token = bounds.longest.min(TOKEN_BYTES);
        let scanner = match format {
            RdfFormat::JsonLd { .. } => GuardScanner::Nesting(Nesting::new(Quotes::Json, token)),
            RdfFormat::Turtle | RdfFormat::TriG => GuardScanner::Nesting(Nesting::new(Quotes::Turtle, token)),
            RdfFormat::N3 => GuardScanner::Nesting(Nesting::new(Quotes::N3, token)),
            _ => GuardScanner::Lines(0, token, TripleLevels::default()),
        };
        let json_bytes = matches!(format, RdfFormat::JsonLd { .. }).then_some(0);
        Guarded { read, scanner, charge: bounds.charge, json_bytes }
    }
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // the clock is looked at between reads
        let most = out.len().min(PIECE_BYTES);
        let n = self.read.read(&mut out[..most])?;
        let passed = match &mut self.scanner {
            GuardScanner::Nesting(nesting) => out[..n].iter().try_for_each(|byte| nesting.byte(*byte)),
            GuardScanner::Lines(line, longest, triples) => {
                *line = match memchr::memrchr(b'\n', &out[..n]) {
                    Some(end) => n - end - 1,
                    None => *line + n,
                };
                match *line > *longest {
                    true => Err(GuardError::TooLong { most: *longest }),
                    false => triples.scan(&out[..n]),
                }
            }
        };
        passed?;
        self.charge(n)?;
        Ok(n)
    }
}

impl<R> Guarded<R> {
    /// Reserves memory for the data that the parser keeps, with `n` more bytes read.
    fn charge(&mut self, n: usize) -> io::Result<()> {
        // Levels that open and close within a piece count: the parser holds them in between.
        let (levels, name, prefixes, values) = match &mut self.scanner {
            GuardScanner::Nesting(nesting) => {
                (nesting.take_deepest(), nesting.name_bytes(), nesting.prefix_bytes(), nesting.values())
            }
            GuardScanner::Lines(..) => (0, 0, 0, 0),
        };
        let mut bytes = values * JSON_VALUE_BYTES + prefixes.saturating_sub(FREE_PREFIX_BYTES) as u64;
        bytes += levels.saturating_sub(FREE_LEVELS) as u64 * LEVEL_BYTES;
        bytes += levels as u64 * name.saturating_sub(FREE_NAME_BYTES) as u64;
        if let Some(json) = &mut self.json_bytes {
            *json += n as u64;
            bytes += *json * JSON_KEPT;
        }
        match &mut self.charge {
            Some(charge) => charge.set(bytes).map_err(io::Error::other),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text a few bytes at a time.
    fn read(text: &str, format: RdfFormat) -> Result<(), String> {
        let bounds = Bounds { longest: 1 << 16, charge: None };
        let mut guarded = Guarded::new(text.as_bytes(), format, bounds);
        let mut out = [0; 7];
        loop {
            match guarded.read(&mut out) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    #[track_caller]
    fn refused(text: &str, format: RdfFormat, why: &str) {
        let error = read(text, format).expect_err("it is over a bound");
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn nesting_is_bounded_where_it_nests() {
        let deep = |open: &str| open.repeat(MOST_LEVELS + 1);
        refused(&deep("["), RdfFormat::Turtle, "50000 levels");
        refused(&format!("<a:s> <a:p> {}", deep("(")), RdfFormat::TriG, "50000 levels");
        refused(&deep("["), RdfFormat::JsonLd { profile: Default::default() }, "256 levels");
        // not in strings, IRIs and comments
        let hidden = "[".repeat(30_000);
        let turtle =
            format!("<a:{hidden}> # {hidden}\n <a:p> \"{hidden}\\\"{hidden}\", '''{hidden}''{hidden}''' .");
        read(&turtle, RdfFormat::Turtle).unwrap();
        read(
            &format!("{{\"a\": \"{hidden}\\\"{hidden}\"}}"),
            RdfFormat::JsonLd { profile: Default::default() },
        )
        .unwrap();
    }

    #[test]
    fn long_terms_are_refused_while_they_are_read() {
        let long = "x".repeat(1 << 17);
        let json = RdfFormat::JsonLd { profile: Default::default() };
        refused(&format!("<a:s> <a:p> \"{long}\" ."), RdfFormat::NTriples, "65536");
        refused(&format!("<a:s> <a:p> \"\"\"{long}\"\"\" ."), RdfFormat::Turtle, "65536");
        refused(&format!("<a:{long}> <a:p> 1 ."), RdfFormat::TriG, "65536");
        refused(&format!("{{\"{long}\": 1}}"), json, "65536");
        read(&"<a:s> <a:p> \"short\" .\n".repeat(5000), RdfFormat::NQuads).unwrap();
        read(&"<a:s> <a:p> \"short\" .\n".repeat(5000), RdfFormat::Turtle).unwrap();
    }

    #[test]
    fn a_forgotten_quote_makes_no_long_term() {
        let rest = "<a:s> <a:p> <a:o> .\n".repeat(5000);
        for begin in ["<a:s> <a:p> \"x .\n", "<a:s> <a:p> '\n", "<a:s> <a:p> 'x\\\\\n"] {
            read(&format!("{begin}{rest}"), RdfFormat::Turtle).unwrap();
        }
    }

    /// Reads a document under a budget.
    fn read_within(budget_bytes: u64, text: &str, format: RdfFormat) -> io::Result<usize> {
        let budget = snowmelt_store::MemoryBudget::new(budget_bytes);
        let bounds = Bounds { longest: 1 << 16, charge: Some(budget.charge("a document")) };
        Guarded::new(text.as_bytes(), format, bounds).read_to_end(&mut Vec::new())
    }

    fn is_refused(read: io::Result<usize>) {
        let error = read.unwrap_err();
        assert!(error.to_string().starts_with("a document needs"), "{error}");
    }

    #[test]
    fn levels_are_charged() {
        for (opened, format) in [("[", RdfFormat::Turtle), ("(", RdfFormat::TriG)] {
            is_refused(read_within(1 << 20, &opened.repeat(FREE_LEVELS + 8192), format));
        }
    }

    /// A level keeps the IRI of its predicate, which the document may write with a few letters.
    #[test]
    fn long_names_of_levels_are_charged() {
        let long = "x".repeat(10_000);
        let bases = format!("BASE <http://{long}/> ").repeat(5);
        for head in [format!("@prefix p: <urn:{long}> . "), format!("@base\n<urn:{long}> . "), bases] {
            // all in one piece, at whose end nothing is open
            let text = format!("{head}<s> {} p: 1 {} .", "p: [ ".repeat(500), "] ".repeat(500));
            is_refused(read_within(4 << 20, &text, RdfFormat::Turtle));
        }
    }

    /// A parser keeps all prefixes, each with its resolved IRI, base included.
    #[test]
    fn prefixes_are_charged() {
        let long = "x".repeat(10_000);
        let read = |text: &str| read_within(4 << 20, text, RdfFormat::Turtle);
        for declared in ["@prefix p%:<x>.", "prefix p% : \n <x> ", "PREFIX a%a: # a:\n <x>"] {
            let prefixes: String = (0..1000).map(|n| declared.replace('%', &n.to_string())).collect();
            is_refused(read(&format!("@base <http://{long}/> . {prefixes}")));
            // each many times: the last one counts
            read(&format!("@base <http://short/> . {}", prefixes.repeat(100))).unwrap();
            read(&format!("@base <http://{long}/> . {}", declared.repeat(10_000))).unwrap();
        }
    }

    /// An absolute base replaces the one before.
    #[test]
    fn documents_behind_each_other_have_their_own_bases() {
        let text = "@base <http://example.org/a/b/c/> . <s> <p> [ <p> ( 1 [ <p> 2 ] ) ] .\n".repeat(50_000);
        read_within(1 << 20, &text, RdfFormat::Turtle).unwrap();
    }

    #[test]
    fn json_that_is_kept_is_charged() {
        let text = format!("{{\"a\": [{}]}}", "{\"b\": 1},".repeat(1 << 15));
        let format = RdfFormat::JsonLd { profile: Default::default() };
        is_refused(read_within(1 << 20, &text, format));
    }
}
