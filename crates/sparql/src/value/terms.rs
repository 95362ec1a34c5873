//! The terms a query works with, per thread: decoded from the dictionary, computed, or inline.
//!
//! Expressions ask in two steps: [`Terms::prefetch`] for all ids of a batch, which reads what
//! is missing in one dictionary call in location order, then [`Terms::value`] or
//! [`Terms::with_term`] for each, which never waits. A decoded term stays until the cache is
//! over its bound and a new batch begins, so a term is normally read once per query.
//!
//! Invariant: between two calls of [`Terms::begin_batch`] nothing prefetched or computed goes
//! away.
//!
//! Its parts:
//!
//! | part | holds |
//! |---|---|
//! | [`TermCache`] | terms read from the dictionary |
//! | [`TermArena`] | terms that the current batch computed |
//! | [`TermInterner`] | computed terms that last for the query |
//! | [`BlankNodeCalls`] | counts of the calls of BNODE(string) |
//! | [`TermGuard`] | bounds on all of these, and on time |
//!
//! Texts that are too much for a batch are done in fewer rows ([`Terms::in_parts`]), down to one.
//! Functions that cannot fail note why they gave up ([`Terms::fits`], [`Terms::poll`]); their
//! caller asks [`Terms::fault`].

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use oxsdatatypes::DateTime;
use snowmelt_graph::{
    FIRST_REGISTERED, Lexical, TermId, TermKind, TermRef, from_boolean, from_double, from_float,
    from_integer, from_micros, split_direction, triple_bytes,
};

use super::arena::{Stored, TermArena};
use super::blank_calls::BlankNodeCalls;
use super::cache::TermCache;
use super::guard::{TermBounds, TermGuard};
use super::inline::inline_value;
use super::interner::TermInterner;
use super::local::{self, LocalTerms, is_scratch};
use super::ranks::{Ranking, TextRanks};
use super::{TermError, TermStore, TooMuch, Value, iri};

/// The terms of one thread of a query.
pub struct Terms {
    cache: TermCache,
    /// by the current batch
    computed: TermArena,
    interner: TermInterner,
    blank_nodes: BlankNodeCalls,
    guard: TermGuard,
    /// ids that are about to be read
    missing: Vec<TermId>,
    ranks: Option<Arc<TextRanks>>,
    /// fixed for the whole query
    pub(crate) now: DateTime,
    pub(crate) base: Option<oxiri::Iri<String>>,
}

/// Work on some rows of a batch.
type OfRows<'f, E> = dyn FnMut(&mut Terms, Range<usize>) -> Result<(), E> + 'f;

impl Terms {
    /// Terms of one thread. `locals` and `now` are the query's; `base` is its BASE,
    /// `cache_limit_bytes` what decoded terms may hold.
    #[must_use]
    pub fn new(
        locals: Arc<LocalTerms>,
        now: DateTime,
        base: Option<oxiri::Iri<String>>,
        cache_limit_bytes: usize,
    ) -> Self {
        Terms {
            cache: TermCache::new(cache_limit_bytes),
            computed: TermArena::default(),
            interner: TermInterner::new(locals),
            blank_nodes: BlankNodeCalls::default(),
            guard: TermGuard::default(),
            missing: Vec::new(),
            ranks: None,
            now,
            base,
        }
    }

    /// Puts the terms under a query's bounds.
    pub(crate) fn guarded(mut self, bounds: TermBounds) -> Self {
        self.cache.limit_bytes = bounds.cache;
        self.guard = TermGuard::new(bounds);
        self
    }

    /// Gives them the ranks of the database's texts.
    pub(crate) fn with_ranks(mut self, ranks: Arc<TextRanks>) -> Self {
        self.ranks = Some(ranks);
        self
    }

    /// The ranks of a store's texts, for a batch; None where they must do without.
    pub(crate) fn ranking(&self, store: &dyn TermStore) -> Option<Ranking> {
        self.ranks.as_ref()?.of(store.committed_strings()?)
    }

    /// Bytes of terms held by this thread.
    fn bytes(&self) -> usize {
        self.cache.bytes() + self.bytes_beside_cache()
    }

    fn bytes_beside_cache(&self) -> usize {
        self.computed.bytes() + self.blank_nodes.bytes()
    }

    /// Starts a batch: drops computed terms that were not kept, and the cache when it is over
    /// its bound.
    pub fn begin_batch(&mut self) {
        self.computed.clear();
        self.guard.begin_batch();
        if self.cache.is_over_limit() {
            self.forget();
        }
    }

