//! Calls of a thread that has a transaction or an answer open: each of them ends. Calls that would
//! wait for the thread itself fail with a typed error.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use snowmelt::{Database, Error, Format, GraphName, NamedNode, Quad, QuadPattern, Result, Term};

/// Every call of the façade on an open database, and whether it changes the database.
type Call = (&'static str, bool, fn(&Database) -> Result<()>);

const CALLS: &[Call] = &[
    ("query", false, |db| db.query("SELECT * { ?s ?p ?o }")?.try_for_each(|row| row.map(drop))),
    ("ask", false, |db| db.ask("ASK { ?s ?p ?o }").map(drop)),
    ("construct", false, |db| {
        db.construct("CONSTRUCT WHERE { ?s ?p ?o }")?.try_for_each(|row| row.map(drop))
    }),
    ("prepare query", false, |db| db.prepare("ASK { ?s ?p ?o }").bind("s", 1).ask().map(drop)),
    ("explain", false, |db| db.explain("ASK { ?s ?p ?o }").map(drop)),
    ("analyze", false, |db| db.prepare("ASK { ?s ?p ?o }").analyze().map(drop)),
    ("quads", false, |db| db.quads(&QuadPattern::default())?.try_for_each(|quad| quad.map(drop))),
    ("contains", false, |db| db.contains(&quad()).map(drop)),
    ("quad_count", false, |db| db.quad_count().map(drop)),
    ("dump", false, |db| db.dump(Format::NQuads, &mut std::io::sink()).map(drop)),
    ("stats", false, |db| db.stats().map(drop)),
    ("meters", false, |db| {
        db.meters();
        Ok(())
    }),
    ("check", false, |db| db.check().map(drop)),
    ("backup", false, |db| {
        let to = tempfile::tempdir().unwrap();
        db.backup(to.path().join("copy"))
    }),
    ("update", true, |db| db.update("INSERT DATA { <urn:a> <urn:p> 1 }").map(drop)),
    ("clear", true, |db| db.update("CLEAR ALL").map(drop)),
    ("prepare update", true, |db| db.prepare("DELETE WHERE { ?s ?p ?o }").bind("s", 1).update().map(drop)),
    ("transaction", true, |db| db.transaction(|tx| tx.update("CLEAR ALL").map(drop))),
    ("begin", true, |db| db.begin()?.commit()),
    ("begin_while", true, |db| db.begin_while(&|| true).map(drop)),
    ("prefixes", false, |db| {
        db.prefixes();
        Ok(())
    }),
    ("set_prefix", true, |db| db.set_prefix("p", "urn:p:")),
    ("remove_prefix", true, |db| db.remove_prefix("p").map(drop)),
    ("compact", true, |db| db.compact()),
    ("load", true, |db| {
        let text: &[u8] = b"<urn:loaded> <urn:p> 1 .";
        db.loader().reader("text", text).format(Format::Turtle).run().map(drop)
    }),
];

fn quad() -> Quad {
    let iri = NamedNode::new_unchecked("urn:a");
    Quad::new(iri.clone(), iri.clone(), iri, GraphName::DefaultGraph)
}

fn filled() -> (tempfile::TempDir, Database) {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::options().memory(64 << 20).create(dir.path().join("db")).unwrap();
    db.update("INSERT DATA { <urn:s> <urn:p> 1, 2, 3 . <urn:t> <urn:p> 4 }").unwrap();
    (dir, db)
}

/// Runs something on a thread of its own; fails when it never ends.
fn ends<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, answer) = mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    answer.recv_timeout(Duration::from_secs(120)).unwrap_or_else(|_| panic!("{what} does not end"))
}

#[test]
fn within_a_transaction_changes_by_another_way_are_refused() {
    for (name, changes, call) in CALLS {
        let result = ends(name, move || {
            let (_dir, db) = filled();
            let done = db.transaction(|tx| {
                tx.update("INSERT DATA { <urn:own> <urn:p> 1 }")?;
                let done = call(&db);
                tx.update("INSERT DATA { <urn:own> <urn:p> 2 }")?;
                Ok::<_, Error>(done)
            })?;
            assert!(db.ask("ASK { <urn:own> <urn:p> 1, 2 }")?, "the transaction went on");
            // Afterwards all is as usual.
            call(&db)?;
            Ok::<_, Error>(done)
        });
        let done = result.unwrap_or_else(|error| panic!("{name}: {error}"));
        match changes {
            true => assert!(matches!(done, Err(Error::InTransaction)), "{name}: {done:?}"),
            false => done.unwrap_or_else(|error| panic!("{name}: {error}")),
        }
    }
}

