//! EXISTS, LATERAL, and the filter of an OPTIONAL that has an EXISTS: patterns evaluated for a
//! solution.
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
//!
//! LATERAL is evaluated in the same way, and its solutions extend the one at hand (SPARQL-dev
//! proposal 6). There is one difference: a sub-select in it sees the names that it projects, and
//! has others of its own.

use oxrdf::Literal;
use rustc_hash::FxHashSet;
use snowmelt_syntax::tree::{self, AggregateFunction, Expr, GraphPattern};

use super::expression::{and, chained};
use super::{Mentions, SelectNames, Translator, has_exists, in_graph, join};
use crate::algebra::names::Internal;
use crate::algebra::{
    AggregateExpression, ApplyKind, ContextVar, ExistsKind, Expression, GraphSlot, GroupFunction, Node, Slot,
    Var, VarSet,
};
use crate::error::QueryError;

/// The solutions that a pattern is evaluated for.
pub(super) struct ExistsContext {
    row: Var,
    /// the variables of the text that they may bind: number outside, whether it is certain
    names: Vec<(tree::Var, Var, bool)>,
    /// the graph being looked at, where that is a variable
    graph: Option<Var>,
    /// bound where a solution binds something; only kept where that is in doubt and a MINUS
    /// asks
    some: Option<Var>,
    /// whether each solution binds something
    binds: bool,
    /// it is of a LATERAL, where sub-selects have names of their own
    is_lateral: bool,
}

