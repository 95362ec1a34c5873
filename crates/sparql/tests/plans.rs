//! The work that plans of analytical queries do: rows that operators put out, look-ups, rows of
//! the indexes, each bounded where a worse plan does many times that. Where the language has a way
//! to ask the question so that the good plan is out of reach, it is asked that way, too, and must
//! break a bound.

mod support;

use std::fmt::Write;
use std::time::Duration;

use snowmelt_sparql::QueryOptions;
use support::made::{Made, Work};

const KINDS: usize = 60;
const THINGS: usize = 2000;
const FEATURES: usize = 100;
const REVIEWS: usize = 10_000;
const WRITERS: usize = 500;
const DAYS: usize = 300;
const OFFERS: usize = 8000;
/// things that have all of twenty properties
const STARS: usize = 500;

/// A tree of kinds; things of them with features; reviews by few writers; offers of few vendors.
fn shop() -> String {
    let mut data = String::new();
    for i in 1..KINDS {
        writeln!(data, "<e:k{i}> <e:sub> <e:k{}> .\n<e:k{i}> <e:name> \"kind {i}\" .", i / 3).unwrap();
    }
    for i in 0..40 {
        writeln!(data, "<e:m{i}> <e:country> <e:c{}> .", i % 5).unwrap();
        writeln!(data, "<e:x{}> <e:special> <e:yes> .", i * 50).unwrap();
    }
    for i in 0..20 {
        writeln!(data, "<e:v{i}> <e:country> <e:c{}> .", i % 5).unwrap();
    }
    for i in 0..THINGS {
        let (kind, maker) = (i % KINDS, i % 40);
        writeln!(data, "<e:x{i}> <e:is> <e:k{kind}> .\n<e:x{i}> <e:made> <e:m{maker}> .").unwrap();
        writeln!(data, "<e:x{i}> <e:label> \"thing {i}\" .\n<e:x{i}> <e:number> {} .", number(i % 500))
            .unwrap();
        for n in 0..5 {
            writeln!(data, "<e:x{i}> <e:has> <e:f{}> .", (i * (2 * n + 1) + n) % FEATURES).unwrap();
        }
        if i < STARS {
            (0..20).for_each(|n| writeln!(data, "<e:x{i}> <e:s{n}> {} .", number(i % (n + 2))).unwrap());
        }
    }
    for i in 0..REVIEWS {
        let (about, by, day) = (i % THINGS, i * 7 % WRITERS, i % DAYS);
        writeln!(data, "<e:r{i}> <e:about> <e:x{about}> .\n<e:r{i}> <e:by> <e:w{by}> .").unwrap();
        writeln!(data, "<e:r{i}> <e:on> \"20{:02}-{:02}-11\"^^<{XSD}date> .", day / 12, day % 12 + 1)
            .unwrap();
        writeln!(data, "<e:r{i}> <e:title> \"on thing {about}, which writer {by} has, review\" .").unwrap();
        if i % 3 == 0 {
            writeln!(data, "<e:r{i}> <e:rating> {} .", number(i % 10)).unwrap();
        }
    }
    for i in 0..OFFERS {
        writeln!(data, "<e:o{i}> <e:of> <e:x{}> .\n<e:o{i}> <e:from> <e:v{}> .", i * 3 % THINGS, i % 20)
            .unwrap();
        writeln!(data, "<e:o{i}> <e:price> {} .\n<e:o{i}> <e:days> {} .", number(i % 997), number(i % 20))
            .unwrap();
    }
    data
}

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

fn number(n: usize) -> String {
    format!("\"{n}\"^^<{XSD}integer>")
}

/// A question, and the most that its answer may take.
struct Case {
    name: &'static str,
    text: &'static str,
    rows: u64,
    /// put out by any operator
    most: u64,
    lookups: u64,
    scanned: u64,
    /// asked so that its plan is worse
    worse: &'static str,
}

impl Case {
    fn excess(&self, work: &Work) -> Option<&'static str> {
        match work {
            work if work.most > self.most => Some("rows"),
            work if work.lookups > self.lookups => Some("look-ups"),
            work if work.scanned > self.scanned => Some("rows scanned"),
            _ => None,
        }
    }
}

fn check(made: &Made, cases: &[Case]) {
    for case in cases {
        let tell = |work: &Work| {
            format!(
                "{} rows, at most {}; {} look-ups, {} scanned",
                work.rows, work.most, work.lookups, work.scanned
            )
        };
        let work = made.work(case.text);
        println!("{}: {}", case.name, tell(&work));
        assert_eq!(work.rows, case.rows, "{}: {}\n{}", case.name, case.text, work.plan);
        let excess = case.excess(&work);
        assert!(
            excess.is_none(),
            "{}: too many {}: {}\n{}",
            case.name,
            excess.unwrap(),
            tell(&work),
            work.plan
        );
        if !case.worse.is_empty() {
            let work = made.work(case.worse);
            println!("    or {}", tell(&work));
            assert!(
                case.excess(&work).is_some(),
                "{}: no bound tells a worse plan: {}",
                case.name,
                tell(&work)
            );
        }
    }
}

