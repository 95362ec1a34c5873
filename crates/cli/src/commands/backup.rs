//! `snowmelt backup` and `snowmelt restore`: copy one consistent state of a database, verifying
//! every page.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::control::{self, Client, Found};
use crate::switches::meters::MetersArg;
use crate::switches::open::OpenArgs;
use indicatif::{ProgressBar, ProgressStyle};
use snowmelt_server::control::{Command, Reply};

/// Copy a database, as of now, to a new directory.
#[derive(clap::Args)]
pub struct BackupArgs {
    /// The database directory; for a restore, the backup
    source: PathBuf,
    /// The directory of the copy; made, must hold no database
    target: PathBuf,
    /// Put the copy's data on these devices or directories instead (repeatable)
    #[arg(long, value_name = "PATH")]
    stripe: Vec<PathBuf>,
    #[command(flatten)]
    meters: MetersArg,
    #[command(flatten)]
    open: OpenArgs,
}

/// Runs `backup`; `restore` is the same the other way round: a backup is a database.
pub fn run(args: BackupArgs) -> anyhow::Result<()> {
    let database = match control::find_to_read(&args.source, &args.open.config())? {
        Found::Open(database) => database,
        Found::Served(server) => {
            args.meters.are_the_servers(&args.source);
            return ask(&args, server);
        }
    };
    let _meters = args.meters.at_end(&database);
    let bar = ProgressBar::new(0).with_style(ProgressStyle::with_template(
        "copying [{bar:40}] {human_pos}/{human_len} extents {eta}",
    )?);
    let done = database.store().backup(&args.target, &args.stripe, |at| {
        bar.set_length(at.extents);
        bar.set_position(at.extents_done);
    })?;
    bar.finish_and_clear();
    say(&args.target, done.pages, done.txn)
}

/// Has the server make the copy: it writes as its own user.
fn ask(args: &BackupArgs, server: Client) -> anyhow::Result<()> {
    let stripes: Result<_, _> = args.stripe.iter().map(std::path::absolute).collect();
    let command = Command::Backup { target: std::path::absolute(&args.target)?, stripes: stripes? };
    match server.ask(command)? {
        Reply::BackedUp { pages, txn } => say(&args.target, pages, txn),
        other => Err(control::unexpected(&other)),
    }
}

fn say(target: &Path, pages: u64, txn: u64) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}: {pages} pages, verified, as of transaction {txn}", target.display())?;
    Ok(())
}
