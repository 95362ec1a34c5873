//! A bound on the bytes of a document after decompression: a few kilobytes can expand to terabytes.

use std::io::{self, Read};

use crate::input::error::GuardError;

/// Reads a text that has at most so many bytes; a longer one ends with an error.
pub(crate) struct BoundedText<R> {
    read: R,
    most: u64,
    left: u64,
}

impl<R: Read> BoundedText<R> {
    pub(crate) fn new(read: R, most: u64) -> Self {
        Self { read, most, left: most }
    }
}

impl<R: Read> Read for BoundedText<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.read.read(buf)?;
        self.left = self.left.checked_sub(read as u64).ok_or(GuardError::TooMuch { most: self.most })?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_may_have_all_of_its_bytes_and_no_more() {
        let read = |most| io::read_to_string(BoundedText::new("123456".as_bytes(), most));
        assert_eq!(read(6).unwrap(), "123456");
        let error = read(5).unwrap_err().to_string();
        assert_eq!(error, "the document has more than 5 bytes when decompressed, the limit");
    }
}
