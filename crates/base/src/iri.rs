//! Resolves IRI references (RFC 3986, 5.2, strict), and checks IRIs and language tags by the rules
//! of Turtle, which allow more than the RFCs.
//!
//! The resolver of `oxiri`, which the parsers of Turtle and SPARQL use too, takes dot segments out
//! of the reference alone. The RFC takes them out of the path that reference and base make
//! together, and out of a path behind an authority (5.2.2).
//!
//! Texts are taken apart here, not checked: a parser of IRIs checks the result.

use std::borrow::Cow;

/// The parts of a reference (RFC 3986, appendix B). Each keeps its delimiters, so that their
/// concatenation is the text.
struct Parts<'a> {
    /// With the colon.
    scheme: &'a str,
    /// With the slashes.
    authority: &'a str,
    path: &'a str,
    /// With the question mark.
    query: &'a str,
    /// With the number sign.
    fragment: &'a str,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Self {
        let (rest, fragment) = text.split_at(text.find('#').unwrap_or(text.len()));
        let (rest, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        let (scheme, rest) = rest.split_at(scheme(rest).map_or(0, |scheme| scheme.len() + 1));
        let authority = rest.strip_prefix("//").map_or(0, |after| 2 + after.find('/').unwrap_or(after.len()));
        let (authority, path) = rest.split_at(authority);
        Parts { scheme, authority, path, query, fragment }
    }
}

/// The scheme of an IRI; `None` of a relative reference.
#[must_use]
pub fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let is_sign = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.bytes().all(is_sign)).then_some(scheme)
}

/// Whether Turtle's grammar allows a text as an absolute IRI: more than RFC 3987 does, such as
/// `http://example.org/x#a#b`.
#[must_use]
pub fn is_turtle_iri(text: &str) -> bool {
    scheme(text).is_some() && !text.contains(|c: char| c <= ' ' || "<>\"{}|^`\\".contains(c))
}

/// Whether Turtle's grammar allows a text as a language tag: more than RFC 5646 does, such as
/// `zh-classical`.
#[must_use]
pub fn is_turtle_tag(text: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric());
    let begins = text.split('-').next().is_some_and(|first| first.bytes().all(|b| b.is_ascii_alphabetic()));
    begins && text.split('-').all(is_part)
}

/// The IRI that a reference means against a base. One with a scheme is left as it is: RDF compares
/// IRIs as they are written. `None` where the path would be read as an authority.
#[must_use]
pub fn resolve(base: &str, reference: &str) -> Option<String> {
    let (base, it) = (Parts::split(base), Parts::split(reference));
    if !it.scheme.is_empty() {
        return Some(reference.to_owned());
    }
    let (authority, path, query) = if !it.authority.is_empty() {
        (it.authority, without_dot_segments(it.path), it.query)
    } else if it.path.is_empty() {
        let query = if it.query.is_empty() { base.query } else { it.query };
        (base.authority, Cow::Borrowed(base.path), query)
    } else {
        (base.authority, Cow::Owned(merged(&base, it.path)), it.query)
    };
    let is_mistaken = authority.is_empty() && path.starts_with("//");
    (!is_mistaken).then(|| [base.scheme, authority, &path, query, it.fragment].concat())
}

/// A path of a reference in the folder of a base (5.2.3), without dot segments.
fn merged(base: &Parts<'_>, path: &str) -> String {
    let folder = match base.path.rfind('/') {
        _ if path.starts_with('/') => "",
        Some(end) => &base.path[..=end],
        None if base.path.is_empty() && !base.authority.is_empty() => "/",
        None => "",
    };
    let whole = [folder, path].concat();
    without_dot_segments(&whole).into_owned()
}

/// An IRI whose path has no dot segments; a relative reference is left as it is.
#[must_use]
pub fn plain(iri: &str) -> Cow<'_, str> {
    let parts = Parts::split(iri);
    match without_dot_segments(parts.path) {
        Cow::Owned(path) if !parts.scheme.is_empty() => {
            [parts.scheme, parts.authority, &path, parts.query, parts.fragment].concat().into()
        }
        _ => iri.into(),
    }
}

/// Whether a path has segments `.` or `..`.
#[must_use]
pub fn has_dot_segments(path: &str) -> bool {
    let mut segments = path.split('/');
    path.contains('.') && segments.any(|segment| matches!(segment, "." | ".."))
}

