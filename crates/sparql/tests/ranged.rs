//! Conditions on kinds, languages, datatypes and values that a scan takes as ranges of ids: the
//! answers are those of conditions asked row by row, and only what they leave is read.

use snowmelt_database::{Account, OpenOptions};
use snowmelt_graph::GraphDatabase;
use snowmelt_sparql::{QueryEngine, QueryOptions, UpdateOptions};

/// Terms of every kind, with forms that are not canonical and values that are not valid.
const TERMS: [&str; 44] = [
    "<e:a>",
    "<e:b>",
    "_:a",
    "_:b",
    "\"a\"",
    "\"b\"",
    "\"\"",
    "\"a text that is too long for an id\"",
    "\"another text that is too long for an id\"",
    "\"a\"@en",
    "\"b\"@en",
    "\"a\"@en-gb",
    "\"a\"@de",
    "\"a longer text of some language\"@de",
    "\"a\"@en--ltr",
    "\"b\"@ar--rtl",
    "1",
    "2",
    "3",
    "100",
    "-7",
    "\"01\"^^xsd:integer",
    "\"+2\"^^xsd:integer",
    "\"abc\"^^xsd:integer",
    "\"99999999999999999999999999\"^^xsd:integer",
    "2.5",
    "\"2.50\"^^xsd:decimal",
    "\"3\"^^xsd:int",
    "\"03\"^^xsd:int",
    "\"300\"^^xsd:byte",
    "1e0",
    "\"NaN\"^^xsd:double",
    "\"INF\"^^xsd:float",
    "\"1.5\"^^xsd:float",
    "true",
    "\"0\"^^xsd:boolean",
    "\"perhaps\"^^xsd:boolean",
    "\"2008-01-01\"^^xsd:date",
    "\"2008-06-01Z\"^^xsd:date",
    "\"2008-13-41\"^^xsd:date",
    "\"2008-06-01T10:00:00Z\"^^xsd:dateTime",
    "\"2008-06-01T10:00:00+02:00\"^^xsd:dateTime",
    "\"12.5\"^^<e:USD>",
    "\"much\"^^<e:USD>",
];

const CONDITIONS: [&str; 38] = [
    "isIRI(?o)",
    "isBlank(?o)",
    "isLiteral(?o)",
    "isNumeric(?o)",
    "isTRIPLE(?o)",
    "!isLiteral(?o)",
    "!isNumeric(?o)",
    "isIRI(?o) || isBlank(?o)",
    "isLiteral(?o) && !isNumeric(?o)",
    "LANG(?o) = \"en\"",
    "LANG(?o) = \"\"",
    "LANG(?o) != \"en\"",
    "LANG(?o) = \"xx\"",
    "LANG(?o) IN (\"en\", \"de\")",
    "LANG(?o) NOT IN (\"en\", \"de\")",
    "langMatches(LANG(?o), \"en\")",
    "langMatches(LANG(?o), \"*\")",
    "hasLANG(?o)",
    "hasLANGDIR(?o)",
    "LANGDIR(?o) = \"rtl\"",
    "DATATYPE(?o) = xsd:integer",
    "DATATYPE(?o) = xsd:string",
    "DATATYPE(?o) = rdf:langString",
    "DATATYPE(?o) = <e:USD>",
    "DATATYPE(?o) != xsd:integer",
    "DATATYPE(?o) IN (xsd:int, xsd:boolean)",
    "DATATYPE(?o) = <e:none>",
    "?o > 1",
    "?o <= 2.5",
    "?o = 1",
    "?o > \"a\"",
    "?o >= \"2008-03-01\"^^xsd:date",
    "?o < \"2008-06-01T09:00:00Z\"^^xsd:dateTime",
    "?o IN (1, 3, \"b\", true, \"a\"@en)",
    "?o = 1 || ?o > 50",
    "?o > 1 && ?o < 50",
    "isNumeric(?o) && ?o > 2",
    "?o = \"a\"@en || LANG(?o) = \"de\"",
];

