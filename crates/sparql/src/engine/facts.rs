//! Statistics, asked of the indexes and remembered: the optimiser's view of the data.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use snowmelt_graph::{AnyIndex, Columns, CompareOp, Index, TermId, TermKind, TripleIndex, ids_of_kind};

use super::trial::Trial;
use crate::algebra::consts::{ConstTerm, GroundTerm, ground};
use crate::algebra::{Const, Expression};
use crate::bounds::Limits;
use crate::error::QueryError;
use crate::exec::id_ranges::compared;
use crate::exec::source::GraphSource;
use crate::functions::KeptPatterns;
use crate::optimise::{PredicateStatistics, Rows, Statistics, Totals};
use crate::rewrite::Facts;

/// Values sampled to estimate the number of distinct values of a column.
const SAMPLED_VALUES: u64 = 16;

/// Objects sampled to estimate how many are subjects, too: with leaps that double, across all ids
/// of a kind.
const SAMPLED_OBJECTS: u64 = 48;

/// The data, with one query's constants.
pub(super) struct Data<'a> {
    known: &'a KnownData,
    source: &'a mut GraphSource,
    params: &'a [GroundTerm],
    /// the query's
    limits: &'a Limits,
    ids: Vec<Option<TermId>>,
    terms: Vec<GroundTerm>,
    /// constants that differ between texts of the shape
    of_text: Vec<bool>,
    /// predicates that were found to lead to IRIs and blank nodes only
    pub resources: Vec<TermId>,
    /// where samples are taken, once one was: what a query's account shows is its own work
    trial: Option<Trial>,
}

impl<'a> Data<'a> {
    pub fn new(
        known: &'a KnownData,
        source: &'a mut GraphSource,
        params: &'a [GroundTerm],
        limits: &'a Limits,
    ) -> Self {
        Self {
            known,
            source,
            params,
            limits,
            ids: Vec::new(),
            terms: Vec::new(),
            of_text: Vec::new(),
            resources: Vec::new(),
            trial: None,
        }
    }

    fn trial(&mut self) -> &mut Trial {
        let session = &self.source.session;
        self.trial.get_or_insert_with(|| Trial::new(session, &self.known.patterns, self.limits))
    }

    pub fn resolve(&mut self, consts: &[ConstTerm]) -> Result<(), QueryError> {
        self.terms = consts.iter().map(|c| ground(c, self.params).into_owned()).collect();
        self.of_text = consts.iter().map(|c| !c.is_fixed()).collect();
        self.ids = self.source.resolve_constants(&self.terms, self.limits)?;
        Ok(())
    }
}

/// Quads that may change before statistics are asked for anew: this, and an eighth of the data.
const DRIFT_QUADS: u64 = 1000;

/// Whether statistics of `quads` quads taken when so many had changed are too old for a state.
pub(super) fn drifted(quads: u64, changed: u64, source: &GraphSource) -> bool {
    source.session.state().changed().abs_diff(changed) > DRIFT_QUADS + quads / 8
}

/// Kept by an engine for its plans.
#[derive(Default)]
pub(super) struct KnownData {
    predicates: Mutex<Predicates>,
    pub patterns: Arc<KeptPatterns>,
}

/// Statistics of predicates, and how many quads there were and had changed when the first was
/// taken.
#[derive(Default)]
struct Predicates {
    quads: u64,
    changed: u64,
    /// by dictionary and id
    known: FxHashMap<(u64, TermId), PredicateStatistics>,
    /// shares of objects that are subjects, too
    onward: FxHashMap<(u64, TermId), f64>,
}

impl Predicates {
    /// Those of a state, with which a predicate is named there.
    fn of(&mut self, p: TermId, source: &GraphSource) -> (&mut Self, (u64, TermId)) {
        let state = source.session.state();
        if drifted(self.quads, self.changed, source) {
            *self = Self { quads: state.quads(), changed: state.changed(), ..Self::default() };
        }
        (self, (state.dictionary(), p))
    }
}

/// Rows and distinct values of a predicate, sampled once.
pub(super) fn predicate(
    known: &KnownData,
    source: &mut GraphSource,
    p: TermId,
) -> Result<PredicateStatistics, QueryError> {
    let mut predicates = known.predicates.lock();
    let (of_all, name) = predicates.of(p, source);
    if let Some(found) = of_all.known.get(&name) {
        return Ok(*found);
    }
    drop(predicates);
    let rows = source.count(Index::Psog, &[p], None)? as f64;
    let subjects = distinct(source, Index::Psog, p, rows)?;
    let objects = distinct(source, Index::Posg, p, rows)?;
    let found = PredicateStatistics { rows, subjects, objects };
    known.predicates.lock().known.insert(name, found);
    Ok(found)
}

