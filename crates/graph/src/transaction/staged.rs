//! Documents parsed before their writer has its turn: others can write meanwhile, however long the
//! parsing takes.
//!
//! 1. [`Staged::add`] parses a document into chunks, each with a dictionary of its own.
//! 2. A few chunks stay in memory; later ones go to temporary space.
//! 3. [`Transaction::insert_staged`] takes them back in their order and inserts them.
//!
//! A chunk in temporary space, all numbers little-endian:
//!
//! | bytes | content                                                                     |
//! |-------|-----------------------------------------------------------------------------|
//! | 7 × 8 | bytes of text; terms, annotations, triple terms, rows; bytes of the longest  |
//! |       | term; most levels of triple terms                                            |
//! | …     | the text                                                                     |
//! | 33 n  | terms: hash 8 + 4, need 1 + 8, annotation 4, place of the text 4 + 4         |
//! | …     | annotations: kind 1, bytes 4, the bytes                                      |
//! | 28 n  | triple terms: three references, levels 4                                     |
//! | 32 n  | rows: four references                                                        |

use std::collections::VecDeque;
use std::sync::Arc;

use snowmelt_store::{Account, Charge, TempSpace, WaitFor};

use crate::database::GraphDatabase;
use crate::error::Result;
use crate::input::cancelled;
use crate::input::document::parse_document;
use crate::input::error::LoadError;
use crate::input::hash::TermHash;
use crate::input::intern::{LocalTerm, LocalTriple, Need, OwnAnnotation, Parsed, Span};
use crate::interrupt::Interrupt;
use crate::progress::{ChangeProgress, ChangeWatch};
use crate::term::{BaseDirection, TermKind};
use crate::transaction::Transaction;
use crate::transaction::document::Document;
use crate::transaction::quad_batch::QuadBatch;
use crate::transaction::quads::Changed;
use crate::transaction::terms::BlankNodes;

/// Most bytes of chunks in memory: enough for documents of a few thousand statements.
const KEPT_BYTES: usize = 8 << 20;

/// Parsed statements, to be inserted in a transaction.
pub struct Staged {
    database: Arc<GraphDatabase>,
    /// the account that shows the waits
    account: Option<Arc<Account>>,
    chunks: VecDeque<StagedChunk>,
    space: Option<TempSpace>,
    /// of the chunks in memory
    charge: Charge,
    kept_bytes: usize,
    statements: u64,
}

/// A chunk, and whether a document with its own blank nodes begins with it.
struct StagedChunk {
    begins: bool,
    place: ChunkPlace,
}

enum ChunkPlace {
    Memory(Box<Parsed>),
    Space { at: u64, len: usize },
}

impl Staged {
    /// Without documents yet; waits are shown at `account`.
    pub fn new(database: &Arc<GraphDatabase>, account: Option<&Arc<Account>>) -> Self {
        Staged {
            charge: database.database().memory().charge("a document"),
            database: database.clone(),
            account: account.cloned(),
            chunks: VecDeque::new(),
            space: None,
            kept_bytes: 0,
            statements: 0,
        }
    }

    /// Number of statements so far.
    pub fn statements(&self) -> u64 {
        self.statements
    }

    /// Parses a document to its end.
    ///
    /// # Errors
    /// Fails if the document cannot be read or does not follow its format, with its place; if there
    /// is no memory or room for it; and if cancelled.
    pub fn add(
        &mut self,
        document: &Document<'_>,
        read: impl std::io::Read,
        cancel: &dyn Interrupt,
        progress: &ChangeProgress,
    ) -> Result<(), LoadError> {
        self.add_told(document, read, cancel, &mut |parsed| progress.add(parsed.rows.len() as u64))
    }

