//! Property paths that are no joins: `?`, `*`, `+` and negated sets.
//!
//! A path is a relation; [`PathWalk::pairs`] gives, for a sorted set of nodes, the pairs (node,
//! reached). Inside a closure duplicates do not count (SPARQL 1.1, 18.4), outside sequences and
//! alternatives were turned into joins and unions before.
//!
//! Closures may reach the square of the nodes. So start nodes are taken some at a time:
//! as many as reach about [`PAIRS`] pairs, and fewer, down to one, when the memory share does
//! not suffice. Their pairs are given out before the next ones are begun, those of a closure
//! after each of its levels: a reader that has enough stops it.
//!
//! A walk begins at the end that is bound. Where both are, it begins at the one with fewer nodes,
//! and ends when each row has what it seeks; between one node and another it goes from both
//! (bidirectional search: Pohl, Machine Intelligence 6, 1971).

mod closure;
mod walk;

use std::collections::VecDeque;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use snowmelt_graph::{Index, TermId};

use super::{Boxed, Operator, Result, Run};
use crate::QueryError;
use crate::algebra::PropertyPath as Path;
use crate::bounds::Held;
use crate::exec::Batch;
use crate::plan::{PathEnd, PathGraph, Src};
use closure::Closure;
use walk::{Graphs, PathWalk, Reached, WHAT, distinct};

/// The direction in which a path is walked, and its ends in that order.
#[derive(Clone, Copy)]
struct Direction {
    forward: bool,
    start: PathEnd,
    goal: PathEnd,
}

impl Direction {
    fn turned(self) -> Self {
        Self { forward: !self.forward, start: self.goal, goal: self.start }
    }
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
    direction: Direction,
    /// sorted, distinct start nodes
    nodes: Vec<TermId>,
    /// the goal of all rows, where they have one and start at one node
    only_goal: Option<TermId>,
    #[expect(dead_code, reason = "held for its drop")]
    held: Held,
    /// start nodes that are done, and how many are taken next
    done: usize,
    some: usize,
    /// the rows by their start nodes; `None`: every row starts everywhere
    starts: Option<Vec<(TermId, u32)>>,
    /// the start nodes whose closure is under way
    group: Option<ClosureGroup>,
    /// Closures that ran out of memory and are walked again for fewer nodes: where their nodes
    /// end, and how many levels were given out.
    again: Vec<(usize, usize)>,
}

impl Walking {
    /// The start nodes that are under way, or those to take next.
    fn next_nodes(&self) -> Range<usize> {
        let most = self.again.last().map_or(self.nodes.len(), |again| again.0);
        let to = self.group.as_ref().map_or(most.min(self.done + self.some), |group| group.to);
        assert!(self.done < to, "a walk takes start nodes");
        self.done..to
    }

    fn group(&self, run: &Run, nodes: &Range<usize>, zero: bool, told: usize) -> Result<ClosureGroup> {
        let closure = Closure::new(run, &self.nodes[nodes.clone()], zero)?;
        let is_each = self.starts.is_some() && self.direction.goal != PathEnd::New;
        let seeking = is_each.then(|| self.rows(nodes).len());
        Ok(ClosureGroup { to: nodes.end, closure, level: 0, told, seeking, is_over: false })
    }

    /// The rows of some start nodes, with these where they have one.
    fn rows(&self, nodes: &Range<usize>) -> Vec<(Option<TermId>, u32)> {
        let Some(starts) = &self.starts else {
            return self.job.rows.iter().map(|row| (None, *row)).collect();
        };
        let first = starts.partition_point(|s| s.0 < self.nodes[nodes.start]);
        let end = starts.partition_point(|s| s.0 <= self.nodes[nodes.end - 1]);
        starts[first..end].iter().map(|s| (Some(s.0), s.1)).collect()
    }

    /// All start nodes before this one are done. The next ones are as many as may reach about
    /// [`PAIRS`] pairs.
    fn finish(&mut self, to: usize, pairs: usize) {
        self.done = to;
        self.again.retain(|again| again.0 > to);
        self.some = match pairs {
            n if n > PAIRS => self.some / 2,
            n if n < PAIRS / 4 => self.some * 4,
            _ => self.some,
        }
        .clamp(1, 1 << 20);
    }
}

