//! System statistics: the cost of reading a page on each device, for the optimiser.
//!
//! | figure | of a device | Oracle's name |
//! |---|---|---|
//! | `single` | mean time of a read of one page that a reader waits for | SREADTIM |
//! | `multi` | mean time of a read of several pages in one request, and how many | MREADTIM, MBRC |
//!
//! Each comes from the best source there is: the store's own reads of late, once there are
//! enough of them; the probe of the device; the device's cost model.
//!
//! A plan needs three other figures, [`PageTimes`]: a page that is waited for alone costs the
//! device's latency, but each of many pages that are asked for together only costs one more request
//! and its transfer. The cost model has both; where reads of many pages are measured to be slower
//! or faster than it says, both are that much slower or faster.

use serde::Serialize;
use snowmelt_io::{CostModel, ProbedReads, ReadTimes};

use crate::files::stripes::Stripes;
use crate::page::PAGE_BYTES;

/// Reads of a kind that must have been seen before they count.
const ENOUGH_READS: u64 = 16;

/// Factor by which measured reads may move the cost model at most: a larger one says more of a
/// moment than of a device.
const MOST_MOVE: f64 = 8.0;

/// Bytes of a read of many pages where none was measured.
const MULTI_BYTES: u64 = 2 << 20;

/// Times of a device's reads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SystemStatistics {
    /// The device's name.
    pub device: String,
    /// A page that a reader waits for (SREADTIM).
    pub single: ReadTime,
    /// Several pages in one request (MREADTIM).
    pub multi: ReadTime,
}

/// Time of one kind of read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReadTime {
    /// Mean time, in microseconds.
    pub us: f64,
    /// Mean pages.
    pub pages: f64,
    /// Mean number of requests at the device, this one included.
    pub depth: f64,
    /// Reads that were measured, however few.
    pub reads: u64,
    /// Where the time comes from.
    pub source: TimeSource,
}

/// Where a time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeSource {
    /// The cost model of the device's kind.
    Assumed,
    /// A probe.
    Probed,
    /// The store's own reads.
    Measured,
}

impl TimeSource {
    /// Name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            TimeSource::Assumed => "assumed",
            TimeSource::Probed => "probed",
            TimeSource::Measured => "measured",
        }
    }
}

/// Time that reading absent pages takes, all devices of a store together, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageTimes {
    /// A page that is asked for alone and waited for.
    pub lone_us: f64,
    /// One more request among many that are asked for together.
    pub request_us: f64,
    /// The transfer of a page.
    pub page_us: f64,
}

impl SystemStatistics {
    fn new(device: &str, cost: &CostModel, lately: &ReadTimes, probed: Option<ProbedReads>) -> Self {
        let of_kind = |reads: u64, bytes: u64, probed_ns: Option<f64>| {
            let (ns, source) = match probed_ns {
                Some(ns) => (ns, TimeSource::Probed),
                None => (cost.alone_ns(bytes) as f64, TimeSource::Assumed),
            };
            let pages = bytes as f64 / PAGE_BYTES as f64;
            ReadTime { us: ns / 1e3, pages, depth: 1.0, reads, source }
        };
        let probed = probed.filter(|p| p.single_ns > 0.0 && p.multi_ns > 0.0);
        let multi_bytes = probed.map_or(MULTI_BYTES, |p| p.multi_bytes);
        let measured = |reads: &snowmelt_io::RecentReads, otherwise: ReadTime| match reads.reads {
            ENOUGH_READS.. => ReadTime {
                us: reads.mean_ns / 1e3,
                pages: reads.mean_bytes / PAGE_BYTES as f64,
                depth: reads.mean_depth,
                source: TimeSource::Measured,
                ..otherwise
            },
            _ => otherwise,
        };
        let single = of_kind(lately.single.reads, PAGE_BYTES as u64, probed.map(|p| p.single_ns));
        let multi = of_kind(lately.multi.reads, multi_bytes, probed.map(|p| p.multi_ns));
        SystemStatistics {
            device: device.to_string(),
            single: measured(&lately.single, single),
            multi: measured(&lately.multi, multi),
        }
    }
}

impl PageTimes {
    fn new(cost: &CostModel, known: &SystemStatistics) -> PageTimes {
        let bytes = (known.multi.pages * PAGE_BYTES as f64) as u64;
        let moved = match known.multi.source {
            // As many as are at the device share its time; one alone waits for all of it.
            TimeSource::Measured => {
                let shared_ns = cost.request_ns(bytes) as f64 * known.multi.depth.max(1.0);
                known.multi.us / (shared_ns.max(cost.alone_ns(bytes) as f64) / 1e3).max(1e-3)
            }
            TimeSource::Assumed | TimeSource::Probed => 1.0,
        };
        let moved = moved.clamp(1.0 / MOST_MOVE, MOST_MOVE);
        let request_us = cost.ns_per_request as f64 / 1e3;
        let page_us = cost.request_ns(PAGE_BYTES as u64) as f64 / 1e3 - request_us;
        PageTimes {
            lone_us: known.single.us,
            request_us: (request_us * moved).min(known.single.us),
            page_us: page_us * moved,
        }
    }
}

