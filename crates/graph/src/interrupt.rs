//! Interruption of long work.

pub use snowmelt_base::Interrupt;
use std::ops::ControlFlow;

use crate::error::{GraphError, Result};

/// Fails with [`GraphError::Stopped`] if a progress callback asked to stop.
pub(crate) fn go_on(said: ControlFlow<()>) -> Result<()> {
    if said.is_break() { Err(GraphError::Stopped) } else { Ok(()) }
}
