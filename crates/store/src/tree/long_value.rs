//! Values too large for a leaf: runs of whole pages, LZ4 block-compressed.
//!
//! Each page of a run holds the next 8160 bytes at most (kind 7, header count = bytes). The
//! leaf keeps a reference:
//!
//! ```text
//! form u8 (0 plain, 1 LZ4) | value bytes varint | stored bytes varint | pieces varint
//! per piece: first page varint | pages varint
//! ```
//!
//! The pages of a piece are consecutive; a value that crosses extents has several pieces. So all
//! pages of a value are known from its leaf and can be wished for at once.

use crate::error::{Result, StoreError};
use crate::format::encoding::{BODY, Bad, Decode, load_varint, store_varint};
use crate::page::{BODY_BYTES, PageBuf, PageId, PageKind, TreeId, header};
use crate::tree::read::decoded;
use crate::{Reader, WishKind};

pub(crate) const PLAIN: u8 = 0;
pub(crate) const LZ4: u8 = 1;

/// Most bytes of a value, so that a damaged length cannot ask for all memory.
const MOST_BYTES: u64 = 4 << 30;

/// Most LZ4 can shrink: a length of 255 takes a byte.
const LZ4_RATIO: u64 = 256;

/// Writes `value` as a run of pages, each handed to `write`, which returns its id. Returns the
/// reference for the leaf.
///
/// # Errors
/// Writing failed; the value is longer than 4 GiB, or lies in more pieces than a leaf can list
/// (`most` bytes).
pub(crate) fn write_long(
    mut write: impl FnMut(&mut PageBuf) -> Result<PageId>,
    value: &[u8],
    most: usize,
) -> Result<Vec<u8>> {
    if value.len() as u64 > MOST_BYTES {
        return Err(StoreError::Config(format!(
            "a value of {} bytes; at most {MOST_BYTES} are stored",
            value.len()
        )));
    }
    let packed = lz4_flex::block::compress(value);
    let (form, stored) = if packed.len() < value.len() { (LZ4, &packed[..]) } else { (PLAIN, value) };
    let mut pages = Vec::new();
    let mut page = PageBuf::new();
    for chunk in stored.chunks(BODY_BYTES) {
        page.clear();
        page.body_mut()[..chunk.len()].copy_from_slice(chunk);
        page.set_header(PageKind::LongRun, 0, chunk.len() as u16);
        pages.push(write(&mut page)?);
    }
    let reference = LongRef { form, len: value.len() as u64, stored: stored.len() as u64, pages }.to_bytes();
    match reference.len() <= most {
        true => Ok(reference),
        false => Err(StoreError::Config(format!(
            "a value of {} bytes lies in too many pieces; use larger extents",
            value.len()
        ))),
    }
}

/// A reference found in a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LongRef {
    form: u8,
    /// Bytes of the value.
    pub len: u64,
    stored: u64,
    /// The pages, in the order of the value.
    pub pages: Vec<PageId>,
}

impl LongRef {
    /// The bytes of the reference in its leaf.
    fn to_bytes(&self) -> Vec<u8> {
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        for page in &self.pages {
            match pieces.last_mut() {
                Some((first, pages)) if *first + *pages == page.0 => *pages += 1,
                _ => pieces.push((page.0, 1)),
            }
        }
        let mut reference = vec![self.form];
        for v in [self.len, self.stored, pieces.len() as u64] {
            store_varint(&mut reference, v);
        }
        for (first, pages) in pieces {
            store_varint(&mut reference, first);
            store_varint(&mut reference, pages);
        }
        reference
    }

    /// The bytes of the reference to the value in its new places.
    pub(crate) fn moved(mut self, place_of: impl Fn(PageId) -> PageId) -> Vec<u8> {
        self.pages.iter_mut().for_each(|page| *page = place_of(*page));
        self.to_bytes()
    }

