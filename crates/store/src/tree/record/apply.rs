//! Changes to a record tree, in batches sorted by key: records put, replaced, taken.
//!
//! 1. down: a node hands each child its part of the changes; the children that get one are
//!    wished for together;
//! 2. a leaf carries its changes out in place as long as they fit (a slot and a record each),
//!    else its records are packed anew, into several pages of about equal size when one is not
//!    enough; runs of long values come and go with their records;
//! 3. up: a node whose children only changed their counts is changed in place, else it is
//!    packed anew like a leaf. Empty pages are given back, a split root gets a level above it,
//!    a root with one child gives way to it.

use crate::access::transaction::Transaction;
use crate::error::{Result, StoreError};
use crate::format::encoding::{Decode, store_varint};
use crate::format::record::key::shortest_above;
use crate::format::record::page::{
    Equal, Gap, MOST_KEY, MOST_VALUE, RecordPage, RecordPageBuilder, insert, remove, replace,
};
use crate::page::{PageBuf, PageId, PageKind};
use crate::tree::change::put;
use crate::tree::long_value::{LongRef, write_long};
use crate::tree::record::{RecordTree, child_of, child_record};

/// A change: a key, and its new value, or none when the record is taken.
pub type RecordChange<'a> = (&'a [u8], Option<&'a [u8]>);

/// Counts of applied changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordsApplied {
    /// Records with keys that were not there.
    pub inserted: u64,
    /// Records whose value was replaced.
    pub replaced: u64,
    /// Records taken that were there.
    pub deleted: u64,
}

/// A record of a page that is packed anew.
#[derive(Clone, Debug)]
struct Entry {
    key: Vec<u8>,
    value: Vec<u8>,
    long: bool,
}

/// A node on its way into the level above.
struct Node {
    separator: Vec<u8>,
    page: PageId,
    records: u64,
}

/// Outcome of a change for a node.
enum NodeChange {
    /// It has so many records more.
    Records(i64),
    /// These nodes stand for it.
    Nodes(Vec<Node>),
}

/// An edit of a leaf: the value and whether it is a reference; none when the record goes.
type Edit<'a> = (&'a [u8], Option<(Vec<u8>, bool)>);

impl RecordTree {
    /// Makes an empty tree. The caller stores [`RecordTree::to_bytes`] as a record, after every
    /// change.
    pub fn create(txn: &mut Transaction, name: &str) -> Result<RecordTree> {
        Ok(RecordTree::new(txn.new_tree(name), PageId(0), 0, 0, 0))
    }

    /// Puts and takes records; keys ascend strictly. On an error the transaction must be given up.
    ///
    /// # Errors
    /// A key is longer than a quarter page, reading a page failed, a page contradicts the
    /// format, there is no space left.
    pub fn apply(&mut self, txn: &mut Transaction, changes: &[RecordChange<'_>]) -> Result<RecordsApplied> {
        assert!(changes.is_sorted_by(|a, b| a.0 < b.0), "changes of records ascend strictly");
        if let Some((key, _)) = changes.iter().find(|(key, _)| key.len() > MOST_KEY) {
            return Err(StoreError::Config(format!(
                "a key of {} bytes; at most {MOST_KEY} are stored",
                key.len()
            )));
        }
        let mut apply = Apply { txn, tree: self, applied: RecordsApplied::default() };
        apply.root(changes)?;
        let applied = apply.applied;
        self.len = (self.len + applied.inserted).saturating_sub(applied.deleted);
        Ok(applied)
    }
}

/// Changes under way.
struct Apply<'t> {
    txn: &'t mut Transaction,
    tree: &'t mut RecordTree,
    applied: RecordsApplied,
}

