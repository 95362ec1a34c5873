//! A query's result: batches as they are asked for, or written out whole.

use super::describe;
use super::template::Template;
use crate::algebra::{Form, TemplateSlot};
use crate::batch::Batch;
use crate::error::QueryError;
use crate::exec::{Boxed, Distinct, Run};
use crate::results::{GraphWriter, ResultFormat, SolutionWriter, write_boolean};
use crate::stack::Deep;
use snowmelt_graph::{Activity, TermId, TermRef};
use std::io::Write;
use std::sync::Arc;

/// What kind of result a query has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueryKind {
    /// Rows of bindings: see [`QueryResult::variables`].
    Solutions,
    /// Yes or no: see [`QueryResult::answer`].
    Boolean,
    /// Triples: batches of three columns.
    Graph,
}

/// What was written, and at what cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// Solutions or triples; 1 for a boolean.
    pub rows: u64,
    /// What the query did.
    pub activity: Activity,
}

/// A result under way.
pub struct QueryResult {
    kind: QueryKind,
    variables: Vec<String>,
    template: Arc<Template>,
    root: Deep<Boxed>,
    run: Run,
    rows: u64,
    /// CONSTRUCT and DESCRIBE give a set of triples
    triples: Option<Distinct>,
    described: describe::Described,
    blanks: u64,
}

impl QueryResult {
    pub(super) fn new(
        template: Arc<Template>,
        root: Deep<Boxed>,
        run: Run,
        distinct: bool,
    ) -> Result<Self, QueryError> {
        let name = |v: &crate::algebra::Var| {
            let name = template.algebra.names[v.0 as usize].as_str();
            name.split('.').next().unwrap_or(name).to_owned()
        };
        let (kind, variables) = match &template.algebra.form {
            Form::Select(vars) => (QueryKind::Solutions, vars.iter().map(name).collect()),
            Form::Ask => (QueryKind::Boolean, Vec::new()),
            Form::Construct(_) | Form::Describe(_) => (QueryKind::Graph, Vec::new()),
        };
        let triples = (matches!(kind, QueryKind::Graph) && !distinct).then(Distinct::without_input);
        Ok(Self {
            kind,
            variables,
            template,
            root,
            run,
            rows: 0,
            triples,
            described: describe::Described::default(),
            blanks: 0,
        })
    }

    /// What kind of result it is.
    pub fn kind(&self) -> QueryKind {
        self.kind
    }

    /// The names of the columns, without question mark; none unless there are solutions.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// What was done so far.
    pub fn activity(&self) -> Activity {
        self.run.activity()
    }

    pub(super) fn into_run(self) -> Run {
        self.run
    }

