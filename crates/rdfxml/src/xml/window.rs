//! The part of the text that is being looked at, and its place.

use std::io::Read;

use super::decoding::{Decoded, Decoding};
use crate::fault::{ReadError, TextPlace};

/// Bytes of a token from which on it is looked at again only when there are twice as many.
const LONG: usize = 64 << 10;

/// The part of a document's text that is decoded and not read yet.
pub(super) struct Window<R> {
    source: Decoding<R>,
    text: String,
    at: usize,
    /// The place of byte `placed` of the text.
    place: TextPlace,
    placed: usize,
}

impl<R: Read> Window<R> {
    pub(super) fn new(read: R) -> Self {
        let (text, place) = (String::new(), TextPlace::default());
        Window { source: Decoding::new(read), text, at: 0, place, placed: 0 }
    }

    /// The decoded text from here on.
    pub(super) fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// All text that is there; places in it hold until [`Window::more`].
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Where in [`Window::text`] it is.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Goes on to a place in [`Window::text`].
    pub(super) fn go_to(&mut self, at: usize) {
        self.at = at;
    }

    /// Bytes of the document read so far.
    pub(super) fn read_bytes(&self) -> u64 {
        self.source.read_bytes()
    }

    /// Gets more of the text; false at the end. Text that was passed is dropped.
    ///
    /// A token that does not end in the text is looked at again afterwards. So the text grows by
    /// an eighth at least, and a long one to the double, which keeps the work linear. It does not
    /// grow by more, since bytes may come slowly.
    pub(super) fn more(&mut self) -> Result<bool, ReadError> {
        self.count_to(self.at);
        self.text.drain(..self.at);
        (self.at, self.placed) = (0, 0);
        let begun = self.text.len();
        let want = if begun < LONG { begun + (begun / 8).max(1) } else { 2 * begun };
        while self.text.len() < want {
            match self.source.more(&mut self.text)? {
                Decoded::More => {}
                Decoded::End => break,
                Decoded::Broken(_) if self.text.len() > begun => break,
                Decoded::Broken(why) => {
                    let end = self.text.len();
                    return Err(ReadError::Document(self.place_of(end).fault(why)));
                }
            }
        }
        Ok(self.text.len() > begun)
    }

    /// The place of a byte of [`Window::text`]. Costs the way from the last one asked for.
    pub(super) fn place_of(&mut self, at: usize) -> TextPlace {
        if at >= self.placed {
            self.count_to(at);
            return self.place;
        }
        // before what was counted: only within one token
        let mut place = self.place;
        let between = &self.text[at..self.placed];
        let lines = memchr::memchr_iter(b'\n', between.as_bytes()).count() as u64;
        if lines == 0 {
            place.column -= between.chars().count() as u64;
        } else {
            let line = &self.text[..at];
            let begin = memchr::memrchr(b'\n', line.as_bytes()).map_or(0, |end| end + 1);
            place = TextPlace { line: place.line - lines, column: line[begin..].chars().count() as u64 };
        }
        place
    }

    fn count_to(&mut self, at: usize) {
        if at > self.placed {
            self.place.pass(&self.text[self.placed..at]);
            self.placed = at;
        }
    }
}
