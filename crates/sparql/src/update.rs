//! SPARQL 1.1 Update: a request is a sequence of operations and one transaction.
//!
//! 1. The text is parsed whole, and so are the documents that it loads; nothing is begun if it is
//!    not an update. Others change the database meanwhile.
//! 2. The operations run one after the other, each on what those before it left; a pattern is
//!    evaluated on the state before its own operation, which does not move while the operation
//!    changes the graph.
//! 3. All succeeded: one commit. One failed (without SILENT): the transaction is dropped,
//!    nothing has changed.
//!
//! Graphs without quads are not recorded: CREATE changes nothing, and a graph that is not there
//! is as good as an empty one.

mod data;
mod document;
mod modify;
mod stream;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use oxrdf::TermRef as RdfTerm;
use snowmelt_database::Account;
use snowmelt_graph::load::Contexts;
use snowmelt_graph::{
    BlankNodes, ChangePhase, ChangeProgress, Changed, GraphError, GraphView, Graphs, TermId, TermRef,
    Transaction,
};
use spargebra::GraphUpdateOperation;
use spargebra::algebra::{GraphTarget, QueryDataset};
use spargebra::term::NamedNode;

use crate::bounds::{Limits, TextKind, TextMemory, stopped, with_room};
use crate::engine::{Parsed, QueryEngine, TextDemand, sign_of};
use crate::error::QueryError;
use crate::text::bind::bind_update;
use crate::text::syntax::parse_update;
use crate::text::weight::Weight;

pub use document::LoadPermission;
use document::{Loads, is_of_source};

/// How an update is to be run.
#[derive(Clone, Debug, Default)]
pub struct UpdateOptions {
    /// Base IRI of relative IRIs in the text.
    pub base: Option<String>,
    /// The longest it may run.
    pub timeout: Option<Duration>,
    /// Bytes it may hold; default a quarter of the memory budget.
    pub memory: Option<usize>,
    /// Set from outside to end it.
    pub cancel: Option<Arc<AtomicBool>>,
    /// The account of its reads; `other` when not given. An update in a transaction uses the
    /// transaction's.
    pub account: Option<Arc<Account>>,
    /// Threads that WHERE may use; 0: as many as there are processors.
    pub threads: usize,
    /// Rows of a batch; default: adaptive.
    pub batch_rows: Option<usize>,
    /// Graphs merged into the default graph of WHERE; not together with USING or WITH in the
    /// text.
    pub using_graphs: Vec<String>,
    /// Graphs that WHERE can name.
    pub using_named_graphs: Vec<String>,
    /// The graphs that it may see; all when not given.
    pub view: Option<Arc<GraphView>>,
    /// Values of variables of WHERE and the templates, as [`crate::QueryOptions::bindings`].
    pub bindings: Vec<(String, snowmelt_graph::Term)>,
    /// Where LOAD may read from; from nowhere when empty.
    pub allow_load: Vec<LoadPermission>,
    /// Contexts that documents of JSON-LD may name; others are not fetched.
    pub contexts: Contexts,
    /// Set to its progress.
    pub progress: Arc<ChangeProgress>,
}

/// Result of an update.
#[derive(Clone, Copy, Debug, Default)]
pub struct Updated {
    /// The transaction; what is read as of it or later sees the update.
    pub txn: u64,
    /// Quads added and removed, operation by operation.
    pub changed: Changed,
}

/// An update under way.
struct UpdateRun<'a> {
    engine: &'a QueryEngine,
    options: &'a UpdateOptions,
    parsed: Parsed<'a>,
    base: Option<oxiri::Iri<String>>,
    limits: Limits,
    txn: &'a mut Transaction,
    begun: &'a mut Begun,
    /// documents that were parsed before the turn; others are parsed when they are needed
    loads: Loads,
}

/// The operation that was begun last, for a piece that goes on with it.
#[derive(Default)]
struct Begun {
    /// blank nodes of an INSERT DATA
    blanks: BlankNodes,
    /// the next operation is the rest of it
    goes_on: bool,
}

impl QueryEngine {
    /// Runs an update; when it returns, what it did is durable.
    ///
    /// # Errors
    /// Those of its text, of any of its operations, and of the commit; nothing has changed
    /// then.
    pub fn update(&self, text: &str, options: &UpdateOptions) -> Result<Updated, QueryError> {
        match self.update_whole(text, TextKind::Bounded, options) {
            // Its trees are too large together.
            Err(QueryError::TextMemory { .. }) if options.bindings.is_empty() => {
                self.update_from(text.as_bytes(), text.len(), options)
            }
            Err(QueryError::TextMemory { .. }) => self.update_whole(text, TextKind::Own, options),
            done => done,
        }
    }

