//! Invariants of every plan: operators trust the positions of their columns.

use rustc_hash::FxHashSet;
use snowmelt_graph::Column;

use super::{Access, Copies, Finds, JoinKind, Op, PathGraph, PlanNode, Src, Test, children, columns_of};
use crate::algebra::{ExistsKind, Var};

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
        assert_variables(node);
        open.extend(children(&node.op));
    }
}

/// Asserts that an operator reads columns that its inputs have, and puts out as many as it
/// says.
fn assert_columns(node: &PlanNode) {
    let (id, columns) = (node.id, node.vars.len());
    let within = |cols: &[u16], input: &PlanNode| assert_within(id, cols, input);
    let gives = |n: usize| assert_eq!(columns, n, "operator {id} puts out other columns than it says");
    match &node.op {
        // all columns of DISTINCT and LIMIT are compared by their variables
        Op::Seed | Op::Nothing | Op::GraphNames { .. } | Op::Distinct { .. } | Op::Slice { .. } => {}
        Op::Unit => gives(0),
        Op::Scan { access } => {
            assert_access(id, access, 0);
            gives(access.width());
        }
        Op::Context { cols, .. } => gives(cols.len()),
        Op::Lookup { .. } => gives(assert_lookup(id, &node.op)),
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
        Op::Filter { input, keep, .. } | Op::Sort { input, keep, .. } | Op::Extend { input, keep, .. } => {
            within(keep, input);
            gives(keep.len() + usize::from(matches!(node.op, Op::Extend { .. })));
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
        Op::Group { .. }
        | Op::GroupWithout { .. }
        | Op::Fold { .. }
        | Op::Repeat { .. }
        | Op::CountValues { .. } => {
            gives(assert_weighed(id, &node.op));
        }
        Op::Project { input, cols } => {
            within(&cols.iter().copied().flatten().collect::<Vec<_>>(), input);
            gives(cols.len());
        }
        Op::Service { .. } => gives(assert_service(id, &node.op)),
        Op::Path { input, graph, keep, .. } => {
            within(keep, input);
            let graph = usize::from(*graph == PathGraph::Each);
            assert!((keep.len()..=keep.len() + 2 + graph).contains(&columns), "path {id} has too many ends");
        }
    }
}

/// Asserts that an operator with weights, or in their place, reads columns that its input has; the
/// number of its columns.
fn assert_weighed(id: usize, op: &Op) -> usize {
    let within = |cols: &[u16], input: &PlanNode| assert_within(id, cols, input);
    match op {
        Op::Group { input, keys, visible, weights, aggregates, .. } => {
            [keys, visible, weights].into_iter().for_each(|cols| within(cols, input));
            keys.len() + aggregates.len()
        }
        Op::GroupWithout {
            right, pairs, left, on, keys, left_weights, right_weights, aggregates, ..
        } => {
            [keys, left_weights, &vec![on.0]].into_iter().for_each(|cols| within(cols, left));
            [right_weights, &vec![on.1]].into_iter().for_each(|cols| within(cols, right));
            assert_eq!(pairs.vars.len(), 2, "operator {id} leaves out other than pairs");
            keys.len() + aggregates.len()
        }
        Op::Fold { input, keys, weights } => {
            [keys, weights].into_iter().for_each(|cols| within(cols, input));
            keys.len() + 1
        }
        Op::Repeat { input, keep, weights, .. } => {
            [keep, weights].into_iter().for_each(|cols| within(cols, input));
            keep.len()
        }
        Op::CountValues { input } => {
            assert_eq!(input.vars.len(), 1, "operator {id} counts values of one column");
            1
        }
        _ => unreachable!("an operator about weights"),
    }
}

/// Asserts that a look-up reads columns that its input and its index have, and puts out some of
/// them; the number of its columns.
fn assert_lookup(id: usize, op: &Op) -> usize {
    let Op::Lookup { input, access, finds, keep, new, emit, star, .. } = op else {
        unreachable!("a look-up")
    };
    assert_within(id, keep, input);
    let keys = star.iter().flat_map(|(_, key)| key).filter_map(column_of);
    assert_within(id, &keys.collect::<Vec<_>>(), input);
    assert_access(id, access, input.vars.len());
    assert!(access.bounds.is_none(), "look-up {id} has the bounds of a scan");
    assert_eq!(new.len(), access.new.len(), "look-up {id} names other columns than it reads");
    assert!(emit.iter().all(|c| usize::from(*c) < new.len()), "look-up {id} emits what it lacks");
    match finds {
        Finds::Rows | Finds::Optional => keep.len() + emit.len() + access.width() - access.new.len(),
        Finds::Whether(kind) => {
            assert!(emit.is_empty(), "look-up {id} puts out what it only asks about");
            keep.len() + marks(JoinKind::Exists(*kind))
        }
    }
}

/// Asserts that a SERVICE sends and keeps columns that its input has, and has the names of others;
/// the number of its columns.
fn assert_service(id: usize, op: &Op) -> usize {
    let Op::Service { input, service, sent, keep, new, .. } = op else { unreachable!("a SERVICE") };
    assert!(input.is_some() || (sent.is_empty() && keep.is_empty()), "service {id} has no input");
    if let Some(input) = input {
        assert_within(id, keep, input);
        assert_within(id, &sent.iter().map(|value| value.col).collect::<Vec<_>>(), input);
    }
    let is_name = |name: u16| usize::from(name) < service.names.len();
    assert!(new.iter().all(|(name, _)| is_name(*name)), "service {id} puts out a name it lacks");
    keep.len() + new.len()
}

/// Asserts that an input has these columns.
fn assert_within(id: usize, cols: &[u16], input: &PlanNode) {
    let all = cols.iter().all(|c| usize::from(*c) < input.vars.len());
    assert!(all, "operator {id} reads a column that its input does not have");
}

/// Asserts that a visit reads columns that its index and the operator's input have.
fn assert_access(id: usize, access: &Access, input_columns: usize) {
    let columns = columns_of(access.index);
    assert!(access.key.len() <= columns.len(), "operator {id} has a longer key than its index");
    let behind = &columns[access.key.len()..];
    let is_behind = |c: u8| usize::from(c) < behind.len();
    assert!(access.new.iter().all(|c| is_behind(*c)), "operator {id} puts out columns its index lacks");
    assert!(access.new.is_sorted_by(|a, b| a < b), "operator {id} puts out a column of its index twice");
    let is_known = |src: &Src| column_of(src).is_none_or(|c| usize::from(c) < input_columns);
    assert!(access.key.iter().all(is_known), "operator {id} has a key of a column its input lacks");
    for (column, test) in &access.tests {
        let fits = match test {
            Test::Equals(src) => is_known(src),
            Test::SameAs(other) => is_behind(*other),
            Test::NotDefaultGraph | Test::OneOf(_) => true,
        };
        assert!(fits && is_behind(*column), "operator {id} tests a column that is not there");
    }
    let of_graph = |column: Option<&Column>| column == Some(&Column::Graph);
    assert!(!access.default_graph || of_graph(behind.first()), "operator {id} takes a column for the graph");
    assert!(!access.merge_graphs || of_graph(behind.last()), "operator {id} merges no graphs");
    let is_bounded = access.bounds.as_ref().is_none_or(|bounds| is_behind(bounds.column));
    assert!(is_bounded, "operator {id} has bounds on no column");
    let is_prefix = access.new.iter().zip(0..).all(|(c, place)| *c == place);
    assert!(access.copies == Copies::Count || is_prefix, "operator {id} folds rows that are apart");
    let is_single = access.copies == Copies::Count || !access.merge_graphs;
    assert!(is_single, "operator {id} merges graphs and folds rows");
}

/// Asserts that a column holds the same variable in an operator as in the operator's input.
fn assert_variables(node: &PlanNode) {
    let id = node.id;
    let kept = |cols: &[u16], input: &PlanNode, at: usize| {
        let same = cols.iter().zip(&node.vars[at..]).all(|(c, v)| input.vars[usize::from(*c)] == *v);
        assert!(same, "operator {id} takes a column of its input for another variable");
    };
    let moved = |cols: &[Option<u16>], input: &PlanNode| {
        let is_same = |(c, v): (&Option<u16>, &Var)| c.is_none_or(|c| input.vars[usize::from(c)] == *v);
        assert!(cols.iter().zip(&node.vars).all(is_same), "operator {id} mixes up the columns of its input");
    };
    let joined = |left: &PlanNode, right: &PlanNode, keep_left: &[u16], keep_right: &[JoinedColumn]| {
        kept(keep_left, left, 0);
        kept(&firsts(keep_right), right, keep_left.len());
        let is_same = |(of_right, of_left): &JoinedColumn| {
            of_left.is_none_or(|l| left.vars.get(usize::from(l)) == right.vars.get(usize::from(*of_right)))
        };
        assert!(keep_right.iter().all(is_same), "join {id} fills a column from another variable");
    };
    match &node.op {
        Op::Seed
        | Op::Context { .. }
        | Op::Unit
        | Op::Nothing
        | Op::Scan { .. }
        | Op::Values { .. }
        | Op::CountValues { .. }
        | Op::GraphNames { .. } => {}
        Op::Lookup { input, keep, new, emit, .. } => {
            kept(keep, input, 0);
            let mut found = emit.iter().zip(&node.vars[keep.len()..]);
            assert!(found.all(|(c, v)| new[usize::from(*c)] == *v), "look-up {id} mixes up what it finds");
        }
        Op::Hash { left, right, on, keep_left, keep_right, .. } => {
            let mut keys = on.iter().map(|(l, r)| (left.vars[usize::from(*l)], right.vars[usize::from(*r)]));
            assert!(keys.all(|(l, r)| l == r), "join {id} compares different variables");
            joined(left, right, keep_left, keep_right);
        }
        Op::Nested { left, right, context, row, keep_left, keep_right, .. } => {
            let is_row = |v: Var| right.vars[usize::from(*row)] == v;
            assert!(context.is_none_or(is_row), "join {id} takes another column for the row numbers");
            joined(left, right, keep_left, keep_right);
        }
        Op::Filter { input, keep, .. }
        | Op::Sort { input, keep, .. }
        | Op::Extend { input, keep, .. }
        | Op::Repeat { input, keep, .. }
        | Op::Path { input, keep, .. } => kept(keep, input, 0),
        Op::Service { input, service, keep, new, .. } => {
            if let Some(input) = input {
                kept(keep, input, 0);
            }
            let named = new.iter().map(|(name, _)| service.names[usize::from(*name)].1);
            assert!(named.eq(node.vars[keep.len()..].iter().copied()), "service {id} mixes up its names");
        }
        Op::Group { input, keys, .. } | Op::Fold { input, keys, .. } => kept(keys, input, 0),
        Op::GroupWithout { right, pairs, left, on, keys, .. } => {
            let on = [left.vars[usize::from(on.0)], right.vars[usize::from(on.1)]];
            assert!(pairs.vars == on, "operator {id} leaves out pairs of other variables");
            kept(keys, left, 0);
        }
        Op::Union { branches, .. } => branches.iter().for_each(|(branch, from)| moved(from, branch)),
        Op::Project { input, cols } => moved(cols, input),
        Op::Distinct { input, .. } | Op::Slice { input, .. } => {
            assert!(node.vars == input.vars, "operator {id} renames the columns of its input");
        }
    }
}

/// A column of the right side of a join, and the left one that stands in where it is unbound.
type JoinedColumn = (u16, Option<u16>);

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::VarSet;
    use crate::plan::Cost;

    fn node(id: usize, vars: &[u32], op: Op) -> PlanNode {
        let vars = vars.iter().map(|v| Var(*v)).collect();
        PlanNode { id, vars, rows: 1.0, cost: Cost::default(), contexts: VarSet::default(), join: None, op }
    }

    /// Two columns in another order, which put out these variables.
    fn swapped(vars: &[u32]) -> PlanNode {
        let values = node(1, &[7, 8], Op::Values { rows: vec![vec![None, None]] });
        node(0, vars, Op::Project { input: Box::new(values), cols: vec![Some(1), Some(0)] })
    }

    fn product(on: (u16, u16)) -> PlanNode {
        let side = |id| Box::new(node(id, &[7, 8], Op::Nothing));
        let op = Op::Hash {
            left: side(1),
            right: side(2),
            on: vec![on],
            loose: false,
            apart: Vec::new(),
            kind: JoinKind::Inner,
            keep_left: vec![0, 1],
            keep_right: Vec::new(),
        };
        node(0, &[7, 8], op)
    }

    #[test]
    fn columns_of_one_variable_are_sound() {
        assert_sound(&swapped(&[8, 7]), 2);
        assert_sound(&product((1, 1)), 3);
    }

    #[test]
    #[should_panic(expected = "mixes up the columns")]
    fn a_column_of_another_variable_is_refused() {
        assert_sound(&swapped(&[7, 8]), 2);
    }

    #[test]
    #[should_panic(expected = "compares different variables")]
    fn a_join_of_different_variables_is_refused() {
        assert_sound(&product((0, 1)), 3);
    }
}
