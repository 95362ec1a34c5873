//! One small structure for each policy but the elevator, of which two of them are made.

pub(crate) mod anticipatory;
pub(crate) mod deadline;
pub(crate) mod fair;
pub(crate) mod fifo;
