//! Strings added behind the last one of a string tree.
//!
//! The last leaf grows, then new leaves follow near it; long values get runs of pages. The
//! codec stays the tree's; only while a tree is empty it is chosen anew, from the first
//! strings. Readers of older snapshots keep the length and the root they have.

use std::sync::{Arc, OnceLock};

use crate::access::transaction::Transaction;
use crate::error::Result;
use crate::format::encoding::Decode;
use crate::format::inner::{Child, Inner};
use crate::format::string::codec::{Codec, Encoded};
use crate::format::string::leaf::{GroupOrder, MOST, StringLeafBuilder};
use crate::format::string::matcher::StringBatch;
use crate::page::{PageBuf, PageId, PageKind};
use crate::tree::change::{Ascent, Changed, Now, Split, Visit, put};
use crate::tree::long_value::write_long;
use crate::tree::string::StringTree;
use crate::tree::string::codec::write_codec;

/// Most strings a symbol table is trained from.
const SAMPLE: usize = 1000;

/// Bytes of first strings from which on a dictionary is made: their commit takes so long that
/// choosing one is a small part of it. Less in the tests of this crate.
const MANY: usize = if cfg!(test) { 256 << 10 } else { 32 << 20 };

/// Most bytes of strings a dictionary is made from, and of one of them.
const MOST_SAMPLE: usize = 8 << 20;
const MOST_OF_VALUE: usize = 64 << 10;

/// Bytes encoded at a time.
const BATCH_BYTES: usize = 64 << 10;

/// Always part of the sample, so that the first strings of a tree, if they are few, do not make
/// later ones expensive.
const TYPICAL: &[u8] = b"http://www.example.org/2000/01/ontology/resource#Name_of_the_first THE QUICK BROWN FOX JUMPS OVER \
    the lazy dog, and then: \"it's said\" (in 1234567890 words) that all is as good as new; is it? yes & no! data/item-17.html";

impl StringTree {
    /// Makes an empty tree. The caller stores [`StringTree::to_bytes`] as a record, after every
    /// change.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn create(txn: &mut Transaction, name: &str) -> Result<StringTree> {
        let id = txn.new_tree(name);
        let page = txn.allocate(id, None)?;
        let mut tree = StringTree::new(id, None, (page, None), 0, 0, 1);
        tree.train(txn, &[])?;
        Ok(tree)
    }

    /// Adds strings; returns the id of the first, the others follow. On an error the
    /// transaction must be given up.
    ///
    /// # Errors
    /// Reading a page failed, a page contradicts the format, a value is longer than 4 GiB,
    /// there is no space left.
    pub fn append(&mut self, txn: &mut Transaction, values: &[&[u8]]) -> Result<u64> {
        let first = self.len;
        if values.is_empty() {
            return Ok(first);
        }
        if self.len == 0 {
            self.train(txn, values)?;
        }
        let codec = match self.codec.get() {
            Some(codec) => codec.clone(),
            None => self.codec(&mut txn.reader())?.clone(),
        };
        let levels = self.last_path(txn)?;
        let mut append = Append::begin(txn, self, levels.last_leaf)?;
        append.encode(&codec, values)?;
        append.txn.store().codecs.count(append.tree.shape.id, append.tree.dictionary, &codec);
        let (leaves, pages) = append.finish()?;
        let rows: u64 = leaves.iter().map(|leaf| leaf.rows).sum();
        assert_eq!(rows, levels.last_rows + values.len() as u64, "each string is in a leaf");
        self.pages += pages;
        self.len += values.len() as u64;
        self.bytes += values.iter().map(|v| v.len() as u64).sum::<u64>();
        self.shape.height = self.shape.height.max(1);
        let now = match (&leaves[..], levels.last_leaf) {
            ([only], Some(_)) => Now::Rows(only.rows as i64 - levels.last_rows as i64),
            _ => Now::Nodes(leaves),
        };
        let changed = Changed { parent: 0, child: levels.child, now };
        let mut ascent = Ascent { txn, shape: &mut self.shape, split: Split::Full, pages: 0 };
        ascent.run(&levels.inner, vec![changed])?;
        self.pages = self.pages.wrapping_add_signed(ascent.pages);
        Ok(first)
    }

    /// Chooses the codec of an empty tree from the strings that come, and writes it.
    fn train(&mut self, txn: &mut Transaction, values: &[&[u8]]) -> Result<()> {
        let bytes: usize = values.iter().map(|v| v.len()).sum();
        let codec = if bytes >= MANY {
            let cut = |value: &&'_ [u8]| value.len().min(MOST_OF_VALUE);
            let step = bytes.div_ceil(MOST_SAMPLE);
            let mut left = MOST_SAMPLE;
            let sample = values.iter().step_by(step).map(|value| &value[..cut(value)]);
            let fits = |value: &&[u8]| {
                left = left.saturating_sub(value.len());
                left > 0
            };
            Codec::choose(&sample.take_while(fits).collect::<Vec<_>>())
        } else {
            let step = values.len().div_ceil(SAMPLE).max(1);
            let mut sample: Vec<&[u8]> = values.iter().step_by(step).copied().collect();
            sample.push(TYPICAL);
            Codec::symbols(&sample)
        };
        let (id, mut near) = (self.shape.id, self.symbols_page);
        let mut page = PageBuf::new();
        let mut parts = 0;
        let write = |part: &mut PageBuf| {
            near = txn.allocate(id, Some(near))?;
            parts += 1;
            put(txn, id, near, part)?;
            Ok(near)
        };
        self.dictionary = write_codec(&codec, write, &mut page)?;
        put(txn, id, self.symbols_page, &page)?;
        self.pages += parts;
        let mut codec = Arc::new(codec);
        if let Some(checksum) = self.dictionary {
            codec = txn.store().codecs.put(txn.store().memory(), id, checksum, codec);
        }
        self.codec = Arc::new(OnceLock::from(codec));
        Ok(())
    }

    /// The way to the last leaf.
    fn last_path(&self, txn: &mut Transaction) -> Result<LastPath> {
        let mut path = LastPath::default();
        if self.shape.height == 0 {
            return Ok(path);
        }
        let mut at = self.shape.root;
        for level in (1..self.shape.height).rev() {
            let page = txn.page(self.shape.id, at)?;
            let last = || -> Decode<(PageId, usize)> {
                let node = Inner::parse(&page, PageKind::StringInner, 1, level)?;
                Ok((node.child(&page, node.children - 1)?, node.children - 1))
            };
            let (next, child) = last().map_err(|bad| txn.damaged(at, bad.0))?;
            path.inner.insert(0, vec![Visit { page: at, parent: 0, child: path.child }]);
            (at, path.child) = (next, child);
        }
        let page = txn.page(self.shape.id, at)?;
        let leaf =
            crate::format::string::leaf::StringLeaf::parse(&page).map_err(|bad| txn.damaged(at, bad.0))?;
        if leaf.first_id.checked_add(leaf.len as u64) != Some(self.len) {
            return Err(txn.damaged(at, "the last leaf does not end where the tree does"));
        }
        path.last_rows = leaf.len as u64;
        path.last_leaf = Some(at);
        Ok(path)
    }
}

