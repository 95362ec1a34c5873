//! The page: 8192 bytes, a 32-byte header that proves where the page belongs, and a body for
//! the trees.
//!
//! | offset | bytes | field    | meaning                                              |
//! |--------|-------|----------|------------------------------------------------------|
//! | 0      | 8     | checksum | XXH3-64 of bytes 8..8192                             |
//! | 8      | 8     | page     | `PageId`: catches reads and writes at a wrong place  |
//! | 16     | 8     | txn      | transaction that wrote the page                      |
//! | 24     | 4     | tree     | `TreeId` of the owner                                |
//! | 28     | 1     | kind     | `PageKind`                                           |
//! | 29     | 1     | level    | 0 for leaves, growing towards the root               |
//! | 30     | 2     | count    | entries in the page; its meaning is the tree's       |
//! | 32     | 8160  | body     | belongs to the tree                                  |
//!
//! All integers are little endian. Invariant: a page is sealed once, just before it is written, and
//! verified on every read from a device, so the header of a page in memory can be trusted.

pub(crate) mod geometry;
pub(crate) mod image;

use twox_hash::XxHash3_64;

/// Bytes in a page, on the device and in memory.
pub const PAGE_BYTES: usize = 8192;
/// Bytes of the header; the body follows.
pub const HEADER_BYTES: usize = 32;
/// Bytes a tree may use in each page.
pub const BODY_BYTES: usize = PAGE_BYTES - HEADER_BYTES;

/// Byte offsets of the header's fields, compared with docs/src/reference/format.md by a test.
pub mod offset {
    /// XXH3-64 of the rest of the page.
    pub const CHECKSUM: usize = 0;
    /// Page id.
    pub const PAGE: usize = 8;
    /// Transaction that wrote the page.
    pub const TXN: usize = 16;
    /// Owner.
    pub const TREE: usize = 24;
    /// Page kind.
    pub const KIND: usize = 28;
    /// Level above the leaves.
    pub const LEVEL: usize = 29;
    /// Number of entries.
    pub const COUNT: usize = 30;
}

/// A page of the database: `extent * extent_pages + page within the extent`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageId(pub u64);

/// A tree of the database. 0 is the store itself (the meta run); trees made by a build start at 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TreeId(pub u32);

impl TreeId {
    /// Owner of the store's own pages.
    pub const META: TreeId = TreeId(0);
}

impl std::fmt::Display for PageId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Kind of a page's body. The numbers are the file format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PageKind {
    /// Leaf of a tuple tree.
    TupleLeaf = 1,
    /// Inner node of a tuple tree.
    TupleInner = 2,
    /// Leaf of a string tree.
    StringLeaf = 3,
    /// Inner node of a string tree.
    StringInner = 4,
    /// Reserved: leaf of a tree of byte keys with values. No version made one in a database.
    RecordLeaf = 5,
    /// Reserved: inner node of such a tree.
    RecordInner = 6,
    /// First page of a run that holds one long value, and the pages after it.
    LongRun = 7,
    /// Symbol table of a string tree.
    Symbols = 8,
    /// The store's meta run: trees, extent map, catalog.
    Meta = 9,
    /// Reserved: leaf of a tree of triple terms.
    TripleTermLeaf = 10,
    /// Reserved: inner node of a tree of triple terms.
    TripleTermInner = 11,
    /// Reserved: postings of a text index.
    TextPostings = 12,
    /// Reserved: the words of a text index.
    TextWords = 13,
    /// Reserved: a group of columns.
    ColumnGroup = 14,
    /// Reserved: which column groups there are.
    ColumnGroupInner = 15,
    /// Dictionary of a string tree: its head (level 1) and the parts of its entries (level 0).
    Dictionary = 16,
}

impl PageKind {
    /// Every kind, for tests and for the format's table.
    pub const ALL: [PageKind; 16] = [
        PageKind::TupleLeaf,
        PageKind::TupleInner,
        PageKind::StringLeaf,
        PageKind::StringInner,
        PageKind::RecordLeaf,
        PageKind::RecordInner,
        PageKind::LongRun,
        PageKind::Symbols,
        PageKind::Meta,
        PageKind::TripleTermLeaf,
        PageKind::TripleTermInner,
        PageKind::TextPostings,
        PageKind::TextWords,
        PageKind::ColumnGroup,
        PageKind::ColumnGroupInner,
        PageKind::Dictionary,
    ];

    /// The kind written as `byte`, if there is one.
    pub fn from_byte(byte: u8) -> Option<PageKind> {
        Self::ALL.into_iter().find(|k| *k as u8 == byte)
    }
}

/// Read access to the header of a page; `bytes` is the whole page.
#[derive(Clone, Copy)]
pub struct Header<'a>(&'a [u8]);

/// The header of `page`, which must be a whole page.
#[inline]
pub fn header(page: &[u8]) -> Header<'_> {
    assert_eq!(page.len(), PAGE_BYTES, "a page is {PAGE_BYTES} bytes");
    Header(page)
}

