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

use snowmelt_database::Account;
use snowmelt_graph::load::Contexts;
use snowmelt_graph::{
    BlankNodes, ChangePhase, ChangeProgress, Changed, GraphError, GraphView, Graphs, TermId, Transaction,
};
use snowmelt_syntax::ParseOptions;
use snowmelt_syntax::tree::{Dataset, FirstUses, GraphTarget, Measure, Operation, UpdateOperation, VarNames};

use crate::algebra::bind::bind_update;
use crate::bounds::text_limits::{check_memory, update_bytes};
use crate::bounds::{Limits, TextKind, TextLimits, stopped};
use crate::engine::{QueryEngine, TextDemand, sign_of};
use crate::error::QueryError;
use crate::functions::CustomFunctions;
use crate::remote::{QuerySlot, RemoteEndpoints, RemoteWait};
use crate::text::syntax::with_update;

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
    /// Rows of a join that surprise, as [`crate::QueryOptions::surprise_rows`].
    pub surprise_rows: Option<u64>,
    /// Work of a thread, as [`crate::QueryOptions::thread_work`].
    pub thread_work: Option<Duration>,
    /// Graphs merged into the default graph of WHERE; not together with USING or WITH in the
    /// text.
    pub using_graphs: Vec<String>,
    /// Graphs that WHERE can name.
    pub using_named_graphs: Vec<String>,
    /// The graphs that it may see; all when not given.
    pub view: Option<Arc<GraphView>>,
    /// Values of variables of WHERE and the templates, as [`crate::QueryOptions::bindings`].
    pub bindings: Vec<(String, snowmelt_graph::Term)>,
    /// Functions of the program, by IRI, that WHERE may call.
    pub functions: Arc<CustomFunctions>,
    /// Where LOAD may read from; from nowhere when empty.
    pub allow_load: Vec<LoadPermission>,
    /// Endpoints that SERVICE may ask, and places that LOAD may; none when not given.
    pub remote: Option<Arc<dyn RemoteEndpoints>>,
    /// Its slot, which it lends while a LOAD waits for its document; none: nothing waits for its
    /// end.
    pub slot: Option<Arc<dyn QuerySlot>>,
    /// How long SERVICE may wait for endpoints in all, which keeps other updates waiting; no limit
    /// when not given.
    pub remote_wait: Option<Duration>,
    /// Bytes that a document of another machine may have after decompression; no limit when not
    /// given.
    pub most_document_bytes: Option<u64>,
    /// Contexts that documents of JSON-LD may name; others are not fetched.
    pub contexts: Contexts,
    /// Set to its progress.
    pub progress: Arc<ChangeProgress>,
}

/// Result of an update.
#[derive(Clone, Debug, Default)]
pub struct Updated {
    /// The transaction; what is read as of it or later sees the update.
    pub txn: u64,
    /// Quads added and removed, operation by operation.
    pub changed: Changed,
    /// Functions that it calls and that are not there: a sentence for each.
    pub warnings: Vec<String>,
}

/// An update under way.
struct UpdateRun<'a> {
    engine: &'a QueryEngine,
    options: &'a UpdateOptions,
    limits: Limits,
    txn: &'a mut Transaction,
    begun: &'a mut Begun,
    /// documents that were parsed before the turn; others are parsed when they are needed
    loads: Loads,
}

/// Facts about an operation that its patterns and templates do not tell.
struct OperationFacts {
    names: VarNames,
    first: FirstUses,
    measure: Measure,
}

/// State that the operations of an update share.
struct Begun {
    /// blank nodes of an INSERT DATA
    blanks: BlankNodes,
    /// functions that are not there
    warnings: Vec<String>,
    /// how long endpoints are waited for
    remote_wait: Option<Arc<RemoteWait>>,
}

impl Begun {
    fn new(options: &UpdateOptions) -> Self {
        let remote_wait = options.remote_wait.map(|most| Arc::new(RemoteWait::new(most)));
        Self { blanks: BlankNodes::default(), warnings: Vec::new(), remote_wait }
    }
}

impl QueryEngine {
    /// Runs an update; when it returns, what it did is durable.
    ///
    /// # Errors
    /// Those of its text, of any of its operations, and of the commit; nothing has changed
    /// then.
    pub fn update(&self, text: &str, options: &UpdateOptions) -> Result<Updated, QueryError> {
        if options.bindings.is_empty() && text.len() > self.whole_bytes() {
            return self.update_from(text.as_bytes(), text.len(), options);
        }
        let kind = if options.bindings.is_empty() { TextKind::Bounded } else { TextKind::Own };
        self.update_whole(text, kind, options)
    }

