//! What the fuzz targets of `/fuzz` call: any text as a query, up to its plan, and as an update, which is carried out; any terms
//! as results.

mod results;

use std::path::Path;
use std::time::Duration;

use snowmelt_graph::{Database, OpenOptions};

pub use results::results;

use crate::{Engine, QueryOptions, UpdateOptions};

/// An engine over a new database in `dir`.
///
/// # Panics
/// When there is no room for one.
pub fn engine(dir: &Path) -> Engine {
    let options = OpenOptions { memory_bytes: 64 << 20, ..OpenOptions::default() };
    let engine = Engine::new(Database::create(&dir.join("db"), &[], &options).expect("a new database"));
    let data = "INSERT DATA { <e:a> <e:p> <e:b>, 1, 2.5, 'x'@en . <e:b> <e:p> <e:c> . GRAPH <e:g> { <e:a> <e:q> 'y' } }";
    engine.update(data, &UpdateOptions::default()).expect("an update");
    engine
}

/// Parsed, rewritten, planned; not run.
pub fn query(engine: &Engine, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let options = QueryOptions { timeout: Some(Duration::from_secs(5)), ..QueryOptions::default() };
    let _ = engine.explain(text, &options);
}

/// Parsed and carried out; a LOAD is refused.
pub fn update(engine: &Engine, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = engine.update(text, &UpdateOptions::default());
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// Texts are cut into words, and words are lost, doubled, or put in from another text: most remain queries for a while.
    #[test]
    fn no_text_brings_the_planner_down() {
        let dir = tempfile::tempdir().unwrap();
        let engine = engine(dir.path());
        let mut random = 5u64;
        let mut next = |n: usize| {
            random ^= random >> 12;
            random ^= random << 25;
            random ^= random >> 27;
            (random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
        };
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
}