#[test]
fn a_transaction_lent_to_another_thread_is_still_its_callers() {
    for (name, changes, call) in CALLS.iter().filter(|(_, changes, _)| *changes) {
        let done = ends(name, move || {
            let (_dir, db) = filled();
            db.transaction(|tx| {
                let lent = std::thread::scope(|s| {
                    s.spawn(|| tx.update("INSERT DATA { <urn:own> <urn:p> 1 }")).join().unwrap()
                });
                lent.map(|_| call(&db))
            })
            .unwrap()
        });
        assert!(*changes && matches!(done, Err(Error::InTransaction)), "{name}: {done:?}");
    }
}

#[test]
fn within_a_transaction_of_a_handle_too() {
    for (name, changes, call) in CALLS.iter().filter(|(_, changes, _)| *changes) {
        let done = ends(name, move || {
            let (_dir, db) = filled();
            let tx = db.begin().unwrap();
            let done = call(&db);
            tx.commit().unwrap();
            call(&db).unwrap();
            // A dropped transaction blocks no other, either.
            drop(db.begin().unwrap());
            call(&db).unwrap();
            done
        });
        assert!(*changes && matches!(done, Err(Error::InTransaction)), "{name}: {done:?}");
    }
}

#[test]
fn within_a_function_of_an_update_changes_are_refused() {
    for (name, changes, call) in CALLS {
        let done = ends(name, move || {
            let (_dir, db) = filled();
            let told = Arc::new(Mutex::new(None));
            let (inner, tell) = (db.clone(), told.clone());
            let function = move |_: &[Term]| {
                let done = call(&inner);
                tell.lock().unwrap().get_or_insert(done);
                None
            };
            let text = "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(<urn:f>(?o)) }";
            db.prepare(text).function("urn:f", function).update().unwrap();
            // Afterwards all is as usual.
            call(&db).unwrap();
            let done = told.lock().unwrap().take();
            done.expect("the function was called")
        });
        match changes {
            true => assert!(matches!(done, Err(Error::InTransaction)), "{name}: {done:?}"),
            false => done.unwrap_or_else(|error| panic!("{name}: {error}")),
        }
    }
}

#[test]
fn with_results_half_read_everything_ends() {
    for (name, _, call) in CALLS {
        ends(name, move || {
            let (_dir, db) = filled();
            let mut rows = db.query("SELECT * { ?s ?p ?o }").unwrap();
            let mut quads = db.quads(&QuadPattern::default()).unwrap();
            rows.next().unwrap().unwrap();
            quads.next().unwrap().unwrap();
            call(&db).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((rows.count(), quads.count()), (3, 3), "{name}: they see their state");
        });
    }
}

#[test]
fn another_thread_waits_and_a_transaction_can_be_handed_over() {
    let (_dir, db) = filled();
    let mut tx = db.begin().unwrap();
    let other = db.clone();
    let waiting = std::thread::spawn(move || other.update("INSERT DATA { <urn:other> <urn:p> 1 }"));
    tx.update("INSERT DATA { <urn:own> <urn:p> 1 }").unwrap();
    let (handed, used) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        tx.update("INSERT DATA { <urn:own> <urn:p> 2 }").unwrap();
        handed.send(()).unwrap();
        tx.commit()
    });
    used.recv().unwrap();
    // It is the worker's now: this thread waits for it, as any other.
    db.update("INSERT DATA { <urn:third> <urn:p> 1 }").unwrap();
    worker.join().unwrap().unwrap();
    waiting.join().unwrap().unwrap();
    assert_eq!(db.quad_count().unwrap(), 8);
}

#[test]
fn a_statement_is_bound_many_times() {
    let (_dir, db) = filled();
    let statement = db.prepare("ASK { ?s <urn:p> ?o }");
    let iri = NamedNode::new_unchecked;
    for (subject, object, expected) in [("urn:s", 1, true), ("urn:t", 1, false), ("urn:t", 4, true)] {
        let of_subject = statement.bind("s", iri(subject));
        assert_eq!(of_subject.bind("o", object).ask().unwrap(), expected, "{subject} {object}");
        assert!(!of_subject.bind("o", object).bind("o", 9).ask().unwrap(), "the last value counts");
    }
    let mut tx = db.begin().unwrap();
    let insert = tx.prepare("INSERT { <urn:made> <urn:p> ?n } WHERE { }");
    for n in 0..5 {
        assert_eq!(insert.bind("n", n).update().unwrap().inserted, 1);
    }
    tx.commit().unwrap();
    assert_eq!(db.quad_count().unwrap(), 9);
}
