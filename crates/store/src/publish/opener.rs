//! The opener: all that opening a published database needs beside the journal, in one object.
//!
//! | offset | bytes | field          | meaning                                                |
//! |--------|-------|----------------|--------------------------------------------------------|
//! | 0      | 8     | checksum       | XXH3-64 of all that follows                            |
//! | 8      | 8     | magic          | `SNOWOPEN`                                             |
//! | 16     | 4     | form           | 1                                                      |
//! | 20     | 4     | extent_pages   | pages in an extent                                     |
//! | 24     | 8     | extents        | number of extent objects                               |
//! | 32     | 8     | pages          | number of pages                                        |
//! | 40     | 8     | reserved       | 0                                                      |
//! | 48     | 8192  | super-block    | as in the file of that name                            |
//! | 8240   | –     | extent objects | ascending: varint distance from the extent before; u64 lineage; u128 hash; u16 n: it has the first n pages, or 0xFFFF and a bitmap |
//! |        | –     | pages          | ascending: varint distance from the page before        |
//! |        | –     | their bytes    | 32 at a time: u32 length, an LZ4 block                 |
//!
//! The pages are those of catalog and map, then inner nodes of trees, the upper levels first, up to
//! [`MOST_PAGE_BYTES`]: of a larger database the lower levels are read when they are needed.

use std::collections::BTreeMap;

use twox_hash::XxHash3_64;

use crate::format::cursor::Cursor;
use crate::format::varint;
use crate::page::geometry::ExtentId;
use crate::page::{PAGE_BYTES, PageBuf, PageId};
use crate::space::extent::words;
use crate::superblock::{SLOT_BYTES, SuperBlock};

const MAGIC: &[u8; 8] = b"SNOWOPEN";
const FORM: u32 = 1;
const HEAD_BYTES: usize = 48;
/// Pages compressed together.
const TOGETHER: usize = 32;
/// Most bytes of pages, before they are compressed: about half remain.
pub(crate) const MOST_PAGE_BYTES: usize = 12 << 20;

/// See the head of the file.
pub(crate) struct Opener {
    pub block: SuperBlock,
    /// The object of each extent of a tree.
    pub extents: BTreeMap<ExtentId, ExtentObject>,
    pub pages: BTreeMap<PageId, PageBuf>,
}

/// The object that has the pages of an extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExtentObject {
    pub name: ObjectName,
    /// Bit i: page i is in it. As many words as an extent's bitmaps have.
    pub used: Box<[u64]>,
}

/// Names the bytes of an extent, within the databases that came from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectName {
    /// Of the state that it was first published with.
    pub lineage: u64,
    /// XXH3-128 of its bytes.
    pub hash: u128,
}

impl ObjectName {
    /// The key in the object store.
    pub fn key(&self) -> String {
        format!("extents/{:016x}-{:032x}", self.lineage, self.hash)
    }

    /// The name that a key says; `None` of others.
    pub fn from_key(key: &str) -> Option<ObjectName> {
        let (lineage, hash) = key.strip_prefix("extents/")?.split_once('-')?;
        let (lineage, hash) = (u64::from_str_radix(lineage, 16).ok()?, u128::from_str_radix(hash, 16).ok()?);
        Some(ObjectName { lineage, hash }).filter(|name| name.key() == key)
    }
}

impl ExtentObject {
    /// Bytes of the object.
    pub fn bytes(&self) -> u64 {
        self.used.iter().map(|w| u64::from(w.count_ones())).sum::<u64>() * PAGE_BYTES as u64
    }

    /// True when it has page `index`.
    pub fn has(&self, index: u32) -> bool {
        self.used[index as usize / 64] >> (index % 64) & 1 == 1
    }

    /// Its pages before page `index`.
    pub fn rank(&self, index: u32) -> u32 {
        let (word, bit) = (index as usize / 64, index % 64);
        let whole: u32 = self.used[..word].iter().map(|w| w.count_ones()).sum();
        let part = self.used.get(word).map_or(0, |w| (w & ((1 << bit) - 1)).count_ones());
        whole + part
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.name.lineage.to_le_bytes());
        out.extend(self.name.hash.to_le_bytes());
        let pages = self.used.iter().map(|w| w.count_ones()).sum::<u32>();
        if pages < BITMAP.into() && *self.used == *first_pages(pages, self.used.len()) {
            out.extend((pages as u16).to_le_bytes());
        } else {
            out.extend(BITMAP.to_le_bytes());
            self.used.iter().for_each(|w| out.extend(w.to_le_bytes()));
        }
    }

    fn take(r: &mut Cursor<'_>, extent_pages: u32) -> Result<ExtentObject, &'static str> {
        let lineage = r.u64()?;
        let hash = u128::from_le_bytes(r.take(16)?.try_into().expect("sixteen bytes"));
        let pages = u16::from_le_bytes(r.take(2)?.try_into().expect("two bytes"));
        let used = if pages == BITMAP {
            (0..words(extent_pages)).map(|_| r.u64()).collect::<Result<Box<[u64]>, _>>()?
        } else if u32::from(pages) <= extent_pages {
            first_pages(pages.into(), words(extent_pages))
        } else {
            return Err("an extent has too many pages");
        };
        Ok(ExtentObject { name: ObjectName { lineage, hash }, used })
    }
}

