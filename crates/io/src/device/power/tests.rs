//! Cuts keep what was synced, and of the rest any part; the same seed keeps the same.

use std::io::{IoSlice, IoSliceMut};

use super::*;

#[test]
fn a_lost_write_is_acknowledged() {
    let disk = PowerDisk::new(1);
    let [f, other] = ["f", "g"].map(|n| disk.open(Path::new(n), Access::CreateNew).unwrap());
    put(&*f, 0, 1, 1024).unwrap();
    disk.lose_write_in(Path::new("f"), 1);
    put(&*f, 0, 2, 512).unwrap();
    put(&*other, 0, 2, 512).unwrap();
    assert!(disk.is_losing());
    put(&*f, 512, 3, 512).unwrap();
    assert!(!disk.is_losing());
    f.sync().unwrap();
    let bytes = disk.bytes(Path::new("f")).unwrap();
    assert_eq!((bytes[0], bytes[512], bytes.len()), (2, 1, 1024));
}

fn put(d: &dyn Device, offset: u64, byte: u8, n: usize) -> Result<(), IoError> {
    d.write_at(&[IoSlice::new(&vec![byte; n])], offset)
}

#[test]
fn what_was_synced_stays_and_the_rest_may_go() {
    let path = Path::new("f");
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let disk = PowerDisk::new(seed);
        let f = disk.open(path, Access::CreateNew).unwrap();
        put(&*f, 0, 1, 1024).unwrap();
        f.sync().unwrap();
        disk.cut_in(1);
        put(&*f, 512, 2, 1024).unwrap();
        assert!(put(&*f, 0, 3, 512).is_err());
        assert!(f.sync().is_err() && disk.is_off());
        disk.power_on();
        let bytes = disk.bytes(path).unwrap();
        assert!((1024..=1536).contains(&bytes.len()));
        assert!(bytes[0] == 1 || bytes[0] == 3);
        assert!(bytes[512] == 1 || bytes[512] == 2);
        seen.insert((bytes[0], bytes[512], bytes.len() > 1024));
    }
    assert!(seen.len() >= 6, "{seen:?}");
}

#[test]
fn what_was_opened_before_the_power_went_is_dead() {
    let (disk, path) = (PowerDisk::new(1), Path::new("f"));
    for back in [PowerDisk::power_on, PowerDisk::restore_power] {
        let f = disk.open(path, Access::CreateNew).unwrap();
        put(&*f, 0, 1, 512).unwrap();
        f.sync().unwrap();
        back(&disk);
        assert!(put(&*f, 0, 2, 512).is_err() && f.set_len(0).is_err() && f.sync().is_err());
        assert!(f.read_at(&mut [IoSliceMut::new(&mut [0; 512])], 0).is_err());
        assert_eq!(disk.bytes(path).unwrap(), [1; 512]);
        put(&*disk.open(path, Access::ReadWrite).unwrap(), 0, 2, 512).unwrap();
        disk.remove(path);
    }
}

#[test]
fn a_file_never_synced_may_be_gone() {
    let gone = (0..50).filter(|seed| {
        let disk = PowerDisk::new(*seed);
        disk.open(Path::new("f"), Access::CreateNew).unwrap();
        disk.power_on();
        disk.open(Path::new("f"), Access::ReadWrite).is_err()
    });
    assert!((5..45).contains(&gone.count()));
}
