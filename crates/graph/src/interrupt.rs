//! Interruption of long work.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{GraphError, Result};

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

/// Goes on, or not, as a progress callback said.
pub(crate) fn go_on(said: ControlFlow<()>) -> Result<()> {
    if said.is_break() { Err(GraphError::Stopped) } else { Ok(()) }
}
