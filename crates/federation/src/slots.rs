//! Requests at the same time: at most so many of each endpoint, and of all.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// How often one that waits looks whether its reader has gone.
const LOOK: Duration = Duration::from_millis(50);

/// Places of requests.
#[derive(Debug)]
pub(crate) struct Slots {
    /// of all endpoints together
    most: usize,
    /// of one
    most_each: usize,
    taken: Mutex<Taken>,
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
}

impl Slots {
    pub fn new(most: usize) -> Self {
        let most = most.max(1);
        // one endpoint that is slow leaves places for others
        let most_each = most.div_ceil(2);
        Self { most, most_each, taken: Mutex::default(), freed: Condvar::new() }
    }

    /// Requests under way.
    pub fn under_way(&self) -> usize {
        self.taken.lock().all
    }

    /// A place for a request of an endpoint; waits for it. `None`: there was none in time, or it is
    /// wanted no more.
    pub fn take(
        self: &Arc<Self>,
        origin: &str,
        patience: Duration,
        is_wanted: impl Fn() -> bool,
    ) -> Option<Slot> {
        let until = Instant::now() + patience;
        let mut taken = self.taken.lock();
        loop {
            let each = taken.each.get(origin).copied().unwrap_or_default();
            if taken.all < self.most && each < self.most_each {
                taken.all += 1;
                *taken.each.entry(origin.to_owned()).or_default() += 1;
                return Some(Slot { slots: Arc::clone(self), origin: origin.to_owned() });
            }
            if Instant::now() >= until || !is_wanted() {
                return None;
            }
            self.freed.wait_for(&mut taken, LOOK);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken.lock();
        taken.all -= 1;
        if let Some(each) = taken.each.get_mut(&self.origin) {
            *each -= 1;
            if *each == 0 {
                taken.each.remove(&self.origin);
            }
        }
        drop(taken);
        self.slots.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_endpoint_leaves_places_for_others() {
        let slots = Arc::new(Slots::new(4));
        let take = |origin: &str| slots.take(origin, Duration::ZERO, || true);
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

    #[test]
    fn one_that_waits_goes_when_it_is_wanted_no_more() {
        let slots = Arc::new(Slots::new(1));
        let _held = slots.take("a", Duration::ZERO, || true).unwrap();
        let begun = Instant::now();
        assert!(slots.take("a", Duration::from_secs(60), || false).is_none());
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
