//! Operations of updates.

use super::errors::{FORMS, OPERATIONS};
use super::terms::Rules;
use super::{Parsed, Parser, Unit};
use crate::error::{ErrorCode, SyntaxError};
use crate::lexer::{Kind, Sign, Span};
use crate::tree::{
    Dataset, GraphPattern, GraphTarget, Iri, Modify, Operation, QuadPattern, Slot, Term, TriplePattern,
    UpdateOperation,
};

const TEMPLATE: Rules = Rules::template(None);
const DELETE: Rules = Rules::template(Some("DELETE can have no blank nodes"));
const DELETE_WHERE: Rules = Rules::simple(None, Some("DELETE WHERE can have no blank nodes"));

/// Takes operations while they are parsed; false ends the parse.
pub(super) type Sink<'a> = &'a mut dyn FnMut(UpdateOperation) -> bool;

/// Where operations go.
pub(super) struct Output<'a> {
    sink: Sink<'a>,
    pub most_quads: usize,
    /// the first wrong operation ends the parse
    ends_early: bool,
    pub is_stopped: bool,
}

impl<'a> Parser<'a> {
    /// A whole text, whose operations go into a sink: data in parts of so many quads, or each
    /// operation whole. Only then all its errors are told. The last VERSION comes back.
    pub fn update(&mut self, most_quads: Option<usize>, sink: Sink<'a>) -> Parsed<Option<Box<str>>> {
        let ends_early = most_quads.is_some();
        let most_quads = most_quads.unwrap_or(usize::MAX).max(1);
        self.output = Some(Output { sink, most_quads, ends_early, is_stopped: false });
        let parsed = self.operations();
        self.finished(parsed)?;
        Ok(self.version.take())
    }

    fn operations(&mut self) -> Parsed<()> {
        self.set_base()?;
        loop {
            self.begin_operation();
            if let Err(error) = self.statement() {
                self.go_on(error)?;
            }
            if self.cursor.kind() == Kind::End {
                return Ok(());
            }
            if !self.cursor.takes(Sign::Semicolon) {
                if let Err(error) = self.end() {
                    self.go_on(error)?;
                }
                self.cursor.takes(Sign::Semicolon);
            }
        }
    }

    fn begin_operation(&mut self) {
        self.unit = Unit { start: self.cursor.span().start, ..Unit::default() };
        self.labels.patterns.clear();
        self.labels.operation += 1;
        self.labels.next_pattern();
    }

    /// Declarations with the operation after them, if there is one.
    fn statement(&mut self) -> Parsed<()> {
        self.prologue()?;
        if self.cursor.kind() == Kind::End { Ok(()) } else { self.operation() }
    }

    /// Notes an error and skips to the end of its operation.
    fn go_on(&mut self, error: Box<SyntaxError>) -> Parsed<()> {
        if self.output.as_ref().is_some_and(|output| output.ends_early) || self.is_last(&error) {
            return Err(error);
        }
        while !(self.cursor.open.is_empty() && self.cursor.sees(Sign::Semicolon)) {
            if self.cursor.kind() == Kind::End || self.is_lost() {
                return Err(error);
            }
            self.cursor.advance();
        }
        self.errors.push(*error);
        Ok(())
    }

    fn operation(&mut self) -> Parsed<()> {
        self.unit.start = self.cursor.span().start;
        let Some(word) = self.cursor.takes_one(&OPERATIONS) else {
            return self.no_beginning(&FORMS, "this is a query, not an update");
        };
        match word {
            "INSERT" if self.cursor.takes_word("DATA") => self.data(true),
            "DELETE" if self.cursor.takes_word("DATA") => self.data(false),
            "DELETE" if self.cursor.takes_word("WHERE") => self.delete_where(),
            "INSERT" | "DELETE" => self.modify(word, None),
            "WITH" => {
                let with = self.iri()?;
                let word = self.cursor.takes_one(&["DELETE", "INSERT"]);
                let word = self.wanted(word, "INSERT")?;
                self.modify(word, Some(with))
            }
            _ => self.graph_operation(word),
        }
    }

    /// Operations on whole graphs.
    fn graph_operation(&mut self, word: &str) -> Parsed<()> {
        let is_silent = self.cursor.takes_word("SILENT");
        let operation = match word {
            "LOAD" => {
                let source = self.iri()?;
                let into = if self.cursor.takes_word("INTO") { Some(self.graph_ref()?) } else { None };
                Operation::Load { is_silent, source, into }
            }
            "CLEAR" => Operation::Clear { is_silent, target: self.graph_target()? },
            "DROP" => Operation::Drop { is_silent, target: self.graph_target()? },
            "CREATE" => Operation::Create { is_silent, graph: self.graph_ref()? },
            _ => return self.transfer(is_silent, word),
        };
        self.emit(operation, false)
    }

