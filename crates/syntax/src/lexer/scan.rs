//! The longest token at a place.
//!
//! A stream shows only a part of the text: `hit_end` says that the token could be longer if there
//! were more.

use super::chars::{begins_label, is_base, is_of_name, is_of_variable};
use super::kind::{Fault, Kind, Number, Sign};

pub(super) struct Scan<'a> {
    text: &'a str,
    /// no prefixed name begins here
    is_plain: bool,
    /// so many bytes hold no colon after a name
    pub plain: usize,
    pub hit_end: bool,
}

/// A token and its length.
type Found = (Kind, usize);

impl<'a> Scan<'a> {
    pub fn new(text: &'a str, is_plain: bool) -> Self {
        Self { text, is_plain, plain: 0, hit_end: false }
    }

    /// The token that begins the text.
    pub fn token(&mut self) -> Found {
        match self.byte(0) {
            b'?' | b'$' => self.variable(),
            b'<' => self.less(),
            b'"' | b'\'' => self.string(),
            b'@' => self.language(),
            b'_' if self.byte(1) == b':' => self.label(),
            b'0'..=b'9' => self.number(0),
            b'.' if self.is_digit(1) => self.number(0),
            b'+' | b'-' if self.is_digit(1) || self.byte(1) == b'.' && self.is_digit(2) => self.number(1),
            b':' => (Kind::Name, self.local(1)),
            byte if byte.is_ascii_alphabetic() || byte >= 0x80 => self.word(),
            _ => self.sign(),
        }
    }

    /// The byte at a place; 0 beyond the end.
    fn byte(&mut self, at: usize) -> u8 {
        self.hit_end |= at >= self.text.len();
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    /// The character at a place and its length; NUL beyond the end.
    fn char(&mut self, at: usize) -> (char, usize) {
        self.hit_end |= at >= self.text.len();
        let c = self.text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or('\0');
        (c, c.len_utf8())
    }

    fn is_digit(&mut self, at: usize) -> bool {
        self.byte(at).is_ascii_digit()
    }

    /// The place after characters of a kind.
    fn run(&mut self, mut at: usize, is_of: fn(char) -> bool) -> usize {
        loop {
            let (c, len) = self.char(at);
            if !is_of(c) {
                return at;
            }
            at += len;
        }
    }

    fn variable(&mut self) -> Found {
        let first = self.char(1).0;
        if begins_label(first) {
            return (Kind::Var, self.run(1, is_of_variable));
        }
        match self.byte(0) {
            b'?' => (Kind::Sign(Sign::Question), 1),
            _ => (Kind::Bad(Fault::Char), 1),
        }
    }

    fn less(&mut self) -> Found {
        let mut at = 1;
        loop {
            match self.byte(at) {
                b'>' => return (Kind::Iri, at + 1),
                b'\\' if matches!(self.byte(at + 1), b'u' | b'U') => at += 2,
                0..=b' ' | b'<' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`' | b'\\' => return self.sign(),
                _ => at += 1,
            }
        }
    }

    /// A string; which escapes there are is known where its value is taken.
    fn string(&mut self) -> Found {
        let quote = self.byte(0);
        let is_long = self.byte(1) == quote && self.byte(2) == quote;
        let mut at = if is_long { 3 } else { 1 };
        loop {
            match self.byte(at) {
                0 if at >= self.text.len() => return (Kind::Bad(Fault::OpenString), self.text.len()),
                b'\n' | b'\r' if !is_long => return (Kind::Bad(Fault::OpenString), at),
                b'\\' => at += 2,
                byte if byte == quote && !is_long => return (Kind::Str, at + 1),
                byte if byte == quote && self.byte(at + 1) == quote && self.byte(at + 2) == quote => {
                    return (Kind::Str, at + 3);
                }
                _ => at += 1,
            }
        }
    }

    fn language(&mut self) -> Found {
        let mut at = self.run(1, |c| c.is_ascii_alphabetic());
        if at == 1 {
            return (Kind::Bad(Fault::Char), 1);
        }
        while self.byte(at) == b'-' {
            let is_direction = self.byte(at + 1) == b'-';
            let start = at + 1 + usize::from(is_direction);
            let end = match is_direction {
                true => self.run(start, |c| c.is_ascii_alphabetic()),
                false => self.run(start, |c| c.is_ascii_alphanumeric()),
            };
            if end == start {
                break;
            }
            at = end;
            if is_direction {
                break;
            }
        }
        (Kind::Lang, at)
    }

    fn label(&mut self) -> Found {
        let (first, len) = self.char(2);
        if !begins_label(first) {
            return (Kind::Bad(Fault::Char), 2);
        }
        (Kind::Blank, self.dotted(2 + len, is_of_name))
    }

    /// The end of a run in which dots may stand, but not at its end.
    fn dotted(&mut self, mut end: usize, is_of: fn(char) -> bool) -> usize {
        let mut at = end;
        loop {
            let (c, len) = self.char(at);
            if is_of(c) {
                end = at + len;
            } else if c != '.' {
                return end;
            }
            at += len;
        }
    }

    fn number(&mut self, start: usize) -> Found {
        let whole = self.run(start, |c| c.is_ascii_digit());
        let fraction = match self.byte(whole) {
            b'.' => self.run(whole + 1, |c| c.is_ascii_digit()),
            _ => whole,
        };
        if let Some(end) = self.exponent(fraction) {
            return (Kind::Number(Number::Double), end);
        }
        if fraction > whole + 1 {
            return (Kind::Number(Number::Decimal), fraction);
        }
        (Kind::Number(Number::Integer), whole)
    }

    fn exponent(&mut self, at: usize) -> Option<usize> {
        if !matches!(self.byte(at), b'e' | b'E') {
            return None;
        }
        let digits = at + 1 + usize::from(matches!(self.byte(at + 1), b'+' | b'-'));
        let end = self.run(digits, |c| c.is_ascii_digit());
        (end > digits).then_some(end)
    }

    fn word(&mut self) -> Found {
        let (first, len) = self.char(0);
        if !self.is_plain && is_base(first) {
            let end = self.dotted(len, is_of_name);
            if self.byte(end) == b':' {
                return (Kind::Name, self.local(end + 1));
            }
            self.plain = end;
        }
        if !first.is_ascii() {
            return (Kind::Bad(Fault::Char), self.run(0, is_of_name).max(len));
        }
        (Kind::Word, self.run(0, |c| c.is_ascii_alphanumeric() || c == '_'))
    }

    /// The end of a local name that begins here.
    fn local(&mut self, start: usize) -> usize {
        let (mut at, mut end) = (start, start);
        loop {
            let (c, len) = self.char(at);
            let is_first = at == start;
            match c {
                '.' if !is_first => {
                    at += 1;
                    continue;
                }
                '%' if self.is_hex(at + 1) && self.is_hex(at + 2) => at += 3,
                '\\' if b"_~.-!$&'()*+,;=/?#@%".contains(&self.byte(at + 1)) => at += 2,
                ':' => at += 1,
                _ if begins_label(c) || !is_first && is_of_name(c) => at += len,
                _ => return end,
            }
            end = at;
        }
    }

    fn is_hex(&mut self, at: usize) -> bool {
        self.byte(at).is_ascii_hexdigit()
    }

    fn sign(&mut self) -> Found {
        const LONGEST: usize = 3;
        self.byte(LONGEST - 1);
        let sign = Sign::ALL.iter().find(|sign| self.text.starts_with(sign.text()));
        match sign {
            Some(sign) => (Kind::Sign(*sign), sign.text().len()),
            None => (Kind::Bad(Fault::Char), self.char(0).1),
        }
    }
}
