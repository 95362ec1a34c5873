//! Bases and languages in scope.

use oxilangtag::LanguageTag;
use oxiri::Iri;

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
    match Iri::parse(base.to_owned()) {
        Ok(iri) => Ok(Base::Iri(iri)),
        Err(error) => Err(format!("{base} is no absolute IRI: {error}")),
    }
}

impl Base {
    /// Replaces `out` by the IRI that a reference means.
    pub(super) fn resolve(&self, reference: &str, out: &mut String) -> Result<(), String> {
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
        match Iri::parse(iri) {
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
    pub(super) fn of(tag: &str) -> Language {
        if tag.is_empty() {
            return Language::None;
        }
        let lower = tag.to_ascii_lowercase();
        match LanguageTag::parse(lower.as_str()) {
            Ok(_) => Language::Tag(lower),
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
