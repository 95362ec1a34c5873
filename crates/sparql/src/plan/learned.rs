//! Rows of joins that were met when plans were run.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use crate::algebra::{Node, Pattern};

/// A join, by what is joined, in any order. Two joins may have the same key: it only tells how many
/// rows to expect.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct JoinKey(u64);

impl JoinKey {
    /// An input that rows are found for.
    pub fn of_input() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }

    /// All of some nodes.
    #[inline(never)]
    pub fn of(nodes: &[Node]) -> Self {
        nodes.iter().fold(Self::default(), |all, node| all.and(element(node)))
    }

    /// With an element more.
    pub fn and(self, element: u64) -> Self {
        Self(self.0.wrapping_add(element))
    }

    /// With an element more, before the conditions that it decides are asked.
    pub fn before_conditions(self, element: u64) -> Self {
        Self(self.0.rotate_left(32) ^ element)
    }
}

/// A node of a join: what tells it apart from others of the same query.
#[inline(never)] // planners recurse: their frames are small
pub(crate) fn element(node: &Node) -> u64 {
    let mut hasher = FxHasher::default();
    std::mem::discriminant(node).hash(&mut hasher);
    match node {
        Node::Pattern(Pattern { s, p, o, g }) => (s, p, o, g).hash(&mut hasher),
        other => other.scope().possible.hash(&mut hasher),
    }
    hasher.finish()
}

/// More rows than were expected.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Surprise {
    pub join: JoinKey,
    /// that have come
    pub rows: f64,
}

/// Rows of joins that were met, at least.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learned(FxHashMap<JoinKey, f64>);

impl Learned {
    /// Surprises that are remembered: a plan that had as many is run to its end.
    const MOST: usize = 4;

    /// How many times as many rows are expected as had come when a join was given up: it is not
    /// known how many more would have.
    const MORE: f64 = 10.0;

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// So many rows, or as many as are known of the join.
    pub fn at_least(&self, join: JoinKey, rows: f64) -> f64 {
        match self.is_empty() {
            true => rows,
            false => self.0.get(&join).map_or(rows, |met| met.max(rows)),
        }
    }

    pub fn is_full(&self) -> bool {
        self.0.len() >= Self::MOST
    }

    #[must_use]
    pub fn with(&self, surprise: &Surprise) -> Self {
        let mut all = self.clone();
        all.0.insert(surprise.join, Self::MORE * surprise.rows);
        all
    }
}
