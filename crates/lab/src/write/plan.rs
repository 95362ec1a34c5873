//! The plan of `lab write`: every possible combination of the lists, and the reasons against
//! the others.

use snowmelt_io::{JobEngine, LEAST_STAMPED, Pattern};

use crate::LabError;
use crate::device::scheduler::Scheduler;
use crate::run::arguments::EngineName;
use crate::run::grid::grid;
use crate::run::load::Load;
use crate::target::Target;
use crate::write::WriteArgs;
use crate::write::rung::{Rung, SyncPolicy};
use crate::write::sized::SizedTarget;

/// A rung with what it takes to climb it.
pub(crate) struct PlannedRung {
    pub(super) rung: Rung,
    /// Which of the files it writes to.
    pub(super) target: usize,
    /// Its place in the plan.
    pub(super) number: u64,
    pub(super) engine: EngineName,
    pub(super) load: Load,
    pub(super) scheduler: Option<Scheduler>,
}

/// All rungs that can be under each of `schedulers` (none leaves the device's own), and why the
/// others cannot.
pub(super) fn plan(
    args: &WriteArgs,
    schedulers: &[Scheduler],
    targets: &[SizedTarget],
) -> Result<(Vec<PlannedRung>, Vec<String>), LabError> {
    let loads = args.load.all();
    let lens = [
        schedulers.len().max(1),
        targets.len(),
        loads.len(),
        args.sizes.len(),
        args.sync.len(),
        args.engine.len(),
        args.direct.len(),
        args.prefetch.len(),
    ];
    let mut plan: Vec<PlannedRung> = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    for [scheduler, target, load, bs, sync, engine, direct, prefetch] in grid(lens) {
        let scheduler = schedulers.get(scheduler).cloned();
        let (load, on) = (loads[load], &targets[target]);
        let asked = args.engine[engine];
        let engine = load.engine(asked);
        let rung = Rung {
            rw: "randwrite".into(),
            ioengine: engine.name().into(),
            size: on.size,
            sparse: on.sparse,
            load: load.fields(),
            verify: args.verify,
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
        let senseless = load.impossible(Pattern::Random, asked, rung.iodepth);
        match senseless.map_or_else(|| impossible(&rung, engine, &on.target), |why| Ok(Some(why)))? {
            Some(why) => left_out.push(why),
            None => {
                let number = plan.len() as u64;
                plan.push(PlannedRung { rung, target, number, engine, load, scheduler });
            }
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
    if rung.sparse && rung.prefetch {
        return Ok(Some(
            "of a sparse file nothing is there to be read ahead: no --prefetch on with it".into(),
        ));
    }
    if rung.load.prioclass.is_some() && !rung.direct {
        return Ok(Some(
            "what is written through the page cache goes to the device later, by the kernel's own threads: \
             no --ioprio with --direct off"
                .into(),
        ));
    }
    if rung.verify && rung.bs < LEAST_STAMPED {
        return Ok(Some(format!(
            "a block that can be verified has {LEAST_STAMPED} bytes: no size of {}",
            rung.bs
        )));
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
