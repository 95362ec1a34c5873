//! Repair of quad indexes: random pages of random trees are damaged (a flipped bit, zeros, an older
//! version of the page), then repaired. Afterwards a check finds no problem and the quads are the
//! model's, or the report lists the losses and nothing was changed.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_base::random::lcg;
use snowmelt_database::OpenOptions;
use snowmelt_graph::load::Source;
use snowmelt_graph::{DumpFormat, GraphDatabase, RepairReport};
use snowmelt_store::{PAGE_BYTES, PageId};

const EXTENT_PAGES: u32 = 8;
const MEMORY: u64 = 64 << 20;

fn options() -> OpenOptions {
    let quiet = OpenOptions { memory_bytes: MEMORY, direct: false, ..OpenOptions::default() };
    OpenOptions { extent_pages: EXTENT_PAGES, read_ahead: snowmelt_store::ReadAhead::none(), ..quiet }
}

fn insert(db: &Arc<GraphDatabase>, lines: String) {
    let mut txn = db.begin().unwrap();
    let source = Source::Reader { name: "made".into(), read: Box::new(std::io::Cursor::new(lines)) };
    let format = Some(oxrdfio::RdfFormat::NQuads);
    txn.insert_source(source, format, None, None, &AtomicBool::new(false)).unwrap();
    txn.commit().unwrap();
    assert!(db.database().store().checkpoint().unwrap());
}

/// Quads whose orders in PSOG and in POSG have little in common, in three named graphs and the
/// default graph.
fn quads(numbers: std::ops::Range<u64>) -> String {
    let line = |n: u64| {
        let object = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 7919;
        let graph = if n.is_multiple_of(4) { String::new() } else { format!("<urn:g{}> ", n % 4) };
        format!("<urn:s{}> <urn:p{}> <urn:o{object}> {graph}.\n", n / 2, n % 7)
    };
    numbers.map(line).collect()
}

/// A database in a folder, its bytes at an earlier time and now, and its contents.
struct World {
    dir: tempfile::TempDir,
    before: Vec<u8>,
    now: Vec<u8>,
    content: BTreeSet<String>,
    /// Pages of each quad index.
    pages: Vec<(String, Vec<PageId>)>,
}

impl World {
    fn new() -> World {
        snowmelt_io::set_notice(|_| {});
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let db = GraphDatabase::create(&path, &[], &options()).unwrap();
        insert(&db, quads(0..20_000));
        let before = std::fs::read(path.join("stripe-0")).unwrap();
        // Changes all leaves, so that each has a valid older version.
        insert(&db, quads(20_000..24_000) + &quads(30_000..31_000));
        let content = content(&db);
        let names = db.database().store().catalog_all().trees;
        let mut pages: Vec<(String, Vec<PageId>)> =
            ["psog", "posg", "sp", "op", "gs"].map(|name| (name.to_owned(), Vec::new())).into();
        for (extent, e) in db.database().store().extents() {
            let name = e.tree.and_then(|tree| names.get(&tree));
            let Some((_, own)) = pages.iter_mut().find(|(tree, _)| Some(tree) == name) else { continue };
            let used = (0..EXTENT_PAGES).filter(|i| e.is_allocated(*i));
            own.extend(used.map(|i| PageId(extent * u64::from(EXTENT_PAGES) + u64::from(i))));
        }
        assert!(pages.iter().all(|(_, own)| !own.is_empty()), "{pages:?}");
        drop(db);
        let now = std::fs::read(path.join("stripe-0")).unwrap();
        World { dir, before, now, content, pages }
    }

    /// A copy of the folder with a damaged stripe.
    fn damaged(&self, damage: impl FnOnce(&mut Vec<u8>)) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(self.dir.path().join("db")).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        let mut bytes = self.now.clone();
        damage(&mut bytes);
        std::fs::write(copy.path().join("stripe-0"), bytes).unwrap();
        copy
    }

    /// Damages one page in one of three ways; false if that changes nothing.
    fn damage(&self, random: &mut u64, page: PageId, bytes: &mut [u8]) -> bool {
        let at = page.0 as usize * PAGE_BYTES;
        let page = at..at + PAGE_BYTES;
        match (lcg(random) >> 33) % 3 {
            0 => bytes[at + (lcg(random) >> 33) as usize % PAGE_BYTES] ^= 1 << ((lcg(random) >> 33) % 8),
            1 => bytes[page.clone()].fill(0),
            _ => match self.before.get(page.clone()) {
                Some(before) => bytes[page.clone()].copy_from_slice(before),
                None => return false,
            },
        }
        bytes[page.clone()] != self.now[page]
    }

    fn pick(&self, random: &mut u64, tree: usize) -> PageId {
        let pages = &self.pages[tree].1;
        pages[(lcg(random) >> 33) as usize % pages.len()]
    }
}

