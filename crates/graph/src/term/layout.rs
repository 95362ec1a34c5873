//! The bit layout of inline ids, and the datatypes that have a code.

/// The namespace of the XML Schema datatypes.
pub const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
/// Datatype of plain literals.
pub const XSD_STRING: &str = "http://www.w3.org/2001/XMLSchema#string";
/// Datatype of literals with a language tag.
pub const RDF_LANG_STRING: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString";
/// Datatype of literals with a language tag and a base direction.
pub const RDF_DIR_LANG_STRING: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString";

/// Code of xsd:decimal in decimal ids.
pub const DECIMAL: u8 = 0;
/// First code of registered datatypes in decimal ids; below it are xsd:decimal and
/// [`DERIVED`].
pub const FIRST_REGISTERED: u8 = 16;

/// A datatype derived from xsd:integer: its local name and bounds. Its code in decimal ids is
/// its place + 1.
pub(crate) struct Derived {
    pub name: &'static str,
    pub iri: &'static str,
    pub min: i64,
    pub max: i64,
}

macro_rules! derived {
    ($($name:literal $min:expr, $max:expr;)*) => {
        [$(Derived {
            name: $name,
            iri: concat!("http://www.w3.org/2001/XMLSchema#", $name),
            min: $min,
            max: $max,
        }),*]
    };
}

/// The order is part of the file format.
pub(crate) const DERIVED: [Derived; 12] = derived! {
    "long" i64::MIN, i64::MAX;
    "int" i32::MIN as i64, i32::MAX as i64;
    "short" i16::MIN as i64, i16::MAX as i64;
    "byte" i8::MIN as i64, i8::MAX as i64;
    "nonNegativeInteger" 0, i64::MAX;
    "positiveInteger" 1, i64::MAX;
    "nonPositiveInteger" i64::MIN, 0;
    "negativeInteger" i64::MIN, -1;
    "unsignedLong" 0, i64::MAX;
    "unsignedInt" 0, u32::MAX as i64;
    "unsignedShort" 0, u16::MAX as i64;
    "unsignedByte" 0, u8::MAX as i64;
};

pub(crate) const INTEGER_OFFSET: i64 = 1 << 59;
pub(crate) const DERIVED_OFFSET: i64 = 1 << 51;
pub(crate) const DECIMAL_OFFSET: i64 = 1 << 48;
/// Bits of a decimal-like id below its datatype code.
pub(crate) const BODY_BITS: u32 = 52;
pub(crate) const DIGIT_BITS: u32 = 3;
/// Most digits after the point, and 10 to that power.
pub(crate) const MAX_DIGITS: usize = 6;
pub(crate) const SCALE: i64 = 1_000_000;
pub(crate) const MS_PER_DAY: u64 = 86_400_000;
/// Longest inline string, in bytes.
pub const SHORT_STRING_BYTES: usize = 7;
/// Days from 0001-01-01 to 9999-12-31.
pub(crate) const DAYS: u32 = 3_652_059;
