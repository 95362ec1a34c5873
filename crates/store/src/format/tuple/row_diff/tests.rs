//! Both kinds of diff, made and applied.

use super::columns::{LeafHead, RowColumns, head, pack, rows};
use super::{apply, in_tail, packed};
use crate::format::tuple::leaf_build::LeafBuilder;
use crate::format::tuple::tail::{self, TAIL_MAX, Tail};
use crate::page::PageBuf;
use crate::page::image::SKIPPED;
use crate::page::{self, PageId, TreeId};
use proptest::prelude::*;
use std::collections::BTreeSet;

type Rows = BTreeSet<[u64; 3]>;

fn leaf(rows: &Rows) -> PageBuf {
    let columns: RowColumns = std::array::from_fn(|c| match c {
        0..3 => rows.iter().map(|r| r[c]).collect(),
        _ => Vec::new(),
    });
    let mut like = PageBuf::new();
    page::mark(&mut like, PageId(5), TreeId(7), 9);
    let mut made = pack(&like, 3, &columns).expect("few rows fit");
    page::mark(&mut made, PageId(5), TreeId(7), 9);
    made
}

fn round_trip(old: &PageBuf, new: &PageBuf) -> usize {
    let mut d = Vec::new();
    assert!(packed::diff(old, new, usize::MAX / 2, &mut d));
    let mut back = old.clone();
    apply(&mut back, &[&d]).unwrap();
    assert_eq!(back[SKIPPED..], new[SKIPPED..]);
    d.len()
}

fn some(n: u64) -> Rows {
    (0..n).map(|i| [i / 50, i * 0x9E37_79B9 % 100_000, i]).collect()
}

#[test]
fn a_row_in_the_midst_of_many_is_a_few_bytes() {
    let old = some(700);
    let mut new = old.clone();
    new.insert([3, 77_777, 5]);
    assert!(round_trip(&leaf(&old), &leaf(&new)) <= 20);
    new.remove(&old.iter().nth(400).copied().unwrap());
    assert!(round_trip(&leaf(&old), &leaf(&new)) <= 24);
    assert_eq!(round_trip(&leaf(&old), &leaf(&old)), 5);
}

#[test]
fn what_the_tail_holds_is_known() {
    let old = some(300);
    let (mut page, mut rows) = (leaf(&old), old.clone());
    for i in 0..10u64 {
        let row = [i % 6, 100_000 + i, i];
        let tail = Tail::parse(&page, 3, old.len()).unwrap();
        let position = old.iter().filter(|r| **r < row).count();
        let at = tail.lower(&page, &row).unwrap();
        tail::add(&mut page, &tail, at, &row, position, false);
        rows.insert(row);
    }
    assert_eq!(round_trip(&page, &leaf(&rows)), 5);
    assert!(!packed::diff(&leaf(&rows), &page, usize::MAX / 2, &mut Vec::new()), "a tail is not packed");
}

/// Rows come and go in the tail, some of them rows of the blocks; every step is a few bytes.
#[test]
fn changes_of_the_tail_are_few_bytes() {
    let old = some(300);
    let (mut page, mut random) = (leaf(&old), 1u64);
    let blocks: Vec<[u64; 3]> = old.iter().copied().collect();
    let mut lens = BTreeSet::new();
    for _ in 0..600 {
        snowmelt_base::random::lcg(&mut random);
        let (before, pick) = (page.clone(), (random >> 33) as usize);
        let tail = Tail::parse(&page, 3, 300).unwrap();
        lens.insert(tail.len);
        if pick % 5 < 2 && tail.len > 0 {
            tail::remove(&mut page, &tail, pick / 5 % tail.len);
        } else if tail.len < TAIL_MAX {
            let dead = pick.is_multiple_of(3);
            let row = if dead {
                blocks[pick % 300]
            } else {
                [pick as u64 % 6, 100_000 + random % 1000, 1 << 57 | random >> 40]
            };
            let at = tail.lower(&page, &row).unwrap();
            if at < tail.len && tail.compare(&page, at, &row).unwrap().is_eq() {
                continue;
            }
            let position = old.iter().filter(|r| **r < row).count();
            tail::add(&mut page, &tail, at, &row, position, dead);
        }
        let mut d = Vec::new();
        assert!(in_tail::diff(&before, &page, &mut d) && d.len() <= 18, "{} bytes", d.len());
        let mut back = before.clone();
        apply(&mut back, &[&d]).unwrap();
        assert_eq!(back[SKIPPED..], page[SKIPPED..]);
    }
    assert!(lens.len() > 20, "tails of all lengths: {lens:?}");
    assert!(!in_tail::diff(&page, &leaf(&some(301)), &mut Vec::new()), "other blocks");
}

