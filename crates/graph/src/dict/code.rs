//! Annotations: the languages and datatypes of literals as small codes, carried in the term id.
//!
//! | code            | meaning                                                                             |
//! |-----------------|-------------------------------------------------------------------------------------|
//! | 0 [`IN_STRING`] | the table was full when the annotation came: it is in the dictionary string         |
//! | 1 [`PLAIN`]     | xsd:string                                                                          |
//! | 2..             | entry code − 2 of the table: a language tag or a datatype IRI                       |
//!
//! A second, smaller table gives codes 16 to 255 to datatypes of decimal-like literals
//! (`"12.50"^^ex:USD`), which are then inline. Both tables are filled in order of first
//! occurrence in the input and only grow; a name that found its table full never gets a code.
//! So the place of a term never changes.
//!
//! Names must be met in the order of the input, however many threads there are: the loader
//! assigns codes in the one stage that also assigns numbers.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::error::{GraphError, Result};
use crate::term::layout::{FIRST_REGISTERED, RDF_DIR_LANG_STRING, RDF_LANG_STRING, XSD_STRING};
use crate::term::{BaseDirection, TermRef};

/// Code of an annotation that is in the dictionary string.
pub const IN_STRING: u16 = 0;
pub use crate::term::PLAIN;
const FIRST: u16 = 2;
/// Most annotations with a code of their own.
pub const MAX_ANNOTATIONS: usize = 4096 - FIRST as usize;
/// Most registered decimal-like datatypes.
pub const MAX_DECIMAL_DATATYPES: usize = 256 - FIRST_REGISTERED as usize;

/// Language or datatype of a literal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Annotation<'a> {
    /// xsd:string.
    Plain,
    /// A language tag, in lower case.
    Language(&'a str),
    /// A language tag, in lower case, and a base direction.
    Directed(&'a str, BaseDirection),
    /// A datatype IRI other than xsd:string.
    Datatype(&'a str),
}

impl<'a> Annotation<'a> {
    /// The annotation of a literal.
    #[inline]
    pub fn new(lang: Option<&'a str>, direction: Option<BaseDirection>, datatype: &'a str) -> Self {
        match lang {
            Some(lang) => Annotation::of_tag(lang, direction),
            None if datatype == XSD_STRING => Annotation::Plain,
            None => Annotation::Datatype(datatype),
        }
    }

    /// The annotation of a literal with a language tag.
    #[inline]
    pub fn of_tag(lang: &'a str, direction: Option<BaseDirection>) -> Self {
        match direction {
            None => Annotation::Language(lang),
            Some(direction) => Annotation::Directed(lang, direction),
        }
    }

    /// The language tag, if any.
    pub fn lang(self) -> Option<&'a str> {
        match self {
            Annotation::Language(lang) | Annotation::Directed(lang, _) => Some(lang),
            _ => None,
        }
    }

    /// The base direction, if any.
    pub fn direction(self) -> Option<BaseDirection> {
        match self {
            Annotation::Directed(_, direction) => Some(direction),
            _ => None,
        }
    }

    /// The literal with this annotation.
    pub fn literal(self, lexical: &'a str) -> TermRef<'a> {
        let (lang, direction, datatype) = (self.lang(), self.direction(), self.datatype());
        TermRef::Literal { lexical, lang, direction, datatype }
    }

    /// The datatype IRI: rdf:langString or rdf:dirLangString with a language tag.
    pub fn datatype(self) -> &'a str {
        match self {
            Annotation::Plain => XSD_STRING,
            Annotation::Language(_) => RDF_LANG_STRING,
            Annotation::Directed(..) => RDF_DIR_LANG_STRING,
            Annotation::Datatype(datatype) => datatype,
        }
    }

    /// `@` + tag, `>` or `<` + tag for one with a direction, `^` + datatype, or nothing.
    pub(crate) fn tagged(self) -> (u8, &'a str) {
        match self {
            Annotation::Plain => (0, ""),
            Annotation::Language(lang) => (b'@', lang),
            Annotation::Directed(lang, BaseDirection::Ltr) => (b'>', lang),
            Annotation::Directed(lang, BaseDirection::Rtl) => (b'<', lang),
            Annotation::Datatype(datatype) => (b'^', datatype),
        }
    }

    /// The inverse of `tagged`.
    pub(crate) fn from_tagged(tag: u8, name: &'a str) -> Option<Self> {
        match tag {
            b'@' => Some(Annotation::Language(name)),
            b'>' => Some(Annotation::Directed(name, BaseDirection::Ltr)),
            b'<' => Some(Annotation::Directed(name, BaseDirection::Rtl)),
            b'^' => Some(Annotation::Datatype(name)),
            _ => None,
        }
    }
}

/// A table's answer for a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code<T> {
    /// The name has this code.
    Is(T),
    /// The table is full and does not contain the name, which never gets a code.
    Full,
    /// The name has no code yet: if the table is a database's, no stored term has this name.
    Unknown,
}

