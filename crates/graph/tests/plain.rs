//! The graph's record may claim that all quads are in the default graph. After every kind of
//! change, the claim and the session's answer agree with the rows; a check finds a wrong claim; a
//! true one saves a read.
//!
//! The seed is printed; `SNOWMELT_SEED` gives another one.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_base::random::Random;
use snowmelt_database::OpenOptions;
use snowmelt_graph::dict::{GraphMeta, RECORD_META};
use snowmelt_graph::load::{Fill, LoadOptions, Source, load};
use snowmelt_graph::{
    BlankNodes, Columns, GraphDatabase, Graphs, Index, QuadBatch, Session, TermId, TermRef, Transaction,
};
use snowmelt_store::Activity;

fn options() -> OpenOptions {
    let mut options =
        OpenOptions { memory_bytes: 64 << 20, direct: false, extent_pages: 8, ..OpenOptions::default() };
    options.read_ahead.warm_list = false;
    options
}

/// A quad: the number of its subject and that of its graph, 0 for the default graph.
type Quad = (u64, u64);

const GRAPHS: u64 = 3;
const SUBJECTS: u64 = 6;

fn lines(quads: &[Quad]) -> String {
    let line = |(subject, graph): &Quad| {
        let graph = if *graph == 0 { String::new() } else { format!("<http://a/g{graph}> ") };
        format!("<http://a/s{subject}> <http://a/p> <http://a/o> {graph}.\n")
    };
    quads.iter().map(line).collect()
}

/// Loads, into a new database or into a filled one.
fn fill(dir: &Path, quads: &[Quad], fill: Option<Fill>) {
    let source = Source::Reader { name: "test".into(), read: Box::new(Cursor::new(lines(quads))) };
    let format = Some(oxrdfio::RdfFormat::NQuads);
    let options = LoadOptions { format, fill, threads: 1, store: options(), ..LoadOptions::default() };
    load(dir, vec![source], &options, &(), &AtomicBool::new(false)).unwrap();
}

fn batch(quads: &[Quad]) -> QuadBatch {
    let mut batch = QuadBatch::new(0);
    for (subject, graph) in quads {
        let subject = batch.term(TermRef::Iri(&format!("http://a/s{subject}")));
        let (p, o) = (batch.term(TermRef::Iri("http://a/p")), batch.term(TermRef::Iri("http://a/o")));
        let graph = match graph {
            0 => batch.id(TermId::DEFAULT_GRAPH),
            graph => batch.term(TermRef::Iri(&format!("http://a/g{graph}"))),
        };
        batch.push([subject, p, o, graph]);
    }
    batch
}

fn id(session: &mut Session, iri: &str) -> Option<TermId> {
    session.resolve_one(TermRef::Iri(iri)).unwrap()
}

fn graph_id(session: &mut Session, graph: u64) -> Option<TermId> {
    if graph == 0 { Some(TermId::DEFAULT_GRAPH) } else { id(session, &format!("http://a/g{graph}")) }
}

/// The quads whose terms are known.
fn known(session: &mut Session, quads: &[Quad]) -> Vec<[TermId; 4]> {
    let mut of = |(subject, graph): &Quad| {
        let subject = id(session, &format!("http://a/s{subject}"))?;
        Some([subject, id(session, "http://a/p")?, id(session, "http://a/o")?, graph_id(session, *graph)?])
    };
    quads.iter().filter_map(&mut of).collect()
}

/// Decides by the rows whether all quads are in the default graph.
fn by_rows(session: &mut Session) -> bool {
    let (mut scan, mut rows) = (session.scan(Index::Psog, &[], None), Columns::new(4));
    while scan.next(session, &mut rows, 1000).unwrap() {}
    rows.cols[3].iter().all(|graph| *graph == TermId::DEFAULT_GRAPH.0)
}

/// Checks that a claim is right, and, with `ask`, that the session's answer is, too.
fn agrees(mut session: Session, ask: bool, context: &str) {
    let plain = by_rows(&mut session);
    let claim = session.state().meta().plain;
    assert!(!claim || plain, "{context}: the record claims that there is no other graph");
    if ask {
        assert_eq!(session.is_plain().unwrap(), plain, "{context}: what the session says");
    }
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Insert(Quad),
    Delete(Quad),
    DeleteNamed,
    /// deletes the first and inserts the second
    Replace(Quad, Quad),
    Clear(u64),
    ClearNamed,
    ClearAll,
}

const CHANGES: u64 = 7;

