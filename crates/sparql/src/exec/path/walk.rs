//! Walks along a path: for a sorted set of nodes, the pairs (node, reached), by one batched look-up
//! per predicate and step.

use rustc_hash::{FxHashMap, FxHashSet};
use snowmelt_graph::{Columns, Index, Keys, Matches, TermId};

use super::closure::Closure;
use crate::algebra::{Const, PropertyPath as Path};
use crate::bounds::Held;
use crate::exec::{Result, Run};

/// The graphs a walk sees.
#[derive(Clone)]
pub(super) enum Graphs {
    Any,
    One(TermId),
    Some(Vec<TermId>),
}

impl Graphs {
    fn has(&self, g: u64) -> bool {
        match self {
            Self::Any => true,
            Self::One(id) => id.0 == g,
            Self::Some(list) => list.iter().any(|id| id.0 == g),
        }
    }
}

/// Pairs of the number of a start node and a node it reaches, and their memory.
pub(super) struct Reached {
    pub list: Vec<(u32, TermId)>,
    pub held: Held,
}

impl Reached {
    pub const BYTES: usize = size_of::<(u32, TermId)>();

    pub fn none(run: &Run) -> Self {
        Self { list: Vec::new(), held: run.memory.held() }
    }

    pub fn push(&mut self, start: u32, reached: TermId) -> Result<()> {
        if self.list.len() == self.list.capacity() {
            let more = self.list.len().max(256);
            self.held.set((self.list.len() + more) * Self::BYTES, WHAT)?;
            self.list.reserve_exact(more);
        }
        self.list.push((start, reached));
        Ok(())
    }

    pub fn sort(&mut self) {
        self.list.sort_unstable();
        self.list.dedup();
    }

    /// The nodes that one start node reaches; the list must be sorted.
    pub fn reached_from(&self, start: u32) -> impl Iterator<Item = TermId> {
        let first = self.list.partition_point(|p| p.0 < start);
        self.list[first..].iter().take_while(move |p| p.0 == start).map(|p| p.1)
    }
}

/// Rows that were looked up, and their memory.
struct Neighbours {
    matches: Matches,
    #[expect(dead_code, reason = "held for its drop")]
    held: Held,
}

pub(super) struct PathWalk<'a> {
    pub run: &'a mut Run,
    pub graphs: &'a Graphs,
}

pub(super) const WHAT: &str = "property path";

