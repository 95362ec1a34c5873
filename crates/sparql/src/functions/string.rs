//! String functions (SPARQL 1.1, section 17.4.3). Lengths and places count characters (code
//! points), from one.

use std::borrow::Cow;

use super::Func;
use crate::value::{Cast, Terms, Value, cast};

/// The text and language of a string literal; None for anything else.
pub(super) fn string<'v>(v: &'v Value<'_>) -> Option<(&'v str, Option<&'v str>)> {
    match v {
        Value::String(t) => Some((t, None)),
        Value::LangString(t, lang) => Some((t, Some(lang))),
        _ => None,
    }
}

/// The text of a string without language.
pub(super) fn plain<'v>(v: &'v Value<'_>) -> Option<&'v str> {
    match v {
        Value::String(t) => Some(t),
        _ => None,
    }
}

/// A string with the language of the one it was made of.
pub(super) fn like(text: String, lang: Option<&str>) -> Value<'static> {
    match lang {
        Some(lang) => Value::LangString(Cow::Owned(text), Cow::Owned(lang.to_owned())),
        None => Value::String(Cow::Owned(text)),
    }
}

/// Two strings that may be compared: the second has no language, or that of the first (section
/// 17.4.3.1.2).
fn compatible<'v>(a: &'v Value<'_>, b: &'v Value<'_>) -> Option<(&'v str, &'v str, Option<&'v str>)> {
    let ((a, la), (b, lb)) = (string(a)?, string(b)?);
    (lb.is_none() || la == lb).then_some((a, b, la))
}

