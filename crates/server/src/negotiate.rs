//! Content negotiation: which result format answers an `Accept` header (RFC 9110, section
//! 12.5.1).
//!
//! The most specific matching range gives a format its quality; among equal qualities our own
//! order of preference decides. No header, or `*/*`, takes the first.
//!
//! A range may name a version of RDF (RDF 1.2 Concepts, 2.1): then it matches an answer whose terms
//! that version has, and is more specific than the same range without one. Which terms an answer
//! has is seen while it is written. So there is a choice for each version, and one that fails at a
//! newer term is followed by the next. JSON-LD has no triple terms, whatever it is asked for.

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

/// A way to write an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub format: ResultFormat,
    pub media_type: &'static str,
    /// for answers without newer terms
    pub version: RdfVersion,
    /// the version, if a range names one for this type
    pub label: Option<&'static str>,
}

/// A range of `Accept`.
#[derive(Clone, Copy, Debug)]
struct Range<'a> {
    types: &'a str,
    version: Option<RdfVersion>,
    quality: f32,
}

fn ranges(accept: Option<&str>) -> Vec<Range<'_>> {
    let accept = accept.map(str::trim).filter(|a| !a.is_empty()).unwrap_or("*/*");
    let range = |item| {
        let (types, quality) = parse_range(item);
        Range { types, version: version_in(item), quality }
    };
    parts(accept, ',').map(range).collect()
}

/// The parts of a header's value between separators that are in no quoted string (RFC 9110,
/// 5.6.4).
fn parts(value: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    value.split(move |c: char| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        match c {
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => return c == separator && !is_quoted,
        }
        false
    })
}

/// The format and its media type, or `None` when nothing on offer is acceptable (406).
pub fn negotiate(accept: Option<&str>, answer: Answer) -> Option<(ResultFormat, &'static str)> {
    choices(accept, answer).first().map(|choice| (choice.format, choice.media_type))
}

