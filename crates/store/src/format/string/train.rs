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

use crate::format::string::entry::{EntrySlot, LONGEST, key, key_len, slot};
use crate::format::string::matcher::{StringBatch, cut, hash, place, probes};

/// Places in the table of words; 4 MiB.
const WORD_PLACES: usize = 1 << 18;

/// Words it takes.
const MOST_WORDS: usize = WORD_PLACES / 4 * 3;

/// Most bytes of a sample in which words are counted.
const WORDS_BUDGET: usize = 16 << 20;

/// Bytes among which words are looked for at a time.
const BATCH_BYTES: usize = 64 << 10;

/// Most places in the table of pairs; 2 MiB.
const PAIR_PLACES: usize = 1 << 19;

/// Places of the table that a pair can have: neighbours.
const PROBES: usize = 8;

/// Strings of a sample in an order that wanders over all of it.
pub(crate) fn wander<'s>(sample: &[&'s [u8]]) -> impl Iterator<Item = &'s [u8]> {
    walk(sample, 0, stride(sample.len()))
}

/// Strings in the opposite order.
pub(crate) fn wander_back<'s>(sample: &[&'s [u8]]) -> impl Iterator<Item = &'s [u8]> {
    let step = sample.len() - stride(sample.len());
    walk(sample, step % sample.len().max(1), step)
}

/// Strings from one on, always so many further, round and round.
fn walk<'s>(sample: &[&'s [u8]], first: usize, step: usize) -> impl Iterator<Item = &'s [u8]> {
    let n = sample.len();
    let places = std::iter::successors(Some(first), move |at| Some((at + step) % n));
    places.take(n).map(|at| sample[at])
}

/// A step that meets each of so many once: the golden ratio spreads multiples evenly.
fn stride(n: usize) -> usize {
    let mut step = (n as f64 * 0.618_034) as usize;
    while step > 1 && greatest_divisor(step, n) > 1 {
        step -= 1;
    }
    step.clamp(n.min(1), n)
}

