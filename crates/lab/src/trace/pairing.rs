//! Pairs completions with requests, and requests with bios.
//!
//! * A request is known by its first sector and kind between D and C. A partial completion
//!   moves it forward. Two of the same place complete in order of issue.
//! * A bio is known by its range of sectors between Q and the C that covers its last part.
//!   However bios were merged or split on the way, a completion of n sectors completes n
//!   sectors of bios in its range, the oldest first.
//!
//! * A bio of a device without requests is known by its range between Q and its own completion.
//!
//! Requests issued before tracing began complete without an issue: they count as completed, but
//! have no times.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::event::{Action, BlockEvent, Operation, RequestKind};

/// A request that is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestDone {
    /// First sector, as issued.
    pub sector: u64,
    /// Sectors, as issued.
    pub sectors: u32,
    /// Its operation.
    pub op: Operation,
    /// When its first bio was queued; 0 when that was before tracing began.
    pub queued_ns: u64,
    /// When it was issued; 0 when that was before tracing began, or of a bio without a request.
    pub issued_ns: u64,
    /// When the device answered for the last of it.
    pub completed_ns: u64,
    /// The program that asked for its first bio, when that was seen.
    pub asker: Option<Asker>,
    /// An error number, or 0.
    pub error: i32,
}

impl RequestDone {
    /// Time at the device; of a bio without a request, since it was queued. Nothing for what
    /// began before the trace.
    pub fn device_ns(&self) -> Option<u64> {
        let from = if self.issued_ns > 0 { self.issued_ns } else { self.queued_ns };
        (from > 0).then(|| self.completed_ns.saturating_sub(from))
    }

    /// Time before it was issued; nothing when that is not known.
    pub fn queue_ns(&self) -> Option<u64> {
        let known = self.queued_ns > 0 && self.issued_ns > 0;
        known.then(|| self.issued_ns.saturating_sub(self.queued_ns))
    }
}

/// A bio that is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BioDone {
    /// When the kernel asked.
    pub queued_ns: u64,
    /// When the (last) request that carried it was issued; 0 when unknown.
    pub issued_ns: u64,
    /// When its last part was answered.
    pub completed_ns: u64,
    /// Its operation.
    pub op: Operation,
    /// Its first sector.
    pub sector: u64,
    /// Its sectors.
    pub sectors: u32,
    /// The program that asked.
    pub asker: Asker,
}

/// The program that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker {
    /// The thread.
    pub pid: u32,
    /// It is done for the program that is traced.
    pub ours: bool,
    /// Place among the [`Users`](super::users::Users).
    pub user: usize,
    /// Name of the thread.
    pub comm: [u8; 16],
}

#[derive(Debug, Clone, Copy)]
struct Issued {
    sector: u64,
    sectors: u32,
    left: u32,
    op: Operation,
    issued_ns: u64,
    /// Of the first of its bios that is over.
    asker: Option<Asker>,
    queued_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Bio {
    sectors: u32,
    left: u32,
    queued_ns: u64,
    op: Operation,
    asker: Asker,
}

/// Requests under way.
#[derive(Default)]
pub struct Pairing {
    issued: HashMap<(u64, RequestKind), VecDeque<Issued>>,
    outstanding: u32,
    /// Requests the device refused for now, that were not issued again yet.
    refused: HashMap<(u64, RequestKind), u32>,
    /// By first sector.
    bios: BTreeMap<u64, VecDeque<Bio>>,
    /// Writes of nothing, which only flush: who asked for them, and when.
    empty: VecDeque<(Asker, u64)>,
    /// Longest bio seen: no bio that begins further back reaches a sector.
    longest: u32,
    /// Completions whose issue was not seen.
    pub unmatched: u64,
}

impl Pairing {
    /// A bio is queued.
    pub fn queued(&mut self, event: &BlockEvent, asker: Asker) {
        if event.sectors == 0 {
            // A flush carries no sectors; its request is followed.
            if event.op.kind == RequestKind::Write {
                self.empty.push_back((asker, event.time_ns));
            }
            return;
        }
        self.longest = self.longest.max(event.sectors);
        let bio = Bio {
            sectors: event.sectors,
            left: event.sectors,
            queued_ns: event.time_ns,
            op: event.op,
            asker,
        };
        self.bios.entry(event.sector).or_default().push_back(bio);
    }

    /// A request is issued. False when it was before, and refused.
    pub fn issued(&mut self, event: &BlockEvent) -> bool {
        debug_assert_eq!(event.action, Action::Issue);
        let issued = Issued {
            sector: event.sector,
            sectors: event.sectors,
            left: event.sectors,
            op: event.op,
            issued_ns: event.time_ns,
            asker: None,
            queued_ns: 0,
        };
        self.outstanding += 1;
        let place = (event.sector, event.op.kind);
        self.issued.entry(place).or_default().push_back(issued);
        match self.refused.get_mut(&place) {
            None => true,
            Some(1) => self.refused.remove(&place).is_none(),
            Some(times) => {
                *times -= 1;
                false
            }
        }
    }

