//! One engine, measured once.
//!
//! 1. Its files are thrown out of the page cache while it is stopped, and the kernel shows that
//!    nothing of them is left. Where it cannot, the start is not called cold.
//! 2. The clock begins with the start command. The first answer is that of the first query.
//! 3. Cold mixes, then as many of warm-up, then those that count; all of the same stream, so that
//!    every engine gets the same queries. A phase ends at its time limit.

use std::fs;
use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;
use snowmelt_engines::cold::{ColdFiles, make_cold};
use snowmelt_io::Clock;

use crate::compare::Comparison;
use crate::compare::field::Entrant;
use crate::report::{QueryReport, Throughput, queries};
use crate::verify::{AnswerLine, answers};
use snowmelt_workload::drive::{Drive, Mixes, Record, Rules, Run};
use snowmelt_workload::kept::KeptAnswers;
use snowmelt_workload::target::Target;

/// The figures of a turn.
#[derive(Clone, Debug, Serialize)]
pub struct Turn {
    /// The engine's name.
    pub engine: String,
    /// Its name in reports.
    pub title: String,
    /// Repetition, from 1.
    pub repeat: u32,
    /// Proof that its files were cold; nothing if there is none.
    pub cold_files: Option<ColdFiles>,
    /// Why there is none.
    pub not_cold: Option<String>,
    /// Seconds from the start command until it was ready.
    pub ready_s: f64,
    /// Seconds from the start command to the end of the first answer.
    pub first_answer_s: f64,
    /// Seconds from the start command to the end of the cold mixes.
    pub cold_s: f64,
    /// Cold mixes that were run whole.
    pub cold_mixes: usize,
    /// Cold mixes per hour, from the first query on.
    pub cold_qmph: f64,
    /// Mixes per hour when warm.
    pub warm_qmph: f64,
    /// Warm mixes that were run whole.
    pub warm_mixes: usize,
    /// Seconds of these.
    pub warm_s: f64,
    /// Queries without an answer, cold and warm.
    pub failed: usize,
    /// The first reason.
    pub failure: Option<String>,
    /// Most physical memory of its first process, bytes, with files it has mapped.
    pub memory_peak_bytes: Option<u64>,
    /// Seconds that stopping it took.
    pub stop_s: f64,
    /// Queries of the cold phase.
    pub cold_queries: Vec<QueryReport>,
    /// Queries that count.
    pub warm_queries: Vec<QueryReport>,
    /// End of each cold mix, seconds since the start command.
    pub cold_course: Vec<f64>,
    /// Answers of both phases.
    #[serde(skip)]
    pub answers: Vec<AnswerLine>,
    /// The answers themselves, of the first repetition.
    #[serde(skip)]
    pub kept: Option<Arc<KeptAnswers>>,
}

/// Bytes of answers that are kept of each engine.
const KEPT_BYTES: usize = 16 << 20;

impl Turn {
    /// The turn in a line.
    pub fn line(&self) -> String {
        let failed = match self.failed {
            0 => String::new(),
            failed => format!("; {failed} queries without an answer"),
        };
        let cold = if self.cold_files.is_some() { "cold" } else { "not proven cold" };
        format!(
            "{} {}: first answer after {:.3} s ({cold}), {:.0} mixes/h in the first {}, warm {:.0}{failed}",
            self.repeat, self.title, self.first_answer_s, self.cold_qmph, self.cold_mixes, self.warm_qmph
        )
    }
}

/// A phase's queries under its limits.
struct TurnPhase<'a> {
    comparison: &'a Comparison<'a>,
    target: &'a dyn Target,
    clock: &'a Clock,
    kept: Option<&'a KeptAnswers>,
}

impl TurnPhase<'_> {
    /// Runs mixes of the stream from `from` on.
    fn run(&self, from: u64, mixes: u64) -> Result<Run> {
        let Comparison { plan, questions, stop, .. } = self.comparison;
        let until = self.clock.now_ns() + plan.most_seconds * 1_000_000_000;
        let mixes = Mixes::new(questions.after(from), mixes, &[stop]).until(until);
        let rules = Rules { rate: None, reading: questions.reading(), keeps_going: true };
        let drive = Drive::new(self.target, self.clock, plan.clients).rules(rules).keeping(self.kept);
        let run = drive.run(&mixes)?;
        if self.comparison.is_interrupted() {
            anyhow::bail!("interrupted");
        }
        Ok(run)
    }
}

impl Comparison<'_> {
    /// Measures an engine once.
    pub(super) fn turn(&self, entrant: &Entrant, repeat: u32) -> Result<Turn> {
        let plan = self.plan;
        let cold_files = make_cold(&entrant.engine.data());
        let clock = Clock::real();
        let begun_ns = clock.now_ns();
        let server = entrant.engine.start()?;
        let target = entrant.target(Some(plan.timeout()))?;
        let kept = (repeat == 1).then(|| Arc::new(KeptAnswers::new(KEPT_BYTES)));
        let phase = TurnPhase { comparison: self, target: &*target, clock: &clock, kept: kept.as_deref() };
        let cold = phase.run(0, plan.cold_mixes)?;
        phase.run(plan.cold_mixes, plan.warmup)?;
        let warm = phase.run(plan.cold_mixes + plan.warmup, plan.mixes)?;
        drop(target);
        let (ready_s, memory_peak_bytes) = (server.ready_s(), peak_memory(server.pid()));
        let stop_s = server.stop()?;

        let since = |ns: u64| ns.saturating_sub(begun_ns) as f64 / 1e9;
        let first_ns = cold.records.iter().map(|record| record.end_ns).min().unwrap_or(cold.to_ns);
        let all: Vec<Record> = cold.records.iter().chain(&warm.records).cloned().collect();
        let (cold_files, not_cold) = match cold_files {
            Ok(proof) if proof.cached_after == 0 => (Some(proof), None),
            Ok(proof) => (None, Some(format!("{} pages stayed in the page cache", proof.cached_after))),
            Err(error) => (None, Some(error.to_string())),
        };
        let qmph = |run: &Run| Throughput::new(run, self.questions.per_mix).qmph(plan.clients);
        let failure = |record: &Record| Some(format!("query {}: {}", record.number, record.failed.as_ref()?));
        Ok(Turn {
            engine: entrant.name().into(),
            title: entrant.title().into(),
            repeat,
            cold_files,
            not_cold,
            ready_s,
            first_answer_s: since(first_ns),
            cold_s: since(cold.to_ns),
            cold_mixes: cold.mixes(),
            cold_qmph: qmph(&cold),
            warm_qmph: qmph(&warm),
            warm_mixes: warm.mixes(),
            warm_s: warm.seconds(),
            failed: all.iter().filter(|record| record.failed.is_some()).count(),
            failure: all.iter().find_map(failure),
            memory_peak_bytes,
            stop_s,
            cold_queries: queries(&cold.records),
            warm_queries: queries(&warm.records),
            cold_course: course(&cold, since),
            answers: answers(&all),
            kept,
        })
    }
}

/// The ends of mixes, in order.
fn course(run: &Run, since: impl Fn(u64) -> f64) -> Vec<f64> {
    let mut ends: Vec<f64> = run.records.iter().filter(|r| r.ends_mix).map(|r| since(r.end_ns)).collect();
    ends.sort_by(f64::total_cmp);
    ends
}

/// Most physical memory of a process until now.
fn peak_memory(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}
