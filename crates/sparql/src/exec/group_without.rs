//! Groups of a product without some of its pairs, which is never made:
//! `{ A . B FILTER NOT EXISTS { ?x … ?y } } GROUP BY` what A binds, aggregating what B binds.
//!
//! 1. B is grouped by ?y. The groups, the *parts*, are numbered as they come.
//! 2. Over the parts stands a tree: two parts that are neighbours are one of the level above, and
//!    so on up to one that is the whole of B.
//! 3. The pairs are gathered: for each ?x the numbers of the parts that it must not meet.
//! 4. These cut the parts into runs. A run is put together of few nodes of the tree, two of a level
//!    at most; all runs of an ?x together are what a row of A with that ?x meets.
//! 5. Each row of A adds this to the group of its keys, as often as the row counts. A row that
//!    meets no part is in no group.
//!
//! That takes a step for each pair and level, not one for each row of A and each row of B. Nothing
//! is ever subtracted from a total: that would be wrong for floats, for errors and for types.

use std::ops::Range;

use super::group::{Group, Groups, HOMELESS, products};
use super::rows::Queue;
use super::{Boxed, Operator, Result, Run};
use crate::aggregate::{Aggregate, MergedGroup};
use crate::bounds::Held;
use crate::exec::Batch;

pub(super) struct GroupWithout {
    /// of A
    pub left: Boxed,
    pub keys: Vec<usize>,
    pub weights: Vec<usize>,
    /// its column of ?x
    pub on: usize,
    /// B, grouped by ?y
    pub parts: Group,
    /// columns of ?x and ?y; a pair may come again
    pub pairs: Boxed,
    pub queue: Queue,
    pub is_over: bool,
}

/// Parts that values of ?x must not meet.
struct ForbiddenParts {
    /// values of ?x
    of: Groups,
    /// of each of them, where its parts begin in the list; then the end
    starts: Vec<usize>,
    /// ascending for each of them, each once
    parts: Vec<u32>,
}

/// Parts, and levels above them with half as many each: without a last one that has no neighbour.
struct Tree {
    levels: Vec<Level>,
}

struct Level {
    /// number of nodes
    len: usize,
    aggregates: Vec<Aggregate>,
}

/// Rows of B that values of ?x meet.
struct Met {
    /// by number of ?x, and one more: for those without pairs
    numbers: Vec<MetGroup>,
    len: usize,
    aggregates: Vec<Aggregate>,
    /// nodes of the tree by level, for the ?x at hand
    nodes: Vec<Vec<u32>>,
    /// nodes taken since the limits were checked
    steps: usize,
}

#[derive(Clone, Copy)]
enum MetGroup {
    NotYet,
    Nothing,
    Is(u32),
}

/// Nodes between two checks of the limits.
const STEPS_BETWEEN_CHECKS: usize = 1 << 16;

impl GroupWithout {
    fn run_inputs(&mut self, run: &mut Run) -> Result<()> {
        let mut held = run.memory.held();
        let (mut parts, tree) = self.tree(&mut held, run)?;
        let base = held.bytes();
        let mut pairs = self.pairs(&mut parts, base, &mut held, run)?;
        drop(parts);
        let mut met = Met {
            numbers: vec![MetGroup::NotYet; pairs.of.len() + 1],
            len: 0,
            aggregates: self.parts.states(run),
            nodes: vec![Vec::new(); tree.levels.len()],
            steps: 0,
        };
        let mut groups = Groups::new(self.keys.len(), self.parts.states(run));
        if self.keys.is_empty() {
            groups.one();
        }
        let base = held.bytes();
        while let Some(batch) = self.left.next(run)? {
            run.check()?;
            self.take(batch, &mut pairs, &tree, &mut met, &mut groups, run)?;
            let bytes = base + met.bytes() + groups.bytes();
            if bytes > held.bytes() {
                held.set(bytes, "group")?;
            }
        }
        let batch = groups.into_batch(self.parts.stored, run)?;
        self.queue.push_held(batch, held, run);
        Ok(())
    }

