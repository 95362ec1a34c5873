//! Splits Rust source into code, comments and texts.
//!
//! The code keeps its length and its line ends: comments, and the contents of strings and
//! characters, become blanks. So a place in the code is a place in the source.

/// The code of a source text, its comments, and its strings.
#[derive(Debug, Default)]
pub struct Lexed {
    /// As long as the source in bytes.
    pub code: String,
    /// Line (from 1) and text of each line of a comment, its marks included.
    pub comments: Vec<(usize, String)>,
    /// Strings and characters as they are written, each with its place in the source.
    pub texts: Vec<(usize, String)>,
}

/// Reads a source text; one that is no Rust gives something, too.
pub fn lex(source: &str) -> Lexed {
    let bytes = source.as_bytes();
    let mut code = source.as_bytes().to_vec();
    let (mut comments, mut texts) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < bytes.len() {
        let (end, kind) = token(bytes, at);
        if kind == TokenKind::Comment {
            let line = 1 + source[..at].matches('\n').count();
            let lines = source[at..end].lines().enumerate();
            comments.extend(lines.map(|(i, text)| (line + i, text.trim().to_owned())));
        }
        if kind == TokenKind::Text {
            texts.push((at, source[at..end].to_owned()));
        }
        if kind != TokenKind::Code {
            code[at..end].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
        }
        at = end;
    }
    Lexed { code: String::from_utf8_lossy(&code).into_owned(), comments, texts }
}

#[derive(PartialEq)]
enum TokenKind {
    Code,
    Comment,
    Text,
}

/// Where the token at a place ends, and what it is. Code comes byte by byte, names whole.
fn token(bytes: &[u8], at: usize) -> (usize, TokenKind) {
    let rest = &bytes[at..];
    let find = |what: &[u8], from: usize| {
        let found = rest[from..].windows(what.len()).position(|w| w == what);
        found.map_or(bytes.len(), |i| at + from + i)
    };
    match rest {
        [b'/', b'/', ..] => (find(b"\n", 2), TokenKind::Comment),
        [b'/', b'*', ..] => (block_comment(bytes, at), TokenKind::Comment),
        [b'"', ..] => (string(bytes, at + 1), TokenKind::Text),
        [b'r' | b'b', ..] if raw_start(rest).is_some() => {
            let (start, hashes) = raw_start(rest).unwrap_or_default();
            let end = [&b"\""[..], &b"#".repeat(hashes)].concat();
            ((find(&end, start) + end.len()).min(bytes.len()), TokenKind::Text)
        }
        [b'\'', ..] => match character(rest) {
            Some(len) => (at + len, TokenKind::Text),
            None => (at + 1, TokenKind::Code),
        },
        [first, ..] if is_name(*first) => {
            let len = rest.iter().take_while(|b| is_name(**b)).count();
            (at + len, TokenKind::Code)
        }
        _ => (at + 1, TokenKind::Code),
    }
}

/// Whether a byte may be part of a name.
pub fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn block_comment(bytes: &[u8], from: usize) -> usize {
    let (mut at, mut depth) = (from, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => (at, depth) = (at + 2, depth + 1),
            b"*/" => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

/// The end of a string whose contents begin at `at`.
fn string(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Where the contents of a raw string begin, and how many hashes end it.
fn raw_start(rest: &[u8]) -> Option<(usize, usize)> {
    let prefix = match rest {
        [b'b', b'r', ..] => 2,
        [b'r', ..] => 1,
        _ => return None,
    };
    let hashes = rest[prefix..].iter().take_while(|b| **b == b'#').count();
    (rest.get(prefix + hashes) == Some(&b'"')).then_some((prefix + hashes + 1, hashes))
}

/// The length of a character literal; None for a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return rest.iter().skip(3).position(|b| *b == b'\'').map(|i| i + 4);
    }
    let text = std::str::from_utf8(&rest[1..rest.len().min(6)]);
    let text = text.or_else(|e| std::str::from_utf8(&rest[1..1 + e.valid_up_to()])).ok()?;
    let len = text.chars().next()?.len_utf8();
    (rest.get(1 + len) == Some(&b'\'')).then_some(len + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_texts_are_blanked() {
        let source =
            "let a = \"// no\"; // yes\n/* one /* two */ */ 'x' b'\\'' '\\u{1}' '€' <'a>\nr#\"\"\"# end";
        let lexed = lex(source);
        assert_eq!(lexed.code.len(), source.len());
        let words: Vec<&str> = lexed.code.split_whitespace().collect();
        assert_eq!(words, ["let", "a", "=", ";", "b", "<'a>", "end"]);
        assert_eq!(lexed.texts[0], (8, "\"// no\"".to_owned()));
        assert_eq!(lexed.comments, [(1, "// yes".to_owned()), (2, "/* one /* two */ */".to_owned())]);
    }
}
