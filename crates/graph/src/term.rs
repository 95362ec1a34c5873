//! Term ids: 64 bits that name a term, and carry it where it is small.
//!
//! | bits    | meaning                                                            |
//! |---------|--------------------------------------------------------------------|
//! | 60..64  | [`TermKind`]                                                           |
//! | 0..60   | payload, by kind:                                                  |
//!
//! | kind            | payload                                                            |
//! |-----------------|--------------------------------------------------------------------|
//! | 0 special       | 0 unbound, 1 default graph                                         |
//! | 1 IRI           | number in the IRI tree                                             |
//! | 2 blank node    | number                                                             |
//! | 3 string        | number in the literal tree; xsd:string                             |
//! | 4 literal       | 16 bits annotation code, 44 bits number in the literal tree        |
//! | 5 text          | as 4, number in the text tree                                      |
//! | 6 short string  | 7 bytes left aligned, then 4 bits length; xsd:string               |
//! | 7 integer       | value + 2^59; xsd:integer                                          |
//! | 8 decimal-like  | 8 bits datatype, then value·10^6 + 2^48 in 49 bits and 3 bits digits after the point; datatypes derived from integer: value + 2^51 in 52 bits |
//! | 9 double        | upper 60 bits of the order-preserving bit pattern                  |
//! | 10 float        | order-preserving 32-bit pattern                                    |
//! | 11 boolean      | 0, 1                                                               |
//! | 12 date         | days since 0001-01-01, then one bit: 1 = "Z"                       |
//! | 13 dateTime     | milliseconds since 0001-01-01T00:00:00, then one bit: 1 = "Z"      |
//! | 14 value        | as 4: a literal with a comparable datatype that is not inline      |
//! | 15 local        | a term a query made, below 2^59; never stored                      |
//! | 16 triple       | number in the trees of triple terms; the id begins with five bits 1 |
//!
//! There are sixteen upper halves for seventeen kinds, so the last two share one: an id whose upper
//! four bits are 15 is of a triple term if the next bit is set.
//!
//! Invariants: a literal is inline exactly if the payload gives back its lexical form
//! (`term::inline` and `term::lexical` are inverse), so ids are equal exactly if terms are. Within
//! a kind (and datatype, for 8) the order of ids is the order of values, for the kinds 6 to 13.

mod civil;
pub(crate) mod inline;
pub(crate) mod layout;
pub(crate) mod lexical;
pub(crate) mod number;
pub(crate) mod range;

use std::fmt;

use oxrdf::Triple;

pub use oxrdf::BaseDirection;

/// The kind of a term id: its upper four bits, or five. The table is at the head of this file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum TermKind {
    Special = 0,
    Iri = 1,
    Blank = 2,
    String = 3,
    Literal = 4,
    Text = 5,
    ShortString = 6,
    Integer = 7,
    Decimal = 8,
    Double = 9,
    Float = 10,
    Boolean = 11,
    Date = 12,
    DateTime = 13,
    Value = 14,
    Local = 15,
    Triple = 16,
}

impl TermKind {
    /// All kinds, by number. Their ids ascend in this order.
    pub const ALL: [TermKind; 17] = [
        TermKind::Special,
        TermKind::Iri,
        TermKind::Blank,
        TermKind::String,
        TermKind::Literal,
        TermKind::Text,
        TermKind::ShortString,
        TermKind::Integer,
        TermKind::Decimal,
        TermKind::Double,
        TermKind::Float,
        TermKind::Boolean,
        TermKind::Date,
        TermKind::DateTime,
        TermKind::Value,
        TermKind::Local,
        TermKind::Triple,
    ];

