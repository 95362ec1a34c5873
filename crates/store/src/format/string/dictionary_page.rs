//! The pages of a dictionary: parts, each with the next bytes of its entries, and a head that
//! lists them.
//!
//! ```text
//! head: level 1, header count = parts
//! 32  bits of a code u8 | 0 u8 × 3 | entries u32 | bytes of the entries u32
//! 44  XXH3-64 of those bytes u64
//! 52  page of each part: u64
//! part: level 0, header count = bytes
//! ```

use twox_hash::XxHash3_64;

use crate::format::encoding::{BODY, Bad, Decode, load, part, store};
use crate::format::string::dictionary::Dictionary;
use crate::page::{BODY_BYTES, PageBuf, PageId, PageKind, header};

/// Bytes of the fixed fields of a head.
const HEAD: usize = 20;

/// Most parts that a head lists.
const MOST_PARTS: usize = (BODY_BYTES - HEAD) / 8;

/// The head of a dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DictionaryHead {
    width: u32,
    entries: usize,
    bytes: usize,
    /// XXH3-64 of the bytes of the entries; the name of the dictionary.
    pub(crate) checksum: u64,
    pub(crate) parts: Vec<PageId>,
}

/// Writes the parts of a dictionary, each handed to `write`, which returns its id. Returns the
/// head.
pub(crate) fn write_parts<E>(
    dictionary: &Dictionary,
    mut write: impl FnMut(&mut PageBuf) -> Result<PageId, E>,
) -> Result<DictionaryHead, E> {
    let bytes = dictionary.to_bytes();
    let mut parts = Vec::new();
    for chunk in bytes.chunks(BODY_BYTES) {
        let mut page = PageBuf::new();
        page.body_mut()[..chunk.len()].copy_from_slice(chunk);
        page.set_header(PageKind::Dictionary, 0, chunk.len() as u16);
        parts.push(write(&mut page)?);
    }
    assert!(parts.len() <= MOST_PARTS, "2^17 entries of 16 bytes fit");
    Ok(DictionaryHead {
        width: dictionary.width(),
        entries: dictionary.slots().len(),
        bytes: bytes.len(),
        checksum: checksum(dictionary.width(), &bytes),
        parts,
    })
}

/// The checksum of a dictionary, by which it is known.
fn checksum(width: u32, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(width.into(), bytes)
}

/// The bytes in a part.
pub(crate) fn part_bytes(page: &[u8]) -> Decode<&[u8]> {
    let head = header(page);
    if head.kind() != PageKind::Dictionary as u8 || head.level() != 0 {
        return Err(Bad("not a part of a dictionary"));
    }
    part(page, BODY, head.count() as usize)
}

impl DictionaryHead {
    /// Writes the head into a page.
    pub(crate) fn write(&self, page: &mut PageBuf) {
        let mut out = Vec::with_capacity(HEAD + 8 * self.parts.len());
        store(&mut out, self.width.into(), 4);
        store(&mut out, self.entries as u64, 4);
        store(&mut out, self.bytes as u64, 4);
        store(&mut out, self.checksum, 8);
        self.parts.iter().for_each(|page| store(&mut out, page.0, 8));
        page.clear();
        page.body_mut()[..out.len()].copy_from_slice(&out);
        page.set_header(PageKind::Dictionary, 1, self.parts.len() as u16);
    }

    /// Reads the head in `page`.
    pub(crate) fn parse(page: &[u8]) -> Decode<DictionaryHead> {
        let head = header(page);
        let parts = head.count() as usize;
        if head.kind() != PageKind::Dictionary as u8 || head.level() != 1 || parts > MOST_PARTS {
            return Err(Bad("not the head of a dictionary"));
        }
        let field = |at: usize| load(page, BODY + at, 4).map(|v| v as usize);
        let (width, entries, bytes) = (field(0)? as u32, field(4)?, field(8)?);
        if bytes.div_ceil(BODY_BYTES) != parts {
            return Err(Bad("a dictionary with more or fewer pages than its bytes take"));
        }
        let page_of = |i: usize| load(page, BODY + HEAD + 8 * i, 8).map(PageId);
        let parts = (0..parts).map(page_of).collect::<Decode<_>>()?;
        Ok(DictionaryHead { width, entries, bytes, checksum: load(page, BODY + 12, 8)?, parts })
    }

    /// The head of the dictionary with its parts in their new places.
    pub(crate) fn moved(mut self, place_of: impl Fn(PageId) -> PageId) -> DictionaryHead {
        self.parts.iter_mut().for_each(|part| *part = place_of(*part));
        self
    }

    /// The dictionary with this head, from the bytes of all parts.
    pub(crate) fn dictionary(&self, bytes: &[u8]) -> Decode<Dictionary> {
        if bytes.len() != self.bytes || checksum(self.width, bytes) != self.checksum {
            return Err(Bad("the bytes of a dictionary are not those its head was made for"));
        }
        Dictionary::parse(self.width, self.entries, bytes)
    }
}
