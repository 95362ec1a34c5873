//! Pages of record trees: sorted byte keys with values, found by binary search over slots.
//!
//! Body of leaves and inner nodes, from byte 32 of the page (header count = records):
//!
//! ```text
//! 32  prefix bytes u16 | 0 u16
//! 36  slots: records × u16, where each record begins in the page, in key order
//!     prefix: what all keys of the page begin with
//!     records: suffix bytes varint | value bytes · 2 + long varint | key behind the prefix | value
//! ```
//!
//! Records lie anywhere behind the prefix: right behind it in pages built in bulk, at the
//! page's end in pages that were changed, so that a record can be added with its slot alone
//! moving others (`insert`, `remove`, `replace`).
//!
//! `long` says that the value is a reference (see `tree::long_value`). The value of an inner node's
//! record is its child: page varint, records of the subtree varint; its key is above every key
//! of the children before it and not above any of its own.

use std::cmp::Ordering;

use crate::format::encoding::{BODY, Bad, Decode, load_u16, load_varint, part, partition, store_varint};
use crate::format::record::key::{bounded, common_prefix};
use crate::page::{BODY_BYTES, PageBuf, PageKind, header, offset};

/// Most bytes of a key, and of a value that is kept in its leaf: a record fills at most half a
/// page.
pub(crate) const MOST_KEY: usize = BODY_BYTES / 4;
pub(crate) const MOST_VALUE: usize = BODY_BYTES / 4;

/// Bytes of the fixed fields.
const HEAD: usize = 4;

/// A page under construction; reused from page to page.
#[derive(Default)]
pub(crate) struct RecordPageBuilder {
    /// Keys and values one behind the other, with the end of each key and value.
    bytes: Vec<u8>,
    ends: Vec<(usize, usize, bool)>,
    prefix: usize,
    /// Bytes of the records with the current prefix.
    size: usize,
}

impl RecordPageBuilder {
    /// Records in the page.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    fn record(&self, i: usize) -> (&[u8], &[u8], bool) {
        let from = if i == 0 { 0 } else { self.ends[i - 1].1 };
        let (key, value, long) = self.ends[i];
        (&self.bytes[from..key], &self.bytes[key..value], long)
    }

    /// First key of the page.
    pub(crate) fn first_key(&self) -> &[u8] {
        self.record(0).0
    }

    /// Last key of the page.
    pub(crate) fn last_key(&self) -> &[u8] {
        self.record(self.ends.len() - 1).0
    }

    /// Takes a record if it fits; its key must be above the last one.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8], long: bool) -> bool {
        let n = self.ends.len();
        let prefix = if n == 0 { key.len() } else { common_prefix(&self.first_key()[..self.prefix], key) };
        let others = match prefix == self.prefix {
            true => self.size,
            false => {
                (0..n).map(|i| self.record(i)).map(|(k, v, _)| record_len(k.len() - prefix, v.len())).sum()
            }
        };
        let size = others + record_len(key.len() - prefix, value.len());
        if HEAD + 2 * (n + 1) + prefix + size > BODY_BYTES {
            return false;
        }
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len(), long));
        (self.prefix, self.size) = (prefix, size);
        true
    }

    /// Bytes of the body in use.
    pub(crate) fn bytes(&self) -> usize {
        HEAD + 2 * self.ends.len() + self.prefix + self.size
    }

    /// Writes the page and begins the next one.
    pub(crate) fn finish(&mut self, kind: PageKind, level: u8, gap: Gap, page: &mut PageBuf) {
        let n = self.ends.len();
        page.clear();
        page.set_header(kind, level, n as u16);
        let mut records = Vec::with_capacity(BODY_BYTES);
        let prefix_end = HEAD + 2 * n + self.prefix;
        let records_at = match gap {
            Gap::Behind => prefix_end,
            Gap::Before => BODY_BYTES - self.size,
        };
        for i in 0..n {
            let at = (BODY + records_at + records.len()) as u16;
            page.body_mut()[HEAD + 2 * i..HEAD + 2 * i + 2].copy_from_slice(&at.to_le_bytes());
            let (key, value, long) = self.record(i);
            store_record(&mut records, &key[self.prefix..], value, long);
        }
        let body = page.body_mut();
        body[..2].copy_from_slice(&(self.prefix as u16).to_le_bytes());
        if n > 0 {
            body[HEAD + 2 * n..prefix_end].copy_from_slice(&self.bytes[..self.prefix]);
        }
        body[records_at..records_at + records.len()].copy_from_slice(&records);
        *self = RecordPageBuilder { bytes: std::mem::take(&mut self.bytes), ..Default::default() };
        self.bytes.clear();
    }
}

