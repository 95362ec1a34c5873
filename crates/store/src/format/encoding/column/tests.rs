//! Every column encoding: round trip, search, size, and damaged bytes.

use super::*;
use proptest::prelude::*;

/// Columns as ids make them, and the extremes.
fn columns() -> impl Strategy<Value = Vec<u64>> {
    let n = 1usize..=BLOCK;
    let mixed = prop_oneof![
        8 => (0u64..1 << 22).prop_map(|v| 3 << 60 | v),
        2 => (0u64..20, 0u64..1 << 22).prop_map(|(lang, v)| (4 << 60) | (lang << 44) | v),
        1 => any::<u64>(),
    ];
    prop_oneof![
        prop::collection::vec(any::<u64>(), n.clone()),
        prop::collection::vec(mixed, n.clone()),
        prop::collection::vec(0u64..5, n.clone()),
        prop::collection::vec(prop_oneof![Just(0), Just(u64::MAX)], n.clone()),
        prop::collection::vec((0u64..900).prop_map(|d| (13 << 60) | (d * 345_600_000)), n.clone()),
        prop::collection::vec(any::<u32>().prop_map(u64::from), n.clone()),
        (any::<u64>(), n.clone()).prop_map(|(v, n)| vec![v; n]),
        (any::<u32>(), prop::collection::vec(0u64..4, n.clone())).prop_map(|(from, steps)| {
            steps
                .iter()
                .scan(u64::from(from), |v, s| {
                    *v += s;
                    Some(*v)
                })
                .collect()
        }),
        (0u64..1 << 60, 1u64..5000, n)
            .prop_map(|(from, step, n)| (0..n as u64).map(|i| from + i * step).collect()),
    ]
}

fn check(values: &[u64], dict: &mut PageDict) -> usize {
    let mut page = vec![0x55; 7];
    encode(values, dict, &mut page);
    let len = page.len() - 7;
    page.extend([0x77; 3]);
    let at = page.len();
    dict.values().iter().for_each(|v| store(&mut page, v - dict.base(), dict.width()));
    let found = DictRef { base: dict.base(), at, width: dict.width(), entries: dict.values().len() };
    let s = Segment::parse(&page, 7, values[0], values.len()).unwrap();
    assert_eq!(s.end, 7 + len);
    let mut column = Column::new();
    s.unpack(&page, &found, values.len(), &mut column).unwrap();
    let mut appended = vec![1];
    column.append(0, values.len(), &mut appended);
    assert_eq!(&appended[1..], values);
    for (i, &v) in values.iter().enumerate() {
        assert_eq!(column.value(i), v);
        if s.random_access() {
            assert_eq!(s.value(&page, &found, i), Ok(v));
        }
        assert_eq!(s.constant().unwrap_or(v), v);
    }
    len
}

