//! A step in a journal, with the file or folder that it has made.

use std::io;

use super::made::{MadeId, take_back_made};
use super::outcome::Outcome;
use super::{Step, StepId};

/// See the head of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub id: StepId,
    pub step: Step,
    /// Nothing for a step that makes none, and for one that was killed before it was noted.
    pub made: Option<MadeId>,
}

impl Change {
    pub(super) fn new(id: StepId, step: Step) -> Change {
        Change { id, step, made: None }
    }

    /// Takes the change back.
    ///
    /// # Errors
    /// The change could not be taken back.
    pub(super) fn undo(&self) -> io::Result<Outcome> {
        match self.step.makes() {
            Some(path) => take_back_made(path, self.made.as_ref(), || self.step.undo()),
            None => self.step.undo(),
        }
    }
}
