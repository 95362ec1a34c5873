//! Evaluation of IN a long list ([`Members`]): most rows are answered by one look into its
//! sets.

use rustc_hash::FxHashMap;
use snowmelt_graph::{TermId, TermKind, TermRef};

use super::{Col, Eval, ExprNode, FALSE, Result, TRUE, kernel, picked};
use crate::expr::members::{Answered, Members};
use crate::value;

impl<'b> Eval<'_, 'b> {
    /// IN a set: as [`Eval::is_in`] for the list.
    pub(super) fn is_member(
        &mut self,
        a: &ExprNode,
        members: &Members,
        selected: Option<&[u32]>,
    ) -> Result<Col<'b>> {
        let rows = selected.map_or(self.rows, <[u32]>::len);
        let a = a.eval(self, selected)?;
        let known = self.known(&a, members)?;
        let mut out = vec![FALSE; rows];
        let (mut rest, mut literals) = (Vec::new(), Vec::new());
        for (row, out) in out.iter_mut().enumerate() {
            let id = a.get(row);
            let found = match known.get(&id) {
                Some(InDictionary::Absent(true)) => Answered::Answer(TRUE),
                Some(InDictionary::Absent(false)) => Answered::Rest,
                Some(InDictionary::Stored(id)) => members.find(*id),
                None => members.find(id),
            };
            match found {
                Answered::Answer(answer) => *out = answer,
                Answered::Rest => rest.push(row as u32),
                Answered::Literals => literals.push(row as u32),
            }
        }
        self.one_by_one(&a, &members.rest, &rest, selected, &mut out)?;
        self.one_by_one(&a, &members.literals, &literals, selected, &mut out)?;
        // variables of the list are in the rest only
        let others: Vec<u32> = literals.into_iter().filter(|row| out[*row as usize] != TRUE).collect();
        self.variables(&a, members, &others, selected, &mut out)?;
        Ok(Col::Own(out))
    }

    /// Compares some rows with some members; the answer joins what is there.
    fn one_by_one(
        &mut self,
        a: &Col<'_>,
        list: &[ExprNode],
        rows: &[u32],
        selected: Option<&[u32]>,
        out: &mut [TermId],
    ) -> Result<()> {
        if rows.is_empty() || list.is_empty() {
            return Ok(());
        }
        let some = Col::Own(rows.iter().map(|row| a.get(*row as usize)).collect());
        let found = self.any_equal(&some, list, Some(&picked(selected, rows)))?;
        found.check(rows.len());
        for (i, row) in rows.iter().enumerate() {
            let place = &mut out[*row as usize];
            *place = kernel::or(*place, found.get(i));
        }
        Ok(())
    }

    fn variables(
        &mut self,
        a: &Col<'_>,
        members: &Members,
        rows: &[u32],
        selected: Option<&[u32]>,
        out: &mut [TermId],
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        for node in members.rest.iter().filter(|n| !matches!(n, ExprNode::Const(_))) {
            self.one_by_one(a, std::slice::from_ref(node), rows, selected, out)?;
        }
        Ok(())
    }

    /// Computed IRIs and plain strings, looked up in the dictionary: one call for all of a
    /// column.
    fn known(&mut self, a: &Col<'_>, members: &Members) -> Result<FxHashMap<TermId, InDictionary>> {
        let mut local: Vec<TermId> =
            a.ids().iter().copied().filter(|id| id.kind() == TermKind::Local).collect();
        local.sort_unstable();
        local.dedup();
        let mut known = FxHashMap::default();
        if local.is_empty() {
            return Ok(known);
        }
        self.terms.prefetch(self.store, local.iter().copied())?;
        let mut asked: Vec<(TermId, bool, String)> = Vec::new();
        for id in local {
            let text = self.terms.with_term(id, |term| match term {
                TermRef::Iri(iri) => Some((true, iri.to_owned())),
                TermRef::Literal { lexical, datatype, lang: None, .. } if datatype == value::iri::STRING => {
                    Some((false, lexical.to_owned()))
                }
                _ => None,
            });
            asked.extend(text.flatten().map(|(is_iri, text)| (id, is_iri, text)));
        }
        let mut terms: Vec<TermRef<'_>> = Vec::with_capacity(asked.len());
        for (_, is_iri, text) in &asked {
            terms.push(if *is_iri { TermRef::Iri(text) } else { TermRef::string(text) });
        }
        let answers = self.store.resolve(&terms)?;
        assert_eq!(answers.len(), asked.len(), "the dictionary answers for each term");
        for ((id, is_iri, text), stored) in asked.iter().zip(answers) {
            let absent = || {
                InDictionary::Absent(match is_iri {
                    true => members.has_absent_iri(text),
                    false => members.has_absent_string(text),
                })
            };
            known.insert(*id, stored.map_or_else(absent, InDictionary::Stored));
        }
        Ok(known)
    }
}

/// A computed term in the dictionary.
enum InDictionary {
    Stored(TermId),
    /// it is not there; whether it is one of the list's members that are not there
    Absent(bool),
}
