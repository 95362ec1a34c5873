//! Reports of errors, as text and as JSON.

use serde_json::json;
use snowmelt_syntax::{ParseOptions, SyntaxError, parse_query};
use snowmelt_syntax_help::Report;

fn refused(text: &str) -> SyntaxError {
    *parse_query(text, &ParseOptions::default()).expect_err(text)
}

#[test]
fn the_caret_stands_below_the_place() {
    let error = refused("SELECT ?s\n\t{ ?é foaf:name ?o }");
    let said = Report::new(&error, &[]).to_string();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[1..], ["   { ?é foaf:name ?o }", "        ^^^^^"], "{said}");
    let long = format!("ASK {{ {} ?x }}", "?s ?p ?o . ".repeat(1000));
    assert!(Report::new(&refused(&long), &[]).to_string().len() < 1000);
}

#[test]
fn json_has_each_error_with_its_place_and_cause() {
    let error = refused("SELECT * {\n  ?s foaf:name ?é .\n  OPTINAL { ?s ?q ?r }\n  FILTER(?o > )\n}");
    let report = Report::new(&error, &[]).to_json();
    let errors = report.as_array().unwrap();
    assert_eq!(errors.len(), 3, "{report}");
    let [prefix, word, end] = [&errors[0], &errors[1], &errors[2]];
    assert_eq!(
        *prefix,
        json!({
            "code": "prefix",
            "message": "the prefix foaf: is not declared",
            "line": 2,
            "column": 6,
            "start": 16,
            "end": 21,
            "excerpt": "  ?s foaf:name ?é .",
            "caret": { "start": 5, "length": 5 },
            "found": "foaf:",
            "expected": [],
            "cause": "begin with PREFIX foaf: <http://xmlns.com/foaf/0.1/>",
            "limit": null,
        })
    );
    assert_eq!((&word["line"], &word["column"], &word["found"]), (&json!(3), &json!(3), &json!("OPTINAL")));
    assert_eq!(word["cause"], "is OPTIONAL meant?");
    assert!(word["expected"].as_array().unwrap().contains(&json!("OPTIONAL")), "{word}");
    assert_eq!((&end["line"], &end["column"], &end["code"]), (&json!(4), &json!(15), &json!("unexpected")));
}

#[test]
fn json_names_the_limit() {
    let text = format!("ASK {{ FILTER({}1) }}", "! ".repeat(300));
    let report = Report::new(&refused(&text), &[]).to_json();
    assert_eq!(report[0]["code"], "limit");
    assert_eq!(report[0]["limit"], json!({ "name": "query_depth", "most": 200 }));
    assert_eq!(report[0]["found"], json!(null));
}
