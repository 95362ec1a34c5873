//! Recovery in little memory: the same state whatever the budget, and no more memory than it.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use snowmelt_io::PowerDisk;
use snowmelt_store::{
    Background, Checkpoints, FileOpener, JournalConfig, PageId, PageKind, ReadAhead, Reader, Seams, Store,
    StoreConfig, TreeId,
};
use support::{Random, config, page, seed};

/// Settings of a database on a disk in memory, whose background work the test does.
fn on(disk: &PowerDisk, recovery_bytes: Option<u64>) -> StoreConfig {
    let disk = disk.clone();
    StoreConfig {
        journal: JournalConfig {
            file_bytes: 256 << 10,
            part_bytes: 16 << 10,
            private_pages: Some(16),
            version_pages: Some(64),
            recovery_bytes,
            ..JournalConfig::default()
        },
        close_ms: 0,
        seams: Seams {
            background: Background::Caller,
            files: Some(FileOpener::new(move |path, access| disk.open(path, access))),
            ..Seams::default()
        },
        ..config(64, ReadAhead::none())
    }
}

/// A tree and the number that each of its pages was last written with; 0: never.
struct Model {
    tree: TreeId,
    pages: Vec<(PageId, u64)>,
}

impl Model {
    fn create(store: &Arc<Store>, pages: usize) -> Model {
        let mut txn = store.begin().unwrap();
        let tree = txn.new_tree("t");
        let mut list: Vec<(PageId, u64)> = Vec::new();
        for n in 0..pages as u64 {
            let at = txn.allocate(tree, list.last().map(|(p, _)| *p)).unwrap();
            list.push((at, 0));
            put(txn.page_mut(tree, at).unwrap(), n, 0);
        }
        txn.commit().unwrap();
        Model { tree, pages: list }
    }

    /// A transaction that writes these pages.
    fn write(&mut self, store: &Arc<Store>, which: &[usize], number: u64) {
        let mut txn = store.begin().unwrap();
        for i in which {
            let (at, last) = &mut self.pages[*i];
            put(txn.page_mut(self.tree, *at).unwrap(), *i as u64, number);
            *last = number;
        }
        txn.commit().unwrap();
    }

    fn compare(&self, store: &Arc<Store>) {
        let mut reader = Reader::new(store, store.snapshot());
        let mut expected = snowmelt_store::PageBuf::new();
        for (i, (at, number)) in self.pages.iter().enumerate() {
            put(&mut expected, i as u64, *number);
            let found = reader.page(self.tree, *at).unwrap();
            assert_eq!(found[32..], *expected.body(), "page {i}, written by {number}");
        }
    }
}

