//! Rewrites: the same answer by an easier way, whatever the data.
//!
//! Bottom-up, once per shape:
//! 1. joins are flat; a sub-select that only hides variables opens (hidden variables have
//!    numbers of their own);
//! 2. filters sink: into the left of OPTIONAL, MINUS and EXISTS, into each branch of UNION,
//!    below BIND, DISTINCT and GROUP BY; an equality of what BIND computes goes below it, too, as
//!    one of the expression: it may join two sides (`join_key`);
//! 3. `FILTER(!bound(?v))` over an OPTIONAL that binds ?v is an anti-join; a filter that is an
//!    error without ?v makes the OPTIONAL a join;
//! 4. `?v = <iri>` puts the IRI into the patterns; `?a = ?b` where one can only be an IRI makes
//!    them one variable;
//! 5. OPTIONAL moves out of joins, where it is well-designed (Pérez et al., "Semantics and
//!    Complexity of SPARQL", 2009);
//! 6. ORDER BY under DISTINCT moves above it, where the keys are shown.

mod reject;

use crate::algebra::consts::{ConstTerm, GroundTerm};
use crate::algebra::join_key::{self, Keyed};
use crate::algebra::translate::join;
use crate::algebra::{
    Algebra, ApplyKind, BinaryOperator, Const, ExistsKind, Expression, Function, GraphSlot, Node, Param,
    Pattern, Slot, Var, VarSet,
};
use crate::bounds::Limits;
use crate::error::QueryError;
use reject::{not_bound, rejects_unbound};

/// Questions of a rewrite about the data.
pub(crate) trait Facts {
    /// Whether the objects of a predicate are IRIs or blank nodes throughout.
    fn objects_are_resources(&mut self, predicate: Const) -> bool;
}

/// Filters over unions are put into their branches while that makes no more copies than this.
const MOST_COPIES: usize = 1 << 14;

/// Rewrites the whole algebra.
///
/// # Errors
/// When the query must stop; the algebra is then good for nothing.
pub(crate) fn rewrite(
    algebra: &mut Algebra,
    facts: &mut dyn Facts,
    limits: &Limits,
) -> Result<(), QueryError> {
    let root = std::mem::replace(&mut algebra.root, Node::Unit);
    let mut rewriter = Rewriter { algebra, facts, limits, stopped: None, copies: 0 };
    let root = rewriter.node(root);
    let stopped = rewriter.stopped;
    algebra.root = root;
    stopped.map_or(Ok(()), Err)
}

struct Rewriter<'a> {
    algebra: &'a mut Algebra,
    facts: &'a mut dyn Facts,
    limits: &'a Limits,
    /// why it stopped: nothing more is rewritten then
    stopped: Option<QueryError>,
    /// conditions copied into branches
    copies: usize,
}

