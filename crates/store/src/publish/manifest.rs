//! The manifest: the newest state that is published. The one object that changes.
//!
//! A line of JSON, and a line with its checksum (XXH3-64, 16 hexadecimal digits). Numbers that name
//! something are hexadecimal text, since JSON's readers round long numbers.

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::format::lineage::StateName;

/// Its key.
pub(crate) const KEY: &str = "manifest";
const FORMAT: u32 = 1;

/// See the head of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Publication {
    /// Format of all objects.
    pub format: u32,
    /// Publications so far: grows by one with each.
    pub number: u64,
    /// Identity of the database.
    #[serde(with = "hex")]
    pub database: u64,
    /// The state of the opener: lineage and transaction.
    #[serde(with = "hex")]
    pub lineage: u64,
    /// See `lineage`.
    pub txn: u64,
    /// The newest state of the writer when the journal was read, which the journal leads to.
    #[serde(with = "hex")]
    pub newest_lineage: u64,
    /// See `newest_lineage`.
    pub newest_txn: u64,
    /// Key of the opener.
    pub opener: String,
    /// Bytes of the journal that lead on from the opener's state, in their order.
    pub journal: Vec<JournalObject>,
    /// When it was written, in milliseconds since 1970, by the clock of the writer.
    pub unix_ms: u64,
}

/// An object with bytes of a journal file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JournalObject {
    /// Its key.
    pub key: String,
    /// Number of the file.
    pub file: u64,
    /// The first byte's place in the file.
    pub from: u64,
    /// Bytes.
    pub bytes: u64,
    /// XXH3-64 of them.
    #[serde(with = "hex")]
    pub checksum: u64,
}

impl Publication {
    /// The newest state that is published.
    pub fn newest(&self) -> StateName {
        StateName { lineage: self.newest_lineage, txn: self.newest_txn }
    }

    /// Its text.
    pub fn encode(&self) -> Vec<u8> {
        assert_eq!(self.format, FORMAT, "a manifest is written in the newest format");
        let line = serde_json::to_string(self).expect("plain data");
        let sum = XxHash3_64::oneshot(line.as_bytes());
        format!("{line}\n{sum:016x}\n").into_bytes()
    }

    /// Reads it back; the error says why it cannot be used.
    pub fn decode(text: &[u8]) -> Result<Publication, String> {
        let damaged = || "the manifest is damaged".to_owned();
        let text = std::str::from_utf8(text).map_err(|_| damaged())?;
        let (line, sum) = text.trim_end().split_once('\n').ok_or_else(damaged)?;
        if u64::from_str_radix(sum, 16) != Ok(XxHash3_64::oneshot(line.as_bytes())) {
            return Err(damaged());
        }
        /// The part that each format has.
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let Format { format } = serde_json::from_str(line).map_err(|_| damaged())?;
        if format != FORMAT {
            return Err(format!(
                "it was published in format {format}, this program reads format {FORMAT}: use the program that published it, or a newer one"
            ));
        }
        serde_json::from_str(line).map_err(|e| format!("the manifest makes no sense: {e}"))
    }

    /// The newest format.
    pub fn format() -> u32 {
        FORMAT
    }
}

/// Numbers as hexadecimal text.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(n: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{n:016x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        u64::from_str_radix(&text, 16).map_err(|_| de::Error::custom("no hexadecimal number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Publication {
        let object = JournalObject { key: "journal/1".into(), file: 7, from: 4096, bytes: 99, checksum: 1 };
        Publication {
            format: FORMAT,
            number: 3,
            database: u64::MAX,
            lineage: 0xABCD,
            txn: 12,
            newest_lineage: 0xABCE,
            newest_txn: 13,
            opener: "openers/x".into(),
            journal: vec![object],
            unix_ms: 1,
        }
    }

    #[test]
    fn a_manifest_round_trips() {
        assert_eq!(Publication::decode(&manifest().encode()), Ok(manifest()));
    }

    #[test]
    fn damage_and_other_formats_are_told() {
        let text = manifest().encode();
        for at in 0..text.len() - 1 {
            let mut damaged = text.clone();
            damaged[at] ^= 1;
            assert!(Publication::decode(&damaged).is_err(), "byte {at}");
            assert!(Publication::decode(&text[..at]).is_err(), "{at} bytes");
        }
        let line = "{\"format\":2,\"more\":true}";
        let newer = format!("{line}\n{:016x}\n", XxHash3_64::oneshot(line.as_bytes()));
        let why = Publication::decode(newer.as_bytes()).unwrap_err();
        assert!(why.contains("format 2"), "{why}");
    }
}
