//! Names of an algebra's variables, which are for people: the algebra itself has numbers.
//!
//! A variable of the text keeps its name, and so do all scopes that have the name. Variables that
//! the translation makes begin with a dot, which no name of a text does.

use rustc_hash::FxHashMap;

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
    /// a triple term of which a pattern knows only parts
    TripleTerm,
    /// of a blank node, a group or an aggregate without a name in the text
    Unnamed,
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
            Self::TripleTerm => "triple",
            Self::Unnamed => "unnamed",
        };
        format!(".{name}")
    }
}

/// The names, with a number behind each that another variable before it has.
pub(crate) fn told_apart(names: &[String]) -> Vec<String> {
    let mut first = FxHashMap::default();
    let one = |(number, name): (usize, &String)| match *first.entry(name.clone()).or_insert(number) {
        before if before < number => format!("{name}.{number}"),
        _ => name.clone(),
    };
    names.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hidden_variables_are_told_apart() {
        let row = Internal::Row.name();
        let names = ["a", &row, "b", "a", &row, "a"].map(str::to_owned);
        assert_eq!(told_apart(&names), ["a", ".row", "b", "a.3", ".row.4", "a.5"]);
    }

    #[test]
    fn no_text_can_have_the_names_made_here() {
        for internal in [Internal::Row, Internal::Rows, Internal::Blank("b")] {
            let name = internal.name();
            let text = format!("SELECT ?{name} {{ }}");
            assert!(snowmelt_syntax::parse_query(&text, &Default::default()).is_err(), "{name}");
        }
    }
}
