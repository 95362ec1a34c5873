//! Variables, literals, blank nodes, triple terms.

use std::collections::HashMap;

use twox_hash::XxHash3_128;

use super::{Parsed, Parser};
use crate::error::ErrorCode;
use crate::lexer::{Kind, Sign, string_text};
use crate::tree::{Blank, Literal, Slot, Term, TriplePattern, Var};

/// Terms that may stand where the parser is.
#[derive(Clone, Copy, Default)]
pub(super) struct Rules {
    /// why there can be no variable
    pub no_var: Option<&'static str>,
    /// why there can be no blank node
    pub no_blank: Option<&'static str>,
    /// a template or data: there are no paths
    pub has_no_paths: bool,
    /// the subject of a triple term is a variable or an IRI
    pub has_plain_subjects: bool,
    /// triples are no patterns
    pub is_template: bool,
}

impl Rules {
    /// Rules of templates, data and values, with the reasons for those that are not allowed.
    pub const fn simple(no_var: Option<&'static str>, no_blank: Option<&'static str>) -> Self {
        Self { no_var, no_blank, has_no_paths: true, has_plain_subjects: false, is_template: false }
    }

    /// Those of a template that is not a pattern as well.
    pub const fn template(no_blank: Option<&'static str>) -> Self {
        Self { is_template: true, ..Self::simple(None, no_blank) }
    }
}

/// Labels of blank nodes: each belongs to one pattern.
#[derive(Default)]
pub(super) struct Labels {
    pub patterns: HashMap<Box<str>, u64>,
    pub pattern: u64,
    last: u64,
    /// hashes of labels of data, with the number of their operation
    pub data: HashMap<u128, u64>,
    pub operation: u64,
}

impl Labels {
    pub fn next_pattern(&mut self) {
        self.last += 1;
        self.pattern = self.last;
    }
}

