//! Content negotiation: which result format answers an `Accept` header (RFC 9110, section
//! 12.5.1).
//!
//! The most specific matching range gives a format its quality; among equal qualities our own
//! order of preference decides. No header, or `*/*`, takes the first.

use snowmelt_sparql::{RdfVersion, ResultFormat};

/// Kinds of answers; the formats on offer depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// SELECT and ASK
    Solutions,
    /// CONSTRUCT and DESCRIBE
    Graph,
    /// all graphs
    Dataset,
    /// of the service
    Description,
}

const SOLUTIONS: &[(ResultFormat, &[&str])] = &[
    (ResultFormat::Json, &["application/sparql-results+json", "application/json"]),
    (ResultFormat::Xml, &["application/sparql-results+xml", "application/xml", "text/xml"]),
    (ResultFormat::Csv, &["text/csv"]),
    (ResultFormat::Tsv, &["text/tab-separated-values"]),
    (ResultFormat::Html, &["text/html", "application/xhtml+xml"]),
];

const GRAPH: &[(ResultFormat, &[&str])] = &[
    (ResultFormat::NTriples, &["application/n-triples", "text/plain"]),
    (ResultFormat::Turtle, &["text/turtle", "application/x-turtle"]),
    (ResultFormat::RdfXml, &["application/rdf+xml", "application/xml", "text/xml"]),
    (ResultFormat::JsonLd, &["application/ld+json", "application/json"]),
    (ResultFormat::NQuads, &["application/n-quads"]),
    (ResultFormat::TriG, &["application/trig", "application/x-trig"]),
    (ResultFormat::Html, &["text/html", "application/xhtml+xml"]),
];

const DESCRIPTION: &[(ResultFormat, &[&str])] = &[
    (ResultFormat::Turtle, &["text/turtle", "application/x-turtle"]),
    (ResultFormat::NTriples, &["application/n-triples", "text/plain"]),
    (ResultFormat::RdfXml, &["application/rdf+xml", "application/xml", "text/xml"]),
    (ResultFormat::JsonLd, &["application/ld+json", "application/json"]),
];

const DATASET: &[(ResultFormat, &[&str])] = &[
    (ResultFormat::NQuads, &["application/n-quads", "text/x-nquads"]),
    (ResultFormat::TriG, &["application/trig", "application/x-trig"]),
    (ResultFormat::JsonLd, &["application/ld+json", "application/json"]),
];

fn offers(answer: Answer) -> &'static [(ResultFormat, &'static [&'static str])] {
    match answer {
        Answer::Solutions => SOLUTIONS,
        Answer::Graph => GRAPH,
        Answer::Dataset => DATASET,
        Answer::Description => DESCRIPTION,
    }
}

/// The format and its media type, or `None` when nothing on offer is acceptable (406).
pub fn negotiate(accept: Option<&str>, answer: Answer) -> Option<(ResultFormat, &'static str)> {
    let accept = accept.map(str::trim).filter(|a| !a.is_empty()).unwrap_or("*/*");
    let ranges: Vec<(&str, f32)> = accept.split(',').map(parse_range).collect();
    let mut best: Option<(f32, ResultFormat, &'static str)> = None;
    for (format, names) in offers(answer) {
        for name in *names {
            let quality = quality_of(name, &ranges);
            if quality > 0.0 && best.is_none_or(|(q, ..)| quality > q) {
                best = Some((quality, *format, name));
            }
        }
    }
    best.map(|(_, format, name)| (format, name))
}

/// The version of RDF that a client names with a media type: what it knows, and whether it said
/// 1.2.
/// One that names none takes what comes, as do clients that do not know of versions.
pub fn version_of(accept: Option<&str>, name: &str) -> (RdfVersion, bool) {
    let of_name = |item: &&str| {
        let (range, quality) = parse_range(item);
        range.eq_ignore_ascii_case(name) && quality > 0.0
    };
    let versions: Vec<Option<&str>> =
        accept.unwrap_or_default().split(',').filter(of_name).map(version_in).collect();
    let is_newer = versions.iter().flatten().any(|version| version.starts_with("1.2"));
    let is_classic = !versions.is_empty() && versions.iter().all(|version| *version == Some("1.1"));
    (if is_classic { RdfVersion::Classic } else { RdfVersion::Newest }, is_newer)
}

/// The parameter `version` of a media type.
fn version_in(item: &str) -> Option<&str> {
    item.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("version").then(|| value.trim().trim_matches('"'))
    })
}

/// The media type of JSON that is no answer of SPARQL's.
pub const JSON: &str = "application/json";

/// Whether a client would rather see JSON than text, of what is on offer as both.
pub fn wants_json(accept: Option<&str>) -> bool {
    let ranges: Vec<(&str, f32)> = accept.unwrap_or_default().split(',').map(parse_range).collect();
    quality_of(JSON, &ranges) > quality_of("text/plain", &ranges)
}

