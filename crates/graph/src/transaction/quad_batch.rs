//! A batch of quads to be inserted. Its terms are interned, so that the work of a term is done once
//! per batch.

use crate::input::intern::{Interner, Parsed, Ref};
use crate::term::{TermId, TermRef};

/// A term of a batch: an id, or its place among the batch's terms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BatchTerm(Ref);

/// Quads to be inserted together. Blank nodes are identified by label and the batch's scope.
pub struct QuadBatch {
    interner: Interner,
    scope: usize,
}

impl QuadBatch {
    /// An empty batch. Equal labels of blank nodes mean the same node in batches of the same
    /// scope within one [`crate::BlankNodes`].
    pub fn new(scope: usize) -> Self {
        let mut interner = Interner::new();
        interner.begin(scope, Parsed::default());
        QuadBatch { interner, scope }
    }

    /// Adds a term, given by its content.
    pub fn term(&mut self, term: TermRef<'_>) -> BatchTerm {
        BatchTerm(self.interner.term(term))
    }

    /// Adds a term that has an id: stored, inline, or the default graph.
    pub fn id(&self, id: TermId) -> BatchTerm {
        assert!(id.kind() != crate::term::TermKind::Local, "ids of a query are not stored");
        BatchTerm(id.0)
    }

    /// Adds a triple term, given by its subject, predicate and object.
    pub fn triple(&mut self, terms: [BatchTerm; 3]) -> BatchTerm {
        BatchTerm(self.interner.triple(terms.map(|term| term.0)))
    }

    /// Adds a quad: subject, predicate, object, graph.
    pub fn push(&mut self, quad: [BatchTerm; 4]) {
        self.interner.parsed.rows.push(quad.map(|term| term.0));
    }

    /// Number of quads so far.
    pub fn len(&self) -> usize {
        self.interner.parsed.rows.len()
    }

    /// Whether there are no quads.
    pub fn is_empty(&self) -> bool {
        self.interner.parsed.rows.is_empty()
    }

    /// Approximate bytes held.
    pub fn bytes(&self) -> usize {
        let parsed = &self.interner.parsed;
        parsed.extra.len() + parsed.terms.len() * 80 + parsed.triples.len() * 32 + parsed.rows.len() * 32
    }

    /// Empties the batch, keeping its memory and its scope.
    pub fn clear(&mut self) {
        let mut parsed = self.interner.end();
        parsed.clear();
        self.interner.begin(self.scope, parsed);
    }

    pub(crate) fn into_parsed(mut self) -> Parsed {
        self.interner.end()
    }

    pub(crate) fn parsed(&self) -> &Parsed {
        &self.interner.parsed
    }
}
