//! The W3C's tests of RDF 1.1 and 1.2: N-Triples, N-Quads, Turtle and TriG. Each document is loaded
//! and dumped: it is refused, accepted, or gives the quads or canonical lines that the test names.

#[path = "support/world.rs"]
mod world;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use oxrdf::dataset::CanonicalizationAlgorithm;
use oxrdf::vocab::rdf;
use oxrdf::{Dataset, Graph, NamedNode, Term, TermRef};
use oxrdfio::{RdfFormat, RdfParser};
use snowmelt_graph::load::{LoadError, LoadOptions, Source, load};
use snowmelt_graph::{DumpFormat, GraphDatabase};
use world::is_sound;

const MF: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#";
const TESTS: &str = "http://www.w3.org/ns/rdftest#";

/// A test of a manifest.
struct Case {
    document: PathBuf,
    /// Its IRI.
    base: String,
    outcome: Outcome,
}

enum Outcome {
    Refused,
    Accepted,
    Quads(PathBuf),
    Lines(PathBuf),
}

fn mf(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{MF}{name}"))
}

/// The tests of a manifest that are in its list.
fn cases(folder: &Path) -> Vec<Case> {
    let text = std::fs::read(folder.join("manifest.ttl")).expect("a manifest");
    let local = format!("file://{}/", folder.canonicalize().expect("a folder").display());
    let parser = RdfParser::from_format(RdfFormat::Turtle).with_base_iri(&local).expect("an IRI");
    let graph: Graph =
        parser.for_slice(&text).map(|quad| oxrdf::Triple::from(quad.expect("it is Turtle"))).collect();
    let one = |name: &str| Some(graph.triples_for_predicate(&mf(name)).next()?.object.into_owned());
    let base = match one("assumedTestBase") {
        Some(Term::NamedNode(base)) => base.into_string(),
        // where no document has relative IRIs
        None => local.clone(),
        Some(other) => panic!("{other} is no base"),
    };
    let mut cases = Vec::new();
    let mut cell = Some(one("entries").expect("a manifest has entries"));
    while let Some(Term::BlankNode(node)) = cell {
        let entry = graph.object_for_subject_predicate(&node, rdf::FIRST).expect("a list");
        let TermRef::NamedNode(entry) = entry else { panic!("{entry} is no test") };
        let file = |name: &str| match graph.object_for_subject_predicate(entry, &mf(name)) {
            Some(TermRef::NamedNode(node)) => {
                node.as_str().strip_prefix(&local).expect("beside it").to_owned()
            }
            other => panic!("{other:?} is no file"),
        };
        let class = graph.object_for_subject_predicate(entry, rdf::TYPE).expect("a class").to_string();
        let class = class.trim_matches(['<', '>']).strip_prefix(TESTS).expect("a class of tests").to_owned();
        let outcome = match class.as_str() {
            class if class.ends_with("NegativeSyntax") => Outcome::Refused,
            class if class.ends_with("PositiveSyntax") => Outcome::Accepted,
            class if class.ends_with("C14N") => Outcome::Lines(folder.join(file("result"))),
            class if class.ends_with("Eval") => Outcome::Quads(folder.join(file("result"))),
            _ => panic!("{class} is no class of tests known here"),
        };
        let action = file("action");
        cases.push(Case { base: format!("{base}{action}"), document: folder.join(action), outcome });
        cell = graph.object_for_subject_predicate(&node, rdf::REST).map(TermRef::into_owned);
    }
    cases
}

fn canonical(text: &[u8], format: RdfFormat) -> Result<Dataset, String> {
    let quads: Result<Dataset, _> = RdfParser::from_format(format).for_slice(text).collect();
    let mut quads = quads.map_err(|error| error.to_string())?;
    quads.canonicalize(CanonicalizationAlgorithm::Unstable);
    Ok(quads)
}

/// A text without its comments and empty lines, its lines sorted.
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    lines.sort_unstable();
    lines
}