/// Small changes of a page are diffs: most of it says which page it is.
fn put(to: &mut snowmelt_store::PageBuf, n: u64, number: u64) {
    to.set_header(PageKind::TupleLeaf, 0, 1);
    to.body_mut().copy_from_slice(page(7, n).body());
    let at = (number as usize * 64) % 4096;
    to.body_mut()[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

fn dir() -> tempfile::TempDir {
    snowmelt_io::set_notice(|_| {});
    tempfile::tempdir().unwrap()
}

#[test]
fn any_memory_gives_the_same_state() {
    let mut random = Random::new(seed());
    let at = dir();
    let disk = PowerDisk::new(1);
    let store = Store::create(at.path(), &[], on(&disk, None)).unwrap();
    let mut model = Model::create(&store, 300);
    let mut number = 0;
    for round in 0..60 {
        // One in ten is larger than the memory for its parts.
        let most = if round % 10 == 0 { 250 } else { 10 };
        let which: Vec<usize> = (0..1 + random.below(most)).map(|_| random.below(300)).collect();
        number += 1;
        model.write(&store, &which, number);
        if round == 20 {
            assert!(store.checkpoint().unwrap());
        }
    }
    let crashed = disk.copy(2);
    drop(store);
    let mut written_back = Vec::new();
    for bytes in [None, Some(1 << 20), Some(256 << 10), Some(64 << 10)] {
        let copy = crashed.copy(3);
        let store = Store::open(at.path(), on(&copy, bytes)).unwrap();
        written_back.push(store.recovery().pages_written_back);
        model.compare(&store);
        // A crash before the next checkpoint: the journal says all of it again.
        let again = copy.copy(4);
        drop(store);
        let store = Store::open(at.path(), on(&again, bytes)).unwrap();
        model.compare(&store);
        number += 1;
        let which: Vec<usize> = (0..100).map(|_| random.below(300)).collect();
        let mut later = Model { tree: model.tree, pages: model.pages.clone() };
        later.write(&store, &which, number);
        assert!(store.checkpoint().unwrap());
        later.compare(&store);
        drop(store);
        later.compare(&Store::open(at.path(), on(&again, bytes)).unwrap());
    }
    assert_eq!(written_back[0], 0, "enough memory writes nothing");
    assert!(written_back[3] > 100, "{written_back:?}");
}

/// Bytes of memory in the child's budget.
const BUDGET: u64 = 16 << 20;
/// Directory of the child's database: set when this program is the child.
const CHILD: &str = "SNOWMELT_TEST_RECOVERY_CHILD";

fn budget(memory_bytes: u64) -> StoreConfig {
    let journal = JournalConfig { checkpoints: Checkpoints::Held, ..JournalConfig::default() };
    StoreConfig { memory_bytes, journal, ..StoreConfig::default() }
}

/// Most bytes that this process ever had resident.
fn most_resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn the_child_opens_in_little_memory() {
    let Ok(at) = std::env::var(CHILD) else { return };
    let before = most_resident();
    let store = Store::open(Path::new(&at), budget(BUDGET)).unwrap();
    let trace = store.recovery();
    println!(
        "took {} bytes; {} pages, {} written back, {} MiB read",
        most_resident() - before,
        trace.pages,
        trace.pages_written_back,
        trace.read_bytes >> 20
    );
}

fn open_in_a_child(at: &Path) -> u64 {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_child_opens_in_little_memory", "--nocapture"])
        .env(CHILD, at)
        // Memory that is given back must leave the process: holes between pages that are still in
        // use are the allocator's, and depend on the number of threads.
        .env("MALLOC_MMAP_THRESHOLD_", "4096")
        .env("MALLOC_MMAP_MAX_", "1000000")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    eprintln!("{}", said.lines().find(|l| l.contains("took")).unwrap_or(&said));
    let bytes = said.lines().find_map(|l| l.split("took ").nth(1)?.split(' ').next()?.parse().ok());
    bytes.unwrap_or_else(|| panic!("{said}{}", String::from_utf8_lossy(&child.stderr)))
}

/// A database with this many pages whose journal says all of them, and then each twentieth twenty
/// times over.
fn left_in_the_journal(path: &Path, pages: usize) -> Model {
    let store = Store::create(path, &[], budget(512 << 20)).unwrap();
    let mut model = Model::create(&store, pages);
    for number in 1..=20 {
        let which: Vec<usize> = (number as usize - 1..pages).step_by(20).collect();
        model.write(&store, &which, number);
    }
    model
}

#[test]
fn a_recovery_takes_no_more_than_the_budget() {
    let at = dir();
    // Memory of the process whatever the journal says: code, stacks and heaps of its threads.
    let small = at.path().join("small");
    drop(left_in_the_journal(&small, 20));
    let besides = open_in_a_child(&small);
    // Each page of a database has a head of the allocator before it, on a page of the system.
    let most = besides + BUDGET + BUDGET / 4;
    let path = at.path().join("db");
    let model = left_in_the_journal(&path, 12_000);
    let took = open_in_a_child(&path);
    assert!(took <= most, "{took} bytes, {besides} of them besides the budget of {BUDGET}");
    // A journal file of half a terabyte is one whose length is wrong.
    let newest = (0..).map(|n| path.join(format!("journal-{n}"))).take_while(|p| p.exists()).last().unwrap();
    fs::OpenOptions::new().write(true).open(&newest).unwrap().set_len(500 << 30).unwrap();
    let took = open_in_a_child(&path);
    assert!(took <= most, "{took} bytes, {besides} of them besides the budget of {BUDGET}");
    model.compare(&Store::open(&path, budget(64 << 20)).unwrap());
}
