//! Changes to a tuple tree, in batches: rows added and rows taken, sorted.
//!
//! 1. down: level by level the distinct children of all rows are computed and wished for
//!    together, then visited, as a lookup does; at most as many leaves at a time as may be
//!    wished for;
//! 2. leaves: each takes its changes in its tail or is packed anew (`tree::tuple::leaf_change`);
//! 3. up: counts, splits and empty nodes go to the root (`tree::change`);
//! 4. the numbers of distinct prefixes are settled (`tree::tuple::distinct`).

use crate::access::transaction::Transaction;
use crate::error::Result;
use crate::format::encoding::Decode;
use crate::format::inner::{Child, Inner};
use crate::format::key::Key;
use crate::page::{PageId, PageKind};
use crate::tree::change::{Ascent, Changed, Now, Split, Visit, put};
use crate::tree::tuple::TupleTree;
use crate::tree::tuple::build::separator;
use crate::tree::tuple::changes::{Applied, Changes};
use crate::tree::tuple::leaf_change::{LeafChange, LeafChanger, Piece};

/// A leaf and the changes that fall into it.
struct LeafVisit {
    at: Visit,
    from: usize,
    to: usize,
}

/// The nodes to visit for a stretch of the changes.
#[derive(Default)]
struct Route {
    /// Inner nodes, from level 1 upwards.
    levels: Vec<Vec<Visit>>,
    leaves: Vec<LeafVisit>,
    /// First change behind the stretch.
    end: usize,
}

