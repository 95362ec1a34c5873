//! Loading into a filled database by merging: its terms and quads pass through the load before
//! the input, and every tree is built anew.
//!
//! 1. The old codes, prefixes and blank nodes are taken over.
//! 2. The old terms are numbered first, tree by tree in the order of their numbers. Numbers are
//!    assigned by first occurrence, also to terms that find the table full and wait, so every
//!    old term gets its old number: old ids stay valid.
//! 3. So do the old triple terms.
//! 4. The old quads go to the sorter as they are.
//!
//! Invariant: until the commit the old trees are untouched; a load that fails or is killed
//! leaves them as they were.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustc_hash::FxHashMap;
use snowmelt_store::Columns;

use super::ACCOUNT;
use super::numbering::Numbering;
use super::read::GraphsSeen;
use super::sorter::{Merge, Sorter};
use crate::database::GraphDatabase;
use crate::dict::{Tree, dictionary_error, literal};
use crate::error::GraphError;
use crate::index::Index;
use crate::index::triple::TripleIndex;
use crate::input::cancelled;
use crate::input::error::LoadError;
use crate::input::intern::{Interner, Parsed, Ref, position};
use crate::session::Session;
use crate::term::{TermId, TermKind, TermRef};

/// Terms numbered together.
const STEP_TERMS: u64 = 4096;
/// Rows read together.
const STEP_ROWS: usize = 8192;

/// The contents of a database before the load.
pub(super) struct Old {
    session: Session,
}

impl Old {
    /// The newest state of a database.
    pub(super) fn open(database: &Arc<GraphDatabase>) -> Result<Self, LoadError> {
        Ok(Old { session: database.session()?.charged_to(&database.database().account(ACCOUNT)) })
    }

    /// Its quads.
    pub(super) fn quads(&self) -> u64 {
        self.session.state().quads()
    }

    /// Bytes of its strings.
    pub(super) fn string_bytes(&self) -> u64 {
        self.session.state().string_bytes()
    }

