//! Waking a serving thread that sleeps in the kernel: an event descriptor, on which it has a
//! read outstanding.
//!
//! `asleep` is set under the queue's lock after the schedule was found empty, so a submission
//! either is seen there or sees the flag.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// How to wake a serving thread.
pub(crate) struct Wake {
    descriptor: OwnedFd,
    /// The thread is about to sleep with room for more, or does.
    pub(crate) asleep: AtomicBool,
}

impl Wake {
    pub(crate) fn new() -> std::io::Result<Wake> {
        let descriptor = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC)?;
        Ok(Wake { descriptor, asleep: AtomicBool::new(false) })
    }

    /// A read of eight bytes from it ends when the thread is woken.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Wakes the thread if it sleeps; call after the work was put under the queue's lock.
    pub(crate) fn wake(&self) {
        if self.asleep.load(Ordering::Acquire) && self.asleep.swap(false, Ordering::AcqRel) {
            let written = rustix::io::write(&self.descriptor, &1u64.to_ne_bytes());
            debug_assert!(written.is_ok(), "an event descriptor takes 2^64 wake-ups");
        }
    }
}
