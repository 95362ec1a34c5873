//! A look at the clock for each piece that is read.
//!
//! A parser asks for more bytes as long as no statement is whole: a document of blanks and
//! comments, or what a small compressed file stands for, keeps it reading without an end. So the
//! reading itself asks whether the work is to end. How much is handed out between two looks is
//! [`super::guard`]'s matter.

use std::io::{self, Read};

use crate::interrupt::Interrupt;

/// Reads until the work is to end; then each read is an error.
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
