//! A check walks every tree from its root. It finds inner nodes that are sound as pages but wrong
//! in content, and a wrong row count in one of them never makes an update drop other quads than
//! requested.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_database::OpenOptions;
use snowmelt_graph::load::Source;
use snowmelt_graph::{DumpFormat, GraphDatabase, Graphs, Index, TermRef};
use snowmelt_store::{PAGE_BYTES, PageId, PageKind, TreeId, header, page};

fn options() -> OpenOptions {
    OpenOptions { memory_bytes: 64 << 20, direct: false, extent_pages: 16, ..OpenOptions::default() }
}

/// A database without journal, with two graphs: `http://a/g1`, which comes first, has about a third
/// of the subjects of `http://a/g2`, scattered.
fn make(dir: &Path, subjects: u64) {
    snowmelt_io::set_notice(|_| {});
    let db = GraphDatabase::create(dir, &[], &options()).unwrap();
    let mut txn = db.begin().unwrap();
    let quad = |n: u64, graph| {
        format!("<http://a/s{n}> <http://a/p{}> \"value {n} of {graph}\" <http://a/g{graph}> .\n", n % 3)
    };
    let first = "<http://a/s0> <http://a/p0> <http://a/g1> <http://a/g2> .\n".to_string();
    let chosen = |n: &u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 62 == 0 || n.is_multiple_of(16);
    let (all, some) = (0..subjects, (0..subjects).filter(chosen));
    let both: [String; 2] = [all.map(|n| quad(n, 2)).collect(), some.map(|n| quad(n, 1)).collect()];
    for lines in [first].into_iter().chain(both) {
        let source = Source::Reader { name: "test".into(), read: Box::new(Cursor::new(lines)) };
        let format = Some(oxrdfio::RdfFormat::NQuads);
        txn.insert_source(source, format, None, None, &AtomicBool::new(false)).unwrap();
    }
    txn.commit().unwrap();
    assert!(db.database().store().checkpoint().unwrap());
}

/// Problems that a check finds.
fn problems(dir: &Path) -> Vec<String> {
    let db = GraphDatabase::open(dir, &options()).unwrap();
    db.check(&mut |_| {}).unwrap().problems
}

/// Quads by graph.
fn graphs(db: &Arc<GraphDatabase>) -> BTreeMap<String, usize> {
    let mut out = Vec::new();
    db.dump(DumpFormat::NQuads, &mut out).unwrap();
    let mut counts = BTreeMap::new();
    for line in String::from_utf8(out).unwrap().lines() {
        let graph = line.trim_end_matches(" .").rsplit(' ').next().unwrap().to_owned();
        *counts.entry(graph).or_default() += 1;
    }
    counts
}

/// The pages of a kind, and the name of their tree.
fn pages_of(dir: &Path, kind: PageKind) -> Vec<(PageId, TreeId, String)> {
    let db = GraphDatabase::open(dir, &options()).unwrap();
    let names = db.database().store().catalog_all().trees;
    let bytes = std::fs::read(dir.join("stripe-0")).unwrap();
    let mut found = Vec::new();
    for (extent, e) in db.database().store().extents() {
        let Some(name) = e.tree.and_then(|t| names.get(&t)) else { continue };
        for index in (0..16).filter(|i| e.is_allocated(*i)) {
            let id = PageId(extent * 16 + u64::from(index));
            let page = &bytes[id.0 as usize * PAGE_BYTES..][..PAGE_BYTES];
            if header(page).kind() == kind as u8 {
                found.push((id, e.tree.unwrap(), name.clone()));
            }
        }
    }
    found
}

/// Changes a page on the stripe and corrects its checksum: as a page it is sound, and as if written
/// by the transaction that wrote it last.
fn forge(dir: &Path, id: PageId, tree: TreeId, change: impl FnOnce(&mut [u8])) {
    let file = dir.join("stripe-0");
    let mut bytes = std::fs::read(&file).unwrap();
    let at = &mut bytes[id.0 as usize * PAGE_BYTES..][..PAGE_BYTES];
    let txn = header(at).txn();
    change(at);
    page::seal(at, id, tree, txn);
    std::fs::write(&file, bytes).unwrap();
}

#[test]
fn a_wrong_inner_node_of_any_tree_is_found() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), 12_000);
    assert_eq!(problems(dir.path()), [""; 0], "sound before");
    let stripe = std::fs::read(dir.path().join("stripe-0")).unwrap();
    let mut trees = std::collections::BTreeSet::new();
    for kind in [PageKind::TupleInner, PageKind::StringInner] {
        for (id, tree, name) in pages_of(dir.path(), kind) {
            trees.insert(name.clone());
            // A wrong number of rows; a child repeated in the place of another.
            type Change = fn(&mut [u8]);
            let changes: [Change; 2] = [|page| page[32] ^= 1, second_child_is_first];
            for change in changes {
                forge(dir.path(), id, tree, change);
                let found = problems(dir.path());
                let own = |p: &String| {
                    p.contains(&format!("page {id} ")) || p.starts_with(&format!("tree {name}: page"))
                };
                assert!(found.iter().any(own), "{name}, page {id}: {found:?}");
                std::fs::write(dir.path().join("stripe-0"), &stripe).unwrap();
            }
        }
    }
    assert!(trees.len() >= 5, "trees with inner nodes: {trees:?}");
}

