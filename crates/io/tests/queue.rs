//! The queue with every engine and policy: bytes read are the bytes there, each request is
//! completed once.
#![allow(unsafe_code)]

mod support;

use std::io::IoSlice;
use std::sync::Arc;

use snowmelt_base::random::Random;
use snowmelt_io::*;
use snowmelt_io_experiments::{ENGINES, PolicyName, TunedPolicy, Tuning};
use support::*;

const KIB: u64 = 1 << 10;

fn engines() -> [IoEngine; 4] {
    ENGINES
}

fn file_of(bytes: &[u8], direct: bool) -> (tempfile::TempDir, Arc<dyn Device>) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("data");
    std::fs::write(&path, bytes).unwrap();
    let device = FileDevice::open(&path, Access::ReadWrite, direct).unwrap();
    (dir, Arc::new(device))
}

fn devices(bytes: &[u8]) -> Vec<(Option<tempfile::TempDir>, Arc<dyn Device>)> {
    let memory: Arc<dyn Device> = Arc::new(MemoryDevice::from_bytes("memory", bytes.to_vec()));
    let (d1, direct) = file_of(bytes, true);
    let (d2, buffered) = file_of(bytes, false);
    vec![(None, memory), (Some(d1), direct), (Some(d2), buffered)]
}

/// Random batches of page reads, some adjacent, some with gaps, some twice, in random order and
/// class.
fn read_and_compare(
    device: &Arc<dyn Device>,
    bytes: &[u8],
    config: &QueueConfig,
    seed: u64,
) -> DeviceCounters {
    let clock = Clock::real();
    let sink = Remember::new(&clock);
    let queue = DeviceQueue::open(device.clone(), config.clone(), clock, sink.clone()).unwrap();
    let mut random = Random(seed);
    let pages = bytes.len() as u64 / (8 * KIB);
    let mut batches = Vec::new();
    let mut submitted = 0;
    for _ in 0..20 {
        let n = 1 + random.below(60);
        let start = random.below(pages);
        let places: Vec<(u64, usize)> = (0..n)
            .map(|_| {
                let page = if random.below(3) == 0 {
                    random.below(pages)
                } else {
                    (start + random.below(40)) % pages
                };
                (page * 8 * KIB, 8 << 10)
            })
            .collect();
        let class = Class::ALL[random.below(5) as usize];
        let mut batch = Batch::reads(&places, class, submitted as u64);
        submitted += places.len();
        queue.submit(&mut batch.requests);
        assert!(batch.requests.is_empty());
        batches.push((places, batch));
    }
    sink.wait_for(submitted);
    let mut tag = 0;
    for (places, batch) in &batches {
        for ((offset, len), buf) in places.iter().zip(&batch.bufs) {
            assert_eq!(sink.result(tag), Some(Ok(())));
            assert!(
                buf[..] == bytes[*offset as usize..*offset as usize + len],
                "bytes at {offset}, {config:?}"
            );
            tag += 1;
        }
    }
    let counters = queue.counters();
    assert_eq!(counters.requests(), submitted as u64);
    assert_eq!(counters.bytes(), submitted as u64 * 8 * KIB);
    let merged: u64 = counters.classes.iter().map(|c| c.merged).sum();
    assert_eq!(counters.device_requests() + merged, submitted as u64);
    counters
}

#[test]
fn every_engine_and_policy_reads_the_bytes_that_are_there() {
    let seed = snowmelt_io::test_seed(7);
    let bytes = pattern(4 << 20);
    for (_dir, device) in devices(&bytes) {
        for engine in engines() {
            for policy in PolicyName::ALL {
                let policy = policy.policy();
                for gap_bytes in [Some(0), Some(200 * KIB), None] {
                    let config = QueueConfig {
                        engine,
                        policy: policy.clone(),
                        gap_bytes,
                        depth: Some(8),
                        ..Default::default()
                    };
                    read_and_compare(&device, &bytes, &config, seed);
                }
            }
        }
    }
}

