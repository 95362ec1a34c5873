//! The cells of `lab read` and `lab write`, measured in turns.
//!
//! 1. Every turn measures all cells, beginning at another one, so that no cell always comes
//!    first.
//! 2. A cell is in the run folder and on the screen as soon as it is measured.
//! 3. After a signal the cell under way is dropped, everything set is set back, and the page
//!    shows what there is.

use serde::Serialize;

use crate::machine::others::Parties;
use crate::report::Report;
use crate::undo::Undo;
use crate::undo::signals::Stop;
use crate::{LabError, Run};

/// The result of a cell.
pub trait Measured: Serialize {
    /// The cell in a few words.
    fn name(&self) -> String;
    /// Its line on the screen.
    fn row(&self) -> String;
    /// Reasons to doubt it.
    fn doubts(&self) -> &[String];

    /// A disk, and whose its requests were, by a trace of the cell.
    fn traced(&self) -> Option<(&str, Parties)> {
        None
    }
}

/// Refuses what no cell could be run with.
pub fn check(runtime_s: f64, repeats: u32, depths: &[u32]) -> Result<(), LabError> {
    let wrong = |why: &str| Err(LabError::Argument(why.into()));
    if !(runtime_s > 0.0 && runtime_s <= 86_400.0) {
        return wrong("--runtime must be more than 0 and at most 86400 seconds");
    }
    if repeats == 0 || repeats > 1000 {
        return wrong("--repeats must be between 1 and 1000");
    }
    if depths.iter().any(|depth| *depth == 0 || *depth > 4096) {
        return wrong("--depth must be between 1 and 4096");
    }
    Ok(())
}

/// The plan, beginning at another cell in every turn; turns count from 1.
pub fn rotated<P>(plan: &[P], turn: u32, turns: u32) -> impl Iterator<Item = &P> {
    let first = (turn - 1) as usize * plan.len() / turns.max(1) as usize;
    plan[first..].iter().chain(&plan[..first])
}

/// How a plan is measured.
pub struct Turns<'a> {
    /// Name of the file of results in the run folder.
    pub file: &'a str,
    /// Turns.
    pub count: u32,
    /// Ends them.
    pub stop: &'a Stop,
    /// Everything that was set, set back at the end.
    pub undo: &'a Undo,
}

/// Measures every cell of `plan` in each turn, then sets everything back and writes the page.
pub fn run<P, R: Measured>(
    mut run: Run,
    turns: &Turns<'_>,
    plan: &[P],
    mut measure: impl FnMut(&P, u32) -> Result<R, LabError>,
    report: impl FnOnce(&[R]) -> Report,
) -> Result<(), LabError> {
    let Turns { file, count, stop, undo } = *turns;
    let mut lines = run.lines(file)?;
    let mut results = Vec::new();
    'all: for turn in 1..=count {
        for cell in rotated(plan, turn, count) {
            let result = measure(cell, turn)?;
            if stop.requested() {
                run.doubt("stopped by a signal before it was complete");
                break 'all;
            }
            lines.write(&result)?;
            result.doubts().iter().for_each(|doubt| run.doubt(format!("{}: {doubt}", result.name())));
            crate::say!("{}", result.row());
            if let Some((disk, parties)) = result.traced() {
                run.traced(disk, parties);
            }
            results.push(result);
        }
    }
    undo.undo()?;
    let page = run.finish(report(&results))?;
    crate::say!("\n{}", page.display());
    if stop.requested() { Err(LabError::Stopped) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_turn_has_every_cell_and_begins_elsewhere() {
        let plan = [0, 1, 2, 3, 4];
        let turns: Vec<Vec<i32>> = (1..=3).map(|turn| rotated(&plan, turn, 3).copied().collect()).collect();
        assert_eq!(turns, [vec![0, 1, 2, 3, 4], vec![1, 2, 3, 4, 0], vec![3, 4, 0, 1, 2]]);
        assert_eq!(rotated(&plan[..0], 1, 1).count(), 0);
    }
}
