//! A cell as the block layer saw it: the evidence beside the counters.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::machine::device_work::OwnWork;
use crate::machine::others::Parties;
use crate::trace::event::RequestKind;
use crate::trace::session::{Follow, Options, Session, Snoop};
use crate::trace::target::TraceTarget;
use crate::trace::users::Touches;
use crate::undo::Undo;

/// Counts of one direction from a trace that ran with a cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CellTrace {
    /// Requests of the kernel to the device for this process: one per piece of a request that
    /// the page cache or the file system cut.
    pub own_bios: u64,
    /// Their bytes.
    pub own_bio_bytes: u64,
    /// Requests the device got, from all programs.
    pub requests: u64,
    /// Their bytes.
    pub request_bytes: u64,
    /// Bios that were split, of all programs.
    pub splits: u64,
    /// Bios and requests that were merged, of all programs.
    pub merges: u64,
    /// Sizes of requests: bytes and how many.
    pub request_sizes: Vec<(u64, u64)>,
    /// Median time at the device (D2C), in ns.
    pub d2c_p50_ns: u64,
    /// Events the kernel lost.
    pub events_lost: u64,
}

/// All that a trace says of a cell.
pub struct CellTraced {
    /// Its counts, for the results.
    pub counts: CellTrace,
    /// The requests for this process.
    pub own: OwnWork,
    /// The requests by whom they were for.
    pub parties: Parties,
    /// Reasons to doubt the counts.
    pub doubts: Vec<String>,
}

/// Tracing around one cell.
pub struct Tracing {
    session: Session,
}

impl Tracing {
    /// Switches it on for the whole device; requests of this process are counted separately.
    pub fn start(path: &Path, undo: &Undo) -> Result<Tracing, LabError> {
        let options = Options {
            interval: Duration::from_secs(1),
            buffer_kb: 32 << 10,
            blktrace: None,
            requests: None,
            follow: Follow::Program,
            touches: Touches::WriteBack,
            snoop: Snoop::Silent,
        };
        let mut session = Session::start(TraceTarget::find(path)?, options, undo)?;
        session.follow(Some(std::process::id()))?;
        Ok(Tracing { session })
    }

    /// Switches it off, and counts.
    pub fn finish(self, write: bool) -> Result<CellTraced, LabError> {
        let traced = self.session.finish()?;
        let kind = if write { RequestKind::Write } else { RequestKind::Read };
        let counts = traced.tally.counts.get(&kind).copied().unwrap_or_default();
        let (own_bios, own_sectors) = traced.tally.ours.get(&kind).copied().unwrap_or_default();
        let sizes = traced.tally.sizes.iter().filter(|((of, _), (_, requests))| *of == kind && *requests > 0);
        let trace = CellTrace {
            own_bios,
            own_bio_bytes: own_sectors * 512,
            requests: counts.requests,
            request_bytes: counts.issued_sectors * 512,
            splits: counts.split,
            merges: counts.merged,
            request_sizes: sizes.map(|((_, sectors), n)| (u64::from(*sectors) * 512, n.1)).collect(),
            d2c_p50_ns: traced.tally.d2c.get(&kind).map_or(0, |all| all.summary().p50_ns),
            events_lost: traced.lost,
        };
        let doubts = if traced.lost > 0 { traced.doubts() } else { Vec::new() };
        let done = |kind| traced.tally.own.get(&kind).copied().unwrap_or_default();
        let (reads, writes) = (done(RequestKind::Read), done(RequestKind::Write));
        let own = OwnWork {
            reads: reads.requests,
            read_bytes: reads.bytes,
            writes: writes.requests,
            write_bytes: writes.bytes,
        };
        Ok(CellTraced { counts: trace, own, parties: traced.users.parties, doubts })
    }
}
