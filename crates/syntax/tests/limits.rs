//! Limits are kept exactly: a text at its limit is read, and one beyond it is refused at the token
//! that goes beyond.

use snowmelt_syntax::tree::Measure;
use snowmelt_syntax::{ErrorCode, Limits, ParseOptions, SyntaxError, parse_query, parse_update, read_update};

/// A limit of three: its name, how it is set, a text of three, one of four, and the column where
/// that is refused.
type LimitCase = (&'static str, fn(&mut Limits), &'static str, &'static str, usize);

#[rustfmt::skip]
const QUERIES: &[LimitCase] = &[
    ("query_depth", |limits| limits.depth = 3, "ASK { { { } } }", "ASK { { { { } } } }", 11),
    ("query_depth", |limits| limits.depth = 3, "ASK { FILTER((1)) }", "ASK { FILTER((((1)))) }", 15),
    ("query_depth", |limits| limits.depth = 3, "ASK { ?s ?p [ ?p [] ] }", "ASK { ?s ?p [ ?p [ ?p [ ?p 1 ] ] ] }", 23),
    ("query_branches", |limits| limits.branches = 2, "ASK { {} GRAPH ?g {} }", "ASK { VALUES ?x {} {} SERVICE ?s {} }", 31),
    ("query_chain", |limits| limits.chain = 3, "ASK { MINUS {} MINUS {} MINUS {} }", "ASK { MINUS {} MINUS {} MINUS {} MINUS {} }", 40),
    ("query_chain", |limits| limits.chain = 3, "ASK { FILTER(1 + 1 - 1 * 1) }", "ASK { FILTER(1 + 1 - 1 * 1 / 1) }", 31),
    ("query_branches", |limits| limits.branches = 3, "ASK { {} UNION {} UNION {} UNION {} }", "ASK { {} UNION {} UNION {} UNION {} UNION {} }", 43),
    ("query_branches", |limits| limits.branches = 3, "ASK { ?s !(a|a|a|a) ?o }", "ASK { ?s !(a|a|a|a|a) ?o }", 20),
    ("query_chain", |limits| limits.chain = 3, "ASK { ?s a|a|a|a ?o, 1 ; a|a ?o }", "ASK { ?s a|a|a|a|a ?o }", 18),
    ("query_chain", |limits| limits.chain = 1, "ASK { BIND(1 AS ?x) {} }", "ASK { BIND(1 AS ?x) BIND(2 AS ?y) }", 25),
    ("query_chain", |limits| limits.chain = 1, "SELECT (1 AS ?x) {}", "SELECT (1 AS ?x) (2 AS ?y) {}", 18),
    ("query_chain", |limits| limits.chain = 1, "SELECT ?x {} GROUP BY ?x (1 AS ?y)", "ASK {} GROUP BY (1 AS ?x) (2 AS ?y)", 36),
    ("query_chain", |limits| limits.chain = 1, "ASK { FILTER(EXISTS {}) }", "ASK { FILTER(EXISTS {}) FILTER(!EXISTS {}) }", 40),
    ("query_variables", |limits| limits.variables = 3, "ASK { ?s ?p ?o . ?o ?p ?s }", "ASK { ?s ?p ?o . ?o ?p ?q }", 24),
    ("query_patterns", |limits| limits.patterns = 3, "ASK { ?s ?p 1, 2, 3 }", "ASK { ?s ?p 1, 2, 3, 4 }", 24),
    ("query_patterns", |limits| limits.patterns = 3, "ASK { ?s a/a/a ?o }", "ASK { ?s a/a/a/a ?o }", 21),
    ("query_patterns", |limits| limits.patterns = 3, "CONSTRUCT { ?s ?p 1, 2, 3, 4 } { ?s ?p 1, 2, 3 }", "CONSTRUCT WHERE { ?s ?p 1, 2, 3, 4 }", 36),
    ("query_bytes", |limits| limits.bytes = 20, "ASK { ?s ?p 'é' } #", "ASK { ?s ?p 'é' } ##", 1),
];

fn limits(set: fn(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    set(&mut limits);
    limits
}

fn check(
    kept: &LimitCase,
    parse: fn(&str, &ParseOptions<'_>) -> Result<(), Box<SyntaxError>>,
) -> Option<String> {
    let (name, set, within, beyond, column) = *kept;
    let options = ParseOptions { limits: limits(set), ..ParseOptions::default() };
    if let Err(error) = parse(within, &options) {
        return Some(format!("{within}: {error}"));
    }
    let Err(error) = parse(beyond, &options) else { return Some(format!("{beyond} is read")) };
    let is_right = error.code == ErrorCode::Limit
        && error.limit.map(|limit| limit.name) == Some(name)
        && error.column == column
        && error.more.is_empty();
    (!is_right).then(|| format!("{beyond}: wanted {name} at {column}: {error}"))
}

#[test]
fn a_query_is_refused_at_the_token_beyond_a_limit() {
    let parse: fn(&str, &ParseOptions<'_>) -> _ = |text, options| parse_query(text, options).map(drop);
    let wrong: Vec<String> = QUERIES.iter().filter_map(|kept| check(kept, parse)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[rustfmt::skip]
const UPDATES: &[LimitCase] = &[
    ("query_patterns", |limits| limits.patterns = 3, "DELETE WHERE { ?s ?p 1, 2, 3 }", "DELETE WHERE { ?s ?p 1, 2, 3, 4 }", 33),
    ("query_variables", |limits| limits.variables = 3, "DELETE WHERE { ?a ?b ?c } ; DELETE WHERE { ?d ?e ?f }", "DELETE WHERE { ?a ?b ?c . ?c ?b ?d }", 33),
    ("update_labels", |limits| limits.labels = 3, "INSERT DATA { _:a a _:b, _:c, _:a }", "INSERT DATA { _:a a _:b, _:c, _:d }", 31),
];

/// Counts begin anew with each operation, and data are no patterns.
#[test]
fn an_update_is_refused_at_the_token_beyond_a_limit() {
    let parse: fn(&str, &ParseOptions<'_>) -> _ = |text, options| parse_update(text, options).map(drop);
    let wrong: Vec<String> = UPDATES.iter().filter_map(|kept| check(kept, parse)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let limits = Limits { patterns: 1, branches: 0, chain: 0, ..Limits::default() };
    let options = ParseOptions { limits, ..ParseOptions::default() };
    parse_update("INSERT DATA { <u:a> <u:p> 1, 2, ( 3 4 ) } ; DELETE WHERE { ?s a 1 }", &options).unwrap();
}

#[test]
fn a_stream_is_refused_where_a_token_or_the_text_is_too_long() {
    let read = |limits: Limits, text: &str| {
        let options = ParseOptions { limits, ..ParseOptions::default() };
        let mut reader = text.as_bytes();
        read_update(&mut reader, &options, 10, |_| Ok::<(), std::convert::Infallible>(()))
    };
    let text = format!("INSERT DATA {{ <u:a> <u:b> '{}' }}", "x".repeat(98));
    for (limits, name) in [
        (Limits { token_bytes: 99, ..Limits::default() }, "token_bytes"),
        (Limits { bytes: text.len() - 1, ..Limits::default() }, "query_bytes"),
        (Limits { operation_bytes: 90, ..Limits::default() }, "operation_bytes"),
    ] {
        let text = match name {
            // data may be longer
            "operation_bytes" => format!("{text} ; LOAD <u:{}>", "x".repeat(99)),
            _ => text.clone(),
        };
        let error = read(limits, &text).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    let limits = Limits { token_bytes: 100, bytes: text.len(), ..Limits::default() };
    read(limits, &text).unwrap();
}

#[test]
fn a_tree_tells_its_counts() {
    for (text, [depth, chain, branches, patterns]) in [
        ("ASK {}", [1, 0, 0, 0]),
        ("ASK { ?s ?p ?o, 1 OPTIONAL { ?s a/a ?o MINUS {} } }", [3, 3, 0, 4]),
        ("ASK { FILTER(1 + 2 * (3 - 4) > 5 || ?x && ?y) {} UNION {} }", [3, 3, 4, 0]),
        ("ASK { OPTIONAL { FILTER(1 + 1 + 1) } { FILTER(1 + 1 + 1 + 1) } }", [3, 4, 3, 0]),
        ("SELECT (STR(<u:f>(?x)) AS ?y) { ?s ?p ( 1 [ ?p 2 ] ) }", [3, 1, 0, 6]),
    ] {
        let query = parse_query(text, &ParseOptions::default()).unwrap();
        let Measure { groups, bytes, .. } = query.measure;
        assert_eq!(query.measure, Measure { depth, chain, branches, patterns, groups, bytes }, "{text}");
    }
    let text =
        "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o MINUS { ?s a 1 } } ; INSERT DATA { <u:a> a ( 1 ( 2 ) ) }";
    let update = parse_update(text, &ParseOptions::default()).unwrap();
    let uncounted = |measure: Measure| Measure { bytes: 0, ..measure };
    let measures: Vec<Measure> = update.operations.iter().map(|one| uncounted(one.measure)).collect();
    let modify = Measure { depth: 2, chain: 1, patterns: 2, groups: 2, ..Measure::default() };
    assert_eq!(measures, [modify, Measure { depth: 2, ..Measure::default() }]);
}

/// A few letters stand for many bytes, each time.
#[test]
fn bytes_of_a_tree_are_counted_and_limited() {
    let iri = format!("u:{}", "x".repeat(1000));
    let bytes = |text: &str| parse_query(text, &ParseOptions::default()).unwrap().measure.bytes;
    for body in ["?s ?p a:", "FILTER(?x = a:)", "VALUES ?x { a: }", "?s ?p 'o'^^a:", "GRAPH a: {}"] {
        let all = bytes(&format!("PREFIX a: <{iri}> ASK {{ {body} }}"));
        assert!(all >= 2000, "{body}: {all}, the declaration among them");
    }
    // a comma repeats what is before it
    let list = |n: usize| bytes(&format!("ASK {{ <{iri}> <{iri}> {} ?o }}", "?o,".repeat(n)));
    assert!(list(11) - list(1) > 10 * 2000, "{} {}", list(1), list(11));
    let limits = Limits { tree_bytes: 6000, ..Limits::default() };
    let options = ParseOptions { limits, ..ParseOptions::default() };
    let error = parse_query(&format!("ASK {{ <{iri}> <{iri}> ?o, ?o, ?o, ?o }}"), &options).unwrap_err();
    assert_eq!(error.limit.map(|limit| limit.name), Some("tree_bytes"), "{error}");
}

/// A few letters that stand for much, each time, count what they stand for: a tree as Debug writes
/// it is at most in proportion to its text and to the bytes that are counted.
#[test]
fn what_is_repeated_is_counted() {
    let long = "x".repeat(3000);
    let many = |part: &str, between: &str| vec![part; 300].join(between);
    let steps = [
        format!("<u:{long}>*"),
        format!("^(<u:{long}>+)"),
        format!("(<u:{long}>|<u:a>)?"),
        format!("!({})", many("<u:a>", "|")),
        format!("(<u:a>/!(^<u:b>|{}))*", many("<u:a>", "|")),
        format!("<u:{long}>/<u:a>*"),
    ];
    let mut families: Vec<(String, &str, &str)> =
        steps.map(|path| (format!("ASK {{ ?s {path} ?o"), ", ?o", " }")).into();
    families.extend([
        (format!("ASK {{ ?s ?p '{long}' "), "~", " }"),
        (format!("CONSTRUCT {{ ?s ?p '{long}' "), "~", "} WHERE {}"),
        (format!("ASK {{ <u:{long}> <u:p> 1 "), "{| <u:a> 1 |}", " }"),
        (format!("ASK {{ <u:{long}> <u:p> 1 "), "; <u:p> 1", " }"),
        (format!("ASK {{ <u:{long}> <u:p> 1 "), ", <<( <u:a> <u:b> 1 )>>", " }"),
        (format!("PREFIX a: <u:{long}> ASK {{ VALUES ?x {{ "), "a: ", "} }"),
        (format!("PREFIX a: <u:{long}> ASK {{ FILTER(1 IN (1 "), ", a:", ")) }"),
    ]);
    for (before, unit, after) in families {
        let size = |times: usize| {
            let text = format!("{before}{}{after}", unit.repeat(times));
            let query =
                parse_query(&text, &ParseOptions::default()).unwrap_or_else(|e| panic!("{text:.60}: {e}"));
            (text.len(), query.measure.bytes, format!("{query:?}").len())
        };
        let (few, more) = (size(50), size(500));
        let (text, bytes, tree) = (more.0 - few.0, more.1 - few.1, more.2 - few.2);
        let shown: String = before.chars().take(40).collect();
        assert!(
            tree < 100 * text + 8 * bytes,
            "{shown} {unit}: {text} of text, {bytes} counted, {tree} of a tree"
        );
    }
}

/// Data go out before they take too much, however few quads they are.
#[test]
fn data_of_a_stream_stay_within_the_bytes_of_a_tree() {
    let limits = Limits { tree_bytes: 20_000, ..Limits::default() };
    let options = ParseOptions { limits, ..ParseOptions::default() };
    let quads = format!("<u:a> <u:b> '{}' . ", "x".repeat(3000)).repeat(50);
    let text = format!("INSERT DATA {{ {quads} }}");
    let (mut parts, mut count) = (0, 0);
    let taken = read_update(&mut text.as_bytes(), &options, 1 << 20, |one| {
        if let snowmelt_syntax::tree::Operation::InsertData(quads) = one.operation {
            assert!(one.measure.bytes < 20_000, "{:?}", one.measure);
            assert_eq!(one.goes_on, parts > 0);
            (parts, count) = (parts + 1, count + quads.len());
        }
        Ok::<(), std::convert::Infallible>(())
    });
    taken.unwrap();
    assert!(count == 50 && parts > 10, "{count} {parts}");
}
