//! Measures of the pass over the tokens, on texts small enough to count by hand.

use super::TextLimits;

fn measure(text: &str) -> (usize, usize, usize) {
    let found = TextLimits::default().measure(text).unwrap();
    (found.depth, found.chain, found.branches)
}

#[test]
fn brackets_and_signs_are_levels() {
    assert_eq!(measure("ASK {}").0, 1);
    assert_eq!(measure("SELECT ((1) AS ?x) { ?s ?p [ ?q (1 2) ] }").0, 3);
    assert_eq!(measure("ASK { FILTER(!!(!?x)) }").0, 6);
    assert_eq!(measure("ASK { FILTER(?x != 1) }").0, 2);
}

#[test]
fn brackets_of_strings_iris_and_comments_are_none() {
    for text in [
        "ASK { ?s ?p '((((' }",
        "ASK { ?s ?p \"(\\\"((\" }",
        "ASK { ?s ?p '''('(''((''', \"\"\"(\"(\"\"(\"\"\" }",
        "ASK { ?s ?p <e:((((> }",
        "ASK { ?s ?p e:\\(\\(\\( }",
        "ASK { # ((((\n }",
        "ASK { ?s ?p '', '(' }",
    ] {
        assert_eq!(measure(text).0, 1, "{text}");
    }
}

/// A token that looks like an IRI or a string is none after an operand of an expression.
#[test]
fn brackets_behind_a_comparison_count() {
    assert_eq!(measure("ASK { FILTER(1<((2))&&3>4) }").0, 4);
    assert_eq!(measure("ASK { FILTER(?a<'x>'&&((2))=\"'\") }").0, 4);
    assert_eq!(measure("ASK { FILTER(<e:(((> = ?a) }").0, 2);
    assert_eq!(measure("ASK { FILTER(?a IN (<e:(((>, <e:(((>)) }").0, 3);
    assert_eq!(measure("SELECT * {} ORDER BY EXISTS {} (1<((2))&&3>4)").0, 3);
    assert_eq!(measure("ASK { VALUES (?a ?b) { (1 <e:(((>) (2 <e:(((>) } }").0, 3);
    // three quotes that begin no long string
    assert_eq!(measure("ASK { VALUES ?x { '''(' } FILTER((((1)))) }").0, 5);
}

/// Each list of columns may be that of `*`: the parser compares each variable with all of it.
#[test]
fn lists_of_many_columns_are_work() {
    let text = |selects: usize, columns: usize, times: usize| {
        let names: String = (0..columns).map(|i| format!("?{i} ")).collect();
        let (open, close) = ("{{ SELECT * ".repeat(selects), "}}".repeat(selects));
        let again = "?1 ".repeat(times);
        format!("SELECT * {open} {{ VALUES ({names}) {{}} ?s ?p ({again}) }} {close}")
    };
    let refused = |text: String| {
        let said = TextLimits::default().measure(&text).unwrap_err().to_string();
        assert!(said.contains("query_parsing"), "{said}");
    };
    for (selects, columns, times) in [(0, 9900, 0), (90, 100, 0), (5, 4000, 1000), (0, 20, 100_000)] {
        TextLimits::default().measure(&text(selects, columns, times)).unwrap();
    }
    refused(text(20, 9000, 0));
    refused(text(90, 3000, 0));
    refused(text(0, 9000, 100_000));
}

#[test]
fn rows_are_counted_along_the_deepest_way() {
    assert_eq!(measure("ASK { ?s ?p ?o OPTIONAL {} OPTIONAL { OPTIONAL {} } BIND(1+2+3 AS ?x) }").1, 5);
    assert_eq!(measure("ASK { FILTER(f(1+2, 3+4+5, 6)) }").1, 2);
    assert_eq!(measure("ASK { ?s a/b/c ?o ; d/e/f/g ?p }").1, 3);
    assert_eq!(measure("ASK { {} UNION {} UNION { FILTER(1 || 2 && 3) } }").2, 1 + 5 + 3);
    assert_eq!(measure("ASK { FILTER(EXISTS {} && EXISTS {}) FILTER EXISTS {} }").1, 3);
    assert_eq!(measure("SELECT (1 AS ?x) (2 AS ?y) {}").1, 2);
    assert_eq!(measure("INSERT DATA { <a> <b> 1, 2, -3 . GRAPH <g> { <a> <b> +3 } }"), (2, 0, 0));
    assert_eq!(measure("DELETE WHERE { ?s a/b/c ?o } ; DELETE WHERE { ?s a/b ?o }").1, 2);
    assert_eq!(measure("DESCRIBE <a> e:b ?c <d> FROM <e> WHERE { <f> <g> <h> }").1, 3);
    assert_eq!(measure("ASK { ?s !<a> ?o . ?s !(<a>|^<b>) ?o ; !a ?p }").2, 1 + 3 + 1);
    let in_graph = "DELETE WHERE { GRAPH <g> { <a> <b> 1, 2 } }";
    assert_eq!(measure(in_graph).2, 2 + 2 * "<a> <b> 1 , 2 }".split(' ').count());
    assert_eq!(measure("DELETE { <a> <b> 1, 2 } WHERE { GRAPH <g> { <a> <b> 1, 2 } }").2, 2);
}

#[test]
fn a_limit_is_named_with_its_place() {
    let limits = TextLimits { depth: 3, ..TextLimits::default() };
    let said = limits.measure("ASK {\n  FILTER(((1)))\n}").unwrap_err().to_string();
    assert_eq!(said, "line 2, column 11: the text goes beyond query_depth = 3 here");
    let limits = TextLimits { chain: 1, ..TextLimits::default() };
    let said = limits.measure("ASK { OPTIONAL {} OPTIONAL {} }").unwrap_err().to_string();
    assert!(said.starts_with("line 1, column 27: ") && said.contains("query_chain = 1"), "{said}");
}
