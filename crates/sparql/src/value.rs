//! Values: what a term means to an operator or a function.
//!
//! A term is text (an IRI, a label, a lexical form with language or datatype); a [`Value`] is
//! that text read once: numbers as numbers, dates as points in time, everything unknown kept as
//! it stands. Operators work on values, term functions (STR, DATATYPE, sameTerm) on the text.
//!
//! Invariants:
//! * a literal whose lexical form does not fit its datatype becomes [`Value::Other`]: it has no
//!   value, only a term;
//! * derived integer types (xsd:int and so on) are read as [`Value::Integer`]: SPARQL promotes
//!   them before any operator sees them (SPARQL 1.1, section 17.1);
//! * integers and decimals are exact, whatever their size (see [`Decimal`]);
//! * no value is ever printed in another form than the canonical one of its datatype.
//!
//! `None` from any operation is SPARQL's error, which leaves the result unbound.

pub(crate) mod arena;
mod arith;
mod blank_calls;
mod cache;
mod cast;
mod compare;
mod duration;
mod equal_key;
mod exact;
mod fault;
mod guard;
mod inline;
mod interner;
pub mod iri;
mod local;
mod order;
mod parse;
mod ranks;
mod term_store;
mod terms;
mod triple;

pub use arith::{Arithmetic, arithmetic, negate, round};
pub use cast::{Cast, cast};
pub use compare::{compare, effective_boolean, equals, holds};
pub(crate) use equal_key::{filed, join_key, sought};
pub use exact::{Decimal, Integer, Ties, bytes_of};
pub use fault::TermError;
pub(crate) use fault::TooMuch;
pub(crate) use guard::TermBounds;
pub use local::LocalTerms;
pub(crate) use order::key_order;
pub use order::push_order_key;
pub use parse::{is_numeric_datatype, parse_literal};
pub use ranks::CommittedStrings;
pub(crate) use ranks::{Ranking, TextRanks};
pub use term_store::{NoStore, TermStore};
pub use terms::{TermBuffer, Terms};
pub use triple::TripleValue;
pub(crate) use triple::triple;

use std::borrow::Cow;

use oxsdatatypes::{
    Date, DateTime, DayTimeDuration, Double, Duration, Float, GDay, GMonth, GMonthDay, GYear, GYearMonth,
    Time, YearMonthDuration,
};
use snowmelt_graph::TermRef;

/// A term read for an operator. Text is borrowed from where the term was decoded, or owned when
/// computed.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// An IRI.
    Iri(Cow<'a, str>),
    /// A blank node, by its label.
    Blank(Cow<'a, str>),
    /// A string without language.
    String(Cow<'a, str>),
    /// A string with a language tag, which a base direction may follow: `en--ltr`.
    LangString(Cow<'a, str>, Cow<'a, str>),
    /// xsd:boolean.
    Boolean(bool),
    /// xsd:integer and the types derived from it.
    Integer(Integer),
    /// xsd:decimal.
    Decimal(Decimal),
    /// xsd:float.
    Float(Float),
    /// xsd:double.
    Double(Double),
    /// A date, time, part of a date, or duration.
    Temporal(Temporal),
    /// A literal of an unknown datatype, or one whose lexical form does not fit its datatype.
    Other {
        /// The lexical form.
        lexical: Cow<'a, str>,
        /// The datatype's IRI.
        datatype: Cow<'a, str>,
    },
    /// A triple term.
    Triple(TripleValue<'a>),
}

/// Dates, times, parts of dates, and durations.
#[derive(Clone, Copy, Debug)]
pub enum Temporal {
    /// xsd:dateTime.
    DateTime(DateTime),
    /// xsd:date.
    Date(Date),
    /// xsd:time.
    Time(Time),
    /// xsd:gYear.
    GYear(GYear),
    /// xsd:gYearMonth.
    GYearMonth(GYearMonth),
    /// xsd:gMonth.
    GMonth(GMonth),
    /// xsd:gMonthDay.
    GMonthDay(GMonthDay),
    /// xsd:gDay.
    GDay(GDay),
    /// xsd:duration.
    Duration(Duration),
    /// xsd:yearMonthDuration.
    YearMonthDuration(YearMonthDuration),
    /// xsd:dayTimeDuration.
    DayTimeDuration(DayTimeDuration),
}

impl Temporal {
    /// A duration of any of the three types; `None` for a moment.
    #[must_use]
    pub fn as_duration(&self) -> Option<Duration> {
        duration::whole(self)
    }
}

impl<'a> Value<'a> {
    /// The value of a term, whose text it borrows.
    #[must_use]
    pub fn of_term(term: TermRef<'a>) -> Self {
        match term {
            TermRef::Iri(iri) => Value::Iri(iri.into()),
            TermRef::Blank(label) => Value::Blank(label.into()),
            TermRef::Literal { lexical, lang: Some(lang), direction: Some(direction), .. } => {
                Value::LangString(lexical.into(), Cow::Owned(format!("{lang}--{direction}")))
            }
            TermRef::Literal { lexical, lang, datatype, .. } => parse_literal(lexical, lang, datatype),
            TermRef::Triple(triple) => Value::Triple(TripleValue::Read(triple)),
        }
    }
}

impl Value<'_> {
    /// A copy that owns its text.
    #[must_use]
    pub fn into_owned(self) -> Value<'static> {
        fn own(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        match self {
            Value::Iri(t) => Value::Iri(own(t)),
            Value::Blank(t) => Value::Blank(own(t)),
            Value::String(t) => Value::String(own(t)),
            Value::LangString(t, l) => Value::LangString(own(t), own(l)),
            Value::Boolean(v) => Value::Boolean(v),
            Value::Integer(v) => Value::Integer(v),
            Value::Decimal(v) => Value::Decimal(v),
            Value::Float(v) => Value::Float(v),
            Value::Double(v) => Value::Double(v),
            Value::Temporal(v) => Value::Temporal(v),
            Value::Other { lexical, datatype } => {
                Value::Other { lexical: own(lexical), datatype: own(datatype) }
            }
            Value::Triple(triple) => Value::Triple(triple.into_owned()),
        }
    }

    /// True for integers, decimals, floats and doubles.
    #[must_use]
    pub fn is_numeric(&self) -> bool {
        matches!(self, Value::Integer(_) | Value::Decimal(_) | Value::Float(_) | Value::Double(_))
    }

    /// True for anything that is no IRI, no blank node and no triple term.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        !matches!(self, Value::Iri(_) | Value::Blank(_) | Value::Triple(_))
    }
}
