//! Terms that find the table full: numbered at the end, by an external merge.
//!
//! While chunks come:
//! 1. Waiting terms are counted: a term's *position*. A part is as many terms as a table in
//!    memory can tell apart; within a part every term has one position. A chunk never spans
//!    parts.
//! 2. Their strings go to a file, in order of position; (hash, position) goes to a sorter when
//!    a part ends; rows that mention a waiting term wait too, part by part ([`WaitingRows`]).
//!
//! At the end:
//!
//! 3. The merge of (hash, position) shows which positions mean the same term. The first is the
//!    term's own, the others are *repeats*: one bit per position in memory, and pairs (first,
//!    repeat) sorted by first.
//! 4. The strings are read in order: every first gets the next number, so numbers are by first
//!    occurrence. Ids are written down by position, and as pairs (repeat, id), sorted by
//!    repeat.
//! 5. Part by part, the ids of its positions are read and its rows completed.
//!
//! All of it is sequential reading and writing; memory is one part of ids and one bit per
//! position.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;

use super::dictionary::Dictionary;
use super::runs::{RunReader, RunStore, RunWriter};
use super::sorter::{Batch, Merge, Sorter};
use super::table::TermTable;
use super::temp::{TempFile, TempPlace, TempReader};
use crate::dict::code::{Annotation, IN_STRING};
use crate::input::cancelled;
use crate::input::error::LoadError;
use crate::input::hash::TermHash;
use crate::input::intern::{OwnAnnotation, Ref, local, position};
use crate::term::{TermId, TermKind};

/// Bytes of terms compressed together.
const BLOCK_BYTES: usize = 256 << 10;
/// Rows taken from a merge at once.
const STEP_ROWS: usize = 8192;

/// Sorters the merge needs.
pub(super) struct WaitingSorters {
    /// (hash, more hash, position)
    pub(super) hashes: Arc<Sorter<3>>,
    /// (first position, later position of the same term)
    pub(super) repeats: Arc<Sorter<2>>,
    /// (later position, id)
    pub(super) repeated_ids: Arc<Sorter<2>>,
    /// Ids by position.
    pub(super) ids: Arc<RunStore>,
    /// Triple terms: their positions, and the references of the terms in them.
    pub(super) triples: Arc<RunStore>,
}

impl WaitingSorters {
    /// Empty ones, of so many rows in memory.
    pub(super) fn new(store: impl Fn(&'static str) -> Arc<RunStore>, rows: usize, fan_in: usize) -> Self {
        Self {
            hashes: Sorter::new(store("waiting-hashes"), rows, fan_in),
            repeats: Sorter::new(store("repeats"), rows, fan_in),
            repeated_ids: Sorter::new(store("repeated-ids"), rows, fan_in),
            ids: store("waiting-ids"),
            triples: store("waiting-triples"),
        }
    }
}

/// Collects waiting terms.
pub(super) struct Waiting {
    /// Rows of triple terms, with the part of their positions.
    triples: WaitingRows,
    sorters: WaitingSorters,
    terms: TermsWriter,
    /// Terms of this part → position.
    table: TermTable,
    /// First position of every part.
    parts: Vec<u64>,
    next: u64,
    part_terms: usize,
}

impl Waiting {
    /// Parts of about `part_terms` terms; strings go to `file`.
    pub(super) fn new(sorters: WaitingSorters, file: TempFile, part_terms: usize) -> Waiting {
        Waiting {
            triples: WaitingRows::new(Arc::clone(&sorters.triples)),
            sorters,
            terms: TermsWriter { file, block: Vec::new(), places: Vec::new() },
            table: TermTable::new(u64::MAX),
            parts: vec![0],
            next: 0,
            part_terms,
        }
    }

    /// Number of waiting terms.
    pub(super) fn terms(&self) -> u64 {
        self.next
    }

    /// The part that new waiting terms go to.
    pub(super) fn part(&self) -> usize {
        self.parts.len() - 1
    }

    /// Makes room in the part for a chunk with up to `terms` new terms.
    pub(super) fn begin_chunk(&mut self, terms: usize) -> Result<(), LoadError> {
        assert_eq!(
            self.table.len(),
            self.next - self.parts[self.part()],
            "one position per term of the part"
        );
        let here = self.table.len() as usize;
        if here > 0 && here + terms > self.part_terms {
            self.end_part()?;
            self.parts.push(self.next);
        }
        Ok(())
    }

