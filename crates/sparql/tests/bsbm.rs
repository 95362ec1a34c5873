//! The Berlin SPARQL Benchmark at 1000 products: every query of the shared lists against the
//! answer that belongs to it, under default settings and under hostile ones.
//!
//! Bags are compared. Where ORDER BY leaves rows equal, any order will do; where LIMIT cuts
//! between equal rows, any of them may be there, as long as they are rows of the uncut answer
//! and their sort keys are the expected ones.

mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use oxrdf::Term;
use serde_json::Value;

use support::answer::{self, Answer, Solutions};
use support::order::{self, Shape};
use support::settings::{Fixture, Settings, Stored};

/// A query and its answer.
struct Line {
    place: String,
    text: String,
    expected: Answer,
}

fn lines(file: &str) -> Option<Vec<Line>> {
    let path = support::shared(file)?;
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines = text.lines().enumerate().map(|(i, line)| {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{file}:{}: {e}", i + 1));
        Line {
            place: format!(
                "{file}:{} ({} query {})",
                i + 1,
                line["use_case"].as_str().unwrap(),
                line["query"]
            ),
            text: line["sparql"].as_str().unwrap().to_owned(),
            expected: expected(&line["expected"]),
        }
    });
    Some(lines.collect())
}

fn expected(value: &Value) -> Answer {
    if let Some(triples) = value["triples"].as_array() {
        let text: Vec<&str> = triples.iter().map(|t| t.as_str().unwrap()).collect();
        let parser = oxrdfio::RdfParser::from_format(oxrdfio::RdfFormat::NTriples);
        let text = text.join("\n");
        return Answer::Graph(parser.for_slice(text.as_bytes()).map(|q| q.unwrap().into()).collect());
    }
    let vars: Vec<String> =
        value["vars"].as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect();
    let row = |row: &Value| vars.iter().map(|v| row.get(v).map(term)).collect();
    let rows = value["rows"].as_array().unwrap().iter().map(row).collect();
    Answer::Solutions(Solutions { vars, rows })
}

fn term(value: &Value) -> Term {
    let text = value["value"].as_str().unwrap();
    match (value["type"].as_str().unwrap(), value["datatype"].as_str(), value["xml:lang"].as_str()) {
        ("uri", ..) => oxrdf::NamedNode::new_unchecked(text).into(),
        (_, Some(datatype), _) => {
            oxrdf::Literal::new_typed_literal(text, oxrdf::NamedNode::new_unchecked(datatype)).into()
        }
        (_, _, Some(lang)) => {
            oxrdf::Literal::new_language_tagged_literal_unchecked(text, lang.to_ascii_lowercase()).into()
        }
        _ => oxrdf::Literal::from(text).into(),
    }
}

/// Runs a line and says what is wrong with the answer.
fn check(fixture: &Fixture, line: &Line) -> Result<(), String> {
    let actual = fixture.answer(&line.text, None).map_err(|e| e.to_string())?;
    let shape = order::shape(&line.text);
    if let Answer::Solutions(actual) = &actual {
        shape.check(actual)?;
    }
    match (answer::same(&actual, &line.expected), &actual, &line.expected) {
        (Err(message), Answer::Solutions(actual), Answer::Solutions(expected)) if shape.is_cut() => {
            let Answer::Solutions(all) =
                fixture.answer(order::uncut(&line.text), None).map_err(|e| e.to_string())?
            else {
                return Err(message);
            };
            ties(&shape, actual, expected, &all).map_err(|why| format!("{message}{why}"))
        }
        (outcome, ..) => outcome,
    }
}

/// Accepts another choice among rows that are equal for ORDER BY.
fn ties(shape: &Shape, actual: &Solutions, expected: &Solutions, all: &Solutions) -> Result<(), String> {
    let all = all.arranged(&expected.vars);
    let actual = actual.arranged(&expected.vars);
    for (what, rows) in [("returned", &actual.rows), ("expected", &expected.rows)] {
        let (strange, _) = answer::unmatched(rows, &all.rows);
        if !strange.is_empty() {
            return Err(format!("{what} rows are not in the uncut answer"));
        }
    }
    if actual.rows.len() != expected.rows.len() {
        return Err("another number of rows".to_owned());
    }
    for (a, e) in actual.rows.iter().zip(&expected.rows) {
        let is_tie = shape.compare(expected, a, e).is_some_and(|order| order.is_eq());
        if !is_tie && !are_near(a, e) {
            return Err(format!("not a tie: {} and {}", answer::show(a), answer::show(e)));
        }
    }
    Ok(())
}

/// Whether rows have the same floats but for their last digits. The order in which floats are added
/// decides these, and they decide the order of rows.
fn are_near(a: &answer::Row, b: &answer::Row) -> bool {
    let is_float = |term: &Term| matches!(term, Term::Literal(l) if l.datatype() == oxrdf::vocab::xsd::FLOAT);
    let mut floats = 0;
    a.iter().zip(b).all(|(a, b)| match (a, b) {
        (Some(a), Some(b)) if is_float(a) && is_float(b) => {
            floats += 1;
            let [a, b] = [a, b].map(|term| answer::number(term).expect("a float"));
            (a.0 - b.0).abs() <= a.1 * a.0.abs()
        }
        (a, b) => a.as_ref().is_some_and(is_float) == b.as_ref().is_some_and(is_float),
    }) && floats > 0
}

/// Runs all lines of a list; names every one that is wrong, shows the first few.
fn check_all(fixture: &Fixture, lines: &[Line], settings: &Settings) {
    let wrong: Vec<String> = lines
        .iter()
        .filter_map(|line| {
            check(fixture, line).err().map(|why| format!("{}: {why}\n{}\n", line.place, line.text))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} answers are wrong under {}:\n{}",
        wrong.len(),
        lines.len(),
        settings.name,
        wrong[..wrong.len().min(3)].join("\n")
    );
}

/// Runs the lists under all settings. The data is loaded once for each size of extents.
fn run(settings: &[Settings], files: &[&str]) {
    let Some(data) = support::shared("bsbm/pc1000.nt.zst") else { return };
    let Some(lists) = files.iter().map(|file| lines(file)).collect::<Option<Vec<_>>>() else { return };
    let mut stored: HashMap<u32, Arc<Stored>> = HashMap::new();
    for settings in settings {
        let extent_pages = settings.store.extent_pages;
        let stored = stored.entry(extent_pages).or_insert_with(|| Stored::of_file(&data, settings));
        let start = Instant::now();
        let fixture = Fixture::on(stored.clone(), settings);
        lists.iter().for_each(|lines| check_all(&fixture, lines, settings));
        eprintln!("{files:?} under {}: {:.1?}", settings.name, start.elapsed());
    }
}

#[test]
fn explore() {
    run(&[Settings::default()], &["bsbm/explore-pc1000.jsonl"]);
}

#[test]
fn business_intelligence() {
    run(&[Settings::default()], &["bsbm/bi-pc1000.jsonl"]);
}

#[test]
fn both_under_hostile_settings() {
    run(&Settings::hostile(), &["bsbm/explore-pc1000.jsonl", "bsbm/bi-pc1000.jsonl"]);
}
