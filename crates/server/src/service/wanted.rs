//! The form of an answer that a client wants: format, coding, and the state it has already.

use std::borrow::Cow;

use hyper::HeaderMap;
use hyper::header::HeaderValue;
use snowmelt_sparql::{RdfVersion, ResultFormat};

use super::answers::{accept, not_acceptable};
use crate::coding::Coding;
use crate::freshness::Kept;
use crate::negotiate::{self, Answer, Choice};
use crate::refusal::Refusal;

/// The form of an answer that a client wants, and what it has already.
pub struct Wanted {
    /// media types that the parameter `format` means; it has precedence over the header
    named: Option<String>,
    accept: Option<String>,
    pub coding: Option<Coding>,
    pub kept: Kept,
    /// of a plan
    pub is_json: bool,
}

impl Wanted {
    /// As the request's headers say; `format` is the name of a format, or a media type.
    pub fn from_headers(headers: &HeaderMap, format: Option<&str>) -> Self {
        let named = format.and_then(media_types_of);
        let accept = accept(headers);
        let names_json =
            |format: &str| ["json", negotiate::JSON].iter().any(|j| j.eq_ignore_ascii_case(format));
        let is_json = format.is_some_and(names_json) || negotiate::wants_json(accept.as_deref());
        Self { named, accept, coding: Coding::accepted(headers), kept: Kept::from_headers(headers), is_json }
    }

    /// The format of an answer and its media type: the first of [`Wanted::choices`].
    pub fn format(&self, kind: Answer) -> Result<(ResultFormat, &'static str), Refusal> {
        let choices = self.choices(kind)?;
        Ok((choices[0].format, choices[0].media_type))
    }

    /// The ways to write an answer, of which there is one; each is for newer terms than the one
    /// before. A `format` that does not fit the kind of answer is left aside: clients send one with
    /// every query.
    pub fn choices(&self, kind: Answer) -> Result<Vec<Choice>, Refusal> {
        let named = self.named.as_deref().map(|named| negotiate::choices(Some(named), kind));
        let choices = named.filter(|choices| !choices.is_empty());
        let choices = choices.unwrap_or_else(|| negotiate::choices(self.accept.as_deref(), kind));
        if choices.is_empty() { Err(not_acceptable(kind)) } else { Ok(choices) }
    }
}

/// How an answer of a format is written.
pub struct Shape {
    /// The version of RDF that the client knows.
    pub version: RdfVersion,
    /// The media type, with the version if the client asked for one.
    pub content_type: HeaderValue,
    /// Tells the answer's form apart from others of the same state, in its ETag.
    pub form: Cow<'static, str>,
}

impl Shape {
    /// The shape of an answer by a choice.
    pub fn of(choice: &Choice) -> Self {
        let Choice { format, media_type, version, label } = *choice;
        let typed = HeaderValue::from_static(media_type);
        let with_label = |label| HeaderValue::from_str(&format!("{media_type}; version={label}")).ok();
        let content_type = label.and_then(with_label).unwrap_or(typed);
        let form = match (version, label) {
            (RdfVersion::Newest, None) => Cow::Borrowed(format.name()),
            (RdfVersion::Basic, None) if format.newest_version() == version => Cow::Borrowed(format.name()),
            // with and without label they differ in their head
            (version, None) => Cow::Owned(format!("{}-to-{}", format.name(), version.label())),
            (_, Some(label)) => Cow::Owned(format!("{}-{label}", format.name())),
        };
        Self { version, content_type, form }
    }
}

/// The media types that a value of `format` means; `None` if it is not known.
fn media_types_of(format: &str) -> Option<String> {
    let lower = format.to_ascii_lowercase();
    let types = match lower.as_str() {
        // Of solutions, and of graphs.
        "xml" => "application/sparql-results+xml, application/rdf+xml",
        "json" => "application/sparql-results+json, application/ld+json",
        "turtle" | "n3" => "text/turtle",
        "ntriples" | "n-triples" => "application/n-triples",
        "nquads" | "n-quads" => "application/n-quads",
        "json-ld" => "application/ld+json",
        // A plus in an address is a blank.
        "rdf+xml" | "rdf xml" | "rdfxml" => "application/rdf+xml",
        other => match other.parse::<ResultFormat>() {
            Ok(format) => return format.media_type().split(';').next().map(str::to_owned),
            Err(_) => return other.contains('/').then_some(lower),
        },
    };
    Some(types.to_owned())
}