fn content(db: &Arc<GraphDatabase>) -> BTreeSet<String> {
    let mut out = Vec::new();
    db.dump(DumpFormat::NQuads, &mut out).unwrap();
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

fn repair(dir: &Path) -> RepairReport {
    let db = GraphDatabase::open(dir, &options()).unwrap();
    db.repair(MEMORY, &(), &AtomicBool::new(false)).unwrap()
}

fn assert_whole(dir: &Path, world: &World, context: &str) {
    let db = GraphDatabase::open(dir, &options()).unwrap();
    let problems = db.check(&mut |_| {}).unwrap().problems;
    assert_eq!(problems, [] as [String; 0], "{context}");
    assert!(content(&db) == world.content, "{context}: other quads");
}

fn rounds(usual: usize) -> usize {
    std::env::var("SNOWMELT_ROUNDS").map_or(usual, |text| text.parse().expect("a number of rounds"))
}

/// Damages pages of one twin and of any pairs: all of them are restored.
#[test]
fn one_twin_and_all_pairs_are_written_anew() {
    let world = World::new();
    let mut random = snowmelt_base::test_seed(28);
    for round in 0..rounds(40) {
        let twin = (lcg(&mut random) >> 33) as usize % 2;
        let trees: Vec<usize> =
            [twin, 2, 3, 4].into_iter().filter(|_| (lcg(&mut random) >> 33).is_multiple_of(2)).collect();
        let mut hit = BTreeSet::new();
        let dir = world.damaged(|bytes| {
            for tree in &trees {
                for _ in 0..1 + (lcg(&mut random) >> 33) % 4 {
                    let page = world.pick(&mut random, *tree);
                    if world.damage(&mut random, page, bytes) {
                        hit.insert(world.pages[*tree].0.as_str());
                    }
                }
            }
        });
        // A second damage at the same place may undo the first.
        let report = repair(dir.path());
        let context = format!("round {round}: {hit:?}: {report:?}");
        assert_eq!(report.lost, [] as [String; 0], "{context}");
        assert!(report.rebuilt.iter().all(|name| ["psog", "posg", "sp", "op", "gs"].contains(name)));
        assert!(report.rebuilt.len() >= report.damage.len(), "{context}");
        assert_whole(dir.path(), &world, &context);
        assert_eq!(repair(dir.path()), RepairReport::default(), "{context}: again");
    }
}

/// Damages pages of both twins: their union suffices, or nothing is changed and the lost ranges are
/// named.
#[test]
fn both_twins_give_what_they_have() {
    let world = World::new();
    let mut random = snowmelt_base::test_seed(29);
    let (mut whole, mut lost, mut of_both) = (0, 0, 0);
    for round in 0..rounds(40) {
        let most = [1, 2, 40][round % 3];
        let dir = world.damaged(|bytes| {
            for tree in [0, 1] {
                for _ in 0..1 + (lcg(&mut random) >> 33) % most {
                    let page = world.pick(&mut random, tree);
                    world.damage(&mut random, page, bytes);
                }
            }
        });
        let damaged = std::fs::read(dir.path().join("stripe-0")).unwrap();
        let report = repair(dir.path());
        let context = format!("round {round}: {report:?}");
        if report.lost.is_empty() {
            whole += 1;
            of_both += u32::from(report.rebuilt.starts_with(&["psog", "posg"]));
            assert_whole(dir.path(), &world, &context);
            continue;
        }
        lost += 1;
        assert_eq!(report.rebuilt, [] as [&str; 0], "{context}");
        for name in ["psog: rows from", "posg: rows from"] {
            assert!(report.lost.iter().any(|line| line.starts_with(name)), "{context}");
        }
        let now = std::fs::read(dir.path().join("stripe-0")).unwrap();
        for page in world.pages.iter().flat_map(|(_, pages)| pages) {
            let at = page.0 as usize * PAGE_BYTES..(page.0 as usize + 1) * PAGE_BYTES;
            assert!(now[at.clone()] == damaged[at], "{context}: page {page} was changed");
        }
    }
    assert!(whole > 0 && lost > 0, "{whole} were whole, {lost} had lost something");
    assert!(of_both > 0, "what one twin has lost was in the other one, and the other way round");
}

/// A repair that ends early leaves the old state, damage included.
#[test]
fn a_repair_that_is_stopped_changes_nothing() {
    let world = World::new();
    let page = world.pages[1].1[0];
    let dir = world.damaged(|bytes| bytes[page.0 as usize * PAGE_BYTES + 100] ^= 1);
    for dir in [dir.path(), world.damaged(|_| {}).path()] {
        // Also when stopped while it reads, before it knows of any damage.
        let db = GraphDatabase::open(dir, &options()).unwrap();
        assert!(db.repair(MEMORY, &(), &AtomicBool::new(true)).is_err());
    }
    let report = repair(dir.path());
    assert_eq!(report.rebuilt, ["posg", "sp", "op", "gs"], "{report:?}");
    assert_whole(dir.path(), &world, "after the second try");
}

/// A repair does not write to a sound database.
#[test]
fn nothing_is_done_where_nothing_is_damaged() {
    let world = World::new();
    let dir = world.damaged(|_| {});
    assert_eq!(repair(dir.path()), RepairReport::default());
    assert_whole(dir.path(), &world, "sound");
}
