//! Answers, and when two of them are the same.
//!
//! Solutions are bags: order is looked at elsewhere (`order`). Numbers are compared by value
//! within their datatype (relative 1e-9, xsd:float 1e-5: sums depend on the order of their
//! terms). Blank nodes are compared up to their names.

use std::collections::BTreeMap;
use std::fmt::Write;

use oxrdf::{BlankNode, Graph, Literal, NamedNode, Term, Triple, Variable};
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput};

type Subject = oxrdf::NamedOrBlankNode;

/// The answer to a query.
#[derive(Clone, Debug)]
pub enum Answer {
    Solutions(Solutions),
    Boolean(bool),
    Graph(Vec<Triple>),
}

/// Rows of terms, in order.
#[derive(Clone, Debug, Default)]
pub struct Solutions {
    pub vars: Vec<String>,
    pub rows: Vec<Vec<Option<Term>>>,
}

impl Solutions {
    /// The column of a variable.
    pub fn column(&self, var: &str) -> Option<usize> {
        self.vars.iter().position(|v| v == var)
    }

    /// The rows with the columns in another order; variables that are not there are unbound.
    pub fn arranged(&self, vars: &[String]) -> Solutions {
        let places: Vec<_> = vars.iter().map(|v| self.column(v)).collect();
        let row = |row: &Vec<Option<Term>>| places.iter().map(|p| p.and_then(|p| row[p].clone())).collect();
        Solutions { vars: vars.to_vec(), rows: self.rows.iter().map(row).collect() }
    }
}

/// Reads a result document.
pub fn read(format: QueryResultsFormat, bytes: &[u8]) -> Result<Answer, String> {
    let parsed = QueryResultsParser::from_format(format).for_slice(bytes).map_err(|e| e.to_string())?;
    Ok(match parsed {
        SliceQueryResultsParserOutput::Boolean(answer) => Answer::Boolean(answer),
        SliceQueryResultsParserOutput::Solutions(solutions) => {
            let vars: Vec<String> = solutions.variables().iter().map(|v| v.as_str().to_owned()).collect();
            let mut rows = Vec::new();
            for solution in solutions {
                let solution = solution.map_err(|e| e.to_string())?;
                rows.push(vars.iter().map(|v| solution.get(v.as_str()).cloned()).collect());
            }
            Answer::Solutions(Solutions { vars, rows })
        }
    })
}

/// Says how two answers differ; Ok when they do not.
pub fn same(actual: &Answer, expected: &Answer) -> Result<(), String> {
    match (actual, expected) {
        (Answer::Boolean(a), Answer::Boolean(b)) if a == b => Ok(()),
        (Answer::Boolean(a), Answer::Boolean(b)) => Err(format!("{a} instead of {b}")),
        (Answer::Solutions(a), Answer::Solutions(b)) => same_solutions(a, b),
        (Answer::Graph(a), Answer::Graph(b)) => same_graphs(a, b),
        _ => Err(format!("another form of answer: {actual:?} instead of {expected:?}")),
    }
}

/// Bags of solutions; the same variables in any order.
pub fn same_solutions(actual: &Solutions, expected: &Solutions) -> Result<(), String> {
    let mut names = [actual.vars.clone(), expected.vars.clone()];
    names.iter_mut().for_each(|n| n.sort());
    if names[0] != names[1] {
        return Err(format!("variables {:?} instead of {:?}", actual.vars, expected.vars));
    }
    let actual = actual.arranged(&expected.vars);
    let blank = |s: &Solutions| s.rows.iter().flatten().flatten().any(has_blank);
    if actual.rows.len() == expected.rows.len() && (blank(&actual) || blank(expected)) {
        return same_graphs(&as_graph(&actual), &as_graph(expected))
            .map_err(|_| report(&actual.rows, &expected.rows, &expected.vars));
    }
    match unmatched(&actual.rows, &expected.rows) {
        (a, e) if a.is_empty() && e.is_empty() => Ok(()),
        (a, e) => Err(report(&a, &e, &expected.vars)),
    }
}

/// Whether a term is a blank node or a triple term with one in it.
fn has_blank(term: &Term) -> bool {
    match term {
        Term::BlankNode(_) => true,
        Term::Triple(triple) => triple.subject.is_blank_node() || has_blank(&triple.object),
        Term::NamedNode(_) | Term::Literal(_) => false,
    }
}

