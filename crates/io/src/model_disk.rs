//! A disk with one arm.
//!
//! * Positioning = controller overhead + seek (min + (full − min)·√distance or through measured points, 0 within a cylinder) +
//!   the wait until the platter, which turns all the time, brings the first byte under the head.
//! * Sixteen zones of equal capacity, whose media rate falls linearly from the outermost to the innermost; tracks are
//!   skewed so that going on to the next track costs nothing.
//! * After a read the disk reads on into a segment of its buffer until the next request moves the arm. What is in a
//!   segment comes at the interface's rate; a request that continues where the disk still reads waits only for the media.
//! * Of the oldest `queue` requests it serves the one it reaches first, unless the oldest has waited too long among them. It knows no more
//!   of them: what is beyond waits in front of it.
//! * Without a write cache, writes go to the media. With one they are over when the cache has them; the arm writes them out when
//!   no read waits, or first of all while the cache is more than three quarters full (by turns with reads that have waited too
//!   long), choosing the nearest of the oldest `write_queue`. A flush is over when nothing is left to write out, and everything else waits for it.

use std::collections::VecDeque;

use crate::model::{DiskModel, Kind, Model, Transfer};
use crate::model_bounds::{self, ModelError};
use crate::write_cache::WriteCache;

const ZONES: u64 = 16;

pub(crate) struct Disk {
    turn_ns: f64,
    seek_min_ns: f64,
    seek_range_ns: f64,
    /// (square root of the share of the way, nanoseconds), when the curve goes through points.
    seek_points: Vec<(f64, f64)>,
    write_settle_ns: f64,
    capacity: u64,
    zones: Vec<Zone>,
    interface_ns_per_byte: f64,
    overhead_ns: f64,
    queue: usize,
    age_limit_ns: u64,
    segments: usize,
    segment_bytes: u64,

    waiting: VecDeque<Waiting>,
    /// What the arm or the buffer does, and until when.
    serving: Option<(u64, Work)>,
    cache: Option<WriteCache>,
    /// The arm wrote out last: between an old request and an urgent cache it is the request's turn.
    wrote_out: bool,
    stream: Stream,
    /// Older segments: (first, end), the most recent last.
    buffered: VecDeque<(u64, u64)>,
}

struct Zone {
    start: u64,
    track_bytes: f64,
    ns_per_byte: f64,
    cylinder_bytes: u64,
}

struct Waiting {
    id: usize,
    transfer: Transfer,
    /// At the disk: when it became one of the oldest `queue`. Of those beyond, when they came to wait in front of it.
    arrived: u64,
}

#[derive(Clone, Copy)]
enum Work {
    Request(usize),
    /// A cached write goes to the media.
    WriteOut,
}

/// Where the arm is and what it reads by itself.
#[derive(Clone, Copy)]
struct Stream {
    first: u64,
    /// The head passed this offset at `since`.
    at: u64,
    since: u64,
    /// It reads no further than this.
    limit: u64,
}

/// How a request would be served.
enum Way {
    Buffered,
    Continued,
    Positioned,
}

impl Disk {
    pub(crate) fn new(d: &DiskModel) -> Result<Disk, ModelError> {
        model_bounds::check_disk(d)?;
        let turn_ns = 60e9 / f64::from(d.rpm);
        let zone = |z: u64| {
            let inward = z as f64 / (ZONES - 1) as f64;
            let rate = d.outer_bytes_per_s + (d.inner_bytes_per_s - d.outer_bytes_per_s) * inward;
            let track_bytes = (rate * turn_ns / 1e9).max(512.0);
            let cylinder_bytes = (track_bytes * f64::from(d.heads)) as u64;
            Zone { start: d.capacity_bytes / ZONES * z, track_bytes, ns_per_byte: 1e9 / rate, cylinder_bytes }
        };
        Ok(Disk {
            turn_ns,
            seek_min_ns: d.seek_min_ms * 1e6,
            seek_range_ns: (d.seek_full_ms - d.seek_min_ms) * 1e6,
            seek_points: d.seek_points.iter().map(|&(way, ms)| (way.sqrt(), ms * 1e6)).collect(),
            write_settle_ns: d.write_settle_ms * 1e6,
            capacity: d.capacity_bytes,
            zones: (0..ZONES).map(zone).collect(),
            interface_ns_per_byte: 1e9 / d.interface_bytes_per_s,
            overhead_ns: d.overhead_us * 1e3,
            queue: d.queue,
            age_limit_ns: (d.age_limit_ms * 1e6) as u64,
            segments: d.segments,
            segment_bytes: d.segment_bytes,
            waiting: VecDeque::new(),
            serving: None,
            cache: (d.write_cache_bytes > 0).then(|| WriteCache::new(d)),
            stream: Stream { first: 0, at: 0, since: 0, limit: 0 },
            buffered: VecDeque::new(),
            wrote_out: false,
        })
    }

