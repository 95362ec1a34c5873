//! A list that only grows and is read without a lock: readers on all processors look things up in
//! it all the time, and a lock's own word would wander between them.

use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Release};

/// Items of the first part; each part has twice as many as the one before.
const FIRST: usize = 16;
const PARTS: usize = 32;

/// A list of items that are made when they are first asked for.
#[derive(Debug)]
pub(crate) struct Growing<T> {
    parts: [OnceLock<Box<[T]>>; PARTS],
    len: AtomicUsize,
}

impl<T> Default for Growing<T> {
    fn default() -> Self {
        Growing { parts: [const { OnceLock::new() }; PARTS], len: AtomicUsize::new(0) }
    }
}

impl<T: Default> Growing<T> {
    /// Item `i`.
    #[inline]
    pub fn at(&self, i: usize) -> &T {
        let part = (i / FIRST + 1).ilog2() as usize;
        let items = FIRST << part;
        let list = self.parts[part].get_or_init(|| (0..items).map(|_| T::default()).collect());
        if self.len.load(Acquire) <= i {
            self.len.fetch_max(i + 1, Release);
        }
        &list[i - (items - FIRST)]
    }

    /// One more than the highest number that was asked for.
    pub fn len(&self) -> usize {
        self.len.load(Acquire)
    }

    /// All items up to that.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).map(|i| self.at(i))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn each_item_is_one_and_stays_where_it_is() {
        let list = Growing::<AtomicU64>::default();
        assert_eq!((list.len(), list.iter().count()), (0, 0));
        let first = std::ptr::from_ref(list.at(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|i| _ = list.at(i).fetch_add(i as u64, Relaxed)));
            }
        });
        assert_eq!((list.len(), std::ptr::from_ref(list.at(0))), (1000, first));
        for (i, item) in list.iter().enumerate() {
            assert_eq!(item.load(Relaxed), 4 * i as u64, "item {i}");
        }
        assert_eq!(list.at(100_000).load(Relaxed), 0);
        assert_eq!(list.len(), 100_001);
    }
}
