//! Places of errors in RDF/XML, whose parser does not tell any.
//!
//! The parser asks for more when it has used up what it got. So the text is handed out tag by
//! tag, and where a fault is told, the parser was at the tag handed out last.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// Line and column, both from 0; columns in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TagPlace {
    pub(super) line: u64,
    pub(super) column: u64,
}

/// Hands out what it reads up to the end of the next tag.
pub(super) struct TagWise<R> {
    read: R,
    buffer: Box<[u8]>,
    from: usize,
    to: usize,
    /// Behind what was handed out.
    end: TagPlace,
    /// Where what was handed out last begins: at its tag, if one begins in it.
    last: Rc<Cell<TagPlace>>,
}

impl<R: Read> TagWise<R> {
    /// And the place, which follows the reading.
    pub(super) fn new(read: R) -> (Self, Rc<Cell<TagPlace>>) {
        const BUFFER: usize = 64 << 10;
        let last = Rc::new(Cell::new(TagPlace::default()));
        let buffer = vec![0; BUFFER].into_boxed_slice();
        (Self { read, buffer, from: 0, to: 0, end: TagPlace::default(), last: last.clone() }, last)
    }
}

impl TagPlace {
    fn pass(&mut self, byte: u8) {
        match byte {
            b'\n' => *self = TagPlace { line: self.line + 1, column: 0 },
            // Not the rest of a character.
            _ if byte & 0xc0 != 0x80 => self.column += 1,
            _ => {}
        }
    }
}

impl<R: Read> Read for TagWise<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.from == self.to {
            (self.from, self.to) = (0, self.read.read(&mut self.buffer)?);
        }
        let left = &self.buffer[self.from..self.to];
        let left = &left[..left.len().min(out.len())];
        let n = left.iter().position(|b| *b == b'>').map_or(left.len(), |i| i + 1);
        out[..n].copy_from_slice(&left[..n]);
        if n > 0 {
            self.last.set(self.end);
        }
        for byte in &left[..n] {
            if *byte == b'<' {
                self.last.set(self.end);
            }
            self.end.pass(*byte);
        }
        self.from += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_whole_and_tag_by_tag() {
        let text = "<a>\n é<b/>tail".as_bytes();
        let (mut read, place) = TagWise::new(text);
        let mut seen = Vec::new();
        let mut out = [0; 100];
        loop {
            let n = read.read(&mut out).unwrap();
            if n == 0 {
                break;
            }
            seen.push((String::from_utf8(out[..n].to_vec()).unwrap(), place.get().line, place.get().column));
        }
        let expected = [("<a>", 0, 0), ("\n é<b/>", 1, 2), ("tail", 1, 6)];
        assert_eq!(seen, expected.map(|(t, line, column)| (t.to_owned(), line, column)));
    }
}
