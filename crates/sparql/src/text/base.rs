//! Relative IRIs of a text, where its base has segments `.` or `..`.
//!
//! The parser resolves references as RFC 3986 says, except that it takes dot segments out of the
//! reference alone, and the RFC out of the merged path (5.2.2). So where the base has some, the
//! references are resolved here, and the parser gets IRIs. The base itself stays as written:
//! `<>`, `<?query>` and `<#fragment>` have its path unchanged.
//!
//! Such bases are rare: a text without one is looked through for `/.` and no further.

use std::borrow::Cow;

use oxiri::Iri;

use super::tokens::Tokens;
use crate::text::iri;

/// The text with its references resolved, if the parser would do it wrongly.
pub(super) fn resolved<'a>(text: &'a str, base: Option<&str>) -> Cow<'a, str> {
    let may_declare = || text.contains("/.") && contains_word(text, "BASE");
    if !base.is_some_and(|base| base.contains("/.")) && !may_declare() {
        return Cow::Borrowed(text);
    }
    let mut base = base.and_then(|base| Iri::parse(base.to_owned()).ok());
    let (mut out, mut copied, mut declares) = (String::new(), 0, false);
    for (at, token) in Tokens::new(text) {
        let begin = if token.starts_with(['"', '\'']) { token.rfind("^^<").map(|i| i + 2) } else { Some(0) };
        let reference = begin.and_then(|i| Some((at + i, token[i..].strip_prefix('<')?.strip_suffix('>')?)));
        if let Some((at, reference)) = reference {
            let iri = match &base {
                Some(base) => iri::resolve(base, reference),
                None => Iri::parse(reference.to_owned()).ok(),
            };
            if let Some(iri) = iri {
                out.push_str(&text[copied..=at]);
                out.push_str(iri.as_str());
                copied = at + 1 + reference.len();
                if declares {
                    base = Some(iri);
                }
            }
        }
        declares = token.eq_ignore_ascii_case("BASE");
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Whether a word is in a text, in letters of either case.
fn contains_word(text: &str, word: &str) -> bool {
    let mut windows = text.as_bytes().windows(word.len());
    windows.any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_where_the_base_has_dots() {
        let text = "BASE <http://a/b/../c/d> SELECT * { <e> <f:g> 'x'^^<t>, 1 ; <> '<h>' . ?a < 3 }";
        let same = "BASE <http://a/b/../c/d> SELECT * { <http://a/c/e> <f:g> 'x'^^<http://a/c/t>, 1 ; \
                    <http://a/b/../c/d> '<h>' . ?a < 3 }";
        assert_eq!(resolved(text, None), same);
        let again = "BASE <http://a/./b/> PREFIX p: <c/> base <d/> ASK { <e> a <\\u0065> }";
        let same = "BASE <http://a/./b/> PREFIX p: <http://a/b/c/> base <http://a/b/d/> ASK { <http://a/b/d/e> a <\\u0065> }";
        assert_eq!(resolved(again, None), same);
        assert_eq!(resolved("ASK { <b> a <../c> }", Some("urn:x/./y/z")), "ASK { <urn:x/y/b> a <urn:x/c> }");
        for untouched in ["BASE <http://a/b> ASK { <../c> a <d> }", "ASK { <../c> a <./d> }"] {
            assert!(matches!(resolved(untouched, Some("http://a/b/")), Cow::Borrowed(_)), "{untouched}");
        }
    }
}
