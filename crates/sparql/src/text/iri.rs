//! Whether a text is an IRI, and what a reference means against a base.

use oxiri::{Iri, IriRef};
use snowmelt_graph::{has_dot_segments, without_dot_segments};

/// Whether a text is an IRI with a scheme.
pub(crate) fn is_iri(text: &str) -> bool {
    // the many that need no parser: http://host/path#fragment
    if let Some(rest) = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")) {
        let hash = memchr::memchr(b'#', rest.as_bytes());
        let (path, fragment) = rest.split_at(hash.unwrap_or(rest.len()));
        if are_plain(path) && are_plain(fragment.get(1..).unwrap_or_default()) {
            return true;
        }
    }
    oxiri::Iri::parse(text).is_ok()
}

/// The IRI that a reference means (RFC 3986, 5.2, strict).
///
/// `oxiri` takes dot segments out of the reference alone; the RFC says out of what is merged of it
/// and the base. So a base that has some is merged here.
pub(crate) fn resolve(base: &Iri<String>, reference: &str) -> Option<Iri<String>> {
    let is_merged = !reference.starts_with(['/', '?', '#']) && !reference.is_empty();
    if !is_merged || !has_dot_segments(base.path()) || IriRef::parse(reference).ok()?.is_absolute() {
        return base.resolve(reference).ok();
    }
    let (path, rest) = reference.split_at(reference.find(['?', '#']).unwrap_or(reference.len()));
    let folder = base.path().rfind('/').map_or("", |at| &base.path()[..=at]);
    let path = without_dot_segments(&format!("{folder}{path}"));
    // the base's path begins after its scheme and authority
    let authority = base.authority().map_or(0, |authority| "//".len() + authority.len());
    let before = &base.as_str()[..base.scheme().len() + ":".len() + authority];
    Iri::parse(format!("{before}{path}{rest}")).ok()
}

/// Whether all characters are letters, digits or some signs that stand anywhere in an IRI for
/// themselves.
fn are_plain(text: &str) -> bool {
    // without branches, on bytes alone: sixteen are looked at together
    let is_odd = |b: u8| {
        let letter = (b | 0x20).wrapping_sub(b'a') < 26;
        let digit_or_sign = b.wrapping_sub(b'-') <= b'9' - b'-'; // also '.' and '/'
        !(letter | digit_or_sign | (b == b'_') | (b == b'~') | (b == b'+') | (b == b'=') | (b == b'&'))
    };
    text.bytes().fold(0, |odd, b| odd | u8::from(is_odd(b))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_lose_the_dots_of_their_base() {
        let meant = |base: &str, reference: &str| {
            resolve(&Iri::parse(base.to_owned()).unwrap(), reference).map(Iri::into_inner)
        };
        for (base, reference, iri) in [
            ("http://a/bb/ccc/../d;p?q", "g", "http://a/bb/g"),
            ("http://a/bb/ccc/../d;p?q", "../g?x/../y#z", "http://a/g?x/../y#z"),
            ("http://a/bb/ccc/../d;p?q", "", "http://a/bb/ccc/../d;p?q"),
            ("http://a/bb/ccc/../d;p?q", "/g/../h", "http://a/h"),
            ("http://a/..b/d", "../g", "http://a/g"),
            ("urn:x/./y/z", "../c", "urn:x/c"),
        ] {
            assert_eq!(meant(base, reference).as_deref(), Some(iri), "{reference} at {base}");
        }
        assert_eq!(meant("http://a/./b", "a b"), None);
    }

    #[test]
    fn what_needs_no_parser_passes_it() {
        let signs: String = (0..=0x7F).map(char::from).filter(|c| are_plain(&c.to_string())).collect();
        assert_eq!(signs.len(), 26 + 26 + 10 + "/-_.~+=&".len(), "{signs}");
        assert!(oxiri::Iri::parse(format!("http://{signs}#{signs}")).is_ok());
        assert!(!are_plain("é") && are_plain(""));
        for odd in [
            "http://a/ b",
            "http://a#b c",
            "http://a#b#c",
            "http://a/\u{1}",
            "urn",
            "http://a/<",
            "https://[",
        ] {
            assert!(!is_iri(odd), "{odd}");
        }
        for iri in ["http://a", "http://a#", "http://a/b?c", "urn:a", "https://a/%20", "http://a/é"] {
            assert!(is_iri(iri), "{iri}");
        }
    }
}