    /// A short name for tables and messages.
    pub const fn name(self) -> &'static str {
        match self {
            TermKind::Special => "special",
            TermKind::Iri => "iri",
            TermKind::Blank => "blank node",
            TermKind::String => "string",
            TermKind::Literal => "literal",
            TermKind::Text => "text",
            TermKind::ShortString => "short string",
            TermKind::Integer => "integer",
            TermKind::Decimal => "decimal",
            TermKind::Double => "double",
            TermKind::Float => "float",
            TermKind::Boolean => "boolean",
            TermKind::Date => "date",
            TermKind::DateTime => "dateTime",
            TermKind::Value => "value",
            TermKind::Local => "local",
            TermKind::Triple => "triple term",
        }
    }

    /// Whether terms of this kind carry their whole value in the id.
    pub const fn is_inline(self) -> bool {
        matches!(self as u8, 6..=13)
    }

    /// Whether terms of this kind are stored in the dictionary.
    pub const fn is_dictionary(self) -> bool {
        matches!(self as u8, 1 | 3 | 4 | 5 | 14)
    }

    /// Whether ids of this kind carry an annotation code.
    pub const fn has_code(self) -> bool {
        matches!(self as u8, 4 | 5 | 14)
    }

    /// Whether terms of this kind are literals (local terms may be anything).
    pub const fn is_literal(self) -> bool {
        matches!(self as u8, 3..=14)
    }

    /// The least id of this kind.
    const fn first(self) -> u64 {
        match self {
            TermKind::Triple => 31 << (PAYLOAD_BITS - 1),
            kind => (kind as u64) << PAYLOAD_BITS,
        }
    }

    /// The largest payload of this kind.
    pub const fn most_payload(self) -> u64 {
        match self {
            TermKind::Local | TermKind::Triple => SHARED_MASK,
            _ => PAYLOAD_MASK,
        }
    }
}

/// Bits of the payload.
pub const PAYLOAD_BITS: u32 = 60;
/// Bits of the number in ids that carry an annotation code.
pub const NUMBER_BITS: u32 = 44;
/// Annotation code of xsd:string.
pub const PLAIN: u16 = 1;
const PAYLOAD_MASK: u64 = (1 << PAYLOAD_BITS) - 1;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;
/// Of the two kinds that share their upper four bits.
const SHARED_MASK: u64 = PAYLOAD_MASK >> 1;

/// Kinds by the upper five bits of an id.
const KINDS: [TermKind; 32] = {
    let mut kinds = [TermKind::Triple; 32];
    let mut upper = 0;
    while upper < 31 {
        kinds[upper] = TermKind::ALL[upper / 2];
        upper += 1;
    }
    kinds
};

/// A term id. Zero is "unbound".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct TermId(pub u64);

impl TermId {
    /// No term: an unbound variable or the error of an expression.
    pub const UNDEF: TermId = TermId(0);
    /// The graph column of a quad in the default graph.
    pub const DEFAULT_GRAPH: TermId = TermId(1);

    /// An id from its kind and payload (asserted: below 2^60, for local and triple terms below
    /// 2^59).
    #[inline]
    pub const fn new(kind: TermKind, payload: u64) -> TermId {
        assert!(payload <= kind.most_payload());
        TermId(kind.first() | payload)
    }

    /// An id that carries an annotation code: kinds literal, text and value. The number is
    /// below 2^44 (asserted).
    #[inline]
    pub const fn coded(kind: TermKind, code: u16, number: u64) -> TermId {
        assert!(kind.has_code() && number <= NUMBER_MASK);
        TermId(((kind as u64) << PAYLOAD_BITS) | ((code as u64) << NUMBER_BITS) | number)
    }

    /// The id of a dictionary term: as [`TermId::coded`] if the kind has a code, which is ignored
    /// otherwise.
    #[inline]
    pub const fn dictionary(kind: TermKind, code: u16, number: u64) -> TermId {
        if kind.has_code() { TermId::coded(kind, code, number) } else { TermId::new(kind, number) }
    }

    /// The kind.
    #[inline]
    pub const fn kind(self) -> TermKind {
        KINDS[(self.0 >> (PAYLOAD_BITS - 1)) as usize]
    }

    /// The lower 60 bits; those of a triple term begin with a bit of its kind.
    #[inline]
    pub const fn payload(self) -> u64 {
        self.0 & PAYLOAD_MASK
    }

    /// The number in the dictionary tree of the kind (or of the blank node or triple term).
    #[inline]
    pub const fn number(self) -> u64 {
        match self.kind() {
            TermKind::Triple => self.0 & SHARED_MASK,
            kind if kind.has_code() => self.0 & NUMBER_MASK,
            _ => self.payload(),
        }
    }

    /// The annotation code; meaningful only if [`TermKind::has_code`].
    #[inline]
    pub const fn code(self) -> u16 {
        (self.payload() >> NUMBER_BITS) as u16
    }

    /// Whether a variable with this id is unbound.
    #[inline]
    pub const fn is_undef(self) -> bool {
        self.0 == 0
    }

    /// A blank node.
    pub const fn blank(number: u64) -> TermId {
        TermId::new(TermKind::Blank, number)
    }

