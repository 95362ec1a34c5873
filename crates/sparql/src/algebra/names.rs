//! Names of an algebra's variables: one for each, since expressions know variables by name only.
//!
//! A variable of the text keeps its name; where a scope inside has the name too, a dot and a number
//! follow it. Variables that the translation makes begin with a dot. The grammar has no dot in the
//! name of a variable, so no text can have any of these.

use spargebra::term::Variable;

/// A variable that the translation makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Internal<'a> {
    /// of a blank node of a pattern
    Blank(&'a str),
    /// whether EXISTS holds
    Exists,
    /// the value of an aggregate before its group is known to have rows
    Found,
    /// the graph being looked at
    Graph,
    /// never bound
    Never,
    /// the number of a row that a pattern is evaluated for
    Row,
    /// how many rows a group has
    Rows,
    /// bound where any of some variables is
    Some,
    /// between two steps of a path
    Step,
}

impl Internal<'_> {
    pub fn name(self) -> String {
        let name = match self {
            Self::Blank(label) => label,
            Self::Exists => "exists",
            Self::Found => "found",
            Self::Graph => "graph",
            Self::Never => "never",
            Self::Row => "row",
            Self::Rows => "rows",
            Self::Some => "some",
            Self::Step => "step",
        };
        format!(".{name}")
    }
}

/// The name of a variable that is hidden by another of its name.
pub(super) fn numbered(name: &str, number: u32) -> Variable {
    Variable::new_unchecked(format!("{name}.{number}"))
}

/// The name that the text has for a variable.
pub(crate) fn shown(name: &Variable) -> &str {
    let name = name.as_str();
    name.split_once('.').map_or(name, |(shown, _)| shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_have_the_names_made_here() {
        assert_eq!(shown(&numbered("a", 7)), "a");
        assert_eq!(shown(&Variable::new_unchecked("a")), "a");
        for internal in [Internal::Row, Internal::Rows, Internal::Blank("b")] {
            let name = internal.name();
            assert!(Variable::new(name.as_str()).is_err(), "{name} could be in a text");
        }
        assert!(Variable::new(numbered("a", 7).as_str()).is_err());
    }
}