    /// A request that the device refused for now.
    pub fn requeued(&mut self, event: &BlockEvent) {
        if self.take(event).is_some() {
            self.outstanding -= 1;
            *self.refused.entry((event.sector, event.op.kind)).or_default() += 1;
        }
    }

    /// A completion, of all or a part of a request. `bio_done` hears of the bios that are over
    /// with it.
    pub fn completed(
        &mut self,
        event: &BlockEvent,
        bio_done: &mut dyn FnMut(BioDone),
    ) -> Option<RequestDone> {
        let found = self.take(event);
        let issued_ns = found.map_or(0, |issued| issued.issued_ns);
        let mut first = self.complete_bios(event, issued_ns, bio_done);
        if event.sectors == 0 && event.op.kind == RequestKind::Write {
            first = self.empty.pop_front();
        }
        let done = |issued: Issued| RequestDone {
            sector: issued.sector,
            sectors: issued.sectors,
            op: issued.op,
            queued_ns: issued.queued_ns,
            issued_ns: issued.issued_ns,
            completed_ns: event.time_ns,
            asker: issued.asker,
            error: event.error,
        };
        let Some(mut issued) = found else {
            // An empty write that only flushes is never issued itself: a flush request is, in
            // its place.
            self.unmatched += u64::from(event.sectors > 0);
            let (asker, queued_ns) = first.unzip();
            return Some(done(Issued {
                sector: event.sector,
                sectors: event.sectors,
                left: 0,
                op: event.op,
                issued_ns: 0,
                asker,
                queued_ns: queued_ns.unwrap_or(0),
            }));
        };
        if let (None, Some((asker, queued_ns))) = (issued.asker, first) {
            (issued.asker, issued.queued_ns) = (Some(asker), queued_ns);
        }
        if event.sectors < issued.left {
            issued.left -= event.sectors;
            let rest = event.sector + u64::from(event.sectors);
            self.issued.entry((rest, issued.op.kind)).or_default().push_front(issued);
            return None;
        }
        self.outstanding -= 1;
        Some(done(issued))
    }

    /// A completion of a bio that never was a request, or of a part that was split off.
    /// `bio_done` is called for each bio that it completes.
    pub fn bio_completed(&mut self, event: &BlockEvent, bio_done: &mut dyn FnMut(BioDone)) {
        debug_assert_eq!(event.action, Action::BioComplete);
        let asked = self.complete_bios(event, 0, bio_done);
        self.unmatched += u64::from(event.sectors > 0 && asked.is_none());
    }

    /// A bio ended without being carried out. Returns the thread that asked for it.
    pub fn bio_refused(&mut self, event: &BlockEvent) -> Option<Asker> {
        self.complete_bios(event, 0, &mut |_| {}).map(|(asker, _)| asker)
    }

    /// Requests issued and not completed.
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// The request of a place that an event tells of: of several the first of its length.
    fn take(&mut self, event: &BlockEvent) -> Option<Issued> {
        let place = (event.sector, event.op.kind);
        let queue = self.issued.get_mut(&place)?;
        let alike = queue.iter().position(|issued| issued.left == event.sectors);
        let taken = queue.remove(alike.unwrap_or(0));
        if queue.is_empty() {
            self.issued.remove(&place);
        }
        taken
    }

