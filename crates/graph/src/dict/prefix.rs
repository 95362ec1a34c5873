//! IRIs as prefix number and local name.
//!
//! The prefix ends after the last `/` or `#` that is not the last byte. A final separator does not
//! end a prefix: otherwise each IRI of a site's folders would be a prefix of its own. Number 0 is
//! the empty prefix. A prefix gets its number when it is seen for the second time, so that prefixes
//! used once do not fill the table; the first IRI with it is stored whole. A small table of
//! fingerprints remembers the prefixes seen, and a newer prefix replaces an older one. It depends
//! on the order of the IRIs alone, so the same input gives the same bytes. The prefix table ends at
//! [`MAX_PREFIXES`]: IRIs with further prefixes are stored whole.

use std::sync::Arc;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use snowmelt_base::varint;
use twox_hash::XxHash3_64;

use crate::dict::RECORD_PREFIXES;
use crate::error::{GraphError, Result};

/// Most prefixes, the empty one included.
pub const MAX_PREFIXES: usize = 65_536;
/// Fingerprints remembered while encoding.
const SEEN: usize = 1 << 16;

/// Length of an IRI's prefix; 0 if it has none.
#[inline]
pub fn prefix_len(iri: &[u8]) -> usize {
    let inner = &iri[..iri.len().saturating_sub(1)];
    inner.iter().rposition(|&byte| byte == b'/' || byte == b'#').map_or(0, |at| at + 1)
}

/// The prefixes of a database, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefixes {
    list: Vec<Arc<str>>,
}

impl Prefixes {
    /// Splits a string of the IRI tree into prefix and local name; the error says why it cannot.
    #[inline]
    pub fn split<'a>(&'a self, string: &'a [u8]) -> Result<(&'a str, &'a str), &'static str> {
        let mut local = string;
        let number = varint::take::<5>(&mut local).map_err(|_| "its prefix number cannot be read")?;
        let prefix = usize::try_from(number).ok().and_then(|number| self.list.get(number));
        let prefix = prefix.ok_or("its prefix is not in the table")?;
        Ok((prefix, std::str::from_utf8(local).map_err(|_| "it is not UTF-8")?))
    }

    /// Number of prefixes, the empty one included.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Always false: the empty prefix is in every table.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// For the catalog record: each prefix but the empty one as varint length and bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for prefix in &self.list[1..] {
            varint::put(&mut bytes, prefix.len() as u64);
            bytes.extend(prefix.as_bytes());
        }
        bytes
    }

    /// The inverse of [`Prefixes::to_bytes`]; damaged records are errors.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self> {
        let damaged = || GraphError::record(RECORD_PREFIXES, "its prefixes cannot be read");
        let mut list: Vec<Arc<str>> = vec!["".into()];
        while !bytes.is_empty() {
            let len = varint::take::<5>(&mut bytes).map_err(|_| damaged())?;
            let len = usize::try_from(len).map_err(|_| damaged())?;
            let prefix = bytes.split_off(..len).ok_or_else(damaged)?;
            list.push(std::str::from_utf8(prefix).map_err(|_| damaged())?.into());
        }
        if list.len() > MAX_PREFIXES {
            return Err(damaged());
        }
        Ok(Prefixes { list })
    }
}

/// Encodes the IRIs of a load, in the order of their numbers.
pub struct PrefixEncoder {
    numbers: HashMap<Box<[u8]>, u32, FxBuildHasher>,
    list: Vec<Arc<str>>,
    seen: Vec<u32>,
    /// The latest prefix and its number: neighbours often share it.
    latest: (Box<[u8]>, u32),
}

impl Default for PrefixEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl PrefixEncoder {
    /// An encoder with only the empty prefix.
    pub fn new() -> Self {
        PrefixEncoder {
            numbers: HashMap::default(),
            list: vec!["".into()],
            seen: vec![0; SEEN],
            latest: (Box::default(), 0),
        }
    }

    /// Continues an existing table. Prefixes seen once are forgotten.
    pub fn with_known(prefixes: &Prefixes) -> Self {
        let numbered = prefixes.list.iter().zip(0u32..).skip(1);
        PrefixEncoder {
            numbers: numbered.map(|(prefix, number)| (prefix.as_bytes().into(), number)).collect(),
            list: prefixes.list.clone(),
            ..PrefixEncoder::new()
        }
    }

    /// Number of prefixes with a number, the empty one included.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Always false: the empty prefix is in every table.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The table as it is now.
    pub fn table(&self) -> Prefixes {
        Prefixes { list: self.list.clone() }
    }

