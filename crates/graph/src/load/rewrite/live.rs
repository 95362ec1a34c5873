//! The live terms of the old generation, and their numbers in the new one.
//!
//! Each term of the old generation has a bit, with counts that make a rank one addition and a few
//! words. If terms are numbered by first occurrence, each live one also has a packed number. So
//! memory is proportional to the live terms, and a dead one takes an eighth of a byte.

use crate::database::state::GraphState;
use crate::dict::Tree;
use crate::term::{TermId, TermKind};

/// Words between two counts.
const COUNTED: usize = 8;

/// A set of numbers below a bound.
struct TermSet {
    len: u64,
    words: Vec<u64>,
    /// Members before each group of words; empty until they are counted.
    before: Vec<u64>,
    members: u64,
}

impl TermSet {
    fn new(len: u64) -> Self {
        TermSet { len, words: vec![0; len.div_ceil(64) as usize], before: Vec::new(), members: 0 }
    }

    fn set(&mut self, number: u64) {
        if number < self.len {
            self.words[(number / 64) as usize] |= 1 << (number % 64);
        }
    }

    fn has(&self, number: u64) -> bool {
        number < self.len && self.words[(number / 64) as usize] >> (number % 64) & 1 == 1
    }

    fn count(&mut self) {
        self.before.clear();
        self.members = 0;
        for group in self.words.chunks(COUNTED) {
            self.before.push(self.members);
            self.members += group.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        }
    }

    /// The number of members below a member; `None` if `number` is not a member.
    fn rank(&self, number: u64) -> Option<u64> {
        let at = (number / 64) as usize;
        let bit = 1u64 << (number % 64);
        if number >= self.len || self.words[at] & bit == 0 {
            return None;
        }
        let group = at / COUNTED;
        debug_assert_eq!(self.before.len(), self.words.len().div_ceil(COUNTED), "it was counted");
        let words = &self.words[group * COUNTED..at];
        let below: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
        Some(self.before[group] + below + u64::from((self.words[at] & (bit - 1)).count_ones()))
    }

    fn bytes(&self) -> u64 {
        // Includes the counts, which are not there yet.
        self.words.len() as u64 * 9
    }
}

/// Numbers of few bits each, initially all 0.
pub(super) struct Packed {
    bits: u32,
    words: Vec<u64>,
}

impl Packed {
    /// Space for `len` numbers up to `most`.
    fn new(len: u64, most: u64) -> Self {
        let bits = bits_of(most);
        Packed { bits, words: vec![0; Self::words(len, bits)] }
    }

    /// A value is read from two words, so there is one extra word.
    fn words(len: u64, bits: u32) -> usize {
        (len * u64::from(bits)).div_ceil(64) as usize + 1
    }

    fn get(&self, at: u64) -> u64 {
        let (word, shift) = self.place(at);
        let both = u128::from(self.words[word]) | u128::from(self.words[word + 1]) << 64;
        (both >> shift) as u64 & (u64::MAX >> (64 - self.bits))
    }

    /// Sets a number that is still 0.
    fn set(&mut self, at: u64, value: u64) {
        debug_assert_eq!(self.get(at), 0, "a number is given once");
        assert!(bits_of(value) <= self.bits, "the number would run into the next one");
        let (word, shift) = self.place(at);
        let both = u128::from(value) << shift;
        self.words[word] |= both as u64;
        self.words[word + 1] |= (both >> 64) as u64;
    }

    fn place(&self, at: u64) -> (usize, u32) {
        let bit = at * u64::from(self.bits);
        ((bit / 64) as usize, (bit % 64) as u32)
    }
}

fn bits_of(most: u64) -> u32 {
    (64 - most.leading_zeros()).max(1)
}

/// The terms that occur in quads.
pub(super) struct LiveTerms {
    trees: [TermSet; Tree::ALL.len()],
    triples: TermSet,
}

