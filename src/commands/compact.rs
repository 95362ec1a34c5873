//! `snowmelt compact`: move scattered leaves into key order, write everything back and give free space at the end of the files back.

use std::io::Write;
use std::path::{Path, PathBuf};

use snowmelt::open::OpenArgs;
use snowmelt_graph::GraphError;
use snowmelt_store::StoreError;

/// Move scattered pages into key order, write everything back and give free space at the end of the files back.
#[derive(clap::Args)]
pub struct Args {
    /// The database directory
    db: PathBuf,
    #[command(flatten)]
    open: OpenArgs,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<()> {
    let database = args.open.open(&args.db)?;
    let files: Vec<PathBuf> = database.store().stripe_files().to_vec();
    let before = bytes(&files)?;
    let mut leaves = 0;
    match database.relocate(|n| leaves = n) {
        Ok(_) => {}
        // What was moved stays moved; giving space back needs none.
        Err(GraphError::Store(e @ StoreError::Full { .. })) => {
            eprintln!("{e}; not all pages were moved into key order");
        }
        Err(e) => return Err(e.into()),
    }
    database.store().compact()?;
    drop(database);
    let after = bytes(&files)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{before} bytes of data before, {after} after; {} pages moved into key order", leaves)?;
    Ok(())
}

fn bytes(files: &[impl AsRef<Path>]) -> anyhow::Result<u64> {
    files.iter().map(|f| Ok(std::fs::metadata(f)?.len())).sum()
}
