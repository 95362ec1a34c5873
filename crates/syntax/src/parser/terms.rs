//! Variables, literals, blank nodes, triple terms.

use twox_hash::XxHash3_128;

use super::{Parsed, Parser};
use crate::error::ErrorCode;
use crate::lexer::{Kind, Sign};
use crate::shape::Constant;
use crate::tree::{Blank, Literal, LiteralKind, Slot, Term, TriplePattern, Var};

/// The datatype of `true` and `false`.
const XSD_BOOLEAN: &str = "http://www.w3.org/2001/XMLSchema#boolean";

impl Parser<'_> {
    /// Takes a variable, if one stands here.
    pub(super) fn var(&mut self) -> Parsed<Option<Var>> {
        if self.cursor.kind() != Kind::Var {
            self.cursor.expect("a variable");
            return Ok(None);
        }
        let span = self.cursor.span();
        if let Some(why) = self.rules.no_var {
            return self.wrong(span, ErrorCode::Scope, why.to_owned());
        }
        let name = self.cursor.text().get(1..).unwrap_or_default().to_owned();
        let var = self.intern(&name)?;
        if let Some(uses) = &mut self.uses {
            uses.push((var, span));
        }
        self.cursor.advance();
        Ok(Some(var))
    }

    /// Takes a variable that must stand here.
    pub(super) fn wanted_var(&mut self) -> Parsed<Var> {
        match self.var()? {
            Some(var) => Ok(var),
            None => self.unexpected(),
        }
    }

    pub(super) fn var_or_iri(&mut self) -> Parsed<Slot> {
        if let Some(var) = self.var()? {
            return Ok(Slot::Var(var));
        }
        match self.iri_slot()? {
            Some(iri) => Ok(iri),
            None => self.unexpected(),
        }
    }

    /// Takes a literal, if one stands here.
    pub(super) fn literal(&mut self) -> Parsed<Option<Slot>> {
        let span = self.cursor.span();
        let literal = match self.cursor.kind() {
            Kind::Number(_) => self.cursor.number(),
            Kind::Str => match self.cursor.string() {
                Some(Constant::Param(number)) => Constant::Param(number),
                Some(Constant::Fixed(literal)) => Constant::Fixed(self.datatype(literal)?),
                None => {
                    let message =
                        "the string has an escape, a language or a datatype that is none".to_owned();
                    return self.wrong(span, ErrorCode::Literal, message);
                }
            },
            Kind::Word if self.is_boolean() => {
                let value = self.cursor.text().to_ascii_lowercase();
                self.cursor.advance();
                Constant::Fixed(Literal::typed(value, XSD_BOOLEAN))
            }
            _ => {
                self.cursor.expect("a literal");
                return Ok(None);
            }
        };
        Ok(Some(match literal {
            Constant::Param(number) => Slot::Param(number),
            Constant::Fixed(literal) => {
                if matches!(literal.kind, LiteralKind::Directed(..)) {
                    self.first.direction.get_or_insert(span);
                }
                Slot::Term(Term::Literal(literal))
            }
        }))
    }

    fn is_boolean(&self) -> bool {
        let text = self.cursor.text();
        text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")
    }

    /// Takes a blank node with a label, if one stands here.
    fn label(&mut self) -> Parsed<Option<Slot>> {
        if self.cursor.kind() != Kind::Blank {
            return Ok(None);
        }
        let span = self.cursor.span();
        if let Some(why) = self.rules.no_blank {
            return self.wrong(span, ErrorCode::Blank, why.to_owned());
        }
        let label: Box<str> = self.cursor.text().get(2..).unwrap_or_default().into();
        if !self.may_use(&label)? {
            let message = format!("the blank node _:{label} has the label of one in another graph pattern");
            return self.wrong(span, ErrorCode::Blank, message);
        }
        self.cursor.advance();
        Ok(Some(Slot::Term(Term::Blank(Blank::Label(label)))))
    }

    /// Whether a label is new, or one of the present pattern.
    fn may_use(&mut self, label: &str) -> Parsed<bool> {
        let labels = &mut self.labels;
        if !self.output.as_ref().is_some_and(|output| output.is_data) {
            let pattern = labels.pattern;
            if let Some(used) = labels.patterns.get(label) {
                return Ok(*used == pattern);
            }
            labels.patterns.insert(label.into(), pattern);
            return Ok(true);
        }
        let operation = labels.operation;
        let used = *labels.data.entry(XxHash3_128::oneshot(label.as_bytes())).or_insert(operation);
        if labels.data.len() > self.options.limits.labels {
            return self.too_much("update_labels", self.options.limits.labels);
        }
        Ok(used == operation)
    }

    /// Takes a variable, an IRI, a literal, a label or a triple term, if one stands here.
    pub(super) fn simple_term(&mut self) -> Parsed<Option<Slot>> {
        match self.cursor.kind() {
            Kind::Var => Ok(self.var()?.map(Slot::Var)),
            Kind::Iri | Kind::Name => self.iri_slot(),
            Kind::Blank => self.label(),
            Kind::Sign(Sign::OpenTriple) => self.triple_term().map(Some),
            Kind::Str | Kind::Number(_) | Kind::Word => self.literal(),
            _ => Ok(None),
        }
    }

    /// A term of a triple term or a reified triple.
    pub(super) fn wanted_term(&mut self, what: &'static str) -> Parsed<Slot> {
        // `[]` is a blank node without triples
        if self.cursor.kind() == Kind::Sign(Sign::OpenBracket) {
            self.cursor.advance();
            self.sign(Sign::CloseBracket)?;
            return self.fresh_blank();
        }
        match self.simple_term()? {
            Some(term) => Ok(term),
            None => {
                self.cursor.expect(what);
                self.unexpected()
            }
        }
    }

    /// `<<( subject predicate object )>>`
    fn triple_term(&mut self) -> Parsed<Slot> {
        let span = self.cursor.span();
        self.first.triple_term.get_or_insert(span);
        self.nested(|parser| {
            parser.cursor.advance();
            let subject = parser.wanted_term("a subject")?;
            let predicate = parser.wanted_verb()?;
            let object = parser.wanted_term("an object")?;
            parser.sign(Sign::CloseTriple)?;
            Ok(Slot::Triple(Box::new(TriplePattern { subject, predicate, object })))
        })
    }

    pub(super) fn wanted_verb(&mut self) -> Parsed<Slot> {
        match self.verb()? {
            Some(verb) => Ok(verb),
            None => {
                self.cursor.expect("a predicate");
                self.unexpected()
            }
        }
    }
}