    /// A triple term.
    pub const fn triple(number: u64) -> TermId {
        TermId::new(TermKind::Triple, number)
    }

    /// The id of a term that needs neither dictionary nor datatype table; `None` for other terms.
    #[inline]
    pub fn inline(term: &TermRef<'_>) -> Option<TermId> {
        match *term {
            TermRef::Literal { lexical, lang: None, datatype, .. } => inline::encode(lexical, datatype).id(),
            _ => None,
        }
    }
}

impl fmt::Debug for TermId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TermId::UNDEF => return f.write_str("undef"),
            TermId::DEFAULT_GRAPH => return f.write_str("default graph"),
            _ => {}
        }
        write!(f, "{} ", self.kind().name())?;
        let mut lexical = crate::term::lexical::Lexical::new();
        if let Some(text) = lexical.write(*self) {
            write!(f, "{text:?}")
        } else if self.kind().has_code() {
            write!(f, "{}:{}", self.code(), self.number())
        } else {
            write!(f, "{}", self.number())
        }
    }
}

/// A term of RDF, by reference.
///
/// Blank nodes are given by their labels without `_:`. Plain literals have the datatype
/// xsd:string, literals with a language tag rdf:langString, with a base direction, too,
/// rdf:dirLangString. Language tags are in lower case, which the parsers ensure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum TermRef<'a> {
    Iri(&'a str),
    Blank(&'a str),
    Literal {
        lexical: &'a str,
        lang: Option<&'a str>,
        direction: Option<BaseDirection>,
        datatype: &'a str,
    },
    /// A triple that is a term.
    Triple(&'a Triple),
}

/// A term that owns its strings; otherwise as [`TermRef`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Term {
    Iri(String),
    Blank(String),
    Literal {
        lexical: String,
        lang: Option<String>,
        direction: Option<BaseDirection>,
        datatype: String,
    },
    /// A triple that is a term.
    Triple(Box<Triple>),
}

/// The language tag of texts whose language is not known (BCP 47, 4.1).
pub const UNDETERMINED: &str = "und";

/// The name of a datatype of tagged texts, which a literal without a tag cannot have.
pub fn untagged_name(datatype: &str) -> Option<&'static str> {
    match datatype {
        layout::RDF_LANG_STRING => Some("rdf:langString"),
        layout::RDF_DIR_LANG_STRING => Some("rdf:dirLangString"),
        _ => None,
    }
}

/// A language tag as N-Triples writes it, and the base direction that follows it: `en--ltr`.
pub fn split_direction(tag: &str) -> (&str, Option<BaseDirection>) {
    if let Some(language) = tag.strip_suffix("--ltr") {
        return (language, Some(BaseDirection::Ltr));
    }
    match tag.strip_suffix("--rtl") {
        Some(language) => (language, Some(BaseDirection::Rtl)),
        None => (tag, None),
    }
}

/// Most levels of triple terms within each other, the outermost included.
pub const MOST_TRIPLE_LEVELS: usize = 64;

/// Levels of triple terms within each other, of a triple that is a term.
pub fn triple_levels(triple: &Triple) -> usize {
    let (mut levels, mut object) = (1, &triple.object);
    while let oxrdf::Term::Triple(inner) = object {
        levels += 1;
        object = &inner.object;
    }
    levels
}

/// Bytes of a triple that is a term, about.
pub fn triple_bytes(triple: &Triple) -> usize {
    /// Beside its texts.
    const TRIPLE: usize = 256;
    let (mut bytes, mut at) = (0, triple);
    loop {
        let subject = match &at.subject {
            oxrdf::NamedOrBlankNode::NamedNode(node) => node.as_str().len(),
            oxrdf::NamedOrBlankNode::BlankNode(node) => node.as_str().len(),
        };
        bytes += TRIPLE + subject + at.predicate.as_str().len();
        match &at.object {
            oxrdf::Term::Triple(inner) => at = inner,
            oxrdf::Term::NamedNode(node) => return bytes + node.as_str().len(),
            oxrdf::Term::BlankNode(node) => return bytes + node.as_str().len(),
            oxrdf::Term::Literal(literal) => return bytes + literal.value().len(),
        }
    }
}

impl<'a> TermRef<'a> {
    /// A plain literal.
    pub const fn string(lexical: &'a str) -> Self {
        TermRef::typed(lexical, layout::XSD_STRING)
    }

