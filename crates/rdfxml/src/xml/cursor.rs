//! A place in a text, and what may stand there.

use super::chars::{is_char, is_space, name_len, token_len};
use crate::fault::FaultText;

/// Why scanning stopped.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The text ends within what is being read.
    More,
    /// It is wrong at this byte.
    Bad(usize, FaultText),
}

pub(super) type Scan<T> = Result<T, Stop>;

/// A place in a text.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> Self {
        Cursor { text, at }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn bad<T>(&self, message: impl Into<FaultText>) -> Scan<T> {
        Err(Stop::Bad(self.at, message.into()))
    }

    /// The next byte.
    pub(super) fn peek(&self) -> Scan<u8> {
        self.text.as_bytes().get(self.at).copied().ok_or(Stop::More)
    }

    /// Passes a text if it is what follows.
    pub(super) fn eat(&mut self, what: &str) -> Scan<bool> {
        let rest = self.rest();
        if rest.starts_with(what) {
            self.at += what.len();
            return Ok(true);
        }
        if rest.len() < what.len() && what.starts_with(rest) { Err(Stop::More) } else { Ok(false) }
    }

    /// Passes a text that must follow.
    pub(super) fn expect(&mut self, what: &str) -> Scan<()> {
        if self.eat(what)? { Ok(()) } else { self.bad(format!("{what:?} should be here")) }
    }

    /// Passes white space; whether there was any.
    pub(super) fn space(&mut self) -> Scan<bool> {
        let rest = self.rest();
        let len = rest.bytes().position(|byte| !is_space(byte)).ok_or(Stop::More)?;
        self.at += len;
        Ok(len > 0)
    }

    /// Passes white space that must be there.
    pub(super) fn must_space(&mut self) -> Scan<()> {
        if self.space()? { Ok(()) } else { self.bad("white space should be here") }
    }

    /// Passes a name, which may have colons.
    pub(super) fn name(&mut self) -> Scan<&'a str> {
        self.token(name_len, "a name should be here")
    }

    /// Passes a name whose first character may be any of names.
    pub(super) fn name_token(&mut self) -> Scan<&'a str> {
        self.token(token_len, "a name or number should be here")
    }

    fn token(&mut self, len: fn(&str) -> usize, missing: &str) -> Scan<&'a str> {
        let rest = self.rest();
        let len = len(rest);
        if len == rest.len() {
            return Err(Stop::More);
        }
        if len == 0 {
            return self.bad(missing);
        }
        self.at += len;
        Ok(&rest[..len])
    }

    /// Passes what is between quotes.
    pub(super) fn quoted(&mut self) -> Scan<&'a str> {
        let quote = self.peek()?;
        if !matches!(quote, b'"' | b'\'') {
            return self.bad("a quote should be here");
        }
        let rest = &self.rest()[1..];
        let len = memchr::memchr(quote, rest.as_bytes()).ok_or(Stop::More)?;
        self.at += len + 2;
        Ok(&rest[..len])
    }

    /// Passes all up to a text, and that.
    pub(super) fn until(&mut self, end: &str) -> Scan<&'a str> {
        let rest = self.rest();
        let len = memchr::memmem::find(rest.as_bytes(), end.as_bytes()).ok_or(Stop::More)?;
        self.at += len + end.len();
        Ok(&rest[..len])
    }

    /// Passes a comment, behind its `<!--`.
    pub(super) fn comment(&mut self) -> Scan<&'a str> {
        let begin = self.at;
        self.until("--")?;
        let text = &self.text[begin..self.at - 2];
        if self.eat(">")? { Ok(text) } else { self.bad("-- may not be in a comment") }
    }

    /// Passes a processing instruction, behind its `<?`: its target and data.
    pub(super) fn instruction(&mut self) -> Scan<(&'a str, &'a str)> {
        let begin = *self;
        let target = self.name()?;
        if target.eq_ignore_ascii_case("xml") {
            return begin.bad("<?xml may stand only at the beginning of a document");
        }
        if target.contains(':') {
            return begin.bad("the target of a processing instruction has no colon");
        }
        if self.eat("?>")? {
            return Ok((target, ""));
        }
        self.must_space()?;
        Ok((target, self.until("?>")?))
    }

    /// Passes a reference, behind its `&`.
    pub(super) fn reference(&mut self) -> Scan<Reference<'a>> {
        let begin = *self;
        if !self.eat("#")? {
            let name = self.name()?;
            self.expect(";")?;
            return Ok(predefined(name).map_or(Reference::Entity(name), Reference::Char));
        }
        let (digits, radix) = if self.eat("x")? { (self.until(";"), 16) } else { (self.until(";"), 10) };
        // a number is short, and what ends elsewhere is none
        let digits = match digits {
            Ok(digits) => digits,
            Err(Stop::More) if begin.rest().len() < 32 => return Err(Stop::More),
            Err(_) => "",
        };
        let is_number = !digits.is_empty() && digits.bytes().all(|b| char::from(b).is_digit(radix));
        let code = is_number.then(|| u32::from_str_radix(digits, radix).unwrap_or(u32::MAX));
        match code.map(|code| char::from_u32(code).filter(|c| is_char(*c))) {
            Some(Some(c)) => Ok(Reference::Char(c)),
            Some(None) => {
                begin.bad(format!("&#{}{digits}; is no character", if radix == 16 { "x" } else { "" }))
            }
            None => begin.bad("&# begins the number of a character; write &amp; for an ampersand"),
        }
    }
}

/// A reference.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reference<'a> {
    Char(char),
    Entity(&'a str),
}

/// The characters whose names every document has.
fn predefined(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(text: &str) -> Scan<Reference<'_>> {
        Cursor::new(text, 0).reference()
    }

    #[test]
    fn references() {
        assert_eq!(reference("#13;"), Ok(Reference::Char('\r')));
        assert_eq!(reference("#x1F600;"), Ok(Reference::Char('😀')));
        assert_eq!(reference("lt;"), Ok(Reference::Char('<')));
        assert_eq!(reference("a.b;"), Ok(Reference::Entity("a.b")));
        for more in ["", "#", "#x", "#12", "am", "amp"] {
            assert_eq!(reference(more), Err(Stop::More), "{more}");
        }
        for bad in ["#0;", "#xD800;", "#99999999999;", "#x;", "#a;", "#X41;", "#+5;", " b;", "a b;", ";"] {
            assert!(matches!(reference(bad), Err(Stop::Bad(..))), "{bad}");
        }
    }
}