    /// Beyond the capacity the innermost zone goes on.
    fn zone(&self, offset: u64) -> &Zone {
        let z = (offset / (self.capacity / ZONES).max(1)).min(ZONES - 1);
        &self.zones[z as usize]
    }

    fn seek_ns(&self, from: u64, to: u64) -> f64 {
        let zone = self.zone(to);
        let cylinder = |offset: u64| (offset.saturating_sub(zone.start)) / zone.cylinder_bytes;
        if from >= zone.start && cylinder(from) == cylinder(to) {
            return 0.0;
        }
        let root = (from.abs_diff(to) as f64 / self.capacity as f64).min(1.0).sqrt();
        let above = self.seek_points.partition_point(|&(at, _)| at < root);
        match (above.checked_sub(1).map(|i| self.seek_points[i]), self.seek_points.get(above)) {
            (None, None) => self.seek_min_ns + self.seek_range_ns * root,
            (Some((_, ns)), None) | (None, Some(&(_, ns))) => ns,
            (Some((a, low)), Some(&(b, high))) => low + (high - low) * (root - a) / (b - a),
        }
    }

    /// Wait, from `now` on, until the first byte of `offset` comes under the head.
    fn turn_wait_ns(&self, offset: u64, now: f64) -> f64 {
        let zone = self.zone(offset);
        let tracks = (offset - zone.start) as f64 / zone.track_bytes;
        let there = tracks - tracks.floor();
        let turns = now / self.turn_ns;
        let here = turns - turns.floor();
        (there - here).rem_euclid(1.0) * self.turn_ns
    }

    /// How far the disk has read by itself at `now`.
    fn read_up_to(&self, now: u64) -> u64 {
        let s = &self.stream;
        let bytes = now.saturating_sub(s.since) as f64 / self.zone(s.at).ns_per_byte;
        s.limit.min(s.at + bytes as u64)
    }

    /// How and when a request that is begun at `start` would be over.
    fn service(&self, transfer: &Transfer, start: u64) -> (Way, u64) {
        let end = transfer.offset + transfer.len;
        let from_buffer = self.overhead_ns + transfer.len as f64 * self.interface_ns_per_byte;
        let ns_per_byte = self.zone(transfer.offset).ns_per_byte;
        let reached = self.read_up_to(start);
        if transfer.kind == Kind::Flush {
            return (Way::Buffered, start + self.overhead_ns as u64);
        }
        if transfer.kind == Kind::Read {
            let inside = |first: u64, up_to: u64| transfer.offset >= first && end <= up_to;
            if inside(self.stream.first, reached)
                || self.buffered.iter().any(|&(first, up_to)| inside(first, up_to))
                || self.cache.as_ref().is_some_and(|cache| cache.holds(transfer))
            {
                return (Way::Buffered, start + from_buffer as u64);
            }
            if transfer.offset >= self.stream.first
                && transfer.offset <= reached
                && reached < self.stream.limit
            {
                let media = (end - reached) as f64 * ns_per_byte;
                return (Way::Continued, start + media.max(from_buffer) as u64);
            }
        }
        (Way::Positioned, self.positioned(transfer, start, self.overhead_ns))
    }

    /// When the arm, sent off at `start`, has moved the bytes.
    fn positioned(&self, transfer: &Transfer, start: u64, overhead_ns: f64) -> u64 {
        let seek_ns = self.seek_ns(self.read_up_to(start), transfer.offset);
        let settle_ns =
            if transfer.kind == Kind::Write && seek_ns > 0.0 { self.write_settle_ns } else { 0.0 };
        let there = start as f64 + overhead_ns + seek_ns + settle_ns;
        let wait = self.turn_wait_ns(transfer.offset, there);
        (there + wait + transfer.len as f64 * self.zone(transfer.offset).ns_per_byte) as u64
    }

