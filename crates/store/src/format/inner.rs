//! Inner nodes of tuple and string trees: separators, children and exact row counts, searched
//! without decoding.
//!
//! Body, from byte 32 of the page (header count = children, level ≥ 1):
//!
//! ```text
//! 32  rows 7 bytes                 rows of the whole subtree
//! 39  corrections u8               number of corrections, at most 32
//! 40  table: arity key columns | child page | rows before the child in this node      (see encoding_table)
//!     corrections: from the page's end downwards, child u16 | rows i16
//! ```
//!
//! A correction says that a child has so many rows more (or less) than the table says: so a row
//! that is added changes some six bytes of each node above it, and not the count of every child
//! behind. They are worked into the table when there is no room for another one.
//!
//! A separator is above every row of the children before it and not above the first row of its
//! own child; columns behind the first one that tells the two apart are 0, so that they take no
//! bytes. The first separator of a level counts as below every row, whatever it holds. Levels
//! fall by one from parent to child, which also means that no damaged page can lead a descent
//! in circles.

use crate::format::encoding::table::{Span, Table, table_len, write_table};
use crate::format::encoding::{BODY, Bad, Decode, load, load_u8, load_u16, store};
use crate::format::key::{Key, MAX_ARITY};
use crate::page::{BODY_BYTES, PAGE_BYTES, PageBuf, PageId, PageKind, header};

/// Where the table of an inner node begins.
pub(crate) const TABLE: usize = 40;

/// Where the number of corrections lies; the bytes before it are the rows.
const CORRECTIONS_AT: usize = 39;

/// Most corrections of a node.
pub(crate) const CORRECTIONS_MAX: usize = 32;

/// Bytes of a correction.
pub(crate) const CORRECTION: usize = 4;

/// An inner node found in a page. All accesses take the page it was parsed from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Inner {
    /// Number of children, at least one.
    pub children: usize,
    arity: usize,
    corrections: usize,
    table: Table,
}

impl Inner {
    /// Reads the head of the node in `page` and checks that its table lies inside.
    pub(crate) fn parse(page: &[u8], kind: PageKind, arity: usize, level: u8) -> Decode<Inner> {
        let head = header(page);
        if head.kind() != kind as u8 || head.level() != level {
            return Err(Bad("not an inner node of the level that leads here"));
        }
        let children = head.count() as usize;
        if children == 0 {
            return Err(Bad("an inner node without children"));
        }
        let corrections = load_u8(page, CORRECTIONS_AT)?;
        let table = Table::parse(page, TABLE, arity + 2, children)?;
        if corrections > CORRECTIONS_MAX || table.end > PAGE_BYTES - corrections * CORRECTION {
            return Err(Bad("more corrections than an inner node has room for"));
        }
        Ok(Inner { children, arity, corrections, table })
    }

    /// Rows of the subtree.
    pub(crate) fn rows(&self, page: &[u8]) -> Decode<u64> {
        load(page, BODY, CORRECTIONS_AT - BODY)
    }

    /// Correction `i`: the child, and its rows beyond what the table says.
    fn correction(&self, page: &[u8], i: usize) -> Decode<(usize, i64)> {
        let at = correction_at(i);
        Ok((load_u16(page, at)?, i64::from(load_u16(page, at + 2)? as u16 as i16)))
    }

    /// All children.
    pub(crate) fn all(&self, page: &[u8]) -> Decode<Vec<Child>> {
        let mut before = 0;
        (0..self.children)
            .map(|i| {
                let upto = match i + 1 == self.children {
                    true => self.rows(page)?,
                    false => self.rows_before(page, i + 1)?,
                };
                let rows = upto.checked_sub(before).ok_or(Bad("rows of children that do not ascend"))?;
                before = upto;
                Ok(Child { separator: self.separator(page, i)?, page: self.child(page, i)?, rows })
            })
            .collect()
    }

