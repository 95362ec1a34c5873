//! Bounds on documents, kept while their bytes are read: the parsers behind have none.
//!
//! A parser keeps a stack for what is nested, the text of a term until its end, and in RDF/XML
//! whatever entities stand for. Each of these can be made as large as an attacker likes by a
//! small document. So the bytes are looked at on their way to the parser, by a scanner that
//! knows just enough of the format, and what is over a bound ends the reading with an error
//! that names it. Scanners may count too much (a comment as nesting), never too little.

mod contexts;
mod entities;
mod nesting;
mod xml;

use std::io::{self, Read};

use oxrdfio::RdfFormat;
use snowmelt_store::Charge;

use contexts::Contexts;
use nesting::{Nesting, Quotes};
use xml::Xml;

/// Levels of elements, brackets or braces in a document.
pub(super) const MOST_LEVELS: usize = 50_000;

/// Levels of a document of JSON-LD: its parser calls itself for contexts in contexts, and keeps
/// what lists in lists have for each of them.
pub(super) const MOST_JSON_LEVELS: usize = 256;

/// Terms of a context of JSON-LD, with those of contexts in it. Schema.org's has 3,000.
pub(super) const MOST_TERMS: usize = 10_000;

/// Terms that contexts within others take over from those, in a document: each is copied, at
/// some hundred nanoseconds.
const MOST_COPIES: usize = 20_000_000;

/// Terms for which a document of JSON-LD is read in whole pieces; with more, in smaller ones.
const WHOLE_TERMS: usize = 128;
const LEAST_PIECE: usize = 256;

/// Stack bytes that the parser of JSON-LD takes for each term that is defined by another, and for
/// each context in another: at least twice what was measured without optimisation.
pub(super) const TERM_STACK_BYTES: usize = 12 << 10;
pub(super) const LEVEL_STACK_BYTES: usize = 32 << 10;

/// Bytes handed to a parser between two looks at the clock: any is through with them within a
/// tenth of a second.
const PIECE_BYTES: usize = 64 << 10;

/// Bytes charged for a term; a term's stack is smaller with optimisation.
const TERM_BYTES: u64 = 4 << 10;

/// Bytes a parser keeps for a level, and levels that are not charged.
const LEVEL_BYTES: u64 = 256;
const FREE_LEVELS: usize = 1_000;

/// Bytes that the buffers of the parsers behind hold: a longer token would end them with an
/// error that names no setting.
const TOKEN_BYTES: usize = (16 << 20) - (64 << 10);

/// Bounds of a document.
pub(super) struct Bounds {
    /// Bytes of the longest term.
    pub(super) longest: usize,
    /// For formats whose parsers keep the document, or much of it.
    pub(super) charge: Option<Charge>,
}

/// Looks at bytes on their way to a parser.
trait ByteScan {
    fn byte(&mut self, byte: u8) -> Result<(), String>;
}

enum GuardScanner {
    Xml(Box<Xml>),
    Nesting(Nesting),
    Json(Nesting, Contexts),
    /// bytes of the line so far, and the most: no term is longer than its line
    Lines(usize, usize),
}

/// Reads a document within its bounds.
pub(super) struct Guarded<R> {
    read: R,
    scanner: GuardScanner,
    /// what is charged for levels, and for JSON-LD, which is kept until the outermost object
    /// ends: a context may come last
    charge: Option<Charge>,
    json_bytes: Option<u64>,
}

/// Bytes a parser takes for one of JSON-LD that it keeps: events, names, values.
const JSON_KEPT: u64 = 8;

