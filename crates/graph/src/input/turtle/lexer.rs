//! Tokens of Turtle and TriG, malformed ones included.
//!
//! A malformed token has an end, too: that of its string or IRI on its line, or that of its word. A
//! word ends before white space, a bracket, a quote or one of `<>,;#^~` and `|}`, and full stops at
//! its end are not part of it. So a malformed token does not damage its neighbours.

use snowmelt_rdfxml::OddTerms;

use crate::term::split_direction;

/// The kind of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TokenKind {
    Iri,
    Prefixed,
    Blank,
    Text,
    Number,
    Truth,
    /// `@` and what follows it: a language, or the beginning of a directive.
    Tag,
    /// `^^`
    Hats,
    /// `a`
    Type,
    Keyword,
    /// One of `.;,[](){}`, or a byte that begins no token.
    Sign(u8),
    Mark(Mark),
}

/// A sign of RDF 1.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    /// `<<`
    Reified,
    /// `>>`
    ReifiedEnd,
    /// `<<(`
    Term,
    /// `)>>`
    TermEnd,
    /// `{|`
    Annotation,
    /// `|}`
    AnnotationEnd,
    /// `~`
    Reifier,
}

const MARKS: [(&[u8], Mark); 7] = [
    (b"<<(", Mark::Term),
    (b")>>", Mark::TermEnd),
    (b"<<", Mark::Reified),
    (b">>", Mark::ReifiedEnd),
    (b"{|", Mark::Annotation),
    (b"|}", Mark::AnnotationEnd),
    (b"~", Mark::Reifier),
];

/// A token.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// Its length in bytes.
    pub(super) len: usize,
    /// Why it is malformed, if it is.
    pub(super) fault: Option<String>,
}

/// Most bytes of a string that does not end on its line.
const MOST_STRAY: usize = 64 << 10;

/// Bytes of white space and comments at the start of a text; `None` if more text is needed.
pub(super) fn gap(text: &[u8], is_end: bool) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at) {
            Some(b' ' | b'\t' | b'\n' | b'\r') => at += 1,
            Some(b'#') => match memchr::memchr2(b'\n', b'\r', &text[at..]) {
                Some(len) => at += len,
                None if is_end => return Some(text.len()),
                None => return None,
            },
            Some(_) => return Some(at),
            None => return is_end.then_some(at),
        }
    }
}

/// The token at the start of a text; `None` if more text is needed.
pub(super) fn token(text: &[u8], is_end: bool, odd: OddTerms) -> Option<Token> {
    let sign = |kind, len| Some(Token { kind, len, fault: None });
    if let b'<' | b'>' | b')' | b'{' | b'|' | b'~' = *text.first()? {
        if !is_end && MARKS.iter().any(|(mark, _)| text.len() < mark.len() && mark.starts_with(text)) {
            return None;
        }
        if let Some((text, mark)) = MARKS.iter().find(|(mark, _)| text.starts_with(mark)) {
            return sign(TokenKind::Mark(*mark), text.len());
        }
    }
    match *text.first()? {
        b'<' => iri(text, is_end, odd),
        quote @ (b'"' | b'\'') => string(text, quote, is_end),
        sign_byte @ (b';' | b',' | b'[' | b']' | b'(' | b')' | b'{' | b'}') => {
            sign(TokenKind::Sign(sign_byte), 1)
        }
        b'^' => match text.get(1) {
            Some(b'^') => sign(TokenKind::Hats, 2),
            None if !is_end => None,
            _ => bad(TokenKind::Keyword, 1, "a lone ^ means nothing here"),
        },
        b'.' => match text.get(1) {
            Some(b'0'..=b'9') => word(text, is_end, odd),
            None if !is_end => None,
            _ => sign(TokenKind::Sign(b'.'), 1),
        },
        b'>' => bad(TokenKind::Keyword, 1, "> ends no IRI here"),
        _ => word(text, is_end, odd),
    }
}

