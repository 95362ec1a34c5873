//! Parameters by name: a bound variable answers as the text with the constant in its place.

use snowmelt_database::OpenOptions;
use snowmelt_graph::{GraphDatabase, Term};
use snowmelt_sparql::{QueryEngine, QueryError, QueryOptions, ResultFormat, UpdateOptions};
use tempfile::TempDir;

const DATA: &str = r#"INSERT DATA {
    <urn:ann> <urn:name> "Ann" ; <urn:age> 30 ; <urn:knows> <urn:bob> , <urn:cy> .
    <urn:bob> <urn:name> "Bob"@en ; <urn:age> 17 ; <urn:knows> <urn:cy> .
    <urn:cy> <urn:name> "Cy" ; <urn:age> 65 .
    GRAPH <urn:g> { <urn:ann> <urn:name> "Anna" }
}"#;

fn engine() -> (TempDir, QueryEngine) {
    let dir = tempfile::tempdir().unwrap();
    let options =
        OpenOptions { memory_bytes: 64 << 20, direct: false, extent_pages: 8, ..OpenOptions::default() };
    let engine = QueryEngine::new(GraphDatabase::create(&dir.path().join("db"), &[], &options).unwrap());
    engine.update(DATA, &UpdateOptions::default()).unwrap();
    (dir, engine)
}

fn iri(text: &str) -> Term {
    Term::Iri(text.into())
}

fn typed(lexical: &str, datatype: &str) -> Term {
    let datatype = format!("http://www.w3.org/2001/XMLSchema#{datatype}");
    Term::Literal { lexical: lexical.into(), lang: None, direction: None, datatype }
}

fn rows(engine: &QueryEngine, text: &str, bindings: &[(&str, Term)]) -> Result<Vec<String>, QueryError> {
    let bindings = bindings.iter().map(|(name, term)| ((*name).to_owned(), term.clone())).collect();
    let result = engine.query(text, &QueryOptions { bindings, ..QueryOptions::default() })?;
    let format = match result.kind() {
        snowmelt_sparql::QueryKind::Graph => ResultFormat::NTriples,
        _ => ResultFormat::Csv,
    };
    let mut bytes = Vec::new();
    result.write(format, &mut bytes)?;
    let mut rows: Vec<String> = String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect();
    rows.sort();
    Ok(rows)
}

/// A text, its parameters, and a text that says the same without.
type Case = (&'static str, Vec<(&'static str, Term)>, &'static str);

