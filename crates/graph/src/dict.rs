//! The dictionary: which terms it holds, in which tree, as which bytes, found by which hash.
//! Pure functions, for the loader that writes it and the session that reads it.
//!
//! | string tree       | kinds                                         | string                                      |
//! |-------------------|-----------------------------------------------|---------------------------------------------|
//! | [`Tree::Iri`]     | IRI                                           | varint prefix number, local name (`dict::prefix`) |
//! | [`Tree::Literal`] | string, literal (short ones), value (any)     | lexical form                                |
//! | [`Tree::Text`]    | text: strings and literals that are longer    | lexical form                                |
//!
//! The [`GraphFormat`] defines the longest short form.
//!
//! In the two literal trees the annotation is in the id ([`Codes`]). If it has no code
//! ([`IN_STRING`]), it precedes the lexical form: `@`, `>`, `<` or `^`, varint length, language tag
//! or datatype IRI.
//!
//! Numbers are dense from 0 per string tree, assigned by first occurrence. Each string tree has a
//! hash tree of rows (hash, number) for IRIs and (hash, number, code) for literals. The hash is
//! XXH3-64 of the string (for an IRI, with its prefix), seeded with tree and code, and cut to its
//! upper [`HASH_BITS`]. These make false candidates rare; reading the string tells them apart.
//! Tree, code and string together are the term.

pub mod code;
mod format;
pub mod prefix;

use oxrdf::Triple;
use snowmelt_base::varint;
use twox_hash::XxHash3_64;

use crate::dict::code::{Annotation, Code, CodeSource, Codes, IN_STRING, PLAIN};
use crate::error::{GraphError, Result};
use crate::term::inline::{self, Inline};
use crate::term::{TermId, TermKind, TermRef};

pub use crate::dict::format::GraphFormat;

/// Bits of a hash kept in the hash trees.
pub const HASH_BITS: u32 = 40;

/// Catalog record of [`GraphMeta`].
pub const RECORD_META: &str = "graph";
/// Catalog record of [`Codes`].
pub const RECORD_CODES: &str = "codes";
/// Catalog record of the IRI prefixes ([`crate::dict::prefix::Prefixes`]).
pub const RECORD_PREFIXES: &str = "prefixes";

/// A string tree of the dictionary.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Tree {
    /// IRIs.
    Iri = 0,
    /// Literals of up to [`GraphFormat::short_bytes`].
    Literal = 1,
    /// Literals above that length.
    Text = 2,
}

impl Tree {
    /// All of them, in order.
    pub const ALL: [Tree; 3] = [Tree::Iri, Tree::Literal, Tree::Text];

    /// The tree that holds terms of a kind; `None` for kinds outside the dictionary.
    #[inline]
    pub const fn holding(kind: TermKind) -> Option<Tree> {
        match kind {
            TermKind::Iri => Some(Tree::Iri),
            TermKind::String | TermKind::Literal | TermKind::Value => Some(Tree::Literal),
            TermKind::Text => Some(Tree::Text),
            _ => None,
        }
    }

    /// Name of the string tree, and of its catalog record.
    pub const fn name(self) -> &'static str {
        match self {
            Tree::Iri => "iri",
            Tree::Literal => "lit",
            Tree::Text => "text",
        }
    }

    /// Name of the hash tree, and of its catalog record.
    pub const fn hash_name(self) -> &'static str {
        match self {
            Tree::Iri => "iri-hash",
            Tree::Literal => "lit-hash",
            Tree::Text => "text-hash",
        }
    }

    /// Columns of the hash tree: hash, number and, for literals, code.
    pub const fn hash_arity(self) -> usize {
        match self {
            Tree::Iri => 2,
            Tree::Literal | Tree::Text => 3,
        }
    }
}

