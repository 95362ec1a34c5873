//! Journal bytes of single-quad commits. They are counted, so they are equal on every machine.

use std::fmt::Write;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_database::OpenOptions;
use snowmelt_graph::load::{LoadOptions, Source, load};
use snowmelt_graph::{BlankNodes, GraphDatabase, QuadBatch, TermId, TermRef};
use snowmelt_store::{Background, JournalConfig, JournalStats, Seams};

const SUBJECTS: u64 = 6000;

fn options() -> OpenOptions {
    OpenOptions {
        memory_bytes: 256 << 20,
        direct: false,
        close_ms: 0,
        journal: JournalConfig { checkpoint_bytes: u64::MAX, ..JournalConfig::default() },
        seams: Seams {
            // Checkpoints only when the test asks for one.
            background: Background::Caller,
            ..Seams::default()
        },
        ..OpenOptions::default()
    }
}

/// A database fresh from a load: leaves in key order and full.
fn loaded(dir: &Path) -> Arc<GraphDatabase> {
    let mut text = String::new();
    for s in 0..SUBJECTS {
        for p in 0..10 {
            let o = match p {
                0..3 => format!("<http://example.org/o/{}>", (s * 7 + p) % 500),
                3..6 => format!("\"value {} of {p}\"", s.wrapping_mul(0x9E37_79B9) % 4000),
                _ => format!("\"{}\"^^<http://www.w3.org/2001/XMLSchema#integer>", s * 31 % 1000),
            };
            writeln!(text, "<http://example.org/s/{s}> <http://example.org/p/{p}> {o} .").unwrap();
        }
    }
    let sources = vec![Source::Reader { name: "data".into(), read: Box::new(Cursor::new(text)) }];
    let format = Some(oxrdfio::RdfFormat::NTriples);
    let load_options = LoadOptions { store: options(), format, ..LoadOptions::default() };
    load(dir, sources, &load_options, &(), &AtomicBool::new(false)).unwrap();
    GraphDatabase::open(dir, &options()).unwrap()
}

/// Adds one quad, in a commit of its own.
fn add(db: &Arc<GraphDatabase>, s: &str, p: &str, o: &str) {
    let mut batch = QuadBatch::new(0);
    let terms = [TermRef::Iri(s), TermRef::Iri(p), TermRef::string(o)].map(|t| batch.term(t));
    let g = batch.id(TermId::DEFAULT_GRAPH);
    batch.push([terms[0], terms[1], terms[2], g]);
    let mut txn = db.begin().unwrap();
    assert_eq!(txn.insert(&batch, &mut BlankNodes::default()).unwrap().inserted, 1);
    let _ = txn.append().unwrap();
}

/// Average bytes of journal records per commit.
fn each(db: &Arc<GraphDatabase>, commits: std::ops::Range<u64>, commit: impl Fn(u64)) -> u64 {
    let stats = || -> JournalStats { db.database().store().journal_stats() };
    let before = stats();
    let n = commits.end - commits.start;
    commits.for_each(commit);
    let after = stats();
    assert_eq!(after.commits - before.commits, n);
    (after.appended_bytes - before.appended_bytes) / n
}

fn pages(db: &Arc<GraphDatabase>) -> (u64, u64) {
    let trees = db.database().store().tree_stats();
    let sum = |of: fn(&snowmelt_store::TreeStats) -> u64| trees.iter().map(of).sum();
    (sum(|t| t.journaled.images), sum(|t| t.journaled.diffs))
}

#[test]
fn a_quad_alone_is_few_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let db = loaded(dir.path());
    let spread = |n: u64| n.wrapping_mul(2_654_435_761) % SUBJECTS;
    let literal = |n: u64| {
        let s = format!("http://example.org/s/{}", spread(n));
        add(&db, &s, &format!("http://example.org/p/{}", n % 10), &format!("a further remark, number {n}"));
    };
    let new = |n: u64| {
        let s = format!("http://example.org/new/{n}");
        add(&db, &s, "http://example.org/p/4", &format!("a remark on the new {n}"));
    };
    // The first change of a page logs the whole page.
    let first = each(&db, 0..3000, literal);
    let (images, _) = pages(&db);
    let later = each(&db, 3000..6000, literal);
    let (images_later, diffs) = pages(&db);
    let first_subjects = each(&db, 0..2000, new);
    let subjects = each(&db, 2000..4000, new);
    eprintln!(
        "literals {first}, then {later}; subjects {first_subjects}, then {subjects}; \
         images {images}, then {images_later}; {diffs} diffs"
    );
    assert!(later <= 330, "{later} bytes a commit");
    // A new subject adds two strings, two rows of hashes, and its pairs.
    assert!(subjects <= 400, "{subjects} bytes a commit");
    drop(db);
    // Changes logged as rows are recovered as rows.
    let db = GraphDatabase::open(dir.path(), &options()).unwrap();
    assert!(db.database().store().recovery().commits > 0);
    let report = db.check(&mut |_| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    assert_eq!(db.begin().unwrap().state().quads(), SUBJECTS * 10 + 10_000);
}
