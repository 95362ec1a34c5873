//! A disk with one arm.
//!
//! * Positioning = controller overhead + seek (min + (full − min)·√distance or through measured
//!   points, 0 within a cylinder) + the wait until the platter, which turns all the time,
//!   brings the first byte under the head.
//! * Sixteen zones of equal capacity, whose media rate falls linearly from the outermost to the
//!   innermost; tracks are skewed so that going on to the next track costs nothing.
//! * After a read the disk reads on into a segment of its buffer until the next request moves
//!   the arm. What is in a segment comes at the interface's rate; a request that continues
//!   where the disk still reads waits only for the media.
//! * Of the oldest `queue` requests it serves the one it reaches first, unless the oldest has
//!   waited too long among them. It knows no more of them: what is beyond waits in front of it.
//! * Without a write cache, writes go to the media. With one they are over when the cache has
//!   them; the arm writes them out when no read waits, or first of all while the cache is more
//!   than three quarters full (by turns with reads that have waited too long), choosing the
//!   nearest of the oldest `write_queue`. A flush is over when nothing is left to write out,
//!   and everything else waits for it.

use std::collections::VecDeque;

use crate::device::simulated::mechanics::Mechanics;
use crate::device::simulated::mechanics::write_cache::WriteCache;
use crate::device::simulated::model::bounds::{self, ModelError};
use crate::device::simulated::model::parameters::DiskModel;
use crate::device::timed::{Transfer, TransferKind};

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
    /// The work of the arm or the buffer, and its end.
    serving: Option<(u64, Work)>,
    cache: Option<WriteCache>,
    /// The arm wrote out last: between an old request and an urgent cache it is the request's
    /// turn.
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
    /// At the disk: when it became one of the oldest `queue`. Of those beyond, when they came
    /// to wait in front of it.
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
enum Service {
    Buffered,
    Continued,
    Positioned,
}

impl Disk {
    pub(crate) fn new(d: &DiskModel) -> Result<Disk, ModelError> {
        bounds::check_disk(d)?;
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
    fn service(&self, transfer: &Transfer, start: u64) -> (Service, u64) {
        let end = transfer.offset + transfer.len;
        let from_buffer = self.overhead_ns + transfer.len as f64 * self.interface_ns_per_byte;
        let ns_per_byte = self.zone(transfer.offset).ns_per_byte;
        let reached = self.read_up_to(start);
        if transfer.kind == TransferKind::Flush {
            return (Service::Buffered, start + self.overhead_ns as u64);
        }
        if transfer.kind == TransferKind::Read {
            let inside = |first: u64, up_to: u64| transfer.offset >= first && end <= up_to;
            if inside(self.stream.first, reached)
                || self.buffered.iter().any(|&(first, up_to)| inside(first, up_to))
                || self.cache.as_ref().is_some_and(|cache| cache.holds(transfer))
            {
                return (Service::Buffered, start + from_buffer as u64);
            }
            if transfer.offset >= self.stream.first
                && transfer.offset <= reached
                && reached < self.stream.limit
            {
                let media = (end - reached) as f64 * ns_per_byte;
                return (Service::Continued, start + media.max(from_buffer) as u64);
            }
        }
        (Service::Positioned, self.positioned(transfer, start, self.overhead_ns))
    }

    /// When the arm, sent off at `start`, has moved the bytes.
    fn positioned(&self, transfer: &Transfer, start: u64, overhead_ns: f64) -> u64 {
        let seek_ns = self.seek_ns(self.read_up_to(start), transfer.offset);
        let settle_ns =
            if transfer.kind == TransferKind::Write && seek_ns > 0.0 { self.write_settle_ns } else { 0.0 };
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
        self.move_to(&one, &Service::Positioned, free, over);
        self.serving = Some((over, Work::WriteOut));
        self.wrote_out = true;
        true
    }

    fn move_to(&mut self, transfer: &Transfer, way: &Service, start: u64, over: u64) {
        let end = transfer.offset + transfer.len;
        let read_on = |first| Stream { first, at: end, since: over, limit: end + self.segment_bytes };
        match way {
            Service::Buffered => {} // the arm goes on as it was
            Service::Continued => {
                let first = self.stream.first.max(end.saturating_sub(2 * self.segment_bytes));
                self.stream = read_on(first);
            }
            Service::Positioned if transfer.kind == TransferKind::Write => {
                self.buffered.retain(|&(first, up_to)| up_to <= transfer.offset || first >= end);
                self.stream = Stream { first: end, at: end, since: over, limit: end };
            }
            Service::Positioned => {
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

impl Mechanics for Disk {
    fn arrive(&mut self, id: usize, transfer: Transfer, now_ns: u64) {
        while let Some((over, Work::WriteOut)) = self.serving.filter(|(over, _)| *over <= now_ns) {
            self.end_write_out(over);
        }
        match &mut self.cache {
            Some(cache) if transfer.kind != TransferKind::Read => cache.arrive(id, transfer, now_ns),
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
mod tests;
