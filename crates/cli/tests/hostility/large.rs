//! Small requests with answers, or ways to them, that are larger than memory or longer than time.

use crate::case::{Case, Right, Scale};
use crate::make::{joined, query, update, value};

/// Answered though what it could go through has no end.
fn bounded(name: &'static str, text: &'static str, right: Right) -> Case {
    query(name, move |_| text.into(), right).must()
}

/// Takes all the time it asks for, or ends with the right answer.
fn hog(name: &'static str, text: impl Fn(&Scale) -> String + Send + Sync + 'static, right: Right) -> Case {
    query(name, text, right).hog()
}

fn rows(n: u64) -> Right {
    Right::Rows(Box::new(move |_| n))
}

fn power(n: u32) -> Right {
    Right::Value(Box::new(move |s| (s.nodes as u128).pow(n).to_string()))
}

/// Nodes of each colour.
fn of_colors(s: &Scale) -> impl Iterator<Item = u128> {
    let nodes = s.nodes;
    (0..7).map(move |c| u128::from((nodes + 6 - c) / 7))
}

pub fn cases() -> Vec<Case> {
    let mut all = bounded_ones();
    all.extend(products());
    all.extend(values());
    all.extend(closures());
    all.extend(functions());
    all.extend(updates());
    all
}

fn bounded_ones() -> Vec<Case> {
    vec![
        bounded("LIMIT over an m:n join", "SELECT * { ?a <urn:color> ?x . ?c <urn:color> ?x } LIMIT 10", rows(10)),
        bounded(
            "LIMIT over an m:n join of four",
            "SELECT * { ?a <urn:color> ?x . ?b <urn:color> ?x . ?c <urn:color> ?x . ?d <urn:color> ?x } LIMIT 10",
            rows(10),
        ),
        bounded(
            "LIMIT over nested OPTIONAL without shared variables",
            "SELECT * { ?a <urn:next> ?b OPTIONAL { ?c <urn:next> ?d OPTIONAL { ?e <urn:next> ?f } } } LIMIT 10",
            rows(10),
        ),
        bounded("LIMIT over a product", "SELECT * { ?a <urn:next> ?b . ?c <urn:next> ?d . ?e <urn:next> ?f } LIMIT 10", rows(10)),
        bounded("ASK of a product", "ASK { ?a <urn:next> ?b . ?c <urn:next> ?d . ?e <urn:next> ?f }", Right::Body(|b| {
            if b.contains("true") { Ok(()) } else { Err("expected true".into()) }
        })),
        bounded("LIMIT over UNION of products", "SELECT * { { ?a <urn:next> ?b . ?c <urn:next> ?d . ?e ?f ?g } UNION { ?h ?i ?j . ?k ?l ?m . ?n ?o ?p } } LIMIT 10", rows(10)),
        bounded("LIMIT over a sub-SELECT of a product", "SELECT * { { SELECT ?a ?c { ?a <urn:next> ?b . ?c <urn:next> ?d . ?e <urn:next> ?f } } } LIMIT 10", rows(10)),
        query("EXISTS of a product", |_| {
            "SELECT (COUNT(*) AS ?n) { ?s <urn:next> ?o FILTER EXISTS { ?a <urn:next> ?b . ?c <urn:next> ?d . ?e <urn:color> ?f } }".into()
        }, power(1)).must(),
        bounded("LIMIT of all there is", "SELECT * { <urn:n0> <urn:next> ?o } LIMIT 18446744073709551615", rows(1)),
        bounded("LIMIT 0 of a product in order", "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } ORDER BY ?c LIMIT 0", rows(0)),
    ]
}

