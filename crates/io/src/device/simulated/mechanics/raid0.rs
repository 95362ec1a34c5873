//! A RAID 0: a request is cut at the borders of chunks, and each piece goes to the member that
//! has it.
//!
//! Chunk `c` is the `c div n`-th chunk of member `c mod n`. Pieces of one request that lie next
//! to each other on a member are one request there, as the kernel's md makes of them. The
//! request is over with its last piece. A flush goes to all members.

use std::collections::HashMap;

use crate::device::simulated::mechanics::Mechanics;
use crate::device::timed::{Transfer, TransferKind};

pub(crate) struct Raid0 {
    members: Vec<Box<dyn Mechanics>>,
    chunk_bytes: u64,
    /// By number: whose piece it is.
    pieces: Vec<Option<usize>>,
    free: Vec<usize>,
    /// Of requests: pieces that are not over.
    left: HashMap<usize, usize>,
}

impl Raid0 {
    /// An array of these members; there is at least one.
    pub(crate) fn new(members: Vec<Box<dyn Mechanics>>, chunk_bytes: u64) -> Raid0 {
        assert!(!members.is_empty() && chunk_bytes > 0, "an array has members, and chunks");
        Raid0 { members, chunk_bytes, pieces: Vec::new(), free: Vec::new(), left: HashMap::new() }
    }

    /// The pieces of a transfer, each with its member.
    fn cut(&self, transfer: &Transfer) -> Vec<(usize, Transfer)> {
        let n = self.members.len() as u64;
        if transfer.kind == TransferKind::Flush {
            return (0..self.members.len()).map(|member| (member, *transfer)).collect();
        }
        let end = transfer.offset.saturating_add(transfer.len);
        let last = end.saturating_sub(1).max(transfer.offset) / self.chunk_bytes;
        let first = transfer.offset / self.chunk_bytes;
        // Of each member the first chunk of the request there; all others follow it.
        let piece = |begin: u64| {
            let (member, at) = (begin % n, begin / n * self.chunk_bytes);
            let into = if begin == first { transfer.offset % self.chunk_bytes } else { 0 };
            let chunks = (last - begin) / n + 1;
            let behind = if (last - begin).is_multiple_of(n) {
                (last + 1).saturating_mul(self.chunk_bytes) - end
            } else {
                0
            };
            let len = (chunks * self.chunk_bytes).saturating_sub(into + behind);
            (member as usize, Transfer { offset: at + into, len, kind: transfer.kind })
        };
        (first..=last.min(first + n - 1)).map(piece).collect()
    }

    fn keep(&mut self, id: usize) -> usize {
        let piece = self.free.pop().unwrap_or_else(|| {
            self.pieces.push(None);
            self.pieces.len() - 1
        });
        self.pieces[piece] = Some(id);
        piece
    }

    /// Notes that a piece is over; returns its request, if that is over with it.
    fn ended(&mut self, piece: usize) -> Option<usize> {
        let id = self.pieces[piece].take().expect("members name what is outstanding");
        self.free.push(piece);
        let left = self.left.get_mut(&id).expect("a request with a piece is outstanding");
        *left -= 1;
        if *left > 0 {
            return None;
        }
        self.left.remove(&id);
        Some(id)
    }
}

impl Mechanics for Raid0 {
    fn arrive(&mut self, id: usize, transfer: Transfer, now_ns: u64) {
        let pieces = self.cut(&transfer);
        self.left.insert(id, pieces.len());
        for (member, part) in pieces {
            let piece = self.keep(id);
            self.members[member].arrive(piece, part, now_ns);
        }
    }

    fn parts(&self, transfer: &Transfer) -> u64 {
        self.cut(transfer).len() as u64
    }

    fn next_due(&self) -> Option<u64> {
        self.members.iter().filter_map(|member| member.next_due()).min()
    }

