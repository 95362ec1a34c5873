//! The engine: query text in, results out.
//!
//! 1. The text has a shape and parameters ([`QueryText`]); the shape's [`Template`] (parsed,
//!    translated, rewritten) comes from the cache or is made.
//! 2. The constants are resolved: those of the shape once, the parameters in one dictionary
//!    call.
//! 3. The exact counts of the patterns that hold parameters give a key of magnitudes; the
//!    template has a plan per key, so that a rare and a frequent constant are planned apart. The
//!    key says, too, how much of the indexes is in memory, as long as that is not all of them.
//! 4. The plan is made runnable; batches are pulled as the caller asks.
//!
//! No result is ever cached. What is kept of a shape is checked against the state a query sees
//! ([`Template::holds`]), because updates make constants known, put literals where there were
//! none, and move counts.

mod describe;
mod explain;
mod explanation;
mod facts;
#[cfg(test)]
mod grammars;
mod graph;
#[cfg(test)]
mod hostile;
mod key;
mod query_text;
mod reads;
mod renewal;
mod result;
mod template;
#[cfg(test)]
mod tests;
mod trial;
mod view;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

use oxsdatatypes::DateTime;
use parking_lot::{Mutex, RwLock};
use rustc_hash::{FxHashMap, FxHashSet};
use snowmelt_database::meters::Activity;
use snowmelt_database::{Account, Reservation, WaitFor, WaitSign};
use snowmelt_graph::{GraphDatabase, GraphView, Namespaces, Session, Term};
use snowmelt_syntax::tree::Query;
use snowmelt_syntax::{ParseOptions, Shape};

use crate::algebra::consts::GroundTerm;
use crate::algebra::{Algebra, Form, Var, bind};
use crate::bounds::text_limits::{TREE_BYTES, check_memory, query_bytes, usual_bytes};
use crate::bounds::{
    Active, Limits, Line, MemoryShare, MemoryWait, Shares, TextKind, TextLimits, TextMemory, TextRoom,
    text_bytes, with_room,
};
use crate::error::QueryError;
use crate::exec::source::GraphSource;
use crate::exec::{BatchSizes, Profile, Run, RunningQuery, SharedScans, THREAD_WORK, Watch};
use crate::functions::CustomFunctions;
use crate::remote::{QuerySlot, RemoteEndpoints, RemoteWait};
use crate::text::prefixes::KeptPrefixes;
use crate::text::syntax;
use crate::value::{LocalTerms, TextRanks};
use key::TemplateKey;
use renewal::Renewal;
use result::{Making, Timing};
use template::{PlanRequest, Template};
use view::{Views, VisibleGraphs, names_graphs};

pub use describe::DescribeForm;
pub use explanation::{Assumptions, Explanation, Measured, Outcome, PlanEstimate, PlanStep, Residence};
pub use query_text::{QueryText, may_ask_endpoints};
pub use reads::PlanCosts;
pub use result::{QueryKind, QueryMemory, QueryResult, TermRows, Written};

/// Templates kept, and bytes of their texts; when there are more, the least recently used half
/// goes. The templates themselves take up to 64 times as much.
const TEMPLATES: usize = 1024;
const TEMPLATE_BYTES: usize = 512 << 10;

/// The longest text that is kept as a template: longer ones hold data, come once, and would
/// make the templates large.
const KEPT_TEXT_BYTES: usize = 16 << 10;

/// The longest text whose trees and plan fit into what is reserved for each query.
const SHORT_TEXT_BYTES: usize = 4 << 10;

/// How long a query waits for the memory it needs at least, before it is refused as busy.
const MEMORY_WAIT: Duration = Duration::from_secs(10);