impl TupleTree {
    /// Makes an empty tree of `arity` (1 to 4) columns. The caller stores
    /// [`TupleTree::to_bytes`] as a record, after every change.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn create(txn: &mut Transaction, name: &str, arity: usize) -> Result<TupleTree> {
        assert!((1..=crate::MAX_ARITY).contains(&arity), "a tuple tree has 1 to 4 columns");
        Ok(TupleTree::empty(txn.new_tree(name), arity))
    }

    /// Adds and takes rows. On an error the transaction must be given up.
    ///
    /// # Errors
    /// Reading a page failed, a page contradicts the format, there is no space left.
    pub fn apply(&mut self, txn: &mut Transaction, changes: &Changes) -> Result<Applied> {
        changes.check(self.shape.arity);
        let mut applied = Applied { effective: vec![false; changes.len()], ..Applied::default() };
        let mut leaf = LeafChanger::new(self.shape.arity);
        let mut from = 0;
        while from < changes.len() {
            from = match self.shape.height {
                0 => self.plant(txn, &mut leaf, changes, from, &mut applied)?,
                _ => self.apply_part(txn, &mut leaf, changes, from, &mut applied)?,
            };
        }
        self.settle(txn, changes, &applied, leaf.prefixes)?;
        Ok(applied)
    }

    /// The first rows of an empty tree: all changes from `from` on.
    fn plant(
        &mut self,
        txn: &mut Transaction,
        leaf: &mut LeafChanger,
        changes: &Changes,
        from: usize,
        applied: &mut Applied,
    ) -> Result<usize> {
        let inserts = changes.insert[from..].iter().filter(|i| **i).count() as u64;
        if inserts == 0 {
            return Ok(changes.len());
        }
        applied.effective[from..].copy_from_slice(&changes.insert[from..]);
        let pieces = leaf.pack_inserts(changes, from);
        self.shape.height = 1;
        assert_eq!(pieces.iter().map(|p| p.rows).sum::<u64>(), inserts, "each row is in a leaf");
        let nodes = self.write_leaves(txn, &[], pieces)?;
        self.ascend(txn, &[], vec![Changed { parent: 0, child: 0, now: Now::Nodes(nodes) }])?;
        self.note(applied, inserts, 0);
        Ok(changes.len())
    }

    /// As many changes from `from` on as the wish limit allows leaves; returns where the next
    /// part begins.
    fn apply_part(
        &mut self,
        txn: &mut Transaction,
        leaf: &mut LeafChanger,
        changes: &Changes,
        from: usize,
        applied: &mut Applied,
    ) -> Result<usize> {
        let route = self.route(txn, changes, from)?;
        assert!(route.end > from, "a part has a change at least");
        let mut changed = Vec::new();
        let mut visits = route.leaves.iter().peekable();
        while let Some(visit) = visits.next() {
            let (inserted, deleted) = (applied.inserted, applied.deleted);
            let Visit { parent, child, page } = visit.at;
            // The nodes that stand for the leaf, and the number of pages that they replace; none
            // and 0 when the leaf stays where it is.
            let now = match self.change_leaf(txn, leaf, changes, visit, applied)? {
                LeafChange::Nothing => continue,
                LeafChange::Tail => {
                    let written = leaf.write_tail(txn.page_mut(self.shape.id, page)?, changes);
                    written.map_err(|bad| txn.damaged(page, bad.0))?;
                    (Vec::new(), 0)
                }
                LeafChange::Merged => {
                    let mut pages = vec![page];
                    if let (true, Some(next)) = (leaf.wants_next(), self.sibling(txn, &route, &visit.at)?) {
                        let at = Visit { page: next, parent, child: child + 1 };
                        let same = |v: &&LeafVisit| v.at.page == next;
                        let (from, to) = visits.next_if(same).map_or((0, 0), |v| (v.from, v.to));
                        self.join_leaf(txn, leaf, changes, &LeafVisit { at, from, to }, applied)?;
                        pages.push(next);
                    }
                    (self.write_leaves(txn, &pages, leaf.pack())?, pages.len())
                }
            };
            assert!(leaf.inserted + leaf.deleted <= changes.len() as u64, "a change is made once");
            self.note(applied, leaf.inserted, leaf.deleted);
            let more = (applied.inserted - inserted) as i64 - (applied.deleted - deleted) as i64;
            let (nodes, pages) = now;
            if nodes.len() == pages && pages < 2 {
                changed.push(Changed { parent, child, now: Now::Rows(more) });
                continue;
            }
            changed.push(Changed { parent, child, now: Now::Nodes(nodes) });
            // The leaves that were joined are among these nodes.
            let gone = |i| Changed { parent, child: child + i, now: Now::Nodes(Vec::new()) };
            changed.extend((1..pages).map(gone));
        }
        self.ascend(txn, &route.levels, changed)?;
        Ok(route.end)
    }

    fn change_leaf(
        &self,
        txn: &mut Transaction,
        leaf: &mut LeafChanger,
        changes: &Changes,
        visit: &LeafVisit,
        applied: &mut Applied,
    ) -> Result<LeafChange> {
        let (at, range) = (visit.at.page, visit.from..visit.to);
        let page = txn.page(self.shape.id, at)?;
        let change = leaf.change(&page, changes, range.clone(), &mut applied.effective[range]);
        change.map_err(|bad| txn.damaged(at, bad.0))
    }

    fn join_leaf(
        &self,
        txn: &mut Transaction,
        leaf: &mut LeafChanger,
        changes: &Changes,
        visit: &LeafVisit,
        applied: &mut Applied,
    ) -> Result<()> {
        let (at, range) = (visit.at.page, visit.from..visit.to);
        let page = txn.page(self.shape.id, at)?;
        let joined = leaf.join(&page, changes, range.clone(), &mut applied.effective[range]);
        joined.map_err(|bad| txn.damaged(at, bad.0))
    }

    /// The leaf behind another one under the same parent.
    fn sibling(&self, txn: &mut Transaction, route: &Route, leaf: &Visit) -> Result<Option<PageId>> {
        let Some(parents) = route.levels.first() else { return Ok(None) };
        let parent = parents[leaf.parent].page;
        let page = txn.page(self.shape.id, parent)?;
        let next = Inner::parse(&page, PageKind::TupleInner, self.shape.arity, 1).and_then(|node| {
            match leaf.child + 1 < node.children {
                true => node.child(&page, leaf.child + 1).map(Some),
                false => Ok(None),
            }
        });
        next.map_err(|bad| txn.damaged(parent, bad.0))
    }

    /// Writes leaves that stand for those in `pages`, one or two, and near them what more is
    /// needed. Pages left over are given back. The first and the last leaf stay in their pages:
    /// most of their rows were there, so that the journal need not repeat them.
    fn write_leaves(
        &mut self,
        txn: &mut Transaction,
        pages: &[PageId],
        pieces: Vec<Piece>,
    ) -> Result<Vec<Child>> {
        let id = self.shape.id;
        assert!(pages.len() <= 2, "at most two leaves are packed together");
        assert!(pieces.iter().all(|p| p.rows > 0), "a leaf has rows");
        for page in pages.iter().skip(pieces.len()) {
            txn.release(id, *page);
            (self.leaves, self.pages) = (self.leaves.saturating_sub(1), self.pages.saturating_sub(1));
        }
        let mut nodes: Vec<Child> = Vec::with_capacity(pieces.len());
        let mut before: Option<Key> = None;
        let n = pieces.len();
        for (i, piece) in pieces.into_iter().enumerate() {
            let page = match i {
                0 => pages.first(),
                _ if i + 1 == n => pages.get(1),
                _ => None,
            };
            let at = match page {
                Some(page) => *page,
                None => {
                    (self.leaves, self.pages) = (self.leaves + 1, self.pages + 1);
                    txn.allocate(id, nodes.last().map(|n| n.page))?
                }
            };
            put(txn, id, at, &piece.page)?;
            let separator = separator(before.as_ref(), &piece.first, self.shape.arity);
            nodes.push(Child { separator, page: at, rows: piece.rows });
            before = Some(piece.last);
        }
        Ok(nodes)
    }

    fn ascend(&mut self, txn: &mut Transaction, levels: &[Vec<Visit>], changed: Vec<Changed>) -> Result<()> {
        if changed.is_empty() {
            return Ok(());
        }
        let mut ascent = Ascent { txn, shape: &mut self.shape, split: Split::Even, pages: 0 };
        ascent.run(levels, changed)?;
        self.pages = self.pages.wrapping_add_signed(ascent.pages);
        Ok(())
    }

    fn note(&mut self, applied: &mut Applied, inserted: u64, deleted: u64) {
        applied.inserted += inserted;
        applied.deleted += deleted;
        self.rows = (self.rows + inserted).saturating_sub(deleted);
    }

    /// The way from the root to the leaves of the changes from `from` on.
    fn route(&self, txn: &mut Transaction, changes: &Changes, from: usize) -> Result<Route> {
        let root =
            LeafVisit { at: Visit { page: self.shape.root, parent: 0, child: 0 }, from, to: changes.len() };
        let mut route = Route { levels: Vec::new(), leaves: vec![root], end: changes.len() };
        let limit = txn.wish_limit();
        for level in (1..self.shape.height).rev() {
            let nodes = std::mem::take(&mut route.leaves);
            for (parent, node) in nodes.iter().enumerate() {
                if node.from >= route.end
                    || !self.children(txn, changes, level, parent, node, limit, &mut route)?
                {
                    break;
                }
            }
            let mut pages: Vec<PageId> = route.leaves.iter().map(|v| v.at.page).collect();
            if pages.len() > 1 {
                pages.sort_unstable();
                txn.wish(self.shape.id, &pages);
            }
            route.levels.insert(0, nodes.into_iter().map(|n| n.at).collect());
        }
        Ok(route)
    }

    /// Finds the children of a node that changes fall into; false when there are more than
    /// `limit` on the level.
    #[allow(clippy::too_many_arguments)]
    fn children(
        &self,
        txn: &mut Transaction,
        changes: &Changes,
        level: u8,
        parent: usize,
        node: &LeafVisit,
        limit: usize,
        route: &mut Route,
    ) -> Result<bool> {
        let page = txn.page(self.shape.id, node.at.page)?;
        let arity = self.shape.arity;
        let mut walk = || -> Decode<bool> {
            let inner = Inner::parse(&page, PageKind::TupleInner, arity, level)?;
            let (mut at, mut child) = (node.from, 0);
            let to = node.to.min(route.end);
            while at < to {
                if route.leaves.len() == limit {
                    route.end = at;
                    return Ok(false);
                }
                child = inner.upper(&page, &changes.row(at)[..arity], child)?;
                let mut end = at + 1;
                if child + 1 == inner.children {
                    end = to;
                } else {
                    let fence = inner.separator(&page, child + 1)?;
                    while end < to && changes.row(end) < fence {
                        end += 1;
                    }
                }
                let visit = Visit { page: inner.child(&page, child)?, parent, child };
                route.leaves.push(LeafVisit { at: visit, from: at, to: end });
                at = end;
            }
            Ok(true)
        };
        walk().map_err(|bad| txn.damaged(node.at.page, bad.0))
    }
}
