//! Interruption of long work.

use std::sync::atomic::{AtomicBool, Ordering};

/// A condition that ends long work, which polls it: a flag that another thread sets, or a clock.
pub trait Interrupt: Sync {
    /// Whether the work is to end.
    fn is_set(&self) -> bool;
}

impl Interrupt for AtomicBool {
    fn is_set(&self) -> bool {
        self.load(Ordering::Relaxed)
    }
}
