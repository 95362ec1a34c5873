//! The W3C's SPARQL 1.0, 1.1 and 1.2 query and update tests, one by one, by manifest.
//!
//! Evaluation tests load the data into a database of their own, run the query and compare;
//! syntax tests only ask for the plan. What is left out or expected to fail stands in
//! `w3c/exceptions.txt`, each with its reason: a listed test that passes is a failure too, so
//! that the list stays true. Filters of the test program work on names: `cargo test --test w3c
//! -- optional`.

mod support;

#[path = "w3c/manifest.rs"]
mod manifest;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use oxrdf::dataset::CanonicalizationAlgorithm;
use oxrdf::{Dataset, GraphName, NamedNode, Quad, Term, Triple};
use snowmelt_sparql::RemoteEndpoints;
use sparesults::QueryResultsFormat;

use manifest::{Case, Kind};
use support::answer::{self, Answer, Solutions};
use support::data;
use support::endpoints::InProcess;
use support::settings::{Fixture, Settings};

const MANIFESTS: [&str; 7] = [
    "sparql10/manifest-evaluation.ttl",
    "sparql10/manifest-syntax.ttl",
    "sparql11/manifest-sparql11-query.ttl",
    "sparql11/manifest-sparql11-results.ttl",
    "sparql11/manifest-sparql11-update.ttl",
    "sparql11/manifest-sparql11-fed.ttl",
    "sparql12/manifest.ttl",
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let Some(root) = support::shared("w3c/sparql") else { return ExitCode::SUCCESS };
    let exceptions = exceptions();
    let mut trials = Vec::new();
    let mut seen = Vec::new();
    for file in MANIFESTS {
        let cases = manifest::read(&root.join(file));
        assert!(!cases.is_empty(), "{file} has no tests");
        for case in cases {
            let name = case.name(&root);
            let exception = exceptions.get(&name).cloned();
            seen.push(name.clone());
            trials.push(Trial::test(name, move || judge(run(&case), exception)));
        }
    }
    let unknown: Vec<_> = exceptions.keys().filter(|n| !seen.contains(n)).cloned().collect();
    assert!(unknown.is_empty(), "exceptions for tests that do not exist: {unknown:?}");
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Name of a test and why it is expected to fail.
fn exceptions() -> BTreeMap<String, String> {
    let lines = include_str!("w3c/exceptions.txt").lines();
    let entry = |line: &str| {
        let (name, reason) = line.split_once(": ").unwrap_or_else(|| panic!("{line:?} has no reason"));
        (name.trim().to_owned(), reason.trim().to_owned())
    };
    lines.map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')).map(entry).collect()
}

fn judge(outcome: Result<(), String>, exception: Option<String>) -> Result<(), Failed> {
    match (outcome, exception) {
        (Ok(()), None) => Ok(()),
        (Err(message), None) => Err(message.into()),
        (Err(_), Some(_)) => Ok(()),
        (Ok(()), Some(reason)) => Err(format!("passes, although listed as failing: {reason}").into()),
    }
}

fn run(case: &Case) -> Result<(), String> {
    let text = std::fs::read_to_string(&case.query).map_err(|e| format!("{}: {e}", case.query.display()))?;
    match case.kind {
        Kind::PositiveSyntax => check_syntax(&text, case, true),
        // a manifest calls some updates queries
        Kind::NegativeSyntax if case.query.extension().is_some_and(|end| end == "ru") => {
            check_update_syntax(&text, case, false)
        }
        Kind::NegativeSyntax => check_syntax(&text, case, false),
        Kind::Evaluation => evaluate(&text, case, None),
        Kind::Update => update(&text, case),
        Kind::PositiveUpdateSyntax => check_update_syntax(&text, case, true),
        Kind::NegativeUpdateSyntax => check_update_syntax(&text, case, false),
        Kind::Csv => evaluate(&text, case, Some(snowmelt_sparql::results::ResultFormat::Csv)),
    }
    .map_err(|message| format!("{message}\nquery {}:\n{text}\n{case:?}", case.query.display()))
}

fn check_syntax(text: &str, case: &Case, positive: bool) -> Result<(), String> {
    let fixture = Fixture::open(&[], &Settings::default());
    match (fixture.answer(text, Some(&case.base())), positive) {
        (Err(snowmelt_sparql::QueryError::Parse { .. }), false) => Ok(()),
        (Ok(_), false) => Err("accepted, although it is not SPARQL".to_owned()),
        (Ok(_), true) => Ok(()),
        // Known to be SPARQL: the function or construct is refused, not the syntax.
        (Err(snowmelt_sparql::QueryError::Unsupported { .. }), true) => Ok(()),
        // or there is no such endpoint
        (
            Err(
                snowmelt_sparql::QueryError::Service { .. } | snowmelt_sparql::QueryError::ServiceName { .. },
            ),
            true,
        ) => Ok(()),
        (Err(error), _) => Err(error.to_string()),
    }
}

fn check_update_syntax(text: &str, case: &Case, positive: bool) -> Result<(), String> {
    let fixture = Fixture::open(&[], &Settings::default());
    match (fixture.update(text, Some(&case.base())), positive) {
        (Err(snowmelt_sparql::QueryError::Parse { .. }), false) => Ok(()),
        (Ok(_), false) => Err("accepted, although it is not SPARQL".to_owned()),
        // or nothing may be loaded from there
        (
            Ok(_)
            | Err(
                snowmelt_sparql::QueryError::LoadRefused { .. }
                | snowmelt_sparql::QueryError::LoadFailed { .. },
            ),
            true,
        ) => Ok(()),
        (Err(error), _) => Err(error.to_string()),
    }
}

/// Runs an update and compares everything there is afterwards; the indexes must agree with each
/// other, too.
fn update(text: &str, case: &Case) -> Result<(), String> {
    let fixture = Fixture::open(&quads(&case.data, &case.graphs)?, &Settings::default());
    fixture.update(text, Some(&case.base())).map_err(|e| e.to_string())?;
    fixture.check()?;
    let (mut actual, mut expected) = (Dataset::new(), Dataset::new());
    actual.extend(fixture.quads());
    expected.extend(quads(&case.data_after, &case.graphs_after)?);
    actual.canonicalize(CanonicalizationAlgorithm::Unstable);
    expected.canonicalize(CanonicalizationAlgorithm::Unstable);
    if actual == expected { Ok(()) } else { Err(format!("got\n{actual}\ninstead of\n{expected}")) }
}

/// The quads of a default graph's files and of named graphs'.
fn quads(data: &[PathBuf], graphs: &[(String, PathBuf)]) -> Result<Vec<Quad>, String> {
    let mut quads = Vec::new();
    for file in data {
        quads.extend(data::read_file(file, &manifest::iri(file), &GraphName::DefaultGraph)?);
    }
    for (name, file) in graphs {
        quads.extend(data::read_file(file, &manifest::iri(file), &NamedNode::new_unchecked(name).into())?);
    }
    Ok(quads)
}

fn evaluate(
    text: &str,
    case: &Case,
    as_text: Option<snowmelt_sparql::results::ResultFormat>,
) -> Result<(), String> {
    let mut quads = quads(&case.data, &case.graphs)?;
    quads.extend(dataset(text, case)?);
    let fixture = Fixture::open(&quads, &Settings::default()).asking(endpoints(case)?);
    let result_file = case.result.as_ref().ok_or("the test has no result")?;
    if let Some(format) = as_text {
        let expected = std::fs::read_to_string(result_file).map_err(|e| e.to_string())?;
        let actual = fixture.text(text, Some(&case.base()), format).map_err(|e| e.to_string())?;
        return same_lines(&actual, &expected);
    }
    let (expected, ordered) = read_result(result_file)?;
    let actual = fixture.answer(text, Some(&case.base())).map_err(|e| e.to_string())?;
    answer::same(&actual, &expected)?;
    match (&actual, &expected) {
        (Answer::Solutions(actual), Answer::Solutions(expected)) if ordered => same_order(actual, expected),
        _ => Ok(()),
    }
}

/// The endpoints of a test, each with a database of its own.
fn endpoints(case: &Case) -> Result<Option<Arc<dyn RemoteEndpoints>>, String> {
    let mut databases = Vec::new();
    for (address, files) in &case.services {
        let quads = quads(files, &[])?;
        databases.push((address.clone(), Fixture::open(&quads, &Settings::default())));
    }
    Ok(InProcess::new(databases).remote())
}

/// The graphs of FROM and FROM NAMED, loaded as named graphs.
fn dataset(text: &str, case: &Case) -> Result<Vec<Quad>, String> {
    let parser = spargebra::SparqlParser::new().with_base_iri(case.base()).map_err(|e| e.to_string())?;
    let Ok(query) = parser.parse_query(text) else { return Ok(Vec::new()) };
    let Some(dataset) = query.dataset() else { return Ok(Vec::new()) };
    let mut quads = Vec::new();
    let mut names: Vec<&NamedNode> = dataset.default.iter().chain(dataset.named.iter().flatten()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let path = name.as_str().strip_prefix("file://").ok_or_else(|| format!("FROM {name} is no file"))?;
        quads.extend(data::read_file(Path::new(path), name.as_str(), &name.clone().into())?);
    }
    Ok(quads)
}

/// Rows of CSV by the names in their head, in any order; blank nodes have any label.
fn same_lines(actual: &str, expected: &str) -> Result<(), String> {
    let table = |text: &str| -> Vec<BTreeMap<String, String>> {
        let mut lines = text.lines().map(csv_cells);
        let head = lines.next().unwrap_or_default();
        let label = |cell: String| if cell.starts_with("_:") { "_:".to_owned() } else { cell };
        let mut rows: Vec<_> =
            lines.map(|row| head.iter().cloned().zip(row.into_iter().map(label)).collect()).collect();
        rows.sort();
        rows
    };
    if table(actual) == table(expected) {
        Ok(())
    } else {
        Err(format!("got\n{actual}\ninstead of\n{expected}"))
    }
}

/// The cells of a line of CSV, quotes and all: the text counts.
fn csv_cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for c in line.trim_end().chars() {
        quoted ^= c == '"';
        match c {
            ',' if !quoted => cells.push(String::new()),
            c => cells.last_mut().expect("there is a cell").push(c),
        }
    }
    cells
}