    /// B by ?y, and the tree over it.
    fn tree(&mut self, held: &mut Held, run: &mut Run) -> Result<(Groups, Tree)> {
        let mut parts = self.parts.groups(run);
        while let Some(batch) = self.parts.input.next(run)? {
            run.check()?;
            self.parts.take(&mut parts, batch, None, run)?;
            // the levels above take as much again
            let bytes = 2 * parts.bytes();
            if bytes > held.bytes() {
                held.set(bytes, "group")?;
            }
        }
        let mut below = Level { len: parts.len(), aggregates: std::mem::take(&mut parts.aggregates) };
        let mut tree = Tree { levels: Vec::new() };
        while below.len > 1 {
            run.check()?;
            let mut level = Level { len: below.len / 2, aggregates: self.parts.states(run) };
            for (aggregate, below) in level.aggregates.iter_mut().zip(&below.aggregates) {
                aggregate.resize(level.len);
                let children = (0..2 * level.len).map(|from| MergedGroup { to: from / 2, from, times: 1 });
                aggregate.merge(below, children, &run.terms)?;
            }
            tree.levels.push(std::mem::replace(&mut below, level));
        }
        tree.levels.push(below);
        let bytes = parts.bytes() + tree.bytes();
        held.set(bytes, "group")?;
        Ok((parts, tree))
    }

    fn pairs(
        &mut self,
        parts: &mut Groups,
        base: usize,
        held: &mut Held,
        run: &mut Run,
    ) -> Result<ForbiddenParts> {
        let mut of = Groups::new(1, Vec::new());
        let mut list: Vec<(u32, u32)> = Vec::new();
        while let Some(batch) = self.pairs.next(run)? {
            run.check()?;
            let of_parts = parts.number(&batch, &[1], false);
            let rows: Vec<u32> =
                (0..batch.rows as u32).filter(|r| of_parts[*r as usize] != HOMELESS).collect();
            let numbers = of.number(&batch.gather(&[0], &rows), &[0], true);
            list.extend(numbers.iter().zip(&rows).map(|(x, row)| (*x, of_parts[*row as usize])));
            let starts = (of.len() + 1) * size_of::<usize>();
            let bytes = base + of.bytes() + starts + list.capacity() * size_of::<(u32, u32)>();
            if bytes > held.bytes() {
                held.set(bytes, "group")?;
            }
        }
        list.sort_unstable();
        list.dedup();
        let mut starts = vec![0; of.len() + 1];
        for (x, _) in &list {
            starts[*x as usize + 1] += 1;
        }
        for x in 0..of.len() {
            starts[x + 1] += starts[x];
        }
        assert_eq!(starts[of.len()], list.len(), "each pair is of one value");
        Ok(ForbiddenParts { of, starts, parts: list.into_iter().map(|pair| pair.1).collect() })
    }

    /// Takes in rows of A.
    fn take(
        &self,
        mut batch: Batch,
        pairs: &mut ForbiddenParts,
        tree: &Tree,
        met: &mut Met,
        groups: &mut Groups,
        run: &Run,
    ) -> Result<()> {
        let numbers = pairs.of.number(&batch, &[self.on], false);
        let (mut rows, mut of_rows) = (Vec::new(), Vec::new());
        for (row, number) in numbers.into_iter().enumerate() {
            if let Some(of_row) = met.of(number, pairs, tree, run)? {
                rows.push(row as u32);
                of_rows.push(of_row as usize);
            }
        }
        batch.retain(&rows);
        let numbers = groups.number(&batch, &self.keys, true);
        let weights = products(&batch, &self.weights)?;
        let len = groups.len();
        for (aggregate, of) in groups.aggregates.iter_mut().zip(&met.aggregates) {
            aggregate.resize(len);
            let rows = numbers.iter().zip(&of_rows).zip(&weights);
            let rows =
                rows.map(|((to, from), times)| MergedGroup { to: *to as usize, from: *from, times: *times });
            aggregate.merge(of, rows, &run.terms)?;
        }
        Ok(())
    }
}

impl Met {
    /// The group of rows that an ?x meets, by its number; `None`: it meets none.
    fn of(&mut self, number: u32, pairs: &ForbiddenParts, tree: &Tree, run: &Run) -> Result<Option<u32>> {
        let (at, without) = if number == HOMELESS {
            (pairs.of.len(), 0..0)
        } else {
            (number as usize, pairs.starts[number as usize]..pairs.starts[number as usize + 1])
        };
        match self.numbers[at] {
            MetGroup::Is(group) => return Ok(Some(group)),
            MetGroup::Nothing => return Ok(None),
            MetGroup::NotYet => {}
        }
        let without = &pairs.parts[without];
        if without.len() == tree.parts() {
            self.numbers[at] = MetGroup::Nothing;
            return Ok(None);
        }
        let group = self.add(without, tree, run)?;
        self.numbers[at] = MetGroup::Is(group);
        Ok(Some(group))
    }

