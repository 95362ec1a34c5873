//! The changes of a transaction as bytes: the payload of journal records.
//!
//! | tag | change                                     | fields                                                                               |
//! |-----|--------------------------------------------|--------------------------------------------------------------------------------------|
//! | 1   | page image                                 | page, bytes, the page from byte 24 on without the zeros at its end                     |
//! | 2   | page diff against the state before         | page, bytes, diff                                                                      |
//! | 3   | catalog record                             | name, kind, bytes, bytes of the record                                                 |
//! | 4   | catalog records, what changed in their bytes| bytes, diff ([`Catalog::diff`](crate::format::catalog::Catalog::diff))                          |
//! | 5   | catalog record dropped                     | name                                                                                   |
//! | 6   | new tree                                   | number, name                                                                           |
//! | 7   | dropped tree                               | number                                                                                 |
//! | 8   | extent                                     | number, owner + 1, overflow + 1, pages now in use: count, indices; no more in use: count, indices |
//! | 9   | extents written by a build                 | first number, extents, owner, pages in each from its first on                          |
//! | 10  | diff of a leaf by rows (`format::leaf_diff`)       | page, bytes, diff                                                                      |
//! | 11  | extents written by a build beside the writers      | as 9, then the transaction that the pages carry                                        |
//!
//! Numbers are varints; a name is its length and its bytes. Invariant: made again on a state
//! that already contains them, changes 3, 5 to 9 and 11 give the same state once all later ones are
//! made again too, so recovery may begin with a newer catalog than pages.

use crate::format::catalog::{Catalog, Record};
use crate::format::encoding::{Bad, Decode};
use crate::format::varint::{put, take};
use crate::page::geometry::ExtentId;
use crate::page::image::{KEPT, SKIPPED};
use crate::page::{PAGE_BYTES, PageId, TreeId};

/// One change; borrows from the payload.
#[derive(Debug, PartialEq, Eq)]
pub enum Change<'a> {
    Image {
        page: PageId,
        bytes: &'a [u8],
    },
    Diff {
        page: PageId,
        diff: &'a [u8],
    },
    Rows {
        page: PageId,
        diff: &'a [u8],
    },
    Record {
        name: &'a str,
        kind: u32,
        bytes: &'a [u8],
    },
    Records {
        diff: &'a [u8],
    },
    DropRecord {
        name: &'a str,
    },
    NewTree {
        tree: TreeId,
        name: &'a str,
    },
    DropTree {
        tree: TreeId,
    },
    Extent(ExtentChange),
    /// `by`: the transaction of the pages, where it is not that of the record.
    Built {
        first: ExtentId,
        extents: u64,
        tree: TreeId,
        pages: u32,
        by: Option<u64>,
    },
}

/// Changes of a transaction to an extent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtentChange {
    pub extent: ExtentId,
    pub tree: Option<TreeId>,
    pub overflow: Option<ExtentId>,
    pub used: Vec<u32>,
    pub unused: Vec<u32>,
}

/// Appends an image.
pub fn put_image(out: &mut Vec<u8>, page: PageId, bytes: &[u8]) {
    assert_eq!(bytes.len(), PAGE_BYTES, "an image is of a whole page");
    let kept = &bytes[SKIPPED..];
    let len = kept.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
    out.push(1);
    put(out, page.0);
    put_bytes(out, &kept[..len]);
}

/// Appends a diff.
pub fn put_diff(out: &mut Vec<u8>, page: PageId, diff: &[u8]) {
    out.push(2);
    put(out, page.0);
    put_bytes(out, diff);
}

/// Appends a diff by rows.
pub fn put_rows(out: &mut Vec<u8>, page: PageId, diff: &[u8]) {
    out.push(10);
    put(out, page.0);
    put_bytes(out, diff);
}

/// Appends a catalog record.
pub fn put_record(out: &mut Vec<u8>, name: &str, record: &Record) {
    out.push(3);
    put_bytes(out, name.as_bytes());
    put(out, record.kind.into());
    put_bytes(out, &record.bytes);
}

