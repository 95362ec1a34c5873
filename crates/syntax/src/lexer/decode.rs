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
    while let Some((before, escape)) = rest.split_once('\\') {
        out.push_str(before);
        let name = escape.chars().next()?;
        let (c, len) = match name {
            't' => ('\t', 1),
            'b' => ('\u{8}', 1),
            'n' => ('\n', 1),
            'r' => ('\r', 1),
            'f' => ('\u{C}', 1),
            '"' | '\'' | '\\' => (name, 1),
            'u' => (code_point(escape.get(1..5)?)?, 5),
            'U' => (code_point(escape.get(1..9)?)?, 9),
            _ => return None,
        };
        out.push(c);
        rest = &escape[len..];
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

fn code_point(digits: &str) -> Option<char> {
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    char::from_u32(u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?)
}