/// System statistics of every stripe's device.
pub(crate) fn of_devices(stripes: &Stripes) -> Vec<SystemStatistics> {
    (0..stripes.len()).map(|stripe| of_device(stripes, stripe)).collect()
}

fn of_device(stripes: &Stripes, stripe: usize) -> SystemStatistics {
    let (device, lately, probed) = stripes.read_times(stripe);
    SystemStatistics::new(device, &stripes.cost(stripe), &lately, probed)
}

/// Times of reading absent pages. Extents are dealt out to the stripes in turn: a page that is
/// waited for alone waits for one of them, of many pages each stripe has its part.
pub(crate) fn page_times(stripes: &Stripes) -> PageTimes {
    let n = stripes.len() as f64;
    assert!(n > 0.0, "a store has a stripe");
    let mut all = PageTimes { lone_us: 0.0, request_us: 0.0, page_us: 0.0 };
    for stripe in 0..stripes.len() {
        let one = PageTimes::new(&stripes.cost(stripe), &of_device(stripes, stripe));
        all.lone_us += one.lone_us / n;
        all.request_us += one.request_us / n / n;
        all.page_us += one.page_us / n / n;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmelt_io::RecentReads;

    fn lately(reads: u64, single_us: f64, multi_us: f64, pages: u64, depth: f64) -> ReadTimes {
        let of = |us: f64, pages: u64, mean_depth: f64| RecentReads {
            reads,
            mean_ns: us * 1e3,
            mean_bytes: (pages * PAGE_BYTES as u64) as f64,
            mean_depth,
        };
        ReadTimes { single: of(single_us, 1, 1.0), multi: of(multi_us, pages, depth) }
    }

    #[test]
    fn each_figure_comes_from_the_best_source() {
        let cost = CostModel::network();
        let probed = ProbedReads { single_ns: 4e6, multi_ns: 20e6, multi_bytes: 1 << 20 };
        let few = lately(ENOUGH_READS - 1, 9_000.0, 9_000.0, 10, 1.0);
        let assumed = SystemStatistics::new("d", &cost, &few, None);
        assert_eq!(
            (assumed.single.source, assumed.single.us.round(), assumed.multi.pages),
            (TimeSource::Assumed, 3063.0, 256.0)
        );
        let probed = SystemStatistics::new("d", &cost, &few, Some(probed));
        assert_eq!((probed.single.us, probed.multi.us, probed.multi.pages), (4_000.0, 20_000.0, 128.0));
        assert_eq!(probed.single.source, TimeSource::Probed);
        let many = lately(ENOUGH_READS, 9_000.0, 12_000.0, 10, 2.0);
        let measured = SystemStatistics::new("d", &cost, &many, None);
        assert_eq!((measured.single.us, measured.multi.us, measured.multi.pages), (9_000.0, 12_000.0, 10.0));
        assert_eq!(measured.multi.source, TimeSource::Measured);
    }

    #[test]
    fn pages_read_together_cost_what_the_device_takes_for_them() {
        let cost = CostModel::network();
        let times =
            |lately: &ReadTimes| PageTimes::new(&cost, &SystemStatistics::new("d", &cost, lately, None));
        let assumed = times(&ReadTimes::default());
        assert_eq!(
            (assumed.lone_us.round(), assumed.request_us.round(), assumed.page_us),
            (3063.0, 333.0, 62.5)
        );
        // A request of 100 pages costs 6583 µs of the device; four at once that take 26 ms each
        // are no slower than that.
        let shared = times(&lately(100, 3_000.0, 26_333.0, 100, 4.0));
        assert!((shared.request_us / assumed.request_us - 1.0).abs() < 0.01, "{shared:?}");
        // One at a time takes the device's latency, too: 9250 µs.
        let slower = times(&lately(100, 3_000.0, 26_333.0, 100, 1.0));
        assert!((slower.page_us / assumed.page_us - 2.85).abs() < 0.01, "{slower:?}");
        let most = times(&lately(100, 3_000.0, 1e9, 100, 1.0));
        assert!((most.page_us / assumed.page_us - MOST_MOVE).abs() < 0.01, "{most:?}");
        for cost in [CostModel::hdd(), CostModel::network(), CostModel::ssd(), CostModel::nvme()] {
            for pages in [2, 16, 256] {
                let as_modelled = cost.alone_ns(pages * PAGE_BYTES as u64) as f64 / 1e3;
                let reads =
                    lately(100, cost.alone_ns(PAGE_BYTES as u64) as f64 / 1e3, as_modelled, pages, 1.0);
                let times = PageTimes::new(&cost, &SystemStatistics::new("d", &cost, &reads, None));
                let moved = times.request_us / (cost.ns_per_request as f64 / 1e3);
                assert!((moved - 1.0).abs() < 0.01, "{pages} pages move it {moved} times");
            }
        }
        // Pages read together never cost more than pages read one by one.
        let quick = times(&lately(100, 200.0, 26_333.0, 100, 1.0));
        assert_eq!((quick.lone_us, quick.request_us), (200.0, 200.0));
    }
}
