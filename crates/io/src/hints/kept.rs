//! The model that was learned of a disk, as a small file beside the stripe that lies on it.
//!
//! Two lines of text: an object of JSON, and the XXH3-64 of that line in hexadecimal digits. It is
//! advice: a file that is cut, damaged or of another disk costs a line in the log.

use std::fmt;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::cost::CostModel;
use crate::hints::disk::DiskIdentity;

/// The version of the file.
const VERSION: u32 = 1;

/// Costs that were learned, with what they rest on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptModel {
    version: u32,
    /// The costs of reads.
    pub cost: CostModel,
    /// How sure the cost of a request was, 0 to 1.
    pub requests: f64,
    /// How sure that of a byte was, 0 to 1.
    pub bytes: f64,
    /// Looks at the device while it was the limit.
    pub looks: u64,
    /// When, in seconds since 1970.
    pub unix_s: u64,
    /// Of which disk.
    pub disk: DiskIdentity,
}

/// Why a file is not a kept model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotKept {
    /// Cut, or its bytes are not those that were written.
    Damaged,
    /// A later version has written it.
    Version(u32),
    /// It is whole, and its values are impossible.
    Impossible,
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotKept::Damaged => f.write_str("it is damaged"),
            NotKept::Version(found) => write!(f, "it has version {found}, this program knows {VERSION}"),
            NotKept::Impossible => f.write_str("no device has its costs"),
        }
    }
}

impl KeptModel {
    /// A model of now.
    pub fn new(cost: CostModel, [requests, bytes]: [f64; 2], looks: u64, disk: DiskIdentity) -> KeptModel {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let unix_s = since.map_or(0, |since| since.as_secs());
        KeptModel { version: VERSION, cost, requests, bytes, looks, unix_s, disk }
    }

    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let line = serde_json::to_string(self).expect("a model is plain data");
        format!("{line}\n{:016x}\n", XxHash3_64::oneshot(line.as_bytes())).into_bytes()
    }

    /// Reads them back.
    ///
    /// # Errors
    /// They are not such a file.
    pub fn decode(bytes: &[u8]) -> Result<KeptModel, NotKept> {
        let text = std::str::from_utf8(bytes).map_err(|_| NotKept::Damaged)?;
        let (line, sum) = text.split_once('\n').ok_or(NotKept::Damaged)?;
        if sum != format!("{:016x}\n", XxHash3_64::oneshot(line.as_bytes())) {
            return Err(NotKept::Damaged);
        }
        let value: serde_json::Value = serde_json::from_str(line).map_err(|_| NotKept::Damaged)?;
        let version = value["version"].as_u64().and_then(|found| u32::try_from(found).ok());
        match version {
            None => return Err(NotKept::Damaged),
            Some(VERSION) => {}
            Some(found) => return Err(NotKept::Version(found)),
        }
        let model: KeptModel = serde_json::from_value(value).map_err(|_| NotKept::Damaged)?;
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        let is_possible = model.cost.is_possible() && is_share(model.requests) && is_share(model.bytes);
        if is_possible { Ok(model) } else { Err(NotKept::Impossible) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> KeptModel {
        let disk = DiskIdentity { name: "sda".into(), bytes: 7, ..DiskIdentity::default() };
        KeptModel::new(CostModel::capped(1_000_000, 3e3, 1.25e8), [0.9, 0.1], 40, disk)
    }

    #[test]
    fn a_model_comes_back_and_no_bent_byte_does() {
        let (model, good) = (model(), model().encode());
        assert_eq!(KeptModel::decode(&good), Ok(KeptModel { unix_s: model.unix_s, ..model }));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 4;
            assert_eq!(KeptModel::decode(&bad), Err(NotKept::Damaged), "byte {at}");
            assert_eq!(KeptModel::decode(&good[..at]), Err(NotKept::Damaged), "cut at {at}");
        }
    }

    #[test]
    fn whole_files_that_say_what_cannot_be_are_told() {
        let encode =
            |line: &str| format!("{line}\n{:016x}\n", XxHash3_64::oneshot(line.as_bytes())).into_bytes();
        let changed = |from: &str, to: &str| {
            let text = String::from_utf8(model().encode()).unwrap();
            let line = text.lines().next().unwrap();
            assert!(line.contains(from), "{line}");
            KeptModel::decode(&encode(&line.replace(from, to)))
        };
        assert_eq!(changed("\"version\":1", "\"version\":2"), Err(NotKept::Version(2)));
        assert_eq!(changed("\"latency_ns\":1000000", "\"latency_ns\":0"), Err(NotKept::Impossible));
        assert_eq!(changed("\"requests\":0.9", "\"requests\":9"), Err(NotKept::Impossible));
        assert_eq!(changed("\"looks\":40,", ""), Err(NotKept::Damaged));
        for line in ["", "{}", "[]", "null", "{\"version\":1}"] {
            assert_eq!(KeptModel::decode(&encode(line)), Err(NotKept::Damaged), "{line}");
        }
    }
}
