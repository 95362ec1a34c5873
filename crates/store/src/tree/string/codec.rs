//! The codec of a string tree: read once and shared by all readers of a store.
//!
//! A tree with symbols has them in its page; one with a dictionary has the dictionary's head there
//! and its parts in other pages. A dictionary is known by its checksum, which is in the tree's
//! record: handles of the same tree as of other transactions share it for as long as one of them
//! lives.

use std::sync::Arc;

use crate::Reader;
use crate::error::Result;
use crate::format::string::codec::Codec;
use crate::format::string::dictionary_page::{DictionaryHead, part_bytes, write_parts};
use crate::format::string::symbols::Symbols;
use crate::page::{PageBuf, PageId};
use crate::tree::long_value::wish_long;
use crate::tree::read::decoded;
use crate::tree::string::StringTree;

/// Writes the pages of a codec except the first, each handed to `write`, which returns its id, and
/// fills the first into `page`. Returns the checksum of a dictionary.
pub(super) fn write_codec(
    codec: &Codec,
    write: impl FnMut(&mut PageBuf) -> Result<PageId>,
    page: &mut PageBuf,
) -> Result<Option<u64>> {
    match codec {
        Codec::Symbols(symbols, _) => {
            symbols.write(page);
            Ok(None)
        }
        Codec::Dictionary(dictionary) => {
            let head = write_parts(dictionary, write)?;
            head.write(page);
            Ok(Some(head.checksum))
        }
    }
}

impl StringTree {
    /// The codec, read once per tree.
    pub(super) fn codec(&self, reader: &mut Reader) -> Result<&Arc<Codec>> {
        if let Some(codec) = self.codec.get() {
            return Ok(codec);
        }
        let store = reader.store().clone();
        let known = self.dictionary.and_then(|checksum| store.codecs.get(self.shape.id, checksum));
        let codec = match known {
            Some(codec) => codec,
            None => {
                let codec = Arc::new(self.read_codec(reader)?);
                match self.dictionary {
                    Some(checksum) => store.codecs.put(store.memory(), self.shape.id, checksum, codec),
                    None => codec,
                }
            }
        };
        Ok(self.codec.get_or_init(|| codec))
    }

    /// Reads the codec from its pages.
    pub(super) fn read_codec(&self, reader: &mut Reader) -> Result<Codec> {
        let page = reader.page(self.shape.id, self.symbols_page)?;
        let Some(checksum) = self.dictionary else {
            return decoded(reader, self.symbols_page, Symbols::parse(&page)).map(Codec::of_symbols);
        };
        let head = decoded(reader, self.symbols_page, DictionaryHead::parse(&page))?;
        drop(page);
        if head.checksum != checksum {
            return Err(reader.damaged(self.symbols_page, "another dictionary than the tree's record says"));
        }
        let mut bytes = Vec::new();
        for parts in head.parts.chunks(reader.wish_limit().max(1)) {
            wish_long(reader, self.shape.id, parts);
            for part in parts {
                let page = reader.page(self.shape.id, *part)?;
                bytes.extend_from_slice(decoded(reader, *part, part_bytes(&page))?);
            }
        }
        let dictionary = decoded(reader, self.symbols_page, head.dictionary(&bytes))?;
        Ok(Codec::Dictionary(Box::new(dictionary)))
    }

    /// The head of the dictionary, if the tree has one.
    pub(crate) fn dictionary_head(&self, reader: &mut Reader) -> Result<Option<DictionaryHead>> {
        if self.dictionary.is_none() {
            return Ok(None);
        }
        let page = reader.page(self.shape.id, self.symbols_page)?;
        decoded(reader, self.symbols_page, DictionaryHead::parse(&page)).map(Some)
    }
}
