//! One step of a join: a pattern by look-ups or a scan, a path, the names of graphs.

use snowmelt_graph::{Column, Index};

use super::fold::{are_apart, folded_visit, folds, whole_visit};
use super::{Result, Subplan, Want, seeded};
use crate::algebra::{Expression, GraphSlot, Node, Pattern, Slot, Var, VarSet};
use crate::optimise::access::{CountedPattern, Visit, scanned_index, visits};
use crate::optimise::device_time::{self, Reach};
use crate::optimise::guess::{NAMED_GRAPHS, bounded};
use crate::optimise::tried::Joined;
use crate::optimise::{Estimate, OfVariable, Planner, PredicateStatistics};
use crate::plan::ranged::ranged;
use crate::plan::{Access, Bounds, Copies, Finds, JoinKind, Op, PathEnd, PathGraph, Src};

/// Rows of an index that are read as fast as a leap over equal ones finds the next.
const ROWS_PER_LEAP: f64 = 600.0;

/// Rows from which on a look-up by one column, which can be a merge, beats one by two.
const MERGED_ROWS: f64 = 1024.0;

/// Objects of a subject, on average, of which all are read to find one.
const FEW_OBJECTS: f64 = 2.0;

impl<'a> Planner<'a> {
    pub(super) fn pattern_step(
        &mut self,
        p: &Pattern,
        current: Option<Subplan>,
        want: &Want,
        ready: &mut Vec<Expression>,
        nodes: &[Node],
    ) -> Result<Subplan> {
        let estimate = self.pattern(p)?;
        let Some(current) = current else {
            let mut built = self.scan(p, want, estimate, ready, nodes)?;
            self.sample_scan(p, &mut built)?;
            return Ok(built);
        };
        let want_all = want;
        let want = &want.with(&self.reads(ready));
        let shared = current.vars().intersection(&p.vars());
        let joined = self.joined(&current.estimate, p, &estimate)?;
        let reach = self.reach(p, &current.vars())?;
        let found = joined.all.rows;
        let lookup = self.costs.lookup(current.estimate.rows, estimate.rows, found, reach).total();
        let apart = self.costs.scan(estimate.rows, scanned_index(p)).total()
            + self.costs.hash(
                estimate.rows.min(current.estimate.rows),
                estimate.rows.max(current.estimate.rows),
                found,
            );
        if shared.is_empty()
            || !shared.is_subset(&current.certain)
            || (apart + device_time::handicap(&self.costs.reads) < lookup && !seeded(&current.node))
        {
            let scan = self.scan(p, &want_all.with(&shared), estimate, ready, nodes)?;
            let is_once = gives_once(&scan, &shared);
            let mut built = self.hash(current, scan, JoinKind::Inner, &want.vars);
            expect(&mut built, if is_once { joined.once } else { joined.all });
            return Ok(built);
        }
        self.lookups(p, current, want, joined)
    }

    /// Takes a sample of what a scan gives.
    fn sample_scan(&mut self, p: &Pattern, built: &mut Subplan) -> Result<()> {
        let Op::Scan { access } = &built.node.op else { return Ok(()) };
        let conditions = access.bounds.as_ref().map_or_else(Vec::new, |bounds| bounds.conditions.clone());
        let given = built.node.vars[..access.new.len()].to_vec();
        let folded = (access.copies != Copies::Count).then_some(&given[..]);
        self.sample_of_scan(p, &conditions, folded, &mut built.estimate)?;
        built.node.rows = built.estimate.rows;
        Ok(())
    }

    /// A scan of a pattern, by ranges where conditions have them; these are no longer among those
    /// that are ready.
    fn scan(
        &mut self,
        p: &Pattern,
        want: &Want,
        mut estimate: Estimate,
        ready: &mut Vec<Expression>,
        nodes: &[Node],
    ) -> Result<Subplan> {
        let bounds = self.bounds(p, want, estimate.rows, ready);
        for condition in bounds.iter().flat_map(|bounds| &bounds.conditions) {
            estimate.rows *= self.selectivity(condition, nodes)?;
        }
        let want = &want.with(&self.reads(ready));
        let list = match (&bounds, self.folded(p, want, &VarSet::default())) {
            (Some(bounds), _) => {
                let index = if p.s == Slot::Var(bounds.var) { Index::Psog } else { Index::Posg };
                vec![whole_visit(p, index, &VarSet::default()).expect("it has all columns")]
            }
            (None, Some(visit)) => vec![visit],
            (None, None) => visits(p, &VarSet::default()),
        };
        let later = list[1..].iter().fold(want.vars.clone(), |a, v| a.union(&key_vars(v)));
        let Some((mut access, mut vars)) = list[0].number(&[], &later, &self.scope, bounds) else {
            return Ok(self.nothing());
        };
        if list.len() == 1 {
            self.fold(&list[0], want, &VarSet::default(), &mut access, &mut vars);
        }
        let (estimate, read) = self.of_folded(&access, &vars, estimate);
        let cost = self.costs.scan(read, access.index);
        let certain = list[0].binds.clone();
        let mut built = self.make(Op::Scan { access }, vars, estimate, certain, cost);
        for (i, visit) in list.iter().enumerate().skip(1) {
            built = match self.lookup(visit, &list[i + 1..], built, want)? {
                Some(built) => built,
                None => return Ok(self.nothing()),
            };
        }
        Ok(built)
    }