/// Where a term belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place<'a> {
    /// The term is inline, with this id.
    Inline(TermId),
    /// The term is a blank node with this label.
    Blank(&'a str),
    /// The term has this entry in the dictionary.
    Entry(Entry<'a>),
    /// The code source does not know its language or datatype, so no stored term equals it.
    Unknown,
    /// The term is a triple term.
    Triple(&'a Triple),
}

/// A term as stored in the dictionary, except for the prefixes of IRIs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Entry<'a> {
    /// Kind of its id.
    pub kind: TermKind,
    /// Annotation code: [`PLAIN`] for strings, 0 for IRIs.
    pub code: u16,
    /// The IRI, or the string of the literal tree or text tree.
    pub string: &'a [u8],
}

impl Entry<'_> {
    /// The tree of its string.
    #[inline]
    pub fn tree(&self) -> Tree {
        Tree::holding(self.kind).expect("entries are of dictionary kinds")
    }

    /// Its hash, 64 bits.
    #[inline]
    pub fn hash(&self) -> u64 {
        hash(self.tree(), self.code, self.string)
    }

    /// Its id, once it has a number.
    #[inline]
    pub const fn id(&self, number: u64) -> TermId {
        TermId::dictionary(self.kind, self.code, number)
    }
}

/// The hash of a dictionary string, 64 bits. Sort rows of hash trees by the stored
/// [`index_hash`], not by this: where hashes share their upper bits, sorting by hash and number
/// gives another order.
#[inline]
pub fn hash(tree: Tree, code: u16, string: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(u64::from(tree as u8) << 16 | u64::from(code), string)
}

/// The first column of a hash tree: the upper [`HASH_BITS`].
#[inline]
pub const fn index_hash(hash: u64) -> u64 {
    index_hash_of(hash, HASH_BITS as u8)
}

/// The first column of a hash tree in a database that keeps `bits` (1 to 64) of a hash.
#[inline]
pub(crate) const fn index_hash_of(hash: u64, bits: u8) -> u64 {
    hash >> (64 - bits)
}

/// Finds the place of a term in a dictionary of this format. `scratch` receives the string if the
/// annotation is part of it.
#[inline]
pub fn place<'a>(
    term: &TermRef<'a>,
    format: GraphFormat,
    codes: &mut impl CodeSource,
    scratch: &'a mut Vec<u8>,
) -> Place<'a> {
    match *term {
        TermRef::Iri(iri) => Place::Entry(Entry { kind: TermKind::Iri, code: 0, string: iri.as_bytes() }),
        TermRef::Blank(label) => Place::Blank(label),
        TermRef::Literal { lexical, lang: Some(lang), direction, .. } => {
            let kind = format.kind_by_length(TermKind::Literal, lexical.len());
            annotated(kind, lexical, Annotation::of_tag(lang, direction), codes, scratch)
        }
        TermRef::Literal { lexical, lang: None, datatype, .. } => {
            typed(lexical, datatype, format, codes, scratch)
        }
        TermRef::Triple(triple) => Place::Triple(triple),
    }
}

fn typed<'a>(
    lexical: &'a str,
    datatype: &str,
    format: GraphFormat,
    codes: &mut impl CodeSource,
    scratch: &'a mut Vec<u8>,
) -> Place<'a> {
    let kind = match inline::encode(lexical, datatype) {
        Inline::Id(id) => return Place::Inline(id),
        Inline::No(kind) => kind,
        Inline::Shaped(body) => match codes.decimal_datatype(datatype) {
            Code::Is(code) => return Place::Inline(inline::decimal_like(code, body)),
            Code::Full => TermKind::Literal,
            Code::Unknown => return Place::Unknown,
        },
    };
    let by_length = format.kind_by_length(kind, lexical.len());
    if kind != TermKind::String {
        return annotated(by_length, lexical, Annotation::Datatype(datatype), codes, scratch);
    }
    Place::Entry(Entry { kind: by_length, code: PLAIN, string: lexical.as_bytes() })
}

