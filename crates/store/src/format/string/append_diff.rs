//! Changes that append to a leaf of a string tree, as strings instead of bytes: the group of the
//! new strings moves as a whole, so no byte of it is where it was, and strings that are alike are
//! hard to tell apart by their bytes.
//!
//! | bytes  | field                                                              |
//! |--------|--------------------------------------------------------------------|
//! | 1      | 3                                                                  |
//! | 4      | low half of the XXH3-64 of the new page from byte 24 on            |
//! | varint | each string that came: length, 1 bit to the left; bit 0: a reference |
//! | …      | its bytes                                                          |
//!
//! The page is made anew by [`StringLeafBuilder`], its groups from the end downwards.
//! Invariant: a diff is made only where this gives the very bytes of the new page.

use crate::format::encoding::{Bad, Decode, part};
use crate::format::string::leaf::{GroupOrder, MOST, StringLeaf, StringLeafBuilder};
use crate::format::varint::{put, take};
use crate::page::image::SKIPPED;
use crate::page::image::check;
use crate::page::{PageBuf, PageKind, header, offset};

/// First byte of a diff.
pub(crate) const APPENDED: u8 = 3;

/// Appends the difference between two leaves to `out`. False when the new one is not the old
/// one with a few strings more; what was appended is useless then.
pub(crate) fn diff(old: &[u8], new: &[u8], out: &mut Vec<u8>) -> bool {
    let leaf = |page: &[u8]| header(page).kind() == PageKind::StringLeaf as u8;
    leaf(old)
        && leaf(new)
        && header(old).tree() == header(new).tree()
        && try_diff(old, new, out).unwrap_or(false)
}

fn try_diff(old: &[u8], new: &[u8], out: &mut Vec<u8>) -> Decode<bool> {
    let (was, is) = (StringLeaf::parse(old)?, StringLeaf::parse(new)?);
    if (was.first_id, true) != (is.first_id, was.len < is.len) {
        return Ok(false);
    }
    out.push(APPENDED);
    out.extend(check(new).to_le_bytes());
    let begin = out.len();
    for i in was.len..is.len {
        let place = is.place(new, i)?;
        put(out, (place.len as u64) << 1 | u64::from(place.is_long));
        out.extend_from_slice(part(new, place.at, place.len)?);
    }
    let mut builder = StringLeafBuilder::default();
    builder.resume(old)?;
    add(&mut builder, &out[begin..])?;
    Ok(finish(&mut builder, old)[SKIPPED..] == new[SKIPPED..])
}

/// Applies successive changes, all of appended strings: the leaf is built once, so only the
/// checksum of the last change can be compared.
pub(crate) fn apply(page: &mut PageBuf, diffs: &[&[u8]]) -> Decode<()> {
    let mut builder = StringLeafBuilder::default();
    builder.resume(page)?;
    let mut wanted = [0; 4];
    for diff in diffs {
        let parts = diff.strip_prefix(&[APPENDED]).and_then(|rest| rest.split_first_chunk::<4>());
        let (check, strings) = parts.ok_or(Bad("a change ends too early"))?;
        wanted = *check;
        add(&mut builder, strings)?;
    }
    *page = finish(&mut builder, page);
    if check(page) != u32::from_le_bytes(wanted) {
        return Err(Bad("strings of a leaf that do not give the page they gave before"));
    }
    Ok(())
}

fn add(builder: &mut StringLeafBuilder, mut strings: &[u8]) -> Decode<()> {
    while !strings.is_empty() {
        let word = take(&mut strings)?;
        let len = usize::try_from(word >> 1).ok().filter(|len| *len <= MOST);
        let split = len.and_then(|len| strings.split_at_checked(len));
        let (string, rest) = split.ok_or(Bad("a string of a leaf that is too long"))?;
        if !builder.add(string, word & 1 == 1) {
            return Err(Bad("more strings than fit into a leaf"));
        }
        strings = rest;
    }
    Ok(())
}

