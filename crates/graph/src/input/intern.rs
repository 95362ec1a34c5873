//! The partial dictionary of one chunk of input.
//!
//! Terms are interned by what they are written as, so the work of a term (unescaping, checking,
//! recognising numbers and dates) is done once per chunk, not once per occurrence. What comes
//! out are rows of references. A reference is a finished [`TermId`] where the id carries the
//! term, else (kind local, which is never stored) the position in the chunk's list of terms, which
//! is in order of first occurrence. A triple term comes after the terms in it.

use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use twox_hash::{XxHash3_64, XxHash3_128};

use crate::dict::code::Annotation as AnnotationRef;
use crate::input::error::DocumentSetting;
use crate::input::hash::TermHash;
use crate::input::left_out::MOST_LISTED;
use crate::term::inline::{self, Inline};
use crate::term::{BaseDirection, MOST_TRIPLE_LEVELS, TermId, TermKind, TermRef};

/// A term id, or the position of a term in a list.
pub(crate) type Ref = u64;

/// Reference to position `index` of a list of terms.
pub(crate) fn local(index: u64) -> Ref {
    TermId::new(TermKind::Local, index).0
}

/// The list position of a reference; `None` for a finished id.
pub(crate) fn position(reference: Ref) -> Option<u64> {
    const LOCAL: u64 = TermId::new(TermKind::Local, 0).0;
    const LAST: u64 = TermId::new(TermKind::Local, TermKind::Local.most_payload()).0;
    (LOCAL..=LAST).contains(&reference).then_some(reference & !LOCAL)
}

/// A stretch of the chunk's text, or of its extra bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    start: u32,
    len: u32,
}

const IN_EXTRA: u32 = 1 << 31;

impl Span {
    /// Its bytes.
    pub(crate) fn len(self) -> usize {
        self.len as usize
    }

    /// Its two numbers, for storing it.
    pub(crate) fn to_parts(self) -> [u32; 2] {
        [self.start, self.len]
    }

    /// From its two numbers.
    pub(crate) fn of_parts([start, len]: [u32; 2]) -> Self {
        Span { start, len }
    }
}

/// The kind of number a term of the chunk needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// A number in the dictionary tree of this kind, or a number of a blank node. Whether a string
    /// or literal is a text the dictionary says that it comes to.
    Number(TermKind),
    /// A code for its datatype, then it is inline with this body; without a code, it is a literal.
    Code(u64),
}

/// A term of a chunk whose id is known only to the whole load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalTerm {
    /// Identifies the term in the whole load.
    pub(crate) hash: TermHash,
    /// The kind of number it needs.
    pub(crate) need: Need,
    /// Language or datatype: index into [`Parsed::annotations`]; 0 for none.
    pub(crate) annotation: u32,
    /// The IRI, or the lexical form. Of a triple term, the index into [`Parsed::triples`].
    pub(crate) lexical: Span,
}

/// A triple term of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalTriple {
    /// Subject, predicate, object.
    pub(crate) terms: [Ref; 3],
    /// Levels of triple terms within each other, this one included; those within an object that
    /// is given by its id do not count.
    pub(crate) levels: u32,
}

/// The language or datatype of literals.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum OwnAnnotation {
    /// xsd:string, or not a literal.
    Plain,
    /// A language tag in lower case.
    Language(Box<str>),
    /// A language tag in lower case, and a base direction.
    Directed(Box<str>, BaseDirection),
    /// A datatype IRI.
    Datatype(Box<str>),
}

impl From<AnnotationRef<'_>> for OwnAnnotation {
    fn from(annotation: AnnotationRef<'_>) -> Self {
        match annotation {
            AnnotationRef::Plain => OwnAnnotation::Plain,
            AnnotationRef::Language(tag) => OwnAnnotation::Language(tag.into()),
            AnnotationRef::Directed(tag, direction) => OwnAnnotation::Directed(tag.into(), direction),
            AnnotationRef::Datatype(iri) => OwnAnnotation::Datatype(iri.into()),
        }
    }
}

impl OwnAnnotation {
    /// The annotation by reference.
    pub(crate) fn as_ref(&self) -> AnnotationRef<'_> {
        match self {
            OwnAnnotation::Plain => AnnotationRef::Plain,
            OwnAnnotation::Language(tag) => AnnotationRef::Language(tag),
            OwnAnnotation::Directed(tag, direction) => AnnotationRef::Directed(tag, *direction),
            OwnAnnotation::Datatype(iri) => AnnotationRef::Datatype(iri),
        }
    }
}

