//! The numbers of the policies.

/// The numbers of the policies. The defaults of the first six are those of the Linux schedulers of
/// the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Deadline: a read older than this is served next, in nanoseconds.
    pub read_expire_ns: u64,
    /// Deadline: the same for writes, in nanoseconds.
    pub write_expire_ns: u64,
    /// Deadline: device requests of a batch.
    pub batch: usize,
    /// Deadline: how often reads may go before writes that wait.
    pub writes_starved: u32,
    /// Anticipatory: how long the device waits for a reader's next request, in nanoseconds.
    pub anticipate_ns: u64,
    /// Anticipatory: how long it is waited for one reader while others wait, in nanoseconds.
    pub slice_ns: u64,
    /// Fair: device time of one turn, in nanoseconds; by default that of one longest request.
    pub quantum_ns: Option<u64>,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            read_expire_ns: 500_000_000,
            write_expire_ns: 5_000_000_000,
            batch: 16,
            writes_starved: 2,
            anticipate_ns: 6_700_000,
            slice_ns: 500_000_000,
            quantum_ns: None,
        }
    }
}