/// Source of the codes for encoding terms.
pub trait CodeSource {
    /// The code of a language or datatype (never asked for [`Annotation::Plain`]).
    fn annotation(&mut self, annotation: Annotation<'_>) -> Code<u16>;
    /// The code, from 16, of a datatype whose literal looks like a decimal.
    fn decimal_datatype(&mut self, datatype: &str) -> Code<u8>;
}

/// The two tables of a database.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Codes {
    annotations: Names,
    decimals: Names,
}

/// Names in order of first occurrence.
#[derive(Clone, Default, Debug)]
struct Names {
    list: Vec<(u8, Box<str>)>,
    places: HashMap<(u8, Box<str>), u16, FxBuildHasher>,
}

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl Eq for Names {}

#[derive(Hash)]
struct NameRef<'a>(u8, &'a str);

impl hashbrown::Equivalent<(u8, Box<str>)> for NameRef<'_> {
    fn equivalent(&self, key: &(u8, Box<str>)) -> bool {
        self.0 == key.0 && self.1 == &*key.1
    }
}

impl Names {
    fn place(&self, tag: u8, name: &str) -> Option<u16> {
        self.places.get(&NameRef(tag, name)).copied()
    }

    fn push(&mut self, tag: u8, name: &str) -> u16 {
        let place = u16::try_from(self.list.len()).expect("the tables are capped below 2^16");
        self.list.push((tag, name.into()));
        self.places.insert((tag, name.into()), place);
        place
    }

    fn find(&self, tag: u8, name: &str, cap: usize) -> Code<u16> {
        match self.place(tag, name) {
            Some(place) => Code::Is(place),
            None if self.list.len() >= cap => Code::Full,
            None => Code::Unknown,
        }
    }
}

impl Codes {
    /// Empty tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// The annotation of a code; `None` for [`IN_STRING`] and for codes not assigned.
    #[inline]
    pub fn annotation_of(&self, code: u16) -> Option<Annotation<'_>> {
        if code == PLAIN {
            return Some(Annotation::Plain);
        }
        let (tag, name) = self.annotations.list.get(usize::from(code.checked_sub(FIRST)?))?;
        Annotation::from_tagged(*tag, name)
    }

    /// The datatype of a registered decimal-like code (from 16).
    #[inline]
    pub fn decimal_datatype_of(&self, code: u8) -> Option<&str> {
        let place = code.checked_sub(FIRST_REGISTERED)?;
        self.decimals.list.get(usize::from(place)).map(|(_, name)| &**name)
    }

    /// The codes assigned to annotations, for statistics and checks.
    pub fn annotation_codes(&self) -> std::ops::Range<u16> {
        FIRST..FIRST + self.annotations.list.len() as u16
    }

    /// Number of registered decimal-like datatypes.
    pub fn decimal_datatypes(&self) -> usize {
        self.decimals.list.len()
    }

    /// Looks an annotation up without adding it.
    pub fn find_annotation(&self, annotation: Annotation<'_>) -> Code<u16> {
        let (tag, name) = annotation.tagged();
        if tag == 0 {
            return Code::Is(PLAIN);
        }
        match self.annotations.find(tag, name, MAX_ANNOTATIONS) {
            Code::Is(place) => Code::Is(place + FIRST),
            other => other,
        }
    }

    /// Looks a datatype up without adding it.
    pub fn find_decimal_datatype(&self, datatype: &str) -> Code<u8> {
        match self.decimals.find(b'^', datatype, MAX_DECIMAL_DATATYPES) {
            Code::Is(place) => Code::Is(place as u8 + FIRST_REGISTERED),
            Code::Full => Code::Full,
            Code::Unknown => Code::Unknown,
        }
    }

    fn add_annotation(&mut self, annotation: Annotation<'_>) -> Code<u16> {
        match self.find_annotation(annotation) {
            Code::Unknown => {
                let (tag, name) = annotation.tagged();
                Code::Is(self.annotations.push(tag, name) + FIRST)
            }
            known => known,
        }
    }

    fn add_decimal_datatype(&mut self, datatype: &str) -> Code<u8> {
        match self.find_decimal_datatype(datatype) {
            Code::Unknown => Code::Is(self.decimals.push(b'^', datatype) as u8 + FIRST_REGISTERED),
            known => known,
        }
    }

    /// For the catalog record: per table a count, then per name its tag, length and bytes;
    /// little endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for names in [&self.annotations, &self.decimals] {
            bytes.extend((names.list.len() as u32).to_le_bytes());
            for (tag, name) in &names.list {
                bytes.push(*tag);
                bytes.extend((name.len() as u32).to_le_bytes());
                bytes.extend(name.as_bytes());
            }
        }
        bytes
    }

    /// The inverse of [`Codes::to_bytes`]; damaged records are errors.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut codes = Codes::new();
        let mut rest = bytes;
        read_names(&mut rest, &mut codes.annotations, MAX_ANNOTATIONS)
            .and_then(|()| read_names(&mut rest, &mut codes.decimals, MAX_DECIMAL_DATATYPES))
            .filter(|()| rest.is_empty())
            .ok_or_else(|| GraphError::record(crate::dict::RECORD_CODES, "its names cannot be read"))?;
        Ok(codes)
    }
}