    /// Empties the cache and gives its memory back.
    fn forget(&mut self) {
        self.cache.clear();
        self.guard.release(self.bytes());
    }

    /// Whether a text of so many bytes may be made; asked before it is. Otherwise the query
    /// ends.
    pub(crate) fn fits(&self, bytes: usize) -> Option<()> {
        self.guard.fits(bytes)
    }

    /// Ends the query: no search of so long a text for this pattern can be interrupted.
    pub(crate) fn refuse_search<T>(&self, text_bytes: usize, pattern_bytes: usize) -> Option<T> {
        self.guard.refuse_search(text_bytes, pattern_bytes)
    }

    /// Evaluation ends after so many bytes of work from here on, whatever came before.
    pub(crate) fn allow(&mut self, bytes: usize) {
        self.guard.allow(bytes);
    }

    /// Counts work, and checks the limits now and then: `None` if the query has to end.
    pub(crate) fn poll(&self, bytes: usize) -> Option<()> {
        self.guard.poll(bytes)
    }

    /// Checks the limits: `None` if the query has to end.
    pub(crate) fn look(&self) -> Option<()> {
        self.guard.look()
    }

    /// Whether the query has to end.
    pub(crate) fn check(&self) -> Result<(), TermError> {
        self.guard.check()
    }

    /// The error noted by functions that cannot fail.
    pub(crate) fn fault(&self) -> Result<(), TermError> {
        match self.guard.take_fault() {
            Some(error) => Err(error),
            None => self.interner.check(),
        }
    }

    /// Calls `f` for all rows, or, when their texts are too much for the room of a batch, for
    /// some after the other: in halves, down to a single row. What `f` did before it failed
    /// with [`TermError::TooMuch`] must not matter.
    pub(crate) fn in_parts<E>(&mut self, rows: Range<usize>, f: &mut OfRows<'_, E>) -> Result<(), E>
    where
        E: From<TermError> + TooMuch,
    {
        // calls of BNODE(string) are counted: they cannot be done again
        let single = rows.len() <= 1 || self.blank_nodes.are_any();
        let before = self.guard.is_whole;
        self.guard.is_whole |= single;
        let done = f(self, rows.clone());
        self.guard.is_whole = before;
        match done {
            Err(error) if !single && error.is_too_much() => {}
            done => return done,
        }
        drop(self.guard.take_fault());
        let middle = rows.start + rows.len() / 2;
        assert!(rows.start < middle && middle < rows.end, "{rows:?} are halved until one row is left");
        for part in [rows.start..middle, middle..rows.end] {
            self.computed.clear();
            self.forget();
            self.in_parts(part, f)?;
        }
        Ok(())
    }

    /// Makes all these ids readable, with one dictionary call for those not read before.
    pub fn prefetch(
        &mut self,
        store: &mut dyn TermStore,
        ids: impl IntoIterator<Item = TermId>,
    ) -> Result<(), TermError> {
        let mut missing = std::mem::take(&mut self.missing);
        missing.clear();
        let mut any_local = false;
        let mut last = TermId::UNDEF;
        for id in ids {
            if id == last {
                continue;
            }
            last = id;
            match id.kind() {
                TermKind::Special => {}
                TermKind::Decimal if id.decimal_code() >= FIRST_REGISTERED => self.cache.register(store, id),
                kind if kind.is_inline() => {}
                TermKind::Local if is_scratch(id) => {}
                kind => {
                    if !self.cache.has(id) {
                        any_local |= kind == TermKind::Local;
                        missing.push(id);
                    }
                }
            }
        }
        let mut done = Ok(());
        if !missing.is_empty() {
            missing.sort_unstable();
            missing.dedup();
            let beside = self.bytes_beside_cache();
            let Self { cache, guard, .. } = self;
            if any_local {
                done = cache.copy_locals(&self.interner.locals, &mut missing, guard, beside);
            }
            done = done.and_then(|()| cache.read(store, &missing, guard, beside));
            let is_read = || missing.iter().all(|id| self.cache.has(*id));
            debug_assert!(done.is_err() || is_read(), "after a prefetch no term of the batch is missing");
        }
        self.missing = missing;
        done
    }

    /// Makes all these ids readable, for a batch that cannot be done in parts: what it needs is
    /// reserved.
    pub(crate) fn prefetch_whole(
        &mut self,
        store: &mut dyn TermStore,
        ids: impl IntoIterator<Item = TermId>,
    ) -> Result<(), TermError> {
        let before = std::mem::replace(&mut self.guard.is_whole, true);
        let done = self.prefetch(store, ids);
        self.guard.is_whole = before;
        done
    }

    fn stored(&self, id: TermId) -> Stored<'_> {
        match is_scratch(id) {
            true => self.computed.get(local::index(id)),
            false => self.cache.get(id),
        }
    }