fn products() -> Vec<Case> {
    let three = "?a <urn:next> ?b . ?c <urn:next> ?d . ?e <urn:next> ?f";
    vec![
        hog(
            "count of nested OPTIONAL",
            |_| {
                "SELECT (COUNT(*) AS ?n) { ?a <urn:next> ?b OPTIONAL { ?c <urn:next> ?d OPTIONAL { ?e <urn:next> ?f } } }".into()
            },
            power(3),
        ),
        hog(
            "count of an m:n join",
            |_| {
                "SELECT (COUNT(*) AS ?n) { ?a <urn:color> ?x . ?b <urn:color> ?x . ?c <urn:color> ?x . ?d <urn:color> ?x }".into()
            },
            Right::Value(Box::new(|s| of_colors(s).map(|n| n.pow(4)).sum::<u128>().to_string())),
        ),
        hog(
            "groups of an m:n join",
            |_| {
                "SELECT ?x (COUNT(*) AS ?n) { ?a <urn:color> ?x . ?b <urn:color> ?x . ?c <urn:color> ?x } GROUP BY ?x".into()
            },
            rows(7),
        ),
        hog(
            "groups by pairs",
            |_| {
                "SELECT (COUNT(*) AS ?n) { SELECT ?a ?b (COUNT(*) AS ?m) { ?a <urn:color> ?x . ?b <urn:color> ?x . ?c <urn:color> ?x } GROUP BY ?a ?b }".into()
            },
            Right::Value(Box::new(|s| of_colors(s).map(|n| n.pow(2)).sum::<u128>().to_string())),
        ),
        hog(
            "DISTINCT of a product",
            move |_| format!("SELECT (COUNT(*) AS ?n) {{ SELECT DISTINCT ?a ?c ?e {{ {three} }} }}"),
            power(3),
        ),
        hog(
            "COUNT DISTINCT of a product",
            move |_| format!("SELECT (COUNT(DISTINCT *) AS ?n) {{ {three} }}"),
            power(3),
        ),
        hog(
            "ORDER BY of a product",
            |_| "SELECT ?a ?t { ?a <urn:next> ?b . ?c <urn:text> ?t } ORDER BY DESC(?t) ?a".into(),
            Right::Rows(Box::new(|s| s.nodes * s.nodes)),
        ),
        hog(
            "ORDER BY of computed values",
            |_| {
                "SELECT (COUNT(*) AS ?n) { SELECT ?a ?k { ?a <urn:text> ?s . ?c <urn:text> ?t BIND(CONCAT(?s, ?t) AS ?k) } ORDER BY ?k OFFSET 5 }".into()
            },
            Right::Value(Box::new(|s| (s.nodes * s.nodes - 5).to_string())),
        ),
        hog(
            "OFFSET beyond everything",
            move |_| format!("SELECT * {{ {three} }} OFFSET 1000000000000000 LIMIT 1"),
            rows(0),
        ),
        hog("all rows of a product", move |_| format!("SELECT * {{ {three} }}"), Right::Never),
        hog(
            "all columns of a wide product",
            |_| format!("SELECT * {{ {} }}", joined(600, " . ", |i| format!("?s{i} <urn:next> ?o{i}"))),
            Right::Never,
        ),
        hog(
            "all columns of a wide star",
            |_| {
                format!(
                    "SELECT * {{ ?s <urn:next> ?n {} }}",
                    joined(600, "", |i| format!(". ?s ?p{i} ?o{i}"))
                )
            },
            Right::Never,
        ),
        update("a wide star of an update", |_| {
            format!(
                "DELETE {{}} WHERE {{ ?s <urn:next> ?n {} }}",
                joined(600, "", |i| format!(". ?s ?p{i} [ ?q{i} ?s ]"))
            )
        })
        .hog(),
        hog(
            "products of VALUES",
            |_| {
                let list = |v: &str| format!("VALUES ?{v} {{ {} }}", joined(1000, " ", |i| i.to_string()));
                format!(
                    "SELECT (COUNT(*) AS ?n) {{ {} {} {} {} }}",
                    list("a"),
                    list("b"),
                    list("c"),
                    list("d")
                )
            },
            value("1000000000000"),
        ),
        hog(
            "MINUS of products",
            |_| {
                "SELECT (COUNT(*) AS ?n) { ?a <urn:color> ?x . ?b <urn:color> ?x MINUS { ?a <urn:color> ?y . ?b <urn:text> ?z . ?c <urn:next> ?d } }".into()
            },
            value("0"),
        ),
        hog(
            "EXISTS that compares",
            |_| {
                "SELECT (COUNT(*) AS ?n) { ?s <urn:text> ?t FILTER EXISTS { ?a <urn:text> ?u . ?c <urn:text> ?v FILTER(CONCAT(?u, ?v) = ?t) } }".into()
            },
            value("0"),
        ),
        hog(
            "filter of a product",
            move |_| {
                format!("SELECT (COUNT(*) AS ?n) {{ {three} FILTER(CONCAT(STR(?a), STR(?c)) = STR(?e)) }}")
            },
            value("0"),
        ),
        hog(
            "OPTIONAL that never fits",
            |_| {
                "SELECT (COUNT(*) AS ?n) { ?a <urn:text> ?t OPTIONAL { ?c <urn:text> ?u . ?d <urn:text> ?v FILTER(CONCAT(?u, ?v) = ?t) } }".into()
            },
            power(1),
        ),
    ]
}

