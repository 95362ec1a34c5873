//! The schedule in the elevator's order. Under every policy it is tested in `tests/schedule.rs`.

use super::bench::{ScheduleBench, pending, read};
use super::*;
use crate::cost::CostModel;

const PAGE: u64 = 8192;
const MS: u64 = 1_000_000;

fn bench(limits: ScheduleLimits) -> ScheduleBench {
    ScheduleBench::new(&Policy::Elevator, limits)
}

#[test]
fn what_goes_along_is_hurried_along() {
    let mut bench = bench(ScheduleBench::limits());
    bench.set_background(CostModel::network(), 1 << 20);
    let block = bench.schedule.limits.background.hurried_bytes();
    assert!(block > 10 * PAGE, "a request costs the network as much as {block} bytes");
    // The first and the last of the second block, and those beside it.
    let (first, last) = (block.div_ceil(PAGE), (2 * block - 1) / PAGE);
    for page in [first - 1, first, last, last + 1] {
        bench.push(0, pending(page, 1, Class::Speculative, false, page));
        bench.push(0, pending(page, 1, Class::Planned, false, page));
    }
    let two = [(first + 1) * PAGE, (first + 2) * PAGE];
    assert_eq!(bench.hurry(&two, Class::Speculative), 0, "they are that already");
    assert_eq!(bench.hurry(&two, Class::Planned), 2, "the guesses of the block");
    assert_eq!(bench.hurry(&two, Class::Demand), 0, "planned reads keep their order");
    assert_eq!(bench.hurry(&[(last + 1) * PAGE], Class::Demand), 1);
}

#[test]
fn a_sweep_goes_up_and_takes_newcomers_ahead_of_it() {
    let mut bench = bench(ScheduleLimits { gap_bytes: 0, ..ScheduleBench::limits() });
    for page in [50, 10, 30, 11] {
        bench.push(0, read(page, page));
    }
    assert_eq!(bench.serve(), [10, 11]);
    bench.push(0, read(5, 5)); // behind: next sweep
    bench.push(0, read(31, 31)); // ahead: this one
    assert_eq!(bench.serve(), [30, 31]);
    assert_eq!(bench.serve(), [50]);
    assert_eq!(bench.serve(), [5]);
}

/// While few are let out to measure lone reads, writes that hang must not keep all reads back.
#[test]
fn hung_writes_leave_room_for_the_few_reads_that_are_let_out() {
    let volume = CostModel::capped(MS, 3_000.0, 125e6);
    let settings = ScheduleSettings {
        policy: Policy::Elevator,
        fairness: 1024,
        depth: None,
        gap_bytes: None,
        max_request_bytes: 2 << 20,
        patience: 64,
        unit: 512,
        most_depth: 256,
    };
    for depth in [2, 4, 8] {
        let cost = CostModel { depth, ..volume };
        let limits = settings.limits(&DeviceCosts::from_reads(cost));
        let mut bench = bench(limits);
        bench.push(0, read(7, 1));
        let hung =
            DeviceLoad { requests: 4, background: 4, writes: 4, bytes: 4 * PAGE, ..DeviceLoad::default() };
        assert_eq!(bench.next(hung), Next::Begun, "with a depth of {depth}");
        bench.push(0, read(8, 2));
        let full = DeviceLoad { requests: 4 + depth as usize, ..hung };
        assert_eq!(bench.next(full), Next::Nothing, "with a depth of {depth}");
    }
}
