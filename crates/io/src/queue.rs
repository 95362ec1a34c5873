//! Requests that wait, and the one that goes out next.
//!
//! `request`, `costs` and `device_load` are plain data. A `schedule` holds the waiting requests, in
//! one `order` per class. It makes a `device_request` of the next request and of those merged with
//! it. `counters` count both, `read_times` say how long reads take.

pub(crate) mod background;
pub(crate) mod costs;
pub(crate) mod counters;
pub(crate) mod device_load;
pub(crate) mod device_request;
pub(crate) mod order;
pub(crate) mod read_times;
pub(crate) mod request;
pub(crate) mod schedule;
