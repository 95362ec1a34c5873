//! The triples of CONSTRUCT and DESCRIBE, as an operator: what makes them a set, and spills, is
//! the operator above.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use snowmelt_graph::{TermId, TermKind, TermRef};

use super::describe::Described;
use super::template::Template;
use crate::algebra::{Form, TemplateSlot, Var};
use crate::exec::{Batch, Boxed, Operator, Result, Run};

/// Solutions put into a template, or described.
pub(super) struct Triples {
    input: Boxed,
    template: Arc<Template>,
    described: Described,
    /// a solution has come: with the first, the resources that DESCRIBE names are taken in
    is_begun: bool,
    /// solutions on their way into the template, and how many are in it
    batch: Batch,
    done: usize,
    /// number of solutions so far, which tells their blank nodes apart
    solutions: u64,
}

impl Triples {
    pub fn new(input: Boxed, template: Arc<Template>, run: &Run) -> Self {
        Self {
            input,
            template,
            described: Described::new(run.memory.held()),
            is_begun: false,
            batch: Batch::default(),
            done: 0,
            solutions: 0,
        }
    }

    fn construct(&mut self, run: &mut Run, template: &[[TemplateSlot; 3]], batch: &Batch) -> Result<Batch> {
        let mut out = Batch::empty(3);
        let columns: FxHashMap<Var, usize> =
            self.template.output.iter().enumerate().map(|(column, var)| (*var, column)).collect();
        for triple in template {
            // a template may have more triples than there are solutions
            run.check()?;
            for (slot, col) in triple.iter().zip(&mut out.cols) {
                match slot {
                    TemplateSlot::Var(v) => {
                        let at = columns.get(v).expect("the template's variables are put out");
                        col.extend(&batch.cols[*at]);
                    }
                    TemplateSlot::Const(c) => {
                        let id = run.constant_or_local(*c);
                        col.resize(col.len() + batch.rows, id);
                    }
                    TemplateSlot::Blank(n) => {
                        for row in 0..batch.rows as u64 {
                            let label = format!("c{}x{n}", self.solutions + row);
                            col.push(run.terms.intern(TermRef::Blank(&label)));
                        }
                    }
                }
            }
            out.rows += batch.rows;
        }
        run.terms.fault()?;
        self.solutions += batch.rows as u64;
        assert_eq!(out.rows, template.len() * batch.rows, "each solution is put into each triple");
        out.check();
        let whole: Vec<u32> = (0..out.rows as u32).filter(|r| allowed(&out, *r as usize)).collect();
        out.retain(&whole);
        Ok(out)
    }
}

impl Operator for Triples {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.described.next(run)? {
                return Ok(Some(batch));
            }
            run.check()?;
            if self.done == self.batch.rows {
                let Some(batch) = self.input.next(run)? else { return Ok(None) };
                (self.batch, self.done) = (batch, 0);
            }
            let template = self.template.clone();
            let Form::Construct(triples) = &template.algebra.form else {
                self.described.begin(&self.batch)?;
                if !std::mem::replace(&mut self.is_begun, true)
                    && let Form::Describe(_, named) = &template.algebra.form
                {
                    self.described.named(named.iter().filter_map(|c| run.query.consts[c.0 as usize]))?;
                }
                self.done = self.batch.rows;
                continue;
            };
            // as many solutions as make a batch of triples
            let some = (run.query.batch.most / triples.len().max(1)).clamp(1, self.batch.rows - self.done);
            let part = self.batch.slice(self.done..self.done + some);
            self.done += some;
            let batch = self.construct(run, triples, &part)?;
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
        (self.batch, self.done) = (Batch::default(), 0);
    }
}

/// Whether RDF allows a triple, as far as the ids tell; the writer checks the rest.
fn allowed(batch: &Batch, row: usize) -> bool {
    let [s, p, o] = [0, 1, 2].map(|c| batch.cols[c][row]);
    let nothing = [s, p, o].contains(&TermId::UNDEF);
    !nothing
        && matches!(s.kind(), TermKind::Iri | TermKind::Blank | TermKind::Local)
        && matches!(p.kind(), TermKind::Iri | TermKind::Local)
}
