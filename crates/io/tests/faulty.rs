//! Faults: those that a device can notice arrive as typed errors, the others are in the list of
//! faults; nothing else differs.
#![allow(unsafe_code)]

mod support;

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;

use snowmelt_base::random::Random;
use snowmelt_io::*;
use support::*;

const PAGE: usize = 8192;
const PAGES: usize = 256;

fn faulty(rates: FaultRates, seed: u64) -> (Arc<MemoryDevice>, Arc<FaultyDevice>) {
    let memory = Arc::new(MemoryDevice::from_bytes("memory", pattern(PAGES * PAGE)));
    (memory.clone(), Arc::new(FaultyDevice::new(memory, rates, seed)))
}

fn covers(fault: &Fault, page: usize) -> bool {
    let (start, end) = ((page * PAGE) as u64, ((page + 1) * PAGE) as u64);
    fault.offset < end && start < fault.offset + fault.len.max(1)
}

/// Reads all pages, merged as far as may be, over a queue on `device`.
fn read_all(
    device: Arc<dyn Device>,
    engine: IoEngine,
    clock: &Clock,
    pages: &[usize],
) -> (Arc<Remember>, Batch) {
    let sink = Remember::new(clock);
    let config = QueueConfig { engine, depth: Some(4), ..Default::default() };
    let queue = DeviceQueue::open(device, config, clock.clone(), sink.clone()).unwrap();
    let places: Vec<_> = pages.iter().map(|p| ((p * PAGE) as u64, PAGE)).collect();
    let mut batch = Batch::reads(&places, Class::Planned, 0);
    queue.submit(&mut batch.requests);
    sink.wait_for(pages.len());
    (sink, batch)
}

#[test]
fn every_fault_on_reading_is_a_typed_error_or_a_right_answer_or_in_the_list() {
    let seed = snowmelt_io::test_seed(5);
    let rates = FaultRates {
        read_eio: 40_000,
        short: 40_000,
        bit_rot: 20_000,
        misdirected: 20_000,
        ..Default::default()
    };
    let want = pattern(PAGES * PAGE);
    let mut errors = 0;
    let mut wrong = 0;
    for round in 0..20 {
        for engine in [IoEngine::Inline, IoEngine::Threads, IoEngine::Uring] {
            let (_, device) = faulty(rates, seed + round);
            let pages: Vec<usize> = (0..PAGES).filter(|p| p % 7 != 3).collect();
            let (sink, batch) = read_all(device.clone(), engine, &Clock::real(), &pages);
            let faults = device.faults();
            for (tag, (&page, buf)) in pages.iter().zip(&batch.bufs).enumerate() {
                match sink.result(tag as u64).expect("each request is completed") {
                    Ok(()) if buf[..] == want[page * PAGE..][..PAGE] => {}
                    Ok(()) => {
                        let silent =
                            |f: &&Fault| matches!(f.kind, FaultKind::BitRot | FaultKind::Misdirected { .. });
                        assert!(
                            faults.iter().filter(silent).any(|f| covers(f, page)),
                            "page {page} is wrong for no reason"
                        );
                        wrong += 1;
                    }
                    Err(e) => {
                        assert!(matches!(
                            e.kind,
                            IoErrorKind::Os { errno: libc::EIO } | IoErrorKind::Short { .. }
                        ));
                        assert_eq!((e.offset, e.len), ((page * PAGE) as u64, PAGE as u64));
                        assert!(faults.iter().any(|f| covers(f, page)), "page {page} failed for no reason");
                        errors += 1;
                    }
                }
            }
        }
    }
    assert!(errors > 0 && wrong > 0, "the rates are high enough to see both: {errors} errors, {wrong} wrong");
}

#[test]
fn one_bad_page_does_not_take_its_neighbours_along() {
    // A read error once: the merged request fails, its pages are read again alone.
    for engine in [IoEngine::Inline, IoEngine::Threads, IoEngine::Uring] {
        let seed = (0..).find(|&s| {
            let (_, device) = faulty(FaultRates { read_eio: 10_000, ..Default::default() }, s);
            (0..100).any(|p| device.read_at(&mut [IoSliceMut::new(&mut [0; 8])], p * 8).is_err())
        });
        let (_, device) = faulty(FaultRates { read_eio: 10_000, ..Default::default() }, seed.unwrap());
        let pages: Vec<usize> = (0..PAGES).collect();
        let (sink, batch) = read_all(device.clone(), engine, &Clock::real(), &pages);
        let failed = pages.iter().filter(|&&p| sink.result(p as u64).unwrap().is_err()).count();
        assert!(!device.faults().is_empty());
        assert!(
            failed <= device.faults().len() / 2 + 1,
            "{failed} of {PAGES} failed, {} faults",
            device.faults().len()
        );
        let want = pattern(PAGES * PAGE);
        for page in pages {
            if sink.result(page as u64).unwrap().is_ok() {
                assert!(batch.bufs[page][..] == want[page * PAGE..][..PAGE]);
            }
        }
    }
}

