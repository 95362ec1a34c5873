//! BASE, PREFIX, VERSION; IRIs and what they mean.

use oxiri::{Iri as CheckedIri, IriParseError};
use snowmelt_base::iri::{has_dot_segments, resolve, scheme};

use super::{Parsed, Parser};
use crate::error::ErrorCode;
use crate::lexer::{Kind, Span, iri_text, local_text};
use crate::tree::{Iri, RDF, Slot, Term};

/// A term of RDF's own vocabulary.
pub(super) fn rdf(name: &str) -> Slot {
    Slot::Term(Term::Iri(format!("{RDF}{name}").into()))
}

impl Parser<'_> {
    /// Takes the base IRI from outside of the text.
    pub(super) fn set_base(&mut self) -> Parsed<()> {
        let Some(base) = self.options.base else { return Ok(()) };
        match CheckedIri::parse(base.to_owned()) {
            Ok(iri) => self.base = Some(iri),
            Err(error) => {
                let message = format!("the base IRI {base}: {error}");
                return self.wrong(Span::default(), ErrorCode::Iri, message);
            }
        }
        Ok(())
    }

    pub(super) fn prologue(&mut self) -> Parsed<()> {
        loop {
            match self.cursor.takes_one(&["BASE", "PREFIX", "VERSION"]) {
                Some("BASE") => {
                    let iri = self.written_iri()?;
                    // It was checked when it was resolved.
                    self.base = CheckedIri::parse(String::from(iri)).ok();
                }
                Some("PREFIX") => self.prefix()?,
                Some(_) => {
                    let text = self.cursor.text();
                    if text.starts_with("\"\"\"") || text.starts_with("'''") {
                        return self.unexpected();
                    }
                    self.version = Some(self.plain_string()?);
                }
                None => return Ok(()),
            }
        }
    }

    fn prefix(&mut self) -> Parsed<()> {
        let name: Option<Box<str>> = match self.cursor.text().strip_suffix(':') {
            // of `e:e:` the second colon belongs to a local name
            Some(name) if self.cursor.kind() == Kind::Name && !name.contains(':') => Some(name.into()),
            _ => None,
        };
        let name = self.wanted(name, "a prefix with its colon")?;
        self.cursor.advance();
        let iri = self.written_iri()?;
        self.prefixes.insert(name, iri);
        Ok(())
    }

    /// An IRI in angle brackets.
    fn written_iri(&mut self) -> Parsed<Iri> {
        if self.cursor.kind() != Kind::Iri {
            return self.wanted(None, "an IRI in < >");
        }
        self.iri()
    }

    /// Takes an IRI, if one stands here.
    pub(super) fn iri_slot(&mut self) -> Parsed<Option<Slot>> {
        let (span, kind) = (self.cursor.span(), self.cursor.kind());
        if kind == Kind::Iri
            && let Some(number) = self.param()
        {
            return Ok(Some(Slot::Param(number)));
        }
        let iri = match kind {
            Kind::Iri => match iri_text(self.cursor.text()) {
                Some(text) => {
                    let text = text.into_owned();
                    self.resolved(&text, span)?
                }
                None => return self.wrong(span, ErrorCode::Iri, "this is no IRI"),
            },
            Kind::Name => self.prefixed(span)?,
            _ => {
                self.cursor.expect(["an IRI"]);
                return Ok(None);
            }
        };
        self.cursor.advance();
        self.weigh(iri.len())?;
        Ok(Some(Slot::Term(Term::Iri(iri))))
    }

    /// Takes an IRI that is no constant of the shape.
    pub(super) fn iri(&mut self) -> Parsed<Iri> {
        match self.iri_slot()? {
            Some(Slot::Term(Term::Iri(iri))) => Ok(iri),
            _ => self.unexpected(),
        }
    }

    /// The IRI that a reference means (RFC 3986, 5.2, strict).
    fn resolved(&mut self, text: &str, span: Span) -> Parsed<Iri> {
        let checked = |iri: String| CheckedIri::parse(iri);
        let resolved: Result<_, IriParseError> = match &self.base {
            None => checked(text.to_owned()),
            // oxiri is quick, and wrong only where the base has dot segments
            Some(base) if !has_dot_segments(base.path()) => base.resolve(text),
            Some(base) => {
                oxiri::IriRef::parse(text).and_then(|_| checked(resolve(base, text).unwrap_or_default()))
            }
        };
        resolved.map(|iri| iri.into_inner().into()).or_else(|error| {
            let is_relative = self.base.is_none() && scheme(text).is_none();
            let cause = if is_relative { "; it is relative, and the text has no BASE" } else { "" };
            self.wrong(span, ErrorCode::Iri, format!("<{text}> is no IRI: {error}{cause}"))
        })
    }

    fn prefixed(&mut self, span: Span) -> Parsed<Iri> {
        let (prefix, local) = self.cursor.text().split_once(':').unwrap_or_default();
        let assumed = || self.options.prefixes?.namespace(prefix);
        let Some(namespace) = self.prefixes.get(prefix).map(|iri| &**iri).or_else(assumed) else {
            let prefix = format!("{prefix}:");
            return self.undeclared(prefix, span);
        };
        let iri = [namespace, &local_text(local)].concat();
        CheckedIri::parse(iri)
            .map(|iri| iri.into_inner().into())
            .or_else(|error| self.wrong(span, ErrorCode::Iri, format!("the name stands for no IRI: {error}")))
    }

    fn undeclared<T>(&mut self, prefix: String, span: Span) -> Parsed<T> {
        let wrong = Span { start: span.start, end: span.start + prefix.len() };
        let mut error = self.error(wrong, ErrorCode::Prefix, format!("the prefix {prefix} is not declared"));
        let mut declared: Vec<_> = self.prefixes.keys().map(|prefix| format!("{prefix}:").into()).collect();
        declared.sort_unstable();
        (error.found, error.expected) = (prefix, declared);
        // The name is taken, so that the parser can go on behind it.
        self.cursor.advance();
        Err(error)
    }

    /// Takes a predicate that is a variable, an IRI or `a`.
    pub(super) fn verb(&mut self) -> Parsed<Option<Slot>> {
        if let Some(var) = self.var()? {
            return Ok(Some(Slot::Var(var)));
        }
        self.path_predicate()
    }

    /// Takes an IRI or the keyword `a`, which has no capital.
    pub(super) fn path_predicate(&mut self) -> Parsed<Option<Slot>> {
        if self.cursor.kind() == Kind::Word && self.cursor.text() == "a" {
            self.cursor.advance();
            return Ok(Some(rdf("type")));
        }
        self.cursor.expect(["a"]);
        self.iri_slot()
    }
}
