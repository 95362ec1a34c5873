//! Property paths that are no joins: `?`, `*`, `+` and negated sets.
//!
//! A path is a relation; [`PathWalk::pairs`] gives, for a sorted set of nodes, the pairs (node,
//! reached), by one batched look-up per predicate and step. Closures go breadth first over all
//! start nodes at once, a visited set per start node. Inside a closure duplicates do not count
//! (SPARQL 1.1, 18.4), outside sequences and alternatives were turned into joins and unions
//! before.
//!
//! Closures may reach the square of the nodes. So start nodes are taken some at a time:
//! as many as reach about [`PAIRS`] pairs, and fewer, down to one, when the memory share does
//! not suffice. Their pairs are given out before the next ones are begun.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use snowmelt_graph::{Columns, Index, Keys, Matches, TermId};
use spargebra::algebra::PropertyPathExpression as Path;

use super::{Boxed, Operator, Result, Run};
use crate::QueryError;
use crate::bounds::Held;
use crate::exec::Batch;
use crate::plan::{PathEnd, PathGraph, Src};

/// The direction in which a path is walked, and its ends in that order.
#[derive(Clone, Copy)]
struct Direction {
    forward: bool,
    start: PathEnd,
    goal: PathEnd,
}

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

/// Target number of pairs per group of start nodes.
const PAIRS: usize = 1 << 18;

/// Start nodes taken first: a LIMIT may need no more.
const FIRST_NODES: usize = 16;

/// State of the walk.
#[derive(Default)]
pub(super) struct PathState {
    batch: Batch,
    jobs: VecDeque<Job>,
    walking: Option<Walking>,
    given: Option<GivenPairs>,
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

/// Pairs of some start nodes, being emitted.
struct GivenPairs {
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

/// Pairs of the number of a start node and a node it reaches, and their memory.
struct Reached {
    list: Vec<(u32, TermId)>,
    held: Held,
}

impl Reached {
    const BYTES: usize = size_of::<(u32, TermId)>();

    fn push(&mut self, start: u32, reached: TermId) -> Result<()> {
        if self.list.len() == self.list.capacity() {
            let more = self.list.len().max(256);
            self.held.set((self.list.len() + more) * Self::BYTES, WHAT)?;
            self.list.reserve_exact(more);
        }
        self.list.push((start, reached));
        Ok(())
    }

    fn sort(&mut self) {
        self.list.sort_unstable();
        self.list.dedup();
    }

    /// The nodes that one start node reaches; the list must be sorted.
    fn reached_from(&self, start: u32) -> impl Iterator<Item = TermId> {
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

struct PathWalk<'a> {
    run: &'a mut Run,
    graphs: &'a Graphs,
}

const WHAT: &str = "property path";

impl PathWalk<'_> {
    fn no_pairs(&self) -> Reached {
        Reached { list: Vec::new(), held: self.run.memory.held() }
    }