    /// A literal with a datatype.
    pub const fn typed(lexical: &'a str, datatype: &'a str) -> Self {
        TermRef::Literal { lexical, lang: None, direction: None, datatype }
    }

    /// A literal with a language tag (lower case).
    pub const fn tagged(lexical: &'a str, lang: &'a str) -> Self {
        TermRef::Literal { lexical, lang: Some(lang), direction: None, datatype: layout::RDF_LANG_STRING }
    }

    /// A literal with a language tag (lower case) and a base direction.
    pub const fn directed(lexical: &'a str, lang: &'a str, direction: BaseDirection) -> Self {
        let datatype = layout::RDF_DIR_LANG_STRING;
        TermRef::Literal { lexical, lang: Some(lang), direction: Some(direction), datatype }
    }

    /// The name of the datatype, where this is, or has in it, a literal with a datatype of tagged
    /// texts and without a language tag. No format can say one.
    pub fn untagged(&self) -> Option<&'static str> {
        let mut literal = *self;
        while let TermRef::Triple(triple) = literal {
            literal = triple.object.as_ref().into();
        }
        match literal {
            TermRef::Literal { lang: None, datatype, .. } => untagged_name(datatype),
            _ => None,
        }
    }

    /// A copy that owns its strings.
    pub fn to_owned(&self) -> Term {
        match *self {
            TermRef::Iri(iri) => Term::Iri(iri.to_owned()),
            TermRef::Blank(label) => Term::Blank(label.to_owned()),
            TermRef::Literal { lexical, lang, direction, datatype } => Term::Literal {
                lexical: lexical.to_owned(),
                lang: lang.map(str::to_owned),
                direction,
                datatype: datatype.to_owned(),
            },
            TermRef::Triple(triple) => Term::Triple(Box::new(triple.clone())),
        }
    }
}

impl Term {
    /// Bytes that it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        /// Beside its texts.
        const TERM: usize = size_of::<Term>() + 16;
        TERM + match self {
            Term::Iri(text) | Term::Blank(text) => text.len(),
            Term::Literal { lexical, datatype, .. } => lexical.len() + datatype.len(),
            Term::Triple(triple) => triple_bytes(triple),
        }
    }

    /// The term, borrowed.
    pub fn as_ref(&self) -> TermRef<'_> {
        match self {
            Term::Iri(iri) => TermRef::Iri(iri),
            Term::Blank(label) => TermRef::Blank(label),
            Term::Literal { lexical, lang, direction, datatype } => {
                TermRef::Literal { lexical, lang: lang.as_deref(), direction: *direction, datatype }
            }
            Term::Triple(triple) => TermRef::Triple(triple),
        }
    }
}

/// N-Triples notation.
impl fmt::Display for TermRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        oxrdf::TermRef::from(*self).fmt(f)
    }
}

/// N-Triples notation.
impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

impl<'a> From<oxrdf::LiteralRef<'a>> for TermRef<'a> {
    fn from(literal: oxrdf::LiteralRef<'a>) -> Self {
        TermRef::Literal {
            lexical: literal.value(),
            lang: literal.language(),
            direction: literal.direction(),
            datatype: literal.datatype().as_str(),
        }
    }
}

impl<'a> From<oxrdf::NamedNodeRef<'a>> for TermRef<'a> {
    fn from(node: oxrdf::NamedNodeRef<'a>) -> Self {
        TermRef::Iri(node.as_str())
    }
}

impl<'a> From<oxrdf::BlankNodeRef<'a>> for TermRef<'a> {
    fn from(node: oxrdf::BlankNodeRef<'a>) -> Self {
        TermRef::Blank(node.as_str())
    }
}

impl<'a> From<oxrdf::NamedOrBlankNodeRef<'a>> for TermRef<'a> {
    fn from(node: oxrdf::NamedOrBlankNodeRef<'a>) -> Self {
        match node {
            oxrdf::NamedOrBlankNodeRef::NamedNode(node) => node.into(),
            oxrdf::NamedOrBlankNodeRef::BlankNode(node) => node.into(),
        }
    }
}

impl<'a> From<oxrdf::TermRef<'a>> for TermRef<'a> {
    fn from(term: oxrdf::TermRef<'a>) -> Self {
        match term {
            oxrdf::TermRef::NamedNode(node) => node.into(),
            oxrdf::TermRef::BlankNode(node) => node.into(),
            oxrdf::TermRef::Literal(literal) => literal.into(),
            oxrdf::TermRef::Triple(triple) => TermRef::Triple(triple),
        }
    }
}

