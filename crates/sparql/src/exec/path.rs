//! Property paths that are no joins: `?`, `*`, `+` and negated sets.
//!
//! A path is a relation; [`Walk::pairs`] gives, for a sorted set of nodes, the pairs (node, reached), by one batched look-up per
//! predicate and step. Closures go breadth first over all start nodes at once, a visited set per start node. Inside a closure
//! duplicates do not count (SPARQL 1.1, 18.4), outside sequences and alternatives were turned into joins and unions before.

use super::leaf::GraphNames;
use super::rows::Queue;
use super::{Boxed, Operator, Result, Run};
use crate::batch::Batch;
use crate::plan::{PathEnd, PathGraph, Src};
use rustc_hash::{FxHashMap, FxHashSet};
use snowmelt_graph::{Columns, Index, Keys, Matches, TermId};
use spargebra::algebra::PropertyPathExpression as Path;

pub(super) struct PathJoin {
    pub input: Boxed,
    pub from: PathEnd,
    pub path: Path,
    pub to: PathEnd,
    pub graph: PathGraph,
    pub same: bool,
    pub keep: Vec<u16>,
    pub queue: Queue,
}

/// The graphs a walk sees.
#[derive(Clone)]
enum Graphs {
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

type Pairs = Vec<(u32, TermId)>;

struct Walk<'a> {
    run: &'a mut Run,
    graphs: Graphs,
}