    /// Begins the best request at `free`, or when the first arrives if none has by then.
    fn begin_next(&mut self, free: u64) {
        if self.write_out(free) {
            return;
        }
        let Some(oldest) = self.waiting.front() else { return };
        let start = free.max(oldest.arrived);
        let too_old = start - oldest.arrived > self.age_limit_ns;
        let candidates = if too_old { 1 } else { self.queue };
        let arrived = self.waiting.iter().take(candidates).take_while(|w| w.arrived <= start).enumerate();
        let services = arrived.map(|(i, w)| (i, self.service(&w.transfer, start)));
        let (chosen, (way, over)) =
            services.min_by_key(|(_, (_, over))| *over).expect("the oldest has arrived");
        let waiting = self.waiting.remove(chosen).expect("it was just looked at");
        if let Some(next) = self.waiting.get_mut(self.queue - 1) {
            next.arrived = next.arrived.max(start); // there is room for it only now
        }
        self.move_to(&waiting.transfer, &way, start, over);
        self.serving = Some((over, Work::Request(waiting.id)));
        self.wrote_out = false;
    }

    fn end_write_out(&mut self, over: u64) {
        self.serving = None;
        self.cache.as_mut().expect("what is written out was cached").written_out(over);
        self.begin_next(over);
    }

    /// Begins to write a cached write out at `free`, if that is what the arm should do.
    fn write_out(&mut self, free: u64) -> bool {
        let Some(cache) = &self.cache else { return false };
        let oldest = self.waiting.front();
        let idle = oldest.is_none_or(|oldest| oldest.arrived > free);
        let too_old = oldest.is_some_and(|oldest| free.saturating_sub(oldest.arrived) > self.age_limit_ns);
        if !idle && (!cache.is_urgent() || (too_old && self.wrote_out)) {
            return false;
        }
        let costs = cache.candidates().map(|(i, one)| (i, *one, self.positioned(one, free, 0.0)));
        let Some((chosen, one, over)) = costs.min_by_key(|(_, _, over)| *over) else { return false };
        self.cache.as_mut().expect("looked at").take(chosen);
        self.move_to(&one, &Way::Positioned, free, over);
        self.serving = Some((over, Work::WriteOut));
        self.wrote_out = true;
        true
    }

    fn move_to(&mut self, transfer: &Transfer, way: &Way, start: u64, over: u64) {
        let end = transfer.offset + transfer.len;
        let read_on = |first| Stream { first, at: end, since: over, limit: end + self.segment_bytes };
        match way {
            Way::Buffered => {} // the arm goes on as it was
            Way::Continued => {
                let first = self.stream.first.max(end.saturating_sub(2 * self.segment_bytes));
                self.stream = read_on(first);
            }
            Way::Positioned if transfer.kind == Kind::Write => {
                self.buffered.retain(|&(first, up_to)| up_to <= transfer.offset || first >= end);
                self.stream = Stream { first: end, at: end, since: over, limit: end };
            }
            Way::Positioned => {
                let segment = (self.stream.first, self.read_up_to(start));
                if segment.1 > segment.0 {
                    self.buffered.push_back(segment);
                }
                while self.buffered.len() >= self.segments {
                    self.buffered.pop_front();
                }
                self.stream = read_on(transfer.offset);
            }
        }
    }
}

impl Model for Disk {
    fn arrive(&mut self, id: usize, transfer: Transfer, now_ns: u64) {
        while let Some((over, Work::WriteOut)) = self.serving.filter(|(over, _)| *over <= now_ns) {
            self.end_write_out(over);
        }
        match &mut self.cache {
            Some(cache) if transfer.kind != Kind::Read => cache.arrive(id, transfer, now_ns),
            _ => self.waiting.push_back(Waiting { id, transfer, arrived: now_ns }),
        }
        if self.serving.is_none() {
            self.begin_next(now_ns);
        }
    }

    fn next_due(&self) -> Option<u64> {
        let arm = self.serving.map(|(over, _)| over);
        arm.into_iter().chain(self.cache.as_ref().and_then(WriteCache::next_due)).min()
    }

    fn pop_due(&mut self, now_ns: u64) -> Option<(usize, u64)> {
        loop {
            let cached = self.cache.as_ref().and_then(WriteCache::next_due).unwrap_or(u64::MAX);
            match self.serving {
                Some((over, Work::WriteOut)) if over <= now_ns && over <= cached => self.end_write_out(over),
                Some((over, Work::Request(id))) if over <= now_ns && over <= cached => {
                    self.serving = None;
                    self.begin_next(over);
                    return Some((id, over));
                }
                _ => return self.cache.as_mut()?.pop_due(now_ns),
            }
        }
    }

