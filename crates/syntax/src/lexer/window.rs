//! The part of a text that the lexer sees.
//!
//! A text in memory is seen whole. Of a stream the window holds what the present token needs: it
//! is filled from the place of that token on, and what lies before goes. Only whole characters
//! come into it.

use std::borrow::Cow;
use std::io::{self, Read};

use super::kind::{Fault, Span};

/// Bytes read at a time, at least.
const READ_BYTES: usize = 64 << 10;

/// Bytes that stay before the token, so that an error can show its line.
const SHOWN_BYTES: usize = 256;

pub(crate) struct Window<'a> {
    text: Cow<'a, str>,
    /// a stream that has more; bytes of it that are no whole character yet
    reader: Option<&'a mut dyn Read>,
    cut: Vec<u8>,
    /// offset of the first byte in the window
    base: usize,
    /// lines before the window, and characters of its first line before it
    lines: usize,
    chars: usize,
    /// most bytes of a token and of the text
    token_bytes: usize,
    text_bytes: usize,
    fault: Option<Fault>,
    error: Option<io::Error>,
}

impl<'a> Window<'a> {
    /// A text, which must not be longer than that.
    pub fn whole(text: &'a str, text_bytes: usize) -> Self {
        let is_long = text.len() > text_bytes;
        let (text, fault) = if is_long { ("", Some(Fault::LongText)) } else { (text, None) };
        Self { text: text.into(), fault, ..Self::new(None, usize::MAX, text_bytes) }
    }

    /// A text after which there is no character, but some bytes.
    pub fn cut(text: &'a str) -> Self {
        Self { text: text.into(), fault: Some(Fault::Encoding), ..Self::new(None, usize::MAX, usize::MAX) }
    }

    pub fn stream(reader: &'a mut dyn Read, token_bytes: usize, text_bytes: usize) -> Self {
        Self::new(Some(reader), token_bytes, text_bytes)
    }

    fn new(reader: Option<&'a mut dyn Read>, token_bytes: usize, text_bytes: usize) -> Self {
        Self {
            text: Cow::Borrowed(""),
            reader,
            cut: Vec::new(),
            base: 0,
            lines: 0,
            chars: 0,
            token_bytes,
            text_bytes,
            fault: None,
            error: None,
        }
    }

    /// The visible text from an offset on.
    pub fn rest(&self, at: usize) -> &str {
        self.text.get(at - self.base..).unwrap_or_default()
    }

    pub fn text(&self, span: Span) -> &str {
        let range = span.start.saturating_sub(self.base)..span.end.saturating_sub(self.base);
        self.text.get(range).unwrap_or_default()
    }

    pub fn token_bytes(&self) -> usize {
        self.token_bytes
    }

    pub fn may_have_more(&self) -> bool {
        self.reader.is_some()
    }

    /// Why the text ends before its end.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    pub fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// Reads on, and forgets what lies before an offset. False when there is no more.
    pub fn more(&mut self, keep: usize) -> bool {
        if self.reader.is_some() {
            self.forget(keep.saturating_sub(self.base).saturating_sub(SHOWN_BYTES));
        }
        let Some(reader) = &mut self.reader else { return false };
        // As much again as there is: a long token is scanned a fixed number of times.
        let (had, wanted) = (self.cut.len(), self.text.len().max(READ_BYTES));
        self.cut.resize(had + wanted, 0);
        let read = read_some(*reader, &mut self.cut[had..]).unwrap_or_else(|error| {
            (self.error, self.fault) = (Some(error), Some(Fault::Read));
            0
        });
        self.cut.truncate(had + read);
        let valid = std::str::from_utf8(&self.cut).map_or_else(|fault| fault.valid_up_to(), str::len);
        let is_wrong =
            std::str::from_utf8(&self.cut[valid..]).is_err_and(|fault| fault.error_len().is_some());
        let rest = self.cut.split_off(valid);
        self.text.to_mut().push_str(std::str::from_utf8(&self.cut).unwrap_or_default());
        self.cut = rest;
        if is_wrong || read == 0 && !self.cut.is_empty() {
            self.fault = self.fault.or(Some(Fault::Encoding));
        }
        let is_long = self.base + self.text.len() > self.text_bytes;
        if is_long {
            self.fault = Some(Fault::LongText);
        }
        if read == 0 || self.fault.is_some() {
            self.reader = None;
        }
        !is_long && (valid > 0 || self.reader.is_some())
    }

    fn forget(&mut self, bytes: usize) {
        let gone = &self.text[..self.text.floor_char_boundary(bytes)];
        let line = gone.rfind('\n').map_or(0, |end| end + 1);
        if line > 0 {
            self.lines += memchr::memchr_iter(b'\n', gone.as_bytes()).count();
            self.chars = 0;
        }
        self.chars += gone[line..].chars().count();
        let bytes = gone.len();
        self.base += bytes;
        self.text.to_mut().drain(..bytes);
    }

    /// Line and column of an offset, both from 1; columns count characters.
    pub fn place(&self, at: usize) -> (usize, usize) {
        let before = self.before(at);
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        let lines = memchr::memchr_iter(b'\n', before.as_bytes()).count();
        let chars = if line > 0 { 0 } else { self.chars };
        (1 + self.lines + lines, 1 + chars + before[line..].chars().count())
    }

    /// The text around an offset that stands in its line, as far as an error shows it, and the
    /// number of its characters before the offset.
    pub fn line(&self, at: usize) -> (String, usize) {
        const BEFORE: usize = 60;
        const AFTER: usize = 60;
        let before = self.before(at);
        let line = before.rfind(['\n', '\r']).map_or(0, |end| end + 1);
        let start: Vec<char> = before[line..].chars().rev().take(BEFORE).collect();
        let after = &self.text[before.len()..];
        let rest = after.chars().take_while(|c| !matches!(c, '\n' | '\r')).take(AFTER);
        // As wide as what it stands for, so that a mark below it stands where it should.
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        (start.iter().rev().copied().chain(rest).map(shown).collect(), start.len())
    }

    fn before(&self, at: usize) -> &str {
        let end = at.saturating_sub(self.base).min(self.text.len());
        &self.text[..self.text.floor_char_boundary(end)]
    }
}

fn read_some(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}
