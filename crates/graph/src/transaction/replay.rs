//! Applies changes of the trees that sessions see to the next generation. Its ids differ, so quads
//! are passed on as terms, triple terms as what is in them; only blank nodes keep their numbers.

use rustc_hash::FxHashMap;

use crate::database::change_log::Change;
use crate::error::Result;
use crate::session::Session;
use crate::session::triple_terms::TripleRows;
use crate::term::{Term, TermId, TermKind, TermRef};
use crate::transaction::quad_batch::{BatchTerm, QuadBatch};
use crate::transaction::terms::BlankNodes;
use crate::transaction::{Target, Transaction};

/// Bytes of terms decoded together.
const TERM_BYTES: usize = 4 << 20;

/// Terms of the generation that sessions see.
#[derive(Default)]
struct ReplayTerms {
    /// terms that are no triple terms
    leaves: FxHashMap<TermId, Term>,
    triples: TripleRows,
}

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
            let quad = quad.map(|id| batch_term(&mut come, &terms, TermId(id)));
            come.push(quad);
        }
        self.change(&gone, &come, &mut BlankNodes::default())?;
        Ok(())
    }

    /// The terms of some quads, except those whose ids are equal in all generations; `None` if they
    /// are too long to be held together.
    fn terms_of(&self, wanted: &[Wanted]) -> Result<Option<ReplayTerms>> {
        let Target::Next { seen, .. } = &self.target else {
            unreachable!("changes are made once more to the next generation")
        };
        let ids = wanted.iter().flat_map(|(quad, _)| quad.map(TermId));
        let (triples, mut ids): (Vec<TermId>, Vec<TermId>) =
            ids.filter(|id| !is_the_same(*id)).partition(|id| id.kind() == TermKind::Triple);
        let session = Session::new(self.db.clone(), seen.clone(), self.txn.snapshot());
        let mut session = session.charged_to(self.txn.account());
        let mut terms = ReplayTerms::default();
        if !triples.is_empty() {
            let (rows, leaves) = session.triple_rows(&triples)?;
            ids.extend(leaves.into_iter().filter(|id| !is_the_same(*id)));
            terms.triples = rows;
        }
        ids.sort_unstable();
        ids.dedup();
        let mut bytes = 0;
        session.decode_while(&ids, |at, term| {
            let term = term.to_owned();
            bytes += len_of(&term);
            terms.leaves.insert(ids[at], term);
            wanted.len() == 1 || bytes <= TERM_BYTES
        })?;
        Ok((terms.leaves.len() == ids.len()).then_some(terms))
    }

    /// Quads by their ids in the next generation. A quad with a term that is not there is left out,
    /// because the quad is not there, either.
    fn ids_here<'w>(
        &self,
        wanted: impl Iterator<Item = &'w Wanted> + Clone,
        terms: &ReplayTerms,
    ) -> Result<Vec<[TermId; 4]>> {
        let mut ids: Vec<TermId> = wanted.clone().flat_map(|(quad, _)| quad.map(TermId)).collect();
        ids.extend(terms.triples.values().flatten());
        ids.sort_unstable();
        ids.dedup();
        let known: Vec<(TermId, &Term)> =
            ids.iter().filter_map(|id| Some((*id, terms.leaves.get(id)?))).collect();
        let refs: Vec<_> = known.iter().map(|(_, term)| term.as_ref()).collect();
        let found = self.session().resolve(&refs)?;
        let mut here: Here = known.iter().map(|(id, _)| *id).zip(found).collect();
        self.triples_here(&ids, terms, &mut here)?;
        let quads = wanted.filter_map(|(quad, _)| {
            let [s, p, o, g] = quad.map(|id| id_here(&here, TermId(id)));
            Some([s?, p?, o?, g?])
        });
        Ok(quads.collect())
    }

    /// Adds the ids of triple terms in the next generation. `ids` ascend, so that those within
    /// others come before them.
    fn triples_here(&self, ids: &[TermId], terms: &ReplayTerms, here: &mut Here) -> Result<()> {
        let mut waiting: Vec<TermId> =
            ids.iter().copied().filter(|id| terms.triples.contains_key(id)).collect();
        while !waiting.is_empty() {
            let is_ready = |id: &TermId| {
                let object = terms.triples[id][2];
                object.kind() != TermKind::Triple || here.contains_key(&object)
            };
            let (ready, later): (Vec<TermId>, Vec<TermId>) = waiting.into_iter().partition(is_ready);
            let (mut keys, mut asked) = (Vec::new(), Vec::new());
            for id in &ready {
                if let [Some(s), Some(p), Some(o)] = terms.triples[id].map(|part| id_here(here, part)) {
                    keys.push([s, p, o]);
                    asked.push(*id);
                }
            }
            let found = self.session().find_triples(&keys)?;
            assert!(!ready.is_empty(), "the first one has no other within it");
            here.extend(ready.into_iter().map(|id| (id, None)));
            here.extend(asked.into_iter().zip(found));
            waiting = later;
        }
        Ok(())
    }
}

/// Ids in the next generation; `None` for terms that are not there.
type Here = FxHashMap<TermId, Option<TermId>>;

/// The id of a term in the next generation.
fn id_here(here: &Here, id: TermId) -> Option<TermId> {
    here.get(&id).copied().unwrap_or(Some(id))
}

/// Adds a term to a batch. Blank nodes keep their numbers, in triple terms, too.
fn batch_term(batch: &mut QuadBatch, terms: &ReplayTerms, id: TermId) -> BatchTerm {
    let (mut levels, mut at) = (Vec::new(), id);
    while let Some([s, p, o]) = terms.triples.get(&at) {
        levels.push([*s, *p]);
        at = *o;
    }
    let leaf = |batch: &mut QuadBatch, id: TermId| match terms.leaves.get(&id) {
        Some(term) => batch.term(term.as_ref()),
        None => batch.id(id),
    };
    let mut object = leaf(batch, at);
    for [s, p] in levels.into_iter().rev() {
        let (s, p) = (leaf(batch, s), leaf(batch, p));
        object = batch.triple([s, p, object]);
    }
    object
}

/// Approximate bytes of a term.
fn len_of(term: &Term) -> usize {
    match term.as_ref() {
        TermRef::Iri(text) | TermRef::Blank(text) => text.len(),
        TermRef::Literal { lexical, .. } => lexical.len(),
        TermRef::Triple(_) => unreachable!("only the terms in it are decoded"),
    }
}

/// Whether an id means the same term in all generations. Numbers and dates would, too, except those
/// of datatypes with a code.
fn is_the_same(id: TermId) -> bool {
    id == TermId::DEFAULT_GRAPH || id.kind() == TermKind::Blank
}
