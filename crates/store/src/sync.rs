//! Locks and turns whose waiters wait in the clock's time.

pub(crate) mod bell;
pub(crate) mod long_lock;
pub(crate) mod longest;
pub(crate) mod turn;
pub(crate) mod waits;