    /// For each of the sorted, distinct nodes, what the path reaches from it (`forward`) or
    /// what reaches it.
    fn pairs(&mut self, path: &Path, nodes: &[TermId], forward: bool) -> Result<Reached> {
        debug_assert!(nodes.is_sorted_by(|a, b| a < b), "start nodes are sorted and distinct");
        self.run.check()?;
        match path {
            Path::NamedNode(p) => match self.predicate(p)? {
                Some(p) => self.edges(p, nodes, forward),
                None => Ok(self.no_pairs()),
            },
            Path::Reverse(p) => self.pairs(p, nodes, !forward),
            Path::Sequence(a, b) => {
                let (first, second) = if forward { (a, b) } else { (b, a) };
                self.sequence(first, second, nodes, forward)
            }
            Path::Alternative(a, b) => {
                let mut pairs = self.pairs(a, nodes, forward)?;
                for (start, reached) in self.pairs(b, nodes, forward)?.list {
                    pairs.push(start, reached)?;
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
            Path::NegatedPropertySet(not) => self.others(not, nodes, forward),
        }
    }

    fn sequence(&mut self, first: &Path, second: &Path, nodes: &[TermId], forward: bool) -> Result<Reached> {
        let near = self.pairs(first, nodes, forward)?;
        let mut held = self.run.memory.held();
        held.set(near.list.len() * 8, WHAT)?;
        let middle = distinct(near.list.iter().map(|p| p.1));
        let mut far = self.pairs(second, &middle, forward)?;
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

    fn predicate(&mut self, p: &spargebra::term::NamedNode) -> Result<Option<TermId>> {
        let term = crate::text::parameter::iri_const(p);
        let ground = crate::text::parameter::ground(&term, &self.run.query.params);
        Ok(self.run.source.resolve_constants(std::slice::from_ref(ground), &self.run.limits)?[0])
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
    fn others(
        &mut self,
        not: &[spargebra::term::NamedNode],
        nodes: &[TermId],
        forward: bool,
    ) -> Result<Reached> {
        let mut excluded = Vec::with_capacity(not.len());
        for p in not {
            excluded.extend(self.predicate(p)?.map(|id| id.0));
        }
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

    fn closure(&mut self, path: &Path, nodes: &[TermId], forward: bool, zero: bool) -> Result<Reached> {
        let mut reached: FxHashSet<(u32, TermId)> = FxHashSet::default();
        let mut held = self.run.memory.held();
        let mut frontier = self.no_pairs();
        for (i, node) in nodes.iter().enumerate() {
            frontier.push(i as u32, *node)?;
        }
        if zero {
            held.set(nodes.len() * 40, WHAT)?;
            reached.extend(&frontier.list);
        }
        while !frontier.list.is_empty() {
            // by node, so that the edges of some nodes at a time do
            frontier.list.sort_unstable_by_key(|p| p.1);
            let mut grown = self.no_pairs();
            let mut done = 0;
            let mut some = 1 << 16;
            while done < frontier.list.len() {
                let part = &frontier.list[done..];
                let part = &part[..whole_nodes(part, some)];
                assert!(!part.is_empty(), "each step of a closure takes nodes");
                let at = distinct(part.iter().map(|p| p.1));
                let mut edges = match self.pairs(path, &at, forward) {
                    Err(QueryError::Memory { .. }) if at.len() > 1 => {
                        let half = at[at.len() / 2 - 1];
                        some = part.partition_point(|p| p.1 <= half);
                        assert!(some < part.len(), "a step that had no memory is tried with fewer nodes");
                        continue;
                    }
                    edges => edges?,
                };
                edges.sort();
                for (start, node) in part {
                    let from = at.binary_search(node).expect("nodes of the frontier") as u32;
                    for t in edges.reached_from(from) {
                        if reached.len() == reached.capacity() {
                            self.run.check()?;
                            // while it grows, the old table is there, too
                            let most = 2 * reached.capacity().max(64);
                            held.set((most + reached.capacity()) * 17, WHAT)?;
                        }
                        if reached.insert((*start, t)) {
                            grown.push(*start, t)?;
                        }
                    }
                }
                self.run.check()?;
                done += part.len();
            }
            frontier = grown;
        }
        let mut pairs = self.no_pairs();
        pairs.held.set(reached.len() * Reached::BYTES, WHAT)?;
        pairs.list.reserve_exact(reached.len());
        pairs.list.extend(reached);
        pairs.list.sort_unstable();
        Ok(pairs)
    }

    /// Between two variables zero steps start only at nodes of the graph (SPARQL 1.1, 18.4).
    /// Removes the pairs of start nodes that a join bound to other terms. A start node that reaches
    /// another node is a node of the graph.
    fn only_nodes(&mut self, nodes: &[TermId], pairs: &mut Reached) -> Result<()> {
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

    /// All subjects and objects.
    fn nodes(&mut self) -> Result<Vec<TermId>> {
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

/// The number of pairs to take from the front: about `some`, but all pairs of a node or none. The
/// pairs are sorted by node.
fn whole_nodes(pairs: &[(u32, TermId)], some: usize) -> usize {
    let last = pairs[some.clamp(1, pairs.len()) - 1].1;
    pairs.partition_point(|p| p.1 <= last)
}

/// Whether a path may have no steps.
fn may_be_empty(path: &Path) -> bool {
    match path {
        Path::ZeroOrOne(_) | Path::ZeroOrMore(_) => true,
        Path::Sequence(a, b) => may_be_empty(a) && may_be_empty(b),
        Path::Alternative(a, b) => may_be_empty(a) || may_be_empty(b),
        Path::Reverse(p) | Path::OneOrMore(p) => may_be_empty(p),
        Path::NamedNode(_) | Path::NegatedPropertySet(_) => false,
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

    /// The direction of the walk: backwards from the second end where only that is bound, else
    /// forwards.
    fn direction(&self) -> Direction {
        let forward = self.from != PathEnd::New;
        let (start, goal) = if forward { (self.from, self.to) } else { (self.to, self.from) };
        Direction { forward: forward || start == PathEnd::New, start, goal }
    }

    /// The graphs that the rows of a batch walk in.
    fn jobs(&self, run: &mut Run, batch: &Batch) -> Result<VecDeque<Job>> {
        let all: Vec<u32> = (0..batch.rows as u32).collect();
        Ok(match self.graph.clone() {
            PathGraph::Default => {
                let graphs = match &run.query.default_graphs {
                    None if run.query.is_plain => Graphs::Any,
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
                if let Some(names) = &run.query.named_graphs {
                    by.retain(|graph, _| names.contains(graph));
                }
                let known = self.existing(run, by.keys().copied().collect())?;
                let known: FxHashSet<TermId> = known.into_iter().collect();
                by.retain(|graph, _| known.contains(graph));
                by.into_iter().map(|(g, rows)| Job { graphs: Graphs::One(g), name: None, rows }).collect()
            }
            PathGraph::Each => {
                let names = match &run.query.named_graphs {
                    Some(list) => self.existing(run, list.clone())?,
                    None => run.all_named_graphs()?,
                };
                let job = |g| Job { graphs: Graphs::One(g), name: Some(g), rows: all.clone() };
                names.into_iter().map(job).collect()
            }
        })
    }

    /// The existing ones of some graphs. Checked only where it matters: zero steps from a constant
    /// need no edge.
    fn existing(&self, run: &mut Run, mut graphs: Vec<TermId>) -> Result<Vec<TermId>> {
        let is_const = |end: PathEnd| matches!(end, PathEnd::Is(Src::Const(_) | Src::Fixed(_)));
        if (is_const(self.from) || is_const(self.to)) && may_be_empty(&self.path) {
            let mut known = Vec::with_capacity(graphs.len());
            for graph in graphs {
                run.check()?;
                if run.source.count(Index::Gs, &[graph], None)? > 0 {
                    known.push(graph);
                }
            }
            graphs = known;
        }
        Ok(graphs)
    }

    fn begin(&self, run: &mut Run, batch: &Batch, job: Job) -> Result<Walking> {
        let start = self.direction().start;
        let mut starts = None;
        let nodes = if start == PathEnd::New {
            PathWalk { run, graphs: &job.graphs }.nodes()?
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
        Ok(Walking { job, nodes, held, done: 0, some: FIRST_NODES, starts })
    }

    /// The pairs of the next start nodes; fewer nodes when the memory does not suffice for
    /// more.
    fn walk(&self, run: &mut Run, walking: &mut Walking) -> Result<GivenPairs> {
        let direction = self.direction();
        let from = walking.done;
        loop {
            let to = (from + walking.some).min(walking.nodes.len());
            assert!(from < to, "a walk takes start nodes");
            let nodes = &walking.nodes[from..to];
            let pairs = self.pairs_of(run, &walking.job.graphs, nodes, direction);
            let (pairs, held) = match pairs {
                Err(QueryError::Memory { .. }) if to - from > 1 => {
                    walking.some = (to - from) / 2;
                    continue;
                }
                pairs => pairs?,
            };
            walking.done = to;
            walking.some = match pairs.len() {
                n if n > PAIRS => walking.some / 2,
                n if n < PAIRS / 4 => walking.some * 4,
                _ => walking.some,
            }
            .clamp(1, 1 << 20);
            let rows = match &walking.starts {
                None => walking.job.rows.iter().map(|row| (None, *row)).collect(),
                Some(starts) => {
                    let first = starts.partition_point(|s| s.0 < walking.nodes[from]);
                    let end = starts.partition_point(|s| s.0 <= walking.nodes[to - 1]);
                    starts[first..end].iter().map(|s| (Some(s.0), s.1)).collect()
                }
            };
            return Ok(GivenPairs { pairs, held, rows, row: 0, pair: None });
        }
    }

    /// Start and end of all pairs of some start nodes, sorted.
    fn pairs_of(
        &self,
        run: &mut Run,
        graphs: &Graphs,
        nodes: &[TermId],
        direction: Direction,
    ) -> Result<(Vec<(TermId, TermId)>, Held)> {
        let Direction { forward, start, goal } = direction;
        let mut walk = PathWalk { run, graphs };
        let mut pairs = walk.pairs(&self.path, nodes, forward)?;
        let variable = |end| matches!(end, PathEnd::Is(Src::Col(_)));
        if variable(start) && (variable(goal) || goal == PathEnd::New) {
            walk.only_nodes(nodes, &mut pairs)?;
        }
        let mut held = run.memory.held();
        held.set(pairs.list.len() * 16, WHAT)?;
        let mut given: Vec<(TermId, TermId)> = Vec::with_capacity(pairs.list.len());
        given.extend(pairs.list.into_iter().map(|(n, t)| (nodes[n as usize], t)));
        given.sort_unstable();
        Ok((given, held))
    }

    /// The next batch of what is being given out; `None` when that is all.
    fn give(
        &self,
        run: &mut Run,
        batch: &Batch,
        name: Option<TermId>,
        given: &mut GivenPairs,
    ) -> Result<Option<Batch>> {
        let Direction { forward, goal, .. } = self.direction();
        let (mut left, mut starts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        while let Some((of, row)) = given.rows.get(given.row)
            && left.len() < run.query.batch.most
        {
            let wanted = Self::end(run, goal, batch, *row as usize);
            let first = || of.map_or(0, |s| given.pairs.partition_point(|p| p.0 < s));
            let mut at = given.pair.unwrap_or_else(first);
            let mut looked = 0;
            while let Some((s, t)) = given.pairs.get(at)
                && of.is_none_or(|of| of == *s)
                && left.len() < run.query.batch.most
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
        out.check();
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
                assert!(state.given.is_none(), "all pairs of a batch are given out before the next");
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
