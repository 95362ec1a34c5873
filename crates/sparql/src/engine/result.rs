//! A query's result: batches as they are asked for, or written out whole.

use std::collections::VecDeque;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use snowmelt_database::meters::Activity;
use snowmelt_graph::{Namespaces, Term, TermId, TermRef};

use super::facts::KnownData;
use super::graph::Triples;
use super::template::{PlanRequest, Template};
use super::{DescribeForm, PlanCosts};
use crate::algebra::Form;
use crate::bounds::{Deep, MemoryShare, TextMemory, with_room};
use crate::error::QueryError;
use crate::exec::{Batch, BatchSizes, Boxed, Distinct, Run, RunningQuery, Watch, build, build_input};
use crate::plan::Surprise;
use crate::results::{GraphWriter, RdfVersion, ResultFormat, SolutionWriter, TableStyle, write_boolean};
use crate::value::LocalTerms;

/// Kinds of results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueryKind {
    /// Rows of bindings: see [`QueryResult::variables`].
    Solutions,
    /// Yes or no: see [`QueryResult::answer`].
    Boolean,
    /// Triples: batches of three columns.
    Graph,
}

/// Rows written, and their cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// Solutions or triples; 1 for a boolean.
    pub rows: u64,
    /// Reads and time of the query.
    pub activity: Activity,
    /// Time until its first operator began.
    pub planning: Duration,
}

/// The memory of a query under way, for a caller that lets it wait.
#[derive(Clone)]
pub struct QueryMemory(MemoryShare);

impl QueryMemory {
    /// Lends other queries the memory that this one has reserved and does not use: for the time its
    /// client does not read.
    pub fn lend(&self) {
        self.0.lend();
    }

    /// Reserves the least memory of a query again; `false` if there is no room for it now. The
    /// query can go on without, and may then run out of memory.
    pub fn take_back(&self) -> bool {
        self.0.take_back()
    }

    /// Most bytes that its operators have held at once.
    pub fn most_bytes(&self) -> usize {
        self.0.most()
    }
}

/// Rows of terms; `None` where a variable is unbound. After an error there are no more.
pub struct TermRows {
    result: QueryResult,
    /// The batch being decoded, and its rows that are not.
    batch: Option<(Batch, Range<usize>)>,
    decoded: VecDeque<Vec<Option<Term>>>,
    /// rows decoded together: few where texts are long
    at_once: usize,
}

/// Bytes of text decoded ahead of the caller, about.
const DECODED_BYTES: usize = 1 << 18;
/// Most rows decoded ahead of the caller.
const DECODED_ROWS: usize = 1024;

impl TermRows {
    /// The result they are from.
    pub fn result(&self) -> &QueryResult {
        &self.result
    }

    /// The next row; `None` at the end.
    ///
    /// # Errors
    /// Those of running the query.
    pub fn next_row(&mut self) -> Result<Option<Vec<Option<Term>>>, QueryError> {
        while self.decoded.is_empty() {
            let (batch, rest) = match self.batch.take() {
                Some(under_way) => under_way,
                None => {
                    let Some(batch) = self.result.next_batch()? else { return Ok(None) };
                    self.result.run.terms.begin_batch();
                    let rows = 0..batch.rows;
                    (batch, rows)
                }
            };
            self.decode(&batch, rest.start..rest.end.min(rest.start + self.at_once))?;
            let next = rest.start + self.decoded.len();
            if next < rest.end {
                self.batch = Some((batch, next..rest.end));
            }
        }
        Ok(self.decoded.pop_front())
    }

    /// Decodes the first of some rows: one, and others until their texts are long.
    fn decode(&mut self, batch: &Batch, rows: Range<usize>) -> Result<(), QueryError> {
        let Run { terms, source, .. } = &mut self.result.run;
        let (decoded, mut bytes) = (&mut self.decoded, 0);
        terms.in_parts(rows.clone(), &mut |terms, part| {
            // a part that is begun again
            decoded.truncate(part.start - rows.start);
            let ids = batch.cols.iter().flat_map(|c| &c[part.clone()]).copied();
            terms.prefetch(&mut source.session, ids)?;
            for row in part {
                if bytes > DECODED_BYTES && !decoded.is_empty() {
                    break;
                }
                let term = |ids: &Vec<TermId>| terms.with_term(ids[row], |t| t.to_owned());
                let cells: Vec<Option<Term>> = batch.cols.iter().map(term).collect();
                bytes += cells.iter().flatten().map(text_bytes).sum::<usize>();
                decoded.push_back(cells);
            }
            Ok::<_, QueryError>(())
        })?;
        self.at_once = match bytes {
            bytes if bytes > DECODED_BYTES => (self.at_once / 2).max(1),
            _ => (self.at_once * 2).min(DECODED_ROWS),
        };
        Ok(())
    }
}