impl Rewriter<'_> {
    /// Whether the query must stop.
    fn must_stop(&mut self) -> bool {
        if self.stopped.is_none() {
            self.stopped = self.limits.check().err().map(QueryError::from);
        }
        self.stopped.is_some()
    }

    fn node(&mut self, node: Node) -> Node {
        if self.must_stop() {
            return node;
        }
        match node {
            Node::Join(nodes) => {
                let nodes = nodes.into_iter().map(|n| open(self.node(n))).collect();
                self.lift_optionals(join(nodes))
            }
            Node::LeftJoin { left, right, conditions } => {
                let left = Box::new(open(self.node(*left)));
                let right = Box::new(open(self.node(*right)));
                Node::LeftJoin { left, right, conditions }
            }
            Node::Exists { left, right, conditions, kind } => {
                let left = Box::new(self.node(*left));
                let right = Box::new(open(self.node(*right)));
                Node::Exists { left, right, conditions, kind }
            }
            Node::Apply { left, right, row, vars, kind } => {
                let left = self.boxed(*left);
                let right = Box::new(open(self.node(*right)));
                Node::Apply { left, right, row, vars, kind }
            }
            Node::Minus { left, right, apart } => {
                Node::Minus { left: self.boxed(*left), right: self.boxed(*right), apart }
            }
            Node::Union(nodes) => Node::Union(nodes.into_iter().map(|n| self.node(n)).collect()),
            Node::Filter { inner, conditions } => {
                let inner = self.node(*inner);
                self.sink(conditions, inner)
            }
            Node::Extend { inner, var, expr } => Node::Extend { inner: self.boxed(*inner), var, expr },
            Node::Group { inner, keys, aggregates, visible } => {
                Node::Group { inner: self.boxed(*inner), keys, aggregates, visible }
            }
            Node::Distinct(inner) => sort_above_distinct(self.node(*inner)),
            Node::Reduced(inner) => Node::Reduced(self.boxed(*inner)),
            Node::Sort { inner, keys } => Node::Sort { inner: self.boxed(*inner), keys },
            Node::Slice { inner, offset, limit, per } => {
                Node::Slice { inner: self.boxed(*inner), offset, limit, per }
            }
            Node::Project { inner, vars } => Node::Project { inner: self.boxed(*inner), vars },
            leaf @ (Node::Unit
            | Node::Pattern(_)
            | Node::Path { .. }
            | Node::GraphNames(_)
            | Node::Service(_)
            | Node::Context { .. }
            | Node::Values { .. }) => leaf,
        }
    }

    fn boxed(&mut self, node: Node) -> Box<Node> {
        Box::new(self.node(node))
    }

    /// Filters as deep as they may go; the node has been rewritten.
    fn sink(&mut self, conditions: Vec<Expression>, node: Node) -> Node {
        if conditions.is_empty() {
            return node;
        }
        if self.must_stop() {
            return keep(conditions, node);
        }
        match node {
            Node::Filter { inner, conditions: mut others } => {
                others.extend(conditions);
                self.sink(others, *inner)
            }
            Node::Union(nodes) if self.copies + nodes.len() * conditions.len() <= MOST_COPIES => {
                self.copies += nodes.len() * conditions.len();
                let scopes: Vec<VarSet> = nodes.iter().map(|n| n.scope().possible).collect();
                let of_all = scopes.iter().fold(VarSet::default(), |all, scope| all.union(scope));
                let branches = nodes.into_iter().zip(scopes).map(|(n, scope)| {
                    let conditions = self.without(conditions.clone(), &of_all.minus(&scope));
                    self.sink(conditions, n)
                });
                Node::Union(branches.collect())
            }
            Node::Distinct(inner) => Node::Distinct(Box::new(self.sink(conditions, *inner))),
            Node::Sort { inner, keys } => Node::Sort { inner: Box::new(self.sink(conditions, *inner)), keys },
            Node::Project { inner, vars } => {
                Node::Project { inner: Box::new(self.sink(conditions, *inner)), vars }
            }
            Node::Minus { left, right, apart } => {
                Node::Minus { left: Box::new(self.sink(conditions, *left)), right, apart }
            }
            Node::Extend { inner, var, expr } => {
                let (stay, mut go) = self.split(conditions, |vars, _| vars.contains(var));
                let stay = below_bind(stay, &mut go, var, &expr);
                let inner = Box::new(self.sink(go, *inner));
                keep(stay, Node::Extend { inner, var, expr })
            }
            Node::Exists { left, right, conditions: c, kind } => {
                let (stay, go) = self.split_by_mark(conditions, kind);
                let left = Box::new(self.sink(go, *left));
                keep(stay, Node::Exists { left, right, conditions: c, kind })
            }
            Node::Apply { left, right, row, vars, kind: ApplyKind::Exists(kind) } => {
                let (stay, go) = self.split_by_mark(conditions, kind);
                let left = Box::new(self.sink(go, *left));
                keep(stay, Node::Apply { left, right, row, vars, kind: ApplyKind::Exists(kind) })
            }
            Node::Group { inner, keys, aggregates, visible } => {
                let by: VarSet = keys.iter().copied().collect();
                let (stay, go) = self.split(conditions, |vars, _| keys.is_empty() || !vars.is_subset(&by));
                let inner = Box::new(self.sink(go, *inner));
                keep(stay, Node::Group { inner, keys, aggregates, visible })
            }
            Node::LeftJoin { left, right, conditions: on } => {
                self.sink_into_left_join(conditions, *left, *right, on)
            }
            Node::Join(nodes) => self.sink_into_join(conditions, nodes),
            leaf @ Node::Pattern(_) => self.sink_into_join(conditions, vec![leaf]),
            other => keep(conditions, other),
        }
    }

    /// Conditions in a branch that binds none of these variables. There they are never bound, also
    /// where rows with values of them flow into the branch.
    fn without(&mut self, mut conditions: Vec<Expression>, absent: &VarSet) -> Vec<Expression> {
        for condition in &mut conditions {
            if condition.vars().intersects(absent) {
                let never = self.algebra.never();
                condition.rename(&|v| if absent.contains(v) { never } else { v });
            }
        }
        conditions
    }

    fn split(
        &self,
        conditions: Vec<Expression>,
        stays: impl Fn(&VarSet, &Expression) -> bool,
    ) -> (Vec<Expression>, Vec<Expression>) {
        conditions.into_iter().partition(|c| stays(&c.vars(), c))
    }

    /// Conditions that wait for a mark, and the others.
    fn split_by_mark(
        &self,
        conditions: Vec<Expression>,
        kind: ExistsKind,
    ) -> (Vec<Expression>, Vec<Expression>) {
        self.split(conditions, |vars, _| matches!(kind, ExistsKind::Mark(m) if vars.contains(m)))
    }

    fn sink_into_left_join(
        &mut self,
        conditions: Vec<Expression>,
        left: Node,
        right: Node,
        on: Vec<Expression>,
    ) -> Node {
        let (of_left, of_right) = (left.scope(), right.scope());
        let only_right = of_right.certain.minus(&of_left.possible);
        let (stay, go) = self
            .split(conditions, |vars, _| !vars.intersection(&of_right.possible).is_subset(&of_left.certain));
        let mut stay = stay;
        let left = self.sink(go, left);
        // An anti-join asks its conditions of the right side alone. They may mean a value of the
        // left that the right leaves open.
        let in_doubt = of_right.possible.minus(&of_right.certain).intersection(&of_left.possible);
        let is_sure = !on.iter().any(|c| c.vars().intersects(&in_doubt));
        // what is not bound is known not to have matched
        if is_sure
            && let Some(i) = stay.iter().position(|c| not_bound(c).is_some_and(|v| only_right.contains(v)))
        {
            stay.remove(i);
            let anti = Node::Exists {
                left: Box::new(left),
                right: Box::new(right),
                conditions: on,
                kind: ExistsKind::Anti,
            };
            return self.sink(stay, anti);
        }
        if stay.iter().any(|c| only_right.iter().any(|v| rejects_unbound(c, v))) {
            let mut all = on;
            all.extend(stay);
            return self.sink(all, join(vec![left, right]));
        }
        keep(stay, Node::LeftJoin { left: Box::new(left), right: Box::new(right), conditions: on })
    }

    fn sink_into_join(&mut self, conditions: Vec<Expression>, mut nodes: Vec<Node>) -> Node {
        let mut stay = Vec::new();
        let mut renamed = Vec::new();
        for condition in conditions {
            if self.must_stop() {
                stay.push(condition);
                continue;
            }
            if self.unify(&condition, &mut nodes, &mut renamed) {
                continue;
            }
            match self.home(&condition, &nodes) {
                Some(i) => {
                    let node = std::mem::replace(&mut nodes[i], Node::Unit);
                    nodes[i] = self.sink(vec![condition], node);
                }
                None => stay.push(condition),
            }
        }
        // conditions may still name a variable that went
        if !renamed.is_empty() {
            stay.iter_mut().for_each(|c| c.rename(&|v| kept_variable(v, &renamed)));
        }
        let mut node = keep(stay, self.lift_optionals(join(nodes)));
        for (gone, kept) in renamed {
            node = Node::Extend { inner: Box::new(node), var: gone, expr: Expression::Var(kept) };
        }
        node
    }

    /// The element of a join, other than a pattern, that alone decides a condition.
    fn home(&self, condition: &Expression, nodes: &[Node]) -> Option<usize> {
        let vars = condition.vars();
        nodes.iter().position(|n| {
            if matches!(n, Node::Pattern(_) | Node::Values { .. } | Node::Path { .. } | Node::Unit) {
                return false;
            }
            let scope = n.scope();
            if !vars.is_subset(&scope.possible) || vars.is_empty() {
                return false;
            }
            let others = nodes
                .iter()
                .filter(|o| !std::ptr::eq(*o, n))
                .fold(VarSet::default(), |a, o| a.union(&o.scope().possible));
            vars.intersection(&others).is_subset(&scope.certain)
        })
    }

    /// Turns an equality into a substitution in the patterns; false where it must stay a
    /// filter.
    fn unify(
        &mut self,
        condition: &Expression,
        nodes: &mut Vec<Node>,
        renamed: &mut Vec<(Var, Var)>,
    ) -> bool {
        let (a, b, same) = match condition {
            Expression::Binary(BinaryOperator::Equal, pair) => (&pair[0], &pair[1], false),
            Expression::Call(Function::SameTerm, list) => (&list[0], &list[1], true),
            _ => return false,
        };
        let var = |e: &Expression| if let Expression::Var(v) = e { Some(*v) } else { None };
        match (var(a), var(b)) {
            (Some(a), Some(b)) if a != b => {
                if !only_in_patterns(nodes, b)
                    || !only_in_patterns(nodes, a)
                    || !(same || self.is_resource(nodes, a) || self.is_resource(nodes, b))
                {
                    return false;
                }
                substitute(nodes, b, Slot::Var(a));
                renamed.push((b, a));
                true
            }
            (Some(v), None) => self.unify_constant(v, b, same, nodes),
            (None, Some(v)) => self.unify_constant(v, a, same, nodes),
            _ => false,
        }
    }

    fn unify_constant(&mut self, v: Var, constant: &Expression, same: bool, nodes: &mut Vec<Node>) -> bool {
        let is_iri = matches!(
            constant,
            Expression::Const(GroundTerm::Iri(_)) | Expression::Param(Param { is_iri: true, .. })
        );
        let Some(term) = constant.constant().filter(|_| is_iri || same) else { return false };
        if !only_in_patterns(nodes, v) {
            return false;
        }
        let c = self.constant(term);
        substitute(nodes, v, Slot::Const(c));
        nodes.push(Node::Values { vars: vec![v], rows: vec![vec![Some(c)]] });
        true
    }

    fn constant(&mut self, term: ConstTerm) -> Const {
        let consts = &mut self.algebra.consts;
        let i = consts.iter().position(|c| *c == term).unwrap_or_else(|| {
            consts.push(term);
            consts.len() - 1
        });
        Const(i as u32)
    }

    /// `Join(LeftJoin(A, B), C)` is `LeftJoin(Join(A, C), B)` where B shares with C only what A
    /// binds for certain.
    fn lift_optionals(&mut self, node: Node) -> Node {
        let Node::Join(mut nodes) = node else { return node };
        let mut lifted = Vec::new();
        while !self.must_stop()
            && let Some(i) = nodes.iter().position(|n| can_lift(n, &nodes))
        {
            let Node::LeftJoin { left, right, conditions } = nodes.remove(i) else {
                unreachable!("only left joins are lifted")
            };
            match *left {
                Node::Join(inner) => nodes.extend(inner),
                other => nodes.push(other),
            }
            lifted.push((right, conditions));
        }
        lifted.into_iter().rev().fold(join(nodes), |left, (right, conditions)| Node::LeftJoin {
            left: Box::new(left),
            right,
            conditions,
        })
    }

    /// Whether some pattern lets a variable be nothing but an IRI or a blank node.
    fn is_resource(&mut self, nodes: &[Node], v: Var) -> bool {
        nodes.iter().any(|n| match n {
            Node::Pattern(p) if p.s == Slot::Var(v) || p.p == Slot::Var(v) => true,
            Node::Pattern(Pattern { p: Slot::Const(p), o, g, .. })
                if *o == Slot::Var(v) && !matches!(g, GraphSlot::TripleTerm(_)) =>
            {
                self.facts.objects_are_resources(*p)
            }
            _ => false,
        })
    }
}

