//! Waits that the checkpointer causes: `cargo run --release -p snowmelt-benches --example pauses --
//! DIR [seconds] [MiB of journal]`.
//!
//! 1. *readers alone*: four threads read eight random pages per query, a quarter of the pages
//!    in memory;
//! 2. *with 1,000 commits/s, checkpoints held*: sixteen threads commit one page each in turns,
//!    durable;
//! 3. *with 1,000 commits/s, checkpoints without end*: as 2, but one checkpoint follows the
//!    other. The difference to 2 is the checkpointer's;
//! 4. *commits, one client*: per second with nothing in the journal and with so many MiB that
//!    are not written back.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use snowmelt_store::{
    Checkpoints, JournalConfig, JournalStats, PageBuf, PageId, PageKind, ReadAhead, Reader, Store,
    StoreConfig, TreeId,
};

const PAGES: u64 = 32 << 10;
const READERS: u64 = 4;
const WRITERS: u64 = 16;
const COMMITS_PER_S: u64 = 1000;

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().expect("a directory on the device to be measured"));
    let seconds: f64 = args.next().map_or(20.0, |s| s.parse().expect("seconds"));
    let mib: u64 = args.next().map_or(900, |s| s.parse().expect("MiB of journal"));
    let run = Duration::from_secs_f64(seconds);
    let (tree, pages) = create(&dir);
    let (alone, ..) = phase(&dir, Checkpoints::Held, tree, &pages, run, 0);
    report("readers alone", &alone, None);
    let (held, held_commits, _) = phase(&dir, Checkpoints::Held, tree, &pages, run, WRITERS);
    report("1,000 commits/s, checkpoints held", &held, Some(&held_commits));
    let (full, commits, stats) = phase(&dir, Checkpoints::Continuous, tree, &pages, run, WRITERS);
    report("1,000 commits/s, checkpoints without end", &full, Some(&commits));
    let ratio = |a: &[u64], b: &[u64]| at(a, 0.99) as f64 / at(b, 0.99) as f64;
    println!(
        "readers' p99: {:.2} of alone with commits, {:.2} with checkpoints too",
        ratio(&held, &alone),
        ratio(&full, &alone)
    );
    println!(
        "{} checkpoints, {} pages written back; longest holds: order {} us, map {} us, version table {} us, super-block {} us; {} commits slowed, longest {} us",
        stats.checkpoints,
        stats.written_back,
        stats.longest_holds_ns[0] / 1000,
        stats.longest_holds_ns[1] / 1000,
        stats.longest_holds_ns[2] / 1000,
        stats.longest_holds_ns[3] / 1000,
        stats.slowed,
        stats.longest_slowed_ns / 1000,
    );
    backlog(&dir, tree, &pages, run / 4, mib << 20);
    let _ = std::fs::remove_dir_all(&dir);
}

fn config(checkpoints: Checkpoints) -> StoreConfig {
    let journal = JournalConfig {
        checkpoints,
        checkpoint_bytes: 16 << 20,
        checkpoint_s: 1,
        ..JournalConfig::default()
    };
    StoreConfig {
        memory_bytes: 512 << 20,
        pool_bytes: Some(PAGES * 8192 / 4),
        read_ahead: ReadAhead::none(),
        journal,
        ..StoreConfig::default()
    }
}

fn create(dir: &Path) -> (TreeId, Vec<PageId>) {
    let _ = std::fs::remove_dir_all(dir);
    let store = Store::create(dir, &[], config(Checkpoints::Continuous)).expect("the database can be made");
    let build = store.begin_build().expect("nobody else builds");
    let mut tree = build.new_tree("t");
    let (mut random, mut pages) = (1u64, Vec::new());
    for _ in 0..PAGES {
        let mut page = PageBuf::new();
        page.set_header(PageKind::TupleLeaf, 0, 1);
        page.body_mut().chunks_exact_mut(8).for_each(|c| c.copy_from_slice(&next(&mut random).to_le_bytes()));
        pages.push(tree.append(&mut page).expect("room for the pages"));
    }
    let id = tree.finish().expect("the last extent is written");
    build.commit().expect("the pages are committed");
    (id, pages)
}

