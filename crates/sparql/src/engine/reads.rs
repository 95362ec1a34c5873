//! The state of memory that a plan is for: how much of the indexes that it may visit is resident.
//! It is determined anew for each query; while all is warm, that takes reading a few counters.

use snowmelt_graph::{AnyIndex, Index, TripleIndex};

use crate::algebra::{Algebra, GraphSlot, Node, PropertyPath, Slot};
use crate::exec::source::GraphSource;
use crate::plan::{INDEXES, IndexPages, Reads, Residency, index_place, is_at_hand};

/// Device times in the costs of plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PlanCosts {
    /// Times to read the pages that are expected to be absent.
    #[default]
    Device,
    /// None: plans are made as if everything were in memory.
    Warm,
}

/// The trees that plans of an algebra may visit.
pub(super) struct VisitedTrees {
    indexes: Vec<AnyIndex>,
    /// conditions need strings of the dictionary
    has_texts: bool,
}

impl VisitedTrees {
    pub fn of(algebra: &Algebra) -> Self {
        Self { indexes: visited(&algebra.root), has_texts: algebra.needs_texts() }
    }
}

/// State of memory for a query that visits these trees.
pub(super) fn reads(source: &GraphSource, visited: &VisitedTrees) -> Reads {
    let mut indexes = [IndexPages::default(); INDEXES];
    let mut has_absent = false;
    for index in &visited.indexes {
        let of = &mut indexes[index_place(*index)];
        let (pages, absent) = source.session.expected_absent(*index);
        of.residency = Residency::new(pages, absent);
        has_absent |= !is_at_hand(pages, absent);
        if of.residency != Residency::Warm
            && let Some(tree) = source.session.state().any_index(*index)
        {
            (of.rows, of.leaves) = (tree.rows() as f64, tree.leaves() as f64);
        }
    }
    let reads = Reads::new(indexes, || source.session.page_times()).with_absent(has_absent);
    if !visited.has_texts {
        return reads;
    }
    let (strings, pages, absent) = source.session.expected_absent_strings();
    let residency = Residency::new(pages, absent);
    let strings = IndexPages { residency, rows: strings as f64, leaves: pages as f64 };
    reads.with_texts(strings, || source.session.page_times())
}

/// The indexes that plans of an algebra may visit.
fn visited(root: &Node) -> Vec<AnyIndex> {
    let mut visited: Vec<AnyIndex> = vec![Index::Psog.into(), Index::Posg.into()];
    let mut visit = |indexes: &[Index]| {
        indexes.iter().for_each(|index| {
            if !visited.contains(&AnyIndex::Quads(*index)) {
                visited.push((*index).into());
            }
        });
    };
    let mut of_triples = false;
    for node in root.all() {
        match node {
            Node::Pattern(p) if p.triple_term().is_some() => of_triples = true,
            Node::Pattern(p) => {
                if matches!(p.p, Slot::Var(_)) {
                    visit(&[Index::Sp, Index::Op]);
                }
                if p.graph_slot().is_some() {
                    visit(&[Index::Gs]);
                }
            }
            Node::Path { path, g, .. } if !matches!(path, PropertyPath::Predicate(_)) => {
                visit(&[Index::Sp, Index::Op]);
                if *g != GraphSlot::Default {
                    visit(&[Index::Gs]);
                }
            }
            Node::GraphNames(_) => visit(&[Index::Gs]),
            _ => {}
        }
    }
    if of_triples {
        visited.extend(TripleIndex::ALL.map(AnyIndex::from));
    }
    visited
}