const PROLOGUE: &str = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> \
                        PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> ";

fn engine(data: &str) -> (tempfile::TempDir, QueryEngine) {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions { memory_bytes: 64 << 20, direct: false, ..OpenOptions::default() };
    let engine = QueryEngine::new(GraphDatabase::create(&dir.path().join("db"), &[], &options).unwrap());
    let text = format!("{PROLOGUE} INSERT DATA {{ {data} }}");
    engine.update(&text, &UpdateOptions::default()).unwrap();
    (dir, engine)
}

/// Things with each of the terms, by three predicates, and one that stands in a graph of its own.
fn data(things: usize) -> String {
    let mut data = String::new();
    for i in 0..things {
        let (one, other) = (TERMS[i % TERMS.len()], TERMS[i * 7 % TERMS.len()]);
        data.push_str(&format!("<e:x{i}> <e:p{}> {one} ; <e:q> {other} . ", i % 2));
        if i % 5 == 0 {
            data.push_str(&format!("GRAPH <e:g{}> {{ <e:x{i}> <e:q> {other}, {one} }} ", i % 3));
        }
    }
    data
}

fn rows(engine: &QueryEngine, text: &str) -> Vec<String> {
    let mut rows = Vec::new();
    let found =
        engine.query(text, &QueryOptions::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
    found.for_each(|row| rows.push(format!("{row:?}"))).unwrap_or_else(|error| panic!("{text}: {error}"));
    rows.sort();
    rows
}

/// Each condition in each query, beside itself in a form that has no ranges.
fn compare(engine: &QueryEngine) -> usize {
    let queries = [
        "SELECT (COUNT(*) AS ?n) DATASET { ?s ?p ?o }",
        "SELECT (COUNT(?o) AS ?n) DATASET { ?s <e:q> ?o }",
        "SELECT ?p (COUNT(*) AS ?n) DATASET { ?s ?p ?o } GROUP BY ?p",
        "SELECT DISTINCT ?p DATASET { ?s ?p ?o }",
        "SELECT DISTINCT ?o DATASET { ?s ?p ?o }",
        "SELECT (COUNT(DISTINCT ?s) AS ?n) DATASET { ?s ?p ?o }",
        "SELECT ?o (COUNT(*) AS ?n) DATASET { ?s <e:q> ?o } GROUP BY ?o",
        "SELECT ?s ?p ?o DATASET { ?s ?p ?o }",
        "SELECT ?s ?o DATASET { ?s <e:p1> ?o }",
        "SELECT (COUNT(*) AS ?n) DATASET { ?s ?p ?o . ?s <e:p0> ?w }",
        "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g",
        "SELECT (COUNT(*) AS ?n) { GRAPH <e:g1> { ?s ?p ?o } }",
        "SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s <e:q> ?o } }",
        "SELECT (COUNT(*) AS ?n) DATASET { ?s <e:q> <e:a> OPTIONAL { ?s ?p ?o } }",
        "SELECT (COUNT(*) AS ?n) DATASET { ?s <e:q> ?a FILTER EXISTS { ?s ?p ?o } }",
    ];
    let datasets = ["", "FROM <e:g0> FROM <e:g1>", "FROM <e:g2>"];
    let mut ranged = 0;
    for condition in CONDITIONS {
        for query in queries {
            let datasets = if query.contains("DATASET") { &datasets[..] } else { &datasets[..1] };
            for dataset in datasets {
                // the condition goes where ?o is
                let end = query.find("?o }").or_else(|| query.find("?o .")).expect("it has an object") + 2;
                let with = |condition: &str| {
                    let rest = &query[end..];
                    let text = format!(
                        "{PROLOGUE} {} FILTER({condition}) {}",
                        &query[..end],
                        rest.trim_start_matches(" .")
                    );
                    text.replace("DATASET", dataset)
                };
                let text = with(condition);
                let apart = with(&format!("IF({condition}, true, false)"));
                assert_eq!(rows(engine, &text), rows(engine, &apart), "{text}");
                let plan = engine.explain(&text, &QueryOptions::default()).unwrap();
                ranged +=
                    usize::from(plan.contains("POSG") && plan.contains("] if ") && !plan.contains("filter"));
            }
        }
    }
    ranged
}

#[test]
fn ranges_answer_what_conditions_do() {
    let (_dir, engine) = engine(&data(4000));
    let ranged = compare(&engine);
    println!("{ranged} plans with ranges");
    assert!(ranged > 300, "only {ranged} plans have ranges");
}

/// Languages and datatypes of which there are so many that ids do not tell all of them.
#[test]
fn ids_that_tell_no_language_are_asked() {
    let mut data = data(1000);
    for i in 0..4200 {
        data.push_str(&format!("<e:y{i}> <e:q> \"a\"^^<e:d{i}> . "));
    }
    for i in 0..50 {
        data.push_str(&format!("<e:z{i}> <e:q> \"{i}\"@fr, \"{i}\"@x-{i}, \"{i}\"^^<e:late> . "));
    }
    let (_dir, engine) = engine(&data);
    compare(&engine);
    for (condition, count) in
        [("LANG(?o) = \"fr\"", 50), ("DATATYPE(?o) = <e:late>", 50), ("DATATYPE(?o) = <e:d4150>", 1)]
    {
        let text = format!("SELECT ?s {{ ?s ?p ?o FILTER({condition}) }}");
        assert_eq!(rows(&engine, &text).len(), count, "{text}");
    }
}

#[test]
fn only_what_conditions_leave_is_read() {
    let mut data = String::new();
    for i in 0..30_000 {
        let tag = ["en", "de", "fr"][i % 3];
        data.push_str(&format!("<e:x{i}> <e:number> {} ; <e:text> \"some text {i}\"@{tag} . ", i % 1000));
    }
    data.push_str("<e:x1> <e:text> [] . _:b <e:of> <e:x1> .");
    let (_dir, engine) = engine(&data);
    // text, its count, most rows read
    let cases = [
        ("?s ?p ?o FILTER(isLiteral(?o))", 60_000, 100),
        ("?s ?p ?o FILTER(isBlank(?o))", 1, 100),
        ("?s ?p ?o FILTER(isBlank(?s))", 1, 100),
        ("?s ?p ?o FILTER(!isBlank(?s))", 60_001, 100),
        ("?s <e:number> ?o FILTER(isIRI(?s))", 30_000, 100),
        ("?s ?p ?o FILTER(isNumeric(?o))", 30_000, 100),
        ("?s <e:text> ?o FILTER(LANG(?o) = \"de\")", 10_000, 100),
        ("?s <e:text> ?o FILTER(langMatches(LANG(?o), \"EN\"))", 10_000, 100),
        ("?s ?p ?o FILTER(DATATYPE(?o) = <http://www.w3.org/2001/XMLSchema#integer>)", 30_000, 100),
        ("?s <e:number> ?o FILTER(?o >= 500)", 15_000, 100),
        ("?s <e:number> ?o FILTER(?o IN (1, 3, 5.0))", 90, 100),
        ("?s <e:number> ?o FILTER(?o = 1 || ?o > 990)", 300, 100),
    ];
    for (pattern, count, most_read) in cases {
        let text = format!("SELECT (COUNT(*) AS ?n) {{ {pattern} }}");
        let account = Account::alone();
        let options = QueryOptions { account: Some(account.clone()), threads: 1, ..QueryOptions::default() };
        let mut found = Vec::new();
        engine.query(&text, &options).unwrap().for_each(|row| found.push(format!("{row:?}"))).unwrap();
        let read = account.activity().seq;
        println!(
            "{pattern}: {found:?}, {read} rows read\n{}",
            engine.analyze(&text, &QueryOptions::default()).unwrap()
        );
        assert!(found[0].contains(&format!("\"{count}\"")), "{pattern}: {found:?}");
        assert!(read <= most_read, "{pattern}: {read} rows read");
    }
}
