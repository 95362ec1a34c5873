//! Inner nodes of tuple and string trees: separators, children and exact row counts, searched without decoding.
//!
//! Body, from byte 32 of the page (header count = children, level ≥ 1):
//!
//! ```text
//! 32  rows u64                     rows of the whole subtree
//! 40  table: arity key columns | child page | rows before the child in this node      (see encoding_table)
//! ```
//!
//! A separator is above every row of the children before it and not above the first row of its own child; columns
//! behind the first one that tells the two apart are 0, so that they take no bytes. Levels fall by one from parent to
//! child, which also means that no damaged page can lead a descent in circles.

use crate::TreeWriter;
use crate::encoding::{Bad, Decode, store};
use crate::encoding_table::{Span, Table, table_len, write_table};
use crate::error::Result;
use crate::page::{BODY_BYTES, PageBuf, PageId, PageKind, header};
use crate::tuple_leaf_build::MAX_ARITY;

/// A key of up to [`MAX_ARITY`] columns; unused ones are 0.
pub(crate) type Key = [u64; MAX_ARITY];

/// Where the table of an inner node begins.
pub(crate) const TABLE: usize = 40;

/// An inner node found in a page. All accesses take the page it was parsed from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Inner {
    /// Number of children, at least one.
    pub children: usize,
    arity: usize,
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
        Ok(Inner { children, arity, table: Table::parse(page, TABLE, arity + 2, children)? })
    }

    /// Child in which the first row not below `key` (leading columns) lies, or begins the next one; not before `from`.
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
        self.table.value(page, self.arity + 1, i)
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

/// What the upper levels of a tree came to.
pub(crate) struct Top {
    /// Root; the only leaf when there is one.
    pub root: PageId,
    /// Levels, leaves included.
    pub height: u8,
    /// Inner nodes written.
    pub inner: u64,
}

/// Writes the inner nodes above `children` (at least one), level by level.
pub(crate) fn write_levels(
    writer: &mut TreeWriter,
    kind: PageKind,
    arity: usize,
    mut children: Vec<Child>,
) -> Result<Top> {
    let (mut height, mut inner) = (1, 0);
    while children.len() > 1 {
        let mut above = Vec::new();
        let mut rest = &children[..];
        while !rest.is_empty() {
            let (node, behind) = rest.split_at(fitting(rest, arity));
            above.push(write_node(writer, kind, arity, height, node)?);
            rest = behind;
        }
        inner += above.len() as u64;
        height += 1;
        children = above;
    }
    Ok(Top { root: children[0].page, height, inner })
}

/// How many of the children fit into one node.
fn fitting(children: &[Child], arity: usize) -> usize {
    let mut spans = [Span::EMPTY; MAX_ARITY + 2];
    let mut rows = 0;
    for (n, child) in children.iter().enumerate() {
        for (span, &k) in spans.iter_mut().zip(&child.separator[..arity]) {
            *span = span.with(k);
        }
        spans[arity] = spans[arity].with(child.page.0);
        spans[arity + 1] = spans[arity + 1].with(rows);
        rows += child.rows;
        if n == u16::MAX as usize || 8 + table_len(&spans[..arity + 2], n + 1) > BODY_BYTES {
            return n;
        }
    }
    children.len()
}

fn write_node(
    writer: &mut TreeWriter,
    kind: PageKind,
    arity: usize,
    level: u8,
    node: &[Child],
) -> Result<Child> {
    let mut columns: Vec<Vec<u64>> =
        (0..arity).map(|c| node.iter().map(|n| n.separator[c]).collect()).collect();
    columns.push(node.iter().map(|n| n.page.0).collect());
    let before = node.iter().scan(0, |sum, n| {
        let before = *sum;
        *sum += n.rows;
        Some(before)
    });
    columns.push(before.collect());
    let rows = node.iter().map(|n| n.rows).sum();
    let mut body = Vec::with_capacity(BODY_BYTES);
    store(&mut body, rows, 8);
    write_table(&columns.iter().map(|c| &c[..]).collect::<Vec<_>>(), &mut body);
    let mut page = PageBuf::new();
    page.body_mut()[..body.len()].copy_from_slice(&body);
    page.set_header(kind, level, node.len() as u16);
    Ok(Child { separator: node[0].separator, page: writer.append(&mut page)?, rows })
}
