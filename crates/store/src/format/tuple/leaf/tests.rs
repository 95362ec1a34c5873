//! A leaf against a sorted vector of rows; damaged leaves.

use super::*;
use crate::format::tuple::leaf_build::LeafBuilder;
use crate::page::PageBuf;
use crate::tree::tuple::changes::Changes;
use crate::tree::tuple::leaf_change::{LeafChange, LeafChanger};
use proptest::prelude::*;

type Row = [u64; 4];

fn rows() -> impl Strategy<Value = (usize, Vec<Row>)> {
    let id = prop_oneof![
        4 => (0u64..1 << 20).prop_map(|v| 1 << 60 | v),
        2 => (0u64..4, 0u64..1 << 16).prop_map(|(lang, v)| 4 << 60 | lang << 44 | v),
        1 => any::<u64>(),
    ];
    let narrow = prop_oneof![Just(5u64), 0u64..4, Just(u64::MAX)];
    let row = (narrow, (0u64..200), id, 0u64..3).prop_map(|(a, b, c, d)| [a, b, c, d]);
    (1usize..=4, prop::collection::vec(row, 1..700)).prop_map(|(arity, mut rows)| {
        rows.iter_mut().for_each(|r| r[arity..].fill(0));
        rows.sort_unstable();
        rows.dedup();
        (arity, rows)
    })
}

/// Packs what fits into one leaf.
fn pack(arity: usize, rows: &[Row]) -> (PageBuf, usize) {
    let columns: Vec<Vec<u64>> = (0..arity).map(|c| rows.iter().map(|r| r[c]).collect()).collect();
    let mut builder = LeafBuilder::new(arity);
    let mut done = 0;
    while done < rows.len() {
        let rest: Vec<&[u64]> = columns.iter().map(|c| &c[done..]).collect();
        let taken = builder.add(&rest);
        done += taken;
        if taken < BLOCK {
            break;
        }
    }
    let mut page = PageBuf::new();
    builder.finish(&mut page);
    (page, done)
}

proptest! {
    #[test]
    fn agrees_with_a_vector((arity, rows) in rows(), keys in prop::collection::vec((any::<prop::sample::Index>(), -1i64..2, 0usize..=4), 1..30)) {
        let (page, taken) = pack(arity, &rows);
        prop_assert!(taken > 0);
        let rows = &rows[..taken];
        let mut cursor = LeafCursor::new(arity);
        cursor.open(&page).unwrap();
        prop_assert_eq!(cursor.len(), rows.len());
        for c in 0..arity {
            let mut column = Vec::new();
            for from in (0..taken).step_by(BLOCK) {
                cursor.append(&page, c, from, taken.min(from + BLOCK), &mut column).unwrap();
            }
            prop_assert_eq!(column, rows.iter().map(|r| r[c]).collect::<Vec<_>>());
        }
        for (pick, off, m) in keys {
            let m = m.min(arity);
            let mut key = *pick.get(rows);
            if m > 0 {
                key[m - 1] = key[m - 1].wrapping_add_signed(off);
            }
            let lower = if m == 0 { 0 } else { rows.partition_point(|r| r[..m] < key[..m]) };
            let upper = rows.partition_point(|r| r[..m] <= key[..m]);
            for from in [0, lower / 2, lower] {
                prop_assert_eq!(cursor.lower(&page, from, &key[..m]), Ok(if m == 0 { from } else { lower }));
                prop_assert_eq!(cursor.upper(&page, from, &key[..m]), Ok(upper));
            }
        }
    }

    #[test]
    fn damaged_bytes_never_panic((arity, rows) in rows(), flips in prop::collection::vec((0usize..2000, any::<u8>()), 1..20), key in prop::array::uniform4(any::<u64>())) {
        let (mut page, taken) = pack(arity, &rows);
        for (at, byte) in flips {
            page.body_mut()[at] = byte;
        }
        let mut cursor = LeafCursor::new(arity);
        if cursor.open(&page).is_ok() {
            for key in [&key, &rows[taken / 2]] {
                let _ = cursor.lower(&page, 0, &key[..arity]);
                let _ = cursor.upper(&page, 0, &key[..arity]);
            }
            let mut out = Vec::new();
            for c in 0..arity {
                // The damage may be a tail.
                let mut from = 0;
                while from < cursor.len() {
                    let to = cursor.stretch(from, cursor.len());
                    let _ = cursor.append(&page, c, from, to, &mut out);
                    let _ = cursor.append(&page, c, from, from + 1, &mut out);
                    from = to;
                }
            }
        }
    }
}

#[test]
fn leaves_are_packed_full() {
    let rows: Vec<Row> =
        (0..6000u64).map(|i| [7, (1 << 60) | (i * 2 + i % 2), (i * 0x9E37_79B9) & 0x3f_ffff, 1]).collect();
    let (page, taken) = pack(4, &rows);
    let used = page.iter().rposition(|&b| b != 0).unwrap();
    assert!(used > 8192 - 64, "{used} bytes used for {taken} rows");
    assert!(8192.0 / (taken as f64) < 3.4, "{} bytes a row", 8192.0 / taken as f64);
}

