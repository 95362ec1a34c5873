//! Record trees: sorted byte keys → bytes. The catalog now; rows of tables and secondary
//! indexes later.
//!
//! Keys are compared as bytes (see `format::record::key` for keys of several columns). This
//! file: the handle, `get` and range scans.

pub(crate) mod apply;
pub(crate) mod build;
pub(crate) mod check;

use std::collections::VecDeque;
use std::ops::Bound;
use std::path::PathBuf;

use crate::error::{Result, StoreError};
use crate::format::encoding::{Decode, load, load_varint};
use crate::format::record::page::{Equal, RecordPage};
use crate::page::{PageId, PageKind, TreeId};
use crate::tree::long_value::LongRef;
use crate::tree::read::{decoded, wish_sorted};
use crate::{PageRef, Reader, ScanAhead, Waited, WishKind};

/// A record tree as of a build or a change. Cheap to clone; holds no page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordTree {
    pub(crate) id: TreeId,
    pub(crate) root: PageId,
    /// Levels, leaves included; 0 when the tree is empty.
    pub(crate) height: u8,
    pub(crate) len: u64,
    pub(crate) pages: u64,
}

/// Version of the catalog record.
const RECORD: u8 = 1;
const RECORD_LEN: usize = 1 + 4 + 8 + 1 + 8 + 8;

impl RecordTree {
    pub(crate) fn new(id: TreeId, root: PageId, height: u8, len: u64, pages: u64) -> Self {
        RecordTree { id, root, height, len, pages }
    }

