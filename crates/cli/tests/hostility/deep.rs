//! Requests that are deep or long: nothing that walks them may do so on the stack, and none may
//! take longer than it was given.

use crate::case::{Attack, Case, Right, Scale};
use crate::make::{joined, nested, query, update, value};

const STEP: &str = "<urn:n0> <urn:next> ?o";

/// One row: what follows node 0.
fn one_row(name: &'static str, text: impl Fn(&Scale) -> String + Send + Sync + 'static) -> Case {
    query(name, text, Right::Rows(Box::new(|_| 1)))
}

/// One row with one column: what an expression comes to.
fn one_value(
    name: &'static str,
    expression: impl Fn(&Scale) -> String + Send + Sync + 'static,
    right: Right,
) -> Case {
    query(name, move |s| format!("SELECT ({} AS ?x) {{}}", expression(s)), right)
}

pub fn cases() -> Vec<Case> {
    let mut all = expressions();
    all.extend(groups());
    all.extend(paths());
    all.extend(long());
    all.extend(updates());
    all.extend(texts());
    all
}

fn expressions() -> Vec<Case> {
    vec![
        one_value("parentheses", |s| nested(s.deep, "(", "1", ")"), value("1")),
        one_row("parentheses in FILTER", |s| {
            format!("SELECT ?o {{ {STEP} FILTER({}) }}", nested(s.deep, "(", "?o = <urn:n1>", ")"))
        }),
        one_row("ors", |s| {
            format!("SELECT ?o {{ {STEP} FILTER({}) }}", joined(s.deep, " || ", |_| "?o = <urn:n1>".into()))
        }),
        one_row("ands", |s| {
            format!("SELECT ?o {{ {STEP} FILTER({}) }}", joined(s.deep, " && ", |_| "?o = <urn:n1>".into()))
        }),
        one_value(
            "sums",
            |s| joined(s.deep, "+", |_| "1".into()),
            Right::Value(Box::new(|s| s.deep.to_string())),
        ),
        one_value("products", |s| joined(s.deep, "*", |_| "1".into()), value("1")),
        one_value("nots", |s| "!".repeat(s.deep / 2 * 2) + "true", value("true")),
        one_value("minus signs", |s| nested(s.deep / 2 * 2, "-(", "1", ")"), value("1")),
        one_value("functions", |s| nested(s.deep, "STR(", "\"a\"", ")"), value("a")),
        one_value("IF in IF", |s| nested(s.deep, "IF(true, ", "1", ", 2)"), value("1")),
        one_value("COALESCE in COALESCE", |s| nested(s.deep, "COALESCE(", "1", ", 2)"), value("1")),
        one_value("CONCAT in CONCAT", |s| nested(s.deep, "CONCAT(", "\"a\"", ", \"\")"), value("a")),
        one_value("IN in IN", |s| nested(s.deep, "(true IN (", "true", "))"), value("true")),
        query(
            "chain of BIND",
            |s| {
                let n = s.deep / 8;
                let binds = joined(n, " ", |i| format!("BIND(?x{i} + 1 AS ?x{})", i + 1));
                format!("SELECT ?x{n} {{ BIND(0 AS ?x0) {binds} }}")
            },
            Right::Value(Box::new(|s| (s.deep / 8).to_string())),
        ),
    ]
}