/// Latencies of queries and of commits, sorted, in nanoseconds, and what the store says.
fn phase(
    dir: &Path,
    checkpoints: Checkpoints,
    tree: TreeId,
    pages: &[PageId],
    run: Duration,
    writers: u64,
) -> (Vec<u64>, Vec<u64>, JournalStats) {
    let store = Store::open(dir, config(checkpoints)).expect("the database opens");
    store.checkpoint().expect("nothing is left of the phase before");
    let (stop, turn, begun) = (AtomicBool::new(false), AtomicU64::new(0), Instant::now());
    let (mut queries, mut commits) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        let (store, stop, turn) = (&store, &stop, &turn);
        let read = |seed: u64| {
            let (mut random, mut took) = (seed, Vec::new());
            while !stop.load(Ordering::Relaxed) {
                let since = Instant::now();
                let mut reader = Reader::new(store, store.snapshot());
                for _ in 0..8 {
                    let page = pages[next(&mut random) as usize % pages.len()];
                    assert!(reader.page(tree, page).expect("the page is there").len() == 8192);
                }
                took.push(since.elapsed().as_nanos() as u64);
            }
            took
        };
        let write = |seed: u64| {
            let (mut random, mut took) = (seed, Vec::new());
            while !stop.load(Ordering::Relaxed) {
                let due =
                    Duration::from_micros(turn.fetch_add(1, Ordering::Relaxed) * (1_000_000 / COMMITS_PER_S));
                std::thread::sleep(due.saturating_sub(begun.elapsed()));
                let since = Instant::now();
                commit(store, tree, pages, &mut random);
                took.push(since.elapsed().as_nanos() as u64);
            }
            took
        };
        let readers: Vec<_> = (0..READERS).map(|i| scope.spawn(move || read(i + 1))).collect();
        let writers: Vec<_> = (0..writers).map(|i| scope.spawn(move || write(i + 100))).collect();
        std::thread::sleep(run);
        stop.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|r| queries.extend(r.join().expect("readers do not fail")));
        writers.into_iter().for_each(|w| commits.extend(w.join().expect("writers do not fail")));
    });
    queries.sort_unstable();
    commits.sort_unstable();
    let stats = store.journal_stats();
    (queries, commits, stats)
}

fn commit(store: &Arc<Store>, tree: TreeId, pages: &[PageId], random: &mut u64) {
    let page = pages[next(random) as usize % pages.len()];
    let at = next(random) as usize % 1000 * 8;
    let mut txn = store.begin().expect("the turn comes");
    txn.page_mut(tree, page).expect("the page is there").body_mut()[at..at + 8]
        .copy_from_slice(&random.to_le_bytes());
    txn.commit().expect("the commit is durable");
}

fn backlog(dir: &Path, tree: TreeId, pages: &[PageId], run: Duration, bytes: u64) {
    let store = Store::open(dir, config(Checkpoints::Held)).expect("the database opens");
    store.checkpoint().expect("nothing is left of the phases before");
    let mut random = 7;
    let mut rate = |pages: &[PageId]| {
        let (begun, mut n) = (Instant::now(), 0);
        while begun.elapsed() < run {
            commit(&store, tree, pages, &mut random);
            n += 1;
        }
        n as f64 / begun.elapsed().as_secs_f64()
    };
    // Both rates are measured on the same few pages, which were changed before, so that neither
    // includes their first images.
    let few = &pages[..256];
    rate(few);
    let empty = rate(few);
    let begin = store.journal_stats().appended_bytes;
    let mut seed = 9;
    while store.journal_stats().appended_bytes - begin < bytes {
        let mut txn = store.begin().expect("the turn comes");
        for _ in 0..100 {
            let page = pages[256 + next(&mut seed) as usize % (pages.len() - 256)];
            let p = txn.page_mut(tree, page).expect("the page is there");
            p.body_mut().chunks_exact_mut(8).for_each(|c| c.copy_from_slice(&next(&mut seed).to_le_bytes()));
        }
        txn.commit().expect("the commit is durable");
    }
    let full = rate(few);
    println!(
        "commits, one client: {empty:.0} /s with nothing in the journal, {full:.0} /s with {} MiB: {:.2}",
        store.journal_stats().bytes_to_recover >> 20,
        full / empty
    );
}

fn next(x: &mut u64) -> u64 {
    snowmelt_base::random::lcg(x);
    (*x ^ (*x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 17
}

fn at(sorted: &[u64], share: f64) -> u64 {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

fn report(what: &str, queries: &[u64], commits: Option<&[u64]>) {
    let us = |sorted: &[u64]| {
        let [p50, p99, longest] = [0.5, 0.99, 1.0].map(|share| at(sorted, share) / 1000);
        format!("p50 {p50} us, p99 {p99} us, longest {longest} us")
    };
    println!("{what}: {} queries, {}", queries.len(), us(queries));
    if let Some(commits) = commits {
        println!("    {} commits, {}", commits.len(), us(commits));
    }
}
