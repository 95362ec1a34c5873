//! Leaves of string trees: one string is found without touching its neighbours' bytes.
//!
//! Body, from byte 32 of the page (header count = strings, n):
//!
//! ```text
//! 32  first id u64 | long strings u16 | 0 u16
//! 44  groups of 16 strings: ⌈n / 16⌉ × u16; low 13 bits: where the group begins in the page, high 3 bits: width of its lengths
//!     positions in the leaf of the long strings: long × u16, ascending
//!     groups: lengths (bit stream of the width's bits), then the strings' codes one behind the other
//! ```
//!
//! Widths 0..7 mean 3, 4, 5, 6, 7, 8, 9, 11 bits. So a string's place takes ⅛ byte for the
//! group and a few bits for its length. The bytes of a long string are a reference (see
//! `tree::long_value`); those of a short one are codes (see `format::string::codec`). A string is
//! never longer than [`MOST`] bytes in a leaf.

use std::ops::Range;

use crate::format::encoding::bits::{pack_stream, stream_len, stream_value};
use crate::format::encoding::{BODY, Bad, Decode, bits, load, load_u16, part, store};
use crate::page::{BODY_BYTES, PAGE_BYTES, PageBuf, PageKind, header};

/// Strings of a group: the restart distance.
pub(crate) const GROUP: usize = 16;

/// Most bytes of a string in a leaf: a quarter of the body.
pub(crate) const MOST: usize = BODY_BYTES / 4;

/// Bytes of the fixed fields.
const HEAD: usize = 12;

/// Bits of a length, by the code in the group's word.
const WIDTHS: [u8; 8] = [3, 4, 5, 6, 7, 8, 9, 11];

/// The narrowest width for a length.
fn width_code(length: usize) -> usize {
    let wanted = bits(length as u64);
    WIDTHS.iter().position(|&w| u32::from(w) >= wanted).expect("a length of at most 11 bits")
}

/// Where the groups of a leaf lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupOrder {
    /// Behind the fixed fields, one after the other.
    Upwards,
    /// From the page's end towards its begin: when strings are appended, the groups that are
    /// complete stay where they are.
    Downwards,
}

/// A leaf under construction; reused from leaf to leaf.
#[derive(Default)]
pub(crate) struct StringLeafBuilder {
    first_id: u64,
    lengths: Vec<u16>,
    codes: Vec<u8>,
    long: Vec<u16>,
    /// Bytes of the groups that are complete, their words included; and the widest length of
    /// the current one.
    done: usize,
    widest: usize,
}

impl StringLeafBuilder {
    /// A leaf that begins with this string.
    pub(crate) fn from(first_id: u64) -> Self {
        Self { first_id, ..Self::default() }
    }

    /// Strings in the leaf.
    pub(crate) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Id of the first string.
    pub(crate) fn first_id(&self) -> u64 {
        self.first_id
    }

    /// Takes a string's bytes if they fit.
    pub(crate) fn add(&mut self, bytes: &[u8], is_long: bool) -> bool {
        assert!(bytes.len() <= MOST, "longer strings are kept in runs");
        let in_group = self.lengths.len() % GROUP;
        let widest = if in_group == 0 { bytes.len() } else { self.widest.max(bytes.len()) };
        let group = 2 + lengths_len(in_group + 1, widest);
        let long = 2 * (self.long.len() + usize::from(is_long));
        if HEAD + self.done + group + long + self.codes.len() + bytes.len() > BODY_BYTES
            || self.lengths.len() == u16::MAX as usize
        {
            return false;
        }
        if is_long {
            self.long.push(self.lengths.len() as u16);
        }
        self.lengths.push(bytes.len() as u16);
        self.codes.extend_from_slice(bytes);
        self.widest = widest;
        if in_group + 1 == GROUP {
            self.done += group;
        }
        true
    }

    /// Makes the strings of the leaf in `page` the builder's, so that more can be added.
    pub(crate) fn resume(&mut self, page: &[u8]) -> Decode<()> {
        let leaf = StringLeaf::parse(page)?;
        self.clear(leaf.first_id);
        self.lengths.reserve(2 * leaf.len);
        self.codes.reserve(BODY_BYTES);
        let mut long = 0;
        for first in (0..leaf.len).step_by(GROUP) {
            let Group { lengths, width, strings } = leaf.group(page, first / GROUP)?;
            let mut at = lengths + stream_len(strings, width);
            for i in 0..strings {
                let len = stream_value(page, lengths, width, i)? as usize;
                let is_long = long < leaf.long && leaf.long_place(page, long)? == first + i;
                long += usize::from(is_long);
                if len > MOST || !self.add(part(page, at, len)?, is_long) {
                    return Err(Bad("a leaf with more strings than fit"));
                }
                at += len;
            }
        }
        Ok(())
    }

