//! Texts to syntax trees, and what is said about those that are none.

use spargebra::{Query, SparqlParser, SparqlSyntaxError, Update};

use super::star;
use crate::error::{QueryError, place};

/// Parses a text as a query.
pub(crate) fn parse(text: &str, base: Option<&str>) -> Result<Query, QueryError> {
    let parser = parser(base)?;
    let mut query = parsed(text, |text| parser.clone().parse_query(text)).map_err(|error| {
        let parsed = || parser.clone().parse_update(text);
        let is_update = is_short(text) && parsed().is_ok_and(|update| !update.operations.is_empty());
        if is_update { other_kind(text, IS_UPDATE) } else { error }
    })?;
    star::keep_order(text, &mut query);
    Ok(query)
}

const IS_UPDATE: &str = "this is an update, not a query; run it with `snowmelt update`, over HTTP by a POST to \
    /update, in a program with `update`";
const IS_QUERY: &str = "this is a query, not an update; run it with `snowmelt query`, over HTTP at /sparql, in a \
    program with `query`";

/// Whether a wrong text may be parsed as the other kind: memory was reserved for its own only.
fn is_short(text: &str) -> bool {
    text.len() <= 64 << 10
}

/// The error of a text that is right, but for the other function.
fn other_kind(text: &str, message: &str) -> QueryError {
    QueryError::parse_at(text, text.len() - text.trim_start().len(), message)
}

/// Parses a text as an update.
pub(crate) fn parse_update(text: &str, base: Option<&str>) -> Result<Update, QueryError> {
    let parser = parser(base)?;
    parsed(text, |text| parser.clone().parse_update(text)).map_err(|error| {
        let is_query = is_short(text) && parser.clone().parse_query(text).is_ok();
        if is_query { other_kind(text, IS_QUERY) } else { error }
    })
}

/// A parser with a base IRI.
fn parser(base: Option<&str>) -> Result<SparqlParser, QueryError> {
    let parser = SparqlParser::new();
    let Some(base) = base else { return Ok(parser) };
    let bad = |e| QueryError::Parse { line: 0, column: 0, message: format!("the base IRI {base}: {e}") };
    parser.with_base_iri(base).map_err(bad)
}

fn parsed<T>(text: &str, parse: impl Fn(&str) -> Result<T, SparqlSyntaxError>) -> Result<T, QueryError> {
    parse(text).map_err(|error| {
        let error = error.to_string();
        let (at, message) = placed(text, &error);
        // The parser goes over a wrong text twice. The second time it takes each label of a
        // blank node for used already, goes no further, and does not hear what was expected at
        // the end of its way.
        let bare = without_labels(text);
        let (at, message) = match bare.as_ref().map(|bare| parse(bare).map_err(|e| e.to_string())) {
            Some(Ok(_)) => (at, "a blank node has the label of one in another graph pattern".into()),
            Some(Err(other)) if placed(text, &other).0 == at => explain(text, at, placed(text, &other).1),
            _ => explain(text, at, message),
        };
        let (line, column) = place(text, at);
        QueryError::Parse { line, column, message }
    })
}

/// The offset and the message of "error at LINE:COLUMN: MESSAGE".
fn placed<'a>(text: &str, error: &'a str) -> (usize, &'a str) {
    let parts = error.strip_prefix("error at ").and_then(|rest| {
        let (line, rest) = rest.split_once(':')?;
        let (column, rest) = rest.split_once(':')?;
        Some((offset(text, line.parse().ok()?, column.trim().parse().ok()?)?, rest.trim()))
    });
    parts.unwrap_or((0, error))
}

/// The text with an anonymous blank node, as long, for each that has a label; nothing if none has.
fn without_labels(text: &str) -> Option<String> {
    let of_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    let mut bare = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("_:") {
        bare.push_str(before);
        rest = after;
        let label = after.split(|c| !of_name(c)).next().unwrap_or("").trim_end_matches('.');
        if !label.starts_with(|c: char| c.is_alphanumeric() || c == '_') || before.ends_with(of_name) {
            bare.push_str("_:"); // no label, or the end of a prefix
            continue;
        }
        bare.push('[');
        bare.extend(label.chars().map(|_| ' '));
        bare.push(']');
        rest = &after[label.len()..];
    }
    bare.push_str(rest);
    (bare != text).then_some(bare)
}

/// The offset of a line and column, both from 1.
fn offset(text: &str, line: usize, column: usize) -> Option<usize> {
    let start = match line {
        1 => 0,
        _ => text.match_indices('\n').nth(line - 2)?.0 + 1,
    };
    let rest = &text[start..];
    Some(start + rest.char_indices().nth(column - 1).map_or(rest.len(), |(i, _)| i))
}

