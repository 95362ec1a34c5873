//! Prefixes that documents declare are kept with the database, whichever way they are loaded, and
//! dumps are written with them.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_database::OpenOptions;
use snowmelt_graph::load::{Fill, LoadOptions, Source, format_named, load, load_into};
use snowmelt_graph::{CompactOptions, CompactTerms, DumpFormat, GraphDatabase, GraphError, Namespaces};

fn options(format: &str, fill: Option<Fill>) -> LoadOptions {
    LoadOptions { format: format_named(format).ok(), fill, threads: 2, ..LoadOptions::default() }
}

fn source(text: &str) -> Vec<Source> {
    let read = Box::new(std::io::Cursor::new(text.as_bytes().to_vec()));
    vec![Source::Reader { name: "input".into(), read }]
}

fn open(path: &Path) -> Arc<GraphDatabase> {
    GraphDatabase::open(path, &OpenOptions { memory_bytes: 256 << 20, ..OpenOptions::default() }).unwrap()
}

fn load_text(path: &Path, text: &str, format: &str, fill: Option<Fill>) {
    load(path, source(text), &options(format, fill), &(), &AtomicBool::new(false)).unwrap();
}

/// `name=IRI` of all that are kept.
fn kept(of: &Namespaces) -> String {
    of.iter().map(|(name, iri)| format!("{name}={iri} ")).collect::<String>().trim_end().to_owned()
}

const TURTLE: &str = "@prefix a: <urn:a:> . PREFIX b: <urn:b:> @prefix : <urn:none:> . a:s a:p b:o , :x .";
const RDF_XML: &str = r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="urn:x:">
  <rdf:Description rdf:about="urn:s"><x:p xmlns:inner="urn:inner:">1</x:p></rdf:Description></rdf:RDF>"#;
const JSON_LD: &str = r#"{ "@context": { "j": "urn:j:", "name": "urn:j:name", "k": { "@id": "urn:k", "@prefix": true } },
  "@id": "j:s", "j:p": 1, "name": "n" }"#;

#[test]
fn each_format_tells_its_prefixes() {
    for (format, text, expected) in [
        ("ttl", TURTLE, "=urn:none: a=urn:a: b=urn:b:"),
        ("trig", "@prefix g: <urn:g:> . g:g { g:s g:p 1 }", "g=urn:g:"),
        ("rdf", RDF_XML, "inner=urn:inner: rdf=http://www.w3.org/1999/02/22-rdf-syntax-ns# x=urn:x:"),
        ("jsonld", JSON_LD, "j=urn:j: k=urn:k"),
        ("nt", "<urn:s> <urn:p> \"1\" .\n", ""),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        load_text(&path, text, format, None);
        assert_eq!(kept(&open(&path).namespaces()), expected, "{format}");
    }
}

#[test]
fn the_first_to_name_a_prefix_has_it_whichever_way_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    load_text(&path, TURTLE, "ttl", None);
    load_text(
        &path,
        "@prefix a: <urn:other:> . @prefix i: <urn:i:> . a:s a:p 1 .",
        "ttl",
        Some(Fill::Insert),
    );
    let text = "@prefix b: <urn:other:> . @prefix m: <urn:m:> . b:s b:p 1 .";
    load_text(&path, text, "ttl", Some(Fill::Merge));
    let database = open(&path);
    assert_eq!(kept(&database.namespaces()), "=urn:none: a=urn:a: b=urn:b: i=urn:i: m=urn:m:");
    let text = "@prefix l: <urn:l:> . l:s l:p 1 .";
    load_into(&database, source(text), &options("ttl", None), &(), &AtomicBool::new(false)).unwrap();
    assert_eq!(database.namespaces().get("l"), Some("urn:l:"));
    // a document that fails leaves none
    let broken = "@prefix z: <urn:z:> . z:s z:p 1 . z:s z:p";
    load_into(&database, source(broken), &options("ttl", None), &(), &AtomicBool::new(false)).unwrap_err();
    assert_eq!(database.namespaces().get("z"), None);
}

#[test]
fn they_stay_through_changes_and_are_used_by_dumps() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    load_text(&path, TURTLE, "ttl", None);
    let database = open(&path);
    let change = |all: &mut Namespaces| {
        all.set("b", "urn:none:").unwrap();
        assert!(all.remove("a"));
        Ok::<_, GraphError>(())
    };
    database.change_namespaces(change).unwrap();
    let expected = "=urn:none: b=urn:none:";
    assert_eq!(kept(&database.namespaces()), expected);
    let refused = database.change_namespaces(|all| {
        all.remove("b");
        Err(GraphError::Stopped)
    });
    assert!(matches!(refused, Err(GraphError::Stopped)));
    let options = CompactOptions { terms: CompactTerms::Always, ..CompactOptions::default() };
    database.compact(&options, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(kept(&database.namespaces()), expected, "compaction writes the trees anew");
    drop(database);
    let database = open(&path);
    assert_eq!(kept(&database.namespaces()), expected);
    let dump = |format| {
        let mut out = Vec::new();
        database.dump(format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let turtle = dump(DumpFormat::Turtle);
    assert!(turtle.contains("@prefix b: <urn:none:> .") && turtle.contains("@prefix skos:"), "{turtle}");
    assert!(turtle.contains("<urn:a:s> <urn:a:p> ") && !turtle.contains("<urn:none:x>"), "{turtle}");
    assert!(!dump(DumpFormat::NTriples).contains("@prefix"));
    // what is dumped is loaded with its prefixes
    let copy = dir.path().join("copy");
    load_text(&copy, &turtle, "ttl", None);
    assert_eq!(open(&copy).namespaces().get("b"), Some("urn:none:"));
}
