//! Cost of a hit in the pool: `cargo run --release -p snowmelt-benches --example hit`.
//!
//! Pins and unpins resident pages, in one thread and in two, over working sets that fit the
//! processor's caches and that do not; prints nanoseconds of processor time per page (so that
//! other work on the machine counts less). Each page's header is looked at, as every tree does.

use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};

use snowmelt_store::{PageBuf, PageId, PageKind, ReadAhead, Reader, Store, StoreConfig, TreeId, header};

const PAGES: usize = 16_384;

fn main() {
    let dir = tempfile::tempdir().expect("a directory for the example");
    let config =
        StoreConfig { memory_bytes: 1 << 30, read_ahead: ReadAhead::none(), ..StoreConfig::default() };
    let store = Store::create(dir.path(), &[], config).expect("a new store");
    let (tree, pages) = build(&store);
    let mut r = Reader::new(&store, store.snapshot());
    for p in &pages {
        r.page(tree, *p).expect("a page that was just written");
    }
    println!("{:>10} {:>8} {:>10}", "pages", "threads", "ns/page");
    for working_set in [1, 64, 1024, PAGES] {
        for threads in [1, 2] {
            let ns = measure(&store, tree, &pages[..working_set], threads);
            println!("{working_set:>10} {threads:>8} {ns:>10.1}");
        }
    }
}

fn build(store: &Arc<Store>) -> (TreeId, Vec<PageId>) {
    let build = store.begin_build().expect("nobody else builds");
    let mut writer = build.new_tree("t");
    let mut page = PageBuf::new();
    page.set_header(PageKind::TupleLeaf, 0, 1);
    let pages = (0..PAGES).map(|_| writer.append(&mut page).expect("room on the device")).collect();
    let tree = writer.finish().expect("room on the device");
    build.commit().expect("room on the device");
    (tree, pages)
}

fn measure(store: &Arc<Store>, tree: TreeId, pages: &[PageId], threads: usize) -> f64 {
    const ROUNDS: usize = 4_000_000;
    let work = move |t| {
        let begun = thread_ns();
        assert_eq!(touch(store, tree, pages, t, ROUNDS), ROUNDS as u64, "each page says 1");
        thread_ns() - begun
    };
    let total: u64 = std::thread::scope(|s| {
        let workers: Vec<_> = (0..threads).map(|t| s.spawn(move || work(t))).collect();
        workers.into_iter().map(|w| w.join().expect("a worker")).sum()
    });
    total as f64 / (ROUNDS * threads) as f64
}

/// Processor time of this thread.
fn thread_ns() -> u64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

fn touch(store: &Arc<Store>, tree: TreeId, pages: &[PageId], seed: usize, rounds: usize) -> u64 {
    let mut r = Reader::new(store, store.snapshot());
    let mut at = seed;
    let mut sum = 0;
    for _ in 0..rounds {
        at = (at.wrapping_mul(1_103_515_245).wrapping_add(12_345)) & 0x7fff_ffff;
        let page = r.page(tree, pages[(at >> 8) & (pages.len() - 1)]).expect("a resident page");
        sum += header(&page).count() as u64;
    }
    sum
}
