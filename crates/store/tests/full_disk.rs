//! A disk that is really full, simulated and real: reads go on, what makes it less full works,
//! and writing goes on when there is room, without opening anything again.
//!
//! The real ones are small file systems in files, mounted as loop devices: ext4 and xfs. That
//! takes root, mkfs and mount; where one is missing the test says so and is skipped.

#[path = "support/rounds.rs"]
mod rounds;
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rounds::{dir, on, small};
use snowmelt_io::PowerDisk;
use snowmelt_store::{
    Background, Changes, JournalConfig, PageId, PageKind, ReadAhead, Reader, Seams, Store, StoreConfig,
    StoreError, TreeId, TupleTree,
};

/// Trees of a few pages each, added until the disk is full.
#[derive(Default)]
struct Filled {
    added: usize,
    trees: Vec<(String, TreeId, Vec<PageId>)>,
}

const PAGES: usize = 24;

/// Adds a tree, or leaves everything as it is.
fn add(store: &Arc<Store>, n: usize) -> Result<(String, TreeId, Vec<PageId>), StoreError> {
    let mut txn = store.begin()?;
    let name = format!("tree {n}");
    let tree = txn.new_tree(&name);
    let mut pages: Vec<PageId> = Vec::new();
    for _ in 0..PAGES {
        let page = txn.allocate(tree, pages.last().copied())?;
        let content = support::page(n as u64, page.0);
        let to = txn.page_mut(tree, page)?;
        to.set_header(PageKind::TupleLeaf, 0, 1);
        to.body_mut().copy_from_slice(content.body());
        pages.push(page);
    }
    txn.commit()?;
    Ok((name, tree, pages))
}

impl Filled {
    /// Fills the disk: the error is that it is full, again and again.
    fn fill(&mut self, store: &Arc<Store>) {
        let (begin, mut refused) = (self.added, 0);
        loop {
            self.added += 1;
            let n = self.added;
            assert!(n < begin + 20_000, "the disk does not get full");
            match add(store, n) {
                Ok(tree) => self.trees.push(tree),
                Err(StoreError::Full { .. }) if refused == 5 => return,
                Err(StoreError::Full { .. }) => {
                    refused += 1;
                    // Whatever has to be written back finds room.
                    store.checkpoint().unwrap();
                }
                Err(e) => panic!("tree {n}: {e}"),
            }
        }
    }

    fn check(&self, store: &Arc<Store>) {
        let mut reader = Reader::new(store, store.snapshot());
        let catalog = store.catalog_all();
        assert_eq!(catalog.trees.len(), self.trees.len() + 1, "and the rows");
        for (name, tree, pages) in &self.trees {
            let n: u64 = name.trim_start_matches("tree ").parse().unwrap();
            for p in pages {
                assert_eq!(reader.page(*tree, *p).unwrap()[32..], *support::page(n, p.0).body(), "{name}");
            }
        }
    }

    /// Drops every second tree.
    fn drop_some(&mut self, store: &Arc<Store>) {
        let mut i = 0;
        self.trees.retain(|(name, ..)| {
            i += 1;
            if i % 2 == 0 {
                return true;
            }
            let mut txn = store.begin().unwrap();
            txn.drop_tree(name);
            txn.commit().unwrap_or_else(|e| panic!("dropping {name}: {e}"));
            false
        });
    }
}

/// Rows of a tuple tree, and how many are deleted at a time.
const ROWS: u64 = 40_000;
const AT_ONCE: usize = 5_000;

/// Inserts or deletes the rows; returns how many there are then.
fn change_rows(store: &Arc<Store>, insert: bool) -> Result<u64, StoreError> {
    let all: Vec<u64> = (0..ROWS).collect();
    let mut left = 0;
    for part in all.chunks(AT_ONCE) {
        let mut txn = store.begin()?;
        let mut tree = match txn.record("rows") {
            Some(bytes) => TupleTree::from_bytes(&bytes)?,
            None => TupleTree::create(&mut txn, "rows", 2)?,
        };
        let scattered = part.iter().map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        tree.apply(
            &mut txn,
            &Changes { cols: vec![part.to_vec(), scattered], insert: vec![insert; part.len()] },
        )?;
        txn.put_record("rows", 1, &tree.to_bytes());
        left = tree.rows();
        txn.commit()?;
    }
    Ok(left)
}

