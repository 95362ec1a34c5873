//! Sums of a trace: counts as diskstats has them, latencies, sizes, depth, order, and
//! who asked.

use std::collections::BTreeMap;

use serde::Serialize;
use snowmelt_base::random::{GOLDEN, xorshift};

use super::event::{Action, BlockEvent, RequestKind};
use super::pairing::{Asker, Pairing, RequestDone};
use super::plugs::Plugs;
use super::users::{Users, trimmed};
use crate::machine::others::Moved;
use crate::stats::{Latencies, LatencySummary};

/// Error of a bio that was not to wait.
const AGAIN: i32 = -rustix::io::Errno::AGAIN.raw_os_error();

/// Counts of one kind of request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Bios the kernel asked for.
    pub queued: u64,
    /// Their sectors.
    pub queued_sectors: u64,
    /// Bios that were not to wait and would have had to, as io_uring's first attempts. The kernel
    /// asks for them again: they are counted once.
    pub refused: u64,
    /// Bios that were too long and split.
    pub split: u64,
    /// Bios and requests that joined another request.
    pub merged: u64,
    /// Requests given to the scheduler; 0 when it was not asked.
    pub inserted: u64,
    /// Requests issued to the device, again when it refused them.
    pub issued: u64,
    /// Requests issued, each counted once.
    pub requests: u64,
    /// Their sectors.
    pub issued_sectors: u64,
    /// Requests the device refused for now; each is issued again.
    pub requeued: u64,
    /// Bios that were over without a request, of devices that have none.
    pub bios_completed: u64,
    /// Requests completed, and bios of devices without them.
    pub completed: u64,
    /// Sectors completed.
    pub completed_sectors: u64,
    /// Completed with an error.
    pub errors: u64,
}

/// How many bios and requests had a size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct AtSize {
    /// Size in bytes.
    pub bytes: u64,
    /// Bios: what the kernel asked.
    pub bios: u64,
    /// Requests: what the device got.
    pub requests: u64,
}

/// A second (or another interval) of the trace.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Interval {
    /// Its end, seconds since the beginning.
    pub end_s: f64,
    /// Completed reads per second.
    #[serde(rename = "r/s")]
    pub reads_per_s: f64,
    /// Completed writes per second.
    #[serde(rename = "w/s")]
    pub writes_per_s: f64,
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Bytes written per second.
    pub write_bytes_per_s: f64,
    /// Mean number of requests at the device.
    pub depth: f64,
    /// Most of them at once.
    pub depth_max: u32,
    /// From issue to completion.
    pub d2c: LatencySummary,
}

/// A request for the picture of offsets over time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dot {
    /// When it was issued, seconds since the beginning.
    pub at_s: f64,
    /// Where, in bytes.
    pub offset: f64,
    /// Its operation.
    pub kind: RequestKind,
}

/// Names of threads that are told apart.
const MOST_ASKERS: usize = 1000;

/// Requests kept for the picture.
const DOTS: usize = 6000;

/// The sum of a trace.
pub struct Tally {
    start_ns: u64,
    interval_ns: u64,
    /// Counts by kind, of all programs.
    pub counts: BTreeMap<RequestKind, Counts>,
    /// Bios by the traced program itself: count and sectors, by kind.
    pub ours: BTreeMap<RequestKind, (u64, u64)>,
    /// Requests that are over, of the traced program itself, by kind.
    pub own: BTreeMap<RequestKind, Moved>,
    /// Names and bios of who asked.
    pub askers: BTreeMap<String, u64>,
    /// By size in sectors, reads and writes: bios and requests.
    pub sizes: BTreeMap<(RequestKind, u32), (u64, u64)>,
    /// From the kernel's asking to the answer, by kind.
    pub q2c: BTreeMap<RequestKind, Latencies>,
    /// From the kernel's asking to the issue.
    pub q2d: BTreeMap<RequestKind, Latencies>,
    /// From issue to the answer.
    pub d2c: BTreeMap<RequestKind, Latencies>,
    /// Requests that begin where the one before ended.
    pub sequential: u64,
    /// Sum of the distances of all others, in sectors.
    pub seek_sectors: u64,
    /// All requests issued, with sectors.
    pub placed: u64,
    head: u64,
    pairing: Pairing,
    /// Requests held back and handed over together.
    pub plugs: Plugs,
    /// Finished intervals.
    pub intervals: Vec<Interval>,
    now: Accumulating,
    /// A fair sample of the requests issued.
    pub dots: Vec<Dot>,
    random: u64,
    depth_total: f64,
    last_ns: u64,
}