/// How a query is to be run.
#[derive(Clone, Debug, Default)]
pub struct QueryOptions {
    /// Base IRI of relative IRIs in the text.
    pub base: Option<String>,
    /// The longest it may run.
    pub timeout: Option<Duration>,
    /// Most bytes it may hold; default a quarter of the memory budget.
    pub memory: Option<usize>,
    /// How long it waits for memory to begin; default 10 seconds.
    pub memory_wait: Option<Duration>,
    /// Rows after which it is ended with an error.
    pub max_rows: Option<u64>,
    /// Set from outside to end it.
    pub cancel: Option<Arc<AtomicBool>>,
    /// The account of its reads; `other` when not given.
    pub account: Option<Arc<Account>>,
    /// Set to the number of rows so far.
    pub rows: Option<Arc<AtomicU64>>,
    /// Rows of a batch; default: adaptive, 1 K to 64 K.
    pub batch_rows: Option<usize>,
    /// Threads it may use; 0: as many as there are cores.
    pub threads: usize,
    /// Work expected of a thread for which it is started; default 5 ms.
    pub thread_work: Option<Duration>,
    /// Whether the costs of its plan include reads.
    pub costs: PlanCosts,
    /// Rows of a join beyond the expected ones after which its plan is given up, and the query
    /// begun anew with a better one; default: a hundred times as many, and at least 100,000.
    pub surprise_rows: Option<u64>,
    /// The triples of a CONSTRUCT are known to be distinct: none is remembered.
    pub triples_are_distinct: bool,
    /// Graphs merged into the default graph; with `named_graphs` replaces the query's own
    /// dataset if either is given.
    pub default_graphs: Vec<String>,
    /// Graphs that can be named.
    pub named_graphs: Vec<String>,
    /// The graphs that it may see; all when not given.
    pub view: Option<Arc<GraphView>>,
    /// Values of variables, by name without question mark: as if each stood in the text in its
    /// variable's place. IRIs and literals.
    pub bindings: Vec<(String, Term)>,
    /// Endpoints that SERVICE may ask; none when not given.
    pub remote: Option<Arc<dyn RemoteEndpoints>>,
    /// How long those are waited for in all; no limit when not given.
    pub remote_wait: Option<Arc<RemoteWait>>,
    /// Its slot, which it lends while it waits for those or for memory; none: nothing waits for
    /// its end.
    pub slot: Option<Arc<dyn QuerySlot>>,
    /// Functions of the program, by IRI.
    pub functions: Arc<CustomFunctions>,
    /// The triples that describe a resource.
    pub describe: DescribeForm,
    /// Prefixes that the text may use without declaring them.
    pub prefixes: Arc<Namespaces>,
}

/// Answers SPARQL queries on one database. Shared by all threads.
pub struct QueryEngine {
    db: Arc<GraphDatabase>,
    templates: RwLock<FxHashMap<TemplateKey, Arc<Template>>>,
    /// of its data
    known: Arc<facts::KnownData>,
    /// queries under way
    active: Arc<AtomicUsize>,
    /// queries that wait for memory
    line: Line,
    /// and those with long texts
    texts: Line,
    cores: usize,
    /// scans under way that others can join
    scans: Arc<SharedScans>,
    ranks: Arc<TextRanks>,
    text_limits: TextLimits,
    views: Views,
    /// statistics made anew
    renewal: Renewal,
}

/// How a query is to be run, the graphs that it may see, and its limits.
#[derive(Clone, Copy)]
struct QueryRequest<'a> {
    options: &'a QueryOptions,
    visible: Option<&'a VisibleGraphs>,
    limits: &'a Limits,
    /// the memory that the trees of its text and its plan may take
    text_bytes: usize,
}

/// Memory for a text that is about to be parsed.
pub(crate) struct TextDemand<'a> {
    pub kind: TextKind,
    /// of the text
    pub bytes: usize,
    /// the least of its query, reserved together with it
    pub least: usize,
    /// how long it may wait; default [`MEMORY_WAIT`]
    pub wait: Option<Duration>,
    /// where the wait is shown
    pub sign: Option<&'a WaitSign>,
    /// lent meanwhile
    pub slot: Option<&'a dyn QuerySlot>,
}

/// A query ready to run: its template, its first worker, and its text's memory.
struct Prepared {
    template: Arc<Template>,
    run: Run,
    text: Option<TextMemory>,
}

/// Where the waits of an account are shown.
pub(crate) fn sign_of(account: &Option<Arc<Account>>) -> Option<&WaitSign> {
    account.as_deref().map(Account::sign)
}

impl QueryEngine {
    /// An engine on an open database.
    pub fn new(db: Arc<GraphDatabase>) -> Self {
        Self::with_text_limits(db, TextLimits::default())
    }

