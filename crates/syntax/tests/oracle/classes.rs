//! Classes of differences, as `classes.txt` explains them.
//!
//! A class is told by what both parsers say and by what is in the text. A text has one difference,
//! mostly; of those with several the first that fits counts.

use std::sync::LazyLock;

use regex::Regex;
use snowmelt_syntax::{ErrorCode, SyntaxError};

use super::compare::{Difference, Language};

pub const NAMES: &[&str] = &[
    "longest token",
    "words run together",
    "aggregates",
    "aggregates of other forms",
    "labels",
    "dots in quads",
    "lone semicolon",
    "signs of numbers",
    "three quotes",
    "booleans",
    "blanks in calls",
    "dots in names",
    "declarations between operations",
    "columns of columns",
    "grouped by a renamed variable",
    "comments in brackets",
    "rare characters",
    "subjects of triple terms",
];

/// The class of a difference, if it has one.
pub fn of(language: Language, text: &str, difference: &Difference) -> Option<&'static str> {
    match difference {
        Difference::Refused(error) => refused(language, text, error),
        Difference::Taken(_) => taken(language, text),
        Difference::Tree(ours, theirs) => tree(text, ours, theirs),
    }
}

macro_rules! pattern {
    ($text:literal) => {{
        static PATTERN: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).unwrap());
        &*PATTERN
    }};
}

/// Only spargebra takes the text.
fn refused(language: Language, text: &str, error: &SyntaxError) -> Option<&'static str> {
    let expects = |what: &str| error.expected.iter().any(|expected| expected == what);
    let is_word = error.found.starts_with(|c: char| c.is_ascii_alphabetic()) && !error.found.contains(':');
    let behind = &text[error.span.start..];
    if error.expected == ["a variable", "an IRI"] && text.contains("<<(") {
        return Some("subjects of triple terms");
    }
    // A keyword and the prefixed name behind it, which together are another prefixed name.
    const JOINED: &str = r"(?i)^(a|ADD|AS|BASE|BY|COPY|DESCRIBE|FILTER|FROM|GRAPH|HAVING|INTO|LOAD|MOVE|NAMED|PREFIX|SERVICE|SILENT|TO|USING|WITH)[\w.-]*:";
    static JOINED_NAMES: LazyLock<Regex> = LazyLock::new(|| Regex::new(JOINED).unwrap());
    if JOINED_NAMES.is_match(behind) {
        return Some("words run together");
    }
    if pattern!(r"^\.[0-9]").is_match(&error.found) || error.found.starts_with('<') && error.found.len() > 1 {
        return Some("longest token");
    }
    if error.code == ErrorCode::Aggregate {
        return Some("aggregates");
    }
    if error.code == ErrorCode::Blank && error.message.contains("has the label") {
        return Some("labels");
    }
    if error.code == ErrorCode::Token && (behind.starts_with("'''") || behind.starts_with("\"\"\"")) {
        return Some("three quotes");
    }
    if matches!(error.found.as_str(), "+" | "-") {
        return Some("signs of numbers");
    }
    if error.found.starts_with(['+', '-']) && pattern!(r"[\w>)]\s*[+-]").is_match(text) {
        return Some("signs of numbers");
    }
    if error.found == ";" && language == Language::Update {
        return Some("lone semicolon");
    }
    let begins_term = error.found.starts_with(|c: char| c.is_ascii_digit() || "?$<\"'+-".contains(c))
        || error.found.contains(':');
    let is_next = begins_term && expects(".") || matches!(error.found.as_str(), "(" | "[");
    if is_next && language == Language::Update {
        return Some("dots in quads");
    }
    if is_word {
        return Some("words run together");
    }
    None
}

/// Only this crate takes the text.
fn taken(language: Language, text: &str) -> Option<&'static str> {
    if pattern!(r"(?i)\b(true|false)\b")
        .find_iter(text)
        .any(|found| found.as_str() != found.as_str().to_lowercase())
    {
        return Some("booleans");
    }
    if pattern!(r"(?i)\b(CONCAT|COALESCE)\s+\(|\bBNODE\s+\(\s*\)|\bCONCAT\s*#|\bCOALESCE\s*#").is_match(text)
    {
        return Some("blanks in calls");
    }
    if pattern!(r":[^\s;,<>{}()\[\]]*[^\s.;,<>{}()\[\]]\.+[^\s.;,<>{}()\[\]]+\.+[^\s.;,<>{}()\[\]]")
        .is_match(text)
    {
        return Some("dots in names");
    }
    if language == Language::Update
        && pattern!(r"(?is);\s*(#[^\n]*\n\s*)*(PREFIX|BASE|VERSION)\b").is_match(text)
    {
        return Some("declarations between operations");
    }
    let is_grouped =
        pattern!(r"(?i)\b(GROUP|HAVING|COUNT|SUM|MIN|MAX|AVG|SAMPLE|GROUP_CONCAT)\b").is_match(text);
    if is_grouped && pattern!(r"(?i)\b(CONSTRUCT|DESCRIBE|ASK)\b").is_match(text) {
        return Some("aggregates of other forms");
    }
    if text.contains("_:") {
        return Some("labels");
    }
    if is_grouped && pattern!(r"(?is)SELECT.*\bAS\s*[?$].*\bAS\s*[?$]").is_match(text) {
        return Some("columns of columns");
    }
    if pattern!(r"[(\[]\s*#").is_match(text) {
        return Some("comments in brackets");
    }
    if text.chars().any(|c| c > '\u{FFFF}') {
        return Some("rare characters");
    }
    None
}

/// Both take the text, as different trees.
fn tree(text: &str, _ours: &str, theirs: &str) -> Option<&'static str> {
    if pattern!(r"(?is)GROUP\s*BY.*\(\s*[(\s]*[?$]\w+[)\s]*\bAS\b").is_match(text) {
        return Some("grouped by a renamed variable");
    }
    if theirs.contains("(path+") && pattern!(r"\+[0-9.]").is_match(text) {
        return Some("signs of numbers");
    }
    if pattern!(r"[+-]\s+[.0-9]").is_match(text) {
        return Some("signs of numbers");
    }
    None
}
