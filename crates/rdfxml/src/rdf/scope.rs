//! Bases and languages in scope.

use oxilangtag::LanguageTag;
use oxiri::Iri;
use snowmelt_base::iri::{is_turtle_iri, is_turtle_tag, plain};

use super::Direction;

/// The treatment of IRIs and language tags outside of RFC 3987 and RFC 5646, such as
/// `http://example.org/x#a#b` and `zh-classical`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OddTerms {
    /// They are faults.
    #[default]
    Refused,
    /// They are kept, if Turtle's grammar allows them.
    Kept,
}

impl OddTerms {
    /// Whether an absolute IRI is taken.
    pub fn allows_iri(self, iri: &str) -> bool {
        match self {
            Self::Refused => Iri::parse(iri).is_ok(),
            Self::Kept => is_turtle_iri(iri),
        }
    }

    /// Whether a language tag is taken.
    pub fn allows_tag(self, tag: &str) -> bool {
        match self {
            Self::Refused => LanguageTag::parse(tag).is_ok(),
            Self::Kept => is_turtle_tag(tag),
        }
    }
}

/// The base of relative IRIs.
pub(super) enum Base {
    None,
    Iri(Iri<String>),
    /// The text is invalid, for this reason.
    Bad(String),
}

/// The language of literals.
pub(super) enum Language {
    None,
    /// A tag in lower case.
    Tag(String),
    /// The text is invalid, for this reason.
    Bad(String),
}

/// The base of the document.
pub(super) fn first_base(base: Option<&str>) -> Result<Base, String> {
    let Some(base) = base else { return Ok(Base::None) };
    match Iri::parse(plain(base).into_owned()) {
        Ok(iri) => Ok(Base::Iri(iri)),
        Err(error) => Err(format!("{base} is no absolute IRI: {error}")),
    }
}

/// The base direction that `its:dir` means; an error in words for other texts.
pub(super) fn direction_of(text: &str) -> Result<Direction, String> {
    match text {
        "ltr" => Ok(Direction::Ltr),
        "rtl" => Ok(Direction::Rtl),
        _ => Err(format!("its:dir is ltr or rtl, not {}", quoted(text))),
    }
}

impl Base {
    /// Replaces `out` by the IRI that a reference means, which may be odd if such are kept.
    pub(super) fn resolve_as(&self, reference: &str, odd: OddTerms, out: &mut String) -> Result<(), String> {
        let resolved = self.resolve(reference, out);
        if resolved.is_err() && odd == OddTerms::Kept && self.resolve_odd(reference, out) {
            return Ok(());
        }
        resolved
    }

    /// Replaces `out` by what a reference means that is no IRI of RFC 3987; whether it can be kept.
    /// An absolute one is taken as it is, a relative one with anything behind its first `#`.
    fn resolve_odd(&self, reference: &str, out: &mut String) -> bool {
        if OddTerms::Kept.allows_iri(reference) {
            out.clear();
            out.push_str(reference);
            return true;
        }
        let Some((head, fragment)) = reference.split_once('#') else { return false };
        if self.resolve(head, out).is_err() {
            return false;
        }
        out.push('#');
        out.push_str(fragment);
        OddTerms::Kept.allows_iri(out)
    }

    /// Replaces `out` by the IRI that a reference means.
    fn resolve(&self, reference: &str, out: &mut String) -> Result<(), String> {
        out.clear();
        let resolved = match self {
            Base::Iri(base) => base.resolve_into(reference, out),
            Base::None => Iri::parse(reference).map(|iri| out.push_str(iri.as_str())),
            Base::Bad(why) => {
                let iri = Iri::parse(reference).map_err(|_| why.clone())?;
                out.push_str(iri.as_str());
                return Ok(());
            }
        };
        resolved.map_err(|error| match self {
            Base::None if !reference.contains(':') => {
                format!("{} is relative, and the document has no base; give it a base IRI", quoted(reference))
            }
            _ => format!("{} is no IRI: {error}", quoted(reference)),
        })
    }

    /// The base that `xml:base` means within this one.
    pub(super) fn within(&self, reference: &str) -> Base {
        let mut iri = String::new();
        if let Err(why) = self.resolve(reference, &mut iri) {
            return Base::Bad(format!("xml:base: {why}"));
        }
        if let Some(fragment) = iri.find('#') {
            iri.truncate(fragment);
        }
        match Iri::parse(plain(&iri).into_owned()) {
            Ok(base) => Base::Iri(base),
            Err(error) => Base::Bad(format!("xml:base: {} is no IRI: {error}", quoted(reference))),
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Base::None => 0,
            Base::Iri(iri) => iri.as_str().len(),
            Base::Bad(why) => why.len(),
        }
    }
}

impl Language {
    /// The language that `xml:lang` means.
    pub(super) fn parse(tag: &str, odd: OddTerms) -> Language {
        if tag.is_empty() {
            return Language::None;
        }
        let lower = tag.to_ascii_lowercase();
        match LanguageTag::parse(lower.as_str()) {
            Ok(_) => Language::Tag(lower),
            Err(_) if odd.allows_tag(&lower) => Language::Tag(lower),
            Err(error) => Language::Bad(format!("{} is no language tag: {error}", quoted(tag))),
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Language::None => 0,
            Language::Tag(tag) => tag.len(),
            Language::Bad(why) => why.len(),
        }
    }
}

/// A text for messages, not longer than one likes to read.
pub(super) fn quoted(text: &str) -> String {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_terms_are_refused_or_kept() {
        for (odd, is_taken) in [(OddTerms::Refused, false), (OddTerms::Kept, true)] {
            assert_eq!(
                (odd.allows_iri("http://e/x#a#b"), odd.allows_tag("zh-classical1")),
                (is_taken, is_taken)
            );
            assert!(odd.allows_iri("http://e/x#a") && odd.allows_tag("zh"));
            assert!(!odd.allows_iri("http://e/a b") && !odd.allows_tag("e n"));
        }
    }
}