fn bad(kind: TokenKind, len: usize, why: impl Into<String>) -> Option<Token> {
    Some(Token { kind, len, fault: Some(why.into()) })
}

/// `<…>`
fn iri(text: &[u8], is_end: bool, odd: OddTerms) -> Option<Token> {
    let end = text[1..].iter().position(|byte| matches!(byte, b'>' | b'<' | b'\n' | b'\r'));
    let end = end.map(|end| end + 1).or(is_end.then_some(text.len()))?;
    if text.get(end) != Some(&b'>') {
        // an IRI without its end is a word
        let len = text[..end].iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(end).max(1);
        return bad(TokenKind::Iri, len, "an IRI does not end on its line; > should end it");
    }
    let kind = TokenKind::Iri;
    match unescaped(&text[1..end], is_iri_byte, |_| None) {
        Ok(iri) => {
            let fault = match has_scheme(&iri) {
                true => (!odd.allows_iri(&iri)).then(|| format!("<{iri}> is no absolute IRI of RFC 3987")),
                false if odd == OddTerms::Kept => None,
                false => (!is_reference(&iri)).then(|| format!("<{iri}> is no reference of RFC 3987")),
            };
            Some(Token { kind, len: end + 1, fault })
        }
        Err(why) => bad(kind, end + 1, why),
    }
}

/// Whether an IRI begins with a scheme, so is not relative.
pub(super) fn has_scheme(iri: &str) -> bool {
    let scheme = iri.split_once(':').map_or("", |(scheme, _)| scheme);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

/// Whether a text is an absolute or a relative IRI.
pub(super) fn is_reference(text: &str) -> bool {
    // any base with a path serves
    oxiri::Iri::parse("http://a/b").is_ok_and(|base| base.resolve(text).is_ok())
}

fn is_iri_byte(byte: u8) -> bool {
    byte > b' ' && !b"<>\"{}|^`\\".contains(&byte)
}

fn is_string_byte(_: u8) -> bool {
    true
}

/// The character that a backslash and this byte stand for in a string.
fn string_escape(byte: u8) -> Option<char> {
    Some(match byte {
        b't' => '\t',
        b'b' => '\u{8}',
        b'n' => '\n',
        b'r' => '\r',
        b'f' => '\u{c}',
        b'"' | b'\'' | b'\\' => char::from(byte),
        _ => return None,
    })
}

/// The text of an IRI; `None` if it is malformed.
pub(super) fn iri_text(token: &[u8]) -> Option<String> {
    unescaped(token.strip_prefix(b"<")?.strip_suffix(b">")?, is_iri_byte, |_| None).ok()
}

/// A text with its escapes resolved; the error says what is wrong with it.
fn unescaped(raw: &[u8], may_be_in: fn(u8) -> bool, short: fn(u8) -> Option<char>) -> Result<String, String> {
    let text = std::str::from_utf8(raw).map_err(|_| "these bytes are not UTF-8".to_owned())?;
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let letter = escape.bytes().next().unwrap_or(b' ');
        let digits = match letter {
            b'u' => 4,
            b'U' => 8,
            _ => 0,
        };
        let code = || u32::from_str_radix(escape.get(1..=digits)?, 16).ok().and_then(char::from_u32);
        let is_hex = || escape.bytes().skip(1).take(digits).all(|b| b.is_ascii_hexdigit());
        let c = if digits > 0 { code().filter(|_| is_hex()) } else { short(letter) };
        let Some(c) = c else {
            let shown: String = escape.chars().take(1 + digits).collect();
            return Err(format!("\\{shown} is no escape here"));
        };
        out.push(c);
        rest = &escape[1 + digits..];
    }
    out.push_str(rest);
    match out.bytes().find(|byte| !may_be_in(*byte)) {
        Some(byte) => Err(format!("{:?} may not be in an IRI", char::from(byte))),
        None => Ok(out),
    }
}

