//! Counters of commits, journal and checkpoints.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use snowmelt_io::{Latency, LatencyMeter, WriteCost};

use crate::sync::longest::Longest;
use crate::sync::waits::WaitTimes;

/// The live counters.
#[derive(Default)]
pub(crate) struct JournalMeters {
    commits: AtomicU64,
    records: AtomicU64,
    appended_bytes: AtomicU64,
    payload_bytes: AtomicU64,
    catalog_bytes: AtomicU64,
    written_bytes: AtomicU64,
    syncs: AtomicU64,
    synced_records: AtomicU64,
    recycled: AtomicU64,
    checkpoints: AtomicU64,
    written_back: AtomicU64,
    cancelled: AtomicU64,
    latency: LatencyMeter,
    slowed: AtomicU64,
    slowed_ns: AtomicU64,
    /// How long the checkpointer held what commits, readers or both need.
    pub order_hold: Longest,
    pub map_hold: Longest,
    pub versions_hold: Longest,
    pub block_hold: Longest,
    longest_slowed: Longest,
}

/// Work of commits, journal and checkpoints since the database was opened, and how much is waiting.
#[derive(Clone, Debug, Default)]
pub struct JournalStats {
    /// Transactions committed.
    pub commits: u64,
    /// Records appended.
    pub records: u64,
    /// Bytes of them.
    pub appended_bytes: u64,
    /// Bytes of their payloads before compression.
    pub payload_bytes: u64,
    /// Those of them that say what changed in the catalog and in the extent map.
    pub catalog_bytes: u64,
    /// Bytes written to journal files; whole blocks, some more than once.
    pub written_bytes: u64,
    /// Times the journal was synced.
    pub syncs: u64,
    /// Records made durable by them: divided by `syncs`, the group size.
    pub synced_records: u64,
    /// Nanoseconds from the write to the end of the sync.
    pub sync_latency: Latency,
    /// Bytes of journal that a recovery would read now.
    pub bytes_to_recover: u64,
    /// Seconds that would take, as far as the device's costs are known.
    pub recovery_s: f64,
    /// Journal files that were used again.
    pub recycled: u64,
    /// Checkpoints that ended.
    pub checkpoints: u64,
    /// Pages written back by them.
    pub written_back: u64,
    /// Pages with versions in the version table.
    pub versioned_pages: u64,
    /// Their versions.
    pub versions: u64,
    /// Those of them that are in memory.
    pub versions_in_memory: u64,
    /// Memory of them, and of what is known of the others.
    pub versions_bytes: u64,
    /// The oldest transaction a live snapshot reads as of.
    pub oldest_reader: Option<u64>,
    /// How long that is, in nanoseconds, and on whose behalf: an account's name.
    pub oldest_reader_ns: u64,
    /// See `oldest_reader_ns`.
    pub oldest_reader_account: String,
    /// Bytes of journal that are kept for it: what was committed since.
    pub held_bytes: u64,
    /// Bytes of all journal files, those that are free among them.
    pub file_bytes: u64,
    /// The newest durable transaction.
    pub newest: u64,
    /// The last transaction whose pages are all on their stripes.
    pub checkpointed: u64,
    /// Snapshots that were given up because their readers took too long.
    pub cancelled_readers: u64,
    /// Bytes of journal that make a recovery take as long as it may.
    pub bound_bytes: u64,
    /// Transactions that were slowed down because the journal came near that, and by how much
    /// together.
    pub slowed: u64,
    /// Nanoseconds of that.
    pub slowed_ns: u64,
    /// The longest of these pauses, in nanoseconds.
    pub longest_slowed_ns: u64,
    /// The longest time the checkpointer held the commits' order, the extent map, a part of the
    /// version table, the super-block's copy: nanoseconds.
    pub longest_holds_ns: [u64; 4],
    /// Why nothing may be written any more, if so.
    pub poisoned: Option<String>,
    /// Why writing back waits, if so.
    pub stalled: Option<String>,
    /// Costs of writes to its files, as they are believed now.
    pub write_cost: WriteCost,
    /// How long writers waited for room in the journal.
    pub room_waits: WaitTimes,
    /// How long they waited for their turn.
    pub turn_waits: WaitTimes,
}

impl JournalMeters {
    pub fn new() -> JournalMeters {
        JournalMeters::default()
    }
    pub fn committed(&self) {
        self.commits.fetch_add(1, Relaxed);
    }
    pub fn appended(&self, bytes: u64, payload_bytes: u64) {
        self.records.fetch_add(1, Relaxed);
        self.appended_bytes.fetch_add(bytes, Relaxed);
        self.payload_bytes.fetch_add(payload_bytes, Relaxed);
    }
    pub fn catalog(&self, bytes: u64) {
        self.catalog_bytes.fetch_add(bytes, Relaxed);
    }
    pub fn read_appended(&self) -> u64 {
        self.appended_bytes.load(Relaxed)
    }
    pub fn wrote(&self, bytes: u64) {
        self.written_bytes.fetch_add(bytes, Relaxed);
    }
    pub fn synced(&self, records: u64, ns: u64) {
        self.syncs.fetch_add(1, Relaxed);
        self.synced_records.fetch_add(records, Relaxed);
        self.latency.record(ns);
    }
    pub fn recycled(&self) {
        self.recycled.fetch_add(1, Relaxed);
    }
    pub fn checkpointed(&self) {
        self.checkpoints.fetch_add(1, Relaxed);
    }
    pub fn wrote_back(&self, pages: u64) {
        self.written_back.fetch_add(pages, Relaxed);
    }
    pub fn cancelled(&self, snapshots: u64) {
        self.cancelled.fetch_add(snapshots, Relaxed);
    }

    pub fn slowed(&self, ns: u64) {
        self.slowed.fetch_add(1, Relaxed);
        self.slowed_ns.fetch_add(ns, Relaxed);
        self.longest_slowed.note(ns);
    }

    /// The counters; the rest is the caller's.
    pub fn read(&self) -> JournalStats {
        JournalStats {
            commits: self.commits.load(Relaxed),
            records: self.records.load(Relaxed),
            appended_bytes: self.appended_bytes.load(Relaxed),
            payload_bytes: self.payload_bytes.load(Relaxed),
            catalog_bytes: self.catalog_bytes.load(Relaxed),
            written_bytes: self.written_bytes.load(Relaxed),
            syncs: self.syncs.load(Relaxed),
            synced_records: self.synced_records.load(Relaxed),
            sync_latency: self.latency.read(),
            recycled: self.recycled.load(Relaxed),
            checkpoints: self.checkpoints.load(Relaxed),
            written_back: self.written_back.load(Relaxed),
            cancelled_readers: self.cancelled.load(Relaxed),
            slowed: self.slowed.load(Relaxed),
            slowed_ns: self.slowed_ns.load(Relaxed),
            longest_slowed_ns: self.longest_slowed.read(),
            longest_holds_ns: [&self.order_hold, &self.map_hold, &self.versions_hold, &self.block_hold]
                .map(Longest::read),
            ..Default::default()
        }
    }
}
