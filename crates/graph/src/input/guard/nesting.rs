//! Brackets and braces that are open, in Turtle and its kin and in JSON.

use super::{MOST_LEVELS, Scan, too_long};

/// How strings are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    Json,
    Turtle,
}

/// Where the scanner is.
#[derive(Clone, Copy)]
enum At {
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
    at: At,
    levels: usize,
    longest: usize,
    /// bytes of the string or IRI it is in
    term: usize,
}

impl Nesting {
    pub(super) fn new(quotes: Quotes, longest: usize) -> Self {
        Nesting { quotes, at: At::Open, levels: 0, longest, term: 0 }
    }

    fn open(&mut self, byte: u8) -> Result<(), String> {
        let turtle = self.quotes == Quotes::Turtle;
        self.at = match byte {
            b'[' | b'{' | b'(' => {
                self.levels += 1;
                if self.levels > MOST_LEVELS {
                    return Err(format!("the document nests more than {MOST_LEVELS} levels, the limit"));
                }
                At::Open
            }
            b']' | b'}' | b')' => {
                self.levels = self.levels.saturating_sub(1);
                At::Open
            }
            b'"' | b'\'' if turtle => At::Quotes(byte, 1),
            b'"' => At::String(byte, 1, 0),
            b'<' if turtle => At::Iri,
            b'#' if turtle => At::Comment,
            _ => At::Open,
        };
        Ok(())
    }
}

impl Nesting {
    /// Levels that are open.
    pub(super) fn levels(&self) -> usize {
        self.levels
    }
}

impl Scan for Nesting {
    fn byte(&mut self, byte: u8) -> Result<(), String> {
        self.step(byte)?;
        self.term = if matches!(self.at, At::Open | At::Comment) { 0 } else { self.term + 1 };
        if self.term > self.longest { Err(too_long(self.longest)) } else { Ok(()) }
    }
}

impl Nesting {
    fn step(&mut self, byte: u8) -> Result<(), String> {
        self.at = match self.at {
            At::Open => return self.open(byte),
            At::String(quote, ends, _) if byte == b'\\' => At::Escaped(quote, ends),
            At::String(quote, ends, seen) if byte == quote && seen + 1 == ends => At::Open,
            At::String(quote, ends, seen) => {
                At::String(quote, ends, if byte == quote { seen + 1 } else { 0 })
            }
            At::Escaped(quote, ends) => At::String(quote, ends, 0),
            At::Quotes(quote, 1) if byte == quote => At::Quotes(quote, 2),
            At::Quotes(quote, 2) if byte == quote => At::String(quote, 3, 0),
            // two quotes are an empty string
            At::Quotes(_, 2) => return self.open(byte),
            At::Quotes(quote, _) if byte == b'\\' => At::Escaped(quote, 1),
            At::Quotes(quote, _) => At::String(quote, 1, 0),
            // what N3 writes as < and <= is no IRI
            At::Iri if matches!(byte, b'>' | b' ' | b'\n' | b'=') => At::Open,
            At::Iri => At::Iri,
            At::Comment if byte == b'\n' => At::Open,
            At::Comment => At::Comment,
        };
        Ok(())
    }
}
