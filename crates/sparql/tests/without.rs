//! Groups of a product without some of its pairs: the answers are those of the product made row by
//! row, and the work is that of the pairs.
//!
//! A binds ?k and ?f, B binds ?p and ?v, and the pairs are of ?f and ?p. `SNOWMELT_SEED=n` asks
//! other queries, `SNOWMELT_ROUNDS=n` more of them.

#[path = "random/choice.rs"]
#[allow(dead_code, reason = "other generators choose more")]
mod choice;

use choice::Choice;
use snowmelt_database::{Account, OpenOptions};
use snowmelt_graph::GraphDatabase;
use snowmelt_sparql::{QueryEngine, QueryOptions, UpdateOptions};

const PREFIX: &str = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> ";

/// Values whose sums are the same in any order. In a list no two are equal and differ.
const VALUES: [&[&str]; 8] = [
    &["1", "3", "-7", "1001"],
    &["1", "3", "2.25", "-7.25"],
    &["1", "3", "\"0.5\"^^xsd:float", "\"-2.5\"^^xsd:float", "2.25", "\"16.75\"^^xsd:double"],
    &["1", "\"0.5\"^^xsd:float", "\"INF\"^^xsd:float", "\"7.5\"^^xsd:float"],
    &["\"0.75\"^^xsd:double", "\"NaN\"^^xsd:double", "\"-INF\"^^xsd:float", "\"INF\"^^xsd:double", "5"],
    &["1", "3", "5", "7", "9", "11", "\"a\"", "<e:iri>", "\"a text that is too long for an id\"@en"],
    &["\"P1D\"^^xsd:dayTimeDuration", "\"PT3H\"^^xsd:dayTimeDuration", "\"-PT1M\"^^xsd:dayTimeDuration"],
    &[
        "9223372036854775807",
        "9223372036854775806",
        "\"170141183460469231731687303715884105727\"^^xsd:integer",
    ],
];

fn engine() -> (tempfile::TempDir, QueryEngine) {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions { memory_bytes: 64 << 20, direct: false, ..OpenOptions::default() };
    let engine = QueryEngine::new(GraphDatabase::create(&dir.path().join("db"), &[], &options).unwrap());
    (dir, engine)
}

/// Triples, of a graph each; none of them at all for some predicates.
fn data(choice: &mut Choice, graphs: &[&str]) -> String {
    let values = choice.pick(&VALUES);
    let mut text = String::new();
    let mut add = |choice: &mut Choice, triple: String| {
        let times = if choice.chance(20) { 2 } else { 1 };
        for _ in 0..times {
            match choice.pick(graphs) {
                "" => text.push_str(&format!("{triple} . ")),
                graph => text.push_str(&format!("GRAPH <{graph}> {{ {triple} }} ")),
            }
        }
    };
    let (xs, ys) = (choice.within(1..8), choice.within(1..20));
    let sizes = [20, 12, 30, 30, 60].map(|most| if choice.chance(6) { 0 } else { choice.within(1..=most) });
    let [of_a, tags, of_b, prices, pairs] = sizes;
    for i in 0..of_a {
        let x = choice.up_to(xs);
        add(choice, format!("<e:k{}> <e:of> <e:f{x}>", i % 6));
    }
    for _ in 0..tags {
        let (x, tag) = (choice.up_to(xs), choice.up_to(4));
        add(choice, format!("<e:f{x}> <e:tag> {tag}"));
    }
    for i in 0..of_b {
        let y = choice.up_to(ys);
        add(choice, format!("<e:o{i}> <e:about> <e:p{y}>"));
    }
    for i in 0..prices {
        let price = choice.pick(values);
        add(choice, format!("<e:o{i}> <e:price> {price}"));
    }
    let full = choice.chance(20).then(|| choice.up_to(xs));
    for y in 0..ys {
        if let Some(x) = full {
            add(choice, format!("<e:p{y}> <e:has> <e:f{x}>"));
        }
    }
    for _ in 0..pairs {
        // some of things that neither side has
        let (x, y) = (choice.up_to(xs + 2), choice.up_to(ys + 2));
        add(choice, format!("<e:p{y}> <e:has> <e:f{x}>"));
    }
    text
}

