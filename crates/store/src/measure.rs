//! Doors for measurements: codecs of strings without a tree around them.

use std::ops::Range;

use crate::format::string::codec::{Codec, Encoded};
use crate::format::string::matcher::StringBatch;

/// Bytes encoded at a time, as a build does.
const BATCH_BYTES: usize = 64 << 10;

/// A codec and strings that it has encoded.
pub struct EncodedStrings {
    codec: Codec,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl EncodedStrings {
    /// With the codec that a build would choose.
    pub fn chosen(sample: &[&[u8]]) -> EncodedStrings {
        EncodedStrings { codec: Codec::choose(sample), bytes: Vec::new(), ends: Vec::new() }
    }

    /// With symbols, whatever a build would choose.
    pub fn with_symbols(sample: &[&[u8]]) -> EncodedStrings {
        EncodedStrings { codec: Codec::symbols(sample), bytes: Vec::new(), ends: Vec::new() }
    }

    /// Bits of a code, and number of entries; of symbols 8 and 0.
    pub fn codes(&self) -> (u32, usize) {
        match &self.codec {
            Codec::Symbols(..) => (8, 0),
            Codec::Dictionary(dictionary) => (dictionary.width(), dictionary.slots().len()),
        }
    }

    /// Bytes of a dictionary in a file.
    pub fn dictionary_bytes(&self) -> usize {
        match &self.codec {
            Codec::Symbols(..) => 0,
            Codec::Dictionary(dictionary) => dictionary.to_bytes().len(),
        }
    }

    /// Encodes strings; those of before are forgotten.
    pub fn encode(&mut self, strings: &[&[u8]]) {
        let (mut batch, mut encoded) = (StringBatch::default(), Encoded::default());
        self.bytes.clear();
        self.ends.clear();
        let mut strings = strings.iter().peekable();
        while let Some(string) = strings.next() {
            batch.push(string);
            if batch.bytes() < BATCH_BYTES && strings.peek().is_some() {
                continue;
            }
            self.codec.encode(&mut batch, &mut encoded).expect("a codec that was made here encodes");
            for bytes in encoded.strings() {
                self.bytes.extend_from_slice(bytes);
                self.ends.push(self.bytes.len());
            }
            batch.clear();
        }
    }

    /// Bytes of all codes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The string with this number, decoded into `buffer`.
    #[inline]
    pub fn decode<'b>(&self, number: usize, buffer: &'b mut Vec<u8>) -> &'b [u8] {
        let codes: Range<usize> =
            number.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[number];
        self.codec.decode(&self.bytes[codes], buffer).expect("what was encoded decodes")
    }
}