/// Changes of the tail and of the blocks in turns, made one by one and all at once.
#[test]
fn changes_that_follow_each_other_are_one() {
    let mut rows = some(300);
    let (begin, mut random) = (leaf(&rows), 7u64);
    let (mut page, mut diffs) = (begin.clone(), Vec::new());
    for step in 0..200 {
        let before = page.clone();
        snowmelt_base::random::lcg(&mut random);
        let pick = (random >> 33) as usize;
        let LeafHead { block_rows, .. } = head(&page).unwrap();
        let blocks = rows_of_blocks(&page);
        let tail = Tail::parse(&page, 3, block_rows).unwrap();
        let dead = pick.is_multiple_of(3);
        let row =
            if dead { blocks[pick % blocks.len()] } else { [pick as u64 % 6, 100_000 + random % 5000, 9] };
        let at = tail.lower(&page, &row).unwrap();
        let known = at < tail.len && tail.compare(&page, at, &row).unwrap().is_eq();
        if known {
            let was_dead = tail.is_dead(at);
            tail::remove(&mut page, &tail, at);
            assert!(if was_dead { rows.insert(row) } else { rows.remove(&row) });
        } else if dead || !blocks.contains(&row) {
            let position = blocks.iter().filter(|r| **r < row).count();
            tail::add(&mut page, &tail, at, &row, position, dead);
            assert!(if dead { rows.remove(&row) } else { rows.insert(row) });
        }
        let mut d = Vec::new();
        if step % 20 == 19 {
            page = leaf(&rows);
            assert!(packed::diff(&before, &page, usize::MAX / 2, &mut d));
        } else {
            assert!(in_tail::diff(&before, &page, &mut d));
        }
        diffs.push(d);
    }
    let diffs: Vec<&[u8]> = diffs.iter().map(Vec::as_slice).collect();
    let mut one_by_one = begin.clone();
    diffs.iter().for_each(|d| apply(&mut one_by_one, &[d]).unwrap());
    assert_eq!(one_by_one[SKIPPED..], page[SKIPPED..]);
    for cut in [1, 50, 63, 100] {
        let mut at_once = begin.clone();
        apply(&mut at_once, &diffs[..cut]).unwrap();
        apply(&mut at_once, &diffs[cut..]).unwrap();
        assert_eq!(at_once[SKIPPED..], page[SKIPPED..]);
    }
    assert!(apply(&mut begin.clone(), &diffs[1..]).is_err(), "one is missing");
}

fn rows_of_blocks(page: &PageBuf) -> Vec<[u64; 3]> {
    let mut page = page.clone();
    let LeafHead { block_rows, .. } = head(&page).unwrap();
    while let tail = Tail::parse(&page, 3, block_rows).unwrap()
        && tail.len > 0
    {
        tail::remove(&mut page, &tail, 0);
    }
    let (_, columns) = rows(&page).unwrap();
    (0..columns[0].len()).map(|i| std::array::from_fn(|c| columns[c][i])).collect()
}

/// A diff by rows of a leaf whose rows are in disorder would not give the new page.
#[test]
fn a_leaf_in_disorder_is_told_in_bytes() {
    let rows = some(100);
    let mut columns: [Vec<u64>; 3] = std::array::from_fn(|c| rows.iter().map(|r| r[c]).collect());
    columns.iter_mut().for_each(|column| column.swap(3, 90));
    let (mut builder, mut old) = (LeafBuilder::new(3), PageBuf::new());
    assert_eq!(builder.add(&[&columns[0], &columns[1], &columns[2]]), 100);
    builder.finish(&mut old);
    page::mark(&mut old, PageId(5), TreeId(7), 9);
    assert!(!packed::diff(&old, &leaf(&some(101)), usize::MAX / 2, &mut Vec::new()));
}

#[test]
fn another_old_page_is_noticed() {
    let (old, mut new) = (some(300), some(300));
    new.insert([3, 5, 5]);
    let mut d = Vec::new();
    assert!(packed::diff(&leaf(&old), &leaf(&new), 4096, &mut d));
    let mut other = old.clone();
    other.pop_last();
    assert!(apply(&mut leaf(&other), &[&d]).is_err());
}

proptest! {
    #[test]
    fn any_rows_round_trip(
        old in prop::collection::btree_set([0u64..9, 0..1 << 40, 0..300], 1..400),
        new in prop::collection::btree_set([0u64..9, 0..1 << 40, 0..300], 1..400),
        share in 0usize..400,
    ) {
        let new: Rows = new.into_iter().chain(old.iter().take(share).copied()).take(500).collect();
        round_trip(&leaf(&old), &leaf(&new));
    }

    #[test]
    fn any_bytes_are_an_error_or_a_page(
        how in 0u8..4,
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        flips in prop::collection::vec((0usize..200, any::<u8>()), 0..3),
    ) {
        let bytes: Vec<u8> = std::iter::once(how).chain(bytes).collect();
        let mut page = leaf(&some(200));
        flips.iter().for_each(|(at, b)| page[SKIPPED + at] ^= b);
        let _ = apply(&mut page, &[&bytes]);
    }
}
