//! The extent map on disk: segments of 64 extents, each in pages of its own, and a directory of
//! them at the end of the meta run.
//!
//! A checkpoint writes the segments that changed, to pages that the durable state does not use;
//! the directory has the checksum of each, so that a segment whose write was lost is seen.
//!
//! | bytes | directory                                                                           |
//! |-------|-------------------------------------------------------------------------------------|
//! | 8     | extents in the map                                                                  |
//! | 4     | number of segments; of each: u64 first page, u32 bytes (0: all free), u64 XXH3-64   |
//!
//! | bytes | segment: for each of its 64 extents, free ones beyond the end of the map            |
//! |-------|-------------------------------------------------------------------------------------|
//! | 4     | owner; 0xFFFFFFFF: free, 0: the store itself; both have nothing more                |
//! | 8     | overflow extent; all ones: none                                                     |
//! |       | bitmap of the pages in use                                                          |
//! |       | which transaction each page was last written with ([`WrittenBy`])                   |

use twox_hash::XxHash3_64;

use crate::format::cursor::Cursor;
use crate::format::written_by::WrittenBy;
use crate::page::{BODY_BYTES, PageId, TreeId};
use crate::space::extent::{Extent, SEGMENT, words};

const FREE: u32 = u32::MAX;
const NO_OVERFLOW: u64 = u64::MAX;

/// Where a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentPlace {
    /// Its first page; the others follow.
    pub first: PageId,
    /// Bytes, over the bodies of its pages; 0: all its extents are free, and it has no page.
    pub bytes: u32,
    /// XXH3-64 of the bytes.
    pub checksum: u64,
}

impl SegmentPlace {
    /// A segment of free extents.
    pub const EMPTY: SegmentPlace = SegmentPlace { first: PageId(0), bytes: 0, checksum: 0 };

    /// Pages it takes.
    pub fn pages(&self) -> u32 {
        self.bytes.div_ceil(BODY_BYTES as u32)
    }

    /// True when these are the bytes it holds.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        self.bytes as usize == bytes.len()
            && (bytes.is_empty() || self.checksum == XxHash3_64::oneshot(bytes))
    }
}

/// The bytes of a segment; none when all its extents are free.
pub(crate) fn encode(extents: &[Extent]) -> Vec<u8> {
    assert_eq!(extents.len(), SEGMENT, "a segment is encoded whole");
    if extents.iter().all(|e| e.tree.is_none()) {
        return Vec::new();
    }
    let mut out = Vec::new();
    for e in extents {
        out.extend(e.tree.map_or(FREE, |t| t.0).to_le_bytes());
        if matches!(e.tree, None | Some(TreeId::META)) {
            continue;
        }
        out.extend(e.overflow.unwrap_or(NO_OVERFLOW).to_le_bytes());
        e.allocated.iter().for_each(|w| out.extend(w.to_le_bytes()));
        e.written_by.encode(&mut out);
    }
    out
}

/// Reads a segment back.
pub(crate) fn decode(bytes: &[u8], extent_pages: u32) -> Result<Vec<Extent>, &'static str> {
    let mut r = Cursor { bytes };
    let mut extents = Vec::with_capacity(SEGMENT);
    for _ in 0..SEGMENT {
        let mut e = Extent::free(extent_pages);
        e.tree = Some(r.u32()?).filter(|t| *t != FREE).map(TreeId);
        if !matches!(e.tree, None | Some(TreeId::META)) {
            e.overflow = Some(r.u64()?).filter(|o| *o != NO_OVERFLOW);
            for w in &mut e.allocated {
                *w = r.u64()?;
            }
            e.written = e.allocated.clone();
            e.written_by = WrittenBy::decode(&mut r.bytes, extent_pages)?;
        }
        extents.push(e);
    }
    if r.bytes.is_empty() { Ok(extents) } else { Err("a part of the extent map is too long") }
}

/// Appends the directory.
pub(crate) fn encode_directory(out: &mut Vec<u8>, extents: u64, segments: &[SegmentPlace]) {
    out.extend(extents.to_le_bytes());
    out.extend((segments.len() as u32).to_le_bytes());
    for s in segments {
        out.extend(s.first.0.to_le_bytes());
        out.extend(s.bytes.to_le_bytes());
        out.extend(s.checksum.to_le_bytes());
    }
}

