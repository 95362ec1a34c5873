//! Random graphs and random queries: our answers against those of oxigraph, in memory.
//!
//! Queries are made over everything that is implemented. What the two may do differently with
//! right is not asked: the order and text of GROUP_CONCAT, comparisons of dates (oxigraph has
//! none), the text of doubles, which rows a LIMIT keeps. `SNOWMELT_SEED=n` (or `new`) asks
//! other queries, `SNOWMELT_ROUNDS=n` makes it longer, `SNOWMELT_ROUND=n` runs one round of a seed.
//!
//! EXISTS has queries of its own and a naive evaluator that follows the definition: oxigraph
//! does not show the solution at hand to what a sub-select inside EXISTS hides. So have scopes,
//! graphs and paths, where oxigraph has faults of its own.

mod support;

#[path = "random/choice.rs"]
mod choice;
#[path = "random/exists.rs"]
mod exists;
#[path = "random/generate.rs"]
mod generate;
#[path = "random/lateral.rs"]
mod lateral;
#[path = "random/naive.rs"]
mod naive;
#[path = "random/paths.rs"]
mod paths;
#[path = "random/scopes.rs"]
mod scopes;
#[path = "random/triple_terms.rs"]
mod triple_terms;

use oxigraph::sparql::{QueryResults, SparqlEvaluator};
use oxigraph::store::Store;
use oxrdf::{NamedNode, Quad, Term, Triple};
use snowmelt_sparql::QueryError;

use exists::Exists;
use generate::{Generator, Query};
use lateral::Lateral;
use naive::Naive;
use paths::Paths;
use scopes::Scopes;
use support::answer::{self, Answer, Row, Solutions};
use support::order;
use support::settings::{Fixture, Settings};
use triple_terms::TripleTerms;

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
            solutions.rows.iter_mut().flatten().flatten().for_each(without_names);
        }
        Answer::Graph(triples) => {
            for t in triples {
                if t.subject.is_blank_node() {
                    t.subject = node().into();
                }
                without_names(&mut t.object);
            }
        }
        Answer::Boolean(_) => {}
    }
    answer
}

fn without_names(term: &mut Term) {
    match term {
        Term::BlankNode(_) => *term = NamedNode::new_unchecked("test:blank").into(),
        Term::Triple(triple) => {
            if triple.subject.is_blank_node() {
                triple.subject = NamedNode::new_unchecked("test:blank").into();
            }
            without_names(&mut triple.object);
        }
        Term::NamedNode(_) | Term::Literal(_) => {}
    }
}

/// Whether the query was answered, or refused: as not supported, or by both as no SPARQL (a
/// BIND of a variable that a sub-select has). The other one is asked without order and limits:
/// it does not order terms of different types consistently.
fn check(fixture: &Fixture, store: &Store, query: &Query) -> Result<bool, String> {
    let text = format!("{}{}", query.body, query.tail);
    let actual = match fixture.answer(&text, None) {
        Err(QueryError::Unsupported { .. }) => return Ok(false),
        Err(QueryError::Parse { .. }) if oracle(store, &query.body).is_err() => return Ok(false),
        other => other.map_err(|e| format!("refused: {e}"))?,
    };
    let shape = order::shape(&text);
    if let Answer::Solutions(actual) = &actual {
        shape.check(actual)?;
    }
    let (actual, all) = (anonymous(actual), anonymous(oracle(store, &query.body)?));
    let (Answer::Solutions(rows), Answer::Solutions(all), true) = (&actual, &all, shape.is_cut()) else {
        return answer::same(&actual, &all).map(|()| true);
    };
    // Which rows are kept is open; how many is not, and that they are rows of the whole.
    let left = all.rows.len().saturating_sub(shape.offset);
    let expected = shape.limit.map_or(left, |limit| left.min(limit));
    if rows.rows.len() != expected {
        return Err(format!("{} rows instead of {expected}", rows.rows.len()));
    }
    let (strange, _) = answer::unmatched(&rows.arranged(&all.vars).rows, &all.rows);
    if strange.is_empty() { Ok(true) } else { Err(format!("strange row {}", answer::show(&strange[0]))) }
}