/// A leaf with a tail made of random edits, and the rows it stands for.
fn edited(arity: usize, rows: &[Row], picks: &[(prop::sample::Index, u8)]) -> Option<(PageBuf, Vec<Row>)> {
    let most = 1.max(rows.len() * 3 / 4);
    let (mut page, taken) = pack(arity, &rows[..most]);
    let mut model = rows[..taken].to_vec();
    let mut changer = LeafChanger::new(arity);
    for (pick, what) in picks {
        let mut row = *pick.get(rows);
        if what % 3 == 0 {
            row[arity - 1] = row[arity - 1].wrapping_add(u64::from(what / 3));
        }
        let mut changes = Changes::new(arity);
        changes.push(&row[..arity], what % 2 == 0);
        let mut effective = [false];
        let there = model.binary_search(&row);
        match changer.change(&page, &changes, 0..1, &mut effective).unwrap() {
            LeafChange::Nothing => assert_eq!(there.is_ok(), what % 2 == 0),
            LeafChange::Tail => changer.write_tail(&mut page, &changes).unwrap(),
            LeafChange::Merged => return None,
        }
        assert_eq!(effective[0], there.is_ok() != (what % 2 == 0));
        match (there, what % 2 == 0) {
            (Ok(i), false) => drop(model.remove(i)),
            (Err(i), true) => model.insert(i, row),
            _ => {}
        }
    }
    Some((page, model))
}

proptest! {
    #[test]
    fn tails_are_seen((arity, rows) in rows(), picks in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40), keys in prop::collection::vec((any::<prop::sample::Index>(), 0usize..=4), 1..20)) {
        let Some((page, model)) = edited(arity, &rows, &picks) else { return Ok(()) };
        let mut cursor = LeafCursor::new(arity);
        cursor.open(&page).unwrap();
        prop_assert_eq!(cursor.len(), model.len());
        for c in 0..arity {
            let (mut column, mut at) = (Vec::new(), 0);
            while at < model.len() {
                let to = cursor.stretch(at, model.len());
                cursor.append(&page, c, at, to, &mut column).unwrap();
                at = to;
            }
            prop_assert_eq!(column, model.iter().map(|r| r[c]).collect::<Vec<_>>());
        }
        for (pick, m) in keys {
            let m = m.min(arity);
            let key = &pick.get(&rows)[..m];
            let lower = model.partition_point(|r| &r[..m] < key);
            let upper = model.partition_point(|r| &r[..m] <= key);
            for from in [0, lower / 2, lower] {
                prop_assert_eq!(cursor.lower(&page, from, key), Ok(if m == 0 { from } else { lower }));
                prop_assert_eq!(cursor.upper(&page, from, key), Ok(upper));
                let found = if m == 0 { from } else { lower };
                prop_assert_eq!(cursor.find(&page, from, key, key), Ok((found, upper)));
            }
        }
    }

    #[test]
    fn damaged_tails_never_panic((arity, rows) in rows(), picks in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40), flips in prop::collection::vec((0usize..400, any::<u8>()), 1..20), key in prop::array::uniform4(any::<u64>())) {
        let Some((mut page, model)) = edited(arity, &rows, &picks) else { return Ok(()) };
        let end = page.len();
        for (at, byte) in flips {
            page[if at < 8 { 32 + at } else { end - at }] = byte;
        }
        let mut cursor = LeafCursor::new(arity);
        if cursor.open(&page).is_ok() {
            for key in [&key, model.first().unwrap_or(&key)] {
                let from = cursor.lower(&page, 0, &key[..arity]).unwrap_or(0);
                let _ = cursor.find(&page, from, &key[..arity], &key[..arity]);
            }
            let (mut out, mut at) = (Vec::new(), 0);
            while at < cursor.len() {
                let to = cursor.stretch(at, cursor.len());
                let _ = cursor.append(&page, arity - 1, at, to, &mut out);
                at = to;
            }
        }
    }
}

#[test]
fn one_row_changes_few_bytes() {
    let rows: Vec<Row> =
        (0..2000u64).map(|i| [7, (1 << 60) | (i * 3), (i * 0x9E37_79B9) & 0x3f_ffff, 1]).collect();
    let (mut page, _) = pack(4, &rows);
    let mut changer = LeafChanger::new(4);
    for i in 0..30u64 {
        let mut changes = Changes::new(4);
        changes.push(&[7, (1 << 60) | (i * 97 % 500 * 3 + 1), 5, 1], true);
        let LeafChange::Tail = changer.change(&page, &changes, 0..1, &mut [false]).unwrap() else {
            panic!("row {i} did not go to the tail")
        };
        let before = page.clone();
        changer.write_tail(&mut page, &changes).unwrap();
        let changed = page.iter().zip(before.iter()).filter(|(a, b)| a != b).count();
        assert!(changed <= 34 + 32 + 4, "{changed} bytes changed for row {i}");
    }
}
