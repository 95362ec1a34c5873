//! The tokens of a text, roughly: enough to find variables and to count terms.
//!
//! No grammar: what is no token of the language comes out as single characters. Comments are
//! passed over.

/// Tokens with their offsets.
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    /// the text is the begin of a longer one
    has_more: bool,
}

impl<'a> Tokens<'a> {
    pub fn of(text: &'a str) -> Self {
        Self { text, at: 0, has_more: false }
    }

    /// Those from an offset on. One that is not whole because the text is cut off, which `has_more`
    /// says that it is, ends where the text does.
    pub fn from(text: &'a str, at: usize, has_more: bool) -> Self {
        Self { text, at, has_more }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<(usize, &'a str)> {
        loop {
            let rest = &self.text[self.at..];
            let first = rest.chars().next()?;
            let is_number =
                first.is_ascii_digit() || first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit());
            let len = match first {
                '#' => rest.find(['\n', '\r']).unwrap_or(rest.len()),
                '<' => iri_len(rest, self.has_more),
                '"' | '\'' => literal_len(rest, self.has_more),
                '?' | '$' => 1 + name_len(&rest[1..]),
                _ if is_number => number_len(rest),
                ':' => prefixed_len(rest),
                _ if is_of_name(first) => prefixed_len(rest),
                _ => first.len_utf8(),
            };
            assert!(len > 0, "a token has characters");
            let at = self.at;
            self.at += len;
            if first != '#' && !first.is_whitespace() {
                return Some((at, &rest[..len]));
            }
        }
    }
}

pub(super) fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '\u{b7}'
}

fn name_len(text: &str) -> usize {
    text.find(|c| !is_of_name(c)).unwrap_or(text.len())
}

/// The length of a word, or of a prefixed name.
fn prefixed_len(text: &str) -> usize {
    let is_inside = |c: char| is_of_name(c) || matches!(c, '-' | '.');
    let prefix = text.find(|c| !is_inside(c)).unwrap_or(text.len());
    if !text[prefix..].starts_with(':') {
        return name_len(text);
    }
    let local = &text[prefix + 1..];
    // The end of the name, which is not a dot, unless that is escaped.
    let (mut end, mut chars) = (0, local.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => end = chars.next().map_or(at + 1, |(at, c)| at + c.len_utf8()),
            '.' => {}
            c if is_inside(c) || matches!(c, ':' | '%') => end = at + c.len_utf8(),
            _ => break,
        }
    }
    prefix + 1 + end
}

/// The length of a number; a dot belongs to it before a digit.
fn number_len(text: &str) -> usize {
    let whole = name_len(text);
    let is_exponent = |rest: &str| {
        rest.strip_prefix(['e', 'E']).is_some_and(|rest| {
            rest.strip_prefix(['+', '-']).unwrap_or(rest).starts_with(|c: char| c.is_ascii_digit())
        })
    };
    match text[whole..].strip_prefix('.') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) || is_exponent(rest) => {
            whole + 1 + name_len(rest)
        }
        _ => whole,
    }
}

/// The length of an IRI, or of the sign `<` where none begins.
fn iri_len(text: &str, has_more: bool) -> usize {
    let mut from = 1;
    loop {
        let end = text[from..].find(|c: char| c == '>' || c <= ' ' || "<\"{}|^`\\".contains(c));
        let Some(end) = end.map(|end| from + end) else { return if has_more { text.len() } else { 1 } };
        match text.as_bytes()[end] {
            b'>' => return end + 1,
            b'\\' if text[end + 1..].starts_with(['u', 'U']) => from = end + 2,
            b'\\' if has_more && end + 1 == text.len() => return text.len(),
            _ => return 1,
        }
    }
}

/// The length of a string with its language or datatype.
fn literal_len(text: &str, has_more: bool) -> usize {
    let len = string_len(text);
    let rest = &text[len..];
    if let Some(tag) = rest.strip_prefix('@') {
        return len + 1 + tag.find(|c: char| !c.is_alphanumeric() && c != '-').unwrap_or(tag.len());
    }
    match rest.strip_prefix("^^") {
        Some(iri) if iri.starts_with('<') => len + 2 + iri_len(iri, has_more),
        Some(name) => len + 2 + prefixed_len(name),
        None => len,
    }
}

/// The length of a string in one or three quotes.
fn string_len(text: &str) -> usize {
    let quote = &text[..1];
    let long = quote.repeat(3);
    let end = if text.starts_with(&long) { long.as_str() } else { quote };
    let mut at = end.len();
    while let Some(c) = text[at..].chars().next() {
        if text[at..].starts_with(end) {
            return at + end.len();
        }
        at += c.len_utf8();
        if c == '\\' {
            at += text[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_whole() {
        let text = "SELECT * # ?c\n{?s a:b.c-d. _:x <urn:p> 1.5,\"a\"@en-GB;'b'^^x:y\"c\"^^<urn:t>?a<3}";
        let tokens: Vec<&str> = Tokens::of(text).map(|(_, token)| token).collect();
        let expected = [
            "SELECT",
            "*",
            "{",
            "?s",
            "a:b.c-d",
            ".",
            "_:x",
            "<urn:p>",
            "1.5",
            ",",
            "\"a\"@en-GB",
            ";",
            "'b'^^x:y",
            "\"c\"^^<urn:t>",
            "?a",
            "<",
            "3",
            "}",
        ];
        assert_eq!(tokens, expected);
        assert!(Tokens::of(text).all(|(at, token)| text[at..].starts_with(token)));
        let numbers = "<urn:s>a:b\\.\\'c.1.e5,.5,1.5E-3 .";
        let expected = ["<urn:s>", "a:b\\.\\'c.1.e5", ",", ".5", ",", "1.5E", "-", "3", "."];
        assert_eq!(Tokens::of(numbers).map(|(_, token)| token).collect::<Vec<_>>(), expected);
        let escaped = "<http://a/\\u00e9.b> 1.e5 x:a\\. .";
        let expected = ["<http://a/\\u00e9.b>", "1.e5", "x:a\\.", "."];
        assert_eq!(Tokens::of(escaped).map(|(_, token)| token).collect::<Vec<_>>(), expected);
        for odd in ["", "é", "\"", "'''", ":", "a:", "?", "1.", "\"\\", "\"a\"^^", "<", "@", "\\"] {
            let all: usize = Tokens::of(odd).map(|(_, token)| token.len()).sum();
            assert_eq!(all, odd.len(), "{odd}");
        }
    }
}
