//! The super-block: states alternate, copies heal, torn and rotten ones are told apart, older
//! formats are left behind.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::StoreError;
use crate::page::PageId;
use crate::superblock::file::{COPIES, COPY_DISTANCE, Opened, place};
use crate::superblock::{
    FILE_NAME, FORMAT, MetaForm, MetaRun, SLOT_BYTES, SuperBlock, SuperBlockFile, offset,
};

fn block(sequence: u64) -> SuperBlock {
    SuperBlock {
        extent_pages: 8,
        sequence,
        txn: sequence * 10,
        extents: 3,
        meta: Some(MetaRun { first: PageId(16), bytes: 100, checksum: 7 }),
        meta_form: MetaForm::Whole,
        identity: 99,
        journal: sequence + 1,
        slots: 2,
        before: (sequence, 5),
        synced: sequence + 3,
        tail_file: 2,
        tail_offset: 4096 * sequence,
        stripes: vec!["data-0".into(), "/other/disk/data-1".into()],
    }
}

fn create(dir: &Path, first: &SuperBlock) -> SuperBlockFile {
    let f = SuperBlockFile::create(dir, None).unwrap();
    f.write(first).unwrap();
    f
}

fn raw(dir: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(dir.join(FILE_NAME)).unwrap()
}

#[test]
fn states_alternate_and_the_newest_opens() {
    let dir = tempfile::tempdir().unwrap();
    let f = create(dir.path(), &block(0));
    for s in 1..5 {
        f.write(&block(s)).unwrap();
        let Opened { block: b, notice, doubt, .. } = SuperBlockFile::open(dir.path()).unwrap();
        assert_eq!((b, notice, doubt), (block(s), None, None));
    }
}

/// Both copies are written before one sync: whatever a cut leaves of each, the state before or
/// the new one opens.
#[test]
fn a_torn_write_at_any_sector_of_both_copies_leaves_a_whole_state() {
    let dir = tempfile::tempdir().unwrap();
    let long = |s: u64| {
        let name = char::from(b'a' + s as u8).to_string().repeat(SLOT_BYTES - 300);
        SuperBlock { stripes: vec![name.into()], ..block(s) }
    };
    let f = create(dir.path(), &long(0));
    f.write(&long(1)).unwrap();
    let new = long(2).encode().unwrap();
    let old = long(0).encode().unwrap();
    for cut in (0..=SLOT_BYTES).step_by(512) {
        for cut_copy in (0..=SLOT_BYTES).step_by(1024) {
            for (copy, cut) in [(0, cut), (1, cut_copy)] {
                let mut torn = old;
                torn[..cut].copy_from_slice(&new[..cut]);
                raw(dir.path()).write_all_at(&torn, place(0, copy)).unwrap();
            }
            let b = SuperBlockFile::open(dir.path()).unwrap().block;
            let whole = cut == SLOT_BYTES || cut_copy == SLOT_BYTES;
            assert_eq!(b, long(if whole { 2 } else { 1 }), "cut at {cut} and {cut_copy}");
        }
    }
}

/// Any single copy may rot in any way: the newest state opens, which copy it was is said, and
/// the next write makes it whole again.
#[test]
fn a_rotten_copy_is_said_and_healed() {
    type Spoil = fn(&mut [u8]);
    let spoil: [(&str, Spoil); 4] = [
        ("flipped", |b| b[300] ^= 1),
        ("zeroed", |b| b.fill(0)),
        ("format flipped", |b| b[offset::FORMAT] ^= 8),
        ("garbage", |b| b.iter_mut().enumerate().for_each(|(i, b)| *b = i as u8)),
    ];
    for (what, spoil) in spoil {
        for at in (0..2).flat_map(|slot| (0..COPIES).map(move |copy| place(slot, copy))) {
            let dir = tempfile::tempdir().unwrap();
            let f = create(dir.path(), &block(0));
            (1..4).for_each(|s| f.write(&block(s)).unwrap());
            drop(f);
            let mut bytes = [0; SLOT_BYTES];
            raw(dir.path()).read_exact_at(&mut bytes, at).unwrap();
            spoil(&mut bytes);
            raw(dir.path()).write_all_at(&bytes, at).unwrap();
            let Opened { file, block: b, notice, doubt } = SuperBlockFile::open(dir.path()).unwrap();
            assert_eq!((b, doubt), (block(3), None), "{what} at {at}");
            assert!(notice.unwrap().contains(&format!("byte {at}")), "{what} at {at}");
            file.write(&block(4)).unwrap();
            let Opened { block: b, notice, .. } = SuperBlockFile::open(dir.path()).unwrap();
            assert_eq!((b, notice), (block(4), None), "{what} at {at}");
            // The state before is whole in both copies too.
            for slot_copy in 0..COPIES {
                raw(dir.path()).read_exact_at(&mut bytes, place(1, slot_copy)).unwrap();
                assert_eq!(SuperBlock::decode(&bytes), Ok(block(3)), "{what} at {at}");
            }
        }
    }
}