    /// The catalog record of the tree.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![RECORD];
        out.extend(self.id.0.to_le_bytes());
        out.extend(self.root.0.to_le_bytes());
        out.push(self.height);
        out.extend(self.len.to_le_bytes());
        out.extend(self.pages.to_le_bytes());
        out
    }

    /// Reads a catalog record written by [`RecordTree::to_bytes`].
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it is not one.
    pub fn from_bytes(bytes: &[u8]) -> Result<RecordTree> {
        let wrong = || StoreError::Corrupt {
            path: PathBuf::from("catalog"),
            why: "the record of a record tree cannot be read".into(),
        };
        if bytes.len() != RECORD_LEN || bytes[0] != RECORD {
            return Err(wrong());
        }
        let read = |at: usize, width: usize| load(bytes, at, width).map_err(|_| wrong());
        let (id, root) = (TreeId(read(1, 4)? as u32), PageId(read(5, 8)?));
        Ok(RecordTree { id, root, height: bytes[13], len: read(14, 8)?, pages: read(22, 8)? })
    }

    /// The tree's id in the store.
    pub fn id(&self) -> TreeId {
        self.id
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True when there are no records.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of pages, long values included.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The value of `key`, put into `value`; false when there is none.
    ///
    /// # Errors
    /// Reading a page failed, or a page contradicts the format.
    pub fn get(&self, reader: &mut Reader, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        reader.meters.rnd += 1;
        reader.touch(self.id, 1);
        if self.height == 0 {
            return Ok(false);
        }
        let mut id = self.root;
        for level in (1..self.height).rev() {
            let page = reader.page(self.id, id)?;
            let child = child_of(&page, level, key).map(|(child, _)| child);
            id = decoded(reader, id, child)?;
        }
        let page = reader.page(self.id, id)?;
        let found = RecordPage::parse(&page, PageKind::RecordLeaf, 0).and_then(|leaf| {
            let i = leaf.rank(&page, key, Equal::CountsNot)?;
            if i == leaf.len || leaf.rank(&page, key, Equal::Counts)? == i {
                return Ok(None);
            }
            leaf.record(&page, i).map(Some)
        });
        match decoded(reader, id, found)? {
            None => Ok(false),
            Some(r) if r.long => {
                let reference = decoded(reader, id, LongRef::parse(r.value))?;
                drop(page);
                reference.read(reader, self.id, id, value)?;
                Ok(true)
            }
            Some(r) => {
                value.clear();
                value.extend_from_slice(r.value);
                Ok(true)
            }
        }
    }

    /// Records whose keys lie between the bounds, in key order.
    pub fn scan(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> RecordScan {
        RecordScan {
            tree: self.clone(),
            from: from.map(<[u8]>::to_vec),
            to: to.map(<[u8]>::to_vec),
            path: Vec::new(),
            leaves: VecDeque::new(),
            ahead: None,
            here: None,
            state: ScanState::Begin,
            key: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Records whose keys begin with `prefix`, in key order.
    pub fn scan_prefix(&self, prefix: &[u8]) -> RecordScan {
        let mut above = prefix.to_vec();
        while above.last() == Some(&0xFF) {
            above.pop();
        }
        let to = match above.last_mut() {
            Some(last) => {
                *last += 1;
                Bound::Excluded(&above[..])
            }
            None => Bound::Unbounded,
        };
        self.scan(Bound::Included(prefix), to)
    }
}

/// The child that may hold `key`, and its position.
pub(crate) fn child_of(page: &[u8], level: u8, key: &[u8]) -> Decode<(PageId, usize)> {
    let node = RecordPage::parse(page, PageKind::RecordInner, level)?;
    let i = node.rank(page, key, Equal::Counts)?.max(1) - 1;
    Ok((child_at(page, &node, i)?, i))
}

/// Page and records of child `i`.
pub(crate) fn child_record(page: &[u8], node: &RecordPage, i: usize) -> Decode<(PageId, u64)> {
    let (value, mut at) = (node.record(page, i)?.value, 0);
    Ok((PageId(load_varint(value, &mut at)?), load_varint(value, &mut at)?))
}

fn child_at(page: &[u8], node: &RecordPage, i: usize) -> Decode<PageId> {
    load_varint(node.record(page, i)?.value, &mut 0).map(PageId)
}

/// A range scan under way; see [`RecordTree::scan`]. No pin is held between calls.
pub struct RecordScan {
    tree: RecordTree,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    /// For each level above the leaves' parents: node and its next child.
    path: Vec<(PageId, u8, usize)>,
    /// Leaves to come under the current parent.
    leaves: VecDeque<PageId>,
    ahead: Option<ScanAhead>,
    /// Current leaf and its next record.
    here: Option<(PageId, usize)>,
    state: ScanState,
    key: Vec<u8>,
    value: Vec<u8>,
}

#[derive(PartialEq, Eq)]
enum ScanState {
    Begin,
    Under,
    Done,
}

impl RecordScan {
    /// Calls `f` with up to `max_records` keys and values; false when there was none left.
    ///
    /// # Errors
    /// Reading a page failed, or a page contradicts the format.
    pub fn next(
        &mut self,
        reader: &mut Reader,
        max_records: usize,
        mut f: impl FnMut(&[u8], &[u8]),
    ) -> Result<bool> {
        assert!(max_records > 0, "a scan is asked for at least one record");
        let mut n = 0;
        if self.state == ScanState::Begin {
            self.begin(reader)?;
        }
        while n < max_records && self.state != ScanState::Done {
            match self.here {
                Some((leaf, i)) => n += self.records(reader, leaf, i, max_records - n, &mut f)?,
                None => self.next_leaf(reader)?,
            }
        }
        reader.meters.seq += n as u64;
        reader.touch(self.tree.id, n as u64);
        Ok(n > 0)
    }

    /// Descends to the first leaf.
    fn begin(&mut self, reader: &mut Reader) -> Result<()> {
        self.state = ScanState::Under;
        if self.tree.height == 0 {
            self.state = ScanState::Done;
            return Ok(());
        }
        reader.meters.rnd += 1;
        let key = match &self.from {
            Bound::Included(key) | Bound::Excluded(key) => key.clone(),
            Bound::Unbounded => Vec::new(),
        };
        let mut id = self.tree.root;
        for level in (1..self.tree.height).rev() {
            let page = reader.page(self.tree.id, id)?;
            let (child, i) = decoded(reader, id, child_of(&page, level, &key))?;
            match level {
                1 => {
                    let leaves = leaves_from(&page, i);
                    self.leaves.extend(decoded(reader, id, leaves)?);
                }
                _ => self.path.push((id, level, i + 1)),
            }
            id = child;
        }
        if self.tree.height == 1 {
            self.leaves.push_back(id);
        }
        self.next_leaf(reader)?;
        let Some((leaf, _)) = self.here else { return Ok(()) };
        let page = reader.page(self.tree.id, leaf)?;
        let equal = if matches!(self.from, Bound::Excluded(_)) { Equal::Counts } else { Equal::CountsNot };
        let first =
            RecordPage::parse(&page, PageKind::RecordLeaf, 0).and_then(|p| p.rank(&page, &key, equal));
        self.here = Some((leaf, decoded(reader, leaf, first)?));
        Ok(())
    }

    /// Goes to the begin of the next leaf, or ends the scan.
    fn next_leaf(&mut self, reader: &mut Reader) -> Result<()> {
        while self.leaves.is_empty() {
            let Some((id, level, i)) = self.path.pop() else {
                self.state = ScanState::Done;
                return Ok(());
            };
            let page = reader.page(self.tree.id, id)?;
            let node = decoded(reader, id, RecordPage::parse(&page, PageKind::RecordInner, level))?;
            if level == 1 {
                self.leaves.extend(decoded(reader, id, leaves_from(&page, i))?);
                if let Some(ahead) = &mut self.ahead {
                    ahead.begun_anew();
                }
            } else if i < node.len {
                let child = decoded(reader, id, child_at(&page, &node, i))?;
                self.path.push((id, level, i + 1));
                self.path.push((child, level - 1, 0));
            }
        }
        let leaf = self.leaves.pop_front().expect("just checked");
        if let Some(ahead) = &mut self.ahead {
            ahead.advanced();
        }
        self.here = Some((leaf, 0));
        self.read_ahead(reader, leaf)
    }

    /// Rule 4, as far as the current parent's leaves go.
    fn read_ahead(&mut self, reader: &mut Reader, leaf: PageId) -> Result<()> {
        if reader.resident(self.tree.id) {
            return Ok(());
        }
        let waits = (reader.meters.waits, reader.meters.disk - reader.meters.spec_disk);
        drop(reader.page(self.tree.id, leaf)?);
        let waited = match waits == (reader.meters.waits, reader.meters.disk - reader.meters.spec_disk) {
            true => Waited::No,
            false => Waited::Yes,
        };
        let ahead = self.ahead.get_or_insert_with(|| reader.scan_ahead());
        ahead.visited(leaf, waited);
        wish_sorted(reader, self.tree.id, &ahead.wishes(&self.leaves), WishKind::Scan);
        Ok(())
    }

    /// Hands out records of a leaf from `i` on.
    fn records(
        &mut self,
        reader: &mut Reader,
        leaf: PageId,
        mut i: usize,
        most: usize,
        f: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        let mut page: Option<PageRef> = Some(reader.page(self.tree.id, leaf)?);
        let mut n = 0;
        while n < most {
            if page.is_none() {
                page = Some(reader.page(self.tree.id, leaf)?);
            }
            let bytes = page.as_deref().expect("just pinned");
            let here = decoded(reader, leaf, RecordPage::parse(bytes, PageKind::RecordLeaf, 0))?;
            if i >= here.len {
                self.here = None;
                return Ok(n);
            }
            let record = decoded(reader, leaf, here.record(bytes, i))?;
            self.key.clear();
            self.key.extend_from_slice(here.prefix(bytes));
            self.key.extend_from_slice(record.suffix);
            let inside = match &self.to {
                Bound::Included(to) => self.key <= *to,
                Bound::Excluded(to) => self.key < *to,
                Bound::Unbounded => true,
            };
            if !inside {
                self.state = ScanState::Done;
                return Ok(n);
            }
            if record.long {
                let reference = decoded(reader, leaf, LongRef::parse(record.value))?;
                page = None; // no pin while waiting
                reference.read(reader, self.tree.id, leaf, &mut self.value)?;
                f(&self.key, &self.value);
            } else {
                f(&self.key, record.value);
            }
            (i, n) = (i + 1, n + 1);
            self.here = Some((leaf, i));
        }
        Ok(n)
    }
}

/// The children of a node above the leaves, from `i` on.
fn leaves_from(page: &[u8], i: usize) -> Decode<Vec<PageId>> {
    let node = RecordPage::parse(page, PageKind::RecordInner, 1)?;
    (i..node.len).map(|i| child_at(page, &node, i)).collect()
}
