//! `snowmelt-lab repeat`: the published experiments (`snowmelt_bench::repeat`).

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::json;
use snowmelt_base::{say, tell};
use snowmelt_bench::repeat::{Experiment, RepeatPlan, findings_for_book, repeat};
use snowmelt_lab::{Run, signals};
use snowmelt_switches::program::neighbour;

use super::SNOWMELT;

/// Repeat a published experiment, and hold what comes out against what was published
#[derive(Debug, clap::Args)]
pub struct RepeatArgs {
    /// The experiment
    #[arg(value_enum, required_unless_present = "table")]
    experiment: Option<Which>,
    /// Small, in less than five minutes, without other systems
    #[arg(long)]
    quick: bool,
    /// Keep the databases and files of the steps
    #[arg(long)]
    keep: bool,
    /// Folder of the run
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the findings of runs as Markdown tables, and run nothing
    #[arg(long, value_name = "RUN", num_args = 1.., conflicts_with_all = ["experiment", "quick", "keep", "out"])]
    table: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Which {
    /// Warming a database from cold (Virtuoso, BSBM, 2011)
    E1,
    /// The work that BSBM Explore makes, and how it grows (Virtuoso, 2011)
    E2,
    /// Restart after a crash on wide but slow storage (RavenDB)
    E3,
    /// The requests beneath PostgreSQL's reads (TPC-H, 2012)
    E4,
    /// Parallel full scans under each I/O scheduler (Oracle, 2006)
    E5,
}

/// Runs the command.
pub fn run(args: &RepeatArgs) -> Result<()> {
    let Some(which) = args.experiment else {
        say!("{}", findings_for_book(&args.table)?.trim_end());
        return Ok(());
    };
    let stop = signals::stop_on_signal();
    let (experiment, name) = match which {
        Which::E1 => (Experiment::E1, "e1"),
        Which::E2 => (Experiment::E2, "e2"),
        Which::E3 => (Experiment::E3, "e3"),
        Which::E4 => (Experiment::E4, "e4"),
        Which::E5 => (Experiment::E5, "e5"),
    };
    let program = std::env::current_exe().context("where is this program?")?;
    let mut folder = Run::create(name, args.out.as_deref())?;
    folder.settings(&json!({ "experiment": name, "quick": args.quick }));
    let plan = RepeatPlan {
        experiment,
        is_quick: args.quick,
        program,
        snowmelt: neighbour(SNOWMELT)?,
        keeps: args.keep,
    };
    let page = repeat(&plan, folder, &stop, &|line| tell!("{line}"))?;
    say!("{}", page.display());
    Ok(())
}