/// Equalities of the variable of a BIND that may join two sides, as of what it is bound to; the
/// others stay.
fn below_bind(
    conditions: Vec<Expression>,
    below: &mut Vec<Expression>,
    var: Var,
    expr: &Expression,
) -> Vec<Expression> {
    if !join_key::gives_the_same(expr) || join_key::kind(expr, &|_| None).is_none() {
        return conditions;
    }
    let is_it = |e: &Expression| *e == Expression::Var(var);
    let (may_join, stay) = conditions.into_iter().partition(|c| {
        let own = |e: &Expression| if is_it(e) { Some(Keyed::Text) } else { None };
        join_key::sides(c, own).is_some_and(|[a, b]| {
            let (a, b) = if is_it(a) { (a, b) } else { (b, a) };
            is_it(a) && !b.vars().contains(var) && !b.vars().is_empty()
        })
    });
    below.extend(Vec::into_iter(may_join).map(|mut condition| {
        replace(&mut condition, var, expr);
        condition
    }));
    stay
}

/// Puts an expression in the place of a variable that is an operand of an equality.
fn replace(condition: &mut Expression, var: Var, by: &Expression) {
    let operands = match condition {
        Expression::Binary(_, pair) => &mut pair[..],
        Expression::Call(_, list) => &mut list[..],
        _ => unreachable!("an equality has operands"),
    };
    operands.iter_mut().filter(|e| **e == Expression::Var(var)).for_each(|e| *e = by.clone());
}