/// Offset of a term in the chunk's text, if the text contains it verbatim.
pub(crate) type Place = Option<usize>;

/// A fault and its place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Line from 0, counted from the start of the chunk.
    pub(crate) line: u64,
    /// Column from 1; 0 = unknown.
    pub(crate) column: u64,
    /// The fault.
    pub(crate) message: String,
    /// The setting that could let the document be read.
    pub(crate) setting: Option<DocumentSetting>,
}

/// One chunk, parsed.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// Number of the input that the chunk is from.
    pub(crate) source: usize,
    /// The chunk as read; terms point into it.
    pub(crate) text: Vec<u8>,
    /// Terms that the text does not contain verbatim.
    pub(crate) extra: Vec<u8>,
    /// Terms without id, in order of first occurrence.
    pub(crate) terms: Vec<LocalTerm>,
    /// Languages and datatypes.
    pub(crate) annotations: Vec<OwnAnnotation>,
    /// Triple terms.
    pub(crate) triples: Vec<LocalTriple>,
    /// Subject, predicate, object, graph.
    pub(crate) rows: Vec<[Ref; 4]>,
    /// For every term its id, or where it waits ([`super::waiting`]).
    pub(crate) ids: Vec<Ref>,
    /// The part of the waiting terms that `ids` refer to.
    pub(crate) part: usize,
    /// Bytes of the longest term met.
    pub(crate) longest: usize,
    /// Most levels of triple terms within each other.
    pub(crate) levels: u32,
    /// Line ends in the chunk.
    pub(crate) lines: u64,
    /// Statements left out.
    pub(crate) skipped: u64,
    /// The first of the faults for which statements were left out.
    pub(crate) left_out: Vec<Fault>,
    /// The fault at which the reading stopped, if any.
    pub(crate) fault: Option<Fault>,
}

impl Parsed {
    /// The bytes of a span.
    pub(crate) fn bytes(&self, span: Span) -> &[u8] {
        let start = (span.start & !IN_EXTRA) as usize;
        let from = if span.start & IN_EXTRA == 0 { &self.text } else { &self.extra };
        &from[start..start + span.len as usize]
    }

    /// The message for a term that is longer than `most` bytes.
    pub(crate) fn too_long(&self, most: usize) -> Option<String> {
        (self.longest > most)
            .then(|| format!("a term has {} bytes, and the longest allowed has {most}", self.longest))
    }

    /// The triple term of a term that is one.
    pub(crate) fn triple(&self, term: &LocalTerm) -> &LocalTriple {
        debug_assert_eq!(term.need, Need::Number(TermKind::Triple), "it is a triple term");
        &self.triples[term.lexical.start as usize]
    }

    /// The message for triple terms with too many levels.
    pub(crate) fn too_deep(&self) -> Option<String> {
        (self.levels as usize > MOST_TRIPLE_LEVELS).then(too_deep_message)
    }

    /// Notes a statement that is left out.
    pub(crate) fn leave_out(&mut self, fault: Fault) {
        self.skipped += 1;
        if self.left_out.len() < MOST_LISTED {
            self.left_out.push(fault);
        }
    }

    /// Approximate bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.text.capacity()
            + self.extra.capacity()
            + self.terms.capacity() * size_of::<LocalTerm>()
            + self.rows.capacity() * size_of::<[Ref; 4]>()
            + self.triples.capacity() * size_of::<LocalTriple>()
            + self.ids.capacity() * size_of::<Ref>()
    }

    /// Forgets everything, keeping the memory.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.extra.clear();
        self.terms.clear();
        self.annotations.clear();
        self.triples.clear();
        self.rows.clear();
        self.ids.clear();
        self.longest = 0;
        self.levels = 0;
        self.lines = 0;
        self.skipped = 0;
        self.left_out.clear();
        self.fault = None;
    }
}

/// The message for triple terms with too many levels.
pub(crate) fn too_deep_message() -> String {
    format!("triple terms nest more than {MOST_TRIPLE_LEVELS} levels, the limit")
}

/// Turns written terms into references, for one chunk after the other.
#[derive(Debug)]
pub(crate) struct Interner {
    /// Hash of a written term → reference.
    seen: HashTable<(TermHash, Ref)>,
    /// Seed of the hashes of an annotation's literals → its index.
    annotations: FxHashMap<u64, u32>,
    blank_seed: u64,
    /// The chunk being filled.
    pub(crate) parsed: Parsed,
}