/// Parts of its context that a pattern notices, other than by a join.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Noticed {
    Nothing,
    /// some of its names
    Names,
    /// that it binds something: a MINUS whose sides may share no variable without it
    Minus,
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
        let (row, vars) = self.row_and_vars(&inside);
        Ok(Node::Apply { left, right, row, vars, kind: ApplyKind::Exists(kind) })
    }

    /// The number of a context, and what it has of the left side.
    fn row_and_vars(&self, inside: &SelectNames) -> (Var, VarSet) {
        let context = &self.contexts[inside.context.expect("the right side has it")];
        let vars = context.names.iter().map(|n| n.1).chain(context.graph).chain(context.some).collect();
        (context.row, vars)
    }

    /// The solutions of the left side, each with those of a pattern evaluated for it.
    pub(super) fn lateral(
        &mut self,
        left: &GraphPattern,
        right: &GraphPattern,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let left = self.node(left, select, g)?;
        let (left, entered) = self.enter(left, right, select, g);
        if let Some(context) = entered.context {
            self.contexts[context].is_lateral = true;
        }
        // its variables are those around it
        let mut inside = SelectNames { vars: select.vars.clone(), ..entered };
        let right = self.node(right, &mut inside, g)?;
        for (name, v) in &inside.vars {
            select.vars.entry(*name).or_insert(*v);
        }
        if !self.has_context(&right, &inside) {
            return Ok(join(vec![left, right]));
        }
        let right = self.in_context(right, &mut inside);
        let (row, vars) = self.row_and_vars(&inside);
        // rows without a match go
        let mark = self.internal(Internal::Exists);
        let right = Node::Extend { inner: Box::new(right), var: mark, expr: Expression::literal(true) };
        let (left, right) = (Box::new(left), Box::new(right));
        let all = Node::Apply { left, right, row, vars, kind: ApplyKind::Left };
        Ok(Node::Filter { inner: Box::new(all), conditions: vec![Expression::Bound(mark)] })
    }

    /// The context in a sub-select that shows these variables.
    pub(super) fn context_of_select(&mut self, context: usize, shown: &[tree::Var]) -> usize {
        let of = &self.contexts[context];
        if !of.is_lateral {
            return context;
        }
        let names: Vec<_> = of.names.iter().filter(|n| shown.contains(&n.0)).copied().collect();
        let binds = names.iter().any(|n| n.2);
        let seen = ExistsContext { names, binds, some: None, ..*of };
        self.contexts.push(seen);
        self.contexts.len() - 1
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
        let mentions = Mentions::of_pattern(pattern);
        let mut left = self.seeing_mentioned(left, &mentions.vars, select);
        let graph = graph_var(g);
        if let Some(graph) = graph {
            left = in_graph(left, Slot::Var(graph));
        }
        let of_left = left.scope();
        let mut named: Vec<(tree::Var, Var, bool)> =
            select.vars.iter().map(|(n, v)| (*n, *v, false)).collect();
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
        named.retain(|n| mentions.vars.contains(&n.0));
        let vars = named.iter().map(|n| (n.0, n.1)).collect();
        let row = self.internal(Internal::Row);
        self.contexts.push(ExistsContext { row, names: named, graph, some, binds, is_lateral: false });
        (left, SelectNames { vars, context: Some(self.contexts.len() - 1), ..SelectNames::default() })
    }

    /// The node with a variable that is bound where one of these is.
    fn marked_where_bound(&mut self, node: Node, vars: &[Var]) -> (Node, Option<Var>) {
        let bound = |v: &Var| Expression::Bound(*v);
        let any = match vars {
            [] => Expression::literal(false),
            [one] => bound(one),
            several => Expression::Or(several.iter().map(bound).collect()),
        };
        let never = Expression::Var(self.never());
        let expr = Expression::if_else(any, Expression::literal(true), never);
        let var = self.internal(Internal::Some);
        (Node::Extend { inner: Box::new(node), var, expr }, Some(var))
    }

    /// The variables of the text that a context may bind, and whether it is certain to.
    pub(super) fn context_names(&self, context: usize) -> Vec<(tree::Var, bool)> {
        self.contexts[context].names.iter().map(|(name, _, certain)| (*name, *certain)).collect()
    }

    /// Looks at what a pattern notices, other than by a join, of a context that may bind these
    /// variables.
    ///
    /// # Errors
    /// It cannot be translated here.
    pub(super) fn noticed(
        mut self,
        pattern: &GraphPattern,
        names: &[(tree::Var, bool)],
    ) -> Result<Noticed, QueryError> {
        let mut inside = SelectNames::default();
        let mut named = Vec::new();
        for (name, certain) in names {
            named.push((*name, self.var(*name, &mut inside), *certain));
        }
        let row = self.internal(Internal::Row);
        // there is a context only where a solution may bind something
        let (graph, some, binds, is_lateral) = (None, None, true, false);
        self.contexts.push(ExistsContext { row, names: named, graph, some, binds, is_lateral });
        inside.context = Some(self.contexts.len() - 1);
        let node = self.node(pattern, &mut inside, GraphSlot::Default)?;
        Ok(match (self.has_context(&node, &inside), self.has_open_minus) {
            (true, _) => Noticed::Names,
            (false, true) => Noticed::Minus,
            (false, false) => Noticed::Nothing,
        })
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
            let here = self.var(name, select);
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

    /// The node joined with the context, if that may bind a variable of an expression where the
    /// node does not.
    pub(super) fn seeing(&mut self, node: Node, expr: &Expr, select: &mut SelectNames) -> Node {
        match select.context {
            Some(_) => self.seeing_mentioned(node, &Mentions::of_expression(expr).vars, select),
            None => node,
        }
    }

    /// As [`Translator::seeing`], for some variables of the text.
    fn seeing_mentioned(
        &mut self,
        node: Node,
        mentioned: &FxHashSet<tree::Var>,
        select: &mut SelectNames,
    ) -> Node {
        let Some(c) = select.context else { return node };
        let certain = node.scope().certain;
        let open = |name: &tree::Var| select.vars.get(name).is_none_or(|v| !certain.contains(*v));
        let noticed = self.contexts[c].names.iter().any(|n| mentioned.contains(&n.0) && open(&n.0));
        if noticed { self.in_context(node, select) } else { node }
    }

    /// As [`Translator::seeing`], for variables of the algebra.
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

    /// Whether the context may bind one of these variables.
    pub(super) fn context_has(&self, context: usize, mentioned: &FxHashSet<tree::Var>) -> bool {
        self.contexts[context].names.iter().any(|n| mentioned.contains(&n.0))
    }

    /// Whether the context may bind a variable.
    pub(super) fn is_of_context(&self, name: tree::Var, select: &SelectNames) -> bool {
        select.context.is_some_and(|c| self.contexts[c].names.iter().any(|n| n.0 == name))
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
        expr: Option<&Expr>,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let left = self.node(left, select, g)?;
        let right = self.node(right, select, g)?;
        let left = if let Some(expr) = expr { self.seeing(left, expr, select) } else { left };
        let mut left = self.beside(left, &right, select, g);
        let Some(expr) = expr else {
            return Ok(Node::LeftJoin {
                left: Box::new(left),
                right: Box::new(right),
                conditions: Vec::new(),
            });
        };
        if !has_exists(expr) {
            let visible = left.scope().possible.union(&right.scope().possible);
            let conditions = chained(expr, and)
                .into_iter()
                .map(|c| self.plain(c, &visible, select))
                .collect::<Result<_, _>>()?;
            return Ok(Node::LeftJoin { left: Box::new(left), right: Box::new(right), conditions });
        }
        // EXISTS sees the pair: the right side is evaluated for the rows of the left, which are
        // its context
        if let Some(graph) = graph_var(g) {
            left = in_graph(left, Slot::Var(graph));
        }
        let of_left = left.scope();
        let mentions = Mentions::of_expression(expr);
        let read = mentions.vars.iter().filter_map(|n| select.vars.get(n).copied());
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
        if self.only_looks {
            let shared = left.scope().certain.intersection(&right.scope().certain);
            self.has_open_minus |= !select.vars.values().any(|v| shared.contains(*v));
        }
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
        vars: &[tree::Var],
        aggregates: &[(tree::Var, tree::Aggregate)],
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let node = self.node(inner, select, g)?;
        let mut node = self.seeing_mentioned(node, &vars.iter().copied().collect(), select);
        if self.has_context(&node, select) || self.context_vars(select).intersects(&node.scope().possible) {
            node = self.in_context(node, select);
        }
        let mut keys: Vec<Var> = Vec::new();
        for v in vars {
            let v = self.var(*v, select);
            if !keys.contains(&v) {
                keys.push(v);
            }
        }
        let mut list = Vec::with_capacity(aggregates.len());
        for (var, aggregate) in aggregates {
            let (with_marks, aggregate) = self.aggregate(node, aggregate, select, g)?;
            node = with_marks;
            list.push((self.var(*var, select), aggregate));
        }
        let inside = node.scope();
        let visible = select.visible(&inside);
        let graph = graph_var(g).filter(|v| inside.possible.contains(*v) && !keys.contains(v));
        let row = self.row_of(&node, select);
        let apart: Vec<Var> = graph.into_iter().chain(row).collect();
        keys.extend(&apart);
        if vars.is_empty() && !apart.is_empty() {
            return Ok(self.group_of_all(node, keys, list, visible, select));
        }
        Ok(Node::Group { inner: Box::new(node), keys, aggregates: list, visible })
    }

    fn aggregate(
        &mut self,
        node: Node,
        aggregate: &tree::Aggregate,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<(Node, AggregateExpression), QueryError> {
        let is_distinct = aggregate.is_distinct;
        let Some(argument) = &aggregate.argument else {
            return Ok((node, AggregateExpression::count_rows(is_distinct)));
        };
        let function = match aggregate.function {
            AggregateFunction::Count => GroupFunction::Count,
            AggregateFunction::Sum => GroupFunction::Sum,
            AggregateFunction::Avg => GroupFunction::Avg,
            AggregateFunction::Min => GroupFunction::Min,
            AggregateFunction::Max => GroupFunction::Max,
            AggregateFunction::Sample => GroupFunction::Sample,
            AggregateFunction::GroupConcat => {
                GroupFunction::Concat(aggregate.separator.as_deref().unwrap_or(" ").into())
            }
        };
        let (node, argument) = self.expression_over(node, argument, select, g)?;
        Ok((node, AggregateExpression { function, is_distinct, argument: Some(argument) }))
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
        aggregates.push((rows, AggregateExpression::count_rows(false)));
        let right = Box::new(Node::Group { inner: Box::new(inner), keys, aggregates, visible });
        let mut node = Node::LeftJoin { left: Box::new(join(each)), right, conditions: Vec::new() };
        for (var, found, value) in empty {
            let value = Expression::literal(value);
            let expr = Expression::if_else(Expression::Bound(rows), Expression::Var(found), value);
            node = Node::Extend { inner: Box::new(node), var, expr };
        }
        node
    }
}

/// The value of an aggregate of no solutions; None where that is an error.
fn of_nothing(aggregate: &AggregateExpression) -> Option<Literal> {
    use GroupFunction as F;
    match aggregate.function {
        F::CountRows | F::Count | F::Sum | F::Avg => Some(0.into()),
        F::Concat(_) => Some(Literal::new_simple_literal("")),
        F::Min | F::Max | F::Sample => None,
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
