//! The triples of CONSTRUCT and DESCRIBE, as an operator: what makes them a set, and spills, is
//! the operator above.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use snowmelt_graph::{TermId, TermKind, TermRef, TripleIds};

use super::describe::{DescribeForm, Described};
use super::template::Template;
use crate::algebra::{Form, TemplateSlot, Var};
use crate::exec::{Batch, Boxed, Operator, Result, Run};
use crate::value::{Terms, triple};

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
    pub fn new(input: Boxed, template: Arc<Template>, form: DescribeForm, run: &Run) -> Self {
        Self {
            input,
            template,
            described: Described::new(form, run.memory.held()),
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
                self.fill(slot, batch, &columns, run, col)?;
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

impl Triples {
    /// Appends the terms of a place of the template, one per solution.
    fn fill(
        &self,
        slot: &TemplateSlot,
        batch: &Batch,
        columns: &FxHashMap<Var, usize>,
        run: &mut Run,
        col: &mut Vec<TermId>,
    ) -> Result<()> {
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
            TemplateSlot::Triple(parts) => {
                let mut of = [Vec::new(), Vec::new(), Vec::new()];
                for (part, ids) in parts.iter().zip(&mut of) {
                    self.fill(part, batch, columns, run, ids)?;
                    run.terms.to_stored(&mut run.source.session, ids)?;
                }
                let keys: Vec<TripleIds> =
                    (0..batch.rows).map(|row| of.each_ref().map(|ids| ids[row])).collect();
                col.extend(triple_terms(&keys, run)?);
            }
        }
        Ok(())
    }
}

/// The triple terms of these terms, unbound where there is none. A term that is stored has its
/// stored id: the triples are made distinct by ids.
fn triple_terms(keys: &[TripleIds], run: &mut Run) -> Result<Vec<TermId>> {
    let is_stored = |id: &TermId| !matches!(id.kind(), TermKind::Special | TermKind::Local);
    let asked: Vec<usize> = (0..keys.len()).filter(|row| keys[*row].iter().all(is_stored)).collect();
    let stored: Vec<TripleIds> = asked.iter().map(|row| keys[*row]).collect();
    let mut found = vec![TermId::UNDEF; keys.len()];
    for (row, id) in asked.into_iter().zip(run.source.session.find_triples(&stored)?) {
        found[row] = id.unwrap_or_default();
    }
    let open = || (0..keys.len()).filter(|row| found[*row].is_undef());
    let ids: Vec<TermId> = open().flat_map(|row| keys[row]).collect();
    run.terms.prefetch_whole(&mut run.source.session, ids)?;
    let open: Vec<usize> = open().collect();
    for row in open {
        found[row] = made(&run.terms, keys[row]);
    }
    Ok(found)
}

/// The triple term of three terms, unbound where there is none.
fn made(terms: &Terms, [s, p, o]: [TermId; 3]) -> TermId {
    let term = |id, f: &mut dyn FnMut(TermRef<'_>)| terms.with_term(id, f);
    let mut id = TermId::UNDEF;
    term(s, &mut |s| {
        term(p, &mut |p| {
            term(o, &mut |o| {
                if let Some(triple) = triple(s, p, o) {
                    id = terms.intern(TermRef::Triple(&triple));
                }
            });
        });
    });
    id
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