    /// Writes the leaf into a page and begins the next one.
    pub(crate) fn finish(&mut self, page: &mut PageBuf, order: GroupOrder) {
        assert!(!self.lengths.is_empty(), "a leaf has strings");
        let groups = self.lengths.len().div_ceil(GROUP);
        let mut at = match order {
            GroupOrder::Upwards => BODY + HEAD + 2 * groups + 2 * self.long.len(),
            GroupOrder::Downwards => PAGE_BYTES,
        };
        page.clear();
        let mut words = Vec::with_capacity(2 * groups);
        let mut data = Vec::with_capacity(BODY_BYTES);
        let mut codes = &self.codes[..];
        for group in self.lengths.chunks(GROUP) {
            let widest = group.iter().max().copied().unwrap_or(0);
            let code = width_code(widest.into());
            let lengths: Vec<u64> = group.iter().map(|&l| l.into()).collect();
            data.clear();
            pack_stream(&lengths, WIDTHS[code].into(), &mut data);
            let (mine, rest) = codes.split_at(group.iter().map(|&l| l as usize).sum());
            data.extend_from_slice(mine);
            codes = rest;
            let begin = if order == GroupOrder::Downwards { at - data.len() } else { at };
            page[begin..begin + data.len()].copy_from_slice(&data);
            words.extend((begin as u16 | (code as u16) << 13).to_le_bytes());
            at = if order == GroupOrder::Downwards { begin } else { begin + data.len() };
        }
        let mut out = Vec::with_capacity(BODY_BYTES);
        store(&mut out, self.first_id, 8);
        store(&mut out, self.long.len() as u64, 2);
        store(&mut out, 0, 2);
        out.extend(words);
        self.long.iter().for_each(|&l| store(&mut out, l.into(), 2));
        assert!(codes.is_empty(), "each string is in its group");
        match order {
            GroupOrder::Upwards => assert!(at <= PAGE_BYTES, "the groups fit into the page"),
            GroupOrder::Downwards => assert!(BODY + out.len() <= at, "groups and their words lie apart"),
        }
        debug_assert!(self.long.is_sorted_by(|a, b| a < b), "long strings are found by bisection");
        page.body_mut()[..out.len()].copy_from_slice(&out);
        page.set_header(PageKind::StringLeaf, 0, self.lengths.len() as u16);
        self.clear(self.first_id + self.lengths.len() as u64);
    }

    fn clear(&mut self, first_id: u64) {
        self.lengths.clear();
        self.codes.clear();
        self.long.clear();
        (self.first_id, self.done, self.widest) = (first_id, 0, 0);
    }
}

/// Bytes of the lengths of a group.
fn lengths_len(n: usize, widest: usize) -> usize {
    stream_len(n, WIDTHS[width_code(widest)].into())
}

/// A leaf found in a page.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StringLeaf {
    /// Id of the first string.
    pub first_id: u64,
    /// Number of strings.
    pub len: usize,
    long: usize,
}

/// Where the bytes of a string lie in its page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StringPlace {
    pub at: usize,
    pub len: usize,
    pub is_long: bool,
}

/// Where a group lies: its lengths, then its strings.
struct Group {
    lengths: usize,
    /// Bits of a length.
    width: u32,
    strings: usize,
}

impl StringLeaf {
    /// Reads the head of the leaf in `page`.
    pub(crate) fn parse(page: &[u8]) -> Decode<StringLeaf> {
        let head = header(page);
        if head.kind() != PageKind::StringLeaf as u8 || head.count() == 0 {
            return Err(Bad("not a leaf of a string tree"));
        }
        let leaf = StringLeaf {
            first_id: load(page, BODY, 8)?,
            len: head.count() as usize,
            long: load_u16(page, BODY + 8)?,
        };
        match load_u16(page, BODY + 10)? {
            0 => Ok(leaf),
            _ => Err(Bad("a string leaf with fields this version does not write")),
        }
    }