#[test]
fn adjacent_requests_and_small_gaps_travel_together() {
    let bytes = pattern(4 << 20);
    for (_dir, device) in devices(&bytes) {
        for engine in engines() {
            let clock = Clock::real();
            let sink = Remember::new(&clock);
            let config = QueueConfig { engine, gap_bytes: Some(16 * KIB), ..Default::default() };
            let queue = DeviceQueue::open(device.clone(), config, clock, sink.clone()).unwrap();
            // Pages 9 8 | 5 4 (gap of 2: bridged) | 20 (gap of 10: not), in reverse order.
            let places: Vec<_> = [20, 9, 8, 5, 4].iter().map(|p| (p * 8 * KIB, 8 << 10)).collect();
            let mut batch = Batch::reads(&places, Class::Planned, 0);
            queue.submit(&mut batch.requests);
            sink.wait_for(5);
            let planned = queue.counters().class(Class::Planned).clone();
            assert_eq!((planned.device_requests, planned.merged, planned.gap_bytes), (2, 3, 16 * KIB));
            for (place, buf) in places.iter().zip(&batch.bufs) {
                assert!(buf[..] == bytes[place.0 as usize..place.0 as usize + place.1]);
            }
        }
    }
}

#[test]
fn a_merge_over_the_end_of_the_file_fails_only_what_lies_beyond() {
    let bytes = pattern(64 << 10);
    for (_dir, device) in devices(&bytes) {
        for engine in engines() {
            let clock = Clock::real();
            let sink = Remember::new(&clock);
            let config = QueueConfig { engine, ..Default::default() };
            let queue = DeviceQueue::open(device.clone(), config, clock, sink.clone()).unwrap();
            let places: Vec<_> = (5..10).map(|p| (p * 8 * KIB, 8 << 10)).collect();
            let mut batch = Batch::reads(&places, Class::Demand, 0);
            queue.submit(&mut batch.requests);
            sink.wait_for(5);
            for tag in 0..3 {
                assert_eq!(sink.result(tag), Some(Ok(())));
            }
            for tag in 3..5 {
                let error = sink.result(tag).unwrap().unwrap_err();
                assert_eq!(error.kind, IoErrorKind::Short { got: 0 });
                assert_eq!((error.offset, error.len), (places[tag as usize].0, 8 * KIB));
            }
        }
    }
}

#[test]
fn writes_arrive_and_in_place_transfers_too() {
    for (_dir, device) in devices(&[0; 1 << 20]) {
        for engine in engines() {
            let clock = Clock::real();
            let sink = Remember::new(&clock);
            let config = QueueConfig { engine, ..Default::default() };
            let queue = DeviceQueue::open(device.clone(), config, clock, sink.clone()).unwrap();
            let want = pattern(1 << 20);
            let mut bufs: Vec<AlignedBuf> = want.chunks(8 << 10).map(AlignedBuf::from_slice).collect();
            let mut requests = Vec::new();
            for (i, buf) in bufs.iter_mut().enumerate().rev() {
                // SAFETY: the buffer lives until the completions are in.
                let buf = unsafe { RawBuf::write_from(buf.as_ptr(), buf.len()) };
                requests.push(Request {
                    offset: i as u64 * 8 * KIB,
                    buf,
                    class: Class::WriteBack,
                    tag: i as u64,
                });
            }
            queue.submit(&mut requests);
            sink.wait_for(128);
            queue.sync().unwrap();
            assert_eq!(queue.counters().class(Class::WriteBack).device_requests, 1, "{engine:?}");
            let mut all = AlignedBuf::new(1 << 20);
            queue.read_now(0, &mut all, Class::Demand).unwrap();
            assert!(all[..] == want[..]);
            let zeros = AlignedBuf::new(4096);
            queue.write_now(8192, &[IoSlice::new(&zeros), IoSlice::new(&zeros)], Class::Journal).unwrap();
            let mut odd = [1; 5000];
            queue.read_now(8190, &mut odd, Class::Demand).unwrap();
            assert_eq!((&odd[..2], &odd[2..]), (&want[8190..8192], &[0u8; 4998][..]));
        }
    }
}

