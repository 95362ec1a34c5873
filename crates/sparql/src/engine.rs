//! The engine: query text in, results out.
//!
//! 1. The text is split into shape and parameters; the shape's [`Template`] (parsed,
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
mod query_text;
mod reads;
mod result;
mod template;
#[cfg(test)]
mod tests;
mod view;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

use oxsdatatypes::DateTime;
use parking_lot::{Mutex, RwLock};
use rustc_hash::{FxHashMap, FxHashSet};
use snowmelt_database::meters::Activity;
use snowmelt_database::{Account, Reservation, WaitSign};
use snowmelt_graph::{GraphDatabase, GraphView, Namespaces, Session, Term};
use spargebra::Query;
use spargebra::term::NamedNode;

use crate::algebra::{Algebra, Form, Var};
use crate::bounds::{
    Active, Deep, Limits, Line, MemoryShare, MemoryWait, Shares, TextKind, TextLimits, TextMemory, TextRoom,
    text_bytes, with_room,
};
use crate::error::QueryError;
use crate::exec::source::GraphSource;
use crate::exec::{BatchSizes, Boxed, Profile, Run, RunningQuery, SharedScans, build, build_input};
use crate::functions::{CustomFunctions, KeptPatterns};
use crate::text::parameter::GroundTerm;
use crate::text::prefixes::missing_declarations;
use crate::text::weight::Weight;
use crate::text::{bind, shape, syntax};
use crate::value::LocalTerms;
use query_text::QueryText;
use result::Timing;
use template::Template;
use view::{Views, VisibleGraphs, names_graphs};

pub use describe::DescribeForm;
pub use explanation::{Assumptions, Explanation, Measured, Outcome, PlanEstimate, PlanStep, Residence};
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
    /// Whether the costs of its plan include reads.
    pub costs: PlanCosts,
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
    templates: RwLock<FxHashMap<Box<str>, Arc<Template>>>,
    predicates: Mutex<facts::Predicates>,
    /// queries under way
    active: Arc<AtomicUsize>,
    /// queries that wait for memory
    line: Line,
    /// and those with long texts
    texts: Line,
    cores: usize,
    /// scans under way that others can join
    scans: Arc<SharedScans>,
    patterns: Arc<KeptPatterns>,
    text_limits: TextLimits,
    views: Views,
}