/// Where the free bytes of a page are: behind its records or before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    Behind,
    Before,
}

fn store_record(out: &mut Vec<u8>, suffix: &[u8], value: &[u8], long: bool) {
    store_varint(out, suffix.len() as u64);
    store_varint(out, (value.len() as u64) << 1 | u64::from(long));
    out.extend_from_slice(suffix);
    out.extend_from_slice(value);
}

/// Adds a record as number `i`; false, and nothing changed, when the page must be packed anew
/// for it.
pub(crate) fn insert(
    page: &mut [u8],
    found: &RecordPage,
    i: usize,
    key: &[u8],
    value: &[u8],
    long: bool,
) -> Decode<bool> {
    let Some(suffix) = key.strip_prefix(found.prefix(page)) else { return Ok(false) };
    let mut record = Vec::with_capacity(value.len() + suffix.len() + 6);
    store_record(&mut record, suffix, value, long);
    let mut low = page.len();
    for slot in 0..found.len {
        low = low.min(load_u16(page, BODY + HEAD + 2 * slot)?);
    }
    let prefix_end = found.prefix_at + found.prefix;
    if low < prefix_end + 2 + record.len() {
        return Ok(false);
    }
    let at = low - record.len();
    page[at..low].copy_from_slice(&record);
    let slot = BODY + HEAD + 2 * i;
    page.copy_within(slot..prefix_end, slot + 2);
    page[slot..slot + 2].copy_from_slice(&(at as u16).to_le_bytes());
    set_count(page, found.len + 1);
    Ok(true)
}

/// Takes record number `i` out of a page that has others. Its bytes stay free until the page is
/// packed anew.
pub(crate) fn remove(page: &mut [u8], found: &RecordPage, i: usize) {
    assert!(i < found.len && found.len > 1, "an empty page is given back");
    let (slot, prefix_end) = (BODY + HEAD + 2 * i, found.prefix_at + found.prefix);
    page.copy_within(slot + 2..prefix_end, slot);
    set_count(page, found.len - 1);
}

/// Gives record number `i` another value of the same length; false, and nothing changed, when
/// it has another one.
pub(crate) fn replace(
    page: &mut [u8],
    found: &RecordPage,
    i: usize,
    value: &[u8],
    long: bool,
) -> Decode<bool> {
    let old = found.record(page, i)?;
    if old.value.len() != value.len() || old.long != long {
        return Ok(false);
    }
    let mut at = load_u16(page, BODY + HEAD + 2 * i)?;
    let suffix = bounded(load_varint(page, &mut at)?, page.len())?;
    load_varint(page, &mut at)?;
    page[at + suffix..at + suffix + value.len()].copy_from_slice(value);
    Ok(true)
}

fn set_count(page: &mut [u8], records: usize) {
    page[offset::COUNT..offset::COUNT + 2].copy_from_slice(&(records as u16).to_le_bytes());
}

fn record_len(suffix: usize, value: usize) -> usize {
    let varint = |v: usize| (usize::BITS - (v | 1).leading_zeros()).div_ceil(7) as usize;
    varint(suffix) + varint(value << 1) + suffix + value
}

/// A page of a record tree. All accesses take the page it was parsed from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordPage {
    /// Number of records.
    pub len: usize,
    prefix_at: usize,
    prefix: usize,
}

/// A record: what its key has behind the page's prefix, its value, and whether that is a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageRecord<'p> {
    pub suffix: &'p [u8],
    pub value: &'p [u8],
    pub long: bool,
}

impl RecordPage {
    /// Reads the head of the page and checks that prefix and slots lie inside.
    pub(crate) fn parse(page: &[u8], kind: PageKind, level: u8) -> Decode<RecordPage> {
        let head = header(page);
        if head.kind() != kind as u8 || head.level() != level {
            return Err(Bad("not a page of the record tree's level that leads here"));
        }
        let len = head.count() as usize;
        let prefix_at = BODY + HEAD + 2 * len;
        let prefix = load_u16(page, BODY)?;
        part(page, prefix_at, prefix)?;
        match len {
            0 => Err(Bad("a page without records")),
            _ => Ok(RecordPage { len, prefix_at, prefix }),
        }
    }

