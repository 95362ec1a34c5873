//! Samples of rows: what a plan's next step will find, tried on a few rows of the step before.
//!
//! After *Cardinality Estimation Done Right: Index-Based Join Sampling* (Leis et al., CIDR 2017).
//! The counts of the inner nodes give any row of a range by its place, and the number of rows under
//! any key, each for a descent. So:
//!
//! 1. of the rows of a first pattern some are read, at equal distances;
//! 2. for each of them the rows of the next pattern are counted. Their sum, by the share of the
//!    sample, is the size of the join; some of these rows are read in turn;
//! 3. conditions are asked of the rows of the sample, and computed keys computed.
//!
//! A sample that finds nothing says only that there is little. Samples are taken where all is in
//! memory, and of the default graph where there is no other; a plan has [`LOOKS`] for all of them.

use std::rc::Rc;

use rustc_hash::FxHashSet;
use snowmelt_graph::{Index, TermId};

use super::guess::{HAS_MATCH, LEAST_SHARE};
use super::sample::{Sample, places};
use super::{Estimate, Planner};
use crate::algebra::{ExistsKind, Expression, GraphSlot, Node, Pattern, Slot, Var, VarSet};
use crate::error::QueryError;

/// Descents for the samples of a plan.
pub(super) const LOOKS: usize = 3000;

/// Rows of a sample.
pub(super) const ROWS: u64 = 128;

/// Rows that must pass a condition for their share to be taken as that of all.
const ENOUGH: usize = 4;

/// Share of a sample's row that is taken to match where no row of it does.
const MISSED: f64 = 0.7;

type Result<T> = std::result::Result<T, QueryError>;

/// A visit to a pattern: index and key, and the variables that are not of the key, by the index's
/// column.
type SampledVisit = (Index, Vec<TermId>, Vec<(usize, Var)>);

/// Rows of a sample joined with a pattern.
struct Extension {
    /// rows of the pattern for each row of the sample
    counts: Vec<u64>,
    index: Index,
    keys: Vec<Vec<TermId>>,
    /// variables of the pattern that are new, by the index's column
    new: Vec<(usize, Var)>,
}

/// Expectations of a join with a pattern.
pub(super) struct Joined {
    /// each row with each of its matches
    pub all: Estimate,
    /// each row that has a match
    pub once: Estimate,
}

impl Estimate {
    /// Rows that one of the sample stands for.
    fn scale(&self, sample: &Sample) -> f64 {
        if sample.is_whole { 1.0 } else { self.rows / sample.rows.max(1) as f64 }
    }

    /// Fewer rows, of which `hits` are in the sample; `guess` is what else there is to go by.
    fn cut_to(&mut self, hits: f64, sample: &Sample, guess: f64) {
        let scale = self.scale(sample);
        self.rows = match hits {
            hits if hits > 0.0 || sample.is_whole => hits * scale,
            _ => guess.min((MISSED * scale).max(1.0).sqrt()),
        };
    }

    /// The different rows of some columns.
    pub(super) fn made_distinct(mut self, vars: &VarSet) -> Self {
        self.sample = self.sample.map(|sample| Rc::new(sample.distinct_rows(vars)));
        self.rows = match &self.sample {
            Some(sample) if sample.is_whole => sample.rows as f64,
            _ => self.combinations(vars).max(self.rows.min(1.0)),
        };
        self
    }

    /// Groups of its rows by some variables, by its sample where there is one.
    pub(super) fn groups(&self, keys: &[Var]) -> Option<f64> {
        if keys.is_empty() || keys.iter().any(|key| self.find(*key).is_none()) {
            return None;
        }
        let known = self.combinations(&keys.iter().copied().collect());
        // what is known of a single column is exact
        let sample = self.sample.as_ref().filter(|sample| sample.rows > 0 && keys.len() > 1);
        let sampled = sample.and_then(|sample| sample.distinct(keys, self.rows));
        Some(sampled.map_or(known, |sampled| sampled.min(known)))
    }
}

