//! EXISTS, and the filter of an OPTIONAL that has one: patterns evaluated for a solution.
//!
//! The meaning is that of SPARQL 1.2, 18.6: inside EXISTS every group begins with the solution
//! at hand, its *context*, where elsewhere it begins with nothing. SPARQL 1.1 says
//! `substitute(pattern, μ)`, which gives the same answers where it is defined and free of its
//! errata: a blank node of the context stands for itself; AS and VALUES of a name that the
//! context binds must agree with it; a sub-select sees the context also under names that it
//! does not project; and both sides of a MINUS bind what the context binds, so that they are
//! disjoint only where it binds nothing. A path does not match a term of zero steps that the
//! graph does not have, though the context binds it.
//!
//! Most groups do not notice: a join may meet the context last instead of first. Where all of
//! an EXISTS is like that it becomes a semi-join with its pattern evaluated once. A group that
//! does notice (a filter, BIND, OPTIONAL, MINUS or sub-select that reads a name which the group
//! may leave open) is joined with [`Node::Context`], all contexts at a time, each under a
//! number; the number then goes through grouping, LIMIT and the like.

use rustc_hash::FxHashSet;
use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression, GraphPattern};
use spargebra::term::{Literal, Variable};

use super::super::mentions;
use super::{SelectNames, Translator, conjuncts, in_graph, join};
use crate::algebra::names::Internal;
use crate::algebra::{ApplyKind, ContextVar, ExistsKind, GraphSlot, Node, Slot, Var, VarSet};
use crate::error::QueryError;

/// The solutions that a pattern is evaluated for.
pub(super) struct ExistsContext {
    row: Var,
    /// the names inside that they may bind: number outside, whether it is certain
    names: Vec<(String, Var, bool)>,
    /// the graph being looked at, where that is a variable
    graph: Option<Var>,
    /// bound where a solution binds something; only kept where that is in doubt and a MINUS
    /// asks
    some: Option<Var>,
    /// whether each solution binds something
    binds: bool,
}

/// The variable of the graph being looked at.
pub(super) fn graph_var(g: GraphSlot) -> Option<Var> {
    if let GraphSlot::Named(Slot::Var(v)) = g { Some(v) } else { None }
}

