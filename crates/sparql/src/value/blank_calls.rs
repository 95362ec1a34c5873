//! Calls of BNODE(string): within a solution equal strings give the same blank node, in another
//! solution another one.

use std::hash::{BuildHasher, RandomState};

use rustc_hash::FxHashMap;

/// Counts, for each call of BNODE(string), the solutions it has met.
#[derive(Default)]
pub(super) struct BlankNodeCalls {
    sites: u32,
    /// number of times that each call has met a solution; solutions are told apart by a hash of
    /// their bindings
    met: FxHashMap<(u32, u64), u32>,
}

impl BlankNodeCalls {
    /// A number for a call in the query.
    pub fn new_site(&mut self) -> u32 {
        self.sites += 1;
        self.sites
    }

    /// Whether the query has such a call. Then no batch can be evaluated again, because calls are
    /// counted.
    pub fn are_any(&self) -> bool {
        self.sites > 0
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.met.capacity() * 24
    }

    /// The label that a call gives for a string in a solution.
    pub fn label(&mut self, site: u32, solution: u64, name: &str, seed: &RandomState) -> String {
        let times = self.met.entry((site, solution)).or_default();
        *times += 1;
        let hash = |half: u8| seed.hash_one((half, solution, *times, name));
        format!("n{:016x}{:016x}", hash(0), hash(1))
    }
}
