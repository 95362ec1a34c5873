//! Entries of a dictionary, from a sample of a tree's strings.
//!
//! **Pieces** (OnPair; Gargiulo, Venturini, arXiv 2508.02280): the sample is read once, as a
//! sequence of longest entries. Neighbours that have come together often enough become an entry,
//! which is found from there on. How often is enough follows from how fast the dictionary fills.
//!
//! **Words**: those that the sample has at least twice, the ones that cover most bytes first.
//!
//! Memory is bounded: tables of a fixed size count pairs and words, and forget rare ones when they
//! are full. The outcome depends on the sample alone.

use rustc_hash::FxHashMap;

use crate::format::string::entry::{EntrySlot, LONGEST, key, key_len, slot};
use crate::format::string::matcher::{cut, for_each_word, hash};

/// Places in the table of words; 4 MiB.
const WORD_PLACES: usize = 1 << 18;

/// Words it takes.
const MOST_WORDS: usize = WORD_PLACES / 4 * 3;

/// Most places in the table of pairs; 4 MiB.
const PAIR_PLACES: usize = 1 << 19;

/// Places of the table that a pair can have.
const PROBES: usize = 8;

/// Strings of a sample in an order that wanders over all of it.
pub(crate) fn wander<'s>(sample: &[&'s [u8]]) -> impl DoubleEndedIterator<Item = &'s [u8]> {
    let n = sample.len() as u64;
    // The golden ratio spreads multiples evenly; coprime to n they meet each string once.
    let mut step = (n as f64 * 0.618_034) as u64;
    while step > 1 && greatest_divisor(step, n) > 1 {
        step -= 1;
    }
    let step = step.max(1);
    (0..n).map(move |i| sample[(u128::from(i) * u128::from(step) % u128::from(n)) as usize])
}

fn greatest_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Entries so far, and how to find the longest one.
struct GrowingDictionary {
    slots: Vec<EntrySlot>,
    codes: FxHashMap<u128, u32>,
    /// Lengths of the entries that begin with four bytes, from 4 to 7; with eight, from 8 on.
    four: FxHashMap<u32, u16>,
    eight: FxHashMap<u64, u16>,
}

impl GrowingDictionary {
    fn new() -> GrowingDictionary {
        let (codes, four, eight) = Default::default();
        let mut growing = GrowingDictionary { slots: Vec::new(), codes, four, eight };
        (0..=255).for_each(|byte| {
            growing.insert(slot(&[byte]));
        });
        growing
    }

    fn insert(&mut self, slot: EntrySlot) -> u32 {
        let (key, code) = (key(&slot), self.slots.len() as u32);
        self.codes.insert(key, code);
        match key_len(key) {
            len @ 8.. => *self.eight.entry((key >> 64) as u64).or_default() |= 1 << len,
            len @ 4.. => *self.four.entry((key >> 96) as u32).or_default() |= 1 << len,
            _ => {}
        }
        self.slots.push(slot);
        code
    }

    /// The longest entry that a string begins with: its code and its bytes.
    fn longest(&self, string: &[u8]) -> (u32, usize) {
        let window = string.first_chunk().map_or_else(
            || {
                let mut bytes = [0; 16];
                bytes[..string.len()].copy_from_slice(string);
                u128::from_be_bytes(bytes)
            },
            |bytes| u128::from_be_bytes(*bytes),
        );
        let most = string.len().min(LONGEST) as u32;
        let within = |lengths: Option<&u16>| lengths.map_or(0, |l| u32::from(*l) & ((2 << most) - 1));
        let short = 0b1100 & ((2u32 << most) - 1);
        let sets = [
            within(self.eight.get(&((window >> 64) as u64))),
            within(self.four.get(&((window >> 96) as u32))),
            short,
        ];
        for mut lengths in sets {
            while lengths != 0 {
                let len = lengths.ilog2();
                if let Some(code) = self.codes.get(&cut(window, len as usize)) {
                    return (*code, len as usize);
                }
                lengths &= !(1 << len);
            }
        }
        (u32::from(string[0]), 1)
    }
}

/// Counts of pairs of codes, of the more frequent ones when there are too many.
struct Pairs(Vec<u64>);