const IRI_SEED: u64 = 1;
const WRITTEN_SEED: u64 = 2;
const BLANK_SEED: u64 = 3;
const STRING_SEED: u64 = 4;
const LANGUAGE_SEED: u64 = 5;
const DATATYPE_SEED: u64 = 6;
const LTR_SEED: u64 = 7;
const RTL_SEED: u64 = 8;
const TRIPLE_SEED: u64 = 9;

impl Interner {
    pub(crate) fn new() -> Self {
        Interner {
            seen: HashTable::new(),
            annotations: FxHashMap::default(),
            blank_seed: 0,
            parsed: Parsed::default(),
        }
    }

    /// Begins a chunk of input number `source`, reusing the memory of `parsed`.
    pub(crate) fn begin(&mut self, source: usize, mut parsed: Parsed) {
        self.seen.clear();
        self.annotations.clear();
        parsed.source = source;
        parsed.annotations.push(OwnAnnotation::Plain);
        // Blank nodes of different files are different.
        let scope = (source as u64).to_le_bytes();
        self.blank_seed = XxHash3_64::oneshot_with_seed(BLANK_SEED, &scope);
        self.parsed = parsed;
    }

    /// Returns the finished chunk.
    pub(crate) fn end(&mut self) -> Parsed {
        std::mem::take(&mut self.parsed)
    }

    /// The hash of a term as it is written.
    pub(crate) fn written(token: &[u8]) -> TermHash {
        hash(WRITTEN_SEED, token)
    }

    /// The reference of a written term, if it is remembered.
    pub(crate) fn find(&self, written: TermHash) -> Option<Ref> {
        let found = self.seen.find(written.high, |e| e.0 == written)?;
        Some(found.1)
    }

    /// Remembers the reference of a written term.
    pub(crate) fn remember(&mut self, written: TermHash, reference: Ref) {
        self.seen.insert_unique(written.high, (written, reference), |e| e.0.high);
    }

    /// The reference of an IRI.
    pub(crate) fn iri(&mut self, iri: &[u8], place: Place) -> Ref {
        let hash = hash(IRI_SEED, iri);
        self.add(hash, Need::Number(TermKind::Iri), 0, iri, place)
    }

    /// The reference of a blank node.
    pub(crate) fn blank(&mut self, label: &[u8], place: Place) -> Ref {
        let hash = hash(self.blank_seed, label);
        self.add(hash, Need::Number(TermKind::Blank), 0, label, place)
    }

    /// The reference of a literal with a language tag (lower case).
    pub(crate) fn tagged(
        &mut self,
        lexical: &str,
        tag: &str,
        direction: Option<BaseDirection>,
        place: Place,
    ) -> Ref {
        let (annotation, seed) = self.annotation(AnnotationRef::of_tag(tag, direction));
        let hash = hash(seed, lexical.as_bytes());
        self.add(hash, Need::Number(TermKind::Literal), annotation, lexical.as_bytes(), place)
    }

    /// The reference of a literal with a datatype.
    pub(crate) fn typed(&mut self, lexical: &str, datatype: &str, place: Place) -> Ref {
        let need = match inline::encode(lexical, datatype) {
            Inline::Id(id) => return id.0,
            Inline::Shaped(body) => Need::Code(body),
            Inline::No(kind) => Need::Number(kind),
        };
        let (annotation, seed) = self.annotation(AnnotationRef::new(None, None, datatype));
        let hash = hash(seed, lexical.as_bytes());
        self.add(hash, need, annotation, lexical.as_bytes(), place)
    }

    /// The reference of a triple term: a subject, predicate and object of this chunk, or ids.
    pub(crate) fn triple(&mut self, terms: [Ref; 3]) -> Ref {
        let mut bytes = [0; 36];
        for (term, bytes) in terms.iter().zip(bytes.as_chunks_mut::<12>().0) {
            let (high, low) = match position(*term) {
                Some(at) => {
                    let TermHash { high, low } = self.parsed.terms[at as usize].hash;
                    (high, low)
                }
                // No hash has so many bits.
                None => (*term, u32::MAX),
            };
            bytes[..8].copy_from_slice(&high.to_le_bytes());
            bytes[8..].copy_from_slice(&low.to_le_bytes());
        }
        let whole = hash(TRIPLE_SEED, &bytes);
        if let Some(reference) = self.find(whole) {
            return reference;
        }
        let within = position(terms[2]).map(|at| &self.parsed.terms[at as usize]);
        let levels = match within {
            Some(term) if term.need == Need::Number(TermKind::Triple) => self.parsed.triple(term).levels + 1,
            _ => 1,
        };
        self.parsed.levels = self.parsed.levels.max(levels);
        let lexical = Span { start: self.parsed.triples.len() as u32, len: 0 };
        self.parsed.triples.push(LocalTriple { terms, levels });
        let reference = local(self.parsed.terms.len() as u64);
        let need = Need::Number(TermKind::Triple);
        self.parsed.terms.push(LocalTerm { hash: whole, need, annotation: 0, lexical });
        self.remember(whole, reference);
        reference
    }

