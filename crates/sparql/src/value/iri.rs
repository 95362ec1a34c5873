//! The IRIs of the XML Schema datatypes and of rdf:langString, in one place.

/// The namespace all XML Schema datatypes share.
pub const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
/// rdf:langString.
pub const LANG_STRING: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString";

macro_rules! datatypes {
    ($($name:ident = $local:literal;)*) => {
        $(#[doc = concat!("xsd:", $local, ".")]
        pub const $name: &str = concat!("http://www.w3.org/2001/XMLSchema#", $local);)*
    };
}

datatypes! {
    STRING = "string";
    BOOLEAN = "boolean";
    INTEGER = "integer";
    DECIMAL = "decimal";
    FLOAT = "float";
    DOUBLE = "double";
    DATE_TIME = "dateTime";
    DATE = "date";
    TIME = "time";
    G_YEAR = "gYear";
    G_YEAR_MONTH = "gYearMonth";
    G_MONTH = "gMonth";
    G_MONTH_DAY = "gMonthDay";
    G_DAY = "gDay";
    DURATION = "duration";
    YEAR_MONTH_DURATION = "yearMonthDuration";
    DAY_TIME_DURATION = "dayTimeDuration";
}
