//! The least time in which a capped volume delivers given pages.
//!
//! The pages are known before, so they may be read in any order, together with gaps between them.
//! A choice is a length: shorter gaps are read, longer ones are not. Each choice has a number of
//! requests and of bytes; it takes the longer of the two times under their caps. The least time of
//! all choices is the offline optimum. A request may be of any length. Processor time is left out.

use std::str::FromStr;

use serde::Serialize;
use snowmelt_base::size;
use snowmelt_store::{FirstUse, PAGE_BYTES};

/// Caps of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Caps {
    /// Requests per second.
    pub requests_per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
}

impl FromStr for Caps {
    type Err = String;

    fn from_str(text: &str) -> Result<Caps, String> {
        let usage = || "use REQUESTS,BYTES per second, as 3000,125MiB".to_string();
        let (requests, bytes) = text.split_once(',').ok_or_else(usage)?;
        let requests: u64 = requests.parse().map_err(|_| usage())?;
        let bytes = size::parse(bytes).map_err(|_| usage())?;
        if requests == 0 || bytes == 0 {
            return Err(usage());
        }
        Ok(Caps { requests_per_s: requests as f64, bytes_per_s: bytes as f64 })
    }
}

/// The least time for the pages that were used until a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Optimum {
    /// The moment, in seconds since the beginning.
    pub until_s: f64,
    /// Pages that were used until then.
    pub pages: usize,
    /// Requests of the choice that takes the least time.
    pub requests: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its time.
    pub seconds: f64,
}

impl Optimum {
    /// The optimum for the pages used in the first `until_s` seconds after `begun_ns`, with a
    /// volume under each stripe.
    pub fn find(uses: &[FirstUse], begun_ns: u64, until_s: f64, caps: Caps) -> Optimum {
        let until_ns = begun_ns + (until_s * 1e9) as u64;
        let mut places: Vec<(usize, u64)> = uses
            .iter()
            .filter(|used| used.at_ns <= until_ns)
            .map(|used| (used.stripe, used.offset / PAGE_BYTES as u64))
            .collect();
        places.sort_unstable();
        places.dedup();
        let mut optimum = Optimum { until_s, pages: places.len(), requests: 0, bytes: 0, seconds: 0.0 };
        for stripe in places.chunk_by(|a, b| a.0 == b.0) {
            let (requests, pages) = least(stripe, caps);
            optimum.requests += requests;
            optimum.bytes += pages * PAGE_BYTES as u64;
            optimum.seconds = optimum.seconds.max(caps.seconds(requests, pages));
        }
        optimum
    }

    /// A line.
    pub fn text(&self) -> String {
        format!(
            "until {:.2} s {} pages were used; in {} requests of {:.1} MiB they can be read in {:.2} s, {:.2} of that time",
            self.until_s,
            self.pages,
            self.requests,
            self.bytes as f64 / (1 << 20) as f64,
            self.seconds,
            self.seconds / self.until_s
        )
    }
}

impl Caps {
    fn seconds(&self, requests: u64, pages: u64) -> f64 {
        let by_bytes = (pages * PAGE_BYTES as u64) as f64 / self.bytes_per_s;
        by_bytes.max(requests as f64 / self.requests_per_s)
    }
}

/// Requests and pages of the choice of gaps that costs least; `places` are sorted and distinct.
fn least(places: &[(usize, u64)], caps: Caps) -> (u64, u64) {
    let mut gaps: Vec<u64> = places.windows(2).map(|two| two[1].1 - two[0].1 - 1).collect();
    gaps.sort_unstable();
    let (mut requests, mut pages) = (places.len() as u64, places.len() as u64);
    let mut best = (requests, pages);
    for gap in gaps {
        requests -= 1;
        pages += gap;
        if caps.seconds(requests, pages) <= caps.seconds(best.0, best.1) {
            best = (requests, pages);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = PAGE_BYTES as u64;

    fn uses(pages: &[u64]) -> Vec<FirstUse> {
        let at = |(i, page): (usize, &u64)| FirstUse { at_ns: i as u64, stripe: 0, offset: page * PAGE };
        pages.iter().enumerate().map(at).collect()
    }

    fn caps(requests: u64, pages: u64) -> Caps {
        Caps { requests_per_s: requests as f64, bytes_per_s: (pages * PAGE) as f64 }
    }

    #[test]
    fn gaps_are_read_where_requests_are_what_is_scarce() {
        let trace = uses(&[9, 0, 2, 1, 5, 1]);
        // Five pages, of which 0 to 2 lie together: 3 requests at least, or 2 with a gap of two.
        let scarce_bytes = Optimum::find(&trace, 0, 1.0, caps(1000, 1));
        assert_eq!((scarce_bytes.pages, scarce_bytes.requests, scarce_bytes.bytes), (5, 3, 5 * PAGE));
        assert_eq!(scarce_bytes.seconds, 5.0);
        let scarce_requests = Optimum::find(&trace, 0, 1.0, caps(1, 1000));
        assert_eq!((scarce_requests.requests, scarce_requests.bytes), (1, 10 * PAGE));
        let both = Optimum::find(&trace, 0, 1.0, caps(1, 3));
        assert_eq!((both.requests, both.bytes), (2, 7 * PAGE), "{both:?}");
    }

    #[test]
    fn only_what_was_used_by_then_counts_and_each_stripe_has_a_volume() {
        let mut trace = uses(&[0, 10, 20, 30]);
        assert_eq!(Optimum::find(&trace, 0, 1e-9, caps(1, 1)).pages, 2);
        trace[3].stripe = 1;
        let optimum = Optimum::find(&trace, 0, 1.0, caps(1000, 1));
        assert_eq!((optimum.requests, optimum.seconds), (4, 3.0), "the slower of two");
        assert_eq!((optimum.pages, optimum.bytes), (4, 4 * PAGE), "of both");
        assert_eq!(Optimum::find(&[], 0, 1.0, caps(1, 1)).seconds, 0.0);
        // The clock began long before the run.
        const BEGUN: u64 = 1 << 40;
        trace.iter_mut().for_each(|u| u.at_ns += BEGUN);
        assert_eq!(Optimum::find(&trace, BEGUN, 1e-9, caps(1, 1)).pages, 2);
        assert_eq!(Optimum::find(&trace, BEGUN, 1.0, caps(1, 1)).pages, 4);
    }

    #[test]
    fn caps_are_read() {
        assert_eq!("3000,125MiB".parse(), Ok(Caps { requests_per_s: 3000.0, bytes_per_s: 131_072_000.0 }));
        for bad in ["", "3000", "0,1MiB", "3000,0", "3000,x", "-1,1MiB", "3000,125MiB,1"] {
            assert!(bad.parse::<Caps>().is_err(), "{bad}");
        }
    }
}