#[test]
fn two_lost_copies_of_the_newest_state_raise_doubt() {
    let dir = tempfile::tempdir().unwrap();
    let f = create(dir.path(), &block(0));
    f.write(&block(1)).unwrap();
    for copy in 0..COPIES {
        raw(dir.path()).write_all_at(&block(2).encode().unwrap()[..20], place(1, copy)).unwrap();
    }
    let Opened { block: b, notice, doubt, .. } = SuperBlockFile::open(dir.path()).unwrap();
    assert_eq!(b, block(0));
    assert!(notice.unwrap().contains("superblock"));
    assert!(doubt.unwrap().contains("no copy"));
}

#[test]
fn unusable_files_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let open = || SuperBlockFile::open(dir.path()).map(|o| o.block).unwrap_err();
    assert!(matches!(open(), StoreError::NotADatabase { .. }));
    std::fs::write(dir.path().join(FILE_NAME), b"hello").unwrap();
    assert!(matches!(open(), StoreError::NotADatabase { .. }));
    std::fs::remove_file(dir.path().join(FILE_NAME)).unwrap();
    SuperBlockFile::create(dir.path(), None).unwrap();
    assert!(matches!(open(), StoreError::NotADatabase { .. }), "a copy that was not finished");
    std::fs::remove_file(dir.path().join(FILE_NAME)).unwrap();
    create(dir.path(), &block(0));
    for copy in 0..COPIES {
        raw(dir.path()).write_all_at(b"x", place(0, copy) + 40).unwrap();
    }
    let e = open();
    assert!(matches!(&e, StoreError::Corrupt { .. }) && e.to_string().contains("super-block"), "{e}");
    assert!(matches!(SuperBlockFile::create(dir.path(), None).unwrap_err(), StoreError::Exists { .. }));
}

/// A slot of a later format is never passed over for an older one beside it.
#[test]
fn a_later_format_is_refused_whatever_lies_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path(), &block(0));
    let mut later = block(1).encode().unwrap();
    later[offset::FORMAT] = 9;
    seal(&mut later);
    raw(dir.path()).write_all_at(&later, place(1, 0)).unwrap();
    let e = SuperBlockFile::open(dir.path()).map(|o| o.block).unwrap_err();
    assert!(matches!(e, StoreError::Format { found: 9, expected: FORMAT, .. }), "{e}");
}

/// The layout of format 3: one copy of each slot, paths at byte 128, no fields behind `synced`.
fn format_3(b: &SuperBlock) -> [u8; SLOT_BYTES] {
    let mut s = b.encode().unwrap();
    s.copy_within(offset::PATHS..SLOT_BYTES - 128, offset::PATHS_3);
    s[offset::FORMAT] = 3;
    seal(&mut s);
    s
}

fn seal(s: &mut [u8; SLOT_BYTES]) {
    let sum = twox_hash::XxHash3_64::oneshot(&s[offset::MAGIC..]);
    s[..8].copy_from_slice(&sum.to_le_bytes());
}

/// The layout of format 4 is the present one.
fn format_4(b: &SuperBlock) -> [u8; SLOT_BYTES] {
    let mut s = b.encode().unwrap();
    s[offset::FORMAT] = 4;
    seal(&mut s);
    s
}

/// A file of an older format, with the two newest states in so many copies.
fn write_old(dir: &Path, newest: u64, copies: u64, old: impl Fn(&SuperBlock) -> [u8; SLOT_BYTES]) {
    let mut bytes = vec![0; place(1, copies - 1) as usize + SLOT_BYTES];
    for (s, copy) in [newest - 1, newest].into_iter().flat_map(|s| (0..copies).map(move |c| (s, c))) {
        let at = place(s % 2, copy) as usize;
        bytes[at..at + SLOT_BYTES].copy_from_slice(&old(&block(s)));
    }
    std::fs::write(dir.join(FILE_NAME), &bytes).unwrap();
}

#[test]
fn older_formats_open_and_are_left_by_the_first_write() {
    for (newest, format) in [(4, 3), (5, 3), (4, 4), (5, 4)] {
        let dir = tempfile::tempdir().unwrap();
        match format {
            3 => write_old(dir.path(), newest, 1, format_3),
            _ => write_old(dir.path(), newest, COPIES, format_4),
        }
        let Opened { file, block: b, notice, doubt } = SuperBlockFile::open(dir.path()).unwrap();
        let tail = |b| if format == 3 { SuperBlock { tail_file: 0, tail_offset: 0, ..b } } else { b };
        assert_eq!(b, tail(block(newest)));
        assert_eq!((notice, doubt), (None, None));
        file.write(&block(newest + 1)).unwrap();
        let Opened { block: b, notice, doubt, .. } = SuperBlockFile::open(dir.path()).unwrap();
        assert_eq!((b, notice, doubt), (block(newest + 1), None, None));
        let now = std::fs::read(dir.path().join(FILE_NAME)).unwrap();
        assert_eq!(now.len() as u64, COPY_DISTANCE + 2 * SLOT_BYTES as u64);
        let places = (0..COPIES).flat_map(|copy| [place(0, copy), place(1, copy)]);
        let formats: Vec<u8> = places.map(|at| now[at as usize + offset::FORMAT]).collect();
        assert!(!formats.contains(&format), "an older program finds nothing it would open: {formats:?}");
    }
}

#[test]
fn paths_that_do_not_fit_are_refused() {
    let mut b = block(0);
    b.stripes = vec!["x".repeat(5000).into(), "y".repeat(4000).into()];
    assert!(matches!(b.encode(), Err(StoreError::Config(_))));
}
