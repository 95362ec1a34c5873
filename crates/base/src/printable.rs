//! Escapes foreign text (a server's answer, a part of a document) before a terminal shows it:
//! control characters, which a terminal obeys, and bidirectional ones, which reorder a line.

use std::borrow::Cow;

/// The text with each control character as an escape, those that end a line, too.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_obeyed)
}

/// As [`line`], but for ends of lines and tabs.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_obeyed(c) && !matches!(c, '\n' | '\t'))
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool + Copy) -> Cow<'_, str> {
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match is_escaped(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Control characters, separators of lines, and those that change the direction of writing.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_sent() {
        assert_eq!(line("a\u{1b}[2Jb\r\n\u{9b}c"), "a\\u{1b}[2Jb\\r\\n\\u{9b}c");
        assert_eq!(lines("a\n\tb\u{7f}\u{202e}"), "a\n\tb\\u{7f}\\u{202e}");
        let plain = "Grüße, 世界 \\ \"x\" 👩‍🔬";
        assert!(matches!(line(plain), Cow::Borrowed(same) if same == plain));
    }
}
