//! One graph as a whole, or all of them, each change one transaction: documents become its quads
//! or are added to them, or it is emptied.
//!
//! Graphs without quads are not recorded: an empty graph is one that is not there.

use std::sync::Arc;

use oxrdfio::RdfFormat;
use snowmelt_store::Account;

use crate::database::Database;
use crate::error::{GraphError, Result};
use crate::index::Index;
use crate::input::error::LoadError;
use crate::input::source::Source;
use crate::interrupt::Interrupt;
use crate::session::Session;
use crate::term::{TermId, TermRef};
use crate::transaction::Transaction;
use crate::transaction::clear::Graphs;
use crate::transaction::document::Document;
use crate::transaction::quads::Changed;

/// The fate of the quads that a graph has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraphWrite {
    /// They stay.
    Add,
    /// They go.
    Replace,
}

/// A document whose statements go into one graph.
pub struct GraphDocument {
    /// Its bytes.
    pub source: Source,
    /// Its format; told by name or content when absent.
    pub format: Option<RdfFormat>,
}

/// Result of a change of one graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GraphStored {
    /// It had quads before.
    pub was_there: bool,
    /// Quads added and removed.
    pub changed: Changed,
}

impl Session {
    /// The id of a graph, by its name; `None` as name is the default graph. `None` as id: no
    /// term of the database is the name, so the graph has no quads.
    ///
    /// # Errors
    /// Those of the dictionary.
    pub fn graph_id(&mut self, name: Option<&str>) -> Result<Option<TermId>> {
        match name {
            None => Ok(Some(TermId::DEFAULT_GRAPH)),
            Some(name) => self.resolve_one(TermRef::Iri(name)),
        }
    }

    /// Whether a graph has quads; the default graph without a name.
    ///
    /// # Errors
    /// Those of the dictionary and of GS.
    pub fn has_graph(&mut self, name: Option<&str>) -> Result<bool> {
        let Some(id) = self.graph_id(name)? else { return Ok(false) };
        Ok(self.count(Index::Gs, &[id], None)? > 0)
    }
}

impl Database {
    /// Puts documents into a graph, the default graph without a name; durable when it returns.
    /// Their statements name no graph of their own. Relative IRIs are resolved against `base`. It
    /// reads on behalf of `account`.
    ///
    /// # Errors
    /// A document that is not what its format says, errors of the store,
    /// [`LoadError::Cancelled`]. Nothing has changed then.
    pub fn store_graph(
        self: &Arc<Self>,
        name: Option<&str>,
        write: GraphWrite,
        documents: Vec<GraphDocument>,
        base: &str,
        account: &Arc<Account>,
        interrupt: &dyn Interrupt,
    ) -> Result<GraphStored, LoadError> {
        let begun = self.begin_charged(account, &|| !interrupt.is_set())?;
        let mut txn = begun.ok_or(LoadError::Cancelled)?;
        let mut session = txn.session();
        let (id, was_there) = (session.graph_id(name)?, session.has_graph(name)?);
        drop(session);
        let mut changed = Changed::default();
        if let (GraphWrite::Replace, Some(id)) = (write, id) {
            changed += txn.clear(Graphs::One(id), interrupt).map_err(of_clearing)?;
        }
        for GraphDocument { source, format } in documents {
            let input = source.open(format, &Arc::default(), interrupt)?;
            let document = Document {
                name: &input.name,
                format: input.format,
                base: Some(base),
                graph: name,
                is_one_graph: true,
            };
            changed += txn.insert_document(&document, input.read, interrupt)?;
        }
        txn.commit_unless_unchanged(changed)?;
        Ok(GraphStored { was_there, changed })
    }

    /// Puts documents into the graphs that they name, or replaces all graphs by theirs; durable
    /// when it returns. Statements that name no graph go to the default graph. Otherwise as
    /// [`store_graph`](Self::store_graph).
    ///
    /// # Errors
    /// As there.
    pub fn store_dataset(
        self: &Arc<Self>,
        write: GraphWrite,
        documents: Vec<GraphDocument>,
        base: &str,
        account: &Arc<Account>,
        interrupt: &dyn Interrupt,
    ) -> Result<Changed, LoadError> {
        let begun = self.begin_charged(account, &|| !interrupt.is_set())?;
        let mut txn = begun.ok_or(LoadError::Cancelled)?;
        let mut changed = Changed::default();
        if write == GraphWrite::Replace {
            changed += txn.clear(Graphs::All, interrupt).map_err(of_clearing)?;
        }
        for GraphDocument { source, format } in documents {
            changed += txn.insert_source(source, format, Some(base), None, interrupt)?;
        }
        txn.commit_unless_unchanged(changed)?;
        Ok(changed)
    }

    /// Removes all quads of a graph, of the default graph without a name; durable when it
    /// returns. `None`: there is no graph of this name. The default graph is always there. It
    /// reads on behalf of `account`.
    ///
    /// # Errors
    /// Those of the store; [`GraphError::Stopped`] when it is interrupted. Nothing has changed
    /// then.
    pub fn delete_graph(
        self: &Arc<Self>,
        name: Option<&str>,
        account: &Arc<Account>,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<Changed>> {
        let begun = self.begin_charged(account, &|| !interrupt.is_set())?;
        let mut txn = begun.ok_or(GraphError::Stopped)?;
        let mut session = txn.session();
        let is_there = name.is_none() || session.has_graph(name)?;
        let id = session.graph_id(name)?.filter(|_| is_there);
        drop(session);
        let Some(id) = id else { return Ok(None) };
        let changed = txn.clear(Graphs::One(id), interrupt)?;
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
    /// used up. Returns the transaction as of which readers see the result.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_unless_unchanged(self, changed: Changed) -> Result<u64> {
        if changed == Changed::default() {
            return Ok(self.number() - 1);
        }
        Ok(self.commit()?.txn)
    }
}
