//! Stored terms, as a query's terms ask for them.

use snowmelt_graph::{GraphError, Session, TermId, TermRef};

/// Where stored terms come from: a session, or [`NoStore`].
pub trait TermStore {
    /// The ids of terms; None for those not stored (and not inline).
    fn resolve(&mut self, terms: &[TermRef<'_>]) -> Result<Vec<Option<TermId>>, GraphError>;
    /// Calls `f` with the index and the term of each id, until it says false; ids are distinct
    /// dictionary or blank node ids.
    fn decode(
        &mut self,
        ids: &[TermId],
        f: &mut dyn FnMut(usize, TermRef<'_>) -> bool,
    ) -> Result<(), GraphError>;
    /// The language tag, if the id alone tells that the term has one.
    fn lang_of(&self, id: TermId) -> Option<&str>;
    /// The datatype IRI, if the id alone tells it.
    fn datatype_of(&self, id: TermId) -> Option<&str>;
}

/// No stored terms: for constant expressions and tests.
pub struct NoStore;

impl TermStore for NoStore {
    fn resolve(&mut self, terms: &[TermRef<'_>]) -> Result<Vec<Option<TermId>>, GraphError> {
        Ok(terms.iter().map(TermId::inline).collect())
    }

    fn decode(
        &mut self,
        ids: &[TermId],
        _: &mut dyn FnMut(usize, TermRef<'_>) -> bool,
    ) -> Result<(), GraphError> {
        assert!(ids.is_empty(), "there are no stored ids without a store");
        Ok(())
    }

    fn lang_of(&self, _: TermId) -> Option<&str> {
        None
    }

    fn datatype_of(&self, _: TermId) -> Option<&str> {
        None
    }
}

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
