//! Stored terms, as a query's terms ask for them.

use snowmelt_graph::{GraphError, Session, TermId, TermRef, TermSink, Tree, TripleIds};

use super::ranks::CommittedStrings;

/// Where stored terms come from: a session, or [`NoStore`].
pub trait TermStore {
    /// The ids of terms; None for those not stored (and not inline).
    fn resolve(&mut self, terms: &[TermRef<'_>]) -> Result<Vec<Option<TermId>>, GraphError>;
    /// Gives the sink the index and the term of each id, until it refuses one; ids are distinct
    /// ids of the dictionary, of blank nodes or of triple terms.
    fn decode(&mut self, ids: &[TermId], sink: &mut dyn TermSink) -> Result<(), GraphError>;
    /// Subject, predicate and object of stored triple terms.
    fn components(&mut self, ids: &[TermId]) -> Result<Vec<TripleIds>, GraphError>;
    /// The ids of triple terms of stored and inline terms; None for those not stored.
    fn find_triples(&mut self, triples: &[TripleIds]) -> Result<Vec<Option<TermId>>, GraphError>;
    /// The language tag, if the id alone tells that the term has one.
    fn lang_of(&self, id: TermId) -> Option<&str>;
    /// The datatype IRI, if the id alone tells it.
    fn datatype_of(&self, id: TermId) -> Option<&str>;
    /// The strings of its dictionary that are committed; None where that is another's.
    fn committed_strings(&self) -> Option<CommittedStrings>;
}

/// No stored terms: for constant expressions and tests.
pub struct NoStore;

impl TermStore for NoStore {
    fn resolve(&mut self, terms: &[TermRef<'_>]) -> Result<Vec<Option<TermId>>, GraphError> {
        Ok(terms.iter().map(TermId::inline).collect())
    }

    fn decode(&mut self, ids: &[TermId], _: &mut dyn TermSink) -> Result<(), GraphError> {
        assert!(ids.is_empty(), "there are no stored ids without a store");
        Ok(())
    }

    fn components(&mut self, ids: &[TermId]) -> Result<Vec<TripleIds>, GraphError> {
        assert!(ids.is_empty(), "there are no stored ids without a store");
        Ok(Vec::new())
    }

    fn find_triples(&mut self, triples: &[TripleIds]) -> Result<Vec<Option<TermId>>, GraphError> {
        Ok(vec![None; triples.len()])
    }

    fn lang_of(&self, _: TermId) -> Option<&str> {
        None
    }

    fn datatype_of(&self, _: TermId) -> Option<&str> {
        None
    }

    fn committed_strings(&self) -> Option<CommittedStrings> {
        None
    }
}

impl TermStore for Session {
    fn resolve(&mut self, terms: &[TermRef<'_>]) -> Result<Vec<Option<TermId>>, GraphError> {
        Session::resolve(self, terms)
    }

    fn decode(&mut self, ids: &[TermId], mut sink: &mut dyn TermSink) -> Result<(), GraphError> {
        self.decode_into(ids, &mut sink)
    }

    fn components(&mut self, ids: &[TermId]) -> Result<Vec<TripleIds>, GraphError> {
        self.triples_of(ids)
    }

    fn find_triples(&mut self, triples: &[TripleIds]) -> Result<Vec<Option<TermId>>, GraphError> {
        Session::find_triples(self, triples)
    }

    fn lang_of(&self, id: TermId) -> Option<&str> {
        Session::lang_of(self, id)
    }

    fn datatype_of(&self, id: TermId) -> Option<&str> {
        Session::datatype_of(self, id)
    }

    fn committed_strings(&self) -> Option<CommittedStrings> {
        let committed = self.graph().state().ok()?;
        let dictionary = committed.dictionary();
        let strings = Tree::ALL.map(|tree| committed.strings(tree).map_or(0, |strings| strings.len()));
        (self.state().dictionary() == dictionary).then_some(CommittedStrings { dictionary, strings })
    }
}