/// A path without its segments `.` and `..` (5.2.4).
#[must_use]
pub fn without_dot_segments(path: &str) -> Cow<'_, str> {
    if !has_dot_segments(path) {
        return path.into();
    }
    let (mut open, mut out) = (path, String::with_capacity(path.len()));
    while !open.is_empty() {
        if let Some(rest) = open.strip_prefix("../").or_else(|| open.strip_prefix("./")) {
            open = rest;
        } else if open.starts_with("/./") {
            open = &open["/.".len()..];
        } else if open.starts_with("/../") || open == "/.." {
            open = if open == "/.." { "/" } else { &open["/..".len()..] };
            out.truncate(out.rfind('/').unwrap_or(0));
        } else if open == "/." {
            open = "/";
        } else if matches!(open, "." | "..") {
            break;
        } else {
            let end = open.char_indices().skip(1).find(|c| c.1 == '/').map_or(open.len(), |c| c.0);
            out.push_str(&open[..end]);
            open = &open[end..];
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 3986, 5.4.1 and 5.4.2.
    fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
        let lines = include_str!("iri/rfc3986.tsv").lines().filter(|line| !line.starts_with("# "));
        lines.map(|line| line.split_once('\t').expect("a reference and an IRI"))
    }

    #[test]
    fn the_examples_of_the_rfc() {
        assert_eq!(examples().count(), 42);
        for (reference, iri) in examples() {
            assert_eq!(resolve("http://a/b/c/d;p?q", reference).as_deref(), Some(iri), "{reference}");
        }
    }

    #[test]
    fn a_base_with_dots_is_the_folder_that_it_means() {
        let has_path = |reference: &str| !reference.is_empty() && !reference.starts_with(['?', '#']);
        for base in ["http://a/./x/../b/c/./e/../d;p?q", "http://a/../b/./c/..", "http://a/b/c/."] {
            for (reference, iri) in examples().filter(|(reference, _)| has_path(reference)) {
                assert_eq!(resolve(base, reference).as_deref(), Some(iri), "{reference} at {base}");
            }
        }
    }

    #[test]
    fn references_at_other_bases() {
        for (base, reference, iri) in [
            // without a path of its own a reference has that of the base, as it is written
            ("http://a/bb/ccc/../d;p?q", "", "http://a/bb/ccc/../d;p?q"),
            ("http://a/bb/ccc/../d;p?q#f", "#s", "http://a/bb/ccc/../d;p?q#s"),
            ("http://a/bb/ccc/../d;p?q", "g?x/../y#z/./", "http://a/bb/g?x/../y#z/./"),
            ("http://a/bb/ccc/../d;p?q", "/g/../h", "http://a/h"),
            ("http://a/b", "//c/d/../e?f", "http://c/e?f"),
            ("http://a/b", "http://c/./d", "http://c/./d"),
            ("http://a", "b", "http://a/b"),
            ("http://a?q", "../b", "http://a/b"),
            ("http://a/..b/d", "../g", "http://a/g"),
            ("urn:x/./y/z", "../c", "urn:x/c"),
            ("urn:x", "y", "urn:y"),
            ("urn:x", "1:y", "urn:1:y"),
            ("file:///a/b", "é", "file:///a/é"),
        ] {
            assert_eq!(resolve(base, reference).as_deref(), Some(iri), "{reference} at {base}");
        }
        assert_eq!(resolve("urn:/a", "..//b"), None, "its path would be an authority");
    }

    #[test]
    fn terms_of_turtle() {
        for (iri, is_one) in [
            ("http://e/x#a#b", true),
            ("http://e/[x]", true),
            ("http://e/a b", false),
            ("x", false),
            ("1:x", false),
        ] {
            assert_eq!(is_turtle_iri(iri), is_one, "{iri}");
        }
        for (tag, is_one) in [
            ("zh-classical1", true),
            ("en", true),
            ("en-", false),
            ("", false),
            ("e n", false),
            ("1a", false),
        ] {
            assert_eq!(is_turtle_tag(tag), is_one, "{tag}");
        }
    }

    #[test]
    fn dot_segments_go() {
        for (with, without) in [
            ("/a/b/c/./../../g", "/a/g"),
            ("mid/content=5/../6", "mid/6"),
            ("/b/../c", "/c"),
            ("/../../c", "/c"),
            ("/b/..", "/"),
            ("/b/c/../..", "/"),
            ("/b/.", "/b/"),
            ("/b//../c", "/b/c"),
            ("/..b/.c/...", "/..b/.c/..."),
            ("../é/./f", "é/f"),
            ("..", ""),
        ] {
            assert_eq!(without_dot_segments(with), without, "{with}");
        }
        assert!(has_dot_segments("/a/..") && !has_dot_segments("/a/..b/.c"));
    }

    #[test]
    fn a_plain_iri_keeps_what_is_no_path() {
        for (iri, without) in [
            ("http://a/bb/ccc/../d;p?q/../r#s/./t", "http://a/bb/d;p?q/../r#s/./t"),
            ("http://a.b/./c", "http://a.b/c"),
            ("http://a.b/../../c", "http://a.b/c"),
            ("http://..a?b/../c", "http://..a?b/../c"),
            ("file:///a/./b", "file:///a/b"),
            ("urn:a/./b", "urn:a/b"),
            ("http://a/b/c", "http://a/b/c"),
            ("no scheme/../", "no scheme/../"),
        ] {
            assert_eq!(plain(iri), without);
        }
    }
}