#[test]
fn faults_under_a_simulated_device_arrive_in_virtual_time_and_repeat() {
    let run = |seed| {
        let clock = Clock::virtual_time(1);
        let (_, device) = faulty(FaultRates { read_eio: 20_000, ..Default::default() }, seed);
        let simulated = Arc::new(SimulatedDevice::new(DeviceModel::hdd(), device, &clock));
        let pages: Vec<usize> = (0..PAGES).rev().collect();
        let (sink, _batch) = read_all(simulated, IoEngine::Uring, &clock, &pages);
        let errors: Vec<bool> = (0..PAGES as u64).map(|tag| sink.result(tag).unwrap().is_err()).collect();
        (clock.now_ns(), errors, sink.order())
    };
    let seed = snowmelt_io::test_seed(9);
    assert_eq!(run(seed), run(seed));
    assert_ne!(run(seed), run(seed + 1));
}

/// Writes pages with a version number each, some fail; afterwards every page is the last
/// acknowledged version, or a fault says why not.
#[test]
fn every_fault_on_writing_is_known() {
    let seed = snowmelt_io::test_seed(21);
    let rates = FaultRates {
        write_eio: 20_000,
        short: 20_000,
        torn: 20_000,
        lost: 20_000,
        misdirected: 20_000,
        reordered: 300_000,
        ..Default::default()
    };
    let (memory, device) = faulty(rates, seed);
    let mut random = Random(seed);
    let mut want = pattern(PAGES * PAGE);
    for version in 0..2000u64 {
        let page = random.below(PAGES as u64) as usize;
        let bytes = [version as u8 ^ 0x5a; PAGE];
        if device
            .write_at(&[IoSlice::new(&bytes[..100]), IoSlice::new(&bytes[100..])], (page * PAGE) as u64)
            .is_ok()
        {
            want[page * PAGE..][..PAGE].copy_from_slice(&bytes);
        }
    }
    // A write that is held back is read as if it were there.
    let mut before = vec![0; PAGES * PAGE];
    device.set_rates(FaultRates::default());
    device.read_at(&mut [IoSliceMut::new(&mut before)], 0).unwrap();
    device.sync().unwrap();
    assert!(before == memory.to_vec(), "a sync changes nothing that a reader sees");
    let faults = device.faults();
    let mut wrong = 0;
    for page in 0..PAGES {
        if before[page * PAGE..][..PAGE] != want[page * PAGE..][..PAGE] {
            let to_here = |f: &Fault| match f.kind {
                FaultKind::Misdirected { to } => covers(f, page) || covers(&Fault { offset: to, ..*f }, page),
                FaultKind::Reordered => false,
                _ => covers(f, page),
            };
            assert!(faults.iter().any(to_here), "page {page} is wrong for no reason");
            wrong += 1;
        }
    }
    assert!(wrong > 0, "the rates are high enough to see some");
}

#[test]
fn a_power_cut_keeps_what_was_synced_and_any_sectors_of_the_rest() {
    let (memory, device) =
        faulty(FaultRates { reordered: 1_000_000, ..Default::default() }, snowmelt_io::test_seed(3));
    device.write_at(&[IoSlice::new(&[1; PAGE])], 0).unwrap();
    device.sync().unwrap();
    device.write_at(&[IoSlice::new(&[2; PAGE])], 0).unwrap();
    device.write_at(&[IoSlice::new(&[3; PAGE])], PAGE as u64).unwrap();
    device.power_cut().unwrap();
    let bytes = memory.to_vec();
    let old = pattern(PAGES * PAGE);
    let mut kept = [0; 2];
    for (i, sector) in bytes[..2 * PAGE].chunks(512).enumerate() {
        let (before, after) = if i < 16 { (&[1; 512][..], 2) } else { (&old[i * 512..][..512], 3) };
        let is_new = sector.iter().all(|&b| b == after);
        assert!(is_new || sector == before);
        kept[usize::from(is_new)] += 1;
    }
    assert!(kept[0] > 0 && kept[1] > 0, "some sectors old, some new: {kept:?}");
    let mut read = [0; PAGE];
    device.read_at(&mut [IoSliceMut::new(&mut read)], 0).unwrap();
    assert!(read[..] == bytes[..PAGE], "what was held is gone");
}
