//! Decodes ids to terms, for results and expressions.
//!
//! 1. inline ids and blank nodes are written at once, without I/O;
//! 2. the others are sorted by tree and number, so that neighbouring strings are read together,
//!    and each is read once, however often it occurs;
//! 3. if more than one tree is needed and not all is resident, their pages are first requested
//!    together;
//! 4. triple terms come last, some of them at a time: their rows are read level by level, then the
//!    terms in them. How many those are follows from the bytes of their terms.
//!
//! Nothing is allocated per term except triple terms: strings are passed on in place, IRIs in one
//! buffer. A triple term may be far longer than the text it came from, so [`TermSink::room`] is
//! asked before one is made.

use snowmelt_store::{AnyTree, Keys, Levels, Reader};

use crate::database::state::GraphState;
use crate::dict::{Tree, blank_label, dictionary_error, literal};
use crate::error::{GraphError, Result};
use crate::session::Session;
use crate::session::triple_terms::{Leaves, TripleRows, build, built_bytes, rows_of, term_bytes};
use crate::session::veil::Veil;
use crate::term::lexical::Lexical;
use crate::term::{TermId, TermKind, TermRef};

/// Triple terms decoded together at first, and at most.
const TOGETHER: (usize, usize) = (1024, 4096);
/// Bytes of the terms in those, beyond which fewer are decoded together.
const LEAF_BYTES: usize = 1 << 20;

/// Takes decoded terms.
pub trait TermSink {
    /// Asked before so many bytes are allocated: they are held until the next call. On false
    /// nothing more is read.
    fn room(&mut self, _bytes: usize) -> bool {
        true
    }

    /// Takes the term of an id by its place. On false nothing more is read.
    fn take(&mut self, place: usize, term: TermRef<'_>) -> bool;
}

impl TermSink for &mut dyn TermSink {
    fn room(&mut self, bytes: usize) -> bool {
        (**self).room(bytes)
    }

    fn take(&mut self, place: usize, term: TermRef<'_>) -> bool {
        (**self).take(place, term)
    }
}

/// A closure that takes terms, for all of which there is room.
struct Taking<F>(F);

impl<F: FnMut(usize, TermRef<'_>) -> bool> TermSink for Taking<F> {
    #[inline]
    fn take(&mut self, place: usize, term: TermRef<'_>) -> bool {
        (self.0)(place, term)
    }
}

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
    pub fn decode_while(&mut self, ids: &[TermId], f: impl FnMut(usize, TermRef<'_>) -> bool) -> Result<()> {
        self.decode_into(ids, &mut Taking(f))
    }

    /// Gives a sink the term of each id as [`Session::decode`] does, until it refuses one.
    ///
    /// # Errors
    /// Fails as [`Session::decode`] does.
    pub fn decode_into(&mut self, ids: &[TermId], sink: &mut impl TermSink) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let seen = Seen { state: &self.state, veil: self.veil.as_deref() };
        let result = decode(seen, &mut self.reader, &mut scratch, ids, sink);
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
    sink: &mut impl TermSink,
) -> Result<()> {
    let mut buffer = std::mem::take(&mut scratch.buffer);
    let mut more = true;
    scratch.sort(ids, |id, place| {
        let alone = &mut |place: usize, term: TermRef<'_>| more = more && sink.take(place, term);
        without_dictionary(seen, id, place, &mut buffer, alone)
    })?;
    let DecodeScratch { wanted, numbers, .. } = scratch;
    if numbers.iter().filter(|numbers| !numbers.is_empty()).count() > 1 {
        announce(seen.state, reader, numbers)?;
    }
    for tree in Tree::ALL {
        let (wanted, numbers) = (&wanted[tree as usize], &numbers[tree as usize]);
        if more && !wanted.is_empty() {
            more = from_tree(seen.state, reader, tree, wanted, numbers, &mut buffer, sink)?;
        }
    }
    scratch.buffer = buffer;
    if more && !scratch.triples.is_empty() {
        let wanted = std::mem::take(&mut scratch.triples);
        triples(seen, reader, &wanted, sink)?;
        scratch.triples = wanted;
    }
    Ok(())
}

/// Decodes triple terms.
fn triples(
    seen: Seen<'_>,
    reader: &mut Reader,
    mut wanted: &[WantedTerm],
    sink: &mut dyn TermSink,
) -> Result<()> {
    let mut together = TOGETHER.0;
    while !wanted.is_empty() {
        let (now, later) = wanted.split_at(together.min(wanted.len()));
        let (rows, ids) = rows_of(seen.state, reader, now.iter().map(|wanted| wanted.id))?;
        let mut leaves = LeafSink::new(&ids, &rows, now.len() == 1, sink);
        decode(seen, reader, &mut DecodeScratch::default(), &ids, &mut leaves)?;
        let LeafSink { leaves, bytes, ended, .. } = leaves;
        match ended {
            None => {}
            Some(LeavesEnded::TooMany) => {
                together = now.len() / 2;
                continue;
            }
            Some(LeavesEnded::Refused) => return Ok(()),
        }
        for wanted in now {
            // the term, and a copy that the sink may keep
            let made = 2 * built_bytes(wanted.id, &rows, &leaves);
            let is_taken = sink.room(bytes + made)
                && sink.take(wanted.place as usize, TermRef::Triple(&build(wanted.id, &rows, &leaves)?));
            if !is_taken {
                return Ok(());
            }
        }
        if bytes < LEAF_BYTES / 4 {
            together = (2 * together).min(TOGETHER.1);
        }
        wanted = later;
    }
    Ok(())
}

/// Why the terms in some triple terms were not all read.
#[derive(Clone, Copy)]
enum LeavesEnded {
    /// They are more than several triple terms may have together.
    TooMany,
    /// There is no room for them.
    Refused,
}

/// Gathers the terms in some triple terms.
struct LeafSink<'a> {
    ids: &'a [TermId],
    leaves: Leaves,
    /// of the rows and the terms
    bytes: usize,
    /// bytes for which there is room
    asked: usize,
    /// They are of one triple term, which cannot be decoded in parts.
    is_single: bool,
    sink: &'a mut dyn TermSink,
    ended: Option<LeavesEnded>,
}

impl<'a> LeafSink<'a> {
    fn new(ids: &'a [TermId], rows: &TripleRows, is_single: bool, sink: &'a mut dyn TermSink) -> Self {
        let bytes = rows.len() * size_of::<[TermId; 8]>();
        Self { ids, leaves: Leaves::default(), bytes, asked: 0, is_single, sink, ended: None }
    }
}

impl TermSink for LeafSink<'_> {
    fn take(&mut self, at: usize, term: TermRef<'_>) -> bool {
        /// Bytes asked for ahead.
        const AHEAD: usize = 64 << 10;
        let term = oxrdf::Term::from(term);
        self.bytes += term_bytes(&term);
        if self.bytes > LEAF_BYTES && !self.is_single {
            self.ended = Some(LeavesEnded::TooMany);
        } else if self.bytes > self.asked {
            self.asked = self.bytes + AHEAD;
            if !self.sink.room(self.asked) {
                self.ended = Some(LeavesEnded::Refused);
            }
        }
        self.leaves.insert(self.ids[at], term);
        self.ended.is_none()
    }
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
/// once the sink refuses one.
fn from_tree(
    state: &GraphState,
    reader: &mut Reader,
    tree: Tree,
    wanted: &[WantedTerm],
    numbers: &[u64],
    buffer: &mut String,
    sink: &mut impl TermSink,
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
                Ok(term) if sink.take(wanted.place as usize, term) => {}
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
