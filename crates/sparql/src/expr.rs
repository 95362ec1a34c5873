//! Expressions: compiled once per query, evaluated over columns of term ids.
//!
//! The way of a batch:
//! 1. [`compile()`] turns the algebra's expression into [`ExprNode`]s: variables become numbers of
//!    columns, constants become ids (stored, inline or local, resolved in one dictionary call),
//!    static patterns are compiled, casts of a literal's text are fused;
//! 2. each node turns the columns of its arguments into one column of ids: numbers, booleans,
//!    dates and short strings are computed on the ids themselves (`kernel`);
//! 3. what depends on the texts of one variable's terms is worked out while those are read, without
//!    copying them (`texts`);
//! 4. other rows whose ids say too little go the long way (`eval`): one dictionary call for all of
//!    them, then values.
//!
//! An id is an id everywhere: unbound and error are both [`TermId::UNDEF`], which is all SPARQL
//! lets an expression tell apart; true and false are inline booleans. Results that are not
//! inline live in the batch's scratch and are interned only if they leave the expression
//! ([`Expr::eval_column`]); a filter keeps none.

mod column;
mod compile;
mod eval;
mod fused;
mod kernel;
mod members;
mod node;
#[cfg(test)]
mod tests;
mod texts;

pub use compile::CompileError;
pub(crate) use compile::compile;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

use snowmelt_graph::TermId;

use crate::value::{TermError, TermStore, Terms};
use column::Col;
use eval::Eval;
use node::ExprNode;

/// A compiled expression.
#[derive(Debug)]
pub struct Expr {
    root: ExprNode,
}

impl Expr {
    /// One id per row: inline, stored or local, UNDEF for unbound and error. `cols[i]` is the
    /// column of slot i; an empty column stands for one that is unbound everywhere.
    pub fn eval_column(
        &self,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        cols: &[Vec<TermId>],
        rows: usize,
    ) -> Result<Vec<TermId>, TermError> {
        let mut out = Vec::new();
        terms.begin_batch();
        terms.in_parts(0..rows, &mut |terms, part| {
            let mut ids = self.eval_part(terms, store, &BatchPart::new(cols, rows, part))?;
            // the first part is mostly the only one
            if out.is_empty() {
                out = ids
            } else {
                out.append(&mut ids)
            }
            Ok::<_, TermError>(())
        })?;
        assert_eq!(out.len(), rows, "the parts of a batch are all of it, each once");
        Ok(out)
    }

    fn eval_part(
        &self,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        part: &BatchPart<'_>,
    ) -> Result<Vec<TermId>, TermError> {
        let mut eval = Eval { terms, store, cols: part.cols(), rows: part.rows };
        let root = self.root.eval(&mut eval, None)?;
        terms.fault()?;
        let mut out = match root {
            Col::Own(ids) => ids,
            Col::Ref(ids) => ids.to_vec(),
            Col::One(mut id) => {
                terms.keep(std::slice::from_mut(&mut id));
                vec![id; part.rows]
            }
        };
        assert_eq!(out.len(), part.rows, "an expression has a value for each row");
        terms.keep(&mut out);
        terms.fault()?;
        Ok(out)
    }

    /// The rows, ascending, for which the expression's effective boolean value is true.
    pub fn filter(
        &self,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        cols: &[Vec<TermId>],
        rows: usize,
    ) -> Result<Vec<u32>, TermError> {
        let mut out = Vec::new();
        terms.begin_batch();
        terms.in_parts(0..rows, &mut |terms, part| {
            let first = part.start as u32;
            let mut pass = self.filter_part(terms, store, &BatchPart::new(cols, rows, part))?;
            if first == 0 {
                out = pass;
            } else {
                pass.iter_mut().for_each(|row| *row += first);
                out.append(&mut pass);
            }
            Ok::<_, TermError>(())
        })?;
        assert!(out.last().is_none_or(|row| (*row as usize) < rows), "rows that pass are of the batch");
        debug_assert!(out.is_sorted_by(|a, b| a < b), "rows that pass ascend");
        Ok(out)
    }

    fn filter_part(
        &self,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        part: &BatchPart<'_>,
    ) -> Result<Vec<u32>, TermError> {
        let rows = part.rows;
        let mut eval = Eval { terms, store, cols: part.cols(), rows };
        let conjuncts = match &self.root {
            ExprNode::And(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        // A row passes when every part is true: errors and false need not be told apart.
        let mut selected: Option<Vec<u32>> = None;
        for conjunct in conjuncts {
            let truth = conjunct.truth(&mut eval, selected.as_deref())?;
            eval.terms.fault()?;
            debug_assert!(selected.as_ref().is_none_or(|rows| rows.is_sorted()), "selected rows ascend");
            selected = Some(kernel::select(&truth, selected.as_deref(), rows));
            if selected.as_ref().is_some_and(Vec::is_empty) {
                break;
            }
        }
        Ok(selected.unwrap_or_else(|| (0..rows as u32).collect()))
    }

    /// The single id of an expression without variables.
    pub fn eval_one(&self, terms: &mut Terms, store: &mut dyn TermStore) -> Result<TermId, TermError> {
        Ok(self.eval_column(terms, store, &[], 1)?[0])
    }

    /// Whether it gives the same id for every row, always.
    #[must_use]
    pub fn as_constant(&self) -> Option<TermId> {
        match self.root {
            ExprNode::Const(id) => Some(id),
            _ => None,
        }
    }

    /// The slot, if the expression is nothing but a variable.
    #[must_use]
    pub fn as_slot(&self) -> Option<usize> {
        match self.root {
            ExprNode::Slot(slot) => Some(slot),
            _ => None,
        }
    }
}

/// Some rows of a batch.
struct BatchPart<'c> {
    cols: Cow<'c, [Vec<TermId>]>,
    rows: usize,
}

impl<'c> BatchPart<'c> {
    /// All rows as they are, or copies of some.
    fn new(cols: &'c [Vec<TermId>], rows: usize, part: Range<usize>) -> Self {
        if part == (0..rows) {
            return BatchPart { cols: Cow::Borrowed(cols), rows };
        }
        // an empty column stands for one that is unbound everywhere
        let cut = |col: &Vec<TermId>| if col.is_empty() { Vec::new() } else { col[part.clone()].to_vec() };
        BatchPart { cols: Cow::Owned(cols.iter().map(cut).collect()), rows: part.len() }
    }

    fn cols(&self) -> &[Vec<TermId>] {
        &self.cols
    }
}

/// The order of two inline ids of one kind, where the ids tell; for sorting as for `<`.
#[must_use]
pub fn id_order(a: TermId, b: TermId) -> Option<Ordering> {
    kernel::order(a, b).ok()
}
