//! Terms that a worker has read from the dictionary, and copies of local ones.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use snowmelt_graph::{TermId, TermKind, TermRef, TermSink};

use super::arena::{Stored, TermArena};
use super::guard::TermGuard;
use super::local::LocalTerms;
use super::{TermError, TermStore};

/// Read terms by id. They stay until [`Self::clear`].
pub(super) struct TermCache {
    terms: TermArena,
    /// places in the arena
    places: FxHashMap<TermId, u32>,
    /// Bytes of terms beyond which it is to be emptied before a new batch.
    pub limit_bytes: usize,
    /// datatypes of decimal-like ids beyond the fixed ones, by code
    registered: Vec<Option<Arc<str>>>,
}

impl TermCache {
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            terms: TermArena::default(),
            places: FxHashMap::default(),
            limit_bytes,
            registered: vec![None; 256],
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.terms.bytes() + self.places.capacity() * 24
    }

    pub fn is_over_limit(&self) -> bool {
        self.terms.bytes() > self.limit_bytes
    }

    /// Forgets all terms and gives their memory back.
    pub fn clear(&mut self) {
        self.terms.clear();
        self.places = FxHashMap::default();
    }

    pub fn has(&self, id: TermId) -> bool {
        self.places.contains_key(&id)
    }

    /// A term that was read before.
    pub fn get(&self, id: TermId) -> Stored<'_> {
        let place = self.places.get(&id).unwrap_or_else(|| panic!("{id:?} was not prefetched"));
        self.terms.get(*place)
    }

    /// Reads terms, distinct and not read before, as long as `guard` has room; `beside`: bytes of
    /// the worker's other terms.
    pub fn read(
        &mut self,
        store: &mut dyn TermStore,
        ids: &[TermId],
        guard: &mut TermGuard,
        beside: usize,
    ) -> Result<(), TermError> {
        debug_assert!(ids.is_sorted_by(|a, b| a < b), "ids are distinct");
        let beside = beside + self.places.capacity() * 24;
        let mut sink = CacheSink { cache: self, ids, guard, beside, failed: None, has_asked: false };
        let done = store.decode(ids, &mut sink);
        let CacheSink { failed, has_asked, .. } = sink;
        if has_asked {
            guard.release(beside + self.terms.bytes());
        }
        done?;
        failed.map_or(Ok(()), Err)
    }

    /// Copies the local ones of these ids and takes them off the list.
    pub fn copy_locals(
        &mut self,
        locals: &LocalTerms,
        ids: &mut Vec<TermId>,
        guard: &mut TermGuard,
        beside: usize,
    ) -> Result<(), TermError> {
        let beside = beside + self.places.capacity() * 24;
        let locals = locals.read();
        let Self { terms, places, .. } = self;
        let mut failed = None;
        ids.retain(|id| {
            if id.kind() != TermKind::Local || failed.is_some() {
                return true;
            }
            places.insert(*id, terms.push_stored(locals.get(*id)));
            failed = guard.hold(beside + terms.bytes()).err();
            false
        });
        failed.map_or(Ok(()), Err)
    }

    /// Reads the datatype of a decimal-like id, once.
    pub fn register(&mut self, store: &dyn TermStore, id: TermId) {
        let place = &mut self.registered[usize::from(id.decimal_code())];
        if place.is_none() {
            *place = store.datatype_of(id).map(Into::into);
        }
    }

    /// The datatype of an inline id.
    pub fn inline_datatype(&self, id: TermId) -> &str {
        id.fixed_datatype().unwrap_or_else(|| {
            self.registered[usize::from(id.decimal_code())]
                .as_deref()
                .unwrap_or_else(|| panic!("the datatype of {id:?} was not prefetched"))
        })
    }
}

/// Keeps terms that are read, as long as there is room.
struct CacheSink<'a> {
    cache: &'a mut TermCache,
    ids: &'a [TermId],
    guard: &'a mut TermGuard,
    /// bytes of the worker's other terms
    beside: usize,
    failed: Option<TermError>,
    /// whether memory was held for what the reading takes
    has_asked: bool,
}

impl TermSink for CacheSink<'_> {
    fn room(&mut self, bytes: usize) -> bool {
        self.has_asked = true;
        self.failed = self.guard.hold(self.beside + self.cache.terms.bytes() + bytes).err();
        self.failed.is_none()
    }

    fn take(&mut self, place: usize, term: TermRef<'_>) -> bool {
        let Self { cache, guard, beside, .. } = self;
        cache.places.insert(self.ids[place], cache.terms.push(term));
        let held = guard.count_term().and_then(|()| guard.hold(*beside + cache.terms.bytes()));
        self.failed = held.err();
        self.failed.is_none()
    }
}
