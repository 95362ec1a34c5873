//! Which variables a node has, in the four senses that must not be confused.
//!
//! | set | meaning | use |
//! |---|---|---|
//! | `possible` | some solution may bind it | joins: variables that two sides may share |
//! | `certain` | every solution binds it | moves of filters, OPTIONALs and rows |
//! | `hidden` | a projection inside keeps it from the outside | asserted: never visible |
//! | `visible` | a name of the SELECT that the node stands in | COUNT(DISTINCT *) |
//!
//! The first three are computed here, bottom-up, one rule for each operator (SPARQL 1.1, 18.2.1
//! and 18.5). Visible is a matter of names, so it is the translator that knows it
//! (`SelectNames::visible`), and the algebra keeps it where it counts: in [`Node::Group`]. What is
//! visible and not possible is a name that a SELECT shows and nothing binds.
//!
//! A name that a sub-select hides has a number of its own. So a projection that is opened, to join
//! its inside with the outside, lets columns out that no one outside asks for: they become
//! `possible` there, and stay invisible.

use super::{
    AggregateExpression, ApplyKind, ExistsKind, Expression, GraphSlot, GroupFunction, Node, Var, VarSet,
};

/// The variables of a node.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Scope {
    pub possible: VarSet,
    pub certain: VarSet,
    pub hidden: VarSet,
}

impl Scope {
    /// A leaf that binds all its variables.
    fn leaf(vars: VarSet) -> Self {
        Self { possible: vars.clone(), certain: vars, hidden: VarSet::default() }
    }

    /// A join: both sides bind.
    pub fn join(&self, other: &Self) -> Self {
        Self {
            possible: self.possible.union(&other.possible),
            certain: self.certain.union(&other.certain),
            hidden: self.hidden.union(&other.hidden),
        }
    }

    /// A union: one of the sides binds.
    fn union(&self, other: &Self) -> Self {
        Self { certain: self.certain.intersection(&other.certain), ..self.join(other) }
    }

    /// OPTIONAL: the right side may be missing.
    fn left_join(&self, right: &Self) -> Self {
        Self { certain: self.certain.clone(), ..self.join(right) }
    }

    /// MINUS and EXISTS: the right side decides and binds nothing.
    fn decided_by(&self, right: &Self) -> Self {
        Self { hidden: self.hidden.union(&right.hidden), ..self.clone() }
    }

    /// One more variable: BIND, or the mark of an EXISTS.
    fn extend(mut self, var: Var, is_certain: bool) -> Self {
        self.possible.insert(var);
        if is_certain {
            self.certain.insert(var);
        }
        self
    }

    /// Shows no other variables than these.
    fn project(self, shown: &VarSet) -> Self {
        Self {
            hidden: self.hidden.union(&self.possible.minus(shown)),
            possible: self.possible.intersection(shown),
            certain: self.certain.intersection(shown),
        }
    }

    /// A group: keys and aggregates. These are new solutions, with names that the old ones may have
    /// had. A key that nothing binds is none.
    fn group(self, keys: &[Var], aggregates: &[(Var, AggregateExpression)]) -> Self {
        let keys: VarSet = keys.iter().copied().collect();
        let grouped = Self { hidden: self.hidden.clone(), ..self.project(&keys) };
        aggregates.iter().fold(grouped, |scope, (var, aggregate)| scope.extend(*var, is_count(aggregate)))
    }
}

impl Node {
    /// Its variables.
    pub fn scope(&self) -> Scope {
        match self {
            Self::Unit => Scope::default(),
            Self::Pattern(p) => Scope::leaf(p.vars()),
            Self::Path { s, o, g, .. } => {
                let graph = if let GraphSlot::Named(slot) = g { slot.var() } else { None };
                Scope::leaf([s.var(), o.var(), graph].into_iter().flatten().collect())
            }
            Self::GraphNames(slot) => Scope::leaf(slot.var().into_iter().collect()),
            Self::Service(service) => service.scope(),
            Self::Context { row, vars } => vars
                .iter()
                .fold(Scope::default(), |scope, v| scope.extend(v.here, v.certain))
                .extend(*row, true),
            Self::Join(nodes) => nodes.iter().fold(Scope::default(), |all, node| all.join(&node.scope())),
            Self::Union(nodes) => {
                nodes.iter().map(Self::scope).reduce(|all, scope| all.union(&scope)).unwrap_or_default()
            }
            Self::LeftJoin { left, right, .. } => left.scope().left_join(&right.scope()),
            Self::Apply { left, right, row, kind: ApplyKind::Left, .. } => {
                let mut scope = left.scope().left_join(&right.scope());
                scope.possible.remove(*row);
                scope
            }
            Self::Exists { left, right, kind, .. }
            | Self::Apply { left, right, kind: ApplyKind::Exists(kind), .. } => {
                let scope = left.scope().decided_by(&right.scope());
                if let ExistsKind::Mark(v) = kind { scope.extend(*v, true) } else { scope }
            }
            Self::Minus { left, right, .. } => left.scope().decided_by(&right.scope()),
            Self::Filter { inner, conditions } => {
                let mut scope = inner.scope();
                scope.certain = scope.certain.union(&scope.possible.intersection(&bound_by(conditions)));
                scope
            }
            Self::Distinct(inner)
            | Self::Reduced(inner)
            | Self::Sort { inner, .. }
            | Self::Slice { inner, .. } => inner.scope(),
            Self::Extend { inner, var, expr } => inner.scope().extend(*var, expr.is_constant()),
            Self::Values { vars, rows } => {
                let cells = |i: usize| rows.iter().map(move |row| row[i].is_some());
                let any = vars.iter().enumerate().filter(|(i, _)| cells(*i).any(|bound| bound));
                any.fold(Scope::default(), |scope, (i, v)| scope.extend(*v, cells(i).all(|bound| bound)))
            }
            Self::Group { inner, keys, aggregates, .. } => inner.scope().group(keys, aggregates),
            Self::Project { inner, vars } => inner.scope().project(&vars.iter().copied().collect()),
        }
    }
}

/// The variables that conditions want to be bound.
pub(crate) fn bound_by(conditions: &[Expression]) -> VarSet {
    let bound = |c: &Expression| if let Expression::Bound(v) = c { Some(*v) } else { None };
    conditions.iter().filter_map(bound).collect()
}

fn is_count(aggregate: &AggregateExpression) -> bool {
    matches!(aggregate.function, GroupFunction::CountRows | GroupFunction::Count)
}
