//! From terms to ids: the constants of a query.
//!
//! 1. an inline term needs no lookup; a term whose language or datatype has no code is not in the
//!    database;
//! 2. the others are hashed and looked up in the hash trees, all terms of a tree together;
//! 3. the candidates' strings are read, again together, and compared: hashes may collide;
//! 4. triple terms are looked up by the ids of the terms in them.

use snowmelt_store::{AnyTree, Keys, Levels, Matches};

use crate::database::state::GraphState;
use crate::dict::{Entry, Place, Tree, blank_number, dictionary_error, index_hash_of, place};
use crate::error::{GraphError, Result};
use crate::session::Session;
use crate::term::{TermId, TermRef};

/// A dictionary entry to look up.
pub(crate) struct WantedEntry<'a> {
    hash: u64,
    entry: Entry<'a>,
    /// Its place among the requested terms.
    place: usize,
}

/// Entries to look up, by tree.
#[derive(Default)]
pub(crate) struct WantedEntries<'a>([Vec<WantedEntry<'a>>; Tree::ALL.len()]);

impl<'a> WantedEntries<'a> {
    /// Adds the entry of the term at `place` among the requested ones.
    pub(crate) fn push(&mut self, entry: Entry<'a>, place: usize, state: &GraphState) {
        let hash = index_hash_of(entry.hash(), state.meta().hash_bits);
        self.0[entry.tree() as usize].push(WantedEntry { hash, entry, place });
    }
}

impl WantedEntry<'_> {
    /// A fixed other string of the tree, to be read if there is no candidate.
    fn other(&self, strings: u64) -> Option<u64> {
        self.hash.checked_rem(strings)
    }
}

impl WantedEntries<'_> {
    /// For each requested term, the id of the other string that is read for it.
    fn others(&self, state: &GraphState, terms: usize) -> Vec<Option<TermId>> {
        let mut others = vec![None; terms];
        for (tree, wanted) in Tree::ALL.into_iter().zip(&self.0) {
            let strings = state.strings(tree).map_or(0, |strings| strings.len());
            for wanted in wanted {
                others[wanted.place] = wanted.other(strings).map(|number| wanted.entry.id(number));
            }
        }
        others
    }
}

/// A stored string that may be the wanted one.
struct Candidate {
    number: u64,
    wanted: usize,
}