#[test]
fn paths_begin_where_there_is_least() {
    let made = Made::of(shop());
    check(
        &made,
        &[
            Case {
                name: "a step, then a closure over what it reaches",
                text: "SELECT (COUNT(*) AS ?n) { ?x <e:is>/<e:sub>+ ?k }",
                rows: 1,
                most: 400,
                lookups: 200,
                scanned: 3000,
                worse: "",
            },
            Case {
                name: "all predicates but some",
                text: "SELECT (COUNT(*) AS ?n) { ?s !(<e:about>|<e:by>|<e:of>) ?o }",
                rows: 1,
                most: 100,
                lookups: 200,
                scanned: 30_000,
                worse: "",
            },
            Case {
                name: "from what a join has bound",
                text: "SELECT ?x ?k { ?x <e:special> <e:yes> ; <e:is> ?c . ?c <e:sub>+ ?k }",
                rows: 120,
                most: 200,
                lookups: 400,
                scanned: 400,
                worse: "",
            },
            Case {
                name: "from the few that a name leaves, though the text begins at the other end",
                text: "SELECT ?a { ?a <e:sub>+ ?b . ?b <e:name> \"kind 3\" }",
                rows: 12,
                most: 60,
                lookups: 100,
                scanned: 200,
                worse: "",
            },
            Case {
                name: "the lowest common ancestor",
                text: "SELECT ?c { <e:k58> <e:sub>* ?c . <e:k55> <e:sub>* ?c FILTER NOT EXISTS { ?d <e:sub> ?c . \
                       <e:k58> <e:sub>* ?d . <e:k55> <e:sub>* ?d } }",
                rows: 1,
                most: 40,
                lookups: 200,
                scanned: 200,
                worse: "",
            },
        ],
    );
}

#[test]
fn joins_of_many_with_many_are_not_made() {
    let made = Made::of(shop());
    check(
        &made,
        &[
            Case {
                name: "counted",
                text: "SELECT (COUNT(*) AS ?n) { ?x <e:has> ?f . ?y <e:has> ?f }",
                rows: 1,
                most: 2000,
                lookups: 400,
                scanned: 25_000,
                worse: "SELECT (COUNT(*) AS ?n) { { SELECT * { ?x <e:has> ?f . ?y <e:has> ?f } LIMIT 1000000000 } }",
            },
            Case {
                name: "different ones",
                text: "SELECT DISTINCT ?x { ?x <e:has> ?f . ?y <e:has> ?f }",
                rows: THINGS as u64,
                most: 11_000,
                lookups: 400,
                scanned: 25_000,
                worse: "SELECT DISTINCT ?x { { SELECT * { ?x <e:has> ?f . ?y <e:has> ?f } LIMIT 1000000000 } }",
            },
            Case {
                name: "grouped",
                text: "SELECT ?f (COUNT(*) AS ?n) { ?x <e:has> ?f . ?y <e:has> ?f } GROUP BY ?f",
                rows: FEATURES as u64,
                most: 2000,
                lookups: 400,
                scanned: 25_000,
                worse: "SELECT ?f (COUNT(*) AS ?n) { { SELECT * { ?x <e:has> ?f . ?y <e:has> ?f } LIMIT 1000000000 } } GROUP BY ?f",
            },
            Case {
                name: "few at the end of a chain of them",
                text: "SELECT (COUNT(DISTINCT ?c) AS ?n) { ?r <e:by> ?w ; <e:about> ?x . ?o <e:of> ?x ; <e:from> ?v . \
                       ?v <e:country> ?c }",
                rows: 1,
                most: 11_000,
                lookups: 25_000,
                scanned: 200_000,
                worse: "SELECT (COUNT(DISTINCT ?c) AS ?n) { { SELECT * { ?r <e:by> ?w ; <e:about> ?x . ?o <e:of> ?x ; \
                        <e:from> ?v . ?v <e:country> ?c } LIMIT 1000000000 } }",
            },
            Case {
                name: "compared with the mean of all of the same thing",
                text: "SELECT ?v (COUNT(?o) AS ?n) { ?x <e:has> <e:f7> . ?o <e:of> ?x ; <e:from> ?v ; <e:price> ?p \
                       { SELECT ?x (AVG(?q) AS ?mean) { ?x <e:has> <e:f7> . ?b <e:of> ?x ; <e:price> ?q } GROUP BY ?x } \
                       FILTER(?p < ?mean) } GROUP BY ?v",
                rows: 4,
                most: 1000,
                lookups: 200,
                scanned: 60_000,
                worse: "",
            },
        ],
    );
}