    /// An engine on an open database, with limits on texts of one's own.
    pub fn with_text_limits(db: Arc<GraphDatabase>, text_limits: TextLimits) -> Self {
        let ranks = Arc::new(TextRanks::new(db.database().memory().clone()));
        Self {
            text_limits,
            db,
            templates: RwLock::default(),
            known: Arc::default(),
            active: Arc::default(),
            line: Line::default(),
            texts: Line::of_all_sizes(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            scans: Arc::default(),
            ranks,
            views: Views::default(),
            renewal: Renewal::default(),
        }
    }

    /// The graphs that it works on.
    pub fn graph(&self) -> &Arc<GraphDatabase> {
        &self.db
    }

    /// Reads and time of all finished queries, and of everything else on this database.
    pub fn activity(&self) -> Activity {
        self.db.database().activity()
    }

    /// Makes statistics anew on another thread if they are old: to be called after changes.
    pub fn renew_old_statistics(&self) {
        self.renewal.begin_if_old(&self.db);
    }

    /// Waits until statistics that are being made anew are there.
    pub fn wait_for_statistics(&self) {
        self.renewal.wait();
    }

    /// Scans that were handed out in pieces because much of them had to be read, and those of
    /// them that joined another scan under way.
    pub fn shared_scans(&self) -> (u64, u64) {
        self.scans.counts()
    }

    /// Begins a query. Errors of the text come here; those of the data while the result is
    /// read.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn query(&self, text: &str, options: &QueryOptions) -> Result<QueryResult, QueryError> {
        self.query_of(&QueryText::new(text), options)
    }

    /// Begins a query whose text was asked about before.
    ///
    /// # Errors
    /// As [`QueryEngine::query`].
    pub fn query_of(&self, text: &QueryText<'_>, options: &QueryOptions) -> Result<QueryResult, QueryError> {
        let begun = Instant::now();
        let limits = limits(options);
        let prepared = self.prepare(text, options, &limits)?;
        self.start(prepared, options, begun)
    }

    /// The recent duration of queries of this text's shape, from the text to the end of the result:
    /// that of the longest, which decays with each shorter one. `None` if none is remembered.
    pub fn expected(&self, text: &QueryText<'_>, options: &QueryOptions) -> Option<Duration> {
        if text.given().len() > KEPT_TEXT_BYTES || options.view.is_some() {
            return None;
        }
        self.templates.read().get(&TemplateKey::new(text.shape().key, options, None))?.took()
    }

    /// Begins a query on what a session sees, for example that of a transaction. Its text is parsed
    /// anew each time.
    ///
    /// # Errors
    /// As [`QueryEngine::query`].
    pub fn query_on(
        &self,
        session: Session,
        text: &str,
        options: &QueryOptions,
    ) -> Result<QueryResult, QueryError> {
        let prefixes = KeptPrefixes(&options.prefixes);
        let parse = ParseOptions { limits: self.text_limits, ..parse_options(options, &prefixes) };
        syntax::with_query(text, &parse, |mut query| {
            bind::bind_query(&mut query, &options.bindings, 0)?;
            self.query_in(session, &query, options)
        })
    }

    /// The limits on texts.
    pub(crate) fn text_limits(&self) -> &TextLimits {
        &self.text_limits
    }

    /// Begins a parsed query on what a session sees: the WHERE of an update. Nothing of it is
    /// kept. The thread has room for its tree.
    pub(crate) fn query_in(
        &self,
        session: Session,
        query: &Query,
        options: &QueryOptions,
    ) -> Result<QueryResult, QueryError> {
        let begun = Instant::now();
        let mut source = GraphSource::new(self.seen_session(session, options.view.as_ref()));
        let limits = limits(options);
        let params = bind::params(&options.bindings)?;
        let view = options.view.as_ref();
        let visible = view.map(|view| VisibleGraphs::resolve(view, &mut source, &limits)).transpose()?;
        let request =
            QueryRequest { options, visible: visible.as_ref(), limits: &limits, text_bytes: usize::MAX };
        let template = Template::new(query, 0, request, &params, self, &mut source)?;
        let prepared = self.plan(Arc::new(template), params, source, options, &limits, None)?;
        self.start(prepared, options, begun)
    }

