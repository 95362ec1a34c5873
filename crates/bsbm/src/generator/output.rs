//! Where finished entities go: the data set, in large writes, or the update set.
//!
//! An entity is written into `text`; when it ends, the output either leaves it there until a
//! block is full, or moves it to the block of its product in the update set. Update blocks stay
//! in memory until the end, because the offers and reviews of a product are made long after it:
//! about 70 kB a product.

use std::io::Write;

use super::text::Text;
use crate::error::Error;

const BLOCK_BYTES: usize = 1 << 18;

/// State of one of the two outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Triples, one a line.
    pub triples: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The data set on its way out.
pub(super) struct Output<'a> {
    pub text: Text,
    data: &'a mut dyn Write,
    progress: &'a mut dyn FnMut(u64),
    updates: Updates,
    written: Written,
}

/// The update set: a block of lines for each of the last products.
struct Updates {
    first_product: u32,
    blocks: Vec<Vec<u8>>,
    triples: u64,
}

impl<'a> Output<'a> {
    /// Products from `first_update` up to `products` go to the update set.
    pub fn new(
        data: &'a mut dyn Write,
        progress: &'a mut dyn FnMut(u64),
        products: u32,
        first_update: u32,
    ) -> Self {
        let blocks = vec![Vec::new(); (products + 1 - first_update) as usize];
        Self {
            text: Text { bytes: Vec::with_capacity(2 * BLOCK_BYTES) },
            data,
            progress,
            updates: Updates { first_product: first_update, blocks, triples: 0 },
            written: Written::default(),
        }
    }

    /// Ends an entity of the data set; `triples` is its number of triples.
    pub fn end(&mut self, triples: u32) -> Result<(), Error> {
        self.written.triples += u64::from(triples);
        if self.text.bytes.len() >= BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    /// Ends a product or something about it, whose text began at `start`.
    pub fn end_about(&mut self, product: u32, start: usize, triples: u32) -> Result<(), Error> {
        if product < self.updates.first_product {
            return self.end(triples);
        }
        let block = &mut self.updates.blocks[(product - self.updates.first_product) as usize];
        block.extend_from_slice(&self.text.bytes[start..]);
        self.text.bytes.truncate(start);
        self.updates.triples += u64::from(triples);
        Ok(())
    }

    /// Writes what is left, and the update set. Returns what the two outputs hold.
    pub fn finish(mut self, updates: Option<&mut dyn Write>) -> Result<(Written, Written), Error> {
        self.flush()?;
        self.data.flush().map_err(|source| write_error("data set", self.written, source))?;
        let mut written = Written { triples: self.updates.triples, bytes: 0 };
        if let Some(out) = updates {
            for block in self.updates.blocks {
                for part in [&block[..], b"\n#__SEP__\n"] {
                    out.write_all(part).map_err(|source| write_error("update set", written, source))?;
                    written.bytes += part.len() as u64;
                }
            }
            out.flush().map_err(|source| write_error("update set", written, source))?;
        }
        Ok((self.written, written))
    }

    fn flush(&mut self) -> Result<(), Error> {
        let bytes = &mut self.text.bytes;
        self.data.write_all(bytes).map_err(|source| write_error("data set", self.written, source))?;
        self.written.bytes += bytes.len() as u64;
        bytes.clear();
        (self.progress)(self.written.triples + self.updates.triples);
        Ok(())
    }
}

fn write_error(what: &'static str, written: Written, source: std::io::Error) -> Error {
    Error::Write { what, bytes: written.bytes, source }
}
