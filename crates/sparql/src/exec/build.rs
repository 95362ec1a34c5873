//! From plan to operators: constants resolved, expressions compiled. Nothing is read from the
//! indexes here.

use std::collections::BTreeSet;

use snowmelt_graph::AnyIndex;

use super::access::{Key, ResolvedVisit};
use super::checked::Checked;
use super::count_values::CountValues;
use super::distinct::Distinct;
use super::extend::{Extend, Filter, Project, Slice};
use super::fold::{Fold, Sums};
use super::group::{Group, GroupColumn};
use super::group_without::GroupWithout;
use super::hash::HashJoin;
use super::leaf::{ContextRows, Given, GraphNames, values};
use super::lookup::LookupJoin;
use super::nested::{Nested, Pace};
use super::parallel::{Cut, cut_by, fork};
use super::path::PathJoin;
use super::profile::Profiled;
use super::repeat::Repeat;
use super::rows::Queue;
use super::scan::IndexScan;
use super::service::{ServiceJoin, ServiceSpec};
use super::slice::SliceBy;
use super::sort::Sort;
use super::union::Union;
use super::watched::Watched;
use super::{Boxed, Result, Run};
use crate::algebra::{AggregateExpression, Expression, GroupFunction};
use crate::exec::Batch;
use crate::expr::Expr;
use crate::plan::{Copies, Op, PlanNode, Src, children};

/// Makes a plan runnable for one query.
pub(crate) fn build(node: &PlanNode, run: &mut Run) -> Result<Boxed> {
    let mut operator = match fork_apart(node, run)? {
        Some(parts) => parts,
        None => match &node.op {
            Op::Group { input, .. } if is_grouped_twice(node) => match fork_group(node, run)? {
                Some(parts) => group_again(node, parts, run)?,
                None => operator(node, vec![build_pipeline(input, run)?], run)?,
            },
            _ => operator(node, inputs(node, run)?, run)?,
        },
    };
    if cfg!(debug_assertions) {
        operator = Box::new(Checked { inner: operator, id: node.id, columns: node.vars.len() });
    }
    operator = Watched::around(operator, node, run);
    Ok(if run.profile.is_some() { Box::new(Profiled::new(operator, node.id)) } else { operator })
}

/// The pipeline as an input, or as the root of a plan whose rows come in any order: forked where
/// that is worth it, its scan shared where much has to be read.
pub(crate) fn build_input(node: &PlanNode, run: &mut Run) -> Result<Boxed> {
    match fork(node, node, run, (Cut::Anyhow, build_part))? {
        Some(forked) => Ok(forked),
        None => build_pipeline(node, run),
    }
}

/// A group whose input is a pipeline: forked together with it where each part can be grouped on its
/// own, to far fewer rows, which are then grouped once more. `None`: it is not forked.
fn fork_group(node: &PlanNode, run: &mut Run) -> Result<Option<Boxed>> {
    let Op::Group { input, .. } = &node.op else { unreachable!("{:?} is no group", node.op) };
    fork(node, input, run, (Cut::Anyhow, build_part))
}

/// A pipeline that is not forked, but whose scan may be shared.
fn build_pipeline(node: &PlanNode, run: &mut Run) -> Result<Boxed> {
    let pipeline = build(node, run)?;
    assert!(run.part.is_none(), "the first scan takes the part");
    Ok(pipeline)
}

/// A part of forked work that has all rows of its groups.
fn build_apart(node: &PlanNode, run: &mut Run) -> Result<Boxed> {
    let inputs = children(&node.op).into_iter().map(|input| build(input, run)).collect::<Result<_>>()?;
    operator(node, inputs, run)
}

