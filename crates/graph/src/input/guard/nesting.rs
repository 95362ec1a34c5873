//! Scans Turtle, its relatives and JSON for open brackets and braces, and for names that stand for
//! longer ones.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use super::{ByteScan, MOST_JSON_LEVELS, MOST_LEVELS};
use crate::input::error::GuardError;
use crate::term::MOST_TRIPLE_LEVELS;

/// Syntax of strings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    Json,
    Turtle,
    /// As Turtle, with `<=` and `<-`; it has no triple terms.
    N3,
}

/// Position of the scanner in the syntax.
#[derive(Clone, Copy)]
enum NestingState {
    Open,
    /// In a string: its quote byte, the quotes that end it, and how many of them were just seen.
    String(u8, u8, u8),
    /// After a backslash in a string: its quote byte, and the quotes that end it.
    Escaped(u8, u8),
    /// After quotes that may begin a string: the quote byte, and how many.
    Quotes(u8, u8),
    Iri,
    /// After a backslash outside of terms: the next sign is one of a name.
    NameEscape,
    /// In the IRI of a base: whether it is absolute, judged by the bytes so far.
    Base(Scheme),
    Comment,
}

/// Whether an IRI is absolute.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Unknown,
    Letters,
    Is,
    None,
}

pub(super) struct Nesting {
    quotes: Quotes,
    at: NestingState,
    levels: usize,
    /// open triple terms
    triples: usize,
    /// most levels open since the last [`Nesting::take_deepest`]
    deepest: usize,
    longest: usize,
    /// bytes so far of the current string or IRI
    term: usize,
    /// the last bytes outside of terms
    behind: u64,
    /// bytes of the longest IRI, and of the base together with those it builds on (a few letters
    /// may stand for both); and the largest sum under an earlier base
    longest_iri: usize,
    bases: usize,
    most_name: usize,
    /// hash of the current or last word, made unpredictable by `factor`
    word: u64,
    is_behind_word: bool,
    factor: u64,
    /// members and elements so far, in JSON
    values: u64,
    /// by word that may be a prefix: bytes of the IRI it stands for
    prefixes: HashMap<u64, usize>,
    prefix_bytes: usize,
}

/// The bytes that begin and end a triple term and a reified triple.
const AS_TERM: u32 = u32::from_be_bytes(*b"\0<<(");
const TERM_END: u32 = u32::from_be_bytes(*b"\0)>>");
const REIFIED_END: u32 = u32::from_be_bytes(*b"\0\0>>");

/// Bytes of a prefix beside its IRI.
const PREFIX_BYTES: usize = 128;

impl Quotes {
    /// Most levels allowed in a document.
    pub(super) fn most_levels(self) -> usize {
        match self {
            Quotes::Json => MOST_JSON_LEVELS,
            Quotes::Turtle | Quotes::N3 => MOST_LEVELS,
        }
    }
}

impl Nesting {
    pub(super) fn new(quotes: Quotes, longest: usize) -> Self {
        Nesting {
            quotes,
            at: NestingState::Open,
            levels: 0,
            triples: 0,
            deepest: 0,
            longest,
            term: 0,
            behind: 0,
            longest_iri: 0,
            bases: 0,
            most_name: 0,
            word: 0,
            is_behind_word: false,
            factor: RandomState::new().hash_one(0) | 1,
            values: 0,
            prefixes: HashMap::new(),
            prefix_bytes: 0,
        }
    }

    fn open(&mut self, byte: u8) -> Result<(), GuardError> {
        let turtle = self.quotes != Quotes::Json;
        if byte.is_ascii_whitespace() || byte == b'#' && turtle {
            self.is_behind_word = true;
        } else {
            self.behind = (self.behind << 8) | u64::from(byte);
            // White space may precede a colon, and follow it before the IRI.
            if !matches!(byte, b'<' | b':') {
                if std::mem::take(&mut self.is_behind_word) {
                    self.word = 0;
                }
                self.word = self.word.wrapping_mul(self.factor).wrapping_add(u64::from(byte));
            }
        }
        self.values += u64::from(!turtle && matches!(byte, b'[' | b'{' | b','));
        self.at = match byte {
            b'[' | b'{' | b'(' => {
                self.levels += 1;
                if turtle && byte == b'(' && self.behind as u32 & 0xFF_FFFF == AS_TERM {
                    self.triples += 1;
                    if self.triples > MOST_TRIPLE_LEVELS {
                        return Err(GuardError::NestedTriples { most: MOST_TRIPLE_LEVELS });
                    }
                }
                self.deepest = self.deepest.max(self.levels);
                let most = self.quotes.most_levels();
                if self.levels > most {
                    return Err(GuardError::TooDeep { most });
                }
                NestingState::Open
            }
            b']' | b'}' | b')' => {
                self.levels = self.levels.saturating_sub(1);
                NestingState::Open
            }
            b'>' if turtle => {
                let end = self.behind as u32 & 0xFF_FFFF;
                if end & 0xFFFF == REIFIED_END {
                    self.levels = self.levels.saturating_sub(1);
                }
                if end == TERM_END {
                    self.triples = self.triples.saturating_sub(1);
                }
                NestingState::Open
            }
            b'"' | b'\'' if turtle => NestingState::Quotes(byte, 1),
            b'"' => NestingState::String(byte, 1, 0),
            b'<' if turtle => {
                let word = ((self.behind >> 8) as u32).to_be_bytes();
                match word.eq_ignore_ascii_case(b"base") {
                    true => NestingState::Base(Scheme::Unknown),
                    false => NestingState::Iri,
                }
            }
            b'#' if turtle => NestingState::Comment,
            b'\\' if turtle => NestingState::NameEscape,
            _ => NestingState::Open,
        };
        Ok(())
    }
}

