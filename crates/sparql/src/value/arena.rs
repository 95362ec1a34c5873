//! Terms packed into blocks of memory: the store behind decoded, computed and interned terms.
//!
//! An entry is 16 bytes: where the text starts (or a double's bits), its length, and a tag that
//! says what it is; language tags and datatypes are kept once and named by number in the tag. Terms
//! are freed only all together. Texts lie in blocks that never move, so growing copies nothing, and
//! no more memory is held than was asked for.

use std::sync::Arc;

use oxrdf::Triple;
use rustc_hash::FxHashMap;
use snowmelt_graph::{TermRef, split_direction, triple_bytes};

#[derive(Clone, Copy)]
struct Entry {
    /// block and offset in it (32 bits each), or the bits of a double
    start: u64,
    len: u32,
    tag: u32,
}

const IRI: u32 = 0;
const BLANK: u32 = 1;
const STRING: u32 = 2;
const DOUBLE: u32 = 3;
/// Starts at a place of the list of triples.
const TRIPLE: u32 = 4;
/// From here: 2 · annotation number, plus 1 when the annotation is a language, which a base
/// direction may follow: `en--ltr`.
const ANNOTATED: u32 = 5;

/// Bytes of the first block and of the largest; a longer text has a block of its own.
const BLOCKS: (usize, usize) = (1 << 12, 1 << 20);

/// Bytes of texts, and of annotations, that an emptied arena keeps.
const KEPT_BYTES: usize = 1 << 20;

/// The contents of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stored<'a> {
    Term(TermRef<'a>),
    /// A computed xsd:double, never written out until its text is needed.
    Double(f64),
}

/// Append-only terms, named by their index.
#[derive(Default)]
pub(crate) struct TermArena {
    entries: Vec<Entry>,
    blocks: Vec<String>,
    /// the block that is being filled; those behind it are empty
    block: usize,
    /// bytes of all blocks
    block_bytes: usize,
    triples: Vec<Triple>,
    /// bytes of their texts, about
    triple_bytes: usize,
    annotations: Vec<Arc<str>>,
    annotation_numbers: FxHashMap<Arc<str>, u32>,
    annotation_bytes: usize,
}