impl Header<'_> {
    #[inline]
    fn u64_at(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }
    /// Stored checksum.
    pub fn checksum(&self) -> u64 {
        self.u64_at(offset::CHECKSUM)
    }
    /// Stored page id.
    pub fn page(&self) -> PageId {
        PageId(self.u64_at(offset::PAGE))
    }
    /// Transaction that wrote the page.
    pub fn txn(&self) -> u64 {
        self.u64_at(offset::TXN)
    }
    /// Owner.
    pub fn tree(&self) -> TreeId {
        TreeId(u32::from_le_bytes(self.0[offset::TREE..offset::TREE + 4].try_into().expect("four bytes")))
    }
    /// Kind byte.
    #[inline]
    pub fn kind(&self) -> u8 {
        self.0[offset::KIND]
    }
    /// Level above the leaves.
    #[inline]
    pub fn level(&self) -> u8 {
        self.0[offset::LEVEL]
    }
    /// Number of entries.
    #[inline]
    pub fn count(&self) -> u16 {
        u16::from_le_bytes([self.0[offset::COUNT], self.0[offset::COUNT + 1]])
    }
}

/// One page in memory, aligned for O_DIRECT, zeroed when made. Used by builders and by page
/// versions.
#[derive(Clone)]
#[repr(C, align(4096))]
struct Aligned([u8; PAGE_BYTES]);

/// An owned page of [`PAGE_BYTES`] bytes. Builders fill body, kind, level and count; the store
/// seals the rest.
#[derive(Clone)]
pub struct PageBuf(Box<Aligned>);

impl PageBuf {
    /// A zeroed page.
    pub fn new() -> Self {
        PageBuf(Box::new(Aligned([0; PAGE_BYTES])))
    }

    /// A copy of a whole page.
    pub fn copy_of(page: &[u8]) -> Self {
        let mut copy = Self::new();
        copy.copy_from_slice(page);
        copy
    }

    /// Sets the fields that are the tree's: kind, level, count.
    pub fn set_header(&mut self, kind: PageKind, level: u8, count: u16) {
        let page = &mut self.0.0;
        page[offset::KIND] = kind as u8;
        page[offset::LEVEL] = level;
        page[offset::COUNT..offset::COUNT + 2].copy_from_slice(&count.to_le_bytes());
    }

    /// The part that belongs to the tree.
    pub fn body(&self) -> &[u8] {
        &self.0.0[HEADER_BYTES..]
    }

    /// The part that belongs to the tree.
    pub fn body_mut(&mut self) -> &mut [u8] {
        &mut self.0.0[HEADER_BYTES..]
    }

    /// Zeroes the page for its next use.
    pub fn clear(&mut self) {
        self.0.0.fill(0);
    }
}

impl Default for PageBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl std::ops::Deref for PageBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0.0
    }
}

impl std::ops::DerefMut for PageBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0.0
    }
}

impl std::fmt::Debug for PageBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let h = header(self);
        write!(f, "PageBuf(page {}, tree {}, kind {})", h.page(), h.tree().0, h.kind())
    }
}

/// Completes the header: page, transaction, owner, checksum. Kind, level and count are the
/// caller's.
pub fn seal(page: &mut [u8], id: PageId, tree: TreeId, txn: u64) {
    assert_eq!(page.len(), PAGE_BYTES, "a page is {PAGE_BYTES} bytes");
    page[offset::PAGE..offset::PAGE + 8].copy_from_slice(&id.0.to_le_bytes());
    page[offset::TXN..offset::TXN + 8].copy_from_slice(&txn.to_le_bytes());
    page[offset::TREE..offset::TREE + 4].copy_from_slice(&tree.0.to_le_bytes());
    let sum = checksum(page);
    page[offset::CHECKSUM..offset::CHECKSUM + 8].copy_from_slice(&sum.to_le_bytes());
}

/// Completes the header of a page version in memory: all but the checksum, which only a page on a
/// stripe needs.
pub(crate) fn mark(page: &mut [u8], id: PageId, tree: TreeId, txn: u64) {
    assert_eq!(page.len(), PAGE_BYTES, "a page is {PAGE_BYTES} bytes");
    page[offset::CHECKSUM..offset::CHECKSUM + 8].fill(0);
    page[offset::PAGE..offset::PAGE + 8].copy_from_slice(&id.0.to_le_bytes());
    page[offset::TXN..offset::TXN + 8].copy_from_slice(&txn.to_le_bytes());
    page[offset::TREE..offset::TREE + 4].copy_from_slice(&tree.0.to_le_bytes());
}

/// True when [`mark`] would change nothing.
pub(crate) fn is_marked(page: &[u8], id: PageId, tree: TreeId, txn: u64) -> bool {
    let h = header(page);
    (h.checksum(), h.page(), h.tree(), h.txn()) == (0, id, tree, txn)
}

/// XXH3-64 of everything after the checksum field.
fn checksum(page: &[u8]) -> u64 {
    XxHash3_64::oneshot(&page[offset::PAGE..])
}

