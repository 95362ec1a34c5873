//! Scans in pieces: threads that share a scan, and scans that join each other, on a simulated
//! disk in virtual time.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use snowmelt_io::{Clock, DeviceModel, QueueConfig, SimulatedDevice};
use snowmelt_io_experiments::PolicyName;
use snowmelt_store::{
    Background, Columns, DeviceWrap, ReadAhead, Reader, ScanBounds, ScanPieces, Seams, Store, StoreConfig,
    TupleTree, TupleTreeBuilder,
};

/// Rows of two columns, one of them random: about 500 leaves.
const ROWS: u64 = 500_000;

fn row(n: u64) -> [u64; 2] {
    [n / 3, (n % 3) << 60 | n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 4]
}

fn database(dir: &Path) -> TupleTree {
    let config = StoreConfig { memory_bytes: 64 << 20, ..StoreConfig::default() };
    let store = Store::create(dir, &[], config).unwrap();
    let build = store.begin_build().unwrap();
    let mut builder = TupleTreeBuilder::new(build.new_tree("t"), 2);
    (0..ROWS).for_each(|n| builder.push(&row(n)).unwrap());
    let tree = builder.finish().unwrap();
    build.put_record("t", 1, &tree.to_bytes());
    build.commit().unwrap();
    tree
}

fn open(dir: &Path, clock: &Clock, frames: u64, policy: PolicyName) -> Arc<Store> {
    let in_time_of = clock.clone();
    let model = DeviceModel::named("hdd-10k").unwrap();
    let config = StoreConfig {
        memory_bytes: 256 << 20,
        pool_bytes: Some(frames * 8192),
        queue: QueueConfig { policy: policy.policy(), ..QueueConfig::default() },
        read_ahead: ReadAhead { scan: true, planned: true, ..ReadAhead::none() },
        seams: Seams {
            devices: Some(DeviceWrap::new(move |_, file| {
                Ok(Arc::new(SimulatedDevice::new(model.clone(), file, &in_time_of)))
            })),
            background: Background::Caller,
            clock: clock.clone(),
            ..Seams::default()
        },
        ..StoreConfig::default()
    };
    Store::open(dir, config).unwrap()
}

fn reader(store: &Arc<Store>) -> Reader {
    Reader::new(store, store.snapshot())
}

/// Reads piece after piece; the rows of the first column, and how many there were.
fn drain(pieces: &ScanPieces, reader: &mut Reader, seen: &mut Vec<[u64; 2]>) {
    while let Some(mut piece) = pieces.next(reader).unwrap() {
        let mut columns = Columns::new(2);
        while piece.next(reader, &mut columns, 1 << 14).unwrap() {}
        seen.extend((0..columns.rows).map(|r| [columns.cols[0][r], columns.cols[1][r]]));
    }
}

/// Milliseconds and reads of a whole scan by so many threads.
fn scan_by(threads: usize, dir: &Path, tree: &TupleTree, policy: PolicyName) -> (u64, u64) {
    let clock = Clock::virtual_time(2);
    let store = open(dir, &clock, 4000, policy);
    let pieces = tree.pieces(ScanBounds::default(), 16, None, &reader(&store));
    let rows = AtomicU64::new(0);
    let tickets = clock.reserve(threads);
    std::thread::scope(|scope| {
        for ticket in tickets {
            let (store, pieces, rows) = (&store, &pieces, &rows);
            scope.spawn(move || {
                let _in_time = ticket.enter();
                let mut seen = Vec::new();
                drain(pieces, &mut reader(store), &mut seen);
                rows.fetch_add(seen.len() as u64, Relaxed);
            });
        }
    });
    assert_eq!(rows.into_inner(), ROWS, "{threads} threads");
    assert_eq!(pieces.handed(), tree.leaves());
    (clock.now_ns() / 1_000_000, store.activity().disk)
}

#[test]
fn a_scan_takes_as_long_however_many_threads_share_it() {
    let dir = tempfile::tempdir().unwrap();
    let tree = database(dir.path());
    for policy in PolicyName::ALL {
        let one = scan_by(1, dir.path(), &tree, policy);
        for threads in [2, 8, 80] {
            let many = scan_by(threads, dir.path(), &tree, policy);
            eprintln!("{}: 1 thread {one:?}, {threads} threads {many:?}", policy.as_str());
            assert!(
                many.1 <= one.1 + 4,
                "{}: {threads} threads read {} pages, one {}",
                policy.as_str(),
                many.1,
                one.1
            );
            let ratio = many.0 as f64 / one.0 as f64;
            assert!(
                (0.9..1.1).contains(&ratio),
                "{}: {threads} threads {} ms, one {} ms",
                policy.as_str(),
                many.0,
                one.0
            );
        }
    }
}