impl PathWalk<'_> {
    fn no_pairs(&self) -> Reached {
        Reached::none(self.run)
    }

    /// For each of the sorted, distinct nodes, what the path reaches from it (`forward`) or
    /// what reaches it.
    pub fn pairs(&mut self, path: &Path, nodes: &[TermId], forward: bool) -> Result<Reached> {
        debug_assert!(nodes.is_sorted_by(|a, b| a < b), "start nodes are sorted and distinct");
        self.run.check()?;
        match path {
            Path::Predicate(p) => match self.run.constant(*p) {
                Some(p) => self.edges(p, nodes, forward),
                None => Ok(self.no_pairs()),
            },
            Path::Reverse(p) => self.pairs(p, nodes, !forward),
            Path::Sequence(steps) if forward => self.sequence(&mut steps.iter(), nodes, forward),
            Path::Sequence(steps) => self.sequence(&mut steps.iter().rev(), nodes, forward),
            Path::Alternative(paths) => {
                let mut pairs = self.no_pairs();
                for path in paths {
                    for (start, reached) in self.pairs(path, nodes, forward)?.list {
                        pairs.push(start, reached)?;
                    }
                }
                Ok(pairs)
            }
            Path::ZeroOrOne(p) => {
                let mut pairs = self.pairs(p, nodes, forward)?;
                for (i, node) in nodes.iter().enumerate() {
                    pairs.push(i as u32, *node)?;
                }
                pairs.sort();
                Ok(pairs)
            }
            Path::ZeroOrMore(p) => self.closure(p, nodes, forward, true),
            Path::OneOrMore(p) => self.closure(p, nodes, forward, false),
            Path::Negated(not) => self.others(not, nodes, forward),
        }
    }

    /// Steps in the order in which they are walked. Nodes between them are nodes of the graph, so a
    /// term that is none goes nowhere, not even in zero steps each.
    fn sequence(
        &mut self,
        steps: &mut dyn Iterator<Item = &Path>,
        nodes: &[TermId],
        forward: bool,
    ) -> Result<Reached> {
        let first = steps.next().expect("a sequence has steps");
        let mut may_be_empty = first.may_be_empty();
        let mut near = self.pairs(first, nodes, forward)?;
        for step in steps {
            may_be_empty &= step.may_be_empty();
            near = self.step(&near, step, forward)?;
        }
        if may_be_empty {
            self.only_nodes(nodes, &mut near)?;
        }
        Ok(near)
    }

    /// The pairs of a walk and one step more.
    fn step(&mut self, near: &Reached, step: &Path, forward: bool) -> Result<Reached> {
        let mut held = self.run.memory.held();
        held.set(near.list.len() * 8, WHAT)?;
        let middle = distinct(near.list.iter().map(|p| p.1));
        let mut far = self.pairs(step, &middle, forward)?;
        far.sort();
        let mut pairs = self.no_pairs();
        for (i, (start, node)) in near.list.iter().enumerate() {
            if i % 1024 == 0 {
                self.run.check()?;
            }
            let at = middle.binary_search(node).expect("a node in the middle") as u32;
            for reached in far.reached_from(at) {
                pairs.push(*start, reached)?;
            }
        }
        Ok(pairs)
    }

    fn edges(&mut self, p: TermId, nodes: &[TermId], forward: bool) -> Result<Reached> {
        let index = if forward { Index::Psog } else { Index::Posg };
        let (ps, ns) = (vec![p.0; nodes.len()], nodes.iter().map(|n| n.0).collect::<Vec<_>>());
        let Neighbours { matches, .. } = &self.look(index, &[&ps, &ns], 0b11)?;
        let mut pairs = self.no_pairs();
        for (i, key) in matches.key.iter().enumerate() {
            if self.graphs.has(matches.cols[1][i]) {
                pairs.push(*key, TermId(matches.cols[0][i]))?;
            }
        }
        Ok(pairs)
    }

    fn look(&mut self, index: Index, keys: &[&[u64]], wanted: u8) -> Result<Neighbours> {
        debug_assert!(keys.iter().all(|column| column.is_sorted()), "keys of a look-up ascend");
        let mut lookup = self.run.source.lookup(index, Keys::new(keys, None));
        let mut matches = Matches::with_wanted(index.arity(), keys.len(), wanted);
        let mut held = self.run.memory.held();
        // what grows by doubling has up to twice its rows
        let row = 2 * (4 + 8 * wanted.count_ones() as usize);
        while self.run.source.lookup_next(&mut lookup, &mut matches, 1 << 16)? {
            self.run.check()?;
            held.set(matches.key.len() * row, WHAT)?;
        }
        Ok(Neighbours { matches, held })
    }

    /// Edges under any predicate but these.
    fn others(&mut self, not: &[Const], nodes: &[TermId], forward: bool) -> Result<Reached> {
        let excluded: Vec<u64> = not.iter().filter_map(|p| self.run.constant(*p)).map(|id| id.0).collect();
        let ns: Vec<u64> = nodes.iter().map(|n| n.0).collect();
        let found = self.look(if forward { Index::Sp } else { Index::Op }, &[&ns], 1)?.matches;
        let mut held = self.run.memory.held();
        held.set(found.key.len() * 28, WHAT)?;
        let mut by_predicate: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        for (k, p) in found.key.iter().zip(&found.cols[0]) {
            if !excluded.contains(p) {
                by_predicate.entry(*p).or_default().push(*k);
            }
        }
        let mut pairs = self.no_pairs();
        for (p, keys) in by_predicate {
            let some: Vec<TermId> = keys.iter().map(|k| nodes[*k as usize]).collect();
            for (i, reached) in self.edges(TermId(p), &some, forward)?.list {
                pairs.push(keys[i as usize], reached)?;
            }
        }
        Ok(pairs)
    }

    /// All nodes that some steps lead to.
    fn closure(&mut self, step: &Path, nodes: &[TermId], forward: bool, zero: bool) -> Result<Reached> {
        let mut closure = Closure::new(self.run, nodes, zero)?;
        while closure.grow(self, step, forward)? {}
        closure.into_pairs()
    }

    /// Between two variables zero steps start only at nodes of the graph (SPARQL 1.1, 18.4).
    /// Removes the pairs of start nodes that a join bound to other terms. A start node that reaches
    /// another node is a node of the graph.
    pub fn only_nodes(&mut self, nodes: &[TermId], pairs: &mut Reached) -> Result<()> {
        let pairs = &mut pairs.list;
        let mut doubtful: Vec<bool> = vec![false; nodes.len()];
        pairs.iter().for_each(|(n, t)| doubtful[*n as usize] |= nodes[*n as usize] == *t);
        pairs.iter().for_each(|(n, t)| doubtful[*n as usize] &= nodes[*n as usize] == *t);
        let asked: Vec<u32> = (0..nodes.len() as u32).filter(|n| doubtful[*n as usize]).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let ids: Vec<TermId> = asked.iter().map(|n| nodes[*n as usize]).collect();
        for forward in [true, false] {
            for (i, _) in self.others(&[], &ids, forward)?.list {
                doubtful[asked[i as usize] as usize] = false;
            }
        }
        pairs.retain(|(n, _)| !doubtful[*n as usize]);
        Ok(())
    }

    /// The nodes, sorted, from which a path with a step may start.
    pub fn firsts(&mut self, path: &Path, forward: bool) -> Result<Vec<TermId>> {
        let mut firsts = Vec::new();
        let mut held = self.run.memory.held();
        self.add_firsts(path, forward, &mut firsts, &mut held)?;
        firsts.sort_unstable();
        firsts.dedup();
        Ok(firsts)
    }

    fn add_firsts(
        &mut self,
        path: &Path,
        forward: bool,
        into: &mut Vec<TermId>,
        held: &mut Held,
    ) -> Result<()> {
        match path {
            Path::Predicate(p) => match self.run.constant(*p) {
                Some(p) => {
                    let index = if forward { Index::Psog } else { Index::Posg };
                    self.column(index, &[p], 1, into, held)
                }
                None => Ok(()),
            },
            Path::Negated(_) => self.column(if forward { Index::Sp } else { Index::Op }, &[], 0, into, held),
            Path::Reverse(path) => self.add_firsts(path, !forward, into, held),
            Path::Sequence(steps) => {
                for at in 0..steps.len() {
                    let step = &steps[if forward { at } else { steps.len() - 1 - at }];
                    self.add_firsts(step, forward, into, held)?;
                    if !step.may_be_empty() {
                        break;
                    }
                }
                Ok(())
            }
            Path::Alternative(paths) => {
                paths.iter().try_for_each(|path| self.add_firsts(path, forward, into, held))
            }
            Path::ZeroOrOne(path) | Path::ZeroOrMore(path) | Path::OneOrMore(path) => {
                self.add_firsts(path, forward, into, held)
            }
        }
    }

    /// The values of a column of an index, of which neighbours are told apart only. Those of other
    /// graphs are there, too.
    fn column(
        &mut self,
        index: Index,
        prefix: &[TermId],
        column: usize,
        into: &mut Vec<TermId>,
        held: &mut Held,
    ) -> Result<()> {
        let mut scan = self.run.source.scan(index, prefix, None);
        loop {
            self.run.check()?;
            // while it grows, the old list is there, too
            held.set(2 * into.capacity() * size_of::<TermId>(), WHAT)?;
            let mut columns = Columns::with_wanted(index.arity(), 1 << column);
            if !self.run.source.scan_next(&mut scan, &mut columns, 1 << 16)? {
                return Ok(());
            }
            for value in &columns.cols[column] {
                if into.last() != Some(&TermId(*value)) {
                    into.push(TermId(*value));
                }
            }
        }
    }

    /// All subjects and objects, sorted.
    pub fn nodes(&mut self) -> Result<Vec<TermId>> {
        if let Graphs::Any = self.graphs {
            let mut nodes = Vec::new();
            let mut held = self.run.memory.held();
            self.column(Index::Sp, &[], 0, &mut nodes, &mut held)?;
            self.column(Index::Op, &[], 0, &mut nodes, &mut held)?;
            return Ok(distinct(nodes.into_iter()));
        }
        let mut scan = self.run.source.scan(Index::Psog, &[], None);
        let mut nodes: FxHashSet<u64> = FxHashSet::default();
        let mut held = self.run.memory.held();
        loop {
            self.run.check()?;
            // and once more as a list
            held.set(nodes.capacity() * 9 + nodes.len() * 8, WHAT)?;
            let mut columns = Columns::with_wanted(4, 0b1110);
            if !self.run.source.scan_next(&mut scan, &mut columns, 1 << 16)? {
                break;
            }
            for i in (0..columns.rows).filter(|i| self.graphs.has(columns.cols[3][*i])) {
                nodes.insert(columns.cols[1][i]);
                nodes.insert(columns.cols[2][i]);
            }
        }
        Ok(distinct(nodes.into_iter().map(TermId)))
    }
}

pub(super) fn distinct(ids: impl Iterator<Item = TermId>) -> Vec<TermId> {
    let mut list: Vec<TermId> = ids.collect();
    list.sort_unstable();
    list.dedup();
    list
}