    /// The reference of a triple that is a term.
    pub(crate) fn whole_triple(&mut self, triple: &oxrdf::Triple) -> Ref {
        let (mut levels, mut at) = (vec![triple], triple);
        while let oxrdf::Term::Triple(inner) = &at.object {
            levels.push(inner);
            at = inner;
        }
        let mut object = self.term(at.object.as_ref().into());
        for triple in levels.into_iter().rev() {
            let subject = self.term(triple.subject.as_ref().into());
            let predicate = self.term(triple.predicate.as_ref().into());
            object = self.triple([subject, predicate, object]);
        }
        object
    }

    /// The reference of any term, from a parser that has its strings.
    pub(crate) fn term(&mut self, term: TermRef<'_>) -> Ref {
        let (seed, text) = match term {
            TermRef::Iri(iri) => (IRI_SEED, iri),
            TermRef::Blank(label) => (self.blank_seed, label),
            TermRef::Literal { lexical, lang, direction, datatype } => {
                (self.annotation(AnnotationRef::new(lang, direction, datatype)).1, lexical)
            }
            TermRef::Triple(triple) => return self.whole_triple(triple),
        };
        let whole = hash(seed, text.as_bytes());
        if let Some(reference) = self.find(whole) {
            return reference;
        }
        let reference = match term {
            TermRef::Iri(iri) => self.iri(iri.as_bytes(), None),
            TermRef::Blank(label) => self.blank(label.as_bytes(), None),
            TermRef::Literal { lexical, lang: Some(tag), direction, .. } => {
                self.tagged(lexical, tag, direction, None)
            }
            TermRef::Literal { lexical, datatype, .. } => self.typed(lexical, datatype, None),
            TermRef::Triple(_) => unreachable!("returned above"),
        };
        self.remember(whole, reference);
        reference
    }

    fn add(&mut self, hash: TermHash, need: Need, annotation: u32, bytes: &[u8], place: Place) -> Ref {
        self.parsed.longest = self.parsed.longest.max(bytes.len());
        let start = match place {
            Some(start) => {
                assert!(start < IN_EXTRA as usize, "a chunk has less than 2 GiB of text");
                start as u32
            }
            None => {
                let start = self.parsed.extra.len();
                self.parsed.extra.extend_from_slice(bytes);
                assert!(start < IN_EXTRA as usize, "a chunk has less than 2 GiB of unescaped text");
                start as u32 | IN_EXTRA
            }
        };
        let reference = local(self.parsed.terms.len() as u64);
        self.parsed.terms.push(LocalTerm {
            hash,
            need,
            annotation,
            lexical: Span { start, len: bytes.len() as u32 },
        });
        reference
    }

    /// The index of an annotation in this chunk and the seed of the hashes of its literals.
    fn annotation(&mut self, annotation: AnnotationRef<'_>) -> (u32, u64) {
        let (tag, name) = match annotation {
            AnnotationRef::Plain => return (0, STRING_SEED),
            AnnotationRef::Language(tag) => (LANGUAGE_SEED, tag),
            AnnotationRef::Directed(tag, BaseDirection::Ltr) => (LTR_SEED, tag),
            AnnotationRef::Directed(tag, BaseDirection::Rtl) => (RTL_SEED, tag),
            AnnotationRef::Datatype(iri) => (DATATYPE_SEED, iri),
        };
        let seed = XxHash3_64::oneshot_with_seed(tag, name.as_bytes());
        if let Some(&index) = self.annotations.get(&seed) {
            return (index, seed);
        }
        let index = self.parsed.annotations.len() as u32;
        self.parsed.annotations.push(annotation.into());
        self.annotations.insert(seed, index);
        (index, seed)
    }
}

fn hash(seed: u64, bytes: &[u8]) -> TermHash {
    TermHash::new(XxHash3_128::oneshot_with_seed(seed, bytes))
}
