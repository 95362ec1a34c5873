//! Escapes of strings, IRIs and local names.

use std::borrow::Cow;

/// The value of a string token; `None` where an escape names no character.
pub(crate) fn string_text(token: &str) -> Option<Cow<'_, str>> {
    let quote =
        if token.len() >= 6 && (token.starts_with("\"\"\"") || token.starts_with("'''")) { 3 } else { 1 };
    unescaped(token.get(quote..token.len() - quote)?)
}

/// The IRI of a token in angle brackets, as written or without escapes.
pub(crate) fn iri_text(token: &str) -> Option<Cow<'_, str>> {
    unescaped(token.strip_prefix('<')?.strip_suffix('>')?)
}

/// A local name without its escapes.
pub(crate) fn local_text(local: &str) -> Cow<'_, str> {
    if local.contains('\\') { Cow::Owned(local.replace('\\', "")) } else { Cow::Borrowed(local) }
}

fn unescaped(text: &str) -> Option<Cow<'_, str>> {
    if memchr::memchr(b'\\', text.as_bytes()).is_none() {
        return Some(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut chars = after.chars();
        let digits = match chars.next()? {
            't' => '\t'.into(),
            'b' => '\u{8}'.into(),
            'n' => '\n'.into(),
            'r' => '\r'.into(),
            'f' => '\u{C}'.into(),
            c @ ('"' | '\'' | '\\') => c.into(),
            'u' => Escape::Digits(4),
            'U' => Escape::Digits(8),
            _ => return None,
        };
        rest = chars.as_str();
        match digits {
            Escape::Char(c) => out.push(c),
            Escape::Digits(n) => {
                let digits = rest.get(..n).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
                out.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
                rest = &rest[n..];
            }
        }
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

enum Escape {
    Char(char),
    Digits(usize),
}

impl From<char> for Escape {
    fn from(c: char) -> Self {
        Self::Char(c)
    }
}