/// The media types on offer, for the text of a 406.
pub fn offered(answer: Answer) -> String {
    offers(answer).iter().map(|(_, names)| names[0]).collect::<Vec<_>>().join(", ")
}

/// A range and its quality.
pub fn parse_range(item: &str) -> (&str, f32) {
    let mut parts = item.split(';').map(str::trim);
    let range = parts.next().unwrap_or("");
    let quality = parts
        .find_map(|p| p.strip_prefix("q=").or_else(|| p.strip_prefix("Q=")))
        .and_then(|q| q.parse::<f32>().ok())
        .unwrap_or(1.0);
    (range, quality.clamp(0.0, 1.0))
}

/// Quality of the most specific range that matches `name`, 0 when none does.
fn quality_of(name: &str, ranges: &[(&str, f32)]) -> f32 {
    let kind = name.split('/').next().unwrap_or("");
    let specificity = |range: &str| {
        if range.eq_ignore_ascii_case(name) {
            3
        } else if range.strip_suffix("/*").is_some_and(|r| r.eq_ignore_ascii_case(kind)) {
            2
        } else if range == "*/*" || range == "*" {
            1
        } else {
            0
        }
    };
    ranges
        .iter()
        .map(|(range, quality)| (specificity(range), *quality))
        .filter(|(s, _)| *s > 0)
        .max_by_key(|(s, _)| *s)
        .map_or(0.0, |(_, q)| q)
}

/// Quality of a token that may be named or meant by `*`; `None` when it is not.
pub fn quality_of_token(name: &str, ranges: &[(&str, f32)]) -> Option<f32> {
    let of = |range: &str| ranges.iter().find(|(r, _)| r.eq_ignore_ascii_case(range)).map(|(_, q)| *q);
    of(name).or_else(|| of("*"))
}

/// Whether a client would rather see a page than anything else.
pub fn wants_page(accept: Option<&str>) -> bool {
    accept.is_some_and(|_| negotiate(accept, Answer::Solutions).is_some_and(|(f, _)| f == ResultFormat::Html))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(accept: &str, answer: Answer) -> Option<&'static str> {
        negotiate(Some(accept), answer).map(|(_, name)| name)
    }

    #[test]
    fn no_header_takes_our_first() {
        assert_eq!(negotiate(None, Answer::Solutions).unwrap().1, "application/sparql-results+json");
        assert_eq!(pick("*/*", Answer::Graph), Some("application/n-triples"));
    }

    #[test]
    fn quality_beats_order_and_specific_beats_wild() {
        assert_eq!(
            pick("text/csv;q=0.5, application/sparql-results+xml", Answer::Solutions),
            Some("application/sparql-results+xml")
        );
        assert_eq!(pick("*/*;q=0.1, text/csv", Answer::Solutions), Some("text/csv"));
        assert_eq!(
            pick("application/*, application/sparql-results+json;q=0", Answer::Solutions),
            Some("application/json")
        );
        assert_eq!(pick("application/rdf+xml", Answer::Graph), Some("application/rdf+xml"));
        assert_eq!(pick("application/json", Answer::Graph), Some("application/json"), "JSON-LD");
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        assert_eq!(pick(browser, Answer::Solutions), Some("text/html"));
        assert!(wants_page(Some(browser)) && !wants_page(Some("*/*")) && !wants_page(None));
    }

    #[test]
    fn json_is_for_those_that_prefer_it_to_text() {
        let wants = |accept| wants_json(Some(accept));
        assert!(
            wants("application/json") && wants("application/sparql-results+json, application/json;q=0.9")
        );
        assert!(wants("text/plain;q=0.5, application/*"));
        assert!(!wants("*/*") && !wants("") && !wants("text/plain, application/json"));
        assert!(!wants("text/html,*/*;q=0.8") && !wants("application/json;q=0") && !wants_json(None));
    }

    #[test]
    fn versions_are_those_of_the_media_type() {
        let of = |accept| version_of(Some(accept), "text/turtle");
        let (classic, newest) = (RdfVersion::Classic, RdfVersion::Newest);
        assert_eq!(of("text/turtle"), (newest, false));
        assert_eq!(version_of(None, "text/turtle"), (newest, false));
        assert_eq!(of("text/turtle; version=1.2"), (newest, true));
        assert_eq!(of("text/turtle;q=0.5;Version=\"1.2-basic\", text/turtle"), (newest, true));
        assert_eq!(of("text/turtle;version=1.1, application/n-triples;version=1.2"), (classic, false));
        assert_eq!(of("text/turtle;version=1.1, text/turtle"), (newest, false));
        assert_eq!(of("text/turtle;version=1.1, text/turtle;version=1.2;q=0"), (classic, false));
        assert_eq!(of("*/*;version=1.1"), (newest, false));
    }

    #[test]
    fn nothing_acceptable() {
        assert_eq!(pick("image/png", Answer::Solutions), None);
        assert_eq!(pick("text/turtle", Answer::Solutions), None);
    }
}
