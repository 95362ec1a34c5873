//! Quads: templates of DELETE and INSERT, and data.

use super::terms::Rules;
use super::triples::Part;
use super::{Parsed, Parser};
use crate::error::ErrorCode;
use crate::lexer::{Sign, Span};
use crate::tree::{Iri, Operation, Quad, QuadPattern, Slot, Term, TermTriple, TriplePattern};

const INSERT_DATA: Rules = Rules::simple(Some("INSERT DATA can have no variables"), None);
const DELETE_DATA: Rules =
    Rules::simple(Some("DELETE DATA can have no variables"), Some("DELETE DATA can have no blank nodes"));

/// Data that wait to go out.
#[derive(Default)]
pub(super) struct Data {
    quads: Vec<Quad>,
    is_insert: bool,
    graph: Option<Iri>,
    /// where the triples of the present subject begin
    pub subject: Span,
    /// data of the present operation have gone
    has_begun: bool,
}

impl Parser<'_> {
    /// `{ quads }`
    pub(super) fn quads(&mut self) -> Parsed<Vec<QuadPattern>> {
        let mut quads = Vec::new();
        self.sign(Sign::OpenBrace)?;
        loop {
            self.quads_of(None, &mut quads)?;
            if !self.cursor.takes_word("GRAPH") {
                break;
            }
            let graph = self.var_or_iri()?;
            self.sign(Sign::OpenBrace)?;
            self.quads_of(Some(graph), &mut quads)?;
            self.sign(Sign::CloseBrace)?;
            self.cursor.takes(Sign::Dot);
        }
        self.sign(Sign::CloseBrace)?;
        Ok(quads)
    }

    fn quads_of(&mut self, graph: Option<Slot>, out: &mut Vec<QuadPattern>) -> Parsed<()> {
        if let Some(data) = &mut self.unit.data {
            data.graph = match &graph {
                Some(Slot::Term(Term::Iri(graph))) => Some(graph.clone()),
                _ => None,
            };
        }
        let triples = self.simple_triples()?;
        self.weigh(triples.len() * graph.as_ref().map_or(0, Slot::bytes))?;
        out.extend(triples.into_iter().map(|triple| QuadPattern { triple, graph: graph.clone() }));
        Ok(())
    }

    /// Triples where there are no paths.
    pub(super) fn simple_triples(&mut self) -> Parsed<Vec<TriplePattern>> {
        let triple = |part| if let Part::Triple(triple) = part { Some(triple) } else { None };
        Ok(self.triples()?.into_iter().filter_map(triple).collect())
    }

    /// The data of an operation, which go out in parts.
    pub(super) fn data(&mut self, is_insert: bool) -> Parsed<()> {
        self.unit.data = Some(Data { is_insert, ..Data::default() });
        self.under(if is_insert { INSERT_DATA } else { DELETE_DATA }, Self::quads)?;
        self.emit_data()?;
        self.unit.data = None;
        Ok(())
    }

    /// A triple becomes a quad of data; they go out when there are enough of them.
    pub(super) fn add_data(&mut self, part: Part) -> Parsed<()> {
        let most = self.output.as_ref().map_or(usize::MAX, |output| output.most_quads);
        let Some(data) = &mut self.unit.data else { return Ok(()) };
        let triple = if let Part::Triple(triple) = part { ground(triple) } else { None };
        let Some(triple) = triple else {
            let message = "in data a subject is an IRI or a blank node, not a literal or triple term";
            let subject = data.subject;
            return self.wrong(subject, ErrorCode::Unexpected, message);
        };
        data.quads.push(Quad { triple, graph: data.graph.clone() });
        let (count, graph) = (data.quads.len(), data.graph.as_ref().map_or(0, |graph| graph.len()));
        self.weigh(graph)?;
        let is_stream = most < usize::MAX;
        let is_full = count >= most || self.unit.measure.bytes >= self.options.limits.tree_bytes / 2;
        if is_stream && is_full { self.emit_data() } else { Ok(()) }
    }

    fn emit_data(&mut self) -> Parsed<()> {
        let Some(data) = &mut self.unit.data else { return Ok(()) };
        let goes_on = std::mem::replace(&mut data.has_begun, true);
        let quads = std::mem::take(&mut data.quads);
        if goes_on && quads.is_empty() {
            return Ok(());
        }
        let kind = if data.is_insert { Operation::InsertData } else { Operation::DeleteData };
        self.emit(kind(quads), goes_on)?;
        self.unit.measure.bytes = 0;
        Ok(())
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
