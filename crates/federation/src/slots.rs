//! Requests at the same time: at most so many of each endpoint, and of all, at each depth of
//! requests within each other.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use snowmelt_base::service_depth;

/// How often one that waits looks whether its reader has gone.
const LOOK: Duration = Duration::from_millis(50);

/// Places of requests.
#[derive(Debug)]
pub(crate) struct Slots {
    /// of all endpoints together, at depth 0
    most: usize,
    /// by depth
    taken: Mutex<Vec<Taken>>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    each: HashMap<String, usize>,
}

/// A place, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
    origin: String,
    depth: usize,
}

impl Slots {
    pub fn new(most: usize) -> Self {
        let taken = (0..=service_depth::MOST).map(|_| Taken::default()).collect();
        Self { most: most.max(1), taken: Mutex::new(taken), freed: Condvar::new() }
    }

    /// Requests under way.
    pub fn under_way(&self) -> usize {
        self.taken.lock().iter().map(|taken| taken.all).sum()
    }

    /// A place for a request of an endpoint, asked for by one of this depth; waits for it. `None`:
    /// there was none in time, or it is wanted no more.
    pub fn take(
        self: &Arc<Self>,
        origin: &str,
        depth: u32,
        patience: Duration,
        is_wanted: impl Fn() -> bool,
    ) -> Option<Slot> {
        let until = Instant::now() + patience;
        let depth = depth.min(service_depth::MOST);
        let most = service_depth::places(self.most, depth);
        // one endpoint that is slow leaves places for others
        let most_each = most.div_ceil(2);
        let depth = depth as usize;
        let mut of_all = self.taken.lock();
        loop {
            let taken = &mut of_all[depth];
            let each = taken.each.get(origin).copied().unwrap_or_default();
            if taken.all < most && each < most_each {
                taken.all += 1;
                *taken.each.entry(origin.to_owned()).or_default() += 1;
                return Some(Slot { slots: Arc::clone(self), origin: origin.to_owned(), depth });
            }
            if Instant::now() >= until || !is_wanted() {
                return None;
            }
            self.freed.wait_for(&mut of_all, LOOK);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut of_all = self.slots.taken.lock();
        let taken = &mut of_all[self.depth];
        taken.all -= 1;
        if let Some(each) = taken.each.get_mut(&self.origin) {
            *each -= 1;
            if *each == 0 {
                taken.each.remove(&self.origin);
            }
        }
        drop(of_all);
        self.slots.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_endpoint_leaves_places_for_others() {
        let slots = Arc::new(Slots::new(4));
        let take = |origin: &str| slots.take(origin, 0, Duration::ZERO, || true);
        let slow = [take("a"), take("a")];
        assert!(slow.iter().all(Option::is_some));
        assert!(take("a").is_none(), "half of all are one endpoint's");
        let other = take("b");
        assert!(other.is_some());
        drop(slow);
        assert!(take("a").is_some());
        assert_eq!(slots.under_way(), 1);
        drop(other);
        assert_eq!(slots.under_way(), 0);
    }

    /// The same endpoint: those that wait for answers leave places to those that these need.
    #[test]
    fn requests_within_others_have_places_of_their_own() {
        let slots = Arc::new(Slots::new(8));
        let take = |depth| slots.take("a", depth, Duration::ZERO, || true);
        let mut held = Vec::new();
        for (depth, places) in [(0, 4), (1, 2), (2, 1), (8, 1)] {
            held.extend((0..places).map(|_| take(depth).expect("there are so many")));
            assert!(take(depth).is_none(), "{depth}");
        }
        assert_eq!(slots.under_way(), held.len());
        drop(held);
        assert_eq!(slots.under_way(), 0);
        assert!(take(1).is_some());
    }

    #[test]
    fn one_that_waits_goes_when_it_is_wanted_no_more() {
        let slots = Arc::new(Slots::new(1));
        let _held = slots.take("a", 0, Duration::ZERO, || true).unwrap();
        let begun = Instant::now();
        assert!(slots.take("a", 0, Duration::from_secs(60), || false).is_none());
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
