//! Invariants of every plan: operators trust the positions of their columns.

use rustc_hash::FxHashSet;

use super::{JoinKind, Op, PathGraph, PlanNode, Src, children};
use crate::algebra::ExistsKind;

/// Asserts it of a plan of `nodes` operators.
pub(super) fn assert_sound(root: &PlanNode, nodes: usize) {
    let (mut seen, mut open, mut columns) = (vec![false; nodes], vec![root], FxHashSet::default());
    while let Some(node) = open.pop() {
        assert!(node.id < nodes, "operator {} of {nodes} has no counters", node.id);
        assert!(!seen[node.id], "two operators have the number {}", node.id);
        seen[node.id] = true;
        assert!(
            node.rows >= 0.0 && node.cost.cpu >= 0.0 && node.cost.io >= 0.0,
            "operator {} has no estimate",
            node.id
        );
        columns.clear();
        let distinct = node.vars.iter().all(|v| columns.insert(*v));
        assert!(distinct, "operator {} has a column twice", node.id);
        assert_columns(node);
        open.extend(children(&node.op));
    }
}

/// Asserts that an operator reads columns that its inputs have, and puts out as many as it
/// says.
fn assert_columns(node: &PlanNode) {
    let (id, columns) = (node.id, node.vars.len());
    let within = |cols: &[u16], input: &PlanNode| {
        let all = cols.iter().all(|c| usize::from(*c) < input.vars.len());
        assert!(all, "operator {id} reads a column that its input does not have");
    };
    let gives = |n: usize| assert_eq!(columns, n, "operator {id} puts out other columns than it says");
    match &node.op {
        Op::Seed | Op::Nothing | Op::Scan { .. } | Op::GraphNames { .. } => {}
        Op::Unit => gives(0),
        Op::Context { cols, .. } => gives(cols.len()),
        Op::Lookup { input, access, keep, new, emit, star, .. } => {
            within(keep, input);
            let keys = access.key.iter().chain(star.iter().flat_map(|(_, key)| key));
            within(&keys.filter_map(column_of).collect::<Vec<_>>(), input);
            assert_eq!(new.len(), access.new.len(), "look-up {id} names other columns than it reads");
            assert!(emit.iter().all(|c| usize::from(*c) < new.len()), "look-up {id} emits what it lacks");
            gives(keep.len() + emit.len());
        }
        Op::Hash { left, right, on, apart, kind, keep_left, keep_right, .. } => {
            within(&firsts(on), left);
            within(&on.iter().map(|c| c.1).collect::<Vec<_>>(), right);
            assert!(apart.iter().all(|at| usize::from(*at) < on.len()), "join {id} is apart by no key");
            within(keep_left, left);
            within(&firsts(keep_right), right);
            gives(keep_left.len() + keep_right.len() + marks(*kind));
        }
        Op::Nested { left, right, seed, row, kind, keep_left, keep_right, .. } => {
            within(seed, left);
            within(&[*row], right);
            within(keep_left, left);
            within(&firsts(keep_right), right);
            gives(keep_left.len() + keep_right.len() + marks(*kind));
        }
        Op::Filter { input, keep, .. } | Op::Sort { input, keep, .. } => {
            within(keep, input);
            gives(keep.len());
        }
        Op::Extend { input, keep, .. } => {
            within(keep, input);
            gives(keep.len() + 1);
        }
        Op::Values { rows } => {
            assert!(rows.iter().all(|row| row.len() == columns), "a row of VALUES {id} has another length");
        }
        Op::Union { branches, .. } => {
            for (branch, from) in branches {
                within(&from.iter().copied().flatten().collect::<Vec<_>>(), branch);
                gives(from.len());
            }
        }
        Op::Group { input, keys, visible, aggregates, .. } => {
            within(keys, input);
            within(visible, input);
            gives(keys.len() + aggregates.len());
        }
        Op::Distinct { input, .. } => gives(input.vars.len()),
        Op::Slice { input, .. } => gives(input.vars.len()),
        Op::Project { input, cols } => {
            within(&cols.iter().copied().flatten().collect::<Vec<_>>(), input);
            gives(cols.len());
        }
        Op::Path { input, graph, keep, .. } => {
            within(keep, input);
            let graph = usize::from(*graph == PathGraph::Each);
            assert!((keep.len()..=keep.len() + 2 + graph).contains(&columns), "path {id} has too many ends");
        }
    }
}

/// The column that a marking join adds.
fn marks(kind: JoinKind) -> usize {
    usize::from(matches!(kind, JoinKind::Exists(ExistsKind::Mark(_))))
}

fn column_of(src: &Src) -> Option<u16> {
    if let Src::Col(c) = src { Some(*c) } else { None }
}

fn firsts<T>(pairs: &[(u16, T)]) -> Vec<u16> {
    pairs.iter().map(|pair| pair.0).collect()
}