    /// The session, limited to the graphs of a view if one is given.
    pub fn seen_session(&self, session: Session, view: Option<&Arc<GraphView>>) -> Session {
        match view {
            Some(view) => session.veiled(&self.views.veil(view)),
            None => session,
        }
    }

    fn start(
        &self,
        prepared: Prepared,
        options: &QueryOptions,
        begun: Instant,
    ) -> Result<QueryResult, QueryError> {
        let Prepared { template, mut run, text: reserved } = prepared;
        let making = self.making(&template, options);
        let root = making.operators(&mut run)?;
        let planning = begun.elapsed();
        run.announce_constants()?;
        let mut result = QueryResult::new(Timing { template, begun }, root, run, making, reserved);
        (result.planning, result.told) = (planning, options.rows.clone());
        Ok(result)
    }

    fn making(&self, template: &Arc<Template>, options: &QueryOptions) -> Making {
        Making {
            template: template.clone(),
            known: self.known.clone(),
            costs: options.costs,
            batch_rows: options.batch_rows,
            surprise_rows: options.surprise_rows,
            describe: options.describe,
            triples_are_distinct: options.triples_are_distinct,
        }
    }

    /// The plan of a query as text, with estimates; nothing is executed.
    ///
    /// # Errors
    /// Those of the query's text, and of the statistics.
    pub fn explain(&self, text: &str, options: &QueryOptions) -> Result<String, QueryError> {
        Ok(self.explanation(text, options)?.to_string())
    }

    /// The plan of a query, with estimates; nothing is executed.
    ///
    /// # Errors
    /// As [`QueryEngine::explain`].
    pub fn explanation(&self, text: &str, options: &QueryOptions) -> Result<Explanation, QueryError> {
        let limits = limits(options);
        refuse_under_view(options)?;
        let Prepared { run, .. } = self.prepare(&QueryText::new(text), options, &limits)?;
        Ok(with_room(run.query.plan.room, || explain::explain(&run, None)))
    }

    /// Runs a query to its end, throws the rows away, and shows the plan as text, with what
    /// really happened.
    ///
    /// # Errors
    /// Those of running it.
    pub fn analyze(&self, text: &str, options: &QueryOptions) -> Result<String, QueryError> {
        Ok(self.analysis(text, options)?.to_string())
    }

    /// Runs a query to its end, throws the rows away, and returns the plan with what really
    /// happened.
    ///
    /// # Errors
    /// As [`QueryEngine::analyze`].
    pub fn analysis(&self, text: &str, options: &QueryOptions) -> Result<Explanation, QueryError> {
        let start = Instant::now();
        let limits = limits(options);
        refuse_under_view(options)?;
        let Prepared { template, mut run, text: reserved } =
            self.prepare(&QueryText::new(text), options, &limits)?;
        let planning = start.elapsed();
        run.profile = Some(Profile::new(run.query.plan.nodes));
        let making = self.making(&template, options);
        let root = making.operators(&mut run)?;
        run.announce_constants()?;
        let timing = Timing { template, begun: start };
        let mut result = QueryResult::new(timing, root, run, making, reserved);
        let start = Instant::now();
        let mut rows = 0;
        while let Some(batch) = result.next_batch()? {
            rows += batch.rows as u64;
        }
        let given_up = result.given_up();
        let run = result.into_run();
        let (execution, activity) = (start.elapsed(), run.activity());
        let outcome = Outcome { rows, planning, execution, activity, given_up };
        let told = with_room(run.query.plan.room, || explain::explain(&run, run.profile.as_ref()));
        Ok(Explanation { outcome: Some(outcome), ..told })
    }

    fn prepare(
        &self,
        text: &QueryText<'_>,
        options: &QueryOptions,
        limits: &Limits,
    ) -> Result<Prepared, QueryError> {
        let bytes = text.given().len();
        let least = self.shares(options).least;
        let (wait, sign) = (options.memory_wait, sign_of(&options.account));
        let slot = options.slot.as_deref();
        let demand = TextDemand { kind: TextKind::Bounded, bytes, least, wait, sign, slot };
        let (reserved, (template, params, source)) = self.with_text_memory(&demand, limits, |most| {
            let session = self.db.session()?;
            let session = match &options.account {
                Some(account) => session.charged_to(account),
                None => session,
            };
            let mut source = GraphSource::new(self.seen_session(session, options.view.as_ref()));
            let view = options.view.as_ref();
            let visible = view.map(|view| self.views.visible(view, &mut source, limits)).transpose()?;
            let request = QueryRequest { options, visible: visible.as_ref(), limits, text_bytes: most };
            let (template, params) = self.template(text, request, &mut source)?;
            Ok((template, params, source))
        })?;
        self.plan(template, params, source, options, limits, reserved)
    }