/// Makes an inner node point to its first child twice.
fn second_child_is_first(page: &mut [u8]) {
    // The table after byte 40 has a u64 base and a u8 width per column; the columns are those of
    // the key, the child and the rows before it.
    let rows = usize::from(header(page).count());
    let is_string = header(page).kind() == PageKind::StringInner as u8;
    // The child is the column before the last one; try the arities a tree may have until its
    // values are pages that differ.
    let arities = if is_string { 1..=1 } else { 2..=4 };
    for arity in arities {
        let columns = arity + 2;
        let widths: Vec<usize> = (0..columns).map(|c| usize::from(page[40 + 9 * c + 8])).collect();
        if widths.iter().any(|w| *w > 8) {
            continue;
        }
        let before: usize = widths[..arity].iter().map(|w| w * rows).sum();
        let at = 40 + 9 * columns + before;
        let width = widths[arity];
        if width > 0 && at + rows * width <= PAGE_BYTES {
            let first = page[at..at + width].to_vec();
            if page[at + width..at + 2 * width] != first[..] {
                page[at + width..at + 2 * width].copy_from_slice(&first);
                return;
            }
        }
    }
    page[33] ^= 1;
}

/// Enough subjects for the pairs of the first graph to fill more than a leaf of GS.
const MANY: u64 = 80_000;

/// Adds `more` to the row count that the root of GS has for its first child.
fn forge_count(dir: &Path, more: i64) {
    let inner = pages_of(dir, PageKind::TupleInner);
    let gs: Vec<_> = inner.into_iter().filter(|(.., name)| name == "gs").collect();
    assert_eq!(gs.len(), 1, "one inner node, the root");
    forge(dir, gs[0].0, gs[0].1, |page| {
        let parts = more.unsigned_abs().div_ceil(30_000) as usize;
        page[39] = parts as u8;
        for i in 0..parts {
            let part = more / parts as i64 + if i == 0 { more % parts as i64 } else { 0 };
            let at = PAGE_BYTES - 4 * (i + 1);
            page[at..at + 2].fill(0);
            page[at + 2..at + 4].copy_from_slice(&(part as i16).to_le_bytes());
        }
    });
}

/// Number of pairs of GS in the first graph, and in all.
fn pairs(dir: &Path) -> (u64, u64) {
    let db = GraphDatabase::open(dir, &options()).unwrap();
    let mut session = db.session().unwrap();
    let first = session.resolve_one(TermRef::Iri("http://a/g1")).unwrap().unwrap();
    let count = session.count(Index::Gs, &[first], None).unwrap();
    (count, session.count(Index::Gs, &[], None).unwrap())
}

#[test]
fn a_count_of_an_inner_node_does_not_decide_what_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), MANY);
    let (first, all) = pairs(dir.path());
    forge_count(dir.path(), (all - first) as i64);
    assert_eq!(pairs(dir.path()), (all, all), "all pairs seem to be of the first graph");
    let db = GraphDatabase::open(dir.path(), &options()).unwrap();
    assert!(!db.session().unwrap().is_plain().unwrap());
    let mut txn = db.begin().unwrap();
    let id = txn.session().resolve_one(TermRef::Iri("http://a/g1")).unwrap().unwrap();
    // An error would be right, too; but graphs that were not named must stay.
    if txn.clear(Graphs::One(id), &AtomicBool::default()).is_ok() {
        txn.commit().unwrap();
    } else {
        drop(txn);
    }
    assert_eq!(graphs(&db).get("<http://a/g2>"), Some(&(MANY as usize + 1)), "the other graph is whole");
}

/// If two leaves are involved, a count of 0 is verified by reading rows.
#[test]
fn a_count_of_nothing_is_seen_in_the_leaves() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), MANY);
    let (first, _) = pairs(dir.path());
    forge_count(dir.path(), -(first as i64));
    let db = GraphDatabase::open(dir.path(), &options()).unwrap();
    let mut session = db.session().unwrap();
    let id = session.resolve_one(TermRef::Iri("http://a/g1")).unwrap().unwrap();
    let e = session.count(Index::Gs, &[id], None).unwrap_err();
    assert!(e.to_string().contains("row counts"), "{e}");
}
