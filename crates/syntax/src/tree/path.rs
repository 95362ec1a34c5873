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

impl Path {
    /// Bytes of its parts and of the terms in it.
    pub(crate) fn bytes(&self) -> usize {
        let own = size_of::<Self>();
        match self {
            Self::Predicate(slot) => own + slot.bytes(),
            Self::Reverse(path) | Self::ZeroOrMore(path) | Self::OneOrMore(path) | Self::ZeroOrOne(path) => {
                own + path.bytes()
            }
            Self::Sequence(paths) | Self::Alternative(paths) => {
                own + paths.iter().map(Self::bytes).sum::<usize>()
            }
            Self::Negated(slots) => {
                own + slots.iter().map(|slot| size_of::<Slot>() + slot.bytes()).sum::<usize>()
            }
        }
    }
}