impl<'a> Planner<'a> {
    /// Whether rows can be looked at: all graphs are one, and in memory.
    pub(super) fn can_look(&self) -> bool {
        self.costs.reads.can_look() && self.scope.plain && self.scope.default.is_none()
    }

    /// Whether samples can be taken of a pattern: it has a predicate.
    fn can_sample(&self, p: &Pattern) -> bool {
        self.looks > 0
            && self.can_look()
            && p.g == GraphSlot::Default
            && matches!(p.p, Slot::Const(_))
            && (p.s.var().is_none() || p.s != p.o)
    }

    pub(super) fn look(&mut self, times: usize) {
        self.looks = self.looks.saturating_sub(times);
    }

    /// A visit to a pattern, with values for its variables.
    fn sampled_visit(&mut self, p: &Pattern, value: &dyn Fn(Var) -> Option<TermId>) -> Option<SampledVisit> {
        let mut id = |slot: Slot| match slot {
            Slot::Const(c) => Some(self.statistics.id(c)),
            Slot::Var(v) => value(v).map(Some),
        };
        let (predicate, s, o) = (id(p.p)??, id(p.s), id(p.o));
        // a constant that the data does not have
        if s == Some(None) || o == Some(None) {
            return None;
        }
        Some(match (s.flatten(), o.flatten(), p.s, p.o) {
            (Some(s), Some(o), ..) => (Index::Psog, vec![predicate, s, o], Vec::new()),
            (Some(s), None, _, Slot::Var(o)) => (Index::Psog, vec![predicate, s], vec![(2, o)]),
            (None, Some(o), Slot::Var(s), _) => (Index::Posg, vec![predicate, o], vec![(2, s)]),
            (None, None, Slot::Var(s), Slot::Var(o)) => (Index::Psog, vec![predicate], vec![(1, s), (2, o)]),
            _ => return None,
        })
    }

    /// Rows of a pattern alone.
    pub(super) fn sample_of(&mut self, p: &Pattern) -> Result<Option<Sample>> {
        if !self.can_sample(p) {
            return Ok(None);
        }
        let Some((index, key, new)) = self.sampled_visit(p, &|_| None) else { return Ok(None) };
        let all = self.statistics.count_for_sample(index, &key)?;
        let places = places(all, ROWS.min(self.looks as u64));
        self.look(places.len());
        let rows = self.statistics.rows_at(index, &key, &places)?;
        let cols = new.iter().map(|(c, _)| rows.iter().map(|row| TermId(row[*c])).collect()).collect();
        let is_whole = all == rows.len() as u64;
        Ok((!new.is_empty()).then(|| Sample::new(new.iter().map(|n| n.1).collect(), cols, is_whole)))
    }

    /// The rows of a pattern for each row of a sample; `None` where they cannot be counted.
    fn extension(&mut self, sample: &Sample, p: &Pattern) -> Result<Option<Extension>> {
        let is_met = p.vars().iter().any(|v| sample.has(v));
        if !is_met || !self.can_sample(p) || self.looks < sample.rows {
            return Ok(None);
        }
        let mut all = Extension { counts: Vec::new(), index: Index::Psog, keys: Vec::new(), new: Vec::new() };
        for row in 0..sample.rows {
            let value = |v: Var| sample.col(v).map(|col| col[row]);
            let Some((index, key, new)) = self.sampled_visit(p, &value) else { return Ok(None) };
            let is_bound = key.iter().all(|id| *id != TermId::UNDEF);
            all.counts.push(if is_bound { self.statistics.count_for_sample(index, &key)? } else { 0 });
            all.keys.push(key);
            (all.index, all.new) = (index, new);
        }
        self.look(sample.rows);
        Ok(Some(all))
    }

