//! The built-in functions on values, by family: strings, patterns, dates, hashes, terms, and
//! those that are called by IRI alone.
//!
//! A function sees the values of its arguments, all of them bound, and gives a value or None,
//! the error. What can be told from ids alone (STR, LANG, DATATYPE, the type tests, casts) is
//! not here but with the expressions.
//!
//! A function that makes a longer text than it got asks [`Terms::fits`] before it makes it, and
//! one that loops over a text asks
//! [`Terms::poll`]: either ends the query.

mod backtrack;
mod compiled;
mod custom;
mod date;
mod hash;
mod named;
mod pattern;
mod search;
mod string;
mod term;
mod xpath;

pub(crate) use compiled::KeptPatterns;
pub use compiled::Patterns;
pub use custom::{CustomFunction, CustomFunctions, TermFunction};
use named::Named;
pub(crate) use pattern::{Beginning, TextPattern};
pub(crate) use string::lang_matches;

use crate::algebra::{Called, Function};
use crate::value::{Terms, Value, round};

macro_rules! functions {
    ($($name:ident)*) => {
        /// A built-in function.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Func {
            $($name,)*
            /// one that only an IRI names
            Named(Named),
        }

        impl Func {
            /// The function of a keyword; None for those evaluated on ids.
            fn of_keyword(f: Function) -> Option<Self> {
                Some(match f {
                    $(Function::$name => Func::$name,)*
                    _ => return None,
                })
            }
        }
    };
}

functions! {
    Iri BNode Rand Abs Ceil Floor Round Concat SubStr StrLen Replace UCase LCase EncodeForUri Contains StrStarts StrEnds
    StrBefore StrAfter Year Month Day Hours Minutes Seconds Timezone Tz Now Uuid StrUuid Md5 Sha1 Sha256 Sha384 Sha512
    StrLang StrDt Regex Adjust LangDir HasLang HasLangDir StrLangDir
}

impl Func {
    /// The function that a call names, by keyword or IRI; None for casts, those evaluated on ids
    /// and unknown ones.
    pub fn of_call(f: Called<'_>, arguments: usize) -> Option<Self> {
        match f {
            Called::Iri(iri) => named::find(iri.as_str(), arguments),
            Called::Keyword(keyword) => Self::of_keyword(keyword),
        }
    }

    /// Whether it gives only booleans.
    pub fn is_boolean(self) -> bool {
        match self {
            Func::Contains | Func::StrStarts | Func::StrEnds | Func::Regex => true,
            Func::HasLang | Func::HasLangDir => true,
            Func::Named(named) => named.is_boolean(),
            _ => false,
        }
    }

    /// Whether the same call may give something else in another query.
    pub fn is_of_query(self) -> bool {
        match self {
            Func::Now => true,
            Func::Named(named) => named.tells_time(),
            other => other.is_volatile(),
        }
    }

    /// Whether it gives another result each time it is called.
    pub fn is_volatile(self) -> bool {
        matches!(self, Func::Rand | Func::Uuid | Func::StrUuid | Func::BNode)
    }
}

/// Calls a function; the parser has checked the number of arguments.
pub(crate) fn call(func: Func, args: &[Value<'_>], terms: &Terms) -> Option<Value<'static>> {
    match func {
        Func::Abs => round::abs(&args[0]),
        Func::Ceil => round::ceil(&args[0]),
        Func::Floor => round::floor(&args[0]),
        Func::Round => round::half_up(&args[0]),
        Func::Rand => Some(Value::Double(rand::random::<f64>().into())),
        Func::Iri => term::iri(&args[0], terms.base.as_ref()),
        Func::BNode => Some(term::blank()),
        Func::Uuid => Some(term::uuid()),
        Func::StrUuid => Some(term::uuid_text()),
        Func::StrLang => term::with_language(&args[0], &args[1]),
        Func::LangDir | Func::HasLang | Func::HasLangDir => term::language(func, &args[0]),
        Func::StrLangDir => term::with_direction(&args[0], &args[1], &args[2]),
        Func::StrDt => term::with_datatype(&args[0], &args[1]),
        Func::Now => Some(Value::Temporal(crate::value::Temporal::DateTime(terms.now))),
        Func::Year | Func::Month | Func::Day | Func::Hours | Func::Minutes | Func::Seconds => {
            date::part(func, &args[0])
        }
        Func::Timezone => date::timezone(&args[0]),
        Func::Tz => date::tz(&args[0]),
        Func::Adjust => date::adjust(&args[0], &args[1]),
        Func::Md5 | Func::Sha1 | Func::Sha256 | Func::Sha384 | Func::Sha512 => hash::digest(func, &args[0]),
        Func::Regex | Func::Replace => pattern::call_dynamic(func, args, terms),
        Func::Named(func) => named::call(func, args, terms),
        _ => string::call(func, args, terms),
    }
}

/// REGEX or REPLACE with a pattern compiled before; `args` are the text, and the replacement if
/// there is one.
pub(crate) fn call_pattern(
    pattern: &TextPattern,
    args: &[Value<'_>],
    terms: &Terms,
) -> Option<Value<'static>> {
    match args {
        [text] => pattern.matches(text, terms),
        [text, replacement] => pattern.replace(text, replacement, terms),
        _ => None,
    }
}