impl LiveTerms {
    /// An empty set for the terms of a state.
    pub(super) fn new(state: &GraphState) -> Self {
        LiveTerms {
            trees: Tree::ALL.map(|tree| TermSet::new(strings(state, tree))),
            triples: TermSet::new(state.triple_terms()),
        }
    }

    /// Number of triple terms, live or not.
    pub(super) fn triple_terms(&self) -> u64 {
        self.triples.len
    }

    /// Whether a triple term is marked.
    pub(super) fn has_triple(&self, id: TermId) -> bool {
        self.triples.has(id.number())
    }

    /// Marks a term that occurs. One that is newer than the state, or in no dictionary, is ignored.
    pub(super) fn mark(&mut self, id: TermId) {
        if let Some(tree) = Tree::holding(id.kind()) {
            self.trees[tree as usize].set(id.number());
        } else if id.kind() == TermKind::Triple {
            self.triples.set(id.number());
        }
    }

    /// Counts the marked terms; afterwards each has a rank.
    pub(super) fn count(mut self) -> Self {
        self.trees.iter_mut().for_each(TermSet::count);
        self.triples.count();
        self
    }

    pub(super) fn bytes(&self) -> u64 {
        self.trees.iter().chain([&self.triples]).map(TermSet::bytes).sum()
    }
}

fn strings(state: &GraphState, tree: Tree) -> u64 {
    state.strings(tree).map_or(0, |strings| strings.len())
}

/// New numbers of old terms. Live triple terms keep their order in any case, since an id of an
/// object is lower than that of the triple term it is in.
pub(super) enum NewNumbers {
    /// The old numbers.
    Same { lens: [u64; Tree::ALL.len()], triples: u64 },
    /// The live terms in their old order.
    InOrder(LiveTerms),
    /// By first occurrence; stored plus one, and 0 for terms not yet met.
    ByFirst { live: LiveTerms, numbers: [Packed; Tree::ALL.len()], next: [u64; Tree::ALL.len()] },
}

impl NewNumbers {
    /// All terms of a state keep their numbers.
    pub(super) fn same(state: &GraphState) -> Self {
        let lens = Tree::ALL.map(|tree| strings(state, tree));
        NewNumbers::Same { lens, triples: state.triple_terms() }
    }

    /// Live terms keep their order.
    pub(super) fn in_order(live: LiveTerms) -> Self {
        NewNumbers::InOrder(live)
    }

    /// [`NewNumbers::meet`] assigns the numbers.
    pub(super) fn by_first(live: LiveTerms) -> Self {
        let numbers = live.trees.each_ref().map(|bits| Packed::new(bits.members, bits.members));
        NewNumbers::ByFirst { live, numbers, next: [0; Tree::ALL.len()] }
    }

    /// Bytes that numbers by first occurrence take, in addition to the set of live terms.
    pub(super) fn first_bytes(live: &LiveTerms) -> u64 {
        let words = |bits: &TermSet| Packed::words(bits.members, bits_of(bits.members));
        live.trees.iter().map(|bits| words(bits) as u64 * 8).sum()
    }

    /// Numbers a live term that has no number yet, and returns its tree; else `None`.
    pub(super) fn meet(&mut self, id: TermId) -> Option<Tree> {
        let NewNumbers::ByFirst { live, numbers, next } = self else { return None };
        let tree = Tree::holding(id.kind())?;
        let at = live.trees[tree as usize].rank(id.number())?;
        if numbers[tree as usize].get(at) > 0 {
            return None;
        }
        next[tree as usize] += 1;
        assert!(next[tree as usize] <= live.trees[tree as usize].members, "one number per live term");
        numbers[tree as usize].set(at, next[tree as usize]);
        Some(tree)
    }

    /// Number of terms of the old tree.
    pub(super) fn old_len(&self, tree: Tree) -> u64 {
        match self {
            NewNumbers::Same { lens, .. } => lens[tree as usize],
            NewNumbers::InOrder(live) | NewNumbers::ByFirst { live, .. } => live.trees[tree as usize].len,
        }
    }