/// The rows of each bag that have no partner in the other.
pub fn unmatched(actual: &[Row], expected: &[Row]) -> (Vec<Row>, Vec<Row>) {
    // Rows that agree in all but their numbers, which are matched one by one.
    let mut groups: BTreeMap<String, (Vec<&Row>, Vec<&Row>)> = BTreeMap::new();
    for row in actual {
        groups.entry(without_numbers(row)).or_default().0.push(row);
    }
    for row in expected {
        groups.entry(without_numbers(row)).or_default().1.push(row);
    }
    let (mut surplus, mut missing) = (Vec::new(), Vec::new());
    for (actual, mut expected) in groups.into_values() {
        for row in actual {
            match expected.iter().position(|e| same_row(row, e)) {
                Some(at) => {
                    expected.swap_remove(at);
                }
                None => surplus.push(row.clone()),
            }
        }
        missing.extend(expected.into_iter().cloned());
    }
    (surplus, missing)
}

/// One solution.
pub type Row = Vec<Option<Term>>;

fn report(actual: &[Row], expected: &[Row], vars: &[String]) -> String {
    let mut text = format!("variables {vars:?}\n");
    for (what, rows) in [("surplus", actual), ("missing", expected)] {
        let _ = writeln!(text, "  {} rows {what}:", rows.len());
        for row in rows.iter().take(8) {
            let _ = writeln!(text, "    {}", show(row));
        }
    }
    text
}

/// A row in N-Triples notation.
pub fn show(row: &Row) -> String {
    let cells: Vec<String> =
        row.iter().map(|c| c.as_ref().map_or("–".to_owned(), ToString::to_string)).collect();
    cells.join(" | ")
}

/// The value of a number and the relative tolerance of its type.
pub fn number(term: &Term) -> Option<(f64, f64)> {
    let Term::Literal(literal) = term else { return None };
    let tolerance = match literal.datatype().as_str().strip_prefix("http://www.w3.org/2001/XMLSchema#")? {
        "float" => 1e-5,
        "integer" | "decimal" | "double" => 1e-9,
        _ => return None,
    };
    let value = match literal.value() {
        "INF" => f64::INFINITY,
        "-INF" => f64::NEG_INFINITY,
        text => text.parse().ok()?,
    };
    Some((value, tolerance))
}

fn without_numbers(row: &Row) -> String {
    let cell = |c: &Option<Term>| match c {
        None => "–".to_owned(),
        Some(Term::Literal(l)) if c.as_ref().and_then(number).is_some() => format!("number {}", l.datatype()),
        Some(term) => term.to_string(),
    };
    row.iter().map(cell).collect::<Vec<_>>().join("|")
}

/// Whether the numbers of two rows agree that agree otherwise.
fn same_row(a: &Row, b: &Row) -> bool {
    a.iter().zip(b).all(|cells| match cells {
        (Some(a), Some(b)) => match (number(a), number(b)) {
            (Some((a, tolerance)), Some((b, _))) => close(a, b, tolerance),
            _ => true,
        },
        _ => true,
    })
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

/// Graphs up to the names of blank nodes, numbers by value.
pub fn same_graphs(actual: &[Triple], expected: &[Triple]) -> Result<(), String> {
    let canonical = |triples: &[Triple]| {
        let mut graph: Graph = triples.iter().map(normal).collect();
        graph.canonicalize(oxrdf::graph::CanonicalizationAlgorithm::Unstable);
        let mut lines: Vec<String> = graph.iter().map(|t| t.to_string()).collect();
        lines.sort();
        lines
    };
    let (actual, expected) = (canonical(actual), canonical(expected));
    if actual == expected {
        return Ok(());
    }
    let only =
        |a: &[String], b: &[String]| a.iter().filter(|l| !b.contains(l)).take(8).cloned().collect::<Vec<_>>();
    Err(format!(
        "surplus triples {:#?}\nmissing triples {:#?}",
        only(&actual, &expected),
        only(&expected, &actual)
    ))
}

/// A triple whose number, if it has one, is written in one way.
fn normal(triple: &Triple) -> Triple {
    let mut triple = triple.clone();
    if let (Some((value, tolerance)), Term::Literal(l)) = (number(&triple.object), &triple.object) {
        let digits = if tolerance > 1e-6 { 4 } else { 9 };
        triple.object = Literal::new_typed_literal(format!("{value:.digits$e}"), l.datatype()).into();
    }
    triple
}

/// A bag of solutions as a graph: one blank node per row.
fn as_graph(solutions: &Solutions) -> Vec<Triple> {
    let mut triples = Vec::new();
    for row in &solutions.rows {
        let node = Subject::from(BlankNode::default());
        let has_row = NamedNode::new_unchecked("test:row");
        triples.push(Triple::new(node.clone(), has_row, Literal::from("row")));
        for (var, term) in solutions.vars.iter().zip(row) {
            if let Some(term) = term {
                triples.push(Triple::new(
                    node.clone(),
                    NamedNode::new_unchecked(format!("test:{var}")),
                    term.clone(),
                ));
            }
        }
    }
    triples
}

/// For messages: the variables of a query's head.
pub fn variables(vars: &[Variable]) -> Vec<String> {
    vars.iter().map(|v| v.as_str().to_owned()).collect()
}
