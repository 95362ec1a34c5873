//! A running query: [`RunningQuery`], one for all its workers, and a [`Run`] for each of them.
//!
//! A query has one worker, and one more for each thread that a pipeline is forked to.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use oxsdatatypes::DateTime;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use snowmelt_database::Account;
use snowmelt_database::meters::Activity;
use snowmelt_graph::{AnyIndex, GraphError, Keys, TermId};

use super::shared::{SharedScan, SharedScans};
use super::source::GraphSource;
use super::{Profile, Result, Watch};
use crate::algebra::consts::{GroundTerm, ground};
use crate::algebra::{Algebra, Const, Expression, Var};
use crate::bounds::{Active, Held, Limits, MemoryShare};
use crate::error::QueryError;
use crate::exec::Batch;
use crate::expr::{Expr, compile};
use crate::functions::{CustomFunctions, KeptPatterns, Patterns};
use crate::plan::Plan;
use crate::remote::{QuerySlot, RemoteEndpoints, RemoteWait};
use crate::value::{LocalTerms, TermBounds, Terms, TextRanks};

/// Most bytes of decoded terms a worker keeps.
const TERM_CACHE_BYTES: usize = 16 << 20;

/// Rows of a batch: operators start small, so that a small answer costs little, and grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchRows {
    pub first: usize,
    pub most: usize,
    /// matches of a look-up that are taken at once
    pub matches: usize,
}

impl BatchRows {
    /// Rows of the batches of a worker that has so many bytes.
    pub fn within(worker_bytes: usize) -> Self {
        let most = (worker_bytes >> 9).clamp(1 << 9, 1 << 16);
        Self { first: most.min(1 << 10), most, matches: most.max(1 << 10) }
    }

    /// Bytes for a row on its way in so many operators with so many columns beyond few.
    fn row_bytes(operators: usize, many: usize) -> usize {
        /// Bytes for each row that an operator begins with, measured, with few columns.
        const ROW_BYTES: usize = 48;
        /// Bytes of a value: in the batch, in the one it was made of, in the one that grows.
        const VALUE_BYTES: usize = 24;
        (operators * ROW_BYTES).saturating_add(many * VALUE_BYTES).max(1)
    }

    /// Bytes of the largest batches of so many operators.
    fn bytes(self, operators: usize, many: usize) -> usize {
        self.most * Self::row_bytes(operators, many)
    }

    /// Rows on their way in a plan of so many operators, each of which has a batch and what it
    /// makes it of, with so many columns beyond few: together no more than half of `worker_bytes`.
    pub fn of_each(self, operators: usize, many: usize, worker_bytes: usize) -> Self {
        let row_bytes = Self::row_bytes(operators, many);
        let first = (worker_bytes / 2 / row_bytes).clamp(1, self.first.max(16));
        // larger batches come with rows, of which a long chain of operators makes fewer at a
        // time
        let most = match first < self.first {
            true if many > 0 => first,
            true => (8 * first).min(self.most),
            false => self.most,
        };
        assert!(0 < first && first <= most, "batches begin with {first} rows and grow to {most}");
        Self { first, most, matches: most.max(1 << 10) }
    }
}

/// The part of a pipeline's first scan.
#[derive(Clone)]
pub(crate) enum Part {
    /// these values of the column after its key
    Range(u64, u64),
    /// piece after piece of a scan that others take pieces of, too
    Pieces(Arc<SharedScan>),
}

/// Rows of the batches of a plan, and the memory of its columns.
pub(crate) struct BatchSizes {
    pub rows: BatchRows,
    /// of all batches
    pub held: Held,
    /// Threads would each hold many columns.
    pub is_wide: bool,
}

impl BatchSizes {
    /// Batches of `rows` rows, or else fitted to a plan.
    ///
    /// # Errors
    /// There is no memory for so many columns, however few rows they have.
    pub fn of(rows: Option<usize>, plan: &Plan, memory: &MemoryShare) -> Result<Self> {
        rows.map_or_else(|| Self::fitted(plan, memory), |rows| Ok(Self::fixed(rows)))
    }

    /// For a plan, whose operators all hold batches at the same time.
    fn fitted(plan: &Plan, memory: &MemoryShare) -> Result<Self> {
        /// Bytes of a column with few rows, in all batches of an operator; measured.
        const COLUMN_BYTES: usize = 320;
        let many = many_columns(plan.nodes, plan.columns);
        let worker_bytes = memory.worker_bytes();
        let mut held = memory.held();
        let rows = BatchRows::within(worker_bytes).of_each(plan.nodes, many, worker_bytes);
        // long chains of operators have larger batches only now and then
        let bytes = many * COLUMN_BYTES + rows.bytes(plan.nodes, many).min(worker_bytes / 2);
        held.set(bytes, "the columns of so many operators")?;
        Ok(Self { rows, held, is_wide: many > 0 })
    }

    /// Batches of `rows` rows, as the caller wants.
    fn fixed(rows: usize) -> Self {
        let rows = BatchRows { first: rows.max(1), most: rows.max(1), matches: rows.max(1) };
        Self { rows, held: Held::default(), is_wide: false }
    }
}