    /// The position of a term.
    pub(super) fn position(
        &mut self,
        hash: TermHash,
        kind: TermKind,
        code: u16,
        annotation: &OwnAnnotation,
        lexical: &[u8],
    ) -> Result<u64, LoadError> {
        if let Some(position) = self.table.get(hash) {
            return Ok(position);
        }
        let position = self.next;
        self.table.insert(hash, position);
        self.terms.push(kind, code, annotation, lexical)?;
        self.next += 1;
        Ok(position)
    }

    /// The position of a triple term, given by ids and positions of this part.
    pub(super) fn triple(&mut self, hash: TermHash, [s, p, o]: [Ref; 3]) -> Result<u64, LoadError> {
        let known = self.next;
        let position = self.position(hash, TermKind::Triple, 0, &OwnAnnotation::Plain, &[])?;
        if self.next > known {
            self.triples.push(self.part(), &[[local(position), s, p, o]])?;
        }
        Ok(position)
    }

    fn end_part(&mut self) -> Result<(), LoadError> {
        let mut batch = self.sorters.hashes.batch();
        for (hash, position) in self.table.entries() {
            batch.push([hash.high, u64::from(hash.low), position])?;
        }
        batch.finish()?;
        self.table.clear();
        Ok(())
    }

    /// Numbers all waiting terms and completes the rows, which go to `quads` as
    /// `[predicate, subject, object, graph]`. `done` receives the number of finished steps, out
    /// of twice [`Waiting::terms`].
    pub(super) fn resolve(
        mut self,
        dictionary: &mut Dictionary,
        rows: WaitingRows,
        quads: &mut Batch<4>,
        cancel: &AtomicBool,
        mut done: impl FnMut(u64),
    ) -> Result<(), LoadError> {
        self.end_part()?;
        self.table = TermTable::new(0);
        let repeat = self.find_repeats(cancel)?;
        let terms = self.terms.finish()?;
        let ids = number(terms, self.next, &repeat, &self.sorters, dictionary, cancel, &mut done)?;
        drop(repeat);
        let mut ids = RunReader::<1>::new(&self.sorters.ids, ids)?;
        let mut repeats = Peek::new(self.sorters.repeated_ids.merge()?);
        let mut block = Vec::new();
        let mut part_ids: Vec<u64> = Vec::new();
        let mut rows = rows.finish()?;
        let mut triples = self.triples.finish()?;
        for (part, &start) in self.parts.iter().enumerate() {
            let end = self.parts.get(part + 1).copied().unwrap_or(self.next);
            // Blocks of ids do not end where parts do: surplus ids stay for the next
            // part.
            while (part_ids.len() as u64) < end - start {
                assert!(ids.next_block(&mut block)?, "an id for every position");
                part_ids.extend(block.iter().map(|[id]| *id));
            }
            while let Some([position, id]) = repeats.next_if(|row| row[0] < end)? {
                part_ids[(position - start) as usize] = id;
            }
            rows.complete(part, start, &part_ids, cancel, |[s, p, o, g]| quads.push([p, s, o, g]))?;
            triples.complete(part, start, &part_ids, cancel, |row| dictionary.triple_row(row))?;
            part_ids.drain(..(end - start) as usize);
            done(self.next + end);
        }
        assert!(part_ids.is_empty(), "an id for every position, and no more");
        assert!(repeats.next_if(|_| true)?.is_none(), "each repeat belongs to a part");
        Ok(())
    }