    /// The one visit in whose index rows that differ only in what is not wanted are neighbours.
    pub(super) fn folded(&self, p: &Pattern, want: &Want, bound: &VarSet) -> Option<Visit> {
        if want.copies == Copies::Count { None } else { folded_visit(p, want, bound, &self.scope) }
    }

    /// Has a visit give neighbours that are equal in what is wanted as one row.
    pub(super) fn fold(
        &mut self,
        visit: &Visit,
        want: &Want,
        bound: &VarSet,
        access: &mut Access,
        vars: &mut Vec<Var>,
    ) {
        if want.copies == Copies::Count || access.merge_graphs || !folds(visit, &want.vars, bound) {
            return;
        }
        access.copies = want.copies;
        if want.copies == Copies::Weigh {
            vars.push(self.fresh_weight());
        }
    }

    /// Estimate of a scan, and how many rows of the index it reads: over long runs of equal
    /// rows it leaps.
    fn of_folded(&mut self, access: &Access, vars: &[Var], mut estimate: Estimate) -> (Estimate, f64) {
        let all = estimate.rows;
        let is_stepped = access.bounds.as_ref().is_some_and(|bounds| bounds.column > 0);
        let steps = if is_stepped { self.statistics.totals().predicates * ROWS_PER_LEAP } else { 0.0 };
        if access.copies == Copies::Count {
            return (estimate, all + steps);
        }
        let given = &vars[..access.new.len()];
        estimate.rows = match given {
            [] => all.min(1.0),
            _ => estimate.combinations(&given.iter().copied().collect()).max(all.min(1.0)),
        };
        let read = match access {
            access if access.counts() => all.min(estimate.rows * ROWS_PER_LEAP).max(steps),
            access if access.leaps() => all.min(estimate.rows * ROWS_PER_LEAP),
            _ => all + steps,
        };
        (estimate, read)
    }

    /// Where the keys of look-ups into a pattern lie when `bound` is known before.
    pub(super) fn reach(&mut self, p: &Pattern, bound: &VarSet) -> Result<Reach> {
        if self.costs.reads.times().is_none() {
            return Ok(self.anywhere());
        }
        Ok(self.counted(p)?.reach(bound, &self.costs.reads))
    }

    /// Keys that may lie anywhere among the quads.
    pub(in crate::optimise) fn anywhere(&self) -> Reach {
        Reach { index: Index::Psog.into(), rows: self.costs.reads.index(Index::Psog).rows }
    }

    /// A pattern with the counts that say where its keys lie.
    pub(super) fn counted(&mut self, p: &Pattern) -> Result<CountedPattern> {
        let rows = self.pattern(p)?.rows;
        let predicate = match p.p {
            Slot::Const(c) if p.triple_term().is_none() => self.statistics.id(c),
            _ => None,
        };
        let of_predicate = match predicate {
            Some(id) => Some(self.statistics.predicate(id)?.rows),
            None => None,
        };
        Ok(CountedPattern { pattern: p.clone(), of_predicate, rows })
    }

