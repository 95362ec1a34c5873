//! Loads into an open database, beside its readers and writers.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::{fs, thread};

use parking_lot::Mutex;
use snowmelt_database::OpenOptions;
use snowmelt_graph::load::{
    Contexts, Fill, FormatToldBy, LoadOptions, LoadProgress, OddTerms, Progress, Source, load_into,
};
use snowmelt_graph::{BlankNodes, DumpFormat, GraphDatabase, Index, QuadBatch, TermId, TermRef};
use snowmelt_store::{FileOpener, Seams};
use tempfile::TempDir;

fn database() -> (TempDir, Arc<GraphDatabase>) {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions { memory_bytes: 512 << 20, extent_pages: 8, ..OpenOptions::default() };
    let database = GraphDatabase::create(&dir.path().join("db"), &[], &options).unwrap();
    (dir, database)
}

fn triples(subjects: std::ops::Range<usize>) -> Source {
    let text: String = subjects.map(|n| format!("<urn:s{n}> <urn:p> \"{n}\" .\n")).collect();
    Source::Reader { name: "made".into(), read: Box::new(std::io::Cursor::new(text)) }
}

fn load(database: &Arc<GraphDatabase>, source: Source, fill: Option<Fill>) -> u64 {
    let options = LoadOptions { fill, threads: 2, ..LoadOptions::default() };
    load_into(database, vec![source], &options, &(), &AtomicBool::new(false)).unwrap().quads
}

fn count(database: &Arc<GraphDatabase>) -> u64 {
    database.session().unwrap().count(Index::Psog, &[], None).unwrap()
}

fn insert(database: &Arc<GraphDatabase>, subject: &str) {
    let mut txn = database.begin().unwrap();
    let mut batch = QuadBatch::new(0);
    let terms = [TermRef::Iri(subject), TermRef::Iri("urn:p"), TermRef::string("x")].map(|t| batch.term(t));
    let graph = batch.id(TermId::DEFAULT_GRAPH);
    batch.push([terms[0], terms[1], terms[2], graph]);
    txn.insert(&batch, &mut BlankNodes::default()).unwrap();
    txn.commit().unwrap();
}

#[test]
fn readers_see_the_state_before() {
    let (_dir, database) = database();
    let mut empty = database.session().unwrap();
    assert_eq!(load(&database, triples(0..3000), None), 3000);
    let mut loaded = database.session().unwrap();
    assert_eq!(load(&database, triples(2000..5000), Some(Fill::Merge)), 5000);
    assert_eq!(load(&database, triples(4000..6000), Some(Fill::Insert)), 6000);
    assert_eq!(empty.count(Index::Psog, &[], None).unwrap(), 0);
    assert_eq!(loaded.count(Index::Psog, &[], None).unwrap(), 3000);
    // the load replaced its trees, but this session can still read them
    let found = loaded.resolve_one(TermRef::Iri("urn:s2999")).unwrap().expect("it is loaded");
    assert_eq!(loaded.count(Index::Sp, &[found], None).unwrap(), 1);
    assert_eq!(loaded.resolve_one(TermRef::Iri("urn:s3000")).unwrap(), None);
    assert_eq!(count(&database), 6000);
    assert!(database.check(&mut |_| {}).unwrap().is_sound());
}

#[test]
fn no_commit_beside_it_is_lost() {
    let (_dir, database) = database();
    for (round, fill) in
        [None, Some(Fill::Merge), Some(Fill::Insert), Some(Fill::Merge)].into_iter().enumerate()
    {
        thread::scope(|scope| {
            for writer in 0..2 {
                let database = &database;
                scope.spawn(move || {
                    (0..30).for_each(|n| insert(database, &format!("urn:{round}-{writer}-{n}")))
                });
            }
            load(&database, triples(round * 1000..(round + 1) * 1000), fill);
        });
        assert_eq!(count(&database), (round as u64 + 1) * 1060, "round {round}");
    }
    assert!(database.check(&mut |_| {}).unwrap().is_sound());
}

