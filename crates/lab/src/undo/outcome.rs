//! The outcome of undoing a step.

/// How undoing went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was taken back.
    Undone,
    /// There was nothing left to take back.
    Gone,
    /// It is gone, and another has its name by now, which was left alone.
    Another,
    /// The one of its name may be another's by now, and was left alone.
    Unknown,
}
