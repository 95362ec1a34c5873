//! Operations of updates.

use super::{ANY_TERM, Output, Parsed, Parser, Sink, TermRules};
use crate::error::{ErrorCode, SyntaxError};
use crate::lexer::{Kind, Sign, Span};
use crate::tree::{
    Dataset, GraphPattern, GraphTarget, Iri, Operation, QuadPattern, Slot, Term, TriplePattern,
    UpdateOperation,
};

/// How the operations of a text leave the parser.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Batches {
    /// each whole; a text with an error is parsed to its end
    Whole,
    /// data in parts of so many quads; the first wrong operation ends it
    Quads(usize),
}

/// The base and version where an update ends.
pub(crate) type Ending = (Option<Iri>, Option<Box<str>>);

impl<'a> Parser<'a> {
    /// A whole text, whose operations go into a sink.
    pub fn update(&mut self, batches: Batches, sink: Sink<'a>) -> Result<Ending, Box<SyntaxError>> {
        let most_quads = match batches {
            Batches::Whole => usize::MAX,
            Batches::Quads(most) => most.max(1),
        };
        self.output = Some(Output {
            sink,
            most_quads,
            quads: Vec::new(),
            is_data: false,
            has_begun: false,
            is_insert: false,
            start: 0,
            graph: None,
            is_stopped: false,
        });
        let parsed = self.operations(batches);
        self.finished(parsed)?;
        Ok((self.base.as_ref().map(|base| base.as_str().into()), self.version.take()))
    }
}