impl Pairs {
    /// Counts a pair once more, up to 255; returns the count.
    fn count(&mut self, pair: (u32, u32)) -> u32 {
        let wanted = (u64::from(pair.0) << 17 | u64::from(pair.1)) + 1;
        let first = hash(u128::from(wanted) << 64, self.0.len());
        let mut rarest = first;
        for at in (first..first + PROBES).map(|at| at % self.0.len()) {
            if self.0[at] >> 8 == wanted {
                self.0[at] += u64::from(self.0[at] & 255 < 255);
                return (self.0[at] & 255) as u32;
            }
            if self.0[at] & 255 < self.0[rarest] & 255 {
                rarest = at;
            }
            if self.0[at] == 0 {
                break;
            }
        }
        self.0[rarest] = wanted << 8 | 1;
        1
    }
}

/// How often a pair must come to be an entry: adapted so that the dictionary is full at the end.
struct Threshold {
    often: u32,
    most: usize,
    budget: usize,
    /// Entries and bytes when it was last looked at.
    before: (usize, usize),
}

impl Threshold {
    /// There are so many entries after so many bytes.
    fn adapt(&mut self, entries: usize, scanned: usize) {
        if entries - self.before.0 < (self.most / 128).max(64) {
            return;
        }
        let made = (entries - self.before.0) as f64 / (scanned - self.before.1).max(1) as f64;
        let wanted = (self.most - entries) as f64 / self.budget.saturating_sub(scanned).max(1) as f64;
        if made > 2.0 * wanted {
            self.often = (self.often + 1).min(255);
        } else if made < 0.5 * wanted && self.often > 2 {
            self.often -= 1;
        }
        self.before = (entries, scanned);
    }
}

/// Up to `most` entries, among them every byte, made of pieces that come together in `budget`
/// bytes of the sample.
pub(crate) fn pieces(sample: &[&[u8]], most: usize, budget: usize) -> Vec<EntrySlot> {
    let total: usize = sample.iter().map(|s| s.len()).sum();
    let budget = budget.min(total);
    let mut growing = GrowingDictionary::new();
    let mut pairs = Pairs(vec![0; (budget / 4).next_power_of_two().clamp(1 << 10, PAIR_PLACES)]);
    let mut threshold = Threshold { often: 2, most, budget, before: (256, 0) };
    let mut scanned = 0;
    for string in wander(sample) {
        let mut before: Option<(u32, usize)> = None;
        let mut at = 0;
        while at < string.len() {
            if scanned >= budget || growing.slots.len() >= most {
                return growing.slots;
            }
            let (mut code, mut len) = growing.longest(&string[at..]);
            at += len;
            scanned += len;
            if let Some((other, other_len)) = before
                && other_len + len <= LONGEST
                && pairs.count((other, code)) >= threshold.often
            {
                len += other_len;
                code = growing.insert(slot(&string[at - len..at]));
                threshold.adapt(growing.slots.len(), scanned);
            }
            before = Some((code, len));
        }
    }
    growing.slots
}

/// Up to `most` words of the sample.
pub(crate) fn words(sample: &[&[u8]], most: usize) -> Vec<EntrySlot> {
    let mut table: Vec<(u128, u32)> = Vec::new();
    let mut places = vec![0u32; WORD_PLACES];
    for string in sample {
        for_each_word(string, |word| {
            let mut at = hash(word, WORD_PLACES);
            while places[at] != 0 && table[places[at] as usize - 1].0 != word {
                at = (at + 1) % WORD_PLACES;
            }
            if places[at] != 0 {
                let count = &mut table[places[at] as usize - 1].1;
                *count = count.saturating_add(1);
            } else if table.len() < MOST_WORDS {
                table.push((word, 1));
                places[at] = table.len() as u32;
            }
        });
    }
    table.retain(|(_, count)| *count > 1);
    let covered = |(word, count): &(u128, u32)| u64::from(*count) * key_len(*word) as u64;
    table.sort_unstable_by_key(|word| (std::cmp::Reverse(covered(word)), word.0));
    table.truncate(most);
    table.into_iter().map(|(word, _)| word.to_be_bytes()).collect()
}
