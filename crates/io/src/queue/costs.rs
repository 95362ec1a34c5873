//! Costs of a device, as its queue has learned them.

use crate::cost::CostModel;
use crate::learn::writes::WriteCosts;
use crate::write_cost::WriteCost;

/// Costs of its reads and of its writes.
#[derive(Clone, Copy)]
pub(crate) struct DeviceCosts {
    pub(crate) reads: CostModel,
    pub(crate) writes: WriteCost,
}

impl DeviceCosts {
    /// The costs of a device whose writes are not known yet.
    pub(crate) fn from_reads(reads: CostModel) -> DeviceCosts {
        DeviceCosts { reads, writes: WriteCosts::new(&reads).cost() }
    }
}
