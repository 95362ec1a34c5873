//! `snowmelt compact`: move scattered leaves into key order, write everything back and give
//! free space at the end of the files back.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use crate::control::{self, Found};
use crate::switches::meters::MetersArg;
use crate::switches::open::OpenArgs;
use snowmelt_base::signals;
use snowmelt_server::control::{Command, Reply};

/// Move scattered pages into key order, write everything back and give free space at the end of
/// the files back.
#[derive(clap::Args)]
pub struct CompactArgs {
    /// The database directory
    db: PathBuf,
    #[command(flatten)]
    meters: MetersArg,
    #[command(flatten)]
    open: OpenArgs,
}

/// Runs the command.
pub fn run(args: CompactArgs) -> anyhow::Result<()> {
    let database = match control::find(&args.db, &args.open.config())? {
        Found::Open(database) => database,
        Found::Served(server) => {
            args.meters.are_the_servers(&args.db);
            return match server.ask(Command::Compact)? {
                Reply::Compacted { before, after, moved } => say(before, after, moved),
                other => Err(control::unexpected(&other)),
            };
        }
    };
    let _meters = args.meters.at_end(&database);
    let stop = signals::stop_flag()?;
    let done = database.compact_until(|_| match stop.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })?;
    if let Some(shortage) = &done.shortage {
        eprintln!("{shortage}; not all pages were moved into key order");
    }
    say(done.before_bytes, done.after_bytes, done.leaves)
}

fn say(before: u64, after: u64, moved: u64) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{before} bytes of data before, {after} after; {moved} pages moved into key order")?;
    Ok(())
}