    /// The strings that stand elsewhere: their ids, and where their references are.
    pub(crate) fn long_places<'p>(
        &'p self,
        page: &'p [u8],
    ) -> impl Iterator<Item = Decode<(u64, Range<usize>)>> + 'p {
        let of =
            |i| self.place(page, i).map(|place| place.is_long.then_some((i, place.at..place.at + place.len)));
        let long = (0..self.len).filter_map(move |i| of(i).transpose());
        long.map(|place| place.map(|(i, at)| (self.first_id + i as u64, at)))
    }

    /// Finds the bytes of string `i` of the leaf.
    pub(crate) fn place(&self, page: &[u8], i: usize) -> Decode<StringPlace> {
        if i >= self.len {
            return Err(Bad("a leaf ends before the string that should be in it"));
        }
        let (group, index) = (self.group(page, i / GROUP)?, i % GROUP);
        let length = |i: usize| stream_value(page, group.lengths, group.width, i).map(|len| len as usize);
        let mut at = group.lengths + stream_len(group.strings, group.width);
        for before in 0..index {
            at += length(before)?;
        }
        let len = length(index)?;
        part(page, at, len)?;
        Ok(StringPlace { at, len, is_long: self.is_long(page, i)? })
    }

    fn group(&self, page: &[u8], group: usize) -> Decode<Group> {
        let word = load_u16(page, BODY + HEAD + 2 * group)?;
        Ok(Group {
            lengths: word & 0x1fff,
            width: WIDTHS[word >> 13].into(),
            strings: GROUP.min(self.len - group * GROUP),
        })
    }

    /// Position in the leaf of the long string number `i`.
    fn long_place(&self, page: &[u8], i: usize) -> Decode<usize> {
        load_u16(page, BODY + HEAD + 2 * self.len.div_ceil(GROUP) + 2 * i)
    }

    /// True when the bytes of string `i` are a reference.
    fn is_long(&self, page: &[u8], i: usize) -> Decode<bool> {
        let (mut lo, mut hi) = (0, self.long);
        while lo < hi {
            let middle = (lo + hi) / 2;
            match self.long_place(page, middle)?.cmp(&i) {
                std::cmp::Ordering::Equal => return Ok(true),
                std::cmp::Ordering::Less => lo = middle + 1,
                std::cmp::Ordering::Greater => hi = middle,
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn strings() -> impl Strategy<Value = Vec<(Vec<u8>, bool)>> {
        let bytes = prop_oneof![
            9 => prop::collection::vec(any::<u8>(), 0..20),
            1 => prop::collection::vec(any::<u8>(), 0..=MOST),
        ];
        prop::collection::vec((bytes, prop::bool::weighted(0.1)), 1..900)
    }

    fn pack(strings: &[(Vec<u8>, bool)]) -> (PageBuf, usize) {
        let mut builder = StringLeafBuilder { first_id: 77, ..Default::default() };
        let taken = strings.iter().take_while(|(s, long)| builder.add(s, *long)).count();
        let mut page = PageBuf::new();
        let order = [GroupOrder::Upwards, GroupOrder::Downwards][strings.len() % 2];
        builder.finish(&mut page, order);
        assert_eq!((builder.first_id(), builder.len()), (77 + taken as u64, 0));
        (page, taken)
    }

    proptest! {
        #[test]
        fn strings_are_found(strings in strings()) {
            let (page, taken) = pack(&strings);
            prop_assert!(taken > 0);
            let leaf = StringLeaf::parse(&page).unwrap();
            prop_assert_eq!((leaf.first_id, leaf.len), (77, taken));
            for (i, (s, long)) in strings[..taken].iter().enumerate() {
                let p = leaf.place(&page, i).unwrap();
                prop_assert_eq!((&page[p.at..p.at + p.len], p.is_long), (&s[..], *long));
            }
            prop_assert!(leaf.place(&page, taken).is_err());
        }

        #[test]
        fn leaves_grow(strings in strings(), cut: prop::sample::Index) {
            let (_, taken) = pack(&strings);
            let first = cut.index(taken) + 1;
            let mut builder = StringLeafBuilder { first_id: 77, ..Default::default() };
            strings[..first].iter().for_each(|(s, long)| assert!(builder.add(s, *long)));
            let (mut page, mut grown, mut whole) = (PageBuf::new(), PageBuf::new(), PageBuf::new());
            builder.finish(&mut page, GroupOrder::Downwards);
            builder.resume(&page).unwrap();
            strings[first..taken].iter().for_each(|(s, long)| assert!(builder.add(s, *long)));
            builder.finish(&mut grown, GroupOrder::Downwards);
            builder.clear(77);
            strings[..taken].iter().for_each(|(s, long)| assert!(builder.add(s, *long)));
            builder.finish(&mut whole, GroupOrder::Downwards);
            prop_assert!(grown[..] == whole[..]);
            // Groups that were complete did not move.
            let complete = first / GROUP;
            if complete > 0 {
                let word = u16::from_le_bytes([page[BODY + HEAD + 2 * complete - 2], page[BODY + HEAD + 2 * complete - 1]]);
                let from = usize::from(word & 0x1fff);
                prop_assert!(page[from..] == grown[from..]);
            }
        }

        #[test]
        fn damaged_bytes_never_panic(strings in strings(), flips in prop::collection::vec((0usize..400, any::<u8>()), 1..20)) {
            let (mut page, taken) = pack(&strings);
            flips.iter().for_each(|&(at, b)| page.body_mut()[at] = b);
            if let Ok(leaf) = StringLeaf::parse(&page) {
                for i in 0..taken {
                    if let Ok(p) = leaf.place(&page, i) {
                        prop_assert!(p.at + p.len <= page.len());
                    }
                }
            }
        }
    }

    #[test]
    fn places_of_short_strings_take_less_than_a_byte() {
        let strings: Vec<_> = (0..2000).map(|i| (vec![b'x'; 4 + i % 9], false)).collect();
        let (_, taken) = pack(&strings);
        let bytes: usize = strings[..taken].iter().map(|s| s.0.len()).sum();
        let each = (BODY_BYTES - bytes) as f64 / taken as f64;
        assert!(each < 0.7, "{each} bytes a string beside its codes");
    }
}
