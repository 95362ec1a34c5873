//! Stored terms of a session.

use snowmelt_graph::{GraphError, Session, TermId, TermRef};

use super::TermStore;

impl TermStore for Session {
    fn resolve(&mut self, terms: &[TermRef<'_>]) -> Result<Vec<Option<TermId>>, GraphError> {
        Session::resolve(self, terms)
    }

    fn decode(
        &mut self,
        ids: &[TermId],
        f: &mut dyn FnMut(usize, TermRef<'_>) -> bool,
    ) -> Result<(), GraphError> {
        Session::decode_while(self, ids, f)
    }

    fn lang_of(&self, id: TermId) -> Option<&str> {
        Session::lang_of(self, id)
    }

    fn datatype_of(&self, id: TermId) -> Option<&str> {
        Session::datatype_of(self, id)
    }
}
