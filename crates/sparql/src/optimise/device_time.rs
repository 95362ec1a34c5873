//! Device time of scans and look-ups.
//!
//! Expected reads are the distinct leaves that are touched, times the share of the index that
//! is absent; with all of it in memory they are none, and costs are those of the processor
//! alone. The time of a read follows from how the executor reads:
//!
//! * *One leaf* is waited for: the device's latency.
//! * *The leaves of a batch* of look-ups are asked for together: one wait, then what the device
//!   takes for one more request and its page.
//! * *A scan* waits for its first leaf, its second, and the first stretch ahead; then pages come
//!   in requests of [`SCAN_PAGES`].
//!
//! Keys that lie dense are no worse than a scan, because the queue reads through short gaps.
//! Inner nodes are left out: they are a hundredth of an index, and what is visited twice is
//! found in memory.

use snowmelt_graph::AnyIndex;

use crate::plan::{IndexPages, Reads};

/// Pages of a request of a scan: the longest that a queue merges.
const SCAN_PAGES: f64 = 256.0;

/// Where the keys of look-ups lie: among so many rows of an index, those under the constants
/// that the keys begin with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub index: AnyIndex,
    pub rows: f64,
}

/// Pages that a scan must save before it takes the place of look-ups.
const SAVED_PAGES: f64 = 32.0;

/// Device time that a scan must save before it takes the place of look-ups. Queries come back to
/// some leaves of an index more often than to others, and which of them are in memory is not
/// known; the leaves of a scan are seldom those. So a small advantage is none.
pub(super) fn handicap(reads: &Reads) -> f64 {
    reads.times().map_or(0.0, |times| SAVED_PAGES * (times.request_us + times.page_us))
}

/// Microseconds of a scan of so many rows of an index.
pub(super) fn scan(reads: &Reads, index: impl Into<AnyIndex>, rows: f64) -> f64 {
    let of = reads.index(index);
    scan_pages(reads, pages(of, rows) * of.residency.absent())
}

/// Microseconds of looking up so many keys, which find so many rows.
pub(super) fn lookup(reads: &Reads, reach: Reach, keys: f64, found: f64) -> f64 {
    let of = reads.index(reach.index);
    let absent = of.residency.absent();
    if absent == 0.0 {
        return 0.0;
    }
    let pages = pages(of, reach.rows);
    let touched = pages * (1.0 - (-keys / pages).exp());
    let touched = touched.max(found / rows_per_leaf(of)).min(pages);
    batch_pages(reads, touched * absent).min(scan_pages(reads, pages * absent))
}

/// Microseconds of reading so many different texts.
pub(super) fn texts(reads: &Reads, texts: f64) -> f64 {
    let Some((of, times)) = reads.texts() else { return 0.0 };
    let pages = of.leaves.max(1.0);
    let touched = pages * (1.0 - (-texts / pages).exp());
    touched * of.residency.absent() * (times.request_us + times.page_us)
}

/// Time of so many pages that are asked for together; fewer than one: perhaps one.
fn batch_pages(reads: &Reads, pages: f64) -> f64 {
    let Some(times) = reads.times() else { return 0.0 };
    let each = times.request_us + times.page_us;
    pages.min(1.0) * (times.lone_us - each).max(0.0) + pages * each
}

/// Time of so many pages that follow each other.
fn scan_pages(reads: &Reads, pages: f64) -> f64 {
    let Some(times) = reads.times() else { return 0.0 };
    let waits = pages.min(1.0) + (pages - 1.0).clamp(0.0, 1.0) + (pages - 2.0).clamp(0.0, 1.0);
    waits * times.lone_us + pages * times.page_us + (pages / SCAN_PAGES).floor() * times.request_us
}

/// Leaves that so many neighbouring rows take.
fn pages(of: IndexPages, rows: f64) -> f64 {
    (rows / rows_per_leaf(of)).clamp(1.0, of.leaves.max(1.0))
}

fn rows_per_leaf(of: IndexPages) -> f64 {
    (of.rows / of.leaves.max(1.0)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{INDEXES, Residency};
    use snowmelt_database::meters::PageTimes;
    use snowmelt_graph::Index;

    /// An index of 10,000 leaves with 700 rows each on a wide and slow volume.
    fn reads(residency: Residency) -> Reads {
        let pages = IndexPages { residency, rows: 7e6, leaves: 1e4 };
        Reads::new([pages; INDEXES], || PageTimes { lone_us: 3063.0, request_us: 333.0, page_us: 62.5 })
    }

    fn lookup_ms(residency: Residency, keys: f64) -> f64 {
        lookup(&reads(residency), Reach { index: Index::Psog.into(), rows: 7e6 }, keys, keys) / 1e3
    }

    #[test]
    fn nothing_is_read_of_what_is_in_memory() {
        assert_eq!(lookup_ms(Residency::Warm, 1000.0), 0.0);
        // Also where another index is cold, so that times are known.
        let pages = |residency| IndexPages { residency, rows: 7e6, leaves: 1e4 };
        let mut indexes = [pages(Residency::Cold); INDEXES];
        indexes[Index::Psog as usize] = pages(Residency::Warm);
        let one_warm = Reads::new(indexes, || reads(Residency::Cold).times().expect("all are cold"));
        let reach = |index: Index| Reach { index: index.into(), rows: 7e6 };
        for (index, is_warm) in [(Index::Psog, true), (Index::Posg, false)] {
            assert_eq!(scan(&one_warm, index, 7e6) == 0.0, is_warm);
            assert_eq!(lookup(&one_warm, reach(index), 1000.0, 1000.0) == 0.0, is_warm);
        }
    }

    #[test]
    fn a_page_alone_pays_the_latency_and_many_share_it() {
        let one = lookup_ms(Residency::Cold, 1.0);
        assert!((3.0..3.1).contains(&one), "{one} ms");
        let hundred = lookup_ms(Residency::Cold, 100.0);
        assert!((40.0..44.0).contains(&hundred), "3000 IOPS and one latency: {hundred} ms");
        let half = lookup_ms(Residency::Half, 100.0);
        assert!((20.0..24.0).contains(&half), "{half} ms");
    }

    #[test]
    fn dense_keys_cost_no_more_than_a_scan_of_where_they_lie() {
        let all = scan(&reads(Residency::Cold), Index::Psog, 7e6) / 1e3;
        assert!((630.0..660.0).contains(&all), "78 MiB at 125 MiB/s: {all} ms");
        assert_eq!(lookup_ms(Residency::Cold, 1e6), all);
        // A scan of a piece waits three times and is cheaper than the same number of scattered
        // leaves.
        let piece = scan(&reads(Residency::Cold), Index::Posg, 7000.0) / 1e3;
        assert!((9.0..10.5).contains(&piece), "{piece} ms");
    }
}
