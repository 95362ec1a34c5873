//! Builds a string tree: strings get the ids 0, 1, 2 … in the order they are pushed.
//!
//! Strings are collected and compressed in batches (several at a time keep the processor busy),
//! then placed in leaves. What takes more than a quarter page compressed becomes a run of pages
//! written at once, and its leaf a reference.

use fsst::Compressor;

use crate::TreeWriter;
use crate::error::Result;
use crate::format::inner::Child;
use crate::format::string::leaf::{GroupOrder, MOST, StringLeafBuilder};
use crate::format::string::symbols::{train, write_symbols};
use crate::page::{PageBuf, PageId, PageKind};
use crate::tree::levels::write_levels;
use crate::tree::long_value::write_long;
use crate::tree::string::StringTree;

/// Bytes collected before they are compressed.
const BATCH_BYTES: usize = 64 << 10;

/// Bulk build of a [`StringTree`].
pub struct StringTreeBuilder {
    writer: TreeWriter,
    compressor: Compressor,
    symbols: PageId,
    /// Strings not yet compressed, one behind the other, and where each ends.
    pending: Vec<u8>,
    ends: Vec<usize>,
    leaf: StringLeafBuilder,
    page: PageBuf,
    children: Vec<Child>,
    len: u64,
    bytes: u64,
}

impl StringTreeBuilder {
    /// A tree written by `writer`. Its symbols are trained from `sample`: a few hundred typical
    /// strings.
    ///
    /// # Errors
    /// Writing the symbol table failed.
    pub fn new(mut writer: TreeWriter, sample: &[&[u8]]) -> Result<Self> {
        let compressor = train(sample);
        let mut page = PageBuf::new();
        write_symbols(&compressor, &mut page);
        let symbols = writer.append(&mut page)?;
        Ok(StringTreeBuilder {
            writer,
            compressor,
            symbols,
            pending: Vec::new(),
            ends: Vec::new(),
            leaf: StringLeafBuilder::default(),
            page,
            children: Vec::new(),
            len: 0,
            bytes: 0,
        })
    }

    /// Adds a string and returns its id.
    ///
    /// # Errors
    /// Writing a page failed.
    pub fn push(&mut self, string: &[u8]) -> Result<u64> {
        self.pending.extend_from_slice(string);
        self.ends.push(self.pending.len());
        self.len += 1;
        self.bytes += string.len() as u64;
        if self.pending.len() >= BATCH_BYTES {
            self.compress()?;
        }
        Ok(self.len - 1)
    }

    /// Writes what is left and the levels above the leaves.
    pub fn finish(mut self) -> Result<StringTree> {
        self.compress()?;
        self.end_leaf()?;
        let id = self.writer.id();
        let leaves = self.children.len() as u64;
        assert_eq!(self.children.iter().map(|c| c.rows).sum::<u64>(), self.len, "each string has its leaf");
        let top = match leaves {
            0 => None,
            _ => Some(write_levels(&mut self.writer, PageKind::StringInner, 1, self.children)?),
        };
        let pages = self.writer.pages();
        self.writer.finish()?;
        Ok(StringTree::new(id, top, self.symbols, self.len, self.bytes, pages))
    }

    /// Compresses what is pending and places it in leaves.
    fn compress(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let ends = std::mem::take(&mut self.ends);
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let strings: Vec<&[u8]> = starts.zip(&ends).map(|(from, &to)| &pending[from..to]).collect();
        let (mut codes, mut code_ends) = (Vec::new(), Vec::new());
        self.compressor.compress_bulk_into::<{ Compressor::DEFAULT_BULK_LANES }>(
            &strings,
            &mut codes,
            &mut code_ends,
        );
        assert_eq!(code_ends.len(), strings.len(), "each string is compressed");
        let mut from = 0;
        for (string, to) in strings.iter().zip(code_ends) {
            let to = to as usize;
            assert!(from <= to, "codes lie one behind the other");
            self.place(string, &codes[from..to])?;
            from = to;
        }
        (self.pending, self.ends) = (pending, ends);
        self.pending.clear();
        self.ends.clear();
        Ok(())
    }

    fn place(&mut self, string: &[u8], codes: &[u8]) -> Result<()> {
        if codes.len() <= MOST {
            return self.add(codes, false);
        }
        let reference = write_long(|page| self.writer.append(page), string, MOST)?;
        self.add(&reference, true)
    }

    fn add(&mut self, bytes: &[u8], is_long: bool) -> Result<()> {
        if !self.leaf.add(bytes, is_long) {
            self.end_leaf()?;
            assert!(self.leaf.add(bytes, is_long), "a quarter page fits into an empty leaf");
        }
        Ok(())
    }

    fn end_leaf(&mut self) -> Result<()> {
        let rows = self.leaf.len() as u64;
        if rows > 0 {
            let separator = [self.leaf.first_id(), 0, 0, 0];
            self.leaf.finish(&mut self.page, GroupOrder::Upwards);
            let page = self.writer.append(&mut self.page)?;
            self.children.push(Child { separator, page, rows });
        }
        Ok(())
    }
}
