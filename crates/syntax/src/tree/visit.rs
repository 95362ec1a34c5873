//! One walk over all of a tree.

use super::expr::Expr;
use super::path::Path;
use super::pattern::GraphPattern;
use super::term::{Slot, TriplePattern};
use super::vars::Var;

/// A walk over a tree. Each method goes on to the parts of what it is given, unless it is replaced;
/// a replacement calls the `walk` function of its kind to go on.
pub trait Visitor {
    /// A pattern.
    fn pattern(&mut self, pattern: &GraphPattern) {
        walk_pattern(self, pattern);
    }

    /// An expression.
    fn expr(&mut self, expr: &Expr) {
        walk_expr(self, expr);
    }

    /// A place of a triple, the name of a graph or service, a predicate of a path, a value.
    fn slot(&mut self, slot: &Slot) {
        walk_slot(self, slot);
    }

    /// A path.
    fn path(&mut self, path: &Path) {
        walk_path(self, path);
    }

    /// A variable, wherever it stands.
    fn var(&mut self, _var: Var) {}
}

/// Goes on to the parts of a pattern.
pub fn walk_pattern<V: Visitor + ?Sized>(visitor: &mut V, pattern: &GraphPattern) {
    use GraphPattern as P;
    match pattern {
        P::Bgp(triples) => triples.iter().for_each(|triple| walk_triple(visitor, triple)),
        P::Path { subject, path, object } => {
            visitor.slot(subject);
            visitor.path(path);
            visitor.slot(object);
        }
        P::Join(parts) | P::Union(parts) => parts.iter().for_each(|part| visitor.pattern(part)),
        P::LeftJoin { left, right, condition } => {
            visitor.pattern(left);
            visitor.pattern(right);
            condition.iter().for_each(|condition| visitor.expr(condition));
        }
        P::Lateral { left, right } | P::Minus { left, right } => {
            visitor.pattern(left);
            visitor.pattern(right);
        }
        P::Filter { condition, inner } => {
            visitor.pattern(inner);
            visitor.expr(condition);
        }
        P::Graph { name, inner } | P::Service { name, inner, .. } => {
            visitor.slot(name);
            visitor.pattern(inner);
        }
        P::Extend { inner, values } => {
            visitor.pattern(inner);
            for (var, expr) in values {
                visitor.var(*var);
                visitor.expr(expr);
            }
        }
        P::Values(values) => {
            values.vars.iter().for_each(|var| visitor.var(*var));
            values.rows.iter().flatten().flatten().for_each(|cell| visitor.slot(cell));
        }
        P::OrderBy { inner, keys } => {
            visitor.pattern(inner);
            keys.iter().for_each(|key| visitor.expr(&key.expr));
        }
        P::Project { inner, vars, .. } => {
            visitor.pattern(inner);
            vars.iter().for_each(|var| visitor.var(*var));
        }
        P::Distinct(inner) | P::Reduced(inner) | P::Slice { inner, .. } => visitor.pattern(inner),
        P::Group { inner, vars, aggregates } => {
            visitor.pattern(inner);
            vars.iter().for_each(|var| visitor.var(*var));
            for (var, aggregate) in aggregates {
                visitor.var(*var);
                aggregate.argument.iter().for_each(|argument| visitor.expr(argument));
            }
        }
    }
}

/// Goes on to the parts of an expression.
pub fn walk_expr<V: Visitor + ?Sized>(visitor: &mut V, expr: &Expr) {
    use Expr as E;
    match expr {
        E::Var(var) | E::Bound(var) => visitor.var(*var),
        E::Const(_) | E::Param(_) => {}
        E::Or(parts) | E::And(parts) | E::Coalesce(parts) | E::Call(_, parts) => {
            parts.iter().for_each(|part| visitor.expr(part));
        }
        E::Equal(pair)
        | E::SameTerm(pair)
        | E::Greater(pair)
        | E::GreaterOrEqual(pair)
        | E::Less(pair)
        | E::LessOrEqual(pair)
        | E::Add(pair)
        | E::Subtract(pair)
        | E::Multiply(pair)
        | E::Divide(pair) => pair.iter().for_each(|part| visitor.expr(part)),
        E::In(value, list) => {
            visitor.expr(value);
            list.iter().for_each(|part| visitor.expr(part));
        }
        E::UnaryPlus(inner) | E::UnaryMinus(inner) | E::Not(inner) => visitor.expr(inner),
        E::Exists(pattern) => visitor.pattern(pattern),
        E::If(parts) => parts.iter().for_each(|part| visitor.expr(part)),
    }
}

/// Goes on to the variable of a place, or into its triple.
pub fn walk_slot<V: Visitor + ?Sized>(visitor: &mut V, slot: &Slot) {
    match slot {
        Slot::Var(var) => visitor.var(*var),
        Slot::Triple(triple) => walk_triple(visitor, triple),
        Slot::Term(_) | Slot::Param(_) => {}
    }
}

fn walk_triple<V: Visitor + ?Sized>(visitor: &mut V, triple: &TriplePattern) {
    visitor.slot(&triple.subject);
    visitor.slot(&triple.predicate);
    visitor.slot(&triple.object);
}

fn walk_path<V: Visitor + ?Sized>(visitor: &mut V, path: &Path) {
    match path {
        Path::Predicate(slot) => visitor.slot(slot),
        Path::Reverse(inner) | Path::ZeroOrMore(inner) | Path::OneOrMore(inner) | Path::ZeroOrOne(inner) => {
            visitor.path(inner);
        }
        Path::Sequence(parts) | Path::Alternative(parts) => {
            parts.iter().for_each(|part| visitor.path(part));
        }
        Path::Negated(slots) => slots.iter().for_each(|slot| visitor.slot(slot)),
    }
}