/// Stands for a bitmap.
const BITMAP: u16 = u16::MAX;

/// The bitmap of the first `pages` pages.
fn first_pages(pages: u32, words: usize) -> Box<[u64]> {
    let word = |i: usize| match (pages as usize).saturating_sub(i * 64) {
        0 => 0,
        n if n >= 64 => u64::MAX,
        n => (1 << n) - 1,
    };
    (0..words).map(word).collect()
}

impl Opener {
    /// Its bytes.
    ///
    /// # Errors
    /// Paths of stripes that a super-block cannot hold.
    pub fn encode(&self) -> crate::Result<Vec<u8>> {
        let mut out = vec![0; 8];
        out.extend(MAGIC);
        out.extend(FORM.to_le_bytes());
        out.extend(self.block.extent_pages.to_le_bytes());
        out.extend((self.extents.len() as u64).to_le_bytes());
        out.extend((self.pages.len() as u64).to_le_bytes());
        out.resize(HEAD_BYTES, 0);
        out.extend(self.block.encode()?);
        let mut last = 0;
        for (id, object) in &self.extents {
            varint::put(&mut out, id - last);
            object.put(&mut out);
            last = *id;
        }
        let mut last = 0;
        for id in self.pages.keys() {
            varint::put(&mut out, id.0 - last);
            last = id.0;
        }
        let pages: Vec<&PageBuf> = self.pages.values().collect();
        for together in pages.chunks(TOGETHER) {
            let raw: Vec<u8> = together.iter().flat_map(|page| page.iter().copied()).collect();
            let packed = lz4_flex::compress(&raw);
            out.extend((packed.len() as u32).to_le_bytes());
            out.extend(packed);
        }
        let checksum = XxHash3_64::oneshot(&out[8..]);
        out[..8].copy_from_slice(&checksum.to_le_bytes());
        Ok(out)
    }

    /// Reads it back; the error says why it cannot be used.
    pub fn decode(bytes: &[u8]) -> Result<Opener, &'static str> {
        let mut r = Cursor { bytes };
        let is_whole = bytes.len() >= HEAD_BYTES + SLOT_BYTES && r.u64()? == XxHash3_64::oneshot(&bytes[8..]);
        if !is_whole || r.take(8)? != MAGIC {
            return Err("the opener is damaged");
        }
        if r.u32()? != FORM {
            return Err("the opener is of another format: a newer program wrote it");
        }
        let extent_pages = r.u32()?;
        let (extents, pages) = (r.u64()?, r.u64()?);
        r.u64()?;
        let slot = r.take(SLOT_BYTES)?.try_into().expect("bytes of a slot");
        let block = SuperBlock::decode(slot).map_err(|_| "the super-block in the opener is damaged")?;
        if block.extent_pages != extent_pages {
            return Err("opener and super-block disagree on the pages of an extent");
        }
        let extents = take_extents(&mut r, extents, extent_pages)?;
        let pages = take_pages(&mut r, pages)?;
        if !r.bytes.is_empty() {
            return Err("the opener is too long");
        }
        Ok(Opener { block, extents, pages })
    }
}

const WRONG_NUMBER: &str = "a number in the opener is wrong";

/// `n` ids, each as its distance from the one before.
fn next_id(r: &mut Cursor<'_>, last: u64) -> Result<u64, &'static str> {
    let distance = varint::take(&mut r.bytes).map_err(|_| WRONG_NUMBER)?;
    last.checked_add(distance).ok_or(WRONG_NUMBER)
}

fn take_extents(
    r: &mut Cursor<'_>,
    n: u64,
    extent_pages: u32,
) -> Result<BTreeMap<ExtentId, ExtentObject>, &'static str> {
    let (mut extents, mut last) = (BTreeMap::new(), 0);
    for _ in 0..n {
        last = next_id(r, last)?;
        extents.insert(last, ExtentObject::take(r, extent_pages)?);
    }
    if extents.len() as u64 == n { Ok(extents) } else { Err(WRONG_NUMBER) }
}