    /// Finds the positions that are repeats; their pairs go to the sorter of repeats.
    fn find_repeats(&self, cancel: &AtomicBool) -> Result<Bits, LoadError> {
        let mut repeat = Bits::new(self.next);
        let mut merge = self.sorters.hashes.merge()?;
        let mut pairs = self.sorters.repeats.batch();
        let mut group = None;
        let mut rows = Vec::new();
        while merge.next(&mut rows, STEP_ROWS)? {
            cancelled(cancel)?;
            for [high, low, position] in rows.drain(..) {
                match group {
                    Some((h, l, first)) if (h, l) == (high, low) => {
                        repeat.set(position);
                        pairs.push([first, position])?;
                    }
                    _ => group = Some((high, low, position)),
                }
            }
        }
        pairs.finish()?;
        Ok(repeat)
    }
}

/// Step 4: numbers the first positions in order; writes the ids of all positions, 0 for repeats.
fn number(
    mut terms: TermsReader,
    count: u64,
    repeat: &Bits,
    sorters: &WaitingSorters,
    dictionary: &mut Dictionary,
    cancel: &AtomicBool,
    done: &mut impl FnMut(u64),
) -> Result<super::runs::Run, LoadError> {
    let mut pairs = Peek::new(sorters.repeats.merge()?);
    let mut repeated = sorters.repeated_ids.batch();
    let mut writer = RunWriter::<1>::new(&sorters.ids);
    let mut ids = Vec::with_capacity(STEP_ROWS);
    for position in 0..count {
        let term = terms.next()?;
        if repeat.get(position) {
            ids.push([0]);
        } else {
            let number = dictionary.number(term.kind, term.code, &term.annotation, &term.lexical)?;
            let id = TermId::dictionary(term.kind, term.code, number).0;
            ids.push([id]);
            while let Some([_, later]) = pairs.next_if(|row| row[0] == position)? {
                repeated.push([later, id])?;
            }
        }
        if ids.len() == STEP_ROWS {
            cancelled(cancel)?;
            writer.push(&ids)?;
            ids.clear();
            done(position);
        }
    }
    writer.push(&ids)?;
    assert!(pairs.next_if(|_| true)?.is_none(), "each repeat got the id of its first");
    repeated.finish()?;
    writer.finish()
}

/// Rows that mention waiting terms, part by part.
pub(super) struct WaitingRows {
    store: Arc<RunStore>,
    parts: Mutex<Vec<RunWriter<4>>>,
}

impl WaitingRows {
    pub(super) fn new(store: Arc<RunStore>) -> WaitingRows {
        WaitingRows { store, parts: Mutex::new(Vec::new()) }
    }

    /// Adds rows whose waiting terms are all in `part`.
    pub(super) fn push(&self, part: usize, rows: &[[Ref; 4]]) -> Result<(), LoadError> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut parts = self.parts.lock();
        while parts.len() <= part {
            parts.push(RunWriter::new(&self.store));
        }
        parts[part].push(rows)
    }

    fn finish(self) -> Result<FinishedRows, LoadError> {
        let parts = self.parts.into_inner().into_iter();
        let readers = parts.map(|writer| RunReader::new(&self.store, writer.finish()?));
        Ok(FinishedRows { parts: readers.collect::<Result<_, LoadError>>()? })
    }
}

struct FinishedRows {
    parts: Vec<RunReader<4>>,
}

impl FinishedRows {
    /// Completes the rows of `part`, whose positions begin at `start`, and passes them on.
    fn complete(
        &mut self,
        part: usize,
        start: u64,
        ids: &[u64],
        cancel: &AtomicBool,
        mut push: impl FnMut([u64; 4]) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        // The last parts may have no rows.
        let Some(reader) = self.parts.get_mut(part) else { return Ok(()) };
        let mut rows = Vec::new();
        while reader.next_block(&mut rows)? {
            cancelled(cancel)?;
            for row in &rows {
                push(row.map(|r| match position(r) {
                    Some(position) => ids[(position - start) as usize],
                    None => r,
                }))?;
            }
        }
        Ok(())
    }
}

/// One bit per position.
struct Bits(Vec<u64>);

impl Bits {
    fn new(len: u64) -> Bits {
        Bits(vec![0; len.div_ceil(64) as usize])
    }

    fn set(&mut self, at: u64) {
        self.0[(at / 64) as usize] |= 1 << (at % 64);
    }

    fn get(&self, at: u64) -> bool {
        self.0[(at / 64) as usize] >> (at % 64) & 1 == 1
    }
}

/// A merge of pairs, taken one by one.
struct Peek {
    merge: Merge<2>,
    rows: Vec<[u64; 2]>,
    at: usize,
}

impl Peek {
    fn new(merge: Merge<2>) -> Peek {
        Peek { merge, rows: Vec::new(), at: 0 }
    }

