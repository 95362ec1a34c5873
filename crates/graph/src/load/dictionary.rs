//! The dictionary while it is written: strings, hashes, codes and prefixes of new terms, in the
//! order of their numbers.

use std::sync::Arc;

use snowmelt_store::Build;

use super::runs::RunStore;
use super::sorter::{Batch, Sorter};
use super::strings::StringWriter;
use crate::database::state::GraphState;
use crate::dict::code::{Code, CodeSource, Codes, IN_STRING, PLAIN};
use crate::dict::prefix::PrefixEncoder;
use crate::dict::{self, Entry, GraphFormat, Place, Tree};
use crate::input::error::LoadError;
use crate::input::intern::OwnAnnotation;
use crate::term::TermKind;

/// Rows of the hash trees, and of triple terms, on their way to be sorted.
#[derive(Debug)]
pub(super) struct HashSorters {
    pub(super) iri: Arc<Sorter<2>>,
    pub(super) literal: Arc<Sorter<3>>,
    pub(super) text: Arc<Sorter<3>>,
    /// Rows of triple terms, in the order of their ids.
    pub(super) triple: Arc<Sorter<4>>,
}

impl HashSorters {
    /// Sorters for batches of `rows` rows, whose runs go to the stores of `run_store`.
    pub(super) fn new(run_store: impl Fn(&'static str) -> Arc<RunStore>, rows: usize, fan_in: usize) -> Self {
        Self {
            iri: Sorter::new(run_store("iri-hash"), rows, fan_in),
            literal: Sorter::new(run_store("lit-hash"), rows, fan_in),
            text: Sorter::new(run_store("text-hash"), rows, fan_in),
            triple: Sorter::new(run_store("triple"), rows.div_ceil(4), fan_in),
        }
    }
}

/// Kind of every catalog record of a graph.
pub(super) const RECORD_KIND: u32 = 1;

/// Takes new terms and gives them numbers.
pub(super) struct Dictionary {
    format: GraphFormat,
    codes: Codes,
    prefixes: PrefixEncoder,
    strings: StringWriter,
    iri_hashes: Batch<2>,
    literal_hashes: Batch<3>,
    text_hashes: Batch<3>,
    triple_rows: Batch<4>,
    triples: u64,
    blank_nodes: u64,
    scratch: Vec<u8>,
}

impl Dictionary {
    /// A dictionary of the newest format; the codec of each tree is chosen from
    /// `sample_bytes` of it, with dictionaries of texts if there are many strings.
    pub(super) fn new(build: &Build, hashes: &HashSorters, sample_bytes: usize, is_much: bool) -> Self {
        Dictionary {
            format: GraphFormat::default(),
            codes: Codes::new(),
            prefixes: PrefixEncoder::new(),
            strings: StringWriter::new(build, sample_bytes, is_much),
            iri_hashes: hashes.iri.batch(),
            literal_hashes: hashes.literal.batch(),
            text_hashes: hashes.text.batch(),
            triple_rows: hashes.triple.batch(),
            triples: 0,
            blank_nodes: 0,
            scratch: Vec::new(),
        }
    }

    /// Takes over everything that a database knows except its strings.
    pub(super) fn go_on_from(&mut self, state: &GraphState) {
        self.format = state.meta().format;
        self.codes = state.codes().clone();
        self.prefixes = PrefixEncoder::with_known(state.prefixes());
        self.blank_nodes = state.meta().blank_nodes;
    }

    /// The format of its terms.
    #[inline]
    pub(super) fn format(&self) -> GraphFormat {
        self.format
    }

    /// Takes over the format and the codes of a database, and the numbers of its blank nodes.
    pub(super) fn keep_codes_of(&mut self, state: &GraphState) {
        self.format = state.meta().format;
        self.codes = state.codes().clone();
        self.blank_nodes = state.meta().blank_nodes;
    }

    /// Numbers a term of a database, given as its IRI or its string in a tree of literals.
    pub(super) fn stored(&mut self, tree: Tree, code: u16, string: &[u8]) -> Result<u64, LoadError> {
        match tree {
            Tree::Iri => self.iri(string),
            Tree::Literal => self.string(Entry { kind: TermKind::Literal, code, string }),
            Tree::Text => self.string(Entry { kind: TermKind::Text, code, string }),
        }
    }

    /// The code of an annotation, assigned now if it has none; `IN_STRING` if the table is full.
    pub(super) fn code(&mut self, annotation: &OwnAnnotation) -> u16 {
        if matches!(annotation, OwnAnnotation::Plain) {
            return PLAIN;
        }
        if matches!(annotation, OwnAnnotation::Directed(..)) {
            self.format = self.format.with_rdf_12();
        }
        match self.codes.annotation(annotation.as_ref()) {
            Code::Is(code) => code,
            Code::Full | Code::Unknown => IN_STRING,
        }
    }