fn annotated<'a>(
    kind: TermKind,
    lexical: &'a str,
    annotation: Annotation<'_>,
    codes: &mut impl CodeSource,
    scratch: &'a mut Vec<u8>,
) -> Place<'a> {
    match codes.annotation(annotation) {
        Code::Is(code) => Place::Entry(Entry { kind, code, string: lexical.as_bytes() }),
        Code::Unknown => Place::Unknown,
        Code::Full => {
            scratch.clear();
            let (tag, name) = annotation.tagged();
            scratch.push(tag);
            varint::put(scratch, name.len() as u64);
            scratch.extend(name.as_bytes());
            scratch.extend(lexical.as_bytes());
            Place::Entry(Entry { kind, code: IN_STRING, string: scratch })
        }
    }
}

/// The literal of an id with a code and its dictionary string.
#[inline]
pub fn literal<'a>(id: TermId, string: &'a [u8], codes: &'a Codes) -> Result<TermRef<'a>> {
    let code = if id.kind().has_code() { id.code() } else { PLAIN };
    let damaged = |why| dictionary_error(id, why);
    let (annotation, lexical) = if code == IN_STRING {
        split_annotation(string).ok_or_else(|| damaged("its annotation cannot be read"))?
    } else {
        (codes.annotation_of(code).ok_or_else(|| damaged("its annotation code is not in the table"))?, string)
    };
    let lexical = std::str::from_utf8(lexical).map_err(|_| damaged("it is not UTF-8"))?;
    Ok(annotation.literal(lexical))
}

/// Annotation and lexical form of a string with code [`IN_STRING`].
fn split_annotation(string: &[u8]) -> Option<(Annotation<'_>, &[u8])> {
    let (&tag, mut rest) = string.split_first()?;
    let len = varint::take::<5>(&mut rest).ok()?;
    let (name, lexical) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    Some((Annotation::from_tagged(tag, std::str::from_utf8(name).ok()?)?, lexical))
}

pub(crate) fn dictionary_error(id: TermId, why: impl Into<String>) -> GraphError {
    let tree = Tree::holding(id.kind()).map_or("none", Tree::name);
    GraphError::Dictionary { tree, number: id.number(), why: why.into() }
}

/// The catalog record of the whole graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GraphMeta {
    /// Format of the dictionary.
    pub format: GraphFormat,
    /// Quads.
    pub quads: u64,
    /// Blank nodes, numbered from 0.
    pub blank_nodes: u64,
    /// Bits of a hash in the hash trees, 1 to 64: [`HASH_BITS`], except in tests of colliding
    /// hashes.
    pub hash_bits: u8,
    /// True: all quads are in the default graph. False: not known; the rows of GS decide.
    pub plain: bool,
}

impl Default for GraphMeta {
    fn default() -> Self {
        GraphMeta {
            format: GraphFormat::default(),
            quads: 0,
            blank_nodes: 0,
            hash_bits: HASH_BITS as u8,
            plain: true,
        }
    }
}