    /// Numbers its terms. `codes` sorts the codes of literals by number.
    pub(super) fn number_terms(
        &mut self,
        numbering: &mut Numbering<'_>,
        codes: &dyn Fn(&'static str) -> Arc<Sorter<2>>,
        cancel: &AtomicBool,
    ) -> Result<(), LoadError> {
        let state = self.session.state().clone();
        numbering.dictionary.go_on_from(&state);
        for tree in Tree::ALL {
            let codes = match tree {
                Tree::Iri => None,
                Tree::Literal => Some(self.codes(tree, &codes("old-literal-codes"))?),
                Tree::Text => Some(self.codes(tree, &codes("old-text-codes"))?),
            };
            self.number_tree(tree, codes, numbering, cancel)?;
        }
        self.number_triples(numbering, cancel)
    }

    /// Numbers its triple terms, which hand their rows on.
    fn number_triples(
        &mut self,
        numbering: &mut Numbering<'_>,
        cancel: &AtomicBool,
    ) -> Result<(), LoadError> {
        let mut interner = Interner::new();
        let mut parsed = Parsed::default();
        let terms = self.session.state().triple_terms();
        for first in (0..terms).step_by(STEP_TERMS as usize) {
            cancelled(cancel)?;
            interner.begin(0, parsed);
            let ids: Vec<TermId> = (first..terms.min(first + STEP_TERMS)).map(TermId::triple).collect();
            let references = self.intern_triples(&ids, &mut interner)?;
            parsed = interner.end();
            numbering.number(&mut parsed)?;
            for (id, reference) in ids.iter().zip(references) {
                let given = position(reference).map(|at| parsed.ids[at as usize]);
                if given.is_none_or(|given| position(given).is_none() && given != id.0) {
                    let why = format!("{id:?} has the terms of another one, too");
                    return Err(GraphError::record(TripleIndex::Id.name(), why).into());
                }
            }
            parsed.clear();
        }
        Ok(())
    }

    /// Interns triple terms, in their order. Blank nodes keep their ids.
    fn intern_triples(&mut self, ids: &[TermId], interner: &mut Interner) -> Result<Vec<Ref>, LoadError> {
        let (rows, leaves) = self.session.triple_rows(ids)?;
        let mut known: FxHashMap<TermId, Ref> = FxHashMap::default();
        let (blank, others): (Vec<TermId>, Vec<TermId>) =
            leaves.into_iter().partition(|id| id.kind() == TermKind::Blank);
        known.extend(blank.iter().map(|id| (*id, id.0)));
        self.session.decode(&others, |at, term| {
            known.insert(others[at], interner.term(term));
        })?;
        // Ids of objects are lower than those of the terms they are in.
        let mut all: Vec<TermId> = rows.keys().copied().collect();
        all.sort_unstable();
        for id in all {
            let reference = interner.triple(rows[&id].map(|part| known[&part]));
            known.insert(id, reference);
        }
        Ok(ids.iter().map(|id| known[id]).collect())
    }

    /// The annotation codes of a tree's literals, in the order of their numbers.
    fn codes(&mut self, tree: Tree, sorter: &Arc<Sorter<2>>) -> Result<Merge<2>, LoadError> {
        let mut batch = sorter.batch();
        if let Some(hashes) = self.session.state().hashes(tree) {
            let mut scan = hashes.scan(Default::default());
            let mut rows = Columns::with_wanted(3, 0b110);
            while scan.next(self.session.reader(), &mut rows, STEP_ROWS).map_err(GraphError::from)? {
                let pairs = rows.cols[1].iter().zip(&rows.cols[2]);
                pairs.into_iter().try_for_each(|(number, code)| batch.push([*number, *code]))?;
                rows.clear();
            }
        }
        batch.finish()?;
        sorter.merge()
    }

    fn number_tree(
        &mut self,
        tree: Tree,
        mut codes: Option<Merge<2>>,
        numbering: &mut Numbering<'_>,
        cancel: &AtomicBool,
    ) -> Result<(), LoadError> {
        let len = self.session.state().strings(tree).map_or(0, |strings| strings.len());
        let mut interner = Interner::new();
        let mut parsed = Parsed::default();
        for first in (0..len).step_by(STEP_TERMS as usize) {
            cancelled(cancel)?;
            let numbers: Vec<u64> = (first..len.min(first + STEP_TERMS)).collect();
            let mut of_step = Vec::with_capacity(numbers.len());
            if let Some(codes) = &mut codes {
                // A merge may return fewer rows than requested.
                let mut left = numbers.len();
                while left > 0 && codes.next(&mut of_step, left)? {
                    left = numbers.len() - of_step.len();
                }
            }
            interner.begin(0, parsed);
            self.intern(tree, &numbers, &of_step, &mut interner)?;
            parsed = interner.end();
            numbering.number(&mut parsed)?;
            check_numbers(tree, first, &parsed)?;
            parsed.clear();
        }
        Ok(())
    }

    /// Interns the terms of consecutive numbers, in their order.
    fn intern(
        &mut self,
        tree: Tree,
        numbers: &[u64],
        codes: &[[u64; 2]],
        interner: &mut Interner,
    ) -> Result<(), LoadError> {
        let state = self.session.state().clone();
        let strings = state.strings(tree).expect("there are numbers, so there are strings");
        let mut read = vec![Vec::new(); numbers.len()];
        let reader = self.session.reader();
        strings.get(reader, numbers, |at, string| read[at] = string.to_vec()).map_err(GraphError::from)?;
        for (at, (number, string)) in numbers.iter().zip(&read).enumerate() {
            let kind = match tree {
                Tree::Iri => TermKind::Iri,
                Tree::Literal => TermKind::Literal,
                Tree::Text => TermKind::Text,
            };
            let code = match codes.get(at) {
                _ if tree == Tree::Iri => 0,
                Some([of, code]) if of == number => *code as u16,
                _ => {
                    let why = format!("no row of {} names it", tree.hash_name());
                    return Err(dictionary_error(TermId::new(kind, *number), why).into());
                }
            };
            let id = TermId::dictionary(kind, code, *number);
            if tree == Tree::Iri {
                let (prefix, local) =
                    state.prefixes().split(string).map_err(|why| dictionary_error(id, why))?;
                interner.term(TermRef::Iri(&format!("{prefix}{local}")));
            } else {
                interner.term(literal(id, string, state.codes())?);
            }
        }
        Ok(())
    }

    /// Hands its quads to `push` as `[predicate, subject, object, graph]`, and says in which
    /// graphs they are.
    pub(super) fn each_quad(
        &mut self,
        mut push: impl FnMut([u64; 4]) -> Result<(), LoadError>,
        cancel: &AtomicBool,
    ) -> Result<GraphsSeen, LoadError> {
        let mut graphs = GraphsSeen::None;
        let mut scan = self.session.scan(Index::Psog, &[], None);
        let mut rows = Columns::new(4);
        while scan.next(&mut self.session, &mut rows, STEP_ROWS)? {
            cancelled(cancel)?;
            for row in 0..rows.rows {
                let row = [0, 1, 2, 3].map(|c| rows.cols[c][row]);
                graphs.add(row[3]);
                push(row)?;
            }
            rows.clear();
        }
        Ok(graphs)
    }
}

/// Checks that every term got its old number.
fn check_numbers(tree: Tree, first: u64, parsed: &Parsed) -> Result<(), LoadError> {
    for (number, id) in (first..).zip(&parsed.ids) {
        if position(*id).is_none() && TermId(*id).number() != number {
            let why = "the same string has another number, too".to_owned();
            return Err(GraphError::Dictionary { tree: tree.name(), number, why }.into());
        }
    }
    Ok(())
}