    /// Calls `parse` with the memory that a text's tree and plan may take, which is reserved, and
    /// with more of it if that was too little ([`check_memory`]).
    pub(crate) fn with_text_memory<T>(
        &self,
        demand: &TextDemand<'_>,
        limits: &Limits,
        mut parse: impl FnMut(usize) -> Result<T, QueryError>,
    ) -> Result<(Option<TextMemory>, T), QueryError> {
        let mut wanted = usual_bytes(demand.bytes);
        loop {
            let reserved = self.reserve_text(demand, wanted, limits)?;
            let is_bound = reserved.is_some() && matches!(demand.kind, TextKind::Bounded);
            match parse(if is_bound { wanted } else { usize::MAX }) {
                Err(QueryError::TooLarge { limit: TREE_BYTES, most, .. }) if is_bound => {
                    wanted = wanted.saturating_mul(2).max(most as usize);
                }
                done => return done.map(|done| (reserved, done)),
            }
        }
    }

    /// Reserves memory for the trees and the plan of a long text, and the `least` of its query.
    fn reserve_text(
        &self,
        demand: &TextDemand<'_>,
        wanted: usize,
        limits: &Limits,
    ) -> Result<Option<TextMemory>, QueryError> {
        let TextDemand { kind, bytes, least, wait, sign, slot } = *demand;
        if bytes <= SHORT_TEXT_BYTES {
            return Ok(None);
        }
        let (budget, pool) = (self.db.database().memory(), self.db.database().pool_bytes());
        let room = TextRoom { total: budget.total(), pool, least };
        let bytes = text_bytes(kind, bytes, wanted, room)?;
        let wait = wait.unwrap_or(MEMORY_WAIT);
        let what = "the text of a query";
        let mut reserved = self.waiting_for_memory(sign, slot, limits, |sleep_ns| {
            Ok(self.texts.reserve(budget, what, bytes + least, wait, limits, sleep_ns)?)
        })?;
        let least = (least > 0).then(|| reserved.split(least as u64));
        Ok(Some(TextMemory { budget: budget.clone(), reserved, least }))
    }

    fn plan(
        &self,
        template: Arc<Template>,
        params: Vec<GroundTerm>,
        mut source: GraphSource,
        options: &QueryOptions,
        limits: &Limits,
        mut text: Option<TextMemory>,
    ) -> Result<Prepared, QueryError> {
        let consts = template.resolve(&params, &mut source, limits)?;
        let costs = options.costs;
        let request = PlanRequest { known: &self.known, params: &params, consts: &consts, costs };
        let plan = template.plan(&request, &mut source, None, limits)?;
        let reserved = text.as_mut().and_then(|text| text.least.take());
        // the triples of an answer are a set
        let makes_triples = matches!(template.algebra.form, Form::Construct(_) | Form::Describe(..));
        let shares = self.shares(options);
        let shares = shares.gathering(plan.gathering(shares.worker / 4) + usize::from(makes_triples));
        let memory = self.admit(shares, options, limits, reserved)?;
        let is_plain = source.session.is_plain()?;
        let batches = BatchSizes::of(options.batch_rows, &plan, &memory)?;
        let algebra = template.algebra.clone();
        let graphs = |list: &Option<Vec<crate::algebra::Const>>| {
            list.as_ref().map(|l| l.iter().filter_map(|c| consts[c.0 as usize]).collect::<Vec<_>>())
        };
        let active = Active::new(&self.active);
        let is_volatile = template.is_volatile(&options.functions);
        // cores that work for other queries are not forked to
        let cores = match options.threads {
            _ if template.is_counted || batches.is_wide => 1,
            0 => self.cores,
            threads => threads,
        };
        let query = RunningQuery {
            default_graphs: graphs(&algebra.dataset.default),
            named_graphs: graphs(&algebra.dataset.named),
            algebra,
            plan: plan.clone(),
            params,
            consts,
            is_plain,
            batch: batches.rows,
            batches: Arc::new(Mutex::new(batches.held)),
            left_over: Arc::default(),
            threads: cores.saturating_sub(active.others).max(1),
            thread_work: options.thread_work.unwrap_or(THREAD_WORK),
            active: Arc::new(active),
            watch: Arc::new(Watch::new(&plan, !is_volatile, options.surprise_rows)),
            // reading the clock and calendar costs time
            now: if is_volatile { DateTime::now() } else { DateTime::MIN },
            warnings: template.warnings(&options.functions),
            functions: options.functions.clone(),
            is_volatile,
            longest: self.db.database().longest_string_bytes(),
            locals: Arc::new(LocalTerms::held_by(memory.held())),
            remote: options.remote.clone(),
            remote_wait: options.remote_wait.clone(),
            slot: options.slot.clone(),
            account: options.account.clone(),
            kept_patterns: self.known.patterns.clone(),
            shared_scans: self.scans.clone(),
            ranks: self.ranks.clone(),
        };
        let run = Run::first(Arc::new(query), source, limits.clone(), memory);
        Ok(Prepared { template, run, text })
    }

