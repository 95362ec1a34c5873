//! The examples of RFC 3986, 5.4, wherever a text has relative IRIs: queries, the function IRI,
//! updates, documents; with a base declared in the text or given beside it.

use std::sync::atomic::AtomicBool;

use oxrdf::{NamedNode, Quad, Term};
use oxrdfio::{RdfFormat, RdfParser};
use snowmelt_graph::load::{self, LoadOptions, Source};
use snowmelt_graph::{DumpFormat, GraphDatabase};

use crate::support::answer::Answer;
use crate::support::settings::{Fixture, Settings};

/// As it is there, and with dot segments that mean the same folder.
const BASES: [&str; 2] = ["http://a/b/c/d;p?q", "http://a/./x/../b/c/./e/../d;p?q"];

/// The examples, and what has the base's own path.
fn examples(base: &str) -> Vec<(&'static str, String)> {
    let path = base.strip_suffix("?q").expect("each base has that query");
    let lines = include_str!("../../../base/src/iri/rfc3986.tsv").lines();
    let example = |line: &'static str| line.split_once('\t').expect("a reference and an IRI");
    let of_base = |(reference, iri): (&'static str, &str)| match reference {
        "" | "?y" | "#s" => (reference, iri.replace("http://a/b/c/d;p", path)),
        _ => (reference, iri.to_owned()),
    };
    lines.filter(|line| !line.starts_with("# ")).map(example).map(of_base).collect()
}

fn iri(text: &str) -> Option<Term> {
    Some(NamedNode::new(text).expect("an IRI").into())
}

#[test]
fn references_in_queries() {
    let fixture = Fixture::open(&[], &Settings::default());
    for base in BASES {
        for (reference, meant) in examples(base) {
            let select = format!("SELECT (<{reference}> AS ?a) (IRI(\"{reference}\") AS ?b) WHERE {{ }}");
            let prefixed = format!("PREFIX p: <{reference}> SELECT (p: AS ?a) (p: AS ?b) WHERE {{ }}");
            for (text, beside) in [
                (format!("BASE <{base}> {select}"), None),
                (select, Some(base)),
                (format!("BASE <{base}> {prefixed}"), None),
            ] {
                let Ok(Answer::Solutions(found)) = fixture.answer(&text, beside) else {
                    panic!("no solutions of {text}")
                };
                assert_eq!(found.rows, [[iri(&meant), iri(&meant)]], "{text} at {base}");
            }
        }
    }
}

#[test]
fn references_in_updates() {
    for base in BASES {
        let fixture = Fixture::open(&[], &Settings::default());
        let examples = examples(base);
        for (at, (reference, _)) in examples.iter().enumerate() {
            let insert = format!("INSERT DATA {{ <urn:s:{at}> <urn:p> <{reference}> }}");
            let (text, beside) = match at % 2 {
                0 => (format!("BASE <{base}> {insert}"), None),
                _ => (insert, Some(base)),
            };
            fixture.update(&text, beside).unwrap_or_else(|e| panic!("{text}: {e}"));
        }
        assert_meant(&fixture.quads(), &examples);
    }
}

fn assert_meant(quads: &[Quad], examples: &[(&str, String)]) {
    assert_eq!(quads.len(), examples.len());
    for (at, (reference, meant)) in examples.iter().enumerate() {
        let subject = NamedNode::new_unchecked(format!("urn:s:{at}"));
        let quad = quads.iter().find(|q| q.subject == subject.clone().into()).expect("one of each");
        assert_eq!(Some(&quad.object), iri(meant).as_ref(), "<{reference}>");
    }
}

/// The quads of a document, loaded and dumped.
fn loaded(text: String, format: RdfFormat, base: Option<&str>) -> Vec<Quad> {
    let folder = tempfile::Builder::new().prefix("snowmelt-test-").tempdir().expect("a temporary folder");
    let (path, store) = (folder.path().join("db"), Settings::default().store);
    let source = Source::Reader { name: "document".to_owned(), read: Box::new(std::io::Cursor::new(text)) };
    let options = LoadOptions {
        format: Some(format),
        base: base.map(str::to_owned),
        threads: 1,
        store: store.clone(),
        ..LoadOptions::default()
    };
    load::load(&path, vec![source], &options, &(), &AtomicBool::new(false)).expect("a document");
    let mut bytes = Vec::new();
    GraphDatabase::open(&path, &store)
        .expect("it was loaded")
        .dump(DumpFormat::NQuads, &mut bytes)
        .expect("a dump");
    let parser = RdfParser::from_format(RdfFormat::NQuads);
    parser.for_slice(&bytes).map(|q| q.expect("what we write can be read")).collect()
}

fn turtle(examples: &[(&str, String)]) -> String {
    let triples = examples.iter().enumerate();
    triples.map(|(at, (reference, _))| format!("<urn:s:{at}> <urn:p> <{reference}> .\n")).collect()
}

fn rdf_xml(examples: &[(&str, String)], base: &str) -> String {
    let head = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:u='urn:'";
    let triples = examples.iter().enumerate().map(|(at, (reference, _))| {
        format!(
            "<rdf:Description rdf:about='urn:s:{at}'><u:p rdf:resource='{reference}'/></rdf:Description>\n"
        )
    });
    format!("{head} {base}>{}</rdf:RDF>", triples.collect::<String>())
}

#[test]
fn references_in_documents() {
    let [base, dotted] = BASES;
    let of_base = examples(base);
    let declared = format!("@base <{base}> .\n{}", turtle(&of_base));
    assert_meant(&loaded(declared, RdfFormat::Turtle, None), &of_base);
    assert_meant(&loaded(turtle(&of_base), RdfFormat::Turtle, Some(base)), &of_base);
    assert_meant(
        &loaded(rdf_xml(&of_base, &format!("xml:base='{base}'")), RdfFormat::RdfXml, None),
        &of_base,
    );
    assert_meant(&loaded(rdf_xml(&of_base, ""), RdfFormat::RdfXml, Some(base)), &of_base);
    // a base that is given has its dots removed before, and its path none
    let plain = |e: (&'static str, String)| {
        (e.0, e.1.replace(dotted.strip_suffix("?q").unwrap(), "http://a/b/c/d;p"))
    };
    let of_dotted: Vec<_> = examples(dotted).into_iter().map(plain).collect();
    assert_meant(&loaded(turtle(&of_dotted), RdfFormat::Turtle, Some(dotted)), &of_dotted);
    assert_meant(&loaded(rdf_xml(&of_dotted, ""), RdfFormat::RdfXml, Some(dotted)), &of_dotted);
}