fn greatest_divisor(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Entries so far, and how to find the longest one.
struct GrowingDictionary {
    slots: Vec<EntrySlot>,
    /// Hash table of the entries' codes: see [`GrowingDictionary::code`].
    codes: Vec<u32>,
    /// Lengths of the entries that begin with two bytes, up to 3; and, by hash, of those that begin
    /// with four, up to 7, and with eight.
    two: Vec<u16>,
    four: Vec<u16>,
    eight: Vec<u16>,
}

/// The bits of a place in [`GrowingDictionary::codes`] that are not the code's.
const TAGS: u32 = u32::MAX << 17;

impl GrowingDictionary {
    /// A dictionary of the single bytes, which grows up to `most` entries.
    fn new(most: usize) -> GrowingDictionary {
        let places = (4 * most).next_power_of_two();
        let (codes, lengths) = (vec![0; places], vec![0; places]);
        let two = vec![0; 1 << 16];
        let slots = (0..=255).map(|byte| slot(&[byte])).collect();
        GrowingDictionary { slots, codes, two, four: lengths.clone(), eight: lengths }
    }

    /// Where the lengths of entries are that begin as a key does, and are of its length or longer.
    #[inline(always)]
    fn four(&self, key: u128) -> usize {
        place(hash(key >> 96 << 64), self.four.len())
    }

    #[inline(always)]
    fn eight(&self, key: u128) -> usize {
        place(hash(key >> 64 << 64), self.eight.len())
    }

    /// The code of an entry of two bytes or more, or the place that it would have, if there is one.
    #[inline(always)]
    fn code(&self, wanted: u128) -> Result<u32, Option<usize>> {
        let hash = hash(wanted);
        for at in probes(hash, self.codes.len()) {
            if self.codes[at] == 0 {
                return Err(Some(at));
            }
            let (tag, code) = (self.codes[at] & TAGS, self.codes[at] & !TAGS);
            if tag == tag_of(hash) && key(&self.slots[code as usize]) == wanted {
                return Ok(code);
            }
        }
        Err(None)
    }

    /// Adds an entry of two bytes or more; returns its code, if it has a place.
    fn insert(&mut self, slot: EntrySlot) -> Option<u32> {
        let (key, code) = (key(&slot), self.slots.len() as u32);
        match self.code(key) {
            Ok(code) => return Some(code),
            Err(at) => self.codes[at?] = tag_of(hash(key)) | code,
        }
        let (four, eight) = (self.four(key), self.eight(key));
        match key_len(key) {
            len @ 8.. => self.eight[eight] |= 1 << len,
            len @ 4.. => self.four[four] |= 1 << len,
            len => self.two[(key >> 112) as usize] |= 1 << len,
        }
        self.slots.push(slot);
        Some(code)
    }

    /// The longest entry that the first `left` bytes of a window begin with: its code and its
    /// bytes.
    #[inline(always)]
    fn longest(&self, window: u128, left: usize) -> (u32, usize) {
        let within = (2u32 << left.min(LONGEST)) - 1;
        let lengths = self.eight[self.eight(window)]
            | self.four[self.four(window)]
            | self.two[(window >> 112) as usize];
        let mut lengths = u32::from(lengths) & within;
        while lengths != 0 {
            let len = lengths.ilog2();
            if let Ok(code) = self.code(cut(window, len as usize)) {
                return (code, len as usize);
            }
            lengths &= !(1 << len);
        }
        ((window >> 120) as u32, 1)
    }
}

/// The tag of a hash, never 0.
#[inline(always)]
fn tag_of(hash: u64) -> u32 {
    (hash >> 15) as u32 & TAGS | 1 << 17
}

/// Counts of pairs of codes, of the more frequent ones when there are too many: by hash, in the low
/// byte, below a tag. Pairs of one tag and place are counted together.
struct Pairs(Vec<u32>);

impl Pairs {
    /// Counts a pair once more, up to 255; returns the count.
    #[inline(always)]
    fn count(&mut self, pair: (u32, u32)) -> u32 {
        let hash = hash(u128::from(pair.0) << 96 | u128::from(pair.1) << 64);
        let first = place(hash, self.0.len()) / PROBES * PROBES;
        let tag = (hash >> 8) as u32 | 0x100;
        let places: &mut [u32; PROBES] = self.0[first..].first_chunk_mut().expect("of whole probes");
        let mut rarest = 0;
        for at in 0..PROBES {
            if (places[at] ^ tag) < 256 {
                places[at] += u32::from(places[at] & 255 < 255);
                return places[at] & 255;
            }
            if places[at] & 255 < places[rarest] & 255 {
                rarest = at;
            }
            if places[at] == 0 {
                break;
            }
        }
        places[rarest] = tag & !255 | 1;
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

/// Entries made of pieces that come together in a sample, while it is read.
pub(crate) struct Training<I> {
    strings: I,
    growing: GrowingDictionary,
    pairs: Pairs,
    threshold: Threshold,
    scanned: usize,
    /// The string at hand, and 16 bytes more.
    padded: Vec<u8>,
}

impl<'s, I: Iterator<Item = &'s [u8]>> Training<I> {
    /// Up to `most` entries, among them every byte, of the first `budget` bytes of strings.
    pub(crate) fn new(strings: I, most: usize, budget: usize) -> Training<I> {
        let places = (budget / 4).next_power_of_two().clamp(1 << 10, PAIR_PLACES);
        Training {
            strings,
            growing: GrowingDictionary::new(most),
            pairs: Pairs(vec![0; places]),
            threshold: Threshold { often: 2, most, budget, before: (256, 0) },
            scanned: 0,
            padded: Vec::new(),
        }
    }

    /// The entries after so many bytes of all strings, in the order in which they were made.
    pub(crate) fn read(&mut self, bytes: usize) -> &[EntrySlot] {
        let bytes = bytes.min(self.threshold.budget);
        while self.scanned < bytes && self.growing.slots.len() < self.threshold.most {
            let Some(string) = self.strings.next() else { break };
            let string = &string[..string.len().min(bytes - self.scanned)];
            self.padded.clear();
            self.padded.extend_from_slice(string);
            self.padded.extend_from_slice(&[0; 16]);
            self.string(string.len());
        }
        &self.growing.slots
    }

    fn string(&mut self, end: usize) {
        let mut before: Option<(u32, usize)> = None;
        let mut at = 0;
        while at < end && self.growing.slots.len() < self.threshold.most {
            let window = self.padded[at..].first_chunk().expect("16 bytes follow");
            let (mut code, mut len) = self.growing.longest(u128::from_be_bytes(*window), end - at);
            at += len;
            self.scanned += len;
            if let Some((other, other_len)) = before
                && other_len + len <= LONGEST
                && self.pairs.count((other, code)) >= self.threshold.often
                && let Some(both) = self.growing.insert(slot(&self.padded[at - len - other_len..at]))
            {
                len += other_len;
                code = both;
                self.threshold.adapt(self.growing.slots.len(), self.scanned);
            }
            before = Some((code, len));
        }
    }
}

/// Up to `most` words of the sample.
pub(crate) fn words(sample: &[&[u8]], most: usize) -> Vec<EntrySlot> {
    let mut table: Vec<(u128, u32)> = Vec::new();
    let mut places = vec![0u32; WORD_PLACES];
    let mut count = |word| {
        let is_its = |at: &usize| places[*at] == 0 || table[places[*at] as usize - 1].0 == word;
        // a word that finds no place is forgotten
        let Some(at) = probes(hash(word), WORD_PLACES).find(is_its) else { return };
        if places[at] != 0 {
            let count = &mut table[places[at] as usize - 1].1;
            *count = count.saturating_add(1);
        } else if table.len() < MOST_WORDS {
            table.push((word, 1));
            places[at] = table.len() as u32;
        }
    };
    let mut batch = StringBatch::default();
    let mut left = WORDS_BUDGET;
    for string in sample {
        let string = &string[..string.len().min(left)];
        left -= string.len();
        batch.push(string);
        if batch.bytes() > BATCH_BYTES {
            batch.for_each_word(&mut count);
            batch.clear();
        }
    }
    batch.for_each_word(&mut count);
    table.retain(|(_, count)| *count > 1);
    let covered = |(word, count): &(u128, u32)| u64::from(*count) * key_len(*word) as u64;
    table.sort_unstable_by_key(|word| (std::cmp::Reverse(covered(word)), word.0));
    table.truncate(most);
    table.into_iter().map(|(word, _)| word.to_be_bytes()).collect()
}
