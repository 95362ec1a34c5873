//! Questions to a tuple tree and its answers: bounds of a scan, keys of a lookup, rows in columns.

use crate::format::key::Key;

/// Which rows a scan returns.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScanBounds<'a> {
    /// Values of the leading columns.
    pub prefix: &'a [u64],
    /// Least and greatest value of the column behind the prefix, both inclusive.
    pub range: Option<(u64, u64)>,
}

/// Keys of a batched lookup.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    /// Leading columns, each of `rows` values; rows ascend (duplicates allowed).
    pub cols: &'a [&'a [u64]],
    /// Number of keys.
    pub rows: usize,
    /// Least and greatest value of the column behind the keys, both inclusive, the same for all
    /// keys.
    pub range: Option<(u64, u64)>,
}

impl<'a> Keys<'a> {
    /// Keys of at least one column.
    pub fn new(cols: &'a [&'a [u64]], range: Option<(u64, u64)>) -> Keys<'a> {
        Keys { cols, rows: cols.first().map_or(1, |c| c.len()), range }
    }

    /// Least and greatest key prefix of key `k`, and how many columns count.
    #[inline]
    pub(crate) fn bounds(&self, k: usize) -> Bounds {
        let mut b = Bounds { lo: Key::default(), hi: Key::default(), len: self.cols.len() };
        for (c, column) in self.cols.iter().enumerate() {
            b.lo[c] = column[k];
            b.hi[c] = column[k];
        }
        if let Some((lo, hi)) = self.range {
            b.lo[b.len] = lo;
            b.hi[b.len] = hi;
            b.len += 1;
        }
        b
    }

    /// True when key `k` equals the one before it.
    #[inline]
    pub(crate) fn repeats(&self, k: usize) -> bool {
        k > 0 && self.cols.iter().all(|c| c[k] == c[k - 1])
    }

    /// Asserts what the caller promised: fitting columns, keys in order.
    pub(crate) fn check(&self, arity: usize) {
        let len = self.cols.len() + usize::from(self.range.is_some());
        assert!(len <= arity, "{len} key columns for a tree of {arity}");
        assert!(self.cols.iter().all(|c| c.len() == self.rows), "key columns of one length");
        let ordered = |k: usize| {
            let differs = self.cols.iter().find(|c| c[k] != c[k - 1]);
            differs.is_none_or(|c| c[k] > c[k - 1])
        };
        assert!((1..self.rows).all(ordered), "keys of a lookup are sorted");
    }
}

/// Keys of a merge: leading columns, of which all but one have one value.
#[derive(Clone, Copy, Debug)]
pub struct MergeKeys<'a> {
    /// Values of the columns before the varying one.
    pub before: &'a [u64],
    /// Values of the varying column; ascending, without duplicates.
    pub varying: &'a [u64],
    /// Values of the key's columns behind it.
    pub behind: &'a [u64],
}

impl MergeKeys<'_> {
    /// The key's columns.
    pub(crate) fn columns(&self) -> usize {
        self.before.len() + 1 + self.behind.len()
    }

    /// The rows from the first key to the last.
    pub(crate) fn bounds(&self) -> Bounds {
        let column = self.before.len();
        let mut b = Bounds { lo: Key::default(), hi: Key::default(), len: column + 1 };
        b.lo[..column].copy_from_slice(self.before);
        b.hi[..column].copy_from_slice(self.before);
        b.lo[column] = self.varying.first().copied().unwrap_or(u64::MAX);
        b.hi[column] = self.varying.last().copied().unwrap_or(0);
        b
    }

    /// Asserts what the caller promised.
    pub(crate) fn check(&self, arity: usize) {
        assert!(self.columns() <= arity, "{} key columns for a tree of {arity}", self.columns());
        assert!(self.varying.is_sorted_by(|a, b| a < b), "keys of a merge are sorted and distinct");
    }
}

/// Rows between two key prefixes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub lo: Key,
    pub hi: Key,
    pub len: usize,
}

impl Bounds {
    #[inline]
    pub(crate) fn lo(&self) -> &[u64] {
        &self.lo[..self.len]
    }

    #[inline]
    pub(crate) fn hi(&self) -> &[u64] {
        &self.hi[..self.len]
    }
}

/// Rows of a scan, column by column.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// One vector per column of the tree; those not wanted stay empty.
    pub cols: Vec<Vec<u64>>,
    /// Bit per column: which ones to fill.
    pub wanted: u8,
    /// Rows appended so far, also when no column is wanted.
    pub rows: usize,
}

impl Columns {
    /// All `arity` columns are wanted.
    pub fn new(arity: usize) -> Columns {
        Columns::with_wanted(arity, u8::MAX)
    }

    /// Only the columns whose bit is set in `wanted` are filled.
    pub fn with_wanted(arity: usize, wanted: u8) -> Columns {
        Columns { cols: vec![Vec::new(); arity], wanted, rows: 0 }
    }

    /// Empties the vectors, keeping their memory.
    pub fn clear(&mut self) {
        self.cols.iter_mut().for_each(Vec::clear);
        self.rows = 0;
    }
}

/// Rows found by a lookup.
#[derive(Clone, Debug, Default)]
pub struct Matches {
    /// For each row the index of its key.
    pub key: Vec<u32>,
    /// One vector per column behind the key columns; those not wanted stay empty.
    pub cols: Vec<Vec<u64>>,
    /// Bit per vector of `cols`: which ones to fill.
    pub wanted: u8,
}

impl Matches {
    /// For keys of `key_columns` columns in a tree of `arity`; all other columns are wanted.
    pub fn new(arity: usize, key_columns: usize) -> Matches {
        Matches::with_wanted(arity, key_columns, u8::MAX)
    }

    /// As [`Matches::new`], but only the columns whose bit is set are filled: bit 0 is the
    /// first column behind the key.
    pub fn with_wanted(arity: usize, key_columns: usize, wanted: u8) -> Matches {
        Matches { key: Vec::new(), cols: vec![Vec::new(); arity - key_columns], wanted }
    }

    /// Empties the vectors, keeping their memory.
    pub fn clear(&mut self) {
        self.key.clear();
        self.cols.iter_mut().for_each(Vec::clear);
    }
}
