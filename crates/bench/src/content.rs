//! Readings of an answer beside that of its bytes (`snowmelt_workload::digest`).
//!
//! *Terms*: the answer is parsed, as the original driver does, and its digest is that of its terms,
//! so that answers of different engines compare. A digest of terms is the sum over solutions (or
//! distinct triples); neither order nor the names of blank nodes count. *Rows*: the same for
//! answers in SQL, whose numbers engines print in different lengths.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;

use anyhow::{Result, bail};
use oxrdf::{Term, TermRef};
use oxrdfio::{RdfFormat, RdfParser};
use snowmelt_bsbm::QueryKind;
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput};
use twox_hash::XxHash3_64;

use snowmelt_workload::digest::Content;

/// The terms of an answer.
///
/// # Errors
/// It is neither SPARQL XML nor RDF/XML.
pub fn terms(kind: QueryKind, answer: &[u8], rows: u64) -> Result<Content> {
    match kind {
        QueryKind::Select => solutions(answer),
        QueryKind::Describe | QueryKind::Construct => triples(answer),
        QueryKind::Update => Ok(Content { rows, digest: 0 }),
    }
}

/// The rows of a table in any order, with rounded numbers.
///
/// # Errors
/// It is no text.
pub fn rows(_: QueryKind, answer: &[u8], _: u64) -> Result<Content> {
    let snowmelt_tpch::answers::Digest { rows, hash } =
        snowmelt_tpch::answers::digest(std::str::from_utf8(answer)?.lines());
    Ok(Content { rows, digest: hash })
}

/// The rows of an answer of either language: a hash by which equal ones are known, and their text.
///
/// # Errors
/// It is malformed, or no text.
pub fn row_texts(answer: &[u8]) -> Result<Vec<(u64, String)>> {
    let text = std::str::from_utf8(answer)?;
    let keyed = |texts: Vec<String>| texts.into_iter().map(|text| (hash(&text), text)).collect();
    if text.contains("sparql-results#") {
        return solution_texts(answer).map(keyed);
    }
    if text.contains("RDF") && text.trim_start().starts_with('<') {
        return triple_texts(answer).map(keyed);
    }
    let line = |line: &str| (snowmelt_tpch::answers::digest([line].into_iter()).hash, line.to_owned());
    Ok(text.lines().map(line).collect())
}

/// The solutions as text, their variables in order.
fn solution_texts(answer: &[u8]) -> Result<Vec<String>> {
    let solutions = match QueryResultsParser::from_format(QueryResultsFormat::Xml).for_slice(answer)? {
        SliceQueryResultsParserOutput::Solutions(solutions) => solutions,
        SliceQueryResultsParserOutput::Boolean(value) => return Ok(vec![value.to_string()]),
    };
    let mut texts = Vec::new();
    for solution in solutions {
        let mut bindings = Vec::new();
        for (variable, term) in &solution? {
            let mut text = format!("{variable} = ");
            append(term.as_ref(), &mut text);
            bindings.push(text.trim_end().to_owned());
        }
        bindings.sort();
        texts.push(bindings.join(", "));
    }
    Ok(texts)
}

/// The distinct triples as text.
fn triple_texts(answer: &[u8]) -> Result<Vec<String>> {
    let mut texts = BTreeSet::new();
    for quad in RdfParser::from_format(RdfFormat::RdfXml).for_slice(answer) {
        let quad = quad?;
        let mut text = String::new();
        append(Term::from(quad.subject).as_ref(), &mut text);
        append(quad.predicate.as_ref().into(), &mut text);
        append(quad.object.as_ref(), &mut text);
        texts.insert(text.trim_end().to_owned());
    }
    Ok(texts.into_iter().collect())
}

fn solutions(answer: &[u8]) -> Result<Content> {
    let parser = QueryResultsParser::from_format(QueryResultsFormat::Xml);
    let solutions = match parser.for_slice(answer)? {
        SliceQueryResultsParserOutput::Solutions(solutions) => solutions,
        SliceQueryResultsParserOutput::Boolean(value) => {
            return Ok(Content { rows: 1, digest: hash(&value.to_string()) });
        }
    };
    let (mut content, mut text) = (Content::default(), String::new());
    for solution in solutions {
        let mut bindings = 0u64;
        for (variable, term) in &solution? {
            text.clear();
            write!(text, "{variable} ").expect("memory takes all");
            append(term.as_ref(), &mut text);
            bindings = bindings.wrapping_add(hash(&text));
        }
        // Hashed once more, so that bindings do not move between solutions unseen.
        content.digest = content.digest.wrapping_add(XxHash3_64::oneshot(&bindings.to_le_bytes()));
        content.rows += 1;
    }
    // The parser takes a cut end for the end.
    if !answer.trim_ascii_end().ends_with(b"sparql>") {
        bail!("its end is missing");
    }
    Ok(content)
}

fn triples(answer: &[u8]) -> Result<Content> {
    let mut distinct = HashSet::new();
    let mut text = String::new();
    for quad in RdfParser::from_format(RdfFormat::RdfXml).for_slice(answer) {
        let quad = quad?;
        text.clear();
        append(Term::from(quad.subject).as_ref(), &mut text);
        append(quad.predicate.as_ref().into(), &mut text);
        append(quad.object.as_ref(), &mut text);
        distinct.insert(hash(&text));
    }
    let digest = distinct.iter().copied().fold(0, u64::wrapping_add);
    Ok(Content { rows: distinct.len() as u64, digest })
}

