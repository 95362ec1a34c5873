//! `snowmelt-lab oltp`: transactions beside a scan of the same disk (`snowmelt_bench::oltp`).

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::json;
use snowmelt_base::{say, size};
use snowmelt_bench::oltp::{OltpPlan, measure, page};
use snowmelt_engines::Work;
use snowmelt_lab::machine::BlockDevice;
use snowmelt_lab::undo::Undo;
use snowmelt_lab::{Busy, LabError, Run, SchedulerChoice, chosen_schedulers, signals};
use snowmelt_switches::program::neighbour;

use super::SNOWMELT;

/// Measure transactions beside a scan of the same disk: each alone and both, by scheduler
#[derive(Debug, clap::Args)]
pub struct OltpArgs {
    /// A folder on the disk to be measured; databases and a file are made in it, and removed
    dir: PathBuf,
    /// Engines: postgresql (pgbench's mix) and snowmelt (the same changes as SPARQL updates)
    #[arg(long, value_name = "E,E", value_delimiter = ',', default_value = "postgresql,snowmelt")]
    engines: Vec<String>,
    /// Schedulers of the disk (needs root; set back at the end), as `snowmelt-lab scan` has them
    #[arg(long, visible_alias = "schedulers", value_delimiter = ',', default_value = "as-is")]
    scheduler: Vec<SchedulerChoice>,
    /// Branches, each with 10 tellers and 100,000 accounts (pgbench: -s)
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=1000))]
    scale: u32,
    /// Transactions at a time
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: u32,
    /// Scanners, each of a part of the file
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=64))]
    dop: u32,
    /// Bytes that are scanned, past the page cache, again and again
    #[arg(long, value_name = "SIZE", default_value = "1g", value_parser = size::parse)]
    size: u64,
    /// Seconds of each phase: transactions, scan, both
    #[arg(long, value_name = "S", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Rounds
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Memory of each engine
    #[arg(long, value_name = "SIZE", default_value = "256m", value_parser = size::parse)]
    memory: u64,
    #[command(flatten)]
    busy: Busy,
    /// Folder of the run
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &OltpArgs) -> Result<()> {
    let look = || -> Result<BlockDevice> {
        Ok(BlockDevice::find(&args.dir)?.ok_or_else(|| {
            let why = "no block device is behind it (a file system in memory, or over a network)";
            LabError::refused(args.dir.display(), why, "name a folder on a disk")
        })?)
    };
    if !args.dir.is_dir() {
        bail!("{}: is no folder", args.dir.display());
    }
    let stop = signals::stop_on_signal();
    let undo = Undo::open("oltp")?;
    args.busy.hold(&[look()?], &undo, stop.flag())?;
    let device = look()?;
    let schedulers = chosen_schedulers(&args.scheduler, std::slice::from_ref(&device))?;
    let (_, folder) = undo.make_tree(&std::path::absolute(&args.dir)?, "snowmelt-oltp")?;
    let plan = OltpPlan {
        engines: args.engines.clone(),
        folder,
        snowmelt: neighbour(SNOWMELT)?,
        device: device.clone(),
        schedulers,
        scale: args.scale,
        clients: args.clients,
        dop: args.dop,
        scan_bytes: args.size,
        seconds: args.seconds,
        repeat: args.repeat,
        memory: args.memory,
    };
    let mut run = Run::create("oltp", args.out.as_deref())?;
    run.settings(&json!({
        "engines": args.engines, "scale": args.scale, "clients": args.clients, "dop": args.dop,
        "scan_bytes": args.size, "seconds": args.seconds, "memory_bytes": args.memory,
    }));
    run.compare_by("phases", &["engine", "scheduler", "phase"], &[("per_s", true), ("scan_mb_per_s", true)]);
    run.device(device);
    let work = Work { undo: undo.clone(), stop: stop.shared() };
    let result = measure(&plan, &work, &run, &|line| say!("{line}"))?;
    undo.undo()?;
    result.doubts.iter().for_each(|doubt| run.doubt(doubt));
    let page = run.finish(page::report(&result))?;
    say!("\n{}", page.display());
    Ok(())
}
