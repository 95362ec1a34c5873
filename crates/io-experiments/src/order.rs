//! An order for each policy but the elevator's; two of them consist of elevators.

pub(crate) mod anticipatory;
pub(crate) mod deadline;
pub(crate) mod fair;
pub(crate) mod fifo;