proptest! {
    #[test]
    fn round_trips(blocks in prop::collection::vec(columns(), 1..6), sort: bool) {
        let mut dict = PageDict::new();
        for mut values in blocks {
            if sort {
                values.sort_unstable();
            }
            let len = check(&values, &mut dict);
            prop_assert!(len <= 32 + 8 * values.len());
        }
    }

    #[test]
    fn searches_agree_with_a_vector(mut values in columns(), key: u64, pick: prop::sample::Index, cut: prop::sample::Index) {
        values.sort_unstable();
        let n = values.len();
        let mut page = Vec::new();
        let mut dict = PageDict::new();
        encode(&values, &mut dict, &mut page);
        let at = page.len();
        dict.values().iter().for_each(|v| store(&mut page, v - dict.base(), dict.width()));
        let found = DictRef { base: dict.base(), at, width: dict.width(), entries: dict.values().len() };
        let mut column = Column::new();
        Segment::parse(&page, 0, values[0], n).unwrap().unpack(&page, &found, n, &mut column).unwrap();
        let from = cut.index(n);
        for key in [key, *pick.get(&values), pick.get(&values).wrapping_add(1), 0, u64::MAX] {
            prop_assert_eq!(column.lower(from, n, key), from + values[from..].partition_point(|&v| v < key));
            prop_assert_eq!(column.upper(from, n, key), from + values[from..].partition_point(|&v| v <= key));
        }
    }

    #[test]
    fn rows_meet_keys(mut values in columns(), keys in prop::collection::vec((any::<prop::sample::Index>(), -1i64..2), 0..200), others in prop::collection::vec(any::<u64>(), 0..4), cut: (prop::sample::Index, prop::sample::Index)) {
        values.sort_unstable();
        let (from, to) = (cut.0.index(values.len()), cut.1.index(values.len()) + 1);
        let (from, to) = (from.min(to - 1), to);
        let mut keys: Vec<u64> = keys.iter().map(|(at, off)| at.get(&values).wrapping_add_signed(*off)).chain(others).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut page = Vec::new();
        let mut dict = PageDict::new();
        encode(&values, &mut dict, &mut page);
        let at = page.len();
        dict.values().iter().for_each(|v| store(&mut page, v - dict.base(), dict.width()));
        let found = DictRef { base: dict.base(), at, width: dict.width(), entries: dict.values().len() };
        let segment = Segment::parse(&page, 0, values[0], values.len()).unwrap();
        let mut column = Column::new();
        segment.unpack(&page, &found, values.len(), &mut column).unwrap();
        let (mut met, mut next) = (meet::Met::new(), 0);
        column.meet(from, to, &keys, &mut next, &mut met);
        let expected: Vec<(u8, u32)> = (from..to)
            .filter_map(|row| keys.binary_search(&values[row]).ok().map(|k| (row as u8, k as u32)))
            .collect();
        let pairs: Vec<(u8, u32)> = met.rows().iter().copied().zip(met.keys().iter().copied()).collect();
        prop_assert_eq!(&pairs, &expected);
        prop_assert_eq!(next, keys.partition_point(|k| *k < values[to - 1]), "a key that is the last row's may be a later one's");
        let picked: Vec<u64> = met.rows().iter().map(|row| values[usize::from(*row)]).collect();
        let mut out = Vec::new();
        column.pick(met.rows(), &mut out);
        prop_assert_eq!(&out, &picked);
        if segment.random_access() {
            out.clear();
            segment.pick(&page, &found, met.rows(), &mut out).unwrap();
            prop_assert_eq!(&out, &picked);
        }
        // what is done is not found again
        met.retain(|i| expected[i].0.is_multiple_of(2));
        prop_assert!(met.rows().iter().all(|row| row % 2 == 0));
        let again = keys.partition_point(|k| *k <= values[to - 1]);
        let mut next = again;
        column.meet(from, to, &keys, &mut next, &mut met);
        prop_assert!(met.rows().is_empty() && next == again);
    }

    #[test]
    fn damaged_bytes_never_panic(values in columns(), flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), first: u64) {
        let mut page = Vec::new();
        encode(&values, &mut PageDict::new(), &mut page);
        for (at, byte) in flips {
            let at = at.index(page.len());
            page[at] = byte;
        }
        let dict = DictRef { base: first, at: 0, width: 8, entries: 3 };
        if let Ok(s) = Segment::parse(&page, 0, first, values.len()) {
            let mut column = Column::new();
            if s.unpack(&page, &dict, values.len(), &mut column).is_ok() {
                column.lower(0, values.len(), first);
                let mut keys = values.clone();
                keys.sort_unstable();
                keys.dedup();
                let mut met = meet::Met::new();
                column.meet(0, values.len(), &keys, &mut 0, &mut met);
                let _ = s.pick(&page, &dict, met.rows(), &mut Vec::new());
            }
            (0..values.len()).for_each(|i| { let _ = s.value(&page, &dict, i); });
        }
    }
}

/// Encoded size of one block with an empty dictionary.
fn size(values: &[u64]) -> usize {
    check(values, &mut PageDict::new())
}

#[test]
fn each_shape_gets_its_encoding() {
    let n = 128u64;
    assert_eq!(size(&vec![u64::MAX; 128]), 1, "constant");
    assert_eq!(size(&(0..n).collect::<Vec<_>>()), 4, "dense: slope 1, no bits");
    assert_eq!(size(&(0..n).map(|i| (1 << 60) + 7 + i * 11).collect::<Vec<_>>()), 4, "stride");
    assert_eq!(size(&(0..n).map(|i| 2 * i + i % 3).collect::<Vec<_>>()), 4 + 32, "steps of 2 bits");
    let dates: Vec<u64> = (0..n).map(|i| (13 << 60) + (i * 7919 % 900) * 345_600_000).collect();
    assert!(size(&dates) <= 170, "days in milliseconds take 10 bits, not {} bytes", size(&dates));
    let languages: Vec<u64> =
        (0..n).map(|i| 4 << 60 | (i % 20) << 44 | (i * 7_919_777) & 0xff_ffff).collect();
    assert!(
        size(&languages) <= 16 + 20 + 80 + 24 * 16,
        "languages must not cost 60 bits: {}",
        size(&languages)
    );
    let hashes: Vec<u64> = (0..n).map(|i| i * 0x0123_4567_89AB + (i * i * 7919)).collect();
    assert!(size(&hashes) <= 10 + 128 * 7);
    let runs: Vec<u64> = (0..n).map(|i| (i / 60) * 12_345_678).collect();
    assert!(size(&runs) <= 3 + 1 + 3 * 5);
}

#[test]
fn the_dictionary_pays_over_blocks() {
    let mut dict = PageDict::new();
    let classes: Vec<u64> =
        (0..128u64).map(|i| (1 << 60) + (i * 7919 % 13).pow(2) * 65_537 + i * 7919 % 13 % 2).collect();
    check(&classes, &mut dict);
    assert_eq!(dict.values().len(), 13);
    assert_eq!(check(&classes, &mut dict), 2 + 64, "later blocks cost four bits a row");
    let random: Vec<u64> = (0..128u64).map(|i| (i * 0x9E37_79B9) & 0xff_ffff).collect();
    check(&random, &mut dict);
    assert_eq!(dict.values().len(), 13, "what does not use the dictionary leaves nothing in it");
}
