//! Each release opens its predecessor's files: databases stored by programs of earlier file formats
//! open, hold the same quads, are sound, and can be changed further and compacted. Their strings
//! are encoded with symbols until then.

#[path = "support/archive.rs"]
mod archive;

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_database::OpenOptions;
use snowmelt_graph::dict::Tree;
use snowmelt_graph::load::Source;
use snowmelt_graph::{CompactOptions, CompactTerms, DumpFormat, GraphDatabase, GraphFormat, TermsCompacted};
use snowmelt_store::superblock::{FORMAT, offset};

const FIXTURES: [(u32, &[u8]); 2] =
    [(3, include_bytes!("fixtures/format-3.zst")), (4, include_bytes!("fixtures/format-4.zst"))];

fn options() -> OpenOptions {
    OpenOptions { memory_bytes: 64 << 20, direct: false, ..OpenOptions::default() }
}

fn dump(db: &Arc<GraphDatabase>) -> Vec<String> {
    let mut out = Vec::new();
    db.dump(DumpFormat::NQuads, &mut out).unwrap();
    let mut lines: Vec<String> = String::from_utf8(out).unwrap().lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

fn sound(db: &Arc<GraphDatabase>) {
    let report = db.check(&mut |_| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
}

fn insert(db: &Arc<GraphDatabase>, line: &str) {
    let mut txn = db.begin().unwrap();
    let source = Source::Reader { name: "test".into(), read: Box::new(Cursor::new(line.to_owned())) };
    let format = Some(oxrdfio::RdfFormat::NQuads);
    txn.insert_source(source, format, None, None, &AtomicBool::new(false)).unwrap();
    txn.commit().unwrap();
}

/// File formats recorded in the slots that were ever written.
fn formats(dir: &Path) -> Vec<u32> {
    let bytes = std::fs::read(dir.join("superblock")).unwrap();
    let slots = bytes.chunks(8192).filter(|s| s[8..16] == *b"SNOWMELT");
    slots.map(|s| u32::from_le_bytes(s[offset::FORMAT..offset::FORMAT + 4].try_into().unwrap())).collect()
}

#[test]
fn databases_of_earlier_formats_open_and_go_on() {
    for (format, archive) in FIXTURES {
        let work = tempfile::tempdir().unwrap();
        archive::unpack(archive, work.path()).unwrap();
        for name in ["closed", "crashed"] {
            eprintln!("format {format}, {name}");
            let dir = work.path().join(name);
            assert!(formats(&dir).iter().all(|f| *f == format));
            let text = std::fs::read_to_string(work.path().join(format!("{name}.nq"))).unwrap();
            let mut expected: Vec<String> = text.lines().map(str::to_owned).collect();
            let db = GraphDatabase::open(&dir, &options()).unwrap();
            assert_eq!(
                db.database().store().recovery().commits > 0,
                name == "crashed",
                "the journal of one is needed"
            );
            assert!(dump(&db) == expected);
            sound(&db);
            assert_eq!(db.state().unwrap().meta().format, GraphFormat::One);
            for n in 0..5 {
                let words = "words ".repeat(n * 15);
                let line =
                    format!("<http://example.org/new> <http://example.org/p#0> \"after {n}{words}\" .");
                insert(&db, &line);
                expected.push(line);
                if n == 2 {
                    db.database().store().checkpoint().unwrap();
                }
            }
            expected.sort_unstable();
            assert!(dump(&db) == expected);
            drop(db);
            assert!(formats(&dir).iter().all(|f| *f == FORMAT), "a checkpoint writes the present format");
            let db = GraphDatabase::open(&dir, &options()).unwrap();
            assert!(dump(&db) == expected);
            sound(&db);
            assert_eq!(db.state().unwrap().meta().format, GraphFormat::One);
            compacted(db, &expected);
        }
    }
}

/// Compacts a database, which keeps its quads and can be changed further.
fn compacted(db: Arc<GraphDatabase>, expected: &[String]) {
    let options = CompactOptions { terms: CompactTerms::Always, ..CompactOptions::default() };
    let done = db.compact(&options, |_| ControlFlow::Continue(())).unwrap();
    assert!(matches!(done.terms, TermsCompacted::Reclaimed { .. }), "{:?}", done.terms);
    assert!(dump(&db) == expected);
    sound(&db);
    insert(&db, "<http://example.org/new> <http://example.org/p#0> \"after all\" .");
    assert_eq!(dump(&db).len(), expected.len() + 1);
    sound(&db);
}

/// The first byte of a string tree's record: 1 of one with symbols, 2 of one with a dictionary.
fn codec(db: &Arc<GraphDatabase>) -> u8 {
    db.state().unwrap().strings(Tree::Text).unwrap().to_bytes()[0]
}

/// A large tree with symbols, as all were before, is read and grows as it is; a compaction writes
/// it anew with a dictionary, and it is then much smaller.
#[test]
fn trees_with_symbols_stay_until_they_are_compacted() {
    let work = tempfile::tempdir().unwrap();
    let db = GraphDatabase::create(&work.path().join("db"), &[], &options()).unwrap();
    let text = |n: usize| {
        let words = (0..60).map(|i| format!("word{}", (n * 7919 + i * 104_729) % 4999));
        let text = words.collect::<Vec<_>>().join(" ");
        format!("<http://example.org/s/{n}> <http://example.org/p> \"{text}\" .")
    };
    let mut expected: Vec<String> = (0..3000).map(text).collect();
    // The codec of a tree that begins with few strings is symbols.
    for part in [&expected[..2], &expected[2..]] {
        insert(&db, &part.join("\n"));
    }
    expected.sort_unstable();
    assert_eq!(codec(&db), 1);
    drop(db);
    let db = GraphDatabase::open(&work.path().join("db"), &options()).unwrap();
    assert!(dump(&db) == expected);
    sound(&db);
    let pages = |db: &Arc<GraphDatabase>| db.state().unwrap().strings(Tree::Text).unwrap().pages();
    let before = pages(&db);
    compacted(db.clone(), &expected);
    assert_eq!(codec(&db), 2);
    assert!(pages(&db) * 10 < before * 7, "{} of {before} pages", pages(&db));
    drop(db);
    let db = GraphDatabase::open(&work.path().join("db"), &options()).unwrap();
    assert_eq!(dump(&db).len(), expected.len() + 1);
    sound(&db);
}
