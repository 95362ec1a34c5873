//! The inputs of an operator.

use super::{Op, PlanNode};

/// The inputs of an operator in the order they run: to be read or to be changed.
macro_rules! inputs {
    ($op:ident, $as_deref:ident, $iter:ident) => {
        match $op {
            Op::Seed
            | Op::Context { .. }
            | Op::Unit
            | Op::Nothing
            | Op::Scan { .. }
            | Op::Values { .. }
            | Op::GraphNames { .. } => Vec::new(),
            Op::Lookup { input, .. }
            | Op::Filter { input, .. }
            | Op::Extend { input, .. }
            | Op::Group { input, .. }
            | Op::Fold { input, .. }
            | Op::Repeat { input, .. }
            | Op::CountValues { input }
            | Op::Distinct { input, .. }
            | Op::Sort { input, .. }
            | Op::Slice { input, .. }
            | Op::Project { input, .. }
            | Op::Path { input, .. } => vec![input],
            Op::Service { input, .. } => input.$as_deref().into_iter().collect(),
            Op::GroupWithout { right, pairs, left, .. } => vec![right, pairs, left],
            Op::Hash { left, right, .. } | Op::Nested { left, right, .. } => vec![left, right],
            Op::Union { input, branches } => {
                input.$as_deref().into_iter().chain(branches.$iter().map(|(plan, _)| plan)).collect()
            }
        }
    };
}

/// The inputs of an operator, in the order they run.
pub(crate) fn children(op: &Op) -> Vec<&PlanNode> {
    inputs!(op, as_deref, iter)
}

/// The inputs of an operator, to be changed.
pub(crate) fn children_mut(op: &mut Op) -> Vec<&mut PlanNode> {
    inputs!(op, as_deref_mut, iter_mut)
}