impl<R: Read> Guarded<R> {
    pub(super) fn new(read: R, format: RdfFormat, bounds: Bounds) -> Self {
        let token = bounds.longest.min(TOKEN_BYTES);
        let scanner = match format {
            RdfFormat::RdfXml => GuardScanner::Xml(Box::new(Xml::new(bounds.longest))),
            RdfFormat::JsonLd { .. } => {
                GuardScanner::Json(Nesting::new(Quotes::Json, token), Contexts::default())
            }
            RdfFormat::Turtle | RdfFormat::TriG | RdfFormat::N3 => {
                GuardScanner::Nesting(Nesting::new(Quotes::Turtle, token))
            }
            _ => GuardScanner::Lines(0, token),
        };
        let json_bytes = matches!(format, RdfFormat::JsonLd { .. }).then_some(0);
        Guarded { read, scanner, charge: bounds.charge, json_bytes }
    }
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // looks at the clock stand between reads: a piece is short where each object costs much
        let most = match &self.scanner {
            GuardScanner::Json(_, contexts) => {
                (PIECE_BYTES / (1 + contexts.held() / WHOLE_TERMS)).max(LEAST_PIECE)
            }
            _ => PIECE_BYTES,
        };
        let most = out.len().min(most);
        let n = self.read.read(&mut out[..most])?;
        let passed = match &mut self.scanner {
            GuardScanner::Xml(xml) => out[..n].iter().try_for_each(|byte| xml.byte(*byte)),
            GuardScanner::Nesting(nesting) => out[..n].iter().try_for_each(|byte| nesting.byte(*byte)),
            GuardScanner::Json(nesting, contexts) => {
                out[..n].iter().try_for_each(|byte| nesting.byte(*byte).and_then(|()| contexts.byte(*byte)))
            }
            GuardScanner::Lines(line, longest) => {
                *line = match memchr::memrchr(b'\n', &out[..n]) {
                    Some(end) => n - end - 1,
                    None => *line + n,
                };
                if *line > *longest { Err(too_long(*longest)) } else { Ok(()) }
            }
        };
        passed.map_err(invalid)?;
        self.charge(n)?;
        Ok(n)
    }
}

impl<R> Guarded<R> {
    /// Reserves what the parser keeps, with `n` more bytes.
    fn charge(&mut self, n: usize) -> io::Result<()> {
        let (levels, terms) = match &self.scanner {
            GuardScanner::Xml(xml) => (xml.levels(), 0),
            GuardScanner::Nesting(nesting) => (nesting.levels(), 0),
            GuardScanner::Json(nesting, contexts) => (nesting.levels(), contexts.terms()),
            GuardScanner::Lines(..) => (0, 0),
        };
        let mut bytes = levels.saturating_sub(FREE_LEVELS) as u64 * LEVEL_BYTES;
        bytes += terms.saturating_sub(FREE_LEVELS) as u64 * TERM_BYTES;
        if let Some(json) = &mut self.json_bytes {
            *json += n as u64;
            bytes += *json * JSON_KEPT;
        }
        match &mut self.charge {
            Some(charge) => charge.set(bytes).map_err(|e| invalid(e.to_string())),
            None => Ok(()),
        }
    }
}