impl Walk<'_> {
    /// For each of the sorted, distinct nodes, what the path reaches from it (`forward`) or what reaches it.
    fn pairs(&mut self, path: &Path, nodes: &[TermId], forward: bool) -> Result<Pairs> {
        self.run.check()?;
        match path {
            Path::NamedNode(p) => match self.predicate(p)? {
                Some(p) => self.edges(p, nodes, forward),
                None => Ok(Pairs::new()),
            },
            Path::Reverse(p) => self.pairs(p, nodes, !forward),
            Path::Sequence(a, b) => {
                let (first, second) = if forward { (a, b) } else { (b, a) };
                let near = self.pairs(first, nodes, forward)?;
                let middle = distinct(near.iter().map(|p| p.1));
                let far = self.pairs(second, &middle, forward)?;
                let mut by: FxHashMap<TermId, Vec<TermId>> = FxHashMap::default();
                far.into_iter().for_each(|(m, t)| by.entry(middle[m as usize]).or_default().push(t));
                Ok(near
                    .into_iter()
                    .flat_map(|(n, m)| by.get(&m).into_iter().flatten().map(move |t| (n, *t)))
                    .collect())
            }
            Path::Alternative(a, b) => {
                let mut pairs = self.pairs(a, nodes, forward)?;
                pairs.extend(self.pairs(b, nodes, forward)?);
                Ok(pairs)
            }
            Path::ZeroOrOne(p) => {
                let mut pairs = self.pairs(p, nodes, forward)?;
                pairs.extend(nodes.iter().enumerate().map(|(i, n)| (i as u32, *n)));
                pairs.sort_unstable();
                pairs.dedup();
                Ok(pairs)
            }
            Path::ZeroOrMore(p) => self.closure(p, nodes, forward, true),
            Path::OneOrMore(p) => self.closure(p, nodes, forward, false),
            Path::NegatedPropertySet(not) => self.others(not, nodes, forward),
        }
    }

    fn predicate(&mut self, p: &spargebra::term::NamedNode) -> Result<Option<TermId>> {
        let term = crate::algebra::translate::iri_const(p);
        let ground = crate::source::ground(&term, &self.run.params);
        Ok(self.run.source.resolve_constants(std::slice::from_ref(ground), &self.run.limits)?[0])
    }

    fn edges(&mut self, p: TermId, nodes: &[TermId], forward: bool) -> Result<Pairs> {
        let index = if forward { Index::Psog } else { Index::Posg };
        let (ps, ns) = (vec![p.0; nodes.len()], nodes.iter().map(|n| n.0).collect::<Vec<_>>());
        let found = self.look(index, &[&ps, &ns], 0b11)?;
        let pairs = found.key.iter().enumerate().filter(|(i, _)| self.graphs.has(found.cols[1][*i]));
        Ok(pairs.map(|(i, k)| (*k, TermId(found.cols[0][i]))).collect())
    }

    fn look(&mut self, index: Index, keys: &[&[u64]], wanted: u8) -> Result<Matches> {
        let mut lookup = self.run.source.lookup(index, Keys::new(keys, None));
        let mut matches = Matches::of(index.arity(), keys.len(), wanted);
        while self.run.source.lookup_next(&mut lookup, &mut matches, 1 << 16)? {
            self.run.check()?;
        }
        Ok(matches)
    }

    /// Edges under any predicate but these.
    fn others(
        &mut self,
        not: &[spargebra::term::NamedNode],
        nodes: &[TermId],
        forward: bool,
    ) -> Result<Pairs> {
        let mut excluded = Vec::with_capacity(not.len());
        for p in not {
            excluded.extend(self.predicate(p)?.map(|id| id.0));
        }
        let ns: Vec<u64> = nodes.iter().map(|n| n.0).collect();
        let found = self.look(if forward { Index::Sp } else { Index::Op }, &[&ns], 1)?;
        let mut by_predicate: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        for (k, p) in found.key.iter().zip(&found.cols[0]) {
            if !excluded.contains(p) {
                by_predicate.entry(*p).or_default().push(*k);
            }
        }
        let mut pairs = Pairs::new();
        for (p, keys) in by_predicate {
            let some: Vec<TermId> = keys.iter().map(|k| nodes[*k as usize]).collect();
            pairs.extend(
                self.edges(TermId(p), &some, forward)?.into_iter().map(|(i, t)| (keys[i as usize], t)),
            );
        }
        Ok(pairs)
    }

    fn closure(&mut self, path: &Path, nodes: &[TermId], forward: bool, zero: bool) -> Result<Pairs> {
        let mut reached: FxHashSet<(u32, TermId)> = FxHashSet::default();
        let mut frontier: Pairs = nodes.iter().enumerate().map(|(i, n)| (i as u32, *n)).collect();
        if zero {
            reached.extend(&frontier);
        }
        let mut taken = 0;
        while !frontier.is_empty() {
            let at = distinct(frontier.iter().map(|p| p.1));
            let mut next: FxHashMap<TermId, Vec<TermId>> = FxHashMap::default();
            for (i, t) in self.pairs(path, &at, forward)? {
                next.entry(at[i as usize]).or_default().push(t);
            }
            let mut grown = Pairs::new();
            for (start, node) in frontier {
                for t in next.get(&node).into_iter().flatten() {
                    if reached.insert((start, *t)) {
                        grown.push((start, *t));
                    }
                }
            }
            frontier = grown;
            let bytes = reached.capacity() * 17;
            if bytes > taken {
                self.run.memory.take(bytes - taken, "property path")?;
                taken = bytes;
            }
        }
        self.run.memory.give_back(taken);
        let mut pairs: Pairs = reached.into_iter().collect();
        pairs.sort_unstable();
        Ok(pairs)
    }

    /// Between two variables zero steps lead only from nodes of the graph (SPARQL 1.1, 18.4): takes away the pairs of those
    /// that a join bound to something else. Who has another pair is a node.
    fn only_nodes(&mut self, nodes: &[TermId], pairs: &mut Pairs) -> Result<()> {
        let mut doubtful: Vec<bool> = vec![false; nodes.len()];
        pairs.iter().for_each(|(n, t)| doubtful[*n as usize] |= nodes[*n as usize] == *t);
        pairs.iter().for_each(|(n, t)| doubtful[*n as usize] &= nodes[*n as usize] == *t);
        let asked: Vec<u32> = (0..nodes.len() as u32).filter(|n| doubtful[*n as usize]).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let ids: Vec<TermId> = asked.iter().map(|n| nodes[*n as usize]).collect();
        for forward in [true, false] {
            for (i, _) in self.others(&[], &ids, forward)? {
                doubtful[asked[i as usize] as usize] = false;
            }
        }
        pairs.retain(|(n, _)| !doubtful[*n as usize]);
        Ok(())
    }

    /// All subjects and objects.
    fn nodes(&mut self) -> Result<Vec<TermId>> {
        let mut scan = self.run.source.scan(Index::Psog, &[], None);
        let mut nodes: FxHashSet<u64> = FxHashSet::default();
        loop {
            self.run.check()?;
            let mut columns = Columns::of(4, 0b1110);
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

fn distinct(ids: impl Iterator<Item = TermId>) -> Vec<TermId> {
    let mut list: Vec<TermId> = ids.collect();
    list.sort_unstable();
    list.dedup();
    list
}

impl PathJoin {
    fn end(run: &mut Run, end: PathEnd, batch: &Batch, row: usize) -> Option<TermId> {
        match end {
            PathEnd::New => None,
            PathEnd::Is(src) => Some(Self::value(run, src, batch, row)),
        }
    }

    fn value(run: &mut Run, src: Src, batch: &Batch, row: usize) -> TermId {
        match src {
            Src::Const(c) => run.constant_or_local(c),
            Src::Fixed(id) => id,
            Src::Col(c) => batch.cols[c as usize][row],
        }
    }

    /// One graph choice for some rows of a batch.
    fn walk(
        &mut self,
        run: &mut Run,
        batch: &Batch,
        rows: &[u32],
        graphs: Graphs,
        name: Option<TermId>,
    ) -> Result<()> {
        let forward = self.from != PathEnd::New;
        let (start, goal) = if forward { (self.from, self.to) } else { (self.to, self.from) };
        let free = start == PathEnd::New;
        let forward = forward || free;
        let mut walk = Walk { run, graphs };
        let nodes = if free {
            walk.nodes()?
        } else {
            let ids: Vec<TermId> =
                rows.iter().filter_map(|r| Self::end(walk.run, start, batch, *r as usize)).collect();
            distinct(ids.into_iter())
        };
        let mut pairs = walk.pairs(&self.path, &nodes, forward)?;
        let variable = |end| matches!(end, PathEnd::Is(Src::Col(_)));
        if variable(start) && (variable(goal) || goal == PathEnd::New) {
            walk.only_nodes(&nodes, &mut pairs)?;
        }
        let run = walk.run;
        let mut by: FxHashMap<TermId, Vec<TermId>> = FxHashMap::default();
        pairs.iter().for_each(|(n, t)| by.entry(nodes[*n as usize]).or_default().push(*t));
        let (mut left, mut starts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let of = Self::end(run, start, batch, *row as usize);
            let wanted = Self::end(run, goal, batch, *row as usize);
            let mut take = |s: TermId, t: TermId| {
                if wanted.is_none_or(|w| w == t) && (!self.same || s == t) {
                    left.push(*row);
                    starts.push(s);
                    ends.push(t);
                }
            };
            match of {
                Some(s) => by.get(&s).into_iter().flatten().for_each(|t| take(s, *t)),
                None => pairs.iter().for_each(|(n, t)| take(nodes[*n as usize], *t)),
            }
        }
        let mut out = batch.gather(&self.keep, &left);
        let (from, to) = if forward { (starts, ends) } else { (ends, starts) };
        if self.from == PathEnd::New {
            out.cols.push(from);
        }
        if self.to == PathEnd::New && !self.same {
            out.cols.push(to);
        }
        if let Some(name) = name {
            out.cols.push(vec![name; left.len()]);
        }
        self.queue.push(out, run);
        Ok(())
    }

    fn take(&mut self, run: &mut Run, batch: &Batch) -> Result<()> {
        let all: Vec<u32> = (0..batch.rows as u32).collect();
        match self.graph.clone() {
            PathGraph::Default => {
                let graphs = match &run.default_graphs {
                    None if run.plain => Graphs::Any,
                    None => Graphs::One(TermId::DEFAULT_GRAPH),
                    Some(list) => Graphs::Some(list.clone()),
                };
                self.walk(run, batch, &all, graphs, None)
            }
            PathGraph::Is(src) => {
                let mut by: FxHashMap<TermId, Vec<u32>> = FxHashMap::default();
                for row in 0..batch.rows {
                    by.entry(Self::value(run, src, batch, row)).or_default().push(row as u32);
                }
                for (g, rows) in by {
                    self.walk(run, batch, &rows, Graphs::One(g), None)?;
                }
                Ok(())
            }
            PathGraph::Each => {
                let names = match &run.named_graphs {
                    Some(list) => list.clone(),
                    None => GraphNames::all(run)?,
                };
                for g in names {
                    self.walk(run, batch, &all, Graphs::One(g), Some(g))?;
                }
                Ok(())
            }
        }
    }
}

impl Operator for PathJoin {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.queue.pop() {
                return Ok(Some(batch));
            }
            let Some(batch) = self.input.next(run)? else { return Ok(None) };
            self.take(run, &batch)?;
        }
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
        self.queue.clear();
    }
}
