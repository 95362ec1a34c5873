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
        /// The refused action and its object.
        what: String,
        /// The reason of the refusal.
        why: String,
        /// The next step: an alternative, or a remedy.
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
        /// The failed action and its object: `open /dev/vda`.
        doing: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// Ctrl-C or SIGTERM; everything changed was restored.
    #[error("stopped by a signal; what was measured until then, if anything was, is in the run folder")]
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