    /// ADD, COPY and MOVE as other operations, by which the specification defines them.
    fn transfer(&mut self, is_silent: bool, word: &str) -> Parsed<()> {
        let from = self.graph_or_default()?;
        self.word("TO")?;
        let to = self.graph_or_default()?;
        if from == to {
            return Ok(());
        }
        if word != "ADD" {
            self.emit(Operation::Drop { is_silent: true, target: to.clone().into() }, false)?;
        }
        let slot = |graph: Option<Iri>| graph.map(|graph| Slot::Term(Term::Iri(graph)));
        let vars = [self.intern("s")?, self.intern("p")?, self.intern("o")?];
        let [subject, predicate, object] = vars.map(Slot::Var);
        let triple = TriplePattern { subject, predicate, object };
        let pattern = in_graph(slot(from.clone()), triple.clone());
        let insert = vec![QuadPattern { triple, graph: slot(to) }];
        self.emit(Operation::Modify(Modify { insert, pattern, ..Modify::default() }), false)?;
        if word == "MOVE" {
            self.emit(Operation::Drop { is_silent, target: from.into() }, false)?;
        }
        Ok(())
    }

    fn graph_ref(&mut self) -> Parsed<Iri> {
        self.word("GRAPH")?;
        self.iri()
    }

    fn graph_target(&mut self) -> Parsed<GraphTarget> {
        Ok(match self.cursor.takes_one(&["DEFAULT", "NAMED", "ALL"]) {
            Some("DEFAULT") => GraphTarget::Default,
            Some("NAMED") => GraphTarget::AllNamed,
            Some(_) => GraphTarget::All,
            None => GraphTarget::Named(self.graph_ref()?),
        })
    }

    fn graph_or_default(&mut self) -> Parsed<Option<Iri>> {
        match self.cursor.takes_one(&["DEFAULT", "GRAPH"]) {
            Some("DEFAULT") => Ok(None),
            _ => self.iri().map(Some),
        }
    }

    /// A template, whose labels are its own.
    fn template_quads(&mut self, rules: Rules) -> Parsed<Vec<QuadPattern>> {
        self.labels.next_pattern();
        let quads = self.under(rules, Self::quads)?;
        self.labels.patterns.clear();
        Ok(quads)
    }

    fn delete_where(&mut self) -> Parsed<()> {
        let delete = self.template_quads(DELETE_WHERE)?;
        let pattern = delete.iter().fold(GraphPattern::default(), |pattern, quad| {
            pattern.joined(in_graph(quad.graph.clone(), quad.triple.clone()))
        });
        self.emit(Operation::Modify(Modify { delete, pattern, ..Modify::default() }), false)
    }

    /// DELETE, INSERT or both, of which the first word is taken.
    fn modify(&mut self, word: &str, with: Option<Iri>) -> Parsed<()> {
        let mut modify = Modify::default();
        if word == "DELETE" {
            modify.delete = self.template_quads(DELETE)?;
        }
        if word == "INSERT" || self.cursor.takes_word("INSERT") {
            modify.insert = self.template_quads(TEMPLATE)?;
        }
        modify.using = self.dataset("USING")?;
        self.word("WHERE")?;
        modify.pattern = self.group_pattern()?.0;
        modify.base = self.base.as_ref().map(|base| base.as_str().into());
        self.weigh(modify.base.as_ref().map_or(0, |base| base.len()))?;
        if let Some(with) = with {
            self.weigh((modify.delete.len() + modify.insert.len()) * with.len())?;
            for quad in modify.delete.iter_mut().chain(&mut modify.insert) {
                quad.graph.get_or_insert_with(|| Slot::Term(Term::Iri(with.clone())));
            }
            modify.using.get_or_insert(Dataset { default: vec![with], named: None });
        }
        self.emit(Operation::Modify(modify), false)
    }

    /// Hands an operation on, unless the text has an error.
    pub(super) fn emit(&mut self, operation: Operation, goes_on: bool) -> Parsed<()> {
        let span = Span { start: self.unit.start, end: self.cursor.last_end };
        self.check_length()?;
        let (names, labels) = (std::mem::take(&mut self.unit.names), self.labels.data.len());
        let Unit { first, measure, .. } = self.unit;
        let Some(output) = self.output.as_mut().filter(|_| self.errors.is_empty()) else { return Ok(()) };
        if (output.sink)(UpdateOperation { operation, span, goes_on, names, first, measure, labels }) {
            return Ok(());
        }
        output.is_stopped = true;
        self.wrong(span, ErrorCode::Unexpected, "the update was ended here")
    }
}

/// A triple as a pattern, in its graph.
fn in_graph(graph: Option<Slot>, triple: TriplePattern) -> GraphPattern {
    let bgp = GraphPattern::Bgp(vec![triple]);
    match graph {
        Some(name) => GraphPattern::Graph { name, inner: Box::new(bgp) },
        None => bgp,
    }
}