/// The columns of a plan beyond `FEW` for each of its operators.
fn many_columns(operators: usize, columns: usize) -> usize {
    const FEW: usize = 16;
    columns.saturating_sub(FEW * operators)
}

/// The query as all its workers see it: made once and never changed. One that begins anew is
/// another.
#[derive(Clone)]
pub(crate) struct RunningQuery {
    pub algebra: Arc<Algebra>,
    pub plan: Arc<Plan>,
    pub params: Vec<GroundTerm>,
    /// stored ids of the constants
    pub consts: Vec<Option<TermId>>,
    /// the graphs of the dataset, resolved
    pub default_graphs: Option<Vec<TermId>>,
    pub named_graphs: Option<Vec<TermId>>,
    /// all quads are in the default graph
    pub is_plain: bool,
    pub batch: BatchRows,
    /// threads it may use
    pub threads: usize,
    /// expected of each
    pub thread_work: Duration,
    pub now: DateTime,
    /// of the program
    pub functions: Arc<CustomFunctions>,
    /// functions that are not there
    pub warnings: Vec<String>,
    /// the same query on the same data may give something else
    pub is_volatile: bool,
    /// bytes of the longest term
    pub longest: usize,
    pub locals: Arc<LocalTerms>,
    /// endpoints elsewhere; none: none may be asked
    pub remote: Option<Arc<dyn RemoteEndpoints>>,
    /// how long those may be waited for
    pub remote_wait: Option<Arc<RemoteWait>>,
    /// lent while it waits for one
    pub slot: Option<Arc<dyn QuerySlot>>,
    /// where its waits are shown
    pub account: Option<Arc<Account>>,
    /// the engine's: patterns compiled before, and scans under way that others can join
    pub kept_patterns: Arc<KeptPatterns>,
    pub shared_scans: Arc<SharedScans>,
    /// and what it has learned about the order of texts
    pub ranks: Arc<TextRanks>,
    pub batches: Arc<Mutex<Held>>,
    /// activity of forked workers whose operator was gone before it took it in
    pub left_over: Arc<Mutex<Activity>>,
    /// its place among the queries under way
    pub active: Arc<Active>,
    /// its joins, until it gives rows
    pub watch: Arc<Watch>,
}

impl RunningQuery {
    /// The BASE of the query.
    pub fn base(&self) -> Option<oxiri::Iri<String>> {
        self.algebra.base.as_ref().and_then(|b| oxiri::Iri::parse(b.clone()).ok())
    }

    pub fn constant(&self, c: Const) -> Option<TermId> {
        self.consts[c.0 as usize]
    }

    pub fn constant_term(&self, c: Const) -> Cow<'_, GroundTerm> {
        ground(&self.algebra.consts[c.0 as usize], &self.params)
    }
}

/// A worker's part of a running query.
pub(crate) struct Run {
    pub query: Arc<RunningQuery>,
    pub source: GraphSource,
    pub terms: Terms,
    /// the patterns of its expressions
    pub patterns: Patterns,
    /// the query's; those of a forked worker also stop it with the others
    pub limits: Limits,
    pub memory: MemoryShare,
    /// a forked worker forks to none
    pub is_forked: bool,
    /// what is built now will be reset and run again: it is neither forked nor shared
    pub is_repeated: bool,
    /// the part of the first scan that is to be read: a forked worker's, or a shared scan
    pub part: Option<Part>,
    /// activity of the workers that were forked from it, as far as their operator took it in
    pub forked: Activity,
    /// what right sides are being evaluated for, by their row numbers' variables
    pub contexts: FxHashMap<Var, Batch>,
    /// keys of scans that are known before anything runs
    pub constant_keys: Vec<(AnyIndex, Vec<u64>)>,
    pub profile: Option<Profile>,
}

/// Bytes of terms that the first worker of a query keeps from batch to batch.
fn cache_bytes(memory: &MemoryShare) -> usize {
    (memory.worker_bytes() / 4).min(TERM_CACHE_BYTES)
}

/// The terms of a worker: see [`Run::new`].
fn terms(query: &RunningQuery, limits: &Limits, memory: &MemoryShare, cache: usize, counted: usize) -> Terms {
    let (limits, held, room) = (limits.clone(), memory.held(), 2 * cache);
    let bounds = TermBounds { limits, longest: query.longest, held, counted, cache, room };
    let terms = Terms::new(query.locals.clone(), query.now, query.base(), 0).guarded(bounds);
    terms.with_ranks(query.ranks.clone())
}

impl Run {
    /// The first worker of a query.
    pub fn first(query: Arc<RunningQuery>, source: GraphSource, limits: Limits, memory: MemoryShare) -> Self {
        assert_eq!(query.consts.len(), query.algebra.consts.len(), "each constant was looked up");
        let cache = cache_bytes(&memory);
        Self::new(query, source, limits, memory, cache, 0)
    }

