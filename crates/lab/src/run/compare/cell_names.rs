//! Short names of cells.

use serde_json::Value;

use crate::run::compare::loaded::Key;

/// Names of cells: the values of the keys in which they differ.
pub(super) struct CellNames<'a> {
    keys: &'a [String],
    /// Per key: do the cells differ in it? True for all keys when there is one cell.
    tells: Vec<bool>,
}

impl<'a> CellNames<'a> {
    /// Finds the keys in which `cells` differ.
    pub(super) fn new(keys: &'a [String], cells: &[&Key]) -> CellNames<'a> {
        let differs = |i: usize| cells.iter().any(|key| key[i] != cells[0][i]);
        let mut tells: Vec<bool> = (0..keys.len()).map(differs).collect();
        if !tells.contains(&true) {
            tells.fill(true);
        }
        CellNames { keys, tells }
    }

    /// The name of a cell.
    pub(super) fn name(&self, key: &Key) -> String {
        let telling = self.keys.iter().zip(key).zip(&self.tells).filter(|(_, tells)| **tells);
        let shown = telling.filter_map(|((name, value), _)| {
            Some(match value {
                Value::Null => return None,
                Value::String(text) if text.is_empty() => return None,
                Value::String(text) => text.clone(),
                other => format!("{name}={other}"),
            })
        });
        shown.collect::<Vec<_>>().join(" ")
    }
}