    /// Child that holds the first row not below `key` (leading columns), unless that row is the
    /// first of the next child; not before `from`.
    #[inline]
    pub(crate) fn lower(&self, page: &[u8], key: &[u64], from: usize) -> Decode<usize> {
        Ok(self.table.lower_from(page, key, from)?.max(from + 1) - 1)
    }

    /// Last child that may hold rows not above `key` (leading columns); not before `from`.
    #[inline]
    pub(crate) fn upper(&self, page: &[u8], key: &[u64], from: usize) -> Decode<usize> {
        Ok(self.table.upper_from(page, key, from)?.max(from + 1) - 1)
    }

    /// Page of child `i`.
    #[inline]
    pub(crate) fn child(&self, page: &[u8], i: usize) -> Decode<PageId> {
        self.table.value(page, self.arity, i).map(PageId)
    }

    /// Rows of the children before child `i`.
    pub(crate) fn rows_before(&self, page: &[u8], i: usize) -> Decode<u64> {
        let mut rows = self.table.value(page, self.arity + 1, i)?;
        for n in 0..self.corrections {
            let (child, more) = self.correction(page, n)?;
            if child < i {
                rows = rows.wrapping_add_signed(more);
            }
        }
        Ok(rows)
    }

    /// Separator of child `i`.
    #[inline]
    pub(crate) fn separator(&self, page: &[u8], i: usize) -> Decode<Key> {
        let mut key = Key::default();
        for (c, k) in key.iter_mut().enumerate().take(self.arity) {
            *k = self.table.value(page, c, i)?;
        }
        Ok(key)
    }
}

/// A node on its way into the level above.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    /// Separator: above everything before the child, not above its first row.
    pub separator: Key,
    /// Its page.
    pub page: PageId,
    /// Rows in its subtree.
    pub rows: u64,
}

/// How many of the children fit into one node.
pub(crate) fn fitting(children: &[Child], kind: PageKind, arity: usize) -> usize {
    let most = BODY_BYTES - if kind == PageKind::TupleInner { CORRECTIONS_MAX * CORRECTION } else { 0 };
    let mut spans = [Span::EMPTY; MAX_ARITY + 2];
    let mut rows = 0;
    for (n, child) in children.iter().enumerate() {
        for (span, &k) in spans.iter_mut().zip(&child.separator[..arity]) {
            *span = span.with(k);
        }
        spans[arity] = spans[arity].with(child.page.0);
        spans[arity + 1] = spans[arity + 1].with(rows);
        rows = rows.wrapping_add(child.rows);
        if n == u16::MAX as usize || 8 + table_len(&spans[..arity + 2], n + 1) > most {
            return n;
        }
    }
    children.len()
}

/// Fills `page` with the node of these children and returns its rows.
pub(crate) fn fill_node(page: &mut PageBuf, kind: PageKind, arity: usize, level: u8, node: &[Child]) -> u64 {
    let mut columns: Vec<Vec<u64>> =
        (0..arity).map(|c| node.iter().map(|n| n.separator[c]).collect()).collect();
    columns.push(node.iter().map(|n| n.page.0).collect());
    let before = node.iter().scan(0u64, |sum, n| {
        let before = *sum;
        *sum = before.wrapping_add(n.rows);
        Some(before)
    });
    columns.push(before.collect());
    assert!(!node.is_empty(), "an inner node has children");
    assert!(level > 0, "an inner node is above leaves");
    assert!(node.len() <= usize::from(u16::MAX), "a node counts its children in 16 bits");
    // Wraps when a damaged child claimed too many.
    let rows = node.iter().fold(0u64, |sum, n| sum.wrapping_add(n.rows)) & (MOST_ROWS - 1);
    let mut body = Vec::with_capacity(BODY_BYTES);
    store(&mut body, rows, 8);
    write_table(&columns.iter().map(|c| &c[..]).collect::<Vec<_>>(), &mut body);
    assert!(body.len() <= BODY_BYTES, "the children fit into a node");
    page.clear();
    page.body_mut()[..body.len()].copy_from_slice(&body);
    page.set_header(kind, level, node.len() as u16);
    rows
}