#[test]
fn the_larger_side_of_a_difference_is_not_read_for_few() {
    let made = Made::of(shop());
    check(
        &made,
        &[
            Case {
                name: "few without many",
                text: "SELECT ?x { ?x <e:special> ?y MINUS { ?r <e:about> ?x } }",
                rows: 0,
                most: 40,
                lookups: 100,
                scanned: 400,
                worse: "SELECT ?x { ?x <e:special> ?y MINUS { { SELECT ?x { ?r <e:about> ?x } LIMIT 1000000000 } } }",
            },
            Case {
                name: "many without few",
                text: "SELECT (COUNT(*) AS ?n) { ?r <e:about> ?x MINUS { ?x <e:special> ?y } }",
                rows: 1,
                most: 3000,
                lookups: 100,
                scanned: 12_000,
                worse: "",
            },
            Case {
                name: "two sorted sides",
                text: "SELECT (COUNT(*) AS ?n) { ?r <e:about> ?x MINUS { ?r <e:rating> ?y } }",
                rows: 1,
                most: 10_000,
                lookups: 100,
                scanned: 14_000,
                worse: "",
            },
            Case {
                name: "two sorted sides, one of them in others",
                text: "SELECT (COUNT(*) AS ?n) { ?r <e:about> ?x FILTER EXISTS { ?r <e:rating> ?y } }",
                rows: 1,
                most: 10_000,
                lookups: 100,
                scanned: 14_000,
                worse: "",
            },
            Case {
                name: "nothing is greater: only the greatest is asked for",
                text: "SELECT ?p { ?o <e:price> ?p FILTER NOT EXISTS { ?q <e:price> ?r FILTER(?r > ?p) } }",
                rows: 8,
                most: 400_000,
                lookups: 20_000,
                scanned: 40_000,
                worse: "",
            },
        ],
    );
}

/// Parts of EXISTS that have only the left side in common are asked one after the other, each by a
/// merge.
#[test]
fn a_star_that_must_exist_is_asked_ray_by_ray() {
    let made = Made::of(shop());
    let exists = "FILTER EXISTS { ?r <e:about> ?x . ?r <e:rating> ?y }";
    let text = format!("SELECT (COUNT(*) AS ?n) {{ ?r <e:on> ?d {exists} }}");
    let work = made.work(&text);
    let rays = work.plan.matches("semi-lookup").count();
    assert!(rays == 2 && !work.plan.contains("nested"), "{}", work.plan);
    assert!(work.most <= 10_000 && work.lookups < 200 && work.scanned < 30_000, "{}", work.plan);
}

#[test]
fn sorted_sides_are_merged() {
    let made = Made::of(shop());
    check(
        &made,
        &[
            Case {
                name: "a star of three",
                text: "SELECT (COUNT(*) AS ?n) { ?r <e:about> ?x ; <e:by> ?w ; <e:title> ?t }",
                rows: 1,
                most: 10_000,
                lookups: 200,
                scanned: 32_000,
                worse: "",
            },
            Case {
                name: "a star of twenty",
                text: "SELECT (COUNT(*) AS ?n) { ?x <e:s0> ?a ; <e:s1> ?b ; <e:s2> ?c ; <e:s3> ?d ; <e:s4> ?e ; <e:s5> ?f ; \
                       <e:s6> ?g ; <e:s7> ?h ; <e:s8> ?i ; <e:s9> ?j ; <e:s10> ?k ; <e:s11> ?l ; <e:s12> ?m ; <e:s13> ?o ; \
                       <e:s14> ?p ; <e:s15> ?q ; <e:s16> ?r ; <e:s17> ?s ; <e:s18> ?t ; <e:s19> ?u }",
                rows: 1,
                most: 500,
                lookups: 500,
                scanned: 12_000,
                worse: "",
            },
            Case {
                name: "an optional part of many",
                text: "SELECT (COUNT(?y) AS ?n) { ?r <e:about> ?x OPTIONAL { ?r <e:rating> ?y } }",
                rows: 1,
                most: 10_000,
                lookups: 200,
                scanned: 16_000,
                worse: "",
            },
            Case {
                name: "optional parts one behind the other",
                text: "SELECT (COUNT(?l) AS ?n) { ?o <e:days> ?d OPTIONAL { ?o <e:of> ?x OPTIONAL { ?x <e:number> ?l } } }",
                rows: 1,
                most: 8000,
                lookups: 400,
                scanned: 50_000,
                worse: "",
            },
        ],
    );
}