/// Start nodes whose closure is under way.
struct ClosureGroup {
    /// they end here
    to: usize,
    closure: Closure,
    level: usize,
    /// levels whose pairs were given out
    told: usize,
    /// rows that seek one pair each and have not met it; `None` where they seek all
    seeking: Option<usize>,
    is_over: bool,
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
        if (is_const(self.from) || is_const(self.to)) && self.path.may_be_empty() {
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

    /// The direction of the rows of a job: of two bound ends from the one with fewer nodes. With
    /// the nodes at its goal, where they are known.
    fn direction_of(&self, run: &mut Run, batch: &Batch, job: &Job) -> (Direction, Vec<TermId>) {
        let direction = self.direction();
        if direction.goal == PathEnd::New {
            return (direction, Vec::new());
        }
        let mut nodes =
            |end| distinct(job.rows.iter().filter_map(|row| Self::end(run, end, batch, *row as usize)));
        let (starts, goals) = (nodes(direction.start), nodes(direction.goal));
        if !goals.is_empty() && goals.len() < starts.len() {
            (direction.turned(), starts)
        } else {
            (direction, goals)
        }
    }

    fn begin(&self, run: &mut Run, batch: &Batch, job: Job) -> Result<Walking> {
        let (direction, goals) = self.direction_of(run, batch, &job);
        let start = direction.start;
        let mut starts = None;
        let nodes = if start == PathEnd::New {
            let mut walk = PathWalk { run, graphs: &job.graphs };
            if self.path.may_be_empty() { walk.nodes()? } else { walk.firsts(&self.path, direction.forward)? }
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
        let only_goal = match goals[..] {
            [goal] if nodes.len() == 1 => Some(goal),
            _ => None,
        };
        let mut held = run.memory.held();
        held.set(nodes.len() * 8 + starts.as_ref().map_or(0, |s| s.len() * 16), WHAT)?;
        Ok(Walking {
            job,
            direction,
            nodes,
            only_goal,
            held,
            done: 0,
            some: FIRST_NODES,
            starts,
            group: None,
            again: Vec::new(),
        })
    }

    /// The pairs of the next start nodes, or of the next level of their closure.
    fn walk(&self, run: &mut Run, walking: &mut Walking) -> Result<GivenPairs> {
        let (step, zero) = match &self.path {
            Path::ZeroOrMore(step) => (step, true),
            Path::OneOrMore(step) => (step, false),
            path => return self.walk_whole(run, walking, path),
        };
        match walking.only_goal {
            Some(goal) => self.meet(run, walking, step, zero, goal),
            None => self.walk_level(run, walking, step, zero),
        }
    }

    /// Fewer nodes when the memory does not suffice for more.
    fn walk_whole(&self, run: &mut Run, walking: &mut Walking, path: &Path) -> Result<GivenPairs> {
        loop {
            let nodes = walking.next_nodes();
            let mut walk = PathWalk { run, graphs: &walking.job.graphs };
            let pairs = walk.pairs(path, &walking.nodes[nodes.clone()], walking.direction.forward);
            let given = match pairs.and_then(|pairs| self.given(run, walking, &nodes, pairs)) {
                Err(QueryError::Memory { .. }) if nodes.len() > 1 => {
                    walking.some = nodes.len() / 2;
                    continue;
                }
                given => given?,
            };
            walking.finish(nodes.end, given.pairs.len());
            return Ok(given);
        }
    }

    /// The next level of a closure. Where the memory does not suffice it is begun anew with half of
    /// its nodes, and levels that were given out are passed over.
    fn walk_level(
        &self,
        run: &mut Run,
        walking: &mut Walking,
        step: &Path,
        zero: bool,
    ) -> Result<GivenPairs> {
        loop {
            let nodes = walking.next_nodes();
            let mut told = walking.again.last().map_or(0, |again| again.1);
            let group = match walking.group.take() {
                Some(group) => Ok(group),
                None => walking.group(run, &nodes, zero, told),
            };
            let level = group.and_then(|mut group| {
                told = group.told;
                let given = self.next_level(run, walking, &nodes, &mut group, step, zero)?;
                Ok((given, group))
            });
            match level {
                Err(QueryError::Memory { .. }) if nodes.len() > 1 => {
                    walking.again.push((nodes.end, told));
                    walking.some = nodes.len() / 2;
                }
                Err(e) => return Err(e),
                Ok((given, group)) => {
                    if group.is_over {
                        walking.finish(nodes.end, group.closure.len());
                    } else {
                        walking.group = Some(group);
                    }
                    return Ok(given);
                }
            }
        }
    }

    fn next_level(
        &self,
        run: &mut Run,
        walking: &Walking,
        nodes: &Range<usize>,
        group: &mut ClosureGroup,
        step: &Path,
        zero: bool,
    ) -> Result<GivenPairs> {
        let mut pairs = Reached::none(run);
        group.is_over = group.seeking == Some(0);
        while !group.is_over && pairs.list.is_empty() {
            let mut walk = PathWalk { run, graphs: &walking.job.graphs };
            group.is_over = !group.closure.grow(&mut walk, step, walking.direction.forward)?;
            group.level += 1;
            if group.level > group.told {
                group.told = group.level;
                if zero && group.level == 1 {
                    let mut starts = walking.nodes[nodes.clone()].iter().zip(0..);
                    starts.try_for_each(|(node, i)| pairs.push(i, *node))?;
                }
                group.closure.news().iter().try_for_each(|(start, node)| pairs.push(*start, *node))?;
            }
        }
        self.given(run, walking, nodes, pairs)
    }

    /// Whether one node reaches another: the smaller frontier goes on.
    fn meet(
        &self,
        run: &mut Run,
        walking: &mut Walking,
        step: &Path,
        zero: bool,
        goal: TermId,
    ) -> Result<GivenPairs> {
        let ends = [walking.nodes[0], goal];
        let [mut near, mut far] =
            [Closure::new(run, &ends[..1], zero)?, Closure::new(run, &ends[1..], zero)?];
        let mut met = zero && ends[0] == ends[1];
        let mut walk = PathWalk { run, graphs: &walking.job.graphs };
        while !met {
            let is_near = near.news().len() <= far.news().len();
            let (this, other, sought) =
                if is_near { (&mut near, &far, ends[1]) } else { (&mut far, &near, ends[0]) };
            if !this.grow(&mut walk, step, walking.direction.forward == is_near)? {
                break;
            }
            met = this.news().iter().any(|(_, node)| *node == sought || other.has(0, *node));
        }
        drop((near, far));
        let mut pairs = Reached::none(run);
        if met {
            pairs.push(0, goal)?;
        }
        let given = self.given(run, walking, &(0..1), pairs)?;
        walking.finish(1, 1);
        Ok(given)
    }

    /// Start and end of all pairs of some start nodes, sorted, with the rows of these.
    fn given(
        &self,
        run: &mut Run,
        walking: &Walking,
        nodes: &Range<usize>,
        mut pairs: Reached,
    ) -> Result<GivenPairs> {
        let Direction { start, goal, .. } = walking.direction;
        let some = &walking.nodes[nodes.clone()];
        let variable = |end| matches!(end, PathEnd::Is(Src::Col(_)));
        if self.path.may_be_empty() && variable(start) && (variable(goal) || goal == PathEnd::New) {
            PathWalk { run, graphs: &walking.job.graphs }.only_nodes(some, &mut pairs)?;
        }
        let mut held = run.memory.held();
        held.set(pairs.list.len() * 16, WHAT)?;
        let mut given: Vec<(TermId, TermId)> = Vec::with_capacity(pairs.list.len());
        given.extend(pairs.list.into_iter().map(|(n, t)| (some[n as usize], t)));
        given.sort_unstable();
        let rows = if given.is_empty() { Vec::new() } else { walking.rows(nodes) };
        Ok(GivenPairs { pairs: given, held, rows, row: 0, pair: None })
    }

    /// The next batch of what is being given out; `None` when that is all.
    fn give(
        &self,
        run: &mut Run,
        batch: &Batch,
        direction: Direction,
        name: Option<TermId>,
        given: &mut GivenPairs,
    ) -> Result<Option<Batch>> {
        let Direction { forward, goal, .. } = direction;
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
            if let (Some(given), Some(walking)) = (&mut state.given, &mut state.walking) {
                let out = self.give(run, &state.batch, walking.direction, walking.job.name, given)?;
                if let Some(out) = out {
                    if let Some(ClosureGroup { seeking: Some(rows), .. }) = &mut walking.group {
                        *rows -= out.rows;
                    }
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