/// Where it went wrong, and what could have stood there.
///
/// The parser lists all it could have gone on with after the longest way it went, classes of
/// characters among it. The words and signs of the language are of more use. It has gone as far
/// as a keyword is long when it compares that: where only keywords are wanted, it went wrong
/// somewhere from there on, and what else was wanted is not in the list.
fn explain(text: &str, at: usize, message: &str) -> (usize, String) {
    const MOST: usize = 8;
    if message == "expected [_]" {
        // Grammatical, but refused by a rule of the language that the parser does not name.
        return (
            at,
            "what ends here is not allowed, as a variable that BIND or AS gives a value although it has one"
                .into(),
        );
    }
    let list = message.strip_prefix("expected one of ").or_else(|| message.strip_prefix("expected "));
    let Some(list) = list else {
        return (at, message.split_whitespace().collect::<Vec<_>>().join(" "));
    };
    let all = list.split(", ").map(str::trim).filter(|t| !t.starts_with('[') && !t.contains('\n'));
    let (keywords, signs): (Vec<&str>, Vec<&str>) = all.partition(|token| is_keyword(token));
    let before = |keyword: &str| text[..at].char_indices().rev().nth(keyword.len() - 1).map_or(0, |(i, _)| i);
    let from = match signs.is_empty() {
        true => keywords.iter().map(|keyword| before(keyword)).max().unwrap_or(at),
        false => at,
    };
    let of_name = |c: char| c.is_alphanumeric() || "_-.:%\\".contains(c);
    let name = match list.contains("Prefix not found") {
        true => text[..at].trim_end_matches(of_name).len(),
        false => at,
    };
    if let Some((place, prefix)) = undeclared_prefix(text, from.min(name)..at) {
        let known = crate::text::prefixes::known_namespace(prefix.trim_end_matches(':'));
        let hint = known.map(|iri| format!("; begin with PREFIX {prefix} <{iri}>")).unwrap_or_default();
        return (place, format!("the prefix {prefix} is not declared{hint}"));
    }
    if !signs.is_empty() || keywords.is_empty() {
        let more = if signs.len() > MOST { ", …" } else { "" };
        let wanted = match signs[..signs.len().min(MOST)].join(", ") {
            none if none.is_empty() => "another character".into(),
            some => some,
        };
        return (at, format!("found {}, expected {wanted}{more}", found(&text[at..])));
    }
    let likely =
        keywords.into_iter().filter(|keyword| before(keyword) == from).collect::<Vec<_>>().join(", ");
    let stretch = text[from..at].split_whitespace().collect::<Vec<_>>().join(" ");
    (from, format!("\"{stretch}\" is not understood; {likely} or another keyword could stand there"))
}

/// The first prefix in a part of a text that the text nowhere declares.
fn undeclared_prefix(text: &str, part: std::ops::Range<usize>) -> Option<(usize, String)> {
    let of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-' || c == '.';
    part.clone().filter(|&i| text.as_bytes()[i] == b':').find_map(|colon| {
        let start = text[..colon]
            .rfind(|c| !of_name(c))
            .map_or(0, |i| i + text[i..].chars().next().map_or(1, char::len_utf8));
        let prefix = &text[start..=colon];
        let declared = text.match_indices(prefix).any(|(i, _)| {
            let before = text[..i].trim_end().as_bytes();
            before.len() >= 6 && before[before.len() - 6..].eq_ignore_ascii_case(b"prefix")
        });
        let begins = prefix != "_:" && !text[..start].ends_with(['<', '"', '\'', '/', '#']);
        (begins && !declared && start >= part.start).then(|| (start, prefix.to_string()))
    })
}