impl From<oxrdf::Term> for Term {
    fn from(term: oxrdf::Term) -> Self {
        TermRef::from(term.as_ref()).to_owned()
    }
}

/// The strings are not checked: they come from a parser or from the dictionary.
impl<'a> From<TermRef<'a>> for oxrdf::TermRef<'a> {
    fn from(term: TermRef<'a>) -> Self {
        match term {
            TermRef::Iri(iri) => oxrdf::NamedNodeRef::new_unchecked(iri).into(),
            TermRef::Blank(label) => oxrdf::BlankNodeRef::new_unchecked(label).into(),
            TermRef::Literal { lexical, lang: Some(lang), direction: Some(direction), .. } => {
                oxrdf::LiteralRef::new_directional_language_tagged_literal_unchecked(lexical, lang, direction)
                    .into()
            }
            TermRef::Literal { lexical, lang: Some(lang), .. } => {
                oxrdf::LiteralRef::new_language_tagged_literal_unchecked(lexical, lang).into()
            }
            TermRef::Literal { lexical, lang: None, datatype, .. } => {
                let datatype = oxrdf::NamedNodeRef::new_unchecked(datatype);
                oxrdf::LiteralRef::new_typed_literal(lexical, datatype).into()
            }
            TermRef::Triple(triple) => oxrdf::TermRef::Triple(triple),
        }
    }
}

impl From<TermRef<'_>> for oxrdf::Term {
    fn from(term: TermRef<'_>) -> Self {
        oxrdf::TermRef::from(term).into_owned()
    }
}

impl From<&Term> for oxrdf::Term {
    fn from(term: &Term) -> Self {
        term.as_ref().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_their_numbers() {
        let mut last = 0;
        for (number, kind) in TermKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, number);
            let most = kind.most_payload();
            let id = TermId::new(*kind, most);
            assert_eq!((id.kind(), id.0 & most), (*kind, most));
            assert!(number == 0 || TermId::new(*kind, 0).0 == last + 1, "kinds follow each other");
            last = id.0;
        }
        assert_eq!(last, u64::MAX);
    }

    #[test]
    fn triple_terms_are_numbered() {
        for number in [0, 1, SHARED_MASK] {
            let id = TermId::triple(number);
            assert_eq!((id.kind(), id.number()), (TermKind::Triple, number));
        }
        assert!(!TermKind::Triple.is_literal() && !TermKind::Triple.is_dictionary());
    }

    #[test]
    fn directions_follow_their_tags() {
        assert_eq!(split_direction("en--ltr"), ("en", Some(BaseDirection::Ltr)));
        assert_eq!(split_direction("ar-x-a--rtl"), ("ar-x-a", Some(BaseDirection::Rtl)));
        for tag in ["en", "en-ltr", "", "--", "en--LTR"] {
            assert_eq!(split_direction(tag), (tag, None));
        }
    }

    #[test]
    fn coded_ids_give_back_code_and_number() {
        let id = TermId::coded(TermKind::Value, 0xFFFE, NUMBER_MASK - 1);
        assert_eq!((id.kind(), id.code(), id.number()), (TermKind::Value, 0xFFFE, NUMBER_MASK - 1));
        let id = TermId::dictionary(TermKind::String, 7, 9);
        assert_eq!((id.kind(), id.number()), (TermKind::String, 9));
    }

    #[test]
    fn terms_go_to_oxrdf_and_back() {
        for term in [
            TermRef::Iri("http://a.example/b"),
            TermRef::Blank("b7"),
            TermRef::string("a \"quoted\" text"),
            TermRef::typed("1", "http://www.w3.org/2001/XMLSchema#integer"),
            TermRef::tagged("chat", "fr"),
            TermRef::directed("chat", "fr", BaseDirection::Ltr),
            TermRef::Triple(&Triple::new(
                oxrdf::BlankNode::new_unchecked("b1"),
                oxrdf::NamedNode::new_unchecked("http://a.example/p"),
                oxrdf::Literal::new_simple_literal("o"),
            )),
        ] {
            let there = oxrdf::Term::from(term);
            assert_eq!(TermRef::from(there.as_ref()), term);
            assert_eq!(Term::from(there.clone()), term.to_owned());
            assert_eq!(term.to_string(), there.to_string());
        }
    }
}
