//! A walk along any number of steps of one kind: breadth first from some start nodes at once, level
//! by level.
//!
//! Pairs are given out by level, so that a reader that has enough stops the walk.

use rustc_hash::FxHashSet;
use snowmelt_graph::TermId;

use super::walk::{PathWalk, Reached, WHAT, distinct};
use crate::QueryError;
use crate::algebra::PropertyPath as Path;
use crate::bounds::Held;
use crate::exec::{Result, Run};

pub(super) struct Closure {
    /// numbers of start nodes and what they reach
    reached: FxHashSet<(u32, TermId)>,
    held: Held,
    /// the pairs of the last level
    frontier: Reached,
}

impl Closure {
    /// At the start nodes. With `zero`, each reaches itself.
    pub fn new(run: &Run, nodes: &[TermId], zero: bool) -> Result<Self> {
        let mut held = run.memory.held();
        let mut frontier = Reached::none(run);
        for (i, node) in nodes.iter().enumerate() {
            frontier.push(i as u32, *node)?;
        }
        let mut reached = FxHashSet::default();
        if zero {
            held.set(nodes.len() * 40, WHAT)?;
            reached.extend(&frontier.list);
        }
        Ok(Self { reached, held, frontier })
    }

    /// Pairs that the last level was the first to reach.
    pub fn news(&self) -> &[(u32, TermId)] {
        &self.frontier.list
    }

    pub fn has(&self, start: u32, node: TermId) -> bool {
        self.reached.contains(&(start, node))
    }

    pub fn len(&self) -> usize {
        self.reached.len()
    }

    /// One level more; false where that reaches nothing new. After an error it is of no use.
    pub fn grow(&mut self, walk: &mut PathWalk<'_>, step: &Path, forward: bool) -> Result<bool> {
        // by node, so that the edges of some nodes at a time do
        self.frontier.list.sort_unstable_by_key(|p| p.1);
        let mut grown = Reached::none(walk.run);
        let (mut done, mut some) = (0, 1 << 16);
        while done < self.frontier.list.len() {
            let part = &self.frontier.list[done..];
            let part = &part[..whole_nodes(part, some)];
            assert!(!part.is_empty(), "each step of a closure takes nodes");
            let at = distinct(part.iter().map(|p| p.1));
            let mut edges = match walk.pairs(step, &at, forward) {
                Err(QueryError::Memory { .. }) if at.len() > 1 => {
                    let half = at[at.len() / 2 - 1];
                    some = part.partition_point(|p| p.1 <= half);
                    assert!(some < part.len(), "a step that had no memory is tried with fewer nodes");
                    continue;
                }
                edges => edges?,
            };
            edges.sort();
            let taken = part.len();
            self.reach(walk.run, done..done + taken, &at, &edges, &mut grown)?;
            walk.run.check()?;
            done += taken;
        }
        self.frontier = grown;
        Ok(!self.frontier.list.is_empty())
    }

    /// Adds what edges lead to from a part of the frontier, whose nodes are `at`.
    fn reach(
        &mut self,
        run: &mut Run,
        part: std::ops::Range<usize>,
        at: &[TermId],
        edges: &Reached,
        grown: &mut Reached,
    ) -> Result<()> {
        for (start, node) in &self.frontier.list[part] {
            let from = at.binary_search(node).expect("nodes of the frontier") as u32;
            for to in edges.reached_from(from) {
                if self.reached.len() == self.reached.capacity() {
                    run.check()?;
                    // while it grows, the old table is there, too
                    let most = 2 * self.reached.capacity().max(64);
                    self.held.set((most + self.reached.capacity()) * 17, WHAT)?;
                }
                if self.reached.insert((*start, to)) {
                    grown.push(*start, to)?;
                }
            }
        }
        Ok(())
    }

    /// All that was reached, sorted.
    pub fn into_pairs(self) -> Result<Reached> {
        let mut pairs = Reached { list: Vec::new(), held: self.frontier.held };
        pairs.held.set(self.reached.len() * Reached::BYTES, WHAT)?;
        pairs.list.reserve_exact(self.reached.len());
        pairs.list.extend(self.reached);
        pairs.list.sort_unstable();
        Ok(pairs)
    }
}

/// The number of pairs to take from the front: about `some`, but all pairs of a node or none. The
/// pairs are sorted by node.
fn whole_nodes(pairs: &[(u32, TermId)], some: usize) -> usize {
    let last = pairs[some.clamp(1, pairs.len()) - 1].1;
    pairs.partition_point(|p| p.1 <= last)
}
