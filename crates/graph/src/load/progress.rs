//! Progress and report of a load.

use std::time::{Duration, Instant};

use oxrdfio::RdfFormat;
use snowmelt_store::Report;

use super::dictionary::DictionaryCounts;
use crate::input::left_out::LeftOut;
use crate::input::source::FormatToldBy;

/// Phases of a load, and of a rewrite of the trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Reading, parsing and numbering; strings are written, triples sorted in batches.
    Read,
    /// In a rewrite: marking the terms that are in quads.
    Mark,
    /// In a rewrite: numbering them.
    Number,
    /// Numbering the terms that did not fit in memory; in a rewrite: writing their strings.
    Terms,
    /// In a rewrite: sorting the quads by their new numbers.
    Quads,
    /// Writing the hash trees.
    Hashes,
    /// Writing a quad index.
    Index(crate::Index),
    /// Writing the trees of triple terms.
    TripleTerms,
    /// Committing.
    Commit,
}

impl Phase {
    /// A short name for progress bars and reports.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Read => "read",
            Phase::Mark => "mark",
            Phase::Number => "number",
            Phase::Terms => "terms",
            Phase::Quads => "quads",
            Phase::Hashes => "hashes",
            Phase::Index(index) => index.name(),
            Phase::TripleTerms => "triple terms",
            Phase::Commit => "commit",
        }
    }
}

/// Progress of a load.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// The phase.
    pub phase: Phase,
    /// Statements read so far.
    pub triples: u64,
    /// Bytes of input read so far, as stored (compressed).
    pub bytes: u64,
    /// Bytes of all inputs, if all are files.
    pub bytes_total: Option<u64>,
    /// Finished steps of this phase; bytes while reading.
    pub done: u64,
    /// All steps of this phase, if known.
    pub total: Option<u64>,
}

/// Receives the progress of a load, about ten times a second, from any of its threads.
pub trait LoadProgress: Sync {
    /// Receives the current progress.
    fn report(&self, progress: &Progress);

    /// An input was opened; `_told_by` is the source of its format.
    fn input(&self, _name: &str, _format: RdfFormat, _told_by: FormatToldBy) {}
}

/// Ignores progress.
impl LoadProgress for () {
    fn report(&self, _: &Progress) {}
}

/// Report of a load.
#[derive(Debug, Clone, Default)]
pub struct LoadReport {
    /// Statements read.
    pub triples: u64,
    /// Malformed statements left out (lenient loads).
    pub skipped: u64,
    /// The first hundred of them.
    pub left_out: Vec<LeftOut>,
    /// Distinct quads in the database.
    pub quads: u64,
    /// Terms in the dictionary.
    pub terms: DictionaryCounts,
    /// Bytes of input, as stored.
    pub input_bytes: u64,
    /// Bytes of the database.
    pub database_bytes: u64,
    /// Bytes written to temporary files.
    pub temporary_bytes: u64,
    /// Seconds of every phase, in order.
    pub seconds: Vec<(Phase, f64)>,
    /// Peak resident memory of the process in bytes, as the system counts it; 0 if it does not
    /// report it.
    pub peak_bytes: u64,
    /// All meters of the database at the end.
    pub meters: Option<Report>,
}

impl LoadReport {
    /// Seconds of all phases together.
    pub fn total_seconds(&self) -> f64 {
        self.seconds.iter().map(|(_, s)| s).sum()
    }
}

/// Least time between two reports.
const INTERVAL: Duration = Duration::from_millis(100);

/// Passes progress on at most once per interval, and records the time of every phase.
pub(super) struct Teller<'a> {
    to: &'a dyn LoadProgress,
    state: Progress,
    last: Instant,
    phase_began: Instant,
    pub(super) seconds: Vec<(Phase, f64)>,
}

impl<'a> Teller<'a> {
    pub(super) fn new(to: &'a dyn LoadProgress, bytes_total: Option<u64>) -> Self {
        let state =
            Progress { phase: Phase::Read, triples: 0, bytes: 0, bytes_total, done: 0, total: bytes_total };
        to.report(&state);
        Teller { to, state, last: Instant::now(), phase_began: Instant::now(), seconds: Vec::new() }
    }

    /// The listener.
    pub(super) fn listener(&self) -> &'a dyn LoadProgress {
        self.to
    }

    /// Begins a phase of `total` steps.
    pub(super) fn phase(&mut self, phase: Phase, total: Option<u64>) {
        self.end_phase();
        self.state = Progress { phase, done: 0, total, ..self.state };
        self.to.report(&self.state);
    }

    /// Ends the phase.
    pub(super) fn end_phase(&mut self) {
        let now = Instant::now();
        self.seconds.push((self.state.phase, (now - self.phase_began).as_secs_f64()));
        self.phase_began = now;
    }

    /// Reports the statements and bytes read.
    pub(super) fn read(&mut self, triples: u64, bytes: u64) {
        self.state.triples = triples;
        self.state.bytes = bytes;
        self.done(bytes);
    }

    /// Reports the steps done.
    pub(super) fn done(&mut self, done: u64) {
        self.state.done = done;
        if self.last.elapsed() >= INTERVAL {
            self.last = Instant::now();
            self.to.report(&self.state);
        }
    }
}

/// Peak resident memory of the process, in bytes.
pub(super) fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
