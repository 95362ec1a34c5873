//! Stripes on block devices: taken only when told so and when they are not in use, as long as
//! they are, and never removed. On loop devices, which need root; skipped, with a line that
//! says so, where there are none.

mod support;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use snowmelt_io::{LoopOptions, block_claim, loop_attach, loop_detach, loop_free};
use snowmelt_store::{BlockDevices, ReadAhead, Store, StoreConfig, StoreError, profile_path};
use support::{build_tree, config, reader, reopen, try_build_tree};

/// A loop device over a file of so many bytes; let go at the end.
struct Loop {
    device: PathBuf,
    _file: tempfile::NamedTempFile,
}

impl Loop {
    fn new(bytes: u64) -> Option<Loop> {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(bytes).unwrap();
        for _ in 0..20 {
            let device = match loop_free() {
                Ok(device) => device,
                Err(e) => {
                    eprintln!("skipped: there are no loop devices here ({e})");
                    return None;
                }
            };
            // Another may have been faster.
            let options = LoopOptions { direct_io: false, ..LoopOptions::default() };
            match loop_attach(&device, file.path(), &options) {
                Ok(()) => return Some(Loop { device, _file: file }),
                Err(e) if e.kind() == std::io::ErrorKind::ResourceBusy => continue,
                Err(e) => {
                    eprintln!("skipped: a loop device cannot be attached here ({e})");
                    return None;
                }
            }
        }
        panic!("every loop device was taken by somebody else");
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        let file = std::fs::OpenOptions::new().write(true).open(&self.device).unwrap();
        file.write_all_at(bytes, at).unwrap();
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = loop_detach(&self.device);
    }
}

fn destroying() -> StoreConfig {
    StoreConfig { block_devices: BlockDevices::Destroy, ..config(128, ReadAhead::none()) }
}

fn refusal(made: Result<Arc<Store>, StoreError>) -> String {
    match made {
        Err(StoreError::Config(why)) => why,
        Err(error @ StoreError::BlockDevice { .. }) => error.to_string(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the device was taken"),
    }
}

#[test]
fn what_is_on_a_device_is_named_and_kept() {
    let Some(device) = Loop::new(4 << 20) else { return };
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let stripes = [device.device.clone()];
    let create = |c| Store::create(&db, &stripes, c);
    let plain = || config(128, ReadAhead::none());
    let why = refusal(create(plain()));
    assert!(why.contains("nothing is at its begin"), "{why}");
    device.write(1080, b"\x53\xef");
    let why = refusal(create(plain()));
    assert!(why.contains("ext4"), "{why}");
    let mut kept = [0; 2];
    std::fs::File::open(&device.device).unwrap().read_exact_at(&mut kept, 1080).unwrap();
    assert_eq!(kept, *b"\x53\xef", "a device that is refused stays as it is");
    // One that is in use is not taken even when told to.
    let claim = block_claim(&device.device).unwrap();
    let why = refusal(create(destroying()));
    assert!(why.contains("in use"), "{why}");
    drop(claim);
    drop(create(destroying()).unwrap());
}

#[test]
fn a_database_lives_on_two_devices() {
    let (Some(a), Some(b)) = (Loop::new(4 << 20), Loop::new(4 << 20)) else { return };
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let stripes = [a.device.clone(), b.device.clone()];
    a.write(65_600, b"_BHRfS_M");
    let store = Store::create(&db, &stripes, destroying()).unwrap();
    let tree = build_tree(&store, "t", 1, 200);
    assert_eq!(store.stripe_bytes().unwrap() / 8192 / 8, store.extents().len() as u64);
    let busy = block_claim(&a.device).err().map(|e| e.kind());
    assert_eq!(busy, Some(std::io::ErrorKind::ResourceBusy), "it cannot be mounted meanwhile");
    // Opened again it is found by what the super-block says, without being told to.
    let store = reopen(&db, store, config(128, ReadAhead::none()));
    let mut r = reader(&store);
    (0..200).for_each(|n| tree.check(&mut r, n));
    drop(r);
    store.compact().unwrap();
    let own = profile_path(&db, 1, &b.device);
    assert_eq!(own, db.join("stripe-1.profile.json"), "not among the system's devices");
    drop(store);
    drop(block_claim(&a.device).unwrap());
    let new = Store::create_unfinished(&dir.path().join("other"), &stripes, destroying()).unwrap();
    drop(new);
    assert!(!dir.path().join("other").exists(), "what was not finished is taken back");
    assert!(a.device.exists() && b.device.exists(), "a device is not removed");
}

#[test]
fn a_full_device_is_a_full_database() {
    let Some(device) = Loop::new(2 << 20) else { return };
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let store = Store::create(&db, std::slice::from_ref(&device.device), destroying()).unwrap();
    let tree = build_tree(&store, "t", 1, 100);
    let full = try_build_tree(&store, "more", 2, 400);
    assert!(matches!(&full, Err(StoreError::Full { path }) if *path == device.device), "{full:?}");
    let mut r = reader(&store);
    (0..100).for_each(|n| tree.check(&mut r, n));
    drop(r);
    let store = reopen(&db, store, config(128, ReadAhead::none()));
    let mut r = reader(&store);
    (0..100).for_each(|n| tree.check(&mut r, n));
}

#[test]
fn files_are_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    drop(Store::create(&db, &[], destroying()).unwrap());
    assert_eq!(profile_path(&db, 0, Path::new("/a/b")), Path::new("/a/b.profile.json"));
    let new = Store::create_unfinished(&dir.path().join("new"), &[], destroying()).unwrap();
    assert!(new.store().stripe_files()[0].exists());
    drop(new);
    assert!(!dir.path().join("new").exists());
}
