//! Texts (XPath functions 3.1, sections 5.3, 5.4 and 6; Jena's afn:substr and afn:strjoin).

use std::borrow::Cow;

use super::Named;
use crate::functions::string::{like, percent_encoded, string};
use crate::value::{Cast, Terms, Value, cast};

pub(super) fn call(func: Named, args: &[Value<'_>], terms: &Terms) -> Option<Value<'static>> {
    match func {
        Named::Concat => joined("", args, terms),
        Named::Join => joined(string(&args[0])?.0, &args[1..], terms),
        Named::Translate => translate(&args[0], string(&args[1])?.0, string(&args[2])?.0, terms),
        Named::NormalizeSpace => normalize_space(&args[0], terms),
        Named::Compare => {
            let order = string(&args[0])?.0.cmp(string(&args[1])?.0);
            Some(Value::Integer((order as i8).into()))
        }
        Named::CodepointEqual => Some(Value::Boolean(string(&args[0])?.0 == string(&args[1])?.0)),
        Named::ContainsToken => {
            let token = string(&args[1])?.0.trim_matches(is_space);
            let mut tokens = string(&args[0])?.0.split(is_space);
            Some(Value::Boolean(!token.is_empty() && tokens.any(|t| t == token)))
        }
        Named::IriToUri => {
            escaped(&args[0], terms, |byte| byte.is_ascii_graphic() && !b"<>\"{}|\\^`".contains(&byte))
        }
        Named::EscapeHtmlUri => escaped(&args[0], terms, |byte| matches!(byte, b' '..=b'~')),
        Named::Between => between(args, terms),
        _ => None,
    }
}

/// White space of XML.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// The text of a value, as a cast to xsd:string gives it.
pub(super) fn text_of<'v>(v: &'v Value<'_>) -> Option<Cow<'v, str>> {
    if let Some((text, _)) = string(v) {
        return Some(Cow::Borrowed(text));
    }
    match cast(Cast::String, v)? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The texts of values with a separator between them.
fn joined(separator: &str, values: &[Value<'_>], terms: &Terms) -> Option<Value<'static>> {
    let texts = values.iter().map(text_of).collect::<Option<Vec<_>>>()?;
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    terms.fits(bytes + separator.len() * texts.len().saturating_sub(1))?;
    Some(Value::String(texts.join(separator).into()))
}

/// Characters of `from` become those at their places in `to`, or go where there is none.
fn translate(v: &Value<'_>, from: &str, to: &str, terms: &Terms) -> Option<Value<'static>> {
    let (text, lang) = string(v)?;
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut out = String::new();
    for c in text.chars() {
        terms.poll(from.len())?;
        match from.iter().position(|f| *f == c) {
            Some(at) => out.extend(to.get(at)),
            None => out.push(c),
        }
        terms.fits(out.len())?;
    }
    Some(like(out, lang))
}

/// White space goes at both ends, and is one space elsewhere.
fn normalize_space(v: &Value<'_>, terms: &Terms) -> Option<Value<'static>> {
    let (text, lang) = string(v)?;
    terms.fits(text.len())?;
    let mut out = String::with_capacity(text.len());
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    Some(like(out, lang))
}

/// A text whose bytes are written as %XX, but for those that stay.
fn escaped(v: &Value<'_>, terms: &Terms, stays: impl Fn(u8) -> bool) -> Option<Value<'static>> {
    percent_encoded(&text_of(v)?, terms, stays).map(|out| Value::String(out.into()))
}

/// The characters from one place to another, counted from 0; an error outside of the text.
fn between(args: &[Value<'_>], terms: &Terms) -> Option<Value<'static>> {
    let (text, lang) = string(&args[0])?;
    let place = |v: &Value<'_>| match v {
        Value::Integer(v) => usize::try_from(v).ok(),
        _ => None,
    };
    let offset = |chars: usize| text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(chars);
    let begin = offset(place(&args[1])?)?;
    let end = match args.get(2) {
        Some(end) => offset(place(end)?)?,
        None => text.len(),
    };
    let part = text.get(begin..end)?;
    terms.fits(part.len())?;
    Some(like(part.to_owned(), lang))
}
