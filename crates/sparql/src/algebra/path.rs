//! Property paths that are no joins, unions or patterns.

use super::Const;

/// A property path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PropertyPath {
    Predicate(Const),
    Reverse(Box<PropertyPath>),
    /// two or more
    Sequence(Vec<PropertyPath>),
    /// two or more
    Alternative(Vec<PropertyPath>),
    ZeroOrMore(Box<PropertyPath>),
    OneOrMore(Box<PropertyPath>),
    ZeroOrOne(Box<PropertyPath>),
    /// any predicate but these
    Negated(Vec<Const>),
}

impl PropertyPath {
    /// Whether it may have no steps.
    pub fn may_be_empty(&self) -> bool {
        match self {
            Self::ZeroOrOne(_) | Self::ZeroOrMore(_) => true,
            Self::Sequence(steps) => steps.iter().all(Self::may_be_empty),
            Self::Alternative(paths) => paths.iter().any(Self::may_be_empty),
            Self::Reverse(path) | Self::OneOrMore(path) => path.may_be_empty(),
            Self::Predicate(_) | Self::Negated(_) => false,
        }
    }
}
