//! Errors of the command.

use snowmelt_engines::EngineError;
use snowmelt_lab::LabError;
use snowmelt_lab::undo::UndoError;

/// An error: of the laboratory, of the engine, or of its answers.
#[derive(Debug, thiserror::Error)]
pub enum TpchError {
    /// The laboratory's.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The engine's.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A change could not be made or undone.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// PostgreSQL printed something else than was asked for.
    #[error("PostgreSQL answered {got:?} where {wanted} was asked for")]
    Answer {
        /// The question in words.
        wanted: String,
        /// The answer's beginning.
        got: String,
    },
}
