//! Functions that have an IRI and no keyword: those of XPath (`fn:`, `math:`) that work on single
//! values, and the most used ones of Jena (`afn:`).
//!
//! Many are a keyword's function under another name. A call with a number of arguments that no
//! entry has is a call of no function.

mod moment;
mod number;
mod sprintf;
mod term;
mod text;

use super::Func;
use crate::value::{Terms, Value};
pub(crate) use moment::{DurationPart, MomentPart, MomentType};
pub(crate) use number::Unary;

/// XPath and XQuery Functions and Operators 3.1.
const FN: &str = "http://www.w3.org/2005/xpath-functions#";
/// Its functions of mathematics.
const MATH: &str = "http://www.w3.org/2005/xpath-functions/math#";
/// The functions of Jena's ARQ.
const AFN: &str = "http://jena.apache.org/ARQ/function#";

/// Arguments of a function that takes any number of them.
const ANY: usize = usize::MAX;

/// A function without a keyword. Those whose names tell them apart have the name of XPath's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// fn:concat: of the texts of all kinds of values
    Concat,
    Translate,
    NormalizeSpace,
    Compare,
    CodepointEqual,
    ContainsToken,
    IriToUri,
    EscapeHtmlUri,
    True,
    False,
    Boolean,
    Not,
    Number,
    /// fn:round to a number of digits
    RoundTo,
    /// fn:round-half-to-even
    HalfToEven,
    /// a part of a moment that has to be of one type
    PartOf(MomentType, MomentPart),
    Adjust(MomentType),
    DurationPart(DurationPart),
    DateAndTime,
    CurrentDate,
    CurrentTime,
    ImplicitTimezone,
    Pi,
    E,
    Unary(Unary),
    Power,
    Atan2,
    LocalName,
    Namespace,
    BlankLabel,
    Sha1Sum,
    /// afn:substr, which counts from 0
    Between,
    Join,
    Sprintf,
    Least,
    Greatest,
}

struct NamedEntry {
    name: &'static str,
    least: usize,
    most: usize,
    func: Func,
}

const fn entry(name: &'static str, least: usize, most: usize, func: Func) -> NamedEntry {
    NamedEntry { name, least, most, func }
}

const fn named(name: &'static str, least: usize, most: usize, func: Named) -> NamedEntry {
    entry(name, least, most, Func::Named(func))
}

const fn part(name: &'static str, of: MomentType, part: MomentPart) -> NamedEntry {
    named(name, 1, 1, Named::PartOf(of, part))
}

const fn unary(name: &'static str, func: Unary) -> NamedEntry {
    named(name, 1, 1, Named::Unary(func))
}

const fn length(name: &'static str, part: DurationPart) -> NamedEntry {
    named(name, 1, 1, Named::DurationPart(part))
}

const FN_NAMES: &[NamedEntry] = &[
    named("concat", 2, ANY, Named::Concat),
    entry("substring", 2, 3, Func::SubStr),
    entry("string-length", 1, 1, Func::StrLen),
    entry("upper-case", 1, 1, Func::UCase),
    entry("lower-case", 1, 1, Func::LCase),
    entry("contains", 2, 2, Func::Contains),
    entry("starts-with", 2, 2, Func::StrStarts),
    entry("ends-with", 2, 2, Func::StrEnds),
    entry("substring-before", 2, 2, Func::StrBefore),
    entry("substring-after", 2, 2, Func::StrAfter),
    entry("encode-for-uri", 1, 1, Func::EncodeForUri),
    entry("matches", 2, 3, Func::Regex),
    entry("replace", 3, 4, Func::Replace),
    named("translate", 3, 3, Named::Translate),
    named("normalize-space", 1, 1, Named::NormalizeSpace),
    named("compare", 2, 2, Named::Compare),
    named("codepoint-equal", 2, 2, Named::CodepointEqual),
    named("contains-token", 2, 2, Named::ContainsToken),
    named("iri-to-uri", 1, 1, Named::IriToUri),
    named("escape-html-uri", 1, 1, Named::EscapeHtmlUri),
    named("true", 0, 0, Named::True),
    named("false", 0, 0, Named::False),
    named("boolean", 1, 1, Named::Boolean),
    named("not", 1, 1, Named::Not),
    named("number", 1, 1, Named::Number),
    entry("abs", 1, 1, Func::Abs),
    entry("ceiling", 1, 1, Func::Ceil),
    entry("floor", 1, 1, Func::Floor),
    entry("round", 1, 1, Func::Round),
    named("round", 2, 2, Named::RoundTo),
    named("round-half-to-even", 1, 2, Named::HalfToEven),
    part("year-from-dateTime", MomentType::DateTime, MomentPart::Year),
    part("month-from-dateTime", MomentType::DateTime, MomentPart::Month),
    part("day-from-dateTime", MomentType::DateTime, MomentPart::Day),
    part("hours-from-dateTime", MomentType::DateTime, MomentPart::Hours),
    part("minutes-from-dateTime", MomentType::DateTime, MomentPart::Minutes),
    part("seconds-from-dateTime", MomentType::DateTime, MomentPart::Seconds),
    part("timezone-from-dateTime", MomentType::DateTime, MomentPart::Timezone),
    part("year-from-date", MomentType::Date, MomentPart::Year),
    part("month-from-date", MomentType::Date, MomentPart::Month),
    part("day-from-date", MomentType::Date, MomentPart::Day),
    part("timezone-from-date", MomentType::Date, MomentPart::Timezone),
    part("hours-from-time", MomentType::Time, MomentPart::Hours),
    part("minutes-from-time", MomentType::Time, MomentPart::Minutes),
    part("seconds-from-time", MomentType::Time, MomentPart::Seconds),
    part("timezone-from-time", MomentType::Time, MomentPart::Timezone),
    length("years-from-duration", DurationPart::Years),
    length("months-from-duration", DurationPart::Months),
    length("days-from-duration", DurationPart::Days),
    length("hours-from-duration", DurationPart::Hours),
    length("minutes-from-duration", DurationPart::Minutes),
    length("seconds-from-duration", DurationPart::Seconds),
    named("adjust-dateTime-to-timezone", 1, 2, Named::Adjust(MomentType::DateTime)),
    named("adjust-date-to-timezone", 1, 2, Named::Adjust(MomentType::Date)),
    named("adjust-time-to-timezone", 1, 2, Named::Adjust(MomentType::Time)),
    named("dateTime", 2, 2, Named::DateAndTime),
    entry("current-dateTime", 0, 0, Func::Now),
    named("current-date", 0, 0, Named::CurrentDate),
    named("current-time", 0, 0, Named::CurrentTime),
    named("implicit-timezone", 0, 0, Named::ImplicitTimezone),
];

