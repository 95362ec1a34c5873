//! Triples of one subject, with collections, nested nodes, reified triples and annotations.
//!
//! Triples come out in a fixed order: those of nested nodes first, then those of the subject. Data
//! come out as they are read, so that a long list of objects need not be held.

use super::prologue::rdf;
use super::{Parsed, Parser};
use crate::error::ErrorCode;
use crate::lexer::{Kind, Sign, Span};
use crate::tree::{Path, Slot, TriplePattern};

/// A triple, or a path between two nodes.
pub(super) enum Part {
    Triple(TriplePattern),
    Path { subject: Slot, path: Path, object: Slot },
}

impl Part {
    /// Bytes of its terms.
    fn bytes(&self) -> usize {
        match self {
            Self::Triple(triple) => triple.slots().map(Slot::bytes).into_iter().sum(),
            // the path is counted where it is copied
            Self::Path { subject, object, .. } => subject.bytes() + object.bytes(),
        }
    }
}

pub(super) type Parts = Vec<Part>;

fn triple(subject: Slot, predicate: Slot, object: Slot) -> Part {
    Part::Triple(TriplePattern { subject, predicate, object })
}

impl Parser<'_> {
    /// Whether a triple begins here.
    fn begins_triples(&mut self) -> bool {
        let begins = match self.cursor.kind() {
            Kind::Var | Kind::Iri | Kind::Name | Kind::Blank | Kind::Str | Kind::Number(_) => true,
            Kind::Sign(sign) => {
                matches!(sign, Sign::OpenParen | Sign::OpenBracket | Sign::OpenReified | Sign::OpenTriple)
            }
            _ => self.is_boolean(),
        };
        if !begins {
            self.cursor.expect(["a triple"]);
        }
        begins
    }

    /// Triples with dots between them, if some stand here.
    pub(super) fn triples(&mut self) -> Parsed<Parts> {
        let (mut parts, mut has_dot) = (Vec::new(), true);
        while self.begins_triples() {
            if !has_dot {
                return self.wanted(None, ".");
            }
            self.same_subject(&mut parts)?;
            has_dot = self.cursor.takes(Sign::Dot);
        }
        Ok(parts)
    }

    /// The triples of one subject.
    fn same_subject(&mut self, out: &mut Parts) -> Parsed<()> {
        if let Some(data) = &mut self.unit.data {
            data.subject = self.cursor.span();
        }
        let (mut reified, mut is_wanted) = (Parts::new(), true);
        let subject = match self.cursor.kind() {
            Kind::Sign(Sign::OpenReified) => {
                is_wanted = false;
                self.reified_triple(&mut reified)?
            }
            Kind::Sign(Sign::OpenParen | Sign::OpenBracket) => {
                let (subject, has_triples) = self.node(out)?;
                is_wanted = !has_triples;
                subject
            }
            _ => self.wanted_simple("a subject")?,
        };
        let mut direct = self.property_list(&subject, out, is_wanted)?;
        out.append(&mut reified);
        out.append(&mut direct);
        Ok(())
    }

    fn wanted_simple(&mut self, what: &'static str) -> Parsed<Slot> {
        let term = self.simple_term()?;
        self.wanted(term, what)
    }

    /// Predicates with their objects; none unless `is_wanted`. Triples of the subject come back,
    /// those of nested nodes go out.
    fn property_list(&mut self, subject: &Slot, out: &mut Parts, is_wanted: bool) -> Parsed<Parts> {
        let mut direct = Parts::new();
        let mut path = self.predicate()?;
        if path.is_none() && is_wanted {
            return self.wanted(None, "a predicate");
        }
        while let Some(predicate) = path {
            self.objects(subject, &predicate, out, &mut direct)?;
            let mut goes_on = false;
            while self.cursor.takes(Sign::Semicolon) {
                goes_on = true;
            }
            path = if goes_on { self.predicate()? } else { None };
        }
        Ok(direct)
    }

    /// Takes a predicate or a path.
    fn predicate(&mut self) -> Parsed<Option<Path>> {
        if self.unit.rules.has_no_paths || self.cursor.kind() == Kind::Var {
            return Ok(self.verb()?.map(Path::Predicate));
        }
        self.cursor.expect(["a variable"]);
        self.path()
    }

    fn objects(&mut self, subject: &Slot, path: &Path, out: &mut Parts, direct: &mut Parts) -> Parsed<()> {
        loop {
            let start = self.cursor.span();
            let object = self.object(out)?;
            let reifiers = self.annotations(out)?;
            self.along(subject.clone(), path, object, reifiers, start, direct)?;
            if !self.cursor.takes(Sign::Comma) {
                return Ok(());
            }
        }
    }

    /// A path as patterns: what is a triple becomes one, and a sequence is taken apart. Before a
    /// triple come those that say which terms reify it.
    fn along(
        &mut self,
        subject: Slot,
        path: &Path,
        object: Slot,
        reifiers: Vec<Slot>,
        place: Span,
        direct: &mut Parts,
    ) -> Parsed<()> {
        match path {
            Path::Predicate(predicate) => {
                let pattern = TriplePattern { subject, predicate: predicate.clone(), object };
                for reifier in reifiers {
                    let term = Slot::Triple(Box::new(pattern.clone()));
                    self.add(direct, triple(reifier, rdf("reifies"), term))?;
                }
                self.add(direct, Part::Triple(pattern))
            }
            Path::Reverse(inner) => self.along(object, inner, subject, reifiers, place, direct),
            _ if !reifiers.is_empty() => {
                self.wrong(place, ErrorCode::Unexpected, "what a path leads to cannot be annotated")
            }
            Path::Sequence(steps) => {
                let mut from = subject;
                for (number, step) in steps.iter().enumerate() {
                    let is_last = number + 1 == steps.len();
                    let to = if is_last { object.clone() } else { self.fresh_blank()? };
                    self.along(from, step, to.clone(), Vec::new(), place, direct)?;
                    from = to;
                }
                Ok(())
            }
            _ => {
                // each object has a copy
                self.weigh(path.bytes())?;
                self.add(direct, Part::Path { subject, path: path.clone(), object })
            }
        }
    }

    /// Adds a part to others, or to the data that the parser is in.
    fn add(&mut self, out: &mut Parts, part: Part) -> Parsed<()> {
        self.weigh(part.bytes())?;
        if self.unit.data.is_some() {
            return self.add_data(part);
        }
        out.push(part);
        if self.unit.rules.is_template { Ok(()) } else { self.count_pattern() }
    }

    fn object(&mut self, out: &mut Parts) -> Parsed<Slot> {
        match self.cursor.kind() {
            Kind::Sign(Sign::OpenReified) => self.reified_triple(out),
            Kind::Sign(Sign::OpenParen | Sign::OpenBracket) => Ok(self.node(out)?.0),
            _ => self.wanted_simple("an object"),
        }
    }

    /// `()`, `[]`, a collection or a blank node with its triples; whether it has triples.
    fn node(&mut self, out: &mut Parts) -> Parsed<(Slot, bool)> {
        self.nested(|parser| {
            if parser.cursor.takes(Sign::OpenParen) {
                if parser.cursor.takes(Sign::CloseParen) {
                    return Ok((rdf("nil"), false));
                }
                return Ok((parser.collection(out)?, true));
            }
            parser.cursor.advance();
            let node = parser.fresh_blank()?;
            if parser.cursor.takes(Sign::CloseBracket) {
                return Ok((node, false));
            }
            let mut direct = parser.property_list(&node, out, true)?;
            parser.sign(Sign::CloseBracket)?;
            out.append(&mut direct);
            Ok((node, true))
        })
    }

    /// The members of a collection up to its bracket. The last member's triples come out first.
    fn collection(&mut self, out: &mut Parts) -> Parsed<Slot> {
        let first = self.fresh_blank()?;
        let (mut node, mut members) = (first.clone(), Vec::new());
        loop {
            let (mut parts, mut nested) = (Parts::new(), Parts::new());
            let member = self.object(&mut nested)?;
            let is_last = self.cursor.takes(Sign::CloseParen);
            let rest = if is_last { rdf("nil") } else { self.fresh_blank()? };
            self.add(&mut parts, triple(node.clone(), rdf("first"), member))?;
            self.add(&mut parts, triple(node, rdf("rest"), rest.clone()))?;
            parts.append(&mut nested);
            if !parts.is_empty() {
                members.push(parts);
            }
            if is_last {
                out.extend(members.into_iter().rev().flatten());
                return Ok(first);
            }
            node = rest;
        }
    }

    /// `<< subject predicate object ~ reifier >>`: the reifier.
    fn reified_triple(&mut self, out: &mut Parts) -> Parsed<Slot> {
        self.first_use(|first| &mut first.triple_term, self.cursor.span());
        self.nested(|parser| {
            parser.cursor.advance();
            let mut nested = Parts::new();
            let subject = parser.reified_part("a subject", &mut nested)?;
            let predicate = parser.wanted_verb()?;
            let object = parser.reified_part("an object", &mut nested)?;
            let reifier = match parser.cursor.takes(Sign::Tilde) {
                true => parser.reifier()?,
                false => parser.fresh_blank()?,
            };
            parser.sign(Sign::CloseReified)?;
            let term = Slot::Triple(Box::new(TriplePattern { subject, predicate, object }));
            parser.add(out, triple(reifier.clone(), rdf("reifies"), term))?;
            out.append(&mut nested);
            Ok(reifier)
        })
    }

    fn reified_part(&mut self, what: &'static str, out: &mut Parts) -> Parsed<Slot> {
        if self.cursor.is(Sign::OpenReified) { self.reified_triple(out) } else { self.wanted_term(what) }
    }

    /// The term after `~`; a new blank node if there is none.
    fn reifier(&mut self) -> Parsed<Slot> {
        match self.cursor.kind() {
            Kind::Var | Kind::Iri | Kind::Name | Kind::Blank | Kind::Sign(Sign::OpenBracket) => {
                self.wanted_term("a reifier")
            }
            _ => self.fresh_blank(),
        }
    }

    /// Reifiers of an object; their annotations go out.
    fn annotations(&mut self, out: &mut Parts) -> Parsed<Vec<Slot>> {
        let mut reifiers = Vec::new();
        loop {
            let span = self.cursor.span();
            let reifier = if self.cursor.takes(Sign::Tilde) {
                self.reifier()?
            } else if self.cursor.sees(Sign::OpenAnnotation) {
                self.fresh_blank()?
            } else {
                return Ok(reifiers);
            };
            self.first_use(|first| &mut first.triple_term, span);
            if self.cursor.sees(Sign::OpenAnnotation) {
                self.annotation(&reifier, out)?;
            }
            reifiers.push(reifier);
        }
    }

    fn annotation(&mut self, reifier: &Slot, out: &mut Parts) -> Parsed<()> {
        self.nested(|parser| {
            parser.cursor.advance();
            let mut nested = Parts::new();
            let mut direct = parser.property_list(reifier, &mut nested, true)?;
            parser.sign(Sign::CloseAnnotation)?;
            out.append(&mut direct);
            out.append(&mut nested);
            Ok(())
        })
    }
}
