//! From changed leaves up to the root: how inner nodes of tuple and string trees take the
//! changes of their children.
//!
//! Level by level: (1) a node whose children only changed their row counts is corrected in
//! place; (2) else its children are spliced and the node is written anew, or split into several
//! of about equal size, new pages near the old one; (3) a node without children is given back;
//! (4) a root that was split gets new levels above it, a root with one child gives way to it.
//!
//! Invariant: the first separator of a node only falls, so whatever is routed into a node finds
//! a child there.

use crate::access::transaction::Transaction;
use crate::error::Result;
use crate::format::encoding::{Bad, Decode};
use crate::format::inner::{Child, Inner, correct, fill_node, fitting, lengthen};
use crate::page::{HEADER_BYTES, PageBuf, PageId, PageKind, TreeId, header, offset};
use crate::tree::descent::Shape;

/// A node on the way down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    pub page: PageId,
    /// Its parent, as a position among the visits of the level above, and its place among the
    /// parent's children.
    pub parent: usize,
    pub child: usize,
}

/// Outcome of a change for a child.
#[derive(Debug)]
pub(crate) enum Now {
    /// It has so many rows more.
    Rows(i64),
    /// These nodes stand for it, the first of them in its page if there is one.
    Nodes(Vec<Child>),
}

/// A child that changed.
#[derive(Debug)]
pub(crate) struct Changed {
    /// As in its [`Visit`].
    pub parent: usize,
    pub child: usize,
    pub now: Now,
}

/// How the nodes of a split are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// About equally.
    Even,
    /// The first ones full: for trees that grow at their end.
    Full,
}

/// The upper part of a tree under change.
pub(crate) struct Ascent<'t> {
    pub txn: &'t mut Transaction,
    pub shape: &'t mut Shape,
    pub split: Split,
    /// Pages taken less pages given back.
    pub pages: i64,
}

impl Ascent<'_> {
    /// Takes the changes of leaves, in key order, up to the root. `levels[l]` are the nodes
    /// visited on level `l + 1`.
    pub(crate) fn run(&mut self, levels: &[Vec<Visit>], mut changed: Vec<Changed>) -> Result<()> {
        for (i, visits) in levels.iter().enumerate() {
            assert!(changed.is_sorted_by_key(|c| c.parent), "the changes of a node come together");
            let mut above = Vec::new();
            let mut rest = changed.into_iter().peekable();
            while let Some(first) = rest.next() {
                let parent = first.parent;
                let mut group = vec![first];
                while let Some(next) = rest.next_if(|c| c.parent == parent) {
                    group.push(next);
                }
                let visit = visits[parent];
                let now = self.node(visit.page, i as u8 + 1, group)?;
                above.push(Changed { parent: visit.parent, child: visit.child, now });
            }
            changed = above;
        }
        let now = changed.pop().map(|c| c.now);
        assert!(changed.is_empty(), "all paths lead to one root");
        match now {
            Some(Now::Nodes(nodes)) => self.grow(nodes)?,
            Some(Now::Rows(_)) | None => {}
        }
        self.shrink()
    }

    /// A node some of whose children changed.
    pub(crate) fn node(&mut self, page: PageId, level: u8, group: Vec<Changed>) -> Result<Now> {
        let Shape { id, arity, inner, .. } = *self.shape;
        let counts: Option<Vec<(usize, i64)>> = group
            .iter()
            .map(|c| match c.now {
                Now::Rows(more) => Some((c.child, more)),
                Now::Nodes(_) => None,
            })
            .collect();
        if let (Some(counts), PageKind::TupleInner) = (counts, inner) {
            let bytes = self.txn.page_mut(id, page)?;
            let done = correct(bytes, arity, level, &counts);
            if self.decoded(page, done)? {
                return Ok(Now::Rows(counts.iter().map(|(_, more)| more).sum()));
            }
        }
        if let (PageKind::StringInner, [Changed { child, now: Now::Rows(more), .. }]) = (inner, &group[..]) {
            let bytes = self.txn.page_mut(id, page)?;
            let done = lengthen(bytes, level, *child, *more);
            self.decoded(page, done)?;
            return Ok(Now::Rows(*more));
        }
        let bytes = self.txn.page(id, page)?;
        let old = Inner::parse(&bytes, inner, arity, level).and_then(|node| node.all(&bytes));
        drop(bytes);
        let old = self.decoded(page, old)?;
        let before: u64 = old.iter().map(|c| c.rows).sum();
        let children = self.decoded(page, splice(old, group))?;
        let mut nodes = self.write(page, level, &children)?;
        match nodes.len() {
            1 => Ok(Now::Rows(nodes.pop().expect("one node").rows as i64 - before as i64)),
            _ => Ok(Now::Nodes(nodes)),
        }
    }

    /// Writes a node in the page it had and, when it does not fit, in others near it; none are
    /// left when it has no children.
    fn write(&mut self, page: PageId, level: u8, children: &[Child]) -> Result<Vec<Child>> {
        if children.is_empty() {
            self.txn.release(self.shape.id, page);
            self.pages -= 1;
            return Ok(Vec::new());
        }
        let mut nodes = Vec::new();
        let mut rest = children;
        for n in self.sizes(children) {
            let (node, behind) = rest.split_at(n);
            let at = if nodes.is_empty() { page } else { self.allocate(Some(page))? };
            nodes.push(self.write_one(at, level, node)?);
            rest = behind;
        }
        assert!(rest.is_empty(), "each child has a node");
        Ok(nodes)
    }

    fn write_one(&mut self, at: PageId, level: u8, node: &[Child]) -> Result<Child> {
        let Shape { id, arity, inner, .. } = *self.shape;
        let mut buf = PageBuf::new();
        let rows = fill_node(&mut buf, inner, arity, level, node);
        put(self.txn, id, at, &buf)?;
        Ok(Child { separator: node[0].separator, page: at, rows })
    }

    fn allocate(&mut self, near: Option<PageId>) -> Result<PageId> {
        self.pages += 1;
        self.txn.allocate(self.shape.id, near)
    }

    /// How many children each node gets.
    fn sizes(&self, children: &[Child]) -> Vec<usize> {
        let Shape { arity, inner, .. } = *self.shape;
        let greedy = |most: usize| {
            let (mut sizes, mut rest) = (Vec::new(), children);
            while !rest.is_empty() {
                let n = fitting(&rest[..most.min(rest.len())], inner, arity);
                assert!(n > 0, "a child fits into an empty node");
                sizes.push(n);
                rest = &rest[n..];
            }
            sizes
        };
        let full = greedy(children.len());
        match self.split {
            Split::Even if full.len() > 1 => greedy(children.len().div_ceil(full.len())),
            _ => full,
        }
    }

    /// The nodes that stand for the root: new levels above them until there is one.
    pub(crate) fn grow(&mut self, mut nodes: Vec<Child>) -> Result<()> {
        if nodes.is_empty() {
            (self.shape.root, self.shape.height) = (PageId(0), 0);
            return Ok(());
        }
        while nodes.len() > 1 {
            let level = self.shape.height;
            let (mut above, mut rest) = (Vec::new(), &nodes[..]);
            for n in self.sizes(&nodes) {
                let (node, behind) = rest.split_at(n);
                let at = self.allocate(Some(node[0].page))?;
                above.push(self.write_one(at, level, node)?);
                rest = behind;
            }
            assert!(rest.is_empty(), "each node has a parent");
            assert!(above.len() < nodes.len(), "a level has fewer nodes than the one below");
            self.shape.height += 1;
            nodes = above;
        }
        self.shape.root = nodes[0].page;
        Ok(())
    }

    /// Roots with one child go.
    fn shrink(&mut self) -> Result<()> {
        let Shape { id, arity, inner, .. } = *self.shape;
        while self.shape.height > 1 {
            let root = self.shape.root;
            let page = self.txn.page(id, root)?;
            let only = Inner::parse(&page, inner, arity, self.shape.height - 1)
                .and_then(|node| if node.children == 1 { node.child(&page, 0).map(Some) } else { Ok(None) });
            drop(page);
            let Some(only) = self.decoded(root, only)? else { return Ok(()) };
            self.txn.release(id, root);
            self.pages -= 1;
            self.shape.root = only;
            self.shape.height -= 1;
        }
        Ok(())
    }

    fn decoded<T>(&self, page: PageId, result: Decode<T>) -> Result<T> {
        result.map_err(|bad| self.txn.damaged(page, bad.0))
    }
}

