//! Strings in plans: equalities of computed texts join, lists are sets, and conditions on texts are
//! asked where they cost least. What is worked on is counted, by rows and by look-ups.

mod support;

use std::ops::ControlFlow;

use serde_json::Value;
use snowmelt_graph::{CompactOptions, CompactTerms};
use snowmelt_sparql::{QueryEngine, QueryOptions, UpdateOptions};
use support::made::Made;

const PEOPLE: usize = 3000;

/// People with names in two languages and friends, places with names of theirs, long notes.
fn fixture() -> Made {
    let mut text = String::new();
    for i in 0..PEOPLE {
        let tag = if i % 2 == 0 { "" } else { "@en" };
        text += &format!("<e:p{i}> <e:name> \"The name of number {i}\"{tag} .\n");
        text += &format!("<e:p{i}> <e:note> \"{} of number {i}\" .\n", "a long note ".repeat(40));
        for friend in 1..4 {
            text += &format!("<e:p{i}> <e:knows> <e:p{}> .\n", (i * 7 + friend * 13) % PEOPLE);
        }
        text += &format!("<e:p{i}> <e:kind> <e:k{}> .\n", i % 7);
        if i < 300 {
            text += &format!("<e:p{i}> <e:motto> \"The motto of number {i}\" .\n");
        }
        if i % 100 == 0 {
            text += &format!("<e:p{i}> <e:rare> <e:yes> .\n");
            text += &format!("<e:place{i}> <e:title> \"the NAME of number {i}\" .\n");
        }
    }
    Made::of(text)
}

impl Made {
    fn rows(&self, query: &str) -> Vec<String> {
        rows_of(&self.engine, query)
    }

    fn operators(&self, query: &str) -> Vec<Value> {
        let plan = self.engine.analysis(query, &QueryOptions::default()).unwrap();
        plan.json()["operators"].as_array().unwrap().clone()
    }
}

fn rows_of(engine: &QueryEngine, query: &str) -> Vec<String> {
    let result = engine.query(query, &QueryOptions::default()).unwrap();
    let mut rows = Vec::new();
    result.for_each(|row| rows.push(format!("{row:?}"))).unwrap();
    rows
}

/// The most rows that an operator put out.
fn most_rows(operators: &[Value]) -> u64 {
    operators.iter().filter_map(|op| op["measured"]["rows"].as_u64()).max().unwrap()
}

#[test]
fn equalities_of_computed_texts_join() {
    let f = fixture();
    for (condition, found) in [
        ("LCASE(STR(?n)) = LCASE(?t)", 30),
        ("LCASE(?t) = LCASE(STR(?n))", 30),
        // a language is no part of places' names
        ("LCASE(?n) = LCASE(?t)", 30),
        ("sameTerm(STRAFTER(?n, \"of \"), STRAFTER(?t, \"of \"))", 30),
        ("STRLEN(?n) = STRLEN(?t) && STRAFTER(STR(?n), \"r \") = STRAFTER(?t, \"r \")", 30),
        ("STR(?n) = STR(?t)", 0),
    ] {
        let query = format!("SELECT * {{ ?a <e:name> ?n . ?b <e:title> ?t FILTER({condition}) }}");
        assert_eq!(f.rows(&query).len(), found, "{query}");
        let operators = f.operators(&query);
        assert!(most_rows(&operators) <= PEOPLE as u64, "{query}: no product of {operators:#?}");
    }
}

#[test]
fn keys_that_bind_computes_join() {
    let f = fixture();
    let query = "SELECT * { ?a <e:name> ?n . ?b <e:title> ?t
        BIND(LCASE(STR(?n)) AS ?k) BIND(LCASE(?t) AS ?j) FILTER(?k = ?j) }";
    assert_eq!(f.rows(query).len(), 30);
    let operators = f.operators(query);
    assert!(most_rows(&operators) <= PEOPLE as u64, "{operators:#?}");
}

#[test]
fn a_key_that_is_an_error_joins_nothing() {
    let f = fixture();
    // a resource has no length, and an IRI no lower case
    for condition in ["STRLEN(?a) = STRLEN(?t)", "LCASE(?a) = LCASE(?t)"] {
        let query = format!("SELECT * {{ ?a <e:rare> ?y . ?b <e:title> ?t FILTER({condition}) }}");
        assert!(f.rows(&query).is_empty(), "{query}");
    }
}

