//! Property paths.

use super::term::Slot;

/// A property path.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Path {
    /// A predicate: an IRI or a parameter.
    Predicate(Slot),
    /// `^path`
    Reverse(Box<Path>),
    /// `path / path / …`, two at least. At the top of a pattern a sequence has become patterns.
    Sequence(Vec<Path>),
    /// `path | path | …`, two at least.
    Alternative(Vec<Path>),
    /// `path*`
    ZeroOrMore(Box<Path>),
    /// `path+`
    OneOrMore(Box<Path>),
    /// `path?`
    ZeroOrOne(Box<Path>),
    /// `!(a|b|…)`: IRIs or parameters. Inverse ones of the text stand in a [`Path::Reverse`].
    Negated(Vec<Slot>),
}