fn string(text: &[u8], quote: u8, is_end: bool) -> Option<Token> {
    if text.len() < 3 && !is_end {
        return None;
    }
    if text.get(1) == Some(&quote) && text.get(2) == Some(&quote) {
        return long_string(text, quote, is_end);
    }
    let mut at = 1;
    loop {
        let Some(byte) = text.get(at) else {
            return if is_end { stray_string(text, text.len(), quote, is_end) } else { None };
        };
        match *byte {
            b'\\' if !matches!(text.get(at + 1), Some(b'\n' | b'\r')) => at += 2,
            b'\\' => at += 1,
            b'\n' | b'\r' => return stray_string(text, at, quote, is_end),
            byte if byte == quote => break,
            _ => at += 1,
        }
    }
    let fault = unescaped(&text[1..at], is_string_byte, string_escape).err();
    Some(Token { kind: TokenKind::Text, len: at + 1, fault })
}

/// `"""…"""`
fn long_string(text: &[u8], quote: u8, is_end: bool) -> Option<Token> {
    let mut at = 3;
    loop {
        match memchr::memchr2(quote, b'\\', &text[at.min(text.len())..]) {
            Some(len) if text[at + len] == b'\\' => at += len + 2,
            Some(len) if text[at + len..].starts_with(&[quote; 3]) => {
                at += len;
                let fault = unescaped(&text[3..at], is_string_byte, string_escape).err();
                return Some(Token { kind: TokenKind::Text, len: at + 3, fault });
            }
            Some(len) => at += len + 1,
            // taking the rest of the document for the string would lose that, too
            None if is_end => {
                let line = memchr::memchr(b'\n', text).unwrap_or(text.len());
                return bad(TokenKind::Text, without_signs(&text[..line]), "the string does not end");
            }
            None => return None,
        }
    }
}

/// A string whose line ends before its quote, at `line_end`. It continues on further lines if its
/// quote follows there, after text and before a space or sign; otherwise the quote was forgotten.
fn stray_string(text: &[u8], line_end: usize, quote: u8, is_end: bool) -> Option<Token> {
    let why = "a line ends within a string; write \\n, or three quotes around it";
    let ahead = &text[line_end..text.len().min(line_end + MOST_STRAY)];
    let close = memchr::memchr(quote, ahead).map(|len| line_end + len);
    if let Some(close) = close {
        let after = text.get(close + 1);
        if after.is_none() && !is_end {
            return None;
        }
        let follows = after.is_none_or(|b| b.is_ascii_whitespace() || b".;,@^)]}".contains(b));
        if follows && !text[close - 1].is_ascii_whitespace() && text[close - 1] != quote {
            return bad(TokenKind::Text, close + 1, why);
        }
    } else if !is_end && ahead.len() < MOST_STRAY {
        return None;
    }
    bad(TokenKind::Text, without_signs(&text[..line_end]), why)
}

/// Length of the part of a line that belongs to a string: without the signs at its end.
fn without_signs(line: &[u8]) -> usize {
    let signs = line.iter().rev().take_while(|byte| b".;,)]} \t\r".contains(byte)).count();
    (line.len() - signs).max(1)
}

/// Whether a byte ends a word.
fn ends_word(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"<>\"'[](){},;#^~".contains(&byte)
}

fn word(text: &[u8], is_end: bool, odd: OddTerms) -> Option<Token> {
    let mut at = 0;
    let end = loop {
        match text.get(at) {
            Some(b'\\') => at += 2,
            Some(byte) if ends_word(*byte) => break at,
            Some(b'|') if text.get(at + 1) == Some(&b'}') => break at,
            Some(_) => at += 1,
            None if is_end => break text.len(),
            None => return None,
        }
    };
    let mut len = end.max(1);
    while len > 1 && text[len - 1] == b'.' && text[len - 2] != b'\\' {
        len -= 1;
    }
    let Ok(word) = std::str::from_utf8(&text[..len]) else {
        let kind = if text[..len].contains(&b':') { TokenKind::Prefixed } else { TokenKind::Keyword };
        return bad(kind, len, "these bytes are not UTF-8");
    };
    let (kind, fault) = kind_of(word, odd);
    Some(Token { kind, len, fault })
}

