//! Entry points of the fuzz targets of `/fuzz`: any text as a query, up to its plan, and as an
//! update, which is carried out; texts over the whole grammar, made of bytes, against depth and
//! time; any terms as results.

mod results;
mod texts;

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use snowmelt_database::OpenOptions;
use snowmelt_graph::GraphDatabase;

use crate::{QueryEngine, QueryKind, QueryOptions, ResultFormat, UpdateOptions};

pub use results::results;

/// An engine over a new database in `dir`.
///
/// # Panics
/// When there is no room for one.
pub fn engine(dir: &Path) -> QueryEngine {
    let options = OpenOptions { memory_bytes: 64 << 20, ..OpenOptions::default() };
    let engine =
        QueryEngine::new(GraphDatabase::create(&dir.join("db"), &[], &options).expect("a new database"));
    let data = "INSERT DATA { <e:a> <e:p> <e:b>, 1, 2.5, 'x'@en . <e:b> <e:p> <e:c> . GRAPH <e:g> { <e:a> <e:q> 'y' } }";
    engine.update(data, &UpdateOptions::default()).expect("an update");
    engine
}

/// Parsed, rewritten, planned; not run.
pub fn query(engine: &QueryEngine, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let options = QueryOptions { timeout: Some(Duration::from_secs(5)), ..QueryOptions::default() };
    let _ = engine.explain(text, &options);
}

/// Parsed and carried out; a LOAD is refused.
pub fn update(engine: &QueryEngine, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = engine.update(text, &UpdateOptions::default());
}

/// Time and memory of a query that is run.
const RUN_TIME: Duration = Duration::from_millis(500);
const RUN_MEMORY: usize = 8 << 20;

/// Time of a plan or of a refusal: a plan that needs more is a fault.
const PLAN_TIME: Duration = Duration::from_secs(5);

/// Time on top of it when a fuzzer runs this, with a sanitizer and beside other work.
const GRACE: Duration = Duration::from_secs(if cfg!(fuzzing) { 30 } else { 0 });

/// A text made of bytes: planned within its time, or refused.
///
/// # Panics
/// When it takes longer.
pub fn plan(engine: &QueryEngine, data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let begun = Instant::now();
    let (text, ended) = if first % 4 == 0 {
        let text = texts::update(rest);
        let options = UpdateOptions { timeout: Some(PLAN_TIME), ..UpdateOptions::default() };
        let ended = engine.update(&text, &options).map(drop);
        (text, ended)
    } else {
        let text = texts::query(rest);
        let options = QueryOptions { timeout: Some(PLAN_TIME), ..QueryOptions::default() };
        let ended = engine.explain(&text, &options).map(drop);
        // Carried out to its end, or until its time or memory is used up.
        let run = QueryOptions {
            timeout: Some(RUN_TIME),
            memory: Some(RUN_MEMORY),
            max_rows: Some(100_000),
            ..options
        };
        if let (Ok(()), Ok(result)) = (&ended, engine.query(&text, &run)) {
            let format = match result.kind() {
                QueryKind::Graph => ResultFormat::NTriples,
                _ => ResultFormat::Tsv,
            };
            let _ = result.write(format, &mut io::sink());
        }
        (text, ended)
    };
    let taken = begun.elapsed();
    assert!(taken < PLAN_TIME + RUN_TIME + GRACE, "{taken:?}, {ended:?}: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    const QUERIES: [&str; 8] = [
        "SELECT ?s (COUNT(DISTINCT ?o) AS ?n) WHERE { ?s <e:p> ?o FILTER(?o > 1 && !BOUND(?x)) } GROUP BY ?s HAVING(?n > 1)",
        "SELECT * WHERE { ?a <e:p>+ ?b OPTIONAL { ?b <e:q>|^<e:p> ?c } MINUS { ?a <e:q> 'y'@en } } ORDER BY DESC(?a) LIMIT 5",
        "ASK { GRAPH ?g { ?s ?p ?o } BIND(CONCAT(STR(?s), 'x') AS ?t) VALUES (?s ?p) { (<e:a> UNDEF) } }",
        "CONSTRUCT { ?s <e:n> [] } WHERE { { SELECT ?s WHERE { ?s ?p 2.5 } OFFSET 1 } UNION { ?s <e:p>* <e:c> } }",
        "PREFIX e: <e:> DESCRIBE e:a ?x WHERE { ?x e:p e:b . FILTER EXISTS { ?x e:q ?y } }",
        "INSERT DATA { <e:n> <e:p> 'z', 1e9, true }",
        "DELETE { ?s ?p ?o } INSERT { ?s <e:q> ?o } WHERE { ?s ?p ?o FILTER(isLiteral(?o)) }",
        "DELETE WHERE { GRAPH <e:g> { ?s ?p ?o } } ; CLEAR SILENT GRAPH <e:h> ; COPY DEFAULT TO <e:g>",
    ];

    /// Rounds: 400, or as many as `SNOWMELT_ROUNDS` says.
    fn rounds() -> u64 {
        std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
    }

    /// Texts are cut into words, and words are lost, doubled, or put in from another text: most
    /// remain queries for a while.
    #[test]
    fn no_text_brings_the_planner_down() {
        let dir = tempfile::tempdir().unwrap();
        let engine = engine(dir.path());
        let mut random = 5u64;
        let mut next = |n: usize| (snowmelt_base::random::xorshift_star(&mut random) >> 33) as usize % n;
        for text in QUERIES {
            assert!(
                engine.explain(text, &QueryOptions::default()).is_ok()
                    != engine.update(text, &UpdateOptions::default()).is_ok(),
                "{text}"
            );
        }
        for _ in 0..rounds() {
            let mut words: Vec<&str> = QUERIES[next(8)].split(' ').collect();
            for _ in 0..1 + next(4) {
                let at = next(words.len());
                let other: Vec<&str> = QUERIES[next(8)].split(' ').collect();
                let from = next(other.len());
                let to = (from + 1 + next(3)).min(other.len());
                let end = (at + next(3)).min(words.len());
                words.splice(at..end, other[from..to].iter().copied());
            }
            let text = words.join(" ");
            query(&engine, text.as_bytes());
            update(&engine, text.as_bytes());
        }
    }

    /// Texts of random bytes over the whole grammar, on a small stack: each is planned, or
    /// refused. `SNOWMELT_SEED` begins elsewhere.
    #[test]
    fn no_text_of_the_grammar_brings_the_planner_down() {
        let seed = std::env::var("SNOWMELT_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1u64);
        println!("SNOWMELT_SEED={seed}");
        let body = move || {
            let dir = tempfile::tempdir().unwrap();
            let engine = engine(dir.path());
            snowmelt_query::scarcity::set(2, crate::bounds::text_limits::BASE_BYTES);
            let (mut planned, mut refused) = (0, 0);
            for round in 0..rounds() {
                let mut random = StdRng::seed_from_u64(seed + round);
                let mut data = vec![0; random.random_range(4..600)];
                random.fill(&mut data[..]);
                println!("SNOWMELT_SEED={} is round {round}", seed + round);
                plan(&engine, &data);
                match engine.explain(&texts::query(&data[1..]), &QueryOptions::default()) {
                    Ok(_) => planned += 1,
                    Err(_) => refused += 1,
                }
            }
            assert!(planned > refused / 20, "{planned} planned, {refused} refused");
        };
        let small = std::thread::Builder::new().stack_size(2 << 20);
        if let Err(panic) = small.spawn(body).unwrap().join() {
            std::panic::resume_unwind(panic);
        }
    }
}