impl Parser<'_> {
    fn operations(&mut self, batches: Batches) -> Parsed<()> {
        self.set_base()?;
        loop {
            self.begin_operation();
            if let Err(error) = self.statement() {
                self.go_on(error, batches)?;
            }
            if self.cursor.kind() == Kind::End {
                return Ok(());
            }
            if !self.cursor.takes(Sign::Semicolon) {
                self.cursor.expect("the end");
                let Err(error) = self.unexpected::<()>() else { continue };
                self.go_on(error, batches)?;
                self.cursor.takes(Sign::Semicolon);
            }
        }
    }

    /// Declarations with the operation after them, if there is one.
    fn statement(&mut self) -> Parsed<()> {
        self.prologue()?;
        if self.cursor.kind() == Kind::End { Ok(()) } else { self.operation() }
    }

    /// Notes an error and skips to the end of its operation.
    fn go_on(&mut self, error: Box<SyntaxError>, batches: Batches) -> Parsed<()> {
        if batches != Batches::Whole || self.is_last(&error) {
            return Err(error);
        }
        while !(self.cursor.open.is_empty() && self.cursor.sees(Sign::Semicolon)) {
            if matches!(self.cursor.kind(), Kind::End) || self.is_lost() {
                return Err(error);
            }
            self.cursor.advance();
        }
        self.errors.push(*error);
        Ok(())
    }

    fn operation(&mut self) -> Parsed<()> {
        let start = self.cursor.span().start;
        if self.cursor.takes_word("INSERT") {
            if self.cursor.takes_word("DATA") {
                return self.data(true, start);
            }
            let insert = self.quad_patterns(ANY_TERM)?;
            return self.modify(start, None, Vec::new(), insert);
        }
        if self.cursor.takes_word("DELETE") {
            if self.cursor.takes_word("DATA") {
                return self.data(false, start);
            }
            if self.cursor.takes_word("WHERE") {
                return self.delete_where(start);
            }
            return self.delete(start, None);
        }
        if self.cursor.takes_word("WITH") {
            let with = Some(self.iri()?);
            if self.cursor.takes_word("DELETE") {
                return self.delete(start, with);
            }
            self.word("INSERT")?;
            let insert = self.quad_patterns(ANY_TERM)?;
            return self.modify(start, with, Vec::new(), insert);
        }
        self.graph_operation(start)
    }

    /// Operations on whole graphs.
    fn graph_operation(&mut self, start: usize) -> Parsed<()> {
        if self.cursor.takes_word("LOAD") {
            let is_silent = self.cursor.takes_word("SILENT");
            let source = self.iri()?;
            let into = if self.cursor.takes_word("INTO") { Some(self.graph_ref()?) } else { None };
            return self.emit(Operation::Load { is_silent, source, into }, start, false);
        }
        if self.cursor.takes_word("CLEAR") {
            let is_silent = self.cursor.takes_word("SILENT");
            let target = self.graph_target()?;
            return self.emit(Operation::Clear { is_silent, target }, start, false);
        }
        if self.cursor.takes_word("DROP") {
            let is_silent = self.cursor.takes_word("SILENT");
            let target = self.graph_target()?;
            return self.emit(Operation::Drop { is_silent, target }, start, false);
        }
        if self.cursor.takes_word("CREATE") {
            let is_silent = self.cursor.takes_word("SILENT");
            let graph = self.graph_ref()?;
            return self.emit(Operation::Create { is_silent, graph }, start, false);
        }
        for (word, drops_target, drops_source) in
            [("ADD", false, false), ("COPY", true, false), ("MOVE", true, true)]
        {
            if self.cursor.takes_word(word) {
                return self.transfer(start, drops_target, drops_source);
            }
        }
        self.no_beginning(false)
    }

    /// ADD, COPY and MOVE, which say all they do in other operations.
    fn transfer(&mut self, start: usize, drops_target: bool, drops_source: bool) -> Parsed<()> {
        let is_silent = self.cursor.takes_word("SILENT");
        let from = self.graph_or_default()?;
        self.word("TO")?;
        let to = self.graph_or_default()?;
        if from == to {
            return Ok(());
        }
        if drops_target {
            self.emit(Operation::Drop { is_silent: true, target: to.clone().into() }, start, false)?;
        }
        let (s, p, o) = (self.intern("s")?, self.intern("p")?, self.intern("o")?);
        let triple = TriplePattern { subject: Slot::Var(s), predicate: Slot::Var(p), object: Slot::Var(o) };
        let slot = |graph: Option<Iri>| graph.map(|graph| Slot::Term(Term::Iri(graph)));
        let pattern = in_graph(slot(from.clone()), triple.clone());
        let insert = vec![QuadPattern { triple, graph: slot(to) }];
        self.emit(Operation::Modify { delete: Vec::new(), insert, using: None, pattern }, start, false)?;
        if drops_source {
            self.emit(Operation::Drop { is_silent, target: from.into() }, start, false)?;
        }
        Ok(())
    }

    fn graph_ref(&mut self) -> Parsed<Iri> {
        self.word("GRAPH")?;
        self.iri()
    }

    fn graph_target(&mut self) -> Parsed<GraphTarget> {
        for (word, target) in
            [("DEFAULT", GraphTarget::Default), ("NAMED", GraphTarget::AllNamed), ("ALL", GraphTarget::All)]
        {
            if self.cursor.takes_word(word) {
                return Ok(target);
            }
        }
        self.graph_ref().map(GraphTarget::Named)
    }

    fn graph_or_default(&mut self) -> Parsed<Option<Iri>> {
        if self.cursor.takes_word("DEFAULT") {
            return Ok(None);
        }
        self.cursor.takes_word("GRAPH");
        self.iri().map(Some)
    }

    fn delete_where(&mut self, start: usize) -> Parsed<()> {
        let delete = self.quad_patterns(no_blank("DELETE WHERE can have no blank nodes"))?;
        let pattern = delete.iter().fold(GraphPattern::default(), |pattern, quad| {
            pattern.joined(in_graph(quad.graph.clone(), quad.triple.clone()))
        });
        self.emit(Operation::Modify { delete, insert: Vec::new(), using: None, pattern }, start, false)
    }

    fn delete(&mut self, start: usize, with: Option<Iri>) -> Parsed<()> {
        let delete = self.quad_patterns(no_blank("DELETE can have no blank nodes"))?;
        let insert = match self.cursor.takes_word("INSERT") {
            true => self.quad_patterns(ANY_TERM)?,
            false => Vec::new(),
        };
        self.modify(start, with, delete, insert)
    }

    fn modify(
        &mut self,
        start: usize,
        with: Option<Iri>,
        mut delete: Vec<QuadPattern>,
        mut insert: Vec<QuadPattern>,
    ) -> Parsed<()> {
        let mut using = self.dataset("USING")?;
        self.word("WHERE")?;
        let (pattern, _) = self.group_pattern()?;
        if let Some(with) = with {
            for quad in delete.iter_mut().chain(&mut insert) {
                quad.graph.get_or_insert_with(|| Slot::Term(Term::Iri(with.clone())));
            }
            using = using.or(Some(Dataset { default: vec![with], named: None }));
        }
        self.emit(Operation::Modify { delete, insert, using, pattern }, start, false)
    }

    /// Hands an operation on, unless the text has an error.
    pub(super) fn emit(&mut self, operation: Operation, start: usize, goes_on: bool) -> Parsed<()> {
        let span = Span { start, end: self.cursor.last_end };
        let names = std::mem::take(&mut self.names);
        let Some(output) = &mut self.output else { return Ok(()) };
        if !self.errors.is_empty() {
            return Ok(());
        }
        if (output.sink)(UpdateOperation { operation, span, goes_on, names, first: self.first }) {
            return Ok(());
        }
        output.is_stopped = true;
        self.wrong(span, ErrorCode::Unexpected, "the update was ended here".to_owned())
    }
}

fn no_blank(why: &'static str) -> TermRules {
    TermRules { no_var: None, no_blank: Some(why) }
}

/// A triple as a pattern, in its graph.
fn in_graph(graph: Option<Slot>, triple: TriplePattern) -> GraphPattern {
    let bgp = GraphPattern::Bgp(vec![triple]);
    match graph {
        Some(name) => GraphPattern::Graph { name, inner: Box::new(bgp) },
        None => bgp,
    }
}
