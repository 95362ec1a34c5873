//! The difference between two states of a page, in few bytes.
//!
//! The new bytes are described from front to back by steps, each *copy* bytes taken from the
//! old page and *changed* bytes given:
//!
//! | bytes             | field                                                                                              |
//! |-------------------|----------------------------------------------------------------------------------------------------|
//! | varint            | copied bytes                                                                                       |
//! | varint            | changed bytes; both 0: no step but a new *shift* follows, zigzag varint                            |
//! | changed           | new byte − old byte (mod 256)                                                                      |
//!
//! The old byte of position i is the one at i + shift (0 at first; outside the page: 0), so
//! that what an insertion moved is copied, not given. Differences instead of bytes make "one
//! more in each of 300 counters" a pattern, which the compression of the record removes. What
//! follows the last step is copied.

use std::ops::Range;

use crate::format::encoding::{Bad, Decode};
use crate::format::varint::{put, take, unzigzag, zigzag};

/// Equal bytes that end a changed stretch: fewer cost less than a new step.
const WORTH_A_STEP: usize = 4;
/// Changed bytes after which the rest may have been moved.
const MAYBE_MOVED: usize = 12;
/// Equal bytes at another shift that prove a move.
const MOVED: usize = 12;

/// Appends the description of `new` given `old` (of the same length) to `out`. False when it
/// would take more than `limit` bytes; what was appended is useless then.
pub fn diff(old: &[u8], new: &[u8], limit: usize, out: &mut Vec<u8>) -> bool {
    assert_eq!(old.len(), new.len(), "only a page of the same size is compared");
    let end = out.len() + limit;
    let mut index = None;
    let (mut at, mut shift) = (0, 0isize);
    loop {
        let copied = equal_run(old, new, at, shift);
        if at + copied == new.len() {
            return out.len() <= end;
        }
        let from = at + copied;
        let (to, moved) = next_equal(old, new, from, shift, &mut index);
        if copied > 0 || to > from {
            put(out, copied as u64);
            put(out, (to - from) as u64);
        }
        out.extend((from..to).map(|i| new[i].wrapping_sub(old_byte(old, i, shift))));
        at = to;
        if let Some(new_shift) = moved {
            shift = new_shift;
            out.extend([0, 0]);
            put(out, zigzag(shift as i64));
        }
        if out.len() > end {
            return false;
        }
    }
}

/// The page that `diff` describes, given the old one.
pub fn apply(old: &[u8], mut diff: &[u8], new: &mut [u8]) -> Decode<()> {
    let (mut at, mut shift) = (0usize, 0isize);
    while !diff.is_empty() {
        let (copied, changed) = (take(&mut diff)? as usize, take(&mut diff)? as usize);
        if copied == 0 && changed == 0 {
            shift = unzigzag(take(&mut diff)?) as isize;
            continue;
        }
        let end = at.checked_add(copied).and_then(|e| e.checked_add(changed)).filter(|e| *e <= new.len());
        let end = end.ok_or(Bad("a change lies beyond the end of the page"))?;
        copy(old, new, at, at + copied, shift);
        let (given, rest) = diff.split_at_checked(changed).ok_or(Bad("a change ends too early"))?;
        for (i, d) in (at + copied..end).zip(given) {
            new[i] = old_byte(old, i, shift).wrapping_add(*d);
        }
        (diff, at) = (rest, end);
    }
    let len = new.len();
    copy(old, new, at, len, shift);
    Ok(())
}