#[test]
fn closing_completes_everything() {
    let bytes = pattern(8 << 20);
    for (_dir, device) in devices(&bytes) {
        for engine in engines() {
            let clock = Clock::real();
            let sink = Remember::new(&clock);
            let config = QueueConfig { engine, depth: Some(2), gap_bytes: Some(0), ..Default::default() };
            let queue = DeviceQueue::open(device.clone(), config, clock, sink.clone()).unwrap();
            let places: Vec<_> = (0..500).map(|p| (p * 16 * KIB, 8 << 10)).collect();
            let mut batch = Batch::reads(&places, Class::Speculative, 0);
            queue.submit(&mut batch.requests);
            queue.close();
            assert_eq!(sink.count(), 500);
            let mut late = Batch::reads(&places[..1], Class::Demand, 1000);
            queue.submit(&mut late.requests);
            assert_eq!(sink.result(1000).unwrap().unwrap_err().kind, IoErrorKind::Closed);
            for tag in 0..500 {
                match sink.result(tag).unwrap() {
                    Ok(()) => assert!(
                        batch.bufs[tag as usize][..] == bytes[places[tag as usize].0 as usize..][..8192]
                    ),
                    Err(e) => assert_eq!(e.kind, IoErrorKind::Closed),
                }
            }
        }
    }
}

/// A client that reads a run of pages one after the other, each when the last has come.
fn read_on(queue: &DeviceQueue, sink: &Remember, bytes: &[u8], client: u64, pages: std::ops::Range<u64>) {
    for page in pages {
        let mut batch = Batch::reads(&[(page * 8 * KIB, 8 << 10)], Class::Demand, page);
        queue.submit_for(client, &mut batch.requests);
        sink.wait_for_all(page..page + 1);
        assert_eq!(sink.result(page), Some(Ok(())));
        assert!(batch.bufs[0][..] == bytes[(page * 8 * KIB) as usize..][..8192]);
    }
}

#[test]
fn a_policy_that_holds_the_device_lets_go_in_real_time() {
    let bytes = pattern(8 << 20);
    for (_dir, device) in devices(&bytes) {
        for engine in engines() {
            for depth in [1, 4] {
                let clock = Clock::real();
                let sink = Remember::new(&clock);
                // Everything that is not adjacent is far, and the wait is short enough for a
                // test.
                let cost = CostModel { ns_per_request: 0, ..CostModel::ssd() };
                let tuning = Tuning { anticipate_ns: 1_000_000, ..Tuning::default() };
                let config = QueueConfig {
                    engine,
                    policy: TunedPolicy { policy: PolicyName::Anticipatory, tuning }.policy(),
                    depth: Some(depth),
                    cost: Some(cost),
                    ..Default::default()
                };
                let queue = DeviceQueue::open(device.clone(), config, clock, sink.clone()).unwrap();
                std::thread::scope(|scope| {
                    for client in 0..3 {
                        let (queue, sink, bytes) = (&queue, &sink, &bytes);
                        scope.spawn(move || {
                            read_on(queue, sink, bytes, client, client * 300..client * 300 + 40);
                        });
                    }
                });
                assert_eq!(sink.count(), 120);
            }
        }
    }
}

/// The file below can be written: nothing but the adapter keeps a queue from it.
#[test]
fn no_queue_writes_past_a_device_that_is_only_read() {
    let bytes = vec![7; 64 << 10];
    for direct in [true, false] {
        for engine in engines() {
            let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            let path = dir.path().join("data");
            std::fs::write(&path, &bytes).unwrap();
            let file = FileDevice::open(&path, Access::ReadWrite, direct).unwrap();
            let clock = Clock::real();
            let sink = Remember::new(&clock);
            let config = QueueConfig { engine, ..QueueConfig::default() };
            let device: Arc<dyn Device> = Arc::new(ReadOnly(file));
            let queue = DeviceQueue::open(device, config, clock, sink.clone()).unwrap();
            let mut buf = AlignedBuf::new(8 << 10);
            // SAFETY: the buffer lives until the request is answered.
            let raw = unsafe { RawBuf::write_from(buf.as_ptr(), buf.len()) };
            let mut write = vec![Request { offset: 8192, buf: raw, class: Class::Journal, tag: 0 }];
            queue.submit(&mut write);
            sink.wait_for(1);
            let refused = sink.result(0).unwrap().unwrap_err();
            assert_eq!(refused.kind, IoErrorKind::Os { errno: libc::EROFS }, "{engine:?}");
            queue.write_now(0, &[IoSlice::new(&buf[..])], Class::Journal).unwrap_err();
            queue.read_now(0, &mut buf, Class::Demand).unwrap();
            assert!(buf.iter().all(|byte| *byte == 7));
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
    }
}