    fn update_whole(
        &self,
        text: &str,
        kind: TextKind,
        options: &UpdateOptions,
    ) -> Result<Updated, QueryError> {
        let limits = Limits::from_now(options.timeout, options.cancel.clone());
        options.progress.enter(ChangePhase::Parsing);
        self.with_bound(text, kind, options, &limits, |operations| {
            let loads = self.stage_loads(&operations, options, &limits)?;
            let (mut txn, mut begun) = (self.begin(options, &limits)?, Begun::new(options));
            let limits = limits.clone();
            let run = UpdateRun { engine: self, options, limits, txn: &mut txn, begun: &mut begun, loads };
            let changed = run.operations(operations)?;
            let txn = txn.commit_unless_unchanged(changed)?;
            self.renew_old_statistics();
            Ok(Updated { txn, changed, warnings: begun.warnings })
        })
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
        self.with_bound(text, TextKind::Own, options, &limits, |operations| {
            let (loads, limits) = (Loads::new(), limits.clone());
            let begun = &mut Begun::new(options);
            UpdateRun { engine: self, options, limits, txn, begun, loads }.operations(operations)
        })
    }

    /// Parses an update, puts its parameters in, and calls `then` with the memory and stack that
    /// its trees need.
    fn with_bound<T>(
        &self,
        text: &str,
        kind: TextKind,
        options: &UpdateOptions,
        limits: &Limits,
        then: impl FnOnce(Vec<UpdateOperation>) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let sign = sign_of(&options.account);
        let demand = TextDemand { kind, bytes: text.len(), least: 0, wait: None, sign, slot: None };
        // It is called once: before that, only too little memory ends an attempt.
        let mut then = Some(then);
        let done = self.with_text_memory(&demand, limits, |most| {
            let limits = TextLimits { tree_bytes: most, ..*self.text_limits() };
            let parse = ParseOptions { base: options.base.as_deref(), limits, ..ParseOptions::default() };
            with_update(text, &parse, |mut update| {
                check_memory(update_bytes(text.len(), &update), most)?;
                bind_update(&mut update.operations, &options.bindings)?;
                let then = then.take().expect("a text that was parsed is not parsed again");
                Ok(then(update.operations))
            })
        });
        done?.1
    }
}

impl UpdateRun<'_> {
    fn operations(mut self, operations: Vec<UpdateOperation>) -> Result<Changed, QueryError> {
        let mut changed = Changed::default();
        for operation in operations {
            self.begun.blanks = BlankNodes::default();
            changed += self.operation(operation)?;
        }
        self.limits.check()?;
        Ok(changed)
    }

    fn operation(&mut self, operation: UpdateOperation) -> Result<Changed, QueryError> {
        self.limits.check()?;
        let UpdateOperation { operation, names, first, measure, .. } = operation;
        match operation {
            Operation::InsertData(data) => self.insert_data(&data),
            Operation::DeleteData(data) => self.delete_data(&data),
            Operation::Modify(mut modify) => {
                modify.using = self.dataset(modify.using)?;
                self.modify(modify, OperationFacts { names, first, measure })
            }
            Operation::Load { is_silent, source, into } => {
                let loaded = self.load(&source, into.as_deref());
                if is_silent { loaded.or_else(|error| self.unless_fatal(error)) } else { loaded }
            }
            Operation::Clear { target, .. } | Operation::Drop { target, .. } => self.clear(&target),
            Operation::Create { is_silent, graph } => self.create(&graph, is_silent),
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
    fn dataset(&self, using: Option<Dataset>) -> Result<Option<Dataset>, QueryError> {
        let UpdateOptions { using_graphs, using_named_graphs, .. } = self.options;
        if using_graphs.is_empty() && using_named_graphs.is_empty() {
            return Ok(using);
        }
        if using.is_some() {
            return Err(QueryError::UsingTwice);
        }
        let iris = |graphs: &[String]| graphs.iter().map(|graph| graph.as_str().into()).collect();
        Ok(Some(Dataset { default: iris(using_graphs), named: Some(iris(using_named_graphs)) }))
    }

    fn clear(&mut self, target: &GraphTarget) -> Result<Changed, QueryError> {
        let graphs = match target {
            GraphTarget::Default => {
                self.options.check_graph(None)?;
                Graphs::One(TermId::DEFAULT_GRAPH)
            }
            GraphTarget::AllNamed | GraphTarget::All if self.options.view.is_some() => {
                return Err(QueryError::Forbidden { what: "CLEAR of all graphs".to_owned() });
            }
            GraphTarget::AllNamed => Graphs::Named,
            GraphTarget::All => Graphs::All,
            GraphTarget::Named(graph) => {
                self.options.check_graph(Some(graph))?;
                match self.txn.session().graph_id(Some(graph))? {
                    Some(graph) => Graphs::One(graph),
                    None => return Ok(Changed::default()),
                }
            }
        };
        let changed = self.txn.clear(graphs, &self.limits);
        changed.map_err(|error| match error {
            GraphError::Stopped => stopped(&self.limits),
            other => other.into(),
        })
    }

    fn create(&mut self, graph: &str, is_silent: bool) -> Result<Changed, QueryError> {
        self.options.check_graph(Some(graph))?;
        if !is_silent && self.txn.session().has_graph(Some(graph))? {
            return Err(QueryError::GraphExists(graph.to_owned()));
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
