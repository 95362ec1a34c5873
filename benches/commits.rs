//! Cost of commits, against a bare loop on the same device: `cargo run --release
//! -p snowmelt-benches --example commits -- DIR [seconds]`. The first four alternate in turns of
//! `seconds` each.
//!
//! 1. *bare*: one thread overwrites blocks of a preallocated, written file (O_DIRECT) and calls
//!    fdatasync after each;
//! 2. *bare, O_DSYNC*: the same with the write and the sync in one call;
//! 3. *commits, 1 client*: one page changed by 8 bytes per transaction, durable when it returns;
//! 4. *commits, 32 clients*: the same from 32 threads;
//! 5. *restart*: closed without checkpoint, opened again: what recovery reads and how long
//!    until the first page is read.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use snowmelt_io::AlignedBuf;
use snowmelt_store::{
    Checkpoints, JournalConfig, JournalStats, PageId, ReadAhead, Reader, Store, StoreConfig, TreeId,
};

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().expect("a directory on the device to be measured"));
    let seconds: f64 = args.next().map_or(2.0, |s| s.parse().expect("seconds"));
    let run = Duration::from_secs_f64(seconds);
    std::fs::create_dir_all(&dir).expect("the directory can be made");
    println!("{TURNS} turns of {seconds} s each; medians");
    let turns: Vec<[Rate; 4]> = (0..TURNS)
        .map(|_| {
            let bare = |sync| Rate { per_s: bare_loop(&dir, run, sync), stats: JournalStats::default() };
            let commits = |clients| commits(&dir.join("db"), clients, run);
            [bare(Sync::After), bare(Sync::Within), commits(1), commits(32)]
        })
        .collect();
    let names = ["bare loop, fdatasync", "bare loop, O_DSYNC", "commits,  1 client", "commits, 32 clients"];
    for (i, name) in names.into_iter().enumerate() {
        let rate = median(turns.iter().map(|turn| turn[i].per_s).collect());
        let ratio = median(turns.iter().map(|turn| turn[i].per_s / turn[0].per_s).collect());
        println!("{name:20} {rate:8.0} /s, {ratio:.2} of the bare loop of the same turn");
        let stats = &turns[TURNS / 2][i].stats;
        if stats.commits > 0 {
            println!(
                "    {:.1} commits a sync, {:.0} bytes of journal a commit, sync p50 {} us p99 {} us",
                stats.synced_records as f64 / stats.syncs.max(1) as f64,
                stats.appended_bytes as f64 / stats.commits as f64,
                stats.sync_latency.p50_ns / 1000,
                stats.sync_latency.p99_ns / 1000,
            );
        }
    }
    let mib: u64 = args.next().map_or(0, |s| s.parse().expect("MiB of journal"));
    if mib > 0 {
        restart(&dir.join("restart"), mib << 20);
    }
}

/// Turns of each measurement. The machine's speed changes from minute to minute, so measurements
/// that are compared alternate.
const TURNS: usize = 5;

struct Rate {
    per_s: f64,
    stats: JournalStats,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// How a block is made durable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sync {
    /// fdatasync after the write.
    After,
    /// The file was opened with O_DSYNC.
    Within,
}

fn bare_loop(dir: &Path, run: Duration, sync: Sync) -> f64 {
    const BYTES: u64 = 64 << 20;
    let path = dir.join("bare");
    let zeros = AlignedBuf::new(1 << 20);
    let flags = if sync == Sync::Within { libc::O_DIRECT | libc::O_DSYNC } else { libc::O_DIRECT };
    let open = || OpenOptions::new().write(true).create(true).truncate(false).custom_flags(flags).open(&path);
    let file = open().expect("the file can be made");
    (0..BYTES).step_by(1 << 20).for_each(|at| file.write_all_at(&zeros, at).expect("room for 64 MiB"));
    file.sync_all().expect("the device syncs");
    let block = AlignedBuf::from_slice(&[7; 4096]);
    let (begun, mut n) = (Instant::now(), 0u64);
    while begun.elapsed() < run {
        file.write_all_at(&block, n * 4096 % BYTES).expect("the write succeeds");
        if sync == Sync::After {
            file.sync_data().expect("the device syncs");
        }
        n += 1;
    }
    let rate = n as f64 / begun.elapsed().as_secs_f64();
    let _ = std::fs::remove_file(path);
    rate
}