fn every_named() -> Vec<Quad> {
    (0..SUBJECTS).flat_map(|s| (1..=GRAPHS).map(move |g| (s, g))).collect()
}

impl Change {
    fn new(kind: u64, mut below: impl FnMut(u64) -> u64) -> Change {
        let mut quad = || (below(SUBJECTS), below(GRAPHS + 1));
        match kind {
            0 => Change::Insert(quad()),
            1 => Change::Delete(quad()),
            2 => Change::DeleteNamed,
            3 => Change::Replace(quad(), quad()),
            4 => Change::Clear(quad().1),
            5 => Change::ClearNamed,
            _ => Change::ClearAll,
        }
    }

    fn run(self, txn: &mut Transaction) {
        let mut blanks = BlankNodes::default();
        let mut session = txn.session();
        match self {
            Change::Insert(quad) => drop(txn.insert(&batch(&[quad]), &mut blanks).unwrap()),
            Change::Delete(quad) => drop(txn.delete(&known(&mut session, &[quad])).unwrap()),
            Change::DeleteNamed => drop(txn.delete(&known(&mut session, &every_named())).unwrap()),
            Change::Replace(gone, come) => {
                let gone = known(&mut session, &[gone]);
                txn.change(&gone, &batch(&[come]), &mut blanks).unwrap();
            }
            Change::Clear(graph) => {
                if let Some(graph) = graph_id(&mut session, graph) {
                    txn.clear(Graphs::One(graph), &AtomicBool::default()).unwrap();
                }
            }
            Change::ClearNamed => drop(txn.clear(Graphs::Named, &AtomicBool::default()).unwrap()),
            Change::ClearAll => drop(txn.clear(Graphs::All, &AtomicBool::default()).unwrap()),
        }
    }
}

const DEFAULT_ONLY: &[Quad] = &[(0, 0), (1, 0)];
const NAMED_ONLY: &[Quad] = &[(0, 1), (1, 2)];
const MIXED: &[Quad] = &[(0, 0), (1, 0), (0, 1), (2, 3)];

/// From every kind of database, by every two changes, with or without a question in between: in one
/// transaction and in two, and after opening again.
#[test]
fn after_every_two_changes_the_claim_is_right() {
    let changes = [
        Change::Insert((3, 0)),
        Change::Insert((3, 1)),
        Change::Delete((0, 0)),
        Change::Delete((0, 1)),
        Change::DeleteNamed,
        Change::Replace((0, 0), (0, 1)),
        Change::Replace((0, 1), (0, 0)),
        Change::Clear(0),
        Change::Clear(1),
        Change::ClearNamed,
        Change::ClearAll,
    ];
    for start in [&[][..], DEFAULT_ONLY, NAMED_ONLY, MIXED] {
        let dir = tempfile::tempdir().unwrap();
        fill(dir.path(), start, None);
        let db = GraphDatabase::open(dir.path(), &options()).unwrap();
        agrees(db.session().unwrap(), true, &format!("loaded {start:?}"));
        for (first, second, ask) in changes
            .iter()
            .flat_map(|a| changes.iter().flat_map(move |b| [false, true].map(|ask| (*a, *b, ask))))
        {
            let context = format!("{start:?}, {first:?}, {second:?}, asked {ask}");
            let mut txn = db.begin().unwrap();
            for change in [first, second] {
                change.run(&mut txn);
                agrees(txn.session(), ask, &context);
            }
            agrees(txn.session(), true, &context);
        }
    }
}

/// Changes of the default graph keep the claim, and emptying a database makes it: it saves the read
/// after the next opening.
#[test]
fn the_claim_is_kept_and_made() {
    let dir = tempfile::tempdir().unwrap();
    for (n, (start, changes)) in [
        (DEFAULT_ONLY, &[Change::Insert((3, 0)), Change::Delete((0, 0))][..]),
        (DEFAULT_ONLY, &[Change::Replace((0, 0), (4, 0)), Change::Clear(0), Change::Insert((0, 0))]),
        (DEFAULT_ONLY, &[Change::ClearNamed, Change::DeleteNamed]),
        (MIXED, &[Change::ClearAll]),
        (MIXED, &[Change::ClearAll, Change::Insert((0, 0))]),
    ]
    .into_iter()
    .enumerate()
    {
        let dir = dir.path().join(n.to_string());
        fill(&dir, start, None);
        for change in changes {
            // No session asks in between, and each change is the first after an opening.
            let db = GraphDatabase::open(&dir, &options()).unwrap();
            let mut txn = db.begin().unwrap();
            change.run(&mut txn);
            txn.commit().unwrap();
        }
        let db = GraphDatabase::open(&dir, &options()).unwrap();
        assert!(db.state().unwrap().meta().plain, "{start:?}, {changes:?}");
    }
}

