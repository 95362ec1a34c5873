//! The cost of requests on a device, and the decisions that follow from it.
//!
//! A request costs a fixed time plus its bytes over the bandwidth. Two fixed times matter:
//! `latency_ns`, what one request alone waits, and `ns_per_request`, what one more request adds
//! when `depth` are outstanding. On a network volume the first is the way there and back, the
//! second one over the IOPS cap; on an HDD both are a seek and half a turn, less with a deep
//! queue. The gap worth reading through is what the device transfers in `ns_per_request`.

use serde::{Deserialize, Serialize};

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
}

impl CostModel {
    /// A disk with 7200 turns per minute and a queue of 32.
    pub const fn hdd() -> CostModel {
        CostModel { latency_ns: 12_000_000, ns_per_request: 6_000_000, bytes_per_s: 150_000_000, depth: 32 }
    }

    /// A SATA SSD, or a file of which nothing is known.
    pub const fn ssd() -> CostModel {
        CostModel { latency_ns: 120_000, ns_per_request: 12_000, bytes_per_s: 530_000_000, depth: 32 }
    }

    /// A network volume with 3000 IOPS and 125 MiB/s.
    pub const fn network() -> CostModel {
        CostModel { latency_ns: 3_000_000, ns_per_request: 333_333, bytes_per_s: 125 << 20, depth: 32 }
    }

    /// An NVMe drive.
    pub const fn nvme() -> CostModel {
        CostModel { latency_ns: 80_000, ns_per_request: 1_700, bytes_per_s: 3_000_000_000, depth: 64 }
    }

    /// Memory: for tests.
    pub const fn memory() -> CostModel {
        CostModel { latency_ns: 1_000, ns_per_request: 300, bytes_per_s: 10_000_000_000, depth: 16 }
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
        self.ns_per_request + self.transfer_ns(bytes)
    }

    /// Time until a request of `bytes` is answered when it is alone, in nanoseconds.
    pub fn alone_ns(&self, bytes: u64) -> u64 {
        self.latency_ns + self.transfer_ns(bytes)
    }

    fn transfer_ns(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_s.max(1))) as u64
    }

    /// The longest hole between two requests that is cheaper to read than to skip, in bytes.
    pub fn gap_bytes(&self) -> u64 {
        (u128::from(self.ns_per_request) * u128::from(self.bytes_per_s) / 1_000_000_000) as u64
    }

    /// Requests to keep outstanding (Little's law, or as measured).
    pub fn best_depth(&self) -> u32 {
        self.depth.max(1)
    }

    /// How far a sequential reader should be ahead, in bytes: what the device moves during two
    /// waits.
    pub fn read_ahead_bytes(&self) -> u64 {
        (2 * self.bytes_per_latency()).clamp(128 << 10, 16 << 20)
    }

    /// Bytes the device moves during one wait: with less outstanding, its bandwidth is not
    /// used.
    pub fn bytes_per_latency(&self) -> u64 {
        (u128::from(self.latency_ns) * u128::from(self.bytes_per_s) / 1_000_000_000) as u64
    }

    /// How many pages of an extent must be wanted before reading it whole is cheaper than
    /// reading them one by one.
    pub fn extent_break_even(&self, page_bytes: u64, extent_bytes: u64) -> f64 {
        self.request_ns(extent_bytes) as f64 / self.request_ns(page_bytes) as f64
    }

    /// True when reading a whole extent, of which `expected_pages` will be used, costs less
    /// device time than reading those alone.
    pub fn extent_read_ahead_worth(&self, page_bytes: u64, extent_bytes: u64, expected_pages: f64) -> bool {
        expected_pages > self.extent_break_even(page_bytes, extent_bytes)
    }

    /// True for a device with an arm, which wants all requests in one sorted queue: a slow one
    /// on which many requests at once gain little.
    pub fn has_arm(&self) -> bool {
        self.latency_ns >= 1_000_000 && self.latency_ns < 8 * self.ns_per_request
    }

    /// True for a device on which many small requests move about as much as few large ones.
    pub fn is_flash(&self) -> bool {
        /// A large page of a database.
        const SMALL_BYTES: u64 = 16 << 10;
        self.gap_bytes() < SMALL_BYTES
    }

    /// True when a lone demand read should go in place.
    pub fn in_place(&self) -> bool {
        !self.has_arm()
    }
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
    fn whole_extents_pay_after_few_pages_on_a_disk_and_many_on_flash() {
        let (page, extent) = (8192, 2 << 20);
        assert!(CostModel::hdd().extent_read_ahead_worth(page, extent, 4.0));
        assert!(!CostModel::nvme().extent_read_ahead_worth(page, extent, 100.0));
        let network = CostModel::network().extent_break_even(page, extent);
        assert!((38.0..46.0).contains(&network), "{network}");
    }
}