/// One more than the most rows of a subtree; the byte above is the number of corrections.
const MOST_ROWS: u64 = 1 << (8 * (CORRECTIONS_AT - BODY));

fn correction_at(i: usize) -> usize {
    PAGE_BYTES - (i + 1) * CORRECTION
}

/// Changes the row counts of children (ascending) of the node in `page`; false, and nothing
/// changed, when that takes a wider table.
pub(crate) fn correct(page: &mut [u8], arity: usize, level: u8, more: &[(usize, i64)]) -> Decode<bool> {
    let node = Inner::parse(page, PageKind::TupleInner, arity, level)?;
    let rows = more.iter().fold(node.rows(page)?, |rows, (_, more)| rows.wrapping_add_signed(*more));
    let rows_bytes = (rows & (MOST_ROWS - 1)).to_le_bytes();
    let Some(all) = corrections_with(&node, page, more)? else {
        return rewrite_counts(page, &node, more, rows);
    };
    for (i, (child, more)) in all.iter().enumerate() {
        let at = correction_at(i);
        page[at..at + 2].copy_from_slice(&(*child as u16).to_le_bytes());
        page[at + 2..at + 4].copy_from_slice(&(*more as i16).to_le_bytes());
    }
    page[BODY..CORRECTIONS_AT].copy_from_slice(&rows_bytes[..CORRECTIONS_AT - BODY]);
    page[CORRECTIONS_AT] = all.len() as u8;
    Ok(true)
}

/// Adds rows to the last child of a node of a string tree.
pub(crate) fn lengthen(page: &mut [u8], level: u8, child: usize, more: i64) -> Decode<()> {
    let node = Inner::parse(page, PageKind::StringInner, 1, level)?;
    assert_eq!(child + 1, node.children, "strings are added behind the last one");
    let rows = node.rows(page)?.wrapping_add_signed(more) & (MOST_ROWS - 1);
    page[BODY..BODY + 8].copy_from_slice(&rows.to_le_bytes());
    Ok(())
}

/// The corrections of a node with `more`; `None` when there is no room for them.
fn corrections_with(node: &Inner, page: &[u8], more: &[(usize, i64)]) -> Decode<Option<Vec<(usize, i64)>>> {
    if more.len() > CORRECTIONS_MAX {
        return Ok(None);
    }
    let mut all: Vec<(usize, i64)> =
        (0..node.corrections).map(|i| node.correction(page, i)).collect::<Decode<_>>()?;
    for &(child, rows) in more {
        match all.iter_mut().find(|(c, _)| *c == child) {
            Some((_, sum)) => *sum += rows,
            None => all.push((child, rows)),
        }
    }
    let room = ((PAGE_BYTES - node.table.end) / CORRECTION).min(CORRECTIONS_MAX);
    let fits = all.len() <= room && all.iter().all(|(_, rows)| i16::try_from(*rows).is_ok());
    Ok(fits.then_some(all))
}

/// Works corrections into the table, if its widths allow.
fn rewrite_counts(page: &mut [u8], node: &Inner, more: &[(usize, i64)], rows: u64) -> Decode<bool> {
    let mut before = Vec::with_capacity(node.children);
    let (mut sum, mut rest) = (0i64, more);
    for child in 0..node.children {
        before.push(node.rows_before(page, child)?.wrapping_add_signed(sum));
        if let Some(((_, rows), behind)) = rest.split_first().filter(|((c, _), _)| *c == child) {
            sum += rows;
            rest = behind;
        }
    }
    if !node.table.replace(page, node.arity + 1, &before) {
        return Ok(false);
    }
    page[PAGE_BYTES - node.corrections * CORRECTION..].fill(0);
    page[BODY..BODY + 8].copy_from_slice(&(rows & (MOST_ROWS - 1)).to_le_bytes());
    Ok(true)
}