    /// The code of a datatype with decimal-like literals; `None` if the table is full.
    pub(super) fn decimal_code(&mut self, annotation: &OwnAnnotation) -> Option<u8> {
        let OwnAnnotation::Datatype(datatype) = annotation else { return None };
        match self.codes.decimal_datatype(datatype) {
            Code::Is(code) => Some(code),
            Code::Full | Code::Unknown => None,
        }
    }

    /// Numbers a new term. `code` is its annotation code, if its kind has one.
    pub(super) fn number(
        &mut self,
        kind: TermKind,
        code: u16,
        annotation: &OwnAnnotation,
        lexical: &[u8],
    ) -> Result<u64, LoadError> {
        match kind {
            TermKind::Iri => self.iri(lexical),
            TermKind::Blank => {
                self.blank_nodes += 1;
                Ok(self.blank_nodes - 1)
            }
            TermKind::Triple => Ok(self.next_triple()),
            _ if kind.has_code() => self.literal(kind, code, annotation, lexical),
            _ => self.literal(kind, PLAIN, annotation, lexical),
        }
    }

    /// The number of a new triple term.
    pub(super) fn next_triple(&mut self) -> u64 {
        self.format = self.format.with_rdf_12();
        self.triples += 1;
        self.triples - 1
    }

    /// Takes the row of a triple term: id, subject, predicate, object. It may come twice.
    pub(super) fn triple_row(&mut self, row: [u64; 4]) -> Result<(), LoadError> {
        self.triple_rows.push(row)
    }

    fn iri(&mut self, iri: &[u8]) -> Result<u64, LoadError> {
        let text = std::str::from_utf8(iri).expect("parsers and dictionaries hand over UTF-8");
        self.prefixes.encode(text, &mut self.scratch);
        let number = self.strings.push(Tree::Iri, &self.scratch)?;
        let hash = dict::index_hash(dict::hash(Tree::Iri, 0, iri));
        self.iri_hashes.push([hash, number])?;
        Ok(number)
    }

    fn literal(
        &mut self,
        kind: TermKind,
        code: u16,
        annotation: &OwnAnnotation,
        lexical: &[u8],
    ) -> Result<u64, LoadError> {
        if code != IN_STRING {
            return self.string(Entry { kind, code, string: lexical });
        }
        // Rare: the table is full. The string is what the dictionary's own rules make of the
        // term.
        let lexical = std::str::from_utf8(lexical).expect("parsers hand over UTF-8");
        let term = annotation.as_ref().literal(lexical);
        let mut scratch = Vec::new();
        match dict::place(&term, self.format, &mut self.codes, &mut scratch) {
            Place::Entry(entry) => self.string(entry),
            other => unreachable!("a literal that needs a number is not {other:?}"),
        }
    }

    fn string(&mut self, entry: Entry<'_>) -> Result<u64, LoadError> {
        let number = self.strings.push(entry.tree(), entry.string)?;
        let row = [dict::index_hash(entry.hash()), number, u64::from(entry.code)];
        match entry.tree() {
            Tree::Text => self.text_hashes.push(row)?,
            _ => self.literal_hashes.push(row)?,
        }
        Ok(number)
    }

    /// Ends the string trees and writes the dictionary's catalog records, except those of the hash
    /// trees.
    pub(super) fn finish(self, build: &Build) -> Result<DictionaryCounts, LoadError> {
        self.iri_hashes.finish()?;
        self.literal_hashes.finish()?;
        self.text_hashes.finish()?;
        self.triple_rows.finish()?;
        let trees = self.strings.finish()?;
        for (tree, strings) in Tree::ALL.into_iter().zip(&trees) {
            build.put_record(tree.name(), RECORD_KIND, &strings.to_bytes());
        }
        build.put_record(dict::RECORD_CODES, RECORD_KIND, &self.codes.to_bytes());
        build.put_record(dict::RECORD_PREFIXES, RECORD_KIND, &self.prefixes.finish().to_bytes());
        let [iris, literals, texts] = trees.map(|strings| strings.len());
        let (triple_terms, blank_nodes) = (self.triples, self.blank_nodes);
        Ok(DictionaryCounts { iris, literals, texts, triple_terms, blank_nodes })
    }
}

/// Numbers of terms in the dictionary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DictionaryCounts {
    /// IRIs.
    pub iris: u64,
    /// Literals of up to 256 bytes that are not carried in their ids; in databases of graph format
    /// 1 of up to 64.
    pub literals: u64,
    /// Literals above that length.
    pub texts: u64,
    /// Triple terms.
    pub triple_terms: u64,
    /// Blank nodes.
    pub blank_nodes: u64,
}
