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
use crate::format::string::entry::{EntrySlot, LONGEST};
use crate::format::string::leaf::MOST;
use crate::format::string::matcher::{Codes, StringBatch, pack};
use crate::format::string::symbols::{Symbols, train};
use crate::format::string::train::{pieces, wander, words};

/// Bytes of a sample below which a dictionary is not worth its pages.
const LEAST_SAMPLE: usize = 96 << 10;

/// Bytes of strings that are encoded to compare dictionaries.
const TEST_BYTES: usize = 256 << 10;

/// Dictionaries of pieces that are tried: bits of a code, and bytes of the sample to make it of.
const PIECES: [(u32, usize); 3] = [(12, 512 << 10), (14, 3 << 19), (16, 3 << 20)];

/// A larger dictionary is taken when strings shrink to less than this share.
const WORTH: f64 = 0.98;

/// A dictionary of words is taken at once when strings shrink to less than this share.
const PLAIN: f64 = 0.7;

/// The way from codes to strings and back. Shared by all readers of a tree.
pub(crate) enum Codec {
    /// FSST: codes of a byte.
    Symbols(Box<Symbols>, OnceLock<Compressor>),
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
        let symbols = || Codec::of_symbols(Symbols::of(&train(sample)));
        if total < LEAST_SAMPLE {
            return symbols();
        }
        Trial::new(sample, total).best().unwrap_or_else(symbols)
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
                    let _ = compressor.set(symbols.compressor()?);
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
        for string in wander(sample).rev() {
            if test.bytes() + string.len() <= TEST_BYTES {
                test.push(string);
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
        let mut best: Option<(f64, Dictionary)> = None;
        for (width, budget) in PIECES {
            let entries = pieces(self.sample, 1 << width, budget);
            let of_words = best.is_none().then(|| self.with_words(&entries)).flatten();
            let dictionary = Dictionary::new(width, entries);
            let cost = self.cost(&dictionary);
            if best.as_ref().is_some_and(|(least, _)| cost > WORTH * least) {
                break;
            }
            best = Some((cost, dictionary));
            if let Some((with_words, dictionary)) = of_words
                && with_words < PLAIN * cost
            {
                return Some(Codec::Dictionary(Box::new(dictionary)));
            }
        }
        let (cost, dictionary) = best?;
        let is_worth = cost < WORTH * self.cost_of_symbols();
        is_worth.then(|| Codec::Dictionary(Box::new(dictionary)))
    }

    /// A dictionary of words, and of these pieces for other words.
    fn with_words(&mut self, pieces: &[EntrySlot]) -> Option<(f64, Dictionary)> {
        let mut entries = words(self.sample, (1 << *WIDTHS.end()) - pieces.len());
        if entries.len() < pieces.len() {
            return None;
        }
        entries.extend(pieces);
        let width = (entries.len().next_power_of_two().ilog2()).max(*WIDTHS.start());
        let dictionary = Dictionary::new(width, entries);
        Some((self.cost(&dictionary), dictionary))
    }

    fn cost_of_symbols(&mut self) -> f64 {
        let mut encoded = Encoded::default();
        let codec = Codec::of_symbols(Symbols::of(&train(self.sample)));
        match codec.encode(&mut self.test, &mut encoded) {
            Ok(()) => encoded.bytes.len() as f64 / self.tested as f64 * self.total as f64,
            Err(_) => f64::INFINITY,
        }
    }
}
