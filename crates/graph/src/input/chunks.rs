//! Chunks that the reader of a document fills, one after the other.
//!
//! A reader adds statements, and after each step hands the chunk on if it is full. It ends with the
//! document, or with a fault beyond which it cannot read.

use oxrdf::GraphName;

use super::error::LoadError;
use super::intern::{Fault, Interner, Parsed, Ref};
use super::options::DocumentOptions;
use crate::term::{TermId, TermRef};

/// Collects the statements of a document into chunks.
pub(super) struct Chunks<'a> {
    interner: Interner,
    /// Number of the input.
    source: usize,
    most_rows: usize,
    most_bytes: usize,
    longest: usize,
    /// Gives the memory for the next chunk.
    empty: &'a mut dyn FnMut() -> Result<Parsed, LoadError>,
    /// Takes a finished chunk.
    full: &'a mut dyn FnMut(Parsed) -> Result<(), LoadError>,
}

impl<'a> Chunks<'a> {
    /// Begins the first chunk.
    pub(super) fn begin(
        options: &DocumentOptions,
        empty: &'a mut dyn FnMut() -> Result<Parsed, LoadError>,
        full: &'a mut dyn FnMut(Parsed) -> Result<(), LoadError>,
    ) -> Result<Self, LoadError> {
        let mut chunks = Chunks {
            interner: Interner::new(),
            source: options.source,
            most_rows: options.chunk_rows,
            most_bytes: options.chunk_bytes,
            longest: options.longest,
            empty,
            full,
        };
        chunks.next()?;
        Ok(chunks)
    }

    fn next(&mut self) -> Result<(), LoadError> {
        self.interner.begin(self.source, (self.empty)()?);
        Ok(())
    }

    /// The reference of a term.
    pub(super) fn term(&mut self, term: TermRef<'_>) -> Ref {
        self.interner.term(term)
    }

    /// Adds a statement of references.
    pub(super) fn add_row(&mut self, row: [Ref; 4]) {
        self.interner.parsed.rows.push(row);
    }

    /// Adds a statement.
    pub(super) fn add(&mut self, quad: &oxrdf::Quad) {
        let subject = self.term(quad.subject.as_ref().into());
        let predicate = self.term(quad.predicate.as_ref().into());
        let object = self.term(quad.object.as_ref().into());
        let graph = match &quad.graph_name {
            GraphName::DefaultGraph => TermId::DEFAULT_GRAPH.0,
            GraphName::NamedNode(node) => self.term(TermRef::Iri(node.as_str())),
            GraphName::BlankNode(node) => self.term(TermRef::Blank(node.as_str())),
        };
        self.add_row([subject, predicate, object, graph]);
    }

    /// Notes a statement that is left out.
    pub(super) fn leave_out(&mut self, fault: Fault) {
        self.interner.parsed.leave_out(fault);
    }

    /// Counts statements that are left out and not listed.
    pub(super) fn leave_out_unlisted(&mut self, count: u64) {
        self.interner.parsed.skipped += count;
    }

    /// The message for a term of this chunk that is longer than the limit.
    pub(super) fn too_long(&self) -> Option<String> {
        self.interner.parsed.too_long(self.longest)
    }

    /// The message for triple terms of this chunk with too many levels.
    pub(super) fn too_deep(&self) -> Option<String> {
        self.interner.parsed.too_deep()
    }

    /// The reference of a triple term.
    pub(super) fn triple(&mut self, terms: [Ref; 3]) -> Ref {
        self.interner.triple(terms)
    }

    /// Hands the chunk on if it is full.
    pub(super) fn hand_on(&mut self) -> Result<(), LoadError> {
        let parsed = &self.interner.parsed;
        if parsed.rows.len() < self.most_rows && parsed.extra.len() < self.most_bytes {
            return Ok(());
        }
        (self.full)(self.interner.end())?;
        self.next()
    }

    /// Hands the last chunk on.
    pub(super) fn end(mut self) -> Result<(), LoadError> {
        (self.full)(self.interner.end())
    }

    /// Hands the last chunk on, with the fault that follows it.
    pub(super) fn end_at(mut self, fault: Fault) -> Result<(), LoadError> {
        self.interner.parsed.fault = Some(fault);
        self.end()
    }
}
