//! Query-local terms: what expressions compute and the store may not know.
//!
//! An id of kind `Local` is an index into one arena per query. Terms are interned: within a
//! query equal local terms have equal ids. The rule by which they meet stored terms:
//!
//! 1. a computed term that can be inline *is* inline: it never comes here;
//! 2. other computed terms are local, even if the dictionary knows them: most are only printed,
//!    so no look-up is paid;
//! 3. where ids are compared as ids (join, group, distinct, minus) the operator first calls
//!    [`Terms::to_stored`](super::Terms::to_stored), which replaces a local id by the stored id
//!    of the same term where there is one. The answer is remembered per local term, so the
//!    dictionary is asked once.
//! 4. operators of expressions (`=`, sameTerm, IN) compare local terms by their text and need
//!    no look-up.
//!
//! Shared by the threads of a query: a lock around the arena, taken once per batch.

use std::hash::{Hash, Hasher, RandomState};

use hashbrown::HashTable;
use parking_lot::{RwLock, RwLockReadGuard};
use rustc_hash::FxHasher;
use snowmelt_graph::{TermId, TermKind, TermRef};

use super::TermError;
use super::arena::{Stored, TermArena};
use crate::bounds::Held;
use snowmelt_query::Exceeded;

/// Set in ids that live only until their expression's batch is done; never seen outside
/// expressions.
const SCRATCH: u64 = 1 << 58;

pub(crate) fn scratch_id(index: u32) -> TermId {
    const { assert!(SCRATCH > u32::MAX as u64, "the mark is no bit of an index") };
    TermId::new(TermKind::Local, SCRATCH | u64::from(index))
}

pub(crate) fn local_id(index: u32) -> TermId {
    TermId::new(TermKind::Local, u64::from(index))
}

pub(crate) fn is_scratch(id: TermId) -> bool {
    id.kind() == TermKind::Local && id.payload() & SCRATCH != 0
}

/// The index in its arena of a local or scratch id.
pub(crate) fn index(id: TermId) -> u32 {
    assert!(id.kind() == TermKind::Local, "{id:?} is no computed term");
    debug_assert!(u32::try_from(id.payload() & !SCRATCH).is_ok(), "{id:?} was made from an index");
    (id.payload() & !SCRATCH) as u32
}

/// The dictionary's answer about a local term.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    NotAsked,
    Absent,
    Stored(TermId),
}

#[derive(Default)]
pub(crate) struct LocalArena {
    terms: TermArena,
    known: Vec<Known>,
    table: HashTable<u32>,
    held: Held,
    /// the query's memory did not suffice: its share
    over: Option<usize>,
}

impl LocalArena {
    pub fn get(&self, id: TermId) -> Stored<'_> {
        self.terms.get(index(id))
    }

    pub fn is_blank(&self, id: TermId) -> bool {
        matches!(self.get(id), Stored::Term(TermRef::Blank(_)))
    }

    pub fn known(&self, id: TermId) -> Known {
        self.known[index(id) as usize]
    }

    fn bytes(&self) -> usize {
        self.terms.bytes() + self.known.capacity() * size_of::<Known>() + self.table.capacity() * 5
    }

    /// Reserves memory for the terms and for `more` bytes, some of it ahead.
    fn account(&mut self, more: usize) {
        const AHEAD: usize = 64 << 10;
        let bytes = self.bytes() + more;
        if bytes > self.held.bytes()
            && let Err(Exceeded::Memory { share_bytes, .. }) = self.held.set(bytes + AHEAD, "computed terms")
        {
            self.over = Some(share_bytes);
        }
    }
}

/// The computed terms of one query.
#[derive(Default)]
pub struct LocalTerms {
    arena: RwLock<LocalArena>,
    /// makes the labels of this query's blank nodes unlike those of any other
    seed: RandomState,
}

impl LocalTerms {
    /// Forgets all terms; none may be asked for any more.
    pub(crate) fn clear(&self) {
        *self.arena.write() = LocalArena::default();
    }

    /// An empty arena.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty arena whose memory is the query's.
    pub(crate) fn held_by(held: Held) -> Self {
        let locals = Self::default();
        locals.arena.write().held = held;
        locals
    }

    /// An error once memory ran out; checked after each batch.
    pub(crate) fn check(&self) -> Result<(), TermError> {
        match self.arena.read().over {
            Some(share_bytes) => Err(TermError::Memory { share_bytes, what: "computed terms" }),
            None => Ok(()),
        }
    }

    pub(crate) fn seed(&self) -> &RandomState {
        &self.seed
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, LocalArena> {
        self.arena.read()
    }

    /// The local id of a term; the caller has tried inline before.
    pub(crate) fn intern(&self, stored: Stored<'_>) -> TermId {
        let mut arena = self.arena.write();
        let LocalArena { terms, table, .. } = &mut *arena;
        let hash = hash(stored);
        if let Some(index) = table.find(hash, |i| same(terms.get(*i), stored)) {
            return local_id(*index);
        }
        let more = terms.needs(stored);
        arena.account(more);
        if arena.over.is_some() {
            // The query ends with its batch, and until then it grows no more.
            return TermId::UNDEF;
        }
        let LocalArena { terms, known, table, .. } = &mut *arena;
        let index = terms.push_stored(stored);
        assert_eq!(index as usize, known.len(), "each local term has its answer of the dictionary");
        known.push(Known::NotAsked);
        let terms = &*terms;
        table.insert_unique(hash, index, |i| self::hash(terms.get(*i)));
        arena.account(0);
        local_id(index)
    }

    pub(crate) fn set_known(&self, id: TermId, known: Known) {
        assert!(!is_scratch(id), "{id:?} lasts for a batch, and the answer for the query");
        if let Known::Stored(stored) = known {
            assert!(stored.kind() != TermKind::Local, "{stored:?} is no stored term");
        }
        let place = &mut self.arena.write().known[index(id) as usize];
        debug_assert!(*place == Known::NotAsked || *place == known, "the dictionary's answer stays the same");
        *place = known;
    }
}

fn hash(stored: Stored<'_>) -> u64 {
    let mut hasher = FxHasher::default();
    match stored {
        Stored::Term(term) => term.hash(&mut hasher),
        Stored::Double(v) => v.to_bits().hash(&mut hasher),
    }
    hasher.finish()
}

fn same(a: Stored<'_>, b: Stored<'_>) -> bool {
    match (a, b) {
        (Stored::Term(a), Stored::Term(b)) => a == b,
        (Stored::Double(a), Stored::Double(b)) => a.to_bits() == b.to_bits(),
        _ => false,
    }
}
