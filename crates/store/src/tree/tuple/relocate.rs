//! Relocation: the leaves of a shuffled subtree are moved into fresh extents, in key order.
//!
//! Splits put new leaves where there is room, so after random inserts neighbours in key order
//! lie in different extents, and reading an extent ahead brings little of what comes next. The
//! *disorder* of a node above leaves is the share of its leaves from which the way to the next
//! one leads to another extent or backwards, beyond what leaves in order need: 0 as built in
//! bulk, near 1 after random inserts.
//!
//! 1. down: the nodes above the leaves, level by level, each level wished for together; when
//!    the rule wants changed leaves, only nodes that the transaction has changed, so that a
//!    tree in which little was changed costs next to nothing;
//! 2. a subtree is moved when its disorder is as large as the rule wants, and so is the share
//!    of its leaves that the transaction has changed anyway (they are written in any case);
//! 3. its leaves are copied in key order; an eighth of every extent stays free, so that the
//!    next splits stay near;
//! 4. up: the nodes above get the new pages (`tree::change`); the old ones are given back.

use crate::access::private_space::fresh_pages;
use crate::access::transaction::Transaction;
use crate::error::Result;
use crate::format::encoding::Decode;
use crate::format::inner::{Child, Inner};
use crate::page::geometry::{ExtentId, Geometry};
use crate::page::{PageBuf, PageId, PageKind};
use crate::tree::change::{Ascent, Changed, Now, Split, Visit, put};
use crate::tree::tuple::TupleTree;

/// Which subtrees are worth moving.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Relocation {
    /// Least disorder of a subtree, 0 to 1.
    pub disorder: f64,
    /// Least share of its leaves that the transaction has changed, 0 to 1.
    pub changed: f64,
    /// Most leaves moved.
    pub most_leaves: u64,
}

impl Default for Relocation {
    /// Shuffled subtrees half of whose leaves are written anyway.
    fn default() -> Relocation {
        Relocation { disorder: 0.25, changed: 0.5, most_leaves: 16_384 }
    }
}

/// Counts of a relocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relocated {
    /// Nodes above leaves that were looked at.
    pub looked_at: u64,
    /// Those whose leaves were moved.
    pub subtrees: u64,
    /// Leaves moved.
    pub leaves: u64,
}

impl std::ops::AddAssign for Relocated {
    fn add_assign(&mut self, other: Relocated) {
        self.looked_at += other.looked_at;
        self.subtrees += other.subtrees;
        self.leaves += other.leaves;
    }
}

impl TupleTree {
    /// Moves the leaves of shuffled subtrees into fresh extents. On an error the transaction
    /// must be given up.
    ///
    /// # Errors
    /// Reading a page failed, a page contradicts the format, there is no space left.
    pub fn relocate(&mut self, txn: &mut Transaction, rule: &Relocation) -> Result<Relocated> {
        let mut done = Relocated::default();
        if self.shape.height < 2 {
            return Ok(done);
        }
        let nodes = if rule.changed > 0.0 { Nodes::Changed } else { Nodes::All };
        let levels = self.inner_nodes(txn, nodes)?;
        let geometry = txn.store().geometry();
        let (mut changed, mut fresh) = (Vec::new(), None);
        for (parent, visit) in levels[0].iter().enumerate() {
            let children = self.children_of(txn, visit.page, 1)?;
            done.looked_at += 1;
            let enough_changed = |txn: &Transaction| {
                let private = children.iter().filter(|c| txn.is_private(c.page)).count();
                private as f64 >= rule.changed * children.len() as f64
            };
            let wanted = children.len() > 1
                && done.leaves + children.len() as u64 <= rule.most_leaves
                && disorder(&children, geometry) >= rule.disorder
                && enough_changed(txn);
            if !wanted {
                continue;
            }
            (done.subtrees, done.leaves) = (done.subtrees + 1, done.leaves + children.len() as u64);
            changed.extend(self.move_leaves(txn, parent, children, &mut fresh)?);
        }
        if !changed.is_empty() {
            let mut ascent = Ascent { txn, shape: &mut self.shape, split: Split::Even, pages: 0 };
            ascent.run(&levels, changed)?;
            self.pages = self.pages.wrapping_add_signed(ascent.pages);
        }
        Ok(done)
    }

