//! Brackets and braces that are open, in Turtle and its kin and in JSON.

use super::{ByteScan, MOST_JSON_LEVELS, MOST_LEVELS, too_long};

/// How strings are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    Json,
    Turtle,
}

/// Where the scanner is.
#[derive(Clone, Copy)]
enum NestingState {
    Open,
    /// In a string that ends with so many of this byte, of which so many were just seen.
    String(u8, u8, u8),
    /// Behind a backslash in it.
    Escaped(u8, u8),
    /// Behind so many quotes that may begin a string.
    Quotes(u8, u8),
    Iri,
    Comment,
}

pub(super) struct Nesting {
    quotes: Quotes,
    at: NestingState,
    levels: usize,
    /// the most of them since that was asked
    deepest: usize,
    longest: usize,
    /// bytes of the string or IRI it is in
    term: usize,
    /// the last bytes outside of terms
    behind: u64,
    /// the IRI it is in is a base
    is_base: bool,
    /// bytes of the longest IRI, and of all bases: a few letters may stand for both
    longest_iri: usize,
    bases: usize,
}

impl Quotes {
    /// Most levels of a document.
    pub(super) fn most_levels(self) -> usize {
        match self {
            Quotes::Json => MOST_JSON_LEVELS,
            Quotes::Turtle => MOST_LEVELS,
        }
    }
}

impl Nesting {
    pub(super) fn new(quotes: Quotes, longest: usize) -> Self {
        Nesting {
            quotes,
            at: NestingState::Open,
            levels: 0,
            deepest: 0,
            longest,
            term: 0,
            behind: 0,
            is_base: false,
            longest_iri: 0,
            bases: 0,
        }
    }

    fn open(&mut self, byte: u8) -> Result<(), String> {
        if !byte.is_ascii_whitespace() {
            self.behind = (self.behind << 8) | u64::from(byte);
        }
        let turtle = self.quotes == Quotes::Turtle;
        self.at = match byte {
            b'[' | b'{' | b'(' => {
                self.levels += 1;
                self.deepest = self.deepest.max(self.levels);
                let most = self.quotes.most_levels();
                if self.levels > most {
                    return Err(format!("the document nests more than {most} levels, the limit"));
                }
                NestingState::Open
            }
            b']' | b'}' | b')' => {
                self.levels = self.levels.saturating_sub(1);
                NestingState::Open
            }
            b'"' | b'\'' if turtle => NestingState::Quotes(byte, 1),
            b'"' => NestingState::String(byte, 1, 0),
            b'<' if turtle => {
                let word = ((self.behind >> 8) as u32).to_be_bytes();
                self.is_base = word.eq_ignore_ascii_case(b"base");
                NestingState::Iri
            }
            b'#' if turtle => NestingState::Comment,
            _ => NestingState::Open,
        };
        Ok(())
    }
}

impl Nesting {
    /// The most levels that were open since this was asked.
    pub(super) fn take_deepest(&mut self) -> usize {
        std::mem::replace(&mut self.deepest, self.levels)
    }

    /// Bytes of the longest IRI that a name may stand for.
    pub(super) fn name_bytes(&self) -> usize {
        self.longest_iri + self.bases
    }

    /// An IRI has come to its end.
    fn end_iri(&mut self) {
        self.longest_iri = self.longest_iri.max(self.term);
        if std::mem::take(&mut self.is_base) {
            self.bases += self.term;
        }
    }
}

impl ByteScan for Nesting {
    fn byte(&mut self, byte: u8) -> Result<(), String> {
        self.step(byte)?;
        self.term =
            if matches!(self.at, NestingState::Open | NestingState::Comment) { 0 } else { self.term + 1 };
        if self.term > self.longest { Err(too_long(self.longest)) } else { Ok(()) }
    }
}

impl Nesting {
    fn step(&mut self, byte: u8) -> Result<(), String> {
        self.at = match self.at {
            NestingState::Open => return self.open(byte),
            // a line ends a string without its end, and what follows is none
            NestingState::String(_, 1, _) | NestingState::Quotes(_, 1)
                if byte == b'\n' && self.quotes == Quotes::Turtle =>
            {
                NestingState::Open
            }
            NestingState::String(quote, ends, _) if byte == b'\\' => NestingState::Escaped(quote, ends),
            NestingState::String(quote, ends, seen) if byte == quote && seen + 1 == ends => {
                NestingState::Open
            }
            NestingState::String(quote, ends, seen) => {
                NestingState::String(quote, ends, if byte == quote { seen + 1 } else { 0 })
            }
            NestingState::Escaped(quote, ends) => NestingState::String(quote, ends, 0),
            NestingState::Quotes(quote, 1) if byte == quote => NestingState::Quotes(quote, 2),
            NestingState::Quotes(quote, 2) if byte == quote => NestingState::String(quote, 3, 0),
            // two quotes are an empty string
            NestingState::Quotes(_, 2) => return self.open(byte),
            NestingState::Quotes(quote, _) if byte == b'\\' => NestingState::Escaped(quote, 1),
            NestingState::Quotes(quote, _) => NestingState::String(quote, 1, 0),
            // what N3 writes as < and <= is no IRI
            NestingState::Iri if matches!(byte, b'>' | b' ' | b'\n' | b'=') => {
                self.end_iri();
                NestingState::Open
            }
            NestingState::Iri => NestingState::Iri,
            NestingState::Comment if byte == b'\n' => NestingState::Open,
            NestingState::Comment => NestingState::Comment,
        };
        Ok(())
    }
}