fn keep(conditions: Vec<Expression>, node: Node) -> Node {
    if conditions.is_empty() { node } else { Node::Filter { inner: Box::new(node), conditions } }
}

/// Drops a projection that only hides, and an order that a join would lose.
fn open(node: Node) -> Node {
    match node {
        Node::Project { inner, .. } | Node::Sort { inner, .. } => open(*inner),
        other => other,
    }
}

/// The variable that one has gone into. In order: it may have gone on from there.
fn kept_variable(v: Var, renamed: &[(Var, Var)]) -> Var {
    renamed.iter().fold(v, |v, (gone, kept)| if v == *gone { *kept } else { v })
}

fn only_in_patterns(nodes: &[Node], v: Var) -> bool {
    nodes.iter().all(|n| matches!(n, Node::Pattern(_)) || !n.scope().possible.contains(v))
        && nodes.iter().any(|n| n.scope().possible.contains(v))
}

fn substitute(nodes: &mut [Node], v: Var, by: Slot) {
    for node in nodes {
        if let Node::Pattern(p) = node {
            for slot in [&mut p.s, &mut p.p, &mut p.o] {
                if *slot == Slot::Var(v) {
                    *slot = by;
                }
            }
            if let GraphSlot::Named(slot) | GraphSlot::TripleTerm(slot) = &mut p.g
                && *slot == Slot::Var(v)
            {
                *slot = by;
            }
        }
    }
}

fn can_lift(node: &Node, nodes: &[Node]) -> bool {
    let Node::LeftJoin { left, right, conditions } = node else { return false };
    let reads = conditions.iter().fold(right.scope().possible, |a, c| a.union(&c.vars()));
    let others = nodes
        .iter()
        .filter(|n| !std::ptr::eq(*n, node))
        .fold(VarSet::default(), |a, n| a.union(&n.scope().possible));
    others.intersection(&reads).is_subset(&left.scope().certain)
}

/// `Distinct(Project(Sort))` to `Sort(Distinct(Project))`, where the keys are shown.
fn sort_above_distinct(inner: Node) -> Node {
    let Node::Project { inner, vars } = inner else { return Node::Distinct(Box::new(inner)) };
    let shown: VarSet = vars.iter().copied().collect();
    match *inner {
        Node::Sort { inner, keys } if keys.iter().all(|k| k.expr.vars().is_subset(&shown)) => {
            let distinct = Node::Distinct(Box::new(Node::Project { inner, vars }));
            Node::Sort { inner: Box::new(distinct), keys }
        }
        inner => Node::Distinct(Box::new(Node::Project { inner: Box::new(inner), vars })),
    }
}