/// A second scan begins when the first has had `after` leaves: in a pool that holds a quarter
/// of the tree.
fn two_scans(dir: &Path, tree: &TupleTree, after: u64, joins: bool) -> (u64, [Vec<[u64; 2]>; 2]) {
    let clock = Clock::virtual_time(2);
    let store = open(dir, &clock, tree.leaves() / 4, PolicyName::Elevator);
    let first = tree.pieces(ScanBounds::default(), 16, None, &reader(&store));
    let rows = [Mutex::new(Vec::new()), Mutex::new(Vec::new())];
    let tickets = clock.reserve(2);
    std::thread::scope(|scope| {
        for (i, ticket) in tickets.into_iter().enumerate() {
            let (store, clock, first, rows) = (&store, &clock, &first, &rows);
            scope.spawn(move || {
                let _in_time = ticket.enter();
                let (mut reader, mut seen) = (reader(store), Vec::new());
                if i == 0 {
                    drain(first, &mut reader, &mut seen);
                } else {
                    while first.handed() < after {
                        clock.sleep_ns(1_000_000);
                    }
                    let place = first.place().filter(|_| joins);
                    assert_eq!(place.is_some(), joins);
                    let second = tree.pieces(ScanBounds::default(), 16, place, &reader);
                    drain(&second, &mut reader, &mut seen);
                }
                *rows[i].lock() = seen;
            });
        }
    });
    (store.activity().disk, rows.map(Mutex::into_inner))
}

#[test]
fn a_scan_that_joins_another_reads_only_what_it_missed() {
    let dir = tempfile::tempdir().unwrap();
    let tree = database(dir.path());
    let all: BTreeSet<[u64; 2]> = (0..ROWS).map(row).collect();
    let leaves = tree.leaves();
    for after in [leaves * 2 / 5, leaves * 3 / 5] {
        let (read, rows) = two_scans(dir.path(), &tree, after, true);
        let (apart, _) = two_scans(dir.path(), &tree, after, false);
        eprintln!("{leaves} leaves, joined after {after}: {read} pages read, {apart} by scans apart");
        for rows in rows {
            assert_eq!(rows.len() as u64, ROWS, "each row once");
            assert!(rows.into_iter().collect::<BTreeSet<_>>() == all);
        }
        // The leaves that it missed, and a fourth that a pool so small reads twice.
        assert!(read <= (leaves + after) * 5 / 4, "{read} pages");
        assert!(apart >= 2 * leaves && apart > read + leaves / 4, "{apart} pages apart, {read} joined");
    }
}

/// Pieces of ranges, joined at any place of the tree.
#[test]
fn pieces_are_the_leaves_of_a_range_wherever_it_begins() {
    let dir = tempfile::tempdir().unwrap();
    let tree = database(dir.path());
    let clock = Clock::virtual_time(1);
    let store = open(dir.path(), &clock, 4000, PolicyName::Elevator);
    let _in_time = clock.enter();
    let mut reader = reader(&store);
    let mut rows = Vec::new();
    drain(&tree.pieces(ScanBounds::default(), 7, None, &reader), &mut reader, &mut rows);
    assert!(rows.iter().copied().eq((0..ROWS).map(row)), "in order where it joins nothing");
    for (low, high) in [(0, u64::MAX), (1_000, 120_000), (77, 77), (9, 3), (u64::MAX, u64::MAX)] {
        let bounds = ScanBounds { prefix: &[], range: Some((low, high)) };
        let expected: Vec<[u64; 2]> =
            (0..ROWS).map(row).filter(|row| low <= row[0] && row[0] <= high).collect();
        for pieces_before in [0, 1, 40, 60] {
            let other = tree.pieces(ScanBounds::default(), 7, None, &reader);
            (0..pieces_before).for_each(|_| drop(other.next(&mut reader).unwrap()));
            let joined = tree.pieces(bounds, 5, other.place(), &reader);
            let before = joined.place().map(|place| tree.share_before(&mut reader, bounds, place).unwrap());
            let mut rows = Vec::new();
            drain(&joined, &mut reader, &mut rows);
            if let (Some(share), Some(first)) = (before, rows.first()) {
                let at = expected.partition_point(|row| row < first) as f64;
                let two_leaves = (2 * ROWS).div_ceil(tree.leaves()) as f64;
                let off = (share * expected.len() as f64 - at).abs();
                assert!(off <= two_leaves, "{share} of {} rows, it begins at {at}", expected.len());
            }
            rows.sort_unstable();
            assert!(rows == expected, "{low}..={high} after {pieces_before}: {} rows", rows.len());
        }
    }
}