fn config() -> StoreConfig {
    StoreConfig { memory_bytes: 512 << 20, read_ahead: ReadAhead::none(), ..StoreConfig::default() }
}

/// A database with one tree of some pages.
fn create(dir: &Path, config: StoreConfig, pages: u64) -> (Arc<Store>, TreeId, Vec<PageId>) {
    let _ = std::fs::remove_dir_all(dir);
    let store = Store::create(dir, &[], config).expect("the database can be made");
    let mut txn = store.begin().expect("a first transaction");
    let tree = txn.new_tree("t");
    let mut list: Vec<PageId> = Vec::new();
    for _ in 0..pages {
        let page = txn.allocate(tree, list.last().copied()).expect("room for pages");
        list.push(page);
    }
    txn.commit().expect("the pages are committed");
    (store, tree, list)
}

fn commits(dir: &Path, clients: u64, run: Duration) -> Rate {
    let (store, tree, pages) = create(dir, config(), 256);
    let done = AtomicU64::new(0);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for client in 0..clients {
            let (store, pages, done) = (&store, &pages, &done);
            scope.spawn(move || {
                let mut n = client;
                while begun.elapsed() < run {
                    snowmelt_base::random::lcg(&mut n);
                    let page = pages[(n >> 33) as usize % pages.len()];
                    let mut txn = store.begin().expect("the turn comes");
                    let at = (n >> 20) as usize % 1000 * 8;
                    let p = txn.page_mut(tree, page).expect("the page is there");
                    p.body_mut()[at..at + 8].copy_from_slice(&n.to_le_bytes());
                    txn.commit().expect("the commit is durable");
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let per_s = done.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64();
    let stats = store.journal_stats();
    drop(store);
    let _ = std::fs::remove_dir_all(dir);
    Rate { per_s, stats }
}

fn restart(dir: &Path, bytes: u64) {
    let held = JournalConfig {
        checkpoints: Checkpoints::Held,
        version_pages: Some(1 << 20),
        ..JournalConfig::default()
    };
    let config = StoreConfig { close_ms: 0, memory_bytes: 2 << 30, journal: held, ..config() };
    let (store, tree, pages) = create(dir, config.clone(), 32 << 10);
    let mut n = 1u64;
    while store.journal_stats().appended_bytes < bytes {
        let mut txn = store.begin().expect("the turn comes");
        for _ in 0..100 {
            snowmelt_base::random::lcg(&mut n);
            let page = pages[(n >> 33) as usize % pages.len()];
            let p = txn.page_mut(tree, page).expect("the page is there");
            let mut m = n;
            for word in p.body_mut()[..2048].chunks_exact_mut(8) {
                snowmelt_base::random::lcg(&mut m);
                word.copy_from_slice(&m.to_le_bytes());
            }
        }
        txn.commit().expect("the commit is durable");
    }
    let commits = store.journal_stats().commits;
    drop(store);
    let cold = snowmelt_store::cold::evict(dir).expect("the files can be looked at");
    let cached: u64 = cold.iter().map(|c| c.pages).sum();
    let begun = Instant::now();
    let store = Store::open(dir, config).expect("the database opens");
    let opened = begun.elapsed();
    let page =
        Reader::new(&store, store.snapshot()).page(tree, pages[7]).map(|p| p[40]).expect("a page is read");
    println!(
        "restart: {commits} commits, {cached} pages cached before; opened in {:.3} s, first page ({page}) after {:.3} s; {:?}",
        opened.as_secs_f64(),
        begun.elapsed().as_secs_f64(),
        store.recovery()
    );
    drop(store);
    let _ = std::fs::remove_dir_all(dir);
}
