//! Applies changes of the trees that sessions see to the next generation. Its ids differ, so quads
//! are passed on as terms; only blank nodes keep their numbers.

use rustc_hash::FxHashMap;

use crate::database::change_log::Change;
use crate::error::Result;
use crate::session::Session;
use crate::term::{Term, TermId, TermKind, TermRef};
use crate::transaction::quad_batch::{BatchTerm, QuadBatch};
use crate::transaction::terms::BlankNodes;
use crate::transaction::{Target, Transaction};

/// Bytes of terms decoded together.
const TERM_BYTES: usize = 4 << 20;

/// Terms of the generation that sessions see.
type Terms = FxHashMap<TermId, Term>;

/// A quad of that generation, and whether it should exist.
type Wanted = ([u64; 4], bool);

impl Transaction {
    /// Applies changes in their order. A change that the next generation already has does nothing.
    ///
    /// # Errors
    /// Fails with errors of the store, damage included.
    pub(crate) fn replay(&mut self, changes: &[Change]) -> Result<()> {
        for (at, part) in changes.split(|change| *change == Change::Cleared).enumerate() {
            if at > 0 {
                self.truncate()?;
            }
            // The last change of a quad counts.
            let mut last: FxHashMap<[u64; 4], bool> = FxHashMap::default();
            last.extend(part.iter().filter_map(|change| match change {
                Change::Quad(quad, came) => Some((*quad, *came)),
                Change::Cleared => None,
            }));
            let mut wanted: Vec<Wanted> = last.into_iter().collect();
            wanted.sort_unstable();
            self.replay_quads(&wanted)?;
        }
        Ok(())
    }

    fn replay_quads(&mut self, wanted: &[Wanted]) -> Result<()> {
        let Some(terms) = self.terms_of(wanted)? else {
            let (first, second) = wanted.split_at(wanted.len() / 2);
            self.replay_quads(first)?;
            return self.replay_quads(second);
        };
        let gone = self.ids_here(wanted.iter().filter(|(_, is_there)| !is_there), &terms)?;
        let mut come = QuadBatch::new(0);
        for (quad, _) in wanted.iter().filter(|(_, is_there)| *is_there) {
            let quad: [BatchTerm; 4] = quad.map(|id| match terms.get(&TermId(id)) {
                Some(term) => come.term(term.as_ref()),
                None => come.id(TermId(id)),
            });
            come.push(quad);
        }
        self.change(&gone, &come, &mut BlankNodes::default())?;
        Ok(())
    }

    /// The terms of some quads, except those whose ids are equal in all generations; `None` if they
    /// are too long to be held together.
    fn terms_of(&self, wanted: &[Wanted]) -> Result<Option<Terms>> {
        let Target::Next { seen, .. } = &self.target else {
            unreachable!("changes are made once more to the next generation")
        };
        let ids = wanted.iter().flat_map(|(quad, _)| quad.map(TermId));
        let mut ids: Vec<TermId> = ids.filter(|id| !is_the_same(*id)).collect();
        ids.sort_unstable();
        ids.dedup();
        let session = Session::new(self.db.clone(), seen.clone(), self.txn.snapshot());
        let mut session = session.charged_to(self.txn.account());
        let (mut terms, mut bytes) = (Terms::default(), 0);
        session.decode_while(&ids, |at, term| {
            let term = term.to_owned();
            bytes += len_of(&term);
            terms.insert(ids[at], term);
            wanted.len() == 1 || bytes <= TERM_BYTES
        })?;
        Ok((terms.len() == ids.len()).then_some(terms))
    }

    /// Quads by their ids in the next generation. A quad with a term that is not there is left out,
    /// because the quad is not there, either.
    fn ids_here<'w>(
        &self,
        wanted: impl Iterator<Item = &'w Wanted> + Clone,
        terms: &Terms,
    ) -> Result<Vec<[TermId; 4]>> {
        let mut ids: Vec<TermId> = wanted.clone().flat_map(|(quad, _)| quad.map(TermId)).collect();
        ids.sort_unstable();
        ids.dedup();
        let known: Vec<(TermId, &Term)> = ids.iter().filter_map(|id| Some((*id, terms.get(id)?))).collect();
        let refs: Vec<_> = known.iter().map(|(_, term)| term.as_ref()).collect();
        let found = self.session().resolve(&refs)?;
        let here: FxHashMap<TermId, Option<TermId>> = known.iter().map(|(id, _)| *id).zip(found).collect();
        let quads = wanted.filter_map(|(quad, _)| {
            let id = |id: u64| here.get(&TermId(id)).copied().unwrap_or(Some(TermId(id)));
            let [s, p, o, g] = quad.map(id);
            Some([s?, p?, o?, g?])
        });
        Ok(quads.collect())
    }
}

/// Approximate bytes of a term.
fn len_of(term: &Term) -> usize {
    match term.as_ref() {
        TermRef::Iri(text) | TermRef::Blank(text) => text.len(),
        TermRef::Literal { lexical, .. } => lexical.len(),
    }
}

/// Whether an id means the same term in all generations. Numbers and dates would, too, except those
/// of datatypes with a code.
fn is_the_same(id: TermId) -> bool {
    id == TermId::DEFAULT_GRAPH || id.kind() == TermKind::Blank
}
