//! Several steps as one transaction.

use std::io::Read;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use oxrdf::{BlankNode, GraphName, Quad, Term};
use snowmelt_graph::load::Source;
use snowmelt_graph::{
    BatchTerm, BlankNodes, Changed, QuadBatch, Session, TermId, TermRef, Transaction as GraphTransaction,
};

use crate::error::{Error, Result};
use crate::load::Format;
use crate::open::{Open, Writing};
use crate::prepared::{Prepared, Target};
use crate::quads::{QuadPattern, Quads};
use crate::rows::{Rows, Triples};
use crate::value::to_oxrdf;

/// Quads given to the indexes together.
const BATCH_QUADS: usize = 1 << 14;

/// Counts of a change.
///
/// ```
/// # let db = snowmelt::Database::in_memory()?;
/// db.update("INSERT DATA { <urn:a> <urn:p> 0 }")?;
/// let text = "DELETE DATA { <urn:a> <urn:p> 0 , 9 } ; INSERT DATA { <urn:a> <urn:p> 1 , 2 }";
/// let changes = db.update(text)?;
/// assert_eq!((changes.inserted, changes.deleted), (2, 1));
/// # Ok::<(), snowmelt::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Quads that were not there before.
    pub inserted: u64,
    /// Quads that were, and are no more.
    pub deleted: u64,
}

impl From<Changed> for Changes {
    fn from(changed: Changed) -> Self {
        Changes { inserted: changed.inserted, deleted: changed.deleted }
    }
}

/// A transaction under way: see [`Database::transaction`](crate::Database::transaction). Its
/// queries see what it has done so far, and nothing that others commit meanwhile.
///
/// A step that fails dooms it, since a part of the step may have been done: all steps after it
/// fail, and it is not committed.
///
/// ```
/// use snowmelt::{GraphName, NamedNode, Quad};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = snowmelt::Database::in_memory()?;
/// let iri = |text: &str| NamedNode::new(text);
/// let (ann, knows, bob) = (iri("urn:ann")?, iri("urn:knows")?, iri("urn:bob")?);
/// let quad = Quad::new(ann, knows, bob, GraphName::DefaultGraph);
/// let removed = db.transaction(|tx| {
///     assert_eq!(tx.insert([quad.clone()])?, 1);
///     assert!(tx.ask("ASK { ?s <urn:knows> ?o }")?);
///     tx.remove([quad])
/// })?;
/// assert_eq!(removed, 1);
/// # Ok(())
/// # }
/// ```
pub struct Transaction {
    open: Arc<Open>,
    /// before the transaction, whose end lets the next one begin
    writing: Writing,
    txn: GraphTransaction,
    /// labels of blank nodes that quads of this transaction have brought
    blanks: BlankNodes,
    has_failed: bool,
    has_changed: bool,
}

impl Transaction {
    pub(crate) fn begin_while(open: &Arc<Open>, go_on: &(dyn Fn() -> bool + Sync)) -> Result<Option<Self>> {
        open.may_wait()?;
        let Some(txn) = open.graph().begin_while(go_on)? else { return Ok(None) };
        let (writing, blanks) = (Writing::new(open), BlankNodes::default());
        let (has_failed, has_changed) = (false, false);
        Ok(Some(Transaction { open: open.clone(), writing, txn, blanks, has_failed, has_changed }))
    }

    /// Commits one that was begun with [`Database::begin`](crate::Database::begin); when this
    /// returns, it is durable.
    ///
    /// # Errors
    /// [`Error::TransactionFailed`] if a step failed; those of the journal. Nothing has changed.
    pub fn commit(self) -> Result<()> {
        let Transaction { writing, txn, has_failed, has_changed, .. } = self;
        drop(writing);
        if has_failed {
            return Err(Error::TransactionFailed);
        }
        if has_changed {
            txn.commit()?;
        }
        Ok(())
    }

    /// Notes that it lasts as long as a function that this thread runs.
    pub(crate) fn is_for_a_call(&self) {
        self.writing.is_for_a_call();
    }

    pub(crate) fn open(&self) -> &Open {
        &self.open
    }

    /// A session on what it has done so far.
    pub(crate) fn session(&self) -> Result<Session> {
        self.writing.is_by_this_thread();
        if self.has_failed { Err(Error::TransactionFailed) } else { Ok(self.txn.session()) }
    }

