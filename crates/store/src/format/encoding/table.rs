//! A sorted table of u64 columns inside a page, searched without decoding.
//!
//! Restart keys of a leaf, separators, children and row counts of an inner node all have this
//! shape. Each column is an array of fixed-width integers relative to the column's base, the
//! width (0 to 8 bytes) chosen per page:
//!
//! ```text
//! per column: base u64 | width u8        (HEAD bytes)
//! per column: rows × width bytes         value = base + integer
//! ```
//!
//! Rows are sorted lexicographically by their key columns; a search looks at one column after
//! the other, so columns that are constant in the page cost one comparison.

use crate::format::encoding::{Bad, Decode, byte_width, load, partition, store};

/// Most columns a table has: four key columns, child, rows before.
pub(crate) const MAX_COLUMNS: usize = 6;

/// Bytes of the head of one column.
pub(crate) const HEAD: usize = 9;

/// Range of a column while a table grows: gives its exact size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    min: u64,
    max: u64,
}

impl Span {
    pub(crate) const EMPTY: Span = Span { min: u64::MAX, max: 0 };

    /// Takes a value in.
    pub(crate) fn with(self, value: u64) -> Span {
        Span { min: self.min.min(value), max: self.max.max(value) }
    }

    /// Bytes a value of the column needs.
    pub(crate) fn width(self) -> usize {
        byte_width(self.max.saturating_sub(self.min))
    }
}

/// Bytes of a table of `rows` rows with these column ranges.
pub(crate) fn table_len(spans: &[Span], rows: usize) -> usize {
    spans.iter().map(|s| HEAD + s.width() * rows).sum()
}

/// Appends a table: columns of equal length.
pub(crate) fn write_table(columns: &[&[u64]], out: &mut Vec<u8>) {
    assert!(columns.len() <= MAX_COLUMNS, "a table has at most {MAX_COLUMNS} columns");
    assert!(columns.windows(2).all(|w| w[0].len() == w[1].len()), "columns of one length");
    let mut widths = [0; MAX_COLUMNS];
    let mut bases = [0; MAX_COLUMNS];
    for (c, column) in columns.iter().enumerate() {
        let span = column.iter().fold(Span::EMPTY, |s, &v| s.with(v));
        bases[c] = if column.is_empty() { 0 } else { span.min };
        widths[c] = span.width();
        store(out, bases[c], 8);
        out.push(widths[c] as u8);
    }
    let from = out.len();
    for (c, column) in columns.iter().enumerate() {
        column.iter().for_each(|&v| store(out, v - bases[c], widths[c]));
    }
    let rows = columns.first().map_or(0, |column| column.len());
    assert_eq!(out.len() - from, rows * widths.iter().sum::<usize>(), "each value has its bytes");
}

/// A table found in a page: where its columns are. All accesses take the page the table was
/// parsed from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Table {
    /// Rows of every column.
    pub rows: usize,
    base: [u64; MAX_COLUMNS],
    at: [u16; MAX_COLUMNS],
    width: [u8; MAX_COLUMNS],
    /// First byte behind the table.
    pub end: usize,
}

impl Table {
    /// Finds the table of `columns` columns and `rows` rows at `at`, and checks that it lies
    /// inside the page.
    #[inline]
    pub(crate) fn parse(page: &[u8], at: usize, columns: usize, rows: usize) -> Decode<Table> {
        debug_assert!(columns <= MAX_COLUMNS, "a table has at most {MAX_COLUMNS} columns");
        let mut table = Table { rows, ..Table::default() };
        let mut next = at + columns * HEAD;
        for c in 0..columns {
            table.base[c] = load(page, at + c * HEAD, 8)?;
            let width = load(page, at + c * HEAD + 8, 1)? as usize;
            if width > 8 {
                return Err(Bad("a table column wider than 8 bytes"));
            }
            table.width[c] = width as u8;
            table.at[c] = next as u16;
            next += width * rows;
            if next > page.len() {
                return Err(Bad("a table lies outside the page"));
            }
        }
        table.end = next;
        Ok(table)
    }

    /// Value of a column in a row below `rows`.
    #[inline(always)]
    pub(crate) fn value(&self, page: &[u8], column: usize, row: usize) -> Decode<u64> {
        debug_assert!(row < self.rows, "a row of the table");
        let width = self.width[column] as usize;
        let relative = load(page, self.at[column] as usize + row * width, width)?;
        Ok(self.base[column].wrapping_add(relative))
    }

    /// Writes other values into a column; false, and nothing written, when they do not fit its
    /// base and width.
    pub(crate) fn replace(&self, page: &mut [u8], column: usize, values: &[u64]) -> bool {
        let (base, width, at) = (self.base[column], self.width[column] as usize, self.at[column] as usize);
        let fits = |v: &u64| v.checked_sub(base).is_some_and(|r| byte_width(r) <= width);
        if values.len() != self.rows || !values.iter().all(fits) {
            return false;
        }
        for (row, v) in values.iter().enumerate() {
            page[at + row * width..at + (row + 1) * width]
                .copy_from_slice(&(v - base).to_le_bytes()[..width]);
        }
        true
    }

