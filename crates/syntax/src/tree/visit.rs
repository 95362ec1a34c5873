//! The one walk over a tree.

use super::expr::Expr;
use super::path::Path;
use super::pattern::GraphPattern;
use super::term::{Slot, TriplePattern};
use super::vars::Var;

/// A node of a tree.
#[derive(Clone, Copy, Debug)]
pub enum Node<'t> {
    /// A pattern.
    Pattern(&'t GraphPattern),
    /// An expression.
    Expr(&'t Expr),
    /// A path.
    Path(&'t Path),
    /// A place of a triple, the name of a graph or service, a predicate of a path, a value.
    Slot(&'t Slot),
    /// A variable, wherever it stands.
    Var(Var),
}

impl<'t> Node<'t> {
    /// Visits this node and all within it, in the order of evaluation. False: not into this one.
    pub fn walk(self, visit: &mut dyn FnMut(Node<'t>) -> bool) {
        if visit(self) {
            self.parts(&mut |part| part.walk(visit));
        }
    }

    /// Gives out the nodes directly within this one.
    pub fn parts(self, each: &mut dyn FnMut(Node<'t>)) {
        match self {
            Self::Pattern(pattern) => pattern.parts(each),
            Self::Expr(expr) => expr.parts(each),
            Self::Path(path) => match path {
                Path::Predicate(slot) => each(Self::Slot(slot)),
                Path::Reverse(inner) | Path::ZeroOrMore(inner) => each(Self::Path(inner)),
                Path::OneOrMore(inner) | Path::ZeroOrOne(inner) => each(Self::Path(inner)),
                Path::Sequence(parts) | Path::Alternative(parts) => {
                    parts.iter().map(Self::Path).for_each(each)
                }
                Path::Negated(slots) => slots.iter().map(Self::Slot).for_each(each),
            },
            Self::Slot(Slot::Var(var)) => each(Self::Var(*var)),
            Self::Slot(Slot::Triple(triple)) => triple.slots().map(Self::Slot).into_iter().for_each(each),
            Self::Slot(Slot::Term(_) | Slot::Param(_)) | Self::Var(_) => {}
        }
    }
}

impl TriplePattern {
    /// Its places.
    #[must_use]
    pub fn slots(&self) -> [&Slot; 3] {
        [&self.subject, &self.predicate, &self.object]
    }
}

impl GraphPattern {
    fn parts<'t>(&'t self, each: &mut dyn FnMut(Node<'t>)) {
        match self {
            Self::Bgp(triples) => {
                triples.iter().flat_map(TriplePattern::slots).map(Node::Slot).for_each(each)
            }
            Self::Path { subject, path, object } => {
                [Node::Slot(subject), Node::Path(path), Node::Slot(object)].into_iter().for_each(each);
            }
            Self::Join(parts) | Self::Union(parts) => parts.iter().map(Node::Pattern).for_each(each),
            Self::LeftJoin { left, right, condition } => {
                [&**left, right].map(Node::Pattern).into_iter().for_each(&mut *each);
                condition.iter().map(Node::Expr).for_each(each);
            }
            Self::Lateral { left, right } | Self::Minus { left, right } => {
                [&**left, right].map(Node::Pattern).into_iter().for_each(each);
            }
            Self::Filter { condition, inner } => {
                [Node::Pattern(inner), Node::Expr(condition)].into_iter().for_each(each);
            }
            Self::Graph { name, inner } | Self::Service { name, inner, .. } => {
                [Node::Slot(name), Node::Pattern(inner)].into_iter().for_each(each);
            }
            Self::Extend { inner, values } => {
                each(Node::Pattern(inner));
                values.iter().flat_map(|(var, expr)| [Node::Var(*var), Node::Expr(expr)]).for_each(each);
            }
            Self::Values(values) => {
                values.vars.iter().copied().map(Node::Var).for_each(&mut *each);
                values.rows.iter().flatten().flatten().map(Node::Slot).for_each(each);
            }
            Self::OrderBy { inner, keys } => {
                each(Node::Pattern(inner));
                keys.iter().map(|key| Node::Expr(&key.expr)).for_each(each);
            }
            Self::Project { inner, vars, .. } => {
                each(Node::Pattern(inner));
                vars.iter().copied().map(Node::Var).for_each(each);
            }
            Self::Distinct(inner) | Self::Reduced(inner) | Self::Slice { inner, .. } => {
                each(Node::Pattern(inner));
            }
            Self::Group { inner, vars, aggregates } => {
                each(Node::Pattern(inner));
                vars.iter().copied().map(Node::Var).for_each(&mut *each);
                for (var, aggregate) in aggregates {
                    each(Node::Var(*var));
                    aggregate.argument.iter().map(Node::Expr).for_each(&mut *each);
                }
            }
        }
    }
}

impl Expr {
    fn parts<'t>(&'t self, each: &mut dyn FnMut(Node<'t>)) {
        match self {
            Self::Var(var) => each(Node::Var(*var)),
            Self::Const(_) | Self::Param(_) => {}
            Self::Or(parts) | Self::And(parts) => parts.iter().map(Node::Expr).for_each(each),
            Self::Call(_, parts) | Self::Custom(_, parts) => parts.iter().map(Node::Expr).for_each(each),
            Self::Unary(_, inner) => each(Node::Expr(inner)),
            Self::Binary(_, pair) => pair.iter().map(Node::Expr).for_each(each),
            Self::In(value, list) => std::iter::once(&**value).chain(list).map(Node::Expr).for_each(each),
            Self::Exists(pattern) => each(Node::Pattern(pattern)),
        }
    }
}
