//! Documents as graphs, for all tests.
#![allow(dead_code)]

use std::path::PathBuf;

use oxrdf::graph::CanonicalizationAlgorithm;
use oxrdf::{BaseDirection, BlankNode, Graph, Literal, NamedNode, NamedOrBlankNode, Term, Triple};
use snowmelt_rdfxml::{Direction, OddTerms, OnFault, Options, RdfXml, ReadError, ReadFault, ReadTerm, Sink};

/// The outcome of a document.
#[derive(Default)]
pub struct Read {
    pub graph: Graph,
    pub triples: usize,
    pub dropped: Vec<ReadFault>,
}

impl Sink for Read {
    fn triple(&mut self, subject: ReadTerm<'_>, predicate: &str, object: ReadTerm<'_>) {
        self.triples += 1;
        self.graph.insert(&triple(subject, predicate, object));
    }

    fn dropped(&mut self, fault: ReadFault) {
        self.dropped.push(fault);
    }
}

fn triple(subject: ReadTerm<'_>, predicate: &str, object: ReadTerm<'_>) -> Triple {
    let subject = match term(subject) {
        Term::NamedNode(node) => NamedOrBlankNode::from(node),
        Term::BlankNode(node) => node.into(),
        other => panic!("{other} is no subject"),
    };
    let predicate = NamedNode::new(predicate).expect("a predicate is an IRI");
    Triple::new(subject, predicate, term(object))
}

fn term(term: ReadTerm<'_>) -> Term {
    match term {
        ReadTerm::Iri(iri) => NamedNode::new(iri).unwrap_or_else(|e| panic!("{iri}: {e}")).into(),
        // N-Triples takes digits first, too
        ReadTerm::Blank(label) => BlankNode::new(format!("b{label}")).expect("it is a name").into(),
        ReadTerm::Literal { lexical, language: Some(tag), direction: None, .. } => {
            Literal::new_language_tagged_literal(lexical, tag).expect("it is a tag").into()
        }
        ReadTerm::Literal { lexical, language: Some(tag), direction: Some(direction), .. } => {
            let direction = match direction {
                Direction::Ltr => BaseDirection::Ltr,
                Direction::Rtl => BaseDirection::Rtl,
            };
            Literal::new_directional_language_tagged_literal(lexical, tag, direction)
                .expect("it is a tag")
                .into()
        }
        ReadTerm::Literal { lexical, language: None, datatype, .. } => {
            Literal::new_typed_literal(lexical, NamedNode::new(datatype).expect("it is an IRI")).into()
        }
        ReadTerm::Triple(whole) => {
            triple(whole.subject.as_ref(), &whole.predicate, whole.object.as_ref()).into()
        }
    }
}

pub const BASE: &str = "http://base/doc";

pub fn options(on_fault: OnFault) -> Options {
    Options { base: Some(BASE.to_owned()), on_fault, odd: OddTerms::Refused, longest: 16 << 20 }
}

/// Reads a document.
pub fn read_with(document: impl std::io::Read, options: &Options) -> (Read, Result<(), ReadError>) {
    let mut read = Read::default();
    let mut reader = RdfXml::new(document, options).expect("the base is an IRI");
    let ended = loop {
        match reader.step(&mut read) {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    (read, ended)
}

/// The graph of a document in which nothing is wrong.
#[track_caller]
pub fn graph(document: &[u8]) -> Graph {
    let (read, ended) = read_with(document, &options(OnFault::Stop));
    if let Err(error) = ended {
        panic!("{error} in:\n{}", String::from_utf8_lossy(document));
    }
    read.graph
}

/// The message of a document that is refused.
#[track_caller]
pub fn refused(document: &[u8]) -> String {
    let (_, ended) = read_with(document, &options(OnFault::Stop));
    match ended {
        Ok(()) => panic!("it was read:\n{}", String::from_utf8_lossy(document)),
        Err(error) => error.to_string(),
    }
}

/// A graph of N-Triples.
#[track_caller]
pub fn n_triples(text: &str) -> Graph {
    oxttl::NTriplesParser::new()
        .for_slice(text.as_bytes())
        .map(|triple| triple.expect("it is N-Triples"))
        .collect()
}

/// A graph with canonical labels of blank nodes.
pub fn canonical(mut graph: Graph) -> Graph {
    graph.canonicalize(CanonicalizationAlgorithm::Unstable);
    graph
}

/// Whether two graphs are the same but for labels of blank nodes.
#[track_caller]
pub fn assert_same(got: Graph, expected: Graph, what: &dyn std::fmt::Display) {
    let (got, expected) = (canonical(got), canonical(expected));
    if got == expected {
        return;
    }
    let lines = |from: &Graph, other: &Graph| {
        let mut lines: Vec<_> = from.iter().filter(|t| !other.contains(*t)).map(|t| t.to_string()).collect();
        lines.sort();
        lines.join("\n")
    };
    panic!("missing:\n{}\nextra:\n{}\nin {what}", lines(&expected, &got), lines(&got, &expected));
}

/// A folder of the shared files; says so when it is not there.
pub fn shared(path: &str) -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let found = std::env::var_os("SNOWMELT_SHARED").map_or(beside, PathBuf::from).join(path);
    if !found.exists() {
        eprintln!(
            "skipped: {} is not there (set SNOWMELT_SHARED to the folder that has it)",
            found.display()
        );
        return None;
    }
    Some(found)
}
