//! A process that has no descriptor left: what is open goes on, and what needs one is refused
//! until there are some. (Alone in its file: the limit is the process's.)

#[path = "support/rounds.rs"]
mod rounds;
mod support;

use rounds::{Pages, dir, small};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use snowmelt_store::{Background, ReadAhead, Seams, Store, StoreConfig, StoreError};

#[test]
fn a_shortage_of_descriptors_passes() {
    let at = dir();
    let c = StoreConfig {
        journal: small(),
        seams: Seams { background: Background::Caller, ..support::config(64, ReadAhead::none()).seams },
        ..support::config(64, ReadAhead::none())
    };
    let path = at.path().join("db");
    let store = Store::create(&path, &[], c.clone()).unwrap();
    let pages = Pages::create(&store, 20);
    pages.write(&store, 1).unwrap();
    let limit = getrlimit(Resource::Nofile);
    // Reading the directory takes one, which is free again afterwards: none is left below the
    // lowest free one.
    let free = std::fs::File::open("/dev/null").unwrap();
    let lowest = std::os::fd::AsRawFd::as_raw_fd(&free) as u64;
    drop(free);
    setrlimit(Resource::Nofile, Rlimit { current: Some(lowest), ..limit }).unwrap();
    assert!(std::fs::File::open("/dev/null").is_err(), "there is a descriptor left");
    // Directories are synced, and none is opened for it.
    assert!(store.checkpoint().unwrap());
    let mut last = 1;
    let refused = (2..100).find_map(|round| pages.write(&store, round).map(|()| last = round).err());
    let e = refused.expect("another journal file needs a descriptor");
    assert!(matches!(&e, StoreError::Device { .. }) && e.is_passing(), "{e}");
    assert!(store.poisoned().is_none());
    assert_eq!(pages.round(&store).unwrap(), last);
    setrlimit(Resource::Nofile, limit).unwrap();
    pages.write(&store, 200).unwrap();
    drop(store);
    assert_eq!(pages.round(&Store::open(&path, c).unwrap()).unwrap(), 200);
}
