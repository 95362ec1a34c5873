//! The cost of requests on a device, and the decisions that follow from it.
//!
//! A request costs a fixed time plus its bytes over the bandwidth, or the longer of the two
//! ([`Law`]). Two fixed times matter: `latency_ns`, what one request alone waits, and
//! `ns_per_request`, what one more request adds when `depth` are outstanding. On a network volume
//! the first is the round trip and the second is one second divided by the IOPS cap. On an HDD both
//! are a seek and half a turn, less with a deep queue. The gap worth reading through is what the
//! device transfers in `ns_per_request`.

use serde::{Deserialize, Serialize};

/// No hole is longer than an extent.
const MOST_GAP_BYTES: f64 = (2 << 20) as f64;

/// The least price of requests in the choice of gaps. While a device has time for more requests and
/// more bytes, a gap that takes less than a request costs nothing.
const LEAST_GAP_SHARE: f64 = 0.3;

/// On a device with caps, the longest guess as a multiple of the length at which a request takes as
/// much of one cap as of the other. With guesses so long, a small part of the allowed requests
/// moves all allowed bytes.
pub(crate) const GUESS_KNEES: u64 = 8;

/// The cost of requests on one device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CostModel {
    /// Time of one small request when nothing else is outstanding, in nanoseconds.
    pub latency_ns: u64,
    /// Time one more small request costs when `depth` are outstanding, in nanoseconds.
    pub ns_per_request: u64,
    /// Transfer rate of large requests, in bytes per second.
    pub bytes_per_s: u64,
    /// Requests that must be outstanding to reach `ns_per_request`.
    pub depth: u32,
    /// How requests and bytes are paid for.
    #[serde(default)]
    pub law: Law,
}

/// How the costs of requests and of bytes make the cost of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// Both are paid: a seek, then the transfer.
    #[default]
    Sum,
    /// The device allows so many requests and so many bytes per second, and the one that is scarce
    /// is paid for. `request_share` is the price of requests: 1 where they are all that is scarce,
    /// 0 where bytes are, between where both are.
    Caps {
        /// The price of requests.
        request_share: f64,
    },
}

/// Where a belief about costs comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostSource {
    /// Nothing is known.
    Assumed,
    /// The system: caps of the own cgroup, the name or the kind of the disk.
    Hint,
    /// An earlier run, which had learned it.
    Kept,
    /// A probe.
    Probed,
    /// The caller.
    #[default]
    Set,
    /// The completions of the work.
    Learned,
}

impl CostSource {
    /// As meters tell it.
    pub fn as_str(self) -> &'static str {
        match self {
            CostSource::Assumed => "assumed",
            CostSource::Hint => "hint",
            CostSource::Kept => "kept",
            CostSource::Probed => "probed",
            CostSource::Set => "set",
            CostSource::Learned => "learned",
        }
    }
}

impl CostModel {
    /// A disk with 7200 turns per minute and a queue of 32.
    pub const fn hdd() -> CostModel {
        CostModel {
            latency_ns: 12_000_000,
            ns_per_request: 6_000_000,
            bytes_per_s: 150_000_000,
            depth: 32,
            law: Law::Sum,
        }
    }

    /// A SATA SSD, or a file of which nothing is known.
    pub const fn ssd() -> CostModel {
        CostModel {
            latency_ns: 120_000,
            ns_per_request: 12_000,
            bytes_per_s: 530_000_000,
            depth: 32,
            law: Law::Sum,
        }
    }

    /// A network volume with 3000 IOPS and 125 MiB/s.
    pub const fn network() -> CostModel {
        CostModel {
            latency_ns: 3_000_000,
            ns_per_request: 333_333,
            bytes_per_s: 125 << 20,
            depth: 32,
            law: Law::Sum,
        }
    }

    /// An object store over the network: 30 ms to the first byte, 3000 requests and 125 MB per
    /// second.
    pub const fn object_store() -> CostModel {
        CostModel {
            latency_ns: 30_000_000,
            ns_per_request: 333_333,
            bytes_per_s: 125_000_000,
            depth: 128,
            law: Law::Sum,
        }
    }

    /// An NVMe drive.
    pub const fn nvme() -> CostModel {
        CostModel {
            latency_ns: 80_000,
            ns_per_request: 1_700,
            bytes_per_s: 3_000_000_000,
            depth: 64,
            law: Law::Sum,
        }
    }

    /// Memory: for tests.
    pub const fn memory() -> CostModel {
        CostModel {
            latency_ns: 1_000,
            ns_per_request: 300,
            bytes_per_s: 10_000_000_000,
            depth: 16,
            law: Law::Sum,
        }
    }

    /// A device with caps of requests and of bytes per second.
    pub fn capped(latency_ns: u64, requests_per_s: f64, bytes_per_s: f64) -> CostModel {
        let request_ns = (1e9 / requests_per_s).max(1.0);
        CostModel {
            latency_ns,
            ns_per_request: request_ns as u64,
            bytes_per_s: (bytes_per_s as u64).max(1),
            depth: Self::depth_of(latency_ns as f64, request_ns),
            law: Law::Caps { request_share: 0.5 },
        }
    }