    /// Writes the IRI tree's string for `iri` to `out`, which is cleared.
    pub fn encode(&mut self, iri: &str, out: &mut Vec<u8>) {
        let prefix = &iri.as_bytes()[..prefix_len(iri.as_bytes())];
        let number = self.number(prefix, iri);
        out.clear();
        varint::put(out, number.into());
        let local = if number == 0 { iri.as_bytes() } else { &iri.as_bytes()[prefix.len()..] };
        out.extend(local);
    }

    fn number(&mut self, prefix: &[u8], iri: &str) -> u32 {
        if *prefix == *self.latest.0 {
            return self.latest.1;
        }
        let number = match self.numbers.get(prefix).copied() {
            Some(number) => number,
            None if self.list.len() < MAX_PREFIXES && self.seen_before(prefix) => {
                let number = self.list.len() as u32;
                // Separators are ASCII, so the prefix ends between characters.
                self.list.push(iri[..prefix.len()].into());
                self.numbers.insert(prefix.into(), number);
                number
            }
            None => return 0,
        };
        self.latest = (prefix.into(), number);
        number
    }

    fn seen_before(&mut self, prefix: &[u8]) -> bool {
        let hash = XxHash3_64::oneshot(prefix);
        let fingerprint = (hash >> 32) as u32 | 1;
        let slot = &mut self.seen[hash as usize % SEEN];
        std::mem::replace(slot, fingerprint) == fingerprint
    }

    /// The table, for the catalog.
    pub fn finish(self) -> Prefixes {
        Prefixes { list: self.list }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_final_separator_makes_no_prefix() {
        for (iri, prefix) in [
            ("http://a/b", "http://a/"),
            ("http://a/b/", "http://a/"),
            ("http://a/b#", "http://a/"),
            ("http://a#b/c#d", "http://a#b/c#"),
            ("urn:a", ""),
            ("", ""),
            ("/", ""),
        ] {
            assert_eq!(prefix_len(iri.as_bytes()), prefix.len(), "{iri}");
        }
    }

    #[test]
    fn a_prefix_has_a_number_from_its_second_iri_on() {
        let mut encoder = PrefixEncoder::new();
        let mut out = Vec::new();
        for (iri, string) in [
            ("http://a/b", &b"\0http://a/b"[..]),
            ("http://a/c", b"\x01c"),
            ("http://b/c", b"\0http://b/c"),
            ("http://a/b/", b"\x01b/"),
            ("urn:x", b"\0urn:x"),
            ("http://b/d", b"\x02d"),
        ] {
            encoder.encode(iri, &mut out);
            assert_eq!(out, string, "{iri}");
        }
        assert_eq!(encoder.finish().len(), 3);
    }

    #[test]
    fn the_table_is_capped() {
        let mut encoder = PrefixEncoder::new();
        let mut out = Vec::new();
        for number in 0..MAX_PREFIXES + 10 {
            for local in ["a", "b"] {
                encoder.encode(&format!("http://{number}/{local}"), &mut out);
            }
        }
        assert_eq!(out, format!("\0http://{}/b", MAX_PREFIXES + 9).as_bytes());
        assert_eq!(encoder.list.len(), MAX_PREFIXES);
        let prefixes = encoder.finish();
        assert_eq!(Prefixes::from_bytes(&prefixes.to_bytes()).unwrap(), prefixes);
    }

    #[test]
    fn damaged_strings_and_records_are_errors() {
        let prefixes = Prefixes::from_bytes(b"\x03a/b").unwrap();
        assert_eq!(prefixes.split(b"\x01c"), Ok(("a/b", "c")));
        for string in [&b""[..], b"\x80", b"\x02c", b"\0\xFF"] {
            assert!(prefixes.split(string).is_err(), "{string:?}");
        }
        assert!(Prefixes::from_bytes(b"\x04a/b").is_err());
        assert!(Prefixes::from_bytes(b"\x01\xFF").is_err());
    }

    proptest! {
        #[test]
        fn iris_are_given_back(iris in prop::collection::vec("[ab:]{0,2}([/#][abé]{0,2}){0,4}", 1..100)) {
            let mut encoder = PrefixEncoder::new();
            let strings: Vec<Vec<u8>> = iris.iter().map(|iri| {
                let mut out = Vec::new();
                encoder.encode(iri, &mut out);
                out
            }).collect();
            let prefixes = Prefixes::from_bytes(&encoder.finish().to_bytes()).unwrap();
            for (iri, string) in iris.iter().zip(&strings) {
                let (prefix, local) = prefixes.split(string).unwrap();
                prop_assert_eq!(&format!("{prefix}{local}"), iri);
            }
        }
    }
}