impl Session {
    /// The ids of terms; `None` for terms that are not in the database (inline literals always have
    /// an id).
    ///
    /// Blank nodes are found by their display labels.
    pub fn resolve(&mut self, terms: &[TermRef<'_>]) -> Result<Vec<Option<TermId>>> {
        let state = self.state.clone();
        let mut found = vec![None; terms.len()];
        let mut wanted = WantedEntries::default();
        let mut scratches = vec![Vec::new(); terms.len()];
        let mut triples = Vec::new();
        for ((at, term), scratch) in terms.iter().enumerate().zip(&mut scratches) {
            match place(term, state.meta().format, &mut state.codes(), scratch) {
                Place::Inline(id) => found[at] = Some(id),
                // In a veiled session its label is a hash.
                Place::Blank(_) if self.veil.is_some() => {}
                Place::Blank(label) => {
                    let number = blank_number(label).filter(|number| *number < state.meta().blank_nodes);
                    found[at] = number.map(TermId::blank);
                }
                Place::Entry(entry) => wanted.push(entry, at, &state),
                Place::Unknown => {}
                Place::Triple(triple) => triples.push((at, triple)),
            }
        }
        assert_eq!(found.len(), terms.len(), "one answer per term");
        match self.veil.clone() {
            None => self.find(wanted, &mut found)?,
            Some(veil) => {
                let others = wanted.others(&state, terms.len());
                self.find(wanted, &mut found)?;
                self.hide(&veil, terms, &others, &mut found)?;
            }
        }
        if !triples.is_empty() {
            self.resolve_triples(&triples, &mut found)?;
        }
        Ok(found)
    }

    /// Puts the ids of the entries that are in the dictionary at their places in `found`.
    pub(crate) fn find(&mut self, wanted: WantedEntries<'_>, found: &mut [Option<TermId>]) -> Result<()> {
        let state = self.state.clone();
        let WantedEntries(mut wanted) = wanted;
        for wanted in &mut wanted {
            wanted.sort_unstable_by_key(|wanted| wanted.hash);
        }
        if wanted.iter().filter(|wanted| !wanted.is_empty()).count() > 1 {
            self.announce_hashes(&state, &wanted)?;
        }
        for (tree, wanted) in Tree::ALL.into_iter().zip(&wanted) {
            if !wanted.is_empty() {
                let candidates = self.candidates(&state, tree, wanted)?;
                self.verify(&state, tree, wanted, candidates, found)?;
            }
        }
        Ok(())
    }

    /// Requests the pages of several hash trees together.
    fn announce_hashes(
        &mut self,
        state: &GraphState,
        wanted: &[Vec<WantedEntry<'_>>; Tree::ALL.len()],
    ) -> Result<()> {
        let keys = Tree::ALL
            .map(|tree| wanted[tree as usize].iter().map(|wanted| wanted.hash).collect::<Vec<u64>>());
        let columns = Tree::ALL.map(|tree| [&keys[tree as usize][..]]);
        let trees = Tree::ALL.into_iter().filter_map(|tree| Some((AnyTree::from(state.hashes(tree)?), tree)));
        let trees: Vec<_> =
            trees.map(|(any, tree)| (any, Keys::new(&columns[tree as usize], None))).collect();
        Ok(snowmelt_store::announce(&mut self.reader, &trees, Levels::Leaves)?)
    }

    /// The id of one term.
    pub fn resolve_one(&mut self, term: TermRef<'_>) -> Result<Option<TermId>> {
        Ok(self.resolve(&[term])?[0])
    }

    /// Stored strings with the right hash and code, by number.
    fn candidates(
        &mut self,
        state: &GraphState,
        tree: Tree,
        wanted: &[WantedEntry<'_>],
    ) -> Result<Vec<Candidate>> {
        let Some(hashes) = state.hashes(tree) else { return Ok(Vec::new()) };
        let keys: Vec<u64> = wanted.iter().map(|wanted| wanted.hash).collect();
        let columns = [&keys[..]];
        let mut matches = Matches::new(tree.hash_arity(), 1);
        let mut lookup = hashes.lookup(Keys::new(&columns, None));
        while lookup.next(&mut self.reader, &mut matches, usize::MAX)? {}
        let mut candidates = Vec::with_capacity(matches.key.len());
        for (row, &key) in matches.key.iter().enumerate() {
            let wanted_code = u64::from(wanted[key as usize].entry.code);
            if matches.cols.get(1).is_none_or(|codes| codes[row] == wanted_code) {
                candidates.push(Candidate { number: matches.cols[0][row], wanted: key as usize });
            }
        }
        if self.veil.is_some() {
            let strings = state.strings(tree).map_or(0, |strings| strings.len());
            let mut missing = vec![true; wanted.len()];
            candidates.iter().for_each(|candidate| missing[candidate.wanted] = false);
            let missing = (0..wanted.len()).filter(|at| missing[*at]);
            candidates.extend(
                missing.filter_map(|at| Some(Candidate { number: wanted[at].other(strings)?, wanted: at })),
            );
        }
        candidates.sort_unstable_by_key(|candidate| candidate.number);
        Ok(candidates)
    }

    /// Reads the candidates' strings and keeps the equal ones.
    fn verify(
        &mut self,
        state: &GraphState,
        tree: Tree,
        wanted: &[WantedEntry<'_>],
        candidates: Vec<Candidate>,
        found: &mut [Option<TermId>],
    ) -> Result<()> {
        let numbers: Vec<u64> = candidates.iter().map(|candidate| candidate.number).collect();
        let Some(&last) = numbers.last() else { return Ok(()) };
        let strings = state.strings(tree).filter(|strings| last < strings.len());
        let strings = strings.ok_or_else(|| GraphError::Dictionary {
            tree: tree.name(),
            number: last,
            why: "the hash tree names it, but there are fewer strings".into(),
        })?;
        let mut failure = None;
        strings.get(&mut self.reader, &numbers, |at, string| {
            let candidate = &candidates[at];
            let wanted = &wanted[candidate.wanted];
            let id = wanted.entry.id(candidate.number);
            match is_string(state, tree, wanted.entry.string, string) {
                Ok(true) => found[wanted.place] = Some(id),
                Ok(false) => {}
                Err(why) => failure = Some(dictionary_error(id, why)),
            }
        })?;
        failure.map_or(Ok(()), Err)
    }
}

/// Whether a stored string equals the wanted one.
fn is_string(state: &GraphState, tree: Tree, wanted: &[u8], stored: &[u8]) -> Result<bool, &'static str> {
    if tree != Tree::Iri {
        return Ok(wanted == stored);
    }
    let (prefix, local) = state.prefixes().split(stored)?;
    Ok(wanted.strip_prefix(prefix.as_bytes()) == Some(local.as_bytes()))
}
