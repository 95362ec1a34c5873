use super::*;
use crate::{ParseOptions, parse_query};

fn key(text: &str) -> (u128, usize) {
    let shape = shape_of(text).expect("has a shape");
    (shape.key, shape.params.len())
}

#[test]
fn texts_of_one_shape_differ_in_constants_alone() {
    for (a, b, params) in [
        ("SELECT * { <u:s> ?p 'x'@en, 5, 1.5 }", "select * {<u:t> ?p \"é\\n\", 7 , 2.5}", 4),
        ("ASK { ?s <u:p> 'x'^^<u:t> }", "ASK { ?s <u:q> 'y' } # no more", 2),
        ("ASK { ?s ?p 1, 1, 2 }", "ASK { ?s ?p 3, 3, 4 }", 2),
        ("DESCRIBE <u:a>", "DESCRIBE <u:b>", 1),
        ("ASK { VALUES ?x { <u:a> 1 } }", "ASK { VALUES ?x { <u:b> 2 } }", 2),
    ] {
        assert_eq!(key(a).0, key(b).0, "{a} {b}");
        assert_eq!((key(a).1, key(b).1), (params, params), "{a} {b}");
    }
}

#[test]
fn all_that_the_tree_depends_on_is_in_the_key() {
    for (a, b) in [
        ("ASK { ?s ?p 1, 1 }", "ASK { ?s ?p 1, 2 }"),
        ("ASK { ?s ?p 1 }", "ASK { ?s ?p <u:a> }"),
        ("ASK { ?s ?p ?o }", "ASK { ?s ?q ?o }"),
        ("ASK { ?s a ?o }", "ASK { ?s A ?o }"),
        ("PREFIX a: <u:a> ASK { a:b ?p ?o }", "PREFIX a: <u:b> ASK { a:b ?p ?o }"),
        ("BASE <u:a> ASK {}", "BASE <u:b> ASK {}"),
        ("ASK FROM <u:a> {}", "ASK FROM <u:b> {}"),
        ("ASK FROM NAMED <u:a> {}", "ASK FROM NAMED <u:b> {}"),
        ("ASK { FILTER(<u:f>(1)) }", "ASK { FILTER(<u:g>(1)) }"),
        ("SELECT * {} LIMIT 1", "SELECT * {} LIMIT 2"),
        ("SELECT * {} OFFSET 1", "SELECT * {} OFFSET 2"),
        ("ASK { ?s ?p 'x'^^a:b }", "ASK { ?s ?p 'x'^^a:c }"),
        ("ASK { <a> ?p ?o }", "ASK { <b> ?p ?o }"),
        ("ASK { ?s ?p -1 }", "ASK { ?s ?p -2 }"),
        ("ASK { ?s ?p '''a''' }", "ASK { ?s ?p '''b''' }"),
        (
            "SELECT (GROUP_CONCAT(?x ; SEPARATOR = 'a') AS ?y) {}",
            "SELECT (GROUP_CONCAT(?x ; SEPARATOR = 'b') AS ?y) {}",
        ),
    ] {
        assert_ne!(key(a).0, key(b).0, "{a} {b}");
    }
    assert!(shape_of("ASK { ?s ?p 'x }").is_none());
}

#[test]
fn a_whole_text_has_a_key_of_its_own() {
    let text = "ASK { ?s ?p 1 }";
    let whole = Shape::whole(text);
    assert!(whole.params.is_empty());
    assert_ne!(whole.key, Shape::whole("ASK { ?s ?p 2 }").key);
    assert_ne!(whole.key, key(text).0);
    assert_eq!(whole.key, Shape::whole(text).key);
}

/// The tree with parameters, filled in, is the tree of the text.
#[test]
fn parameters_stand_where_the_constants_stood() {
    let text =
        "SELECT (5 + ?x AS ?y) { <u:s> <u:p>|!<u:q> ?x FILTER(?x IN (<u:a>, 'b'@en)) VALUES ?z { <u:s> 5 } }";
    let shape = shape_of(text).unwrap();
    assert_eq!(shape.params.len(), 6, "{shape:?}");
    let options = ParseOptions { shape: Some(&shape), ..ParseOptions::default() };
    let told = format!("{:?}", parse_query(text, &options).unwrap().pattern);
    let filled = shape.params.iter().enumerate().rev().fold(told, |told, (number, term)| {
        told.replace(&format!("Param({number})"), &format!("@({term:?})"))
    });
    let plain = format!("{:?}", parse_query(text, &ParseOptions::default()).unwrap().pattern);
    assert_eq!(filled.replace("@(", "Term("), plain.replace("Const(", "Term("));
}
