//! Processor time of a process and of all that it started.
//!
//! A child's time passes to its parent when that waits for it, so the sum over a tree of what each
//! process used itself and got from children that ended only grows while parents wait.

use std::collections::HashMap;

use super::proc_stat::{ProcStat, pids, with_children};

/// Ticks of the processes `roots` and of all below them.
pub(super) fn ticks(roots: &[u32]) -> u64 {
    let all: HashMap<u32, ProcStat> = pids().filter_map(|pid| Some((pid, ProcStat::read(pid)?))).collect();
    let family = with_children(&roots.iter().copied().collect(), &all, |stat| stat.parent);
    family.iter().filter_map(|pid| all.get(pid)).map(ProcStat::ticks).sum()
}

/// Ticks of this process's children that ended, with those of what they started and waited for.
pub(super) fn of_children() -> u64 {
    ProcStat::read(std::process::id()).map_or(0, |stat| stat.waited_ticks)
}