    /// A new group of all parts but some.
    fn add(&mut self, without: &[u32], tree: &Tree, run: &Run) -> Result<u32> {
        debug_assert!(without.is_sorted_by(|a, b| a < b), "parts ascend");
        let mut from = 0;
        for part in without {
            tree.take(from..*part as usize, &mut self.nodes);
            from = *part as usize + 1;
        }
        tree.take(from..tree.parts(), &mut self.nodes);
        let to = self.len;
        self.len += 1;
        self.aggregates.iter_mut().for_each(|aggregate| aggregate.resize(self.len));
        for (level, nodes) in tree.levels.iter().zip(&self.nodes) {
            for (aggregate, of) in self.aggregates.iter_mut().zip(&level.aggregates) {
                let nodes = nodes.iter().map(|node| MergedGroup { to, from: *node as usize, times: 1 });
                aggregate.merge(of, nodes, &run.terms)?;
            }
        }
        self.steps += self.nodes.iter().map(Vec::len).sum::<usize>() + 1;
        self.nodes.iter_mut().for_each(Vec::clear);
        if self.steps > STEPS_BETWEEN_CHECKS {
            self.steps = 0;
            run.check()?;
        }
        Ok(to as u32)
    }

    fn bytes(&self) -> usize {
        self.numbers.capacity() * size_of::<MetGroup>()
            + self.aggregates.iter().map(Aggregate::bytes).sum::<usize>()
            + self.nodes.iter().map(|nodes| nodes.capacity() * 4).sum::<usize>()
    }
}

impl Tree {
    fn parts(&self) -> usize {
        self.levels[0].len
    }

    /// Nodes that are these parts together, added to those of their levels.
    fn take(&self, parts: Range<usize>, nodes: &mut [Vec<u32>]) {
        let Range { mut start, mut end } = parts;
        for level in nodes {
            if start >= end {
                return;
            }
            if start % 2 == 1 {
                level.push(start as u32);
                start += 1;
            }
            if end % 2 == 1 {
                end -= 1;
                level.push(end as u32);
            }
            (start, end) = (start / 2, end / 2);
        }
        assert!(start >= end, "the root has no neighbour");
    }

    fn bytes(&self) -> usize {
        self.levels.iter().flat_map(|level| &level.aggregates).map(Aggregate::bytes).sum()
    }
}

impl Operator for GroupWithout {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        if !self.is_over {
            self.is_over = true;
            self.run_inputs(run)?;
        }
        Ok(self.queue.pop())
    }

    fn reset(&mut self, seed: &Batch) {
        self.left.reset(seed);
        self.parts.reset(seed);
        self.pairs.reset(seed);
        self.queue.clear();
        self.is_over = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nodes of a run have each part of it once, and no more than two of a level.
    #[test]
    fn nodes_of_a_run_are_its_parts() {
        for len in 0..40_usize {
            let lens = std::iter::successors(Some(len), |len| (*len > 1).then_some(len / 2));
            let levels = lens.map(|len| Level { len, aggregates: Vec::new() }).collect();
            let tree = Tree { levels };
            for start in 0..=len {
                for end in start..=len {
                    let mut nodes = vec![Vec::new(); tree.levels.len()];
                    tree.take(start..end, &mut nodes);
                    let mut parts = Vec::new();
                    for (level, nodes) in nodes.iter().enumerate() {
                        assert!(nodes.len() <= 2, "{start}..{end} of {len}: {nodes:?}");
                        assert!(nodes.iter().all(|node| (*node as usize) < tree.levels[level].len));
                        parts.extend(
                            nodes.iter().flat_map(|n| (*n as usize) << level..(*n as usize + 1) << level),
                        );
                    }
                    parts.sort_unstable();
                    assert_eq!(parts, (start..end).collect::<Vec<_>>(), "{start}..{end} of {len}");
                }
            }
        }
    }
}
