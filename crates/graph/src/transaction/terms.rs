//! Ids for the terms of a batch: all are looked up together, and new ones are added.
//!
//! 1. inline terms need no dictionary; blank nodes get the next numbers;
//! 2. the others are looked up in the hash trees, tree by tree, in one sorted pass, and verified;
//! 3. terms that are not found get the next numbers in the order of the batch: strings are
//!    appended, hash rows inserted;
//! 4. triple terms follow, by the ids of the terms in them (`triple_terms`).

use std::sync::Arc;

use rustc_hash::FxHashMap;
use snowmelt_store::{Changes, StringTree, TupleTree};

use crate::database::state::GraphState;
use crate::dict::code::{Annotation, Code, CodeSource, PLAIN};
use crate::dict::prefix::PrefixEncoder;
use crate::dict::{Entry, Place, Tree, index_hash_of, place};
use crate::error::{GraphError, Result};
use crate::input::hash::TermHash;
use crate::input::intern::{LocalTerm, Need, Parsed, position};
use crate::session::resolve::WantedEntries;
use crate::term::inline::decimal_like;
use crate::term::{MOST_TRIPLE_LEVELS, TermId, TermKind};
use crate::transaction::Transaction;

/// Blank nodes by label, over the batches of one document or operation.
#[derive(Default)]
pub struct BlankNodes {
    known: FxHashMap<TermHash, TermId>,
}

impl BlankNodes {
    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.known.capacity() * (size_of::<(TermHash, TermId)>() + 1)
    }
}

/// Dictionary strings of terms for which the batch does not hold them.
type Owned = FxHashMap<usize, Vec<u8>>;

impl Transaction {
    /// A blank node that is in no quad yet.
    pub fn new_blank_node(&mut self) -> TermId {
        let meta = &mut self.state_mut().meta;
        meta.blank_nodes += 1;
        TermId::blank(meta.blank_nodes - 1)
    }

    /// The quads of a batch as ids, subject, predicate, object, graph; new terms are added to
    /// the dictionary.
    pub(crate) fn resolve_parsed(
        &mut self,
        parsed: &Parsed,
        blanks: &mut BlankNodes,
    ) -> Result<Vec<[u64; 4]>> {
        let most = self.db.database().store().config().longest_string_bytes;
        if parsed.longest > most {
            return Err(GraphError::TermTooLong { bytes: parsed.longest, most });
        }
        if parsed.too_deep().is_some() {
            return Err(GraphError::TooDeep { most: MOST_TRIPLE_LEVELS });
        }
        let ids = self.term_ids(parsed, blanks)?;
        assert_eq!(ids.len(), parsed.terms.len(), "an id for every term of the chunk");
        let id = |reference: u64| position(reference).map_or(reference, |at| ids[at as usize].0);
        Ok(parsed.rows.iter().map(|row| row.map(id)).collect())
    }