/// Bytes of a directory of so many segments.
pub(crate) fn directory_bytes(segments: usize) -> usize {
    12 + 20 * segments
}

/// Reads the directory: extents in the map, and the segments.
pub(crate) fn decode_directory(r: &mut Cursor<'_>) -> Result<(u64, Vec<SegmentPlace>), &'static str> {
    let extents = r.u64()?;
    let n = r.u32()?;
    if u64::from(n) != extents.div_ceil(SEGMENT as u64) || r.bytes.len() as u64 != 20 * u64::from(n) {
        return Err("the directory of the extent map has a wrong length");
    }
    let segments = (0..n).map(|_| {
        let (first, bytes, checksum) = (PageId(r.u64()?), r.u32()?, r.u64()?);
        Ok(SegmentPlace { first, bytes, checksum })
    });
    Ok((extents, segments.collect::<Result<_, &'static str>>()?))
}

/// Reads the extent map that format 3 put behind the catalog: it does not say which transaction
/// wrote which page.
pub(crate) fn decode_whole_map(r: &mut Cursor<'_>, extent_pages: u32) -> Result<Vec<Extent>, &'static str> {
    let n = r.u64()?;
    let entry_bytes = 12 + 8 * words(extent_pages) as u64;
    if n.checked_mul(entry_bytes) != Some(r.bytes.len() as u64) {
        return Err("the extent map has a wrong length");
    }
    let mut extents = Vec::with_capacity(n as usize);
    for _ in 0..n {
        let mut e = Extent::free(extent_pages);
        e.tree = Some(r.u32()?).filter(|t| *t != FREE).map(TreeId);
        e.overflow = Some(r.u64()?).filter(|o| *o != NO_OVERFLOW);
        for w in &mut e.allocated {
            *w = r.u64()?;
        }
        e.written = e.allocated.clone();
        extents.push(e);
    }
    Ok(extents)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Extent> {
        let mut extents = vec![Extent::free(256); SEGMENT];
        extents[3] = Extent::filled(256, TreeId(1), 256).by(9);
        extents[4] = Extent::filled(256, TreeId(2), 200);
        extents[4].overflow = Some(7);
        extents[4].written_by.set(5, 12, 256);
        extents[60].tree = Some(TreeId::META);
        extents
    }

    #[test]
    fn segments_round_trip() {
        let extents = sample();
        let bytes = encode(&extents);
        assert_eq!(decode(&bytes, 256), Ok(extents));
        for n in 0..bytes.len() {
            assert!(decode(&bytes[..n], 256).is_err(), "{n} of {} bytes", bytes.len());
        }
        assert!(encode(&vec![Extent::free(256); SEGMENT]).is_empty());
    }

    #[test]
    fn directories_round_trip() {
        let place = SegmentPlace { first: PageId(9), bytes: 100, checksum: 7 };
        let mut bytes = Vec::new();
        encode_directory(&mut bytes, 65, &[place, SegmentPlace::EMPTY]);
        assert_eq!(bytes.len(), directory_bytes(2));
        let back = decode_directory(&mut Cursor { bytes: &bytes });
        assert_eq!(back, Ok((65, vec![place, SegmentPlace::EMPTY])));
        for n in 0..bytes.len() {
            assert!(decode_directory(&mut Cursor { bytes: &bytes[..n] }).is_err());
        }
    }

    /// The table of writes takes less than a thousandth of the database, even when every page
    /// was written by another transaction.
    #[test]
    fn the_map_is_small() {
        let mut extents = vec![Extent::filled(256, TreeId(1), 256); SEGMENT];
        let bytes = |extents: &[Extent]| encode(extents).len().next_multiple_of(BODY_BYTES) as f64;
        let database = (SEGMENT * 256 * 8192) as f64;
        assert!(bytes(&extents) / database < 0.000_1, "{}", bytes(&extents) / database);
        for (e, extent) in extents.iter_mut().enumerate() {
            for i in 0..256 {
                extent.written_by.set(i, 1 + e as u64 * 256 + u64::from(i), 256);
            }
        }
        assert!(bytes(&extents) / database < 0.001, "{}", bytes(&extents) / database);
    }
}