    /// Gives back the memory of a plan that was given up. Nothing of it runs any more.
    pub fn let_go(&mut self) {
        self.contexts.clear();
        self.constant_keys.clear();
        self.part = None;
        self.patterns = Patterns::new(self.query.kept_patterns.clone(), self.memory.held());
        self.query.locals.clear();
        self.query.batches.lock().clear();
        self.terms = terms(&self.query, &self.limits, &self.memory, cache_bytes(&self.memory), 0);
    }

    /// Begins another plan of its query, after [`Run::let_go`].
    pub fn begin_anew(&mut self, query: RunningQuery) {
        self.terms = terms(&query, &self.limits, &self.memory, cache_bytes(&self.memory), 0);
        self.profile = self.profile.take().map(|_| Profile::new(query.plan.nodes));
        self.query = Arc::new(query);
    }

    /// A worker that keeps `cache` bytes of terms from batch to batch; for `counted` of them the
    /// query holds memory already.
    fn new(
        query: Arc<RunningQuery>,
        source: GraphSource,
        limits: Limits,
        memory: MemoryShare,
        cache: usize,
        counted: usize,
    ) -> Self {
        Self {
            terms: terms(&query, &limits, &memory, cache, counted),
            patterns: Patterns::new(query.kept_patterns.clone(), memory.held()),
            query,
            source,
            limits,
            memory,
            is_forked: false,
            is_repeated: false,
            part: None,
            forked: Activity::default(),
            contexts: FxHashMap::default(),
            constant_keys: Vec::new(),
            profile: None,
        }
    }

    /// A worker of another thread, as of the same moment; to be made on that thread.
    pub fn fork(&self, stop: Arc<AtomicBool>) -> impl FnOnce() -> Run + Send + 'static {
        assert!(!self.is_forked, "a forked worker forks to none");
        let (query, memory) = (self.query.clone(), self.memory.clone());
        let source = GraphSource::new(self.source.session.sibling());
        let limits = Limits { stop: Some(stop), ..self.limits.clone() };
        let profile = self.profile.as_ref().map(|profile| Profile::new(profile.operators.len()));
        move || {
            // half of what a worker takes is held for each thread
            let cache = (memory.worker_bytes() / 8).min(TERM_CACHE_BYTES);
            Run { is_forked: true, profile, ..Run::new(query, source, limits, memory, cache, cache) }
        }
    }

    /// Called by every operator for every batch.
    pub fn check(&self) -> Result<()> {
        Ok(self.limits.check()?)
    }

    /// The graphs that GRAPH can name in a query without FROM NAMED.
    pub fn all_named_graphs(&mut self) -> Result<Vec<TermId>> {
        match self.source.session.named_graphs(&self.limits) {
            Err(GraphError::Stopped) => self.check().and(Err(QueryError::Cancelled)),
            graphs => Ok(graphs?),
        }
    }

    /// The activity of this worker and of those it forked.
    pub fn activity(&self) -> Activity {
        let mut activity = self.source.session.activity();
        activity += self.forked;
        activity += *self.query.left_over.lock();
        activity
    }

    /// Announces the scans that have constant keys, all trees together.
    pub fn announce_constants(&mut self) -> Result<()> {
        let keys = std::mem::take(&mut self.constant_keys);
        if keys.len() < 2 || !keys.iter().any(|(index, _)| self.source.is_cold(*index)) {
            return Ok(());
        }
        let columns: Vec<Vec<&[u64]>> =
            keys.iter().map(|(_, key)| key.iter().map(std::slice::from_ref).collect()).collect();
        let lookups: Vec<(AnyIndex, Keys<'_>)> =
            keys.iter().zip(&columns).map(|((index, _), cols)| (*index, Keys::new(cols, None))).collect();
        self.source.announce(&lookups)
    }

    pub fn constant(&self, c: Const) -> Option<TermId> {
        self.query.constant(c)
    }

    /// The id of a constant in results: stored, inline or local.
    pub fn constant_or_local(&mut self, c: Const) -> TermId {
        self.constant(c)
            .unwrap_or_else(|| self.terms.intern(super::source::term_ref(&self.query.constant_term(c))))
    }

    /// An expression with the query's own constants, compiled for these columns.
    pub fn compile(&mut self, expr: &Expression, vars: &[Var]) -> Result<Expr> {
        let query = &self.query;
        let slot = |var: Var| vars.iter().position(|v| *v == var);
        let (params, functions, session) = (&query.params, &query.functions, &mut self.source.session);
        Ok(compile(expr, &slot, params, &mut self.terms, session, &mut self.patterns, functions)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_of_many_operators_and_columns_are_small() {
        let of = |operators: usize, width: usize| {
            let many = many_columns(operators, operators * width);
            let batch = BatchRows::within(4 << 20).of_each(operators, many, 4 << 20);
            (batch.first, batch.most)
        };
        assert_eq!(of(15, 16), (1024, 8192), "a query as people write it");
        assert_eq!(of(1000, 2), (43, 344));
        assert_eq!(of(1000, 500), (1, 1), "half a million values in each row");
        assert_eq!(of(0, 0), (1024, 8192));
    }
}