fn kind_of(word: &str, odd: OddTerms) -> (TokenKind, Option<String>) {
    let none = |kind, what: &str| (kind, Some(format!("{} is {what}", shortened(word))));
    if let Some(tag) = word.strip_prefix('@') {
        let (language, _) = split_direction(tag);
        let is_sound =
            matches!(tag, "prefix" | "base" | "version") || is_tag(language) && odd.allows_tag(language);
        let fault = (!is_sound).then(|| format!("{} is no language tag of RFC 5646", shortened(tag)));
        return (TokenKind::Tag, fault);
    }
    if let Some(label) = word.strip_prefix("_:") {
        return match is_label(label) {
            true => (TokenKind::Blank, None),
            false => none(TokenKind::Blank, "no label of a blank node"),
        };
    }
    if word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return match is_number(word.as_bytes()) {
            true => (TokenKind::Number, None),
            false => none(TokenKind::Number, "no number"),
        };
    }
    if let Some((prefix, local)) = word.split_once(':') {
        return match is_prefix(prefix) && is_local(local) {
            true => (TokenKind::Prefixed, None),
            false => none(TokenKind::Prefixed, "no name with a prefix"),
        };
    }
    match word {
        "a" => (TokenKind::Type, None),
        "true" | "false" => (TokenKind::Truth, None),
        _ => none(TokenKind::Keyword, "no term"),
    }
}

/// A text shortened to 100 characters, for messages.
fn shortened(text: &str) -> &str {
    text.char_indices().nth(100).map_or(text, |(end, _)| &text[..end])
}

fn is_tag(tag: &str) -> bool {
    let mut parts = tag.split('-');
    parts.next().is_some_and(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphabetic()))
        && parts.all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// The first characters of names (`PN_CHARS_BASE`).
fn is_base_char(c: char) -> bool {
    matches!(c,
        'A'..='Z' | 'a'..='z' | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}'
        | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}')
}

/// Further characters of names (`PN_CHARS`).
fn is_name_char(c: char) -> bool {
    is_base_char(c)
        || matches!(c, '_' | '-' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

fn is_label(label: &str) -> bool {
    label.starts_with(|c| is_base_char(c) || c == '_' || c.is_ascii_digit())
        && label.chars().all(|c| is_name_char(c) || c == '.')
}

fn is_prefix(prefix: &str) -> bool {
    prefix.is_empty()
        || prefix.starts_with(is_base_char)
            && !prefix.ends_with('.')
            && prefix.chars().all(|c| is_name_char(c) || c == '.')
}

fn is_local(local: &str) -> bool {
    let mut chars = local.chars();
    let mut is_first = true;
    while let Some(c) = chars.next() {
        let is_sound = match c {
            '%' => (0..2).all(|_| chars.next().is_some_and(|c| c.is_ascii_hexdigit())),
            '\\' => chars.next().is_some_and(|c| "_~.-!$&'()*+,;=/?#@%".contains(c)),
            ':' => true,
            '.' => !is_first,
            c if is_first => is_base_char(c) || c == '_' || c.is_ascii_digit(),
            c => is_name_char(c),
        };
        if !is_sound {
            return false;
        }
        is_first = false;
    }
    true
}

/// Integers, decimals and doubles.
fn is_number(word: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let unsigned = match word {
        [b'+' | b'-', rest @ ..] => rest,
        word => word,
    };
    let whole = digits(unsigned);
    let mut rest = &unsigned[whole..];
    let mut places = None;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let len = digits(fraction);
        (places, rest) = (Some(len), &fraction[len..]);
    }
    let has_exponent = match rest {
        [] => false,
        [b'e' | b'E', b'+' | b'-', power @ ..] | [b'e' | b'E', power @ ..] => {
            if power.is_empty() || digits(power) < power.len() {
                return false;
            }
            true
        }
        _ => return false,
    };
    whole + places.unwrap_or(0) > 0 && (has_exponent || places != Some(0))
}