    /// Twice what Little's law asks for, and as many as the device can take while it moves a guess.
    fn depth_of(latency_ns: f64, request_ns: f64) -> u32 {
        (2.0 * latency_ns / request_ns + 1.0 + GUESS_KNEES as f64).clamp(4.0, 256.0) as u32
    }

    /// The device behind caps. Where it is slower than a cap, nothing changes.
    pub fn behind_caps(&self, requests_per_s: Option<u64>, bytes_per_s: Option<u64>) -> CostModel {
        let request_ns =
            requests_per_s.map_or(0, |most| 1_000_000_000 / most.max(1)).max(self.ns_per_request);
        let bytes_per_s = bytes_per_s.unwrap_or(u64::MAX).min(self.bytes_per_s);
        if (request_ns, bytes_per_s) == (self.ns_per_request, self.bytes_per_s) {
            return *self;
        }
        let law = if self.has_arm() { Law::Sum } else { Law::Caps { request_share: self.request_share() } };
        CostModel { ns_per_request: request_ns, bytes_per_s, law, ..*self }
    }

    /// True of costs that a device can have: what is read from a file may be anything.
    pub fn is_possible(&self) -> bool {
        /// No device in use takes longer.
        const LONGEST_NS: u64 = 1_000_000_000_000;
        /// No device moves more.
        const MOST_BYTES_PER_S: u64 = 1_000_000_000_000_000;
        (1..=LONGEST_NS).contains(&self.latency_ns)
            && (1..=LONGEST_NS).contains(&self.ns_per_request)
            && (1..=MOST_BYTES_PER_S).contains(&self.bytes_per_s)
            && (1..=1024).contains(&self.depth)
            && (0.0..=1.0).contains(&self.request_share())
    }

    /// The default of a kind by its name (`hdd`, `ssd`, `network`, `nvme`, `memory`).
    pub fn of_kind(kind: &str) -> Option<CostModel> {
        match kind {
            "hdd" => Some(Self::hdd()),
            "ssd" => Some(Self::ssd()),
            "network" => Some(Self::network()),
            "nvme" => Some(Self::nvme()),
            "memory" => Some(Self::memory()),
            _ => None,
        }
    }

    /// Device time of a request of `bytes` among others, in nanoseconds.
    pub fn request_ns(&self, bytes: u64) -> u64 {
        match self.law {
            Law::Sum => self.ns_per_request.saturating_add(self.transfer_ns(bytes)),
            Law::Caps { .. } => self.ns_per_request.max(self.transfer_ns(bytes)),
        }
    }

    /// The price of a request of `bytes`, in nanoseconds, for comparison with other prices only.
    /// Requests and bytes are weighted by how scarce they are on the device.
    pub fn price_ns(&self, bytes: u64) -> f64 {
        let [request, byte] = self.prices();
        request + byte * bytes as f64
    }

    /// Price of a request and of a byte.
    fn prices(&self) -> [f64; 2] {
        let all = [self.ns_per_request as f64, 1e9 / self.bytes_per_s.max(1) as f64];
        match self.law {
            Law::Sum => all,
            Law::Caps { request_share } => [all[0] * request_share, all[1] * (1.0 - request_share)],
        }
    }

    /// The weight of requests in a price, 0 to 1: see [`Law::Caps`].
    pub fn request_share(&self) -> f64 {
        match self.law {
            Law::Sum => 0.5,
            Law::Caps { request_share } => request_share,
        }
    }

    /// Time until a request of `bytes` is answered when it is alone, in nanoseconds.
    pub fn alone_ns(&self, bytes: u64) -> u64 {
        self.latency_ns.saturating_add(self.transfer_ns(bytes))
    }

