//! Where tokens end whose end has to be looked for: IRIs, strings, numbers, variables.
//!
//! Whether `<` begins an IRI or compares follows from the bracket it is in: only expressions
//! compare, and only after an operand.

use super::frame::Kind;
use super::signs::Link;
use super::{Last, Over, Scan, Step, is_name};

impl Scan<'_> {
    /// `<`: an IRI, a comparison, or a triple term.
    pub(super) fn less(&mut self) -> Step {
        let compares =
            self.frame().kind == Kind::Expression && matches!(self.last, Last::Operand | Last::Name);
        if compares {
            self.comparisons.push(self.at);
            self.at += 1;
            self.last = Last::Other;
            self.nots = 0;
            return Ok(true);
        }
        if self.bytes[self.at..].starts_with(b"<<") {
            // closed by ">>", which is not worth telling from two comparisons: these terms are
            // not supported anyway
            let doublings = self.frame().doublings;
            self.push(Kind::Terms, b'>', doublings)?;
            self.at += 2;
            return Ok(true);
        }
        let rest = &self.bytes[self.at + 1..];
        let end = rest.iter().position(|b| {
            *b == b'>' || *b <= b' ' || matches!(b, b'<' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`')
        });
        match end {
            Some(end) if rest[end] == b'>' => {
                self.at += end + 2;
                self.name()?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Goes over a string; false where there is none.
    pub(super) fn string(&mut self) -> bool {
        let quote = self.bytes[self.at];
        let long = self.bytes[self.at..].starts_with(&[quote; 3]);
        let end = if long { self.string_end(self.at + 3, quote, 3) } else { None };
        // three quotes that begin no long string are an empty string and the beginning of another
        let Some(end) = end.or_else(|| self.string_end(self.at + 1, quote, 1)) else { return false };
        self.at = end;
        self.operand(Last::Operand);
        true
    }

    fn string_end(&self, from: usize, quote: u8, quotes: usize) -> Option<usize> {
        let mut at = from;
        loop {
            match *self.bytes.get(at)? {
                b'\\' => at = self.escape_end(at)?,
                b'\n' | b'\r' if quotes == 1 => return None,
                b if b == quote && self.bytes[at..].starts_with(&[quote; 3][..quotes]) => {
                    return Some(at + quotes);
                }
                _ => at += 1,
            }
        }
    }

    fn escape_end(&self, at: usize) -> Option<usize> {
        let digits = match *self.bytes.get(at + 1)? {
            b't' | b'b' | b'n' | b'r' | b'f' | b'"' | b'\'' | b'\\' => return Some(at + 2),
            b'u' => 4,
            b'U' => 8,
            _ => return None,
        };
        let code = self.text.get(at + 2..at + 2 + digits)?;
        let valid = code.bytes().all(|b| b.is_ascii_hexdigit())
            && u32::from_str_radix(code, 16).is_ok_and(|c| char::from_u32(c).is_some());
        valid.then_some(at + 2 + digits)
    }

    pub(super) fn number(&mut self) {
        let digits = |scan: &mut Self| scan.skip_while(|b| b.is_ascii_digit());
        digits(self);
        if self.bytes.get(self.at) == Some(&b'.')
            && self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit)
        {
            self.at += 1;
            digits(self);
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            digits(self);
        }
        self.operand(Last::Operand);
    }

    pub(super) fn variable(&mut self) -> Result<(), Over> {
        let start = self.at;
        self.at += 1;
        self.skip_while(is_name);
        if self.at == start + 1 {
            // a path's `?`
            return self.link(Link::PathSuffix);
        }
        self.variables.insert(&self.text[start + 1..self.at]);
        if self.variables.len() > self.limits.variables {
            return self.over("query_variables", self.limits.variables as u64);
        }
        self.named += 1;
        self.operand(Last::Operand);
        self.check_columns()
    }
}
