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
//! Texts may be long and a batch has many rows. So what a batch holds is bounded: over the
//! bound the evaluation ends with [`TermError::TooMuch`], and [`Terms::in_parts`] does fewer
//! rows at a time, down to one. What a single row needs is reserved. Functions that cannot fail
//! note why they gave up ([`Terms::fits`], [`Terms::poll`]); who called them asks
//! [`Terms::fault`].

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use oxsdatatypes::{Date, DateTime, Double, Float};
use rustc_hash::FxHashMap;
use snowmelt_graph::{
    FIRST_REGISTERED, GraphError, InlineValue, Kind, Lexical, TermId, TermRef, from_boolean, from_double,
    from_float, from_integer, from_micros,
};

use super::arena::{Stored, TermArena};
use super::local::{self, Known, LocalTerms, is_scratch};
use super::{Decimal, Temporal, TermError, TooMuch, Value, iri, parse_literal};
use crate::bounds::{Held, Limits};

/// Where stored terms come from: a session, or [`NoStore`].
pub trait TermStore {
    /// The ids of terms; None for those not stored (and not inline).
    fn resolve(&mut self, terms: &[TermRef<'_>]) -> Result<Vec<Option<TermId>>, GraphError>;
    /// Calls `f` with the index and the term of each id, until it says false; ids are distinct
    /// dictionary or blank node ids.
    fn decode(
        &mut self,
        ids: &[TermId],
        f: &mut dyn FnMut(usize, TermRef<'_>) -> bool,
    ) -> Result<(), GraphError>;
    /// The language tag, if the id alone tells that the term has one.
    fn lang_of(&self, id: TermId) -> Option<&str>;
    /// The datatype IRI, if the id alone tells it.
    fn datatype_of(&self, id: TermId) -> Option<&str>;
}

/// No stored terms: for constant expressions and tests.
pub struct NoStore;

impl TermStore for NoStore {
    fn resolve(&mut self, terms: &[TermRef<'_>]) -> Result<Vec<Option<TermId>>, GraphError> {
        Ok(terms.iter().map(TermId::inline).collect())
    }

    fn decode(
        &mut self,
        ids: &[TermId],
        _: &mut dyn FnMut(usize, TermRef<'_>) -> bool,
    ) -> Result<(), GraphError> {
        assert!(ids.is_empty(), "there are no stored ids without a store");
        Ok(())
    }

    fn lang_of(&self, _: TermId) -> Option<&str> {
        None
    }

    fn datatype_of(&self, _: TermId) -> Option<&str> {
        None
    }
}

/// The terms of one thread of a query.
pub struct Terms {
    /// decoded stored terms and copies of local ones, by id
    cache: TermArena,
    cached: FxHashMap<TermId, u32>,
    cache_limit_bytes: usize,
    /// what the current batch computed
    scratch: TermArena,
    locals: Arc<LocalTerms>,
    /// datatypes of decimal-like ids beyond the fixed ones, by code
    registered: Vec<Option<Arc<str>>>,
    missing: Vec<TermId>,
    /// ids of IRIs that functions make: datatypes
    iris: FxHashMap<Box<str>, TermId>,
    /// how often each call of BNODE(string) has met a solution
    named_blanks: FxHashMap<(u32, u64), u32>,
    sites: u32,
    guard: Guard,
    /// fixed for the whole query
    pub(crate) now: DateTime,
    pub(crate) base: Option<oxiri::Iri<String>>,
}

/// Work on some rows of a batch.
type OfRows<'f, E> = dyn FnMut(&mut Terms, Range<usize>) -> Result<(), E> + 'f;

/// Bounds on what a thread's terms may hold, and what it cost so far.
struct Guard {
    limits: Limits,
    /// bytes of the longest term
    longest: usize,
    /// what is held beyond the cache's limit
    held: Held,
    /// for the long texts that functions make, until the batch is over
    making: RefCell<Held>,
    /// bytes of texts of a batch, beyond which fewer rows are done at a time
    room: usize,
    /// a single row is worked on: what it needs is reserved
    whole: bool,
    /// bytes looked at since the limits were
    worked: Cell<usize>,
    fault: RefCell<Option<TermError>>,
}

impl Default for Guard {
    fn default() -> Self {
        Guard {
            limits: Limits::default(),
            longest: usize::MAX,
            held: Held::default(),
            making: RefCell::default(),
            room: usize::MAX,
            whole: false,
            worked: Cell::new(0),
            fault: RefCell::new(None),
        }
    }
}

impl Guard {
    /// Texts take so many bytes beyond the cache's limit now, or are about to.
    fn hold(&mut self, bytes: usize, limit: usize) -> Result<(), TermError> {
        /// Reserved ahead, so that not every text asks.
        const AHEAD: usize = 64 << 10;
        if bytes > self.room && !self.whole {
            return Err(TermError::TooMuch);
        }
        let beyond = bytes.saturating_sub(limit);
        if beyond > self.held.bytes() {
            self.held.set(beyond + AHEAD, "texts of a batch")?;
        }
        Ok(())
    }

    fn note(&self, error: TermError) {
        self.fault.borrow_mut().get_or_insert(error);
    }
}

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
            cache: TermArena::default(),
            cached: FxHashMap::default(),
            cache_limit_bytes,
            scratch: TermArena::default(),
            locals,
            registered: vec![None; 256],
            missing: Vec::new(),
            iris: FxHashMap::default(),
            named_blanks: FxHashMap::default(),
            sites: 0,
            guard: Guard::default(),
            now,
            base,
        }
    }

    /// Puts the terms under a query's limits: `cache` bytes of terms are kept, `held` is for what
    /// exceeds them, `room` for the texts of a batch.
    pub(crate) fn guarded(
        mut self,
        limits: Limits,
        longest: usize,
        held: Held,
        cache: usize,
        room: usize,
    ) -> Self {
        self.cache_limit_bytes = cache;
        let making = RefCell::new(held.another());
        self.guard = Guard { limits, longest, held, making, room, ..Guard::default() };
        self
    }

    /// Bytes of terms held by this thread.
    fn bytes(&self) -> usize {
        self.cache.bytes()
            + self.scratch.bytes()
            + self.cached.capacity() * 24
            + self.named_blanks.capacity() * 24
    }

    /// Starts a batch: drops computed terms that were not kept, and the cache when it is over
    /// its bound.
    pub fn begin_batch(&mut self) {
        self.scratch.clear();
        self.guard.making.get_mut().clear();
        if self.cache.bytes() > self.cache_limit_bytes {
            self.forget();
        }
    }

    /// Empties the cache and gives its memory back.
    fn forget(&mut self) {
        self.cache.clear();
        self.cached = FxHashMap::default();
        let beyond = self.bytes().saturating_sub(self.cache_limit_bytes);
        if beyond < self.guard.held.bytes() {
            // giving back cannot fail
            let _ = self.guard.held.set(beyond, "texts of a batch");
        }
    }

    /// Whether a text of so many bytes may be made; asked before it is. Otherwise the query
    /// ends.
    pub(crate) fn fits(&self, bytes: usize) -> Option<()> {
        if bytes > self.guard.longest {
            let (bytes, most) = (bytes as u64, self.guard.longest);
            self.guard.note(TermError::TooLong { bytes, most });
            return None;
        }
        /// Longer ones are reserved before they are made: the text, and its copy among the terms.
        const LONG: usize = 256 << 10;
        let mut making = self.guard.making.borrow_mut();
        if bytes > LONG
            && 2 * bytes > making.bytes()
            && let Err(error) = making.set(2 * bytes, "a text that a function makes")
        {
            self.guard.note(error.into());
            return None;
        }
        Some(())
    }

    /// Ends the query: no search of so long a text for this pattern can be interrupted.
    pub(crate) fn refuse_search<T>(&self, text_bytes: usize, pattern_bytes: usize) -> Option<T> {
        self.guard.note(TermError::Search { text_bytes, pattern_bytes });
        None
    }

    /// Counts work, and now and then looks whether the query has to end: `None` then.
    pub(crate) fn poll(&self, bytes: usize) -> Option<()> {
        /// Bytes that nothing takes more than some milliseconds for.
        const LOOK_BYTES: usize = 1 << 20;
        let worked = self.guard.worked.get() + bytes + 32;
        self.guard.worked.set(if worked < LOOK_BYTES { worked } else { 0 });
        if worked >= LOOK_BYTES {
            return self.look();
        }
        self.guard.fault.borrow().is_none().then_some(())
    }

    /// Looks whether the query has to end: `None` then.
    pub(crate) fn look(&self) -> Option<()> {
        if let Err(stop) = self.guard.limits.check() {
            self.guard.note(stop.into());
        }
        self.guard.fault.borrow().is_none().then_some(())
    }

    /// Whether the query has to end.
    pub(crate) fn check(&self) -> Result<(), TermError> {
        Ok(self.guard.limits.check()?)
    }

    /// The error noted by functions that cannot fail.
    pub(crate) fn fault(&self) -> Result<(), TermError> {
        match self.guard.fault.borrow_mut().take() {
            Some(error) => Err(error),
            None => self.locals.check(),
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
        let single = rows.len() <= 1 || self.sites > 0;
        let before = self.guard.whole;
        self.guard.whole |= single;
        let done = f(self, rows.clone());
        self.guard.whole = before;
        match done {
            Err(error) if !single && error.is_too_much() => {}
            done => return done,
        }
        self.guard.fault.borrow_mut().take();
        let middle = rows.start + rows.len() / 2;
        for part in [rows.start..middle, middle..rows.end] {
            self.scratch.clear();
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
                Kind::Special => {}
                Kind::Decimal if id.decimal_code() >= FIRST_REGISTERED => self.register(store, id),
                kind if kind.is_inline() => {}
                Kind::Local if is_scratch(id) => {}
                kind => {
                    if !self.cached.contains_key(&id) {
                        any_local |= kind == Kind::Local;
                        missing.push(id);
                    }
                }
            }
        }
        let mut done = Ok(());
        if !missing.is_empty() {
            missing.sort_unstable();
            missing.dedup();
            if any_local {
                done = self.copy_locals(&mut missing);
            }
            done = done.and_then(|()| self.decode(store, &missing));
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
        let before = std::mem::replace(&mut self.guard.whole, true);
        let done = self.prefetch(store, ids);
        self.guard.whole = before;
        done
    }

    /// Reads terms into the cache, as long as there is room.
    fn decode(&mut self, store: &mut dyn TermStore, missing: &[TermId]) -> Result<(), TermError> {
        let beside = self.bytes() - self.cache.bytes();
        let (cache, cached, guard) = (&mut self.cache, &mut self.cached, &mut self.guard);
        let limit = self.cache_limit_bytes;
        let mut failed = None;
        store.decode(missing, &mut |i, term| {
            cached.insert(missing[i], cache.push(term));
            let worked = guard.worked.get() + 64;
            guard.worked.set(worked % (1 << 16));
            let stopped =
                if worked >= 1 << 16 { guard.limits.check().map_err(TermError::from) } else { Ok(()) };
            failed = stopped.and_then(|()| guard.hold(beside + cache.bytes(), limit)).err();
            failed.is_none()
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// Copies the local ones of these ids into the cache and takes them off the list.
    fn copy_locals(&mut self, missing: &mut Vec<TermId>) -> Result<(), TermError> {
        let beside = self.bytes() - self.cache.bytes();
        let locals = self.locals.read();
        let (cache, cached, guard) = (&mut self.cache, &mut self.cached, &mut self.guard);
        let mut failed = None;
        missing.retain(|id| {
            if id.kind() != Kind::Local || failed.is_some() {
                return true;
            }
            cached.insert(*id, cache.push_stored(locals.get(*id)));
            failed = guard.hold(beside + cache.bytes(), self.cache_limit_bytes).err();
            false
        });
        failed.map_or(Ok(()), Err)
    }

    fn register(&mut self, store: &dyn TermStore, id: TermId) {
        let place = &mut self.registered[usize::from(id.decimal_code())];
        if place.is_none() {
            *place = store.datatype_of(id).map(Into::into);
        }
    }

    fn stored(&self, id: TermId) -> Stored<'_> {
        if is_scratch(id) {
            return self.scratch.get(local::index(id));
        }
        let index = self.cached.get(&id).unwrap_or_else(|| panic!("{id:?} was not prefetched"));
        self.cache.get(*index)
    }

    /// Bytes of the text behind a prefetched or computed id; little for others.
    pub(crate) fn text_bytes(&self, id: TermId) -> usize {
        if id.kind() == Kind::Special || id.kind().is_inline() {
            return 8;
        }
        match self.stored(id) {
            Stored::Term(
                TermRef::Iri(text) | TermRef::Blank(text) | TermRef::Literal { lexical: text, .. },
            ) => text.len(),
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
                Kind::ShortString => Value::String(text),
                _ => Value::Other { lexical: text, datatype: Cow::Borrowed(self.inline_datatype(id)) },
            });
        }
        Some(match self.stored(id) {
            Stored::Double(v) => Value::Double(v.into()),
            Stored::Term(TermRef::Iri(iri)) => Value::Iri(iri.into()),
            Stored::Term(TermRef::Blank(label)) => Value::Blank(label.into()),
            Stored::Term(TermRef::Literal { lexical, lang, datatype }) => {
                parse_literal(lexical, lang, datatype)
            }
        })
    }

    fn inline_datatype(&self, id: TermId) -> &str {
        id.fixed_datatype().unwrap_or_else(|| {
            self.registered[usize::from(id.decimal_code())]
                .as_deref()
                .unwrap_or_else(|| panic!("the datatype of {id:?} was not prefetched"))
        })
    }

    /// Calls `f` with the term behind a prefetched, computed or inline id; None when unbound.
    pub fn with_term<R>(&self, id: TermId, f: impl FnOnce(TermRef<'_>) -> R) -> Option<R> {
        if id.kind() == Kind::Special {
            return None;
        }
        if id.kind().is_inline() {
            let mut lexical = Lexical::new();
            let text = lexical.write(id)?;
            return Some(f(TermRef::typed(text, self.inline_datatype(id))));
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
        if id.kind() == Kind::Special {
            return None;
        }
        if id.kind().is_inline() {
            return Some(TermRef::typed(buffer.lexical.write(id)?, self.inline_datatype(id)));
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
            if matches!(id.kind(), Kind::Value | Kind::Local) && self.poll(self.text_bytes(id)).is_none() {
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
                    let index = self.scratch.push_double(v);
                    self.grown();
                    local::scratch_id(index)
                });
            }
            _ => {}
        }
        let text = value.text();
        self.push_term(match value {
            Value::Iri(_) => TermRef::Iri(&text),
            Value::Blank(_) => TermRef::Blank(&text),
            Value::LangString(_, lang) => TermRef::tagged(&text, lang),
            _ => TermRef::typed(&text, value.datatype().unwrap_or(iri::STRING)),
        })
    }

    /// As [`Terms::push`], for a term as it is written.
    pub fn push_term(&mut self, term: TermRef<'_>) -> TermId {
        if let Some(id) = TermId::inline(&term) {
            return id;
        }
        let (TermRef::Iri(text) | TermRef::Blank(text) | TermRef::Literal { lexical: text, .. }) = term;
        let annotation = match term {
            TermRef::Literal { lang, datatype, .. } => lang.map_or(datatype.len(), str::len),
            _ => 0,
        };
        if self.fits(text.len().max(annotation)).is_none() {
            return TermId::UNDEF;
        }
        let index = self.scratch.push(term);
        self.grown();
        local::scratch_id(index)
    }

    /// Notes a fault if what was computed has no room.
    fn grown(&mut self) {
        let bytes = self.bytes();
        if let Err(error) = self.guard.hold(bytes, self.cache_limit_bytes) {
            self.guard.note(error);
        }
    }

    /// An id for a computed value that lasts for the whole query; what the batch computed
    /// before is gone.
    pub(crate) fn push_kept(&mut self, value: &Value<'_>) -> TermId {
        let mut id = self.push(value);
        if is_scratch(id) {
            self.keep(std::slice::from_mut(&mut id));
            self.scratch.clear();
        }
        id
    }

    /// Makes computed ids last for the whole query.
    pub fn keep(&self, ids: &mut [TermId]) {
        for id in ids {
            if is_scratch(*id) {
                *id = self.locals.intern(self.scratch.get(local::index(*id)));
            }
        }
    }

    /// An id, valid for the whole query, for a term that need not be stored.
    #[must_use]
    pub fn intern(&self, term: TermRef<'_>) -> TermId {
        TermId::inline(&term).unwrap_or_else(|| self.locals.intern(Stored::Term(term)))
    }

    /// The id of an IRI, stored if the dictionary has it; asked once per IRI.
    pub(crate) fn iri(&mut self, store: &mut dyn TermStore, iri: &str) -> Result<TermId, TermError> {
        /// Remembered; a query that makes more datatypes asks for some of them again.
        const REMEMBERED: usize = 4096;
        if let Some(id) = self.iris.get(iri) {
            return Ok(*id);
        }
        if self.iris.len() >= REMEMBERED {
            self.iris.clear();
        }
        let id = store.resolve(&[TermRef::Iri(iri)])?[0].unwrap_or_else(|| self.intern(TermRef::Iri(iri)));
        self.iris.insert(iri.into(), id);
        Ok(id)
    }

    /// A number for a call of BNODE(string) in the query.
    pub(crate) fn new_site(&mut self) -> u32 {
        self.sites += 1;
        self.sites
    }

    /// The blank node that a call gives for a prefetched string in a solution, told by its
    /// bindings.
    pub(crate) fn named_blank(&mut self, site: u32, solution: u64, name: TermId) -> TermId {
        let Some(Value::String(name)) = self.value(name) else { return TermId::UNDEF };
        let name = name.into_owned();
        let times = self.named_blanks.entry((site, solution)).or_default();
        *times += 1;
        let hash = |half: u8| self.locals.seed().hash_one((half, solution, *times, &name));
        let label = format!("n{:016x}{:016x}", hash(0), hash(1));
        self.push_term(TermRef::Blank(&label))
    }

    /// Replaces local ids by the stored ids of the same terms, where the dictionary has them:
    /// afterwards equal terms have equal ids, stored or not.
    pub fn to_stored(&self, store: &mut dyn TermStore, ids: &mut [TermId]) -> Result<(), TermError> {
        let mut asked: Vec<TermId> = ids.iter().copied().filter(|id| id.kind() == Kind::Local).collect();
        if asked.is_empty() {
            return Ok(());
        }
        asked.sort_unstable();
        asked.dedup();
        self.ask(store, &asked)?;
        let locals = self.locals.read();
        for id in ids.iter_mut().filter(|id| id.kind() == Kind::Local) {
            if let Known::Stored(stored) = locals.known(*id) {
                *id = stored;
            }
        }
        Ok(())
    }

    /// Looks up the local terms that were not looked up before.
    fn ask(&self, store: &mut dyn TermStore, ids: &[TermId]) -> Result<(), TermError> {
        let mut found = Vec::new();
        {
            let locals = self.locals.read();
            // Blank nodes made by the query are never stored, whatever their labels.
            let open: Vec<TermId> = ids
                .iter()
                .copied()
                .filter(|id| locals.known(*id) == Known::NotAsked && !locals.is_blank(*id))
                .collect();
            if open.is_empty() {
                return Ok(());
            }
            let doubles: Vec<String> = open.iter().map(|id| double_text(locals.get(*id))).collect();
            let terms: Vec<TermRef<'_>> = open
                .iter()
                .zip(&doubles)
                .map(|(id, text)| match locals.get(*id) {
                    Stored::Term(term) => term,
                    Stored::Double(_) => TermRef::typed(text, iri::DOUBLE),
                })
                .collect();
            for (id, answer) in open.iter().zip(store.resolve(&terms)?) {
                found.push((*id, answer.map_or(Known::Absent, Known::Stored)));
            }
        }
        for (id, known) in found {
            self.locals.set_known(id, known);
        }
        Ok(())
    }
}

#[cfg(test)]
impl Terms {
    /// Terms of no query, whose longest is `longest` bytes.
    pub(crate) fn for_test(longest: usize) -> Self {
        let now = "2011-01-10T14:45:13".parse().expect("a moment");
        Terms::new(Arc::default(), now, None, 1 << 20).guarded(
            Limits::default(),
            longest,
            Held::default(),
            1 << 20,
            usize::MAX,
        )
    }
}

/// Where the text of an id's term is written that has none in memory.
#[derive(Default)]
pub struct TermBuffer {
    lexical: Lexical,
    double: String,
}

fn double_text(stored: Stored<'_>) -> String {
    match stored {
        Stored::Double(v) => Value::Double(v.into()).text().into_owned(),
        Stored::Term(_) => String::new(),
    }
}

/// The value of an inline id that needs neither text nor table.
pub(crate) fn inline_value(id: TermId) -> Option<Value<'static>> {
    Some(match id.inline_value()? {
        InlineValue::Integer(v) | InlineValue::Derived { value: v, .. } => Value::Integer(v.into()),
        InlineValue::Decimal { datatype: 0, micros, .. } => Value::Decimal(Decimal::from_micros(micros)),
        InlineValue::Double(v) => Value::Double(Double::from(v)),
        InlineValue::Float(v) => Value::Float(Float::from(v)),
        InlineValue::Boolean(v) => Value::Boolean(v),
        InlineValue::Date { days, utc } => {
            let bytes = moment(i128::from(days) * 86_400_000_000, utc);
            Value::Temporal(Temporal::Date(Date::from_be_bytes(bytes)))
        }
        InlineValue::DateTime { ms, utc } => {
            let bytes = moment(i128::from(ms) * 1_000, utc);
            Value::Temporal(Temporal::DateTime(DateTime::from_be_bytes(bytes)))
        }
        InlineValue::String(_) | InlineValue::Decimal { .. } => return None,
    })
}

/// A point in time as oxsdatatypes keeps it: seconds since 0001-01-01T00:00:00, then the time
/// zone's minutes or -1.
fn moment(micros: i128, utc: bool) -> [u8; 18] {
    /// 10^-18 s in a point in time.
    const UNITS_PER_MICRO: i128 = 1_000_000_000_000;
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(&(micros * UNITS_PER_MICRO).to_be_bytes());
    if !utc {
        bytes[16..].fill(u8::MAX);
    }
    bytes
}