/// Texts with parameters, and texts that say the same without.
fn cases() -> Vec<Case> {
    let ann = || ("s", iri("urn:ann"));
    let age = |n: &str| ("a", typed(n, "integer"));
    let name = |n: &str| ("n", typed(n, "string"));
    vec![
        ("SELECT ?o { ?s <urn:name> ?o }", vec![ann()], "SELECT ?o { <urn:ann> <urn:name> ?o }"),
        (
            "SELECT ?s ?o { ?s <urn:name> ?o }",
            vec![ann()],
            "SELECT ?s ?o { ?s <urn:name> ?o FILTER(?s = <urn:ann>) }",
        ),
        (
            "SELECT * { ?s <urn:name> ?o }",
            vec![ann()],
            "SELECT * { ?s <urn:name> ?o FILTER(?s = <urn:ann>) }",
        ),
        (
            "SELECT ?s { ?s <urn:age> ?x FILTER(?x > ?a) }",
            vec![age("20")],
            "SELECT ?s { ?s <urn:age> ?x FILTER(?x > 20) }",
        ),
        ("SELECT ?s { ?s <urn:age> ?a }", vec![age("30")], "SELECT ?s { ?s <urn:age> 30 }"),
        ("SELECT ?s { ?s <urn:name> ?n }", vec![name("Cy")], "SELECT ?s { ?s <urn:name> 'Cy' }"),
        // a literal where none can be
        ("SELECT ?o { ?n <urn:name> ?o }", vec![name("Cy")], "SELECT ?o { <urn:none> <urn:name> ?o }"),
        ("SELECT ?o { <urn:ann> ?n ?o }", vec![name("Cy")], "SELECT ?o { <urn:ann> <urn:none> ?o }"),
        ("ASK { ?s <urn:knows> <urn:cy> }", vec![ann()], "ASK { <urn:ann> <urn:knows> <urn:cy> }"),
        (
            "SELECT ?o { ?s <urn:knows>+ ?o }",
            vec![("s", iri("urn:bob"))],
            "SELECT ?o { <urn:bob> <urn:knows>+ ?o }",
        ),
        (
            "SELECT ?s (COUNT(?o) AS ?c) { ?s <urn:knows> ?o } GROUP BY ?s",
            vec![ann()],
            "SELECT ?s (COUNT(?o) AS ?c) { ?s <urn:knows> ?o FILTER(?s = <urn:ann>) } GROUP BY ?s",
        ),
        (
            "SELECT ?s (COUNT(?o) AS ?c) { ?s <urn:knows> ?o } GROUP BY ?s",
            vec![("s", iri("urn:none"))],
            "SELECT ?s (COUNT(?o) AS ?c) { ?s <urn:knows> ?o FILTER(?s = <urn:none>) } GROUP BY ?s",
        ),
        (
            "SELECT ?s ?o { VALUES ?s { <urn:ann> <urn:bob> UNDEF } ?s <urn:knows> ?o }",
            vec![ann()],
            "SELECT ?s ?o { VALUES ?s { <urn:ann> UNDEF } ?s <urn:knows> ?o FILTER(?s = <urn:ann>) }",
        ),
        (
            "SELECT ?s ?x { { VALUES ?s { <urn:ann> } ?s <urn:age> ?x } UNION { ?s <urn:name> ?x } }",
            vec![ann()],
            "SELECT ?s ?x { { <urn:ann> <urn:age> ?x } UNION { <urn:ann> <urn:name> ?x } BIND(<urn:ann> AS ?s) }",
        ),
        (
            "SELECT ?s ?c { { SELECT ?s (COUNT(*) AS ?c) { ?s ?p ?o } GROUP BY ?s } }",
            vec![ann()],
            "SELECT ?s ?c { { SELECT ?s (COUNT(*) AS ?c) { ?s ?p ?o FILTER(?s = <urn:ann>) } GROUP BY ?s } }",
        ),
        (
            "SELECT ?o { { SELECT ?o { ?s <urn:name> ?o } } }",
            vec![],
            "SELECT ?o { { SELECT ?o { ?s <urn:name> ?o } } }",
        ),
        (
            "SELECT ?o ?p { ?s <urn:name> ?p { SELECT ?o { ?s <urn:name> ?o } } }",
            vec![ann()],
            "SELECT ?o ?p { <urn:ann> <urn:name> ?p { SELECT ?o { ?s <urn:name> ?o } } }",
        ),
        (
            "SELECT ?s ?o { { SELECT ?s ?o { ?s <urn:name> ?o } } }",
            vec![ann()],
            "SELECT ?s ?o { ?s <urn:name> ?o FILTER(?s = <urn:ann>) }",
        ),
        (
            "SELECT ?x { ?x <urn:name> ?y FILTER EXISTS { ?s <urn:knows> ?x } }",
            vec![ann()],
            "SELECT ?x { ?x <urn:name> ?y FILTER EXISTS { <urn:ann> <urn:knows> ?x } }",
        ),
        (
            "SELECT ?x { ?x <urn:name> ?y MINUS { ?s <urn:knows> ?x } }",
            vec![ann()],
            "SELECT ?x { ?x <urn:name> ?y MINUS { <urn:ann> <urn:knows> ?x } }",
        ),
        (
            "SELECT ?x { ?x <urn:age> ?y } ORDER BY ABS(?y - ?a) LIMIT 1",
            vec![age("60")],
            "SELECT ?x { ?x <urn:age> ?y } ORDER BY ABS(?y - 60) LIMIT 1",
        ),
        (
            "SELECT ?n { GRAPH ?g { ?x <urn:name> ?n } }",
            vec![("g", iri("urn:g"))],
            "SELECT ?n { GRAPH <urn:g> { ?x <urn:name> ?n } }",
        ),
        (
            "SELECT ?s ?b { ?s <urn:knows> ?o BIND(BOUND(?o) AS ?b) }",
            vec![("o", iri("urn:cy"))],
            "SELECT ?s ?b { ?s <urn:knows> <urn:cy> BIND(true AS ?b) }",
        ),
        (
            "CONSTRUCT { ?s <urn:is> ?o } { ?s <urn:name> ?o }",
            vec![ann()],
            "CONSTRUCT { <urn:ann> <urn:is> ?o } { <urn:ann> <urn:name> ?o }",
        ),
        (
            "CONSTRUCT { ?n <urn:is> ?n . ?o <urn:is> ?n } { ?o <urn:name> ?n }",
            vec![name("Cy")],
            "CONSTRUCT { <urn:cy> <urn:is> 'Cy' } { }",
        ),
        ("DESCRIBE ?s", vec![ann()], "DESCRIBE <urn:ann>"),
    ]
}

