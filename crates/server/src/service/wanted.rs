//! The form of an answer that a client wants: format, coding, and the state it has already.

use hyper::HeaderMap;
use hyper::header::HeaderValue;
use snowmelt_sparql::{RdfVersion, ResultFormat};

use super::answers::{accept, not_acceptable};
use crate::coding::Coding;
use crate::freshness::Kept;
use crate::negotiate::{self, Answer};
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

    /// The format of an answer and its media type. A `format` that does not fit the kind of answer
    /// is left aside: clients send one with every query.
    pub fn format(&self, kind: Answer) -> Result<(ResultFormat, &'static str), Refusal> {
        let named = self.named.as_deref().and_then(|named| negotiate::negotiate(Some(named), kind));
        named
            .or_else(|| negotiate::negotiate(self.accept.as_deref(), kind))
            .ok_or_else(|| not_acceptable(kind))
    }
}

impl Wanted {
    /// The version of RDF that the client knows, and the value of `Content-Type`: the media type,
    /// with the version if the client asked for one.
    pub fn version(&self, media_type: &'static str) -> (RdfVersion, HeaderValue) {
        let asked = self.named.as_deref().or(self.accept.as_deref());
        let (version, is_named) = negotiate::version_of(asked, media_type);
        let typed = HeaderValue::from_static(media_type);
        let with_version = || HeaderValue::from_str(&format!("{media_type}; version=1.2")).ok();
        let content_type = is_named.then(with_version).flatten().unwrap_or(typed);
        (version, content_type)
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
