//! Measurements: the probe of a device, and jobs, which are steady loads on one file.

pub(crate) mod job;
pub(crate) mod probe;
pub(crate) mod written;