    /// Time in which the device moves `bytes`, in nanoseconds.
    pub fn transfer_ns(&self, bytes: u64) -> u64 {
        at_most(u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_s.max(1)))
    }

    /// The longest hole between two requests that is cheaper to read than to skip, in bytes.
    pub fn gap_bytes(&self) -> u64 {
        let law = match self.law {
            Law::Caps { request_share } => Law::Caps { request_share: request_share.max(LEAST_GAP_SHARE) },
            law => law,
        };
        let [request, byte] = CostModel { law, ..*self }.prices();
        (request / byte.max(f64::MIN_POSITIVE)).min(MOST_GAP_BYTES) as u64
    }

    /// Bytes that the device transfers while it takes one more request.
    pub fn bytes_per_request(&self) -> u64 {
        at_most(u128::from(self.ns_per_request) * u128::from(self.bytes_per_s) / 1_000_000_000)
    }

    /// Requests to keep outstanding (Little's law, or as measured).
    pub fn best_depth(&self) -> u32 {
        self.depth.max(1)
    }

    /// How far a sequential reader should be ahead, in bytes: what the device moves during two
    /// waits.
    pub fn read_ahead_bytes(&self) -> u64 {
        self.bytes_per_latency().saturating_mul(2).clamp(128 << 10, 16 << 20)
    }

    /// Bytes the device moves during one wait: with less outstanding, its bandwidth is not
    /// used.
    pub fn bytes_per_latency(&self) -> u64 {
        at_most(u128::from(self.latency_ns) * u128::from(self.bytes_per_s) / 1_000_000_000)
    }

    /// How many pages of an extent must be wanted before reading it whole is cheaper than
    /// reading them one by one.
    pub fn extent_break_even(&self, page_bytes: u64, extent_bytes: u64) -> f64 {
        self.price_ns(extent_bytes) / self.price_ns(page_bytes)
    }

    /// True when reading a whole extent, of which `expected_pages` will be used, costs less
    /// device time than reading those alone.
    pub fn extent_read_ahead_worth(&self, page_bytes: u64, extent_bytes: u64, expected_pages: f64) -> bool {
        expected_pages > self.extent_break_even(page_bytes, extent_bytes)
    }

    /// True for a device with an arm, which wants all requests in one sorted queue: a slow one
    /// on which many requests at once gain little.
    pub fn has_arm(&self) -> bool {
        self.law == Law::Sum && self.latency_ns >= 1_000_000 && self.latency_ns < 8 * self.ns_per_request
    }

    /// True where requests and bytes are limited apart from each other.
    pub fn has_caps(&self) -> bool {
        matches!(self.law, Law::Caps { .. })
    }

    /// True for a device on which many small requests move about as much as few large ones.
    pub fn is_flash(&self) -> bool {
        /// A large page of a database.
        const SMALL_BYTES: u64 = 16 << 10;
        self.bytes_per_request() < SMALL_BYTES
    }

    /// True when a lone demand read should go in place.
    pub fn in_place(&self) -> bool {
        !self.has_arm()
    }
}

/// A figure in 64 bits; larger ones become the greatest value.
fn at_most(figure: u128) -> u64 {
    u64::try_from(figure).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_follow_the_device() {
        assert_eq!(CostModel::hdd().gap_bytes(), 900_000);
        assert_eq!(CostModel::network().gap_bytes() / 8192, 5);
        assert_eq!(CostModel::nvme().gap_bytes() / 8192, 0);
        let all = [CostModel::hdd(), CostModel::network(), CostModel::ssd(), CostModel::nvme()];
        assert_eq!(all.map(|cost| cost.is_flash()), [false, false, true, true]);
    }

    #[test]
    fn caps_bound_what_is_believed() {
        let ssd = CostModel::ssd();
        assert_eq!(ssd.behind_caps(None, None), ssd);
        assert_eq!(ssd.behind_caps(Some(1 << 40), Some(1 << 40)), ssd, "wider than the device");
        let capped = ssd.behind_caps(Some(3_000), Some(125 << 20));
        assert_eq!((capped.ns_per_request, capped.bytes_per_s), (333_333, 125 << 20));
        assert!(capped.has_caps() && capped.latency_ns == ssd.latency_ns);
        let of_requests = ssd.behind_caps(Some(3_000), None);
        assert_eq!((of_requests.ns_per_request, of_requests.bytes_per_s), (333_333, ssd.bytes_per_s));
        let arm = CostModel::hdd().behind_caps(None, Some(1 << 20));
        assert!(arm.has_arm() && arm.bytes_per_s == 1 << 20);
        assert!(!CostModel::hdd().behind_caps(Some(0), Some(0)).is_possible());
    }

    #[test]
    fn impossible_costs_are_told() {
        let all =
            [CostModel::hdd(), CostModel::network(), CostModel::memory(), CostModel::capped(1, 1e9, 1.0)];
        assert!(all.iter().all(CostModel::is_possible));
        let nan = Law::Caps { request_share: f64::NAN };
        for cost in [
            CostModel { latency_ns: 0, ..CostModel::ssd() },
            CostModel { ns_per_request: u64::MAX, ..CostModel::ssd() },
            CostModel { bytes_per_s: 0, ..CostModel::ssd() },
            CostModel { bytes_per_s: u64::MAX, ..CostModel::ssd() },
            CostModel { depth: u32::MAX, ..CostModel::ssd() },
            CostModel { law: nan, ..CostModel::ssd() },
        ] {
            assert!(!cost.is_possible(), "{cost:?}");
        }
    }

    #[test]
    fn whole_extents_pay_after_few_pages_on_a_disk_and_many_on_flash() {
        let (page, extent) = (8192, 2 << 20);
        assert!(CostModel::hdd().extent_read_ahead_worth(page, extent, 4.0));
        assert!(!CostModel::nvme().extent_read_ahead_worth(page, extent, 100.0));
        let network = CostModel::network().extent_break_even(page, extent);
        assert!((38.0..46.0).contains(&network), "{network}");
    }
}
