//! Visits whose rows fold: where only some columns of a pattern are wanted, and copies of a row
//! need not come one by one ([`Copies`]), rows that are equal in these columns come as one. They
//! are neighbours where the wanted columns come first in the index, after the key.
//!
//! | bound | wanted | visit                                  |
//! |-------|--------|----------------------------------------|
//! | p     | s      | PSOG (p) → s                           |
//! | p     | o      | POSG (p) → o                           |
//! | –     | p      | PSOG () → p                            |
//! | –     | s, s p | SP () → s p, if copies may be merged   |
//! | –     | o, o p | OP () → o p, if copies may be merged   |
//! | s     | p      | SP (s) → p, if copies may be merged    |
//! | –     | g, g s | GS () → g s, if copies may be merged   |
//!
//! SP and OP have the pairs of all graphs: they serve where there is only the default graph.

use snowmelt_graph::{Column, Index};

use super::Want;
use crate::algebra::{GraphSlot, Pattern, Slot, Var, VarSet};
use crate::optimise::access::{Visit, slot};
use crate::plan::{Copies, GraphScope};

/// The visit to one index that gives what is wanted of a pattern folded, when `bound` is known
/// before; `None`: none does.
pub(super) fn folded_visit(p: &Pattern, want: &Want, bound: &VarSet, scope: &GraphScope) -> Option<Visit> {
    if p.triple_term().is_some() || !are_apart(p) {
        return None;
    }
    let is_open = |slot: Slot| slot.var().is_some_and(|v| !bound.contains(v));
    let pairs: &[Index] = match p.g {
        // the pairs of a known predicate lie closer together in the whole indexes
        _ if want.copies != Copies::Merge || !is_open(p.p) => &[],
        GraphSlot::Default if scope.plain && scope.default.is_none() => &[Index::Sp, Index::Op],
        // nothing asks of a key whether it is a graph of the dataset
        GraphSlot::Named(graph) if is_open(graph) || scope.named.is_none() => &[Index::Gs],
        _ => &[],
    };
    let whole = [Index::Psog, Index::Posg];
    pairs.iter().chain(&whole).find_map(|index| {
        let visit = whole_visit(p, *index, bound)?;
        folds(&visit, &want.vars, bound).then_some(visit)
    })
}

/// Whether no variable stands in two places of a pattern.
pub(super) fn are_apart(p: &Pattern) -> bool {
    let mut seen = VarSet::default();
    let places = [Some(p.s), Some(p.p), Some(p.o), p.graph_slot()];
    places.into_iter().flatten().filter_map(Slot::var).all(|v| {
        let is_new = !seen.contains(v);
        seen.insert(v);
        is_new
    })
}

/// The visit to an index by what is known, if its key is all that is known.
pub(super) fn whole_visit(p: &Pattern, index: Index, bound: &VarSet) -> Option<Visit> {
    let known =
        |column: Column| slot(p, column).is_some_and(|slot| slot.var().is_none_or(|v| bound.contains(v)));
    let columns = index.columns();
    let of_key = columns.iter().take_while(|column| known(**column)).count();
    let (key, rest) = columns.split_at(of_key);
    // a known graph is a test on the last column
    let others = [Column::Subject, Column::Predicate, Column::Object, Column::Graph];
    let is_lost = |c: &Column| known(*c) && !key.contains(c) && !(*c == Column::Graph && rest.contains(c));
    if others.iter().any(is_lost) {
        return None;
    }
    let binds = rest.iter().filter_map(|c| slot(p, *c)?.var()).filter(|v| !bound.contains(*v)).collect();
    Some(Visit {
        index: index.into(),
        key: key.iter().filter_map(|c| slot(p, *c)).collect(),
        rest: rest.to_vec(),
        pattern: p.clone(),
        binds,
    })
}

/// Whether rows of a visit that are equal in what is wanted are neighbours, and may be several.
pub(super) fn folds(visit: &Visit, wanted: &VarSet, bound: &VarSet) -> bool {
    let p = &visit.pattern;
    let open = |column: Column| slot(p, column).and_then(Slot::var).filter(|v| !bound.contains(*v));
    let is_wanted = |v: Option<Var>| v.is_some_and(|v| wanted.contains(v));
    let places = [Column::Subject, Column::Predicate, Column::Object, Column::Graph];
    let has_all = places.iter().all(|c| !is_wanted(open(*c)) || visit.rest.contains(c));
    let first = visit.rest.iter().take_while(|c| is_wanted(open(**c))).count();
    let is_prefix = visit.rest[first..].iter().all(|c| !is_wanted(open(*c)));
    let drops = places.iter().any(|c| open(*c).is_some_and(|v| !wanted.contains(v)));
    // a known graph stands behind the columns that fold
    let reads_input =
        visit.rest.iter().any(|c| slot(p, *c).and_then(Slot::var).is_some_and(|v| bound.contains(v)));
    p.triple_term().is_none() && are_apart(p) && has_all && is_prefix && drops && !reads_input
}
