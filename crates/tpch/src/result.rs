//! The measured queries, as lines of `queries.jsonl`.

use serde::Serialize;
use snowmelt_lab::read::CellResult;
use snowmelt_lab::watch::observe::Observed;
use snowmelt_lab::watch::phase::Phase;

/// Caches before a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The server was started again, and no page of its files was in the page cache.
    Cold,
    /// Right after a run of the same query.
    Warm,
}

/// The way to lineitem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// As the planner chooses, in parallel.
    Planned,
    /// Q1 by a scan of the whole table, in one process.
    FullScan,
    /// Q1 by the index on l_shipdate, in one process.
    IndexScan,
}

/// One query, run once.
#[derive(Debug, Clone, Serialize)]
pub struct QueryRun {
    /// Name of its phase.
    pub name: String,
    /// From 1.
    pub query: u32,
    /// How it came to lineitem.
    pub way: Way,
    /// Caches before it.
    pub state: State,
    /// The device's read-ahead meanwhile, KiB.
    pub read_ahead_kb: u64,
    /// By psql's clock.
    pub seconds: f64,
    /// Rows of the answer.
    pub rows: u64,
    /// The digest of the answer.
    pub digest: String,
    /// True for the right answer, false for a wrong one; `None` where that is not known.
    pub correct: Option<bool>,
    /// Pages of the database in the page cache before a cold run; 0 is the proof.
    pub cached_pages: Option<u64>,
    /// Blocks of 8 KiB that PostgreSQL did not find in its buffers, by pg_stat_database.
    pub blocks_read: u64,
    /// Times, calls, bytes and devices meanwhile.
    pub phase: Option<Phase>,
}

/// Everything that was measured.
pub struct TpchResult {
    /// The scale factor.
    pub scale: f64,
    /// Version of PostgreSQL.
    pub version: String,
    /// Its shared buffers, MiB.
    pub shared_buffers_mb: u64,
    /// Processes of a parallel query beside the first.
    pub workers: usize,
    /// Name of the device below the database.
    pub device: String,
    /// Bytes of the database, and of lineitem without indexes.
    pub bytes: (u64, u64),
    /// Phases of the load, with their names; none where a database was there.
    pub load: Vec<Phase>,
    /// The queries.
    pub queries: Vec<QueryRun>,
    /// Plans of Q1's ways.
    pub plans: Vec<(Way, String)>,
    /// Random reads of lineitem's first file.
    pub random: Vec<CellResult>,
    /// The whole watch.
    pub observed: Observed,
    /// Reasons to doubt it.
    pub doubts: Vec<String>,
}

impl Way {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Way::Planned => "as planned",
            Way::FullScan => "full scan",
            Way::IndexScan => "index scan",
        }
    }
}

impl State {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            State::Cold => "cold",
            State::Warm => "warm",
        }
    }
}
