//! Estimates already made, by node, and the nodes that the planner makes itself.
//!
//! A node is known by its address. That is sound because every node has the planner's lifetime:
//! it is the algebra's, or was made here and is kept until planning ends ([`Nodes::keep`]). A
//! node that lives shorter is refused by the compiler, so no address is used twice.

use std::cell::OnceCell;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap;

use super::Estimate;
use crate::algebra::Node;

/// Nodes made while planning. A list that only grows: what it has lent stays where it is.
#[derive(Default)]
pub(super) struct Nodes {
    node: OnceCell<Node>,
    next: OnceCell<Box<Nodes>>,
}

impl Nodes {
    /// Keeps a node.
    pub fn keep(&self, node: Node) -> &Node {
        let mut at = self;
        while at.node.get().is_some() {
            at = at.next.get_or_init(Box::default);
        }
        at.node.get_or_init(|| node)
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        // a loop: the list may be long
        let mut next = self.next.take();
        while let Some(mut nodes) = next {
            next = nodes.next.take();
        }
    }
}

/// A node as a key: the same node, not an equal one.
struct ByAddress<'a>(&'a Node);

impl PartialEq for ByAddress<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for ByAddress<'_> {}

impl Hash for ByAddress<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self.0).hash(state);
    }
}

/// Estimates by node.
#[derive(Default)]
pub(super) struct Estimates<'a> {
    made: FxHashMap<ByAddress<'a>, Estimate>,
}

impl<'a> Estimates<'a> {
    pub fn get(&self, node: &'a Node) -> Option<&Estimate> {
        self.made.get(&ByAddress(node))
    }

    pub fn insert(&mut self, node: &'a Node, estimate: Estimate) {
        self.made.insert(ByAddress(node), estimate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_stay_where_they_are_and_are_told_apart() {
        let nodes = Nodes::default();
        let kept: Vec<&Node> = (0..5000).map(|_| nodes.keep(Node::Union(Vec::new()))).collect();
        let mut estimates = Estimates::default();
        for (at, node) in kept.iter().enumerate() {
            assert!(estimates.get(node).is_none(), "equal nodes are different keys");
            estimates.insert(node, Estimate::unit().scaled(at as f64));
        }
        assert!(kept.iter().enumerate().all(|(at, node)| estimates.get(node).unwrap().rows == at as f64));
    }
}
