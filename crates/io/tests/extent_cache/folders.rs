//! Folders that are no cache, or not the one asked for.

use std::fs;
use std::path::Path;

use snowmelt_io::{CacheError, ExtentCache};

use crate::{CountingStore, DATA, INDEX, SLOT_BYTES, bytes_for, open};

fn refused(dir: &Path) -> CacheError {
    match ExtentCache::open_with_slots(dir, bytes_for(4), SLOT_BYTES) {
        Err(e) => e,
        Ok(_) => panic!("{} is opened", dir.display()),
    }
}

#[test]
fn other_folders_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b");
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("diary.txt"), "dear diary").unwrap();
    let e = refused(&path);
    assert!(matches!(&e, CacheError::HoldsOther { name, .. } if name == "diary.txt"), "{e}");
    assert!(e.to_string().contains("choose an empty or a new folder"), "{e}");
    assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
    let e = refused(&path.join("diary.txt"));
    assert!(matches!(&e, CacheError::Os { .. }) && e.to_string().contains("diary.txt"), "{e}");
    // Once it is a cache, a file beside it is left alone.
    fs::remove_file(path.join("diary.txt")).unwrap();
    fs::create_dir(path.join("lost+found")).unwrap();
    drop(open(&path, 4));
    fs::write(path.join("README"), "a cache").unwrap();
    drop(open(&path, 4));
    // Folders that are not there are made.
    drop(open(&dir.path().join("deep/er"), 1));
}

#[test]
fn files_of_two_caches_are_told() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = CountingStore::default();
    [&one, &other].iter().for_each(|dir| store.get(&open(dir.path(), 4), 1));
    fs::copy(other.path().join(INDEX), one.path().join(INDEX)).unwrap();
    let e = refused(one.path());
    assert!(matches!(e, CacheError::TwoCaches { .. }), "{e}");
    fs::copy(other.path().join(DATA), one.path().join(DATA)).unwrap();
    store.take_fetches();
    store.get(&open(one.path(), 4), 1);
    assert_eq!(store.take_fetches(), 0, "a copy of both files is a cache");
}

#[test]
fn other_formats_and_sizes_are_told() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path(), 4));
    let e = ExtentCache::open(dir.path(), 1 << 30).err().unwrap();
    assert!(matches!(e, CacheError::OtherSlots { found: SLOT_BYTES, wanted: 0x20_0000, .. }), "{e}");
    for slot_bytes in [0, 33, (1 << 30) + 32] {
        let e = ExtentCache::open_with_slots(dir.path(), 1 << 30, slot_bytes).err().unwrap();
        assert!(matches!(e, CacheError::SlotLength { .. }), "{e}");
    }
    let least = bytes_for(1);
    let e = ExtentCache::open_with_slots(dir.path(), least - 1, SLOT_BYTES).err().unwrap();
    assert!(matches!(e, CacheError::TooSmall { least: told, .. } if told == least), "{e}");
    // The first 64 bytes are the same in all formats: number at 8, checksum at 56.
    for name in [INDEX, DATA] {
        let path = dir.path().join(name);
        let good = fs::read(&path).unwrap();
        let mut later = good.clone();
        later[8] = 2;
        let sum = twox_hash::XxHash3_64::oneshot(&later[..56]);
        later[56..64].copy_from_slice(&sum.to_le_bytes());
        fs::write(&path, later).unwrap();
        let e = refused(dir.path());
        assert!(
            matches!(&e, CacheError::OtherFormat { found: 2, known: 1, path: told } if *told == path),
            "{e}"
        );
        fs::write(&path, good).unwrap();
    }
    drop(open(dir.path(), 4));
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    // As root everything can be written but this.
    let e = refused(Path::new("/proc/snowmelt"));
    assert!(matches!(&e, CacheError::Os { .. } | CacheError::NotAllowed { .. }), "{e}");
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path(), 4));
    let flags = rustix::mount::MountFlags::RDONLY;
    let empty = std::ffi::CString::new("").unwrap();
    let at = tempfile::tempdir().unwrap();
    if rustix::mount::mount("tmpfs", at.path(), "tmpfs", flags, empty.as_c_str()).is_err() {
        return println!("skipped in part: mounting needs root");
    }
    let e = refused(at.path());
    rustix::mount::unmount(at.path(), rustix::mount::UnmountFlags::DETACH).unwrap();
    assert!(matches!(&e, CacheError::NotAllowed { .. }), "{e}");
    assert!(e.to_string().contains("needs a folder that can be written"), "{e}");
}