/// The last node of every level.
#[derive(Default)]
struct LastPath {
    /// From level 1 upwards, one visit each.
    inner: Vec<Vec<Visit>>,
    last_leaf: Option<PageId>,
    last_rows: u64,
    /// The last leaf's place among its parent's children.
    child: usize,
}

/// An append under way.
struct Append<'t> {
    txn: &'t mut Transaction,
    tree: &'t StringTree,
    leaf: StringLeafBuilder,
    /// Where the current leaf is written; `None`: a new page.
    at: Option<PageId>,
    /// A page near which new ones are taken.
    near: PageId,
    leaves: Vec<Child>,
    pages: u64,
}

impl<'t> Append<'t> {
    fn begin(txn: &'t mut Transaction, tree: &'t StringTree, last: Option<PageId>) -> Result<Append<'t>> {
        let mut leaf = StringLeafBuilder::default();
        if let Some(at) = last {
            let page = txn.page(tree.shape.id, at)?;
            leaf.resume(&page).map_err(|bad| txn.damaged(at, bad.0))?;
        }
        let near = last.unwrap_or(tree.symbols_page);
        Ok(Append { txn, tree, leaf, at: last, near, leaves: Vec::new(), pages: 0 })
    }

    /// Adds all strings, a batch at a time.
    fn encode(&mut self, codec: &Codec, values: &[&[u8]]) -> Result<()> {
        let (mut batch, mut encoded) = (StringBatch::default(), Encoded::default());
        let mut rest = values.iter().peekable();
        while rest.peek().is_some() {
            batch.clear();
            while batch.bytes() < BATCH_BYTES
                && let Some(value) = rest.next_if(|value| !codec.is_too_long(value))
            {
                batch.push(value);
            }
            let encode = codec.encode(&mut batch, &mut encoded);
            encode.map_err(|bad| self.txn.damaged(self.tree.symbols_page, bad.0))?;
            for (value, bytes) in batch.strings().zip(encoded.strings()) {
                match bytes.len() <= MOST {
                    true => self.add(bytes, false)?,
                    false => self.add_long(value)?,
                }
            }
            if let Some(value) = rest.next_if(|value| codec.is_too_long(value)) {
                self.add_long(value)?;
            }
        }
        Ok(())
    }

    fn add_long(&mut self, value: &[u8]) -> Result<()> {
        let (id, mut near) = (self.tree.shape.id, self.near);
        let (txn, pages) = (&mut *self.txn, &mut self.pages);
        let write = |page: &mut PageBuf| {
            near = txn.allocate(id, Some(near))?;
            *pages += 1;
            put(txn, id, near, page)?;
            Ok(near)
        };
        let reference = write_long(write, value, MOST)?;
        self.near = near;
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
        let id = self.tree.shape.id;
        let at = match self.at.take() {
            Some(at) => at,
            None => {
                self.pages += 1;
                self.txn.allocate(id, Some(self.near))?
            }
        };
        let (rows, separator) = (self.leaf.len() as u64, [self.leaf.first_id(), 0, 0, 0]);
        let mut page = PageBuf::new();
        self.leaf.finish(&mut page, GroupOrder::Downwards);
        put(self.txn, id, at, &page)?;
        self.near = at;
        self.leaves.push(Child { separator, page: at, rows });
        Ok(())
    }

    /// Writes what is left; returns the leaves from the last old one on, and the pages taken.
    fn finish(mut self) -> Result<(Vec<Child>, u64)> {
        if self.leaf.len() > 0 {
            self.end_leaf()?;
        }
        Ok((self.leaves, self.pages))
    }
}
