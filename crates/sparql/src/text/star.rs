//! `SELECT *` in the order in which the variables appear.
//!
//! SPARQL leaves the order of columns open; the parser gives them by name. People expect what they
//! wrote, so the columns of the outermost `SELECT *` are put into the order of the text. One pass
//! over the text finds the variables; comments, IRIs and strings are passed over.

use rustc_hash::FxHashMap;
use spargebra::Query;
use spargebra::algebra::GraphPattern;

/// Orders the columns of a query if its text asks for all.
pub(super) fn keep_order(text: &str, query: &mut Query) {
    let Query::Select { pattern, .. } = query else { return };
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    let mut stage = Stage::Prologue;
    for (place, word) in (Words { text, at: 0 }).enumerate() {
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword);
        stage = match (stage, word) {
            (Stage::Prologue, _) if is("SELECT") => Stage::Select,
            (Stage::Select, "*") => Stage::Star,
            (Stage::Select, _) if !is("DISTINCT") && !is("REDUCED") => return,
            (stage, _) => stage,
        };
        if let Some(name) = word.strip_prefix(['?', '$']) {
            places.entry(name).or_insert(place);
        }
    }
    if let Some(variables) = outermost(pattern) {
        variables.sort_by_key(|variable| places.get(variable.as_str()).copied().unwrap_or(usize::MAX));
    }
}

/// How far the text has been read.
#[derive(Clone, Copy)]
enum Stage {
    Prologue,
    Select,
    Star,
}

/// The columns of the outermost projection.
fn outermost(pattern: &mut GraphPattern) -> Option<&mut Vec<spargebra::term::Variable>> {
    use GraphPattern as P;
    match pattern {
        P::Project { variables, .. } => Some(variables),
        P::Distinct { inner } | P::Reduced { inner } | P::Slice { inner, .. } => outermost(inner),
        _ => None,
    }
}

/// Words, variables with their sign, and stars of a text.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            let rest = &self.text[self.at..];
            let first = rest.chars().next()?;
            let len = match first {
                '#' => rest.find(['\n', '\r']).unwrap_or(rest.len()),
                '<' => iri_len(rest),
                '"' | '\'' => string_len(rest),
                '?' | '$' => 1 + name_len(&rest[1..]),
                first if is_of_name(first) => name_len(rest),
                first => first.len_utf8(),
            };
            self.at += len;
            if matches!(first, '*' | '?' | '$') || is_of_name(first) {
                return Some(&rest[..len]);
            }
        }
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '\u{b7}'
}

fn name_len(text: &str) -> usize {
    text.find(|c| !is_of_name(c)).unwrap_or(text.len())
}

/// The length of an IRI, or of the sign `<` where none begins.
fn iri_len(text: &str) -> usize {
    let end = text[1..].find(|c: char| c == '>' || c <= ' ' || "<\"{}|^`\\".contains(c));
    match end {
        Some(end) if text[1 + end..].starts_with('>') => end + 2,
        _ => 1,
    }
}

/// The length of a string in one or three quotes.
fn string_len(text: &str) -> usize {
    let quote = &text[..1];
    let long = quote.repeat(3);
    let end = if text.starts_with(&long) { long.as_str() } else { quote };
    let mut at = end.len();
    while let Some(c) = text[at..].chars().next() {
        if text[at..].starts_with(end) {
            return at + end.len();
        }
        at += c.len_utf8();
        if c == '\\' {
            at += text[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use spargebra::SparqlParser;

    fn columns(text: &str) -> Vec<String> {
        let mut query = SparqlParser::new().parse_query(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        keep_order(text, &mut query);
        let Query::Select { mut pattern, .. } = query else { panic!("{text} is no SELECT") };
        outermost(&mut pattern).unwrap().iter().map(|v| v.as_str().to_owned()).collect()
    }

    #[test]
    fn columns_are_in_the_order_of_the_text() {
        assert_eq!(columns("SELECT * { ?s ?p ?o }"), ["s", "p", "o"]);
        assert_eq!(columns("SELECT DISTINCT * { ?z ?a $m }  LIMIT 3"), ["z", "a", "m"]);
        assert_eq!(columns("SELECT * { ?b ?p ?a FILTER(?a<3&&?b>1) }"), ["b", "p", "a"]);
        assert_eq!(columns("SELECT ?p ?a { ?b ?p ?a { SELECT * { ?z ?y ?a } } }"), ["p", "a"]);
        assert_eq!(columns("SELECT * { { SELECT ?z ?y { ?a ?y ?z } } ?b ?c ?z }"), ["z", "y", "b", "c"]);
    }

    #[test]
    fn what_only_looks_like_a_variable_is_passed_over() {
        let text =
            "# ?b\nPREFIX x: <urn:?b#> SELECT * { ?c <urn:?b> \"?b \\\" ?b\" , '''?b ' ?b''' . ?a x:p ?b }";
        assert_eq!(columns(text), ["c", "a", "b"]);
    }
}
