//! Rows of a leaf as columns, for both kinds of diff: read from a page, packed into one.

use crate::format::encoding::bits::BLOCK;
use crate::format::encoding::{Bad, Decode};
use crate::format::key::{Key, MAX_ARITY};
use crate::format::tuple::leaf::LeafCursor;
use crate::format::tuple::leaf_build::LeafBuilder;
use crate::page::{HEADER_BYTES, PAGE_BYTES, PageBuf, PageKind, header, offset};

/// Rows of a leaf, a vector per column.
pub(super) type RowColumns = [Vec<u64>; MAX_ARITY];

/// First row and shape of a leaf.
pub(super) struct LeafHead {
    pub arity: usize,
    /// Rows of the blocks, without those of the tail.
    pub block_rows: usize,
    /// A zero key when there is no row.
    pub first: Key,
}

/// True when both pages are leaves with rows, of one tree.
pub(super) fn are_leaves(old: &[u8], new: &[u8]) -> bool {
    let leaf = |page: &[u8]| header(page).kind() == PageKind::TupleLeaf as u8 && header(page).count() > 0;
    leaf(old) && leaf(new) && header(old).tree() == header(new).tree()
}

/// Reads shape and first row.
pub(super) fn head(page: &[u8]) -> Decode<LeafHead> {
    let (arity, mut cursor) = open(page)?;
    let mut first = Key::default();
    let mut value = Vec::with_capacity(1);
    if cursor.len() > 0 {
        cursor.stretch(0, 1);
        for (c, v) in first.iter_mut().enumerate().take(arity) {
            cursor.append(page, c, 0, 1, &mut value)?;
            *v = value.pop().ok_or(Bad("a leaf without its first row"))?;
        }
    }
    Ok(LeafHead { arity, block_rows: cursor.block_rows(), first })
}

/// Row `i`; unused columns are 0.
pub(super) fn row_of(columns: &RowColumns, i: usize) -> Key {
    let mut row = Key::default();
    row.iter_mut().zip(columns).for_each(|(v, column)| *v = column.get(i).copied().unwrap_or(0));
    row
}

/// Arity of a leaf, and a cursor on it.
fn open(page: &[u8]) -> Decode<(usize, LeafCursor)> {
    let arity = usize::from(page[HEADER_BYTES]);
    if !(1..=MAX_ARITY).contains(&arity) {
        return Err(Bad("a leaf with a number of columns that cannot be"));
    }
    let mut cursor = LeafCursor::new(arity);
    cursor.open(page)?;
    Ok((arity, cursor))
}

/// Arity and rows of a leaf.
pub(super) fn rows(page: &[u8]) -> Decode<(usize, RowColumns)> {
    let (arity, mut cursor) = open(page)?;
    let mut columns = RowColumns::default();
    let (mut at, len) = (0, cursor.len());
    columns[..arity].iter_mut().for_each(|c| c.reserve(len));
    while at < len {
        let to = cursor.stretch(at, len);
        for (c, column) in columns.iter_mut().enumerate().take(arity) {
            cursor.append(page, c, at, to, column)?;
        }
        at = to;
    }
    Ok((arity, columns))
}

/// A leaf of these rows, of the tree of another one.
pub(super) fn pack(like: &[u8], arity: usize, columns: &RowColumns) -> Decode<PageBuf> {
    let len = columns[0].len();
    let row = |i: usize| columns[..arity].iter().map(move |c| c[i]);
    if len == 0 || len > usize::from(u16::MAX) || (1..len).any(|i| row(i - 1).ge(row(i))) {
        return Err(Bad("rows that are none of a leaf's"));
    }
    let mut builder = LeafBuilder::new(arity);
    let mut done = 0;
    while done < len {
        let rest: [&[u64]; MAX_ARITY] = std::array::from_fn(|c| columns[c].get(done..).unwrap_or(&[]));
        let want = rest[0].len().min(BLOCK);
        if builder.add(&rest[..arity]) < want {
            return Err(Bad("more rows than fit into a leaf"));
        }
        done += want;
    }
    let mut page = PageBuf::new();
    builder.finish(&mut page);
    page[offset::TREE..offset::TREE + 4].copy_from_slice(&like[offset::TREE..offset::TREE + 4]);
    assert_eq!(page.len(), PAGE_BYTES);
    Ok(page)
}
