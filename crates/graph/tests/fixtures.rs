//! Each release opens its predecessor's files: databases stored by programs of earlier file formats
//! open, hold the same quads, are sound, and can be changed further.

#[path = "support/archive.rs"]
mod archive;

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_database::OpenOptions;
use snowmelt_graph::load::Source;
use snowmelt_graph::{DumpFormat, GraphDatabase, GraphFormat};
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
        }
    }
}
