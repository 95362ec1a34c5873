//! Global numbers for the terms of all chunks, assigned by first occurrence.
//!
//! Chunks come in input order. As long as the [`TermTable`] has room, a term is either known
//! there or new: a new one gets the next number, and its string goes to the dictionary at once.
//! So a load whose terms fit in the table reads every string once and writes it once.
//!
//! When the table is full, the terms in it stay known (the early ones are the frequent ones),
//! and everything else waits: see [`super::waiting`]. Which terms wait depends on memory; their
//! numbers do not, because waiting terms are numbered in the order they were met, after all
//! that did not wait.
//!
//! A triple term is known by the hashes of the terms in it. A new one hands on its row, of its own
//! id and theirs, once.

use super::dictionary::Dictionary;
use super::table::TermTable;
use super::waiting::Waiting;
use crate::input::error::LoadError;
use crate::input::intern::{LocalTerm, Need, Parsed, Ref, local, position};
use crate::term::inline::decimal_like;
use crate::term::{TermId, TermKind};

/// Gives ids to the terms of chunks.
pub(super) struct Numbering<'a> {
    pub(super) dictionary: Dictionary,
    table: TermTable,
    /// Terms that found the table full.
    pub(super) waiting: Option<Waiting>,
    /// Makes [`Numbering::waiting`] when it is needed.
    start_waiting: Box<dyn Fn() -> Result<Waiting, LoadError> + Send + 'a>,
    /// Codes of the chunk's annotations, filled on demand.
    codes: Vec<Option<u16>>,
}

impl<'a> Numbering<'a> {
    /// Numbers terms with a table of at most `table_bytes`.
    pub(super) fn new(
        dictionary: Dictionary,
        table_bytes: u64,
        start_waiting: impl Fn() -> Result<Waiting, LoadError> + Send + 'a,
    ) -> Self {
        Numbering {
            dictionary,
            table: TermTable::new(table_bytes),
            waiting: None,
            start_waiting: Box::new(start_waiting),
            codes: Vec::new(),
        }
    }

    /// Fills `parsed.ids` with the id of every term of the chunk, or its waiting position.
    pub(super) fn number(&mut self, parsed: &mut Parsed) -> Result<(), LoadError> {
        if let Some(waiting) = &mut self.waiting {
            waiting.begin_chunk(parsed.terms.len())?;
        }
        self.codes.clear();
        self.codes.resize(parsed.annotations.len(), None);
        let mut ids = std::mem::take(&mut parsed.ids);
        ids.clear();
        ids.reserve(parsed.terms.len());
        for term in &parsed.terms {
            ids.push(match term.need {
                Need::Number(TermKind::Triple) => self.triple(term, parsed, &ids)?,
                _ => self.id(term, parsed)?,
            });
        }
        assert_eq!(ids.len(), parsed.terms.len(), "an id for every term of the chunk");
        parsed.ids = ids;
        parsed.part = self.waiting.as_ref().map_or(0, Waiting::part);
        Ok(())
    }

    fn id(&mut self, term: &LocalTerm, parsed: &Parsed) -> Result<Ref, LoadError> {
        let annotation = &parsed.annotations[term.annotation as usize];
        let kind = match term.need {
            Need::Number(kind) => kind,
            Need::Code(body) => match self.dictionary.decimal_code(annotation) {
                Some(code) => return Ok(decimal_like(code, body).0),
                None => TermKind::Literal,
            },
        };
        let kind = self.dictionary.format().kind_by_length(kind, term.lexical.len());
        let code = if kind.has_code() { self.code(term.annotation, annotation) } else { 0 };
        if let Some(number) = self.table.get(term.hash) {
            return Ok(TermId::dictionary(kind, code, number).0);
        }
        let lexical = parsed.bytes(term.lexical);
        if self.waiting.is_none() && self.table.has_room(term.hash) {
            let number = self.dictionary.number(kind, code, annotation, lexical)?;
            self.table.insert(term.hash, number);
            return Ok(TermId::dictionary(kind, code, number).0);
        }
        let waiting = self.waiting(parsed)?;
        Ok(local(waiting.position(term.hash, kind, code, annotation, lexical)?))
    }

    /// The id of a triple term. `ids` are those of the terms before it.
    fn triple(&mut self, term: &LocalTerm, parsed: &Parsed, ids: &[Ref]) -> Result<Ref, LoadError> {
        if let Some(number) = self.table.get(term.hash) {
            return Ok(TermId::triple(number).0);
        }
        let id = |reference: Ref| position(reference).map_or(reference, |at| ids[at as usize]);
        let [s, p, o] = parsed.triple(term).terms.map(id);
        if self.waiting.is_none() && self.table.has_room(term.hash) {
            let number = self.dictionary.next_triple();
            self.dictionary.triple_row([TermId::triple(number).0, s, p, o])?;
            self.table.insert(term.hash, number);
            return Ok(TermId::triple(number).0);
        }
        Ok(local(self.waiting(parsed)?.triple(term.hash, [s, p, o])?))
    }

    /// The waiting terms, begun in this chunk if there were none.
    fn waiting(&mut self, parsed: &Parsed) -> Result<&mut Waiting, LoadError> {
        if self.waiting.is_none() {
            let mut waiting = (self.start_waiting)()?;
            waiting.begin_chunk(parsed.terms.len())?;
            self.waiting = Some(waiting);
        }
        Ok(self.waiting.as_mut().expect("begun above"))
    }

    fn code(&mut self, index: u32, annotation: &crate::input::intern::OwnAnnotation) -> u16 {
        let known = &mut self.codes[index as usize];
        *known.get_or_insert_with(|| self.dictionary.code(annotation))
    }
}