/// Whether the naive evaluator, which follows the definition, agrees with ours where oxigraph does
/// not: it shows the ?g of GRAPH ?g to an EXISTS inside, for example.
fn is_as_defined(fixture: &Fixture, quads: &[Quad], query: &Query) -> bool {
    let text = format!("{}{}", query.body, query.tail);
    let (Ok(ours), Ok(defined)) = (fixture.answer(&text, None), naive::answer(&Naive::new(quads), &text))
    else {
        return false;
    };
    answer::same(&anonymous(ours), &anonymous(defined)).is_ok()
}

fn load(quads: &[Quad]) -> Store {
    let store = Store::new().expect("a store in memory");
    quads.iter().for_each(|q| store.insert(q).map(|_| ()).expect("memory is writable"));
    store
}

/// The rounds to run: each has a graph of its own, and does not depend on those before it.
fn rounds(default: u64) -> std::ops::Range<u64> {
    let set = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    match set("SNOWMELT_ROUND") {
        Some(round) => round..round + 1,
        None => 0..set("SNOWMELT_ROUNDS").unwrap_or(default),
    }
}

/// The data of a round that is run alone.
fn tell_of_one(quads: &[Quad]) {
    if std::env::var_os("SNOWMELT_ROUND").is_some() {
        quads.iter().for_each(|quad| eprintln!("{quad} ."));
    }
}

fn run(settings: &[Settings], default_graphs: u64, queries_per_graph: u64) {
    let seed = snowmelt_io::test_seed(1);
    let (mut answered, mut refused, mut settled, mut wrong) = (0, 0, 0, Vec::new());
    for round in rounds(default_graphs) {
        let mut generator = Generator::new(seed.wrapping_mul(1_000_003).wrapping_add(round));
        let quads = generator.graph();
        tell_of_one(&quads);
        let store = load(&quads);
        let settings = &settings[round as usize % settings.len()];
        let fixture = Fixture::open(&quads, settings);
        for number in 0..queries_per_graph {
            let query = generator.query();
            match check(&fixture, &store, &query) {
                Ok(true) => answered += 1,
                Ok(false) => refused += 1,
                Err(_) if is_as_defined(&fixture, &quads, &query) => settled += 1,
                Err(why) => {
                    wrong.push(format!(
                        "round {round}, query {number}, {}: {why}\n{}{}\n",
                        settings.name, query.body, query.tail
                    ));
                }
            }
        }
    }
    eprintln!("{answered} queries answered, {refused} refused, {settled} settled by the definition");
    assert!(
        settled <= 1 + answered / 1000,
        "the naive evaluator settles {settled} of {answered}: look at some"
    );
    assert!(answered > 20 * refused, "{refused} refused of {answered}: is something missing?");
    wrong.sort_by_key(String::len); // the shortest first
    let shown = wrong[..wrong.len().min(3)].join("\n");
    assert!(wrong.is_empty(), "SNOWMELT_SEED={seed}: {} answers are wrong:\n{shown}", wrong.len());
}

#[test]
fn random_queries() {
    run(&[Settings::default()], 20, 40);
}

#[test]
fn random_queries_under_hostile_settings() {
    run(&Settings::hostile(), 22, 20);
}

/// A pattern as the WHERE of an update: what it finds for one variable goes into a graph and is
/// looked up there. False where it is no SPARQL.
fn check_update(fixture: &Fixture, naive: &Naive, pattern: &str) -> Result<bool, String> {
    let query = format!("SELECT DISTINCT ?a WHERE {{ {pattern} FILTER(BOUND(?a)) }}");
    let Ok(expected) = naive::answer(naive, &query) else { return Ok(false) };
    let into = "GRAPH <http://e/found> { <http://e/it> <http://e/is> ?a }";
    let update = format!("INSERT {{ {into} }} WHERE {{ {pattern} }}");
    fixture.update(&update, None).map_err(|e| format!("refused: {e}"))?;
    let query = format!("SELECT ?a WHERE {{ {into} }}");
    let actual = fixture.answer(&query, None).map_err(|e| format!("refused: {e}"))?;
    answer::same(&anonymous(actual), &anonymous(expected)).map(|()| true)
}

/// Random data and questions for the naive evaluator.
trait Questions {
    fn new(seed: u64) -> Self;
    fn graph(&mut self) -> Vec<Quad>;
    fn query(&mut self) -> String;
    /// The inside of the braces of a WHERE.
    fn pattern(&mut self) -> String;
}

