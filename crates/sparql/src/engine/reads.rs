//! The state of memory that a plan is for: how much of the indexes that it may visit is resident.
//! It is determined anew for each query; while all is warm, that takes reading a few counters.

use snowmelt_graph::Index;
use spargebra::algebra::PropertyPathExpression as Path;

use crate::algebra::{GraphSlot, Node, Slot};
use crate::exec::source::GraphSource;
use crate::plan::{IndexPages, Reads, Residency};

/// Device times in the costs of plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PlanCosts {
    /// Times to read the pages that are expected to be absent.
    #[default]
    Device,
    /// None: plans are made as if everything were in memory.
    Warm,
}

/// State of memory for a query that visits these indexes.
pub(super) fn reads(source: &GraphSource, visited: &[Index]) -> Reads {
    let mut indexes = [IndexPages::default(); Index::ALL.len()];
    for index in visited {
        let of = &mut indexes[*index as usize];
        let (pages, absent) = source.session.expected_absent(*index);
        of.residency = Residency::new(pages, absent);
        if of.residency != Residency::Warm
            && let Some(tree) = source.session.state().index(*index)
        {
            (of.rows, of.leaves) = (tree.rows() as f64, tree.leaves() as f64);
        }
    }
    Reads::new(indexes, || source.session.page_times())
}

/// The indexes that plans of an algebra may visit.
pub(super) fn visited(root: &Node) -> Vec<Index> {
    let mut visited = vec![Index::Psog, Index::Posg];
    let mut visit = |indexes: &[Index]| {
        indexes.iter().for_each(|index| {
            if !visited.contains(index) {
                visited.push(*index);
            }
        });
    };
    for node in root.all() {
        match node {
            Node::Pattern(p) => {
                if matches!(p.p, Slot::Var(_)) {
                    visit(&[Index::Sp, Index::Op]);
                }
                if p.graph_slot().is_some() {
                    visit(&[Index::Gs]);
                }
            }
            Node::Path { path, g, .. } if !matches!(path, Path::NamedNode(_)) => {
                visit(&[Index::Sp, Index::Op]);
                if *g != GraphSlot::Default {
                    visit(&[Index::Gs]);
                }
            }
            Node::GraphNames(_) => visit(&[Index::Gs]),
            _ => {}
        }
    }
    visited
}
