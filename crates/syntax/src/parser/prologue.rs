//! BASE, PREFIX, VERSION; IRIs and what they mean.

use oxiri::{Iri as CheckedIri, IriRef};
use snowmelt_base::iri::has_dot_segments;

use super::{Parsed, Parser};
use crate::error::{ErrorCode, known_namespace};
use crate::lexer::{Kind, Sign, Span, local_text};
use crate::shape::{Constant, Datatype};
use crate::tree::{Iri, Slot, Term};

/// The predicate that `a` stands for.
pub(super) const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

impl Parser<'_> {
    /// Takes the base IRI from outside of the text.
    pub(super) fn set_base(&mut self) -> Parsed<()> {
        let Some(base) = self.options.base else { return Ok(()) };
        match CheckedIri::parse(base.to_owned()) {
            Ok(iri) => self.base = Some(iri),
            Err(error) => {
                return self.wrong(Span::default(), ErrorCode::Iri, format!("the base IRI {base}: {error}"));
            }
        }
        Ok(())
    }

    pub(super) fn prologue(&mut self) -> Parsed<()> {
        loop {
            if self.cursor.takes_word("BASE") {
                let iri = self.written_iri()?;
                // It was checked when it was resolved.
                self.base = CheckedIri::parse(String::from(iri)).ok();
            } else if self.cursor.takes_word("PREFIX") {
                self.prefix()?;
            } else if self.cursor.takes_word("VERSION") {
                let is_long = ["\"\"\"", "'''"].iter().any(|quotes| self.cursor.text().starts_with(quotes));
                if is_long {
                    return self.unexpected();
                }
                self.version = Some(self.plain_string("a string")?);
            } else {
                return Ok(());
            }
        }
    }

    fn prefix(&mut self) -> Parsed<()> {
        let name: Box<str> = match self.cursor.text().strip_suffix(':') {
            // of `e:e:` the second colon belongs to a local name
            Some(name) if self.cursor.kind() == Kind::Name && !name.contains(':') => name.into(),
            _ => {
                self.cursor.expect("a prefix with its colon");
                return self.unexpected();
            }
        };
        self.cursor.advance();
        let iri = self.written_iri()?;
        self.prefixes.insert(name, iri);
        Ok(())
    }

    /// A string alone: of VERSION and SEPARATOR.
    pub(super) fn plain_string(&mut self, what: &'static str) -> Parsed<Box<str>> {
        let span = self.cursor.span();
        if self.cursor.kind() != Kind::Str {
            self.cursor.expect(what);
            return self.unexpected();
        }
        match crate::lexer::string_text(self.cursor.text()).map(Box::<str>::from) {
            Some(value) => {
                self.cursor.advance();
                Ok(value)
            }
            None => self.wrong(span, ErrorCode::Token, "an escape names no character".to_owned()),
        }
    }

    /// An IRI in angle brackets that is no constant of the shape.
    fn written_iri(&mut self) -> Parsed<Iri> {
        if self.cursor.kind() != Kind::Iri {
            self.cursor.expect("an IRI in < >");
            return self.unexpected();
        }
        match self.iri_in_brackets()? {
            Slot::Term(Term::Iri(iri)) => Ok(iri),
            _ => self.unexpected(),
        }
    }

    fn iri_in_brackets(&mut self) -> Parsed<Slot> {
        let span = self.cursor.span();
        match self.cursor.iri() {
            Some(Constant::Param(number)) => Ok(Slot::Param(number)),
            Some(Constant::Fixed(text)) => Ok(Slot::Term(Term::Iri(self.resolved(&text, span)?))),
            None => self.wrong(span, ErrorCode::Iri, "this is no IRI".to_owned()),
        }
    }

    /// The IRI that a reference means (RFC 3986, 5.2, strict).
    fn resolved(&mut self, text: &str, span: Span) -> Parsed<Iri> {
        let resolved = match &self.base {
            None => CheckedIri::parse(text).map(|iri| iri.into_inner().to_owned()).map_err(|e| e.to_string()),
            // oxiri is quick, and wrong only where the base has dot segments
            Some(base) if !has_dot_segments(base.path()) => {
                base.resolve(text).map(CheckedIri::into_inner).map_err(|e| e.to_string())
            }
            Some(base) => IriRef::parse(text).map_err(|e| e.to_string()).and_then(|_| {
                let iri = snowmelt_base::iri::resolve(base, text).unwrap_or_default();
                CheckedIri::parse(iri).map(CheckedIri::into_inner).map_err(|e| e.to_string())
            }),
        };
        match resolved {
            Ok(iri) => Ok(iri.into()),
            Err(error) => {
                let is_relative = self.base.is_none() && snowmelt_base::iri::scheme(text).is_none();
                let hint = is_relative.then(|| "it is relative, and the text has no BASE".to_owned());
                self.hinted(span, ErrorCode::Iri, format!("<{text}> is no IRI: {error}"), hint)
            }
        }
    }

    /// Takes an IRI, if one stands here.
    pub(super) fn iri_slot(&mut self) -> Parsed<Option<Slot>> {
        match self.cursor.kind() {
            Kind::Iri => self.iri_in_brackets().map(Some),
            Kind::Name => Ok(Some(Slot::Term(Term::Iri(self.prefixed()?)))),
            _ => {
                self.cursor.expect("an IRI");
                Ok(None)
            }
        }
    }

    /// Takes an IRI that is no constant of the shape.
    pub(super) fn iri(&mut self) -> Parsed<Iri> {
        match self.iri_slot()? {
            Some(Slot::Term(Term::Iri(iri))) => Ok(iri),
            _ => self.unexpected(),
        }
    }

    fn prefixed(&mut self) -> Parsed<Iri> {
        let span = self.cursor.span();
        let (prefix, local) = self.cursor.text().split_once(':').unwrap_or_default();
        let Some(namespace) = self.prefixes.get(prefix) else {
            let prefix = prefix.to_owned();
            return self.undeclared(&prefix, span);
        };
        let local = local_text(local);
        let mut iri = String::with_capacity(namespace.len() + local.len());
        iri.push_str(namespace);
        iri.push_str(&local);
        self.cursor.advance();
        match CheckedIri::parse(iri) {
            Ok(iri) => Ok(iri.into_inner().into()),
            Err(error) => self.wrong(span, ErrorCode::Iri, format!("the name stands for no IRI: {error}")),
        }
    }

    fn undeclared<T>(&mut self, prefix: &str, span: Span) -> Parsed<T> {
        let of_data = self.options.prefixes.iter().find(|(known, _)| known == prefix);
        let known = of_data.map(|(_, namespace)| namespace.as_str()).or_else(|| known_namespace(prefix));
        let hint =
            known.map(|namespace| format!("begin with PREFIX {prefix}: <{namespace}>")).or_else(|| {
                let declared = self.prefixes.keys().map(|prefix| &**prefix);
                crate::error::nearest(prefix, declared).map(|near| format!("is {near}: meant?"))
            });
        let wrong = Span { start: span.start, end: span.start + prefix.len() + 1 };
        let error =
            self.hinted(wrong, ErrorCode::Prefix, format!("the prefix {prefix}: is not declared"), hint);
        // The rest of the name is taken, so that the parser can go on behind it.
        self.cursor.advance();
        error
    }

    /// The datatype after a string, which is the present token.
    pub(super) fn datatype(&mut self, literal: Datatype) -> Parsed<crate::tree::Literal> {
        match literal {
            Datatype::Whole(literal) => Ok(literal),
            Datatype::Follows(value) => Ok(crate::tree::Literal::typed(value, self.iri()?)),
        }
    }

    /// Takes a predicate that is a variable, an IRI or `a`.
    pub(super) fn verb(&mut self) -> Parsed<Option<Slot>> {
        if let Some(var) = self.var()? {
            return Ok(Some(Slot::Var(var)));
        }
        if self.takes_a() {
            return Ok(Some(Slot::Term(Term::Iri(RDF_TYPE.into()))));
        }
        self.iri_slot()
    }

    /// Takes the keyword `a`, which has no capital.
    pub(super) fn takes_a(&mut self) -> bool {
        let is_a = self.cursor.kind() == Kind::Word && self.cursor.text() == "a";
        if is_a {
            self.cursor.advance();
        } else {
            self.cursor.expect("a");
        }
        is_a
    }

    /// Takes a sign that must stand here.
    pub(super) fn sign(&mut self, sign: Sign) -> Parsed<()> {
        if self.cursor.takes(sign) { Ok(()) } else { self.unexpected() }
    }

    /// Takes a keyword that must stand here.
    pub(super) fn word(&mut self, word: &'static str) -> Parsed<()> {
        if self.cursor.takes_word(word) { Ok(()) } else { self.unexpected() }
    }
}
