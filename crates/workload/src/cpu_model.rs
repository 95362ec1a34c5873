//! Modelled processor time, for virtual time, where measured time would make runs differ.

use snowmelt_store::Activity;

/// Processor time of a query from its meters.
///
/// Fitted to measured times of Explore queries, everything resident; `cargo run --release
/// -p snowmelt-benches --example cpu_model -- DB` fits it anew.
#[derive(Clone, Copy, Debug)]
pub struct CpuModel {
    /// Nanoseconds per query.
    pub query_ns: f64,
    /// Per random lookup.
    pub rnd_ns: f64,
    /// Per row moved over.
    pub seq_ns: f64,
    /// Per byte of the answer.
    pub byte_ns: f64,
    /// Per page read from a device: request, checksum, book-keeping. Not part of a query's own
    /// work.
    pub read_ns: f64,
}

impl Default for CpuModel {
    fn default() -> Self {
        Self { query_ns: 28_000.0, rnd_ns: 900.0, seq_ns: 13.0, byte_ns: 2.4, read_ns: 3_000.0 }
    }
}

impl CpuModel {
    /// The query's own work in nanoseconds: the same cold and warm.
    pub fn work_ns(&self, activity: &Activity, bytes: u64) -> u64 {
        (self.query_ns
            + self.rnd_ns * activity.rnd as f64
            + self.seq_ns * activity.seq as f64
            + self.byte_ns * bytes as f64) as u64
    }

    /// Additional cost of its reads.
    pub fn reads_ns(&self, activity: &Activity) -> u64 {
        (self.read_ns * activity.disk as f64) as u64
    }
}