fn groups() -> Vec<Case> {
    vec![
        one_row("braces", |s| format!("SELECT * {}", nested(s.deep, "{", STEP, "}"))),
        one_row("sub-SELECTs", |s| {
            format!("SELECT * {{ {} }}", nested(s.deep / 10, "{ SELECT * {", STEP, "} }"))
        }),
        one_row("OPTIONAL in OPTIONAL", |s| {
            format!("SELECT * {{ {STEP} {} }}", nested(s.deep / 10, &format!("OPTIONAL {{ {STEP} "), "", "}"))
        }),
        one_row("OPTIONALs in a row", |s| {
            format!(
                "SELECT ?o {{ {STEP} {} }}",
                joined(s.deep / 10, " ", |i| format!("OPTIONAL {{ ?o <urn:next> ?p{i} }}"))
            )
        }),
        one_row("MINUS in MINUS", |s| {
            format!("SELECT * {{ {} }}", nested(s.deep / 20 * 2, &format!("{STEP} MINUS {{ "), STEP, "}"))
        }),
        one_row("NOT EXISTS in NOT EXISTS", |s| {
            let open = format!("{STEP} FILTER NOT EXISTS {{ ");
            format!("SELECT * {{ {} }}", nested(s.deep / 20 * 2, &open, STEP, "}"))
        }),
        query(
            "UNIONs in a row",
            |s| format!("SELECT (COUNT(*) AS ?n) {{ {} }}", joined(s.deep * 5, " UNION ", |_| "{}".into())),
            Right::Value(Box::new(|s| (s.deep * 5).to_string())),
        ),
        query(
            "UNION in UNION",
            |s| format!("SELECT (COUNT(*) AS ?n) {{ {} }}", nested(s.deep / 10, "{} UNION { ", "{}", "}")),
            Right::Value(Box::new(|s| (s.deep / 10 + 1).to_string())),
        ),
        query(
            "GRAPH in GRAPH",
            |s| format!("SELECT * {{ {} }}", nested(s.deep / 10, "GRAPH ?g {", STEP, "}")),
            Right::Rows(Box::new(|_| 0)),
        ),
        query(
            "lists of properties",
            |s| format!("SELECT * {{ ?s <urn:none> {} }}", nested(s.deep, "[ <urn:p> ", "1", "]")),
            Right::Rows(Box::new(|_| 0)),
        ),
        query(
            "collections",
            |s| format!("SELECT * {{ ?s <urn:none> {} }}", nested(s.deep, "(", "1", ")")),
            Right::Rows(Box::new(|_| 0)),
        ),
        query(
            "quoted triples",
            |s| {
                format!(
                    "SELECT * {{ {} <urn:p> 1 }}",
                    nested(s.deep, "<< ", "<urn:a> <urn:b> <urn:c>", " >>")
                )
            },
            Right::Status(&[400]),
        ),
        query(
            "templates",
            |s| {
                format!(
                    "CONSTRUCT {{ <urn:a> <urn:p> {} }} WHERE {{}}",
                    nested(s.deep, "[ <urn:p> ", "1", "]")
                )
            },
            Right::Rows(Box::new(|s| s.deep as u64 + 1)),
        ),
    ]
}

fn paths() -> Vec<Case> {
    let count = |s: &Scale, path: String| {
        let _ = s;
        format!("SELECT (COUNT(*) AS ?n) {{ <urn:n0> {path} ?o }}")
    };
    vec![
        one_row("path of many steps", |s| {
            format!("SELECT * {{ <urn:n0> {} ?o }}", joined(s.deep / 4, "/", |_| "<urn:next>".into()))
        }),
        one_row("path in parentheses", |s| {
            format!("SELECT * {{ <urn:n0> {} ?o }}", nested(s.deep, "(", "<urn:next>", ")"))
        }),
        query(
            "closure of closure",
            move |s| count(s, nested(s.deep, "(", "<urn:next>", ")*")),
            Right::Value(Box::new(|s| s.nodes.to_string())),
        ),
        query("path maybe maybe", move |s| count(s, nested(s.deep, "(", "<urn:next>", ")?")), value("2")),
        query(
            "inverse of inverse",
            move |s| count(s, nested(s.deep / 2 * 2, "^(", "<urn:next>", ")")),
            value("1"),
        ),
        query(
            "path alternatives",
            move |s| count(s, joined(s.deep, "|", |_| "<urn:next>".into())),
            Right::Value(Box::new(|s| s.deep.to_string())),
        ),
        query(
            "negated property set",
            move |s| count(s, format!("!({})", joined(s.deep, "|", |i| format!("<urn:none{i}>")))),
            value("3"),
        ),
    ]
}