/// The interval being added up.
#[derive(Default)]
struct Accumulating {
    end_ns: u64,
    counted_to_ns: u64,
    reads: u64,
    writes: u64,
    read_sectors: u64,
    write_sectors: u64,
    depth_ns: f64,
    depth_max: u32,
    d2c: Latencies,
}

impl Tally {
    /// Begins at `start_ns` (CLOCK_MONOTONIC) with intervals of `interval_ns`.
    pub fn new(start_ns: u64, interval_ns: u64) -> Tally {
        Tally {
            start_ns,
            interval_ns,
            counts: BTreeMap::new(),
            ours: BTreeMap::new(),
            own: BTreeMap::new(),
            askers: BTreeMap::new(),
            sizes: BTreeMap::new(),
            q2c: BTreeMap::new(),
            q2d: BTreeMap::new(),
            d2c: BTreeMap::new(),
            sequential: 0,
            seek_sectors: 0,
            placed: 0,
            head: u64::MAX,
            pairing: Pairing::default(),
            plugs: Plugs::default(),
            intervals: Vec::new(),
            now: Accumulating {
                end_ns: start_ns + interval_ns,
                counted_to_ns: start_ns,
                ..Accumulating::default()
            },
            dots: Vec::new(),
            random: GOLDEN,
            depth_total: 0.0,
            last_ns: start_ns,
        }
    }

    /// Adds the next event in order of time. Returns the request that it completes, or the bio of
    /// a device without requests.
    pub fn add(&mut self, event: &BlockEvent, users: Option<&mut Users>) -> Option<RequestDone> {
        self.advance(event.time_ns);
        self.plugs.block(event);
        let counts = self.counts.entry(event.op.kind).or_default();
        let sectors = u64::from(event.sectors);
        match event.action {
            Action::Queue => {
                counts.queued += 1;
                counts.queued_sectors += sectors;
                self.queued(event, users);
            }
            Action::Split => counts.split += 1,
            Action::BackMerge | Action::FrontMerge | Action::RequestMerge => counts.merged += 1,
            Action::GetRequest => {}
            Action::Insert => counts.inserted += 1,
            Action::Requeue => {
                counts.requeued += 1;
                self.pairing.requeued(event);
            }
            Action::Issue => {
                counts.issued += 1;
                if self.pairing.issued(event) {
                    counts.requests += 1;
                    counts.issued_sectors += sectors;
                    self.got(event);
                }
                self.now.depth_max = self.now.depth_max.max(self.pairing.outstanding());
            }
            Action::Complete | Action::BioComplete => {
                let done = match event.action {
                    Action::Complete => self.completed(event),
                    _ => self.bio_completed(event),
                }?;
                if done.asker.is_some_and(|asker| asker.ours) {
                    self.own.entry(done.op.kind).or_default().add(done.sectors);
                }
                if let Some(users) = users {
                    users.done(&done);
                }
                return Some(done);
            }
        }
        None
    }

    fn queued(&mut self, event: &BlockEvent, users: Option<&mut Users>) {
        let unknown = Asker { pid: event.pid, ours: false, user: 0, comm: event.comm };
        let asker = users.map_or(unknown, |users| users.asker(event));
        if asker.ours {
            let sum = self.ours.entry(event.op.kind).or_default();
            *sum = (sum.0 + 1, sum.1 + u64::from(event.sectors));
        }
        let name = String::from_utf8_lossy(trimmed(&event.comm));
        let has_room = self.askers.len() < MOST_ASKERS;
        match self.askers.get_mut(name.as_ref()) {
            Some(n) => *n += 1,
            None if has_room => drop(self.askers.insert(name.into_owned(), 1)),
            None => *self.askers.entry("other threads".into()).or_default() += 1,
        }
        if event.sectors > 0 {
            self.sizes.entry((event.op.kind, event.sectors)).or_default().0 += 1;
        }
        self.pairing.queued(event, asker);
    }