fn too_long(most: usize) -> String {
    format!(
        "a term or line has more than {most} bytes, the longest allowed; --longest-term SIZE changes that"
    )
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
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
        refused(&deep("<a>"), RdfFormat::RdfXml, "50000 levels");
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
        let closed: String = (0..5000).map(|_| "<a b='x>y'><c/></a><!-- <d> --><![CDATA[<e>]]>").collect();
        read(&closed, RdfFormat::RdfXml).unwrap();
    }

    #[test]
    fn entities_stand_for_so_much_and_no_more() {
        let mut bomb = String::from("<?xml version='1.0'?><!DOCTYPE r [<!ENTITY e0 \"0123456789\">");
        for i in 1..10 {
            let refs = format!("&e{};", i - 1).repeat(10);
            bomb.push_str(&format!("<!ENTITY e{i} \"{refs}\">"));
        }
        bomb.push_str("]><r>&e9;</r>");
        refused(&bomb, RdfFormat::RdfXml, "entit");
        // many uses of a small one, in a text and in an attribute
        let head = format!("<!DOCTYPE r [<!ENTITY e \"{}\">]>", "x".repeat(1000));
        refused(&format!("{head}<r>{}</r>", "&e;".repeat(70)), RdfFormat::RdfXml, "65536");
        refused(&format!("{head}<r a='{}'/>", "&e;".repeat(70)), RdfFormat::RdfXml, "65536");
        // as prefixes they are in use
        let prefixes = "<!DOCTYPE rdf:RDF [<!ENTITY xsd \"http://www.w3.org/2001/XMLSchema#\">]>";
        let uses: String = (0..5000).map(|_| "<a rdf:datatype='&xsd;integer'>1</a>").collect();
        read(&format!("{prefixes}<rdf:RDF>{uses}</rdf:RDF>"), RdfFormat::RdfXml).unwrap();
    }

    #[test]
    fn terms_of_a_context_are_counted_and_no_other_keys() {
        let json = RdfFormat::JsonLd { profile: Default::default() };
        let keys =
            |n: usize| (0..n).map(|i| format!("\"t{i}\": {{\"@id\": \"u:{i}\"}},")).collect::<String>();
        let (most, more) = (keys(MOST_TERMS), keys(MOST_TERMS + 1));
        read(&format!("{{\"@context\": {{{most} \"@vocab\": \"u:\"}}, \"a\": 1}}"), json).unwrap();
        // each node may have a context of its own
        let node = format!("{{\"@context\": [{{{most} \"@base\": \"u:\"}}], \"@id\": \"u:a\"}}");
        read(&format!("[{node}, {node}]"), json).unwrap();
        read(&format!("{{\"@context\": \"u:c\", {more} \"b\": {{{more} \"@id\": \"u:a\"}}}}"), json).unwrap();
        for context in ["@context", "\\u0040context"] {
            let halves = format!(
                "[{{{half} \"@vocab\": \"u:\"}}, {{{half} \"x\": null}}]",
                half = keys(MOST_TERMS / 2)
            );
            refused(&format!("{{\"{context}\": {{{more} \"x\": null}}}}"), json, "10000 terms, the limit");
            refused(&format!("{{\"{context}\": {halves}}}"), json, "10000 terms, the limit");
        }
        // contexts of terms begin with all the others; a million of copies are fine, a hundred not
        let scoped = |n: usize| {
            (0..n)
                .map(|i| format!("\"t{i}\": {{\"@id\": \"u:{i}\", \"@context\": null}},"))
                .collect::<String>()
        };
        read(&format!("{{\"@context\": {{{} \"x\": null}}}}", scoped(1000)), json).unwrap();
        let refusal = "20000000 terms from them, the limit";
        refused(&format!("{{\"@context\": {{{} \"x\": null}}}}", scoped(9000)), json, refusal);
        let nodes = "{\"p\": 1},".repeat(2100);
        refused(
            &format!("{{\"@context\": {{{most} \"x\": {{\"@context\": {{}}}}}}, \"a\": [{nodes} 1]}}"),
            json,
            "10000 terms, the limit",
        );
        let some = keys(9_990);
        refused(
            &format!("{{\"@context\": {{{some} \"x\": {{\"@context\": {{}}}}}}, \"a\": [{nodes} 1]}}"),
            json,
            refusal,
        );
        read(&format!("{{\"@context\": {{{some} \"x\": \"u:x\"}}, \"a\": [{nodes} 1]}}"), json).unwrap();
        let own = "{\"@context\": {\"q\": \"u:q\"}},".repeat(2100);
        refused(&format!("{{\"@context\": {{{some} \"x\": \"u:x\"}}, \"a\": [{own} 1]}}"), json, refusal);
        let inner = format!("{{\"p\": {{\"@id\": \"u:p\", \"@context\": {{{most} \"x\": null}}}}}}");
        refused(&format!("{{\"@context\": {inner}}}"), json, "10000 terms, the limit");
    }

    #[test]
    fn long_terms_of_xml_are_refused_while_they_are_read() {
        let long = "x".repeat(1 << 17);
        refused(&format!("<r>{long}</r>"), RdfFormat::RdfXml, "65536");
        refused(&format!("<r a='{long}'/>"), RdfFormat::RdfXml, "65536");
        refused(&format!("<r><![CDATA[{}]]></r>", ">".repeat(1 << 17)), RdfFormat::RdfXml, "65536");
        refused(
            &format!("<r><p rdf:parseType = \"Literal\">{}</p></r>", "<b>x</b>".repeat(1 << 14)),
            RdfFormat::RdfXml,
            "65536",
        );
        read(&format!("<r>{}</r>", "<b>x</b>".repeat(1 << 14)), RdfFormat::RdfXml).unwrap();
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
    fn levels_are_charged() {
        for (opened, format) in [("[", RdfFormat::Turtle), ("<a>", RdfFormat::RdfXml)] {
            let budget = snowmelt_store::MemoryBudget::new(1 << 20);
            let bounds = Bounds { longest: 1 << 16, charge: Some(budget.charge("a document that nests")) };
            let text = opened.repeat(FREE_LEVELS + 8192);
            let mut guarded = Guarded::new(text.as_bytes(), format, bounds);
            let error = guarded.read_to_end(&mut Vec::new()).unwrap_err();
            assert!(error.to_string().starts_with("a document that nests needs"), "{error}");
        }
    }

    #[test]
    fn json_that_is_kept_is_charged() {
        let budget = snowmelt_store::MemoryBudget::new(1 << 20);
        let bounds = Bounds { longest: 1 << 16, charge: Some(budget.charge("a JSON-LD document")) };
        let text = format!("{{\"a\": [{}]}}", "{\"b\": 1},".repeat(1 << 15));
        let format = RdfFormat::JsonLd { profile: Default::default() };
        let mut guarded = Guarded::new(text.as_bytes(), format, bounds);
        let error = guarded.read_to_end(&mut Vec::new()).unwrap_err();
        assert!(error.to_string().starts_with("a JSON-LD document needs"), "{error}");
    }
}
