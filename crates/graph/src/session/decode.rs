//! Decodes ids to terms, for results and expressions.
//!
//! 1. inline ids and blank nodes are written at once, without I/O;
//! 2. the others are sorted by tree and number, so that neighbouring strings are read together,
//!    and each is read once, however often it occurs;
//! 3. if more than one tree is needed and not all is resident, their pages are first requested
//!    together;
//! 4. triple terms come last: their rows are read level by level, then the terms in them.
//!
//! Nothing is allocated per term: strings are passed on in place, IRIs in one buffer.

use snowmelt_store::{AnyTree, Keys, Levels, Reader};

use crate::database::state::GraphState;
use crate::dict::{Tree, blank_label, dictionary_error, literal};
use crate::error::{GraphError, Result};
use crate::session::Session;
use crate::session::triple_terms::{Leaves, build, rows_of};
use crate::session::veil::Veil;
use crate::term::lexical::Lexical;
use crate::term::{TermId, TermKind, TermRef};

/// Buffers of a decode, kept for the next one.
#[derive(Default)]
pub(crate) struct DecodeScratch {
    wanted: [Vec<WantedTerm>; Tree::ALL.len()],
    numbers: [Vec<u64>; Tree::ALL.len()],
    triples: Vec<WantedTerm>,
    buffer: String,
}

/// An id to be decoded and its place among the requested ones.
#[derive(Clone, Copy)]
struct WantedTerm {
    id: TermId,
    place: u32,
}

impl Session {
    /// Calls `f` once for each id, with its place in `ids` and its term, in no particular
    /// order.
    ///
    /// # Errors
    /// Fails for ids that stand for no term (unbound, default graph, local, numbers not in the
    /// dictionary), for damaged strings, and if a read fails.
    pub fn decode(&mut self, ids: &[TermId], mut f: impl FnMut(usize, TermRef<'_>)) -> Result<()> {
        let all = |place: usize, term: TermRef<'_>| {
            f(place, term);
            true
        };
        self.decode_while(ids, all)
    }

    /// Calls `f` for each id as [`Session::decode`] does, until `f` returns false; nothing more is
    /// read then.
    ///
    /// # Errors
    /// Fails as [`Session::decode`] does.
    pub fn decode_while(
        &mut self,
        ids: &[TermId],
        mut f: impl FnMut(usize, TermRef<'_>) -> bool,
    ) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let seen = Seen { state: &self.state, veil: self.veil.as_deref() };
        let result = decode(seen, &mut self.reader, &mut scratch, ids, &mut f);
        self.scratch = scratch;
        result
    }

    /// Starts the reads that decoding these ids will need; free if everything is resident. Ids
    /// that need no read are skipped.
    pub fn announce_terms(&mut self, ids: &[TermId]) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.sort(ids, |_, _| Ok(()))?;
        let result = announce(&self.state, &mut self.reader, &scratch.numbers);
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

impl DecodeScratch {
    /// Sorts ids by tree and number; `other` receives those that are in no tree. Triple terms are
    /// put aside.
    #[inline]
    fn sort(&mut self, ids: &[TermId], mut other: impl FnMut(TermId, usize) -> Result<()>) -> Result<()> {
        assert!(u32::try_from(ids.len()).is_ok(), "batches are below 2^32 rows");
        self.wanted.iter_mut().for_each(Vec::clear);
        self.numbers.iter_mut().for_each(Vec::clear);
        self.triples.clear();
        for (place, &id) in ids.iter().enumerate() {
            match Tree::holding(id.kind()) {
                Some(tree) => self.wanted[tree as usize].push(WantedTerm { id, place: place as u32 }),
                None if id.kind() == TermKind::Triple => {
                    self.triples.push(WantedTerm { id, place: place as u32 });
                }
                None => other(id, place)?,
            }
        }
        for (wanted, numbers) in self.wanted.iter_mut().zip(&mut self.numbers) {
            if !wanted.is_sorted_by_key(|wanted| wanted.id.number()) {
                wanted.sort_unstable_by_key(|wanted| wanted.id.number());
            }
            numbers.extend(wanted.iter().map(|wanted| wanted.id.number()));
            numbers.dedup();
        }
        Ok(())
    }
}

/// The terms as a session sees them.
#[derive(Clone, Copy)]
struct Seen<'a> {
    state: &'a GraphState,
    veil: Option<&'a Veil>,
}

