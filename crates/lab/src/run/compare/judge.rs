//! The verdict on each measure of each cell that both runs have.

use crate::run::Measure;
use crate::run::compare::loaded::{Key, LoadedRun};
use crate::stats::{median, spread};

/// Differences up to this are none, however steady the runs were.
const LEAST: f64 = 0.03;
/// Repeats of a cell, in either run, from which there is a verdict.
pub(super) const REPEATS: usize = 3;

/// One measure of one cell in both runs.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) key: Key,
    pub(super) field: String,
    pub(super) before: f64,
    pub(super) after: f64,
    pub(super) verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Same,
    Worse,
    Better,
    /// There are too few repeats.
    None,
}

impl Verdict {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Worse => "WORSE",
            Self::Better => "better",
            Self::None => "too few repeats",
        }
    }
}

/// Everything that two runs have in common, cell by cell.
#[derive(Debug)]
pub(super) struct Judged<'a> {
    /// Measures of the cells that both have.
    pub(super) pairs: Vec<Pair>,
    /// Texts of the cells that both have.
    pub(super) shown: Vec<ShownPair<'a>>,
    /// Cells with measures that only one has.
    pub(super) alone: usize,
}

impl<'a> Judged<'a> {
    /// Judges two runs that name their cells by the same keys.
    pub(super) fn new(before: &'a LoadedRun, after: &'a LoadedRun) -> Judged<'a> {
        let (pairs, alone) = pair_up(before, after);
        Judged { pairs, shown: pair_shown(before, after), alone }
    }

    /// The key of each pair, in order.
    pub(super) fn keys(&self) -> Vec<&Key> {
        self.pairs.iter().map(|pair| &pair.key).chain(self.shown.iter().map(|both| both.key)).collect()
    }
}

/// A cell's texts in both runs.
#[derive(Debug)]
pub(super) struct ShownPair<'a> {
    pub(super) key: &'a Key,
    pub(super) before: &'a [String],
    pub(super) after: &'a [String],
}

/// Texts of the cells that both runs have.
fn pair_shown<'a>(before: &'a LoadedRun, after: &'a LoadedRun) -> Vec<ShownPair<'a>> {
    let pair = |(key, texts): &'a (Key, Vec<String>)| {
        let (_, others) = after.shown.iter().find(|(other, _)| other == key)?;
        Some(ShownPair { key, before: texts, after: others })
    };
    before.shown.iter().filter_map(pair).collect()
}

/// All measures of cells that both runs have, and the number of cells that only one has.
fn pair_up(before: &LoadedRun, after: &LoadedRun) -> (Vec<Pair>, usize) {
    let mut pairs = Vec::new();
    let mut common = 0;
    for (key, ours) in &before.cells {
        let Some((_, theirs)) = after.cells.iter().find(|(k, _)| k == key) else { continue };
        common += 1;
        for measure in &before.comparison.measures {
            let (Some(a), Some(b)) = (ours.get(&measure.field), theirs.get(&measure.field)) else { continue };
            pairs.push(judge(key, measure, a, b));
        }
    }
    (pairs, before.cells.len() + after.cells.len() - 2 * common)
}

pub(super) fn judge(key: &Key, measure: &Measure, a: &[f64], b: &[f64]) -> Pair {
    let (before, after) = (median(a).unwrap_or(0.0), median(b).unwrap_or(0.0));
    let noise = LEAST.max(spread(a).variation).max(spread(b).variation);
    let change = if before == after { 0.0 } else { after / before - 1.0 };
    let verdict = if a.len().min(b.len()) < REPEATS {
        Verdict::None
    } else if change.abs() <= noise {
        Verdict::Same
    } else if (change > 0.0) == measure.more_is_better {
        Verdict::Better
    } else {
        Verdict::Worse
    };
    Pair { key: key.clone(), field: measure.field.clone(), before, after, verdict }
}
