//! Paths walked a little way, from a constant or from some rows of a sample.

use std::rc::Rc;

use rustc_hash::FxHashSet;
use snowmelt_graph::{Index, TermId};

use super::sample::{Sample, places};
use super::tried::ROWS;
use super::{Estimate, Planner};
use crate::algebra::{Const, GraphSlot, Pattern, PropertyPath, Slot, Var, VarSet};
use crate::error::QueryError;

/// Rows of a sample from which paths are walked, nodes that they reach together, and each at least.
const WALKS: u64 = 16;
const REACHED: usize = 640;
const LEAST_REACHED: usize = 40;

type Result<T> = std::result::Result<T, QueryError>;

impl<'a> Planner<'a> {
    /// Expectations of a path from the rows of a sample, or from a constant: its other end is
    /// new. `None` where it cannot be tried.
    pub(super) fn walked(
        &mut self,
        left: &Estimate,
        path: &PropertyPath,
        (from, to): (Slot, Var),
        is_turned: bool,
    ) -> Result<Option<Estimate>> {
        if !self.can_look() {
            return Ok(None);
        }
        let pairs = self.path_pairs(path)?;
        let ends = pairs.nodes + if is_turned { pairs.starts } else { pairs.ends };
        let (sample, starts) = match (from, left.sample.clone()) {
            (Slot::Const(c), _) => {
                let Some(id) = self.statistics.id(c) else { return Ok(None) };
                (Sample { vars: Vec::new(), cols: Vec::new(), rows: 1, is_whole: left.rows == 1.0 }, vec![id])
            }
            (Slot::Var(v), Some(sample)) if sample.has(v) && sample.rows > 0 => {
                let starts = sample.col(v).cloned().unwrap_or_default();
                (Sample::clone(&sample), starts)
            }
            _ => return Ok(None),
        };
        // few walks go far; of many starts some are walked from
        let walks = places(starts.len() as u64, WALKS);
        let most = (REACHED / walks.len()).max(LEAST_REACHED);
        let (mut rows, mut nodes, mut reached, mut is_whole) = (Vec::new(), Vec::new(), 0.0, sample.is_whole);
        for row in &walks {
            let row = *row as usize;
            let Some((found, is_all)) = self.reached(path, starts[row], is_turned, most)? else {
                return Ok(None);
            };
            is_whole &= is_all;
            reached += match found.len() as f64 {
                found if is_all => found,
                // between those that were reached and all there may be
                found => (found.max(1.0) * ends.max(found)).sqrt(),
            };
            rows.extend(found.iter().map(|_| row));
            nodes.extend(found);
        }
        is_whole &= walks.len() == starts.len();
        let mut estimate = left.clone();
        estimate.rows *= reached / walks.len() as f64;
        estimate.set(to, ends.min(estimate.rows).max(1.0), ends.max(1.0));
        let step = rows.len().div_ceil(2 * ROWS as usize).max(1);
        let kept: Vec<usize> = (0..rows.len()).step_by(step).collect();
        is_whole &= step == 1;
        let picked: Vec<usize> = kept.iter().map(|i| rows[*i]).collect();
        let walked = Sample { is_whole, ..sample.picked(&picked) };
        let walked = walked.with(to, kept.iter().map(|i| nodes[*i]).collect());
        estimate.sample = (walked.rows > 0).then(|| Rc::new(walked));
        Ok(Some(estimate))
    }

    /// A pattern whose subjects are the nodes at which a path begins.
    pub(super) fn starts_of(&mut self, path: &PropertyPath, start: Var) -> Result<Option<Estimate>> {
        let mut first = path;
        let mut is_turned = false;
        let predicate = loop {
            first = match first {
                PropertyPath::Predicate(c) => break *c,
                PropertyPath::Reverse(path) => {
                    is_turned = !is_turned;
                    path
                }
                PropertyPath::Sequence(steps) if is_turned => &steps[steps.len() - 1],
                PropertyPath::Sequence(steps) => &steps[0],
                PropertyPath::OneOrMore(path) => path,
                _ => return Ok(None),
            };
        };
        let other = self.fresh();
        let (s, o) = if is_turned { (other, start) } else { (start, other) };
        let pattern =
            Pattern { s: Slot::Var(s), p: Slot::Const(predicate), o: Slot::Var(o), g: GraphSlot::Default };
        let Some(sample) = self.sample_of(&pattern)? else { return Ok(None) };
        let only: VarSet = std::iter::once(start).collect();
        let sample = match sample.is_whole {
            true => sample.distinct_rows(&only),
            false => match self.each_value_once(&pattern, &sample, start)? {
                Some(values) => values,
                None => return Ok(None),
            },
        };
        let Some(id) = self.statistics.id(predicate) else { return Ok(None) };
        let of = self.statistics.predicate(id)?;
        let starts = if is_turned { of.objects } else { of.subjects };
        let mut estimate = Estimate::of_rows(starts);
        estimate.set(start, starts, starts);
        estimate.sample = Some(Rc::new(sample));
        Ok(Some(estimate))
    }