fn read_names(rest: &mut &[u8], names: &mut Names, cap: usize) -> Option<()> {
    let count = u32::from_le_bytes(take(rest, 4)?.try_into().ok()?);
    for _ in 0..count {
        let tag = take(rest, 1)?[0];
        let len = u32::from_le_bytes(take(rest, 4)?.try_into().ok()?);
        let name = std::str::from_utf8(take(rest, len as usize)?).ok()?;
        let distinct = names.place(tag, name).is_none();
        if !distinct || names.list.len() >= cap || Annotation::from_tagged(tag, name).is_none() {
            return None;
        }
        names.push(tag, name);
    }
    Some(())
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(taken)
}

/// Adds new names: the source of a loader with one thread, and of tests.
impl CodeSource for Codes {
    fn annotation(&mut self, annotation: Annotation<'_>) -> Code<u16> {
        self.add_annotation(annotation)
    }

    fn decimal_datatype(&mut self, datatype: &str) -> Code<u8> {
        self.add_decimal_datatype(datatype)
    }
}

/// Only looks names up: the source for constants of a query.
impl CodeSource for &Codes {
    fn annotation(&mut self, annotation: Annotation<'_>) -> Code<u16> {
        self.find_annotation(annotation)
    }

    fn decimal_datatype(&mut self, datatype: &str) -> Code<u8> {
        self.find_decimal_datatype(datatype)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_given_by_first_occurrence() {
        let mut codes = Codes::new();
        assert_eq!(codes.annotation(Annotation::Language("fr")), Code::Is(2));
        assert_eq!(codes.annotation(Annotation::Datatype("fr")), Code::Is(3));
        assert_eq!(codes.annotation(Annotation::Language("fr")), Code::Is(2));
        assert_eq!(codes.annotation_of(2), Some(Annotation::Language("fr")));
        assert_eq!(codes.annotation_of(PLAIN), Some(Annotation::Plain));
        assert_eq!((codes.annotation_of(IN_STRING), codes.annotation_of(9)), (None, None));
        assert_eq!(codes.find_annotation(Annotation::Plain), Code::Is(PLAIN));
        assert_eq!((&codes).annotation(Annotation::Language("de")), Code::Unknown);
        for (code, direction) in [(4, BaseDirection::Ltr), (5, BaseDirection::Rtl)] {
            let annotation = Annotation::Directed("fr", direction);
            assert_eq!(codes.annotation(annotation), Code::Is(code), "a direction is part of its name");
            assert_eq!(codes.annotation_of(code), Some(annotation));
        }
        assert_eq!(codes.decimal_datatype("http://a/usd"), Code::Is(FIRST_REGISTERED));
        assert_eq!(codes.decimal_datatype_of(FIRST_REGISTERED), Some("http://a/usd"));
        assert_eq!(codes.decimal_datatype_of(0), None);
        assert_eq!(Codes::from_bytes(&codes.to_bytes()).unwrap(), codes);
    }

    #[test]
    fn full_tables_stay_full() {
        let mut codes = Codes::new();
        for number in 0..MAX_DECIMAL_DATATYPES {
            let code = Code::Is((number + usize::from(FIRST_REGISTERED)) as u8);
            assert_eq!(codes.decimal_datatype(&number.to_string()), code);
        }
        assert_eq!(codes.decimal_datatype("one more"), Code::Full);
        assert_eq!(codes.decimal_datatype("0"), Code::Is(FIRST_REGISTERED));
        for number in 0..MAX_ANNOTATIONS {
            codes.annotation(Annotation::Language(&number.to_string()));
        }
        assert_eq!(codes.annotation(Annotation::Language("one more")), Code::Full);
        assert_eq!(Codes::from_bytes(&codes.to_bytes()).unwrap(), codes);
    }

    #[test]
    fn damaged_records_are_errors() {
        let mut codes = Codes::new();
        codes.annotation(Annotation::Language("fr"));
        let bytes = codes.to_bytes();
        for len in 0..bytes.len() {
            assert!(Codes::from_bytes(&bytes[..len]).is_err());
        }
        let mut tag = bytes.clone();
        tag[4] = b'?';
        assert!(Codes::from_bytes(&tag).is_err());
        assert!(Codes::from_bytes(&[bytes, vec![0]].concat()).is_err());
    }
}