fn decode(
    seen: Seen<'_>,
    reader: &mut Reader,
    scratch: &mut DecodeScratch,
    ids: &[TermId],
    f: &mut impl FnMut(usize, TermRef<'_>) -> bool,
) -> Result<()> {
    let mut buffer = std::mem::take(&mut scratch.buffer);
    let mut more = true;
    scratch.sort(ids, |id, place| {
        let alone = &mut |place: usize, term: TermRef<'_>| more = more && f(place, term);
        without_dictionary(seen, id, place, &mut buffer, alone)
    })?;
    let DecodeScratch { wanted, numbers, .. } = scratch;
    if numbers.iter().filter(|numbers| !numbers.is_empty()).count() > 1 {
        announce(seen.state, reader, numbers)?;
    }
    for tree in Tree::ALL {
        let (wanted, numbers) = (&wanted[tree as usize], &numbers[tree as usize]);
        if more && !wanted.is_empty() {
            more = from_tree(seen.state, reader, tree, wanted, numbers, &mut buffer, f)?;
        }
    }
    scratch.buffer = buffer;
    if more && !scratch.triples.is_empty() {
        let wanted = std::mem::take(&mut scratch.triples);
        triples(seen, reader, &wanted, f)?;
        scratch.triples = wanted;
    }
    Ok(())
}

/// Decodes triple terms.
fn triples(
    seen: Seen<'_>,
    reader: &mut Reader,
    wanted: &[WantedTerm],
    f: &mut dyn FnMut(usize, TermRef<'_>) -> bool,
) -> Result<()> {
    let (rows, ids) = rows_of(seen.state, reader, wanted.iter().map(|wanted| wanted.id))?;
    let mut leaves = Leaves::default();
    let mut keep = |at: usize, term: TermRef<'_>| {
        leaves.insert(ids[at], term.into());
        true
    };
    let mut keep: &mut dyn FnMut(usize, TermRef<'_>) -> bool = &mut keep;
    decode(seen, reader, &mut DecodeScratch::default(), &ids, &mut keep)?;
    for wanted in wanted {
        if !f(wanted.place as usize, TermRef::Triple(&build(wanted.id, &rows, &leaves)?)) {
            break;
        }
    }
    Ok(())
}

/// Requests the pages of several trees together.
fn announce(state: &GraphState, reader: &mut Reader, numbers: &[Vec<u64>; Tree::ALL.len()]) -> Result<()> {
    let wanted = |tree: Tree| {
        state
            .strings(tree)
            .filter(|strings| !numbers[tree as usize].is_empty() && !reader.resident(strings.id()))
    };
    let columns = Tree::ALL.map(|tree| [&numbers[tree as usize][..]]);
    let trees =
        Tree::ALL.map(|tree| Some((AnyTree::from(wanted(tree)?), Keys::new(&columns[tree as usize], None))));
    if trees.iter().all(Option::is_none) {
        return Ok(());
    }
    let trees: Vec<_> = trees.into_iter().flatten().collect();
    Ok(snowmelt_store::announce(reader, &trees, Levels::Leaves)?)
}

/// Decodes inline literals and blank nodes.
#[inline]
fn without_dictionary(
    seen: Seen<'_>,
    id: TermId,
    place: usize,
    buffer: &mut String,
    f: &mut impl FnMut(usize, TermRef<'_>),
) -> Result<()> {
    if id.kind() == TermKind::Blank {
        let label = match seen.veil {
            None => blank_label(id.number(), buffer),
            Some(veil) => veil.label(id.number(), buffer),
        };
        f(place, TermRef::Blank(label));
        return Ok(());
    }
    let mut lexical = Lexical::new();
    match (lexical.write(id), seen.state.inline_datatype(id)) {
        (Some(lexical), Some(datatype)) => {
            f(place, TermRef::typed(lexical, datatype));
            Ok(())
        }
        _ => Err(GraphError::NotATerm { id }),
    }
}

/// Decodes the terms of one tree; `wanted` is in the order of `numbers`, which are distinct. False
/// once `f` returns false.
fn from_tree(
    state: &GraphState,
    reader: &mut Reader,
    tree: Tree,
    wanted: &[WantedTerm],
    numbers: &[u64],
    buffer: &mut String,
    f: &mut impl FnMut(usize, TermRef<'_>) -> bool,
) -> Result<bool> {
    let last = wanted[wanted.len() - 1].id;
    let strings = state.strings(tree).filter(|strings| last.number() < strings.len());
    let strings = strings.ok_or_else(|| dictionary_error(last, "there is no such string"))?;
    let all_distinct = wanted.len() == numbers.len();
    let mut failure = None;
    let more = strings.get_while(reader, numbers, |at, string| {
        let number = numbers[at];
        let first =
            if all_distinct { at } else { wanted.partition_point(|wanted| wanted.id.number() < number) };
        for wanted in wanted[first..].iter().take_while(|wanted| wanted.id.number() == number) {
            match term(state, wanted.id, string, buffer) {
                Ok(term) if f(wanted.place as usize, term) => {}
                Ok(_) => return false,
                Err(error) => failure = Some(error),
            }
        }
        true
    })?;
    failure.map_or(Ok(more), Err)
}

/// The term of an id and its dictionary string.
#[inline]
fn term<'a>(
    state: &'a GraphState,
    id: TermId,
    string: &'a [u8],
    buffer: &'a mut String,
) -> Result<TermRef<'a>> {
    if id.kind() != TermKind::Iri {
        return literal(id, string, state.codes());
    }
    let (prefix, local) = state.prefixes().split(string).map_err(|why| dictionary_error(id, why))?;
    if prefix.is_empty() {
        return Ok(TermRef::Iri(local));
    }
    buffer.clear();
    buffer.push_str(prefix);
    buffer.push_str(local);
    Ok(TermRef::Iri(buffer))
}
