//! The schedule under every policy: nothing lost, nothing done twice, no lane starved.

use std::collections::BTreeMap;

use proptest::prelude::*;
use snowmelt_io::schedule_bench::{ScheduleBench, pending};
use snowmelt_io::{Class, CostModel, Next};
use snowmelt_io_experiments::PolicyName;

const PAGE: u64 = 8192;

#[derive(Debug, Clone)]
enum Step {
    Push { page: u64, pages: u64, class: usize, write: bool, client: u64 },
    Take { outstanding: usize },
    Finish { ms: u64 },
    Hurry { page: u64, class: usize },
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    let push = (0..600u64, 1..4u64, 0..Class::COUNT, prop::bool::weighted(0.2), 0..4u64);
    let push =
        push.prop_map(|(page, pages, class, write, client)| Step::Push { page, pages, class, write, client });
    prop_oneof![
        30 => push,
        20 => (0..5usize).prop_map(|outstanding| Step::Take { outstanding }),
        15 => (0..600u64).prop_map(|ms| Step::Finish { ms }),
        8 => (0..600u64, 0..Class::COUNT).prop_map(|(page, class)| Step::Hurry { page, class }),
        1 => Just(Step::Close),
    ]
}

/// They go out once each, and no later than those of their class.
fn remove(waiting: &mut BTreeMap<u64, Class>, sent_as: Class, tags: Vec<u64>) {
    for tag in tags {
        let class = waiting.remove(&tag).unwrap_or_else(|| panic!("{tag} twice"));
        assert!(sent_as <= class, "{tag} of {class:?} goes out as {sent_as:?}");
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_or_done_twice_and_merges_are_right(
        steps in prop::collection::vec(step(), 1..200),
        policy in 0..PolicyName::ALL.len(),
    ) {
        let mut bench = ScheduleBench::new(&PolicyName::ALL[policy].policy(), ScheduleBench::limits());
        let mut waiting = BTreeMap::new();
        let mut pushed = 0;
        for step in steps {
            match step {
                Step::Push { page, pages, class, write, client } => {
                    bench.push(client, pending(page, pages, Class::ALL[class], write, pushed));
                    waiting.insert(pushed, Class::ALL[class]);
                    pushed += 1;
                }
                Step::Take { outstanding } => {
                    let next = bench.next_beside(outstanding, 0);
                    prop_assert!(!matches!(next, Next::NotBefore(at) if at <= bench.now), "held for no time");
                    if next == Next::Begun {
                        let (class, tags) = bench.last().expect("just begun");
                        prop_assert!(outstanding < bench.limits.depth);
                        // A lone write goes out past the bound after a while.
                        let is_guess = class == Class::Speculative;
                        prop_assert!(!is_guess || outstanding < bench.limits.background.requests);
                        remove(&mut waiting, class, tags);
                    }
                }
                Step::Finish { ms } => bench.finish(ms),
                Step::Hurry { page, class } => {
                    bench.hurry(&[page * PAGE], Class::ALL[class]);
                }
                Step::Close => {
                    for read in bench.take_reads() {
                        prop_assert!(!read.request.buf.is_write());
                        prop_assert!(waiting.remove(&read.request.tag).is_some());
                    }
                }
            }
            prop_assert_eq!(bench.waiting(), waiting.len());
        }
        while bench.at_device() > 0 {
            bench.finish(1);
        }
        while !waiting.is_empty() {
            for tag in bench.serve() {
                prop_assert!(waiting.remove(&tag).is_some(), "{} twice", tag);
            }
        }
        prop_assert_eq!(bench.waiting(), 0);
    }
}

#[test]
fn a_read_that_somebody_waits_for_goes_before_those_that_nobody_does() {
    let hurry = |bench: &mut ScheduleBench, page: u64| bench.hurry(&[page * PAGE], Class::Demand);
    for policy in PolicyName::ALL {
        let mut bench = ScheduleBench::single(&policy.policy());
        // A request costs nothing but its bytes.
        bench.set_background(CostModel::nvme(), PAGE);
        for page in 0..20 {
            bench.push(page % 3, pending(page * 50, 1, Class::Speculative, page == 7, page));
        }
        assert_eq!(hurry(&mut bench, 12 * 50), 1, "{policy:?}");
        assert_eq!(hurry(&mut bench, 12 * 50), 0, "it is one of demand already");
        assert_eq!(hurry(&mut bench, 7 * 50), 0, "a write is none");
        assert_eq!(hurry(&mut bench, 25), 0, "there is none");
        assert_eq!(bench.next_beside(0, 0), Next::Begun);
        assert_eq!(bench.last(), Some((Class::Demand, vec![12])), "{policy:?}");
        bench.finish(5);
        let mut others: Vec<u64> = (0..19).flat_map(|_| bench.serve()).collect();
        others.sort_unstable();
        assert_eq!(others, (0..20).filter(|page| *page != 12).collect::<Vec<_>>());
        assert_eq!(bench.waiting(), 0);
    }
}

#[test]
fn nobody_starves_behind_newcomers_or_classes() {
    let victims = [Class::Demand, Class::Speculative, Class::WriteBack];
    for policy in PolicyName::ALL {
        for (victim, rival) in victims.iter().flat_map(|&v| [(v, v), (v, Class::Journal)]) {
            let mut bench = ScheduleBench::single(&policy.policy());
            bench.push(1, pending(1000, 1, victim, false, u64::MAX));
            // Two newcomers for each request served, always just ahead of the sweep.
            let mut served = 0;
            loop {
                for i in 0..2 {
                    bench.push(2 + i, pending(10 + served % 900 + i, 1, rival, false, served * 2 + i));
                }
                if bench.serve() == [u64::MAX] {
                    break;
                }
                served += 1;
                assert!(served < 200, "{policy:?}: {victim:?} starves behind {rival:?}");
            }
        }
    }
}

#[test]
fn classes_go_by_priority_and_background_leaves_room() {
    for policy in PolicyName::ALL {
        let mut bench = ScheduleBench::new(&policy.policy(), ScheduleBench::limits());
        for (i, class) in Class::ALL.into_iter().rev().enumerate() {
            bench.push(0, pending(i as u64 * 100, 1, class, false, class as u64));
        }
        for want in 0..Class::Speculative as u64 {
            assert_eq!(bench.serve(), [want], "{policy:?}");
        }
        assert_eq!(bench.next_beside(3, 0), Next::Nothing);
        assert_eq!(bench.next_beside(1, bench.limits.background.bytes), Next::Nothing);
        assert_eq!(bench.next_beside(2, 0), Next::Begun);
    }
}
