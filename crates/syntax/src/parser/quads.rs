//! Quads: templates of DELETE and INSERT, and data.

use super::triples::{Part, Predicates};
use super::{Output, Parsed, Parser, TermRules};
use crate::error::ErrorCode;
use crate::lexer::Sign;
use crate::tree::{Operation, Quad, QuadPattern, Slot, Term, TermTriple, TriplePattern};

impl Parser<'_> {
    /// Triples with dots between them.
    pub(super) fn template_triples(&mut self, out: &mut Vec<Part>) -> Parsed<()> {
        let mut has_dot = true;
        while self.begins_triples() {
            if !has_dot {
                self.cursor.expect(".");
                return self.unexpected();
            }
            self.same_subject(Predicates::Simple, out)?;
            has_dot = self.cursor.takes(Sign::Dot);
        }
        Ok(())
    }

    /// Triples without paths, as they are where none are parsed.
    pub(super) fn simple(&mut self, parts: Vec<Part>) -> Parsed<Vec<TriplePattern>> {
        let mut triples = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Part::Triple(triple) => triples.push(triple),
                Part::Path { .. } => return self.unexpected(),
            }
        }
        Ok(triples)
    }

    /// `{ quads }` with such terms.
    pub(super) fn quad_patterns(&mut self, rules: TermRules) -> Parsed<Vec<QuadPattern>> {
        let mut quads = Vec::new();
        self.rules = rules;
        self.labels.next_pattern();
        self.quads(&mut quads)?;
        self.rules = super::ANY_TERM;
        self.labels.patterns.clear();
        Ok(quads)
    }

    fn quads(&mut self, out: &mut Vec<QuadPattern>) -> Parsed<()> {
        self.sign(Sign::OpenBrace)?;
        loop {
            self.quads_of(None, out)?;
            if !self.cursor.takes_word("GRAPH") {
                break;
            }
            let graph = self.var_or_iri()?;
            self.sign(Sign::OpenBrace)?;
            self.quads_of(Some(graph), out)?;
            self.sign(Sign::CloseBrace)?;
            self.cursor.takes(Sign::Dot);
        }
        self.sign(Sign::CloseBrace)
    }

    fn quads_of(&mut self, graph: Option<Slot>, out: &mut Vec<QuadPattern>) -> Parsed<()> {
        if let Some(output) = self.output.as_mut().filter(|output| output.is_data) {
            output.graph = match &graph {
                Some(Slot::Term(Term::Iri(graph))) => Some(graph.clone()),
                _ => None,
            };
        }
        let mut parts = Vec::new();
        self.template_triples(&mut parts)?;
        let triples = self.simple(parts)?;
        out.extend(triples.into_iter().map(|triple| QuadPattern { triple, graph: graph.clone() }));
        Ok(())
    }

    /// The data of an operation, which go out in parts.
    pub(super) fn data(&mut self, is_insert: bool, start: usize) -> Parsed<()> {
        const INSERT: TermRules =
            TermRules { no_var: Some("INSERT DATA can have no variables"), no_blank: None };
        const DELETE: TermRules = TermRules {
            no_var: Some("DELETE DATA can have no variables"),
            no_blank: Some("DELETE DATA can have no blank nodes"),
        };
        let Some(output) = &mut self.output else { return self.unexpected() };
        output.quads.clear();
        (output.is_data, output.is_insert, output.has_begun, output.start) = (true, is_insert, false, start);
        self.rules = if is_insert { INSERT } else { DELETE };
        let parsed = self.quads(&mut Vec::new());
        self.rules = super::ANY_TERM;
        if let Some(output) = &mut self.output {
            output.is_data = false;
        }
        parsed?;
        self.emit_data()
    }

    /// Triples of data become quads, and go out when there are enough of them.
    pub(super) fn flush(&mut self, parts: &mut Vec<Part>) -> Parsed<()> {
        let Some(Output { is_data: true, graph, .. }) = &self.output else { return Ok(()) };
        let graph = graph.clone();
        for part in parts.drain(..) {
            let quad = match part {
                Part::Triple(triple) => ground(triple),
                Part::Path { .. } => None,
            };
            let Some(TermTriple { subject, predicate, object }) = quad else {
                let message =
                    "in data a subject is an IRI or a blank node, not a literal or triple term".to_owned();
                return self.wrong(self.subject, ErrorCode::Unexpected, message);
            };
            if let Some(output) = &mut self.output {
                output.quads.push(Quad { subject, predicate, object, graph: graph.clone() });
            }
        }
        let is_full = |output: &Output<'_>| output.quads.len() >= output.most_quads;
        if self.output.as_ref().is_some_and(is_full) { self.emit_data() } else { Ok(()) }
    }

    fn emit_data(&mut self) -> Parsed<()> {
        let Some(output) = &mut self.output else { return Ok(()) };
        let goes_on = std::mem::replace(&mut output.has_begun, true);
        let quads = std::mem::take(&mut output.quads);
        if goes_on && quads.is_empty() {
            return Ok(());
        }
        let start = output.start;
        let operation =
            if output.is_insert { Operation::InsertData(quads) } else { Operation::DeleteData(quads) };
        self.emit(operation, start, goes_on)
    }
}

/// A triple of terms; `None` if it has another thing, or a subject that can be none.
fn ground(triple: TriplePattern) -> Option<TermTriple> {
    let Slot::Term(Term::Iri(predicate)) = triple.predicate else { return None };
    let subject = ground_term(triple.subject)?;
    let is_subject = matches!(subject, Term::Iri(_) | Term::Blank(_));
    is_subject.then_some(TermTriple { subject, predicate, object: ground_term(triple.object)? })
}

fn ground_term(slot: Slot) -> Option<Term> {
    match slot {
        Slot::Term(term) => Some(term),
        Slot::Triple(triple) => Some(Term::Triple(Box::new(ground(*triple)?))),
        Slot::Var(_) | Slot::Param(_) => None,
    }
}
