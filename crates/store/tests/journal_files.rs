//! Making journal files when something is in the way.

#[path = "support/rounds.rs"]
mod rounds;
mod support;

use std::sync::Arc;

use rounds::{Pages, dir, on};
use snowmelt_io::PowerDisk;
use snowmelt_store::{Store, StoreError};

/// Name of the journal file that is made next.
fn next_file(disk: &PowerDisk) -> String {
    let files = disk.paths();
    let n = files.iter().filter(|p| p.display().to_string().contains("journal-")).count();
    format!("journal-{n}")
}

fn database(seed: u64) -> (tempfile::TempDir, PowerDisk, Arc<Store>, Pages) {
    let at = dir();
    let disk = PowerDisk::new(seed);
    let store = Store::create(at.path(), &[], on(&disk)).unwrap();
    let pages = Pages::create(&store, 20);
    pages.write(&store, 1).unwrap();
    (at, disk, store, pages)
}

/// Maker of the file.
#[derive(Clone, Copy, Debug)]
enum Maker {
    Commit,
    Background,
}

/// Every step of making a file fails: a broken device ends writing, an error that passes does not.
#[test]
fn a_file_that_cannot_be_made_is_a_hole_to_nobody() {
    let passing = [libc::ENOSPC, libc::EMFILE, libc::ENOMEM];
    for (maker, errno) in [Maker::Commit, Maker::Background]
        .into_iter()
        .flat_map(|m| [libc::EIO].into_iter().chain(passing).map(move |e| (m, e)))
    {
        let mut failed = 0;
        // Opened, lengthened, filled in four pieces, synced.
        for k in 0..7 {
            let what = format!("{maker:?}, error {errno}, step {k}");
            let (at, disk, store, pages) = database(k);
            disk.fail_file_in(&next_file(&disk), k, errno);
            let mut last = 1;
            let mut refused = None;
            for round in 2..12 {
                if let Maker::Background = maker {
                    let _ = (0..40).map(|_| store.step()).max();
                }
                match pages.write(&store, round) {
                    Ok(()) => last = round,
                    Err(e) => {
                        refused = Some(e);
                        break;
                    }
                }
            }
            assert_eq!(pages.round(&store).unwrap(), last, "{what}: reads go on");
            if let Some(e) = refused {
                failed += 1;
                assert!(!matches!(e, StoreError::OutcomeUnknown { .. }), "{what}: {e}");
                assert_eq!(store.poisoned().is_some(), errno == libc::EIO, "{what}: {e}");
                disk.heal();
                if errno == libc::EIO {
                    assert!(matches!(pages.write(&store, 50), Err(StoreError::Poisoned { .. })), "{what}");
                } else {
                    pages.write(&store, 50).unwrap();
                    last = 50;
                }
            }
            drop(store);
            disk.heal();
            let store = Store::open(at.path(), on(&disk)).unwrap();
            assert_eq!(pages.round(&store).unwrap(), last, "{what}");
            pages.write(&store, 51).unwrap();
        }
        // Where an error passes, files that nothing needs are given back, and writing goes on.
        assert!(failed >= 6 || errno != libc::EIO, "{maker:?}, error {errno}: only {failed} steps failed");
    }
}

/// A file whose making was cut short by a kill is no damage, and is made again.
#[test]
fn a_file_half_made_is_made_again() {
    for k in 0..8 {
        let (at, disk, store, pages) = database(k);
        let name = next_file(&disk);
        // No power for this file any more: the process goes before it is finished.
        disk.fail_file_in(&name, k, libc::ENOSPC);
        let last = (2..12).take_while(|round| pages.write(&store, *round).is_ok()).last().unwrap_or(1);
        let left = disk.copy(k);
        let path = at.path().join(&name);
        let bytes = left.bytes(&path).unwrap_or_default();
        for len in [0, 100, 4096, 50_000] {
            let left = left.copy(k);
            let mut bytes = bytes.clone();
            bytes.resize(len, 0);
            left.set_bytes(&path, bytes);
            let other = tempfile::tempdir().unwrap();
            // The lock is this process's: another directory with the same files.
            for p in left.paths() {
                let moved = other.path().join(p.file_name().unwrap());
                left.set_bytes(&moved, left.bytes(&p).unwrap());
            }
            let store = Store::open(other.path(), on(&left)).unwrap();
            assert_eq!(pages.round(&store).unwrap(), last, "step {k}, {len} bytes");
            (20..24).for_each(|round| pages.write(&store, round).unwrap());
            assert_eq!(pages.round(&store).unwrap(), 23);
        }
    }
}