#[test]
fn a_bound_variable_is_a_constant() {
    let (_dir, engine) = engine();
    for (text, bindings, same) in cases() {
        let expected = rows(&engine, same, &[]).unwrap_or_else(|e| panic!("{same}: {e}"));
        for turn in ["first", "from the cache"] {
            let found = rows(&engine, text, &bindings).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(found, expected, "{text} with {bindings:?}, {turn}");
        }
    }
}

#[test]
fn one_plan_serves_many_values() {
    let (_dir, engine) = engine();
    let text = "SELECT ?n { ?s <urn:name> ?n }";
    for (subject, name) in [("urn:ann", "Ann"), ("urn:cy", "Cy"), ("urn:bob", "Bob"), ("urn:ann", "Ann")] {
        assert_eq!(rows(&engine, text, &[("s", iri(subject))]).unwrap(), [name, "n"]);
    }
    // the same text and name, another kind of term
    assert_eq!(rows(&engine, text, &[("s", typed("x", "string"))]).unwrap(), ["n"]);
    assert_eq!(rows(&engine, text, &[]).unwrap().len(), 4);
}

#[test]
fn what_cannot_be_a_parameter_is_said() {
    let (_dir, engine) = engine();
    let said =
        |text: &str, name: &str, term: Term| rows(&engine, text, &[(name, term)]).unwrap_err().to_string();
    let no_such = said("SELECT ?o { ?s ?p ?o }", "x", iri("urn:a"));
    assert_eq!(no_such, "the parameter ?x: the text has no such variable");
    let given = said("SELECT ?o { ?s ?p ?q BIND(?q AS ?o) }", "o", iri("urn:a"));
    assert_eq!(given, "the parameter ?o: the query itself gives that variable a value");
    let inner = said("SELECT ?o { { SELECT ?o { ?s ?p ?o } } }", "s", iri("urn:a"));
    assert_eq!(inner, "the parameter ?s: the text has no such variable");
    assert!(said("SELECT ?o { ?s ?p ?o }", "s", Term::Blank("b0".into())).contains("blank node"));
}

#[test]
fn updates_take_parameters() {
    let (_dir, engine) = engine();
    let update = |text: &str, bindings: &[(&str, Term)]| {
        let bindings = bindings.iter().map(|(name, term)| ((*name).to_owned(), term.clone())).collect();
        let updated = engine.update(text, &UpdateOptions { bindings, ..UpdateOptions::default() });
        updated.map(|updated| (updated.changed.inserted, updated.changed.deleted))
    };
    let rename = "DELETE { ?s <urn:name> ?old } INSERT { ?s <urn:name> ?new } WHERE { ?s <urn:name> ?old }";
    assert_eq!(update(rename, &[("s", iri("urn:ann")), ("new", typed("Annie", "string"))]).unwrap(), (1, 1));
    assert_eq!(
        rows(&engine, "SELECT ?n { <urn:ann> <urn:name> ?n }", &[]).unwrap(),
        rows(&engine, "SELECT ?n { VALUES ?n { 'Annie' } }", &[]).unwrap()
    );
    // a literal is no subject: no quad
    assert_eq!(update("INSERT { ?s <urn:p> 1 } WHERE { }", &[("s", typed("x", "string"))]).unwrap(), (0, 0));
    assert_eq!(update("INSERT { ?s <urn:p> 1 } WHERE { }", &[("s", iri("urn:new"))]).unwrap(), (1, 0));
    assert_eq!(update("DELETE WHERE { ?s ?p ?o }", &[("s", iri("urn:ann"))]).unwrap(), (0, 4));
    assert!(update("DELETE WHERE { ?s ?p ?o }", &[("x", iri("urn:ann"))]).is_err());
}
