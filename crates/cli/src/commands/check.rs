//! `snowmelt check`: every page, every tree, the indexes against each other, every term.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::control::{self, Client, Found};
use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use snowmelt_base::{say, signals};
use snowmelt_graph::{CheckReport, GraphDatabase, RepairReport};
use snowmelt_server::control::{Command, Reply};
use snowmelt_store::Salvage;
use snowmelt_switches::meters::MetersArg;
use snowmelt_switches::open::OpenArgs;

/// Verify every page, every tree, and the indexes against each other.
#[derive(clap::Args)]
pub struct CheckArgs {
    /// The database directory
    db: PathBuf,
    /// When the journal is damaged, go on with the commits before the damage; those after it
    /// are lost
    #[arg(long)]
    salvage: bool,
    /// When a quad index is damaged, write it anew from the others. Where they have too little for
    /// that nothing is changed. Copy the directory first
    #[arg(long, conflicts_with = "salvage")]
    repair: bool,
    #[command(flatten)]
    meters: MetersArg,
    #[command(flatten)]
    open: OpenArgs,
}

/// Runs the command.
pub fn run(args: CheckArgs) -> anyhow::Result<()> {
    let mut config = args.open.config();
    if args.salvage {
        config.journal.salvage = Salvage::CutJournal;
    }
    let writes = args.salvage || args.repair;
    let found = match writes {
        true => control::find(&args.db, &config)?,
        false => control::find_to_read(&args.db, &args.open)?,
    };
    let database = match found {
        Found::Open(database) => database,
        Found::Served(_) if writes => bail!("a server has {} open: stop it first", args.db.display()),
        Found::Served(server) => {
            args.meters.are_the_servers(&args.db);
            return say(&args.db, &ask(server)?);
        }
    };
    let _meters = args.meters.at_end(&database);
    if args.salvage {
        database.database().store().settle_salvage()?;
    }
    if args.repair {
        repair(&args, &database, config.memory_bytes)?;
    }
    let bar = ProgressBar::new(0)
        .with_style(ProgressStyle::with_template("{msg:<24} [{bar:40}] {human_pos}/{human_len} {eta}")?);
    let stop = signals::stop_flag()?;
    let report = database.check_until(&mut |progress| {
        bar.set_message(progress.step);
        bar.set_length(progress.total);
        bar.set_position(progress.done);
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    bar.finish_and_clear();
    say(&args.db, &report)
}

/// Writes damaged quad indexes anew, and says what it did. What is still wrong, the check says.
fn repair(args: &CheckArgs, database: &Arc<GraphDatabase>, memory_bytes: u64) -> anyhow::Result<()> {
    let stop = signals::stop_flag()?;
    let done = database.repair(memory_bytes, &(), &stop)?;
    for damage in &done.damage {
        say!("damaged: {damage}");
    }
    for name in &done.rebuilt {
        say!("repaired: {name} was written anew");
    }
    for lost in &done.lost {
        say!("lost: {lost}");
    }
    match done {
        RepairReport { lost, .. } if !lost.is_empty() => {
            bail!("{} cannot be repaired, and was not changed: restore it from a copy", args.db.display())
        }
        RepairReport { rebuilt, .. } if rebuilt.is_empty() => {
            say!("repair: the quad indexes are sound, nothing was changed");
        }
        _ => {}
    }
    Ok(())
}

/// The report of the server that has the database open.
fn ask(server: Client) -> anyhow::Result<CheckReport> {
    match server.ask(Command::Check)? {
        Reply::Checked { pages, rows, strings, problems, problem_count } => {
            Ok(CheckReport { pages, rows, strings, problems, problem_count })
        }
        other => Err(control::unexpected(&other)),
    }
}

fn say(db: &Path, report: &CheckReport) -> anyhow::Result<()> {
    say!("{} pages, {} rows, {} strings checked", report.pages, report.rows, report.strings);
    if report.is_sound() {
        say!("sound");
        return Ok(());
    }
    for problem in &report.problems {
        say!("{problem}");
    }
    bail!("{} has {} problems: restore it from a copy, or load it again", db.display(), report.problem_count)
}
