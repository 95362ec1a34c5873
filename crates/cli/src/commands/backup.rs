//! `snowmelt backup`: copy one consistent state of a database, verifying every page; whole, or in
//! a set of backups what has changed.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::control::{self, Client, Found};
use indicatif::{ProgressBar, ProgressStyle};
use snowmelt_base::{say, signals};
use snowmelt_database::CopyProgress;
use snowmelt_server::control::{Command, Reply};
use snowmelt_switches::meters::MetersArg;
use snowmelt_switches::open::OpenArgs;

/// Copy a database, as of now, to a new directory.
#[derive(clap::Args)]
pub struct BackupArgs {
    /// The database directory
    source: PathBuf,
    /// The directory of the copy, which must hold no database; with --incremental that of the set
    target: PathBuf,
    /// Add to a set of backups: all of the database the first time, then what has changed since
    /// the newest backup of the set
    #[arg(long, conflicts_with = "stripe")]
    incremental: bool,
    /// Put the copy's data on these devices or directories instead (repeatable)
    #[arg(long, value_name = "PATH")]
    stripe: Vec<PathBuf>,
    #[command(flatten)]
    meters: MetersArg,
    #[command(flatten)]
    open: OpenArgs,
}

/// Runs `backup`.
pub fn run(args: BackupArgs) -> anyhow::Result<()> {
    let database = match control::find_to_read(&args.source, &args.open)? {
        Found::Open(database) => database,
        Found::Served(server) => {
            args.meters.are_the_servers(&args.source);
            return ask(&args, server);
        }
    };
    let _meters = args.meters.at_end(&database);
    let mut bar = CopyBar::new()?;
    if args.incremental {
        let added = database.database().backup_to_set(&args.target, |at| bar.show(at))?;
        bar.end();
        match added {
            Some((part, done)) => say_added(&args.target, Some(&part.name), done.pages, done.txn),
            None => say_added(&args.target, None, 0, database.database().newest()),
        }
        return Ok(());
    }
    let done = database.database().backup_until(&args.target, &args.stripe, |at| bar.show(at))?;
    bar.end();
    say_copied(&args.target, done.pages, done.txn);
    Ok(())
}

/// Has the server make the copy: it writes as its own user.
fn ask(args: &BackupArgs, server: Client) -> anyhow::Result<()> {
    let target = std::path::absolute(&args.target)?;
    let stripes: Result<_, _> = args.stripe.iter().map(std::path::absolute).collect();
    let command = match args.incremental {
        true => Command::BackupToSet { set: target },
        false => Command::Backup { target, stripes: stripes? },
    };
    match server.ask(command)? {
        Reply::BackedUp { pages, txn } => say_copied(&args.target, pages, txn),
        Reply::AddedToSet { name, pages, txn } => say_added(&args.target, name.as_deref(), pages, txn),
        other => return Err(control::unexpected(&other)),
    }
    Ok(())
}

/// How far a copy is.
pub struct CopyBar(ProgressBar, Arc<AtomicBool>);

impl CopyBar {
    /// An empty bar.
    pub fn new() -> anyhow::Result<Self> {
        let style = "copying [{bar:40}] {human_pos}/{human_len} extents {eta}";
        let bar = ProgressBar::new(0).with_style(ProgressStyle::with_template(style)?);
        Ok(Self(bar, signals::stop_flag()?))
    }

    /// Shows the progress; the copy goes on until a signal ends it.
    pub fn show(&mut self, at: CopyProgress) -> ControlFlow<()> {
        self.0.set_length(at.extents);
        self.0.set_position(at.extents_done);
        if self.1.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Removes the bar.
    pub fn end(&self) {
        self.0.finish_and_clear();
    }
}

/// Says what was copied.
pub fn say_copied(target: &Path, pages: u64, txn: u64) {
    say!("{}: {pages} pages, verified, as of transaction {txn}", target.display());
}

fn say_added(set: &Path, name: Option<&str>, pages: u64, txn: u64) {
    match name {
        Some(name) => say_copied(&set.join(name), pages, txn),
        None => say!("{}: nothing has changed since transaction {txn}", set.display()),
    }
}
