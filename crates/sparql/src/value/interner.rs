//! Terms that last for a whole query: ids for those that need not be stored, and their way to
//! stored ids.

use std::hash::RandomState;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use snowmelt_graph::{TermId, TermKind, TermRef};

use super::arena::Stored;
use super::local::{Known, LocalTerms, is_scratch};
use super::{TermError, TermStore, Value, iri};

/// A worker's access to the terms of its query.
pub(super) struct TermInterner {
    pub locals: Arc<LocalTerms>,
    /// ids of IRIs that functions make: datatypes
    iris: FxHashMap<Box<str>, TermId>,
}

impl TermInterner {
    pub fn new(locals: Arc<LocalTerms>) -> Self {
        Self { locals, iris: FxHashMap::default() }
    }

    /// An error once memory ran out.
    pub fn check(&self) -> Result<(), TermError> {
        self.locals.check()
    }

    /// Makes the labels of this query's blank nodes unlike those of any other.
    pub fn seed(&self) -> &RandomState {
        self.locals.seed()
    }

    /// An id for a term that cannot be inline.
    pub fn keep(&self, term: Stored<'_>) -> TermId {
        self.locals.intern(term)
    }

    /// An id for a term that need not be stored.
    pub fn intern(&self, term: TermRef<'_>) -> TermId {
        TermId::inline(&term).unwrap_or_else(|| self.keep(Stored::Term(term)))
    }

    /// The id of an IRI, stored if the dictionary has it; asked once per IRI.
    pub fn iri(&mut self, store: &mut dyn TermStore, iri: &str) -> Result<TermId, TermError> {
        /// IRIs remembered; a query that makes more looks some of them up again.
        const REMEMBERED: usize = 4096;
        if let Some(id) = self.iris.get(iri) {
            return Ok(*id);
        }
        if self.iris.len() >= REMEMBERED {
            self.iris.clear();
        }
        let id = store.resolve(&[TermRef::Iri(iri)])?[0].unwrap_or_else(|| self.intern(TermRef::Iri(iri)));
        debug_assert!(!is_scratch(id), "an id that is remembered outlives the batch");
        self.iris.insert(iri.into(), id);
        Ok(id)
    }

    /// Replaces local ids by the stored ids of the same terms, where the dictionary has them:
    /// afterwards equal terms have equal ids, stored or not.
    pub fn to_stored(&self, store: &mut dyn TermStore, ids: &mut [TermId]) -> Result<(), TermError> {
        let mut asked: Vec<TermId> = ids.iter().copied().filter(|id| id.kind() == TermKind::Local).collect();
        if asked.is_empty() {
            return Ok(());
        }
        asked.sort_unstable();
        asked.dedup();
        self.ask(store, &asked)?;
        let locals = self.locals.read();
        for id in ids.iter_mut().filter(|id| id.kind() == TermKind::Local) {
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
            let answers = store.resolve(&terms)?;
            assert_eq!(answers.len(), open.len(), "the dictionary answers for each term");
            for (id, answer) in open.iter().zip(answers) {
                found.push((*id, answer.map_or(Known::Absent, Known::Stored)));
            }
        }
        for (id, known) in found {
            self.locals.set_known(id, known);
        }
        Ok(())
    }
}

fn double_text(stored: Stored<'_>) -> String {
    match stored {
        Stored::Double(v) => Value::Double(v.into()).text().into_owned(),
        Stored::Term(_) => String::new(),
    }
}
