//! From ids to terms: results, and what expressions need of them.
//!
//! 1. inline ids and blank nodes are written at once, without I/O;
//! 2. the others are sorted by tree and number, so that strings that lie together are read together and each is
//!    read once, however often it is asked for;
//!
//! Nothing is allocated per term: strings are handed out where they lie, IRIs from one buffer.

use crate::database::Database;
use crate::dict::{Tree, blank_label, dictionary_error, literal};
use crate::error::{GraphError, Result};
use crate::session::Session;
use crate::term::{Kind, TermId, TermRef};
use crate::term_lexical::Lexical;
use snowmelt_store::Reader;

/// Memory of a decode, kept for the next one.
#[derive(Default)]
pub(crate) struct DecodeScratch {
    wanted: [Vec<Wanted>; Tree::ALL.len()],
    numbers: [Vec<u64>; Tree::ALL.len()],
    buffer: String,
}

/// An id to be decoded and its place among those asked for.
#[derive(Clone, Copy)]
struct Wanted {
    id: TermId,
    place: u32,
}

impl Session {
    /// Calls `f` once for each id, with its place in `ids` and its term, in no particular order.
    ///
    /// # Errors
    /// Ids of no term (unbound, default graph, local, numbers the dictionary has not); damaged strings; reads that fail.
    pub fn decode(&mut self, ids: &[TermId], mut f: impl FnMut(usize, TermRef<'_>)) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let result = decode(&self.db, &mut self.reader, &mut scratch, ids, &mut f);
        self.scratch = scratch;
        result
    }

    /// The term of one id.
    pub fn decode_one(&mut self, id: TermId) -> Result<crate::Term> {
        let mut term = None;
        self.decode(&[id], |_, decoded| term = Some(decoded.to_owned()))?;
        Ok(term.expect("every id is decoded or an error"))
    }
}

fn decode(
    db: &Database,
    reader: &mut Reader,
    scratch: &mut DecodeScratch,
    ids: &[TermId],
    f: &mut impl FnMut(usize, TermRef<'_>),
) -> Result<()> {
    let DecodeScratch { wanted, numbers, buffer } = scratch;
    wanted.iter_mut().for_each(Vec::clear);
    numbers.iter_mut().for_each(Vec::clear);
    assert!(u32::try_from(ids.len()).is_ok(), "batches are below 2^32 rows");
    for (place, &id) in ids.iter().enumerate() {
        match Tree::of(id.kind()) {
            Some(tree) => wanted[tree as usize].push(Wanted { id, place: place as u32 }),
            None => without_dictionary(db, id, place, buffer, f)?,
        }
    }
    for (wanted, numbers) in wanted.iter_mut().zip(numbers.iter_mut()) {
        if !wanted.is_sorted_by_key(|wanted| wanted.id.number()) {
            wanted.sort_unstable_by_key(|wanted| wanted.id.number());
        }
        numbers.extend(wanted.iter().map(|wanted| wanted.id.number()));
        numbers.dedup();
    }
    for tree in Tree::ALL {
        let (wanted, numbers) = (&wanted[tree as usize], &numbers[tree as usize]);
        if !wanted.is_empty() {
            from_tree(db, reader, tree, wanted, numbers, buffer, f)?;
        }
    }
    Ok(())
}

/// Inline literals and blank nodes.
#[inline]
fn without_dictionary(
    db: &Database,
    id: TermId,
    place: usize,
    buffer: &mut String,
    f: &mut impl FnMut(usize, TermRef<'_>),
) -> Result<()> {
    if id.kind() == Kind::Blank {
        f(place, TermRef::Blank(blank_label(id.number(), buffer)));
        return Ok(());
    }
    let mut lexical = Lexical::new();
    match (lexical.write(id), db.inline_datatype(id)) {
        (Some(lexical), Some(datatype)) => {
            f(place, TermRef::typed(lexical, datatype));
            Ok(())
        }
        _ => Err(GraphError::NotATerm { id }),
    }
}

/// The terms of one tree; `wanted` is in the order of `numbers`, which are distinct.
fn from_tree(
    db: &Database,
    reader: &mut Reader,
    tree: Tree,
    wanted: &[Wanted],
    numbers: &[u64],
    buffer: &mut String,
    f: &mut impl FnMut(usize, TermRef<'_>),
) -> Result<()> {
    let last = wanted[wanted.len() - 1].id;
    let strings = db.strings(tree).filter(|strings| last.number() < strings.len());
    let strings = strings.ok_or_else(|| dictionary_error(last, "there is no such string"))?;
    let all_distinct = wanted.len() == numbers.len();
    let mut failure = None;
    strings.get(reader, numbers, |at, string| {
        let number = numbers[at];
        let first =
            if all_distinct { at } else { wanted.partition_point(|wanted| wanted.id.number() < number) };
        for wanted in wanted[first..].iter().take_while(|wanted| wanted.id.number() == number) {
            match term(db, wanted.id, string, buffer) {
                Ok(term) => f(wanted.place as usize, term),
                Err(error) => failure = Some(error),
            }
        }
    })?;
    failure.map_or(Ok(()), Err)
}

/// The term of an id and its dictionary string.
#[inline]
fn term<'a>(db: &'a Database, id: TermId, string: &'a [u8], buffer: &'a mut String) -> Result<TermRef<'a>> {
    if id.kind() != Kind::Iri {
        return literal(id, string, db.codes());
    }
    let (prefix, local) = db.prefixes().split(string).map_err(|why| dictionary_error(id, why))?;
    if prefix.is_empty() {
        return Ok(TermRef::Iri(local));
    }
    buffer.clear();
    buffer.push_str(prefix);
    buffer.push_str(local);
    Ok(TermRef::Iri(buffer))
}