    /// The device gets a request it did not refuse before.
    fn got(&mut self, event: &BlockEvent) {
        if event.sectors == 0 {
            return;
        }
        self.sizes.entry((event.op.kind, event.sectors)).or_default().1 += 1;
        self.placed += 1;
        match event.sector.abs_diff(self.head) {
            0 => self.sequential += 1,
            _ if self.head == u64::MAX => {}
            distance => self.seek_sectors += distance,
        }
        self.head = event.sector + u64::from(event.sectors);
        self.sample(event);
    }

    /// Keeps each request with the same probability, however many there will be.
    fn sample(&mut self, event: &BlockEvent) {
        let dot = Dot {
            at_s: self.seconds(event.time_ns),
            offset: event.sector as f64 * 512.0,
            kind: event.op.kind,
        };
        if self.dots.len() < DOTS {
            self.dots.push(dot);
            return;
        }
        let place = xorshift(&mut self.random) % self.placed;
        if let Some(kept) = self.dots.get_mut(place as usize) {
            *kept = dot;
        }
    }

    fn completed(&mut self, event: &BlockEvent) -> Option<RequestDone> {
        let (q2c, q2d) = (&mut self.q2c, &mut self.q2d);
        let done = self.pairing.completed(event, &mut |bio| {
            let (queued, issued) = (bio.queued_ns, bio.issued_ns);
            q2c.entry(bio.op.kind).or_default().add(bio.completed_ns.saturating_sub(queued));
            if issued > 0 {
                q2d.entry(bio.op.kind).or_default().add(issued.saturating_sub(queued));
            }
        });
        self.count_sectors(event);
        let request = done?;
        self.count_one(event);
        if request.issued_ns > 0 {
            let ns = request.completed_ns.saturating_sub(request.issued_ns);
            self.d2c.entry(event.op.kind).or_default().add(ns);
            self.now.d2c.add(ns);
        }
        Some(request)
    }

    fn count_sectors(&mut self, event: &BlockEvent) {
        let sectors = u64::from(event.sectors);
        self.counts.entry(event.op.kind).or_default().completed_sectors += sectors;
        match event.op.kind {
            RequestKind::Read => self.now.read_sectors += sectors,
            RequestKind::Write => self.now.write_sectors += sectors,
            _ => {}
        }
    }

    fn count_one(&mut self, event: &BlockEvent) {
        let counts = self.counts.entry(event.op.kind).or_default();
        counts.completed += 1;
        counts.errors += u64::from(event.error != 0);
        match event.op.kind {
            RequestKind::Read => self.now.reads += 1,
            RequestKind::Write => self.now.writes += 1,
            _ => {}
        }
    }

    fn bio_completed(&mut self, event: &BlockEvent) -> Option<RequestDone> {
        if event.error == AGAIN {
            self.bio_refused(event);
            return None;
        }
        let (q2c, mut over) = (&mut self.q2c, None);
        self.pairing.bio_completed(event, &mut |bio| {
            q2c.entry(bio.op.kind).or_default().add(bio.completed_ns.saturating_sub(bio.queued_ns));
            over = Some(RequestDone {
                sector: bio.sector,
                sectors: bio.sectors,
                op: bio.op,
                queued_ns: bio.queued_ns,
                issued_ns: 0,
                completed_ns: bio.completed_ns,
                asker: Some(bio.asker),
                error: event.error,
            });
        });
        let has_requests = self.has_requests();
        let counts = self.counts.entry(event.op.kind).or_default();
        counts.bios_completed += 1;
        if has_requests {
            // It failed before it became one: diskstats does not count it.
            counts.errors += u64::from(event.error != 0);
            return None;
        }
        self.count_sectors(event);
        self.count_one(event);
        over
    }