/// The fault in the reading of a test's document.
fn wrong(case: &Case, format: RdfFormat) -> Option<String> {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("db");
    let options = LoadOptions {
        format: Some(format),
        base: Some(case.base.clone()),
        store: world::options(),
        threads: 1,
        ..LoadOptions::default()
    };
    let loaded =
        load(&path, vec![Source::File(case.document.clone())], &options, &(), &AtomicBool::new(false));
    match (&case.outcome, loaded) {
        (Outcome::Refused, Err(LoadError::Syntax { .. })) => return None,
        (_, Err(error)) => return Some(error.to_string()),
        (Outcome::Refused, Ok(_)) => return Some("it was read".to_owned()),
        _ => {}
    }
    let database = GraphDatabase::open(&path, &world::options()).expect("it was loaded");
    is_sound(&database);
    let mut dump = Vec::new();
    database.dump(DumpFormat::NQuads, &mut dump).expect("a dump");
    let (Outcome::Quads(result) | Outcome::Lines(result)) = &case.outcome else { return None };
    let expected = std::fs::read(result).expect("a result");
    let (got, want) = (canonical(&dump, RdfFormat::NQuads), canonical(&expected, RdfFormat::NQuads));
    if got != want {
        return Some(format!("{got:?}\ninstead of {want:?}"));
    }
    let (dump, expected) = (String::from_utf8_lossy(&dump), String::from_utf8_lossy(&expected));
    let is_the_same = !matches!(case.outcome, Outcome::Lines(_))
        || expected.contains("_:")
        || lines(&dump) == lines(&expected);
    (!is_the_same).then(|| format!("{dump}\ninstead of {expected}"))
}

/// All tests of a folder, which has so many; those named are known to fail.
fn run(folder: &str, format: RdfFormat, tests: usize, known: &[&str]) {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("SNOWMELT_SHARED").map_or(beside, PathBuf::from);
    let folder = shared.join("w3c/rdf").join(folder);
    if !folder.exists() {
        eprintln!("skipped: {} is not there (SNOWMELT_SHARED names the folder with it)", folder.display());
        return;
    }
    let cases = cases(&folder);
    let failed: Vec<(String, String)> = cases
        .iter()
        .filter_map(|case| {
            let name = case.document.file_name().expect("a file").to_string_lossy().into_owned();
            Some((name, wrong(case, format)?))
        })
        .collect();
    eprintln!("{}: {} of {}", folder.display(), cases.len() - failed.len(), cases.len());
    let names: Vec<&str> = failed.iter().map(|(name, _)| name.as_str()).collect();
    let told: Vec<String> = failed.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    assert_eq!(names, known, "{}", told.join("\n"));
    assert_eq!(cases.len(), tests, "tests of the manifest");
}

#[test]
fn n_triples() {
    run("rdf11/rdf-n-triples", RdfFormat::NTriples, 70, &[]);
    run("rdf12/rdf-n-triples/syntax", RdfFormat::NTriples, 29, &[]);
    run("rdf12/rdf-n-triples/c14n", RdfFormat::NTriples, 41, &[]);
}

#[test]
fn n_quads() {
    run("rdf11/rdf-n-quads", RdfFormat::NQuads, 87, &[]);
    run("rdf12/rdf-n-quads/syntax", RdfFormat::NQuads, 27, &[]);
    run("rdf12/rdf-n-quads/c14n", RdfFormat::NQuads, 41, &[]);
}

#[test]
fn turtle() {
    run("rdf11/rdf-turtle", RdfFormat::Turtle, 313, &[]);
    run("rdf12/rdf-turtle/syntax", RdfFormat::Turtle, 74, &[]);
    run("rdf12/rdf-turtle/eval", RdfFormat::Turtle, 29, &[]);
}

#[test]
fn trig() {
    run("rdf11/rdf-trig", RdfFormat::TriG, 356, &[]);
    run("rdf12/rdf-trig/syntax", RdfFormat::TriG, 35, &[]);
    run("rdf12/rdf-trig/eval", RdfFormat::TriG, 25, &[]);
}
