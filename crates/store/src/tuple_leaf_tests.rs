//! A leaf against a sorted vector of rows; damaged leaves.

use super::*;
use crate::page::PageBuf;
use crate::tuple_leaf_build::LeafBuilder;
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
                for from in (0..cursor.len()).step_by(BLOCK) {
                    let _ = cursor.append(&page, c, from, cursor.len().min(from + BLOCK), &mut out);
                    let _ = cursor.append(&page, c, from, from + 1, &mut out);
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

#[test]
fn a_tail_is_refused() {
    let (mut page, _) = pack(2, &[[1, 2, 0, 0]]);
    page.body_mut()[4] = 1;
    assert_eq!(
        LeafCursor::new(2).open(&page),
        Err(Bad("a leaf with a tail, which this version does not write"))
    );
}