fn long() -> Vec<Case> {
    let star = |n: usize| joined(n, " . ", |i| format!("<urn:n0> <urn:next> ?o{i}"));
    vec![
        one_row("1,000 patterns in a star", move |_| format!("SELECT ?o1 {{ {} }}", star(1000))),
        one_row("1,000 patterns in a chain", |_| {
            format!(
                "SELECT ?o1 {{ {} }} LIMIT 1",
                joined(1000, " . ", |i| format!("?o{i} <urn:next> ?o{}", i + 1))
            )
        }),
        one_row("1,000 patterns without a shared variable", |_| {
            format!("SELECT ?o1 {{ {} }} LIMIT 1", joined(1000, " . ", |i| format!("?s{i} <urn:next> ?o{i}")))
        }),
        query(
            "100,000 VALUES",
            |s| {
                format!(
                    "SELECT (COUNT(*) AS ?n) {{ VALUES ?o {{ {} }} }}",
                    joined(s.deep * 5, " ", |i| format!("<urn:n{i}>"))
                )
            },
            Right::Value(Box::new(|s| (s.deep * 5).to_string())),
        ),
        query(
            "100,000 VALUES that join",
            |s| {
                format!(
                    "SELECT (COUNT(*) AS ?n) {{ ?s <urn:next> ?o VALUES ?o {{ {} }} }}",
                    joined(s.deep * 5, " ", |i| format!("<urn:n{i}>"))
                )
            },
            Right::Value(Box::new(|s| s.nodes.min(s.deep as u64 * 5).to_string())),
        ),
        query(
            "IN of 10,000 IRIs",
            |s| {
                format!(
                    "SELECT (COUNT(*) AS ?n) {{ ?s <urn:next> ?o FILTER(?o IN ({})) }}",
                    joined(s.deep / 2, ", ", |i| format!("<urn:n{i}>"))
                )
            },
            Right::Value(Box::new(|s| s.nodes.min(s.deep as u64 / 2).to_string())),
        ),
        query(
            "NOT IN of 10,000 texts",
            |s| {
                format!(
                    "SELECT (COUNT(*) AS ?n) {{ ?s <urn:text> ?o FILTER(STR(?o) NOT IN ({})) }}",
                    joined(s.deep / 2, ", ", |i| format!("\"no {i}\""))
                )
            },
            Right::Value(Box::new(|s| s.nodes.to_string())),
        ),
        one_row("5,000 expressions", |s| {
            format!("SELECT {} {{ {STEP} }}", joined(s.deep / 4, " ", |i| format!("(STR(?o) AS ?x{i})")))
        }),
        one_row("2,000 grouping keys", |s| {
            let keys = joined(s.deep / 10, " ", |i| format!("(STR(?o) AS ?x{i})"));
            format!("SELECT (COUNT(*) AS ?n) {{ {STEP} }} GROUP BY {keys}")
        }),
        one_row("5,000 sort keys", |s| {
            format!("SELECT ?o {{ {STEP} }} ORDER BY {}", joined(s.deep / 4, " ", |_| "STR(?o)".into()))
        }),
        one_row("2,000 aggregates", |s| {
            format!("SELECT {} {{ {STEP} }}", joined(s.deep / 10, " ", |i| format!("(COUNT(?o) AS ?x{i})")))
        }),
        query(
            "DESCRIBE of many IRIs",
            |s| format!("DESCRIBE {}", joined(s.deep, " ", |i| format!("<urn:none{i}>"))),
            Right::Rows(Box::new(|_| 0)),
        ),
        query(
            "paths of anything but",
            |s| format!("ASK {{ {} }}", joined(s.deep * 2, " . ", |_| "?s !<urn:none> ?o".into())),
            value("true"),
        ),
        one_row("10,000 prefixes", |s| {
            format!(
                "{} SELECT * {{ {STEP} }}",
                joined(s.deep / 2, "\n", |i| format!("PREFIX p{i}: <urn:{i}:>"))
            )
        }),
        one_row("500 FILTER EXISTS", |_| {
            format!("SELECT ?o {{ {STEP} {} }}", "FILTER EXISTS { ?o <urn:next> ?p }".repeat(500))
        }),
        query(
            "1,000 UNIONs of patterns",
            |_| {
                format!(
                    "SELECT (COUNT(*) AS ?n) {{ {} }}",
                    joined(1000, " UNION ", |_| format!("{{ {STEP} }}"))
                )
            },
            value("1000"),
        ),
    ]
}