/// Row by row, as far as blank nodes can be told from each other without their names.
fn same_order(actual: &Solutions, expected: &Solutions) -> Result<(), String> {
    let actual = actual.arranged(&expected.vars);
    let anonymous = |row: &answer::Row| -> answer::Row {
        let cell = |c: &Option<Term>| match c {
            Some(Term::BlankNode(_)) => Some(NamedNode::new_unchecked("test:blank").into()),
            other => other.clone(),
        };
        row.iter().map(cell).collect()
    };
    for (i, (a, e)) in actual.rows.iter().zip(&expected.rows).enumerate() {
        let (surplus, _) = answer::unmatched(&[anonymous(a)], &[anonymous(e)]);
        if !surplus.is_empty() {
            return Err(format!("row {i} in order: {} instead of {}", answer::show(a), answer::show(e)));
        }
    }
    Ok(())
}

/// The expected answer, and whether its order counts.
fn read_result(path: &Path) -> Result<(Answer, bool), String> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    if let Some(format) = QueryResultsFormat::from_extension(extension).filter(|_| extension != "json") {
        let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
        return Ok((answer::read(format, &bytes)?, false));
    }
    let quads = data::read_file(path, &manifest::iri(path), &GraphName::DefaultGraph)?;
    let triples: Vec<Triple> = quads.into_iter().map(Triple::from).collect();
    Ok(result_set(&triples)?.unwrap_or((Answer::Graph(triples), false)))
}

