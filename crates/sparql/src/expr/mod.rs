//! Expressions: compiled once per query, evaluated over columns of term ids.
//!
//! The way of a batch:
//! 1. [`compile`] turns spargebra's tree into [`Node`]s: variables become column numbers, constants become ids (stored, inline
//!    or local, resolved in one dictionary call), static patterns are compiled, casts of a literal's text are fused;
//! 2. each node turns the columns of its arguments into one column of ids: numbers, booleans, dates and short strings are
//!    computed on the ids themselves (`kernel`);
//! 3. rows whose ids say too little go the long way (`eval`): one dictionary call for all of them, then values.
//!
//! An id is an id everywhere: unbound and error are both [`TermId::UNDEF`], which is all SPARQL lets an expression tell apart;
//! true and false are inline booleans. Results that are not inline live in the batch's scratch and are interned only if
//! they leave the expression ([`Expr::eval_column`]); a filter keeps none.

mod compile;
mod eval;
mod fused;
mod kernel;
mod members;
mod node;
#[cfg(test)]
mod tests;

pub use compile::{CompileError, compile};
use eval::{Col, Eval};
use node::Node;
use snowmelt_graph::{GraphError, TermId};
use std::cmp::Ordering;

use crate::value::{TermStore, Terms};

/// A compiled expression.
#[derive(Debug)]
pub struct Expr {
    root: Node,
}

impl Expr {
    /// One id per row: inline, stored or local, UNDEF for unbound and error. `cols[i]` is the column of slot i; an empty column
    /// stands for one that is unbound everywhere.
    pub fn eval_column(
        &self,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        cols: &[Vec<TermId>],
        rows: usize,
    ) -> Result<Vec<TermId>, GraphError> {
        terms.begin_batch();
        let mut eval = Eval { terms, store, cols, rows };
        let mut out = match self.root.eval(&mut eval, None)? {
            Col::Own(ids) => ids,
            Col::Ref(ids) => ids.to_vec(),
            Col::One(mut id) => {
                terms.keep(std::slice::from_mut(&mut id));
                vec![id; rows]
            }
        };
        terms.keep(&mut out);
        Ok(out)
    }

    /// The rows, ascending, for which the expression's effective boolean value is true.
    pub fn filter(
        &self,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        cols: &[Vec<TermId>],
        rows: usize,
    ) -> Result<Vec<u32>, GraphError> {
        terms.begin_batch();
        let mut eval = Eval { terms, store, cols, rows };
        let conjuncts = match &self.root {
            Node::And(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        // A row passes when every part is true: errors and false need not be told apart.
        let mut selected: Option<Vec<u32>> = None;
        for part in conjuncts {
            let truth = part.truth(&mut eval, selected.as_deref())?;
            selected = Some(kernel::select(&truth, selected.as_deref(), rows));
            if selected.as_ref().is_some_and(Vec::is_empty) {
                break;
            }
        }
        Ok(selected.unwrap_or_else(|| (0..rows as u32).collect()))
    }

    /// The single id of an expression without variables.
    pub fn eval_one(&self, terms: &mut Terms, store: &mut dyn TermStore) -> Result<TermId, GraphError> {
        Ok(self.eval_column(terms, store, &[], 1)?[0])
    }

    /// Whether it gives the same id for every row, always.
    #[must_use]
    pub fn as_constant(&self) -> Option<TermId> {
        match self.root {
            Node::Const(id) => Some(id),
            _ => None,
        }
    }

    /// The slot, if the expression is nothing but a variable.
    #[must_use]
    pub fn as_slot(&self) -> Option<usize> {
        match self.root {
            Node::Slot(slot) => Some(slot),
            _ => None,
        }
    }
}

/// The order of two inline ids of one kind, where the ids tell; for sorting as for `<`.
#[must_use]
pub fn id_order(a: TermId, b: TermId) -> Option<Ordering> {
    kernel::order(a, b).ok()
}
