//! Interruption of long work.

use std::sync::atomic::{AtomicBool, Ordering};

/// Asked again and again by work that takes long: a flag that another thread sets, a clock.
pub trait Interrupt: Sync {
    /// Whether the work is to end.
    fn is_set(&self) -> bool;
}

impl Interrupt for AtomicBool {
    fn is_set(&self) -> bool {
        self.load(Ordering::Relaxed)
    }
}