impl TermArena {
    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.block_bytes
            + self.triple_bytes
            + self.entries.capacity() * size_of::<Entry>()
            + self.annotation_bytes
    }

    /// Forgets the terms; keeps the annotations and some memory, unless they are many.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.triples.clear();
        self.triple_bytes = 0;
        if self.entries.capacity() * size_of::<Entry>() > KEPT_BYTES {
            self.entries = Vec::new();
        }
        let mut kept = 0;
        self.blocks.retain_mut(|block| {
            block.clear();
            kept += block.capacity();
            kept <= KEPT_BYTES
        });
        debug_assert!(self.blocks.iter().all(String::is_empty), "no text outlives its entry");
        self.block_bytes = self.blocks.iter().map(String::capacity).sum();
        self.block = 0;
        if self.annotation_bytes > KEPT_BYTES {
            self.annotations.clear();
            self.annotation_numbers.clear();
            self.annotation_bytes = 0;
        }
    }

    /// Bytes that keeping a term takes beyond what is held.
    pub fn needs(&self, stored: Stored<'_>) -> usize {
        let text = match stored {
            Stored::Term(
                TermRef::Iri(text) | TermRef::Blank(text) | TermRef::Literal { lexical: text, .. },
            ) => text,
            Stored::Term(TermRef::Triple(triple)) => return triple_bytes(triple),
            Stored::Double(_) => return 0,
        };
        let has_room = |block: &String| block.capacity() - block.len() >= text.len();
        let is_there = self.blocks.iter().skip(self.block).any(has_room);
        if is_there { 0 } else { self.new_block(text) }
    }

    /// Bytes of a block that is made for a text.
    fn new_block(&self, text: &str) -> usize {
        text.len().max(self.block_bytes.clamp(BLOCKS.0, BLOCKS.1))
    }

    /// Keeps a text; its block and offset.
    fn push_text(&mut self, text: &str) -> u64 {
        while self.blocks.get(self.block).is_some_and(|b| b.capacity() - b.len() < text.len()) {
            self.block += 1;
        }
        if self.block == self.blocks.len() {
            let block = String::with_capacity(self.new_block(text));
            self.block_bytes += block.capacity();
            self.blocks.push(block);
        }
        let block = &mut self.blocks[self.block];
        assert!(block.len() + text.len() <= block.capacity(), "a block is never moved");
        debug_assert!(u32::try_from(block.len()).is_ok(), "an offset in a block has 32 bits");
        let start = (self.block as u64) << 32 | block.len() as u64;
        block.push_str(text);
        start
    }

    pub fn push(&mut self, term: TermRef<'_>) -> u32 {
        let (text, tag) = match term {
            TermRef::Iri(iri) => (iri, IRI),
            TermRef::Blank(label) => (label, BLANK),
            TermRef::Triple(triple) => return self.push_triple(triple),
            TermRef::Literal { lexical, lang: Some(lang), direction: Some(direction), .. } => {
                (lexical, ANNOTATED + 2 * self.annotation(&format!("{lang}--{direction}")) + 1)
            }
            TermRef::Literal { lexical, lang: Some(lang), .. } => {
                (lexical, ANNOTATED + 2 * self.annotation(lang) + 1)
            }
            TermRef::Literal { lexical, datatype, .. } if datatype == super::iri::STRING => (lexical, STRING),
            TermRef::Literal { lexical, datatype, .. } => {
                (lexical, ANNOTATED + 2 * self.annotation(datatype))
            }
        };
        let start = self.push_text(text);
        let len = u32::try_from(text.len()).expect("a term is shorter than 4 GiB");
        self.push_entry(Entry { start, len, tag })
    }

    fn push_triple(&mut self, triple: &Triple) -> u32 {
        let start = self.triples.len() as u64;
        self.triple_bytes += triple_bytes(triple);
        self.triples.push(triple.clone());
        self.push_entry(Entry { start, len: 0, tag: TRIPLE })
    }

    pub fn push_double(&mut self, v: f64) -> u32 {
        self.push_entry(Entry { start: v.to_bits(), len: 0, tag: DOUBLE })
    }

    pub fn push_stored(&mut self, stored: Stored<'_>) -> u32 {
        match stored {
            Stored::Term(term) => self.push(term),
            Stored::Double(v) => self.push_double(v),
        }
    }

    fn push_entry(&mut self, entry: Entry) -> u32 {
        let index = u32::try_from(self.entries.len()).expect("fewer than 2^32 computed terms");
        self.entries.push(entry);
        index
    }

    fn annotation(&mut self, text: &str) -> u32 {
        if let Some(number) = self.annotation_numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.annotations.len()).expect("few annotations");
        assert!(number < (u32::MAX - ANNOTATED) / 2, "a tag has room for the annotation's number");
        let text: Arc<str> = text.into();
        /// Of an annotation beside its text: the counts, the list's entry, the table's.
        const ENTRY_BYTES: usize = 80;
        self.annotation_bytes += text.len() + ENTRY_BYTES;
        self.annotations.push(Arc::clone(&text));
        self.annotation_numbers.insert(text, number);
        assert_eq!(self.annotations.len(), self.annotation_numbers.len(), "an annotation has one number");
        number
    }

    pub fn get(&self, index: u32) -> Stored<'_> {
        assert!((index as usize) < self.entries.len(), "term {index} of {}", self.entries.len());
        let Entry { start, len, tag } = self.entries[index as usize];
        if tag == DOUBLE {
            return Stored::Double(f64::from_bits(start));
        }
        if tag == TRIPLE {
            return Stored::Term(TermRef::Triple(&self.triples[start as usize]));
        }
        let at = (start & u64::from(u32::MAX)) as usize;
        let text = &self.blocks[(start >> 32) as usize][at..at + len as usize];
        Stored::Term(match tag {
            IRI => TermRef::Iri(text),
            BLANK => TermRef::Blank(text),
            STRING => TermRef::string(text),
            _ => {
                let annotation = &*self.annotations[((tag - ANNOTATED) / 2) as usize];
                if (tag - ANNOTATED) % 2 == 1 {
                    match split_direction(annotation) {
                        (tag, None) => TermRef::tagged(text, tag),
                        (tag, Some(direction)) => TermRef::directed(text, tag, direction),
                    }
                } else {
                    TermRef::typed(text, annotation)
                }
            }
        })
    }
}
