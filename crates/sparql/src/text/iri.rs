//! Whether a text is an IRI, and what a reference means against a base.

use oxiri::{Iri, IriRef};
use snowmelt_base::iri::has_dot_segments;

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

/// Jena's property of the members of a list, which is a path.
pub(crate) const LIST_MEMBER: &str = "http://jena.apache.org/ARQ/list#member";

/// The IRI that a reference means (RFC 3986, 5.2, strict).
pub(crate) fn resolve(base: &Iri<String>, reference: &str) -> Option<Iri<String>> {
    // oxiri is quick, and wrong only where the base has dot segments
    if !has_dot_segments(base.path()) {
        return base.resolve(reference).ok();
    }
    IriRef::parse(reference).ok()?;
    Iri::parse(snowmelt_base::iri::resolve(base, reference)?).ok()
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
        let base = Iri::parse("http://a/bb/ccc/../d;p?q".to_owned()).unwrap();
        let meant = |reference: &str| resolve(&base, reference).map(Iri::into_inner);
        assert_eq!(meant("../g?x/../y#z").as_deref(), Some("http://a/g?x/../y#z"));
        assert_eq!(meant("").as_deref(), Some(base.as_str()));
        assert_eq!(meant("a b"), None);
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
