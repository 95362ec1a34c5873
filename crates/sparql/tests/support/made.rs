//! Databases made for a test, and what a query does in one: counts, not times.

use std::sync::atomic::AtomicBool;

use snowmelt_database::OpenOptions;
use snowmelt_graph::GraphDatabase;
use snowmelt_graph::load::{LoadOptions, Source, load};
use snowmelt_sparql::{QueryEngine, QueryOptions};

/// A database of N-Triples with little memory.
pub struct Made {
    pub engine: QueryEngine,
    _folder: tempfile::TempDir,
}

impl Made {
    pub fn of(text: String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let store = OpenOptions { memory_bytes: 64 << 20, direct: false, ..OpenOptions::default() };
        let options = LoadOptions { store: store.clone(), threads: 1, ..LoadOptions::default() };
        let read = Box::new(std::io::Cursor::new(text.into_bytes()));
        let source = Source::Reader { name: "test".into(), read };
        load(&path, vec![source], &options, &(), &AtomicBool::new(false)).unwrap();
        Self { engine: QueryEngine::new(GraphDatabase::open(&path, &store).unwrap()), _folder: folder }
    }

    /// Runs a query in one thread, and counts; once before that, so that the counts do not depend
    /// on what the start has read by then.
    pub fn work(&self, text: &str) -> Work {
        let options = QueryOptions { threads: 1, ..QueryOptions::default() };
        self.engine.analysis(text, &options).unwrap_or_else(|error| panic!("{text}: {error}"));
        let analysis = self.engine.analysis(text, &options).unwrap_or_else(|error| panic!("{text}: {error}"));
        let measured = || analysis.steps.iter().filter_map(|step| step.measured.as_ref());
        let activity = analysis.outcome.as_ref().expect("it was run").activity;
        Work {
            rows: measured().next().expect("a plan has a root").rows,
            most: measured().map(|step| step.rows).max().expect("a plan has a root"),
            lookups: activity.rnd,
            scanned: activity.seq,
            plan: analysis.to_string(),
        }
    }
}

/// The work of a query.
pub struct Work {
    /// of its answer
    pub rows: u64,
    /// rows of the operator that gave most
    pub most: u64,
    /// in indexes and in the dictionary
    pub lookups: u64,
    /// rows of indexes that were moved over
    pub scanned: u64,
    pub plan: String,
}