/// Commits, aborts, loads both ways, and openings, in any order, by splitmix64.
#[test]
fn after_random_changes_the_claim_is_right() {
    let mut random = Random(snowmelt_io::test_seed(1));
    let dir = tempfile::tempdir().unwrap();
    let mut db = GraphDatabase::create(dir.path(), &[], &options()).unwrap();
    let (mut plain, mut claims) = (0, 0);
    for round in 0..300 {
        match random.below(12) {
            0 => {
                let named = random.below(2) * GRAPHS;
                let quads: Vec<Quad> =
                    (0..3).map(|_| (random.below(SUBJECTS), random.below(named + 1))).collect();
                let way = [Fill::Insert, Fill::Merge][random.below(2) as usize];
                drop(db);
                fill(dir.path(), &quads, Some(way));
                db = GraphDatabase::open(dir.path(), &options()).unwrap();
                agrees(db.session().unwrap(), true, &format!("round {round}, loaded {quads:?} by {way:?}"));
            }
            1 => {
                drop(db);
                db = GraphDatabase::open(dir.path(), &options()).unwrap();
            }
            _ => {
                let mut txn = db.begin().unwrap();
                for _ in 0..1 + random.below(3) {
                    let kind = random.below(CHANGES);
                    let change = Change::new(kind, |n| random.below(n));
                    change.run(&mut txn);
                    agrees(txn.session(), random.below(2) == 0, &format!("round {round}, {change:?}"));
                }
                if random.below(5) > 0 {
                    txn.commit().unwrap();
                }
            }
        }
        agrees(db.session().unwrap(), random.below(2) == 0, &format!("round {round}"));
        plain += u32::from(by_rows(&mut db.session().unwrap()));
        claims += u32::from(db.state().unwrap().meta().plain);
    }
    assert!(db.check(&mut |_| {}).unwrap().is_sound());
    assert!(plain < 250 && claims > 50, "of 300 rounds {plain} were plain, {claims} by the record");
}

/// Writes a forged record of the graph.
fn forge(db: &Arc<GraphDatabase>, meta: GraphMeta) {
    let mut txn = db.database().store().begin().unwrap();
    txn.put_record(RECORD_META, 1, &meta.to_bytes());
    txn.append().unwrap().wait().unwrap();
}

#[test]
fn a_check_finds_a_wrong_claim() {
    let dir = tempfile::tempdir().unwrap();
    for (name, quads, problem) in [
        ("default", DEFAULT_ONLY, None),
        ("named", NAMED_ONLY, Some("all quads are in the default graph")),
        ("mixed", MIXED, Some("all quads are in the default graph")),
    ] {
        let dir = dir.path().join(name);
        fill(&dir, quads, None);
        let db = GraphDatabase::open(&dir, &options()).unwrap();
        assert_eq!(db.check(&mut |_| {}).unwrap().problems, [""; 0], "{name}: sound before");
        forge(&db, GraphMeta { plain: true, ..*db.state().unwrap().meta() });
        drop(db);
        let db = GraphDatabase::open(&dir, &options()).unwrap();
        let problems = db.check(&mut |_| {}).unwrap().problems;
        assert_eq!(problems.len(), usize::from(problem.is_some()), "{name}: {problems:?}");
        assert!(problem.is_none_or(|why| problems[0].contains(why)), "{name}: {problems:?}");
    }
}

/// Without the claim a leaf of GS is read; with it none is.
#[test]
fn a_cold_open_with_the_claim_reads_no_page() {
    let dir = tempfile::tempdir().unwrap();
    let quads: Vec<Quad> = (0..20_000).map(|subject| (subject, 0)).collect();
    fill(dir.path(), &quads, None);
    for claimed in [true, false] {
        let db = GraphDatabase::open(dir.path(), &options()).unwrap();
        let meta = *db.state().unwrap().meta();
        assert_eq!(meta.plain, claimed);
        let mut session = db.session().unwrap();
        assert!(session.is_plain().unwrap());
        let reads: u64 =
            db.database().store().tree_stats().iter().filter(|t| t.name == "gs").map(|t| t.reads).sum();
        let Activity { pages, disk, .. } = session.activity();
        assert_eq!((reads > 0, pages > 0, disk > 0), (!claimed, !claimed, !claimed), "claimed: {claimed}");
        drop(session);
        forge(&db, GraphMeta { plain: false, ..meta });
    }
}
