//! How the strings of a tree are encoded, chosen from a sample: a table of symbols, or a
//! dictionary of pieces or words.
//!
//! A few strings get symbols, which take one page. For more, dictionaries are made of parts of the
//! sample, and other strings of it are encoded; the one with which strings and dictionary together
//! are smallest is taken. A larger one must be worth its place in memory.

use std::sync::OnceLock;

use fsst::Compressor;

use crate::format::encoding::Decode;
use crate::format::string::dictionary::{Dictionary, WIDTHS};
use crate::format::string::entry::{EntrySlot, LONGEST, key_len};
use crate::format::string::leaf::MOST;
use crate::format::string::matcher::{Codes, StringBatch, pack};
use crate::format::string::symbols::{Symbols, train};
use crate::format::string::train::{Training, wander, wander_back, words};

/// Bytes of a sample below which a dictionary is not worth its pages.
const LEAST_SAMPLE: usize = 96 << 10;

/// Bytes of strings that are encoded to compare dictionaries.
const TEST_BYTES: usize = 256 << 10;

/// A small dictionary of pieces: bits of a code, and bytes of the sample to make it of.
const SMALL: (u32, usize) = (12, 512 << 10);

/// A larger one, for samples of few bytes and for others.
const LARGE: [(u32, usize); 2] = [(14, 3 << 19), (16, 3 << 20)];

/// Bytes of a sample above which the largest dictionary is tried.
const MANY: usize = 2 << 20;

/// Bytes of the sample after which a larger dictionary is given up when it is worse by more.
const PROMISE: usize = 1 << 20;
const HOPE: f64 = 1.08;

/// A larger dictionary is taken when strings shrink to less than this share.
const WORTH: f64 = 0.98;

/// A dictionary of words is taken at once when strings shrink to less than this share.
const PLAIN: f64 = 0.7;

/// The way from codes to strings and back. Shared by all readers of a tree.
pub(crate) enum Codec {
    /// FSST: codes of a byte.
    Symbols(Box<Symbols>, OnceLock<Box<Compressor>>),
    /// Codes of 12 to 17 bits.
    Dictionary(Box<Dictionary>),
}

/// Encoded strings, one behind the other.
#[derive(Default)]
pub(crate) struct Encoded {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    codes: Codes,
}

impl Encoded {
    /// The bytes of each string.
    pub(crate) fn strings(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(from, &to)| &self.bytes[from..to])
    }
}

impl Codec {
    /// The codec with these symbols.
    pub(crate) fn of_symbols(symbols: Box<Symbols>) -> Codec {
        Codec::Symbols(symbols, OnceLock::new())
    }

    /// The codec for a tree whose strings are like those of the sample.
    pub(crate) fn choose(sample: &[&[u8]]) -> Codec {
        let total: usize = sample.iter().map(|s| s.len()).sum();
        if total < LEAST_SAMPLE {
            return Codec::symbols(sample);
        }
        Trial::new(sample, total).best().unwrap_or_else(|| Codec::symbols(sample))
    }

    /// Symbols for such strings.
    pub(crate) fn symbols(sample: &[&[u8]]) -> Codec {
        Codec::of_symbols(Symbols::of(&train(sample)))
    }

    /// Bytes of a string above which its codes never fit into a leaf.
    fn most_bytes(&self) -> usize {
        match self {
            Codec::Symbols(..) => usize::MAX,
            Codec::Dictionary(dictionary) => 8 * MOST / dictionary.width() as usize * LONGEST,
        }
    }

    /// Whether a string need not be encoded, because its codes never fit into a leaf.
    pub(crate) fn is_too_long(&self, string: &[u8]) -> bool {
        string.len() > self.most_bytes()
    }

    /// Decodes `codes` into `buffer`, which grows as needed and is never shrunk; returns the
    /// string.
    #[inline]
    pub(crate) fn decode<'b>(&self, codes: &[u8], buffer: &'b mut Vec<u8>) -> Decode<&'b [u8]> {
        match self {
            Codec::Symbols(symbols, _) => symbols.decode(codes, buffer),
            Codec::Dictionary(dictionary) => dictionary.decode(codes, buffer),
        }
    }

    /// Encodes all strings of a batch.
    pub(crate) fn encode(&self, batch: &mut StringBatch, out: &mut Encoded) -> Decode<()> {
        out.bytes.clear();
        out.ends.clear();
        match self {
            Codec::Symbols(symbols, compressor) => {
                if compressor.get().is_none() {
                    // Another thread may have set the same.
                    let _ = compressor.set(Box::new(symbols.compressor()?));
                }
                let compressor = compressor.get().expect("just made");
                let strings: Vec<&[u8]> = batch.strings().collect();
                let mut ends = Vec::with_capacity(strings.len());
                compressor.compress_bulk_into::<{ Compressor::DEFAULT_BULK_LANES }>(
                    &strings,
                    &mut out.bytes,
                    &mut ends,
                );
                assert_eq!(ends.len(), strings.len(), "each string is compressed");
                out.ends.extend(ends.into_iter().map(|end| end as usize));
            }
            Codec::Dictionary(dictionary) => {
                dictionary.matcher().codes(dictionary.slots(), batch, &mut out.codes);
                for codes in out.codes.of_strings() {
                    pack(codes, dictionary.width(), &mut out.bytes);
                    out.ends.push(out.bytes.len());
                }
            }
        }
        Ok(())
    }

    /// Bytes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Codec::Symbols(symbols, _) => size_of_val(&**symbols),
            Codec::Dictionary(dictionary) => dictionary.memory_bytes(),
        }
    }
}

