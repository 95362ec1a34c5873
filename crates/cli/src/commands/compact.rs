//! `snowmelt compact`: move scattered leaves into key order, write everything back and give
//! free space at the end of the files back.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::control::{self, Found};
use crate::switches::open::OpenArgs;
use snowmelt_graph::GraphError;
use snowmelt_server::control::{Command, Reply};
use snowmelt_store::StoreError;

/// Move scattered pages into key order, write everything back and give free space at the end of
/// the files back.
#[derive(clap::Args)]
pub struct CompactArgs {
    /// The database directory
    db: PathBuf,
    #[command(flatten)]
    open: OpenArgs,
}

/// Runs the command.
pub fn run(args: CompactArgs) -> anyhow::Result<()> {
    let database = match control::find(&args.db, &args.open.config())? {
        Found::Open(database) => database,
        Found::Served(server) => {
            return match server.ask(Command::Compact)? {
                Reply::Compacted { before, after, moved } => say(before, after, moved),
                other => Err(control::unexpected(&other)),
            };
        }
    };
    let files: Vec<PathBuf> = database.store().stripe_files().to_vec();
    let before = bytes(&files)?;
    let mut leaves = 0;
    match database.relocate(|n| leaves = n) {
        Ok(_) => {}
        // Moved leaves stay moved; giving space back needs no space.
        Err(GraphError::Store(e @ StoreError::Full { .. })) => {
            eprintln!("{e}; not all pages were moved into key order");
        }
        Err(e) => return Err(e.into()),
    }
    database.store().compact()?;
    drop(database);
    let after = bytes(&files)?;
    say(before, after, leaves)
}

fn say(before: u64, after: u64, moved: u64) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{before} bytes of data before, {after} after; {moved} pages moved into key order")?;
    Ok(())
}

fn bytes(files: &[impl AsRef<Path>]) -> anyhow::Result<u64> {
    files.iter().map(|f| Ok(std::fs::metadata(f)?.len())).sum()
}
