//! Checks a record tree as a whole: every page decodes, keys ascend across leaves, separators
//! part them, counts are exact, long values can be read.

use crate::Reader;
use crate::error::Result;
use crate::format::encoding::Decode;
use crate::format::record::page::RecordPage;
use crate::page::{PageId, PageKind};
use crate::tree::long_value::LongRef;
use crate::tree::read::{decoded, walk_ahead};
use crate::tree::record::{RecordTree, child_record};

struct RecordWalk<'t> {
    tree: &'t RecordTree,
    last: Option<Vec<u8>>,
    records: u64,
    pages: u64,
    on_page: &'t mut dyn FnMut(PageId),
}

impl RecordTree {
    /// Reads the whole tree and compares what it says with what it holds.
    ///
    /// # Errors
    /// [`StoreError::Damaged`](crate::StoreError::Damaged) with the first page that contradicts
    /// another one or the handle.
    pub fn check(&self, reader: &mut Reader) -> Result<()> {
        self.check_pages(reader, &mut |_| {})
    }

    /// As [`RecordTree::check`]; `on_page` is called with each page that the tree uses.
    ///
    /// # Errors
    /// As [`RecordTree::check`].
    pub fn check_pages(&self, reader: &mut Reader, on_page: &mut dyn FnMut(PageId)) -> Result<()> {
        let mut walk = RecordWalk { tree: self, last: None, records: 0, pages: 0, on_page };
        if self.height > 0 {
            walk.node(reader, self.root, self.height - 1, None)?;
        }
        let (found, said) = ([walk.records, walk.pages], [self.len, self.pages]);
        if found != said {
            let why = format!("records, pages are {found:?}, the tree's record says {said:?}");
            return Err(reader.damaged(self.root, why));
        }
        Ok(())
    }
}

impl RecordWalk<'_> {
    /// A node whose keys must not be below `least`; answers its records.
    fn node(&mut self, reader: &mut Reader, id: PageId, level: u8, least: Option<&[u8]>) -> Result<u64> {
        self.pages += 1;
        (self.on_page)(id);
        let page = reader.page(self.tree.id, id)?.to_vec();
        if level == 0 {
            return self.leaf(reader, id, &page, least);
        }
        let children = decoded(reader, id, children(&page, level))?;
        if !children.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(reader.damaged(id, "separators that do not ascend"));
        }
        let mut sum = 0;
        for (i, (separator, child, records)) in children.iter().enumerate() {
            walk_ahead(reader, self.tree.id, |i| children.get(i).map(|c| c.1), i);
            let least = if i == 0 { least } else { Some(&separator[..]) };
            if least.is_some_and(|least| self.last.as_deref().is_some_and(|last| last >= least)) {
                return Err(
                    reader.damaged(id, format!("the separator of child {i} is not above the keys before it"))
                );
            }
            let found = self.node(reader, *child, level - 1, least)?;
            if found != *records {
                return Err(reader.damaged(id, format!("child {i} has {found} records, not {records}")));
            }
            sum += found;
        }
        Ok(sum)
    }

    fn leaf(&mut self, reader: &mut Reader, id: PageId, page: &[u8], least: Option<&[u8]>) -> Result<u64> {
        let leaf = decoded(reader, id, RecordPage::parse(page, PageKind::RecordLeaf, 0))?;
        let mut value = Vec::new();
        for i in 0..leaf.len {
            let record = decoded(reader, id, leaf.record(page, i))?;
            let key = [leaf.prefix(page), record.suffix].concat();
            if least.is_some_and(|least| &key[..] < least)
                || self.last.as_ref().is_some_and(|last| *last >= key)
            {
                return Err(reader.damaged(id, "keys that do not ascend"));
            }
            self.last = Some(key);
            if record.long {
                let reference = decoded(reader, id, LongRef::parse(record.value))?;
                self.pages += reference.pages.len() as u64;
                reference.pages.iter().for_each(|page| (self.on_page)(*page));
                reference.read(reader, self.tree.id, id, &mut value)?;
            }
        }
        self.records += leaf.len as u64;
        Ok(leaf.len as u64)
    }
}

/// Separator, page and records of every child.
fn children(page: &[u8], level: u8) -> Decode<Vec<(Vec<u8>, PageId, u64)>> {
    let node = RecordPage::parse(page, PageKind::RecordInner, level)?;
    (0..node.len)
        .map(|i| {
            let (child, records) = child_record(page, &node, i)?;
            Ok(([node.prefix(page), node.record(page, i)?.suffix].concat(), child, records))
        })
        .collect()
}
