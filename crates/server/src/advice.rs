//! Advice of a running server: lines that say what is wrong and what to change.
//!
//! 1. `signs`: the numbers that matter, taken from the meters, and their change between two looks.
//! 2. `rules`: signs in, verdicts out; a verdict has a weight, from 1 on it is worth a line.
//! 3. [`Advisor`]: which lines are new. A line is told once. It is told again after it went away
//!    and came back, or when it has stood for [`AGAIN`]. It goes away when its weight falls below
//!    [`GONE`], so that a value at the limit is not told at each look.
//!
//! This code knows neither a clock nor a server; the caller brings both.

mod rules;
mod signs;

use std::collections::BTreeMap;
use std::time::Duration;

pub use rules::{Topic, Verdict, judged};
pub use signs::{Ahead, HeldBack, Signs, Turns, Wear};

/// Time between two looks of a server.
pub const EVERY: Duration = Duration::from_secs(60);
/// Time after which a line that still stands is told again.
pub const AGAIN: Duration = Duration::from_secs(600);
/// Weight below which a line goes away; it comes at 1.
const GONE: f64 = 0.7;
/// Most lines that stand at the same time; the heaviest are kept.
const MOST: usize = 4;

/// The lines that stand, and when they were told.
#[derive(Default)]
pub struct Advisor {
    before: Option<(Duration, Signs)>,
    standing: BTreeMap<Topic, Standing>,
}

struct Standing {
    told: Duration,
    line: String,
}

impl Advisor {
    /// Looks at the signs at a moment, which is a time since any beginning, and returns the lines
    /// to tell. The first look tells of lasting states alone: there is no change yet.
    pub fn look(&mut self, at: Duration, signs: Signs) -> Vec<String> {
        let (since, earlier) = match self.before.take() {
            Some((then, earlier)) => (at.saturating_sub(then), earlier),
            None => (Duration::ZERO, signs.clone()),
        };
        let mut verdicts = judged(&signs.since(&earlier), since);
        self.before = Some((at, signs));
        verdicts.retain(|verdict| {
            verdict.weight >= 1.0 || verdict.weight >= GONE && self.standing.contains_key(&verdict.topic)
        });
        verdicts.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        verdicts.truncate(MOST);
        let mut before = std::mem::take(&mut self.standing);
        let mut told = Vec::new();
        for Verdict { topic, line, .. } in verdicts {
            let old = before.remove(&topic).filter(|old| at.saturating_sub(old.told) < AGAIN);
            if old.is_none() {
                told.push(line.clone());
            }
            self.standing.insert(topic, Standing { told: old.map_or(at, |old| old.told), line });
        }
        told
    }

    /// The lines that stand, with their topics.
    pub fn standing(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.standing.iter().map(|(topic, standing)| (topic.name(), standing.line.as_str()))
    }
}

#[cfg(test)]
mod tests;