fn updates() -> Vec<Case> {
    vec![
        update("braces in an update", |s| {
            format!(
                "INSERT {{ <urn:a> <urn:b> <urn:c> }} WHERE {} ",
                nested(s.deep, "{", "FILTER(false)", "}")
            )
        }),
        update("parentheses in an update", |s| {
            format!(
                "INSERT {{ <urn:a> <urn:b> <urn:c> }} WHERE {{ FILTER({}) }}",
                nested(s.deep, "(", "false", ")")
            )
        }),
        update("20,000 operations", |s| {
            joined(s.deep, " ;\n", |_| "DELETE DATA { <urn:none> <urn:none> <urn:none> }".into())
        }),
        update("lists of properties in an update", |s| {
            format!(
                "INSERT {{ GRAPH <urn:deep> {{ <urn:a> <urn:p> {} }} }} WHERE {{ FILTER(false) }}",
                nested(s.deep, "[ <urn:p> ", "1", "]")
            )
        }),
        update("DELETE WHERE of 1,000 patterns", |_| {
            format!(
                "DELETE WHERE {{ {} }}",
                joined(1000, " . ", |i| format!("<urn:none> <urn:next{i}> ?o{i}"))
            )
        }),
        update("DELETE WHERE of a large graph", |s| {
            let triple = |i| format!("<urn:none> <urn:none> <urn:none{i}>");
            format!("DELETE WHERE {{ GRAPH <urn:none> {{ {} }} }}", joined(s.deep * 2, " . ", triple))
        }),
        update("INSERT DATA of 100,000 triples", |s| {
            format!(
                "INSERT DATA {{ GRAPH <urn:data> {{ {} }} }}",
                joined(s.deep * 5, " . ", |i| format!("<urn:d{i}> <urn:is> {i}"))
            )
        }),
    ]
}

/// Texts that only look deep, and texts that are only broken.
fn texts() -> Vec<Case> {
    let broken = |name, text: fn(&Scale) -> String| query(name, text, Right::Status(&[400]));
    vec![
        query(
            "brackets in a string",
            |s| format!("SELECT (STRLEN(\"{}\") AS ?x) {{}}", "(".repeat(s.deep)),
            Right::Value(Box::new(|s| s.deep.to_string())),
        )
        .must(),
        one_row("brackets in a comment", |s| format!("SELECT * {{ # {}\n {STEP} }}", "{".repeat(s.deep)))
            .must(),
        one_row("brackets in a long string", |s| {
            format!("SELECT ?o {{ {STEP} FILTER('''{}''' != \"\") }}", "'(\"[\n".repeat(s.deep / 2))
        })
        .must(),
        one_row("less-than signs", |_| format!("SELECT ?o {{ {STEP} FILTER(1<2&&2<3&&\"(\"<\"{{\") }}"))
            .must(),
        broken("a million open parentheses", |s| "SELECT ".to_owned() + &"(".repeat(s.deep * 50)),
        broken("a million open braces", |s| "SELECT * ".to_owned() + &"{".repeat(s.deep * 50)),
        broken("closing parentheses", |s| "SELECT * {".to_owned() + &")".repeat(s.deep * 50)),
        broken("a string without an end", |s| "SELECT * { ?s ?p \"".to_owned() + &"x".repeat(s.deep * 50)),
        broken("nothing but minus signs", |s| "-".repeat(s.deep * 50)),
        broken("an IRI without an end", |s| "SELECT * { ?s ?p <".to_owned() + &"x".repeat(s.deep * 50)),
        Case::new(
            "900 parentheses in a web page's image",
            Attack::Raw(Box::new(|host| {
                let text = format!("SELECT ({} AS ?x) {{}}", nested(900, "(", "1", ")"));
                let text = crate::client::percent_encode(&text);
                format!("GET /sparql?query={text} HTTP/1.1\r\nHost: {host}\r\nAccept: image/avif,text/csv,*/*;q=0.8\r\nReferer: https://example.org/\r\n\r\n").into_bytes()
            })),
            value("1"),
        ),
    ]
}
