//! Likely causes of wrong texts.

use snowmelt_syntax::{ParseOptions, parse_query, parse_update};
use snowmelt_syntax_help::likely_cause;

/// The cause of the first error of a text, which is an update if it is no query's.
fn cause(text: &str) -> String {
    let prefixes = [("mine".to_owned(), "http://mine.example/".to_owned())];
    let options = ParseOptions::default();
    let error = match text.contains("DATA") || text.starts_with("INSRT") {
        true => parse_update(text, &options).map(drop).expect_err(text),
        false => parse_query(text, &options).map(drop).expect_err(text),
    };
    likely_cause(&error, &prefixes).unwrap_or_default()
}

#[test]
#[rustfmt::skip]
fn wrong_texts_have_likely_causes() {
    let wrong: Vec<String> = [
        ("\nSELEC ?s WHERE { ?s ?p ?o }", "is SELECT meant?"),
        ("SELECT ?s WHER { ?s ?p ?o }", "is WHERE meant?"),
        ("SELECT * { ?s ?p ?o } LIMT 3", "is LIMIT meant?"),
        ("SELECT * { ?s ?p ?o OPTINAL { ?s ?q ?r } }", "is OPTIONAL meant?"),
        ("SELECT * { ?s ?p ?o FILTER(STRLN(?o) > 1) }", "is STRLEN meant?"),
        ("SELECT (SAMPEL(?o) AS ?x) { ?s ?p ?o }", "is SAMPLE meant?"),
        ("SELECT * { ?s foaf:name ?o }", "begin with PREFIX foaf: <http://xmlns.com/foaf/0.1/>"),
        ("SELECT * { ?s mine:name ?o }", "begin with PREFIX mine: <http://mine.example/>"),
        ("PREFIX person: <u:> SELECT * { ?s perosn:name ?o }", "is person: meant?"),
        ("PREFIX person: <u:> SELECT * { ?s other:name ?o }", ""),
        ("SELECT * { ?s ?p ?o ?t ?q ?r }", "is a . missing before it?"),
        ("SELECT * { ?s ?p ?o <u:a> <u:b> 1 }", "is a . missing before it?"),
        ("SELECT * { ?s ?p ?o . ", "the { at line 1, column 10 is not closed"),
        ("SELECT * { ?s ?p }", "a triple is a subject, a predicate and an object"),
        ("SELECT * { ?s ?p ?o } }", "there is one } too many"),
        ("SELECT * { ?s ?p ?o FILTER(?s == ?o) }", "the sign of equality is ="),
        ("SELECT * { ?s ?p ?o FILTER(?s > 1 AND ?o > 1) }", "the sign of \"and\" is &&"),
        ("SELECT * { ?s ?p ?o FILTER(?s > 1 or ?o > 1) }", "the sign of \"or\" is ||"),
        ("SELECT * { ?s ?p ?o FILTER(?s > 1 & ?o > 1) }", "the sign of \"and\" is &&"),
        ("SELECT * { ?s ?p ?o FILTER(?s<?p&&?o>1) }", "without blanks it reads as an IRI; a blank after < makes it a comparison"),
        ("SELECT * { ?s ?p ?o FILTER(STRLEN(?o, 1) > 1) }", ""),
        ("SELECT ?s ?s { ?s ?p ?o }", ""),
        ("INSRT DATA { }", "is INSERT meant?"),
        ("INSERT DATA { <u:a> <u:b> 1 <u:c> <u:d> 2 }", "is a . missing before it?"),
    ].into_iter().filter(|(text, wanted)| cause(text) != *wanted).map(|(text, wanted)| {
        format!("{text}\n  wanted {wanted}\n  found {}", cause(text))
    }).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
