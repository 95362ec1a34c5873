//! The FSST symbol table of a string tree: up to 255 byte sequences of 1 to 8 bytes, one code each.
//!
//! FSST (Boncz, Neumann, Leis, VLDB 2020): a string becomes a sequence of one-byte codes; code
//! 255 is followed by a literal byte. Any string can be decoded alone. The table is trained
//! once per tree and lies in a page of its own:
//!
//! ```text
//! header count = symbols
//! 32              lengths: symbols × u8
//! 32 + symbols    symbols: symbols × u64, first byte lowest
//! ```
//!
//! The library compresses; decoding is ours, because its decoder panics on damaged codes.

use fsst::{Compressor, Symbol};

use crate::format::encoding::{BODY, Bad, Decode, load, load_u8};
use crate::page::{PageBuf, PageKind, header};

/// The code before a literal byte.
const ESCAPE: usize = 255;

/// Symbols for decoding.
pub(crate) struct Symbols {
    words: [u64; 256],
    /// 0: no such code.
    lengths: [u8; 256],
}

/// Trains a compressor. Without a sample it still compresses, badly: each byte becomes two.
pub(crate) fn train(sample: &[&[u8]]) -> Compressor {
    Compressor::train(&sample.to_vec())
}

impl Symbols {
    /// The symbols of `compressor`.
    pub(crate) fn of(compressor: &Compressor) -> Box<Symbols> {
        let (table, lengths): (&[Symbol], &[u8]) = (compressor.symbol_table(), compressor.symbol_lengths());
        assert!(table.len() <= ESCAPE, "a code is a byte");
        let mut symbols = Box::new(Symbols { words: [0; 256], lengths: [0; 256] });
        for (i, symbol) in table.iter().enumerate() {
            symbols.lengths[i] = lengths[i];
            symbols.words[i] = symbol.to_u64();
        }
        symbols
    }

    /// Number of symbols.
    fn len(&self) -> usize {
        self.lengths.iter().take_while(|length| **length > 0).count()
    }

    /// Writes the symbols into a page.
    pub(crate) fn write(&self, page: &mut PageBuf) {
        let n = self.len();
        page.clear();
        let body = page.body_mut();
        body[..n].copy_from_slice(&self.lengths[..n]);
        for (i, word) in self.words[..n].iter().enumerate() {
            body[n + 8 * i..n + 8 * i + 8].copy_from_slice(&word.to_le_bytes());
        }
        page.set_header(PageKind::Symbols, 0, n as u16);
    }

    /// Reads the symbols in `page`.
    pub(crate) fn parse(page: &[u8]) -> Decode<Box<Symbols>> {
        let head = header(page);
        let n = head.count() as usize;
        if head.kind() != PageKind::Symbols as u8 || n > ESCAPE {
            return Err(Bad("not a symbol table"));
        }
        let mut symbols = Box::new(Symbols { words: [0; 256], lengths: [0; 256] });
        for i in 0..n {
            let length = load_u8(page, BODY + i)?;
            if !(1..=8).contains(&length) {
                return Err(Bad("a symbol of other than 1 to 8 bytes"));
            }
            symbols.lengths[i] = length as u8;
            symbols.words[i] = load(page, BODY + n + 8 * i, 8)?;
        }
        Ok(symbols)
    }

    /// A compressor with these symbols.
    pub(crate) fn compressor(&self) -> Decode<Compressor> {
        let n = self.len();
        let symbols: Vec<Symbol> =
            self.words[..n].iter().map(|w| Symbol::from_slice(&w.to_le_bytes())).collect();
        if symbols.iter().zip(&self.lengths).any(|(s, l)| s.len() != usize::from(*l)) {
            return Err(Bad("a symbol that is not as long as it says"));
        }
        // The library asserts the order of the symbols and that they do not collide in its table.
        std::panic::catch_unwind(|| Compressor::rebuild_from(&symbols, &self.lengths[..n]))
            .map_err(|_| Bad("symbols that no compressor would choose"))
    }

    /// Decodes `codes` into `buffer`, which grows as needed and is never shrunk; returns the
    /// string.
    pub(crate) fn decode<'b>(&self, codes: &[u8], buffer: &'b mut Vec<u8>) -> Decode<&'b [u8]> {
        let most = 8 * codes.len() + 8;
        if buffer.len() < most {
            buffer.resize(most.next_power_of_two(), 0);
        }
        let out = &mut buffer[..];
        let (mut at, mut next) = (0, 0);
        while let Some(&code) = codes.get(next) {
            let code = code as usize;
            next += 1;
            if code == ESCAPE {
                out[at] = *codes.get(next).ok_or(Bad("a string ends inside a literal byte"))?;
                next += 1;
                at += 1;
                continue;
            }
            let length = self.lengths[code] as usize;
            if length == 0 {
                return Err(Bad("a code without a symbol"));
            }
            out[at..at + 8].copy_from_slice(&self.words[code].to_le_bytes());
            at += length;
        }
        Ok(&buffer[..at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn symbols(compressor: &Compressor) -> Box<Symbols> {
        let mut page = PageBuf::new();
        Symbols::of(compressor).write(&mut page);
        Symbols::parse(&page).unwrap()
    }

    proptest! {
        #[test]
        fn strings_round_trip(sample in prop::collection::vec("[a-f ]{0,60}", 0..40), others in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20)) {
            let sample: Vec<&[u8]> = sample.iter().map(|s| s.as_bytes()).collect();
            let compressor = train(&sample);
            let symbols = symbols(&compressor);
            let mut buffer = Vec::new();
            for s in sample.iter().copied().chain(others.iter().map(|s| &s[..])) {
                let codes = compressor.compress(s);
                prop_assert_eq!(symbols.decode(&codes, &mut buffer), Ok(s));
                let again = symbols.compressor().unwrap().compress(s);
                prop_assert_eq!(again, codes);
            }
        }

        #[test]
        fn damaged_codes_and_tables_never_panic(codes in prop::collection::vec(any::<u8>(), 0..200), bytes in prop::collection::vec((0usize..2400, any::<u8>()), 0..30), n: u16) {
            let mut page = PageBuf::new();
            Symbols::of(&train(&[b"some text, some more text, some more"])).write(&mut page);
            let mut buffer = Vec::new();
            let _ = Symbols::parse(&page).unwrap().decode(&codes, &mut buffer);
            page.set_header(PageKind::Symbols, 0, n % 300);
            bytes.iter().for_each(|&(at, b)| page.body_mut()[at] = b);
            if let Ok(symbols) = Symbols::parse(&page) {
                let _ = symbols.decode(&codes, &mut buffer);
            }
        }
    }
}