impl Apply<'_> {
    fn root(&mut self, changes: &[RecordChange<'_>]) -> Result<()> {
        let now = match self.tree.height {
            0 => self.plant(changes)?,
            height => self.node(self.tree.root, height - 1, changes)?,
        };
        if let NodeChange::Nodes(nodes) = now {
            self.grow(nodes)?;
        }
        self.shrink()
    }

    /// The first records of an empty tree.
    fn plant(&mut self, changes: &[RecordChange<'_>]) -> Result<NodeChange> {
        let mut entries = Vec::new();
        for (key, value) in changes.iter().filter_map(|(k, v)| v.map(|v| (*k, v))) {
            let (value, long) = self.stored(value, None)?;
            entries.push(Entry { key: key.to_vec(), value, long });
        }
        self.applied.inserted += entries.len() as u64;
        self.tree.height = u8::from(!entries.is_empty());
        let nodes = self.write(None, 0, Vec::new(), entries)?;
        Ok(if nodes.is_empty() { NodeChange::Records(0) } else { NodeChange::Nodes(nodes) })
    }

    fn node(&mut self, at: PageId, level: u8, changes: &[RecordChange<'_>]) -> Result<NodeChange> {
        if level == 0 {
            return self.leaf(at, changes);
        }
        let parts = self.parts(at, level, changes)?;
        let mut pages: Vec<PageId> = parts.iter().map(|p| p.1).collect();
        pages.sort_unstable();
        for pages in pages.chunks(self.txn.wish_limit()).take(1) {
            self.txn.wish(self.tree.id, pages);
        }
        let mut results = Vec::new();
        let mut rest = changes;
        for (child, page, n) in parts {
            let (mine, behind) = rest.split_at(n);
            rest = behind;
            results.push((child, self.node(page, level - 1, mine)?));
        }
        self.inner(at, level, results)
    }

    /// The children that changes fall into: position, page, number of changes.
    fn parts(
        &mut self,
        at: PageId,
        level: u8,
        changes: &[RecordChange<'_>],
    ) -> Result<Vec<(usize, PageId, usize)>> {
        let page = self.page(at)?;
        let mut parts: Vec<(usize, PageId, usize)> = Vec::new();
        for (key, _) in changes {
            let (child, i) = self.decoded(at, child_of(&page, level, key))?;
            match parts.last_mut() {
                Some((last, _, n)) if *last == i => *n += 1,
                _ => parts.push((i, child, 1)),
            }
        }
        Ok(parts)
    }

    /// Works the outcomes of children into an inner node.
    fn inner(&mut self, at: PageId, level: u8, results: Vec<(usize, NodeChange)>) -> Result<NodeChange> {
        let page = self.page(at)?;
        let node = self.decoded(at, RecordPage::parse(&page, PageKind::RecordInner, level))?;
        let (mut buf, mut sum, mut in_place) = (copy(&page), 0, true);
        for (i, now) in &results {
            let NodeChange::Records(more) = now else {
                in_place = false;
                break;
            };
            sum += more;
            let (child, records) = self.decoded(at, child_record(&page, &node, *i))?;
            let value = child_value(child, records.wrapping_add_signed(*more));
            in_place &= self.decoded(at, replace(&mut buf, &node, *i, &value, false))?;
        }
        if in_place {
            if results.iter().any(|(_, now)| !matches!(now, NodeChange::Records(0))) {
                put(self.txn, self.tree.id, at, &buf)?;
            }
            return Ok(NodeChange::Records(sum));
        }
        let entries = self.decoded(at, entries(&page, &node))?;
        let (before, mut children) = (self.records(at, &page, &node)?, Vec::new());
        let lowest = entries[0].key.clone();
        let mut results = results.into_iter().peekable();
        for (i, entry) in entries.into_iter().enumerate() {
            let (child, records) = self.decoded(at, child_record(&page, &node, i))?;
            match results.next_if(|r| r.0 == i).map(|r| r.1) {
                None => children.push(Node { separator: entry.key, page: child, records }),
                Some(NodeChange::Records(more)) => {
                    let records = records.wrapping_add_signed(more);
                    children.push(Node { separator: entry.key, page: child, records });
                }
                Some(NodeChange::Nodes(mut nodes)) => {
                    if let Some(first) = nodes.first_mut() {
                        // The leftmost child may have got keys below its separator.
                        first.separator = entry.key.min(std::mem::take(&mut first.separator));
                    }
                    children.extend(nodes);
                }
            }
        }
        if let Some(first) = children.first_mut() {
            first.separator = lowest.min(std::mem::take(&mut first.separator));
        }
        drop(page);
        let mut nodes = self.write_inner(Some(at), level, children)?;
        Ok(match nodes.len() {
            1 => NodeChange::Records(nodes.pop().expect("one node").records as i64 - before as i64),
            _ => NodeChange::Nodes(nodes),
        })
    }

    fn records(&self, at: PageId, page: &[u8], node: &RecordPage) -> Result<u64> {
        let mut sum = 0u64;
        for i in 0..node.len {
            sum = sum.wrapping_add(self.decoded(at, child_record(page, node, i))?.1);
        }
        Ok(sum)
    }

    /// A leaf's changes.
    fn leaf(&mut self, at: PageId, changes: &[RecordChange<'_>]) -> Result<NodeChange> {
        let page = self.page(at)?;
        let (edits, applied) = self.edits(at, &page, changes)?;
        let more = applied.inserted as i64 - applied.deleted as i64;
        self.applied.inserted += applied.inserted;
        self.applied.replaced += applied.replaced;
        self.applied.deleted += applied.deleted;
        if edits.is_empty() {
            return Ok(NodeChange::Records(0));
        }
        let mut buf = copy(&page);
        if self.decoded(at, edit_in_place(&mut buf, &edits))? {
            put(self.txn, self.tree.id, at, &buf)?;
            return Ok(NodeChange::Records(more));
        }
        let old = RecordPage::parse(&page, PageKind::RecordLeaf, 0).and_then(|leaf| entries(&page, &leaf));
        let old = self.decoded(at, old)?;
        drop(page);
        let first = old.first().map(|e| e.key.clone()).unwrap_or_default();
        let nodes = self.write(Some(at), 0, first, merge(old, edits))?;
        Ok(if nodes.len() == 1 { NodeChange::Records(more) } else { NodeChange::Nodes(nodes) })
    }

    /// Looks the changes up in a leaf; gives the runs of old values back and writes those of
    /// new ones.
    fn edits<'a>(
        &mut self,
        at: PageId,
        page: &[u8],
        changes: &[RecordChange<'a>],
    ) -> Result<(Vec<Edit<'a>>, RecordsApplied)> {
        let (mut edits, mut applied) = (Vec::new(), RecordsApplied::default());
        let leaf = self.decoded(at, RecordPage::parse(page, PageKind::RecordLeaf, 0))?;
        for &(key, value) in changes {
            let i = self.decoded(at, leaf.rank(page, key, Equal::CountsNot))?;
            let there = self.decoded(at, leaf.rank(page, key, Equal::Counts))? > i;
            match (there, value.is_some()) {
                (true, true) => applied.replaced += 1,
                (true, false) => applied.deleted += 1,
                (false, true) => applied.inserted += 1,
                (false, false) => continue,
            }
            if there {
                let old = self.decoded(at, leaf.record(page, i))?;
                if old.long {
                    self.release_long(at, old.value)?;
                }
            }
            let value = value.map(|v| self.stored(v, Some(at))).transpose()?;
            edits.push((key, value));
        }
        Ok((edits, applied))
    }

    /// The form in which a leaf keeps a value: itself, or a reference to its run.
    fn stored(&mut self, value: &[u8], near: Option<PageId>) -> Result<(Vec<u8>, bool)> {
        if value.len() <= MOST_VALUE {
            return Ok((value.to_vec(), false));
        }
        let (txn, id, pages) = (&mut *self.txn, self.tree.id, &mut self.tree.pages);
        let mut near = near;
        let write = |page: &mut PageBuf| {
            let at = txn.allocate(id, near)?;
            near = Some(at);
            *pages += 1;
            put(txn, id, at, page)?;
            Ok(at)
        };
        Ok((write_long(write, value, MOST_VALUE)?, true))
    }

    fn release_long(&mut self, leaf: PageId, reference: &[u8]) -> Result<()> {
        let reference = self.decoded(leaf, LongRef::parse(reference))?;
        reference.pages.into_iter().for_each(|page| self.release(page));
        Ok(())
    }

    fn release(&mut self, page: PageId) {
        self.txn.release(self.tree.id, page);
        self.tree.pages = self.tree.pages.saturating_sub(1);
    }

    fn write_inner(&mut self, at: Option<PageId>, level: u8, children: Vec<Node>) -> Result<Vec<Node>> {
        let lowest = children.first().map(|c| c.separator.clone()).unwrap_or_default();
        let entry = |c: Node| Entry { value: child_value(c.page, c.records), key: c.separator, long: false };
        self.write(at, level, lowest, children.into_iter().map(entry).collect())
    }

    /// Packs records into the page there is, and into others near it. The first node's
    /// separator is the lower of `lowest` and its first key.
    fn write(
        &mut self,
        at: Option<PageId>,
        level: u8,
        lowest: Vec<u8>,
        entries: Vec<Entry>,
    ) -> Result<Vec<Node>> {
        if entries.is_empty() {
            at.into_iter().for_each(|page| self.release(page));
            return Ok(Vec::new());
        }
        let kind = if level == 0 { PageKind::RecordLeaf } else { PageKind::RecordInner };
        let (mut nodes, mut last): (Vec<Node>, Vec<u8>) = (Vec::new(), Vec::new());
        let mut buf = PageBuf::new();
        for part in split(&entries) {
            let separator = match (nodes.is_empty(), level) {
                (true, _) => lowest.clone().min(part[0].key.clone()),
                (false, 0) => shortest_above(&last, &part[0].key).to_vec(),
                (false, _) => part[0].key.clone(),
            };
            let page = match (nodes.last(), at) {
                (None, Some(page)) => page,
                (before, _) => {
                    self.tree.pages += 1;
                    self.txn.allocate(self.tree.id, before.map(|n| n.page))?
                }
            };
            let mut builder = RecordPageBuilder::default();
            let fits = part.iter().all(|e| builder.add(&e.key, &e.value, e.long));
            assert!(fits, "a part is as large as a page takes");
            builder.finish(kind, level, Gap::Before, &mut buf);
            put(self.txn, self.tree.id, page, &buf)?;
            let records = match level {
                0 => part.len() as u64,
                _ => part.iter().fold(0u64, |sum, e| sum.wrapping_add(records_of(&e.value))),
            };
            nodes.push(Node { separator, page, records });
            last.clone_from(&part[part.len() - 1].key);
        }
        Ok(nodes)
    }

    fn grow(&mut self, mut nodes: Vec<Node>) -> Result<()> {
        while nodes.len() > 1 {
            let level = self.tree.height;
            nodes = self.write_inner(None, level, nodes)?;
            self.tree.height += 1;
        }
        match nodes.pop() {
            Some(root) => self.tree.root = root.page,
            None => (self.tree.root, self.tree.height) = (PageId(0), 0),
        }
        Ok(())
    }

    fn shrink(&mut self) -> Result<()> {
        while self.tree.height > 1 {
            let root = self.tree.root;
            let page = self.page(root)?;
            let only =
                RecordPage::parse(&page, PageKind::RecordInner, self.tree.height - 1).and_then(|node| {
                    if node.len == 1 { child_record(&page, &node, 0).map(Some) } else { Ok(None) }
                });
            let Some((only, _)) = self.decoded(root, only)? else { return Ok(()) };
            self.release(root);
            self.tree.root = only;
            self.tree.height -= 1;
        }
        Ok(())
    }

    /// A copy of a page, so that no pin is held.
    fn page(&mut self, at: PageId) -> Result<PageBuf> {
        Ok(copy(&self.txn.page(self.tree.id, at)?))
    }

    fn decoded<T>(&self, at: PageId, result: Decode<T>) -> Result<T> {
        result.map_err(|bad| self.txn.damaged(at, bad.0))
    }
}

fn copy(page: &[u8]) -> PageBuf {
    let mut buf = PageBuf::new();
    buf.copy_from_slice(page);
    buf
}

/// The value of an inner record.
fn child_value(page: PageId, records: u64) -> Vec<u8> {
    let mut value = Vec::new();
    store_varint(&mut value, page.0);
    store_varint(&mut value, records);
    value
}

/// The records below a child whose inner record has this value, which was made here.
fn records_of(value: &[u8]) -> u64 {
    let mut at = 0;
    let mut next =
        || crate::format::encoding::load_varint(value, &mut at).expect("a value made here has two integers");
    next();
    next()
}

fn entries(page: &[u8], found: &RecordPage) -> Decode<Vec<Entry>> {
    let prefix = found.prefix(page);
    (0..found.len)
        .map(|i| {
            let r = found.record(page, i)?;
            Ok(Entry { key: [prefix, r.suffix].concat(), value: r.value.to_vec(), long: r.long })
        })
        .collect()
}

/// Carries edits out in a copy of a leaf; false when it must be packed anew.
fn edit_in_place(page: &mut [u8], edits: &[Edit<'_>]) -> Decode<bool> {
    for (key, value) in edits {
        let leaf = RecordPage::parse(page, PageKind::RecordLeaf, 0)?;
        let i = leaf.rank(page, key, Equal::CountsNot)?;
        let there = leaf.rank(page, key, Equal::Counts)? > i;
        let Some((value, long)) = value else {
            if leaf.len == 1 {
                return Ok(false);
            }
            remove(page, &leaf, i);
            continue;
        };
        if there {
            if replace(page, &leaf, i, value, *long)? {
                continue;
            }
            if leaf.len == 1 {
                return Ok(false);
            }
            remove(page, &leaf, i);
        }
        let leaf = RecordPage::parse(page, PageKind::RecordLeaf, 0)?;
        if !insert(page, &leaf, i, key, value, *long)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The records of a leaf with the edits carried out.
fn merge(old: Vec<Entry>, edits: Vec<Edit<'_>>) -> Vec<Entry> {
    let mut new = Vec::with_capacity(old.len() + edits.len());
    let mut edits = edits.into_iter().peekable();
    let put = |new: &mut Vec<Entry>, (key, value): Edit<'_>| {
        new.extend(value.map(|(value, long)| Entry { key: key.to_vec(), value, long }));
    };
    for entry in old {
        while let Some(edit) = edits.next_if(|e| e.0 < &entry.key[..]) {
            put(&mut new, edit);
        }
        match edits.next_if(|e| e.0 == &entry.key[..]) {
            Some(edit) => put(&mut new, edit),
            None => new.push(entry),
        }
    }
    edits.for_each(|edit| put(&mut new, edit));
    new
}

/// Cuts records into parts of about equal size that fit a page each.
fn split(entries: &[Entry]) -> Vec<&[Entry]> {
    let full = cut(entries, usize::MAX);
    if full.len() == 1 {
        return full.into_iter().map(|(part, _)| part).collect();
    }
    let bytes: usize = full.iter().map(|(_, bytes)| bytes).sum();
    cut(entries, bytes.div_ceil(full.len())).into_iter().map(|(part, _)| part).collect()
}

/// Parts that end when they have `enough` bytes or a page is full, with their bytes.
fn cut(entries: &[Entry], enough: usize) -> Vec<(&[Entry], usize)> {
    let (mut parts, mut rest) = (Vec::new(), entries);
    while !rest.is_empty() {
        let (mut builder, mut n) = (RecordPageBuilder::default(), 0);
        while n < rest.len()
            && builder.bytes() < enough
            && builder.add(&rest[n].key, &rest[n].value, rest[n].long)
        {
            n += 1;
        }
        assert!(n > 0, "half a page fits into an empty one");
        let (part, behind) = rest.split_at(n);
        parts.push((part, builder.bytes()));
        rest = behind;
    }
    parts
}