/// Makes the old page the new one by touching only what changed. False when the diff moves
/// bytes: then nothing has happened, and it takes [`apply`] and a second page.
pub fn apply_in_place(page: &mut [u8], diff: &[u8]) -> Decode<bool> {
    // Twice over the diff, so that a page is never left half changed.
    let (mut at, mut steps) = (0usize, diff);
    while !steps.is_empty() {
        let (copied, changed) = (take(&mut steps)? as usize, take(&mut steps)? as usize);
        if copied == 0 && changed == 0 {
            return Ok(false);
        }
        let end = at.checked_add(copied).and_then(|e| e.checked_add(changed)).filter(|e| *e <= page.len());
        at = end.ok_or(Bad("a change lies beyond the end of the page"))?;
        steps = steps.split_at_checked(changed).ok_or(Bad("a change ends too early"))?.1;
    }
    let (mut at, mut steps) = (0usize, diff);
    while !steps.is_empty() {
        at += take(&mut steps)? as usize;
        let changed = take(&mut steps)? as usize;
        let (given, rest) = steps.split_at(changed);
        page[at..at + changed].iter_mut().zip(given).for_each(|(b, d)| *b = b.wrapping_add(*d));
        (steps, at) = (rest, at + changed);
    }
    Ok(true)
}

fn copy(old: &[u8], new: &mut [u8], from: usize, to: usize, shift: isize) {
    match from.checked_add_signed(shift).and_then(|s| old.get(s..s + (to - from))) {
        Some(source) => new[from..to].copy_from_slice(source),
        None => (from..to).for_each(|i| new[i] = old_byte(old, i, shift)),
    }
}

fn old_byte(old: &[u8], at: usize, shift: isize) -> u8 {
    at.checked_add_signed(shift).and_then(|i| old.get(i)).copied().unwrap_or(0)
}

/// Bytes from `at` on that are as in the old page at this shift.
fn equal_run(old: &[u8], new: &[u8], at: usize, shift: isize) -> usize {
    let Some(old) = at.checked_add_signed(shift).and_then(|s| old.get(s..)) else { return 0 };
    let new = &new[at..];
    let n = old.len().min(new.len());
    let whole =
        old[..n].chunks_exact(32).zip(new[..n].chunks_exact(32)).take_while(|(a, b)| a == b).count() * 32;
    whole + old[whole..n].iter().zip(&new[whole..n]).take_while(|(a, b)| a == b).count()
}

/// Where the changed stretch that begins at `from` ends, and the shift from there on if it is
/// another one.
fn next_equal(
    old: &[u8],
    new: &[u8],
    from: usize,
    shift: isize,
    index: &mut Option<Index>,
) -> (usize, Option<isize>) {
    let (mut at, mut looked) = (from + 1, from);
    while at < new.len() {
        let run = equal_run(old, new, at, shift);
        if run >= WORTH_A_STEP || at + run == new.len() {
            return (at, None);
        }
        if at - from >= MAYBE_MOVED {
            let index = index.get_or_insert_with(|| Index::build(old));
            if let Some((to, shift)) = index.find_moved(old, new, looked..at + 1) {
                return (to, Some(shift));
            }
            looked = at + 1;
        }
        at += run + 1;
    }
    (new.len(), None)
}

/// Where in the old page eight bytes stand.
struct Index {
    places: Vec<u16>,
}

impl Index {
    const BITS: u32 = 13;

    fn build(old: &[u8]) -> Index {
        let mut places = vec![u16::MAX; 1 << Self::BITS];
        for (i, window) in old.windows(8).enumerate().rev() {
            places[Self::slot(window)] = i as u16;
        }
        Index { places }
    }