    /// Common prefix of all keys.
    pub(crate) fn prefix<'p>(&self, page: &'p [u8]) -> &'p [u8] {
        &page[self.prefix_at..self.prefix_at + self.prefix]
    }

    /// Record `i`, below `len`.
    pub(crate) fn record<'p>(&self, page: &'p [u8], i: usize) -> Decode<PageRecord<'p>> {
        let mut at = load_u16(page, BODY + HEAD + 2 * i)?;
        let suffix = bounded(load_varint(page, &mut at)?, page.len())?;
        let value = load_varint(page, &mut at)?;
        let suffix = part(page, at, suffix)?;
        let bytes = part(page, at + suffix.len(), bounded(value >> 1, page.len())?)?;
        Ok(PageRecord { suffix, value: bytes, long: value & 1 == 1 })
    }

    /// Number of records whose key is below `key` (`or_equal`: or equal to it).
    pub(crate) fn rank(&self, page: &[u8], key: &[u8], or_equal: Equal) -> Decode<usize> {
        let prefix = self.prefix(page);
        let head = &key[..key.len().min(prefix.len())];
        match prefix.cmp(head) {
            Ordering::Less => return Ok(self.len),
            Ordering::Greater => return Ok(0), // also when the key ends within the prefix
            Ordering::Equal => {}
        }
        let rest = &key[prefix.len()..];
        partition(0, self.len, |i| {
            let order = self.record(page, i)?.suffix.cmp(rest);
            Ok(order == Ordering::Less || (or_equal == Equal::Counts && order == Ordering::Equal))
        })
    }
}

/// Whether a key equal to the one asked for counts as below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Equal {
    Counts,
    CountsNot,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn records() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
        let key = (0usize..3, prop::collection::vec(0u8..4, 0..6))
            .prop_map(|(p, mut k)| [&b"a shared prefix/"[..p * 8], &std::mem::take(&mut k)].concat());
        let value = prop_oneof![9 => prop::collection::vec(any::<u8>(), 0..30), 1 => prop::collection::vec(any::<u8>(), 0..MOST_VALUE)];
        prop::collection::btree_map(key, value, 1..200).prop_map(|m| m.into_iter().collect())
    }

    fn pack(records: &[(Vec<u8>, Vec<u8>)]) -> (PageBuf, usize) {
        let mut builder = RecordPageBuilder::default();
        let taken = records.iter().take_while(|(k, v)| builder.add(k, v, k.len() == 3)).count();
        let mut page = PageBuf::new();
        builder.finish(PageKind::RecordLeaf, 0, [Gap::Behind, Gap::Before][records.len() % 2], &mut page);
        (page, taken)
    }

    proptest! {
        #[test]
        fn agrees_with_a_vector(records in records(), key in prop::collection::vec(0u8..5, 0..6), pick: prop::sample::Index) {
            let (page, taken) = pack(&records);
            prop_assert!(taken > 0);
            let records = &records[..taken];
            let found = RecordPage::parse(&page, PageKind::RecordLeaf, 0).unwrap();
            prop_assert_eq!(found.len, taken);
            for (i, (k, v)) in records.iter().enumerate() {
                let r = found.record(&page, i).unwrap();
                prop_assert_eq!((&[found.prefix(&page), r.suffix].concat(), r.value, r.long), (k, &v[..], k.len() == 3));
            }
            let own = pick.get(records).0.clone();
            for key in [&key, &own, &[&own[..], &[0]].concat(), &own[..own.len() / 2].to_vec(), &b"a shared prefix/b".to_vec()] {
                let below = records.partition_point(|(k, _)| k < key);
                prop_assert_eq!(found.rank(&page, key, Equal::CountsNot), Ok(below));
                let upto = records.partition_point(|(k, _)| k <= key);
                prop_assert_eq!(found.rank(&page, key, Equal::Counts), Ok(upto));
            }
        }

        #[test]
        fn damaged_bytes_never_panic(records in records(), flips in prop::collection::vec((0usize..600, any::<u8>()), 1..20), key in prop::collection::vec(0u8..5, 0..6)) {
            let (mut page, _) = pack(&records);
            flips.iter().for_each(|&(at, b)| page.body_mut()[at] = b);
            if let Ok(found) = RecordPage::parse(&page, PageKind::RecordLeaf, 0) {
                let _ = found.rank(&page, &key, Equal::Counts);
                (0..found.len).for_each(|i| { let _ = found.record(&page, i); });
            }
        }
    }

    #[test]
    fn shared_prefixes_are_kept_once() {
        let records: Vec<_> = (0..2000u32)
            .map(|i| (format!("http://example.org/long/path/{i:06}").into_bytes(), vec![1]))
            .collect();
        let (_, taken) = pack(&records);
        assert!(taken > 700, "{taken} records of 36 bytes in a page");
    }
}