    /// Bytes of the text behind a prefetched or computed id; little for others.
    pub(crate) fn text_bytes(&self, id: TermId) -> usize {
        if id.kind() == TermKind::Special || id.kind().is_inline() {
            return 8;
        }
        match self.stored(id) {
            Stored::Term(
                TermRef::Iri(text) | TermRef::Blank(text) | TermRef::Literal { lexical: text, .. },
            ) => text.len(),
            Stored::Term(TermRef::Triple(triple)) => triple_bytes(triple),
            Stored::Double(_) => 8,
        }
    }

    /// The value of a prefetched, computed or inline id; None when unbound.
    #[must_use]
    pub fn value(&self, id: TermId) -> Option<Value<'_>> {
        if let Some(v) = inline_value(id) {
            return Some(v);
        }
        if id.is_undef() {
            return None;
        }
        if id.kind().is_inline() {
            // strings, and decimal-like literals of registered datatypes
            let mut lexical = Lexical::new();
            let text = Cow::Owned(lexical.write(id)?.to_owned());
            return Some(match id.kind() {
                TermKind::ShortString => Value::String(text),
                _ => Value::Other { lexical: text, datatype: Cow::Borrowed(self.cache.inline_datatype(id)) },
            });
        }
        Some(match self.stored(id) {
            Stored::Double(v) => Value::Double(v.into()),
            Stored::Term(term) => Value::of_term(term),
        })
    }

    /// Calls `f` with the term behind a prefetched, computed or inline id; None when unbound.
    pub fn with_term<R>(&self, id: TermId, f: impl FnOnce(TermRef<'_>) -> R) -> Option<R> {
        if id.kind() == TermKind::Special {
            return None;
        }
        if id.kind().is_inline() {
            let mut lexical = Lexical::new();
            let text = lexical.write(id)?;
            return Some(f(TermRef::typed(text, self.cache.inline_datatype(id))));
        }
        Some(match self.stored(id) {
            Stored::Term(term) => f(term),
            Stored::Double(v) => f(TermRef::typed(&Value::Double(v.into()).text(), iri::DOUBLE)),
        })
    }

    /// The term behind a prefetched, computed or inline id, borrowing `buffer` where its text
    /// is made on the spot.
    #[must_use]
    pub fn term<'a>(&'a self, id: TermId, buffer: &'a mut TermBuffer) -> Option<TermRef<'a>> {
        if id.kind() == TermKind::Special {
            return None;
        }
        if id.kind().is_inline() {
            return Some(TermRef::typed(buffer.lexical.write(id)?, self.cache.inline_datatype(id)));
        }
        Some(match self.stored(id) {
            Stored::Term(term) => term,
            Stored::Double(v) => {
                buffer.double = Value::Double(v.into()).text().into_owned();
                TermRef::typed(&buffer.double, iri::DOUBLE)
            }
        })
    }

    /// Appends the ORDER BY key of a prefetched, computed or inline id (or UNDEF): keys compare
    /// as bytes, see [`push_order_key`](super::push_order_key).
    pub fn push_order_key(&self, id: TermId, descending: bool, out: &mut Vec<u8>) {
        let Some(number) = id.inline_number() else {
            // a number may be long: where the query has to end, the caller asks for the fault
            if matches!(id.kind(), TermKind::Value | TermKind::Local)
                && self.poll(self.text_bytes(id)).is_none()
            {
                return;
            }
            return super::push_order_key(self.value(id).as_ref(), descending, out);
        };
        let start = out.len();
        super::order::push_inline_number(number, out);
        if descending {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    /// An id for a computed value: inline where possible, else valid until the batch ends (see
    /// [`Terms::keep`]).
    pub fn push(&mut self, value: &Value<'_>) -> TermId {
        match value {
            Value::Boolean(v) => return from_boolean(*v),
            Value::Integer(v) => {
                if let Some(id) = i64::try_from(v).ok().and_then(from_integer) {
                    return id;
                }
            }
            Value::Decimal(v) => {
                if let Some(id) = v.micros().and_then(from_micros) {
                    return id;
                }
            }
            Value::Float(v) => return from_float((*v).into()),
            Value::Double(v) => {
                let v = f64::from(*v);
                let v = if v.is_nan() { f64::NAN } else { v };
                return from_double(v).unwrap_or_else(|| {
                    let index = self.computed.push_double(v);
                    self.grown();
                    local::scratch_id(index)
                });
            }
            _ => {}
        }
        if let Value::Triple(triple) = value {
            return self.push_term(TermRef::Triple(triple));
        }
        let text = value.text();
        self.push_term(match value {
            Value::Iri(_) => TermRef::Iri(&text),
            Value::Blank(_) => TermRef::Blank(&text),
            Value::LangString(_, lang) => match split_direction(lang) {
                (lang, Some(direction)) => TermRef::directed(&text, lang, direction),
                (lang, None) => TermRef::tagged(&text, lang),
            },
            _ => TermRef::typed(&text, value.datatype().unwrap_or(iri::STRING)),
        })
    }

    /// As [`Terms::push`], for a term as it is written.
    pub fn push_term(&mut self, term: TermRef<'_>) -> TermId {
        if let Some(id) = TermId::inline(&term) {
            return id;
        }
        let bytes = match term {
            TermRef::Iri(text) | TermRef::Blank(text) | TermRef::Literal { lexical: text, .. } => text.len(),
            TermRef::Triple(triple) => triple_bytes(triple),
        };
        let annotation = match term {
            TermRef::Literal { lang, datatype, .. } => lang.map_or(datatype.len(), str::len),
            _ => 0,
        };
        if self.fits(bytes.max(annotation)).is_none() {
            return TermId::UNDEF;
        }
        let index = self.computed.push(term);
        self.grown();
        local::scratch_id(index)
    }

    /// Notes a fault if what was computed has no room.
    fn grown(&mut self) {
        let bytes = self.bytes();
        if let Err(error) = self.guard.hold(bytes) {
            self.guard.note(error);
        }
    }

    /// An id for a computed value that lasts for the whole query; what the batch computed
    /// before is gone.
    pub(crate) fn push_kept(&mut self, value: &Value<'_>) -> TermId {
        let mut id = self.push(value);
        if is_scratch(id) {
            self.keep(std::slice::from_mut(&mut id));
            assert!(!is_scratch(id), "an id that is kept outlives the batch");
            self.computed.clear();
        }
        id
    }

    /// Makes computed ids last for the whole query.
    pub fn keep(&self, ids: &mut [TermId]) {
        for id in ids.iter_mut().filter(|id| is_scratch(**id)) {
            *id = self.interner.keep(self.computed.get(local::index(*id)));
        }
    }

    /// An id, valid for the whole query, for a term that need not be stored.
    #[must_use]
    pub fn intern(&self, term: TermRef<'_>) -> TermId {
        self.interner.intern(term)
    }

    /// The id of an IRI, stored if the dictionary has it; asked once per IRI.
    pub(crate) fn iri(&mut self, store: &mut dyn TermStore, iri: &str) -> Result<TermId, TermError> {
        self.interner.iri(store, iri)
    }

    /// Replaces local ids by the stored ids of the same terms, where the dictionary has them:
    /// afterwards equal terms have equal ids, stored or not.
    pub fn to_stored(&self, store: &mut dyn TermStore, ids: &mut [TermId]) -> Result<(), TermError> {
        self.interner.to_stored(store, ids)
    }

    /// A number for a call of BNODE(string) in the query.
    pub(crate) fn new_site(&mut self) -> u32 {
        self.blank_nodes.new_site()
    }

    /// The blank node that a call gives for a prefetched string in a solution, told by its
    /// bindings.
    pub(crate) fn named_blank(&mut self, site: u32, solution: u64, name: TermId) -> TermId {
        let Some(Value::String(name)) = self.value(name) else { return TermId::UNDEF };
        let name = name.into_owned();
        let label = self.blank_nodes.label(site, solution, &name, self.interner.seed());
        self.push_term(TermRef::Blank(&label))
    }
}

#[cfg(test)]
impl Terms {
    /// Bytes of terms that it holds.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes()
    }

    /// Terms of no query, whose longest is `longest` bytes.
    pub(crate) fn for_test(longest: usize) -> Self {
        let now = "2011-01-10T14:45:13".parse().expect("a moment");
        Terms::new(Arc::default(), now, None, 1 << 20)
            .guarded(TermBounds { longest, ..TermBounds::for_test(crate::bounds::Limits::default()) })
    }
}

/// Where the text of an id's term is written that has none in memory.
#[derive(Default)]
pub struct TermBuffer {
    lexical: Lexical,
    double: String,
}