/// Fault of a page that came from a device.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Damage {
    /// The bytes are not those that were written.
    #[error("checksum is {found:016x}, the page's bytes give {computed:016x}")]
    Checksum {
        /// Stored in the page.
        found: u64,
        /// Computed from the page.
        computed: u64,
    },
    /// A whole page, but another one: a misdirected read or write.
    #[error("it is page {found}")]
    WrongPage {
        /// Page id in the header.
        found: PageId,
    },
    /// The page's owner is not the tree that asked.
    #[error("it belongs to tree {found}, not to tree {expected}")]
    WrongTree {
        /// Owner in the header or the extent map.
        found: u32,
        /// The tree that asked.
        expected: u32,
    },
    /// A reference leads to a page outside the database or to one never written.
    #[error("no such page was ever written")]
    NotAllocated,
    /// The page is sound, but it is not the state that was written last.
    #[error("{}", stale(*found, *expected))]
    Stale {
        /// Transaction in the header.
        found: u64,
        /// Low half of the one that wrote the page last.
        expected: u32,
    },
    /// The page is sound, but its body contradicts the format of its tree.
    #[error("{0}")]
    Content(String),
}

/// Describes the fault of a page of transaction `found`, where the one with the low half `expected`
/// wrote last.
fn stale(found: u64, expected: u32) -> String {
    // Holds for numbers whose high halves are equal or adjacent.
    let is_newer = (found as u32).wrapping_sub(expected) < 1 << 31;
    let which = if is_newer { "the files are of different moments" } else { "a write was lost" };
    format!(
        "{which}: the page is as transaction {found} left it, the extent map says that transaction {expected} (mod 2^32) wrote it last"
    )
}

/// Checks a page read from a device against where it should be.
pub fn verify(page: &[u8], id: PageId, tree: TreeId) -> Result<(), Damage> {
    let h = header(page);
    let computed = checksum(page);
    if h.checksum() != computed {
        return Err(Damage::Checksum { found: h.checksum(), computed });
    }
    if h.page() != id {
        return Err(Damage::WrongPage { found: h.page() });
    }
    if h.tree() != tree {
        return Err(Damage::WrongTree { found: h.tree().0, expected: tree.0 });
    }
    Ok(())
}

/// As [`verify`], for a page that was last written with the transaction whose low half is
/// `expected`, if that is known.
pub fn verify_written(page: &[u8], id: PageId, tree: TreeId, expected: Option<u32>) -> Result<(), Damage> {
    verify(page, id, tree)?;
    let found = header(page).txn();
    match expected {
        Some(expected) if expected != found as u32 => Err(Damage::Stale { found, expected }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> PageBuf {
        let mut p = PageBuf::new();
        p.set_header(PageKind::TupleLeaf, 3, 77);
        p.body_mut()[..4].copy_from_slice(b"snow");
        seal(&mut p, PageId(9), TreeId(4), 12);
        p
    }

    #[test]
    fn header_round_trips() {
        let p = sealed();
        let h = header(&p);
        assert_eq!((h.page(), h.tree(), h.txn()), (PageId(9), TreeId(4), 12));
        assert_eq!((h.kind(), h.level(), h.count()), (PageKind::TupleLeaf as u8, 3, 77));
        assert_eq!(verify(&p, PageId(9), TreeId(4)), Ok(()));
    }

    #[test]
    fn any_flipped_bit_is_seen() {
        for byte in [0, 7, 8, 15, 16, 24, 28, 29, 30, 32, 4000, PAGE_BYTES - 1] {
            let mut p = sealed();
            p[byte] ^= 0x10;
            assert!(matches!(verify(&p, PageId(9), TreeId(4)), Err(Damage::Checksum { .. })), "byte {byte}");
        }
    }

    #[test]
    fn misplaced_and_foreign_pages_are_seen() {
        let p = sealed();
        assert_eq!(verify(&p, PageId(8), TreeId(4)), Err(Damage::WrongPage { found: PageId(9) }));
        assert_eq!(verify(&p, PageId(9), TreeId(5)), Err(Damage::WrongTree { found: 4, expected: 5 }));
        let zero = PageBuf::new();
        assert!(matches!(verify(&zero, PageId(0), TreeId(0)), Err(Damage::Checksum { .. })));
    }

    #[test]
    fn a_page_of_another_transaction_is_seen() {
        let p = sealed();
        let check = |expected| verify_written(&p, PageId(9), TreeId(4), expected);
        assert_eq!((check(None), check(Some(12))), (Ok(()), Ok(())));
        let [older, newer] = [13, 11].map(|e| check(Some(e)).unwrap_err());
        assert_eq!(older, Damage::Stale { found: 12, expected: 13 });
        assert!(older.to_string().starts_with("a write was lost"), "{older}");
        assert!(newer.to_string().starts_with("the files are of different moments"), "{newer}");
    }

    #[test]
    fn kinds_round_trip() {
        for k in PageKind::ALL {
            assert_eq!(PageKind::from_byte(k as u8), Some(k));
        }
        assert_eq!(PageKind::from_byte(0), None);
    }
}
