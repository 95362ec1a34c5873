//! MIN and MAX of what depends on the terms of one variable: each distinct term is read once, and
//! only one that is better than the best so far is kept.

use snowmelt_graph::TermId;

use super::{AHEAD, Aggregate, AggregateRows, GroupStates};
use crate::expr::Expr;
use crate::value::{TermError, TermStore, Terms};

impl Aggregate {
    /// As [`Aggregate::update`], for rows whose argument has not been evaluated. False where all of
    /// it must be: then nothing was done.
    pub(crate) fn update_texts(
        &mut self,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        groups: &[u32],
        argument: &Expr,
        cols: &[Vec<TermId>],
    ) -> Result<bool, TermError> {
        let GroupStates::Best { groups: best, max, bytes } = &mut self.state else { return Ok(false) };
        let Some(texts) = argument.as_texts() else { return Ok(false) };
        let (max, held, is_term) = (*max, &mut self.held, argument.as_slot().is_some());
        let others = texts.of_best(terms, store, cols, groups, max, &mut |terms, rows, value| {
            for (id, row) in rows {
                let best = &mut best[groups[*row as usize] as usize];
                *bytes -= best.bytes();
                match &value {
                    Some(value) => best.offer(if is_term { *id } else { TermId::UNDEF }, value, max, terms),
                    None => best.fail(),
                }
                *bytes += best.bytes();
                if *bytes > held.bytes() {
                    held.set(*bytes + AHEAD, "group")?;
                }
            }
            Ok(())
        })?;
        let Some(others) = others else { return Ok(false) };
        if !others.is_empty() {
            let pick = |col: &Vec<TermId>| others.iter().map(|row| col[*row as usize]).collect();
            let of_others = |col: &Vec<TermId>| if col.is_empty() { Vec::new() } else { pick(col) };
            let cols: Vec<Vec<TermId>> = cols.iter().map(of_others).collect();
            let args = argument.eval_column(terms, store, &cols, others.len())?;
            let groups: Vec<u32> = others.iter().map(|row| groups[*row as usize]).collect();
            let rows = AggregateRows { groups: &groups, args: &args, weights: None };
            self.state.update(terms, store, rows, &mut self.held)?;
        }
        Ok(true)
    }
}
