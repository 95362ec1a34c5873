//! TRIPLE, SUBJECT, PREDICATE and OBJECT: by id where the terms are stored, else by what they are.
//!
//! A component of a stored triple term is the stored term itself, so that what is joined with it
//! next needs no look-up, and blank nodes stay those of the data.

use snowmelt_graph::{TermId, TermKind, TermRef, TripleIds};

use super::apply::{own, rows_of};
use super::{Col, Eval, Result};
use crate::value::triple;

impl<'b> Eval<'_, 'b> {
    /// TRIPLE: the stored term where there is one.
    pub(super) fn triple(&mut self, parts: &[Col<'_>; 3], rows: usize) -> Result<Col<'b>> {
        let cols = parts.each_ref();
        let rows = rows_of(&cols, rows);
        let mut keys: Vec<TripleIds> =
            (0..rows).map(|row| parts.each_ref().map(|part| part.get(row))).collect();
        let is_stored =
            |key: &TripleIds| key.iter().all(|id| !matches!(id.kind(), TermKind::Special | TermKind::Local));
        let asked: Vec<usize> = (0..rows).filter(|row| is_stored(&keys[*row])).collect();
        let stored: Vec<TripleIds> = asked.iter().map(|row| keys[*row]).collect();
        let found = self.store.find_triples(&stored)?;
        let mut out = vec![TermId::UNDEF; rows];
        for (row, id) in asked.into_iter().zip(found) {
            if let Some(id) = id {
                out[row] = id;
                keys[row] = [TermId::UNDEF; 3];
            }
        }
        for part in parts {
            self.terms.prefetch(self.store, part.ids().iter().copied())?;
        }
        for (out, [s, p, o]) in out.iter_mut().zip(keys) {
            let terms = &*self.terms;
            let made = terms.with_term(s, |s| {
                terms.with_term(p, |p| terms.with_term(o, |o| triple(s, p, o)).flatten()).flatten()
            });
            if let Some(made) = made.flatten() {
                *out = self.terms.push_term(TermRef::Triple(&made));
            }
            if self.terms.poll(0).is_none() {
                self.terms.fault()?;
            }
        }
        Ok(own(out, &cols))
    }

    /// The subject, predicate or object of triple terms; of other terms an error.
    pub(super) fn component(&mut self, part: usize, a: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        let rows = rows_of(&[a], rows);
        let mut out = vec![TermId::UNDEF; rows];
        let stored: Vec<usize> = (0..rows).filter(|row| a.get(*row).kind() == TermKind::Triple).collect();
        let ids: Vec<TermId> = stored.iter().map(|row| a.get(*row)).collect();
        for (row, components) in stored.into_iter().zip(self.store.components(&ids)?) {
            out[row] = components[part];
        }
        let local: Vec<u32> =
            (0..rows as u32).filter(|row| a.get(*row as usize).kind() == TermKind::Local).collect();
        let local_ids = local.iter().map(|row| a.get(*row as usize));
        self.terms.prefetch(self.store, local_ids)?;
        for row in local {
            let term = self.terms.with_term(a.get(row as usize), |term| match term {
                TermRef::Triple(triple) => Some(match part {
                    0 => triple.subject.clone().into(),
                    1 => triple.predicate.clone().into(),
                    _ => triple.object.clone(),
                }),
                _ => None,
            });
            let Some(term) = term.flatten() else { continue };
            let term: TermRef<'_> = term.as_ref().into();
            // a blank node of the data is found by its label
            out[row as usize] = match self.store.resolve(&[term])?[0] {
                Some(id) => id,
                None => self.terms.push_term(term),
            };
        }
        Ok(own(out, &[a]))
    }
}
