//! Classes of characters (XML 1.0, 2.2 and 2.3).

/// White space.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether a text is white space, or empty.
pub(crate) fn is_blank(text: &str) -> bool {
    text.bytes().all(is_space)
}

/// Characters of a document (production 2).
pub fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// First characters of names, but for the colon (production 4).
pub const NAME_START: [(char, char); 15] = [
    ('A', 'Z'),
    ('_', '_'),
    ('a', 'z'),
    ('\u{C0}', '\u{D6}'),
    ('\u{D8}', '\u{F6}'),
    ('\u{F8}', '\u{2FF}'),
    ('\u{370}', '\u{37D}'),
    ('\u{37F}', '\u{1FFF}'),
    ('\u{200C}', '\u{200D}'),
    ('\u{2070}', '\u{218F}'),
    ('\u{2C00}', '\u{2FEF}'),
    ('\u{3001}', '\u{D7FF}'),
    ('\u{F900}', '\u{FDCF}'),
    ('\u{FDF0}', '\u{FFFD}'),
    ('\u{10000}', '\u{EFFFF}'),
];

/// Further characters of names (production 4a).
pub const NAME_MORE: [(char, char); 5] =
    [('-', '.'), ('0', '9'), ('\u{B7}', '\u{B7}'), ('\u{300}', '\u{36F}'), ('\u{203F}', '\u{2040}')];

fn is_in(ranges: &[(char, char)], c: char) -> bool {
    ranges.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

/// Whether a name may begin with a character; the colon apart.
pub fn is_name_start(c: char) -> bool {
    is_in(&NAME_START, c)
}

/// Whether a name may have a character; the colon apart.
pub fn is_name_char(c: char) -> bool {
    is_name_start(c) || is_in(&NAME_MORE, c)
}

/// ASCII characters of names, the colon too.
const IN_NAME: [bool; 128] = {
    let mut table = [false; 128];
    let mut byte = 0;
    while byte < 128 {
        let c = byte as u8;
        table[byte] = c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.' | b':');
        byte += 1;
    }
    table
};

/// Bytes of the characters of names (`Nmtoken`) that a text begins with.
pub(crate) fn token_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut len = 0;
    loop {
        match bytes.get(len) {
            Some(byte) if byte.is_ascii() => {
                if !IN_NAME[usize::from(*byte)] {
                    return len;
                }
                len += 1;
            }
            Some(_) => match text[len..].chars().next() {
                Some(c) if is_name_char(c) => len += c.len_utf8(),
                _ => return len,
            },
            None => return len,
        }
    }
}

/// Bytes of the name that a text begins with; 0 when it begins with none.
pub(crate) fn name_len(text: &str) -> usize {
    match text.chars().next() {
        Some(c) if c == ':' || is_name_start(c) => token_len(text),
        _ => 0,
    }
}

/// Whether a text is a name without a colon.
pub(crate) fn is_nc_name(text: &str) -> bool {
    !text.is_empty() && name_len(text) == text.len() && !text.contains(':')
}

/// Whether a name is a qualified one; returns where its colon is.
pub(crate) fn colon_of(name: &str) -> Result<Option<usize>, ()> {
    let Some(colon) = memchr::memchr(b':', name.as_bytes()) else { return Ok(None) };
    if colon > 0 && is_nc_name(&name[colon + 1..]) { Ok(Some(colon)) } else { Err(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_fifth_edition() {
        for name in ["a", "_", "é", "a-1.b", "\u{37F}", "\u{10000}x", "水", "a\u{B7}"] {
            assert!(is_nc_name(name), "{name}");
        }
        for name in ["", "1", "-a", ".a", "a:b", ":", "a b", "\u{B7}", "\u{37E}", "a\u{D7}", "\u{2028}"] {
            assert!(!is_nc_name(name), "{name:?}");
        }
        assert_eq!(colon_of("a:b"), Ok(Some(1)));
        for name in ["a:", ":a", "a:b:c", "a:1"] {
            assert_eq!(colon_of(name), Err(()), "{name}");
        }
        assert_eq!(name_len("a:b='x'"), 3);
    }
}
