//! The W3C's tests of RDF/XML 1.1 and 1.2.

mod support;

use std::path::{Path, PathBuf};

use oxrdf::vocab::rdf;
use oxrdf::{Graph, NamedNode, Term, TermRef};
use oxrdfio::{RdfFormat, RdfParser};
use snowmelt_rdfxml::{OddTerms, OnFault, Options};
use support::{assert_same, read_with, shared};

const MF: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#";
const TESTS: &str = "http://www.w3.org/ns/rdftest#";

/// A test of a manifest.
struct Case {
    document: PathBuf,
    /// Its IRI.
    base: String,
    /// Its graph; `None` when it is none.
    result: Option<PathBuf>,
}

/// The tests of a manifest. Those that are withdrawn are in comments or not in its list.
fn cases(folder: &Path) -> Vec<Case> {
    let text = std::fs::read(folder.join("manifest.ttl")).expect("a manifest");
    let local = format!("file://{}/", folder.canonicalize().expect("a folder").display());
    let parser = RdfParser::from_format(RdfFormat::Turtle).with_base_iri(&local).expect("an IRI");
    let graph: Graph = parser
        .for_slice(&text)
        .map(|quad| oxrdf::Triple::from(quad.expect("a manifest is Turtle")))
        .collect();
    let mf = |name: &str| NamedNode::new_unchecked(format!("{MF}{name}"));
    let entries = graph.triples_for_predicate(&mf("entries")).next().expect("entries").object.into_owned();
    let base = graph.triples_for_predicate(&mf("assumedTestBase")).next().expect("a base").object;
    let TermRef::NamedNode(base) = base else { panic!("{base} is no IRI") };
    let mut cases = Vec::new();
    let mut cell = Some(entries);
    while let Some(Term::BlankNode(node)) = cell {
        let entry = graph.object_for_subject_predicate(&node, rdf::FIRST).expect("a list");
        let TermRef::NamedNode(entry) = entry else { panic!("{entry} is no test") };
        let object = |name: &str| graph.object_for_subject_predicate(entry, &mf(name));
        let file = |term: TermRef<'_>| match term {
            TermRef::NamedNode(node) => {
                node.as_str().strip_prefix(&local).expect("a file beside it").to_owned()
            }
            other => panic!("{other} is no file"),
        };
        let class = graph.object_for_subject_predicate(entry, rdf::TYPE).expect("a class").to_string();
        let action = file(object("action").expect("an action"));
        let result = match class.trim_matches(['<', '>']).strip_prefix(TESTS) {
            Some("TestXMLEval") => Some(folder.join(file(object("result").expect("a result")))),
            Some("TestXMLNegativeSyntax") => None,
            _ => panic!("{class} is no class of tests known here"),
        };
        cases.push(Case {
            base: format!("{}{action}", base.as_str()),
            document: folder.join(action),
            result,
        });
        cell = graph.object_for_subject_predicate(&node, rdf::REST).map(TermRef::into_owned);
    }
    cases
}

/// The fault in the reading of a test's document.
fn wrong(case: &Case) -> Option<String> {
    let options = Options {
        base: Some(case.base.clone()),
        on_fault: OnFault::Stop,
        odd: OddTerms::Refused,
        longest: 1 << 20,
    };
    let document = std::fs::read(&case.document).expect("a document");
    let (read, ended) = read_with(document.as_slice(), &options);
    let (Some(result), Ok(())) = (&case.result, &ended) else {
        return match ended {
            Ok(()) => Some("it was read".to_owned()),
            Err(error) => case.result.as_ref().map(|_| error.to_string()),
        };
    };
    let expected = std::fs::read(result).expect("a result");
    let expected: Result<Graph, _> = oxttl::NTriplesParser::new().for_slice(&expected).collect();
    let expected = match expected {
        Ok(expected) => expected,
        Err(error) => return Some(format!("its result is no N-Triples: {error}")),
    };
    let same = std::panic::catch_unwind(|| assert_same(read.graph, expected, &"it"));
    same.err().map(|why| why.downcast_ref::<String>().cloned().unwrap_or_default())
}

/// All tests of a folder, which has so many.
fn run(folder: &str, tests: usize) {
    let Some(folder) = shared(folder) else { return };
    let cases = cases(&folder);
    assert_eq!(cases.len(), tests, "tests of the manifest");
    let failed: Vec<_> = cases
        .iter()
        .filter_map(|case| wrong(case).map(|why| format!("{}: {why}", case.document.display())))
        .collect();
    assert!(failed.is_empty(), "{} of {} fail:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

#[test]
fn version_1_1() {
    run("w3c/rdf/rdf11/rdf-xml", 166);
}

#[test]
fn version_1_2() {
    run("w3c/rdf/rdf12/rdf-xml/eval", 31);
}
