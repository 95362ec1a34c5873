//! Where the pages of an extent come to lie once the pool is full.

#![allow(unsafe_code)]

use snowmelt_base::random::lcg;
use snowmelt_io::Clock;

use super::{Look, Pin, Pool};
use crate::page::PageId;
use crate::pool::rule::Rule;

/// Pages of an extent.
const EXTENT: u64 = 16;
const EXTENTS: u64 = 64;
const FRAMES: u32 = 256;

/// Reads of whole extents into a pool: pages that were read, and stretches of neighbouring frames
/// they came into.
#[derive(Default, Debug)]
struct Stretches {
    pages: u64,
    /// Stretches of neighbouring pages that were absent: with fewer it cannot be done.
    absent: u64,
    stretches: u64,
}

impl Stretches {
    /// Reads what is absent of an extent.
    fn read(&mut self, pool: &Pool, extent: u64, rule: Rule) {
        let pages = (extent * EXTENT..(extent + 1) * EXTENT).map(PageId);
        let absent: Vec<PageId> = pages.filter(|p| pool.peek_absent(*p)).collect();
        let frames = pool.take_frames(absent.len());
        assert_eq!(frames.len(), absent.len(), "nothing is pinned, so there are frames");
        let mut last = None;
        for (page, frame) in absent.into_iter().zip(frames) {
            assert!(pool.start(page, frame, Some(rule)), "it was absent");
            pool.publish(page, Pin::No);
            self.pages += 1;
            self.absent += u64::from(last.is_none_or(|(p, _)| p + 1 != page.0));
            self.stretches += u64::from(last.is_none_or(|(p, f)| (p + 1, f + 1) != (page.0, frame)));
            last = Some((page.0, frame));
        }
    }
}

fn use_page(pool: &Pool, page: PageId) {
    if let Look::<()>::Absent = pool.look(page, || None) {
        let frame = pool.take_frames(1)[0];
        assert!(pool.start(page, frame, None), "it was absent");
        pool.publish(page, Pin::No);
    }
}

/// Reads extents whole, and asks for single pages besides.
fn read_extents(rule: Rule, singles: u64) -> Stretches {
    let pool = Pool::alone(FRAMES, EXTENT * EXTENTS, &Clock::real()).expect("a pool");
    let mut state = 7;
    let mut below = |n: u64| (lcg(&mut state) >> 33) % n;
    let mut found = Stretches::default();
    for round in 0..4000 {
        if round == 400 {
            found = Stretches::default();
        }
        found.read(&pool, below(EXTENTS), rule);
        for _ in 0..singles {
            // An eighth of the pages takes half of the uses.
            let span = if below(2) == 0 { EXTENTS * EXTENT } else { EXTENTS * EXTENT / 8 };
            use_page(&pool, PageId(below(span)));
        }
    }
    found
}

#[test]
fn pages_of_an_extent_get_neighbouring_frames() {
    for (rule, singles, most) in [(Rule::Extent, 0, 1.0), (Rule::Extent, 4, 2.0), (Rule::Planned, 4, 2.0)] {
        let found = read_extents(rule, singles);
        let times = found.stretches as f64 / found.absent as f64;
        eprintln!("{rule:?}, {singles} single pages for each extent: {found:?}, {times:.2}");
        assert!(times <= most, "{times:.2} stretches of frames for a stretch of pages, not {most}");
    }
}
