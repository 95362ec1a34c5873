//! Parameters stand where the constants stood: the tree of a text with its shape, filled in, is the
//! tree without.

use std::path::Path;

use snowmelt_grammar::languages;
use snowmelt_syntax::tree::Query;
use snowmelt_syntax::{ParseOptions, Shape, parse_query, shape_of};

const BASE: &str = "http://example.org/dir/file";

/// Why the two trees of a text differ, and how many parameters it has.
fn compared(text: &str) -> Result<usize, String> {
    let options = ParseOptions { base: Some(BASE), ..ParseOptions::default() };
    let plain = parse_query(text, &options);
    let Some(shape) = shape_of(text) else {
        return if plain.is_err() { Ok(0) } else { Err("no shape".to_owned()) };
    };
    let shaped = parse_query(text, &ParseOptions { shape: Some(&shape), ..options });
    match (plain, shaped) {
        (Ok(plain), Ok(shaped)) => {
            let (wanted, filled) = (told(&plain), filled(&told(&shaped), &shape));
            let wanted = wanted.replace("Const(", "Term(");
            if wanted == filled { Ok(shape.params.len()) } else { Err(format!("{filled}\n  {wanted}")) }
        }
        (Err(_), Err(_)) => Ok(0),
        (plain, shaped) => Err(format!("{:?} {:?}", plain.err(), shaped.err())),
    }
}

/// The tree as text, without the table of names.
fn told(query: &Query) -> String {
    format!("{:?} {:?} {:?}", query.form, query.dataset, query.pattern)
}

/// A tree as text, with its terms in the places of their parameters.
fn filled(tree: &str, shape: &Shape) -> String {
    let mut parts = tree.split("Param(");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = part.split_once(')').unwrap();
        let term = &shape.params[number.parse::<usize>().unwrap()];
        out += &format!("Term({term:?}){rest}");
    }
    out.replace("Const(", "Term(")
}

#[test]
fn parameters_may_stand_in_each_place_of_a_query() {
    for (text, params) in [
        ("ASK { <u:s> <u:p> <u:o>, 'l', 1 }", 5),
        ("ASK { ?s <u:p>/!(<u:q>|^<u:r>)|^<u:t>* ?o }", 4),
        ("ASK { GRAPH <u:g> { ?s ?p ?o } SERVICE <u:v> { ?s ?p ?o } }", 2),
        ("SELECT (1 + 2.5 AS ?x) { FILTER(?x IN (<u:a>, 'b'@en, 'c'^^<u:t>) && REGEX(?x, 'd')) }", 6),
        ("ASK { VALUES (?x ?y) { (<u:a> 1) (UNDEF <<( <u:s> <u:p> 'o' )>>) } }", 5),
        ("DESCRIBE <u:a> ?x <u:b>", 2),
        ("CONSTRUCT { <u:s> <u:p> (1 2) } WHERE { << <u:s> <u:p> 1 ~ <u:r> >> <u:q> [ <u:p> 2 ] }", 6),
        ("SELECT (SUM(?o * 2) AS ?x) { ?s ?p ?o } GROUP BY (?s + 3) HAVING(?x > 4) ORDER BY (?x + 5)", 4),
        ("SELECT * { ?s ?p 7 LATERAL { SELECT * { ?s ?p 8 } LIMIT 9 } } LIMIT 10 OFFSET 11", 2),
    ] {
        assert_eq!(compared(text), Ok(params), "{text}");
    }
}

#[test]
fn trees_with_parameters_are_those_of_the_grammar() {
    let mut texts = 0;
    for language in languages().into_iter().filter(|language| language.name == "query") {
        for site in language.grammar.sites() {
            let text = site.document(3);
            compared(&text).unwrap_or_else(|fault| panic!("{text}\n  {fault}"));
            texts += 1;
        }
    }
    assert!(texts > 50, "{texts}");
}

#[test]
fn trees_with_parameters_are_those_of_the_suites() {
    let root = std::env::var_os("SNOWMELT_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        |shared| Path::new(&shared).to_owned(),
    );
    let suites = root.join("w3c/sparql");
    if !suites.exists() {
        eprintln!("skipped: {} is not there (set SNOWMELT_SHARED)", suites.display());
        return;
    }
    let (mut folders, mut texts, mut params) = (vec![suites], 0, 0);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rq") {
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                params += compared(&text).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
                texts += 1;
            }
        }
    }
    assert!(texts > 500 && params > 300, "{texts} texts, {params} parameters");
}

#[test]
#[should_panic(expected = "the shape is that of another text")]
fn a_shape_is_refused_with_another_text() {
    let shape = shape_of("ASK { ?s ?p 1 }").unwrap();
    let options = ParseOptions { shape: Some(&shape), ..ParseOptions::default() };
    let _ = parse_query("ASK { ?s ?p 10 }", &options);
}
