//! Errors of the parser, told in words of the language.
//!
//! spargebra's error has no parts: its text "error at LINE:COLUMN: expected one of …" is all there
//! is. This file is the only one that reads it. The list holds all the parser could have gone on
//! with after the longest way it went, classes of characters among it; the words and signs of the
//! language are of more use. A text that is not as expected here is passed on as it is.

use super::prefixes::known_namespace;
use super::unfinished::unfinished;

/// The offset and the message of "error at LINE:COLUMN: MESSAGE".
pub(super) fn placed<'a>(text: &str, error: &'a str) -> (usize, &'a str) {
    let parts = error.strip_prefix("error at ").and_then(|rest| {
        let (line, rest) = rest.split_once(':')?;
        let (column, rest) = rest.split_once(':')?;
        Some((offset(text, line.parse().ok()?, column.trim().parse().ok()?)?, rest.trim()))
    });
    parts.unwrap_or((0, error))
}

/// The text with an anonymous blank node, as long, for each that has a label; nothing if none has.
pub(super) fn without_labels(text: &str) -> Option<String> {
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
pub(super) fn explain(text: &str, at: usize, message: &str) -> (usize, String) {
    const MOST: usize = 8;
    if let Some((place, missing)) = unfinished(text, at) {
        return (place, missing.to_owned());
    }
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
        let known = known_namespace(prefix.trim_end_matches(':'));
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

    #[test]
    fn undeclared_prefixes_are_found() {
        let text = "PREFIX a: <http://a/> SELECT ?s {?s a:p ex:o}";
        assert_eq!(undeclared_prefix(text, 33..text.len()), Some((40, "ex:".into())));
        assert_eq!(undeclared_prefix("SELECT ?s {?s ?p <http://a>}", 0..27), None);
    }

    #[test]
    fn labels_make_way_for_anonymous_nodes() {
        assert_eq!(without_labels("a_:b \"_:\" _:-b _:b1.x. "), Some("a_:b \"_:\" _:-b [    ]. ".into()));
        assert_eq!(without_labels("a_:b _ :"), None);
    }
}