impl GraphMeta {
    /// Encodes format, quads, blank nodes, hash bits, and a byte 1 if the graph is plain; little
    /// endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.format.number().to_le_bytes().to_vec();
        bytes.extend(self.quads.to_le_bytes());
        bytes.extend(self.blank_nodes.to_le_bytes());
        bytes.push(self.hash_bits);
        bytes.extend(self.plain.then_some(1));
        bytes
    }

    /// The inverse; a format not in [`GraphFormat::ALL`] is an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let damaged = || GraphError::record(RECORD_META, "it cannot be read");
        let (number, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
        let number = u32::from_le_bytes(*number);
        let format = GraphFormat::of_number(number).ok_or_else(|| other_format(number))?;
        let (quads, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        let (blank_nodes, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        let (hash_bits, plain) = match rest {
            [bits @ 1..=64] => (*bits, false),
            [bits @ 1..=64, 1] => (*bits, true),
            _ => return Err(damaged()),
        };
        Ok(GraphMeta {
            format,
            quads: u64::from_le_bytes(*quads),
            blank_nodes: u64::from_le_bytes(*blank_nodes),
            hash_bits,
            plain,
        })
    }
}

fn other_format(number: u32) -> GraphError {
    GraphError::Format { found: number, newest: GraphFormat::NEWEST.number() }
}

/// The number in a blank node's display label, `b` and digits as [`blank_label`] writes them.
pub fn blank_number(label: &str) -> Option<u64> {
    let digits = label.strip_prefix('b')?;
    let number = digits.parse().ok()?;
    (blank_label(number, &mut String::new()) == label).then_some(number)
}

/// The display label of a blank node: `b` and its number. Labels of the input are not kept.
pub fn blank_label(number: u64, out: &mut String) -> &str {
    use std::fmt::Write;
    out.clear();
    write!(out, "b{number}").expect("writing to a string");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lexical;
    use crate::term::BaseDirection;
    use proptest::prelude::*;

    fn terms() -> impl Strategy<Value = crate::Term> {
        let datatype = prop_oneof![
            Just("http://www.w3.org/2001/XMLSchema#integer".to_owned()),
            Just("http://www.w3.org/2001/XMLSchema#string".to_owned()),
            "http://[a-d]/",
        ];
        let literal =
            prop_oneof!["[0-9]{1,3}(\\.[0-9]{1,3})?", "\\PC{0,12}", "[a-z ]{60,70}", "[a-z ]{250,262}"];
        prop_oneof![
            "http://[a-c]/[a-c/#]{0,5}".prop_map(crate::Term::Iri),
            (literal.clone(), "[a-d]{2}")
                .prop_map(|(lexical, lang)| TermRef::tagged(&lexical, &lang).to_owned()),
            (literal.clone(), "[ab]{2}", prop::sample::select(vec![BaseDirection::Ltr, BaseDirection::Rtl]))
                .prop_map(|(lexical, lang, to)| TermRef::directed(&lexical, &lang, to).to_owned()),
            (literal, datatype)
                .prop_map(|(lexical, datatype)| TermRef::typed(&lexical, &datatype).to_owned()),
        ]
    }

    /// Decodes as a session does, with the string given.
    fn back(id: TermId, string: &[u8], codes: &Codes) -> crate::Term {
        let mut lexical = Lexical::new();
        if let Some(lexical) = lexical.write(id) {
            let datatype = id.fixed_datatype().or_else(|| codes.decimal_datatype_of(id.decimal_code()));
            return TermRef::typed(lexical, datatype.unwrap()).to_owned();
        }
        match id.kind() {
            TermKind::Iri => crate::Term::Iri(String::from_utf8(string.to_vec()).unwrap()),
            _ => literal(id, string, codes).unwrap().to_owned(),
        }
    }

    /// A source whose tables hold only the names added before.
    struct Fixed<'a>(&'a Codes);

    impl CodeSource for Fixed<'_> {
        fn annotation(&mut self, annotation: Annotation<'_>) -> Code<u16> {
            full(self.0.find_annotation(annotation))
        }
        fn decimal_datatype(&mut self, datatype: &str) -> Code<u8> {
            full(self.0.find_decimal_datatype(datatype))
        }
    }

    fn full<T>(code: Code<T>) -> Code<T> {
        if matches!(code, Code::Unknown) { Code::Full } else { code }
    }

    proptest! {
        #[test]
        fn terms_are_placed_and_given_back(
            terms in prop::collection::vec(terms(), 1..60),
            known in 0usize..60,
            format in prop::sample::select(&GraphFormat::ALL[..]),
        ) {
            let mut codes = Codes::new();
            for term in terms.iter().take(known) {
                let mut scratch = Vec::new();
                place(&term.as_ref(), format, &mut codes, &mut scratch);
            }
            let codes = Codes::from_bytes(&codes.to_bytes()).unwrap();
            let mut entries = std::collections::HashMap::new();
            for term in &terms {
                let mut scratch = Vec::new();
                let placed = place(&term.as_ref(), format, &mut Fixed(&codes), &mut scratch);
                let (id, string) = match placed {
                    Place::Inline(id) => (id, Vec::new()),
                    Place::Entry(entry) => {
                        let bytes = entry.string.len();
                        let is_long = bytes > format.short_bytes();
                        if entry.kind == TermKind::Text {
                            prop_assert!(is_long);
                        } else if matches!(entry.kind, TermKind::String | TermKind::Literal) && entry.code != IN_STRING {
                            prop_assert!(!is_long, "{bytes} bytes in {format:?}");
                        }
                        (entry.id(77), entry.string.to_vec())
                    }
                    other => panic!("{other:?}"),
                };
                prop_assert_eq!(&back(id, &string, &codes), term);
                // The id without its number, and the string, identify the term.
                let other = entries.entry((id, string)).or_insert_with(|| term.clone());
                prop_assert_eq!(other, term);
            }
        }
    }

    #[test]
    fn constants_with_unknown_annotations_are_nowhere() {
        let codes = Codes::new();
        let mut scratch = Vec::new();
        let term = TermRef::tagged("chat", "fr");
        let format = GraphFormat::default();
        assert_eq!(place(&term, format, &mut &codes, &mut scratch), Place::Unknown);
        let amount = TermRef::typed("1.5", "http://a/usd");
        assert_eq!(place(&amount, format, &mut &codes, &mut scratch), Place::Unknown);
    }

    #[test]
    fn damaged_strings_are_errors() {
        let codes = Codes::new();
        let in_string = TermId::coded(TermKind::Literal, IN_STRING, 3);
        for string in [&b""[..], b"@", b"@\x09en", b"?\x02enchat", b"@\x02\xFF\xFEchat", b"@\x02en\xFF"] {
            assert!(literal(in_string, string, &codes).is_err(), "{string:?}");
        }
        assert!(literal(in_string, b"@\x02enchat", &codes).is_ok());
        assert!(literal(TermId::coded(TermKind::Literal, 9, 3), b"chat", &codes).is_err());
        assert!(literal(TermId::new(TermKind::String, 3), b"\xFF", &codes).is_err());
    }

    #[test]
    fn meta_round_trips_in_every_format() {
        for (number, short_bytes, format) in [
            (1, 64, GraphFormat::One),
            (2, 256, GraphFormat::Two),
            (3, 64, GraphFormat::Three),
            (4, 256, GraphFormat::Four),
        ] {
            let meta = GraphMeta { format, quads: 5, blank_nodes: u64::MAX, hash_bits: 3, plain: false };
            let bytes = meta.to_bytes();
            assert_eq!(bytes[..4], [number, 0, 0, 0]);
            assert_eq!(GraphMeta::from_bytes(&bytes).unwrap(), meta);
            assert_eq!(GraphMeta::from_bytes(&bytes).unwrap().format.short_bytes(), short_bytes);
            let plain = GraphMeta { plain: true, ..meta };
            assert_eq!(GraphMeta::from_bytes(&plain.to_bytes()).unwrap(), plain);
            assert!(GraphMeta::from_bytes(&[&plain.to_bytes()[..], &[1]].concat()).is_err());
            assert!(GraphMeta::from_bytes(&bytes[..20]).is_err());
            for other in [0, 5, 255] {
                let mut bytes = bytes.clone();
                bytes[0] = other;
                let refused = GraphMeta::from_bytes(&bytes).unwrap_err().to_string();
                let told = format!("of format {other}, this program reads formats 1 to 4");
                assert!(refused.contains(&told), "{refused}");
            }
        }
    }

    #[test]
    fn labels_round_trip() {
        assert_eq!(blank_number(blank_label(17, &mut String::new())), Some(17));
        for label in ["b017", "b", "c1", "b+1"] {
            assert_eq!(blank_number(label), None, "{label}");
        }
    }
}
