//! Terms that a JSON-LD context defines.
//!
//! A term may be defined by another, that by a third: the parser calls itself for each. So the
//! terms of a context are counted, those of contexts within it included. A key of an object is a
//! string before a colon; whatever might be `@context` in other letters (`\u0040context`) is
//! taken for it.
//!
//! A context within another begins with all terms of that, copied one by one. The copies are
//! counted, too: for contexts in contexts, for contexts of inner objects, and, where terms have
//! contexts of their own, for each object, which may be a use of such a term.

use super::{ByteScan, MOST_COPIES, MOST_TERMS};

const CONTEXT: &[u8] = b"@context";

#[derive(Default)]
pub(super) struct Contexts {
    level: usize,
    in_string: bool,
    escaped: bool,
    /// the beginning of the last string, and its length
    word: [u8; CONTEXT.len()],
    len: usize,
    /// it has an escape
    is_odd: bool,
    /// it is `@` and letters, which no term is
    is_keyword: bool,
    /// the level of the key whose value is the context under way
    context: Option<usize>,
    terms: usize,
    /// contexts in it
    inner: usize,
    /// contexts that hold here: the level of their object, their terms, whether terms have
    /// contexts
    around: Vec<(usize, usize, bool)>,
    copies: usize,
}

impl Contexts {
    /// Terms of the context under way, or of the last one.
    pub(super) fn terms(&self) -> usize {
        self.terms
    }

    /// Terms that the parser may copy for an object that is read now.
    pub(super) fn held(&self) -> usize {
        self.terms + self.around.iter().map(|(_, terms, _)| terms).sum::<usize>()
    }

    fn string(&mut self, byte: u8) {
        if self.escaped {
            self.escaped = false;
            return;
        }
        match byte {
            b'"' => self.in_string = false,
            b'\\' => (self.escaped, self.is_odd, self.is_keyword) = (true, true, false),
            byte => {
                if let Some(place) = self.word.get_mut(self.len) {
                    *place = byte;
                }
                self.is_keyword =
                    if self.len == 0 { byte == b'@' } else { self.is_keyword && byte.is_ascii_alphabetic() };
                self.len += 1;
            }
        }
    }

    /// The last string is a key.
    fn key(&mut self) -> Result<(), String> {
        if self.context.is_none() {
            let is_it = self.len == CONTEXT.len() && self.word == CONTEXT;
            if is_it || self.is_odd {
                (self.context, self.terms, self.inner) = (Some(self.level), 0, 0);
                return self.copy(1);
            }
        } else if self.len == CONTEXT.len() && self.word == CONTEXT || self.is_odd {
            self.inner += 1;
        } else if !self.is_keyword {
            self.terms += 1;
            if self.terms > MOST_TERMS {
                return Err(format!("a context defines more than {MOST_TERMS} terms, the limit"));
            }
        }
        Ok(())
    }
}

impl Contexts {
    /// The terms that hold here are copied so often.
    fn copy(&mut self, times: usize) -> Result<(), String> {
        let terms: usize = self.around.iter().map(|(_, terms, _)| terms).sum();
        self.copies += times.saturating_mul(terms);
        if self.copies > MOST_COPIES {
            return Err(format!(
                "contexts within others take over more than {MOST_COPIES} terms from them, the limit"
            ));
        }
        Ok(())
    }

    /// The context under way is over.
    fn end_context(&mut self) -> Result<(), String> {
        let Some(level) = self.context.take() else { return Ok(()) };
        self.around.push((level, self.terms, self.inner > 0));
        self.copy(self.inner)
    }

    fn open(&mut self) -> Result<(), String> {
        self.level += 1;
        let may_use = self.context.is_none() && self.around.iter().any(|(.., inner)| *inner);
        if may_use { self.copy(1) } else { Ok(()) }
    }

    fn close(&mut self) -> Result<(), String> {
        self.level = self.level.saturating_sub(1);
        if self.context.is_some_and(|context| self.level < context) {
            self.end_context()?;
        }
        while self.around.last().is_some_and(|(level, ..)| self.level < *level) {
            self.around.pop();
        }
        Ok(())
    }
}

impl ByteScan for Contexts {
    fn byte(&mut self, byte: u8) -> Result<(), String> {
        if self.in_string {
            self.string(byte);
            return Ok(());
        }
        match byte {
            b'"' => (self.in_string, self.len, self.is_odd, self.is_keyword) = (true, 0, false, false),
            b':' => return self.key(),
            b'{' | b'[' => return self.open(),
            b'}' | b']' => return self.close(),
            b',' if self.context == Some(self.level) => return self.end_context(),
            _ => {}
        }
        Ok(())
    }
}
