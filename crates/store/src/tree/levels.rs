//! Writes the levels of inner nodes above the leaves of a bulk-built tuple or string tree.

use crate::TreeWriter;
use crate::error::Result;
use crate::format::inner::{Child, fill_node, fitting};
use crate::page::{PageBuf, PageId, PageKind};

/// Result of writing the upper levels of a tree.
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
    assert!(!children.is_empty(), "a tree has a leaf at least");
    assert!(children.is_sorted_by_key(|c| c.separator), "children are in key order");
    let rows = |children: &[Child]| children.iter().fold(0u64, |sum, c| sum.wrapping_add(c.rows));
    let all = rows(&children);
    let (mut height, mut inner) = (1, 0);
    while children.len() > 1 {
        let mut above = Vec::new();
        let mut rest = &children[..];
        while !rest.is_empty() {
            let (node, behind) = rest.split_at(fitting(rest, kind, arity));
            above.push(write_node(writer, kind, arity, height, node)?);
            rest = behind;
        }
        inner += above.len() as u64;
        height += 1;
        assert_eq!(rows(&above), all, "each level counts all rows");
        assert!(above.len() < children.len(), "a level has fewer nodes than the one below");
        children = above;
    }
    Ok(Top { root: children[0].page, height, inner })
}

fn write_node(
    writer: &mut TreeWriter,
    kind: PageKind,
    arity: usize,
    level: u8,
    node: &[Child],
) -> Result<Child> {
    let mut page = PageBuf::new();
    let rows = fill_node(&mut page, kind, arity, level, node);
    Ok(Child { separator: node[0].separator, page: writer.append(&mut page)?, rows })
}
