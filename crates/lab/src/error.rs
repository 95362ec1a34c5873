//! Errors of the laboratory: what failed, where, and the remedy.

use std::fmt::Display;
use std::path::Path;

use snowmelt_io::IoError;

/// An error of the laboratory.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The command line, or a file it names, makes no sense; the message says what would.
    #[error("{0}")]
    Argument(String),
    /// This machine, or the caller's rights, do not allow it.
    #[error("{what}: {why}; {instead}")]
    Refused {
        /// What was to be done, and to what.
        what: String,
        /// What stands against it.
        why: String,
        /// What works instead, or what to do.
        instead: String,
    },
    /// A device failed.
    #[error(transparent)]
    Device(#[from] IoError),
    /// No such device can be: a model out of bounds.
    #[error(transparent)]
    Model(#[from] snowmelt_io::ModelError),
    /// A change could not be made or undone.
    #[error(transparent)]
    Undo(#[from] crate::undo::UndoError),
    /// The operating system failed.
    #[error("{doing}: {error}")]
    System {
        /// What was being done, and to what: `open /dev/vda`.
        doing: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// Ctrl-C or SIGTERM; everything changed was restored.
    #[error("stopped by a signal; what was measured before is in the run folder")]
    Stopped,
}

impl LabError {
    /// `doing` should name verb and object: `read /sys/block/vda/queue/scheduler`.
    pub fn system(doing: impl Into<String>, error: impl Into<std::io::Error>) -> LabError {
        LabError::System { doing: doing.into(), error: error.into() }
    }

    /// An error while doing something to a file.
    pub fn file(verb: &str, path: &Path, error: impl Into<std::io::Error>) -> LabError {
        LabError::system(format!("{verb} {}", path.display()), error)
    }

    /// Something that cannot be used here, with what works instead.
    pub fn refused(what: impl Display, why: impl Into<String>, instead: impl Into<String>) -> LabError {
        LabError::Refused { what: what.to_string(), why: why.into(), instead: instead.into() }
    }
}