    fn update_whole(
        &self,
        text: &str,
        kind: TextKind,
        options: &UpdateOptions,
    ) -> Result<Updated, QueryError> {
        let room = self.text_limits().measure(text)?.stack_bytes();
        with_room(room, || self.update_with_room(Parsed { text, room, described: &[] }, kind, options))
    }

    fn update_with_room(
        &self,
        parsed: Parsed<'_>,
        kind: TextKind,
        options: &UpdateOptions,
    ) -> Result<Updated, QueryError> {
        let limits = Limits::from_now(options.timeout, options.cancel.clone());
        let _text = self.reserve_update(parsed.text, kind, options, &limits)?;
        options.progress.enter(ChangePhase::Parsing);
        let update = parse_bound(parsed.text, options)?;
        let loads = self.stage_loads(&update, options, &limits)?;
        let mut txn = self.begin(options, &limits)?;
        let run = UpdateRun {
            engine: self,
            options,
            parsed,
            base: update.base_iri.clone(),
            limits,
            txn: &mut txn,
            begun: &mut Begun::default(),
            loads,
        };
        let changed = run.operations(&update.operations)?;
        Ok(Updated { txn: txn.commit_unless_unchanged(changed)?, changed })
    }

    /// Waits for the turn of the writer and begins the transaction of an update.
    fn begin(&self, options: &UpdateOptions, limits: &Limits) -> Result<Transaction, QueryError> {
        options.progress.enter(ChangePhase::Waiting);
        let go_on = || limits.check().is_ok();
        let begun = match &options.account {
            Some(account) => self.graph().begin_charged(account, &go_on)?,
            None => self.graph().begin_while(&go_on)?,
        };
        if begun.is_none() {
            limits.check()?;
        }
        let txn = begun.ok_or(QueryError::Cancelled)?;
        options.progress.enter(ChangePhase::Writing);
        Ok(txn)
    }

    /// Runs an update in a transaction, without committing. After an error a part of the update
    /// may have been done: the transaction is to be dropped.
    ///
    /// # Errors
    /// Those of its text and of any of its operations.
    pub fn update_in(
        &self,
        txn: &mut Transaction,
        text: &str,
        options: &UpdateOptions,
    ) -> Result<Changed, QueryError> {
        let limits = Limits::from_now(options.timeout, options.cancel.clone());
        self.piece_in(txn, text, TextKind::Own, options, &limits, &mut Begun::default())
    }

    fn piece_in(
        &self,
        txn: &mut Transaction,
        text: &str,
        kind: TextKind,
        options: &UpdateOptions,
        limits: &Limits,
        begun: &mut Begun,
    ) -> Result<Changed, QueryError> {
        let room = self.text_limits().measure(text)?.stack_bytes();
        with_room(room, || {
            let _text = self.reserve_update(text, kind, options, limits)?;
            let update = parse_bound(text, options)?;
            let run = UpdateRun {
                engine: self,
                options,
                parsed: Parsed { text, room, described: &[] },
                base: update.base_iri.clone(),
                limits: limits.clone(),
                txn,
                begun,
                loads: Loads::new(),
            };
            run.operations(&update.operations)
        })
    }

    /// Reserves memory for the trees of a long update.
    fn reserve_update(
        &self,
        text: &str,
        kind: TextKind,
        options: &UpdateOptions,
        limits: &Limits,
    ) -> Result<Option<TextMemory>, QueryError> {
        let sign = sign_of(&options.account);
        let demand = TextDemand { kind, bytes: text.len(), least: 0, wait: None, sign };
        self.reserve_text(demand, || Weight::from_text(text), limits)
    }
}

/// Parses an update and puts its parameters in.
fn parse_bound(text: &str, options: &UpdateOptions) -> Result<spargebra::Update, QueryError> {
    let mut update = parse_update(text, options.base.as_deref())?;
    bind_update(&mut update.operations, &options.bindings)?;
    Ok(update)
}

