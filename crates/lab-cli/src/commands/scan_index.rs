//! `snowmelt-lab scan-index DB INDEX`: go through a quad index from end to end with so many
//! threads, and say how long that took. For experiments: `snowmelt-lab scan --exec` can drive it.
//!
//! The threads take pieces of one scan, as those of a query do that scans what is not in memory.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Context;
use snowmelt_base::{say, signals};
use snowmelt_graph::{Columns, GraphDatabase, Index, ScanPieces};
use snowmelt_store::PAGE_BYTES;
use snowmelt_switches::open::{OpenArgs, open_to_read};

use crate::queue::QueueArgs;

/// Rows that a thread takes at a time.
const ROWS: usize = 1 << 16;

/// Read a quad index from end to end with threads that share the scan.
#[derive(clap::Args)]
pub struct ScanIndexArgs {
    /// The database directory
    db: PathBuf,
    /// The index: psog, posg, sp, op or gs
    #[arg(value_parser = index)]
    index: Index,
    /// Threads that read it
    #[arg(long, value_name = "N", default_value = "1")]
    threads: NonZeroUsize,
    /// Leaves that a thread takes at a time
    #[arg(long, value_name = "N", default_value = "64")]
    leaves: NonZeroUsize,
    #[command(flatten)]
    queue: QueueArgs,
    #[command(flatten)]
    open: OpenArgs,
}

fn index(name: &str) -> Result<Index, String> {
    let named = Index::ALL.into_iter().find(|index| index.name() == name);
    named.ok_or_else(|| format!("no index is called {name:?}: there are psog, posg, sp, op and gs"))
}

/// Runs the command.
pub fn run(args: ScanIndexArgs) -> anyhow::Result<()> {
    let mut options = args.queue.applied(args.open.config());
    // The pages in memory at the last stop are none of the scan's.
    options.read_ahead.warm_list = false;
    let database =
        open_to_read(&args.db, &options).with_context(|| format!("cannot open {}", args.db.display()))?;
    let stop = signals::stop_flag()?;
    let session = database.session()?;
    let pieces = session.pieces(args.index, &[], args.leaves.get(), None);
    drop(session);
    let (rows, has_failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let read = || {
            let ends = || stop.load(Ordering::Relaxed) || has_failed.load(Ordering::Relaxed);
            let read = read(&database, args.index, &pieces, &rows, &ends);
            read.inspect_err(|_| has_failed.store(true, Ordering::Relaxed))
        };
        let threads: Vec<_> = (0..args.threads.get()).map(|_| scope.spawn(read)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no reader panics"))
    })?;
    anyhow::ensure!(!stop.load(Ordering::Relaxed), "interrupted");
    let seconds = begun.elapsed().as_secs_f64();
    let mib = (pieces.handed() * PAGE_BYTES as u64) as f64 / f64::from(1 << 20);
    say!(
        "{} rows on {} leaves of {}, {} threads, {seconds:.3} s, {:.1} MiB/s, {} pages read",
        rows.into_inner(),
        pieces.handed(),
        args.index.name(),
        args.threads,
        mib / seconds.max(1e-9),
        database.database().activity().disk
    );
    Ok(())
}

/// One thread: piece after piece until there are none.
fn read(
    database: &Arc<GraphDatabase>,
    index: Index,
    pieces: &ScanPieces,
    rows: &AtomicU64,
    ends: &dyn Fn() -> bool,
) -> anyhow::Result<()> {
    let mut session = database.session()?;
    while !ends()
        && let Some(mut piece) = pieces.next(&mut session)?
    {
        let mut columns = Columns::with_wanted(index.arity(), 0);
        while piece.next(&mut session, &mut columns, ROWS)? {}
        rows.fetch_add(columns.rows as u64, Ordering::Relaxed);
    }
    Ok(())
}
