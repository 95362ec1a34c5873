//! Changes of one whole graph, or of all graphs, in one transaction: documents are added to it or
//! replace its quads, or it is emptied.
//!
//! Graphs without quads are not recorded: an empty graph does not exist.

use std::sync::Arc;

use oxrdfio::RdfFormat;
use snowmelt_jsonld::Contexts;
use snowmelt_store::Account;

use crate::database::GraphDatabase;
use crate::error::{GraphError, Result};
use crate::index::Index;
use crate::input::bounded::BoundedText;
use crate::input::error::LoadError;
use crate::input::source::Source;
use crate::interrupt::Interrupt;
use crate::progress::{ChangePhase, ChangeProgress, ChangeWatch};
use crate::session::Session;
use crate::term::{TermId, TermRef};
use crate::transaction::Transaction;
use crate::transaction::clear::Graphs;
use crate::transaction::document::{Document, DocumentReading};
use crate::transaction::quads::Changed;
use crate::transaction::staged::Staged;

/// Treatment of the quads that a graph already has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraphWrite {
    /// Kept.
    Add,
    /// Removed.
    Replace,
}

/// A document to be written into graphs.
pub struct GraphDocument {
    /// Its bytes.
    pub source: Source,
    /// Its format; that of its name or content if absent.
    pub format: Option<RdfFormat>,
    /// Contexts that it may refer to, if it is JSON-LD.
    pub contexts: Contexts,
}

/// Target of the statements of staged documents.
#[derive(Clone, Copy, Debug)]
pub struct StageInto<'a> {
    /// The graph of statements that name none; the default graph if absent.
    pub graph: Option<&'a str>,
    /// Base of relative IRIs; the document's file if absent.
    pub base: Option<&'a str>,
    /// Statements that name a graph count as faults.
    pub is_one_graph: bool,
    /// Most bytes of a document after decompression; no limit if absent.
    pub most_bytes: Option<u64>,
}

/// Result of a change of one graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GraphStored {
    /// Whether it had quads before.
    pub was_there: bool,
    /// Quads added and removed.
    pub changed: Changed,
}

impl Session {
    /// The id of a graph by its name; the default graph for the name `None`. Returns `None` if no
    /// term of the database is the name, so the graph has no quads.
    ///
    /// # Errors
    /// Fails if the dictionary cannot be read.
    pub fn graph_id(&mut self, name: Option<&str>) -> Result<Option<TermId>> {
        match name {
            None => Ok(Some(TermId::DEFAULT_GRAPH)),
            Some(name) => self.resolve_one(TermRef::Iri(name)),
        }
    }

    /// Whether a graph has quads; `None` is the default graph.
    ///
    /// # Errors
    /// Fails if the dictionary or GS cannot be read.
    pub fn has_graph(&mut self, name: Option<&str>) -> Result<bool> {
        let Some(id) = self.graph_id(name)? else { return Ok(false) };
        Ok(self.count(Index::Gs, &[id], None)? > 0)
    }
}

/// The originator of a change.
pub struct ChangeFor<'a> {
    /// The account that its reads are charged to.
    pub account: &'a Arc<Account>,
    /// Tells whether the change is still wanted.
    pub interrupt: &'a dyn Interrupt,
    /// Receives the progress.
    pub progress: &'a ChangeProgress,
}

impl<'a> ChangeFor<'a> {
    fn watch(&self) -> ChangeWatch<'a> {
        ChangeWatch { interrupt: self.interrupt, progress: self.progress }
    }
}

impl GraphDatabase {
    /// Puts documents into a graph, for the name `None` the default graph; durable when it returns.
    /// Their statements must not name a graph. Relative IRIs are resolved against `base`. The
    /// documents are parsed before the writer's turn, so others can change the database meanwhile.
    ///
    /// # Errors
    /// Fails if a document does not follow its format, with errors of the store, and with
    /// [`LoadError::Cancelled`]. Nothing has changed then.
    pub fn store_graph(
        self: &Arc<Self>,
        name: Option<&str>,
        write: GraphWrite,
        documents: Vec<GraphDocument>,
        base: &str,
        wanted: &ChangeFor<'_>,
    ) -> Result<GraphStored, LoadError> {
        let into = StageInto { graph: name, base: Some(base), is_one_graph: true, most_bytes: None };
        let staged = self.stage(documents, into, Some(wanted.account), wanted.watch())?;
        let mut txn = self.begin_wanted(wanted)?.ok_or(LoadError::Cancelled)?;
        let mut session = txn.session();
        let (id, was_there) = (session.graph_id(name)?, session.has_graph(name)?);
        drop(session);
        let mut changed = Changed::default();
        if let (GraphWrite::Replace, Some(id)) = (write, id) {
            changed += txn.clear(Graphs::One(id), wanted.interrupt).map_err(of_clearing)?;
        }
        changed += txn.insert_staged(staged, wanted.interrupt, wanted.progress)?;
        txn.commit_unless_unchanged(changed)?;
        Ok(GraphStored { was_there, changed })
    }