impl Nesting {
    /// The most levels that were open since the last call.
    pub(super) fn take_deepest(&mut self) -> usize {
        std::mem::replace(&mut self.deepest, self.levels)
    }

    /// Bytes of the longest IRI that a name may stand for.
    pub(super) fn name_bytes(&self) -> usize {
        self.most_name.max(self.longest_iri + self.bases)
    }

    /// Number of members and elements of JSON so far.
    pub(super) fn values(&self) -> u64 {
        self.values
    }

    /// Bytes of the IRIs of prefixes.
    pub(super) fn prefix_bytes(&self) -> usize {
        self.prefix_bytes + self.prefixes.len() * PREFIX_BYTES
    }

    /// Ends an IRI.
    fn end_iri(&mut self) {
        self.longest_iri = self.longest_iri.max(self.term);
        // After a colon it may be the IRI of a prefix.
        if (self.behind >> 8) as u8 == b':' {
            let bytes = self.term + self.bases;
            let before = self.prefixes.insert(self.word, bytes).unwrap_or(0);
            self.prefix_bytes = self.prefix_bytes + bytes - before;
        }
    }

    fn end_base(&mut self, scheme: Scheme) {
        self.longest_iri = self.longest_iri.max(self.term);
        self.most_name = self.name_bytes();
        match scheme {
            Scheme::Is => self.bases = self.term,
            _ => self.bases += self.term,
        }
    }
}

impl Scheme {
    /// The state after one more byte of the IRI.
    fn behind(self, byte: u8) -> Self {
        match (self, byte) {
            (Scheme::Unknown | Scheme::Letters, b'a'..=b'z' | b'A'..=b'Z') => Scheme::Letters,
            (Scheme::Letters, b'0'..=b'9' | b'+' | b'-' | b'.') => Scheme::Letters,
            (Scheme::Letters, b':') => Scheme::Is,
            (Scheme::Is, _) => Scheme::Is,
            _ => Scheme::None,
        }
    }
}

impl ByteScan for Nesting {
    fn byte(&mut self, byte: u8) -> Result<(), GuardError> {
        self.step(byte)?;
        self.term =
            if matches!(self.at, NestingState::Open | NestingState::Comment) { 0 } else { self.term + 1 };
        if self.term > self.longest { Err(GuardError::TooLong { most: self.longest }) } else { Ok(()) }
    }
}

impl Nesting {
    /// Whether a byte ends what began as an IRI: N3's `<`, `<=` and `<-` begin none.
    fn ends_iri(&self, byte: u8) -> bool {
        let is_sign = match byte {
            b' ' | b'\n' => true,
            b'=' | b'-' => self.term == 1,
            _ => false,
        };
        byte == b'>' || is_sign && self.quotes == Quotes::N3
    }

    fn step(&mut self, byte: u8) -> Result<(), GuardError> {
        self.at = match self.at {
            NestingState::Open => return self.open(byte),
            // a line feed ends an unclosed string, which is then malformed
            NestingState::String(_, 1, _) | NestingState::Quotes(_, 1)
                if byte == b'\n' && self.quotes != Quotes::Json =>
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
            NestingState::Iri if self.ends_iri(byte) => {
                self.end_iri();
                NestingState::Open
            }
            // << begins no IRI, but a reified triple or a triple term
            NestingState::Iri | NestingState::Base(_) if byte == b'<' && self.term == 1 => {
                self.behind = (self.behind << 8) | u64::from(byte);
                self.levels += 1;
                self.deepest = self.deepest.max(self.levels);
                if self.levels > MOST_LEVELS {
                    return Err(GuardError::TooDeep { most: MOST_LEVELS });
                }
                NestingState::Open
            }
            NestingState::Iri => NestingState::Iri,
            NestingState::Base(scheme) if self.ends_iri(byte) => {
                self.end_base(scheme);
                NestingState::Open
            }
            NestingState::Base(scheme) => NestingState::Base(scheme.behind(byte)),
            NestingState::NameEscape => NestingState::Open,
            NestingState::Comment if matches!(byte, b'\n' | b'\r') => NestingState::Open,
            NestingState::Comment => NestingState::Comment,
        };
        Ok(())
    }
}
