//! Parses documents of the grammars: half of the stack suffices (the sizes hold a twofold reserve),
//! each small document is valid, and all work checks the clock.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use oxrdfio::{JsonLdProfileSet, RdfFormat};
use snowmelt_base::random::lcg;
use snowmelt_grammar::{Language, Site, languages};
use snowmelt_store::MemoryBudget;

use crate::input::document::parse_document;
use crate::input::error::LoadError;
use crate::input::fuzz;
use crate::input::intern::Parsed;
use crate::input::options::DocumentOptions;
use crate::interrupt::Interrupt;

/// Parses a document. Returns the number of its statements, or the fault.
fn parse(format: RdfFormat, read: impl Read, cancel: &dyn Interrupt) -> Result<usize, String> {
    let budget = MemoryBudget::new(512 << 20);
    let options = DocumentOptions { longest: 1 << 24, budget, ..fuzz::options(format) };
    let (mut rows, mut fault) = (0, None);
    let full = |mut parsed: Parsed| {
        rows += parsed.rows.len();
        fault = parsed.fault.take().or(fault.take());
        Ok(())
    };
    let ended = parse_document(read, options, cancel, || Ok(Parsed::default()), full);
    match (ended, fault) {
        (Err(error), _) => Err(error.to_string()),
        (Ok(()), Some(fault)) => Err(fault.message),
        (Ok(()), None) => Ok(rows),
    }
}

fn format(language: &str) -> Option<RdfFormat> {
    Some(match language {
        "turtle" => RdfFormat::Turtle,
        "trig" => RdfFormat::TriG,
        "n-triples" => RdfFormat::NTriples,
        "n-quads" => RdfFormat::NQuads,
        "n3" => RdfFormat::N3,
        "rdf-xml" => RdfFormat::RdfXml,
        "json-ld" => RdfFormat::JsonLd { profile: JsonLdProfileSet::empty() },
        _ => return None,
    })
}

/// All productions of all languages of documents.
fn places() -> Vec<(&'static str, RdfFormat, Site)> {
    let of_language = |language: Language| {
        let format = format(language.name)?;
        let places = language.grammar.sites().into_iter();
        Some(places.map(move |site| (language.name, format, site)).collect::<Vec<_>>())
    };
    languages().into_iter().filter_map(of_language).flatten().collect()
}

#[test]
fn the_smallest_document_of_each_production_is_valid() {
    let mut wrong = Vec::new();
    for (language, format, site) in places() {
        let text = site.document(1);
        if let Err(error) = parse(format, text.as_bytes(), &AtomicBool::new(false)) {
            wrong.push(format!("{language}: {}: {error}\n    {text}", site.name()));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Runs on a thread with a small stack. An overflow ends the process; the last line printed names
/// the production.
#[test]
fn no_production_overflows_the_stack() {
    let body = || {
        let mut random = snowmelt_base::test_seed(1);
        for (language, format, site) in places() {
            // only a part for other languages: their parsers are not recursive
            let one_of = if language == "json-ld" { 2 } else { 8 };
            let is_taken = (lcg(&mut random) >> 33).is_multiple_of(one_of);
            for n in [250, 9_000].into_iter().filter(|_| is_taken) {
                println!("{language}: {} × {n}", site.name());
                // another test checks the outcome
                let _ = parse(format, site.document(n).as_bytes(), &AtomicBool::new(false));
            }
        }
    };
    let small = std::thread::Builder::new().stack_size(256 << 10).spawn(body).unwrap();
    if let Err(panic) = small.join() {
        std::panic::resume_unwind(panic);
    }
}

/// A clock that counts how often it is checked.
#[derive(Default)]
struct Looks {
    count: AtomicUsize,
    most: usize,
}

impl Interrupt for Looks {
    fn is_set(&self) -> bool {
        self.count.fetch_add(1, Ordering::Relaxed) >= self.most
    }
}

/// Endless bytes that contain no statement.
struct Endless<'a> {
    text: &'a [u8],
    at: usize,
}

impl Read for Endless<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        for byte in out.iter_mut() {
            *byte = self.text[self.at % self.text.len()];
            self.at += 1;
        }
        Ok(out.len())
    }
}

#[test]
fn what_never_comes_to_a_statement_looks_at_the_clock() {
    let json = RdfFormat::JsonLd { profile: JsonLdProfileSet::empty() };
    for (format, text) in [
        (RdfFormat::Turtle, " "),
        (RdfFormat::Turtle, "# a comment\n"),
        (RdfFormat::Turtle, "@prefix a: <urn:a> .\n"),
        (RdfFormat::TriG, "{ }\n"),
        (RdfFormat::NTriples, "\n"),
        (RdfFormat::NQuads, "# a comment\n"),
        (RdfFormat::N3, "\n# a comment"),
        (RdfFormat::RdfXml, "<!-- a comment -->\n"),
        (json, " "),
    ] {
        let (ended, end) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let looks = Looks { count: AtomicUsize::new(0), most: 50 };
            let read = Endless { text: text.as_bytes(), at: 0 };
            // the receiver may have given up
            let _ = ended.send(parse(format, read, &looks));
        });
        let error = end.recv_timeout(Duration::from_secs(60)).expect("it looks at the clock").unwrap_err();
        assert_eq!(error, LoadError::Cancelled.to_string(), "{text:?}");
    }
}
