//! A triple pattern as visits to indexes.
//!
//! | bound        | visits                                   |
//! |--------------|------------------------------------------|
//! | p s o        | PSOG (p s o)                             |
//! | p s          | PSOG (p s) → o                           |
//! | p o          | POSG (p o) → s                           |
//! | p            | PSOG (p) → s o                           |
//! | s, s o       | SP (s) → p, then as above                |
//! | o            | OP (o) → p, then POSG (p o) → s          |
//! | g            | GS (g) → s, SP (s) → p, PSOG (p s) → o   |
//! | nothing      | PSOG () → p s o                          |
//!
//! A pattern of triple terms is one visit to one of their trees, by what is known of it: to
//! TRIPLE by the term itself, else to TRIPLE-SPO, TRIPLE-POS or TRIPLE-OSP.
//!
//! The graph is the last column of the whole indexes: a filter, or one more bound column when
//! p, s and o are bound.

use snowmelt_graph::{AnyIndex, Column, Index, TermId, TripleIndex};

use super::Reads;
use super::device_time::Reach;
use crate::algebra::{GraphSlot, Pattern, Slot, Var, VarSet};
use crate::plan::{Access, Bounds, Copies, GraphScope, Src, Test, columns_of};

/// One visit before its columns are numbered: the key's columns, and the variables it binds.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub index: AnyIndex,
    pub key: Vec<Slot>,
    /// what stands in the columns after the key
    pub rest: Vec<Column>,
    /// the pattern this is a part of
    pub pattern: Pattern,
    pub binds: VarSet,
}

/// The visits for a pattern when `bound` is known before.
pub(super) fn visits(p: &Pattern, bound: &VarSet) -> Vec<Visit> {
    let mut bound = bound.clone();
    let mut list = Vec::new();
    loop {
        let (index, columns) = first_visit(p, &bound);
        let key: Vec<Slot> = columns.iter().filter_map(|column| slot(p, *column)).collect();
        let rest: Vec<Column> = columns_of(index)[key.len()..].to_vec();
        let mut binds = VarSet::default();
        for column in &rest {
            if let Some(Slot::Var(v)) = slot(p, *column)
                && !bound.contains(v)
            {
                binds.insert(v);
            }
        }
        let whole = rest.last() == Some(&Column::Graph) || p.triple_term().is_some();
        bound = bound.union(&binds);
        list.push(Visit { index, key, rest, pattern: p.clone(), binds });
        if whole {
            return list;
        }
    }
}

/// The index that is visited first, and the columns of the key.
fn first_visit(p: &Pattern, bound: &VarSet) -> (AnyIndex, &'static [Column]) {
    if let Some(term) = p.triple_term() {
        let (index, columns) = first_of_triples(p, term, bound);
        return (index.into(), &columns_of(index.into())[..columns]);
    }
    let known = |slot: Slot| slot.var().is_none_or(|v| bound.contains(v));
    let (s, pr, o) = (known(p.s), known(p.p), known(p.o));
    let (index, columns) = match (pr, s, o) {
        (true, true, true) => (Index::Psog, 3),
        (true, true, false) => (Index::Psog, 2),
        (true, false, true) => (Index::Posg, 2),
        (true, false, false) => (Index::Psog, 1),
        (false, true, _) => (Index::Sp, 1),
        (false, false, true) => (Index::Op, 1),
        (false, false, false) if p.graph_slot().is_some_and(known) => (Index::Gs, 1),
        (false, false, false) => (Index::Psog, 0),
    };
    (index.into(), &index.columns()[..columns])
}

/// The tree of triple terms that a pattern visits, and how many of its columns are the key.
fn first_of_triples(p: &Pattern, term: Slot, bound: &VarSet) -> (TripleIndex, usize) {
    let known = |slot: Slot| slot.var().is_none_or(|v| bound.contains(v));
    match (known(p.s), known(p.p), known(p.o)) {
        _ if known(term) => (TripleIndex::Id, 1),
        (true, true, true) => (TripleIndex::Spo, 3),
        (true, true, false) => (TripleIndex::Spo, 2),
        (false, true, true) => (TripleIndex::Pos, 2),
        (true, false, true) => (TripleIndex::Osp, 2),
        (true, false, false) => (TripleIndex::Spo, 1),
        (false, true, false) => (TripleIndex::Pos, 1),
        (false, false, true) => (TripleIndex::Osp, 1),
        (false, false, false) => (TripleIndex::Id, 0),
    }
}