/// Values whose length grows.
fn values() -> Vec<Case> {
    let doubled = |step: fn(usize) -> String| {
        move |_: &Scale| {
            format!(
                "SELECT (STRLEN(?x40) AS ?n) {{ BIND(\"0123456789abcdef\" AS ?x0) {} }}",
                joined(40, " ", |i| format!("BIND({} AS ?x{})", step(i), i + 1))
            )
        }
    };
    let mega = |s: &Scale| "x".repeat(s.deep * 25);
    vec![
        hog("CONCAT doubled 40 times", doubled(|i| format!("CONCAT(?x{i}, ?x{i})")), Right::Never),
        hog(
            "REPLACE doubled 40 times",
            doubled(|i| format!("REPLACE(?x{i}, \"(.)\", \"$1$1\")")),
            Right::Never,
        ),
        hog(
            "IRIs doubled 40 times",
            doubled(|i| format!("STR(IRI(CONCAT(\"urn:\", STR(?x{i}), STR(?x{i}))))")),
            Right::Never,
        ),
        hog(
            "language tags doubled 40 times",
            doubled(|i| format!("CONCAT(STR(STRLANG(STR(?x{i}), \"en\")), ENCODE_FOR_URI(?x{i}))")),
            Right::Never,
        ),
        hog(
            "GROUP_CONCAT of a product",
            |_| "SELECT (STRLEN(GROUP_CONCAT(?t)) AS ?g) { ?a <urn:text> ?t . ?b <urn:text> ?u }".into(),
            Right::Never,
        ),
        hog(
            "GROUP_CONCAT of many groups",
            |_| {
                "SELECT (COUNT(*) AS ?n) { SELECT ?a (GROUP_CONCAT(DISTINCT ?t) AS ?g) { ?a <urn:next> ?b . ?c <urn:text> ?t } GROUP BY ?a }".into()
            },
            power(1),
        ),
        hog(
            "GROUP_CONCAT with a long separator",
            move |s| {
                format!(
                    "SELECT (STRLEN(GROUP_CONCAT(?t ; separator = \"{}\")) AS ?g) {{ ?a <urn:text> ?t }}",
                    mega(s)
                )
            },
            Right::Never,
        ),
        hog(
            "long values by the thousand",
            move |s| {
                format!(
                    "SELECT (COUNT(DISTINCT ?y) AS ?n) {{ ?s <urn:next> ?o BIND(CONCAT(\"{}\", STR(?s)) AS ?y) }}",
                    mega(s)
                )
            },
            power(1),
        ),
        hog(
            "long IRIs by the thousand",
            move |s| {
                format!(
                    "SELECT (COUNT(DISTINCT ?y) AS ?n) {{ ?s <urn:next> ?o BIND(IRI(CONCAT(\"urn:{}\", STR(?s))) AS ?y) }}",
                    mega(s)
                )
            },
            power(1),
        ),
        hog(
            "long sort keys by the thousand",
            move |s| format!("SELECT ?s {{ ?s <urn:next> ?o }} ORDER BY CONCAT(\"{}\", STR(?s))", mega(s)),
            Right::Rows(Box::new(|s| s.nodes)),
        ),
        hog(
            "new names without end",
            |_| {
                "SELECT (COUNT(DISTINCT ?u) AS ?n) { ?a <urn:next> ?b . ?c <urn:next> ?d . ?e <urn:color> ?f BIND(STRUUID() AS ?u) }".into()
            },
            power(3),
        ),
        hog(
            "new blank nodes without end",
            |_| {
                "SELECT (COUNT(DISTINCT ?u) AS ?n) { ?a <urn:next> ?b . ?c <urn:next> ?d . ?e <urn:color> ?f BIND(BNODE() AS ?u) }".into()
            },
            power(3),
        ),
        hog(
            "CONSTRUCT of a product",
            |_| "CONSTRUCT { ?a <urn:x> ?c } WHERE { ?a <urn:next> ?b . ?c <urn:next> ?d }".into(),
            Right::Rows(Box::new(|s| s.nodes * s.nodes)),
        ),
        hog(
            "CONSTRUCT of texts without end",
            |_| {
                "CONSTRUCT { ?a <urn:x> ?k } WHERE { ?a <urn:text> ?s . ?c <urn:text> ?t . ?d <urn:next> ?e BIND(CONCAT(?s, ?t, STR(?d)) AS ?k) }".into()
            },
            Right::Never,
        ),
        hog(
            "DESCRIBE of everything",
            |_| "DESCRIBE ?s { ?s ?p ?o . ?a <urn:next> ?b . ?c <urn:next> ?d }".into(),
            Right::Never,
        ),
    ]
}

fn closures() -> Vec<Case> {
    vec![
        hog("closure of all nodes", |_| "SELECT (COUNT(*) AS ?n) { ?a <urn:next>+ ?b }".into(), power(2)),
        hog(
            "closure there and back",
            |_| "SELECT (COUNT(*) AS ?n) { ?a (<urn:next>|^<urn:next>)+ ?b }".into(),
            power(2),
        ),
        hog(
            "closure of anything but",
            |_| "SELECT (COUNT(*) AS ?n) { ?a (!<urn:none>)+ ?b . ?c (!<urn:none>)* ?d }".into(),
            Right::Never,
        ),
        hog(
            "closure through colours",
            |_| {
                "SELECT (COUNT(*) AS ?n) { ?a (<urn:color>/^<urn:color>)+ ?b . ?a (<urn:next>/<urn:next>)+ ?c . ?c <urn:next>* ?d }".into()
            },
            Right::Never,
        ),
        query("LIMIT over a closure", |_| "SELECT * { <urn:n0> <urn:next>* ?b } LIMIT 10".into(), rows(10))
            .must(),
    ]
}