    /// A step that changes something.
    pub(crate) fn step(
        &mut self,
        f: impl FnOnce(&Open, &mut GraphTransaction) -> Result<Changed>,
    ) -> Result<Changed> {
        self.writing.is_by_this_thread();
        if self.has_failed {
            return Err(Error::TransactionFailed);
        }
        // Also where `f` panics and the program goes on.
        self.has_failed = true;
        let changed = f(&self.open, &mut self.txn);
        self.has_failed = changed.is_err();
        self.has_changed |= changed.as_ref().is_ok_and(|changed| *changed != Changed::default());
        changed
    }

    /// Runs a query on the state so far: see [`Database::query`](crate::Database::query).
    ///
    /// # Errors
    /// As there.
    pub fn query(&mut self, sparql: &str) -> Result<Rows> {
        self.prepare(sparql).query()
    }

    /// Runs an ASK query on the state so far.
    ///
    /// # Errors
    /// As [`Database::ask`](crate::Database::ask).
    pub fn ask(&mut self, sparql: &str) -> Result<bool> {
        self.prepare(sparql).ask()
    }

    /// Runs a CONSTRUCT or DESCRIBE query on the state so far.
    ///
    /// # Errors
    /// As [`Database::construct`](crate::Database::construct).
    pub fn construct(&mut self, sparql: &str) -> Result<Triples> {
        self.prepare(sparql).construct()
    }

    /// Runs an update request as a step.
    ///
    /// # Errors
    /// Those of its text and its operations.
    pub fn update(&mut self, sparql: &str) -> Result<Changes> {
        self.prepare(sparql).update()
    }

    /// A query or update with parameters, to be run on the state so far.
    pub fn prepare<'a>(&'a mut self, sparql: &'a str) -> Prepared<'a> {
        Prepared::new(Target::Transaction(Arc::new(Mutex::new(self))), sparql)
    }

    /// The quads that match a pattern, in the state so far.
    ///
    /// # Errors
    /// As [`Database::quads`](crate::Database::quads).
    pub fn quads(&self, pattern: &QuadPattern) -> Result<Quads> {
        Quads::new(self.session()?, pattern)
    }