    fn pop_due(&mut self, now_ns: u64) -> Option<(usize, u64)> {
        loop {
            let next = self.members.iter().enumerate();
            let next = next.filter_map(|(i, member)| Some((member.next_due()?, i))).min();
            let (due, member) = next.filter(|(due, _)| *due <= now_ns)?;
            // Without a piece, something inside the member has happened.
            let Some((piece, over)) = self.members[member].pop_due(due) else { continue };
            if let Some(id) = self.ended(piece) {
                return Some((id, over));
            }
        }
    }

    fn rest(&mut self) {
        self.members.iter_mut().for_each(|member| member.rest());
    }

    fn spend_credits(&mut self, now_ns: u64) {
        self.members.iter_mut().for_each(|member| member.spend_credits(now_ns));
    }

    fn credits(&self, now_ns: u64) -> Option<f64> {
        self.members.iter().filter_map(|member| member.credits(now_ns)).reduce(f64::min)
    }
}

#[cfg(test)]
mod tests {
    use snowmelt_base::random::Random;

    use super::*;
    use crate::device::simulated::model::{DeviceModel, RaidModel};

    const CHUNK: u64 = 64 << 10;

    fn raid(of: DeviceModel, members: u32) -> DeviceModel {
        DeviceModel::Raid0(RaidModel { member: Box::new(of), members, chunk_bytes: CHUNK })
    }

    fn read(offset: u64, len: u64) -> Transfer {
        Transfer { offset, len, kind: TransferKind::Read }
    }

    fn cut(n: usize, offset: u64, len: u64) -> Vec<(usize, u64, u64)> {
        let members = (0..n).map(|_| DeviceModel::nvme().build().unwrap()).collect();
        let pieces = Raid0::new(members, CHUNK).cut(&read(offset, len));
        pieces.into_iter().map(|(member, t)| (member, t.offset, t.len)).collect()
    }

    #[test]
    fn requests_are_cut_at_the_borders_of_chunks() {
        assert_eq!(cut(4, 0, 8192), [(0, 0, 8192)]);
        assert_eq!(cut(4, CHUNK - 4096, 8192), [(0, CHUNK - 4096, 4096), (1, 0, 4096)]);
        assert_eq!(cut(4, 5 * CHUNK + 512, 1024), [(1, CHUNK + 512, 1024)]);
        assert_eq!(cut(2, 0, 4 * CHUNK), [(0, 0, 2 * CHUNK), (1, 0, 2 * CHUNK)]);
        // The fourth chunk begins in its middle and follows the first on the same member.
        assert_eq!(cut(3, CHUNK + 100, 3 * CHUNK), [(1, 100, CHUNK), (2, 0, CHUNK), (0, CHUNK, CHUNK)]);
    }

    #[test]
    fn pieces_beyond_the_first_are_splits() {
        use crate::device::simulated::activity::Activity;
        let array = raid(DeviceModel::nvme(), 4).build().unwrap();
        let mut activity = Activity::default();
        let requests = [read(0, 8192), read(CHUNK - 4096, 8192), read(0, 3 * CHUNK)];
        let flush = Transfer { kind: TransferKind::Flush, ..read(0, 0) };
        for transfer in requests.into_iter().chain([flush]) {
            activity.arrived(&transfer, array.parts(&transfer));
        }
        assert_eq!(activity.splits, 1 + 2);
    }

    #[test]
    fn reads_at_multiples_of_512_are_cut_as_often_as_chunks_end_in_them() {
        use crate::device::simulated::activity::Activity;
        let array = raid(DeviceModel::nvme(), 8).build().unwrap();
        let mut activity = Activity::default();
        for sector in 0..128 {
            let transfer = read(sector * 512, 8192);
            activity.arrived(&transfer, array.parts(&transfer));
        }
        assert_eq!((activity.reads, activity.member_reads), (128, 128 + 15));
        let single = DeviceModel::nvme().build().unwrap();
        assert_eq!(single.parts(&read(CHUNK - 512, 8192)), 1);
    }