    /// Takes the bio out of the counts: it will be asked for again.
    fn bio_refused(&mut self, event: &BlockEvent) {
        let (kind, sectors) = (event.op.kind, u64::from(event.sectors));
        let counts = self.counts.entry(kind).or_default();
        counts.refused += 1;
        counts.queued = counts.queued.saturating_sub(1);
        counts.queued_sectors = counts.queued_sectors.saturating_sub(sectors);
        if let Some(at_size) = self.sizes.get_mut(&(kind, event.sectors)) {
            at_size.0 = at_size.0.saturating_sub(1);
        }
        let asker = self.pairing.bio_refused(event);
        if let Some(sum) = asker.filter(|asker| asker.ours).and_then(|_| self.ours.get_mut(&kind)) {
            *sum = (sum.0.saturating_sub(1), sum.1.saturating_sub(sectors));
        }
    }

    /// False for a device that takes bios without making requests of them, by the events so far.
    pub fn has_requests(&self) -> bool {
        self.counts.values().any(|counts| counts.issued > 0)
    }

    /// Advances the time: weighs the depth by its duration, ends the intervals that are over.
    fn advance(&mut self, to_ns: u64) {
        while to_ns >= self.now.end_ns {
            let end = self.now.end_ns;
            self.weigh_depth(end);
            self.end_interval(end);
        }
        self.weigh_depth(to_ns);
        self.last_ns = self.last_ns.max(to_ns);
    }

    fn weigh_depth(&mut self, to_ns: u64) {
        let ns = to_ns.saturating_sub(self.now.counted_to_ns) as f64;
        self.now.depth_ns += ns * f64::from(self.pairing.outstanding());
        self.now.counted_to_ns = self.now.counted_to_ns.max(to_ns);
    }

    fn end_interval(&mut self, end_ns: u64) {
        let begin_ns = (end_ns - self.interval_ns.min(end_ns)).max(self.start_ns);
        let length_s = (self.now.end_ns.min(end_ns) - begin_ns).max(1) as f64 / 1e9;
        let next = Accumulating {
            end_ns: end_ns + self.interval_ns,
            counted_to_ns: end_ns,
            depth_max: self.pairing.outstanding(),
            ..Accumulating::default()
        };
        let past = std::mem::replace(&mut self.now, next);
        self.depth_total += past.depth_ns;
        self.intervals.push(Interval {
            end_s: self.seconds(end_ns),
            reads_per_s: past.reads as f64 / length_s,
            writes_per_s: past.writes as f64 / length_s,
            read_bytes_per_s: past.read_sectors as f64 * 512.0 / length_s,
            write_bytes_per_s: past.write_sectors as f64 * 512.0 / length_s,
            depth: past.depth_ns / 1e9 / length_s,
            depth_max: past.depth_max,
            d2c: past.d2c.summary(),
        });
    }

    /// The trace ends at `end_ns`.
    pub fn finish(&mut self, end_ns: u64) {
        self.advance(end_ns);
        let begin_ns = self.now.end_ns - self.interval_ns;
        if end_ns > begin_ns {
            // A last, shorter interval: scaled to its own length.
            let whole = self.interval_ns;
            self.interval_ns = end_ns - begin_ns;
            self.now.end_ns = end_ns;
            self.end_interval(end_ns);
            self.interval_ns = whole;
        }
        self.last_ns = end_ns;
    }

    fn seconds(&self, ns: u64) -> f64 {
        ns.saturating_sub(self.start_ns) as f64 / 1e9
    }

    /// Seconds traced.
    pub fn duration_s(&self) -> f64 {
        self.seconds(self.last_ns)
    }

    /// Mean number of requests at the device, over the whole trace.
    pub fn mean_depth(&self) -> f64 {
        let s = self.duration_s();
        if s > 0.0 { self.depth_total / 1e9 / s } else { 0.0 }
    }

    /// Requests that did not begin where the previous one ended. The first request does not count.
    pub fn apart(&self) -> u64 {
        self.placed.saturating_sub(self.sequential + 1)
    }

