//! Evaluation of IN a long list ([`Members`]): most rows are answered by one look into its
//! set.

use snowmelt_graph::TermId;

use super::{Col, Eval, ExprNode, FALSE, Result, TRUE, kernel, picked};
use crate::expr::members::Members;

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
        let (mut out, mut slow) = (vec![FALSE; rows], Vec::new());
        for (row, out) in out.iter_mut().enumerate() {
            match members.find(a.get(row), self.store) {
                Some(answer) => *out = answer,
                None => slow.push(row as u32),
            }
        }
        self.slow(&slow, &[&a], &mut out, |terms, row| {
            terms.value(a.get(row)).map_or(TermId::UNDEF, |value| members.find_value(&value))
        })?;
        if !members.rest.is_empty() {
            let open: Vec<u32> = (0..rows as u32).filter(|row| out[*row as usize] != TRUE).collect();
            self.one_by_one(&a, &members.rest, &open, selected, &mut out)?;
        }
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
        if rows.is_empty() {
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
}