    /// Against a model that goes byte range by byte range.
    #[test]
    fn pieces_are_the_chunks_put_together() {
        let mut random = Random(snowmelt_base::test_seed(11));
        for _ in 0..2000 {
            let n = 1 + random.below(5);
            let (offset, len) = (random.below(20 * CHUNK), 1 + random.below(12 * CHUNK));
            let mut naive: Vec<(usize, u64, u64)> = Vec::new();
            let mut at = offset;
            while at < offset + len {
                let chunk = at / CHUNK;
                let here = ((chunk + 1) * CHUNK).min(offset + len) - at;
                let (member, there) = ((chunk % n) as usize, chunk / n * CHUNK + at % CHUNK);
                match naive.iter_mut().find(|(m, begin, len)| *m == member && begin + len == there) {
                    Some(piece) => piece.2 += here,
                    None => naive.push((member, there, here)),
                }
                at += here;
            }
            assert_eq!(cut(n as usize, offset, len), naive, "{n} members, {len} bytes at {offset}");
        }
    }

    /// Keeps `depth` requests outstanding until `count` are over; seconds.
    fn run(model: &DeviceModel, depth: usize, count: usize, len: u64, next: impl Fn(u64) -> u64) -> f64 {
        let mut device = model.build().unwrap();
        let mut random = Random(3);
        let mut sent = 0;
        let mut over = Vec::new();
        let mut now = 0;
        while over.len() < count {
            while sent < count && sent - over.len() < depth {
                device.arrive(sent, read(next(random.word()) / len * len, len), now);
                sent += 1;
            }
            let due = device.next_due().expect("requests are outstanding");
            if let Some((id, at)) = device.pop_due(due) {
                assert!(at >= now && !over.contains(&id), "answered once, in order of time");
                over.push(id);
                now = at;
            }
        }
        assert_eq!(device.next_due(), None);
        now as f64 / 1e9
    }

    #[test]
    fn members_work_side_by_side() {
        let anywhere = |of: u64| move |random: u64| ((u128::from(random) * u128::from(of)) >> 64) as u64;
        let capacity = 1_000_000_000_000;
        let one = run(&DeviceModel::hdd(), 8, 400, 8192, anywhere(capacity));
        let four = run(&raid(DeviceModel::hdd(), 4), 32, 1600, 8192, anywhere(4 * capacity));
        assert!((0.9..1.15).contains(&(four / one)), "four times the reads in {four} s, not {one} s");
        // Long requests are four times as fast too, and a lone short one takes as long as ever.
        let (page, extent) = (8192, 16 << 20);
        let long = |model: &DeviceModel| run(model, 1, 50, extent, anywhere(capacity));
        let gain = long(&DeviceModel::hdd()) / long(&raid(DeviceModel::hdd(), 4));
        assert!((2.5..4.5).contains(&gain), "{gain} times");
        let alone = |model: &DeviceModel| run(model, 1, 400, page, anywhere(capacity));
        let ratio = alone(&raid(DeviceModel::hdd(), 4)) / alone(&DeviceModel::hdd());
        assert!((0.6..1.05).contains(&ratio), "{ratio}: seeks are shorter on four, turns are not");
    }

    #[test]
    fn a_flush_is_over_when_all_members_have_flushed() {
        let mut device = raid(DeviceModel::hdd_7200(), 3).build().unwrap();
        let write = Transfer { offset: CHUNK, len: 4096, kind: TransferKind::Write };
        device.arrive(0, write, 0);
        device.arrive(1, Transfer { offset: 0, len: 0, kind: TransferKind::Flush }, 0);
        let ids: Vec<usize> = (0..2).map(|_| device.pop_due(u64::MAX).unwrap().0).collect();
        assert_eq!(ids, [0, 1]);
        assert_eq!(device.pop_due(u64::MAX), None);
    }
}