    fn rest(&mut self) {
        self.buffered.clear();
        self.stream = Stream { first: self.stream.at, limit: self.stream.at, ..self.stream };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::DeviceModel;

    const PAGE: u64 = 8192;

    /// Keeps `depth` reads outstanding; nanoseconds until all are over.
    fn run(model: &DeviceModel, depth: usize, offsets: &[u64], len: u64) -> f64 {
        let mut disk = model.build().expect("in bounds");
        let read = |i: usize| Transfer { offset: offsets[i], len, kind: Kind::Read };
        let mut sent = depth.min(offsets.len());
        (0..sent).for_each(|i| disk.arrive(i, read(i), 0));
        let mut seen = vec![false; offsets.len()];
        let mut last = 0;
        for _ in offsets {
            let due = disk.next_due().expect("requests are outstanding");
            let (id, over) = disk.pop_due(due).expect("it is due");
            assert!(over >= last && !std::mem::replace(&mut seen[id], true));
            last = over;
            if sent < offsets.len() {
                disk.arrive(sent, read(sent), over);
                sent += 1;
            }
        }
        last as f64
    }

    fn random_offsets(n: usize, capacity: u64) -> Vec<u64> {
        let mut x = 1u64;
        let mut next = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            x >> 20
        };
        (0..n).map(|_| next() % (capacity / PAGE) * PAGE).collect()
    }

    #[test]
    fn random_reads_one_at_a_time_cost_seek_and_half_a_turn() {
        let offsets = random_offsets(5000, 1_000_000_000_000);
        let mean_ms = run(&DeviceModel::hdd(), 1, &offsets, PAGE) / 5000.0 / 1e6;
        let expected = 0.1 + 0.6 + 13.9 * 8.0 / 15.0 + 25.0 / 6.0 + 0.06;
        assert!((mean_ms / expected - 1.0).abs() < 0.02, "{mean_ms} ms, closed form {expected} ms");
    }

    #[test]
    fn a_queue_of_32_gains_what_real_disks_gain() {
        let offsets = random_offsets(5000, 1_000_000_000_000);
        let one = run(&DeviceModel::hdd(), 1, &offsets, PAGE);
        let many = run(&DeviceModel::hdd(), 32, &offsets, PAGE);
        assert!((1.6..2.8).contains(&(one / many)), "gain {}", one / many);
    }

    #[test]
    fn more_at_once_than_the_disk_takes_are_worth_no_less() {
        let offsets = random_offsets(5000, 1_000_000_000_000);
        let full = run(&DeviceModel::hdd(), 32, &offsets, PAGE);
        for depth in [64, 128, 1000] {
            let ratio = run(&DeviceModel::hdd(), depth, &offsets, PAGE) / full;
            assert!((0.97..1.03).contains(&ratio), "{depth} at once: {ratio} of the time of 32");
        }
    }

    #[test]
    fn sequential_reads_run_at_the_media_rate_of_their_zone() {
        let len = 64 << 10;
        for (start, rate) in [(0, 180e6), (999_000_000_000 / len * len, 90e6)] {
            let offsets: Vec<u64> = (0..4000).map(|i| start + i * len).collect();
            let ns = run(&DeviceModel::hdd(), 1, &offsets, len);
            let measured = (4000 * len) as f64 / ns * 1e9;
            assert!((measured / rate - 1.0).abs() < 0.02, "{measured} B/s, media {rate} B/s");
        }
    }

    #[test]
    fn the_buffer_answers_what_was_read_on_and_a_pause_lets_it_read_further() {
        let mut disk = DeviceModel::hdd().build().expect("in bounds");
        disk.arrive(0, Transfer { offset: 0, len: PAGE, kind: Kind::Read }, 0);
        let first = disk.next_due().unwrap();
        disk.pop_due(first);
        let later = first + 4_000_000; // 4 ms at 180 MB/s are 720 KB
        disk.arrive(1, Transfer { offset: 600_000 / PAGE * PAGE, len: PAGE, kind: Kind::Read }, later);
        let hit = disk.next_due().unwrap() - later;
        assert!(hit < 150_000, "{hit} ns from the buffer");
        disk.pop_due(u64::MAX);
        disk.arrive(2, Transfer { offset: 900_000_000, len: PAGE, kind: Kind::Read }, later + 1_000_000);
        disk.pop_due(u64::MAX);
        disk.arrive(3, Transfer { offset: PAGE, len: PAGE, kind: Kind::Read }, later + 40_000_000);
        let hit = disk.next_due().unwrap() - (later + 40_000_000);
        assert!(hit < 150_000, "{hit} ns from an older segment");
    }

