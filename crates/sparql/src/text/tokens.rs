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
    /// places of signs `<` that begin no IRI, in order
    comparisons: &'a [usize],
    /// no string in three double quotes, or single ones, ends from here on
    is_none_long: [bool; 2],
}

impl<'a> Tokens<'a> {
    pub fn new(text: &'a str) -> Self {
        Self::from(text, 0, false)
    }

    /// Those of a text in which the signs at these places compare: what stands between one and
    /// a `>` is no IRI.
    pub fn comparing(text: &'a str, comparisons: &'a [usize]) -> Self {
        Self { comparisons, ..Self::new(text) }
    }

    /// Tokens from an offset on. `has_more`: the text is cut off; a token that is cut off with it
    /// ends where the text does.
    pub fn from(text: &'a str, at: usize, has_more: bool) -> Self {
        Self { text, at, has_more, comparisons: &[], is_none_long: [false; 2] }
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
                '<' if self.compares() => 1,
                '<' => iri_len(rest, self.has_more),
                '"' | '\'' => self.literal_len(rest),
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

impl Tokens<'_> {
    fn compares(&mut self) -> bool {
        let passed = self.comparisons.partition_point(|at| *at < self.at);
        self.comparisons = &self.comparisons[passed..];
        self.comparisons.first() == Some(&self.at)
    }

    /// The length of a string with its language or datatype.
    fn literal_len(&mut self, text: &str) -> usize {
        let len = self.string_len(text);
        let rest = &text[len..];
        if let Some(tag) = rest.strip_prefix('@') {
            return len + 1 + tag_len(tag);
        }
        match rest.strip_prefix("^^") {
            Some(iri) if iri.starts_with('<') => len + 2 + iri_len(iri, self.has_more),
            Some(name) => len + 2 + prefixed_len(name),
            None => len,
        }
    }

    /// The length of a string in one or three quotes. Three that begin no long string are an
    /// empty one and the beginning of another.
    fn string_len(&mut self, text: &str) -> usize {
        let quote = &text[..1];
        let long = quote.repeat(3);
        if !text.starts_with(&long) {
            return match quoted(text, quote) {
                Quoted::Len(len) => len,
                Quoted::Open | Quoted::Wrong => text.len(),
            };
        }
        // A missing end is remembered, since a search for it goes over the rest of the text.
        let is_none_long = &mut self.is_none_long[usize::from(quote == "'")];
        if *is_none_long {
            return 2;
        }
        match quoted(text, &long) {
            Quoted::Len(len) => len,
            Quoted::Open if self.has_more => text.len(),
            Quoted::Open => {
                *is_none_long = true;
                2
            }
            Quoted::Wrong => 2,
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

/// The length of a number; a dot belongs to it before a digit. A name may follow without a blank.
fn number_len(text: &str) -> usize {
    let digits = |from: usize| {
        let rest = &text[from..];
        from + rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())
    };
    let exponent_end = |from: usize| {
        let rest = text[from..].strip_prefix(['e', 'E'])?;
        let signed = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        signed.starts_with(|c: char| c.is_ascii_digit()).then(|| digits(text.len() - signed.len()))
    };
    let whole = digits(0);
    if let Some(end) = exponent_end(whole) {
        return end;
    }
    match text[whole..].strip_prefix('.') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
            let end = digits(whole + 1);
            exponent_end(end).unwrap_or(end)
        }
        Some(_) => exponent_end(whole + 1).unwrap_or(whole),
        None => whole,
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

/// The length of a language tag: letters, and after hyphens letters and digits. What follows
/// without a blank may be a name.
fn tag_len(text: &str) -> usize {
    let ends = |text: &str, is_of: fn(&char) -> bool| text.chars().take_while(is_of).count();
    let mut len = ends(text, char::is_ascii_alphabetic);
    while len > 0 && text[len..].starts_with('-') {
        match ends(&text[len + 1..], char::is_ascii_alphanumeric) {
            0 => break,
            more => len += 1 + more,
        }
    }
    len
}

/// Where a string ends.
enum Quoted {
    Len(usize),
    /// the text ends before
    Open,
    /// at an escape that is none
    Wrong,
}

/// The length of a string between two such ends.
fn quoted(text: &str, end: &str) -> Quoted {
    let mut at = end.len();
    while let Some(c) = text[at..].chars().next() {
        if text[at..].starts_with(end) {
            return Quoted::Len(at + end.len());
        }
        at += c.len_utf8();
        if c == '\\' {
            match text[at..].chars().next() {
                None => return Quoted::Open,
                Some('t' | 'b' | 'n' | 'r' | 'f' | '"' | '\'' | '\\' | 'u' | 'U') => at += 1,
                Some(_) => return Quoted::Wrong,
            }
        }
    }
    Quoted::Open
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parser wants no blanks between tokens, and reads three quotes in two ways.
    #[test]
    fn tokens_end_where_those_of_the_parser_do() {
        let tokens = |text| Tokens::new(text).map(|(_, token)| token).collect::<Vec<&str>>();
        assert_eq!(tokens("1x:1y:"), ["1", "x:1y:"]);
        assert_eq!(tokens("1.5e3x: 1ex: .5x:"), ["1.5e3", "x:", "1", "ex:", ".5", "x:"]);
        assert_eq!(tokens("'a'@b1x: 'a'@b-1-x:"), ["'a'@b", "1", "x:", "'a'@b-1-x", ":"]);
        assert_eq!(tokens("'''a' x:b"), ["''", "'a'", "x:b"]);
        assert_eq!(tokens("'''a' x:\\- '''b'"), ["''", "'a'", "x:\\-", "''", "'b'"]);
        assert_eq!(tokens("'''a' b''' c"), ["'''a' b'''", "c"]);
        let text = "(?a<'>'&&x:='>')";
        assert_eq!(tokens(text), ["(", "?a", "<'>", "'&&x:='", ">", "')"]);
        let comparing: Vec<&str> = Tokens::comparing(text, &[3]).map(|(_, token)| token).collect();
        assert_eq!(comparing, ["(", "?a", "<", "'>'", "&", "&", "x:", "=", "'>'", ")"]);
    }

    #[test]
    fn tokens_are_whole() {
        let text = "SELECT * # ?c\n{?s a:b.c-d. _:x <urn:p> 1.5,\"a\"@en-GB;'b'^^x:y\"c\"^^<urn:t>?a<3}";
        let tokens: Vec<&str> = Tokens::new(text).map(|(_, token)| token).collect();
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
        assert!(Tokens::new(text).all(|(at, token)| text[at..].starts_with(token)));
        let numbers = "<urn:s>a:b\\.\\'c.1.e5,.5,1.5E-3 .";
        let expected = ["<urn:s>", "a:b\\.\\'c.1.e5", ",", ".5", ",", "1.5E-3", "."];
        assert_eq!(Tokens::new(numbers).map(|(_, token)| token).collect::<Vec<_>>(), expected);
        let escaped = "<http://a/\\u00e9.b> 1.e5 x:a\\. .";
        let expected = ["<http://a/\\u00e9.b>", "1.e5", "x:a\\.", "."];
        assert_eq!(Tokens::new(escaped).map(|(_, token)| token).collect::<Vec<_>>(), expected);
        for odd in ["", "é", "\"", "'''", ":", "a:", "?", "1.", "\"\\", "\"a\"^^", "<", "@", "\\"] {
            let all: usize = Tokens::new(odd).map(|(_, token)| token.len()).sum();
            assert_eq!(all, odd.len(), "{odd}");
        }
    }
}