/// The share of a predicate's objects that are subjects of it, too: of some objects, whose ids are
/// ever farther from each other.
fn onward(known: &KnownData, source: &mut GraphSource, p: TermId) -> Result<f64, QueryError> {
    let mut predicates = known.predicates.lock();
    let (of_all, name) = predicates.of(p, source);
    if let Some(found) = of_all.onward.get(&name) {
        return Ok(*found);
    }
    drop(predicates);
    let (mut from, mut leap) = (0_u64, 1);
    let (mut objects, mut both) = (0, 0);
    while objects < SAMPLED_OBJECTS {
        let mut columns = Columns::with_wanted(4, 0b0010);
        let mut scan = source.scan(Index::Posg, &[p], Some((from, u64::MAX)));
        if !source.scan_next(&mut scan, &mut columns, 1)? {
            break;
        }
        let object = columns.cols[1][0];
        objects += 1;
        both += u64::from(source.count(Index::Psog, &[p, TermId(object)], None)? > 0);
        let Some(next) = object.checked_add(leap) else { break };
        (from, leap) = (next, leap * 2);
    }
    let share = both as f64 / (objects as f64).max(1.0);
    known.predicates.lock().onward.insert(name, share);
    Ok(share)
}

/// Exact where the database counted them; else the rows of the first values, leaping from one
/// to the next, taken as typical.
fn distinct(source: &mut GraphSource, index: Index, p: TermId, rows: f64) -> Result<f64, QueryError> {
    if let Some(exact) = source.session.state().distinct_values(index, p) {
        return Ok(exact as f64);
    }
    let mut from = 0;
    let (mut values, mut covered) = (0, 0);
    while values < SAMPLED_VALUES {
        let mut columns = Columns::with_wanted(4, 0b0010);
        let mut scan = source.scan(index, &[p], Some((from, u64::MAX)));
        if !source.scan_next(&mut scan, &mut columns, 1)? {
            // that were all of them
            return Ok(values as f64);
        }
        let value = columns.cols[1][0];
        covered += source.count(index, &[p, TermId(value)], None)?;
        values += 1;
        from = value + 1;
    }
    Ok(rows * values as f64 / covered as f64)
}

impl Statistics for Data<'_> {
    fn id(&mut self, c: Const) -> Option<TermId> {
        self.ids[c.0 as usize]
    }

    fn count(&mut self, index: AnyIndex, prefix: &[TermId]) -> Result<u64, QueryError> {
        self.source.count(index, prefix, None)
    }

    fn count_compared(
        &mut self,
        predicate: TermId,
        op: CompareOp,
        with: Const,
    ) -> Result<Option<u64>, QueryError> {
        let Some(ranges) = compared(op, &self.terms[with.0 as usize]) else { return Ok(None) };
        let mut sum = 0;
        for range in ranges {
            sum += self.source.count(Index::Posg, &[predicate], Some((range.low, range.high)))?;
        }
        Ok(Some(sum))
    }

    fn predicate(&mut self, p: TermId) -> Result<PredicateStatistics, QueryError> {
        predicate(self.known, self.source, p)
    }

    fn onward(&mut self, p: TermId) -> Result<f64, QueryError> {
        onward(self.known, self.source, p)
    }

    fn rows_at(
        &mut self,
        index: Index,
        prefix: &[TermId],
        places: &[u64],
    ) -> Result<Vec<Vec<u64>>, QueryError> {
        Ok(self.trial().rows_at(index, prefix, places)?)
    }

    fn subjects_with(&mut self, predicates: &[TermId]) -> Option<f64> {
        let statistics = self.source.session.state().statistics();
        let ids: Vec<u64> = predicates.iter().map(|p| p.0).collect();
        (!statistics.sets().is_empty()).then(|| statistics.sets().subjects_with(&ids))
    }

    fn count_for_sample(&mut self, index: Index, prefix: &[TermId]) -> Result<u64, QueryError> {
        Ok(self.trial().count(index, prefix)?)
    }

    fn passing(&mut self, condition: &Expression, sample: Rows<'_>) -> Option<Vec<u32>> {
        let params = self.params;
        self.trial().passing(condition, sample, params)
    }

    fn computed(&mut self, expr: &Expression, sample: Rows<'_>) -> Option<Vec<TermId>> {
        let params = self.params;
        self.trial().computed(expr, sample, params)
    }

    fn totals(&mut self) -> Totals {
        let db = self.source.session.state();
        let distinct = |index| db.index(index).map_or(0.0, |t| t.distinct(1) as f64);
        let of_triples = |index| db.triple(index).map_or(0.0, |t| t.distinct(1) as f64);
        Totals {
            triple_terms: TripleIndex::ALL.map(of_triples),
            quads: db.quads() as f64,
            subjects: distinct(Index::Sp),
            predicates: distinct(Index::Psog),
            objects: distinct(Index::Op),
        }
    }
}

impl Facts for Data<'_> {
    fn objects_are_resources(&mut self, predicate: Const) -> bool {
        // a constant of the rewrite is a constant of the query
        let at = predicate.0 as usize;
        // another text of the shape may have another predicate here
        if self.of_text.get(at).is_none_or(|of_text| *of_text) {
            return false;
        }
        let Some(p) = self.ids[at] else { return false };
        let mut resources = || {
            let all = self.source.count(Index::Posg, &[p], None)?;
            let mut of = 0;
            for kind in [TermKind::Iri, TermKind::Blank] {
                let range = ids_of_kind(kind);
                of += self.source.count(Index::Posg, &[p], Some((*range.start(), *range.end())))?;
            }
            Ok::<_, QueryError>(all == of)
        };
        // on an error the rewrite is left out; the next read of the page reports it
        let known = resources().unwrap_or(false);
        if known && !self.resources.contains(&p) {
            self.resources.push(p);
        }
        known
    }
}
