//! Some rows of an operator, column by column.

use rustc_hash::{FxHashMap, FxHashSet};
use snowmelt_graph::TermId;

use crate::algebra::{Var, VarSet};

/// Some rows of an operator, column by column.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub vars: Vec<Var>,
    pub cols: Vec<Vec<TermId>>,
    pub rows: usize,
    /// it is all rows
    pub is_whole: bool,
}

impl Sample {
    pub fn new(vars: Vec<Var>, cols: Vec<Vec<TermId>>, is_whole: bool) -> Self {
        let rows = cols.first().map_or(0, Vec::len);
        assert_eq!(vars.len(), cols.len(), "a column for each variable");
        assert!(cols.iter().all(|col| col.len() == rows), "a sample's columns are of one length");
        Self { vars, cols, rows, is_whole }
    }

    pub fn col(&self, v: Var) -> Option<&Vec<TermId>> {
        self.vars.iter().position(|x| *x == v).map(|c| &self.cols[c])
    }

    pub fn has(&self, v: Var) -> bool {
        self.vars.contains(&v)
    }

    /// Some of its rows, in that order.
    pub fn picked(&self, rows: &[usize]) -> Self {
        let pick = |col: &Vec<TermId>| rows.iter().map(|row| col[*row]).collect();
        let cols = self.cols.iter().map(pick).collect();
        Self { vars: self.vars.clone(), cols, rows: rows.len(), is_whole: self.is_whole }
    }

    pub fn with(mut self, var: Var, col: Vec<TermId>) -> Self {
        match self.vars.iter().position(|v| *v == var) {
            Some(c) => self.cols[c] = col,
            None => {
                self.vars.push(var);
                self.cols.push(col);
            }
        }
        self
    }

    /// How many different rows there are in some columns, of `rows` rows in all: the estimator of
    /// Charikar et al. (PODS 2000). `None` where a column is not there.
    pub fn distinct(&self, vars: &[Var], rows: f64) -> Option<f64> {
        let cols: Option<Vec<&Vec<TermId>>> = vars.iter().map(|v| self.col(*v)).collect();
        let cols = cols?;
        let mut seen: FxHashMap<Vec<TermId>, u32> = FxHashMap::default();
        for row in 0..self.rows {
            *seen.entry(cols.iter().map(|col| col[row]).collect()).or_default() += 1;
        }
        let once = seen.values().filter(|times| **times == 1).count() as f64;
        // values that hardly repeat may be all different
        if !self.is_whole && once > 0.95 * self.rows as f64 {
            return Some(rows);
        }
        let scale = if self.is_whole { 1.0 } else { (rows / self.rows.max(1) as f64).max(1.0) };
        Some((seen.len() as f64 - once + once * scale.sqrt()).min(rows))
    }

    /// Each row once, by its columns for these variables.
    pub fn distinct_rows(&self, vars: &VarSet) -> Self {
        let kept: Vec<usize> = (0..self.vars.len()).filter(|c| vars.contains(self.vars[*c])).collect();
        let mut seen = FxHashSet::default();
        let is_new = |row: &usize| seen.insert(kept.iter().map(|c| self.cols[*c][*row]).collect::<Vec<_>>());
        let rows: Vec<usize> = (0..self.rows).filter(is_new).collect();
        let all = self.picked(&rows);
        let cols = kept.iter().map(|c| all.cols[*c].clone()).collect();
        Self { vars: kept.iter().map(|c| self.vars[*c]).collect(), cols, ..all }
    }
}

/// Places among so many: one in each of equal parts, at no regular distance, because data often
/// repeats at one.
pub(super) fn places(all: u64, most: u64) -> Vec<u64> {
    if all <= most {
        return (0..all).collect();
    }
    let within = |i: u64| i.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) as f64 / 2_f64.powi(64);
    (0..most).map(|i| (((i as f64 + within(i)) * all as f64 / most as f64) as u64).min(all - 1)).collect()
}