    /// Some rows of a join that was counted.
    fn extended(&mut self, sample: &Sample, extension: &Extension) -> Result<Sample> {
        let total: u64 = extension.counts.iter().sum();
        let mut wanted = places(total, ROWS.min(self.looks as u64)).into_iter().peekable();
        let mut before = 0;
        let of_row = |count: u64| {
            let end = before + count;
            let of_row = std::iter::from_fn(|| wanted.next_if(|place| *place < end)).map(|at| at - before);
            let of_row = of_row.collect();
            before = end;
            of_row
        };
        let joined = self.taken(sample, extension, of_row)?;
        let is_whole = sample.is_whole && joined.rows as u64 == total;
        Ok(Sample { is_whole, ..joined })
    }

    /// All rows of a join that was counted, up to twice the rows of a sample: some of each.
    fn all_extended(&mut self, sample: &Sample, extension: &Extension) -> Result<Sample> {
        let total: u64 = extension.counts.iter().sum();
        let most = if total > 2 * ROWS { 1 } else { u64::MAX };
        self.taken(sample, extension, |count| (0..count.min(most)).collect())
    }

    /// Rows of a join that was counted: of each row of the sample those at some places among so
    /// many.
    fn taken(
        &mut self,
        sample: &Sample,
        extension: &Extension,
        mut places: impl FnMut(u64) -> Vec<u64>,
    ) -> Result<Sample> {
        let (mut rows, mut cols) = (Vec::new(), vec![Vec::new(); extension.new.len()]);
        for (row, count) in extension.counts.iter().enumerate() {
            let places = places(*count);
            if extension.new.is_empty() || places.is_empty() {
                rows.extend(places.iter().map(|_| row));
                continue;
            }
            self.look(places.len());
            for found in self.statistics.rows_at(extension.index, &extension.keys[row], &places)? {
                rows.push(row);
                cols.iter_mut().zip(&extension.new).for_each(|(col, (c, _))| col.push(TermId(found[*c])));
            }
        }
        let joined = sample.picked(&rows);
        Ok(extension.new.iter().zip(cols).fold(joined, |joined, ((_, v), col)| joined.with(*v, col)))
    }

    /// Expectations of a join with a pattern, tried on the sample of its left side.
    pub(super) fn joined(&mut self, left: &Estimate, p: &Pattern, right: &Estimate) -> Result<Joined> {
        let mut all = left.join(right);
        let (rows, guess) = (all.rows.min(left.rows), all.rows);
        let mut once = Estimate { rows, ..all.clone() };
        let Some(sample) = left.sample.clone() else { return Ok(Joined { all, once }) };
        let Some(extension) = self.extension(&sample, p)? else { return Ok(Joined { all, once }) };
        let hits: u64 = extension.counts.iter().sum();
        (all.rows, once.rows) = (left.rows, left.rows);
        all.cut_to(hits as f64, &sample, guess);
        let matched: Vec<usize> = (0..sample.rows).filter(|row| extension.counts[*row] > 0).collect();
        once.cut_to(matched.len() as f64, &sample, guess);
        if hits > 0 {
            all.sample = Some(Rc::new(self.extended(&sample, &extension)?));
            once.sample = Some(Rc::new(sample.picked(&matched)));
        }
        Ok(Joined { all, once })
    }

    /// Expectations of an OPTIONAL of a pattern.
    pub(super) fn left_joined(&mut self, left: &Estimate, p: &Pattern, right: &Estimate) -> Result<Estimate> {
        let mut joined = left.left_join(right);
        let Some(sample) = left.sample.clone().filter(|sample| sample.rows > 0) else { return Ok(joined) };
        let Some(mut extension) = self.extension(&sample, p)? else { return Ok(joined) };
        let unmatched: Vec<bool> = extension.counts.iter().map(|count| *count == 0).collect();
        extension.counts.iter_mut().for_each(|count| *count = (*count).max(1));
        joined.rows = left.scale(&sample) * extension.counts.iter().sum::<u64>() as f64;
        // what was not found is unbound
        if !unmatched.contains(&true) {
            joined.sample = Some(Rc::new(self.extended(&sample, &extension)?));
        }
        Ok(joined)
    }

