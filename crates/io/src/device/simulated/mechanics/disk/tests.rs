//! Times of a disk's arm, buffer, queue and write cache.

use snowmelt_base::random::lcg;

use super::*;
use crate::device::simulated::model::DeviceModel;

const PAGE: u64 = 8192;

/// Keeps `depth` reads outstanding; nanoseconds until all are over.
fn run(model: &DeviceModel, depth: usize, offsets: &[u64], len: u64) -> f64 {
    let mut disk = model.build().expect("in bounds");
    let read = |i: usize| Transfer { offset: offsets[i], len, kind: TransferKind::Read };
    let mut sent = depth.min(offsets.len());
    (0..sent).for_each(|i| disk.arrive(i, read(i), 0));
    let mut seen = vec![false; offsets.len()];
    let mut last = 0;
    for _ in offsets {
        let due = disk.next_due().expect("requests are outstanding");
        let (id, over) = disk.pop_due(due).expect("it is due");
        assert!(over >= last && !std::mem::replace(&mut seen[id], true));
        last = over;
        if sent < offsets.len() {
            disk.arrive(sent, read(sent), over);
            sent += 1;
        }
    }
    last as f64
}

fn random_offsets(n: usize, capacity: u64) -> Vec<u64> {
    let mut x = 1u64;
    (0..n).map(|_| (lcg(&mut x) >> 20) % (capacity / PAGE) * PAGE).collect()
}

#[test]
fn random_reads_one_at_a_time_cost_seek_and_half_a_turn() {
    let offsets = random_offsets(5000, 1_000_000_000_000);
    let mean_ms = run(&DeviceModel::hdd(), 1, &offsets, PAGE) / 5000.0 / 1e6;
    let expected = 0.1 + 0.6 + 13.9 * 8.0 / 15.0 + 25.0 / 6.0 + 0.06;
    assert!((mean_ms / expected - 1.0).abs() < 0.02, "{mean_ms} ms, closed form {expected} ms");
}

#[test]
fn a_queue_of_32_gains_what_real_disks_gain() {
    let offsets = random_offsets(5000, 1_000_000_000_000);
    let one = run(&DeviceModel::hdd(), 1, &offsets, PAGE);
    let many = run(&DeviceModel::hdd(), 32, &offsets, PAGE);
    assert!((1.6..2.8).contains(&(one / many)), "gain {}", one / many);
}

#[test]
fn more_at_once_than_the_disk_takes_are_worth_no_less() {
    let offsets = random_offsets(5000, 1_000_000_000_000);
    let full = run(&DeviceModel::hdd(), 32, &offsets, PAGE);
    for depth in [64, 128, 1000] {
        let ratio = run(&DeviceModel::hdd(), depth, &offsets, PAGE) / full;
        assert!((0.97..1.03).contains(&ratio), "{depth} at once: {ratio} of the time of 32");
    }
}

#[test]
fn sequential_reads_run_at_the_media_rate_of_their_zone() {
    let len = 64 << 10;
    for (start, rate) in [(0, 180e6), (999_000_000_000 / len * len, 90e6)] {
        let offsets: Vec<u64> = (0..4000).map(|i| start + i * len).collect();
        let ns = run(&DeviceModel::hdd(), 1, &offsets, len);
        let measured = (4000 * len) as f64 / ns * 1e9;
        assert!((measured / rate - 1.0).abs() < 0.02, "{measured} B/s, media {rate} B/s");
    }
}

#[test]
fn the_buffer_answers_what_was_read_on_and_a_pause_lets_it_read_further() {
    let mut disk = DeviceModel::hdd().build().expect("in bounds");
    disk.arrive(0, Transfer { offset: 0, len: PAGE, kind: TransferKind::Read }, 0);
    let first = disk.next_due().unwrap();
    disk.pop_due(first);
    let later = first + 4_000_000; // 4 ms at 180 MB/s are 720 KB
    disk.arrive(1, Transfer { offset: 600_000 / PAGE * PAGE, len: PAGE, kind: TransferKind::Read }, later);
    let hit = disk.next_due().unwrap() - later;
    assert!(hit < 150_000, "{hit} ns from the buffer");
    disk.pop_due(u64::MAX);
    disk.arrive(2, Transfer { offset: 900_000_000, len: PAGE, kind: TransferKind::Read }, later + 1_000_000);
    disk.pop_due(u64::MAX);
    disk.arrive(3, Transfer { offset: PAGE, len: PAGE, kind: TransferKind::Read }, later + 40_000_000);
    let hit = disk.next_due().unwrap() - (later + 40_000_000);
    assert!(hit < 150_000, "{hit} ns from an older segment");
}

