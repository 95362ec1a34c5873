//! Counts of the requests to a store.

use crate::latency::Latency;

/// Counts and measurements of a store since it was opened. Requests are those of callers; each is
/// one or more attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ObjectCounters {
    /// Gets begun.
    pub gets: u64,
    /// Puts begun.
    pub puts: u64,
    /// Deletes begun.
    pub deletes: u64,
    /// Lists begun.
    pub lists: u64,
    /// Attempts begun, hedges and looks for the fate of a put included.
    pub attempts: u64,
    /// Bytes of answered gets.
    pub bytes_in: u64,
    /// Bytes of attempted puts.
    pub bytes_out: u64,
    /// Attempts after one that failed.
    pub retries: u64,
    /// Second attempts because the first was slow.
    pub hedges: u64,
    /// Those that were answered first.
    pub hedges_won: u64,
    /// Answers that the store is asked too often.
    pub throttled: u64,
    /// Bodies that were shorter than asked for, though said to be whole.
    pub short_bodies: u64,
    /// Puts on a condition whose answer was lost and whose bytes were found.
    pub puts_found: u64,
    /// Requests answered with an error, other than a missing object or a condition that does not
    /// hold.
    pub failures: u64,
    /// Requests given up by their callers.
    pub given_up: u64,
    /// Requests that wait for their turn, now.
    pub waiting: u64,
    /// Attempts outstanding, now.
    pub outstanding: u64,
    /// Attempts that may be outstanding, now.
    pub width: u64,
    /// Nanoseconds in which attempts were outstanding.
    pub busy_ns: u64,
    /// Times of answered attempts of gets.
    pub get_times: Latency,
    /// Times of answered attempts of puts.
    pub put_times: Latency,
}

impl ObjectCounters {
    /// Bytes moved per second in which attempts were outstanding; 0 before there were any.
    pub fn bytes_per_s(&self) -> f64 {
        (self.bytes_in + self.bytes_out) as f64 * 1e9 / self.busy_ns.max(1) as f64
    }
}