    /// Parses a document to its end; `told` receives each chunk.
    ///
    /// # Errors
    /// Fails as [`Staged::add`] does.
    pub(crate) fn add_told(
        &mut self,
        document: &Document<'_>,
        read: impl std::io::Read,
        cancel: &dyn Interrupt,
        told: &mut dyn FnMut(&mut Parsed),
    ) -> Result<(), LoadError> {
        let database = self.database.clone();
        let sign = self.account.as_ref().map(|account| account.sign());
        let waits = || {
            let metered = database.database().parsing_waits().wait(database.database().clock());
            (sign.map(|sign| sign.show(WaitFor::Parsing)), metered)
        };
        let turn = database.parsing.take(database.database().memory().total(), waits, cancel);
        let _turn = turn.ok_or(LoadError::Cancelled)?;
        let mut options =
            document.options(database.database().longest_string_bytes(), database.database().memory())?;
        // Smaller chunks: while they are inserted, other work needs memory, too.
        let free = database.database().memory().free() as usize;
        options.chunk_rows = options.chunk_rows.min(free / 8192).max(256);
        options.chunk_bytes = options.chunk_bytes.min(free / 128).max(64 << 10);
        let mut begins = true;
        let full = |parsed: Parsed| {
            cancelled(cancel)?;
            let mut parsed = document.sound(parsed)?;
            told(&mut parsed);
            Ok(self.keep(parsed, std::mem::take(&mut begins))?)
        };
        parse_document(read, options, cancel, || Ok(Parsed::default()), full)
            .map_err(|error| if cancel.is_set() { LoadError::Cancelled } else { error })
    }

    /// Adds the quads of a batch as a chunk. It shares the blank nodes of the chunk before it,
    /// unless `begins` is true.
    ///
    /// # Errors
    /// Fails if there is no memory or room for it.
    pub fn add_batch(&mut self, batch: QuadBatch, begins: bool) -> Result<()> {
        self.keep(batch.into_parsed(), begins)
    }

    /// Number of waiting chunks.
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    fn keep(&mut self, mut parsed: Parsed, begins: bool) -> Result<()> {
        self.statements += parsed.rows.len() as u64;
        parsed.shrink();
        let held = self.kept_bytes + parsed.held_bytes();
        let most = KEPT_BYTES.min(self.database.database().memory().free() as usize / 8);
        let is_kept = self.space.is_none() && held <= most && self.charge.set(held as u64).is_ok();
        let place = if is_kept {
            self.kept_bytes = held;
            ChunkPlace::Memory(Box::new(parsed))
        } else {
            let space = match &self.space {
                Some(space) => space,
                None => self.space.insert(self.database.database().temp_space()?),
            };
            let mut bytes = Vec::new();
            parsed.write(&mut bytes);
            ChunkPlace::Space { at: space.append(&[&bytes])?, len: bytes.len() }
        };
        self.chunks.push_back(StagedChunk { begins, place });
        Ok(())
    }

    /// The next chunk, and whether a document begins with it.
    fn next(&mut self) -> Result<Option<(Parsed, bool)>> {
        let Some(StagedChunk { begins, place }) = self.chunks.pop_front() else { return Ok(None) };
        let parsed = match place {
            ChunkPlace::Memory(parsed) => {
                let held = parsed.held_bytes();
                assert!(held <= self.kept_bytes, "a chunk in memory was counted when it was kept");
                self.kept_bytes -= held;
                // Less than before: it is granted.
                self.charge.set(self.kept_bytes as u64)?;
                *parsed
            }
            ChunkPlace::Space { at, len } => {
                let space = self.space.as_ref().expect("a chunk was put there");
                Parsed::read(&space.read(at, len)?).expect("temporary space gives back what it was given")
            }
        };
        Ok(Some((parsed, begins)))
    }
}

impl Transaction {
    /// Inserts the staged statements; blank nodes become new ones. Nothing is committed.
    ///
    /// # Errors
    /// Fails with store errors or if cancelled; insertions stay in the transaction: drop it.
    pub fn insert_staged(
        &mut self,
        mut staged: Staged,
        cancel: &dyn Interrupt,
        progress: &ChangeProgress,
    ) -> Result<Changed, LoadError> {
        let all = staged.chunks();
        let watch = ChangeWatch { interrupt: cancel, progress };
        self.insert_chunks(&mut staged, all, &mut BlankNodes::default(), watch)
    }