/// How a query is to be run, the graphs that it may see, and its limits.
#[derive(Clone, Copy)]
struct QueryRequest<'a> {
    options: &'a QueryOptions,
    visible: Option<&'a VisibleGraphs>,
    limits: &'a Limits,
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
        Self {
            text_limits,
            db,
            templates: RwLock::default(),
            predicates: Mutex::default(),
            active: Arc::default(),
            line: Line::default(),
            texts: Line::of_all_sizes(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            scans: Arc::default(),
            patterns: Arc::default(),
            views: Views::default(),
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
        let begun = Instant::now();
        let limits = limits(options);
        declaring(text, options, |text| {
            self.start(self.prepare(text, options, &limits)?, text, options, begun)
        })
    }

    /// The recent duration of queries of this text's shape, from the text to the end of the result:
    /// that of the longest, which decays with each shorter one. `None` if none is remembered.
    pub fn expected(&self, text: &str, options: &QueryOptions) -> Option<Duration> {
        if text.len() > KEPT_TEXT_BYTES || options.view.is_some() {
            return None;
        }
        let text = missing_declarations(text, &options.prefixes) + text;
        let text = text.as_str();
        let shaped = shape::shape(text);
        let text = shaped.as_ref().map_or(text, |shaped| &shaped.text);
        self.templates.read().get(&*cache_key(text, options, None))?.took()
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
        declaring(text, options, |text| {
            self.parsed(&QueryText::new(text), options.base.as_deref(), |mut query, parsed| {
                bind::bind_query(&mut query, &options.bindings, 0)?;
                self.query_in(session, &query, parsed, options)
            })
        })
    }

    /// The limits on texts.
    pub(crate) fn text_limits(&self) -> &TextLimits {
        &self.text_limits
    }

    /// Begins a parsed query on what a session sees: the WHERE of an update. Nothing of it is
    /// kept. The thread has `room` for it.
    pub(crate) fn query_in(
        &self,
        session: Session,
        query: &Query,
        parsed: Parsed<'_>,
        options: &QueryOptions,
    ) -> Result<QueryResult, QueryError> {
        let begun = Instant::now();
        let mut source = GraphSource::new(self.seen_session(session, options.view.as_ref()));
        let limits = limits(options);
        let text = parsed.text;
        let params = bind::params(&options.bindings)?;
        let view = options.view.as_ref();
        let visible = view.map(|view| VisibleGraphs::resolve(view, &mut source, &limits)).transpose()?;
        let request = QueryRequest { options, visible: visible.as_ref(), limits: &limits };
        let template = Template::new(query, parsed, request, &params, self, &mut source)?;
        let prepared = self.plan(Arc::new(template), params, source, options, &limits, None)?;
        self.start(prepared, text, options, begun)
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
        text: &str,
        options: &QueryOptions,
        begun: Instant,
    ) -> Result<QueryResult, QueryError> {
        let Prepared { template, mut run, text: reserved } = prepared;
        let root = runnable(&mut run, text)?;
        let planning = begun.elapsed();
        run.announce_constants()?;
        let mut result = QueryResult::new(Timing { template, begun }, root, run, options, reserved)?;
        (result.planning, result.told) = (planning, options.rows.clone());
        Ok(result)
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
        let prepared = declaring(text, options, |text| self.prepare(text, options, &limits));
        let Prepared { run, .. } = prepared?;
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
        let prepared = declaring(text, options, |text| self.prepare(text, options, &limits));
        let Prepared { template, mut run, text: reserved } = prepared?;
        let planning = start.elapsed();
        run.profile = Some(Profile::new(run.query.plan.nodes));
        let root = runnable(&mut run, text)?;
        run.announce_constants()?;
        let timing = Timing { template, begun: start };
        let mut result = QueryResult::new(timing, root, run, options, reserved)?;
        let start = Instant::now();
        let mut rows = 0;
        while let Some(batch) = result.next_batch()? {
            rows += batch.rows as u64;
        }
        let run = result.into_run();
        let outcome = Outcome { rows, planning, execution: start.elapsed(), activity: run.activity() };
        let told = with_room(run.query.plan.room, || explain::explain(&run, run.profile.as_ref()));
        Ok(Explanation { outcome: Some(outcome), ..told })
    }

    fn prepare(&self, text: &str, options: &QueryOptions, limits: &Limits) -> Result<Prepared, QueryError> {
        let text = &QueryText::new(text);
        let bytes = text.text.len();
        if bytes > SHORT_TEXT_BYTES {
            // A text beyond a limit is told which one.
            text.measure(&self.text_limits)?;
        }
        let least = self.shares(options).least;
        let (wait, sign) = (options.memory_wait, sign_of(&options.account));
        let demand = TextDemand { kind: TextKind::Bounded, bytes, least, wait, sign };
        let reserved = self.reserve_text(demand, || text.weight(), limits)?;
        let session = self.db.session()?;
        let session = match &options.account {
            Some(account) => session.charged_to(account),
            None => session,
        };
        let mut source = GraphSource::new(self.seen_session(session, options.view.as_ref()));
        let view = options.view.as_ref();
        let visible = view.map(|view| self.views.visible(view, &mut source, limits)).transpose()?;
        let request = QueryRequest { options, visible: visible.as_ref(), limits };
        let (template, params) = self.template(text, request, &mut source)?;
        self.plan(template, params, source, options, limits, reserved)
    }

    /// Reserves memory for the trees and the plan of a long text, and the `least` of its query.
    pub(crate) fn reserve_text(
        &self,
        demand: TextDemand<'_>,
        weigh: impl FnOnce() -> Weight,
        limits: &Limits,
    ) -> Result<Option<TextMemory>, QueryError> {
        let TextDemand { kind, bytes, least, wait, sign } = demand;
        if bytes <= SHORT_TEXT_BYTES {
            return Ok(None);
        }
        let (budget, pool) = (self.db.database().memory(), self.db.database().pool_bytes());
        let room = TextRoom { total: budget.total(), pool, least };
        let bytes = text_bytes(kind, bytes, weigh().bytes(), room)?;
        let wait = wait.unwrap_or(MEMORY_WAIT);
        let waits = self.memory_waiting(sign);
        let sleep_ns = |ns| waits.sleep_ns(ns);
        let what = "the text of a query";
        let mut reserved = self.texts.reserve(budget, what, bytes + least, wait, limits, &sleep_ns)?;
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
        let plan = template.plan(self, &params, &consts, &mut source, options.costs, limits)?;
        let reserved = text.as_mut().and_then(|text| text.least.take());
        // the triples of an answer are a set
        let makes_triples = matches!(template.algebra.form, Form::Construct(_) | Form::Describe(..));
        let shares = self.shares(options);
        let shares = shares.gathering(plan.gathering(shares.worker / 4) + usize::from(makes_triples));
        let memory = self.admit(shares, options, limits, reserved)?;
        let is_plain = source.session.is_plain()?;
        let batches = match options.batch_rows {
            Some(rows) => BatchSizes::fixed(rows),
            None => BatchSizes::fitted(&plan, &memory)?,
        };
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
            batches: batches.held,
            threads: cores.saturating_sub(active.others).max(1),
            active,
            // reading the clock and calendar costs time
            now: if is_volatile { DateTime::now() } else { DateTime::MIN },
            warnings: template.warnings(&options.functions),
            functions: options.functions.clone(),
            is_volatile,
            longest: self.db.database().longest_string_bytes(),
            locals: Arc::new(LocalTerms::held_by(memory.held())),
            kept_patterns: self.patterns.clone(),
            shared_scans: self.scans.clone(),
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
        let waits = self.memory_waiting(sign_of(&options.account));
        Ok(MemoryShare::admit(shares, budget, &self.line, wait, limits, |ns| waits.sleep_ns(ns))?)
    }

    /// The wait for memory of a request whose waits are shown at `sign`.
    fn memory_waiting<'a>(&'a self, sign: Option<&'a WaitSign>) -> MemoryWait<'a> {
        MemoryWait::new(&self.db.database().store().upper_waits().memory, self.db.database().clock(), sign)
    }

    /// The template of a text, from the cache or new, and its parameters.
    fn template(
        &self,
        text: &QueryText<'_>,
        request: QueryRequest<'_>,
        source: &mut GraphSource,
    ) -> Result<(Arc<Template>, Vec<GroundTerm>), QueryError> {
        let QueryRequest { options, visible, limits } = request;
        let bytes = text.text.len();
        let short = bytes <= KEPT_TEXT_BYTES && (bytes <= SHORT_TEXT_BYTES || !text.weight().grows());
        let bound = bind::params(&options.bindings)?;
        let has_shape = short && (visible.is_none() || !names_graphs(text.text));
        if let Some(shaped) = if has_shape { shape::shape(text.text) } else { None } {
            let key = cache_key(&shaped.text, options, visible);
            let params = [shaped.params, bound.clone()].concat();
            if let Some(template) = self.kept(&key, source, limits)? {
                return Ok((template, params));
            }
            text.measure(&self.text_limits)?;
            // a text that parses only as it was written is kept as it was written
            if let Some(template) = self.shaped_template(&shaped.text, &params, text, request, source)? {
                return Ok((self.keep(key, template), params));
            }
        }
        let key = cache_key(if short { text.text } else { "" }, options, visible);
        if short && let Some(template) = self.kept(&key, source, limits)? {
            return Ok((template, bound));
        }
        let template = self.parsed(text, options.base.as_deref(), |mut query, parsed| {
            bind::bind_query(&mut query, &options.bindings, 0)?;
            Template::new(&query, parsed, request, &bound, self, source)
        })?;
        Ok((if short { self.keep(key, template) } else { Arc::new(template) }, bound))
    }

    /// The template of a text without its constants, given that and the parameters; `None`
    /// where that is no query.
    fn shaped_template(
        &self,
        shaped: &str,
        params: &[GroundTerm],
        text: &QueryText<'_>,
        request: QueryRequest<'_>,
        source: &mut GraphSource,
    ) -> Result<Option<Template>, QueryError> {
        let options = request.options;
        let mut is_query = false;
        // measured on its own: where it was cut wrongly, it is another text
        let shaped = QueryText::new(shaped);
        let made = self.parsed(&shaped, options.base.as_deref(), |mut query, parsed| {
            is_query = true;
            bind::bind_query(&mut query, &options.bindings, params.len() - options.bindings.len())?;
            let parsed = Parsed { text: text.text, ..parsed };
            Template::new(&query, parsed, request, params, self, source).map(Some)
        });
        if is_query { made } else { Ok(None) }
    }

    /// Parses a text as a query, and calls `then` with room for what goes over its tree.
    fn parsed<T>(
        &self,
        text: &QueryText<'_>,
        base: Option<&str>,
        then: impl FnOnce(Query, Parsed<'_>) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let apart = text.apart();
        let (parsed, described, measure) = match apart.iris(base) {
            Some(described) => (&*apart.text, described, text.measure(&self.text_limits)?),
            None => (text.text, Vec::new(), self.text_limits.measure(text.text)?),
        };
        let room = measure.stack_bytes();
        with_room(room, || {
            let query = syntax::parse(parsed, base)?;
            then(query, Parsed { text: text.text, room, described: &described })
        })
    }

    /// The template of a key, if there is one that still holds for what the session sees.
    fn kept(
        &self,
        key: &str,
        source: &mut GraphSource,
        limits: &Limits,
    ) -> Result<Option<Arc<Template>>, QueryError> {
        let Some(template) = self.templates.read().get(key).cloned() else { return Ok(None) };
        Ok(template.holds(source, limits)?.then_some(template))
    }

    fn keep(&self, key: String, template: Template) -> Arc<Template> {
        let template = Arc::new(template);
        let mut templates = self.templates.write();
        let bytes: usize = templates.keys().map(|key| key.len()).sum();
        if templates.len() >= TEMPLATES || bytes >= TEMPLATE_BYTES {
            let mut ages: Vec<u64> = templates.values().map(|t| t.last_used()).collect();
            ages.sort_unstable();
            let median = ages.get(ages.len() / 2).copied().unwrap_or_default();
            templates.retain(|_, t| t.last_used() > median);
        }
        // a template of an older state is for this query alone
        if templates.get(&*key).is_none_or(|kept| kept.txn() <= template.txn()) {
            templates.insert(key.into_boxed_str(), template.clone());
        }
        template
    }
}

/// A text that was parsed: for the places of errors, with the stack bytes that going over its
/// tree takes.
#[derive(Clone, Copy)]
pub(crate) struct Parsed<'a> {
    pub text: &'a str,
    pub room: usize,
    /// IRIs that DESCRIBE names beside those in the tree
    pub described: &'a [NamedNode],
}

