//! Terms packed into one block of memory: the store behind decoded, computed and interned terms.
//!
//! An entry is 16 bytes: where the text starts (or a double's bits), its length, and a tag that says what it is; language
//! tags and datatypes are kept once and named by number in the tag. Nothing is freed but everything at once.

use rustc_hash::FxHashMap;
use snowmelt_graph::TermRef;
use std::sync::Arc;

#[derive(Clone, Copy)]
struct Entry {
    /// offset in `text`, or the bits of a double
    start: u64,
    len: u32,
    tag: u32,
}

const IRI: u32 = 0;
const BLANK: u32 = 1;
const STRING: u32 = 2;
const DOUBLE: u32 = 3;
/// From here: 2 · annotation number, plus 1 when the annotation is a language.
const ANNOTATED: u32 = 4;

/// What an entry holds.
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
    text: String,
    annotations: Vec<Arc<str>>,
    annotation_numbers: FxHashMap<Arc<str>, u32>,
}

impl TermArena {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes in use, annotations not counted (they are few).
    pub fn bytes(&self) -> usize {
        self.text.len() + self.entries.len() * size_of::<Entry>()
    }

    /// Forgets the terms, keeps the memory and the annotations.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.text.clear();
    }

    pub fn push(&mut self, term: TermRef<'_>) -> u32 {
        let (text, tag) = match term {
            TermRef::Iri(iri) => (iri, IRI),
            TermRef::Blank(label) => (label, BLANK),
            TermRef::Literal { lexical, lang: Some(lang), .. } => {
                (lexical, ANNOTATED + 2 * self.annotation(lang) + 1)
            }
            TermRef::Literal { lexical, datatype, .. } if datatype == super::iri::STRING => (lexical, STRING),
            TermRef::Literal { lexical, datatype, .. } => {
                (lexical, ANNOTATED + 2 * self.annotation(datatype))
            }
        };
        let start = self.text.len() as u64;
        self.text.push_str(text);
        let len = u32::try_from(text.len()).expect("a term is shorter than 4 GiB");
        self.push_entry(Entry { start, len, tag })
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
        let text: Arc<str> = text.into();
        self.annotations.push(Arc::clone(&text));
        self.annotation_numbers.insert(text, number);
        number
    }

    pub fn get(&self, index: u32) -> Stored<'_> {
        let Entry { start, len, tag } = self.entries[index as usize];
        if tag == DOUBLE {
            return Stored::Double(f64::from_bits(start));
        }
        let text = &self.text[start as usize..start as usize + len as usize];
        Stored::Term(match tag {
            IRI => TermRef::Iri(text),
            BLANK => TermRef::Blank(text),
            STRING => TermRef::string(text),
            _ => {
                let annotation = &*self.annotations[((tag - ANNOTATED) / 2) as usize];
                if (tag - ANNOTATED) % 2 == 1 {
                    TermRef::tagged(text, annotation)
                } else {
                    TermRef::typed(text, annotation)
                }
            }
        })
    }
}