    /// The rows of an estimate for which a right side has a match, or has none.
    pub(super) fn matched(
        &mut self,
        left: &Estimate,
        right: &Node,
        conditions: &[Expression],
        wants_match: bool,
    ) -> Result<Option<Estimate>> {
        let Some(sample) = left.sample.clone().filter(|sample| sample.rows > 0) else { return Ok(None) };
        let Some(matches) = self.matches(&sample, right, conditions)? else { return Ok(None) };
        let rows: Vec<usize> = (0..sample.rows).filter(|row| matches.contains(row) == wants_match).collect();
        let mut estimate = left.clone();
        let guess = estimate.rows;
        estimate.cut_to(rows.len() as f64, &sample, guess);
        estimate.sample = (!rows.is_empty()).then(|| Rc::new(sample.picked(&rows)));
        Ok(Some(estimate))
    }

    /// The rows of a left side of which a right side tells whether there is a match.
    pub(super) fn existing(
        &mut self,
        left: &Estimate,
        right: &Node,
        conditions: &[Expression],
        kind: ExistsKind,
    ) -> Result<Estimate> {
        let wants_match = match kind {
            ExistsKind::Mark(_) => return Ok(left.clone()),
            ExistsKind::Semi => true,
            ExistsKind::Anti => false,
        };
        let tried = self.matched(left, right, conditions, wants_match)?;
        Ok(tried.unwrap_or_else(|| Estimate { sample: None, ..left.clone().scaled(HAS_MATCH) }))
    }

    /// The rows of a sample that have a match; `None` where that cannot be tried.
    fn matches(
        &mut self,
        sample: &Sample,
        right: &Node,
        conditions: &[Expression],
    ) -> Result<Option<FxHashSet<usize>>> {
        /// The column of row numbers.
        const ROW: Var = Var(u32::MAX);
        let (inner, own) = match right {
            Node::Filter { inner, conditions } => (&**inner, &conditions[..]),
            other => (other, &[][..]),
        };
        let mut open: Vec<&Pattern> = Vec::new();
        for node in super::estimate::joined(inner) {
            let Node::Pattern(p) = node else { return Ok(None) };
            open.push(p);
        }
        let numbers = (0..sample.rows).map(|row| TermId(row as u64)).collect();
        let mut at = sample.clone().with(ROW, numbers);
        while !open.is_empty() {
            let Some(next) = open.iter().position(|p| p.vars().iter().any(|v| at.has(v))) else {
                return Ok(None);
            };
            let p = open.swap_remove(next);
            let Some(mut extension) = self.extension(&at, p)? else { return Ok(None) };
            let is_last = open.is_empty() && own.is_empty() && conditions.is_empty();
            let least = if is_last { 1 } else { 4 };
            // whether there is a match shows in few of the rows of each
            extension.counts.iter_mut().for_each(|count| *count = (*count).min(least));
            at = self.all_extended(&at, &extension)?;
        }
        for condition in own.iter().chain(conditions) {
            let Some(passing) = self.passing(&at, condition)? else { return Ok(None) };
            at = at.picked(&passing);
        }
        Ok(Some(at.col(ROW).into_iter().flatten().map(|id| id.0 as usize).collect()))
    }

    /// The rows of a sample for which a condition holds; `None` where that cannot be tried.
    fn passing(&mut self, sample: &Sample, condition: &Expression) -> Result<Option<Vec<usize>>> {
        if condition.vars().iter().any(|v| !sample.has(v)) || self.looks == 0 {
            return Ok(None);
        }
        self.look(sample.rows * (1 + condition.text_vars().iter().count()));
        let passing = self.statistics.passing(condition, (&sample.vars, &sample.cols));
        Ok(passing.map(|rows| rows.into_iter().map(|row| row as usize).collect()))
    }

