//! Bases and languages in scope.

use oxilangtag::LanguageTag;
use oxiri::Iri;

use super::base::plain_base;

/// Treatment of IRIs and language tags outside of RFC 3987 and RFC 5646, such as `…#a#b` and
/// `zh-classical`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Odd {
    /// They are faults.
    #[default]
    Refused,
    /// They are kept, if Turtle's grammar allows them.
    Kept,
}

/// Whether Turtle's grammar allows an absolute IRI.
pub(super) fn is_odd_iri(iri: &str) -> bool {
    let scheme = iri.split_once(':').map_or("", |(scheme, _)| scheme);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        && !iri.contains(|c: char| c <= ' ' || "<>\"{}|^`\\".contains(c))
}

/// Whether Turtle's grammar allows a language tag.
fn is_odd_tag(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let is_first = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphabetic());
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric());
    parts.next().is_some_and(is_first) && parts.all(is_part)
}

/// The base of relative IRIs.
pub(super) enum Base {
    None,
    Iri(Iri<String>),
    /// The text is none, for this reason.
    Bad(String),
}

/// The language of literals.
pub(super) enum Language {
    None,
    /// A tag in lower case.
    Tag(String),
    /// The text is none, for this reason.
    Bad(String),
}

/// The base of the document.
pub(super) fn first_base(base: Option<&str>) -> Result<Base, String> {
    let Some(base) = base else { return Ok(Base::None) };
    match Iri::parse(plain_base(base)) {
        Ok(iri) => Ok(Base::Iri(iri)),
        Err(error) => Err(format!("{base} is no absolute IRI: {error}")),
    }
}

impl Base {
    /// Replaces `out` by the IRI that a reference means, which may be odd if such are kept.
    pub(super) fn resolve_as(&self, reference: &str, odd: Odd, out: &mut String) -> Result<(), String> {
        let resolved = self.resolve(reference, out);
        if resolved.is_err() && odd == Odd::Kept && self.resolve_odd(reference, out) {
            return Ok(());
        }
        resolved
    }

    /// The same for what is no IRI of RFC 3987; whether it can be kept. An absolute one is taken
    /// as it is, a relative one with anything behind its first `#`.
    fn resolve_odd(&self, reference: &str, out: &mut String) -> bool {
        if is_odd_iri(reference) {
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
        is_odd_iri(out)
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
                format!(
                    "{} is relative, and the document has no base; --base IRI gives one",
                    quoted(reference)
                )
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
        match Iri::parse(plain_base(&iri)) {
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
    pub(super) fn of(tag: &str, odd: Odd) -> Language {
        if tag.is_empty() {
            return Language::None;
        }
        let lower = tag.to_ascii_lowercase();
        match LanguageTag::parse(lower.as_str()) {
            Ok(_) => Language::Tag(lower),
            Err(_) if odd == Odd::Kept && is_odd_tag(&lower) => Language::Tag(lower),
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
