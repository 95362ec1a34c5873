//! A disk that breaks while a change is written: the answer says whether the change may be there.

mod support;

use std::sync::Arc;

use snowmelt_database::OpenOptions;
use snowmelt_graph::{GraphDatabase, TermRef};
use snowmelt_io::PowerDisk;
use snowmelt_store::{Background, FileOpener, Seams};

use support::{Running, config};

const EIO: i32 = rustix::io::Errno::IO.raw_os_error();

fn on(disk: &PowerDisk) -> OpenOptions {
    let disk = disk.clone();
    OpenOptions {
        memory_bytes: 128 << 20,
        extent_pages: 8,
        close_ms: 0,
        seams: Seams {
            // Only the client's changes may meet the fault.
            background: Background::Caller,
            files: Some(FileOpener::new(move |path, access| disk.open(path, access))),
            ..Seams::default()
        },
        ..OpenOptions::default()
    }
}

fn insert(name: &str) -> String {
    format!("INSERT DATA {{ <urn:{name}> <urn:p> <urn:o> }}")
}

fn has(db: &Arc<GraphDatabase>, name: &str) -> bool {
    let found = db.session().unwrap().resolve_one(TermRef::Iri(&format!("urn:{name}")));
    found.unwrap().is_some()
}

/// A commit whose write or sync fails may be there or not; what comes after it is not.
#[test]
fn a_change_that_was_being_written_and_those_after_it_are_told_apart() {
    for step in 0..2 {
        let at = tempfile::tempdir().unwrap();
        let path = at.path().join("db");
        let disk = PowerDisk::new(step);
        let db = GraphDatabase::create(&path, &[], &on(&disk)).unwrap();
        let server = Running::with_database(db, tempfile::tempdir().unwrap(), config());
        let sound = server.update(&insert("before"));
        assert!(sound.0.starts_with("HTTP/1.1 200"), "{sound:?}");

        // The record of the next commit is written, then synced.
        disk.fail_in(step, EIO);
        let unknown = server.update(&insert("during"));
        assert!(unknown.0.starts_with("HTTP/1.1 500"), "step {step}: {unknown:?}");
        for part in ["whether the change was kept is not known", "look before you repeat it"] {
            assert!(unknown.1.contains(part), "step {step}: {unknown:?}");
        }
        disk.heal();
        let turtle = "Content-Type: text/turtle\r\n";
        for refused in [
            server.update(&insert("after")),
            server.send("PUT", "/graphs?default", turtle, "<urn:after> <urn:p> <urn:o> ."),
        ] {
            assert!(refused.0.starts_with("HTTP/1.1 500"), "step {step}: {refused:?}");
            for part in ["nothing was changed", "mend the cause and open the database again"] {
                assert!(refused.1.contains(part), "step {step}: {refused:?}");
            }
        }
        let (ready, why) = server.ask("GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(ready.starts_with("HTTP/1.1 503") && why.contains("started again"), "{ready}{why}");
        let read = server.get("ASK { <urn:before> <urn:p> <urn:o> }", "text/csv");
        assert!(read.0.starts_with("HTTP/1.1 200") && read.1.contains("true"), "reads go on: {read:?}");
        drop(server);

        let db = GraphDatabase::open(&path, &on(&disk)).unwrap();
        assert!(has(&db, "before") && !has(&db, "after"), "step {step}");
    }
}