    /// Number of terms of the new tree.
    pub(super) fn len(&self, tree: Tree) -> u64 {
        match self {
            NewNumbers::Same { lens, .. } => lens[tree as usize],
            NewNumbers::InOrder(live) => live.trees[tree as usize].members,
            NewNumbers::ByFirst { next, .. } => next[tree as usize],
        }
    }

    /// Number of terms of all new trees.
    pub(super) fn terms(&self) -> u64 {
        Tree::ALL.into_iter().map(|tree| self.len(tree)).sum()
    }

    /// The new number of a term, if it has one.
    pub(super) fn number(&self, tree: Tree, old: u64) -> Option<u64> {
        match self {
            NewNumbers::Same { lens, .. } => (old < lens[tree as usize]).then_some(old),
            NewNumbers::InOrder(live) => live.trees[tree as usize].rank(old),
            NewNumbers::ByFirst { live, numbers, .. } => {
                let at = live.trees[tree as usize].rank(old)?;
                numbers[tree as usize].get(at).checked_sub(1)
            }
        }
    }

    /// Number of triple terms of the old generation.
    pub(super) fn old_triple_terms(&self) -> u64 {
        match self {
            NewNumbers::Same { triples, .. } => *triples,
            NewNumbers::InOrder(live) | NewNumbers::ByFirst { live, .. } => live.triples.len,
        }
    }

    /// The new id of a triple term, if it has one.
    pub(super) fn triple(&self, id: TermId) -> Option<TermId> {
        match self {
            NewNumbers::Same { triples, .. } => (id.number() < *triples).then_some(id),
            NewNumbers::InOrder(live) | NewNumbers::ByFirst { live, .. } => {
                live.triples.rank(id.number()).map(TermId::triple)
            }
        }
    }

    /// The new id of a term; `None` for one that is newer than `begun`.
    pub(super) fn map(&self, id: TermId, begun: &GraphState) -> Option<TermId> {
        let kind = id.kind();
        if let Some(tree) = Tree::holding(kind) {
            let code = if kind.has_code() { id.code() } else { 0 };
            return Some(TermId::dictionary(kind, code, self.number(tree, id.number())?));
        }
        if kind == TermKind::Triple {
            return self.triple(id);
        }
        // The new generation may give the datatype another code.
        (kind != TermKind::Decimal || begun.inline_datatype(id).is_some()).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn numbers_are_ranks_or_first_occurrences(
            len in 1u64..3000,
            met in prop::collection::vec(0u64..3000, 0..400),
        ) {
            let bits = || [TermSet::new(0), TermSet::new(len), TermSet::new(0)];
            let mut live = LiveTerms { trees: bits(), triples: TermSet::new(0) };
            let id = |number: u64| TermId::new(TermKind::String, number);
            met.iter().for_each(|number| live.mark(id(*number)));
            let known: Vec<u64> = met.iter().copied().filter(|number| *number < len).collect();
            let mut sorted = known.clone();
            sorted.sort_unstable();
            sorted.dedup();
            let live = live.count();
            for number in 0..3000 {
                let want = sorted.binary_search(&number).ok().map(|rank| rank as u64);
                prop_assert_eq!(live.trees[1].rank(number), want);
            }
            let mut numbers = NewNumbers::by_first(live);
            let mut first: BTreeMap<u64, u64> = BTreeMap::new();
            for number in met {
                let is_new = number < len && !first.contains_key(&number);
                prop_assert_eq!(numbers.meet(id(number)).is_some(), is_new);
                if is_new {
                    first.insert(number, first.len() as u64);
                }
            }
            for number in 0..3000 {
                prop_assert_eq!(numbers.number(Tree::Literal, number), first.get(&number).copied());
            }
            prop_assert_eq!(numbers.terms(), first.len() as u64);
        }
    }
}
