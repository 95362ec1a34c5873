//! The part of a text that the lexer sees.
//!
//! A text in memory is seen whole. Of a stream the window holds what the present token needs: it
//! is filled from the place of that token on, and what lies before goes. Only whole characters
//! come into it.

use std::io::{self, Read};

use super::kind::{Fault, Span};

/// Bytes read at a time, at least.
const READ_BYTES: usize = 64 << 10;

/// Bytes that stay before the token, so that an error can show its line.
const SHOWN_BYTES: usize = 256;

pub(crate) struct Window<'a> {
    source: Source<'a>,
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

enum Source<'a> {
    Whole(&'a str),
    Stream { reader: &'a mut dyn Read, text: String, cut: Vec<u8>, has_ended: bool },
}

impl<'a> Window<'a> {
    /// A text, which must not be longer than that.
    pub fn whole(text: &'a str, text_bytes: usize) -> Self {
        let mut window = Self::new(Source::Whole(text), usize::MAX, text_bytes);
        if text.len() > text_bytes {
            (window.source, window.fault) = (Source::Whole(""), Some(Fault::LongText));
        }
        window
    }

    /// A text after which there is no character, but some bytes.
    pub fn cut(text: &'a str) -> Self {
        Self { fault: Some(Fault::Encoding), ..Self::new(Source::Whole(text), usize::MAX, usize::MAX) }
    }

    pub fn stream(reader: &'a mut dyn Read, token_bytes: usize, text_bytes: usize) -> Self {
        let source = Source::Stream { reader, text: String::new(), cut: Vec::new(), has_ended: false };
        Self::new(source, token_bytes, text_bytes)
    }

    fn new(source: Source<'a>, token_bytes: usize, text_bytes: usize) -> Self {
        Self { source, base: 0, lines: 0, chars: 0, token_bytes, text_bytes, fault: None, error: None }
    }

    fn all(&self) -> &str {
        match &self.source {
            Source::Whole(text) => text,
            Source::Stream { text, .. } => text,
        }
    }

    /// The visible bytes from an offset on.
    pub fn rest(&self, at: usize) -> &[u8] {
        self.all().as_bytes().get(at - self.base..).unwrap_or_default()
    }

    pub fn text(&self, span: Span) -> &str {
        let range = span.start.saturating_sub(self.base)..span.end.saturating_sub(self.base);
        self.all().get(range).unwrap_or_default()
    }

    pub fn token_bytes(&self) -> usize {
        self.token_bytes
    }

    pub fn may_have_more(&self) -> bool {
        matches!(self.source, Source::Stream { has_ended: false, .. })
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
        let drop = keep.saturating_sub(self.base).saturating_sub(SHOWN_BYTES);
        self.forget(drop);
        let Source::Stream { reader, text, cut, has_ended } = &mut self.source else { return false };
        if *has_ended {
            return false;
        }
        // As much again as there is: a long token is scanned a fixed number of times.
        let wanted = text.len().max(READ_BYTES);
        let had = cut.len();
        cut.resize(had + wanted, 0);
        let read = match read_some(*reader, &mut cut[had..]) {
            Ok(read) => read,
            Err(error) => {
                self.error = Some(error);
                self.fault = Some(Fault::Read);
                0
            }
        };
        cut.truncate(had + read);
        *has_ended = read == 0;
        let valid = match std::str::from_utf8(cut) {
            Ok(_) => cut.len(),
            Err(error) => {
                if error.error_len().is_some() || read == 0 {
                    self.fault = self.fault.or(Some(Fault::Encoding));
                    *has_ended = true;
                }
                error.valid_up_to()
            }
        };
        let rest = cut.split_off(valid);
        text.push_str(std::str::from_utf8(cut).unwrap_or_default());
        *cut = rest;
        if self.base + text.len() > self.text_bytes {
            self.fault = Some(Fault::LongText);
            *has_ended = true;
            return false;
        }
        valid > 0 || !*has_ended
    }

    fn forget(&mut self, mut bytes: usize) {
        let Source::Stream { text, .. } = &mut self.source else { return };
        while !text.is_char_boundary(bytes) {
            bytes -= 1;
        }
        if bytes == 0 {
            return;
        }
        let gone = &text[..bytes];
        let line = gone.rfind('\n').map_or(0, |end| end + 1);
        if line > 0 {
            self.lines += memchr::memchr_iter(b'\n', gone.as_bytes()).count();
            self.chars = 0;
        }
        self.chars += gone[line..].chars().count();
        self.base += bytes;
        text.drain(..bytes);
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
        let after = &self.all()[before.len()..];
        let rest = after.chars().take_while(|c| !matches!(c, '\n' | '\r')).take(AFTER);
        // As wide as what it stands for, so that a mark below it stands where it should.
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        (start.iter().rev().copied().chain(rest).map(shown).collect(), start.len())
    }

    fn before(&self, at: usize) -> &str {
        let all = self.all();
        let mut end = at.saturating_sub(self.base).min(all.len());
        while !all.is_char_boundary(end) {
            end -= 1;
        }
        &all[..end]
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
