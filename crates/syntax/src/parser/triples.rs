//! Triples of one subject, with collections, nested nodes, reified triples and annotations.
//!
//! Triples come out in a fixed order: those of nested nodes first, then those of the subject. Data
//! come out as they are read, so that a long list of objects need not be held.

use super::{Parsed, Parser};
use crate::error::ErrorCode;
use crate::lexer::{Kind, Sign, Span};
use crate::tree::{Iri, Path, Slot, Term, TriplePattern};

const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

/// A triple, or a path between two nodes.
pub(super) enum Part {
    Triple(TriplePattern),
    Path { subject: Slot, path: Path, object: Slot },
}

/// Where paths may stand in place of predicates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Predicates {
    Simple,
    Paths,
}

type Parts = Vec<Part>;

fn rdf(name: &str) -> Slot {
    Slot::Term(Term::Iri(Iri::from(format!("{RDF}{name}"))))
}

fn triple(subject: Slot, predicate: Slot, object: Slot) -> Part {
    Part::Triple(TriplePattern { subject, predicate, object })
}

impl Parser<'_> {
    /// Whether a triple begins here.
    pub(super) fn begins_triples(&mut self) -> bool {
        let begins = match self.cursor.kind() {
            Kind::Var | Kind::Iri | Kind::Name | Kind::Blank | Kind::Str | Kind::Number(_) => true,
            Kind::Sign(sign) => {
                matches!(sign, Sign::OpenParen | Sign::OpenBracket | Sign::OpenReified | Sign::OpenTriple)
            }
            Kind::Word => {
                let text = self.cursor.text();
                text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")
            }
            _ => false,
        };
        if !begins {
            self.cursor.expect("a triple");
        }
        begins
    }

    /// The triples of one subject.
    pub(super) fn same_subject(&mut self, predicates: Predicates, out: &mut Parts) -> Parsed<()> {
        let mut direct = Vec::new();
        self.subject = self.cursor.span();
        match self.cursor.kind() {
            Kind::Sign(Sign::OpenReified) => {
                let mut reified = Vec::new();
                let subject = self.reified_triple(&mut reified)?;
                self.property_list(&subject, predicates, out, &mut direct, false)?;
                out.append(&mut reified);
            }
            Kind::Sign(Sign::OpenParen | Sign::OpenBracket) => {
                let (subject, is_node) = self.node(predicates, out)?;
                self.property_list(&subject, predicates, out, &mut direct, !is_node)?;
            }
            _ => {
                let Some(subject) = self.simple_term()? else {
                    self.cursor.expect("a subject");
                    return self.unexpected();
                };
                self.property_list(&subject, predicates, out, &mut direct, true)?;
            }
        }
        out.append(&mut direct);
        self.flush(out)
    }

    /// Predicates with their objects; none unless `is_wanted`.
    fn property_list(
        &mut self,
        subject: &Slot,
        predicates: Predicates,
        out: &mut Parts,
        direct: &mut Parts,
        is_wanted: bool,
    ) -> Parsed<()> {
        let mut is_first = true;
        loop {
            let Some(path) = self.predicate(predicates)? else {
                if is_first && is_wanted {
                    self.cursor.expect("a predicate");
                    return self.unexpected();
                }
                break;
            };
            is_first = false;
            self.objects(subject, &path, predicates, out, direct)?;
            let mut goes_on = false;
            while self.cursor.takes(Sign::Semicolon) {
                goes_on = true;
            }
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Takes a predicate or a path; a variable stands as [`Ok`] of its place.
    fn predicate(&mut self, predicates: Predicates) -> Parsed<Option<Result<Slot, Path>>> {
        if predicates == Predicates::Simple || self.cursor.kind() == Kind::Var {
            return Ok(self.verb()?.map(Ok));
        }
        self.cursor.expect("a variable");
        Ok(match self.path()? {
            Some(Path::Predicate(slot)) => Some(Ok(slot)),
            path => path.map(Err),
        })
    }

    fn objects(
        &mut self,
        subject: &Slot,
        path: &Result<Slot, Path>,
        predicates: Predicates,
        out: &mut Parts,
        direct: &mut Parts,
    ) -> Parsed<()> {
        loop {
            let start = self.cursor.span();
            let object = self.object(predicates, out)?;
            let mut reifiers = Vec::new();
            self.annotations(predicates, out, &mut reifiers)?;
            match path {
                Ok(predicate) => {
                    let pattern =
                        TriplePattern { subject: subject.clone(), predicate: predicate.clone(), object };
                    self.reified(pattern, reifiers, direct)?;
                }
                Err(path) => self.along(subject.clone(), path, object, reifiers, start, direct)?,
            }
            if self.output.as_ref().is_some_and(|output| output.is_data) {
                out.append(direct);
                self.flush(out)?;
            }
            if !self.cursor.takes(Sign::Comma) {
                return Ok(());
            }
        }
    }

    /// A triple after those that say which terms reify it.
    fn reified(&mut self, pattern: TriplePattern, reifiers: Vec<Slot>, direct: &mut Parts) -> Parsed<()> {
        for reifier in reifiers {
            self.counted()?;
            direct.push(triple(reifier, rdf("reifies"), Slot::Triple(Box::new(pattern.clone()))));
        }
        self.counted()?;
        direct.push(Part::Triple(pattern));
        Ok(())
    }

    fn counted(&mut self) -> Parsed<()> {
        if self.output.as_ref().is_some_and(|output| output.is_data) { Ok(()) } else { self.count_pattern() }
    }

    /// A path as patterns: what is a triple becomes one, and a sequence is taken apart.
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
                return self.reified(pattern, reifiers, direct);
            }
            Path::Reverse(inner) => return self.along(object, inner, subject, reifiers, place, direct),
            _ if !reifiers.is_empty() => {
                let message = "what a path leads to cannot be annotated".to_owned();
                return self.wrong(place, ErrorCode::Unexpected, message);
            }
            Path::Sequence(steps) => {
                let mut from = subject;
                let Some((last, before)) = steps.split_last() else { return Ok(()) };
                for step in before {
                    let middle = self.fresh_blank()?;
                    self.along(from, step, middle.clone(), Vec::new(), place, direct)?;
                    from = middle;
                }
                return self.along(from, last, object, Vec::new(), place, direct);
            }
            _ => {}
        }
        self.counted()?;
        direct.push(Part::Path { subject, path: path.clone(), object });
        Ok(())
    }

    fn object(&mut self, predicates: Predicates, out: &mut Parts) -> Parsed<Slot> {
        match self.cursor.kind() {
            Kind::Sign(Sign::OpenReified) => self.reified_triple(out),
            Kind::Sign(Sign::OpenParen | Sign::OpenBracket) => Ok(self.node(predicates, out)?.0),
            _ => match self.simple_term()? {
                Some(term) => Ok(term),
                None => {
                    self.cursor.expect("an object");
                    self.unexpected()
                }
            },
        }
    }

    /// `()`, `[]`, a collection or a blank node with its triples; whether it has triples.
    fn node(&mut self, predicates: Predicates, out: &mut Parts) -> Parsed<(Slot, bool)> {
        self.nested(|parser| {
            if parser.cursor.takes(Sign::OpenParen) {
                if parser.cursor.takes(Sign::CloseParen) {
                    return Ok((rdf("nil"), false));
                }
                return Ok((parser.collection(predicates, out)?, true));
            }
            parser.cursor.advance();
            let node = parser.fresh_blank()?;
            if parser.cursor.takes(Sign::CloseBracket) {
                return Ok((node, false));
            }
            let mut direct = Vec::new();
            parser.property_list(&node, predicates, out, &mut direct, true)?;
            parser.sign(Sign::CloseBracket)?;
            out.append(&mut direct);
            Ok((node, true))
        })
    }

    /// The members of a collection up to its bracket.
    fn collection(&mut self, predicates: Predicates, out: &mut Parts) -> Parsed<Slot> {
        if self.output.as_ref().is_some_and(|output| output.is_data) {
            return self.collection_of_data(out);
        }
        let mut members = Vec::new();
        while !self.cursor.takes(Sign::CloseParen) {
            let mut nested = Vec::new();
            let member = self.object(predicates, &mut nested)?;
            self.count_pattern()?;
            self.count_pattern()?;
            members.push((member, nested));
        }
        let mut rest = rdf("nil");
        for (member, nested) in members.into_iter().rev() {
            let node = self.fresh_blank()?;
            out.push(triple(node.clone(), rdf("first"), member));
            out.push(triple(node.clone(), rdf("rest"), rest));
            out.extend(nested);
            rest = node;
        }
        Ok(rest)
    }

    fn collection_of_data(&mut self, out: &mut Parts) -> Parsed<Slot> {
        let first = self.fresh_blank()?;
        let mut node = first.clone();
        loop {
            let member = self.object(Predicates::Simple, out)?;
            out.push(triple(node.clone(), rdf("first"), member));
            let is_last = self.cursor.takes(Sign::CloseParen);
            let rest = if is_last { rdf("nil") } else { self.fresh_blank()? };
            out.push(triple(node, rdf("rest"), rest.clone()));
            if is_last {
                return Ok(first);
            }
            self.flush(out)?;
            node = rest;
        }
    }

    /// `<< subject predicate object ~ reifier >>`: the reifier.
    fn reified_triple(&mut self, out: &mut Parts) -> Parsed<Slot> {
        let span = self.cursor.span();
        self.first.triple_term.get_or_insert(span);
        self.nested(|parser| {
            parser.cursor.advance();
            let (mut of_subject, mut of_object) = (Vec::new(), Vec::new());
            let subject = parser.reified_part("a subject", &mut of_subject)?;
            let predicate = parser.wanted_verb()?;
            let object = parser.reified_part("an object", &mut of_object)?;
            let reifier = match parser.cursor.takes(Sign::Tilde) {
                true => parser.reifier()?,
                false => parser.fresh_blank()?,
            };
            parser.sign(Sign::CloseReified)?;
            let term = Slot::Triple(Box::new(TriplePattern { subject, predicate, object }));
            parser.counted()?;
            out.push(triple(reifier.clone(), rdf("reifies"), term));
            out.append(&mut of_subject);
            out.append(&mut of_object);
            Ok(reifier)
        })
    }

    fn reified_part(&mut self, what: &'static str, out: &mut Parts) -> Parsed<Slot> {
        match self.cursor.kind() {
            Kind::Sign(Sign::OpenReified) => self.reified_triple(out),
            _ => self.wanted_term(what),
        }
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

    /// Reifiers and annotations of an object.
    fn annotations(
        &mut self,
        predicates: Predicates,
        out: &mut Parts,
        reifiers: &mut Vec<Slot>,
    ) -> Parsed<()> {
        loop {
            let span = self.cursor.span();
            let reifier = if self.cursor.takes(Sign::Tilde) {
                self.first.triple_term.get_or_insert(span);
                self.reifier()?
            } else if self.cursor.sees(Sign::OpenAnnotation) {
                self.first.triple_term.get_or_insert(span);
                self.fresh_blank()?
            } else {
                return Ok(());
            };
            if self.cursor.sees(Sign::OpenAnnotation) {
                self.annotation(&reifier, predicates, out)?;
            }
            reifiers.push(reifier);
        }
    }

    fn annotation(&mut self, reifier: &Slot, predicates: Predicates, out: &mut Parts) -> Parsed<()> {
        self.nested(|parser| {
            parser.cursor.advance();
            let (mut nested, mut direct) = (Vec::new(), Vec::new());
            parser.property_list(reifier, predicates, &mut nested, &mut direct, true)?;
            parser.sign(Sign::CloseAnnotation)?;
            out.append(&mut direct);
            out.append(&mut nested);
            Ok(())
        })
    }
}
