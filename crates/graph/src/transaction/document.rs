//! Inserts a whole document in a transaction that already has its turn: it is parsed as it is read,
//! and inserted batch by batch. Other writers wait meanwhile; [`crate::Staged`] parses before the
//! turn.

use std::io::Read;
use std::sync::Arc;

use oxrdfio::RdfFormat;
use snowmelt_jsonld::Contexts;
use snowmelt_rdfxml::OddTerms;
use snowmelt_store::MemoryBudget;

use crate::input::document::parse_document;
use crate::input::error::LoadError;
use crate::input::intern::{Fault, Parsed};
use crate::input::options::DocumentOptions;
use crate::input::source::Source;
use crate::input::{cancelled, graph_name};
use crate::interrupt::Interrupt;
use crate::namespaces::NamespaceSink;
use crate::transaction::Transaction;
use crate::transaction::quads::Changed;
use crate::transaction::terms::BlankNodes;

/// Statements inserted together.
const BATCH_ROWS: usize = 1 << 15;
/// Bytes of terms inserted together.
const BATCH_BYTES: usize = 4 << 20;

/// A document to be inserted.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// Its name in errors.
    pub name: &'a str,
    /// Its format.
    pub format: RdfFormat,
    /// Base of its relative IRIs.
    pub base: Option<&'a str>,
    /// The graph of statements that name none; the default graph if absent.
    pub graph: Option<&'a str>,
    /// Statements that name a graph count as faults.
    pub is_one_graph: bool,
    /// Treatment of unusual documents.
    pub reading: DocumentReading,
}

/// Options for reading unusual documents.
#[derive(Clone, Debug, Default)]
pub struct DocumentReading {
    /// Contexts that JSON-LD documents may refer to.
    pub contexts: Contexts,
    /// Treatment of terms that the RFCs do not allow.
    pub odd_terms: OddTerms,
    /// Statements that cannot be read are left out.
    pub lenient: bool,
    /// Takes the prefixes that it declares.
    pub(crate) namespaces: NamespaceSink,
}

impl Transaction {
    /// Inserts all statements of a source, decompressed if necessary. The format is that of its
    /// name or content if it is not given. Otherwise as [`Transaction::insert_document`].
    ///
    /// # Errors
    /// Fails as [`Transaction::insert_document`] does.
    pub fn insert_source(
        &mut self,
        source: Source,
        format: Option<RdfFormat>,
        base: Option<&str>,
        graph: Option<&str>,
        cancel: &dyn Interrupt,
    ) -> Result<Changed, LoadError> {
        let input = source.open(format, &Arc::default(), cancel)?;
        let base = base.or(input.base.as_deref());
        let reading = DocumentReading::default();
        let document =
            Document { name: &input.name, format: input.format, base, graph, is_one_graph: false, reading };
        self.insert_document(&document, input.read, cancel)
    }

    /// Inserts all statements of a document; its blank nodes become new ones. Nothing is
    /// committed.
    ///
    /// # Errors
    /// Fails if the document cannot be read or does not follow its format, with its place; with
    /// errors of the store; and if cancelled. Statements inserted so far stay in the transaction:
    /// drop it.
    pub fn insert_document(
        &mut self,
        document: &Document<'_>,
        read: impl Read,
        cancel: &dyn Interrupt,
    ) -> Result<Changed, LoadError> {
        let db = self.db.clone();
        let mut blanks = BlankNodes::default();
        let mut charge = db.database().memory().charge("a document");
        let mut changed = Changed::default();
        let full = |parsed: Parsed| {
            cancelled(cancel)?;
            let parsed = document.sound(parsed)?;
            changed += self.insert_parsed(&parsed, &mut blanks, &mut charge)?;
            Ok(())
        };
        let options = document.options(db.database().longest_string_bytes(), db.database().memory())?;
        parse_document(read, options, cancel, || Ok(Parsed::default()), full)
            .map_err(|error| if cancel.is_set() { LoadError::Cancelled } else { error })?;
        Ok(changed)
    }
}

impl Document<'_> {
    pub(super) fn options(
        &self,
        longest: usize,
        budget: &MemoryBudget,
    ) -> Result<DocumentOptions, LoadError> {
        Ok(DocumentOptions {
            name: self.name.to_owned(),
            source: 0,
            format: self.format,
            base: self.base.map(str::to_owned),
            graph: graph_name(self.graph)?,
            is_one_graph: self.is_one_graph,
            lenient: self.reading.lenient,
            odd_terms: self.reading.odd_terms,
            contexts: self.reading.contexts.clone(),
            // Until it is in the indexes, a batch takes some 800 bytes of memory per row, and four
            // times its texts.
            chunk_rows: ((budget.free() / 2048) as usize).clamp(256, BATCH_ROWS),
            chunk_bytes: ((budget.free() / 32) as usize).clamp(64 << 10, BATCH_BYTES),
            longest,
            namespaces: self.reading.namespaces.clone(),
            budget: budget.clone(),
        })
    }

    /// Returns the chunk if it has no fault.
    pub(super) fn sound(&self, parsed: Parsed) -> Result<Parsed, LoadError> {
        let Some(fault) = parsed.fault else { return Ok(parsed) };
        let Fault { line, column, message, setting } = fault;
        Err(LoadError::Syntax { file: self.name.to_owned(), line: line + 1, column, message, setting })
    }
}