/// Functions that loop, and patterns that are hard.
fn functions() -> Vec<Case> {
    let with_big = |inside: &'static str| {
        move |_: &Scale| {
            let doublings = joined(16, " ", |i| format!("BIND(CONCAT(?x{i}, ?x{i}) AS ?x{})", i + 1));
            format!(
                "SELECT (COUNT(*) AS ?n) {{ BIND(\"0123456789abcdef\" AS ?x0) {doublings} ?s <urn:text> ?t FILTER({inside}) }}"
            )
        }
    };
    vec![
        hog("hashes of long values", with_big("SHA512(CONCAT(?x16, STR(?s))) = \"none\""), value("0")),
        hog(
            "REPLACE in long values",
            with_big("REPLACE(CONCAT(?x16, STR(?s)), \"(a*)*b|f0\", \"ab\") = \"none\""),
            value("0"),
        ),
        hog(
            "searches in long values",
            with_big("CONTAINS(CONCAT(?x16, STR(?s)), CONCAT(\"0123456789abcdef\", ?t))"),
            value("0"),
        ),
        hog(
            "ENCODE_FOR_URI of long values",
            with_big("STRLEN(ENCODE_FOR_URI(CONCAT(?x16, \"\u{e4}\", STR(?s)))) = 1"),
            value("0"),
        ),
        hog("UCASE of long values", with_big("UCASE(CONCAT(?x16, STR(?s))) = \"none\""), value("0")),
        hog(
            "regular expression of repetitions",
            |_| {
                "SELECT (COUNT(*) AS ?n) { ?s <urn:text> ?t FILTER(REGEX(?t, \"((.{1000}){1000}){1000}\")) }"
                    .into()
            },
            value("0"),
        ),
        hog(
            "long regular expression",
            |s| {
                format!(
                    "SELECT (COUNT(*) AS ?n) {{ ?s <urn:text> ?t FILTER(REGEX(?t, \"{}\")) }}",
                    joined(s.deep * 5, "|", |i| format!("no {i}"))
                )
            },
            value("0"),
        ),
        hog(
            "thousands of regular expressions",
            |s| {
                let regex = |i| format!("REGEX(?t, \"[a-z]+\\\\w{{20}} no {i}\")");
                format!(
                    "SELECT (COUNT(*) AS ?n) {{ ?s <urn:text> ?t FILTER({}) }}",
                    joined(s.deep / 8, " || ", regex)
                )
            },
            value("0"),
        ),
        hog(
            "wide classes of a regular expression",
            |s| {
                format!(
                    "SELECT (COUNT(*) AS ?n) {{ ?s <urn:text> ?t FILTER(REGEX(?t, \"{}\", \"i\")) }}",
                    "[\\\\x{0}-\\\\x{10FFFF}]".repeat(s.deep / 8)
                )
            },
            value("0"),
        ),
        hog(
            "a regular expression for each row",
            |_| {
                "SELECT (COUNT(*) AS ?n) { ?s <urn:text> ?t . ?c <urn:text> ?u FILTER(REGEX(?t, CONCAT(\"(\", ?u, \"){3}no\"))) }".into()
            },
            value("0"),
        ),
    ]
}

fn updates() -> Vec<Case> {
    vec![
        update("INSERT of a product", |_| {
            "INSERT { GRAPH <urn:product> { ?a <urn:x> ?c ; <urn:y> ?e } } WHERE { ?a <urn:next> ?b . ?c <urn:next> ?d . ?e <urn:next> ?f }".into()
        }).hog(),
        update("INSERT of texts without end", |_| {
            "INSERT { GRAPH <urn:texts> { ?a <urn:x> ?k } } WHERE { ?a <urn:text> ?s . ?c <urn:text> ?t . ?d <urn:next> ?e BIND(CONCAT(?s, ?t, STR(?d)) AS ?k) }".into()
        }).hog(),
        update("DELETE of a product", |_| {
            "DELETE { GRAPH <urn:none> { ?a <urn:x> ?c } } WHERE { ?a <urn:next> ?b . ?c <urn:next> ?d . ?e <urn:next> ?f }".into()
        }).hog(),
        update("operations that each take long", |_| {
            joined(100, " ;\n", |_| "DELETE { GRAPH <urn:none> { ?a <urn:x> ?c } } WHERE { ?a <urn:text> ?b . ?c <urn:text> ?d FILTER(?b = CONCAT(?d, \"x\")) }".into())
        }).hog(),
    ]
}