/// Appends what changed in the bytes of catalog records.
pub fn put_records(out: &mut Vec<u8>, diff: &[u8]) {
    out.push(4);
    put_bytes(out, diff);
}

/// Appends that a catalog record is no more.
pub fn put_drop_record(out: &mut Vec<u8>, name: &str) {
    out.push(5);
    put_bytes(out, name.as_bytes());
}

/// Appends what changed between two catalogs to a payload.
pub(crate) fn put_catalog_changes(out: &mut Vec<u8>, old: &Catalog, new: &Catalog) {
    let gone: Vec<TreeId> = old.trees.keys().filter(|id| !new.trees.contains_key(id)).copied().collect();
    gone.into_iter().for_each(|id| put_drop_tree(out, id));
    // A tree that got another name is told like a new one.
    for (id, name) in new.trees.iter().filter(|(id, name)| old.trees.get(id) != Some(*name)) {
        put_new_tree(out, *id, name);
    }
    for name in old.records.keys().filter(|name| !new.records.contains_key(*name)) {
        put_drop_record(out, name);
    }
    let mut diff = Vec::new();
    if new.diff(old, &mut diff) {
        if !diff.is_empty() {
            put_records(out, &diff);
        }
        return;
    }
    for (name, record) in new.records.iter().filter(|(name, record)| old.records.get(*name) != Some(record)) {
        put_record(out, name, record);
    }
}

/// Appends a new tree.
pub fn put_new_tree(out: &mut Vec<u8>, tree: TreeId, name: &str) {
    out.push(6);
    put(out, tree.0.into());
    put_bytes(out, name.as_bytes());
}

/// Appends that a tree is no more.
pub fn put_drop_tree(out: &mut Vec<u8>, tree: TreeId) {
    out.push(7);
    put(out, tree.0.into());
}

/// Appends a change of an extent.
pub fn put_extent(out: &mut Vec<u8>, e: &ExtentChange) {
    out.push(8);
    put(out, e.extent);
    put(out, e.tree.map_or(0, |t| u64::from(t.0) + 1));
    put(out, e.overflow.map_or(0, |o| o + 1));
    for list in [&e.used, &e.unused] {
        debug_assert!(list.is_sorted_by(|a, b| a < b), "a page of an extent changes once");
        put(out, list.len() as u64);
        list.iter().for_each(|i| put(out, u64::from(*i)));
    }
}

/// Appends extents of a build.
pub fn put_built(
    out: &mut Vec<u8>,
    first: ExtentId,
    extents: u64,
    tree: TreeId,
    pages: u32,
    by: Option<u64>,
) {
    assert!(extents > 0, "a build tells of extents that it wrote");
    out.push(if by.is_some() { 11 } else { 9 });
    put(out, first);
    put(out, extents);
    put(out, tree.0.into());
    put(out, pages.into());
    by.into_iter().for_each(|txn| put(out, txn));
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend(bytes);
}

/// Takes the change at the front of a payload.
pub fn next<'a>(payload: &mut &'a [u8]) -> Decode<Change<'a>> {
    let (tag, rest) = payload.split_first().ok_or(Bad("a change ends too early"))?;
    *payload = rest;
    let p = payload;
    Ok(match tag {
        1 => {
            let (page, bytes) = (PageId(take(p)?), take_bytes(p)?);
            if bytes.len() > KEPT {
                return Err(Bad("a page image is longer than a page"));
            }
            Change::Image { page, bytes }
        }
        2 => Change::Diff { page: PageId(take(p)?), diff: take_bytes(p)? },
        3 => Change::Record { name: take_name(p)?, kind: take_u32(p)?, bytes: take_bytes(p)? },
        4 => Change::Records { diff: take_bytes(p)? },
        5 => Change::DropRecord { name: take_name(p)? },
        6 => Change::NewTree { tree: TreeId(take_u32(p)?), name: take_name(p)? },
        7 => Change::DropTree { tree: TreeId(take_u32(p)?) },
        8 => Change::Extent(take_extent(p)?),
        9 | 11 => Change::Built {
            first: take(p)?,
            extents: take(p)?,
            tree: TreeId(take_u32(p)?),
            pages: take_u32(p)?,
            by: if *tag == 11 { Some(take(p)?) } else { None },
        },
        10 => Change::Rows { page: PageId(take(p)?), diff: take_bytes(p)? },
        _ => return Err(Bad("an unknown change")),
    })
}