impl UpdateRun<'_> {
    fn operations(mut self, operations: &[GraphUpdateOperation]) -> Result<Changed, QueryError> {
        let mut changed = Changed::default();
        for operation in operations {
            if !std::mem::take(&mut self.begun.goes_on) {
                self.begun.blanks = BlankNodes::default();
            }
            changed += self.operation(operation)?;
        }
        self.limits.check()?;
        Ok(changed)
    }

    fn operation(&mut self, operation: &GraphUpdateOperation) -> Result<Changed, QueryError> {
        use GraphUpdateOperation as Op;
        self.limits.check()?;
        match operation {
            Op::InsertData { data } => self.insert_data(data),
            Op::DeleteData { data } => self.delete_data(data),
            Op::DeleteInsert { delete, insert, using, pattern } => {
                let using = self.dataset(using.as_ref())?;
                self.modify(delete, insert, using, pattern)
            }
            Op::Load { silent, source, destination } => {
                let loaded = self.load(source, destination);
                if *silent { loaded.or_else(|error| self.unless_fatal(error)) } else { loaded }
            }
            Op::Clear { graph, .. } | Op::Drop { graph, .. } => self.clear(graph),
            Op::Create { silent, graph } => self.create(graph, *silent),
        }
    }

    /// SILENT passes over a source that cannot be had; not over limits, and not over a store
    /// that fails.
    fn unless_fatal(&self, error: QueryError) -> Result<Changed, QueryError> {
        match error {
            QueryError::Forbidden { .. } => Err(error),
            error if is_of_source(&error) => Ok(Changed::default()),
            other => Err(other),
        }
    }

    /// The dataset of a WHERE: the text's own, or the request's.
    fn dataset(&self, using: Option<&QueryDataset>) -> Result<Option<QueryDataset>, QueryError> {
        let UpdateOptions { using_graphs, using_named_graphs, .. } = self.options;
        if using_graphs.is_empty() && using_named_graphs.is_empty() {
            return Ok(using.cloned());
        }
        if using.is_some() {
            return Err(QueryError::UsingTwice);
        }
        let nodes = |graphs: &[String]| graphs.iter().map(NamedNode::new_unchecked).collect();
        Ok(Some(QueryDataset { default: nodes(using_graphs), named: Some(nodes(using_named_graphs)) }))
    }

    fn clear(&mut self, target: &GraphTarget) -> Result<Changed, QueryError> {
        if let GraphTarget::NamedNode(graph) = target {
            self.options.check_graph(Some(graph.as_str()))?;
        }
        let graphs = match target {
            GraphTarget::DefaultGraph => {
                self.options.check_graph(None)?;
                Graphs::One(TermId::DEFAULT_GRAPH)
            }
            GraphTarget::NamedGraphs | GraphTarget::AllGraphs if self.options.view.is_some() => {
                return Err(QueryError::Forbidden { what: "CLEAR of all graphs".to_owned() });
            }
            GraphTarget::NamedGraphs => Graphs::Named,
            GraphTarget::AllGraphs => Graphs::All,
            GraphTarget::NamedNode(graph) => match self.txn.session().graph_id(Some(graph.as_str()))? {
                Some(graph) => Graphs::One(graph),
                None => return Ok(Changed::default()),
            },
        };
        let changed = self.txn.clear(graphs, &self.limits);
        changed.map_err(|error| match error {
            GraphError::Stopped => stopped(&self.limits),
            other => other.into(),
        })
    }

    fn create(&mut self, graph: &NamedNode, silent: bool) -> Result<Changed, QueryError> {
        self.options.check_graph(Some(graph.as_str()))?;
        if !silent && self.txn.session().has_graph(Some(graph.as_str()))? {
            return Err(QueryError::GraphExists(graph.as_str().to_owned()));
        }
        Ok(Changed::default())
    }
}

impl UpdateOptions {
    /// Refuses to change a graph that the user may not see; `None` is the default graph.
    fn check_graph(&self, graph: Option<&str>) -> Result<(), QueryError> {
        if self.view.as_ref().is_none_or(|view| view.has(graph)) {
            return Ok(());
        }
        let what = graph.map_or_else(|| "the default graph".to_owned(), |iri| format!("the graph <{iri}>"));
        Err(QueryError::Forbidden { what })
    }
}

/// A term of a text as the dictionary takes it.
fn term_ref(term: RdfTerm<'_>) -> TermRef<'_> {
    match term {
        RdfTerm::NamedNode(node) => TermRef::Iri(node.as_str()),
        RdfTerm::BlankNode(node) => TermRef::Blank(node.as_str()),
        RdfTerm::Literal(literal) => literal.into(),
        RdfTerm::Triple(triple) => TermRef::Triple(triple),
    }
}