/// An operator whose parts have nothing to do with each other if its pipeline is cut by a value:
/// groups of that value and others, different rows that have it, numbers of its values. Forked
/// together with the pipeline. `None`: it is not forked.
#[inline(never)]
fn fork_apart(node: &PlanNode, run: &mut Run) -> Result<Option<Boxed>> {
    let (input, keys) = match &node.op {
        Op::Group { input, keys, .. } => (input, Some(keys)),
        Op::Distinct { input, optional: false } | Op::CountValues { input } => (input, None),
        _ => return Ok(None),
    };
    let column = cut_by(input).and_then(|value| input.col(value));
    let is_whole = column.is_some_and(|column| keys.is_none_or(|keys| keys.contains(&column)));
    if !is_whole {
        return Ok(None);
    }
    let parts = fork(node, input, run, (Cut::ByValue, build_apart))?;
    match (parts, &node.op) {
        (Some(parts), Op::CountValues { .. }) => added_up(node, parts, run).map(Some),
        (parts, _) => Ok(parts),
    }
}

/// The sum of the numbers of parts.
fn added_up(node: &PlanNode, parts: Boxed, run: &mut Run) -> Result<Boxed> {
    let argument = Some(run.compile(&Expression::Var(node.vars[0]), &node.vars)?);
    let sum = GroupColumn { function: GroupFunction::Sum, is_distinct: false, argument };
    Ok(Box::new(Group::new(parts, Vec::new(), vec![sum], false)))
}

/// A part of forked work: of a group, the groups of the part alone.
fn build_part(node: &PlanNode, run: &mut Run) -> Result<Boxed> {
    match &node.op {
        Op::Group { input, .. } => {
            let input = build(input, run)?;
            Ok(Box::new(Group { is_partial: true, ..group(&node.op, input, run)? }))
        }
        _ => build(node, run),
    }
}

/// Rows of a group's input, for each row that it gives, from which on grouping parts of them first
/// is worth it.
const ROWS_PER_GROUP: f64 = 4.0;

/// Whether groups of parts of the input can be grouped once more, and are far fewer than its rows.
fn is_grouped_twice(node: &PlanNode) -> bool {
    let Op::Group { input, aggregates, .. } = &node.op else { return false };
    let again = |a: &AggregateExpression| of_partial(&a.function, a.is_distinct).is_some();
    input.rows >= ROWS_PER_GROUP * node.rows && aggregates.iter().all(again)
}

/// The aggregate of the results of parts that is that of the whole.
fn of_partial(function: &GroupFunction, is_distinct: bool) -> Option<GroupFunction> {
    use GroupFunction as F;
    match function {
        F::Min | F::Max | F::Sample => Some(function.clone()),
        F::CountRows | F::Count | F::Sum if !is_distinct => Some(F::Sum),
        F::CountRows | F::Count | F::Sum | F::Avg | F::Concat(_) => None,
    }
}

/// The groups of all parts, from those of each.
fn group_again(node: &PlanNode, parts: Boxed, run: &mut Run) -> Result<Boxed> {
    let Op::Group { keys, aggregates, stored, .. } = &node.op else {
        unreachable!("{:?} is no group", node.op)
    };
    let mut list = Vec::with_capacity(aggregates.len());
    for (a, var) in aggregates.iter().zip(&node.vars[keys.len()..]) {
        let function = of_partial(&a.function, a.is_distinct).expect("checked before it was forked");
        let argument = Some(run.compile(&Expression::Var(*var), &node.vars)?);
        list.push(GroupColumn { function, is_distinct: false, argument });
    }
    Ok(Box::new(Group::new(parts, (0..keys.len()).collect(), list, *stored)))
}

/// The inputs of an operator. The recursion over a plan goes through here alone, so that its
/// frames are small.
fn inputs(node: &PlanNode, run: &mut Run) -> Result<Vec<Boxed>> {
    match &node.op {
        Op::Hash { left, right, .. } => Ok(vec![build(left, run)?, build_input(right, run)?]),
        Op::GroupWithout { right, pairs, left, .. } => {
            [right, pairs, left].into_iter().map(|input| build_input(input, run)).collect()
        }
        Op::Group { input, .. } | Op::Sort { input, .. } | Op::Distinct { input, optional: false } => {
            Ok(vec![build_input(input, run)?])
        }
        Op::Nested { left, right, .. } => Ok(vec![build(left, run)?, build_repeated(right, run)?]),
        Op::Union { input: Some(input), branches } => {
            let input = build(input, run)?;
            let branches = branches.iter().map(|(branch, _)| build_repeated(branch, run));
            std::iter::once(Ok(input)).chain(branches).collect()
        }
        other => children(other).into_iter().map(|child| build(child, run)).collect(),
    }
}