    /// Puts documents into the graphs that they name, or replaces all graphs by theirs; durable
    /// when it returns. Statements that name no graph go to the default graph. Otherwise as
    /// [`store_graph`](Self::store_graph).
    ///
    /// # Errors
    /// Fails as [`store_graph`](Self::store_graph) does.
    pub fn store_dataset(
        self: &Arc<Self>,
        write: GraphWrite,
        documents: Vec<GraphDocument>,
        base: &str,
        wanted: &ChangeFor<'_>,
    ) -> Result<Changed, LoadError> {
        let into = StageInto { graph: None, base: Some(base), is_one_graph: false, most_bytes: None };
        let staged = self.stage(documents, into, Some(wanted.account), wanted.watch())?;
        let mut txn = self.begin_wanted(wanted)?.ok_or(LoadError::Cancelled)?;
        let mut changed = Changed::default();
        if write == GraphWrite::Replace {
            changed += txn.clear(Graphs::All, wanted.interrupt).map_err(of_clearing)?;
        }
        changed += txn.insert_staged(staged, wanted.interrupt, wanted.progress)?;
        txn.commit_unless_unchanged(changed)?;
        Ok(changed)
    }

    /// Parses documents, to be inserted later. Waits for a parsing slot are shown at `account`.
    ///
    /// # Errors
    /// Fails if a document does not follow its format, if there is no memory or room for it, and
    /// with [`LoadError::Cancelled`].
    pub fn stage(
        self: &Arc<Self>,
        documents: Vec<GraphDocument>,
        into: StageInto<'_>,
        account: Option<&Arc<Account>>,
        watch: ChangeWatch<'_>,
    ) -> Result<Staged, LoadError> {
        let ChangeWatch { interrupt, progress } = watch;
        progress.enter(ChangePhase::Parsing);
        let mut staged = Staged::new(self, account);
        for GraphDocument { source, format, contexts } in documents {
            let input = source.open(format, &Arc::default(), interrupt)?;
            let document = Document {
                name: &input.name,
                format: input.format,
                base: into.base.or(input.base.as_deref()),
                graph: into.graph,
                is_one_graph: into.is_one_graph,
                reading: DocumentReading { contexts, ..DocumentReading::default() },
            };
            let read = BoundedText::new(input.read, into.most_bytes.unwrap_or(u64::MAX));
            staged.add(&document, read, interrupt, progress)?;
        }
        Ok(staged)
    }

    /// Begins the transaction of a change once it has its turn; `None` if it was interrupted.
    fn begin_wanted(self: &Arc<Self>, wanted: &ChangeFor<'_>) -> Result<Option<Transaction>> {
        wanted.progress.enter(ChangePhase::Waiting);
        let begun = self.begin_charged(wanted.account, &|| !wanted.interrupt.is_set())?;
        if begun.is_some() {
            wanted.progress.enter(ChangePhase::Writing);
        }
        Ok(begun)
    }

    /// Removes all quads of a graph, for the name `None` of the default graph; durable when it
    /// returns. `None` if there is no graph of this name. The default graph always exists.
    ///
    /// # Errors
    /// Fails with errors of the store, and with [`GraphError::Stopped`] if interrupted. Nothing has
    /// changed then.
    pub fn delete_graph(
        self: &Arc<Self>,
        name: Option<&str>,
        wanted: &ChangeFor<'_>,
    ) -> Result<Option<Changed>> {
        let mut txn = self.begin_wanted(wanted)?.ok_or(GraphError::Stopped)?;
        let mut session = txn.session();
        let is_there = name.is_none() || session.has_graph(name)?;
        let id = session.graph_id(name)?.filter(|_| is_there);
        drop(session);
        let Some(id) = id else { return Ok(None) };
        let changed = txn.clear(Graphs::One(id), wanted.interrupt)?;
        txn.commit_unless_unchanged(changed)?;
        Ok(Some(changed))
    }
}

fn of_clearing(error: GraphError) -> LoadError {
    match error {
        GraphError::Stopped => LoadError::Cancelled,
        other => other.into(),
    }
}

impl Transaction {
    /// Commits if something changed; without a change nothing is made durable and no number is
    /// used. Returns the transaction as of which readers see the result.
    ///
    /// # Errors
    /// Fails as [`Transaction::commit`] does.
    pub fn commit_unless_unchanged(self, changed: Changed) -> Result<u64> {
        if changed == Changed::default() {
            return Ok(self.number() - 1);
        }
        Ok(self.commit()?.txn)
    }
}