impl Parser<'_> {
    /// Parses under other rules.
    pub(super) fn under<T>(&mut self, rules: Rules, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let outer = std::mem::replace(&mut self.unit.rules, rules);
        let parsed = parse(self);
        self.unit.rules = outer;
        parsed
    }

    /// Takes a variable, if one stands here.
    pub(super) fn var(&mut self) -> Parsed<Option<Var>> {
        if self.cursor.kind() != Kind::Var {
            self.cursor.expect(["a variable"]);
            return Ok(None);
        }
        let span = self.cursor.span();
        if let Some(why) = self.unit.rules.no_var {
            return self.wrong(span, ErrorCode::Scope, why);
        }
        let name = self.cursor.text().get(1..).unwrap_or_default().to_owned();
        let var = self.intern(&name)?;
        if let Some(uses) = &mut self.unit.uses {
            uses.push((var, span));
        }
        self.cursor.advance();
        Ok(Some(var))
    }

    /// Takes a variable that must stand here.
    pub(super) fn wanted_var(&mut self) -> Parsed<Var> {
        let var = self.var()?;
        self.wanted(var, "a variable")
    }

    pub(super) fn var_or_iri(&mut self) -> Parsed<Slot> {
        let slot = match self.var()? {
            Some(var) => Some(Slot::Var(var)),
            None => self.iri_slot()?,
        };
        self.wanted(slot, "an IRI")
    }

    /// Takes a literal, if one stands here.
    fn literal(&mut self) -> Parsed<Option<Slot>> {
        let kind = self.cursor.kind();
        if matches!(kind, Kind::Str | Kind::Number(_))
            && let Some(number) = self.param()
        {
            return Ok(Some(Slot::Param(number)));
        }
        let literal = match kind {
            Kind::Str => self.string()?,
            Kind::Number(number) => {
                let literal = Literal::number(self.cursor.text(), number);
                self.cursor.advance();
                literal
            }
            _ if self.is_boolean() => {
                let value = self.cursor.text().to_ascii_lowercase();
                self.cursor.advance();
                Literal::xsd(value, "boolean")
            }
            _ => {
                self.cursor.expect(["a literal"]);
                return Ok(None);
            }
        };
        Ok(Some(Slot::Term(Term::Literal(literal))))
    }

    pub(super) fn is_boolean(&self) -> bool {
        self.cursor.is_word(&["true", "false"])
    }

    /// A string with its language or datatype.
    fn string(&mut self) -> Parsed<Literal> {
        let span = self.cursor.span();
        let value = self.plain_string()?;
        if self.cursor.kind() == Kind::Lang {
            let Some(literal) = Literal::tagged(value, self.cursor.text()) else {
                let direction = self.cursor.text().split_once("--").map(|(_, direction)| direction);
                let message = match direction {
                    None | Some("ltr" | "rtl") => "the string has a language that is none",
                    Some(_) => "the string has a direction that is none; there are ltr and rtl",
                };
                return self.wrong(span, ErrorCode::Literal, message);
            };
            self.cursor.advance();
            return Ok(literal);
        }
        if self.cursor.takes(Sign::Datatype) {
            return Ok(Literal::typed(value, self.iri()?));
        }
        Ok(Literal::simple(value))
    }

    /// A string alone.
    pub(super) fn plain_string(&mut self) -> Parsed<Box<str>> {
        if self.cursor.kind() != Kind::Str {
            return self.wanted(None, "a string");
        }
        let Some(value) = string_text(self.cursor.text()).map(Box::<str>::from) else {
            const ESCAPES: &str = r#"\t \b \n \r \f \" \' \\ \u \U"#;
            let message = format!("a string has an escape that names no character; there are {ESCAPES}");
            return self.wrong(self.cursor.span(), ErrorCode::Token, message);
        };
        self.cursor.advance();
        self.weigh(value.len())?;
        Ok(value)
    }

    /// A blank node without a label.
    pub(super) fn fresh_blank(&mut self) -> Parsed<Slot> {
        if let Some(why) = self.unit.rules.no_blank {
            return self.wrong(self.cursor.span(), ErrorCode::Blank, why);
        }
        self.fresh_blanks += 1;
        Ok(Slot::Term(Term::Blank(Blank::Fresh(self.fresh_blanks))))
    }

    /// Takes a blank node with a label.
    fn label(&mut self) -> Parsed<Slot> {
        let span = self.cursor.span();
        if let Some(why) = self.unit.rules.no_blank {
            return self.wrong(span, ErrorCode::Blank, why);
        }
        let label: Box<str> = self.cursor.text().get(2..).unwrap_or_default().into();
        if !self.may_use(&label)? {
            let message = format!("the blank node _:{label} has the label of one in another graph pattern");
            return self.wrong(span, ErrorCode::Blank, message);
        }
        self.cursor.advance();
        self.weigh(label.len())?;
        Ok(Slot::Term(Term::Blank(Blank::Label(label))))
    }

    /// Whether a label is new, or one of the present pattern.
    fn may_use(&mut self, label: &str) -> Parsed<bool> {
        let labels = &mut self.labels;
        if self.unit.data.is_none() {
            return Ok(*labels.patterns.entry(label.into()).or_insert(labels.pattern) == labels.pattern);
        }
        let used = *labels.data.entry(XxHash3_128::oneshot(label.as_bytes())).or_insert(labels.operation);
        let is_of_operation = used == labels.operation;
        self.keep("update_labels", self.labels.data.len(), self.options.limits.labels)?;
        Ok(is_of_operation)
    }

    /// Takes a variable, an IRI, a literal, a label or a triple term, if one stands here.
    pub(super) fn simple_term(&mut self) -> Parsed<Option<Slot>> {
        match self.cursor.kind() {
            Kind::Var => Ok(self.var()?.map(Slot::Var)),
            Kind::Iri | Kind::Name => self.iri_slot(),
            Kind::Blank => self.label().map(Some),
            Kind::Sign(Sign::OpenTriple) => self.triple_term().map(Some),
            _ => self.literal(),
        }
    }

    /// A term of a triple term or a reified triple.
    pub(super) fn wanted_term(&mut self, what: &'static str) -> Parsed<Slot> {
        // `[]` is a blank node without triples
        if self.cursor.is(Sign::OpenBracket) {
            self.cursor.advance();
            self.sign(Sign::CloseBracket)?;
            return self.fresh_blank();
        }
        let term = self.simple_term()?;
        self.wanted(term, what)
    }

    /// `<<( subject predicate object )>>`
    pub(super) fn triple_term(&mut self) -> Parsed<Slot> {
        self.first_use(|first| &mut first.triple_term, self.cursor.span());
        self.nested(|parser| {
            parser.cursor.advance();
            let subject = match parser.unit.rules.has_plain_subjects {
                true => parser.var_or_iri()?,
                false => parser.wanted_term("a subject")?,
            };
            let predicate = parser.wanted_verb()?;
            let object = parser.wanted_term("an object")?;
            parser.sign(Sign::CloseTriple)?;
            Ok(Slot::Triple(Box::new(TriplePattern { subject, predicate, object })))
        })
    }

    /// A predicate that is a variable, an IRI or `a`.
    pub(super) fn wanted_verb(&mut self) -> Parsed<Slot> {
        let verb = self.verb()?;
        self.wanted(verb, "a predicate")
    }
}