    fn term_ids(&mut self, parsed: &Parsed, blanks: &mut BlankNodes) -> Result<Vec<TermId>> {
        let mut found = vec![None; parsed.terms.len()];
        let mut entries: Vec<Option<(TermKind, u16)>> = vec![None; parsed.terms.len()];
        let mut owned = Owned::default();
        for (at, term) in parsed.terms.iter().enumerate() {
            match self.place_term(parsed, at, term, &mut owned, blanks)? {
                Placed::Id(id) => found[at] = Some(id),
                Placed::Entry(kind, code) => entries[at] = Some((kind, code)),
                Placed::Triple => {}
            }
        }
        let string = |at: usize| owned.get(&at).map_or(parsed.bytes(parsed.terms[at].lexical), |s| &s[..]);
        let entry = |at: usize| entries[at].map(|(kind, code)| Entry { kind, code, string: string(at) });
        let mut wanted = WantedEntries::default();
        for at in 0..entries.len() {
            if let Some(entry) = entry(at) {
                wanted.push(entry, at, &self.state);
            }
        }
        self.session().find(wanted, &mut found)?;
        let missing: Vec<(usize, Entry<'_>)> = (0..found.len())
            .filter(|at| found[*at].is_none())
            .filter_map(|at| Some((at, entry(at)?)))
            .collect();
        for tree in Tree::ALL {
            let of_tree: Vec<_> = missing.iter().filter(|(_, entry)| entry.tree() == tree).copied().collect();
            if !of_tree.is_empty() {
                self.add_terms(tree, parsed, &of_tree, &mut found)?;
            }
        }
        if !parsed.triples.is_empty() {
            self.triple_ids(parsed, &mut found)?;
        }
        Ok(found.into_iter().map(|id| id.expect("every term was found or added")).collect())
    }

    /// The place of a term. Gives codes to new languages and datatypes, and numbers to blank
    /// nodes.
    fn place_term(
        &mut self,
        parsed: &Parsed,
        at: usize,
        term: &LocalTerm,
        owned: &mut Owned,
        blanks: &mut BlankNodes,
    ) -> Result<Placed> {
        let annotation = parsed.annotations[term.annotation as usize].as_ref();
        let kind = match term.need {
            Need::Number(TermKind::Blank) => {
                let node = *blanks.known.entry(term.hash).or_insert_with(|| self.new_blank_node());
                return Ok(Placed::Id(node));
            }
            Need::Number(TermKind::Iri) => return Ok(Placed::Entry(TermKind::Iri, 0)),
            Need::Number(TermKind::Triple) => return Ok(Placed::Triple),
            Need::Number(kind) => kind,
            Need::Code(body) => match self.decimal_code(annotation.datatype()) {
                Code::Is(code) => return Ok(Placed::Id(decimal_like(code, body))),
                Code::Full | Code::Unknown => TermKind::Literal,
            },
        };
        if annotation.direction().is_some() && !self.state.meta.format.has_rdf_12() {
            let meta = &mut self.state_mut().meta;
            meta.format = meta.format.with_rdf_12();
        }
        let format = self.state.meta.format;
        let kind = format.kind_by_length(kind, term.lexical.len());
        match self.code(annotation) {
            Code::Is(code) => Ok(Placed::Entry(kind, if kind.has_code() { code } else { PLAIN })),
            Code::Full | Code::Unknown => {
                // Rare: the table is full. The string is what the dictionary's own rules make
                // of the term.
                let lexical =
                    std::str::from_utf8(parsed.bytes(term.lexical)).expect("parsers hand over UTF-8");
                let whole = annotation.literal(lexical);
                let mut string = Vec::new();
                let Place::Entry(entry) = place(&whole, format, &mut &*self.state.codes, &mut string) else {
                    unreachable!("a literal that needs a number and whose code does not fit has an entry")
                };
                let (kind, code) = (entry.kind, entry.code);
                owned.insert(at, string);
                Ok(Placed::Entry(kind, code))
            }
        }
    }

    /// The code of a language or datatype, assigned now if it has none.
    fn code(&mut self, annotation: Annotation<'_>) -> Code<u16> {
        match self.state.codes.find_annotation(annotation) {
            Code::Unknown => Arc::make_mut(&mut self.state_mut().codes).annotation(annotation),
            known => known,
        }
    }

    /// The code of a datatype with decimal-like literals, assigned now if it has none.
    fn decimal_code(&mut self, datatype: &str) -> Code<u8> {
        match self.state.codes.find_decimal_datatype(datatype) {
            Code::Unknown => Arc::make_mut(&mut self.state_mut().codes).decimal_datatype(datatype),
            known => known,
        }
    }

    /// Adds the missing terms of one tree; a term may be among them twice.
    fn add_terms(
        &mut self,
        tree: Tree,
        parsed: &Parsed,
        missing: &[(usize, Entry<'_>)],
        found: &mut [Option<TermId>],
    ) -> Result<()> {
        let first = self.state.strings(tree).map_or(0, |strings| strings.len());
        let mut fresh: Vec<&Entry<'_>> = Vec::with_capacity(missing.len());
        let mut numbers: FxHashMap<TermHash, u64> = FxHashMap::default();
        for (at, entry) in missing {
            let number = *numbers.entry(parsed.terms[*at].hash).or_insert_with(|| {
                fresh.push(entry);
                first + fresh.len() as u64 - 1
            });
            found[*at] = Some(entry.id(number));
        }
        assert_eq!(numbers.len(), fresh.len(), "one string per new number");
        self.append_strings(tree, &fresh)?;
        self.insert_hashes(tree, first, &fresh)?;
        let strings = self.state.strings(tree).map_or(0, |strings| strings.len());
        let hashes = self.state.hashes(tree).map_or(0, |hashes| hashes.rows());
        assert_eq!(strings, first + fresh.len() as u64, "each new string got its number");
        assert_eq!(strings, hashes, "one hash per string: the next open refuses anything else");
        Ok(())
    }

    fn append_strings(&mut self, tree: Tree, fresh: &[&Entry<'_>]) -> Result<()> {
        let mut coded = Vec::new();
        if tree == Tree::Iri {
            coded = self.encode_iris(fresh);
        }
        let strings: Vec<&[u8]> = match tree {
            Tree::Iri => coded.iter().map(|s| &s[..]).collect(),
            _ => fresh.iter().map(|entry| entry.string).collect(),
        };
        let suffix = self.suffix();
        let state = Arc::make_mut(&mut self.state);
        let slot = &mut state.strings[tree as usize];
        let handle = match slot {
            Some(handle) => handle,
            None => {
                let name = format!("{}{suffix}", tree.name());
                slot.insert(StringTree::create(self.txn.trees(), &name)?)
            }
        };
        let expected = handle.len();
        let first = handle.append(self.txn.trees(), &strings)?;
        if first != expected {
            let why = format!("its first new string has number {first} instead of {expected}");
            return Err(GraphError::record(tree.name(), why));
        }
        Ok(())
    }

    /// The strings of IRIs, their prefixes replaced by numbers; new prefixes get numbers.
    fn encode_iris(&mut self, fresh: &[&Entry<'_>]) -> Vec<Vec<u8>> {
        let known = self.state.prefixes.len();
        let encoder = self.prefixes.get_or_insert_with(|| {
            self.db
                .take_prefix_encoder(self.state.dictionary(), known)
                .unwrap_or_else(|| PrefixEncoder::with_known(&self.state.prefixes))
        });
        let encode = |entry: &&Entry<'_>| {
            let iri = std::str::from_utf8(entry.string).expect("parsers hand over UTF-8");
            let mut string = Vec::with_capacity(iri.len() + 1);
            encoder.encode(iri, &mut string);
            string
        };
        let coded = fresh.iter().map(encode).collect();
        if encoder.len() > known {
            let table = Arc::new(encoder.table());
            self.state_mut().prefixes = table;
        }
        coded
    }

    fn insert_hashes(&mut self, tree: Tree, first: u64, fresh: &[&Entry<'_>]) -> Result<()> {
        let bits = self.state.meta.hash_bits;
        let numbered = fresh.iter().zip(first..);
        let mut rows: Vec<[u64; 3]> =
            numbered.map(|(e, number)| [index_hash_of(e.hash(), bits), number, u64::from(e.code)]).collect();
        rows.sort_unstable();
        let arity = tree.hash_arity();
        let changes = Changes {
            cols: (0..arity).map(|c| rows.iter().map(|row| row[c]).collect()).collect(),
            insert: vec![true; rows.len()],
        };
        let suffix = self.suffix();
        let state: &mut GraphState = Arc::make_mut(&mut self.state);
        let slot = &mut state.hashes[tree as usize];
        let handle = match slot {
            Some(handle) => handle,
            None => {
                let name = format!("{}{suffix}", tree.hash_name());
                slot.insert(TupleTree::create(self.txn.trees(), &name, arity)?)
            }
        };
        let applied = handle.apply(self.txn.trees(), &changes)?;
        if applied.inserted != rows.len() as u64 {
            let why = format!(
                "{} of {} new rows were there before",
                rows.len() as u64 - applied.inserted,
                rows.len()
            );
            return Err(GraphError::record(tree.hash_name(), why));
        }
        Ok(())
    }
}

/// Place of a term of a batch.
enum Placed {
    Id(TermId),
    /// kind and code of its dictionary entry
    Entry(TermKind, u16),
    /// by the ids of the terms in it
    Triple,
}