fn text_bytes(term: &Term) -> usize {
    match term {
        Term::Iri(text) | Term::Blank(text) | Term::Literal { lexical: text, .. } => text.len(),
        Term::Triple(triple) => snowmelt_graph::triple_bytes(triple),
    }
}

/// Tells the template how long a query took.
pub(super) struct Timing {
    pub template: Arc<Template>,
    pub begun: Instant,
}

impl Drop for Timing {
    fn drop(&mut self) {
        self.template.has_taken(self.begun.elapsed());
    }
}

/// Makes the plan of a query runnable, and a better one.
pub(super) struct Making {
    pub template: Arc<Template>,
    pub known: Arc<KnownData>,
    pub costs: PlanCosts,
    pub batch_rows: Option<usize>,
    pub surprise_rows: Option<u64>,
    pub describe: DescribeForm,
    pub triples_are_distinct: bool,
}

impl Making {
    /// The operators of a query.
    pub fn operators(&self, run: &mut Run) -> Result<Deep<Boxed>, QueryError> {
        let plan = run.query.plan.clone();
        let form = &self.template.algebra.form;
        let mut root = with_room(plan.room, || {
            // ASK needs one row
            let one_is_enough = matches!(form, Form::Ask);
            let root = if one_is_enough { build(&plan.root, run) } else { build_input(&plan.root, run) };
            Ok::<_, QueryError>(Deep::new(root?, plan.room))
        })?;
        if let Form::Construct(_) | Form::Describe(..) = form {
            let template = Arc::clone(&self.template);
            root = root.map(|root| Box::new(Triples::new(root, template, self.describe, run)));
            // CONSTRUCT and DESCRIBE give a set of triples
            if !self.triples_are_distinct {
                root = root.map(|root| Box::new(Distinct::new(root, false, run.memory.held())));
            }
        }
        Ok(root)
    }

    /// The query with a plan that knows what surprised the one before.
    fn again(&self, run: &mut Run, surprise: &Surprise) -> Result<RunningQuery, QueryError> {
        let Run { query, source, limits, .. } = run;
        let learned = query.plan.learned.with(surprise);
        let (params, consts, costs) = (&query.params, &query.consts, self.costs);
        let request = PlanRequest { known: &self.known, params, consts, costs };
        let plan = self.template.plan(&request, source, Some(learned), limits)?;
        let batches = BatchSizes::of(self.batch_rows, &plan, &run.memory)?;
        Ok(RunningQuery {
            // the same work would be the same surprise
            watch: Arc::new(Watch::new(&plan, !plan.root.works_as(&query.plan.root), self.surprise_rows)),
            locals: Arc::new(LocalTerms::held_by(run.memory.held())),
            plan,
            batch: batches.rows,
            batches: Arc::new(Mutex::new(batches.held)),
            threads: if batches.is_wide { 1 } else { query.threads },
            ..RunningQuery::clone(query)
        })
    }
}

/// A result under way.
pub struct QueryResult {
    kind: QueryKind,
    variables: Vec<String>,
    /// there but for when it could not be replaced
    root: Option<Deep<Boxed>>,
    run: Run,
    making: Making,
    /// plans that were given up
    given_up: u32,
    rows: u64,
    /// set to the number of rows
    pub(super) told: Option<Arc<AtomicU64>>,
    pub(super) planning: Duration,
    #[expect(dead_code, reason = "held for its drop")]
    timing: Timing,
    #[expect(dead_code, reason = "held for its drop")]
    text: Option<TextMemory>,
}

impl QueryResult {
    pub(super) fn new(
        timing: Timing,
        root: Deep<Boxed>,
        run: Run,
        making: Making,
        text: Option<TextMemory>,
    ) -> Self {
        let template = &timing.template;
        let name = |v: &crate::algebra::Var| template.algebra.names[v.0 as usize].clone();
        let (kind, variables) = match &template.algebra.form {
            Form::Select(vars) => (QueryKind::Solutions, vars.iter().map(name).collect()),
            Form::Ask => (QueryKind::Boolean, Vec::new()),
            Form::Construct(_) | Form::Describe(..) => (QueryKind::Graph, Vec::new()),
        };
        let (root, planning) = (Some(root), Duration::ZERO);
        Self { kind, variables, root, run, making, given_up: 0, rows: 0, told: None, planning, timing, text }
    }