/// An input that is reset and run again for each batch of another one, whether it depends on that
/// batch or not.
fn build_repeated(node: &PlanNode, run: &mut Run) -> Result<Boxed> {
    let is_repeated = std::mem::replace(&mut run.is_repeated, true);
    let built = build(node, run);
    run.is_repeated = is_repeated;
    built
}

/// An operator on its inputs.
#[inline(never)]
fn operator(node: &PlanNode, inputs: Vec<Boxed>, run: &mut Run) -> Result<Boxed> {
    let mut inputs = inputs.into_iter();
    let mut next = || inputs.next().expect("an input for each child of the operator");
    Ok(match &node.op {
        Op::Seed => Box::new(Given::seed()),
        Op::Context { row, cols } => Box::new(ContextRows { row: *row, cols: cols.clone(), done: false }),
        Op::Unit => Box::new(Given::new(Batch::unit())),
        Op::Nothing => Box::new(Given::new(Batch::empty(node.vars.len()))),
        Op::Scan { access } => {
            let scan = IndexScan::new(access, run)?;
            // a star around a constant: all its leaves are announced before the first is read
            run.constant_keys.extend(scan.constant_key());
            if let Some(profile) = &mut run.profile {
                profile.operators[node.id].shared = scan.shared_note();
            }
            Box::new(scan)
        }
        Op::Values { rows } => Box::new(values(run, rows, node.vars.len())),
        Op::GraphNames { graph, of } => {
            let of = of.as_ref().map(|list| list.iter().filter_map(|c| run.constant(*c)).collect());
            Box::new(GraphNames { graph: graph.map(|c| run.constant(c)), of, done: false })
        }
        Op::Lookup { .. } => lookup(&node.op, next(), run)?,
        Op::Service { .. } => Box::new(service(node, &mut next, run)?),
        Op::Hash { .. } | Op::Nested { .. } | Op::Union { .. } | Op::Path { .. } => {
            join(&node.op, &mut next, run)?
        }
        Op::Filter { input, conditions, keep } => {
            let conditions = compile_all(conditions, &input.vars, run)?;
            Box::new(Filter { input: next(), conditions, keep: keep.clone() })
        }
        Op::Extend { input, expr, keep, stored } => {
            let expr = run.compile(expr, &input.vars)?;
            Box::new(Extend { input: next(), expr, keep: keep.clone(), stored: *stored })
        }
        Op::Fold { keys, weights, .. } => Box::new(Fold {
            input: next(),
            keys: columns(keys),
            weights: columns(weights),
            sums: Sums::new(run.memory.held()),
            queue: Queue::default(),
            is_over: false,
        }),
        Op::Repeat { keep, weights, most, .. } => Box::new(Repeat {
            input: next(),
            keep: keep.clone(),
            weights: columns(weights),
            most: *most,
            queue: Queue::default(),
        }),
        Op::CountValues { .. } => Box::new(CountValues { input: next(), done: false }),
        Op::GroupWithout { .. } => Box::new(group_without(&node.op, &mut next, run)?),
        Op::Group { .. } | Op::Distinct { .. } | Op::Sort { .. } => block(&node.op, next(), run)?,
        Op::Slice { offset, limit, per, .. } if !per.is_empty() => {
            Box::new(SliceBy::new(next(), *offset, *limit, per, run.memory.held()))
        }
        Op::Slice { offset, limit, .. } => {
            Box::new(Slice { input: next(), offset: *offset, limit: *limit, skipped: 0, given: 0 })
        }
        Op::Project { cols, .. } => Box::new(Project { input: next(), cols: cols.clone() }),
    })
}

