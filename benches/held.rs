//! Small commits while a reader holds an old state: `cargo run --release -p snowmelt-benches
//! --example held -- [commits] [DIRECTORY]`.
//!
//! Commits run without the reader, with it, and without it again. Prints commits per second, and
//! the versions and the bytes of journal that are kept.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use snowmelt_base::random::Random;
use snowmelt_store::{PageId, PageKind, ReadAhead, Reader, Store, StoreConfig, TreeId};

/// Pages of the tree, and those that a commit changes.
const PAGES: u64 = 4000;
const CHANGED: u64 = 12;

fn main() {
    let mut args = std::env::args().skip(1);
    let commits: u64 = args.next().map_or(10_000, |n| n.parse().expect("a number of commits"));
    let dir = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = tempfile::tempdir_in(dir).expect("a directory");
    let config =
        StoreConfig { memory_bytes: 64 << 20, read_ahead: ReadAhead::none(), ..StoreConfig::default() };
    let store = Store::create(&dir.path().join("db"), &[], config).expect("a new database");
    let mut txn = store.begin().expect("a transaction");
    let tree = txn.new_tree("t");
    let pages: Vec<PageId> = (0..PAGES).map(|_| txn.allocate(tree, None).expect("a page")).collect();
    txn.commit().expect("a commit");
    store.checkpoint().expect("a checkpoint");
    let mut random = Random(1);
    let mut run = |what: &str| {
        let begun = Instant::now();
        (0..commits).for_each(|_| commit(&store, tree, &pages, &mut random));
        let rate = commits as f64 / begun.elapsed().as_secs_f64();
        let stats = store.journal_stats();
        println!(
            "{what:>14}: {rate:8.0} commits/s, {} versions, {} in memory, {} bytes of journal held",
            stats.versions, stats.versions_in_memory, stats.held_bytes
        );
    };
    run("nobody reads");
    let reader = Reader::new(&store, store.snapshot());
    run("a state is held");
    drop(reader);
    store.checkpoint().expect("a checkpoint");
    run("nobody reads");
}

/// A few bytes in a few pages, most of them among the first.
fn commit(store: &Arc<Store>, tree: TreeId, pages: &[PageId], random: &mut Random) {
    let mut txn = store.begin().expect("a transaction");
    for i in 0..CHANGED {
        let among = if i < CHANGED / 2 { 40 } else { PAGES };
        let page = txn.page_mut(tree, pages[random.below(among) as usize]).expect("the page");
        page.set_header(PageKind::TupleLeaf, 0, 1);
        let at = 8 * random.below(1000) as usize;
        page.body_mut()[at..at + 8].copy_from_slice(&random.word().to_le_bytes());
    }
    txn.commit().expect("a commit");
}
