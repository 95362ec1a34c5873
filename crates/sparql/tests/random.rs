//! Random graphs and random queries: our answers against those of oxigraph, in memory.
//!
//! Queries are made over everything that is implemented. What the two may do differently with right is not asked: the order and
//! text of GROUP_CONCAT, comparisons of dates (oxigraph has none), which rows a LIMIT keeps. `SNOWMELT_SEED=n` repeats a run,
//! `SNOWMELT_ROUNDS=n` makes it longer.

mod common;

#[path = "random/generate.rs"]
mod generate;

use common::answer::{self, Answer, Row, Solutions};
use common::order;
use common::settings::{Fixture, Settings};
use generate::Generator;
use oxigraph::sparql::{QueryResults, SparqlEvaluator};
use oxigraph::store::Store;
use oxrdf::{NamedNode, Quad, Term, Triple};

/// The answer of the other one.
fn oracle(store: &Store, query: &str) -> Result<Answer, String> {
    let results = SparqlEvaluator::new()
        .parse_query(query)
        .map_err(|e| e.to_string())?
        .on_store(store)
        .execute()
        .map_err(|e| e.to_string())?;
    Ok(match results {
        QueryResults::Boolean(answer) => Answer::Boolean(answer),
        QueryResults::Graph(triples) => {
            Answer::Graph(triples.collect::<Result<Vec<Triple>, _>>().map_err(|e| e.to_string())?)
        }
        QueryResults::Solutions(solutions) => {
            let vars = answer::variables(solutions.variables());
            let mut rows: Vec<Row> = Vec::new();
            for solution in solutions {
                let solution = solution.map_err(|e| e.to_string())?;
                rows.push(vars.iter().map(|v| solution.get(v.as_str()).cloned()).collect());
            }
            Answer::Solutions(Solutions { vars, rows })
        }
    })
}

/// Blank nodes have other names there: all become one.
fn anonymous(mut answer: Answer) -> Answer {
    let node = || NamedNode::new_unchecked("test:blank");
    match &mut answer {
        Answer::Solutions(solutions) => {
            for cell in solutions.rows.iter_mut().flatten().flatten().filter(|t| t.is_blank_node()) {
                *cell = node().into();
            }
        }
        Answer::Graph(triples) => {
            for t in triples {
                if t.subject.is_blank_node() {
                    t.subject = node().into();
                }
                if t.object.is_blank_node() {
                    t.object = Term::from(node());
                }
            }
        }
        Answer::Boolean(_) => {}
    }
    answer
}

fn check(fixture: &Fixture, store: &Store, query: &str) -> Result<(), String> {
    let shape = order::shape(query);
    let actual = anonymous(fixture.answer(query, None).map_err(|e| format!("refused: {e}"))?);
    if let (Answer::Solutions(actual), true) = (&actual, shape.is_cut()) {
        // Which rows are kept is open; how many is not, and that they are rows of the whole.
        let expected = oracle(store, query)?;
        let Answer::Solutions(expected) = expected else { return Err("not solutions".to_owned()) };
        if actual.rows.len() != expected.rows.len() {
            return Err(format!("{} rows instead of {}", actual.rows.len(), expected.rows.len()));
        }
        shape.check(actual)?;
        let Answer::Solutions(all) = anonymous(oracle(store, &order::uncut(query))?) else { unreachable!() };
        let (strange, _) = answer::unmatched(&actual.arranged(&all.vars).rows, &all.rows);
        return if strange.is_empty() { Ok(()) } else { Err(format!("strange row {}", answer::show(&strange[0]))) };
    }
    if let Answer::Solutions(actual) = &actual {
        shape.check(actual)?;
    }
    answer::same(&actual, &anonymous(oracle(store, query)?))
}

fn load(quads: &[Quad]) -> Store {
    let store = Store::new().expect("a store in memory");
    quads.iter().for_each(|q| store.insert(q).map(|_| ()).expect("memory is writable"));
    store
}

fn run(settings: &[Settings], default_graphs: u64, queries_per_graph: u64) {
    let seed = common::seed();
    eprintln!("SNOWMELT_SEED={seed}");
    let graphs = std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(default_graphs);
    for round in 0..graphs {
        let mut generator = Generator::new(seed.wrapping_add(round));
        let quads = generator.graph();
        let store = load(&quads);
        let settings = &settings[round as usize % settings.len()];
        let fixture = Fixture::open(&quads, settings);
        for number in 0..queries_per_graph {
            let query = generator.query();
            if let Err(why) = check(&fixture, &store, &query) {
                let data = String::from_utf8(common::data::n_quads(&quads)).expect("N-Quads are UTF-8");
                panic!(
                    "SNOWMELT_SEED={seed}, round {round}, query {number}, {}: {why}\n{query}\n\ndata:\n{data}",
                    settings.name
                );
            }
        }
    }
}

#[test]
fn random_queries() {
    run(&[Settings::default()], 20, 60);
}

#[test]
fn random_queries_under_hostile_settings() {
    run(&Settings::hostile(), 22, 30);
}