    /// The conditions on a pattern's object, or else on its subject, that a scan in the order of
    /// these takes as ranges: they are taken out of those that are ready.
    fn bounds(&mut self, p: &Pattern, want: &Want, rows: f64, ready: &mut Vec<Expression>) -> Option<Bounds> {
        let (Slot::Var(o), Slot::Var(s)) = (p.o, p.s) else { return None };
        if p.triple_term().is_some() || !are_apart(p) {
            return None;
        }
        let column = match (p.p, p.g) {
            (Slot::Const(_), _) => 0,
            (_, GraphSlot::Named(Slot::Const(_))) => return None,
            _ if self.statistics.totals().predicates * ROWS_PER_LEAP > rows => return None,
            _ => 1,
        };
        // of ranges that leave little out, what counts is the order of the subjects
        let in_order = want.vars.contains(s) || ready.iter().any(|c| c.vars().contains(s));
        [o, s].into_iter().find_map(|var| {
            let is_bound = |c: &mut Expression| {
                let vars = c.vars();
                let is_alone = vars.contains(var) && vars.iter().all(|v| v == var);
                is_alone && ranged(c, var).is_some_and(|ranged| var == s || !in_order || ranged.compares(o))
            };
            let conditions: Vec<Expression> = ready.extract_if(.., is_bound).collect();
            (!conditions.is_empty()).then_some(Bounds { conditions, var, column })
        })
    }

    fn lookups(&mut self, p: &Pattern, current: Subplan, want: &Want, joined: Joined) -> Result<Subplan> {
        let list = match self.folded(p, want, &current.vars()) {
            Some(visit) => vec![visit],
            None => visits(p, &current.vars()),
        };
        let list = self.by_subject(list, p, current.estimate.rows)?;
        let mut built = current;
        for (i, visit) in list.iter().enumerate() {
            built = match self.lookup(visit, &list[i + 1..], built, want)? {
                Some(built) => built,
                None => return Ok(self.nothing()),
            };
        }
        let is_once = matches!(&built.node.op, Op::Lookup { access, .. }
            if access.copies != Copies::Count && access.new.is_empty());
        expect(&mut built, if is_once { joined.once } else { joined.all });
        Ok(built)
    }

    /// A visit by subject and object of many rows as one by subject, which can be a merge; the
    /// object is a test then. Only where subjects have hardly more objects than one.
    fn by_subject(&mut self, mut list: Vec<Visit>, p: &Pattern, rows: f64) -> Result<Vec<Visit>> {
        let (Slot::Const(predicate), Slot::Var(_), Slot::Var(_)) = (p.p, p.s, p.o) else { return Ok(list) };
        let [visit] = &mut list[..] else { return Ok(list) };
        if rows < MERGED_ROWS || visit.index != Index::Psog.into() || visit.key.len() != 3 {
            return Ok(list);
        }
        let Some(id) = self.statistics.id(predicate) else { return Ok(list) };
        let PredicateStatistics { rows, subjects, .. } = self.statistics.predicate(id)?;
        if rows <= FEW_OBJECTS * subjects {
            visit.key.pop();
            visit.rest.insert(0, Column::Object);
        }
        Ok(list)
    }

    fn lookup(
        &mut self,
        visit: &Visit,
        later: &[Visit],
        input: Subplan,
        want: &Want,
    ) -> Result<Option<Subplan>> {
        let live = &want.vars;
        let wanted = later.iter().fold(live.clone(), |a, v| a.union(&key_vars(v)).union(&v.pattern.vars()));
        let wanted = if later.is_empty() { live.clone() } else { wanted };
        let Some((mut access, new)) = visit.number(&input.node.vars, &wanted, &self.scope, None) else {
            return Ok(None);
        };
        let keep = input.kept(&wanted);
        let mut vars = input.pick(&keep);
        let emit = (0..new.len() as u16).collect();
        vars.extend(&new);
        if later.is_empty() {
            self.fold(visit, want, &input.vars(), &mut access, &mut vars);
        }
        let pattern = self.pattern(&visit.pattern)?;
        let estimate = input.estimate.join(&pattern);
        let reach = self.reach(&visit.pattern, &input.vars())?;
        let cost =
            input.node.cost + self.costs.lookup(input.estimate.rows, pattern.rows, estimate.rows, reach);
        let certain = input.certain.union(&visit.binds);
        let op = Op::Lookup {
            input: Box::new(input.node),
            access,
            finds: Finds::Rows,
            keep,
            conditions: Vec::new(),
            new,
            emit,
            star: Vec::new(),
        };
        Ok(Some(self.make(op, vars, estimate, certain, cost)))
    }

    pub(super) fn graph_names(&mut self, slot: Slot, current: Option<Subplan>, live: &VarSet) -> Subplan {
        let (graph, vars) = match slot {
            Slot::Const(c) => (Some(c), Vec::new()),
            Slot::Var(v) => (None, vec![v]),
        };
        let of = self.scope.named.clone();
        // a constant is one of them or not
        let rows = if graph.is_some() { 1.0 } else { NAMED_GRAPHS };
        let mut estimate = Estimate::of_rows(rows);
        estimate.vars.extend(vars.iter().map(|v| OfVariable::whole(*v, NAMED_GRAPHS)));
        let certain = vars.iter().copied().collect();
        let names = self.make(Op::GraphNames { graph, of }, vars, estimate, certain, 1.0);
        match current {
            Some(current) => self.hash(current, names, JoinKind::Inner, live),
            None => names,
        }
    }

