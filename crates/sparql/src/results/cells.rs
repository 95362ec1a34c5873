//! The cells of a batch in the notation of a format, each written anew only where its column
//! changes.

use oxrdf::TermRef;
use snowmelt_graph::TermId;

use super::ResultFormat;
use super::refuse::refuse;
use crate::QueryError;
use crate::value::{TermBuffer, Terms};

/// How a format writes a term.
pub(super) trait Notation {
    /// Adds a term.
    fn cell(term: TermRef<'_>, out: &mut Vec<u8>);
}

/// The cell of a column in the row at hand.
#[derive(Default)]
pub(super) struct Cell {
    id: Option<TermId>,
    text: Vec<u8>,
    buffer: TermBuffer,
}

impl Cell {
    /// Forgets it: ids of another batch may mean something else.
    pub fn clear(&mut self) {
        self.id = None;
    }

    /// The cell of an id; an unbound one is empty.
    pub fn set<N: Notation>(
        &mut self,
        id: TermId,
        terms: &Terms,
        format: ResultFormat,
    ) -> Result<(), QueryError> {
        if self.id == Some(id) {
            return Ok(());
        }
        self.id = Some(id);
        self.text.clear();
        let Some(term) = terms.term(id, &mut self.buffer) else { return Ok(()) };
        let term = TermRef::from(term);
        refuse(format, term)?;
        N::cell(term, &mut self.text);
        Ok(())
    }

    pub fn text(&self) -> &[u8] {
        &self.text
    }
}