    /// Fewer rows, by a condition.
    pub(super) fn filtered(
        &mut self,
        estimate: &mut Estimate,
        condition: &Expression,
        over: &[Node],
    ) -> Result<()> {
        let share = self.selectivity_in(condition, over, estimate)?;
        let guess = estimate.rows * share;
        let sample = estimate.sample.clone().filter(|sample| sample.rows > 0);
        let passing = match &sample {
            Some(sample) => self.passing(sample, condition)?,
            None => None,
        };
        let (Some(sample), Some(passing)) = (sample, passing) else {
            estimate.rows = guess;
            estimate.sample = None;
            return Ok(());
        };
        let is_counted = self.is_counted(condition, over)?;
        if is_counted && !sample.is_whole && passing.len() < ENOUGH {
            estimate.rows = guess;
        } else {
            let least = estimate.rows * LEAST_SHARE;
            estimate.cut_to(passing.len() as f64, &sample, f64::INFINITY);
            estimate.rows = estimate.rows.max(least);
        }
        estimate.sample = (!passing.is_empty()).then(|| Rc::new(sample.picked(&passing)));
        Ok(())
    }

    /// A computed column, where there is a sample to compute it on.
    pub(super) fn computed_on_sample(
        &mut self,
        estimate: &mut Estimate,
        var: Var,
        expr: &Expression,
    ) -> Result<()> {
        let Some(sample) = estimate.sample.take() else { return Ok(()) };
        let is_known = expr.vars().iter().all(|v| sample.has(v));
        if !is_known || self.looks == 0 || sample.rows == 0 {
            estimate.sample = Some(sample);
            return Ok(());
        }
        self.look(sample.rows * (1 + expr.text_vars().iter().count()));
        let col = self.statistics.computed(expr, (&sample.vars, &sample.cols));
        estimate.sample = Some(match col {
            Some(col) => {
                let sample = Rc::new(Sample::clone(&sample).with(var, col));
                if let Some(distinct) = sample.distinct(&[var], estimate.rows) {
                    estimate.set(var, distinct, distinct);
                }
                sample
            }
            None => sample,
        });
        Ok(())
    }

    /// The sample of a scan's rows: those that pass its conditions; where equal ones come as one,
    /// each once.
    pub(super) fn sample_of_scan(
        &mut self,
        p: &Pattern,
        conditions: &[Expression],
        folded: Option<&[Var]>,
        estimate: &mut Estimate,
    ) -> Result<()> {
        if folded.is_some_and(<[Var]>::is_empty) {
            return Ok(());
        }
        let Some(mut sample) = self.sample_of(p)? else { return Ok(()) };
        for condition in conditions {
            let Some(passing) = self.passing(&sample, condition)? else { return Ok(()) };
            sample = sample.picked(&passing);
        }
        if !sample.is_whole && sample.rows < ENOUGH {
            return Ok(());
        }
        match folded {
            None => {}
            Some(vars) if sample.is_whole => sample = sample.distinct_rows(&vars.iter().copied().collect()),
            Some([var]) => match self.each_value_once(p, &sample, *var)? {
                Some(values) => sample = values,
                None => return Ok(()),
            },
            Some(_) => return Ok(()),
        }
        if sample.is_whole {
            estimate.rows = sample.rows as f64;
        }
        estimate.sample = Some(Rc::new(sample));
        Ok(())
    }

    /// Of rows as often as a value has rows, values: those of many rows are as likely as others.
    pub(super) fn each_value_once(
        &mut self,
        p: &Pattern,
        sample: &Sample,
        var: Var,
    ) -> Result<Option<Sample>> {
        let values = sample.distinct_rows(&std::iter::once(var).collect());
        let Some(extension) = self.extension(&values, p)? else { return Ok(None) };
        // the more rows a value has, the likelier it is in the sample: the rare ones are kept
        let mut rows: Vec<usize> = (0..values.rows).collect();
        let least = extension.counts.iter().copied().filter(|count| *count > 0).min().unwrap_or(1).max(1);
        rows.retain(|row| {
            let count = extension.counts[*row].max(1);
            // a share of least ÷ count of them, evenly
            (*row as u64 * least) % count < least
        });
        Ok((rows.len() >= ENOUGH).then(|| values.picked(&rows)))
    }
}
