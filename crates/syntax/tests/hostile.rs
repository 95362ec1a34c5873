//! Texts that are made to hurt: each ends in a clear error or a tree, on a small stack, in time
//! that grows as the text does.

use std::time::{Duration, Instant};

use snowmelt_grammar::languages;
use snowmelt_syntax::{ErrorCode, Limits, ParseOptions, SyntaxError, parse_query, parse_update};

fn refused(text: &str) -> SyntaxError {
    *parse_query(text, &ParseOptions::default()).expect_err("a limit")
}

/// Runs on a stack of two megabytes, as threads of tests have.
fn on_small_stack(body: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(body).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn nesting_is_refused_by_its_limit() {
    on_small_stack(|| {
        for (open, middle, close) in [
            ("{", "", "}"),
            ("{ ?s ?p ?o OPTIONAL ", "{}", "}"),
            ("{ FILTER(EXISTS ", "{}", ") }"),
            ("{ { SELECT * ", "{}", "} }"),
            ("{ {} UNION ", "{}", "}"),
            ("{ FILTER EXISTS ", "{}", "}"),
        ] {
            let text = format!("SELECT * {}{middle}{}", open.repeat(100_000), close.repeat(100_000));
            let error = refused(&text);
            assert_eq!(error.limit.map(|limit| limit.name), Some("query_depth"), "{open}: {error}");
        }
        for (open, middle, close) in [
            ("(", "1", ")"),
            ("!", "?x", ""),
            ("STR(", "1", ")"),
            ("1 + (", "1", ")"),
            ("?x IN (", "1", ")"),
            ("IF(1, 2, ", "1", ")"),
            ("COALESCE(", "1", ")"),
            ("<<( ?s ?p ", "1", ")>>"),
            ("<u:f>(", "1", ")"),
        ] {
            let text = format!("ASK {{ FILTER({}{middle}{}) }}", open.repeat(100_000), close.repeat(100_000));
            let error = refused(&text);
            assert_eq!(error.limit.map(|limit| limit.name), Some("query_depth"), "{open}: {error}");
        }
        for (open, middle, close) in [
            ("(", "1", ")"),
            ("[ ?p ", "1", "]"),
            ("<<( ?s ?p ", "1", ")>>"),
            ("<< ?s ?p ", "1", ">>"),
            ("?x {| ?p ", "1", "|}"),
        ] {
            let text = format!("ASK {{ ?s ?p {}{middle}{} }}", open.repeat(10_000), close.repeat(10_000));
            let error = refused(&text);
            assert_eq!(error.limit.map(|limit| limit.name), Some("query_depth"), "{open}: {error}");
        }
        let text = format!("ASK {{ ?s {}a{} ?o }}", "(".repeat(100_000), ")".repeat(100_000));
        assert_eq!(refused(&text).limit.map(|limit| limit.name), Some("query_depth"));
        let text =
            format!("ASK {{ VALUES ?x {{ {}1{} }} }}", "<<( <u:a> a ".repeat(10_000), ")>>".repeat(10_000));
        assert_eq!(refused(&text).limit.map(|limit| limit.name), Some("query_depth"));
    });
}

/// As deep as the limits allow, in the stack that they name.
#[test]
fn the_deepest_trees_fit_the_stack_that_the_limits_name() {
    let stack = Limits::default().depth * Limits::DEPTH_BYTES + (256 << 10);
    let body = || {
        for (begin, open, middle, close) in [
            ("ASK ", "{", "", "}"),
            ("ASK {FILTER(", "(", "1", ")"),
            ("ASK {FILTER(", "!", "1", ""),
            ("ASK {FILTER(", "IF(1,", "1", ", 2)"),
            ("ASK {", "?s ?p ?o FILTER EXISTS {", "", "}"),
            ("ASK {", "{ SELECT * {", "", "} }"),
            ("ASK { ?s ?p ", "[ ?p ", "1", "]"),
            ("ASK { ?s ", "(a/a|", "a", ")"),
        ] {
            let end = match begin.chars().filter(|c| *c == '{').count() {
                0 => "",
                _ if begin.ends_with("FILTER(") => ") }",
                _ if begin.contains("?s (") || open.starts_with("(a") => " ?o }",
                _ => " }",
            };
            let levels = |n: usize| format!("{begin}{}{middle}{}{end}", open.repeat(n), close.repeat(n));
            let deepest =
                (1..=200).rev().find(|n| parse_query(&levels(*n), &ParseOptions::default()).is_ok());
            assert!(deepest >= Some(60), "{open}: {deepest:?}");
            let parsed = parse_query(&levels(deepest.unwrap()), &ParseOptions::default()).unwrap();
            drop((parsed.clone(), format!("{:?}", parsed.pattern).len()));
        }
    };
    if let Err(panic) = std::thread::Builder::new().stack_size(stack).spawn(body).unwrap().join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn chains_and_lists_are_counted() {
    let limit = |text: &str| refused(text).limit.map(|limit| limit.name);
    let many = |begin: &str, part: &str, n: usize, end: &str| format!("{begin}{}{end}", part.repeat(n));
    assert_eq!(limit(&many("ASK { ", "OPTIONAL { ?s ?p ?o } ", 1001, "}")), Some("query_chain"));
    assert_eq!(limit(&many("ASK { ", "MINUS {} ", 1001, "}")), Some("query_chain"));
    assert_eq!(limit(&many("ASK { FILTER(1 ", "+ 1 ", 1001, ") }")), Some("query_chain"));
    assert_eq!(limit(&many("ASK { FILTER(1 ", "-1 ", 1001, ") }")), Some("query_chain"));
    // Chains along one way count together, those beside each other do not.
    let inner = many("{ FILTER(1 ", "+ 1 ", 600, ") }");
    assert_eq!(
        limit(&many(&format!("ASK {{ OPTIONAL {inner}"), "OPTIONAL {} ", 600, "}")),
        Some("query_chain")
    );
    let beside = many("ASK {", &many("FILTER(1 ", "+ 1 ", 600, ") "), 5, "}");
    assert!(parse_query(&beside, &ParseOptions::default()).is_ok());
    assert_eq!(limit(&many("ASK { {} ", "UNION {} ", 30_001, "}")), Some("query_branches"));
    assert_eq!(limit(&many("ASK { FILTER(1 ", "|| 1 ", 30_001, ") }")), Some("query_branches"));
    assert_eq!(limit(&many("ASK { ", "?s ?p ?o . ", 2001, "}")), Some("query_patterns"));
    assert_eq!(
        limit(&many("ASK { ?s a ?o", "/a", 1001, "}").replace(" ?o/", "/").replace("}", " ?o }")),
        Some("query_chain")
    );
    let vars: String = (0..10_001).map(|n| format!("?v{n} ")).collect();
    assert_eq!(limit(&format!("SELECT {vars} {{}}")), Some("query_variables"));
    assert!(parse_query(&many("ASK { ", "BIND(1 AS ?x) ", 1, "}"), &ParseOptions::default()).is_ok());
    let limits = Limits { bytes: 10, ..Limits::default() };
    let error =
        parse_query("ASK { ?s ?p ?o }", &ParseOptions { limits, ..ParseOptions::default() }).unwrap_err();
    assert_eq!(error.limit.map(|limit| limit.name), Some("query_bytes"));
}

/// Long texts of one kind; twice the text takes twice the time, with much room for other work.
#[test]
fn long_texts_end_in_time() {
    for (begin, part, end) in [
        ("ASK { VALUES ?x { ", "<u:a> 'x'@en 1 ", "} }"),
        ("", "a.", ""),
        ("", "a-a", ""),
        ("ASK { ?s ?p '''", "''", ""),
        ("ASK { ?s ?p ", "<<", ""),
        ("ASK { ?s ?p ", "<a", ""),
        ("ASK { ?s ?p x:", "....", ""),
        ("ASK { ", ". ", ""),
        ("ASK ", "{ } ", ""),
        ("ASK { ", "?s ( ", ""),
        ("ASK {} # ", "x", ""),
        ("SELECT ", "\u{e9}", ""),
        ("ASK { FILTER(", "\"\\", ""),
    ] {
        let took = |bytes: usize| {
            let text = format!("{begin}{}{end}", part.repeat(bytes / part.len()));
            let begun = Instant::now();
            let _ = parse_query(&text, &ParseOptions::default());
            let _ = parse_update(&text, &ParseOptions::default());
            begun.elapsed()
        };
        let time = took(4 << 20);
        assert!(time < Duration::from_secs(8), "{part}: {time:?} for 4 MB");
    }
}

/// Each place of the grammars, multiplied: a tree, or a limit with a name.
#[test]
fn each_place_of_the_grammars_is_read_or_refused_by_a_limit() {
    on_small_stack(|| {
        for language in languages().into_iter().filter(|language| matches!(language.name, "query" | "update"))
        {
            for site in language.grammar.sites() {
                for n in [1, 90, 3000] {
                    let text = site.document(n);
                    let options = ParseOptions::default();
                    let error = match language.name {
                        "update" => parse_update(&text, &options).map(drop).err(),
                        _ => parse_query(&text, &options).map(drop).err(),
                    };
                    let Some(error) = error else { continue };
                    let is_limit = n > 1 && error.code == ErrorCode::Limit;
                    assert!(is_limit, "{}: {} × {n}: {error}", language.name, site.name());
                }
            }
        }
    });
}

/// A text of 100 MB.
#[test]
fn a_text_of_a_hundred_megabytes_is_read() {
    let row = "(<http://example.org/a/long/name> 'and a text of a few words' 12345)\n";
    let text = format!("SELECT * {{ VALUES (?a ?b ?c) {{\n{}}} }}", row.repeat((100 << 20) / row.len()));
    let parsed = parse_query(&text, &ParseOptions::default()).unwrap();
    drop(parsed);
    let error = refused(&text[..text.len() - 3]);
    assert!(error.open.is_some_and(|open| open.bracket == "{" && open.line == 1), "{error}");
}