/// A result written in the vocabulary of the Data Access Working Group.
fn result_set(triples: &[Triple]) -> Result<Option<(Answer, bool)>, String> {
    const RS: &str = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#";
    let mut about: HashMap<String, Vec<(&str, &Term)>> = HashMap::new();
    for t in triples {
        let local = t.predicate.as_str().strip_prefix(RS).unwrap_or("");
        about.entry(t.subject.to_string()).or_default().push((local, &t.object));
    }
    let set = triples
        .iter()
        .find(|t| matches!(&t.object, Term::NamedNode(n) if n.as_str() == format!("{RS}ResultSet")));
    let Some(set) = set else { return Ok(None) };
    let all = |node: &str, what: &str| -> Vec<Term> {
        let of = about.get(node).map(Vec::as_slice).unwrap_or_default();
        of.iter().filter(|(p, _)| *p == what).map(|(_, o)| (*o).clone()).collect()
    };
    let text = |term: &Term| match term {
        Term::Literal(l) => l.value().to_owned(),
        other => other.to_string(),
    };
    let node = set.subject.to_string();
    if let [Term::Literal(answer)] = all(&node, "boolean").as_slice() {
        return Ok(Some((Answer::Boolean(answer.value() == "true"), false)));
    }
    let vars: Vec<String> = all(&node, "resultVariable").iter().map(text).collect();
    let mut rows = Vec::new();
    for solution in all(&node, "solution") {
        let solution = solution.to_string();
        let mut row = vec![None; vars.len()];
        for binding in all(&solution, "binding") {
            let binding = binding.to_string();
            let (names, values) = (all(&binding, "variable"), all(&binding, "value"));
            let at = vars.iter().position(|v| *v == text(&names[0])).ok_or("a binding of no variable")?;
            row[at] = Some(values[0].clone());
        }
        let index = all(&solution, "index").first().map(text).and_then(|i| i.parse::<usize>().ok());
        rows.push((index, row));
    }
    let ordered = !rows.is_empty() && rows.iter().all(|(index, _)| index.is_some());
    rows.sort_by_key(|(index, _)| *index);
    let rows = rows.into_iter().map(|(_, row)| row).collect();
    Ok(Some((Answer::Solutions(Solutions { vars, rows }), ordered)))
}