    /// Completions whose issue was before the trace.
    pub fn unmatched(&self) -> u64 {
        self.pairing.unmatched
    }

    /// Requests still at the device.
    pub fn outstanding(&self) -> u32 {
        self.pairing.outstanding()
    }

    /// Counts of a kind; zero when there was none.
    pub fn counts(&self, kind: RequestKind) -> Counts {
        self.counts.get(&kind).copied().unwrap_or_default()
    }

    /// Bios and requests by size.
    pub fn at_sizes(&self, kind: RequestKind) -> Vec<AtSize> {
        let of_kind = self.sizes.iter().filter(|((k, _), _)| *k == kind);
        let at_size = |((_, sectors), (bios, requests)): (&(RequestKind, u32), &(u64, u64))| AtSize {
            bytes: u64::from(*sectors) * 512,
            bios: *bios,
            requests: *requests,
        };
        of_kind.map(at_size).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::Operation;
    use super::super::family::Family;
    use super::super::users::Touches;
    use super::*;

    const BEGIN_NS: u64 = 7_000_000_000;

    fn event(action: Action, ms: u64, sector: u64, sectors: u32) -> BlockEvent {
        let op = Operation::parse(b"R");
        let mut comm = [0; 16];
        comm[..3].copy_from_slice(b"fio");
        let time_ns = BEGIN_NS + ms * 1_000_000;
        BlockEvent { time_ns, cpu: 0, action, op, sector, sectors, split_at: 0, pid: 5, error: 0, comm }
    }

    #[test]
    fn counts_depth_and_order_of_a_small_trace() {
        let mut tally = Tally::new(BEGIN_NS, 1_000_000_000);
        let mut users = Users::new(Some(Family::new(5, 0)), &[7], None, Touches::WriteBack);
        for (action, ms, sector, sectors) in [
            (Action::Queue, 0, 0, 8),
            (Action::Issue, 0, 0, 8),
            (Action::Queue, 0, 8, 8),
            (Action::Issue, 0, 8, 8),
            (Action::Complete, 500, 0, 8),
            (Action::Complete, 500, 8, 8),
            (Action::Queue, 1000, 1000, 16),
            (Action::Split, 1000, 1000, 0),
            (Action::Issue, 1000, 1000, 16),
            (Action::Complete, 1250, 1000, 16),
        ] {
            tally.add(&event(action, ms, sector, sectors), Some(&mut users));
        }
        tally.finish(BEGIN_NS + 1_500_000_000);
        let reads = tally.counts(RequestKind::Read);
        assert_eq!((reads.queued, reads.issued, reads.completed, reads.split), (3, 3, 3, 1));
        assert_eq!((reads.queued_sectors, reads.completed_sectors), (32, 32));
        assert_eq!((tally.sequential, tally.apart(), tally.seek_sectors, tally.placed), (1, 1, 984, 3));
        assert_eq!(tally.ours[&RequestKind::Read], (3, 32));
        assert_eq!(tally.own[&RequestKind::Read], Moved { requests: 3, bytes: 32 * 512 });
        assert_eq!(users.parties.own, users.parties.all());
        assert_eq!(tally.askers["fio"], 3);
        let depth: Vec<_> = tally.intervals.iter().map(|i| (i.end_s, i.depth, i.depth_max)).collect();
        assert_eq!(depth, [(1.0, 1.0, 2), (1.5, 0.5, 1)]);
        assert_eq!(tally.intervals[0].reads_per_s, 2.0);
        assert_eq!(tally.intervals[1].read_bytes_per_s, 16.0 * 512.0 / 0.5);
        assert!((tally.mean_depth() - 1.25 / 1.5).abs() < 1e-9);
        let sizes = tally.at_sizes(RequestKind::Read);
        assert_eq!(sizes[0], AtSize { bytes: 4096, bios: 2, requests: 2 });
        assert_eq!(tally.d2c[&RequestKind::Read].summary().count, 3);
    }

    #[test]
    fn threads_of_any_number_of_names_are_so_many_rows() {
        let mut tally = Tally::new(BEGIN_NS, 1_000_000_000);
        for n in 0..3 * MOST_ASKERS {
            let mut bio = event(Action::Queue, 0, 0, 8);
            bio.comm[..8].copy_from_slice(format!("t{n:07}").as_bytes());
            tally.add(&bio, None);
        }
        assert_eq!(tally.askers.len(), MOST_ASKERS + 1);
        assert_eq!(tally.askers.values().sum::<u64>(), 3 * MOST_ASKERS as u64);
    }

    #[test]
    fn a_request_refused_and_issued_again_is_one() {
        let mut tally = Tally::new(BEGIN_NS, 1_000_000_000);
        for (action, ms, sector, sectors) in [
            (Action::Requeue, 0, 40, 8), // issued before the trace began
            (Action::Issue, 0, 40, 8),
            (Action::Queue, 0, 0, 10),
            (Action::Issue, 0, 0, 8),
            (Action::Issue, 1, 8, 2),
            (Action::Requeue, 2, 8, 2),
            (Action::Complete, 3, 0, 8),
            (Action::Issue, 4, 8, 2),
            (Action::Complete, 5, 8, 2),
        ] {
            tally.add(&event(action, ms, sector, sectors), None);
        }
        let reads = tally.counts(RequestKind::Read);
        assert_eq!((reads.issued, reads.requeued, reads.requests), (4, 2, 3));
        assert_eq!((reads.issued_sectors, reads.completed_sectors), (18, 10));
        let requests: Vec<_> =
            tally.at_sizes(RequestKind::Read).iter().map(|s| (s.bytes, s.requests)).collect();
        assert_eq!(requests, [(1024, 1), (4096, 2), (5120, 0)]);
        assert_eq!((tally.placed, tally.sequential), (3, 1));
        assert!(tally.d2c[&RequestKind::Read].summary().max_ns < 4_000_000);
    }

    #[test]
    fn a_bio_that_would_not_wait_and_is_asked_again_is_one() {
        let mut tally = Tally::new(BEGIN_NS, 1_000_000_000);
        let mut users = Users::new(Some(Family::new(5, 0)), &[7], None, Touches::WriteBack);
        for (action, ms, error) in [
            (Action::Queue, 0, 0),
            (Action::BioComplete, 1, AGAIN),
            (Action::Queue, 2, 0),
            (Action::Issue, 2, 0),
            (Action::Complete, 12, 0),
        ] {
            let event = BlockEvent { error, ..event(action, ms, 0, 2048) };
            tally.add(&event, Some(&mut users));
        }
        let reads = tally.counts(RequestKind::Read);
        assert_eq!((reads.queued, reads.refused, reads.completed, reads.errors), (1, 1, 1, 0));
        assert_eq!((reads.queued_sectors, reads.completed_sectors), (2048, 2048));
        assert_eq!(tally.ours[&RequestKind::Read], (1, 2048));
        let sizes = tally.at_sizes(RequestKind::Read);
        assert_eq!(sizes, [AtSize { bytes: 1 << 20, bios: 1, requests: 1 }]);
        let q2c = tally.q2c[&RequestKind::Read].summary();
        assert_eq!(q2c.count, 1);
        assert!(q2c.max_ns >= 9_000_000, "{q2c:?}");
    }

    #[test]
    fn a_pause_is_intervals_of_nothing() {
        let mut tally = Tally::new(BEGIN_NS, 1_000_000_000);
        tally.add(&event(Action::Issue, 100, 0, 8), None);
        tally.add(&event(Action::Complete, 3100, 0, 8), None);
        tally.finish(BEGIN_NS + 4_000_000_000);
        let depth: Vec<_> = tally.intervals.iter().map(|i| i.depth).collect();
        assert_eq!(depth.len(), 4);
        assert!(
            (depth[0] - 0.9).abs() < 1e-9 && depth[1] == 1.0 && (depth[3] - 0.1).abs() < 1e-9,
            "{depth:?}"
        );
    }
}
