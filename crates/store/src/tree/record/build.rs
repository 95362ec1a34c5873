//! Builds a record tree bottom-up from records in key order.

use crate::TreeWriter;
use crate::error::{Result, StoreError};
use crate::format::encoding::store_varint;
use crate::format::record::key::shortest_above;
use crate::format::record::page::{Gap, MOST_KEY, MOST_VALUE, RecordPageBuilder};
use crate::page::{PageBuf, PageId, PageKind};
use crate::tree::long_value::write_long;
use crate::tree::record::RecordTree;

/// Bulk build of a [`RecordTree`] from records in strictly ascending key order.
pub struct RecordTreeBuilder {
    writer: TreeWriter,
    leaf: RecordPageBuilder,
    page: PageBuf,
    children: Vec<RecordChild>,
    /// Last key of the leaf before.
    before: Vec<u8>,
    len: u64,
}

/// A page on its way into the level above.
struct RecordChild {
    separator: Vec<u8>,
    page: PageId,
    records: u64,
}

impl RecordTreeBuilder {
    /// A tree written by `writer`.
    pub fn new(writer: TreeWriter) -> Self {
        RecordTreeBuilder {
            writer,
            leaf: RecordPageBuilder::default(),
            page: PageBuf::new(),
            children: Vec::new(),
            before: Vec::new(),
            len: 0,
        }
    }

    /// Adds a record; its key must be above the last one.
    ///
    /// # Errors
    /// The key is longer than a quarter page, or writing a page failed.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if key.len() > MOST_KEY {
            return Err(StoreError::Config(format!(
                "a key of {} bytes; at most {MOST_KEY} are stored",
                key.len()
            )));
        }
        let ascends = self.leaf.len() == 0 || key > self.leaf.last_key();
        assert!(
            ascends && (self.len == 0 || key > &self.before[..]),
            "records are pushed in ascending key order"
        );
        if value.len() > MOST_VALUE {
            let reference = write_long(|page| self.writer.append(page), value, MOST_VALUE)?;
            self.add(key, &reference, true)?;
        } else {
            self.add(key, value, false)?;
        }
        self.len += 1;
        Ok(())
    }

    fn add(&mut self, key: &[u8], value: &[u8], long: bool) -> Result<()> {
        if !self.leaf.add(key, value, long) {
            self.end_leaf()?;
            assert!(self.leaf.add(key, value, long), "half a page fits into an empty one");
        }
        Ok(())
    }

    fn end_leaf(&mut self) -> Result<()> {
        let records = self.leaf.len() as u64;
        if records == 0 {
            return Ok(());
        }
        let separator = match self.children.is_empty() {
            true => Vec::new(),
            false => shortest_above(&self.before, self.leaf.first_key()).to_vec(),
        };
        assert!(
            self.children.is_empty() || separator[..] > self.before[..],
            "a separator is above what comes before it"
        );
        self.before = self.leaf.last_key().to_vec();
        self.leaf.finish(PageKind::RecordLeaf, 0, Gap::Behind, &mut self.page);
        let page = self.writer.append(&mut self.page)?;
        self.children.push(RecordChild { separator, page, records });
        Ok(())
    }

    /// Writes what is left and the levels above the leaves.
    pub fn finish(mut self) -> Result<RecordTree> {
        self.end_leaf()?;
        let id = self.writer.id();
        let (mut level, mut children) = (0, std::mem::take(&mut self.children));
        let root = loop {
            match &children[..] {
                [] => break None,
                [only] => break Some(only.page),
                _ => {}
            }
            level += 1;
            children = self.write_level(level, &children)?;
        };
        let height = if root.is_some() { level + 1 } else { 0 };
        assert_eq!(root.is_some(), self.len > 0, "a tree with records has a root");
        let pages = self.writer.pages();
        self.writer.finish()?;
        Ok(RecordTree::new(id, root.unwrap_or(PageId(0)), height, self.len, pages))
    }

    fn write_level(&mut self, level: u8, children: &[RecordChild]) -> Result<Vec<RecordChild>> {
        let mut above = Vec::new();
        let mut node = RecordPageBuilder::default();
        let (mut first, mut records) = (0, 0);
        for (i, child) in children.iter().enumerate() {
            let mut value = Vec::new();
            store_varint(&mut value, child.page.0);
            store_varint(&mut value, child.records);
            if !node.add(&child.separator, &value, false) {
                above.push(self.end_node(level, &mut node, &children[first], records)?);
                (first, records) = (i, 0);
                assert!(node.add(&child.separator, &value, false), "a separator fits into an empty page");
            }
            records += child.records;
        }
        above.push(self.end_node(level, &mut node, &children[first], records)?);
        Ok(above)
    }

    fn end_node(
        &mut self,
        level: u8,
        node: &mut RecordPageBuilder,
        first: &RecordChild,
        records: u64,
    ) -> Result<RecordChild> {
        node.finish(PageKind::RecordInner, level, Gap::Behind, &mut self.page);
        let page = self.writer.append(&mut self.page)?;
        Ok(RecordChild { separator: first.separator.clone(), page, records })
    }
}
