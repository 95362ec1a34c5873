//! Property paths that are no joins: `?`, `*`, `+` and negated sets.
//!
//! A path is a relation; [`Walk::pairs`] gives, for a sorted set of nodes, the pairs (node, reached), by one batched look-up per
//! predicate and step. Closures go breadth first over all start nodes at once, a visited set per start node. Inside a closure
//! duplicates do not count (SPARQL 1.1, 18.4), outside sequences and alternatives were turned into joins and unions before.
//!
//! What closures reach may be the square of the nodes. So start nodes are taken some at a time: as many as reach about [`PAIRS`] pairs, and
//! fewer, down to one, when the memory share does not suffice. Their pairs are given out before the next ones are begun.

use super::leaf::GraphNames;
use super::{Boxed, Held, Operator, Result, Run};
use crate::QueryError;
use crate::batch::Batch;
use crate::plan::{PathEnd, PathGraph, Src};
use rustc_hash::{FxHashMap, FxHashSet};
use snowmelt_graph::{Columns, Index, Keys, Matches, TermId};
use spargebra::algebra::PropertyPathExpression as Path;
use std::collections::VecDeque;

pub(super) struct PathJoin {
    pub input: Boxed,
    pub from: PathEnd,
    pub path: Path,
    pub to: PathEnd,
    pub graph: PathGraph,
    pub same: bool,
    pub keep: Vec<u16>,
    pub state: PathState,
}

/// Pairs that a number of start nodes should reach together.
const PAIRS: usize = 1 << 18;

/// What is under way.
#[derive(Default)]
pub(super) struct PathState {
    batch: Batch,
    jobs: VecDeque<Job>,
    walking: Option<Walking>,
    given: Option<Given>,
}

/// Some rows of a batch and the graphs in which they walk.
struct Job {
    graphs: Graphs,
    name: Option<TermId>,
    rows: Vec<u32>,
}

/// A job under way.
struct Walking {
    job: Job,
    /// sorted, distinct start nodes
    nodes: Vec<TermId>,
    #[expect(dead_code, reason = "held for its drop")]
    held: Held,
    /// start nodes that are done, and how many are taken next
    done: usize,
    some: usize,
    /// the rows by their start nodes; `None`: every row starts everywhere
    starts: Option<Vec<(TermId, u32)>>,
}

/// Pairs of some start nodes, being given out.
struct Given {
    /// start and end
    pairs: Vec<(TermId, TermId)>,
    #[expect(dead_code, reason = "held for its drop")]
    held: Held,
    /// the rows they are for, with their start nodes where they have one
    rows: Vec<(Option<TermId>, u32)>,
    row: usize,
    /// the next pair of that row; `None` before its first
    pair: Option<usize>,
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
    graphs: &'a Graphs,
}