/// The children of a node with those that changed. In a damaged node the way to two changes may
/// be the same child.
fn splice(old: Vec<Child>, group: Vec<Changed>) -> Decode<Vec<Child>> {
    let lowest = old[0].separator;
    let mut new = Vec::with_capacity(old.len() + group.len());
    let mut group = group.into_iter().peekable();
    for (i, child) in old.into_iter().enumerate() {
        match group.next_if(|c| c.child == i).map(|c| c.now) {
            None => new.push(child),
            Some(Now::Rows(more)) => new.push(Child { rows: child.rows.wrapping_add_signed(more), ..child }),
            Some(Now::Nodes(mut nodes)) => {
                if let Some(first) = nodes.first_mut() {
                    // The leftmost child may have got rows below its separator.
                    first.separator = first.separator.min(child.separator);
                }
                new.extend(nodes);
            }
        }
    }
    if let Some(first) = new.first_mut() {
        first.separator = first.separator.min(lowest);
    }
    match group.next() {
        None => Ok(new),
        Some(_) => Err(Bad("children that are not in order")),
    }
}

/// Copies what belongs to the tree, kind, level, count and body, into a page of the transaction.
pub(crate) fn put(txn: &mut Transaction, tree: TreeId, at: PageId, from: &PageBuf) -> Result<()> {
    let page = txn.page_mut(tree, at)?;
    let head = header(from);
    let kind = PageKind::from_byte(head.kind()).expect("a page made here has a kind");
    assert_eq!(from.len(), page.len(), "a page is copied whole");
    page.set_header(kind, head.level(), head.count());
    page[HEADER_BYTES..].copy_from_slice(&from[HEADER_BYTES..]);
    debug_assert_eq!(offset::KIND + 4, HEADER_BYTES, "kind, level and count end the header");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(n: u64) -> Child {
        Child { separator: [n, 0, 0, 0], page: PageId(n), rows: 10 }
    }

    fn more_rows(child: usize) -> Changed {
        Changed { parent: 0, child, now: Now::Rows(1) }
    }

    #[test]
    fn a_change_that_finds_no_child_is_not_lost() {
        let rows = |group| splice(vec![child(1), child(2)], group).map(|new| [new[0].rows, new[1].rows]);
        assert_eq!(rows(vec![more_rows(0), more_rows(1)]), Ok([11, 11]));
        assert!(rows(vec![more_rows(0), more_rows(0)]).is_err(), "the way of two changes is one child");
        assert!(rows(vec![more_rows(1), more_rows(0)]).is_err());
    }
}
