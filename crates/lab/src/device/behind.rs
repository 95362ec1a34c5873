//! The emulated device behind a block device, if there is one. An experiment begins with the
//! buffers of the device empty, and reports late answers.

use std::path::Path;

use super::control::{Answer, Ask, ask, status_of};
use super::state::{self, Record};
use crate::LabError;

/// An emulated device, found by the block device it shows.
pub struct Behind {
    record: Record,
}

impl Behind {
    /// The one behind `/dev/NAME`.
    pub fn find(name: &str) -> Option<Behind> {
        let path = Path::new("/dev").join(name);
        let record = state::all().ok()?.into_iter().find(|record| record.device == path)?;
        record.is_alive().then_some(Behind { record })
    }

    /// Empties its buffers and starts its counts anew.
    ///
    /// # Errors
    /// Its server does not answer.
    pub fn reset(&self) -> Result<(), LabError> {
        match ask(&self.record, Ask::Reset)? {
            Answer::Done => Ok(()),
            other => Err(LabError::Argument(format!(
                "device {} was not reset: its server answered {other:?}",
                self.record.spec.name
            ))),
        }
    }

    /// Why what was measured since the reset does not count, if so.
    pub fn doubt(&self) -> Option<String> {
        match status_of(&self.record) {
            Ok(status) => status.doubt(),
            Err(e) => Some(e.to_string()),
        }
    }

    /// The process that serves it.
    pub fn server(&self) -> u32 {
        self.record.pid
    }

    /// Pieces beyond the first that the emulated array made of its requests since the reset;
    /// nothing when it does not answer.
    pub fn splits(&self) -> Option<u64> {
        Some(status_of(&self.record).ok()?.activity.splits)
    }

    /// The read-ahead it was made with.
    pub fn read_ahead_kb(&self) -> u32 {
        self.record.spec.read_ahead_kb
    }

    /// Name of its model, for reports.
    pub fn model(&self) -> String {
        self.record.spec.model_name.clone()
    }
}