#[test]
fn each_value_is_computed_once() {
    let made = Made::of(shop());
    check(
        &made,
        &[Case {
            name: "years of dates",
            text: "SELECT ?y (COUNT(*) AS ?n) { ?r <e:on> ?d } GROUP BY (YEAR(?d) AS ?y)",
            rows: 25,
            most: 400,
            lookups: 1000,
            scanned: 11_000,
            worse: "SELECT ?y (COUNT(*) AS ?n) { { SELECT * { ?r <e:on> ?d } LIMIT 1000000000 } } GROUP BY (YEAR(?d) AS ?y)",
        }],
    );
}

/// The best few of everything are kept in little memory, each different one once.
#[test]
fn the_first_of_everything_takes_no_room() {
    let made = Made::of(shop());
    let text = "SELECT ?o { ?s ?p ?o } ORDER BY ?o LIMIT 5";
    let work = made.work(text);
    println!("{} look-ups, {} scanned", work.lookups, work.scanned);
    // about as many as there are different objects that have a text
    assert!(work.lookups < 30_000 && work.scanned < 110_000, "{} look-ups\n{}", work.lookups, work.plan);
    let options = QueryOptions { threads: 1, memory: Some(2 << 20), ..QueryOptions::default() };
    let mut rows = 0;
    made.engine.query(text, &options).unwrap().for_each(|_| rows += 1).unwrap();
    assert_eq!(rows, 5);
}

/// A right side that is run for each batch of the left one may have parts that do not depend on
/// it. They are run again all the same, and so not in threads.
#[test]
fn parts_that_run_again_are_not_forked() {
    let made = Made::of(shop());
    let groups = [
        "SELECT (COUNT(*) AS ?n) { ?r <e:of> ?x }",
        "SELECT (COUNT(DISTINCT ?x) AS ?n) { ?r <e:of> ?x }",
        "SELECT (COUNT(*) AS ?n) { ?x <e:is> ?x . ?k <e:name> \"kind 3\" }",
        "SELECT ?x (COUNT(*) AS ?n) { ?r <e:of> ?x } GROUP BY ?x HAVING (COUNT(*) > 1)",
        "SELECT DISTINCT ?x { ?r <e:of> ?x FILTER(STRLEN(STR(?x)) > 3) }",
        "SELECT ?up (COUNT(*) AS ?n) { ?x <e:is> ?up . ?y <e:is> ?z } GROUP BY ?up",
    ];
    for group in groups {
        for query in [
            format!("SELECT * {{ ?k <e:sub> ?up LATERAL {{ {group} }} }}"),
            format!("SELECT * {{ ?k <e:sub> ?up LATERAL {{ {{ {group} }} FILTER(?k != <e:k3>) }} }}"),
            format!("SELECT * {{ ?k <e:sub> ?up LATERAL {{ ?k <e:name> ?name {{ {group} }} }} }}"),
            format!("SELECT * {{ ?k <e:sub> ?up LATERAL {{ ?up <e:sub> ?top LATERAL {{ {group} }} }} }}"),
            format!(
                "SELECT * {{ ?k <e:sub> ?up LATERAL {{ ?up <e:sub> ?top LATERAL {{ {{ {group} }} ?x <e:is> ?k }} }} }}"
            ),
            // of the right side only that there is a row is wanted, which is asked of a union
            format!(
                "SELECT (COUNT(DISTINCT *) AS ?all) {{ ?k <e:sub> ?up . ?m <e:country> <e:c1> LATERAL {{ {{ {group} }} \
                 {{ ?q <e:special> <e:no> . ?up <e:sub>? ?q }} UNION {{ ?up <e:name> ?name FILTER EXISTS {{ ?m <e:country> ?up }} }} }} }}"
            ),
            format!("SELECT * {{ ?k <e:sub> ?up FILTER EXISTS {{ {{ {group} }} FILTER(?k != <e:k3>) }} }}"),
            format!("SELECT * {{ ?k <e:sub> ?up OPTIONAL {{ {{ {group} }} FILTER(?k != <e:k3>) }} }}"),
            format!(
                "SELECT * {{ ?k <e:sub> ?up LATERAL {{ {{ {group} }} UNION {{ ?k <e:name> ?name }} }} }}"
            ),
        ] {
            let answer = |threads, thread_work| {
                let options =
                    QueryOptions { threads, thread_work, batch_rows: Some(7), ..QueryOptions::default() };
                let mut rows = Vec::new();
                let found = made.engine.query(&query, &options).unwrap();
                found.for_each(|row| rows.push(format!("{row:?}"))).unwrap();
                rows.sort();
                rows
            };
            let alone = answer(1, None);
            assert!(!alone.is_empty(), "{query}");
            assert_eq!(answer(3, Some(Duration::ZERO)), alone, "{query}");
        }
    }
}
