//! From sorted keys to leaves, level by level.
//!
//! For all keys of a chunk together: (1) begin at the root; (2) on each level find, for every
//! key, the children that may hold its rows; neighbouring keys share children; (3) wish for the
//! distinct children together; (4) go on with them. So the I/O depth is the height of the tree,
//! whatever the number of keys.
//!
//! A level never has more than `limit` pages: the chunk is cut behind a key, or inside one at a
//! separator from which the next chunk resumes. Invariant: `spans[i]` are the nodes of key
//! `first + i` on the current level; neither end ever falls.

use crate::error::Result;
use crate::format::encoding::{Bad, Decode};
use crate::format::inner::Inner;
use crate::format::key::Key;
use crate::page::{PageId, PageKind, TreeId};
use crate::tree::read::{decoded, wish_sorted};
use crate::tree::rows::{Bounds, Keys};
use crate::{PageRef, Reader, WishKind};

/// Most keys of a chunk.
const CHUNK: usize = 1 << 16;

/// Pages per level when nothing has to be wished for.
const RESIDENT_LIMIT: usize = 4096;

/// Properties of a tree that a descent needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub id: TreeId,
    pub root: PageId,
    /// Levels, leaves included; 0 when the tree is empty.
    pub height: u8,
    /// Key columns of the inner nodes.
    pub arity: usize,
    /// Kind of the inner nodes.
    pub inner: PageKind,
}

/// The descent of one chunk of keys.
#[derive(Default)]
pub(crate) struct Descent {
    /// Level of `nodes`; 0 when they are leaves.
    pub level: u8,
    /// Pages of the current level, in key order.
    pub nodes: Vec<PageId>,
    /// For each node its parent's position on the level above.
    pub parents: Vec<u32>,
    /// First and last node of each key.
    pub spans: Vec<(u32, u32)>,
    /// First key of the chunk.
    pub first: usize,
    /// First key behind the chunk, not counting a key that was cut.
    pub end: usize,
    /// Where the last key of the chunk was cut: the separator of the first leaf left out.
    pub cut: Option<Key>,
    /// Where the first key continues, if it was cut before.
    pub resume: Option<Key>,
    limit: usize,
    next_nodes: Vec<PageId>,
    next_parents: Vec<u32>,
    next_spans: Vec<(u32, u32)>,
}

/// The node a step is in.
struct Here {
    index: usize,
    page: PageRef,
    node: Inner,
    /// Child of the key before, and the separator behind it.
    child: usize,
    fence: Option<Key>,
}

impl Descent {
    /// Forgets the chunk.
    pub(crate) fn reset(&mut self) {
        (self.first, self.end, self.cut) = (0, 0, None);
        self.spans.clear();
    }

    /// Begins a chunk at key `first`, which was cut at `resume` before; at most `limit` pages a
    /// level.
    pub(crate) fn begin(
        &mut self,
        tree: &Shape,
        keys: &Keys<'_>,
        first: usize,
        resume: Option<Key>,
        limit: usize,
    ) {
        self.first = first;
        self.end = keys.rows.min(first + CHUNK);
        if resume.is_some() && first + 1 < self.end && keys.repeats(first + 1) {
            self.end = first + 1; // its repetition begins at the key's first leaf again
        }
        self.resume = resume;
        self.cut = None;
        self.limit = limit.max(1);
        self.level = tree.height.saturating_sub(1);
        self.nodes.clear();
        self.nodes.push(tree.root);
        self.parents.clear();
        self.parents.push(0);
        self.spans.clear();
        self.spans.resize(self.end - first, (0, 0));
    }

    /// Pages a level may have in this reader.
    pub(crate) fn limit(resident: bool, reader: &Reader) -> usize {
        if resident { RESIDENT_LIMIT } else { reader.wish_limit() }
    }

    /// Descends to the leaves and wishes for each level.
    pub(crate) fn descend(&mut self, reader: &mut Reader, tree: &Shape, keys: &Keys<'_>) -> Result<()> {
        while self.level > 0 {
            self.step(reader, tree, keys)?;
            self.wish(reader, tree);
        }
        Ok(())
    }

    /// Starts the reads of the current level; a single page is read in place when it is visited.
    fn wish(&self, reader: &mut Reader, tree: &Shape) {
        if self.nodes.len() > 1 && !reader.resident(tree.id) {
            self.wish_all(reader, tree);
        }
    }

    /// Starts the reads of the current level.
    pub(crate) fn wish_all(&self, reader: &mut Reader, tree: &Shape) {
        wish_sorted(reader, tree.id, &self.nodes, WishKind::Planned);
    }

    /// From the current level to the one below.
    pub(crate) fn step(&mut self, reader: &mut Reader, tree: &Shape, keys: &Keys<'_>) -> Result<()> {
        self.clear_next();
        let mut here: Option<Here> = None;
        for i in 0..self.spans.len() {
            let k = self.first + i;
            if i > 0 && keys.repeats(k) {
                self.next_spans.push(self.next_spans[i - 1]);
                continue;
            }
            let bounds = keys.bounds(k);
            if !self.children(reader, tree, i, &bounds, &mut here)? {
                break;
            }
        }
        self.take_next();
        Ok(())
    }

