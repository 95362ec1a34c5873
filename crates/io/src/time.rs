//! Time: the clock, real or virtual, and the event count on which everything waits.

pub(crate) mod clock;
pub(crate) mod event_count;
pub(crate) mod virtual_time;