    /// Expectations of a path from or to what is bound before it.
    fn path_rows(&mut self, node: &Node, current: &Subplan, alone: &Estimate) -> Result<Estimate> {
        let Node::Path { s, path, o, g } = node else { unreachable!("called for paths") };
        let mut guess = current.estimate.join(alone);
        guess.rows = guess.rows.max(current.estimate.rows);
        let is_bound = |slot: Slot| slot.var().is_none_or(|v| current.node.col(v).is_some());
        if *g != GraphSlot::Default || s == o {
            return Ok(guess);
        }
        let tried = match (is_bound(*s), is_bound(*o), s.var(), o.var()) {
            (true, false, _, Some(to)) => self.walked(&current.estimate, path, (*s, to), false)?,
            (false, true, Some(to), _) => self.walked(&current.estimate, path, (*o, to), true)?,
            (false, false, Some(from), Some(to)) if current.node.vars.is_empty() => {
                match self.starts_of(path, from)? {
                    Some(starts) => self.walked(&starts, path, (*s, to), false)?,
                    None => None,
                }
            }
            _ => None,
        };
        Ok(tried.unwrap_or(guess))
    }

    pub(super) fn path_step(
        &mut self,
        node: &'a Node,
        current: Option<Subplan>,
        live: &VarSet,
    ) -> Result<Subplan> {
        let Node::Path { s, path, o, g } = node else { unreachable!("called for paths") };
        let current = match current {
            Some(current) => current,
            None => self.unit(),
        };
        let scope = node.scope();
        let known = current.vars().intersection(&scope.possible);
        let walk = self.walk_cost(node)?;
        let distinct = |v| current.vars().contains(v).then(|| current.estimate.distinct(v));
        let walked = walk.of_rows(distinct).unwrap_or(walk.all);
        let alone = self.estimate(node)?;
        let apart = walk.all.total() + self.costs.hash(current.estimate.rows, alone.rows, 0.0);
        if !known.is_subset(&current.certain) || (apart < walked.total() && !seeded(&current.node)) {
            let wanted = live.union(&known);
            let walked = self.path_step(node, None, &wanted)?;
            return Ok(self.hash(current, walked, JoinKind::Inner, live));
        }
        let src = |slot: Slot| match slot {
            Slot::Const(c) => Some(Src::Const(c)),
            Slot::Var(v) => current.node.col(v).map(Src::Col),
        };
        let end = |slot: Slot| src(slot).map_or(PathEnd::New, PathEnd::Is);
        let (from, to) = (end(*s), end(*o));
        let same = s == o && from == PathEnd::New;
        let graph = match g {
            GraphSlot::Default | GraphSlot::TripleTerm(_) => PathGraph::Default,
            GraphSlot::Named(slot) => src(*slot).map_or(PathGraph::Each, PathGraph::Is),
        };
        let keep = current.kept(live);
        let mut vars = current.pick(&keep);
        if from == PathEnd::New {
            vars.extend(s.var());
        }
        if to == PathEnd::New && !same {
            vars.extend(o.var());
        }
        if let (PathGraph::Each, GraphSlot::Named(Slot::Var(v))) = (&graph, g) {
            vars.push(*v);
        }
        let estimate = self.path_rows(node, &current, &alone)?;
        let cost = current.node.cost + walked + estimate.rows * self.costs.row;
        let certain = current.certain.union(&scope.certain);
        let op = Op::Path { input: Box::new(current.node), from, path: path.clone(), to, graph, same, keep };
        Ok(self.make(op, vars, estimate, certain, cost))
    }
}

/// Whether rows of a scan that have the same join columns come as one.
fn gives_once(scan: &Subplan, shared: &VarSet) -> bool {
    match &scan.node.op {
        Op::Scan { access } => {
            access.copies != Copies::Count && scan.vars().minus(&scan.weights).is_subset(shared)
        }
        _ => false,
    }
}

/// Has an operator's rows be what is expected of them.
pub(super) fn expect(built: &mut Subplan, estimate: Estimate) {
    built.node.rows = bounded(estimate.rows);
    built.estimate = Estimate { rows: built.node.rows, ..estimate };
}

fn key_vars(visit: &Visit) -> VarSet {
    visit.key.iter().filter_map(|s| s.var()).collect()
}