    /// As [`Descent::step`], for a chunk that is one key given as bounds.
    pub(crate) fn step_between(&mut self, reader: &mut Reader, tree: &Shape, bounds: &Bounds) -> Result<()> {
        self.clear_next();
        self.children(reader, tree, 0, bounds, &mut None)?;
        self.take_next();
        Ok(())
    }

    fn clear_next(&mut self) {
        assert!(self.level > 0, "there is nothing below leaves");
        self.next_nodes.clear();
        self.next_parents.clear();
        self.next_spans.clear();
    }

    fn take_next(&mut self) {
        self.level -= 1;
        assert_eq!(self.next_nodes.len(), self.next_parents.len(), "each node has its parent");
        debug_assert!(
            self.next_spans.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1),
            "the nodes of keys in order are in order"
        );
        debug_assert!(
            self.next_spans.last().is_none_or(|span| (span.1 as usize) < self.next_nodes.len()),
            "the nodes of a key are among those of its level"
        );
        std::mem::swap(&mut self.nodes, &mut self.next_nodes);
        std::mem::swap(&mut self.parents, &mut self.next_parents);
        std::mem::swap(&mut self.spans, &mut self.next_spans);
    }

    /// The children of the `i`-th key; false when the chunk was cut at it.
    fn children(
        &mut self,
        reader: &mut Reader,
        tree: &Shape,
        i: usize,
        bounds: &Bounds,
        here: &mut Option<Here>,
    ) -> Result<bool> {
        let (from, to) = (self.spans[i].0 as usize, self.spans[i].1 as usize);
        let mut first = None;
        for index in from..=to {
            let entered = here.as_ref().is_some_and(|h| h.index == index);
            if !entered {
                *here = None; // the pin goes before the next page is waited for
                *here = Some(self.enter(reader, tree, index)?);
            }
            let h = here.as_mut().expect("just entered");
            if entered && first.is_none() && h.fence.is_some_and(|f| bounds.hi() < &f[..bounds.len]) {
                let at = self.next_nodes.len() as u32 - 1;
                self.next_spans.push((at, at));
                return Ok(true);
            }
            let resume = if i == 0 && index == from { self.resume } else { None };
            let id = self.nodes[index];
            let (a, b) = decoded(reader, id, h.range(bounds, index > from, index < to, resume, tree.arity))?;
            for child in a..=b {
                let known = entered && child == h.child && self.next_parents.last() == Some(&(index as u32));
                if !known || (child > a) {
                    if self.next_nodes.len() == self.limit {
                        let separator = decoded(reader, id, h.node.separator(&h.page, child))?;
                        // Else a damaged tree could be descended for ever.
                        if i == 0 && self.resume.is_some_and(|r| separator <= r) {
                            return Err(reader.damaged(id, "separators that do not ascend"));
                        }
                        self.cut_at(i, first, separator);
                        return Ok(false);
                    }
                    self.next_nodes.push(decoded(reader, id, h.node.child(&h.page, child))?);
                    self.next_parents.push(index as u32);
                }
                first.get_or_insert(self.next_nodes.len() as u32 - 1);
            }
            decoded(reader, id, h.moved_to(b))?;
        }
        let first =
            first.ok_or(Bad("no child")).or_else(|bad| decoded(reader, self.nodes[from], Err(bad)))?;
        self.next_spans.push((first, self.next_nodes.len() as u32 - 1));
        Ok(true)
    }

    /// Pins a node of the current level.
    fn enter(&self, reader: &mut Reader, tree: &Shape, index: usize) -> Result<Here> {
        let id = self.nodes[index];
        let page = reader.page(tree.id, id)?;
        let node = Inner::parse(&page, tree.inner, tree.arity, self.level);
        let node = decoded(reader, id, node)?;
        Ok(Here { index, page, node, child: 0, fence: None })
    }

    /// Ends the chunk at the `i`-th key: inside it when some of its children are in, else
    /// before it.
    fn cut_at(&mut self, i: usize, first: Option<u32>, separator: Key) {
        match first {
            Some(first) => {
                self.next_spans.push((first, self.next_nodes.len() as u32 - 1));
                self.end = self.first + i;
                self.cut = Some(separator);
            }
            None => {
                self.end = self.first + i;
                self.cut = None;
            }
        }
    }
}

impl Here {
    /// First and last child for a key; `starts` and `ends` say that its rows begin before and
    /// go on behind this node.
    #[inline]
    fn range(
        &self,
        b: &Bounds,
        starts: bool,
        ends: bool,
        resume: Option<Key>,
        arity: usize,
    ) -> Decode<(usize, usize)> {
        let mut first = match starts {
            true => 0,
            // A separator equal to a whole key begins the key's own child.
            false if b.len == arity => self.node.upper(&self.page, b.lo(), self.child)?,
            false => self.node.lower(&self.page, b.lo(), self.child)?,
        };
        if let Some(key) = resume {
            first = first.max(self.node.upper(&self.page, &key[..arity], 0)?);
        }
        let last = if ends { self.node.children - 1 } else { self.node.upper(&self.page, b.hi(), first)? };
        Ok((first, last))
    }

    /// Remembers the child of the last key.
    #[inline]
    fn moved_to(&mut self, child: usize) -> Decode<()> {
        if child != self.child || self.fence.is_none() {
            self.child = child;
            let next = child + 1;
            self.fence =
                if next < self.node.children { Some(self.node.separator(&self.page, next)?) } else { None };
        }
        Ok(())
    }
}