    /// The shares of a query that gathers rows.
    fn shares(&self, options: &QueryOptions) -> Shares {
        let db = self.db.database();
        Shares::new(db.memory().total(), db.pool_bytes(), options.memory)
    }

    /// The memory of a query. Waits until its least is free, unless that was reserved with the
    /// text.
    fn admit(
        &self,
        shares: Shares,
        options: &QueryOptions,
        limits: &Limits,
        least: Option<Reservation>,
    ) -> Result<MemoryShare, QueryError> {
        let budget = self.db.database().memory().clone();
        if let Some(least) = least {
            return Ok(MemoryShare::with_least(shares, budget, least));
        }
        let wait = options.memory_wait.unwrap_or(MEMORY_WAIT);
        let (sign, slot) = (sign_of(&options.account), options.slot.as_deref());
        self.waiting_for_memory(sign, slot, limits, |sleep_ns| {
            Ok(MemoryShare::admit(shares, budget, &self.line, wait, limits, sleep_ns)?)
        })
    }

    /// Queries that may wait for endpoints at the same time, each with what it holds of memory
    /// meanwhile. More of them should not begin.
    pub fn most_waiting(&self) -> usize {
        Shares::most_waiting(self.db.database().memory().total(), self.db.database().pool_bytes())
    }

    /// Calls `reserve` with what passes the time until there is memory. The wait is shown at
    /// `sign`; the `slot` is lent meanwhile.
    fn waiting_for_memory<T>(
        &self,
        sign: Option<&WaitSign>,
        slot: Option<&dyn QuerySlot>,
        limits: &Limits,
        reserve: impl FnOnce(&dyn Fn(u64)) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let database = self.db.database();
        let waits = MemoryWait::new(&database.store().upper_waits().memory, database.clock(), sign);
        let is_lent = Cell::new(false);
        let reserved = reserve(&|ns| {
            is_lent.set(is_lent.get() || slot.is_some_and(QuerySlot::lend_for_memory));
            waits.sleep_ns(ns);
        })?;
        drop(waits);
        if let Some(slot) = slot.filter(|_| is_lent.get()) {
            let _shown = sign.map(|sign| sign.show(WaitFor::Slot));
            if !slot.take_again(&|| limits.check().is_ok()) {
                limits.check()?;
                return Err(QueryError::Cancelled);
            }
        }
        Ok(reserved)
    }

