//! SERVICE: a pattern that an endpoint elsewhere answers.
//!
//! Its pattern is no part of the algebra. It is kept as text, which is sent, and for the rest of
//! the query it is a leaf with some variables.

use super::{Const, Scope, Slot, Var, VarSet};

/// A part of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TextPiece {
    Text(String),
    /// a constant that differs between texts of the shape
    Const(Const),
}

/// A SERVICE.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Service {
    pub endpoint: Slot,
    pub is_silent: bool,
    /// the pattern, without the braces around it
    pub body: Vec<TextPiece>,
    /// values may stand in the same braces: not all endpoints look into others
    pub is_flat: bool,
    /// the names that its solutions may bind, and their numbers here
    pub names: Vec<(String, Var)>,
    /// those that each solution of the pattern binds
    pub certain: VarSet,
    /// a name that the pattern does not mention
    pub free_name: String,
    /// most solutions that it has, if the text tells
    pub most: Option<u64>,
}

impl Service {
    /// The variables that its solutions may bind.
    pub fn vars(&self) -> VarSet {
        self.names.iter().map(|(_, v)| *v).collect()
    }

    /// Its variables for the pattern around. One that fails silently binds nothing.
    pub fn scope(&self) -> Scope {
        let endpoint: VarSet = self.endpoint.var().into_iter().collect();
        let mut scope = Scope { possible: self.vars().union(&endpoint), ..Scope::default() };
        if !self.is_silent {
            scope.certain = self.certain.union(&endpoint);
        }
        scope
    }
}