/// Does something with a text behind declarations of the prefixes that it may assume. Places in
/// errors are those of the text alone.
fn declaring<T>(
    text: &str,
    options: &QueryOptions,
    f: impl FnOnce(&str) -> Result<T, QueryError>,
) -> Result<T, QueryError> {
    let missing = missing_declarations(text, &options.prefixes);
    if missing.is_empty() {
        return f(text);
    }
    let shift = missing.chars().count();
    f(&(missing + text)).map_err(|error| {
        error.placed(|line, column| match line {
            1 => (1, column.saturating_sub(shift).max(1)),
            line => (line, column),
        })
    })
}

/// The limits of a query that begins now.
fn limits(options: &QueryOptions) -> Limits {
    Limits { max_rows: options.max_rows, ..Limits::from_now(options.timeout, options.cancel.clone()) }
}

/// The operators of a query.
fn runnable(run: &mut Run, text: &str) -> Result<Deep<Boxed>, QueryError> {
    let plan = run.query.plan.clone();
    with_room(plan.room, || {
        // ASK needs one row
        let one_is_enough = matches!(run.query.algebra.form, Form::Ask);
        let root = if one_is_enough { build(&plan.root, run) } else { build_input(&plan.root, run) };
        let root = root.map_err(|e| locate(e, text))?;
        Ok(Deep::new(root, plan.room))
    })
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

/// The cache's key: options that change the algebra come first.
fn cache_key(text: &str, options: &QueryOptions, visible: Option<&VisibleGraphs>) -> String {
    let mut key = String::with_capacity(text.len() + 8);
    for part in options.base.iter().chain(&options.default_graphs) {
        key.push_str(part);
        key.push('\u{1}');
    }
    key.push('\u{2}');
    for part in &options.named_graphs {
        key.push_str(part);
        key.push('\u{1}');
    }
    key.push('\u{2}');
    key.push_str(&bind::key(&options.bindings));
    key.push('\u{2}');
    if let Some(visible) = visible {
        key.push_str(&visible.number.to_string());
    }
    key.push('\u{2}');
    key.push_str(text);
    key
}

/// Gives an unsupported function its place in the text.
fn locate(error: QueryError, text: &str) -> QueryError {
    match error {
        QueryError::Unsupported { construct, line: 0, .. } => {
            let word = construct.split_whitespace().last().unwrap_or("").trim_matches(['<', '>']).to_owned();
            let offset = crate::text::keyword::find_keyword(text, &word).unwrap_or(0);
            QueryError::unsupported_at(text, offset, construct)
        }
        other => other,
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
                if let crate::algebra::TemplateSlot::Var(v) = slot
                    && seen.insert(*v)
                {
                    vars.push(*v);
                }
            }
            vars
        }
    }
}