fn take_extent(p: &mut &[u8]) -> Decode<ExtentChange> {
    let extent = take(p)?;
    let tree = take(p)?.checked_sub(1);
    let tree = tree.map(|t| u32::try_from(t).map_err(|_| Bad("a tree number is too large"))).transpose()?;
    let overflow = take(p)?.checked_sub(1);
    let mut lists = [Vec::new(), Vec::new()];
    for list in &mut lists {
        for _ in 0..take(p)? {
            list.push(take_u32(p)?);
        }
    }
    let [used, unused] = lists;
    Ok(ExtentChange { extent, tree: tree.map(TreeId), overflow, used, unused })
}

fn take_bytes<'a>(p: &mut &'a [u8]) -> Decode<&'a [u8]> {
    let len = take(p)? as usize;
    let (bytes, rest) = p.split_at_checked(len).ok_or(Bad("a change ends too early"))?;
    *p = rest;
    Ok(bytes)
}

fn take_name<'a>(p: &mut &'a [u8]) -> Decode<&'a str> {
    std::str::from_utf8(take_bytes(p)?).map_err(|_| Bad("a name is not UTF-8"))
}

fn take_u32(p: &mut &[u8]) -> Decode<u32> {
    u32::try_from(take(p)?).map_err(|_| Bad("a number is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PAGE_BYTES;

    #[test]
    fn changes_round_trip() {
        let mut out = Vec::new();
        let mut page = vec![0; PAGE_BYTES];
        page[30] = 7;
        put_image(&mut out, PageId(9), &page);
        put_diff(&mut out, PageId(1 << 40), b"abc");
        put_record(&mut out, "r", &Record { kind: 3, bytes: b"12845".as_slice().into() });
        put_records(&mut out, b"diff");
        put_drop_record(&mut out, "gone");
        put_new_tree(&mut out, TreeId(4), "psog");
        put_drop_tree(&mut out, TreeId(3));
        let e = ExtentChange {
            extent: 5,
            tree: Some(TreeId(4)),
            overflow: Some(0),
            used: vec![1, 2],
            unused: vec![255],
        };
        put_extent(&mut out, &e);
        put_built(&mut out, 1, 2, TreeId(4), 256, None);
        put_built(&mut out, 3, 1, TreeId(4), 7, Some(300));
        put_rows(&mut out, PageId(8), b"rows");
        let mut p = out.as_slice();
        assert_eq!(next(&mut p), Ok(Change::Image { page: PageId(9), bytes: &[0, 0, 0, 0, 0, 0, 7] }));
        assert_eq!(next(&mut p), Ok(Change::Diff { page: PageId(1 << 40), diff: b"abc" }));
        assert_eq!(next(&mut p), Ok(Change::Record { name: "r", kind: 3, bytes: b"12845" }));
        assert_eq!(next(&mut p), Ok(Change::Records { diff: b"diff" }));
        assert_eq!(next(&mut p), Ok(Change::DropRecord { name: "gone" }));
        assert_eq!(next(&mut p), Ok(Change::NewTree { tree: TreeId(4), name: "psog" }));
        assert_eq!(next(&mut p), Ok(Change::DropTree { tree: TreeId(3) }));
        assert_eq!(next(&mut p), Ok(Change::Extent(e)));
        let built = Change::Built { first: 1, extents: 2, tree: TreeId(4), pages: 256, by: None };
        assert_eq!(next(&mut p), Ok(built));
        let beside = Change::Built { first: 3, extents: 1, tree: TreeId(4), pages: 7, by: Some(300) };
        assert_eq!(next(&mut p), Ok(beside));
        assert_eq!(next(&mut p), Ok(Change::Rows { page: PageId(8), diff: b"rows" }));
        assert!(p.is_empty());
        for n in 0..out.len() {
            let mut p = &out[..n];
            while !p.is_empty() && next(&mut p).is_ok() {}
        }
    }
}