fn is_keyword(token: &str) -> bool {
    !token.is_empty() && token != "EOF" && token.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

/// The word or sign at the beginning of a text.
fn found(text: &str) -> String {
    let word = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    match text.chars().next() {
        None => "the end".into(),
        Some(_) if word > 0 => format!("\"{}\"", &text[..word]),
        Some('\n') => "the end of the line".into(),
        Some(sign) => format!("\"{sign}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        match parse(text, None) {
            Err(e) => e.to_string(),
            Ok(_) => panic!("{text} is a query"),
        }
    }

    #[test]
    fn a_misspelt_keyword_is_named_with_its_place() {
        let select = said("\nSELEC ?s WHERE {?s ?p ?o}");
        assert!(select.starts_with("line 2, column 1: \"SELEC ?s\" is not understood; "), "{select}");
        let r#where = said("SELECT ?s WHER {?s ?p ?o}");
        assert!(r#where.starts_with("line 1, column 11: \"WHER\" is not understood; WHERE or"), "{where}");
        let limit = said("SELECT ?s {?s ?p ?o} LIMT 3");
        assert!(limit.starts_with("line 1, column 22: \"LIMT 3\" is not understood; "), "{limit}");
    }

    #[test]
    fn a_text_of_the_other_kind_is_told() {
        let update = said(" INSERT DATA { <urn:a> <urn:p> 1 }");
        assert!(update.starts_with("line 1, column 2: this is an update, not a query; "), "{update}");
        let query = parse_update("ASK { }", None).unwrap_err().to_string();
        assert!(query.starts_with("line 1, column 1: this is a query, not an update; "), "{query}");
        assert!(!said("").contains("update"), "{}", said(""));
    }

    #[test]
    fn a_known_prefix_is_offered() {
        let offered = said("SELECT * { ?s foaf:name ?o }");
        let hint = "the prefix foaf: is not declared; begin with PREFIX foaf: <http://xmlns.com/foaf/0.1/>";
        assert!(offered.ends_with(hint), "{offered}");
        assert!(said("SELECT * { ?s nobody:name ?o }").ends_with("the prefix nobody: is not declared"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let open = said("SELECT ?s {?s ?p ?o");
        assert!(
            open.starts_with("line 1, column 20: found the end, expected ") && open.contains("\"}\""),
            "{open}"
        );
        let sign = said("SELECT ?s {?s ?p %}");
        assert!(sign.starts_with("line 1, column 12: \"?s ?p %}\" is not understood; "), "{sign}");
    }

    #[test]
    fn a_prefix_without_a_declaration_is_named() {
        let text = "PREFIX a: <http://a/> SELECT ?s {?s a:p ex:o}";
        assert_eq!(undeclared_prefix(text, 33..text.len()), Some((40, "ex:".into())));
        assert_eq!(undeclared_prefix("SELECT ?s {?s ?p <http://a>}", 0..27), None);
        for name in ["ex:p", "ex:a-longer-name"] {
            let text = format!("SELECT ?s {{?s {name} ?o}}");
            assert_eq!(said(&text), "line 1, column 15: the prefix ex: is not declared");
        }
        for text in [
            "SELECT ?s {_:b } LI",
            "SELECT ?s {?s ?p \"from 10:30\n}",
            "SELECT ?s {?s ?p \"from 10:30\"} LIMT 3",
        ] {
            assert!(!said(text).contains("prefix"), "{}", said(text));
        }
    }

    #[test]
    fn a_label_of_a_blank_node_hides_no_error() {
        let limit = said("SELECT ?s {?s ?p _:b.} LIMT 3");
        assert!(limit.starts_with("line 1, column 24: \"LIMT 3\" is not understood; "), "{limit}");
        let prefix = said("PREFIX a_: <http://a/> SELECT ?s {?s a_:p _:é . ?s ex:q ?z}");
        assert_eq!(prefix, "line 1, column 52: the prefix ex: is not declared");
        let open = said("SELECT ?s {?s ?p _:b");
        assert!(
            open.starts_with("line 1, column 21: found the end, expected \"") && open.contains("\"}\""),
            "{open}"
        );
        let twice = said("SELECT ?s {?s ?p _:b OPTIONAL {_:b ?q ?r}}");
        assert!(twice.ends_with(": a blank node has the label of one in another graph pattern"), "{twice}");
        let update = parse_update("INSERT DATA {_:b <a:p> <a:o> . _:b ex:p 1}", None).map(drop).unwrap_err();
        assert_eq!(update.to_string(), "line 1, column 36: the prefix ex: is not declared");
        assert_eq!(without_labels("a_:b \"_:\" _:-b _:b1.x. "), Some("a_:b \"_:\" _:-b [    ]. ".into()));
        assert_eq!(without_labels("a_:b _ :"), None);
    }

    #[test]
    fn one_line_of_tokens() {
        let message = "expected one of \"$\", \"?\", GRAPH, ['0' ..= '9' | '\u{B7}'\n| 'x'], MINUS";
        assert_eq!(explain("x", 0, message), (0, "found \"x\", expected \"$\", \"?\"".into()));
        assert_eq!(
            explain("x", 0, "expected ['0' ..= '9']"),
            (0, "found \"x\", expected another character".into())
        );
        assert_eq!(explain("x", 0, "no\nprefix ex"), (0, "no prefix ex".into()));
        assert!(explain("x", 0, "expected one of a, b, c, d, e, f, g, h, i").1.ends_with("h, …"));
    }
}