/// A look-up: its conditions see all new columns, also those that are not put out.
fn lookup(op: &Op, input: Boxed, run: &mut Run) -> Result<Boxed> {
    let Op::Lookup { input: _, access, finds, keep, conditions, new, emit, star } = op else {
        unreachable!("{op:?} is no look-up");
    };
    let visit = ResolvedVisit::resolve(access, run);
    let conditions = compile_all(conditions, new, run)?;
    let star = star.iter().filter_map(|(index, key)| star_key(*index, key, run)).collect();
    let (keep, emit) = (keep.clone(), emit.clone());
    Ok(Box::new(LookupJoin {
        input,
        visit,
        finds: *finds,
        keep,
        emit,
        weighs: access.copies == Copies::Weigh,
        conditions,
        star,
        chunk: run.query.batch.first.max(1),
        ahead: None,
        current: None,
        under_way: None,
        found: None,
        matched: Vec::new(),
    }))
}

/// A SERVICE, with its input if it has one.
fn service(node: &PlanNode, next: &mut dyn FnMut() -> Boxed, run: &Run) -> Result<ServiceJoin> {
    let Op::Service { input, service, endpoint, sent, keep, new, is_distinct, stored } = &node.op else {
        unreachable!("{:?} asks nothing", node.op);
    };
    let spec = ServiceSpec {
        service: service.clone(),
        endpoint: *endpoint,
        sent: sent.clone(),
        keep: keep.clone(),
        new: new.clone(),
        is_distinct: *is_distinct,
        stored: *stored,
        id: node.id,
    };
    ServiceJoin::new(spec, input.as_ref().map(|_| next()), run)
}

/// Operators that bring rows of several inputs, or of an input and an index, together.
fn join(op: &Op, next: &mut dyn FnMut() -> Boxed, run: &mut Run) -> Result<Boxed> {
    Ok(match op {
        Op::Hash { left: _, right, on, loose, apart, kind, keep_left, keep_right } => Box::new(HashJoin {
            left: next(),
            right: next(),
            left_on: on.iter().map(|p| p.0 as usize).collect(),
            right_on: on.iter().map(|p| p.1 as usize).collect(),
            loose: *loose,
            apart: apart.clone(),
            again: !right.contexts.is_empty(),
            kind: *kind,
            keep_left: keep_left.clone(),
            keep_right: keep_right.clone(),
            built: None,
            held: run.memory.held(),
            files: None,
            current: None,
            queue: Queue::default(),
        }),
        Op::Nested { left: _, right: _, seed, context, row, kind, keep_left, keep_right } => {
            Box::new(Nested {
                left: next(),
                right: next(),
                seed: seed.iter().map(|c| *c as usize).collect(),
                context: *context,
                pace: Pace::default(),
                waiting: Vec::new(),
                row: *row as usize,
                kind: *kind,
                keep_left: keep_left.clone(),
                keep_right: keep_right.clone(),
                current: None,
                pending: None,
                matched: Batch::default(),
                queue: Queue::default(),
            })
        }
        Op::Union { input, branches } => {
            let input = input.as_ref().map(|_| next());
            let branches = branches.iter().map(|(_, cols)| (next(), cols.clone())).collect();
            Box::new(Union { input, branches, at: 0, seeded: false })
        }
        Op::Path { input: _, from, path, to, graph, same, keep } => Box::new(PathJoin {
            input: next(),
            from: *from,
            path: path.clone(),
            to: *to,
            graph: graph.clone(),
            same: *same,
            keep: keep.clone(),
            state: Default::default(),
        }),
        other => unreachable!("{other:?} joins nothing"),
    })
}

/// Operators that take their whole input before they give a row: the input may be forked.
fn block(op: &Op, input: Boxed, run: &mut Run) -> Result<Boxed> {
    Ok(match op {
        Op::Group { .. } => Box::new(group(op, input, run)?),
        Op::Distinct { optional, .. } => Box::new(Distinct::new(input, *optional, run.memory.held())),
        Op::Sort { input: of, keys, limit, keep } => {
            let mut compiled = Vec::with_capacity(keys.len());
            for key in keys {
                compiled.push((run.compile(&key.expr, &of.vars)?, key.descending));
            }
            let limit = limit.map(|l| l as usize);
            Box::new(Sort {
                input,
                keys: compiled,
                limit,
                keep: keep.clone(),
                state: super::sort::SortStage::Begin,
            })
        }
        other => unreachable!("{other:?} does not take its whole input"),
    })
}