    fn slot(window: &[u8]) -> usize {
        let word = u64::from_le_bytes(window.try_into().expect("eight bytes"));
        (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - Self::BITS)) as usize
    }

    /// The first of these places of the new page whose bytes the old page has elsewhere, and
    /// the shift between them.
    fn find_moved(&self, old: &[u8], new: &[u8], mut places: Range<usize>) -> Option<(usize, isize)> {
        places.find_map(|i| {
            let place = self.places[Self::slot(new.get(i..i + 8)?)] as usize;
            let shift = place as isize - i as isize;
            (place != u16::MAX as usize && equal_run(old, new, i, shift) >= MOVED).then_some((i, shift))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(old: &[u8], new: &[u8]) -> usize {
        let mut d = Vec::new();
        assert!(diff(old, new, usize::MAX / 2, &mut d));
        let mut back = vec![0xEE; new.len()];
        apply(old, &d, &mut back).unwrap();
        assert_eq!(back, new);
        let mut page = old.to_vec();
        if apply_in_place(&mut page, &d).unwrap() {
            assert_eq!(page, new);
        } else {
            assert_eq!(page, old, "a diff that moves bytes is left alone");
        }
        d.len()
    }

    fn page(seed: u64) -> Vec<u8> {
        let mut x = seed | 1;
        (0..8168).map(|_| snowmelt_base::random::xorshift(&mut x) as u8).collect()
    }

    #[test]
    fn small_changes_are_small() {
        let old = page(1);
        assert_eq!(round_trip(&old, &old), 0);
        let mut new = old.clone();
        new[4000] ^= 1;
        assert!(round_trip(&old, &new) <= 4);
        new[0] ^= 1;
        new[8167] ^= 1;
        assert!(round_trip(&old, &new) <= 12);
    }

    #[test]
    fn moved_bytes_are_not_given_again() {
        let old = page(2);
        for at in [0, 100, 8000] {
            let mut new = old.clone();
            new.splice(at..at, *b"inserted");
            new.truncate(8168);
            assert!(round_trip(&old, &new) <= 40, "inserted at {at}: {}", round_trip(&old, &new));
            let mut new = old.clone();
            new.drain(at..at + 9);
            new.resize(8168, 0);
            assert!(round_trip(&old, &new) <= 40, "removed at {at}: {}", round_trip(&old, &new));
        }
    }

    #[test]
    fn one_more_in_each_counter_is_a_pattern() {
        let mut old = page(3);
        old[6000..6900].chunks_exact_mut(3).for_each(|c| c[0] &= 0x7F);
        let mut new = old.clone();
        new[6000..6900].chunks_exact_mut(3).for_each(|c| c[0] += 1);
        let mut d = Vec::new();
        assert!(diff(&old, &new, 4096, &mut d));
        assert!(lz4_flex::block::compress(&d).len() < 40);
    }

    #[test]
    fn a_shift_beyond_all_bytes_copies_zeros() {
        for shift in [i64::MAX, i64::MIN, i64::MIN + 1, 1 << 40] {
            let mut diff = vec![0, 0];
            put(&mut diff, zigzag(shift));
            diff.extend([1, 1, 7]);
            let mut new = [9; 32];
            apply(&[5; 32], &diff, &mut new).unwrap();
            assert!(new[1] == 7 && new.iter().filter(|b| **b == 0).count() == 31, "{shift}: {new:?}");
        }
    }

    #[test]
    fn another_page_is_refused() {
        assert!(!diff(&page(4), &page(9), 4096, &mut Vec::new()));
    }

    proptest! {
        #[test]
        fn any_change_round_trips(old in proptest::collection::vec(0u8..4, 600), new in proptest::collection::vec(0u8..4, 600), from in 0usize..600, n in 0usize..600) {
            round_trip(&old, &new);
            let mut mixed = old.clone();
            let to = (from + n).min(600);
            mixed[from..to].copy_from_slice(&new[from..to]);
            round_trip(&old, &mixed);
            mixed.rotate_left(from);
            round_trip(&old, &mixed);
        }

        #[test]
        fn any_bytes_are_an_error_or_a_page(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let (old, mut new, mut page) = (page(1), vec![0; 8168], page(1));
            match (apply(&old, &bytes, &mut new), apply_in_place(&mut page, &bytes)) {
                (Ok(()), Ok(true)) => prop_assert_eq!(page, new),
                (_, Ok(true)) => prop_assert!(false, "only one of the two takes it"),
                _ => prop_assert_eq!(page, old),
            }
        }
    }
}
