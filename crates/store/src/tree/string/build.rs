//! Builds a string tree: strings get the ids 0, 1, 2 … in the order they are pushed.
//!
//! Strings are collected and encoded in batches (several at a time keep the processor busy),
//! then placed in leaves. What takes more than a quarter page becomes a run of pages
//! written at once, and its leaf a reference.

use crate::TreeWriter;
use crate::error::Result;
use crate::format::inner::Child;
use crate::format::string::codec::{Codec, Encoded};
use crate::format::string::leaf::{GroupOrder, MOST, StringLeafBuilder};
use crate::format::string::matcher::StringBatch;
use crate::page::{PageBuf, PageId, PageKind};
use crate::tree::levels::write_levels;
use crate::tree::long_value::write_long;
use crate::tree::string::StringTree;
use crate::tree::string::codec::write_codec;

/// Bytes collected before they are encoded.
const BATCH_BYTES: usize = 64 << 10;

/// Bulk build of a [`StringTree`].
pub struct StringTreeBuilder {
    writer: TreeWriter,
    codec: Codec,
    /// Page of the symbols or of the dictionary's head, and the dictionary's checksum.
    symbols: (PageId, Option<u64>),
    /// Strings not yet encoded.
    pending: StringBatch,
    encoded: Encoded,
    leaf: StringLeafBuilder,
    page: PageBuf,
    children: Vec<Child>,
    len: u64,
    bytes: u64,
}

impl StringTreeBuilder {
    /// A tree written by `writer`. How its strings are encoded is chosen from `sample`: typical
    /// strings, all of them if they are few. Up to 8 MiB are of use; choosing then takes a few
    /// hundred milliseconds and 16 MiB of memory at most.
    ///
    /// # Errors
    /// Writing the symbols or the dictionary failed.
    pub fn new(writer: TreeWriter, sample: &[&[u8]]) -> Result<Self> {
        Self::with_codec(writer, Codec::choose(sample))
    }

    /// A tree with symbols, which are chosen in a few milliseconds.
    ///
    /// # Errors
    /// Writing the symbols failed.
    pub fn with_symbols(writer: TreeWriter, sample: &[&[u8]]) -> Result<Self> {
        Self::with_codec(writer, Codec::symbols(sample))
    }

    fn with_codec(mut writer: TreeWriter, codec: Codec) -> Result<Self> {
        let mut page = PageBuf::new();
        let dictionary = write_codec(&codec, |part| writer.append(part), &mut page)?;
        let symbols = (writer.append(&mut page)?, dictionary);
        Ok(StringTreeBuilder {
            writer,
            codec,
            symbols,
            pending: StringBatch::default(),
            encoded: Encoded::default(),
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
        self.len += 1;
        self.bytes += string.len() as u64;
        if self.codec.is_too_long(string) {
            self.encode()?;
            self.place_long(string)?;
        } else {
            self.pending.push(string);
            if self.pending.bytes() >= BATCH_BYTES {
                self.encode()?;
            }
        }
        Ok(self.len - 1)
    }

    /// Adds the strings of a batch, which get the next ids.
    ///
    /// # Errors
    /// Writing a page failed.
    pub fn push_all(&mut self, batch: StringBatch) -> Result<()> {
        // codes take several times the room of their bytes until they are packed
        let is_large = batch.bytes() > 2 * BATCH_BYTES;
        if is_large || batch.strings().any(|string| self.codec.is_too_long(string)) {
            return batch.strings().try_for_each(|string| self.push(string).map(drop));
        }
        self.encode()?;
        self.len += batch.len() as u64;
        self.bytes += batch.bytes() as u64;
        self.pending = batch;
        self.encode()
    }

    /// Writes what is left and the levels above the leaves.
    pub fn finish(mut self) -> Result<StringTree> {
        self.encode()?;
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

    /// Encodes what is pending and places it in leaves.
    fn encode(&mut self) -> Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        let mut encoded = std::mem::take(&mut self.encoded);
        let done = self.codec.encode(&mut pending, &mut encoded);
        done.expect("a codec that was made here encodes");
        for (string, bytes) in pending.strings().zip(encoded.strings()) {
            match bytes.len() <= MOST {
                true => self.add(bytes, false)?,
                false => self.place_long(string)?,
            }
        }
        pending.clear();
        (self.pending, self.encoded) = (pending, encoded);
        Ok(())
    }

    fn place_long(&mut self, string: &[u8]) -> Result<()> {
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
