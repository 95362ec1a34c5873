//! The plan of `lab read`: every possible combination of the lists, and the reasons against the
//! others.

use snowmelt_io::{JobEngine, Pattern};

use crate::device::scheduler::Scheduler;
use crate::read::ReadArgs;
use crate::read::cell::{BufferMemory, ReadCell, name_of};
use crate::run::arguments::{EngineName, OnOff, show_pattern};
use crate::run::grid::grid;
use crate::run::load::Load;
use crate::target::Target;
use crate::target::cold::unproven;
use crate::{LabError, size};

/// Multiples of which offsets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Size,
    Bytes(u64),
}

impl std::str::FromStr for Align {
    type Err = String;
    fn from_str(text: &str) -> Result<Align, String> {
        if text == "size" { Ok(Align::Size) } else { size::parse(text).map(Align::Bytes) }
    }
}

/// A cell with what it takes to run it.
pub(super) struct Planned {
    pub(super) cell: ReadCell,
    pub(super) engine: EngineName,
    pub(super) pattern: Pattern,
    pub(super) load: Load,
    /// So many of 100 requests read.
    pub(super) read_percent: u8,
    pub(super) scheduler: Option<Scheduler>,
}

/// All cells that can be under each of `schedulers` (none leaves the device's own), and why the
/// others cannot.
pub(super) fn plan(
    args: &ReadArgs,
    schedulers: &[Scheduler],
    target: &Target,
) -> Result<(Vec<Planned>, Vec<String>), LabError> {
    let past_the_cache = args.model.is_none() && args.direct.contains(&OnOff::On);
    let unit = if past_the_cache { target.open(false, true)?.alignment().offset as u64 } else { 1 };
    let is_buffered = args.model.is_none() && args.direct.contains(&OnOff::Off);
    let unproven = if is_buffered { unproven(target.open(false, false)?.file()) } else { None };
    let (ahead, loads) = (kernel_ahead(args), args.load.all());
    let mixes: &[u8] = if args.rwmixread.is_empty() { &[100] } else { &args.rwmixread };
    let lens = [
        schedulers.len().max(1),
        loads.len(),
        mixes.len(),
        args.engine.len(),
        args.direct.len(),
        args.pattern.len(),
        args.align.len(),
        args.sizes.len(),
        ahead.len(),
        args.mem.len(),
        args.depth.len(),
    ];
    let mut plan: Vec<Planned> = Vec::new();
    let mut left_out = Vec::new();
    for [scheduler, load, mix, engine, direct, pattern, align, bs, at, mem, depth] in grid(lens) {
        let (direct, pattern, bs) = (args.direct[direct].is_on(), args.pattern[pattern], args.sizes[bs]);
        if direct && at > 0 {
            continue; // past the page cache nothing is read ahead: one cell stands for all
        }
        let (read_ahead_kb, prefetch) = if direct { (None, false) } else { ahead[at] };
        let scheduler = schedulers.get(scheduler).cloned();
        let (load, read_percent) = (loads[load], mixes[mix]);
        let asked = args.engine[engine];
        let engine = load.engine(asked);
        let cell = ReadCell {
            ioengine: engine.name().into(),
            load: load.fields(),
            rw: rw(pattern, read_percent).into(),
            rwmixread: (read_percent < 100).then_some(read_percent),
            bs,
            iodepth: args.depth[depth],
            direct,
            align: if let Align::Bytes(bytes) = args.align[align] { bytes } else { bs },
            pattern: show_pattern(pattern),
            read_ahead_kb,
            prefetch,
            mem: args.mem[mem],
            scheduler: scheduler.as_ref().map(|scheduler| scheduler.name.clone()),
        };
        if let Some(why) = unproven.as_ref().filter(|_| !direct) {
            left_out.push(format!("{why}: no --direct off"));
            continue;
        }
        let senseless = load.impossible(pattern, asked, cell.iodepth);
        match senseless.or_else(|| impossible(&cell, engine, unit)) {
            Some(why) => left_out.push(why),
            None => plan.push(Planned { cell, engine, pattern, load, read_percent, scheduler }),
        }
    }
    left_out.sort();
    left_out.dedup();
    Ok((plan, left_out))
}

/// fio's name of a load.
fn rw(pattern: Pattern, read_percent: u8) -> &'static str {
    match (pattern == Pattern::Random, read_percent) {
        (true, 0) => "randwrite",
        (true, 1..=99) => "randrw",
        (true, _) => "randread",
        (false, 0) => "write",
        (false, 1..=99) => "rw",
        (false, _) => "read",
    }
}

/// Ways of the kernel to read ahead, by its setting and on request, for cells through the page
/// cache.
fn kernel_ahead(args: &ReadArgs) -> Vec<(Option<u64>, bool)> {
    let settings = if args.read_ahead_kb.is_empty() {
        vec![None]
    } else {
        args.read_ahead_kb.iter().map(|kb| Some(*kb)).collect()
    };
    grid([settings.len(), args.prefetch.len()])
        .map(|[kb, prefetch]| (settings[kb], args.prefetch[prefetch].is_on()))
        .collect()
}

/// Whether the kernel has transparent huge pages.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Most memory for the buffers of a cell.
const MOST_BYTES: u64 = 1 << 30;

fn impossible(cell: &ReadCell, engine: EngineName, unit: u64) -> Option<String> {
    let name = engine.name();
    if engine.0.most_depth().is_some_and(|most| cell.iodepth > most) {
        return Some(format!("{name} has one request at a time: no depth of {}", cell.iodepth));
    }
    if engine.0 == JobEngine::Mmap && cell.direct {
        return Some("mapped memory is the page cache: no mmap with --direct on".into());
    }
    if cell.mem == BufferMemory::MmapHuge
        && std::fs::read_to_string(HUGE_PAGES).is_ok_and(|s| s.contains("[never]"))
    {
        return Some(format!("{HUGE_PAGES} says never: no mmaphuge until root writes madvise there"));
    }
    if cell.rwmixread.is_some() && cell.pattern != "random" {
        let pattern = &cell.pattern;
        return Some(format!(
            "a mix is drawn request by request, at random places: no --rwmixread with {pattern}"
        ));
    }
    if cell.load.prioclass.is_some() && cell.rwmixread.is_some() && !cell.direct {
        return Some(
            "what is written through the page cache goes to the device later, by the kernel's own threads: \
             no --ioprio with --rwmixread and --direct off"
                .into(),
        );
    }
    let bytes = u64::from(cell.iodepth) * cell.bs;
    if bytes > MOST_BYTES {
        let (bytes, most) = (size::exact(bytes), size::exact(MOST_BYTES));
        return Some(format!("buffers take {most} at most: no {bytes} for {}", name_of(cell)));
    }
    if cell.direct && !(cell.bs.is_multiple_of(unit) && cell.align.is_multiple_of(unit)) {
        return Some(format!("O_DIRECT takes multiples of {unit} bytes here: no {}", name_of(cell)));
    }
    None
}