/// A query, and the one that makes the product first.
fn query(choice: &mut Choice, from: &str) -> [String; 2] {
    let a = choice.pick(&[
        "?k <e:of> ?f",
        "?k <e:of> ?f",
        "{ SELECT DISTINCT ?f { ?z <e:of> ?f } }",
        "?k <e:of> ?f . ?f <e:tag> ?t",
        "?k <e:of> ?f OPTIONAL { ?f <e:tag> ?t }",
        "VALUES (?k ?f) { (1 <e:f0>) (2 <e:f0>) (1 <e:f1>) (1 <e:f1>) (3 <e:f99>) }",
        "?k <e:of> ?f FILTER(?k != <e:k1>)",
    ]);
    let b = choice.pick(&[
        "?o <e:about> ?p . ?o <e:price> ?v",
        "?o <e:about> ?p . ?o <e:price> ?v",
        "?o <e:about> ?p OPTIONAL { ?o <e:price> ?v }",
        "?o <e:about> ?p . ?o <e:price> ?v . ?p <e:has> ?w",
        "?o <e:about> ?p . ?o <e:price> ?v FILTER(?p != <e:p0>)",
        "{ SELECT DISTINCT ?p ?v { ?o <e:about> ?p . ?o <e:price> ?v } }",
        "?o <e:about> ?p . ?o <e:price> ?v FILTER EXISTS { ?p <e:has> ?w }",
    ]);
    let pairs = choice.pick(&[
        "FILTER NOT EXISTS { ?p <e:has> ?f }",
        "FILTER NOT EXISTS { ?p <e:has> ?f }",
        "MINUS { ?p <e:has> ?f }",
        "FILTER NOT EXISTS { ?p <e:has> ?f . ?f <e:tag> ?n FILTER(?n > 0) }",
        "FILTER NOT EXISTS { { ?p <e:has> ?f } UNION { ?q <e:has> ?f . ?p <e:has> ?g . ?u <e:about> ?q } }",
    ]);
    let has_k = !a.contains("DISTINCT");
    let keys = choice.pick(&["", "?f", "?f", "?k", "?k ?f", "?k ?t"]);
    let keys = if has_k { keys } else { keys.split_whitespace().next().map_or("", |_| "?f") };
    let mut aggregates = String::new();
    for (number, aggregate) in [
        "COUNT(*)",
        "COUNT(?v)",
        "SUM(?v)",
        "AVG(?v)",
        "MIN(?v)",
        "MAX(?v)",
        "SUM(?v * 2)",
        "MAX(STR(?v))",
        "AVG(xsd:float(xsd:string(?v)))",
        "SUM(COALESCE(?v, 5))",
        "SAMPLE(\"x\")",
        "MIN(DISTINCT ?v)",
    ]
    .into_iter()
    .enumerate()
    {
        if choice.chance(35) {
            aggregates.push_str(&format!(" ({aggregate} AS ?a{number})"));
        }
    }
    if keys.is_empty() && aggregates.is_empty() {
        aggregates.push_str(" (COUNT(*) AS ?n)");
    }
    let by = if keys.is_empty() { String::new() } else { format!("GROUP BY {keys}") };
    let (first, second) = if choice.chance(50) { (a, b) } else { (b, a) };
    let product = match choice.up_to(2) {
        0 => format!("{{ {first} }} {{ {second} }} {pairs}"),
        _ => format!("{first} . {{ {second} }} {pairs}").replace("} .", "}"),
    };
    let select = format!("{PREFIX}SELECT {keys}{aggregates} {from} {{");
    [
        format!("{select} {product} }} {by}"),
        format!("{select} {{ SELECT * {{ {product} }} LIMIT 1000000000 }} }} {by}"),
    ]
}