/// The leaf, of the same tree as the old one.
fn finish(builder: &mut StringLeafBuilder, old: &[u8]) -> PageBuf {
    let mut page = PageBuf::new();
    builder.finish(&mut page, GroupOrder::Downwards);
    page[offset::TREE..offset::TREE + 4].copy_from_slice(&old[offset::TREE..offset::TREE + 4]);
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{self, PageId, TreeId};
    use proptest::prelude::*;

    fn leaf(strings: &[(Vec<u8>, bool)], order: GroupOrder) -> (PageBuf, usize) {
        let (mut builder, mut page) = (StringLeafBuilder::default(), PageBuf::new());
        let taken = strings.iter().take_while(|(s, long)| builder.add(s, *long)).count();
        builder.finish(&mut page, order);
        page::mark(&mut page, PageId(5), TreeId(7), 9);
        (page, taken)
    }

    fn applied(old: &PageBuf, diffs: &[&[u8]]) -> Decode<PageBuf> {
        let mut page = old.clone();
        apply(&mut page, diffs).map(|()| page)
    }

    #[test]
    fn a_string_costs_its_bytes_and_a_few() {
        let strings: Vec<_> =
            (0..300).map(|i| (format!("a remark on item {i}").into_bytes(), false)).collect();
        for n in 1..300 {
            let (old, _) = leaf(&strings[..n], GroupOrder::Downwards);
            let (new, _) = leaf(&strings[..=n], GroupOrder::Downwards);
            let mut d = Vec::new();
            assert!(diff(&old, &new, &mut d));
            assert_eq!(d.len(), 6 + strings[n].0.len());
            assert_eq!(applied(&old, &[&d]).unwrap()[SKIPPED..], new[SKIPPED..]);
        }
    }

    #[test]
    fn another_old_page_is_noticed() {
        let strings: Vec<_> = (0..40).map(|i| (vec![b'x'; i], false)).collect();
        let (old, _) = leaf(&strings[..39], GroupOrder::Downwards);
        let (other, _) = leaf(&strings[..38], GroupOrder::Downwards);
        let (new, _) = leaf(&strings, GroupOrder::Downwards);
        let mut d = Vec::new();
        assert!(diff(&old, &new, &mut d));
        assert!(applied(&other, &[&d]).is_err());
        assert!(!diff(&new, &old, &mut Vec::new()), "strings do not go");
        let (upwards, _) = leaf(&strings, GroupOrder::Upwards);
        assert!(!diff(&old, &upwards, &mut Vec::new()), "not what the builder makes");
    }

    proptest! {
        #[test]
        fn strings_that_come_round_trip(
            strings in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..60), prop::bool::weighted(0.1)), 2..300),
            first: prop::sample::Index,
        ) {
            let (new, taken) = leaf(&strings, GroupOrder::Downwards);
            let (old, _) = leaf(&strings[..1 + first.index(taken - 1)], [GroupOrder::Upwards, GroupOrder::Downwards][taken % 2]);
            let mut d = Vec::new();
            prop_assert!(diff(&old, &new, &mut d));
            prop_assert_eq!(&applied(&old, &[&d]).unwrap()[SKIPPED..], &new[SKIPPED..]);
        }

        #[test]
        fn diffs_in_a_row_are_one(lens in prop::collection::vec(0usize..60, 3..60)) {
            let strings: Vec<_> = lens.iter().map(|len| (vec![b'x'; *len], len % 9 == 0)).collect();
            let pages: Vec<PageBuf> = (1..=lens.len()).map(|n| leaf(&strings[..n], GroupOrder::Downwards).0).collect();
            let diffs: Vec<Vec<u8>> = pages.windows(2).map(|w| {
                let mut d = Vec::new();
                assert!(diff(&w[0], &w[1], &mut d));
                d
            }).collect();
            let diffs: Vec<&[u8]> = diffs.iter().map(Vec::as_slice).collect();
            prop_assert!(diffs.windows(2).all(|w| crate::format::leaf_diff::can_follow(w[0], w[1])));
            prop_assert_eq!(&applied(&pages[0], &diffs).unwrap()[SKIPPED..], &pages[lens.len() - 1][SKIPPED..]);
            prop_assert!(applied(&pages[0], &diffs[1..]).is_err(), "one is missing");
        }

        #[test]
        fn any_bytes_are_an_error_or_a_page(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            flips in prop::collection::vec((0usize..200, any::<u8>()), 0..3),
        ) {
            let strings: Vec<_> = (0..50).map(|i| (vec![i; usize::from(i)], false)).collect();
            let (mut page, _) = leaf(&strings, GroupOrder::Downwards);
            flips.iter().for_each(|(at, b)| page[SKIPPED + at] ^= b);
            let bytes: Vec<u8> = std::iter::once(APPENDED).chain(bytes).collect();
            let _ = applied(&page, &[&bytes]);
        }
    }
}