    /// The template of a text, from the cache or new, and its parameters.
    fn template(
        &self,
        text: &QueryText<'_>,
        request: QueryRequest<'_>,
        source: &mut GraphSource,
    ) -> Result<(Arc<Template>, Vec<GroundTerm>), QueryError> {
        let QueryRequest { options, visible, limits, .. } = request;
        let bytes = text.given().len();
        let bound = bind::params(&options.bindings)?;
        if bytes > KEPT_TEXT_BYTES {
            let template = self.made(text, None, request, &bound, source)?;
            return Ok((Arc::new(template), bound));
        }
        let own;
        let shape = match visible.is_some() && names_graphs(text.given()) {
            true => {
                own = Shape::whole(text.given());
                &own
            }
            false => text.shape(),
        };
        let key = TemplateKey::new(shape.key, options, visible);
        let params: Vec<GroundTerm> = shape.params.iter().map(GroundTerm::of_text).chain(bound).collect();
        if let Some(template) = self.kept(&key, source, limits)? {
            return Ok((template, params));
        }
        let template = self.made(text, Some(shape), request, &params, source)?;
        let is_kept = bytes <= SHORT_TEXT_BYTES || !template.has_grown;
        Ok((if is_kept { self.keep(key, template) } else { Arc::new(template) }, params))
    }

    /// A new template of a text; its parameters are the constants of its shape, and then those of
    /// the request.
    fn made(
        &self,
        text: &QueryText<'_>,
        shape: Option<&Shape>,
        request: QueryRequest<'_>,
        params: &[GroundTerm],
        source: &mut GraphSource,
    ) -> Result<Template, QueryError> {
        let (text, bindings) = (text.given(), &request.options.bindings);
        let limits = TextLimits { tree_bytes: request.text_bytes, ..self.text_limits };
        let prefixes = KeptPrefixes(&request.options.prefixes);
        let parse = ParseOptions { shape, limits, ..parse_options(request.options, &prefixes) };
        syntax::with_query(text, &parse, |mut query| {
            check_memory(query_bytes(text.len(), &query), request.text_bytes)?;
            bind::bind_query(&mut query, bindings, params.len() - bindings.len())?;
            Template::new(&query, text.len(), request, params, self, source)
        })
    }

    /// The template of a key, if there is one that still holds for what the session sees.
    fn kept(
        &self,
        key: &TemplateKey,
        source: &mut GraphSource,
        limits: &Limits,
    ) -> Result<Option<Arc<Template>>, QueryError> {
        let Some(template) = self.templates.read().get(key).cloned() else { return Ok(None) };
        Ok(template.holds(source, limits)?.then_some(template))
    }

    fn keep(&self, key: TemplateKey, template: Template) -> Arc<Template> {
        let template = Arc::new(template);
        let mut templates = self.templates.write();
        let bytes: usize = templates.values().map(|template| template.text_bytes).sum();
        if templates.len() >= TEMPLATES || bytes >= TEMPLATE_BYTES {
            let mut ages: Vec<u64> = templates.values().map(|t| t.last_used()).collect();
            ages.sort_unstable();
            let median = ages.get(ages.len() / 2).copied().unwrap_or_default();
            templates.retain(|_, t| t.last_used() > median);
        }
        // a template of an older state is for this query alone
        if templates.get(&key).is_none_or(|kept| kept.txn() <= template.txn()) {
            templates.insert(key, template.clone());
        }
        template
    }
}

/// How the text of a query is parsed, but for its limits and shape.
fn parse_options<'a>(options: &'a QueryOptions, prefixes: &'a KeptPrefixes<'a>) -> ParseOptions<'a> {
    ParseOptions { base: options.base.as_deref(), prefixes: Some(prefixes), ..ParseOptions::default() }
}

/// The limits of a query that begins now.
fn limits(options: &QueryOptions) -> Limits {
    Limits { max_rows: options.max_rows, ..Limits::from_now(options.timeout, options.cancel.clone()) }
}

/// Refuses to explain under a view: a plan shows counts of all graphs.
fn refuse_under_view(options: &QueryOptions) -> Result<(), QueryError> {
    match options.view {
        Some(_) => {
            Err(QueryError::Forbidden { what: "a plan, because it counts rows of all graphs".to_owned() })
        }
        None => Ok(()),
    }
}

/// The variables a form puts out.
fn output(algebra: &Algebra) -> Vec<Var> {
    match &algebra.form {
        Form::Select(vars) | Form::Describe(vars, _) => vars.clone(),
        Form::Ask => Vec::new(),
        Form::Construct(template) => {
            let (mut vars, mut seen) = (Vec::new(), FxHashSet::default());
            for slot in template.iter().flatten() {
                vars.extend(slot.vars().into_iter().filter(|v| seen.insert(*v)));
            }
            vars
        }
    }
}