    /// The next rows, never an empty batch; `None` at the end. Columns are those of the variables, or subject, predicate and
    /// object; a boolean true is one row without columns.
    ///
    /// # Errors
    /// Those of running the query; there is nothing after an error.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, QueryError> {
        loop {
            let run = &mut self.run;
            let Some(batch) = self.root.with(|root| root.next(run))? else { return Ok(None) };
            let template = self.template.clone();
            let batch = match &template.algebra.form {
                Form::Select(_) => batch,
                Form::Ask => {
                    if std::mem::replace(&mut self.rows, 1) > 0 {
                        return Ok(None);
                    }
                    return Ok(Some(Batch::unit()));
                }
                Form::Describe(_) => describe::describe(&mut self.run, &batch, &mut self.described)?,
                Form::Construct(triples) => self.construct(triples, &batch),
            };
            let batch = match &mut self.triples {
                Some(distinct) => distinct.fresh(batch),
                None => batch,
            };
            if batch.rows == 0 {
                continue;
            }
            self.rows += batch.rows as u64;
            if let Some(most) = self.run.limits.max_rows
                && self.rows > most
            {
                return Err(QueryError::Rows(most));
            }
            return Ok(Some(batch));
        }
    }

    /// Replaces query-local ids by those of the stored terms that are equal, and makes the rest readable by [`QueryResult::with_term`]
    /// until the next call.
    pub(crate) fn resolve_locals(&mut self, cols: &mut [Vec<TermId>]) -> Result<(), QueryError> {
        let Run { terms, source, .. } = &mut self.run;
        terms.begin_batch();
        for col in cols.iter_mut() {
            terms.to_stored(&mut source.session, col)?;
        }
        let local = cols.iter().flatten().copied().filter(|id| id.kind() == snowmelt_graph::Kind::Local);
        Ok(terms.prefetch(&mut source.session, local)?)
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

    fn construct(&mut self, template: &[[TemplateSlot; 3]], batch: &Batch) -> Batch {
        let mut out = Batch::empty(3);
        for triple in template {
            for (slot, col) in triple.iter().zip(&mut out.cols) {
                match slot {
                    TemplateSlot::Var(v) => {
                        let at = self
                            .template
                            .output
                            .iter()
                            .position(|o| o == v)
                            .expect("the template's variables are put out");
                        col.extend(&batch.cols[at]);
                    }
                    TemplateSlot::Const(c) => {
                        let id = self.run.constant_or_local(*c);
                        col.resize(col.len() + batch.rows, id);
                    }
                    TemplateSlot::Blank(n) => {
                        for row in 0..batch.rows as u64 {
                            let label = format!("c{}x{n}", self.blanks + row);
                            col.push(self.run.terms.intern(TermRef::Blank(&label)));
                        }
                    }
                }
            }
            out.rows += batch.rows;
        }
        self.blanks += batch.rows as u64;
        let whole: Vec<u32> = (0..out.rows as u32).filter(|r| allowed(&out, *r as usize)).collect();
        out.retain(&whole);
        out
    }

    /// Calls `f` with the terms of a row after the other: `None` where unbound. A convenience for few rows.
    ///
    /// # Errors
    /// Those of running the query.
    pub fn for_each(mut self, mut f: impl FnMut(&[Option<snowmelt_graph::Term>])) -> Result<(), QueryError> {
        while let Some(batch) = self.next_batch()? {
            let Run { terms, source, .. } = &mut self.run;
            terms.begin_batch();
            terms.prefetch(&mut source.session, batch.cols.iter().flatten().copied())?;
            for row in 0..batch.rows {
                let cells: Vec<_> =
                    batch.cols.iter().map(|c| terms.with_term(c[row], |t| t.to_owned())).collect();
                f(&cells);
            }
        }
        Ok(())
    }

    /// Writes the whole result.
    ///
    /// # Errors
    /// Those of running the query and of writing, among them a format that does not fit the kind.
    pub fn write(mut self, format: ResultFormat, out: &mut dyn Write) -> Result<Written, QueryError> {
        let mut rows = 0;
        match self.kind {
            QueryKind::Boolean => {
                write_boolean(format, self.answer()?, out)?;
                rows = 1;
            }
            QueryKind::Solutions => {
                // the first batch before the head: errors then come before any byte
                let mut next = self.next_batch()?;
                let mut writer = SolutionWriter::new(format, &self.variables, out)?;
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
                let mut writer = GraphWriter::new(format, out)?;
                while let Some(batch) = next {
                    let [s, p, o] = [0, 1, 2].map(|c| &batch.cols[c][..]);
                    writer.write(&mut self.run.terms, &mut self.run.source.session, [s, p, o])?;
                    rows += batch.rows as u64;
                    next = self.next_batch()?;
                }
                writer.finish()?;
            }
        }
        Ok(Written { rows, activity: self.activity() })
    }
}

/// Whether RDF allows a triple, as far as the ids tell; the writer sees to the rest.
fn allowed(batch: &Batch, row: usize) -> bool {
    let [s, p, o] = [0, 1, 2].map(|c| batch.cols[c][row]);
    let nothing = [s, p, o].contains(&TermId::UNDEF);
    !nothing && !s.kind().is_literal() && !p.kind().is_literal() && p.kind() != snowmelt_graph::Kind::Blank
}