    #[test]
    fn nobody_waits_for_ever_when_others_are_nearer() {
        let mut disk = DeviceModel::hdd().build().expect("in bounds");
        let mut now = 0;
        let near = random_offsets(100_000, 1_000_000_000);
        disk.arrive(0, Transfer { offset: near[0], len: PAGE, kind: Kind::Read }, 0);
        disk.arrive(usize::MAX, Transfer { offset: 990_000_000_000, len: PAGE, kind: Kind::Read }, 0);
        for (i, &offset) in near.iter().enumerate().skip(1) {
            disk.arrive(i, Transfer { offset, len: PAGE, kind: Kind::Read }, now);
            let (id, over) = disk.pop_due(u64::MAX).expect("busy");
            now = over;
            if id == usize::MAX {
                assert!(now < 600_000_000, "the far one waited {now} ns");
                return;
            }
        }
        panic!("the far one was never served");
    }

    /// Lets time pass until the next completion.
    fn finish(disk: &mut dyn Model) -> (usize, u64) {
        loop {
            let due = disk.next_due().expect("something is going on");
            if let Some(over) = disk.pop_due(due) {
                return over;
            }
        }
    }

    fn cached(bytes: u64) -> Box<dyn Model> {
        let disk = DiskModel { write_cache_bytes: bytes, ..DiskModel::default() };
        DeviceModel::Disk(disk).build().expect("in bounds")
    }

    #[test]
    fn cached_writes_are_quick_until_the_cache_is_full_and_a_flush_waits_for_all_of_them() {
        let mut disk = cached(64 * PAGE);
        let offsets = random_offsets(200, 1_000_000_000_000);
        let write = |i: usize| Transfer { offset: offsets[i], len: PAGE, kind: Kind::Write };
        let mut now = 0;
        for i in 0..60 {
            disk.arrive(i, write(i), now);
            let (id, over) = finish(&mut *disk);
            assert!(id == i && over - now < 200_000, "write {i} took {} ns", over - now);
            now = over;
        }
        let began = now;
        for i in 60..160 {
            disk.arrive(i, write(i), now);
            now = finish(&mut *disk).1;
        }
        let each_ms = (now - began) as f64 / 100.0 / 1e6;
        assert!((3.0..12.0).contains(&each_ms), "a full cache writes at the speed of the arm: {each_ms} ms");
        disk.arrive(1000, Transfer { offset: 0, len: 0, kind: Kind::Flush }, now);
        disk.arrive(1001, write(180), now);
        let (first, flushed) = finish(&mut *disk);
        assert_eq!(first, 1000, "the write waits for the flush");
        let flush_ms = (flushed - now) as f64 / 1e6;
        assert!((60.0 * 3.0..64.0 * 16.0).contains(&flush_ms), "{flush_ms} ms");
        assert_eq!(finish(&mut *disk).0, 1001);
        disk.arrive(1002, Transfer { offset: 0, len: 0, kind: Kind::Flush }, flushed + 1_000_000_000);
        let (_, over) = finish(&mut *disk);
        assert!(over - flushed - 1_000_000_000 < 200_000, "nothing was left to write out");
    }

    #[test]
    fn reads_find_what_the_cache_holds_and_go_before_writing_out() {
        let mut disk = cached(1000 * PAGE);
        for (i, offset) in random_offsets(50, 1_000_000_000_000).into_iter().enumerate() {
            disk.arrive(i, Transfer { offset, len: PAGE, kind: Kind::Write }, 0);
        }
        let mut now = 0;
        (0..50).for_each(|_| now = finish(&mut *disk).1);
        let held = random_offsets(50, 1_000_000_000_000)[49];
        for (i, offset) in [held, 500_000_000_000 / PAGE * PAGE].into_iter().enumerate() {
            disk.arrive(100 + i, Transfer { offset, len: PAGE, kind: Kind::Read }, now);
            let (_, over) = finish(&mut *disk);
            // At most one write-out was under way.
            let ms = (over - now) as f64 / 1e6;
            assert!(ms < if i == 0 { 24.0 } else { 48.0 }, "read {i} took {ms} ms");
            now = over;
        }
    }

    #[test]
    fn a_seek_curve_goes_through_its_points() {
        let DeviceModel::Disk(parameters) = DeviceModel::hdd_10k() else { unreachable!() };
        let disk = Disk::new(&parameters).expect("in bounds");
        for &(way, ms) in &parameters.seek_points {
            let from = 512 * 40_000;
            let to = from + (way * parameters.capacity_bytes as f64) as u64;
            if disk.seek_ns(from, to) > 0.0 {
                let is = disk.seek_ns(from, to) / 1e6;
                assert!((is - ms).abs() < 0.01, "{way} of the way: {is} ms, should be {ms} ms");
            }
        }
        assert!((disk.seek_ns(0, parameters.capacity_bytes) / 1e6 - 10.0).abs() < 0.01);
    }
}