    /// Inserts the next `chunks` chunks.
    ///
    /// # Errors
    /// Fails as [`Transaction::insert_staged`] does.
    pub fn insert_chunks(
        &mut self,
        staged: &mut Staged,
        chunks: usize,
        blanks: &mut BlankNodes,
        watch: ChangeWatch<'_>,
    ) -> Result<Changed, LoadError> {
        let mut charge = self.db.database().memory().charge("a document");
        let mut changed = Changed::default();
        for _ in 0..chunks {
            let Some((parsed, begins)) = staged.next()? else { break };
            cancelled(watch.interrupt)?;
            if begins {
                *blanks = BlankNodes::default();
            }
            changed += self.insert_parsed(&parsed, blanks, &mut charge)?;
            watch.progress.add(parsed.rows.len() as u64);
        }
        Ok(changed)
    }

    /// Inserts a chunk.
    pub(crate) fn insert_parsed(
        &mut self,
        parsed: &Parsed,
        blanks: &mut BlankNodes,
        charge: &mut Charge,
    ) -> Result<Changed, LoadError> {
        // looking terms up and changing the indexes takes about three times as much again
        charge.set((4 * parsed.held_bytes() + blanks.bytes()) as u64)?;
        let quads = self.resolve_parsed(parsed, blanks)?;
        Ok(self.insert_ids(quads)?)
    }
}

const PLAIN: u8 = 0;
const LANGUAGE: u8 = 1;
const DATATYPE: u8 = 2;
const LTR: u8 = 3;
const RTL: u8 = 4;

impl Parsed {
    /// Gives back unused memory.
    fn shrink(&mut self) {
        self.extra.shrink_to_fit();
        self.terms.shrink_to_fit();
        self.rows.shrink_to_fit();
    }

    /// Appends its encoding; its text is all in `extra`.
    fn write(&self, to: &mut Vec<u8>) {
        assert!(self.text.is_empty() && self.ids.is_empty() && self.fault.is_none(), "it is sound");
        let sizes = [
            self.extra.len(),
            self.terms.len(),
            self.annotations.len(),
            self.triples.len(),
            self.rows.len(),
            self.longest,
            self.levels as usize,
        ];
        to.reserve(56 + self.extra.len() + self.terms.len() * 33 + self.rows.len() * 32);
        sizes.iter().for_each(|size| to.extend((*size as u64).to_le_bytes()));
        to.extend_from_slice(&self.extra);
        for LocalTerm { hash, need, annotation, lexical } in &self.terms {
            to.extend(hash.high.to_le_bytes());
            to.extend(hash.low.to_le_bytes());
            let (tag, value) = match need {
                Need::Number(kind) => (0u8, *kind as u64),
                Need::Code(body) => (1, *body),
            };
            to.push(tag);
            to.extend(value.to_le_bytes());
            to.extend(annotation.to_le_bytes());
            lexical.to_parts().iter().for_each(|part| to.extend(part.to_le_bytes()));
        }
        for annotation in &self.annotations {
            let (tag, name) = match annotation {
                OwnAnnotation::Plain => (PLAIN, ""),
                OwnAnnotation::Language(name) => (LANGUAGE, &**name),
                OwnAnnotation::Directed(name, BaseDirection::Ltr) => (LTR, &**name),
                OwnAnnotation::Directed(name, BaseDirection::Rtl) => (RTL, &**name),
                OwnAnnotation::Datatype(name) => (DATATYPE, &**name),
            };
            to.push(tag);
            to.extend((name.len() as u32).to_le_bytes());
            to.extend_from_slice(name.as_bytes());
        }
        for LocalTriple { terms, levels } in &self.triples {
            terms.iter().for_each(|term| to.extend(term.to_le_bytes()));
            to.extend(levels.to_le_bytes());
        }
        self.rows.iter().flatten().for_each(|cell| to.extend(cell.to_le_bytes()));
    }