fn take_pages(r: &mut Cursor<'_>, n: u64) -> Result<BTreeMap<PageId, PageBuf>, &'static str> {
    let (mut ids, mut last) = (Vec::new(), 0);
    for _ in 0..n {
        last = next_id(r, last)?;
        ids.push(PageId(last));
    }
    let mut pages = BTreeMap::new();
    for together in ids.chunks(TOGETHER) {
        let len = r.u32()? as usize;
        let raw = lz4_flex::decompress(r.take(len)?, together.len() * PAGE_BYTES);
        let raw = raw.ok().filter(|raw| raw.len() == together.len() * PAGE_BYTES);
        let raw = raw.ok_or("pages in the opener cannot be unpacked")?;
        pages.extend(together.iter().copied().zip(raw.chunks_exact(PAGE_BYTES).map(PageBuf::copy_of)));
    }
    if pages.len() as u64 == n { Ok(pages) } else { Err(WRONG_NUMBER) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::superblock::MetaForm;
    use proptest::prelude::*;

    pub(crate) fn block() -> SuperBlock {
        SuperBlock {
            extent_pages: 96,
            sequence: 3,
            txn: 17,
            extents: 40,
            meta: None,
            meta_form: MetaForm::Segments,
            identity: 5,
            journal: 2,
            before: (9, 8),
            synced: 12,
            tail_file: 2,
            tail_offset: 4096,
            slots: 1,
            stripes: vec!["data".into()],
        }
    }

    fn page(byte: u8) -> PageBuf {
        let mut page = PageBuf::new();
        page[40..].fill(byte);
        page
    }

    prop_compose! {
        fn object()(lineage: u64, hash: u128, used in prop::collection::vec(any::<u64>(), 2), first: bool, n in 0u32..=96)
            -> ExtentObject {
            let used: Box<[u64]> = if first { first_pages(n, 2) } else { [used[0], used[1] & 0xFFFF_FFFF].into() };
            ExtentObject { name: ObjectName { lineage, hash }, used }
        }
    }

    proptest! {
        #[test]
        fn an_opener_round_trips(
            extents in prop::collection::btree_map(0u64..1000, object(), 0..20),
            pages in prop::collection::btree_map((0u64..100_000).prop_map(PageId), any::<u8>().prop_map(page), 0..70),
        ) {
            let opener = Opener { block: block(), extents, pages };
            let bytes = opener.encode().unwrap();
            let read = Opener::decode(&bytes).unwrap();
            prop_assert_eq!(read.block, opener.block);
            prop_assert_eq!(read.extents, opener.extents);
            prop_assert!(read.pages.iter().map(|(id, p)| (id, &p[..])).eq(opener.pages.iter().map(|(id, p)| (id, &p[..]))));
        }

        #[test]
        fn ranks_count_the_pages_before(object in object(), index in 0u32..96) {
            let before = (0..index).filter(|i| object.has(*i)).count() as u32;
            prop_assert_eq!(object.rank(index), before);
        }
    }

    #[test]
    fn a_damaged_opener_is_refused() {
        let pages = (0..40).map(|i| (PageId(i * 3), page(i as u8))).collect();
        let used = first_pages(70, 2);
        let object = ExtentObject { name: ObjectName { lineage: 1, hash: 2 }, used };
        let opener = Opener { block: block(), extents: [(3, object)].into(), pages };
        let bytes = opener.encode().unwrap();
        for at in (0..bytes.len()).step_by(97) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(Opener::decode(&damaged).is_err(), "byte {at}");
            assert!(Opener::decode(&bytes[..at]).is_err(), "{at} bytes");
        }
    }

    /// Nonsense with a right checksum, as of a program with a fault, must not panic either.
    #[test]
    fn nonsense_with_a_right_checksum_is_refused_or_read() {
        let pages = (0..4).map(|i| (PageId(i * 3), page(i as u8))).collect();
        let opener = Opener { block: block(), extents: BTreeMap::new(), pages };
        let bytes = opener.encode().unwrap();
        for at in 8..bytes.len() {
            for bit in [0x01, 0x80] {
                let mut other = bytes.clone();
                other[at] ^= bit;
                let sum = XxHash3_64::oneshot(&other[8..]);
                other[..8].copy_from_slice(&sum.to_le_bytes());
                let _ = Opener::decode(&other);
            }
        }
    }
}