    /// The disorder of the tree's leaves as a whole, 0 to 1.
    ///
    /// # Errors
    /// Reading a page failed, a page contradicts the format.
    pub fn disorder(&self, txn: &mut Transaction) -> Result<f64> {
        if self.shape.height < 2 {
            return Ok(0.0);
        }
        let mut leaves = Vec::new();
        for visit in &self.inner_nodes(txn, Nodes::All)?[0] {
            leaves.extend(self.children_of(txn, visit.page, 1)?);
        }
        Ok(disorder(&leaves, txn.store().geometry()))
    }

    /// The inner nodes, from level 1 upwards, in key order.
    fn inner_nodes(&self, txn: &mut Transaction, nodes: Nodes) -> Result<Vec<Vec<Visit>>> {
        // A change of a leaf changes the row counts of all nodes above it.
        let wanted = |txn: &Transaction, page| nodes == Nodes::All || txn.is_private(page);
        let root = Visit { page: self.shape.root, parent: 0, child: 0 };
        let mut levels = vec![Vec::from_iter(wanted(txn, root.page).then_some(root))];
        for level in (2..self.shape.height).rev() {
            let mut below = Vec::new();
            for (parent, visit) in levels[0].iter().enumerate() {
                let children = self.children_of(txn, visit.page, level)?;
                let visits = children.iter().enumerate().filter(|(_, c)| wanted(txn, c.page));
                below.extend(visits.map(|(child, c)| Visit { page: c.page, parent, child }));
            }
            wish(txn, self, below.iter().map(|v| v.page));
            levels.insert(0, below);
        }
        Ok(levels)
    }

    fn children_of(&self, txn: &mut Transaction, at: PageId, level: u8) -> Result<Vec<Child>> {
        let page = txn.page(self.shape.id, at)?;
        let all = || -> Decode<Vec<Child>> {
            Inner::parse(&page, PageKind::TupleInner, self.shape.arity, level)?.all(&page)
        };
        all().map_err(|bad| txn.damaged(at, bad.0))
    }

    /// Copies the leaves of one node, and gives the old ones back.
    fn move_leaves(
        &self,
        txn: &mut Transaction,
        parent: usize,
        children: Vec<Child>,
        fresh: &mut Option<ExtentId>,
    ) -> Result<Vec<Changed>> {
        let id = self.shape.id;
        let mut changed = Vec::with_capacity(children.len());
        let part = txn.wish_limit();
        for (first, children) in children.chunks(part).enumerate() {
            wish(txn, self, children.iter().map(|c| c.page));
            for (i, child) in children.iter().enumerate() {
                let copy = PageBuf::copy_of(&txn.page(id, child.page)?);
                let page = txn.allocate_fresh(id, fresh)?;
                put(txn, id, page, &copy)?;
                txn.release(id, child.page);
                let now = Now::Nodes(vec![Child { page, ..*child }]);
                changed.push(Changed { parent, child: first * part + i, now });
            }
        }
        assert_eq!(changed.len(), children.len(), "each leaf has its new page");
        Ok(changed)
    }
}

/// Which inner nodes are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nodes {
    All,
    /// Those that the transaction has changed.
    Changed,
}

fn wish(txn: &mut Transaction, tree: &TupleTree, pages: impl Iterator<Item = PageId>) {
    let mut pages: Vec<PageId> = pages.collect();
    pages.sort_unstable();
    txn.wish(tree.id(), &pages);
}

/// See the head of the file.
fn disorder(leaves: &[Child], geometry: Geometry) -> f64 {
    let steps = leaves.len().saturating_sub(1);
    if steps == 0 {
        return 0.0;
    }
    let leads_away = |pair: &&[Child]| {
        let (a, b) = (pair[0].page, pair[1].page);
        b < a || geometry.extent_of(a) != geometry.extent_of(b)
    };
    let away = leaves.windows(2).filter(leads_away).count();
    // Leaves in order change extents, too, with an eighth of each left free.
    let needed = leaves.len() / fresh_pages(geometry.extent_pages) as usize + 1;
    away.saturating_sub(needed) as f64 / steps as f64
}
