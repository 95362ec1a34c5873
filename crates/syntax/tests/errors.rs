//! Wrong texts, and what is said of them.

use snowmelt_syntax::{ErrorCode, ParseOptions, SyntaxError, parse_query, parse_update, text_of};

fn query(text: &str) -> SyntaxError {
    *parse_query(text, &ParseOptions::default()).expect_err(text)
}

fn update(text: &str) -> SyntaxError {
    *parse_update(text, &ParseOptions::default()).expect_err(text)
}

/// A wrong text; the place, and parts of what is said of it.
type Said = (&'static str, (usize, usize), ErrorCode, &'static [&'static str]);

#[rustfmt::skip]
const QUERIES: &[Said] = &[
    ("\nSELEC ?s WHERE { ?s ?p ?o }", (2, 1), ErrorCode::Unexpected, &["found \"SELEC\"", "SELECT"]),
    ("SELECT ?s WHER { ?s ?p ?o }", (1, 11), ErrorCode::Unexpected, &["found \"WHER\""]),
    ("SELECT * { ?s ?p ?o } LIMT 3", (1, 23), ErrorCode::Unexpected, &["found \"LIMT\""]),
    ("SELECT * { ?s ?p ?o OPTINAL { ?s ?q ?r } }", (1, 21), ErrorCode::Unexpected, &["found \"OPTINAL\""]),
    ("SELECT * { ?s ?p ?o FILTER(STRLN(?o) > 1) }", (1, 28), ErrorCode::Unexpected, &["found \"STRLN\", expected", "an expression"]),
    ("SELECT * { ?s foaf:name ?o }", (1, 15), ErrorCode::Prefix, &["the prefix foaf: is not declared"]),
    ("SELECT * { ?s mine:name ?o }", (1, 15), ErrorCode::Prefix, &["mine: is not declared"]),
    ("PREFIX person: <u:> SELECT * { ?s perosn:name ?o }", (1, 35), ErrorCode::Prefix, &["perosn:"]),
    (" INSERT DATA { <u:a> <u:p> 1 }", (1, 2), ErrorCode::WrongLanguage, &["this is an update, not a query"]),
    ("SELECT * { ?s ?p ?o ?t ?q ?r }", (1, 21), ErrorCode::Unexpected, &["found \"?t\", expected", "\".\""]),
    ("SELECT * { ?s ?p ?o . ", (1, 23), ErrorCode::Unexpected, &["the end of the text"]),
    ("SELECT *\n{ ?s ?p 'a b }", (2, 9), ErrorCode::Token, &["this string has no end"]),
    ("SELECT * { ?s ?p 'a\\q' }", (1, 18), ErrorCode::Token, &["an escape that names no character"]),
    ("SELECT * { ?s ?p '\\uD800' }", (1, 18), ErrorCode::Token, &["an escape that names no character"]),
    ("SELECT * { ?s ?p }", (1, 18), ErrorCode::Unexpected, &["found \"}\"", "an object"]),
    ("SELECT * { ?s }", (1, 15), ErrorCode::Unexpected, &["a predicate"]),
    ("SELECT * { ?s ?p ?o } }", (1, 23), ErrorCode::Unexpected, &["found \"}\", expected", "the end"]),
    ("SELECT ?s ?n (COUNT(?o) AS ?c) { ?s ?p ?o ; <u:n> ?n } GROUP BY ?s", (1, 11), ErrorCode::Ungrouped, &["?n is neither grouped nor in an aggregate", "add ?n to GROUP BY"]),
    ("SELECT ?s (COUNT(?o) + ?n AS ?c) { ?s ?p ?o ; <u:n> ?n } GROUP BY ?s", (1, 24), ErrorCode::Ungrouped, &["?n is neither"]),
    ("SELECT ?s (COUNT(?o) AS ?c) { ?s ?p ?o } GROUPBY ?s", (1, 42), ErrorCode::Unexpected, &["found \"GROUPBY\", expected", "GROUP"]),
    ("ASK { { SELECT ?s (COUNT(?o) AS ?c) { ?s ?p ?o } GROUPBY ?s } }", (1, 50), ErrorCode::Unexpected, &["found \"GROUPBY\", expected", "GROUP"]),
    ("SELECT * { ?s ?p ?o } GROUP BY ?s", (1, 34), ErrorCode::Ungrouped, &["name the columns"]),
    ("SELECT ?s ?s { ?s ?p ?o }", (1, 11), ErrorCode::Scope, &["SELECT names ?s twice"]),
    ("SELECT * { ?s ?p ?o BIND(1 AS ?o) }", (1, 31), ErrorCode::Scope, &["BIND gives ?o a value, which it may have before"]),
    ("SELECT (1 AS ?o) { ?s ?p ?o }", (1, 14), ErrorCode::Scope, &["SELECT gives ?o"]),
    ("SELECT * { VALUES (?a ?a) { (1 1) } }", (1, 19), ErrorCode::Scope, &["VALUES names ?a twice"]),
    ("SELECT * { VALUES (?a ?b) { (1 1) (2) } }", (1, 35), ErrorCode::Unexpected, &["1 values for 2 variables", "UNDEF"]),
    ("SELECT * { ?s ?p ?o FILTER(COUNT(?o) > 1) }", (1, 28), ErrorCode::Aggregate, &["SELECT, HAVING and ORDER BY"]),
    ("SELECT (SUM(COUNT(?o)) AS ?x) { ?s ?p ?o }", (1, 13), ErrorCode::Aggregate, &["within another"]),
    ("SELECT * { _:a ?p ?o OPTIONAL { _:a ?q ?r } }", (1, 33), ErrorCode::Blank, &["_:a has the label of one in another"]),
    ("SELECT * { ?s ?p ?o FILTER(?s == ?o) }", (1, 32), ErrorCode::Unexpected, &["found \"=\", expected", "an expression"]),
    ("SELECT * { ?s ?p ?o FILTER(?s > 1 AND ?o > 1) }", (1, 35), ErrorCode::Unexpected, &["found \"AND\", expected \"&&\""]),
    ("ASK { FILTER(1 && 1 > 2 = 1) }", (1, 25), ErrorCode::Unexpected, &["found \"=\""]),
    ("SELECT * { ?s ?p ?o FILTER(?s<?p&&?o>1) }", (1, 30), ErrorCode::Unexpected, &["found \"<?p&&?o>\", expected"]),
    ("SELECT * { ?s ?p ?o FILTER(STRLEN(?o, 1) > 1) }", (1, 28), ErrorCode::Unexpected, &["STRLEN has 1 argument, here 2"]),
    ("SELECT * { <a> ?p ?o }", (1, 12), ErrorCode::Iri, &["<a> is no IRI", "the text has no BASE"]),
    ("SELECT * { ?s ?p 'x'@toolonglanguage }", (1, 18), ErrorCode::Literal, &["a language"]),
    ("SELECT * { ?s ?p 'x'@en--up }", (1, 18), ErrorCode::Literal, &["a direction"]),
    ("SELECT * {} LIMIT 99999999999999999999", (1, 19), ErrorCode::Literal, &["too large"]),
    ("SELECT * { ?s ?p ?o & }", (1, 21), ErrorCode::Token, &["begins nothing in SPARQL"]),
    ("", (1, 1), ErrorCode::Unexpected, &["the end of the text", "SELECT, CONSTRUCT, DESCRIBE, ASK"]),
];

#[rustfmt::skip]
const UPDATES: &[Said] = &[
    ("ASK { }", (1, 1), ErrorCode::WrongLanguage, &["this is a query, not an update"]),
    ("INSRT DATA { }", (1, 1), ErrorCode::Unexpected, &["found \"INSRT\", expected", "INSERT"]),
    ("INSERT DATA { ?s <u:p> 1 }", (1, 15), ErrorCode::Scope, &["INSERT DATA can have no variables"]),
    ("DELETE DATA { _:a <u:p> 1 }", (1, 15), ErrorCode::Blank, &["DELETE DATA can have no blank nodes"]),
    ("DELETE { [] <u:p> 1 } WHERE { }", (1, 11), ErrorCode::Blank, &["DELETE can have no blank nodes"]),
    ("INSERT DATA { 'a' <u:p> 1 }", (1, 15), ErrorCode::Unexpected, &["not a literal"]),
    ("INSERT DATA { _:a <u:p> 1 } ; INSERT DATA { _:a <u:p> 2 }", (1, 45), ErrorCode::Blank, &["_:a"]),
    ("CLEAR ALL CLEAR ALL", (1, 11), ErrorCode::Unexpected, &["expected \";\", the end"]),
    ("INSERT DATA { <u:a> <u:b> 1 <u:c> <u:d> 2 }", (1, 29), ErrorCode::Unexpected, &["found \"<u:c>\", expected", "\".\""]),
];

fn check((text, place, code, parts): &Said, error: &SyntaxError) -> Option<String> {
    let said = error.to_string();
    let is_right = (error.line, error.column) == *place
        && error.code == *code
        && parts.iter().all(|part| said.contains(part));
    (!is_right).then(|| format!("{text}\n  wanted {place:?} {code:?} {parts:?}\n  {:?} {said}", error.code))
}

#[test]
fn each_wrong_text_is_told_with_place_and_cause() {
    let queries = QUERIES.iter().filter_map(|said| check(said, &query(said.0)));
    let updates = UPDATES.iter().filter_map(|said| check(said, &update(said.0)));
    let wrong: Vec<String> = queries.chain(updates).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn several_errors_are_told_in_one_pass() {
    let text = "SELECT * {\n  ?s foaf:name ?o .\n  ?s ?p .\n  OPTINAL { ?s ?q ?r }\n  FILTER(?o > )\n  { ?a bb:c ?d }\n}";
    let error = query(text);
    let places: Vec<(usize, usize)> = error.all().map(|error| (error.line, error.column)).collect();
    assert_eq!(places, [(2, 6), (3, 9), (4, 3), (5, 15), (6, 8)], "{error}");
    let text = "CLEAR ALLL ;\nINSERT DATA { ?x <u:p> 1 } ;\nDELETE WHERE { ?s ?p } ; CLEAR ALL";
    let error = update(text);
    let places: Vec<(usize, usize)> = error.all().map(|error| (error.line, error.column)).collect();
    assert_eq!(places, [(1, 7), (2, 15), (3, 22)], "{error}");
}

#[test]
fn the_caret_stands_below_the_place() {
    let error = query("SELECT ?s\n\t{ ?é foaf:name ?o }");
    assert_eq!((error.excerpt.as_str(), error.caret), (" { ?é foaf:name ?o }", (6, 5)), "{error}");
    assert_eq!((error.span.start, error.span.end), (17, 22));
    let long = format!("ASK {{ {} ?x }}", "?s ?p ?o . ".repeat(1000));
    let error = query(&long);
    assert_eq!(error.excerpt.chars().nth(error.caret.0), Some('}'), "{error}");
    assert!(error.excerpt.len() < 200);
}

/// Facts from which causes are guessed.
#[test]
fn errors_have_the_open_bracket_and_the_declared_prefixes() {
    let error = query("SELECT * { ?s ?p ?o .\n { [ ?q ");
    let open = error.open.unwrap();
    assert_eq!((open.bracket, open.line, open.column), ("[", 2, 4));
    let error = query("PREFIX b: <u:> PREFIX a: <u:> ASK { ?s c:p ?o }");
    assert_eq!((error.found.as_str(), &error.expected[..]), ("c:", &["a:".into(), "b:".into()][..]));
}

#[test]
fn half_a_character_is_told() {
    let options = ParseOptions::default();
    let error = text_of(b"SELECT * {\n ?s ?p '\xC3", &options).unwrap_err();
    assert_eq!((error.code, error.line), (ErrorCode::Encoding, 2), "{error}");
    assert!(text_of("é".as_bytes(), &options).is_ok());
}

#[test]
fn an_error_has_its_place_without_what_was_put_before_the_text() {
    let text = "SELECT * { ?s a } . { ?b }\n{ ?c";
    for head in ["PREFIX é: <u:e> ", "PREFIX é: <u:e>\n", ""] {
        let whole = format!("{head}{text}");
        let error = parse_query(&whole, &ParseOptions::default()).unwrap_err().without_head(head, text);
        assert_eq!(error, parse_query(text, &ParseOptions::default()).unwrap_err(), "{head}");
        assert!(error.all().count() > 1, "{error}");
    }
    let open = parse_query("PREFIX e: <u:e> ASK {", &ParseOptions::default()).unwrap_err();
    assert_eq!(open.without_head("PREFIX e: <u:e> ", "ASK {").open.unwrap().column, 5);
}

/// A prefix that the text declares is its own.
#[test]
fn prefixes_may_be_assumed() {
    #[derive(Debug)]
    struct One;
    impl snowmelt_syntax::AssumedPrefixes for One {
        fn namespace(&self, prefix: &str) -> Option<&str> {
            (prefix == "e").then_some("u:assumed:")
        }
    }
    let options = ParseOptions { prefixes: Some(&One), ..ParseOptions::default() };
    let told = |text: &str| match parse_query(text, &options) {
        Ok(query) => format!("{:?}", query.pattern),
        Err(error) => error.to_string(),
    };
    assert!(told("ASK { ?s e:p ?o }").contains("u:assumed:p"));
    assert!(told("PREFIX e: <u:own:> ASK { ?s e:p ?o }").contains("u:own:p"));
    assert_eq!(told("ASK { ?s f:p ?o }"), "line 1, column 10: the prefix f: is not declared");
}

#[test]
fn a_mark_of_byte_order_is_passed_over_at_the_beginning_alone() {
    let options = ParseOptions::default();
    let text = "\u{feff}SELECT * { ?s !() ?o }";
    assert_eq!(
        parse_query(text, &options).unwrap().measure,
        parse_query(&text[3..], &options).unwrap().measure
    );
    let error = parse_query(&format!("{text} LIMIT x"), &options).unwrap_err();
    assert_eq!(&format!("{text} LIMIT x")[error.span.start..error.span.end], "x");
    assert!(parse_query("SELECT * \u{feff} { ?s ?p ?o }", &options).is_err());
    let mut operations = 0;
    let mut bytes: &[u8] = "\u{feff}INSERT DATA { <u:a> <u:b> 1 }".as_bytes();
    let read = snowmelt_syntax::read_update(&mut bytes, &options, 10, |_| {
        operations += 1;
        Ok::<(), std::convert::Infallible>(())
    });
    assert!(read.is_ok() && operations == 1);
}