const WHAT: &str = "property path";

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
        let mut held = self.run.memory.held();
        while self.run.source.lookup_next(&mut lookup, &mut matches, 1 << 16)? {
            self.run.check()?;
            // twice: they become pairs
            held.set(matches.key.len() * 56, WHAT)?;
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
        let mut held = self.run.memory.held();
        let mut looked = 0;
        while !frontier.is_empty() {
            let at = distinct(frontier.iter().map(|p| p.1));
            let mut edges = self.pairs(path, &at, forward)?;
            edges.sort_unstable();
            let steps = edges.capacity() * 16 + at.len() * 8;
            let mut grown = Pairs::new();
            for (start, node) in &frontier {
                let from = at.binary_search(node).expect("nodes of the frontier") as u32;
                let first = edges.partition_point(|e| e.0 < from);
                for (_, t) in edges[first..].iter().take_while(|e| e.0 == from) {
                    if reached.insert((*start, *t)) {
                        grown.push((*start, *t));
                    }
                    looked += 16;
                }
                looked += 1;
                if looked >= 1 << 16 {
                    looked = 0;
                    self.run.check()?;
                    let pairs = frontier.capacity() + grown.capacity();
                    held.set(held.bytes().max(reached.capacity() * 17 + pairs * 16 + steps), WHAT)?;
                }
            }
            frontier = grown;
        }
        // and once more as a list
        held.add(reached.len() * 16, WHAT)?;
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
        let mut held = self.run.memory.held();
        loop {
            self.run.check()?;
            // and once more as a list
            held.set(nodes.capacity() * 9 + nodes.len() * 8, WHAT)?;
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

    /// Whether it walks from the first end to the second, and which end it starts from.
    fn direction(&self) -> (bool, PathEnd, PathEnd) {
        let forward = self.from != PathEnd::New;
        let (start, goal) = if forward { (self.from, self.to) } else { (self.to, self.from) };
        (forward || start == PathEnd::New, start, goal)
    }

    /// The graphs that the rows of a batch walk in.
    fn jobs(&self, run: &mut Run, batch: &Batch) -> Result<VecDeque<Job>> {
        let all: Vec<u32> = (0..batch.rows as u32).collect();
        Ok(match self.graph.clone() {
            PathGraph::Default => {
                let graphs = match &run.default_graphs {
                    None if run.plain => Graphs::Any,
                    None => Graphs::One(TermId::DEFAULT_GRAPH),
                    Some(list) => Graphs::Some(list.clone()),
                };
                VecDeque::from([Job { graphs, name: None, rows: all }])
            }
            PathGraph::Is(src) => {
                let mut by: FxHashMap<TermId, Vec<u32>> = FxHashMap::default();
                for row in 0..batch.rows {
                    by.entry(Self::value(run, src, batch, row)).or_default().push(row as u32);
                }
                by.into_iter().map(|(g, rows)| Job { graphs: Graphs::One(g), name: None, rows }).collect()
            }
            PathGraph::Each => {
                let names = match &run.named_graphs {
                    Some(list) => list.clone(),
                    None => GraphNames::all(run)?,
                };
                let job = |g| Job { graphs: Graphs::One(g), name: Some(g), rows: all.clone() };
                names.into_iter().map(job).collect()
            }
        })
    }

    fn begin(&self, run: &mut Run, batch: &Batch, job: Job) -> Result<Walking> {
        let (_, start, _) = self.direction();
        let mut starts = None;
        let nodes = if start == PathEnd::New {
            Walk { run, graphs: &job.graphs }.nodes()?
        } else {
            let mut list: Vec<(TermId, u32)> = Vec::with_capacity(job.rows.len());
            for row in &job.rows {
                list.extend(Self::end(run, start, batch, *row as usize).map(|node| (node, *row)));
            }
            list.sort_unstable();
            let nodes = distinct(list.iter().map(|s| s.0));
            starts = Some(list);
            nodes
        };
        let mut held = run.memory.held();
        held.set(nodes.len() * 8 + starts.as_ref().map_or(0, |s| s.len() * 16), WHAT)?;
        Ok(Walking { job, nodes, held, done: 0, some: 4096, starts })
    }

    /// The pairs of the next start nodes; fewer nodes when the memory does not suffice for more.
    fn walk(&self, run: &mut Run, walking: &mut Walking) -> Result<Given> {
        let (forward, start, goal) = self.direction();
        let from = walking.done;
        loop {
            let to = (from + walking.some).min(walking.nodes.len());
            let nodes = &walking.nodes[from..to];
            let pairs = self.pairs_of(run, &walking.job.graphs, nodes, (forward, start, goal));
            let pairs = match pairs {
                Err(QueryError::Memory { .. }) if to - from > 1 => {
                    walking.some = (to - from) / 2;
                    continue;
                }
                pairs => pairs?,
            };
            walking.done = to;
            walking.some = match pairs.len() {
                n if n > PAIRS => walking.some / 2,
                n if n < PAIRS / 4 => walking.some * 2,
                _ => walking.some,
            }
            .clamp(1, 1 << 20);
            let mut held = run.memory.held();
            held.set(pairs.len() * 16, WHAT)?;
            let rows = match &walking.starts {
                None => walking.job.rows.iter().map(|row| (None, *row)).collect(),
                Some(starts) => {
                    let first = starts.partition_point(|s| s.0 < walking.nodes[from]);
                    let end = starts.partition_point(|s| s.0 <= walking.nodes[to - 1]);
                    starts[first..end].iter().map(|s| (Some(s.0), s.1)).collect()
                }
            };
            return Ok(Given { pairs, held, rows, row: 0, pair: None });
        }
    }

    /// Start and end of all pairs of some start nodes, sorted.
    fn pairs_of(
        &self,
        run: &mut Run,
        graphs: &Graphs,
        nodes: &[TermId],
        (forward, start, goal): (bool, PathEnd, PathEnd),
    ) -> Result<Vec<(TermId, TermId)>> {
        let mut walk = Walk { run, graphs };
        let mut pairs = walk.pairs(&self.path, nodes, forward)?;
        let variable = |end| matches!(end, PathEnd::Is(Src::Col(_)));
        if variable(start) && (variable(goal) || goal == PathEnd::New) {
            walk.only_nodes(nodes, &mut pairs)?;
        }
        let mut pairs: Vec<(TermId, TermId)> =
            pairs.into_iter().map(|(n, t)| (nodes[n as usize], t)).collect();
        pairs.sort_unstable();
        Ok(pairs)
    }

    /// The next batch of what is being given out; `None` when that is all.
    fn give(
        &self,
        run: &mut Run,
        batch: &Batch,
        name: Option<TermId>,
        given: &mut Given,
    ) -> Result<Option<Batch>> {
        let (forward, _, goal) = self.direction();
        let (mut left, mut starts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        while let Some((of, row)) = given.rows.get(given.row)
            && left.len() < run.batch.most
        {
            let wanted = Self::end(run, goal, batch, *row as usize);
            let first = || of.map_or(0, |s| given.pairs.partition_point(|p| p.0 < s));
            let mut at = given.pair.unwrap_or_else(first);
            let mut looked = 0;
            while let Some((s, t)) = given.pairs.get(at)
                && of.is_none_or(|of| of == *s)
                && left.len() < run.batch.most
            {
                if wanted.is_none_or(|w| w == *t) && (!self.same || s == t) {
                    left.push(*row);
                    starts.push(*s);
                    ends.push(*t);
                }
                at += 1;
                looked += 1;
                if looked % (1 << 16) == 0 {
                    run.check()?;
                }
            }
            let over = given.pairs.get(at).is_none_or(|p| of.is_some_and(|of| of != p.0));
            given.pair = (!over).then_some(at);
            given.row += usize::from(over);
        }
        if left.is_empty() {
            return Ok(None);
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
        Ok(Some(out))
    }

    /// The next batch of what is under way.
    fn step(&self, run: &mut Run, state: &mut PathState) -> Result<Option<Batch>> {
        loop {
            run.check()?;
            if let (Some(given), Some(walking)) = (&mut state.given, &state.walking) {
                if let Some(out) = self.give(run, &state.batch, walking.job.name, given)? {
                    return Ok(Some(out));
                }
                state.given = None;
            } else if let Some(walking) = state.walking.as_mut().filter(|w| w.done < w.nodes.len()) {
                state.given = Some(self.walk(run, walking)?);
            } else if let Some(job) = state.jobs.pop_front() {
                state.walking = Some(self.begin(run, &state.batch, job)?);
            } else {
                state.walking = None;
                return Ok(None);
            }
        }
    }
}

impl Operator for PathJoin {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        loop {
            let mut state = std::mem::take(&mut self.state);
            let out = self.step(run, &mut state);
            self.state = state;
            if let Some(out) = out? {
                return Ok(Some(out));
            }
            let Some(batch) = self.input.next(run)? else { return Ok(None) };
            self.state.jobs = self.jobs(run, &batch)?;
            self.state.batch = batch;
        }
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
        self.state = PathState::default();
    }
}
