//! The plan of `lab write`: every possible combination of the lists, and the reasons against
//! the others.

use snowmelt_io::JobEngine;

use crate::LabError;
use crate::device::scheduler::Scheduler;
use crate::run::arguments::EngineName;
use crate::run::grid::grid;
use crate::target::Target;
use crate::write::WriteArgs;
use crate::write::rung::{Rung, SyncPolicy};

/// A rung with what it takes to climb it.
pub(super) struct PlannedRung {
    pub(super) rung: Rung,
    pub(super) engine: EngineName,
    pub(super) scheduler: Option<Scheduler>,
}

/// All rungs that can be under each of `schedulers` (none leaves the device's own), and why the
/// others cannot.
pub(super) fn plan(
    args: &WriteArgs,
    schedulers: &[Scheduler],
    target: &Target,
) -> Result<(Vec<PlannedRung>, Vec<String>), LabError> {
    let lens = [
        schedulers.len().max(1),
        args.sizes.len(),
        args.sync.len(),
        args.engine.len(),
        args.direct.len(),
        args.prefetch.len(),
    ];
    let mut plan = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    for [scheduler, bs, sync, engine, direct, prefetch] in grid(lens) {
        let scheduler = schedulers.get(scheduler).cloned();
        let engine = args.engine[engine];
        let rung = Rung {
            rw: "randwrite".into(),
            ioengine: engine.name().into(),
            bs: args.sizes[bs],
            // A write that is synced at once waits for nothing but itself.
            iodepth: match args.sync[sync] {
                SyncPolicy::Each => 1,
                _ => engine.0.most_depth().unwrap_or(args.depth),
            },
            direct: args.direct[direct].is_on(),
            prefetch: args.prefetch[prefetch].is_on(),
            sync: args.sync[sync],
            scheduler: scheduler.as_ref().map(|scheduler| scheduler.name.clone()),
        };
        match impossible(&rung, engine, target)? {
            Some(why) => left_out.push(why),
            None => plan.push(PlannedRung { rung, engine, scheduler }),
        }
    }
    left_out.sort();
    left_out.dedup();
    Ok((plan, left_out))
}

fn impossible(rung: &Rung, engine: EngineName, target: &Target) -> Result<Option<String>, LabError> {
    if engine.0 == JobEngine::Mmap && rung.direct {
        return Ok(Some("mapped memory is the page cache: no mmap with --direct on".into()));
    }
    if rung.direct && rung.prefetch {
        return Ok(Some(
            "O_DIRECT does not see what was read ahead: no --prefetch on with --direct on".into(),
        ));
    }
    if rung.direct {
        let unit = target.open(false, true)?.alignment().offset as u64;
        if !rung.bs.is_multiple_of(unit) {
            return Ok(Some(format!(
                "O_DIRECT takes multiples of {unit} bytes here: no size of {}",
                rung.bs
            )));
        }
    }
    Ok(None)
}
