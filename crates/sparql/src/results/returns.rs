//! XML with its carriage returns as references.
//!
//! A reader of XML takes a carriage return for a line feed (XML 1.0, 2.11), so one that belongs
//! to a term is written `&#13;`. The serialisers end lines with line feeds and write no
//! carriage return of their own: all that come by belong to terms.

use std::io::{self, Write};

pub(super) struct Returns<W> {
    inner: W,
    /// whether the output is XML
    is_xml: bool,
}

impl<W: Write> Returns<W> {
    pub fn of_xml(inner: W) -> Self {
        Self { inner, is_xml: true }
    }

    pub fn of_other(inner: W) -> Self {
        Self { inner, is_xml: false }
    }
}

impl<W: Write> Write for Returns<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_xml || memchr::memchr(b'\r', bytes).is_none() {
            return self.inner.write_all(bytes);
        }
        for (i, part) in bytes.split(|b| *b == b'\r').enumerate() {
            self.inner.write_all(if i == 0 { b"" } else { b"&#13;" })?;
            self.inner.write_all(part)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
