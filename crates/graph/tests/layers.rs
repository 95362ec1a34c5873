//! The graph and another layer in one transaction of the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use snowmelt_database::{Database, Layer, OpenOptions, Snapshot, Transaction as DatabaseTransaction, Waiter};
use snowmelt_graph::{BlankNodes, GraphDatabase, QuadBatch, TermId, TermRef};
use snowmelt_store::TupleTree;

const TREE: &str = "rows/all";

/// Another layer: one tree of numbers, and a count of commits.
struct Rows(Arc<AtomicU64>);

impl Layer for Rows {
    fn append(&mut self) {}

    fn appended(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn failed(&mut self) {
        panic!("no commit fails here")
    }
}

fn add_row(txn: &mut DatabaseTransaction, row: u64, commits: &Arc<AtomicU64>) {
    let record = txn.trees().record(TREE);
    let mut tree = match record {
        Some(bytes) => TupleTree::from_bytes(&bytes).unwrap(),
        None => TupleTree::create(txn.trees(), TREE, 1).unwrap(),
    };
    let mut changes = snowmelt_store::Changes::new(1);
    changes.push(&[row], true);
    tree.apply(txn.trees(), &changes).unwrap();
    txn.trees().put_record(TREE, 2, &tree.to_bytes());
    let left = txn.take::<Rows>().unwrap_or_else(|| Box::new(Rows(commits.clone())));
    txn.leave(left);
}

fn rows(snapshot: &Snapshot) -> u64 {
    let record = snapshot.record(TREE).map(|bytes| bytes.to_vec());
    record.map_or(0, |bytes| TupleTree::from_bytes(&bytes).unwrap().rows())
}

fn quads(graphs: &Arc<GraphDatabase>) -> u64 {
    let report = graphs.check(&mut |_| {}).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    graphs.stats().unwrap().quads
}

/// A batch of one quad with terms of its own.
fn batch(number: u64) -> QuadBatch {
    let mut batch = QuadBatch::new(0);
    let iri = format!("http://example.org/{number}");
    let subject = batch.term(TermRef::Iri(&iri));
    let graph = batch.id(TermId::DEFAULT_GRAPH);
    batch.push([subject, subject, subject, graph]);
    batch
}

/// The state that a transaction sees may never be, and another one gets its number.
#[test]
fn a_session_on_a_transaction_is_seen_by_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions { memory_bytes: 64 << 20, direct: false, ..OpenOptions::default() };
    let database = Arc::new(Database::create(&dir.path().join("db"), &[], &options).unwrap());
    let graphs = GraphDatabase::new(database.clone()).unwrap();
    let begin = || database.begin_for(&Waiter::PATIENT).unwrap().unwrap();
    for round in 0..4 {
        let mut graph = graphs.join(begin()).unwrap();
        graph.insert(&batch(round), &mut BlankNodes::default()).unwrap();
        let txn = graph.leave().unwrap();
        let before = quads(&graphs);
        let within = graphs.session_at(txn.snapshot()).unwrap();
        assert_eq!(within.state().quads(), before + 1);
        assert_eq!(quads(&graphs), before);
        let snapshot = txn.snapshot();
        if round % 2 == 0 {
            drop(txn);
            // Another layer gets the number.
            let mut txn = begin();
            add_row(&mut txn, round, &Arc::default());
            txn.commit().unwrap();
            assert_eq!(quads(&graphs), before);
            assert_eq!(graphs.session_at(snapshot).unwrap().state().quads(), before + 1);
        } else {
            txn.commit().unwrap();
            assert_eq!(quads(&graphs), before + 1);
        }
    }
}

#[test]
fn quads_and_rows_come_with_one_commit_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let options =
        OpenOptions { memory_bytes: 64 << 20, direct: false, extent_pages: 8, ..OpenOptions::default() };
    let mut database = Arc::new(Database::create(&dir.path().join("db"), &[], &options).unwrap());
    let mut graphs = GraphDatabase::new(database.clone()).unwrap();
    let commits = Arc::new(AtomicU64::new(0));
    let (mut expected_rows, mut expected_quads, mut expected_commits) = (0, 0, 0);
    for round in 0..20u64 {
        let mut txn = database.begin_for(&Waiter::PATIENT).unwrap().unwrap();
        // The graph joins before and after the other layer, and sees its own earlier changes.
        for part in 0..2 {
            let mut graph = graphs.join(txn).unwrap();
            graph.insert(&batch(2 * round + part), &mut BlankNodes::default()).unwrap();
            assert_eq!(graph.session().state().terms(), expected_quads + part + 1);
            txn = graph.leave().unwrap();
            add_row(&mut txn, 2 * round + part, &commits);
        }
        match round % 3 {
            0 => drop(txn),
            _ => {
                txn.commit().unwrap();
                expected_rows += 2;
                expected_quads += 2;
                expected_commits += 1;
            }
        }
        assert_eq!(
            (quads(&graphs), rows(&database.snapshot())),
            (expected_quads, expected_rows),
            "round {round}"
        );
        if round % 5 == 4 {
            // A commit of the other layer alone, and the graph after it.
            let mut txn = database.begin_for(&Waiter::PATIENT).unwrap().unwrap();
            add_row(&mut txn, 1000 + round, &commits);
            let changed = graphs.session().unwrap().state().changed();
            txn.commit().unwrap();
            expected_rows += 1;
            expected_commits += 1;
            assert!(changed > 0);
            assert_eq!(graphs.session().unwrap().state().changed(), changed, "plans stay");
            // Both layers as of one moment.
            let snapshot = database.snapshot();
            let mut txn = database.begin_for(&Waiter::PATIENT).unwrap().unwrap();
            let mut graph = graphs.join(txn).unwrap();
            graph.insert(&batch(2000 + round), &mut BlankNodes::default()).unwrap();
            txn = graph.leave().unwrap();
            add_row(&mut txn, 2000 + round, &commits);
            txn.commit().unwrap();
            let then = graphs.session_at(snapshot.clone()).unwrap();
            assert_eq!((then.state().terms(), rows(&snapshot)), (expected_quads, expected_rows));
            (expected_rows, expected_quads) = (expected_rows + 1, expected_quads + 1);
            expected_commits += 1;
            drop((then, snapshot, graphs, database));
            database = Arc::new(Database::open(&dir.path().join("db"), &options).unwrap());
            graphs = GraphDatabase::new(database.clone()).unwrap();
            assert_eq!((quads(&graphs), rows(&database.snapshot())), (expected_quads, expected_rows));
        }
    }
    assert_eq!(commits.load(Ordering::Relaxed), expected_commits);
}
