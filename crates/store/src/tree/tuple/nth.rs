//! Rows by their rank, found by the counts of the inner nodes: for samples.

use super::TupleTree;
use crate::Reader;
use crate::error::Result;
use crate::format::encoding::Decode;
use crate::format::inner::Inner;
use crate::tree::read::decoded;
use crate::tree::spare;

impl TupleTree {
    /// Rows whose leading columns are below `key`.
    ///
    /// # Errors
    /// Fails if a page cannot be read.
    pub fn rank(&self, reader: &mut Reader, key: &[u64]) -> Result<u64> {
        assert!(key.len() <= self.shape.arity, "more key columns than the tree has");
        if self.shape.height == 0 {
            return Ok(0);
        }
        reader.meters.rnd += 1;
        let (mut at, mut below) = (self.shape.root, 0_u64);
        for level in (1..self.shape.height).rev() {
            let (page, rows) = self.step(reader, at, level, |n, page| n.lower(page, key, 0))?;
            (at, below) = (page, below.wrapping_add(rows));
        }
        let page = reader.page(self.shape.id, at)?;
        let mut spare = spare::take(self.shape.arity);
        let cursor = &mut spare.cursor;
        let rank = decoded(reader, at, cursor.open(&page).and_then(|()| cursor.lower(&page, 0, key)))?;
        spare::give(spare);
        Ok(below.wrapping_add(rank as u64))
    }

    /// The row with so many rows before it; `None` if there are no more than these.
    ///
    /// # Errors
    /// Fails if a page cannot be read.
    pub fn nth(&self, reader: &mut Reader, mut before: u64) -> Result<Option<Vec<u64>>> {
        if before >= self.rows || self.shape.height == 0 {
            return Ok(None);
        }
        reader.meters.rnd += 1;
        let mut at = self.shape.root;
        for level in (1..self.shape.height).rev() {
            let (page, rows) = self.step(reader, at, level, |n, page| child_of(n, page, before))?;
            (at, before) = (page, before.wrapping_sub(rows));
        }
        let page = reader.page(self.shape.id, at)?;
        let mut spare = spare::take(self.shape.arity);
        let cursor = &mut spare.cursor;
        let mut row = Vec::with_capacity(self.shape.arity);
        let read = cursor.open(&page).and_then(|()| {
            let place = before as usize;
            if before >= cursor.len() as u64 {
                return Ok(());
            }
            cursor.stretch(place, place + 1);
            (0..self.shape.arity).try_for_each(|c| cursor.append(&page, c, place, place + 1, &mut row))
        });
        decoded(reader, at, read)?;
        spare::give(spare);
        Ok((row.len() == self.shape.arity).then_some(row))
    }
}

/// The child in which the row with so many before it lies.
fn child_of(node: &Inner, page: &[u8], before: u64) -> Decode<usize> {
    let (mut low, mut high) = (0, node.children);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if node.rows_before(page, middle)? <= before {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