/// Fills a disk, makes it less full, fills it again, gets more room, and so on; `more` gives it
/// more room, `len` is the length of a file.
fn is_full_and_goes_on(
    at: &Path,
    open: impl Fn() -> StoreConfig,
    len: impl Fn(&Path) -> u64,
    more: impl FnOnce(),
) {
    let store = Store::create(at, &[], open()).unwrap();
    let reserve = || len(&at.join("reserve"));
    let whole_reserve = reserve();
    assert!(whole_reserve > 0);
    let mut filled = Filled::default();
    assert_eq!(change_rows(&store, true).unwrap(), ROWS);
    filled.fill(&store);
    let first = filled.trees.len();
    filled.check(&store);
    assert!(store.poisoned().is_none());
    // Closing and opening work on a full disk.
    drop(store);
    let store = Store::open(at, open()).unwrap();
    filled.check(&store);
    // So do deleting, of rows and of whole trees, and compacting, and there is room again.
    assert_eq!(change_rows(&store, false).unwrap(), 0);
    filled.drop_some(&store);
    store.compact().unwrap();
    store.checkpoint().unwrap();
    assert_eq!(reserve(), whole_reserve, "it is taken again");
    filled.check(&store);
    let before = filled.trees.len();
    filled.fill(&store);
    assert!(
        filled.trees.len() > before + first / 4,
        "{before} of {first} trees, then {}",
        filled.trees.len()
    );
    filled.check(&store);
    // More room: writing goes on.
    let before = filled.trees.len();
    more();
    filled.fill(&store);
    assert!(filled.trees.len() > before, "there is more room, and nothing is written");
    filled.check(&store);
    drop(store);
    filled.check(&Store::open(at, open()).unwrap());
}

#[test]
fn a_simulated_disk_is_full_and_goes_on() {
    for capacity in [4 << 20, 5_000_000, 8 << 20] {
        let at = dir();
        let disk = PowerDisk::new(1);
        disk.set_capacity(capacity);
        let len = |path: &Path| disk.bytes(path).map_or(0, |bytes| bytes.len() as u64);
        is_full_and_goes_on(at.path(), || on(&disk), len, || disk.set_capacity(capacity + (2 << 20)));
    }
}

/// A file system in a file, mounted; unmounted when dropped.
struct Mounted {
    at: PathBuf,
    _in: tempfile::TempDir,
}

impl Mounted {
    fn new(kind: &str, bytes: u64) -> Result<Mounted, String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let (image, at) = (dir.path().join("image"), dir.path().join("mounted"));
        let file = std::fs::File::create(&image).map_err(|e| e.to_string())?;
        file.set_len(bytes).map_err(|e| e.to_string())?;
        std::fs::create_dir(&at).map_err(|e| e.to_string())?;
        run(Command::new(format!("mkfs.{kind}")).arg("-q").arg(&image))?;
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&at))?;
        Ok(Mounted { at, _in: dir })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Files that a ring had are let go a moment after it.
        for _ in 0..100 {
            if run(Command::new("umount").arg(&self.at)).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        // Out of the way at once, and gone when no file in it is open any more.
        if let Err(e) = run(Command::new("umount").arg("-l").arg(&self.at)) {
            eprintln!("{e}");
        }
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let done = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    let why = String::from_utf8_lossy(&done.stderr);
    if done.status.success() { Ok(()) } else { Err(format!("{command:?}: {}", why.trim())) }
}

fn on_a_real_disk(kind: &str, bytes: u64, free: u64) {
    snowmelt_io::set_notice(|_| {});
    let disk = match Mounted::new(kind, bytes) {
        Ok(disk) => disk,
        Err(why) => return eprintln!("skipped: no {kind} here: {why}"),
    };
    // A file that is not the database's takes all but `free` bytes.
    let others = disk.at.join("others");
    let stat = rustix::fs::statvfs(&disk.at).unwrap();
    let file = std::fs::File::create(&others).unwrap();
    let taken = (stat.f_bavail * stat.f_frsize).saturating_sub(free);
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, taken).unwrap();
    for background in [Background::Thread, Background::Caller] {
        let config = || StoreConfig {
            journal: JournalConfig { file_bytes: 1 << 20, checkpoint_bytes: 4 << 20, ..small() },
            seams: Seams { background, ..support::config(64, ReadAhead::none()).seams },
            ..support::config(64, ReadAhead::none())
        };
        let path = disk.at.join(format!("{background:?}"));
        // The second time the first database is what takes the room.
        let len = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
        is_full_and_goes_on(&path, config, len, || {
            let left = file.metadata().unwrap().len();
            file.set_len(left.saturating_sub(12 << 20)).unwrap();
        });
        std::fs::remove_dir_all(&path).unwrap();
    }
}

#[test]
fn a_small_ext4_is_full_and_goes_on() {
    on_a_real_disk("ext4", 128 << 20, 24 << 20);
}

#[test]
fn a_small_xfs_is_full_and_goes_on() {
    // The least that its mkfs makes.
    on_a_real_disk("xfs", 320 << 20, 24 << 20);
}
