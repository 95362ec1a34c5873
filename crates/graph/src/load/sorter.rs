//! External sort of rows of N numbers, duplicates removed.
//!
//! 1. Any number of threads fill a [`Batch`] each; a full one is sorted and becomes a run.
//! 2. The runs are merged by a tournament: while the run in front stays ahead of the second it
//!    is copied without touching the tree, so runs that overlap little merge at copying speed.
//! 3. More runs than the fan-in are first merged to fewer, longer ones.
//!
//! The result is the sorted set of rows; it does not depend on which batch a row was in.

use std::sync::Arc;

use parking_lot::Mutex;

use super::runs::{Run, RunReader, RunStore, RunWriter};
use crate::input::error::LoadError;

/// Sorts rows of N columns that may not fit in memory.
#[derive(Debug)]
pub(super) struct Sorter<const N: usize> {
    store: Arc<RunStore>,
    runs: Mutex<Vec<Run>>,
    batch_rows: usize,
    fan_in: usize,
}

impl<const N: usize> Sorter<N> {
    /// Sorts batches of `batch_rows` rows, merges at most `fan_in` runs at once.
    pub(super) fn new(store: Arc<RunStore>, batch_rows: usize, fan_in: usize) -> Arc<Self> {
        assert!(batch_rows > 0 && fan_in > 1);
        Arc::new(Sorter { store, runs: Mutex::new(Vec::new()), batch_rows, fan_in })
    }

    /// An empty batch of this sorter.
    pub(super) fn batch(self: &Arc<Self>) -> Batch<N> {
        Batch { sorter: Arc::clone(self), rows: Vec::new() }
    }

    /// Merges all finished batches. Later batches belong to the next merge.
    pub(super) fn merge(&self) -> Result<Merge<N>, LoadError> {
        let mut runs = std::mem::take(&mut *self.runs.lock());
        while runs.len() > self.fan_in {
            // No more runs than needed: the rest then merges at once.
            let late = runs.split_off(self.fan_in.min(runs.len() - self.fan_in + 1));
            let mut merge = Merge::<N>::new(&self.store, runs)?;
            let mut writer = RunWriter::new(&self.store);
            let mut rows = Vec::new();
            while merge.next(&mut rows, self.batch_rows)? {
                writer.push(&rows)?;
                rows.clear();
            }
            runs = late;
            runs.push(writer.finish()?);
        }
        Merge::new(&self.store, runs)
    }

    fn add(&self, rows: &mut Vec<[u64; N]>) -> Result<(), LoadError> {
        if rows.is_empty() {
            return Ok(());
        }
        rows.sort_unstable();
        rows.dedup();
        debug_assert!(rows.is_sorted_by(|a, b| a < b), "a run ascends");
        let mut writer = RunWriter::new(&self.store);
        writer.push(rows)?;
        rows.clear();
        let run = writer.finish()?;
        self.runs.lock().push(run);
        Ok(())
    }
}

/// Rows of one thread on their way into a [`Sorter`].
#[derive(Debug)]
pub(super) struct Batch<const N: usize> {
    sorter: Arc<Sorter<N>>,
    rows: Vec<[u64; N]>,
}

impl<const N: usize> Batch<N> {
    /// Adds one row. A row that consists only of `u64::MAX` is not allowed.
    pub(super) fn push(&mut self, row: [u64; N]) -> Result<(), LoadError> {
        if self.rows.capacity() == 0 {
            self.rows.reserve_exact(self.sorter.batch_rows);
        }
        debug_assert!(row != ended(), "the row that ends a lane is none of the input");
        self.rows.push(row);
        if self.rows.len() == self.sorter.batch_rows {
            self.sorter.add(&mut self.rows)?;
        }
        Ok(())
    }

    /// Hands over the remaining rows.
    pub(super) fn finish(mut self) -> Result<(), LoadError> {
        self.sorter.add(&mut self.rows)
    }
}

/// The front of one run in a merge.
#[derive(Debug)]
struct Lane<const N: usize> {
    reader: RunReader<N>,
    block: Vec<[u64; N]>,
    at: usize,
}

/// Key of a lane that has ended: behind every row.
const fn ended<const N: usize>() -> [u64; N] {
    [u64::MAX; N]
}

/// A merge of sorted runs: rows in order, each once.
#[derive(Debug)]
pub(super) struct Merge<const N: usize> {
    lanes: Vec<Lane<N>>,
    /// First row of each lane.
    heads: Vec<[u64; N]>,
    /// Tournament: `losers[0]` is the winner, `losers[1..]` the loser of each inner match.
    losers: Vec<u32>,
    last: Option<[u64; N]>,
}

impl<const N: usize> Merge<N> {
    fn new(store: &RunStore, runs: Vec<Run>) -> Result<Self, LoadError> {
        let mut lanes = Vec::with_capacity(runs.len());
        let mut heads = Vec::with_capacity(runs.len());
        for run in runs {
            let mut lane = Lane { reader: RunReader::new(store, run)?, block: Vec::new(), at: 0 };
            lane.reader.next_block(&mut lane.block)?;
            heads.push(lane.block.first().copied().unwrap_or(ended()));
            lanes.push(lane);
        }
        let losers = tournament(&heads);
        Ok(Merge { lanes, heads, losers, last: None })
    }