/// Our answers against those of the naive evaluator.
fn run_naive<Q: Questions>(settings: &[Settings], default_graphs: u64, queries_per_graph: u64) {
    let seed = snowmelt_io::test_seed(1);
    let (mut answered, mut refused, mut wrong) = (0, 0, Vec::new());
    for round in rounds(default_graphs) {
        let mut generator = Q::new(seed.wrapping_mul(1_000_003).wrapping_add(round));
        let quads = generator.graph();
        tell_of_one(&quads);
        let naive = Naive::new(&quads);
        let settings = &settings[round as usize % settings.len()];
        let fixture = Fixture::open(&quads, settings);
        for number in 0..queries_per_graph {
            let query = generator.query();
            // a name that AS or VALUES may not give, or too much for nested loops
            let Ok(expected) = naive::answer(&naive, &query) else {
                refused += 1;
                continue;
            };
            let result = fixture.answer(&query, None).map_err(|e| format!("refused: {e}"));
            match result.and_then(|actual| answer::same(&anonymous(actual), &anonymous(expected))) {
                Ok(()) => answered += 1,
                Err(why) => {
                    wrong.push(format!("round {round}, query {number}, {}: {why}\n{query}\n", settings.name))
                }
            }
        }
        let pattern = generator.pattern();
        match check_update(&fixture, &naive, &pattern) {
            Ok(true) => answered += 1,
            Ok(false) => refused += 1,
            Err(why) => wrong.push(format!("round {round}, update, {}: {why}\n{pattern}\n", settings.name)),
        }
    }
    eprintln!("{answered} queries answered, {refused} not SPARQL or too large");
    assert!(answered + wrong.len() > 2 * refused, "{refused} of {answered} are not SPARQL or too large");
    wrong.sort_by_key(String::len); // the shortest first
    let shown = wrong[..wrong.len().min(3)].join("\n");
    assert!(wrong.is_empty(), "SNOWMELT_SEED={seed}: {} answers are wrong:\n{shown}", wrong.len());
}

#[test]
fn random_exists() {
    run_naive::<Exists>(&[Settings::default()], 20, 60);
}

#[test]
fn random_exists_under_hostile_settings() {
    run_naive::<Exists>(&Settings::hostile(), 22, 30);
}

#[test]
fn random_scopes() {
    run_naive::<Scopes>(&[Settings::default()], 40, 80);
}

#[test]
fn random_scopes_under_hostile_settings() {
    run_naive::<Scopes>(&Settings::hostile(), 22, 40);
}

#[test]
fn random_lateral() {
    run_naive::<Lateral>(&[Settings::default()], 40, 80);
}

#[test]
fn random_lateral_under_hostile_settings() {
    run_naive::<Lateral>(&Settings::hostile(), 22, 40);
}

#[test]
fn random_paths() {
    run_naive::<Paths>(&[Settings::default()], 40, 80);
}

#[test]
fn random_paths_under_hostile_settings() {
    run_naive::<Paths>(&Settings::hostile(), 22, 40);
}

#[test]
fn random_triple_terms() {
    run_naive::<TripleTerms>(&[Settings::default()], 40, 80);
}

#[test]
fn random_triple_terms_under_hostile_settings() {
    run_naive::<TripleTerms>(&Settings::hostile(), 22, 40);
}

/// The naive evaluator is right where the answers were worked out by hand.
#[test]
fn the_naive_evaluator_agrees_with_the_written_answers() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/queries/exists");
    let read =
        |path: &std::path::Path| std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let base = "http://example.org/";
    let quads = support::data::read_file(&folder.join("data.trig"), base, &oxrdf::GraphName::DefaultGraph);
    let naive = Naive::new(&quads.expect("our own data"));
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).expect("our own folder") {
        let query = entry.expect("a readable folder").path();
        if query.extension().is_none_or(|e| e != "rq") {
            continue;
        }
        files += 1;
        let text = String::from_utf8(read(&query)).expect("UTF-8");
        let Ok(actual) = naive::answer(&naive, &text) else { continue };
        let expected =
            answer::read(sparesults::QueryResultsFormat::Json, &read(&query.with_extension("srj")));
        let expected = expected.unwrap_or_else(|e| panic!("{}: {e}", query.display()));
        answer::same(&actual, &expected).unwrap_or_else(|why| panic!("{}: {why}", query.display()));
    }
    assert!(files > 20, "only {files} queries");
}