fn rows(engine: &QueryEngine, text: &str, options: &QueryOptions) -> Vec<String> {
    let mut rows = Vec::new();
    let found = engine.query(text, options).unwrap_or_else(|error| panic!("{text}: {error}"));
    found.for_each(|row| rows.push(format!("{row:?}"))).unwrap_or_else(|error| panic!("{text}: {error}"));
    rows.sort();
    rows
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn groups_are_those_of_the_product() {
    let seed = number("SNOWMELT_SEED", 1);
    let graphs: [(&[&str], &str); 3] =
        [(&[""], ""), (&["", "e:g1"], ""), (&["e:g1", "e:g2"], "FROM <e:g1> FROM <e:g2>")];
    let (mut asked, mut without) = (0, 0);
    for round in 0..number("SNOWMELT_ROUNDS", 60) {
        let mut choice = Choice::new(seed.wrapping_mul(1_000_003) + round);
        let (graphs, from) = choice.pick(&graphs);
        let (_dir, engine) = engine();
        let data = format!("{PREFIX}INSERT DATA {{ {} }}", data(&mut choice, graphs));
        engine.update(&data, &UpdateOptions::default()).unwrap();
        for _ in 0..20 {
            let [text, product] = query(&mut choice, from);
            let batch_rows = choice.pick(&[None, Some(1), Some(3)]);
            let options = QueryOptions { batch_rows, threads: 1, ..QueryOptions::default() };
            let plan = |text| engine.explain(text, &options).unwrap();
            asked += 1;
            without += usize::from(plan(&text).contains("group without"));
            assert!(!plan(&product).contains("group without"), "{product}");
            let (found, wanted) = (rows(&engine, &text, &options), rows(&engine, &product, &options));
            assert!(
                found == wanted,
                "seed {seed}, round {round}:\n{text}\n{data}\n{found:#?}\nnot\n{wanted:#?}\n{}",
                plan(&text)
            );
        }
    }
    println!("{without} of {asked} without the product");
    assert!(without * 3 > asked, "{without} of {asked} without the product");
}

/// Things of which each has a few of many features, and offers of them.
fn shop(things: usize, features: usize) -> String {
    let mut data = String::new();
    for i in 0..things {
        data.push_str(&format!(
            "<e:p{i}> a <e:T> ; <e:has> <e:f{}>, <e:f{}>, <e:f{}> . ",
            i % features,
            (i * 7 + 1) % features,
            (i * 13 + 5) % features
        ));
        for n in 0..2 {
            let price = (i * 31 + n * 17) % 1000;
            data.push_str(&format!("<e:o{i}_{n}> <e:about> <e:p{i}> ; <e:price> \"{price}.5\" . "));
        }
    }
    data
}

#[test]
fn the_work_is_that_of_the_pairs() {
    let (_dir, engine) = engine();
    let (things, features) = (4000, 300);
    let data = format!("INSERT DATA {{ {} }}", shop(things, features));
    engine.update(&data, &UpdateOptions::default()).unwrap();
    let product = "{ SELECT DISTINCT ?f { ?z a <e:T> ; <e:has> ?f } } ?p a <e:T> . \
                   ?o <e:about> ?p ; <e:price> ?v FILTER NOT EXISTS { ?p <e:has> ?f }";
    let select = format!("{PREFIX}SELECT ?f (AVG(xsd:float(xsd:string(?v))) AS ?x) (COUNT(*) AS ?n) {{");
    let text = format!("{select} {product} }} GROUP BY ?f");
    let account = Account::alone();
    let options = QueryOptions { account: Some(account.clone()), threads: 1, ..QueryOptions::default() };
    let plan = engine.analysis(&text, &options).unwrap();
    let found: u64 = plan.steps.iter().filter_map(|step| step.measured.as_ref()).map(|m| m.rows).sum();
    let activity = account.activity();
    println!("{plan}");
    let step = plan.steps.iter().find(|step| step.operator == "group without").expect("it is in the plan");
    assert_eq!(step.detail, "?f ?p by ?f (2 aggregates)");
    assert_eq!(step.inputs.len(), 3, "two sides and the pairs");
    // of the product's 2,400,000
    assert!(found < 100_000, "{found} rows\n{plan}");
    assert!(activity.rnd < 1_000 && activity.seq < 100_000, "{activity:?}\n{plan}");
    let by_row = format!("{select} {{ SELECT * {{ {product} }} LIMIT 1000000000 }} }} GROUP BY ?f");
    let options = QueryOptions::default();
    assert!(rows(&engine, &text, &options) == rows(&engine, &by_row, &options));
}

/// Where the groups would be others, or parts of them do not tell, the product is made.
#[test]
fn other_groups_are_of_the_product() {
    let (_dir, engine) = engine();
    let data = format!("INSERT DATA {{ {} }}", shop(400, 30));
    engine.update(&data, &UpdateOptions::default()).unwrap();
    let (a, b) = ("?q <e:has> ?f", "?o <e:about> ?p ; <e:price> ?v");
    let usual = ("?f (COUNT(*) AS ?n)", "NOT EXISTS { ?p <e:has> ?f }", "?f");
    let cases = [
        (true, usual),
        (false, ("?p (COUNT(?f) AS ?n)", usual.1, "?p ?f")),
        (false, ("?f (COUNT(DISTINCT ?v) AS ?n)", usual.1, "?f")),
        (false, ("?f (GROUP_CONCAT(?v) AS ?n)", usual.1, "?f")),
        (false, ("?f (SUM(RAND()) AS ?n)", usual.1, "?f")),
        (false, ("?f (MAX(CONCAT(STR(?f), ?v)) AS ?n)", usual.1, "?f")),
        (false, ("?f (COUNT(*) AS ?n)", "NOT EXISTS { ?p <e:has> ?f FILTER(?q != ?p) }", "?f")),
        (false, ("?f (COUNT(*) AS ?n)", "NOT EXISTS { ?p <e:has> ?f . ?q <e:has> ?f }", "?f")),
        (false, ("?f (COUNT(*) AS ?n)", "EXISTS { ?p <e:has> ?f }", "?f")),
    ];
    for (is_without, (select, exists, by)) in cases {
        let text = format!("SELECT {select} {{ {a} . {b} FILTER {exists} }} GROUP BY {by}");
        let plan = engine.explain(&text, &QueryOptions::default()).unwrap();
        assert_eq!(plan.contains("group without"), is_without, "{text}\n{plan}");
    }
}
