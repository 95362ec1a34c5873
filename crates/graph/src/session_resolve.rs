//! From terms to ids: the constants of a query.
//!
//! 1. a term that is inline needs no lookup; one whose language or datatype has no code is in no database;
//! 2. the others are hashed and looked up in the hash trees, all terms of a tree together;
//! 3. the candidates' strings are read, again together, and compared: hashes may collide.

use crate::database::Database;
use crate::dict::{Entry, Place, Tree, blank_number, dictionary_error, index_hash_of, place};
use crate::error::{GraphError, Result};
use crate::session::Session;
use crate::term::{TermId, TermRef};
use snowmelt_store::{AnyTree, Keys, Levels, Matches};

/// A dictionary entry that is looked for.
struct Wanted<'a> {
    hash: u64,
    entry: Entry<'a>,
    /// Its place among the terms that were asked for.
    place: usize,
}

/// A stored string that may be the wanted one.
struct Candidate {
    number: u64,
    wanted: usize,
}

impl Session {
    /// The ids of terms; `None` for those that are not in the database (inline literals always have one).
    ///
    /// Blank nodes are found by their display labels.
    pub fn resolve(&mut self, terms: &[TermRef<'_>]) -> Result<Vec<Option<TermId>>> {
        let db = self.db.clone();
        let mut found = vec![None; terms.len()];
        let mut wanted = [const { Vec::new() }; Tree::ALL.len()];
        let mut scratches = vec![Vec::new(); terms.len()];
        for ((at, term), scratch) in terms.iter().enumerate().zip(&mut scratches) {
            match place(term, &mut db.codes(), scratch) {
                Place::Inline(id) => found[at] = Some(id),
                Place::Blank(label) => {
                    let number = blank_number(label).filter(|number| *number < db.meta().blank_nodes);
                    found[at] = number.map(TermId::blank);
                }
                Place::Entry(entry) => {
                    let hash = index_hash_of(entry.hash(), db.meta().hash_bits);
                    wanted[entry.tree() as usize].push(Wanted { hash, entry, place: at });
                }
                Place::Unknown => {}
            }
        }
        for wanted in &mut wanted {
            wanted.sort_unstable_by_key(|wanted| wanted.hash);
        }
        if wanted.iter().filter(|wanted| !wanted.is_empty()).count() > 1 {
            self.announce_hashes(&db, &wanted)?;
        }
        for (tree, wanted) in Tree::ALL.into_iter().zip(&wanted) {
            if !wanted.is_empty() {
                let candidates = self.candidates(&db, tree, wanted)?;
                self.verify(&db, tree, wanted, candidates, &mut found)?;
            }
        }
        Ok(found)
    }

    /// Wishes for the pages of several hash trees together.
    fn announce_hashes(&mut self, db: &Database, wanted: &[Vec<Wanted<'_>>; Tree::ALL.len()]) -> Result<()> {
        let keys = Tree::ALL
            .map(|tree| wanted[tree as usize].iter().map(|wanted| wanted.hash).collect::<Vec<u64>>());
        let columns = Tree::ALL.map(|tree| [&keys[tree as usize][..]]);
        let trees = Tree::ALL.into_iter().filter_map(|tree| Some((AnyTree::from(db.hashes(tree)?), tree)));
        let trees: Vec<_> =
            trees.map(|(any, tree)| (any, Keys::new(&columns[tree as usize], None))).collect();
        Ok(snowmelt_store::announce(&mut self.reader, &trees, Levels::Leaves)?)
    }

    /// The id of one term.
    pub fn resolve_one(&mut self, term: TermRef<'_>) -> Result<Option<TermId>> {
        Ok(self.resolve(&[term])?[0])
    }

    /// Stored strings with the right hash and code, by number.
    fn candidates(&mut self, db: &Database, tree: Tree, wanted: &[Wanted<'_>]) -> Result<Vec<Candidate>> {
        let Some(hashes) = db.hashes(tree) else { return Ok(Vec::new()) };
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
        candidates.sort_unstable_by_key(|candidate| candidate.number);
        Ok(candidates)
    }

    /// Reads the candidates' strings and notes those that are equal.
    fn verify(
        &mut self,
        db: &Database,
        tree: Tree,
        wanted: &[Wanted<'_>],
        candidates: Vec<Candidate>,
        found: &mut [Option<TermId>],
    ) -> Result<()> {
        let numbers: Vec<u64> = candidates.iter().map(|candidate| candidate.number).collect();
        let Some(&last) = numbers.last() else { return Ok(()) };
        let strings = db.strings(tree).filter(|strings| last < strings.len());
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
            match is_string(db, tree, wanted.entry.string, string) {
                Ok(true) => found[wanted.place] = Some(id),
                Ok(false) => {}
                Err(why) => failure = Some(dictionary_error(id, why)),
            }
        })?;
        failure.map_or(Ok(()), Err)
    }
}

/// Whether a stored string is the wanted one.
fn is_string(db: &Database, tree: Tree, wanted: &[u8], stored: &[u8]) -> Result<bool, &'static str> {
    if tree != Tree::Iri {
        return Ok(wanted == stored);
    }
    let (prefix, local) = db.prefixes().split(stored)?;
    Ok(wanted.strip_prefix(prefix.as_bytes()) == Some(local.as_bytes()))
}