    /// Decodes an encoded chunk; `None` if the bytes are malformed.
    fn read(mut bytes: &[u8]) -> Option<Self> {
        let from = &mut bytes;
        let mut size = || Some(u64::from_le_bytes(*take(from)?) as usize);
        let (text, terms, annotations, triples, rows) = (size()?, size()?, size()?, size()?, size()?);
        let (longest, levels) = (size()?, u32::try_from(size()?).ok()?);
        let mut parsed = Parsed { longest, levels, ..Parsed::default() };
        parsed.extra = from.split_off(..text)?.to_vec();
        if from.len() < terms.checked_mul(33)?.checked_add(rows.checked_mul(32)?)? {
            return None;
        }
        parsed.terms.reserve_exact(terms);
        for _ in 0..terms {
            let hash =
                TermHash { high: u64::from_le_bytes(*take(from)?), low: u32::from_le_bytes(*take(from)?) };
            let [tag] = *take(from)?;
            let value = u64::from_le_bytes(*take(from)?);
            let need = match tag {
                0 => Need::Number(*TermKind::ALL.get(value as usize)?),
                _ => Need::Code(value),
            };
            let annotation = u32::from_le_bytes(*take(from)?);
            let parts = [u32::from_le_bytes(*take(from)?), u32::from_le_bytes(*take(from)?)];
            parsed.terms.push(LocalTerm { hash, need, annotation, lexical: Span::of_parts(parts) });
        }
        for _ in 0..annotations {
            let [tag] = *take(from)?;
            let len = u32::from_le_bytes(*take(from)?) as usize;
            let name = std::str::from_utf8(from.split_off(..len)?).ok()?;
            parsed.annotations.push(match tag {
                PLAIN => OwnAnnotation::Plain,
                LANGUAGE => OwnAnnotation::Language(name.into()),
                LTR => OwnAnnotation::Directed(name.into(), BaseDirection::Ltr),
                RTL => OwnAnnotation::Directed(name.into(), BaseDirection::Rtl),
                _ => OwnAnnotation::Datatype(name.into()),
            });
        }
        for _ in 0..triples {
            let mut term = || Some(u64::from_le_bytes(*take(from)?));
            let terms = [term()?, term()?, term()?];
            parsed.triples.push(LocalTriple { terms, levels: u32::from_le_bytes(*take(from)?) });
        }
        let (cells, _) = from.as_chunks::<8>();
        let (quads, rest) = cells.as_chunks::<4>();
        parsed.rows = quads.iter().map(|quad| quad.map(u64::from_le_bytes)).collect();
        (parsed.rows.len() == rows && rest.is_empty()).then_some(parsed)
    }
}

/// Takes the first N bytes.
fn take<'b, const N: usize>(from: &mut &'b [u8]) -> Option<&'b [u8; N]> {
    let (first, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::intern::Interner;
    use crate::term::TermRef;

    #[test]
    fn a_chunk_comes_back_as_it_was() {
        let mut interner = Interner::new();
        interner.begin(0, Parsed::default());
        let long = "long ".repeat(900);
        let terms = [
            TermRef::Iri("http://example.org/bicycle"),
            TermRef::Blank("wheel"),
            TermRef::string("a string of more bytes than an id holds"),
            TermRef::string(&long),
            TermRef::tagged("une roue", "fr"),
            TermRef::directed("une roue", "fr", BaseDirection::Ltr),
            TermRef::directed("une roue", "fr", BaseDirection::Rtl),
            TermRef::typed("12.50", "http://example.org/euro"),
            TermRef::typed("26", "http://www.w3.org/2001/XMLSchema#integer"),
        ]
        .map(|term| interner.term(term));
        let within = interner.triple([terms[1], terms[0], terms[4]]);
        let triple = interner.triple([terms[0], terms[0], within]);
        interner.parsed.rows.push([terms[0], terms[0], triple, terms[1]]);
        for object in terms {
            interner.parsed.rows.push([terms[0], terms[0], object, terms[1]]);
        }
        let parsed = interner.end();
        let mut bytes = Vec::new();
        parsed.write(&mut bytes);
        let back = Parsed::read(&bytes).unwrap();
        assert_eq!(format!("{back:?}"), format!("{parsed:?}"));
        for cut in 0..bytes.len() {
            assert!(Parsed::read(&bytes[..cut]).is_none(), "cut at {cut} of {}", bytes.len());
        }
    }
}
