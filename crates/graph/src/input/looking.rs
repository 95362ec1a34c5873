//! Checks for cancellation with each piece that is read.
//!
//! A parser asks for more bytes until a statement is whole. So a document of blanks and comments,
//! or the text of a small compressed file, can keep it reading without an end. Therefore the
//! reading itself checks whether the work is cancelled. [`super::guard`] limits the bytes handed
//! out between two checks.

use std::io::{self, Read};

use crate::interrupt::Interrupt;

/// Reads until the work is cancelled; from then on each read is an error.
pub(super) struct Looking<'a, R> {
    read: R,
    cancel: &'a dyn Interrupt,
}

impl<'a, R: Read> Looking<'a, R> {
    pub(super) fn new(read: R, cancel: &'a dyn Interrupt) -> Self {
        Looking { read, cancel }
    }
}

impl<R: Read> Read for Looking<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_set() {
            return Err(io::Error::other("cancelled"));
        }
        self.read.read(out)
    }
}
