//! The meters of the trees there are. Numbers of trees are never used again, and compactions use
//! many: a meter goes to another tree when its own is dropped, and what it counted to a meter that
//! all dropped trees share.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use parking_lot::Mutex;

use super::growing::Growing;
use super::tree_meter::TreeMeter;
use crate::page::TreeId;

/// A tree that was not asked for yet.
const NONE: u32 = 0;
/// The meter of all dropped trees, which late readers of these still count in.
const DROPPED: u32 = 1;

#[derive(Debug, Default)]
pub(crate) struct TreeMeters {
    /// By tree, the number of its meter, from 1.
    numbers: Growing<AtomicU32>,
    meters: Growing<TreeMeter>,
    /// Numbers of meters without a tree.
    free: Mutex<Vec<u32>>,
}

impl TreeMeters {
    /// The meter of a tree, which it has from now on.
    #[inline]
    pub fn of_tree(&self, tree: TreeId) -> &TreeMeter {
        let number = self.numbers.at(tree.0 as usize);
        match number.load(Acquire) {
            NONE => self.meter(self.assign(number)),
            assigned => self.meter(assigned),
        }
    }

    fn meter(&self, number: u32) -> &TreeMeter {
        self.meters.at(number as usize - 1)
    }

    fn assign(&self, number: &AtomicU32) -> u32 {
        let mut free = self.free.lock();
        let assigned = number.load(Acquire);
        if assigned != NONE {
            return assigned;
        }
        let next = free.pop().unwrap_or_else(|| (self.meters.len() as u32).max(DROPPED) + 1);
        self.meter(next);
        number.store(next, Release);
        next
    }

    /// A tree is dropped. A reader that counts at this very moment may count for the tree that
    /// gets its meter.
    pub fn retire(&self, tree: TreeId) {
        let mut free = self.free.lock();
        let assigned = self.numbers.at(tree.0 as usize).swap(DROPPED, Release);
        if assigned > DROPPED {
            self.meter(assigned).move_to(self.meter(DROPPED));
            free.push(assigned);
        }
    }

    /// All meters, that of dropped trees first.
    pub fn all(&self) -> impl Iterator<Item = &TreeMeter> {
        self.meters.iter()
    }

    /// Those of trees that were not dropped.
    pub fn live(&self) -> impl Iterator<Item = &TreeMeter> {
        self.meters.iter().skip(DROPPED as usize)
    }

    /// Whether a meter is that of a tree.
    pub fn is_of(&self, meter: &TreeMeter, tree: TreeId) -> bool {
        let number = self.numbers.at(tree.0 as usize).load(Relaxed);
        number > DROPPED && std::ptr::eq(self.meter(number), meter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meters_are_used_again_and_nothing_counted_is_lost() {
        let meters = TreeMeters::default();
        // Compactions: each makes ten trees, and drops those of the one before.
        for round in 0..500 {
            for tree in round * 10..round * 10 + 10 {
                let meter = meters.of_tree(TreeId(tree));
                assert_eq!((meter.reads.load(Relaxed), meter.resident.load(Relaxed)), (0, 0));
                meter.reads.fetch_add(3, Relaxed);
                meter.resident.fetch_add(2, Relaxed);
                meter.pages.store(7, Relaxed);
            }
            if let Some(before) = round.checked_sub(1) {
                (before * 10..before * 10 + 10).for_each(|tree| meters.retire(TreeId(tree)));
            }
        }
        assert_eq!(meters.live().count(), 20, "as many as there were at once");
        assert_eq!(meters.live().filter(|meter| meter.pages.load(Relaxed) == 7).count(), 10);
        assert_eq!(meters.all().map(|meter| meter.reads.load(Relaxed)).sum::<u64>(), 500 * 10 * 3);
        // Pages of a dropped tree leave the pool later.
        let late = meters.of_tree(TreeId(3));
        late.resident.fetch_sub(2, Relaxed);
        assert_eq!(meters.all().map(|meter| meter.resident.load(Relaxed)).sum::<u64>(), 500 * 10 * 2 - 2);
        meters.retire(TreeId(3));
        assert_eq!(meters.all().map(|meter| meter.reads.load(Relaxed)).sum::<u64>(), 500 * 10 * 3);
    }
}