/// A choice under way.
struct Trial<'s> {
    sample: &'s [&'s [u8]],
    /// Bytes of the sample, and of the strings that are encoded.
    total: usize,
    tested: usize,
    test: StringBatch,
}

impl<'s> Trial<'s> {
    fn new(sample: &'s [&'s [u8]], total: usize) -> Trial<'s> {
        let mut test = StringBatch::default();
        // From the end: dictionaries are made of the first ones.
        for string in wander_back(sample) {
            if test.bytes() + string.len() <= TEST_BYTES {
                test.push(string);
            } else if test.bytes() > TEST_BYTES / 2 {
                break;
            }
        }
        Trial { sample, total, tested: test.bytes(), test }
    }

    /// Bytes of the whole sample with a dictionary, and of the dictionary.
    fn cost(&mut self, dictionary: &Dictionary) -> f64 {
        let mut codes = Codes::default();
        dictionary.matcher().codes(dictionary.slots(), &mut self.test, &mut codes);
        let width = dictionary.width() as usize;
        let bytes: usize = codes.of_strings().map(|codes| (codes.len() * width).div_ceil(8)).sum();
        let share = bytes as f64 / self.tested as f64;
        share * self.total as f64 + dictionary.to_bytes().len() as f64
    }

    /// The cheapest dictionary; none, when symbols of a page are cheaper.
    fn best(&mut self) -> Option<Codec> {
        if self.tested == 0 {
            return None;
        }
        let (width, budget) = (SMALL.0, SMALL.1.min(self.total));
        let small = Training::new(wander(self.sample), 1 << width, budget).read(budget).to_vec();
        let mut best = Dictionary::new(width, small);
        let mut cost = self.cost(&best);
        if let Some(of_words) = self.with_words(best.slots(), cost) {
            return Some(Codec::Dictionary(Box::new(of_words)));
        }
        if let Some((with_large, dictionary)) = self.large(cost) {
            (cost, best) = (with_large, dictionary);
        }
        let is_worth = cost < WORTH * self.cost_of_symbols();
        is_worth.then(|| Codec::Dictionary(Box::new(best)))
    }

    /// A large dictionary of pieces, if it is cheaper than a small one.
    fn large(&mut self, small: f64) -> Option<(f64, Dictionary)> {
        let (width, budget) = LARGE[usize::from(self.total > MANY)];
        let budget = budget.min(self.total);
        let mut training = Training::new(wander(self.sample), 1 << width, budget);
        if self.total > PROMISE {
            let begun = Dictionary::new(width, training.read(PROMISE).to_vec());
            if self.cost(&begun) > HOPE * small {
                return None;
            }
        }
        let dictionary = Dictionary::new(width, training.read(budget).to_vec());
        let cost = self.cost(&dictionary);
        (cost < WORTH * small).then_some((cost, dictionary))
    }

    /// A dictionary of words, and of these pieces for others, if it is much cheaper than they are.
    fn with_words(&mut self, pieces: &[EntrySlot], cost: f64) -> Option<Dictionary> {
        let (mut count, mut covered) = (0, 0);
        self.test.for_each_word(|word| (count, covered) = (count + 1, covered + key_len(word)));
        // As if each word had an entry.
        let of_words = (count * *WIDTHS.end() as usize / 8) as f64 / self.tested as f64 * self.total as f64;
        let of_others = cost * (self.tested - covered) as f64 / self.tested as f64;
        if of_words + of_others >= PLAIN * cost {
            return None;
        }
        let mut entries = words(self.sample, (1 << *WIDTHS.end()) - pieces.len());
        if entries.len() < pieces.len() {
            return None;
        }
        entries.extend(pieces);
        let width = (entries.len().next_power_of_two().ilog2()).max(*WIDTHS.start());
        let dictionary = Dictionary::new(width, entries);
        (self.cost(&dictionary) < PLAIN * cost).then_some(dictionary)
    }

    fn cost_of_symbols(&mut self) -> f64 {
        let mut encoded = Encoded::default();
        let codec = Codec::symbols(self.sample);
        match codec.encode(&mut self.test, &mut encoded) {
            Ok(()) => encoded.bytes.len() as f64 / self.tested as f64 * self.total as f64,
            Err(_) => f64::INFINITY,
        }
    }
}
