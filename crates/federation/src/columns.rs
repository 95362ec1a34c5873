//! The columns of an answer, and bounds of its terms and columns in any format.

use std::collections::HashMap;

use oxrdf::{Term, Variable};

use crate::fault::Fault;

/// The values of one solution, in the order of the variables that were asked for.
pub type SolutionRow = Vec<Option<Term>>;

/// Most triple terms within each other: dropping a term goes down by recursion.
pub(crate) const MOST_TRIPLES: usize = 64;
/// Most variables of an answer: a row may name none of them, and has a place for each.
pub(crate) const MOST_COLUMNS: usize = 10_000;

pub(crate) fn too_deep() -> Fault {
    Fault::Malformed(format!("its terms nest more than {MOST_TRIPLES} levels"))
}

/// An error when an answer has too many columns.
pub(crate) fn too_wide(columns: usize) -> Result<(), Fault> {
    if columns <= MOST_COLUMNS {
        return Ok(());
    }
    Err(Fault::Malformed(format!("it has more than {MOST_COLUMNS} columns")))
}

pub(crate) fn no_rows() -> Fault {
    Fault::Malformed("it has a yes or no in place of rows".to_owned())
}

/// The variables of an answer, and the place of each.
#[derive(Default)]
pub(crate) struct Columns {
    pub all: Vec<Variable>,
    by_name: HashMap<String, usize>,
}

impl Columns {
    pub fn add(&mut self, variable: Variable) -> Result<(), Fault> {
        too_wide(self.all.len() + 1)?;
        if self.by_name.insert(variable.as_str().to_owned(), self.all.len()).is_some() {
            return Err(Fault::Malformed(format!("{variable} is declared twice")));
        }
        self.all.push(variable);
        Ok(())
    }

    pub fn place(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }
}
