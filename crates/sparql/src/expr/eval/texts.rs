//! Evaluation of what depends on the texts of one variable's terms ([`TextPart`]): while they are
//! read.

use snowmelt_graph::TermId;

use super::{Col, Eval, Result, picked};
use crate::expr::node::TextPart;

impl<'b> Eval<'_, 'b> {
    pub(super) fn of_texts(&mut self, part: &TextPart, selected: Option<&[u32]>) -> Result<Col<'b>> {
        let col = self.slot(part.slot, selected);
        let split = col.slice().ok().and_then(|ids| part.split(ids));
        let Some((stored, others)) = split else { return part.node.eval(self, selected) };
        let mut out = vec![TermId::UNDEF; selected.map_or(self.rows, <[u32]>::len)];
        if !others.is_empty() {
            let col = part.node.eval(self, Some(&picked(selected, &others)))?;
            col.check(others.len());
            others.iter().enumerate().for_each(|(i, row)| out[*row as usize] = col.get(i));
        }
        part.answer(stored, self.terms, self.store, |row, id| out[row as usize] = id)?;
        Ok(Col::Own(out))
    }
}