    pub(crate) fn parse(bytes: &[u8]) -> Decode<LongRef> {
        let form = *bytes.first().ok_or(Bad("an empty reference to a long value"))?;
        let mut at = 1;
        let (len, stored) = (load_varint(bytes, &mut at)?, load_varint(bytes, &mut at)?);
        let pieces = load_varint(bytes, &mut at)?;
        let possible = match form {
            PLAIN => len == stored,
            LZ4 => len / LZ4_RATIO <= stored,
            _ => false,
        };
        if !possible || len.max(stored) > MOST_BYTES {
            return Err(Bad("a reference to a long value that contradicts itself"));
        }
        let want = stored.div_ceil(BODY_BYTES as u64);
        let mut pages = Vec::new();
        for _ in 0..pieces {
            let (first, n) = (load_varint(bytes, &mut at)?, load_varint(bytes, &mut at)?);
            if n > want - pages.len() as u64 || first.checked_add(n).is_none() {
                return Err(Bad("a reference to more pages than its value has"));
            }
            pages.extend((first..first + n).map(PageId));
        }
        if pages.len() as u64 != want || at != bytes.len() {
            return Err(Bad("a reference to a long value that contradicts itself"));
        }
        Ok(LongRef { form, len, stored, pages })
    }

    /// Reads the value into `out`, replacing what was there. `leaf` is the page of the
    /// reference, for errors.
    pub(crate) fn read(
        &self,
        reader: &mut Reader,
        tree: TreeId,
        leaf: PageId,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let limit = reader.wish_limit().max(1);
        let mut stored = Vec::new();
        for pages in self.pages.chunks(limit) {
            wish_long(reader, tree, pages);
            for &id in pages {
                let page = reader.page(tree, id)?;
                let bytes = payload(&page);
                stored.extend_from_slice(decoded(reader, id, bytes)?);
            }
        }
        if stored.len() as u64 != self.stored {
            return Err(reader.damaged(leaf, "a long value of another length than its reference says"));
        }
        out.clear();
        if self.form == PLAIN {
            out.extend_from_slice(&stored);
            return Ok(());
        }
        out.resize(self.len as usize, 0);
        match lz4_flex::block::decompress_into(&stored, out) {
            Ok(n) if n as u64 == self.len => Ok(()),
            _ => Err(reader.damaged(leaf, "a long value that does not decompress")),
        }
    }
}

/// Starts the reads of the pages of long values.
pub(crate) fn wish_long(reader: &mut Reader, tree: TreeId, pages: &[PageId]) {
    if pages.len() < 2 || reader.resident(tree) {
        return;
    }
    let mut sorted = pages.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    reader.wish(tree, &sorted, WishKind::Planned);
}

/// The bytes of the value in a page of its run.
fn payload(page: &[u8]) -> Decode<&[u8]> {
    let head = header(page);
    if head.kind() != PageKind::LongRun as u8 {
        return Err(Bad("not a page of a long value"));
    }
    page[BODY..].get(..head.count() as usize).ok_or(Bad("a page of a long value with more bytes than it has"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_reference_parses_or_fails(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = LongRef::parse(&bytes);
        }
    }

    #[test]
    fn references_that_promise_too_much_are_refused() {
        let reference = |form: u8, fields: &[u64]| {
            let mut bytes = vec![form];
            fields.iter().for_each(|&f| store_varint(&mut bytes, f));
            LongRef::parse(&bytes)
        };
        assert_eq!(reference(PLAIN, &[9000, 9000, 1, 5, 2]).unwrap().pages, [PageId(5), PageId(6)]);
        assert!(reference(PLAIN, &[9000, 9001, 1, 5, 2]).is_err());
        assert!(reference(LZ4, &[u64::MAX, 9000, 1, 5, 2]).is_err(), "would take all memory");
        assert!(reference(LZ4, &[1 << 50, 1 << 50, 1, 5, 1 << 50]).is_err(), "would take all memory");
        assert!(reference(LZ4, &[9000, 9000, 1, 5, u64::MAX]).is_err());
        assert!(reference(7, &[9000, 9000, 1, 5, 2]).is_err());
        assert!(reference(PLAIN, &[9000, 9000, 1, 5, 1]).is_err());
    }
}
