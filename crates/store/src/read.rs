//! From a page number to a pinned page: pool and versions together, reads from the stripes,
//! read-ahead.
//!
//! 1. [`visible`] finds the page in the pool or among the versions;
//! 2. [`fetch`] asks the stripes for what is absent, and for what [`advice`] says should come
//!    along ([`scan_ahead`] says it of the leaves of a scan);
//! 3. every read ends in [`core`], where the page is verified and published or failed;
//! 4. [`system_statistics`] tells the optimiser what reads take, [`visits`] how many to expect.
//!
//! [`activity`] is what a reader counts, [`account`] on whose behalf, [`priority`] how urgent its
//! reads are; [`meters`] is what trees count, [`waits`] and [`wait_log`] how long readers were
//! blocked.

pub(crate) mod account;
pub(crate) mod activity;
pub(crate) mod advice;
pub(crate) mod core;
pub(crate) mod fetch;
mod growing;
pub(crate) mod meters;
pub(crate) mod priority;
pub(crate) mod regions;
pub(crate) mod scan_ahead;
pub(crate) mod system_statistics;
pub(crate) mod tree_meter;
mod tree_meters;
pub(crate) mod visible;
pub(crate) mod visits;
pub(crate) mod wait_log;
pub(crate) mod waits;
pub(crate) mod warm;
pub(crate) mod warming;
