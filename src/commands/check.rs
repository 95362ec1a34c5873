//! `snowmelt check`: every page, every tree, the indexes against each other, every term.

use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use snowmelt::open::{OpenArgs, open};
use snowmelt_store::Salvage;

/// Verify every page, every tree, and the indexes against each other.
#[derive(clap::Args)]
pub struct Args {
    /// The database directory
    db: PathBuf,
    /// When the journal is damaged, go on with the commits before the damage; those after it are lost
    #[arg(long)]
    salvage: bool,
    #[command(flatten)]
    open: OpenArgs,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<()> {
    let mut config = args.open.config();
    if args.salvage {
        config.journal.salvage = Salvage::CutJournal;
    }
    let database = open(&args.db, &config)?;
    if args.salvage {
        database.store().settle_salvage()?;
    }
    let bar = ProgressBar::new(0)
        .with_style(ProgressStyle::with_template("{msg:<24} [{bar:40}] {human_pos}/{human_len} {eta}")?);
    let report = database.check(&mut |progress| {
        bar.set_message(progress.step);
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    })?;
    bar.finish_and_clear();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} pages, {} rows, {} strings checked", report.pages, report.rows, report.strings)?;
    if report.is_sound() {
        writeln!(out, "sound")?;
        return Ok(());
    }
    for problem in &report.problems {
        writeln!(out, "{problem}")?;
    }
    bail!(
        "{} has {} problems: restore it from a copy, or load it again",
        args.db.display(),
        report.problem_count
    )
}