    /// True when the column has one value in the whole table.
    #[inline]
    pub(crate) fn constant(&self, column: usize) -> bool {
        self.width[column] == 0
    }

    /// Number of rows of `from .. to` (plus `from`) whose column is below `key`.
    #[inline]
    fn partition(
        &self,
        page: &[u8],
        column: usize,
        from: usize,
        to: usize,
        below: impl Fn(u64) -> bool,
    ) -> Decode<usize> {
        if self.constant(column) {
            return Ok(if below(self.base[column]) { to } else { from });
        }
        partition(from, to, |i| Ok(below(self.value(page, column, i)?)))
    }

    /// Number of rows whose leading columns are below `key` (`key.len()` columns,
    /// lexicographically).
    #[inline]
    #[cfg(test)]
    pub(crate) fn lower(&self, page: &[u8], key: &[u64]) -> Decode<usize> {
        self.lower_from(page, key, 0)
    }

    /// As [`Table::lower`], when the answer is known to be at least `from`.
    #[inline]
    pub(crate) fn lower_from(&self, page: &[u8], key: &[u64], from: usize) -> Decode<usize> {
        let (mut lo, mut hi) = (from, self.rows);
        for (c, &k) in key.iter().enumerate() {
            lo = self.partition(page, c, lo, hi, |v| v < k)?;
            if c + 1 == key.len() {
                break;
            }
            hi = self.partition(page, c, lo, hi, |v| v <= k)?;
            if lo == hi {
                break;
            }
        }
        Ok(lo)
    }

    /// Number of rows whose leading columns are below or equal to `key`.
    #[inline]
    #[cfg(test)]
    pub(crate) fn upper(&self, page: &[u8], key: &[u64]) -> Decode<usize> {
        self.upper_from(page, key, 0)
    }

    /// As [`Table::upper`], when the answer is known to be at least `from`.
    #[inline]
    pub(crate) fn upper_from(&self, page: &[u8], key: &[u64], from: usize) -> Decode<usize> {
        let (mut lo, mut hi) = (from, self.rows);
        for (c, &k) in key.iter().enumerate() {
            lo = self.partition(page, c, lo, hi, |v| v < k)?;
            hi = self.partition(page, c, lo, hi, |v| v <= k)?;
            if lo == hi {
                return Ok(lo);
            }
        }
        Ok(hi)
    }

    /// Compares the leading columns of a row with `key`.
    #[inline]
    pub(crate) fn compare(&self, page: &[u8], row: usize, key: &[u64]) -> Decode<std::cmp::Ordering> {
        for (c, k) in key.iter().enumerate() {
            match self.value(page, c, row)?.cmp(k) {
                std::cmp::Ordering::Equal => {}
                other => return Ok(other),
            }
        }
        Ok(std::cmp::Ordering::Equal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows() -> impl Strategy<Value = Vec<[u64; 3]>> {
        let value = prop_oneof![0u64..4, Just(u64::MAX), any::<u64>(), (0u64..4).prop_map(|v| v << 60)];
        prop::collection::vec(prop::array::uniform3(value), 1..60).prop_map(|mut rows| {
            rows.sort_unstable();
            rows
        })
    }

    proptest! {
        #[test]
        fn searches_agree_with_a_vector(rows in rows(), key in prop::array::uniform3(prop_oneof![0u64..5, any::<u64>()]), pick: prop::sample::Index, m in 0usize..=3) {
            let columns: Vec<Vec<u64>> = (0..3).map(|c| rows.iter().map(|r| r[c]).collect()).collect();
            let columns: Vec<&[u64]> = columns.iter().map(|c| &c[..]).collect();
            let mut page = vec![1, 2, 3];
            write_table(&columns, &mut page);
            let spans: Vec<Span> = columns.iter().map(|c| c.iter().fold(Span::EMPTY, |s, &v| s.with(v))).collect();
            prop_assert_eq!(page.len() - 3, table_len(&spans, rows.len()));
            let table = Table::parse(&page, 3, 3, rows.len()).unwrap();
            prop_assert_eq!(table.end, page.len());
            for (r, row) in rows.iter().enumerate() {
                for (c, &v) in row.iter().enumerate() {
                    prop_assert_eq!(table.value(&page, c, r), Ok(v));
                }
            }
            for key in [&key[..m], &pick.get(&rows)[..m]] {
                let lower = if m == 0 { 0 } else { rows.partition_point(|r| r[..m] < *key) };
                prop_assert_eq!(table.lower(&page, key), Ok(lower));
                prop_assert_eq!(table.upper(&page, key), Ok(rows.partition_point(|r| r[..m] <= *key)));
                prop_assert_eq!(table.compare(&page, 0, key), Ok(rows[0][..m].cmp(key)));
            }
        }

        #[test]
        fn any_bytes_parse_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..200), rows in 1usize..40, key: u64) {
            if let Ok(table) = Table::parse(&bytes, 0, 2, rows) {
                let _ = table.lower(&bytes, &[key, key]);
                let _ = table.upper(&bytes, &[key, key]);
            }
        }
    }
}