    /// Takes the sectors of a completion off the bios in its range; answers who asked for the
    /// first, and when.
    fn complete_bios(
        &mut self,
        event: &BlockEvent,
        issued_ns: u64,
        bio_done: &mut dyn FnMut(BioDone),
    ) -> Option<(Asker, u64)> {
        let (start, end) = (event.sector, event.sector + u64::from(event.sectors));
        let mut to_complete = event.sectors;
        let mut asked = None;
        let mut emptied = Vec::new();
        // One that is this request alone, although others read the same sectors now.
        let is_alone = |bio: &Bio| bio.op.kind == event.op.kind && bio.left == event.sectors;
        let alone = self.bios.get(&start).and_then(|queue| queue.iter().position(is_alone));
        let lowest = if alone.is_some() { start } else { start.saturating_sub(u64::from(self.longest)) };
        for (first, queue) in self.bios.range_mut(lowest..end) {
            let skipped = alone.unwrap_or(0);
            for bio in queue.iter_mut().skip(skipped).filter(|bio| bio.op.kind == event.op.kind) {
                let overlap = (first + u64::from(bio.sectors)).min(end).saturating_sub(start.max(*first));
                let part = (overlap as u32).min(bio.left).min(to_complete);
                if part == 0 {
                    continue;
                }
                asked.get_or_insert((bio.asker, bio.queued_ns));
                bio.left -= part;
                to_complete -= part;
                if bio.left == 0 {
                    bio_done(BioDone {
                        queued_ns: bio.queued_ns,
                        issued_ns,
                        completed_ns: event.time_ns,
                        op: bio.op,
                        sector: *first,
                        sectors: bio.sectors,
                        asker: bio.asker,
                    });
                }
            }
            queue.retain(|bio| bio.left > 0);
            if queue.is_empty() {
                emptied.push(*first);
            }
            if to_complete == 0 {
                break;
            }
        }
        for first in emptied {
            self.bios.remove(&first);
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use snowmelt_base::random::{GOLDEN, lcg};

    use super::*;

    const ASKER: Asker = Asker { pid: 7, ours: true, user: 0, comm: [0; 16] };

    fn event(action: Action, time_ns: u64, sector: u64, sectors: u32) -> BlockEvent {
        BlockEvent {
            time_ns,
            cpu: 0,
            action,
            op: Operation::parse(b"R"),
            sector,
            sectors,
            split_at: 0,
            pid: 7,
            error: 0,
            comm: [0; 16],
        }
    }

    /// Completes and answers the request, if it is over, and the Q2C times of the bios that
    /// are.
    fn complete(pairing: &mut Pairing, t: u64, sector: u64, sectors: u32) -> (Option<RequestDone>, Vec<u64>) {
        let mut bios = Vec::new();
        let mut heard = |bio: BioDone| bios.push(bio.completed_ns - bio.queued_ns);
        let done = pairing.completed(&event(Action::Complete, t, sector, sectors), &mut heard);
        (done, bios)
    }

    #[test]
    fn merged_bios_are_over_with_their_request() {
        let mut pairing = Pairing::default();
        pairing.queued(&event(Action::Queue, 10, 100, 8), ASKER);
        pairing.queued(&event(Action::Queue, 20, 108, 8), Asker { pid: 8, ours: false, ..ASKER });
        pairing.issued(&event(Action::Issue, 30, 100, 16));
        let (done, bios) = complete(&mut pairing, 50, 100, 16);
        let done = done.expect("over");
        assert_eq!((done.issued_ns, done.sectors, done.asker), (30, 16, Some(ASKER)));
        assert_eq!(bios, [40, 30]);
        assert_eq!(pairing.outstanding(), 0);
    }

    #[test]
    fn an_empty_write_has_the_one_that_asked() {
        let mut pairing = Pairing::default();
        let write = |action, t| BlockEvent { op: Operation::parse(b"FWS"), ..event(action, t, 0, 0) };
        pairing.queued(&write(Action::Queue, 10), ASKER);
        let done = pairing.completed(&write(Action::Complete, 30), &mut |_| {}).expect("over");
        assert_eq!((done.asker, done.queued_ns, pairing.unmatched), (Some(ASKER), 10, 0));
    }

    #[test]
    fn a_split_bio_is_over_with_its_last_part() {
        let mut pairing = Pairing::default();
        pairing.queued(&event(Action::Queue, 10, 100, 16), ASKER);
        pairing.issued(&event(Action::Issue, 20, 108, 8));
        pairing.issued(&event(Action::Issue, 21, 100, 8));
        let (done, bios) = complete(&mut pairing, 40, 108, 8);
        assert!(done.is_some() && bios.is_empty());
        let (done, bios) = complete(&mut pairing, 60, 100, 8);
        assert_eq!((done.expect("over").issued_ns, bios), (21, vec![50]));
    }

    #[test]
    fn partial_completions_move_a_request_forward() {
        let mut pairing = Pairing::default();
        pairing.queued(&event(Action::Queue, 10, 0, 32), ASKER);
        pairing.issued(&event(Action::Issue, 20, 0, 32));
        assert_eq!(complete(&mut pairing, 30, 0, 8), (None, vec![]));
        assert_eq!(complete(&mut pairing, 40, 8, 8), (None, vec![]));
        let (done, bios) = complete(&mut pairing, 50, 16, 16);
        let done = done.expect("over");
        assert_eq!((done.sector, done.sectors, done.issued_ns, bios), (0, 32, 20, vec![40]));
    }

    #[test]
    fn two_requests_of_one_place_complete_in_order() {
        let mut pairing = Pairing::default();
        for t in [10, 20] {
            pairing.queued(&event(Action::Queue, t, 64, 8), ASKER);
            pairing.issued(&event(Action::Issue, t + 1, 64, 8));
        }
        let (done, bios) = complete(&mut pairing, 30, 64, 8);
        assert_eq!((done.expect("over").issued_ns, bios), (11, vec![20]));
        let (done, bios) = complete(&mut pairing, 40, 64, 8);
        assert_eq!((done.expect("over").issued_ns, bios), (21, vec![20]));
    }

    /// Two programs read one place at a time, in other lengths: each request is its own program's,
    /// in whatever order they are issued and completed.
    #[test]
    fn requests_of_one_place_are_told_apart_by_length() {
        let other = Asker { pid: 8, ours: false, ..ASKER };
        for (second, order) in
            [64, 72].into_iter().flat_map(|second| (0..8).map(move |order| (second, order)))
        {
            let both = [(64, 16, ASKER), (second, 8, other)];
            let turned = |bit: u8| if order >> bit & 1 == 1 { [both[1], both[0]] } else { both };
            let mut pairing = Pairing::default();
            for (sector, sectors, asker) in turned(0) {
                pairing.queued(&event(Action::Queue, 10, sector, sectors), asker);
            }
            for (sector, sectors, _) in turned(1) {
                pairing.issued(&event(Action::Issue, 20, sector, sectors));
            }
            for (sector, sectors, asker) in turned(2) {
                let (done, bios) = complete(&mut pairing, 30, sector, sectors);
                let done = done.expect("over");
                let found = (done.sectors, done.asker, bios);
                assert_eq!(found, (sectors, Some(asker), vec![20]), "{second}, order {order}");
            }
            assert_eq!((pairing.outstanding(), pairing.unmatched), (0, 0));
        }
    }

    #[test]
    fn requests_from_before_and_refused_ones_are_told_apart() {
        let mut pairing = Pairing::default();
        assert_eq!(complete(&mut pairing, 30, 64, 8).0.expect("over").issued_ns, 0);
        assert_eq!((pairing.unmatched, pairing.outstanding()), (1, 0));
        assert!(pairing.issued(&event(Action::Issue, 40, 64, 8)));
        pairing.requeued(&event(Action::Requeue, 41, 64, 8));
        assert_eq!(pairing.outstanding(), 0);
        assert!(!pairing.issued(&event(Action::Issue, 50, 64, 8)));
        assert_eq!(complete(&mut pairing, 60, 64, 8).0.expect("over").issued_ns, 50);
    }

    #[test]
    fn bios_without_requests_are_over_by_themselves() {
        let mut pairing = Pairing::default();
        let complete = |pairing: &mut Pairing, t, sector, sectors| {
            let mut bios = Vec::new();
            let event = event(Action::BioComplete, t, sector, sectors);
            pairing.bio_completed(&event, &mut |bio| {
                bios.push((bio.completed_ns - bio.queued_ns, bio.issued_ns))
            });
            bios
        };
        pairing.queued(&event(Action::Queue, 10, 0, 16), ASKER);
        pairing.queued(&event(Action::Queue, 20, 16, 8), ASKER);
        assert_eq!(complete(&mut pairing, 30, 16, 8), [(10, 0)]);
        assert_eq!(complete(&mut pairing, 40, 0, 8), [], "a part of the first");
        assert_eq!(complete(&mut pairing, 50, 8, 8), [(40, 0)]);
        assert_eq!((pairing.unmatched, pairing.outstanding()), (0, 0));
        assert_eq!(complete(&mut pairing, 60, 8, 8), []);
        assert_eq!(pairing.unmatched, 1, "queued before the trace");
    }

    #[test]
    fn random_merges_and_splits_lose_nothing() {
        let seed = snowmelt_base::test_seed(3);
        let mut state = seed.wrapping_mul(GOLDEN) | 1;
        let mut random = |n: u64| (lcg(&mut state) >> 33) % n;
        for round in 0..200 {
            let mut pairing = Pairing::default();
            let (mut queued, mut at) = (0, 0);
            while at < 4096 {
                let sectors = (1 + random(64)).min(4096 - at) as u32;
                pairing.queued(&event(Action::Queue, 1, at, sectors), ASKER);
                (queued, at) = (queued + 1, at + u64::from(sectors));
            }
            let mut requests = Vec::new();
            let mut at = 0;
            while at < 4096 {
                let sectors = (1 + random(100)).min(4096 - at) as u32;
                pairing.issued(&event(Action::Issue, 2, at, sectors));
                requests.push((at, sectors));
                at += u64::from(sectors);
            }
            let mut over = 0;
            while !requests.is_empty() {
                let (sector, sectors) = requests.swap_remove(random(requests.len() as u64) as usize);
                over += complete(&mut pairing, 3, sector, sectors).1.len();
            }
            assert_eq!((over, pairing.outstanding()), (queued, 0), "seed {seed}, round {round}");
            assert!(pairing.bios.is_empty() && pairing.issued.is_empty(), "seed {seed}, round {round}");
        }
    }
}