/// Appends a term: language tags in small letters, blank nodes without their names.
fn append(term: TermRef<'_>, text: &mut String) {
    let written = match term {
        TermRef::BlankNode(_) => write!(text, "[] "),
        TermRef::Literal(literal) if literal.language().is_some() => {
            let language = literal.language().unwrap_or_default().to_ascii_lowercase();
            let direction = literal.direction().map(|to| format!("--{to}")).unwrap_or_default();
            write!(text, "{:?}@{language}{direction} ", literal.value())
        }
        term => write!(text, "{term} "),
    };
    written.expect("memory takes all");
}

fn hash(text: &str) -> u64 {
    XxHash3_64::oneshot(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(rows: &[&str]) -> Result<Content> {
        let rows: String = rows.iter().map(|row| format!("<result>{row}</result>")).collect();
        let head = "<head><variable name=\"a\"/><variable name=\"b\"/></head>";
        let sparql = "<?xml version=\"1.0\"?><sparql xmlns=\"http://www.w3.org/2005/sparql-results#\">";
        let text = format!("{sparql}{head}<results>{rows}</results></sparql>");
        terms(QueryKind::Select, text.as_bytes(), 0)
    }

    fn graph(text: &str) -> Result<Content> {
        let rdf = "xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"";
        let text = format!("<rdf:RDF {rdf} xmlns:p=\"urn:p#\" xmlns:q=\"urn:p#\">{text}</rdf:RDF>");
        terms(QueryKind::Construct, text.as_bytes(), 0)
    }

    const ONE: &str = "<binding name=\"a\"><literal>x</literal></binding>";
    const TWO: &str = "<binding name=\"b\">\n <bnode>n1</bnode></binding>";

    #[test]
    fn layout_and_names_of_blank_nodes_do_not_matter() {
        let first = select(&[&format!("{ONE}{TWO}"), ONE]).unwrap();
        assert_eq!(first.rows, 2);
        let other = TWO.replace("n1", "genid7").replace("\n ", "");
        assert_eq!(first, select(&[ONE, &format!("\n{other}\n{ONE}")]).unwrap());
        assert_ne!(first, select(&[TWO, &format!("{ONE}{ONE}")]).unwrap());
        assert_ne!(first, select(&[ONE, ONE]).unwrap());
        assert_ne!(select(&[ONE]).unwrap(), select(&[&ONE.replace('x', "y")]).unwrap());
        assert_ne!(
            select(&[ONE]).unwrap(),
            select(&[&ONE.replace("l>", "l >").replace("\"a", "\"b")]).unwrap()
        );
    }

    #[test]
    fn a_plain_literal_is_a_string_and_languages_have_no_case() {
        let with = |attributes: &str| {
            let binding = ONE.replace("<literal", &format!("<literal {attributes}"));
            select(&[&binding]).unwrap()
        };
        assert_eq!(with(""), with("datatype=\"http://www.w3.org/2001/XMLSchema#string\""));
        assert_eq!(with("xml:lang=\"en-GB\""), with("xml:lang=\"en-gb\""));
        assert_ne!(with(""), with("xml:lang=\"en\""));
        let directed = |to: &str| {
            let its = "its:version=\"2.0\" xmlns:its=\"http://www.w3.org/2005/11/its\"";
            with(&format!("xml:lang=\"en\" {its} its:dir=\"{to}\""))
        };
        assert_ne!(directed("ltr"), directed("rtl"));
        assert_ne!(directed("ltr"), with("xml:lang=\"en\""));
    }

    #[test]
    fn graphs_are_sets_of_triples_however_they_are_written() {
        let one = graph(
            "<rdf:Description rdf:about=\"urn:s\"><p:a>1</p:a><p:b rdf:resource=\"urn:o\"/></rdf:Description>",
        );
        let two = graph(
            "<rdf:Description rdf:about=\"urn:s\" q:a=\"1\"/>\n<rdf:Description rdf:about=\"urn:s\">\
             <q:b><rdf:Description rdf:about=\"urn:o\"/></q:b><q:a>1</q:a></rdf:Description>",
        );
        assert_eq!(one.as_ref().unwrap().rows, 2);
        assert_eq!(one.unwrap(), two.unwrap());
        assert_eq!(graph("").unwrap(), Content::default());
    }

    #[test]
    fn rows_have_no_order_and_numbers_no_length() {
        let read = |text: &str| rows(QueryKind::Select, text.as_bytes(), 0).unwrap();
        let one = read("a|1.500|x\nb|2|y\n");
        assert_eq!(one.rows, 2);
        assert_eq!(one, read("b|2|y\na|1.5|x"));
        assert_ne!(one, read("b|2|x\na|1.5|y"));
        assert_ne!(one, read("a|1.6|x\nb|2|y\n"));
        assert_eq!(read("").rows, 0);
    }

    #[test]
    fn other_texts_are_no_answers() {
        let read = |kind, text: &str| terms(kind, text.as_bytes(), 0);
        let whole = "<sparql xmlns=\"http://www.w3.org/2005/sparql-results#\"><head/><results>";
        for text in ["", "{}", "<html><body>busy</body></html>", whole, &whole[..20]] {
            assert!(read(QueryKind::Select, text).is_err(), "{text:?}");
        }
        assert!(read(QueryKind::Select, &format!("{whole}</results></spar")).is_err());
        assert!(read(QueryKind::Select, &format!("{whole}</results></sparql>\n")).is_ok());
        assert!(read(QueryKind::Describe, "<rdf:RDF").is_err());
    }
}