impl Translator<'_> {
    /// The node with what an EXISTS decides about its solutions.
    pub(super) fn exists(
        &mut self,
        left: Node,
        pattern: &GraphPattern,
        kind: ExistsKind,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let (left, mut inside) = self.enter(left, pattern, select, g);
        let right = self.node(pattern, &mut inside, g)?;
        let (left, conditions) = (Box::new(left), Vec::new());
        if !self.has_context(&right, &inside) {
            return Ok(Node::Exists { left, right: Box::new(right), conditions, kind });
        }
        let right = Box::new(self.in_context(right, &mut inside));
        let context = &self.contexts[inside.context.expect("the right side has it")];
        let vars = context.names.iter().map(|n| n.1).chain(context.graph).chain(context.some).collect();
        Ok(Node::Apply { left, right, row: context.row, vars, kind: ApplyKind::Exists(kind) })
    }

    /// The scope inside an EXISTS over the solutions of `left`. Names that those do not bind
    /// are others inside.
    fn enter(
        &mut self,
        left: Node,
        pattern: &GraphPattern,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> (Node, SelectNames) {
        let mentions = mentions::of_pattern(pattern);
        let mut left = self.seeing(left, &mentions.names, select);
        let graph = graph_var(g);
        if let Some(graph) = graph {
            left = in_graph(left, Slot::Var(graph));
        }
        let of_left = left.scope();
        let mut named: Vec<(String, Var, bool)> =
            select.vars.iter().map(|(n, v)| (n.clone(), *v, false)).collect();
        // the name of the graph around is no variable of a solution inside
        named.retain(|n| of_left.possible.contains(n.1) && Some(n.1) != graph);
        named.sort_unstable_by_key(|n| n.1);
        named.iter_mut().for_each(|n| n.2 = of_left.certain.contains(n.1));
        let outer = select.context.map(|c| (self.contexts[c].binds, self.contexts[c].some));
        if named.is_empty() && outer.is_none() {
            return (left, SelectNames::default());
        }
        let binds = named.iter().any(|n| n.2) || outer.is_some_and(|o| o.0);
        let mut some = None;
        if !binds && mentions.minus {
            left = self.in_context(left, select);
            let parts = named.iter().map(|n| n.1).chain(outer.and_then(|o| o.1)).collect::<Vec<_>>();
            (left, some) = self.marked_where_bound(left, &parts);
        }
        named.retain(|n| mentions.names.contains(n.0.as_str()));
        let vars = named.iter().map(|n| (n.0.clone(), n.1)).collect();
        let row = self.internal(Internal::Row);
        self.contexts.push(ExistsContext { row, names: named, graph, some, binds });
        (left, SelectNames { vars, context: Some(self.contexts.len() - 1), sliced: false })
    }

    /// The node with a variable that is bound where one of these is.
    fn marked_where_bound(&mut self, node: Node, vars: &[Var]) -> (Node, Option<Var>) {
        let bound = |v: &Var| Expression::Bound(self.names[v.0 as usize].clone());
        let any = vars.iter().map(bound).reduce(|a, b| Expression::Or(Box::new(a), Box::new(b)));
        let any = any.unwrap_or_else(|| Literal::from(false).into());
        let never = self.never();
        let never = Expression::Variable(self.names[never.0 as usize].clone());
        let expr = Expression::If(Box::new(any), Box::new(Literal::from(true).into()), Box::new(never));
        let var = self.internal(Internal::Some);
        (Node::Extend { inner: Box::new(node), var, expr }, Some(var))
    }

    /// Whether a node was joined with the context, here or further down.
    fn has_context(&self, node: &Node, select: &SelectNames) -> bool {
        select.context.is_some_and(|c| node.scope().possible.contains(self.contexts[c].row))
    }

    /// The context as a node.
    fn context(&mut self, select: &mut SelectNames) -> Option<Node> {
        let c = select.context?;
        let context = &self.contexts[c];
        let (row, extra) = (context.row, context.graph.into_iter().chain(context.some));
        let mut vars: Vec<ContextVar> =
            extra.map(|v| ContextVar { of: v, here: v, certain: false }).collect();
        vars.iter_mut().for_each(|v| v.certain = Some(v.of) == context.graph);
        for (name, of, certain) in context.names.clone() {
            let here = self.var(&Variable::new_unchecked(name), select);
            vars.push(ContextVar { of, here, certain });
        }
        Some(Node::Context { row, vars })
    }

    /// The node joined with the context, if there is one.
    pub(super) fn in_context(&mut self, node: Node, select: &mut SelectNames) -> Node {
        match self.context(select) {
            Some(context) if !begins_with(&node, &context) => join(vec![context, node]),
            _ => node,
        }
    }

    /// The node joined with the context, if that may bind one of these names where the node
    /// does not.
    pub(super) fn seeing(&mut self, node: Node, names: &FxHashSet<&str>, select: &mut SelectNames) -> Node {
        let Some(c) = select.context else { return node };
        let certain = node.scope().certain;
        let open = |name: &str| select.vars.get(name).is_none_or(|v| !certain.contains(*v));
        let noticed = self.contexts[c].names.iter().any(|n| names.contains(n.0.as_str()) && open(&n.0));
        if noticed { self.in_context(node, select) } else { node }
    }

    /// As [`Translator::seeing`], for names that have numbers.
    fn seeing_vars(&mut self, node: Node, vars: &VarSet, select: &mut SelectNames) -> Node {
        if self.context_vars(select).intersection(vars).is_subset(&node.scope().certain) {
            node
        } else {
            self.in_context(node, select)
        }
    }

    /// The numbers that the context's variables have here, as far as they are mentioned.
    pub(super) fn context_vars(&self, select: &SelectNames) -> VarSet {
        let names = select.context.map_or(&[][..], |c| &self.contexts[c].names);
        names.iter().filter_map(|n| select.vars.get(&n.0).copied()).collect()
    }

    /// The context's number, for what must keep contexts apart: it is to be grouped by,
    /// projected and so on.
    pub(super) fn row_of(&self, node: &Node, select: &SelectNames) -> Option<Var> {
        let row = self.contexts[select.context?].row;
        node.scope().possible.contains(row).then_some(row)
    }

    /// Whether the context may bind a name.
    pub(super) fn is_of_context(&self, name: &Variable, select: &SelectNames) -> bool {
        select.context.is_some_and(|c| self.contexts[c].names.iter().any(|n| n.0 == name.as_str()))
    }

    /// Branches, all joined with the context if one is.
    pub(super) fn alike(&mut self, branches: Vec<Node>, select: &mut SelectNames) -> Vec<Node> {
        if branches.iter().any(|b| self.has_context(b, select)) {
            branches.into_iter().map(|b| self.in_context(b, select)).collect()
        } else {
            branches
        }
    }

    pub(super) fn left_join(
        &mut self,
        left: &GraphPattern,
        right: &GraphPattern,
        expr: Option<&Expression>,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let left = self.node(left, select, g)?;
        let right = self.node(right, select, g)?;
        let mentions = expr.map(mentions::of_expression).unwrap_or_default();
        let left = self.seeing(left, &mentions.names, select);
        let mut left = self.beside(left, &right, select, g);
        let Some(expr) = expr else {
            return Ok(Node::LeftJoin {
                left: Box::new(left),
                right: Box::new(right),
                conditions: Vec::new(),
            });
        };
        if !super::contains_exists(expr) {
            let visible = left.scope().possible.union(&right.scope().possible);
            let conditions = conjuncts(expr).into_iter().map(|c| self.plain(c, &visible, select)).collect();
            return Ok(Node::LeftJoin { left: Box::new(left), right: Box::new(right), conditions });
        }
        // EXISTS sees the pair: the right side is evaluated for the rows of the left, which are
        // its context
        if let Some(graph) = graph_var(g) {
            left = in_graph(left, Slot::Var(graph));
        }
        let of_left = left.scope();
        let read = mentions.names.iter().filter_map(|n| select.vars.get(*n).copied());
        // with the number of the context around, if it is there: pairs are of one
        let apart = graph_var(g).into_iter().chain(self.row_of(&left, select));
        let vars = read.chain(apart).collect::<VarSet>().union(&right.scope().possible);
        let vars = vars.intersection(&of_left.possible);
        let here = |v: Var| ContextVar { of: v, here: v, certain: of_left.certain.contains(v) };
        let row = self.internal(Internal::Row);
        let pairs = join(vec![Node::Context { row, vars: vars.iter().map(here).collect() }, right]);
        let right = Box::new(self.filter(pairs, expr, select, g)?);
        Ok(Node::Apply { left: Box::new(left), right, row, vars, kind: ApplyKind::Left })
    }

    /// The left side of an OPTIONAL or MINUS, with the context and the graph if the right side
    /// has them.
    fn beside(&mut self, left: Node, right: &Node, select: &mut SelectNames, g: GraphSlot) -> Node {
        let mut left = self.seeing_vars(left, &right.scope().possible, select);
        if self.has_context(right, select) {
            left = self.in_context(left, select);
        }
        match graph_var(g) {
            Some(graph) if right.scope().possible.contains(graph) => in_graph(left, Slot::Var(graph)),
            _ => left,
        }
    }

    pub(super) fn minus(
        &mut self,
        left: &GraphPattern,
        right: &GraphPattern,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let left = self.node(left, select, g)?;
        let right = self.node(right, select, g)?;
        // in the context of a solution that binds something both sides bind it
        if select.context.is_some_and(|c| self.contexts[c].binds) {
            let left = Box::new(self.beside(left, &right, select, g));
            let (right, conditions) = (Box::new(right), Vec::new());
            return Ok(Node::Exists { left, right, conditions, kind: ExistsKind::Anti });
        }
        let right = self.in_context(right, select);
        let shared = left.scope().possible.intersection(&right.scope().possible);
        let mut apart: VarSet = graph_var(g).into_iter().collect();
        apart.extend(self.row_of(&right, select));
        // without a common variable nothing is ever taken away
        if shared.is_subset(&apart) && select.context.is_none() {
            return Ok(left);
        }
        let left = Box::new(self.beside(left, &right, select, g));
        Ok(Node::Minus { left, right: Box::new(right), apart })
    }

    pub(super) fn group(
        &mut self,
        inner: &GraphPattern,
        variables: &[Variable],
        aggregates: &[(Variable, AggregateExpression)],
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let node = self.node(inner, select, g)?;
        let names = variables.iter().map(Variable::as_str).collect();
        let mut node = self.seeing(node, &names, select);
        if self.has_context(&node, select) || self.context_vars(select).intersects(&node.scope().possible) {
            node = self.in_context(node, select);
        }
        let mut keys: Vec<Var> = Vec::new();
        for v in variables {
            let v = self.var(v, select);
            if !keys.contains(&v) {
                keys.push(v);
            }
        }
        let mut list = Vec::with_capacity(aggregates.len());
        for (variable, aggregate) in aggregates {
            let (with_marks, aggregate) = self.aggregate(node, aggregate, select, g)?;
            node = with_marks;
            list.push((self.var(variable, select), aggregate));
        }
        let inside = node.scope();
        let visible = select.visible(&inside);
        let graph = graph_var(g).filter(|v| inside.possible.contains(*v) && !keys.contains(v));
        let row = self.row_of(&node, select);
        let apart: Vec<Var> = graph.into_iter().chain(row).collect();
        keys.extend(&apart);
        if variables.is_empty() && !apart.is_empty() {
            return Ok(self.group_of_all(node, keys, list, visible, select));
        }
        Ok(Node::Group { inner: Box::new(node), keys, aggregates: list, visible })
    }

    fn aggregate(
        &mut self,
        node: Node,
        aggregate: &AggregateExpression,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<(Node, AggregateExpression), QueryError> {
        Ok(match aggregate {
            AggregateExpression::CountSolutions { distinct } => {
                (node, AggregateExpression::CountSolutions { distinct: *distinct })
            }
            AggregateExpression::FunctionCall { name: AggregateFunction::Custom(name), .. } => {
                return Err(self.unsupported(name.as_str(), &format!("the aggregate <{}>", name.as_str())));
            }
            AggregateExpression::FunctionCall { name, expr, distinct } => {
                let (node, expr) = self.expression_over(node, expr, select, g)?;
                (node, AggregateExpression::FunctionCall { name: name.clone(), expr, distinct: *distinct })
            }
        })
    }

    /// The one group of an aggregate without GROUP BY, for each context and graph: it is there
    /// even if it has no solution.
    fn group_of_all(
        &mut self,
        inner: Node,
        keys: Vec<Var>,
        mut aggregates: Vec<(Var, AggregateExpression)>,
        visible: VarSet,
        select: &mut SelectNames,
    ) -> Node {
        let mut each = Vec::new();
        let mut graphs: VarSet = keys.iter().copied().collect();
        if let Some(Node::Context { row, mut vars }) = self.context(select)
            && graphs.contains(row)
        {
            vars.retain(|v| graphs.contains(v.here));
            graphs.remove(row);
            vars.iter().for_each(|v| graphs.remove(v.here));
            each.push(Node::Context { row, vars });
        }
        each.extend(graphs.iter().map(|g| Node::GraphNames(Slot::Var(g))));
        let rows = self.internal(Internal::Rows);
        let mut empty = Vec::new();
        for (var, aggregate) in &mut aggregates {
            if let Some(value) = of_nothing(aggregate) {
                let found = self.internal(Internal::Found);
                empty.push((std::mem::replace(var, found), found, value));
            }
        }
        aggregates.push((rows, AggregateExpression::CountSolutions { distinct: false }));
        let right = Box::new(Node::Group { inner: Box::new(inner), keys, aggregates, visible });
        let mut node = Node::LeftJoin { left: Box::new(join(each)), right, conditions: Vec::new() };
        for (var, found, value) in empty {
            let any = Box::new(Expression::Bound(self.names[rows.0 as usize].clone()));
            let found = Box::new(Expression::Variable(self.names[found.0 as usize].clone()));
            let expr = Expression::If(any, found, Box::new(value.into()));
            node = Node::Extend { inner: Box::new(node), var, expr };
        }
        node
    }
}

/// The value of an aggregate of no solutions; None where that is an error.
fn of_nothing(aggregate: &AggregateExpression) -> Option<Literal> {
    match aggregate {
        AggregateExpression::CountSolutions { .. } => Some(0.into()),
        AggregateExpression::FunctionCall { name, .. } => match name {
            AggregateFunction::Count | AggregateFunction::Sum | AggregateFunction::Avg => Some(0.into()),
            AggregateFunction::GroupConcat { .. } => Some(Literal::new_simple_literal("")),
            _ => None,
        },
    }
}

/// Whether each solution of a node is one of the context's, extended.
fn begins_with(node: &Node, context: &Node) -> bool {
    match node {
        Node::Context { .. } => node == context,
        Node::Join(nodes) => nodes.iter().any(|n| begins_with(n, context)),
        Node::Union(nodes) => nodes.iter().all(|n| begins_with(n, context)),
        Node::Filter { inner, .. } | Node::Extend { inner, .. } => begins_with(inner, context),
        Node::LeftJoin { left, .. }
        | Node::Exists { left, .. }
        | Node::Apply { left, .. }
        | Node::Minus { left, .. } => begins_with(left, context),
        _ => false,
    }
}
