//! A lock that may be held while a device works: waiters wait in the clock's time, so that in
//! virtual time other threads go on, the holder among them.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use snowmelt_io::{Clock, EventCount};

/// See the head of the file.
pub(crate) struct LongLock<T> {
    taken: AtomicBool,
    given_back: EventCount,
    /// Locked only by the holder of the turn, so no thread ever waits here.
    value: Mutex<T>,
}

impl<T: Send> LongLock<T> {
    /// A lock whose waiters wait in `clock`'s time; `what` is what it guards, in words.
    pub fn new(what: &'static str, value: T, clock: &Clock) -> LongLock<T> {
        LongLock {
            taken: AtomicBool::new(false),
            given_back: EventCount::named(clock, what),
            value: Mutex::new(value),
        }
    }

    /// Waits for the turn. The caller must hold no other lock but those of this kind.
    pub fn lock(&self) -> LongGuard<'_, T> {
        self.given_back.wait_until(|| !self.taken.swap(true, Ordering::Acquire));
        LongGuard { lock: self, value: Some(self.value.lock()) }
    }
    /// The turn, if it is free.
    pub fn try_lock(&self) -> Option<LongGuard<'_, T>> {
        let is_free = !self.taken.swap(true, Ordering::Acquire);
        is_free.then(|| LongGuard { lock: self, value: Some(self.value.lock()) })
    }
}

/// The turn; given back when dropped.
pub(crate) struct LongGuard<'a, T> {
    lock: &'a LongLock<T>,
    value: Option<MutexGuard<'a, T>>,
}

impl<T> Deref for LongGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("held until dropped")
    }
}

impl<T> DerefMut for LongGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("held until dropped")
    }
}

impl<T> Drop for LongGuard<'_, T> {
    fn drop(&mut self) {
        drop(self.value.take());
        self.lock.taken.store(false, Ordering::Release);
        self.lock.given_back.notify_one();
    }
}