/// The best choice for an answer with the terms of each version, in the order of these; neighbours
/// that agree are one. None: nothing on offer is acceptable (406).
pub fn choices(accept: Option<&str>, answer: Answer) -> Vec<Choice> {
    let ranges = ranges(accept);
    let mut choices: Vec<Choice> = Vec::new();
    for version in RdfVersion::ALL {
        let mut best: Option<(f32, ResultFormat, &'static str)> = None;
        for (format, names) in offers(answer).iter().filter(|(format, _)| version <= format.newest_version())
        {
            for name in *names {
                let quality = quality_of_version(name, version, &ranges);
                if quality > 0.0 && best.is_none_or(|(q, ..)| quality > q) {
                    best = Some((quality, *format, name));
                }
            }
        }
        let Some((_, format, media_type)) = best else { continue };
        match choices.last_mut().filter(|last| last.media_type == media_type) {
            Some(last) => last.version = version,
            None => choices.push(Choice { format, media_type, version, label: None }),
        }
    }
    for choice in &mut choices {
        choice.label = label(choice, &ranges);
    }
    choices
}

/// The label of a choice, where a range names a version of RDF 1.2 for its type.
fn label(choice: &Choice, ranges: &[Range<'_>]) -> Option<&'static str> {
    let names = |range: &Range<'_>| {
        range.types.eq_ignore_ascii_case(choice.media_type)
            && range.quality > 0.0
            && range.version > Some(RdfVersion::Classic)
    };
    (choice.version > RdfVersion::Classic && ranges.iter().any(names)).then(|| choice.version.label())
}

/// The quality of a type for an answer with terms of a version. One for which it is not acceptable
/// rules newer ones out, but for those that a range names.
fn quality_of_version(name: &str, version: RdfVersion, ranges: &[Range<'_>]) -> f32 {
    let (quality, is_named) = quality_at(name, version, ranges);
    let mut older = RdfVersion::ALL.into_iter().filter(|older| *older < version);
    match is_named || older.all(|older| quality_at(name, older, ranges).0 > 0.0) {
        true => quality,
        false => 0.0,
    }
}

/// The quality of a type for a version, whatever others say, and whether a range has named it.
fn quality_at(name: &str, version: RdfVersion, ranges: &[Range<'_>]) -> (f32, bool) {
    for specificity in [3, 2, 1] {
        let of_these = || ranges.iter().filter(|range| specificity_of(range.types, name) == specificity);
        if of_these().any(|range| range.version == Some(version) && range.quality == 0.0) {
            return (0.0, false);
        }
        let knows = |range: &&Range<'_>| range.version >= Some(version) && range.quality > 0.0;
        let quality = |range: &Range<'_>| range.quality;
        let named = of_these().filter(knows).map(quality).reduce(f32::max);
        let any = || of_these().filter(|range| range.version.is_none()).map(quality).next_back();
        if let Some(quality) = named.or_else(any) {
            return (quality, named.is_some());
        }
    }
    (0.0, false)
}

/// The version that a range names with the parameter `version`; `None` also for one that is not
/// known.
fn version_in(item: &str) -> Option<RdfVersion> {
    let named = parts(item, ';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("version").then(|| value.trim().trim_matches('"'))
    })?;
    RdfVersion::ALL.into_iter().find(|version| version.label() == named)
}

/// The media type of JSON that is no answer of SPARQL's.
pub const JSON: &str = "application/json";

/// Whether a client would rather see JSON than text, of what is on offer as both.
pub fn wants_json(accept: Option<&str>) -> bool {
    let ranges: Vec<(&str, f32)> = parts(accept.unwrap_or_default(), ',').map(parse_range).collect();
    quality_of(JSON, &ranges) > quality_of("text/plain", &ranges)
}

/// A problem of RFC 9457.
const PROBLEM: &str = "application/problem+json";

/// The media type of a failure for a client that would rather see a problem than text.
pub fn problem_type(accept: Option<&str>) -> Option<&'static str> {
    let ranges: Vec<(&str, f32)> = parts(accept.unwrap_or_default(), ',').map(parse_range).collect();
    let [problem, json, text] = [PROBLEM, JSON, "text/plain"].map(|name| quality_of(name, &ranges));
    match () {
        () if problem > text && problem >= json => Some(PROBLEM),
        () if json > text => Some(JSON),
        () => None,
    }
}

/// The media types on offer, for the text of a 406.
pub fn offered(answer: Answer) -> String {
    offers(answer).iter().map(|(_, names)| names[0]).collect::<Vec<_>>().join(", ")
}

/// A range and its quality.
pub fn parse_range(item: &str) -> (&str, f32) {
    let mut parameters = parts(item, ';').map(str::trim);
    let range = parameters.next().unwrap_or("");
    let quality = parameters
        .find_map(|p| p.strip_prefix("q=").or_else(|| p.strip_prefix("Q=")))
        .and_then(|q| q.parse::<f32>().ok())
        .unwrap_or(1.0);
    (range, quality.clamp(0.0, 1.0))
}

/// Quality of the most specific range that matches `name`, 0 when none does.
fn quality_of(name: &str, ranges: &[(&str, f32)]) -> f32 {
    ranges
        .iter()
        .map(|(range, quality)| (specificity_of(range, name), *quality))
        .filter(|(s, _)| *s > 0)
        .max_by_key(|(s, _)| *s)
        .map_or(0.0, |(_, q)| q)
}

/// How narrowly a range is about a type; 0: it does not match.
fn specificity_of(range: &str, name: &str) -> u8 {
    let kind = name.split('/').next().unwrap_or("");
    if range.eq_ignore_ascii_case(name) {
        3
    } else if range.strip_suffix("/*").is_some_and(|r| r.eq_ignore_ascii_case(kind)) {
        2
    } else {
        u8::from(range == "*/*" || range == "*")
    }
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
    fn problems_are_for_those_that_prefer_them_to_text() {
        let of = |accept| problem_type(Some(accept));
        assert_eq!(of("application/problem+json"), Some(PROBLEM));
        assert_eq!(of("application/json"), Some(JSON));
        assert_eq!(of("application/problem+json;q=0.5, application/json"), Some(JSON));
        assert_eq!(of("application/sparql-results+json, application/*;q=0.5"), Some(PROBLEM));
        assert_eq!(of("application/sparql-results+json"), None);
        assert_eq!(of("*/*"), None);
        assert_eq!(of("text/html,*/*;q=0.8"), None);
        assert_eq!(problem_type(None), None);
    }

    fn chosen(accept: &str) -> Vec<(&'static str, RdfVersion, Option<&'static str>)> {
        let choices = choices(Some(accept), Answer::Graph).into_iter();
        choices.map(|choice| (choice.media_type, choice.version, choice.label)).collect()
    }

    #[test]
    fn versions_are_those_of_the_media_type() {
        let (classic, basic, newest) = (RdfVersion::Classic, RdfVersion::Basic, RdfVersion::Newest);
        let (turtle, triples) = ("text/turtle", "application/n-triples");
        assert_eq!(chosen(turtle), [(turtle, newest, None)]);
        assert_eq!(chosen("text/turtle; version=1.2"), [(turtle, newest, Some("1.2"))]);
        assert_eq!(chosen("text/turtle;q=0.5;Version=\"1.2-basic\""), [(turtle, basic, Some("1.2-basic"))]);
        assert_eq!(chosen("text/turtle;version=1.1"), [(turtle, classic, None)]);
        assert_eq!(chosen("text/turtle;version=1.1, text/turtle"), [(turtle, newest, None)]);
        assert_eq!(chosen("text/turtle, text/turtle;version=1.2;q=0"), [(turtle, basic, None)]);
        assert_eq!(chosen("text/turtle;version=9"), [(turtle, newest, None)]);
        // another type takes the terms that this one may not have
        assert_eq!(
            chosen("text/turtle;version=1.1, */*;q=0.1"),
            [(turtle, classic, None), (triples, newest, None)]
        );
        assert_eq!(
            chosen("text/turtle;version=1.2-basic, application/n-triples;q=0.5"),
            [(turtle, basic, Some("1.2-basic")), (triples, newest, None)]
        );
        assert_eq!(
            chosen("application/ld+json, */*;q=0.1"),
            [("application/ld+json", basic, None), (triples, newest, None)]
        );
        assert_eq!(chosen("*/*;version=1.1"), [(triples, classic, None)]);
        // one that is named is taken, whatever older ones are
        assert_eq!(
            chosen("text/turtle;version=1.1;q=0, text/turtle;version=1.2"),
            [(turtle, newest, Some("1.2"))]
        );
        assert_eq!(chosen("text/turtle;version=1.1;q=0, text/turtle"), []);
    }

    #[test]
    fn separators_in_quotes_separate_nothing() {
        let quoted = "text/turtle;title=\"a, text/csv;q=1; \\\", b\";q=0.5, application/trig;version=\"1.1\"";
        let ranges = ranges(Some(quoted));
        let of: Vec<_> = ranges.iter().map(|range| (range.types, range.version, range.quality)).collect();
        assert_eq!(
            of,
            [("text/turtle", None, 0.5), ("application/trig", Some(RdfVersion::Classic), 1.0)],
            "{quoted}"
        );
        assert!(!wants_json(Some("text/plain;title=\"a, application/json\"")));
        assert_eq!(problem_type(Some("text/plain;title=\"a, application/problem+json\"")), None);
    }

    /// The quality of a type for an answer of a version, said another way: the ranges that match
    /// it are sorted by how narrow they are. And whether the narrowest names a version.
    fn wanted(name: &str, version: usize, items: &[(String, Option<usize>, f32)]) -> (f32, bool) {
        let mut matching: Vec<(usize, bool, f32)> = Vec::new();
        for (types, of, quality) in items {
            let narrow = match types.as_str() {
                "*/*" => 1,
                types if types.ends_with("/*") => {
                    if name.starts_with(types.trim_end_matches('*')) {
                        2
                    } else {
                        continue;
                    }
                }
                types => {
                    if types == name {
                        3
                    } else {
                        continue;
                    }
                }
            };
            match of {
                Some(of) if *quality == 0.0 && *of != version => {}
                Some(of) if *of < version => {}
                of => matching.push((narrow, of.is_some(), *quality)),
            }
        }
        let Some(narrowest) = matching.iter().map(|(narrow, named, _)| (*narrow, *named)).max() else {
            return (0.0, false);
        };
        let best = matching.iter().filter(|(narrow, named, _)| (*narrow, *named) == narrowest).map(|m| m.2);
        let quality = if best.clone().any(|quality| quality == 0.0) { 0.0 } else { best.fold(0.0, f32::max) };
        (quality, narrowest.1)
    }

    #[test]
    fn choices_are_those_of_a_simple_model() {
        let labels = ["1.1", "1.2-basic", "1.2"];
        let answers = [Answer::Solutions, Answer::Graph, Answer::Dataset, Answer::Description];
        let mut random = snowmelt_base::test_seed(7);
        let mut below = |n: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % n
        };
        let mut retried = 0;
        for _ in 0..20_000 {
            let answer = answers[below(4)];
            let all: Vec<(ResultFormat, &str)> =
                offers(answer).iter().flat_map(|(f, names)| names.iter().map(|name| (*f, *name))).collect();
            let mut items: Vec<(String, Option<usize>, f32)> = Vec::new();
            for _ in 0..1 + below(4) {
                let types = match below(4) {
                    0 => "*/*".to_owned(),
                    1 => ["application/*", "text/*"][below(2)].to_owned(),
                    _ => all[below(all.len())].1.to_owned(),
                };
                let version = [None, Some(0), Some(1), Some(2)][below(4)];
                // said twice, a range means what it says last
                if !items.iter().any(|(t, v, _)| (t, v) == (&types, &version)) {
                    items.push((types, version, [0.0, 0.25, 0.5, 1.0][below(4)]));
                }
            }
            let texts: Vec<String> = items
                .iter()
                .map(|(types, version, quality)| {
                    let version = version.map_or(String::new(), |v| format!("; version={}", labels[v]));
                    format!("{types}{version};q={quality}")
                })
                .collect();
            let accept = texts.join(", ");
            let choices = choices(Some(&accept), answer);
            retried += usize::from(choices.len() > 1);
            assert!(choices.is_sorted_by(|a, b| a.version < b.version), "{accept}: {choices:?}");
            let first_at = |level: usize| {
                let quality = |(format, name): &(ResultFormat, &str)| {
                    let says = level < 2 || *format != ResultFormat::JsonLd;
                    let (quality, is_named) = wanted(name, level, &items);
                    let mut older = (0..level).map(|level| wanted(name, level, &items).0);
                    let may = says && (is_named || older.all(|quality| quality > 0.0));
                    if may { quality } else { 0.0 }
                };
                let best = all.iter().map(quality).fold(0.0, f32::max);
                all.iter().find(|offer| best > 0.0 && quality(offer) == best).map(|offer| offer.1)
            };
            for (level, version) in RdfVersion::ALL.into_iter().enumerate() {
                // of a newer version, where that of the answer's own is not acceptable
                let first = (level..RdfVersion::ALL.len()).find_map(first_at);
                let chosen = choices.iter().find(|choice| choice.version >= version);
                assert_eq!(
                    chosen.map(|choice| choice.media_type),
                    first,
                    "{accept}, {version:?}: {choices:?}"
                );
            }
        }
        assert!(retried > 1000, "{retried}");
    }

    #[test]
    fn nothing_acceptable() {
        assert_eq!(pick("image/png", Answer::Solutions), None);
        assert_eq!(pick("text/turtle", Answer::Solutions), None);
    }
}