    /// The kind of result.
    pub fn kind(&self) -> QueryKind {
        self.kind
    }

    /// The names of the columns, without question mark; none unless there are solutions.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The transaction that it reads as of.
    pub fn txn(&self) -> u64 {
        self.run.source.txn()
    }

    /// Whether the same query on the same data may give something else: it calls NOW, RAND, UUID,
    /// STRUUID or BNODE, or a function of the program that is not deterministic.
    pub fn is_volatile(&self) -> bool {
        self.run.query.is_volatile
    }

    /// Functions that the query calls and that are not there: a sentence for each. Each call of one
    /// is an error, which leaves its value unbound.
    pub fn warnings(&self) -> &[String] {
        &self.run.query.warnings
    }

    /// Its memory.
    pub fn memory(&self) -> QueryMemory {
        QueryMemory(self.run.memory.clone())
    }

    /// Reads and time so far.
    pub fn activity(&self) -> Activity {
        self.run.activity()
    }

    /// Time until the operators were ready to run: to parse the text or find a template of its
    /// shape, to resolve constants, and to plan if no plan was found.
    pub fn planning(&self) -> Duration {
        self.planning
    }

    pub(super) fn into_run(self) -> Run {
        self.run
    }

    /// Plans of it that were given up, since far more rows came than were expected.
    pub(super) fn given_up(&self) -> u32 {
        self.given_up
    }

    /// Begins anew, with a plan that knows what surprised the one before.
    fn begin_anew(&mut self, surprise: &Surprise) -> Result<(), QueryError> {
        // its threads end, and what it holds is free
        self.root = None;
        let Self { run, making, .. } = self;
        run.check()?;
        run.let_go();
        let query = making.again(run, surprise)?;
        run.begin_anew(query);
        let root = making.operators(run)?;
        run.announce_constants()?;
        self.root = Some(root);
        self.given_up += 1;
        Ok(())
    }

