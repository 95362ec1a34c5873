//! Variables by number.

use std::collections::HashMap;

/// A variable: its number in the [`VarNames`] of its query. Numbers follow the order in which the
/// variables appear in the text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Var(pub u32);

/// The names of a query's variables.
#[derive(Clone, Default, Debug)]
pub struct VarNames {
    names: Vec<Option<Box<str>>>,
    numbers: HashMap<Box<str>, Var>,
}

impl VarNames {
    /// The name of a variable, without its question mark; `None` of a fresh one, as aggregates
    /// have.
    #[must_use]
    pub fn name(&self, var: Var) -> Option<&str> {
        self.names.get(var.0 as usize)?.as_deref()
    }

    /// The variable of a name.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<Var> {
        self.numbers.get(name).copied()
    }

    /// How many variables there are; each smaller number is one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(crate) fn intern(&mut self, name: &str) -> Var {
        if let Some(var) = self.numbers.get(name) {
            return *var;
        }
        let var = self.push(Some(name.into()));
        self.numbers.insert(name.into(), var);
        var
    }

    pub(crate) fn fresh(&mut self) -> Var {
        self.push(None)
    }

    fn push(&mut self, name: Option<Box<str>>) -> Var {
        let var = Var(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(name);
        var
    }
}