#[derive(Default)]
struct Heard(Mutex<Vec<(String, &'static str, FormatToldBy)>>);

impl LoadProgress for Heard {
    fn report(&self, _: &Progress) {}

    fn input(&self, name: &str, format: oxrdfio::RdfFormat, told_by: FormatToldBy) {
        let name = name.rsplit('/').next().unwrap_or(name).to_owned();
        self.0.lock().push((name, format.name(), told_by));
    }
}

#[test]
fn the_format_is_told_and_names_are_relative_to_the_file() {
    let (dir, database) = database();
    let turtle = dir.path().join("a b.ttl");
    fs::write(&turtle, "<x> <urn:p> <../y> .").unwrap();
    let unnamed = dir.path().join("unnamed");
    fs::write(&unnamed, "<urn:a> <urn:p> <urn:b> <urn:g> .\n").unwrap();
    for fill in [None, Some(Fill::Insert)] {
        let heard = Heard::default();
        let options = LoadOptions { fill, ..LoadOptions::default() };
        let sources = vec![Source::File(turtle.clone()), Source::File(unnamed.clone())];
        load_into(&database, sources, &options, &heard, &AtomicBool::new(false)).unwrap();
        let expected = [
            ("a b.ttl".to_owned(), "Turtle", FormatToldBy::Name),
            ("unnamed".to_owned(), "N-Quads", FormatToldBy::Content),
        ];
        assert_eq!(*heard.0.lock(), expected);
        let mut dump = Vec::new();
        database.dump(DumpFormat::NQuads, &mut dump).unwrap();
        let base = format!("<file://{}/x>", dir.path().display());
        assert!(String::from_utf8(dump).unwrap().contains(&base));
        assert_eq!(count(&database), 2);
    }
}

#[test]
fn a_database_in_memory_leaves_no_data_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions {
        memory_bytes: 512 << 20,
        seams: Seams { files: Some(FileOpener::in_memory()), ..Seams::default() },
        ..OpenOptions::default()
    };
    let database = GraphDatabase::create(dir.path(), &[], &options).unwrap();
    assert_eq!(load(&database, triples(0..5000), None), 5000);
    insert(&database, "urn:one-more");
    assert_eq!(count(&database), 5001);
    assert!(database.check(&mut |_| {}).unwrap().is_sound());
    let on_disk: u64 = fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap().metadata().unwrap().len()).sum();
    assert!(on_disk < 10_000, "{on_disk} bytes");
    drop(database);
    // the files stay as long as the opener lives
    assert_eq!(count(&GraphDatabase::open(dir.path(), &options).unwrap()), 5001);
}

/// A slow reader, and a document to be inserted, keep no writer waiting while they are read.
#[test]
fn others_write_while_a_load_reads() {
    for fill in [Fill::Insert, Fill::Merge] {
        let (_dir, database) = database();
        insert(&database, "urn:before");
        let (mut give, take) = std::io::pipe().map(|(take, give)| (give, take)).unwrap();
        let source = Source::Reader { name: "slow".into(), read: Box::new(take) };
        thread::scope(|scope| {
            let loading = scope.spawn(|| load(&database, source, Some(fill)));
            give.write_all(b"<urn:loaded> <urn:p> \"1\" .\n").unwrap();
            for n in 0..3 {
                thread::sleep(std::time::Duration::from_millis(20));
                let mut txn = None;
                let begun = std::time::Instant::now();
                while txn.is_none() && begun.elapsed() < std::time::Duration::from_secs(5) {
                    let patience = std::time::Instant::now() + std::time::Duration::from_millis(100);
                    txn = database.begin_while(&|| std::time::Instant::now() < patience).unwrap();
                }
                drop(txn.unwrap_or_else(|| panic!("{fill:?}: the load has the turn while it reads")));
                insert(&database, &format!("urn:beside{n}"));
            }
            drop(give);
            assert_eq!(loading.join().unwrap(), 5, "{fill:?}");
        });
        assert_eq!(count(&database), 5);
    }
}

/// Both ways into a database read documents alike.
#[test]
fn both_ways_read_alike() {
    let dir = tempfile::tempdir().unwrap();
    let context = dir.path().join("context.json");
    fs::write(&context, "{\"@context\": {\"name\": \"urn:name\"}}").unwrap();
    let contexts = Contexts::from_args(&[format!("urn:context={}", context.display())]).unwrap();
    let text = "{\"@context\": \"urn:context\", \"@id\": \"urn:s\", \"name\": \"Ann\"}";
    let turtle = "<urn:a#b#c> <urn:p> 1 . <urn:d> <urn:p> oops . <urn:e> <urn:p> 2 .";
    for fill in [Fill::Insert, Fill::Merge] {
        let (_dir, database) = database();
        insert(&database, "urn:before");
        let options = LoadOptions {
            fill: Some(fill),
            contexts: contexts.clone(),
            odd_terms: OddTerms::Kept,
            lenient: true,
            ..LoadOptions::default()
        };
        let read = |name: &str, text: &'static str| Source::Reader {
            name: name.into(),
            read: Box::new(text.as_bytes()),
        };
        let loaded = |source, format| {
            let options = LoadOptions { format: Some(format), ..options.clone() };
            load_into(&database, vec![source], &options, &(), &AtomicBool::new(false)).unwrap()
        };
        let json = oxrdfio::RdfFormat::JsonLd { profile: Default::default() };
        assert_eq!(loaded(read("json", text), json).triples, 1, "{fill:?}");
        let report = loaded(read("turtle", turtle), oxrdfio::RdfFormat::Turtle);
        assert_eq!((report.triples, report.skipped, report.left_out.len()), (2, 1, 1), "{fill:?}");
        assert_eq!(count(&database), 4, "{fill:?}");
        let strict =
            LoadOptions { format: Some(oxrdfio::RdfFormat::Turtle), lenient_most: 0.0, ..options.clone() };
        let refused =
            load_into(&database, vec![read("turtle", turtle)], &strict, &(), &AtomicBool::new(false));
        assert!(refused.is_err(), "{fill:?}: none may be left out");
    }
}