    /// The next rows, never an empty batch; `None` at the end. Columns are those of the
    /// variables, or subject, predicate and object; a boolean true is one row without columns.
    ///
    /// # Errors
    /// Those of running the query; there is nothing after an error.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, QueryError> {
        loop {
            if self.kind == QueryKind::Boolean && self.rows > 0 {
                return Ok(None);
            }
            let run = &mut self.run;
            // it could not begin anew: that was told
            let Some(root) = self.root.as_mut() else { return Ok(None) };
            let next = root.with(|root| root.next(run));
            if self.rows == 0
                && let Some(surprise) = run.query.watch.settle()
            {
                self.begin_anew(&surprise)?;
                continue;
            }
            let next = next?;
            // Terms that there was no memory for are unbound: no answer may come of them.
            self.run.terms.fault()?;
            let Some(mut batch) = next else { return Ok(None) };
            if self.kind == QueryKind::Boolean {
                batch = Batch::unit();
            }
            if batch.rows == 0 {
                continue;
            }
            batch.check();
            assert!(
                self.kind != QueryKind::Solutions || batch.cols.len() == self.variables.len(),
                "a column for each variable"
            );
            self.rows += batch.rows as u64;
            if let Some(told) = &self.told {
                told.store(self.rows, Ordering::Relaxed);
            }
            if let Some(most) = self.run.limits.max_rows
                && self.rows > most
            {
                return Err(QueryError::Rows(most));
            }
            return Ok(Some(batch));
        }
    }

    /// Replaces query-local ids by those of the stored terms that are equal, and makes the rest
    /// readable by [`QueryResult::with_term`] until the next call.
    pub(crate) fn resolve_locals(&mut self, cols: &mut [Vec<TermId>]) -> Result<(), QueryError> {
        let Run { terms, source, .. } = &mut self.run;
        terms.begin_batch();
        for col in cols.iter_mut() {
            terms.to_stored(&mut source.session, col)?;
        }
        let local = cols.iter().flatten().copied().filter(|id| id.kind() == snowmelt_graph::TermKind::Local);
        Ok(terms.prefetch_whole(&mut source.session, local)?)
    }

    /// Calls `f` with the term of an id that was made readable; `None` if it stands for none.
    pub(crate) fn with_term<R>(&self, id: TermId, f: impl FnOnce(TermRef<'_>) -> R) -> Option<R> {
        self.run.terms.with_term(id, f)
    }

    /// The answer of an ASK query.
    ///
    /// # Errors
    /// Those of running it.
    pub fn answer(&mut self) -> Result<bool, QueryError> {
        Ok(self.next_batch()?.is_some())
    }

    /// Calls `f` with the terms of each row: `None` where unbound. A convenience for few rows.
    ///
    /// # Errors
    /// Those of running the query.
    pub fn for_each(mut self, mut f: impl FnMut(&[Option<snowmelt_graph::Term>])) -> Result<(), QueryError> {
        while let Some(batch) = self.next_batch()? {
            let Run { terms, source, .. } = &mut self.run;
            terms.begin_batch();
            terms.in_parts(0..batch.rows, &mut |terms, part| {
                let ids = batch.cols.iter().flat_map(|c| &c[part.clone()]).copied();
                terms.prefetch(&mut source.session, ids)?;
                for row in part {
                    let cells: Vec<_> =
                        batch.cols.iter().map(|c| terms.with_term(c[row], |t| t.to_owned())).collect();
                    f(&cells);
                }
                Ok::<_, QueryError>(())
            })?;
        }
        Ok(())
    }

    /// The terms row by row, decoded some rows at a time.
    pub fn into_rows(self) -> TermRows {
        TermRows { result: self, batch: None, decoded: VecDeque::new(), at_once: 16 }
    }

    /// Writes the whole result.
    ///
    /// # Errors
    /// Those of running the query and of writing, among them a format that does not fit the
    /// kind.
    pub fn write(self, format: ResultFormat, out: &mut dyn Write) -> Result<Written, QueryError> {
        self.write_with(format, RdfVersion::default(), &Namespaces::default(), out)
    }

    /// Writes the whole result for a reader that knows a version of RDF; triples in Turtle and
    /// TriG with these prefixes.
    ///
    /// # Errors
    /// As [`QueryResult::write`]; and [`QueryError::Unwritable`] for a term that this version
    /// lacks.
    pub fn write_with(
        self,
        format: ResultFormat,
        version: RdfVersion,
        prefixes: &Namespaces,
        out: &mut dyn Write,
    ) -> Result<Written, QueryError> {
        self.write_as(format, version, &TableStyle::default(), prefixes, out)
    }

    /// Writes the whole result as a table; triples as N-Triples.
    ///
    /// # Errors
    /// As [`QueryResult::write`].
    pub fn write_table(self, style: &TableStyle, out: &mut dyn Write) -> Result<Written, QueryError> {
        let (version, prefixes) = (RdfVersion::default(), Namespaces::default());
        self.write_as(ResultFormat::Table, version, style, &prefixes, out)
    }

    fn write_as(
        mut self,
        format: ResultFormat,
        version: RdfVersion,
        style: &TableStyle,
        prefixes: &Namespaces,
        out: &mut dyn Write,
    ) -> Result<Written, QueryError> {
        let mut rows = 0;
        match self.kind {
            QueryKind::Boolean => {
                write_boolean(format, self.answer()?, out)?;
                rows = 1;
            }
            QueryKind::Solutions => {
                // the first batch before the head: errors then come before any byte
                let mut next = self.next_batch()?;
                let mut writer = match format {
                    ResultFormat::Table => SolutionWriter::table(&self.variables, style.clone(), out),
                    _ => SolutionWriter::new(format, &self.variables, out)?.of_version(version),
                };
                while let Some(batch) = next {
                    writer.write(
                        &mut self.run.terms,
                        &mut self.run.source.session,
                        &batch.cols,
                        batch.rows,
                    )?;
                    rows += batch.rows as u64;
                    next = self.next_batch()?;
                }
                writer.finish()?;
            }
            QueryKind::Graph => {
                let mut next = self.next_batch()?;
                let mut writer = GraphWriter::new(format, prefixes, out)?.of_version(version);
                while let Some(batch) = next {
                    let [s, p, o] = [0, 1, 2].map(|c| &batch.cols[c][..]);
                    writer.write(&mut self.run.terms, &mut self.run.source.session, [s, p, o])?;
                    rows += batch.rows as u64;
                    next = self.next_batch()?;
                }
                writer.finish()?;
            }
        }
        Ok(Written { rows, activity: self.activity(), planning: self.planning })
    }
}
