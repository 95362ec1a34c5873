//! Several engines with the same data, memory and queries, in turns.
//!
//! 1. `workload`: the queries, of a benchmark or of files, and the language they need.
//! 2. `data`: the data set, generated or given, and its cut in parts; room on the disk.
//! 3. `field`: the engines. Those that are installed are loaded, the others reported as skipped.
//!    SPARQL is asked at an endpoint, SQL in sessions (`sql_target`).
//! 4. `turn`: one engine once: cold, started, its first answer, cold mixes, warm mixes, stopped.
//! 5. Each repetition takes all engines, beginning at another one. An engine that fails is told
//!    and left out; the comparison goes on.
//! 6. `outcome`: medians, spreads, and ratios to the first engine, repetition by repetition.
//! 7. `page`: all of it to look at.

pub mod data;
pub mod field;
pub mod outcome;
pub mod page;
mod sql_target;
pub mod turn;
pub mod workload;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;
use snowmelt_lab::JsonLines;

use field::Entrant;
use outcome::Standings;
use turn::Turn;
use workload::Questions;

/// Settings that all engines share.
#[derive(Clone, Debug, Serialize)]
pub struct ComparePlan {
    /// Bytes of memory that each may use.
    pub memory: u64,
    /// Processors that each may use.
    pub threads: usize,
    /// Clients.
    pub clients: usize,
    /// Times that every engine is measured.
    pub repeats: u32,
    /// Mixes after a cold start.
    pub cold_mixes: u64,
    /// Mixes after those, unmeasured.
    pub warmup: u64,
    /// Mixes that count.
    pub mixes: u64,
    /// No phase of a turn lasts longer; it ends with fewer mixes.
    pub most_seconds: u64,
    /// Time limit of a query, milliseconds.
    pub timeout_ms: u64,
    /// Seed of the queries' parameters.
    pub seed: i64,
}

impl ComparePlan {
    fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }
}

/// A comparison under way.
pub struct Comparison<'a> {
    /// Its settings.
    pub plan: &'a ComparePlan,
    /// Its queries.
    pub questions: &'a Questions,
    /// Ends it when set.
    pub stop: &'a Arc<AtomicBool>,
    /// Hears of progress, a line at a time.
    pub say: &'a dyn Fn(&str),
}

/// Numbers of the engines in the order of a repetition, which count from 0: each begins at the
/// next one.
pub fn rotated(engines: usize, repeat: u32) -> impl Iterator<Item = usize> {
    (0..engines).map(move |i| (i + repeat as usize) % engines)
}

impl Comparison<'_> {
    /// Measures all engines in turns. A turn's figures are in `lines` as soon as it is over.
    ///
    /// # Errors
    /// It is interrupted, or no engine is left.
    pub fn run(&self, field: &mut [Entrant], lines: &mut JsonLines) -> Result<Standings> {
        let mut turns: Vec<Turn> = Vec::new();
        for repeat in 0..self.plan.repeats {
            for i in rotated(field.len(), repeat) {
                let entrant = &mut field[i];
                if entrant.failed.is_some() {
                    continue;
                }
                match self.turn(entrant, repeat + 1) {
                    Ok(turn) => {
                        (self.say)(&turn.line());
                        lines.write(&turn)?;
                        turns.push(turn);
                    }
                    Err(_) if self.is_interrupted() => bail!("interrupted"),
                    Err(error) => {
                        let why = format!("repetition {}: {error:#}", repeat + 1);
                        (self.say)(&format!("{} FAILED, {why}", entrant.title()));
                        entrant.failed = Some(why);
                    }
                }
            }
        }
        if turns.is_empty() {
            bail!("no engine was measured: {}", field::failures(field));
        }
        Ok(Standings::new(field, turns))
    }

    fn is_interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_repetition_has_every_engine_and_begins_at_the_next() {
        let order = |repeat| rotated(3, repeat).collect::<Vec<_>>();
        assert_eq!([order(0), order(1), order(2), order(3)], [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]);
        assert_eq!(rotated(0, 5).count(), 0);
    }
}