/// The index that a scan of a pattern begins with.
pub(super) fn scanned_index(p: &Pattern) -> AnyIndex {
    first_visit(p, &VarSet::default()).0
}

/// A pattern with counts of where its keys lie.
#[derive(Clone, Debug)]
pub(super) struct CountedPattern {
    pub pattern: Pattern,
    /// rows of its predicate, where that is a constant
    pub of_predicate: Option<f64>,
    /// its own
    pub rows: f64,
}

impl CountedPattern {
    /// Where its keys lie when `bound` is known before.
    pub fn reach(&self, bound: &VarSet, reads: &Reads) -> Reach {
        let (index, columns) = first_visit(&self.pattern, bound);
        let is_const = |column: &&Column| matches!(slot(&self.pattern, **column), Some(Slot::Const(_)));
        let of_index = reads.index(index).rows;
        let rows = match (columns.iter().take_while(is_const).count(), self.of_predicate) {
            (0, _) => of_index,
            (1, Some(of_predicate)) => of_predicate,
            _ => self.rows,
        };
        Reach { index, rows }
    }
}

/// A pattern's slot in a column of the indexes, as [`columns_of`] names them; `None`: the default
/// graph.
pub(super) fn slot(p: &Pattern, column: Column) -> Option<Slot> {
    match column {
        Column::Subject => Some(p.s),
        Column::Predicate => Some(p.p),
        Column::Object => Some(p.o),
        Column::Graph => p.graph_slot(),
    }
}

impl Visit {
    /// The visit with its columns numbered by the input's; the variables it puts out, of those
    /// wanted, in order. `None`: it can find nothing.
    pub fn number(
        &self,
        input: &[Var],
        wanted: &VarSet,
        scope: &GraphScope,
        bounds: Option<Bounds>,
    ) -> Option<(Access, Vec<Var>)> {
        let src = |slot: Slot| match slot {
            Slot::Const(c) => Src::Const(c),
            Slot::Var(v) => {
                Src::Col(input.iter().position(|x| *x == v).expect("a key's variable is in the input") as u16)
            }
        };
        let mut access = Access {
            index: self.index,
            key: self.key.iter().map(|s| src(*s)).collect(),
            default_graph: false,
            bounds,
            tests: Vec::new(),
            new: Vec::new(),
            merge_graphs: false,
            copies: Copies::Count,
        };
        let mut new: Vec<Var> = Vec::new();
        let mut seen: Vec<(Var, u8)> = Vec::new();
        for (i, column) in self.rest.iter().enumerate() {
            let i = i as u8;
            if *column == Column::Graph {
                self.graph_test(i, &mut access, scope)?;
            }
            match slot(&self.pattern, *column) {
                None => {}
                Some(Slot::Const(c)) => access.tests.push((i, Test::Equals(Src::Const(c)))),
                Some(Slot::Var(v)) => {
                    if input.contains(&v) {
                        access.tests.push((i, Test::Equals(src(Slot::Var(v)))));
                    } else if let Some((_, first)) = seen.iter().find(|(x, _)| *x == v) {
                        access.tests.push((i, Test::SameAs(*first)));
                    } else {
                        seen.push((v, i));
                        if wanted.contains(v) {
                            access.new.push(i);
                            new.push(v);
                        }
                    }
                }
            }
        }
        Some((access, new))
    }

    fn graph_test(&self, i: u8, access: &mut Access, scope: &GraphScope) -> Option<()> {
        match (self.pattern.g, &scope.default) {
            (GraphSlot::Default, None) if scope.plain => {}
            (GraphSlot::Default, None) if i == 0 => access.default_graph = true,
            (GraphSlot::Default, None) => {
                access.tests.push((i, Test::Equals(Src::Fixed(TermId::DEFAULT_GRAPH))))
            }
            (GraphSlot::Default, Some(graphs)) => match &graphs[..] {
                [] => return None,
                [one] => access.tests.push((i, Test::Equals(Src::Const(*one)))),
                more => {
                    access.tests.push((i, Test::OneOf(more.to_vec())));
                    access.merge_graphs = true;
                }
            },
            (GraphSlot::Named(Slot::Const(_)), _) if scope.named.is_none() => {}
            (GraphSlot::TripleTerm(_), _) => {}
            // A constant may be a parameter: whether it is one of them is known when it runs.
            (GraphSlot::Named(_), _) => match &scope.named {
                None => access.tests.push((i, Test::NotDefaultGraph)),
                Some(named) if named.is_empty() => return None,
                Some(named) => access.tests.push((i, Test::OneOf(named.clone()))),
            },
        }
        Some(())
    }
}