#[test]
fn parts_of_a_join_keep_their_own_conditions() {
    let f = fixture();
    let query = "SELECT * { ?a <e:name> ?n ; <e:rare> ?y . ?b <e:title> ?t
        FILTER(STRENDS(STR(?n), \"00\")) FILTER(LCASE(STR(?n)) = LCASE(?t)) FILTER(?b != <e:place100>) }";
    // number 0 ends with one zero, number 100 is left out
    assert_eq!(f.rows(query).len(), 28);
}

/// Look-ups of a query, in indexes and in the dictionary.
fn looked_up(f: &Made, query: &str) -> u64 {
    let plan = f.engine.analysis(query, &QueryOptions::default()).unwrap();
    plan.outcome.expect("it was run").activity.rnd
}

#[test]
fn a_text_of_many_rows_is_read_once() {
    let f = fixture();
    let asked = |what: &str, condition: &str| {
        let pattern = "?a <e:knows> ?b . ?b <e:name> ?n";
        looked_up(&f, &format!("SELECT ({what} AS ?c) {{ {pattern} FILTER({condition}) }}"))
    };
    let without = asked("COUNT(*)", "isLITERAL(?n)");
    // 9000 rows with 3000 names, of which a batch has each once; some are read to plan
    let range = PEOPLE as u64 * 9 / 10..=2 * PEOPLE as u64;
    for (what, condition) in [
        ("COUNT(*)", "STRLEN(?n) > 1"),
        ("COUNT(*)", "CONTAINS(?n, \"number 17\")"),
        ("COUNT(*)", "STRENDS(?n, \"7\")"),
        ("COUNT(*)", "STRBEFORE(?n, \"number\") = \"The\""),
        ("COUNT(*)", "REGEX(?n, \"number 17\")"),
        ("COUNT(*)", "REGEX(?n, \"n.mber\")"),
        ("COUNT(*)", "REGEX(?n, \"NUMBER 17\", \"i\")"),
        ("GROUP_CONCAT(?n)", "isLITERAL(?n)"),
    ] {
        let texts = asked(what, condition) - without;
        assert!(range.contains(&texts), "{what}, {condition}: {texts} texts are read");
    }
}

#[test]
fn the_greatest_of_long_texts_is_found_in_little_memory() {
    let f = fixture();
    for (query, expected) in [
        ("SELECT (MAX(STR(?n)) AS ?m) { ?a <e:note> ?n }", "of number 999"),
        ("SELECT (MIN(?n) AS ?m) { ?a <e:note> ?n }", "of number 0"),
        ("SELECT ?n { ?a <e:note> ?n } ORDER BY DESC(STR(?n)) LIMIT 1", "of number 999"),
        ("SELECT ?n { ?a <e:note> ?n } ORDER BY ?n ?a LIMIT 1", "of number 0"),
    ] {
        let rows = f.rows(query);
        assert!(rows.len() == 1 && rows[0].contains(expected), "{query}: {rows:?}");
    }
}

/// Places in the plan of the condition on texts and of the first look-up, the root being 0.
fn condition_and_lookup(f: &Made, query: &str) -> (usize, usize) {
    let plan = f.engine.explanation(query, &QueryOptions::default()).unwrap();
    let place = |is_it: &dyn Fn(&str, &str) -> bool| {
        let found = plan.steps.iter().position(|step| is_it(&step.operator, &step.detail));
        found.unwrap_or_else(|| panic!("{query}:\n{plan}"))
    };
    (place(&|_, detail| detail.contains("CONTAINS")), place(&|operator, _| operator == "lookup"))
}

#[test]
fn a_condition_on_texts_waits_for_a_join_that_drops_terms() {
    let f = fixture();
    // 300 mottos, of which a seventh are of the kind
    let (condition, lookup) = condition_and_lookup(
        &f,
        "SELECT * { ?a <e:motto> ?m ; <e:kind> <e:k3> FILTER(CONTAINS(?m, \"7\")) }",
    );
    assert!(condition < lookup, "asked above the join");
    // three friends each
    let (condition, lookup) =
        condition_and_lookup(&f, "SELECT * { ?a <e:motto> ?m ; <e:knows> ?b FILTER(CONTAINS(?m, \"7\")) }");
    assert!(condition > lookup, "asked below the join");
}

#[test]
fn conditions_on_texts_come_last() {
    let f = fixture();
    let query =
        "SELECT * { ?a <e:name> ?n FILTER(CONTAINS(?n, \"7\")) FILTER(isLITERAL(?n)) FILTER(?n != 3) }";
    let plan = f.engine.explanation(query, &QueryOptions::default()).unwrap();
    let filter = plan.steps.iter().find(|step| step.operator == "filter").unwrap();
    assert!(filter.detail.rfind("CONTAINS") > filter.detail.find("ISLITERAL"), "{plan}");
    assert!(filter.detail.rfind("CONTAINS") > filter.detail.find(" = "), "{plan}");
}

#[test]
fn conditions_on_many_texts_cost_more_than_on_numbers() {
    let f = fixture();
    let cost = |condition: &str| {
        let query = format!("SELECT * {{ ?a <e:name> ?n FILTER({condition}) }}");
        let plan = f.engine.explanation(&query, &QueryOptions::default()).unwrap();
        plan.steps[0].estimate.cpu_us
    };
    let (texts, ids) = (cost("CONTAINS(?n, \"7\")"), cost("isLITERAL(?n)"));
    assert!(texts - ids > 0.1 * PEOPLE as f64, "{texts} and {ids} microseconds");
}

/// Texts of several kinds in no order, some of them long, with common beginnings.
fn unordered() -> Made {
    let mut state = 7_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let words = ["an", "apple", "bark", "common beginning ", "z", "é", "\u{10000}", "0"];
    let mut text = String::new();
    for i in 0..6000 {
        let count = if i % 9 == 0 { 60 } else { 2 };
        let words: String = (0..count).map(|_| words[random(8) as usize]).collect();
        let tag = ["", "", "@en", "@de", "^^<e:own>"][random(5) as usize];
        text += &format!("<e:s{i}> <e:text> \"{words} {}\"{tag} .\n", random(100_000));
        text += &format!("<e:s{i}> <e:kind> <e:k{}> .\n", random(7));
        text += &format!("<e:s{i}> <e:link> <e:{words}{i}> .\n", words = words.replace(' ', "/"));
    }
    Made::of(text)
}

/// Questions about the order of texts.
const ORDERED: [&str; 12] = [
    "SELECT (MIN(?t) AS ?a) (MAX(?t) AS ?b) { ?s <e:text> ?t }",
    "SELECT (MAX(STR(?t)) AS ?a) { ?s <e:text> ?t }",
    "SELECT ?k (MIN(?t) AS ?a) (MAX(STR(?t)) AS ?b) { ?s <e:text> ?t ; <e:kind> ?k } GROUP BY ?k ORDER BY ?k",
    "SELECT (MIN(?l) AS ?a) (MAX(STR(?l)) AS ?b) { ?s <e:link> ?l }",
    "SELECT ?t { ?s <e:text> ?t } ORDER BY ?t ?s LIMIT 10",
    "SELECT ?t ?s { ?s <e:text> ?t } ORDER BY DESC(?t) ?s OFFSET 30 LIMIT 10",
    "SELECT ?s { ?s <e:text> ?t } ORDER BY STR(?t) ?s LIMIT 7",
    "SELECT ?l { ?s <e:link> ?l } ORDER BY ?l LIMIT 7",
    "SELECT (COUNT(*) AS ?n) { ?s <e:text> ?t FILTER(STRSTARTS(?t, \"common beginning b\")) }",
    "SELECT (COUNT(*) AS ?n) { ?s <e:text> ?t FILTER(STRSTARTS(STR(?t), \"ap\")) }",
    "SELECT (COUNT(*) AS ?n) { ?s <e:text> ?t FILTER(REGEX(?t, \"^app.*[13]$\")) }",
    "SELECT (COUNT(*) AS ?n) { ?s <e:link> ?l FILTER(STRSTARTS(STR(?l), \"e:ban\")) }",
];

#[test]
fn the_order_of_texts_is_learned_while_they_are_read() {
    let mut f = unordered();
    for query in ORDERED {
        f.engine = QueryEngine::new(f.engine.graph().clone());
        let read: Vec<u64> = (0..4).map(|_| looked_up(&f, query)).collect();
        assert!(read[3] * 3 < read[0], "{query}: {read:?} look-ups");
    }
}

#[test]
fn learned_orders_give_the_answers_that_texts_do() {
    let f = unordered();
    let graph = f.engine.graph().clone();
    let changes = [
        "INSERT DATA { <e:n1> <e:text> \"\", \"zzzzzzzzzzzzzzzzz\", \"common beginning bx\" ; <e:kind> <e:k1> }",
        "DELETE { ?s ?p ?t } WHERE { ?s ?p ?t { SELECT (MAX(?t) AS ?t) { ?s <e:text> ?t } } }",
        "INSERT { ?s <e:text> ?new } WHERE { ?s <e:kind> <e:k3> ; <e:text> ?t BIND(CONCAT(\"ap\", STR(?t)) AS ?new) }",
        "DELETE WHERE { ?s <e:kind> <e:k2> ; <e:text> ?t }",
    ];
    let agree = |when: &str| {
        let fresh = QueryEngine::new(graph.clone());
        for query in ORDERED {
            let rows = |engine: &QueryEngine| rows_of(engine, query);
            assert_eq!(rows(&f.engine), rows(&fresh), "{query}, {when}");
        }
    };
    agree("at first");
    agree("then");
    for change in changes {
        f.engine.update(change, &UpdateOptions::default()).unwrap();
        agree(change);
    }
    let terms = CompactOptions { terms: CompactTerms::Always, ..CompactOptions::default() };
    graph.compact(&terms, |_| ControlFlow::Continue(())).unwrap();
    agree("compacted");
    agree("and again");
}