    /// Nodes that a path reaches from one, up to `most`, and whether these are all.
    pub(super) fn reached(
        &mut self,
        path: &PropertyPath,
        from: TermId,
        is_turned: bool,
        most: usize,
    ) -> Result<Option<(Vec<TermId>, bool)>> {
        use PropertyPath as P;
        if self.looks == 0 || most == 0 {
            return Ok(Some((Vec::new(), false)));
        }
        Ok(Some(match path {
            P::Predicate(c) => return self.neighbours(*c, from, is_turned, most).map(Some),
            P::Reverse(path) => return self.reached(path, from, !is_turned, most),
            P::Alternative(paths) => {
                let (mut all, mut is_all) = (FxHashSet::default(), true);
                for path in paths {
                    let Some((nodes, is_whole)) = self.reached(path, from, is_turned, most)? else {
                        return Ok(None);
                    };
                    all.extend(nodes);
                    is_all &= is_whole;
                }
                (all.into_iter().collect(), is_all)
            }
            P::Sequence(steps) => {
                let (mut at, mut is_all) = (vec![from], true);
                let steps: Vec<_> =
                    if is_turned { steps.iter().rev().collect() } else { steps.iter().collect() };
                for step in steps {
                    let mut next = FxHashSet::default();
                    for node in at {
                        let left = most.saturating_sub(next.len());
                        let Some((nodes, is_whole)) = self.reached(step, node, is_turned, left)? else {
                            return Ok(None);
                        };
                        next.extend(nodes);
                        is_all &= is_whole;
                    }
                    at = next.into_iter().collect();
                }
                (at, is_all)
            }
            P::ZeroOrOne(path) => {
                let Some((mut nodes, is_all)) = self.reached(path, from, is_turned, most)? else {
                    return Ok(None);
                };
                if !nodes.contains(&from) {
                    nodes.push(from);
                }
                (nodes, is_all)
            }
            P::ZeroOrMore(path) => return self.closed(path, from, is_turned, true, most),
            P::OneOrMore(path) => return self.closed(path, from, is_turned, false, most),
            P::Negated(_) => return Ok(None),
        }))
    }

    /// Nodes that any number of steps reaches.
    fn closed(
        &mut self,
        step: &PropertyPath,
        from: TermId,
        is_turned: bool,
        has_itself: bool,
        most: usize,
    ) -> Result<Option<(Vec<TermId>, bool)>> {
        let mut seen: FxHashSet<TermId> = FxHashSet::default();
        let mut reached = Vec::new();
        if has_itself {
            seen.insert(from);
            reached.push(from);
        }
        let (mut open, mut next) = (vec![from], 0);
        while let Some(node) = open.get(next).copied() {
            next += 1;
            if reached.len() >= most || self.looks == 0 {
                return Ok(Some((reached, false)));
            }
            let Some((nodes, is_whole)) = self.reached(step, node, is_turned, most)? else { return Ok(None) };
            for node in nodes {
                if seen.insert(node) {
                    reached.push(node);
                    open.push(node);
                }
            }
            if !is_whole {
                return Ok(Some((reached, false)));
            }
        }
        Ok(Some((reached, true)))
    }

    fn neighbours(
        &mut self,
        p: Const,
        of: TermId,
        is_turned: bool,
        most: usize,
    ) -> Result<(Vec<TermId>, bool)> {
        let Some(predicate) = self.statistics.id(p) else { return Ok((Vec::new(), true)) };
        let index = if is_turned { Index::Posg } else { Index::Psog };
        let count = self.statistics.count_for_sample(index, &[predicate, of])?;
        let places: Vec<u64> = (0..count.min(most as u64)).collect();
        let rows = if places.is_empty() {
            Vec::new()
        } else {
            self.statistics.rows_at(index, &[predicate, of], &places)?
        };
        self.look(1 + rows.len());
        Ok((rows.iter().map(|row| TermId(row[2])).collect(), count <= most as u64))
    }
}