#[test]
fn nobody_waits_for_ever_when_others_are_nearer() {
    let mut disk = DeviceModel::hdd().build().expect("in bounds");
    let mut now = 0;
    let near = random_offsets(100_000, 1_000_000_000);
    disk.arrive(0, Transfer { offset: near[0], len: PAGE, kind: TransferKind::Read }, 0);
    disk.arrive(usize::MAX, Transfer { offset: 990_000_000_000, len: PAGE, kind: TransferKind::Read }, 0);
    for (i, &offset) in near.iter().enumerate().skip(1) {
        disk.arrive(i, Transfer { offset, len: PAGE, kind: TransferKind::Read }, now);
        let (id, over) = disk.pop_due(u64::MAX).expect("busy");
        now = over;
        if id == usize::MAX {
            assert!(now < 600_000_000, "the far one waited {now} ns");
            return;
        }
    }
    panic!("the far one was never served");
}

/// Lets time pass until the next completion.
fn finish(disk: &mut dyn Mechanics) -> (usize, u64) {
    loop {
        let due = disk.next_due().expect("something is going on");
        if let Some(over) = disk.pop_due(due) {
            return over;
        }
    }
}

fn cached(bytes: u64) -> Box<dyn Mechanics> {
    let disk = DiskModel { write_cache_bytes: bytes, ..DiskModel::default() };
    DeviceModel::Disk(disk).build().expect("in bounds")
}

#[test]
fn cached_writes_are_quick_until_the_cache_is_full_and_a_flush_waits_for_all_of_them() {
    let mut disk = cached(64 * PAGE);
    let offsets = random_offsets(200, 1_000_000_000_000);
    let write = |i: usize| Transfer { offset: offsets[i], len: PAGE, kind: TransferKind::Write };
    let mut now = 0;
    for i in 0..60 {
        disk.arrive(i, write(i), now);
        let (id, over) = finish(&mut *disk);
        assert!(id == i && over - now < 200_000, "write {i} took {} ns", over - now);
        now = over;
    }
    let began = now;
    for i in 60..160 {
        disk.arrive(i, write(i), now);
        now = finish(&mut *disk).1;
    }
    let each_ms = (now - began) as f64 / 100.0 / 1e6;
    assert!((3.0..12.0).contains(&each_ms), "a full cache writes at the speed of the arm: {each_ms} ms");
    disk.arrive(1000, Transfer { offset: 0, len: 0, kind: TransferKind::Flush }, now);
    disk.arrive(1001, write(180), now);
    let (first, flushed) = finish(&mut *disk);
    assert_eq!(first, 1000, "the write waits for the flush");
    let flush_ms = (flushed - now) as f64 / 1e6;
    assert!((60.0 * 3.0..64.0 * 16.0).contains(&flush_ms), "{flush_ms} ms");
    assert_eq!(finish(&mut *disk).0, 1001);
    disk.arrive(1002, Transfer { offset: 0, len: 0, kind: TransferKind::Flush }, flushed + 1_000_000_000);
    let (_, over) = finish(&mut *disk);
    assert!(over - flushed - 1_000_000_000 < 200_000, "nothing was left to write out");
}

#[test]
fn reads_find_what_the_cache_holds_and_go_before_writing_out() {
    let mut disk = cached(1000 * PAGE);
    for (i, offset) in random_offsets(50, 1_000_000_000_000).into_iter().enumerate() {
        disk.arrive(i, Transfer { offset, len: PAGE, kind: TransferKind::Write }, 0);
    }
    let mut now = 0;
    (0..50).for_each(|_| now = finish(&mut *disk).1);
    let held = random_offsets(50, 1_000_000_000_000)[49];
    for (i, offset) in [held, 500_000_000_000 / PAGE * PAGE].into_iter().enumerate() {
        disk.arrive(100 + i, Transfer { offset, len: PAGE, kind: TransferKind::Read }, now);
        let (_, over) = finish(&mut *disk);
        // At most one write-out was under way.
        let ms = (over - now) as f64 / 1e6;
        assert!(ms < if i == 0 { 24.0 } else { 48.0 }, "read {i} took {ms} ms");
        now = over;
    }
}

#[test]
fn a_seek_curve_goes_through_its_points() {
    let DeviceModel::Disk(parameters) = DeviceModel::hdd_10k() else { unreachable!() };
    let disk = Disk::new(&parameters).expect("in bounds");
    for &(way, ms) in &parameters.seek_points {
        let from = 512 * 40_000;
        let to = from + (way * parameters.capacity_bytes as f64) as u64;
        if disk.seek_ns(from, to) > 0.0 {
            let is = disk.seek_ns(from, to) / 1e6;
            assert!((is - ms).abs() < 0.01, "{way} of the way: {is} ms, should be {ms} ms");
        }
    }
    assert!((disk.seek_ns(0, parameters.capacity_bytes) / 1e6 - 10.0).abs() < 0.01);
}