pub(super) fn call(func: Func, args: &[Value<'_>], terms: &Terms) -> Option<Value<'static>> {
    Some(match func {
        Func::Concat => concat(args, terms)?,
        Func::StrLen => Value::Integer(string(&args[0])?.0.chars().count().into()),
        Func::SubStr => {
            terms.fits(string(&args[0])?.0.len())?;
            sub_str(args)?
        }
        Func::UCase => {
            let (text, lang) = string(&args[0])?;
            terms.fits(text.len())?;
            like(text.to_uppercase(), lang)
        }
        Func::LCase => {
            let (text, lang) = string(&args[0])?;
            terms.fits(text.len())?;
            like(text.to_lowercase(), lang)
        }
        Func::EncodeForUri => {
            Value::String(Cow::Owned(percent_encoded(string(&args[0])?.0, terms, is_unreserved)?))
        }
        Func::Contains => {
            let (a, b, _) = compatible(&args[0], &args[1])?;
            Value::Boolean(a.contains(b))
        }
        Func::StrStarts => {
            let (a, b, _) = compatible(&args[0], &args[1])?;
            Value::Boolean(a.starts_with(b))
        }
        Func::StrEnds => {
            let (a, b, _) = compatible(&args[0], &args[1])?;
            Value::Boolean(a.ends_with(b))
        }
        Func::StrBefore => {
            let (a, b, lang) = compatible(&args[0], &args[1])?;
            part(a.find(b).map(|at| &a[..at]), lang)
        }
        Func::StrAfter => {
            let (a, b, lang) = compatible(&args[0], &args[1])?;
            part(a.find(b).map(|at| &a[at + b.len()..]), lang)
        }
        other => unreachable!("{other:?} is not a string function"),
    })
}

/// STRBEFORE and STRAFTER: no match gives the empty string without language.
fn part(found: Option<&str>, lang: Option<&str>) -> Value<'static> {
    match found {
        Some(text) => like(text.to_owned(), lang),
        None => Value::String(Cow::Borrowed("")),
    }
}

/// The language stays when all have the same one.
fn concat(args: &[Value<'_>], terms: &Terms) -> Option<Value<'static>> {
    let bytes = args.iter().map(|arg| string(arg).map(|(part, _)| part.len())).sum::<Option<usize>>()?;
    terms.fits(bytes)?;
    let mut text = String::with_capacity(bytes);
    let mut common: Option<Option<&str>> = None;
    for arg in args {
        let (part, lang) = string(arg)?;
        text.push_str(part);
        common = match common {
            None => Some(lang),
            Some(common) if common == lang => Some(common),
            Some(_) => Some(None),
        };
    }
    Some(like(text, common.flatten()))
}

/// SUBSTR as XPath's fn:substring: the characters at places p with round(start) ≤ p <
/// round(start) + round(length).
fn sub_str(args: &[Value<'_>]) -> Option<Value<'static>> {
    let (text, lang) = string(&args[0])?;
    let start = place(&args[1])?;
    let end = match args.get(2) {
        Some(length) => start + place(length)?,
        None => f64::INFINITY,
    };
    let inside = |(i, c): (usize, char)| {
        let place = (i + 1) as f64;
        (place >= start && place < end).then_some(c)
    };
    Some(like(text.chars().enumerate().filter_map(inside).collect(), lang))
}

/// A number as a place: XPath rounds halves up, NaN is no place.
fn place(v: &Value<'_>) -> Option<f64> {
    match cast(Cast::Double, &crate::value::round::half_up(v)?)? {
        Value::Double(v) => Some(v.into()),
        _ => None,
    }
}

/// Whether ENCODE_FOR_URI leaves a byte as it is: the unreserved characters of RFC 3986.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~')
}

/// A text whose bytes are written as %XX, but for those that stay, which are ASCII.
pub(super) fn percent_encoded(text: &str, terms: &Terms, stays: impl Fn(u8) -> bool) -> Option<String> {
    let bytes = text.bytes().map(|byte| if stays(byte) { 1 } else { 3 }).sum();
    terms.fits(bytes)?;
    let mut out = String::with_capacity(bytes);
    for byte in text.bytes() {
        if stays(byte) {
            out.push(char::from(byte));
        } else {
            const HEX: [u8; 16] = *b"0123456789ABCDEF";
            out.extend([
                '%',
                char::from(HEX[usize::from(byte >> 4)]),
                char::from(HEX[usize::from(byte & 15)]),
            ]);
        }
    }
    Some(out)
}

/// Basic filtering of RFC 4647: the range is "*", or the tag's subtags begin with the range's.
pub(crate) fn lang_matches(tag: &str, range: &str) -> bool {
    if range == "*" {
        return !tag.is_empty();
    }
    let mut subtags = tag.split('-');
    range.split('-').all(|want| subtags.next().is_some_and(|have| have.eq_ignore_ascii_case(want)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sub(start: f64, length: Option<f64>) -> String {
        let mut args = vec![Value::String("motor car".into()), Value::Double(start.into())];
        args.extend(length.map(|l| Value::Double(l.into())));
        sub_str(&args).unwrap().text().into_owned()
    }

    #[test]
    fn substr_is_xpaths_substring() {
        // the examples of XPath functions 5.4.3
        assert_eq!(sub(6.0, None), " car");
        assert_eq!(sub(4.0, Some(3.0)), "or ");
        assert_eq!(sub(1.5, Some(2.6)), "oto");
        assert_eq!(sub(0.0, Some(3.0)), "mo");
        assert_eq!(sub(5.0, Some(-3.0)), "");
        assert_eq!(sub(-3.0, Some(5.0)), "m");
        assert_eq!(sub(f64::NAN, Some(3.0)), "");
        assert_eq!(sub(-42.0, Some(f64::INFINITY)), "motor car");
        assert_eq!(sub(f64::NEG_INFINITY, Some(f64::INFINITY)), "");
    }

    #[test]
    fn language_ranges() {
        for (tag, range, expected) in [
            ("en", "EN", true),
            ("en-gb", "en", true),
            ("en", "en-GB", false),
            ("eng", "en", false),
            ("", "*", false),
            ("de", "*", true),
            ("", "en", false),
        ] {
            assert_eq!(lang_matches(tag, range), expected, "{tag} {range}");
        }
    }

    #[test]
    fn long_results_are_refused_before_they_are_made() {
        let half = || Value::String("ä".repeat(400).into());
        for (func, args) in [(Func::Concat, vec![half(), half()]), (Func::EncodeForUri, vec![half()])] {
            let terms = Terms::for_test(1000);
            assert!(call(func, &args, &terms).is_none());
            assert!(matches!(terms.fault(), Err(crate::value::TermError::TooLong { most: 1000, .. })));
            assert!(call(func, &args, &Terms::for_test(5000)).is_some());
        }
    }

    #[test]
    fn language_tags_are_texts_too() {
        let mut terms = Terms::for_test(10);
        let id = terms.push_term(snowmelt_graph::TermRef::tagged("a longer text", "en"));
        assert!(id.is_undef() && terms.fault().is_err());
        let id = terms.push_term(snowmelt_graph::TermRef::tagged("a", "en-abcdefgh-abcdefgh"));
        assert!(id.is_undef() && terms.fault().is_err());
    }
}