const MATH_NAMES: &[NamedEntry] = &[
    named("pi", 0, 0, Named::Pi),
    unary("exp", Unary::Exp),
    unary("exp10", Unary::Exp10),
    unary("log", Unary::Log),
    unary("log10", Unary::Log10),
    named("pow", 2, 2, Named::Power),
    unary("sqrt", Unary::Sqrt),
    unary("sin", Unary::Sin),
    unary("cos", Unary::Cos),
    unary("tan", Unary::Tan),
    unary("asin", Unary::Asin),
    unary("acos", Unary::Acos),
    unary("atan", Unary::Atan),
    named("atan2", 2, 2, Named::Atan2),
];

const AFN_NAMES: &[NamedEntry] = &[
    named("localname", 1, 1, Named::LocalName),
    named("namespace", 1, 1, Named::Namespace),
    named("bnode", 1, 1, Named::BlankLabel),
    named("sha1sum", 1, 1, Named::Sha1Sum),
    named("substr", 2, 3, Named::Between),
    named("substring", 2, 3, Named::Between),
    named("strjoin", 1, ANY, Named::Join),
    named("sprintf", 1, ANY, Named::Sprintf),
    named("min", 2, 2, Named::Least),
    named("max", 2, 2, Named::Greatest),
    named("pi", 0, 0, Named::Pi),
    named("e", 0, 0, Named::E),
    unary("sqrt", Unary::Sqrt),
    entry("now", 0, 0, Func::Now),
    entry("nowtz", 0, 0, Func::Now),
    entry("uuid", 0, 0, Func::Uuid),
    entry("struuid", 0, 0, Func::StrUuid),
];

/// The function of an IRI that takes so many arguments.
pub(super) fn find(iri: &str, arguments: usize) -> Option<Func> {
    let (names, local) = [(MATH, MATH_NAMES), (FN, FN_NAMES), (AFN, AFN_NAMES)]
        .into_iter()
        .find_map(|(namespace, names)| Some((names, iri.strip_prefix(namespace)?)))?;
    let fits = |entry: &&NamedEntry| entry.name == local && (entry.least..=entry.most).contains(&arguments);
    names.iter().find(fits).map(|entry| entry.func)
}

impl Named {
    /// Whether it gives only booleans.
    pub fn is_boolean(self) -> bool {
        use Named as N;
        matches!(self, N::CodepointEqual | N::ContainsToken | N::True | N::False | N::Boolean | N::Not)
    }

    /// Whether it tells the time.
    pub fn tells_time(self) -> bool {
        matches!(self, Named::CurrentDate | Named::CurrentTime)
    }
}

/// Calls a function with as many arguments as its entry says.
pub(super) fn call(func: Named, args: &[Value<'_>], terms: &Terms) -> Option<Value<'static>> {
    use Named as N;
    match func {
        N::Concat | N::Translate | N::NormalizeSpace | N::Compare | N::CodepointEqual | N::ContainsToken => {
            text::call(func, args, terms)
        }
        N::IriToUri | N::EscapeHtmlUri | N::Between | N::Join => text::call(func, args, terms),
        N::Sprintf => sprintf::sprintf(args, terms),
        N::True => Some(Value::Boolean(true)),
        N::False => Some(Value::Boolean(false)),
        N::Boolean => crate::value::effective_boolean(&args[0]).map(Value::Boolean),
        N::Not => crate::value::effective_boolean(&args[0]).map(|truth| Value::Boolean(!truth)),
        N::Number | N::RoundTo | N::HalfToEven | N::Pi | N::E | N::Unary(_) | N::Power | N::Atan2 => {
            number::call(func, args)
        }
        N::Least | N::Greatest => number::call(func, args),
        N::PartOf(..) | N::Adjust(_) | N::DurationPart(_) | N::DateAndTime => moment::call(func, args),
        N::CurrentDate | N::CurrentTime | N::ImplicitTimezone => moment::current(func, terms.now),
        N::LocalName | N::Namespace | N::BlankLabel | N::Sha1Sum => term::call(func, &args[0], terms),
    }
}