    /// Appends up to `max` rows to `out`, in order, each distinct row once; false when there
    /// are none left.
    pub(super) fn next(&mut self, out: &mut Vec<[u64; N]>, max: usize) -> Result<bool, LoadError> {
        let start = out.len();
        while out.len() - start < max {
            let Some(&winner) = self.losers.first() else {
                break;
            };
            let winner = winner as usize;
            if self.heads[winner] == ended() {
                break;
            }
            let second = self.second(winner);
            self.copy(winner, &second, out, start + max)?;
            self.replay(winner);
        }
        Ok(out.len() > start)
    }

    /// Copies rows of lane `w` that are not behind `second`, at least one.
    fn copy(
        &mut self,
        w: usize,
        second: &[u64; N],
        out: &mut Vec<[u64; N]>,
        end: usize,
    ) -> Result<(), LoadError> {
        let lane = &mut self.lanes[w];
        loop {
            while let Some(row) = lane.block.get(lane.at) {
                if row > second || out.len() == end {
                    self.heads[w] = *row;
                    return Ok(());
                }
                if self.last.as_ref() != Some(row) {
                    debug_assert!(self.last.is_none_or(|last| last < *row), "a merge ascends");
                    out.push(*row);
                    self.last = Some(*row);
                }
                lane.at += 1;
            }
            lane.at = 0;
            if !lane.reader.next_block(&mut lane.block)? {
                self.heads[w] = ended();
                return Ok(());
            }
        }
    }

    /// The smallest head of the other lanes: it lost against the winner somewhere on its way
    /// up.
    fn second(&self, winner: usize) -> [u64; N] {
        let mut second = ended();
        let mut node = (winner + self.lanes.len()) / 2;
        while node > 0 {
            second = second.min(self.heads[self.losers[node] as usize]);
            node /= 2;
        }
        second
    }

    /// Plays lane `lane` up again after its head changed.
    fn replay(&mut self, lane: usize) {
        let mut winner = lane as u32;
        let mut node = (lane + self.lanes.len()) / 2;
        while node > 0 {
            let loser = &mut self.losers[node];
            if self.heads[*loser as usize] < self.heads[winner as usize] {
                std::mem::swap(loser, &mut winner);
            }
            node /= 2;
        }
        assert!((winner as usize) < self.lanes.len(), "a lane wins");
        self.losers[0] = winner;
    }
}

/// Plays the first round over all heads; leaf i is node k + i, the parent of a node is its
/// half.
fn tournament<const N: usize>(heads: &[[u64; N]]) -> Vec<u32> {
    let k = heads.len();
    let mut losers = vec![0; k];
    let mut winners = vec![0u32; 2 * k];
    for i in 0..k {
        winners[k + i] = i as u32;
    }
    for node in (1..k).rev() {
        let (a, b) = (winners[2 * node], winners[2 * node + 1]);
        let a_first = heads[a as usize] <= heads[b as usize];
        (winners[node], losers[node]) = if a_first { (a, b) } else { (b, a) };
    }
    if k > 0 {
        losers[0] = if k == 1 { 0 } else { winners[1] };
    }
    losers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::account::LoadMemory;
    use crate::load::temp::TempSpace;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn sorted(rows: &[[u64; 2]], memory: u64, batch_rows: usize, fan_in: usize, max: usize) -> Vec<[u64; 2]> {
        let db = tempfile::tempdir().unwrap();
        let space = TempSpace::create(db.path()).unwrap();
        let store = RunStore::new("test", &space, &LoadMemory::new(memory));
        let sorter = Sorter::<2>::new(store, batch_rows, fan_in);
        std::thread::scope(|s| {
            for part in rows.chunks(rows.len().div_ceil(3).max(1)) {
                let mut batch = sorter.batch();
                s.spawn(move || {
                    for row in part {
                        batch.push(*row).unwrap();
                    }
                    batch.finish().unwrap();
                });
            }
        });
        let mut merge = sorter.merge().unwrap();
        let mut got = Vec::new();
        let mut out = Vec::new();
        while merge.next(&mut out, max).unwrap() {
            assert!(out.len() <= max);
            got.append(&mut out);
        }
        got
    }

    proptest! {
        #[test]
        fn like_a_set(
            rows in prop::collection::vec(prop::array::uniform2(0u64..40), 0..600),
            memory in prop::sample::select(vec![0u64, 2000, 1 << 20]),
            batch in 1usize..90,
            fan_in in 2usize..9,
            max in 1usize..50,
        ) {
            let want: Vec<[u64; 2]> = rows.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
            prop_assert_eq!(sorted(&rows, memory, batch, fan_in, max), want);
        }
    }
}