    /// A blank node that is in no quad yet, by the label that answers will give it.
    ///
    /// ```
    /// # use snowmelt::{GraphName, Literal, NamedNode, Quad};
    /// # let db = snowmelt::Database::in_memory()?;
    /// let mut tx = db.begin()?;
    /// let node = tx.new_blank_node()?;
    /// let age = NamedNode::new_unchecked("urn:age");
    /// let quad = Quad::new(node, age, Literal::from(30), GraphName::DefaultGraph);
    /// tx.insert([quad.clone()])?;
    /// tx.commit()?;
    /// assert!(db.contains(&quad)?);
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TransactionFailed`] if a step failed before.
    pub fn new_blank_node(&mut self) -> Result<BlankNode> {
        let mut label = None;
        self.step(|_, txn| {
            let id = txn.new_blank_node();
            label = Some(txn.session().decode_one(id)?);
            Ok(Changed::default())
        })?;
        match label.map(to_oxrdf) {
            Some(Term::BlankNode(node)) => Ok(node),
            other => unreachable!("a blank node is decoded as one, not {other:?}"),
        }
    }

    /// Whether a blank node's label is one that answers give. Any other label stands for a new
    /// node when it is inserted.
    ///
    /// ```
    /// # use snowmelt::BlankNode;
    /// # let db = snowmelt::Database::in_memory()?;
    /// let mut tx = db.begin()?;
    /// let node = tx.new_blank_node()?;
    /// assert!(tx.has_blank_node(&node)?);
    /// assert!(!tx.has_blank_node(&BlankNode::default())?);
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TransactionFailed`] if a step failed before.
    pub fn has_blank_node(&self, node: &BlankNode) -> Result<bool> {
        Ok(self.session()?.resolve_one(TermRef::Blank(node.as_str()))?.is_some())
    }

    /// Adds quads; returns how many were not there before. A blank node whose label an answer of
    /// this database gave is that node; any other label is a new node, the same one throughout the
    /// transaction.
    ///
    /// # Errors
    /// Those of the store.
    pub fn insert(&mut self, quads: impl IntoIterator<Item = Quad>) -> Result<u64> {
        let mut inserted = 0;
        let mut quads = quads.into_iter().peekable();
        while quads.peek().is_some() {
            let mut blanks = std::mem::take(&mut self.blanks);
            let changed = self.step(|_, txn| {
                let mut session = txn.session();
                let mut batch = QuadBatch::new(0);
                for quad in quads.by_ref().take(BATCH_QUADS) {
                    let quad = batch_quad(&mut batch, &mut session, &quad)?;
                    batch.push(quad);
                }
                Ok(txn.insert(&batch, &mut blanks)?)
            });
            self.blanks = blanks;
            inserted += changed?.inserted;
        }
        Ok(inserted)
    }

    /// Removes quads; returns how many were there.
    ///
    /// # Errors
    /// Those of the store.
    pub fn remove(&mut self, quads: impl IntoIterator<Item = Quad>) -> Result<u64> {
        let mut removed = 0;
        let mut quads = quads.into_iter().peekable();
        while quads.peek().is_some() {
            let part: Vec<Quad> = quads.by_ref().take(BATCH_QUADS).collect();
            let changed = self.step(|_, txn| {
                let terms: Vec<TermRef<'_>> = part.iter().flat_map(terms_of).collect();
                let mut ids = txn.session().resolve(&terms)?.into_iter();
                let mut stored = Vec::with_capacity(part.len());
                for quad in &part {
                    let [subject, predicate, object] =
                        [ids.next(), ids.next(), ids.next()].map(Option::flatten);
                    let graph = match quad.graph_name {
                        GraphName::DefaultGraph => Some(TermId::DEFAULT_GRAPH),
                        _ => ids.next().flatten(),
                    };
                    if let (Some(s), Some(p), Some(o), Some(g)) = (subject, predicate, object, graph) {
                        stored.push([s, p, o, g]);
                    }
                }
                Ok(txn.delete(&stored)?)
            });
            removed += changed?.deleted;
        }
        Ok(removed)
    }

    /// Adds the statements of a file, as a step; for large files
    /// [`Database::load`](crate::Database::load) is faster.
    ///
    /// # Errors
    /// [`Error::Document`], [`Error::Input`], those of the store.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<Changes> {
        self.load_source(Source::File(path.as_ref().to_owned()), None)
    }

    /// Adds the statements of something that can be read, as a step; errors call it `name`.
    ///
    /// # Errors
    /// As [`Transaction::load`].
    pub fn load_reader(
        &mut self,
        name: &str,
        read: impl Read + Send + 'static,
        format: Format,
    ) -> Result<Changes> {
        self.load_source(Source::Reader { name: name.to_owned(), read: Box::new(read) }, Some(format))
    }

    fn load_source(&mut self, source: Source, format: Option<Format>) -> Result<Changes> {
        let never = AtomicBool::new(false);
        Ok(self.step(|_, txn| Ok(txn.insert_source(source, format, None, None, &never)?))?.into())
    }
}

/// The terms of a quad; none for the default graph.
fn terms_of(quad: &Quad) -> impl Iterator<Item = TermRef<'_>> {
    let graph = match &quad.graph_name {
        GraphName::NamedNode(iri) => Some(TermRef::Iri(iri.as_str())),
        GraphName::BlankNode(node) => Some(TermRef::Blank(node.as_str())),
        GraphName::DefaultGraph => None,
    };
    let subject = quad.subject.as_ref().into();
    let predicate = TermRef::Iri(quad.predicate.as_str());
    let object = quad.object.as_ref().into();
    [subject, predicate, object].into_iter().chain(graph)
}

fn batch_quad(batch: &mut QuadBatch, session: &mut Session, quad: &Quad) -> Result<[BatchTerm; 4]> {
    let mut cells = [batch.id(TermId::DEFAULT_GRAPH); 4];
    for (cell, term) in cells.iter_mut().zip(terms_of(quad)) {
        *cell = batch_term(batch, session, term)?;
    }
    Ok(cells)
}

/// A term of a batch. A blank node that is stored is that one, within a triple term, too.
fn batch_term(batch: &mut QuadBatch, session: &mut Session, term: TermRef<'_>) -> Result<BatchTerm> {
    let (mut levels, mut within) = (Vec::new(), term);
    while let TermRef::Triple(triple) = within {
        levels.push(triple);
        within = triple.object.as_ref().into();
    }
    let mut object = batch_node(batch, session, within)?;
    for triple in levels.into_iter().rev() {
        let subject = batch_node(batch, session, triple.subject.as_ref().into())?;
        let predicate = batch.term(triple.predicate.as_ref().into());
        object = batch.triple([subject, predicate, object]);
    }
    Ok(object)
}

fn batch_node(batch: &mut QuadBatch, session: &mut Session, term: TermRef<'_>) -> Result<BatchTerm> {
    let stored = match term {
        TermRef::Blank(_) => session.resolve_one(term)?,
        _ => None,
    };
    Ok(match stored {
        Some(id) => batch.id(id),
        None => batch.term(term),
    })
}