fn group(op: &Op, input: Boxed, run: &mut Run) -> Result<Group> {
    let Op::Group { input: of, keys, visible, weights, aggregates, stored } = op else {
        unreachable!("{op:?} is no group")
    };
    let aggregates = group_columns(aggregates, of, run)?;
    Ok(Group {
        is_in_order: input.is_in_order() && leads(of, keys),
        visible: columns(visible),
        weights: columns(weights),
        ..Group::new(input, columns(keys), aggregates, *stored)
    })
}

/// Whether some columns are the first that vary in the index which a node's rows are read from.
fn leads(node: &PlanNode, columns: &[u16]) -> bool {
    let mut at = node;
    let access = loop {
        match &at.op {
            Op::Filter { input, .. } | Op::Extend { input, .. } | Op::Project { input, .. } => at = input,
            Op::Scan { access } if access.bounds.is_none() => break access,
            _ => return false,
        }
    };
    let place = |column: &u16| {
        let read = at.vars.iter().position(|v| *v == node.vars[usize::from(*column)])?;
        access.new.get(read).copied()
    };
    let places: Option<BTreeSet<u8>> = columns.iter().map(place).collect();
    let leads = |places: BTreeSet<u8>| !places.is_empty() && places.into_iter().eq(0..columns.len() as u8);
    places.is_some_and(leads)
}

/// Aggregates with their arguments over the columns of an input.
fn group_columns(
    aggregates: &[AggregateExpression],
    input: &PlanNode,
    run: &mut Run,
) -> Result<Vec<GroupColumn>> {
    let mut list = Vec::with_capacity(aggregates.len());
    for a in aggregates {
        let argument = a.argument.as_ref().map(|argument| run.compile(argument, &input.vars));
        let (function, is_distinct) = (a.function.clone(), a.is_distinct);
        list.push(GroupColumn { function, is_distinct, argument: argument.transpose()? });
    }
    Ok(list)
}

/// The groups of a product without some of its pairs, on the inputs in the order they run.
fn group_without(op: &Op, next: &mut dyn FnMut() -> Boxed, run: &mut Run) -> Result<GroupWithout> {
    let Op::GroupWithout { right, on, keys, left_weights, right_weights, aggregates, stored, .. } = op else {
        unreachable!("{op:?} leaves out no pairs")
    };
    let aggregates = group_columns(aggregates, right, run)?;
    let parts = Group {
        weights: columns(right_weights),
        is_partial: true,
        ..Group::new(next(), vec![on.1.into()], aggregates, *stored)
    };
    Ok(GroupWithout {
        parts,
        pairs: next(),
        left: next(),
        keys: columns(keys),
        weights: columns(left_weights),
        on: on.0.into(),
        queue: Queue::default(),
        is_over: false,
    })
}

/// Columns as operators have them.
fn columns(of: &[u16]) -> Vec<usize> {
    of.iter().map(|column| usize::from(*column)).collect()
}

fn compile_all(conditions: &[Expression], vars: &[crate::algebra::Var], run: &mut Run) -> Result<Vec<Expr>> {
    conditions.iter().map(|c| run.compile(c, vars)).collect()
}

fn star_key(index: AnyIndex, key: &[Src], run: &Run) -> Option<(AnyIndex, Vec<Key>)> {
    let key = key.iter().map(|src| match src {
        Src::Const(c) => run.constant(*c).map(Key::Is),
        Src::Fixed(id) => Some(Key::Is(*id)),
        Src::Col(c) => Some(Key::Col(*c as usize)),
    });
    Some((index, key.collect::<Option<_>>()?))
}