    /// The next pair, if there is one and `wanted` accepts it.
    fn next_if(&mut self, wanted: impl Fn(&[u64; 2]) -> bool) -> Result<Option<[u64; 2]>, LoadError> {
        if self.at == self.rows.len() {
            self.rows.clear();
            self.at = 0;
            if !self.merge.next(&mut self.rows, STEP_ROWS)? {
                return Ok(None);
            }
        }
        let row = self.rows[self.at];
        if !wanted(&row) {
            return Ok(None);
        }
        self.at += 1;
        Ok(Some(row))
    }
}

/// Writes terms to a file, in blocks of lz4, whose places stay in memory.
///
/// A term: kind (1 byte), code (2), length of the lexical form (4), of the annotation (4),
/// both. The annotation, tag byte first, is only there if the code does not give it.
struct TermsWriter {
    file: TempFile,
    block: Vec<u8>,
    places: Vec<TempPlace>,
}

impl TermsWriter {
    fn push(
        &mut self,
        kind: TermKind,
        code: u16,
        annotation: &OwnAnnotation,
        lexical: &[u8],
    ) -> Result<(), LoadError> {
        let (tag, name) = match annotation.as_ref() {
            _ if !kind.has_code() || code != IN_STRING => (None, ""),
            Annotation::Plain => (None, ""),
            annotation => {
                let (tag, name) = annotation.tagged();
                (Some(tag), name)
            }
        };
        let lexical = if kind == TermKind::Blank { &[] } else { lexical };
        let name_len = name.len() + usize::from(tag.is_some());
        self.block.push(kind as u8);
        self.block.extend_from_slice(&code.to_le_bytes());
        self.block.extend_from_slice(&(lexical.len() as u32).to_le_bytes());
        self.block.extend_from_slice(&(name_len as u32).to_le_bytes());
        self.block.extend_from_slice(lexical);
        self.block.extend(tag);
        self.block.extend_from_slice(name.as_bytes());
        if self.block.len() >= BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), LoadError> {
        let packed = lz4_flex::compress_prepend_size(&self.block);
        self.places.push(self.file.append(&packed)?);
        self.block.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<TermsReader, LoadError> {
        if !self.block.is_empty() {
            self.flush()?;
        }
        Ok(TermsReader {
            file: self.file.reader()?,
            places: self.places.into_iter(),
            packed: Vec::new(),
            block: Vec::new(),
            at: 0,
            term: WaitingTerm::default(),
        })
    }
}

/// Reads the terms of a [`TermsWriter`], in order.
struct TermsReader {
    file: TempReader,
    places: std::vec::IntoIter<TempPlace>,
    packed: Vec<u8>,
    block: Vec<u8>,
    at: usize,
    term: WaitingTerm,
}

struct WaitingTerm {
    kind: TermKind,
    code: u16,
    annotation: OwnAnnotation,
    lexical: Vec<u8>,
}

impl Default for WaitingTerm {
    fn default() -> Self {
        WaitingTerm { kind: TermKind::Iri, code: 0, annotation: OwnAnnotation::Plain, lexical: Vec::new() }
    }
}

impl TermsReader {
    /// The next term; there must be one.
    fn next(&mut self) -> Result<&WaitingTerm, LoadError> {
        if self.at == self.block.len() {
            let place = self.places.next().expect("there is a term for every position");
            self.file.read(place, &mut self.packed)?;
            self.block = lz4_flex::decompress_size_prepended(&self.packed)
                .map_err(|e| self.file.damaged(e.to_string()))?;
            self.at = 0;
        }
        let kind = TermKind::ALL[usize::from(self.take::<1>()[0])];
        let code = u16::from_le_bytes(self.take());
        let lexical_len = u32::from_le_bytes(self.take()) as usize;
        let name_len = u32::from_le_bytes(self.take()) as usize;
        let (lexical, rest) = self.block[self.at..].split_at(lexical_len);
        self.term.kind = kind;
        self.term.code = code;
        self.term.lexical.clear();
        self.term.lexical.extend_from_slice(lexical);
        self.term.annotation = match rest[..name_len].split_first() {
            None => OwnAnnotation::Plain,
            Some((tag, name)) => Annotation::from_tagged(*tag, &String::from_utf8_lossy(name))
                .expect("the tag was written by this load")
                .into(),
        };
        self.at += lexical_len + name_len;
        Ok(&self.term)
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let bytes = self.block[self.at..self.at + N].try_into().expect("N bytes");
        self.at += N;
        bytes
    }
}
