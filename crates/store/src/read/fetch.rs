//! Fetching: which pages to ask the devices for, and asking for them.
//!
//! Three ways to the device:
//! 1. a lone demand read in place, in the thread that needs it;
//! 2. a demand read through the queue, where the device's arm wants one sorted queue, or where
//!    the rest of its extent comes along: with an arm in the same request, without one behind
//!    it;
//! 3. batches (plans, scans, the rest of extents) through the queue, never waited for here.
//!
//! Each stripe has a device of its own, and every decision about a page is made by the costs of its
//! stripe: a batch over several stripes is one plan for each.
//!
//! Invariant: every read started here ends in `Core::arrive`, and is counted once, as `disk`, and
//! as `spec_disk` too if no reader waited for it.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;
use snowmelt_io::{Class, Clock, IoError, Request};

use crate::error::{Result, StoreError};
use crate::files::stripes::Stripes;
use crate::page::geometry::{ExtentId, Geometry};
use crate::page::{PageId, TreeId};
use crate::pool::rule::Rule;
use crate::pool::{Brought, PageRef, Pin};
use crate::read::activity::Activity;
use crate::read::advice::Advice;
use crate::read::core::Core;
use crate::read::priority::Priority;
use crate::read::regions::{RegionUse, Regions, extents_beside};
use crate::read::waits::WaitMeters;
use crate::read::warm::WarmUp;
use crate::settings::first_uses::FirstUses;
use crate::settings::read_ahead::ReadAhead;

/// Everything that reads pages into the pool.
pub(crate) struct Fetch {
    pub core: Arc<Core>,
    pub stripes: Stripes,
    pub geometry: Geometry,
    pub read_ahead: ReadAhead,
    pub clock: Clock,
    pub frame_wait_ms: u64,
    /// How long readers were blocked.
    pub waits: WaitMeters,
    /// Rule 5.
    pub warm_up: WarmUp,
    /// Pages wanted, by region.
    regions: Regions,
    /// Where first uses are recorded.
    first_uses: Option<Arc<FirstUses>>,
    /// Rule 2: extent → first miss of the window (ms) and misses since.
    history: Mutex<HashMap<ExtentId, (u64, u32)>>,
}

/// Result of a demand read.
pub(crate) enum Demand {
    /// Here it is.
    Page(PageRef),
    /// Its read was begun, together with so many pages in all.
    Started(u32),
    /// Another reader was faster; the caller looks again.
    Taken,
}

impl Fetch {
    pub fn new(
        core: Arc<Core>,
        stripes: Stripes,
        geometry: Geometry,
        warm_up: WarmUp,
        config: &crate::settings::config::StoreConfig,
    ) -> Fetch {
        Fetch {
            warm_up,
            waits: WaitMeters::new(stripes.len()),
            core,
            stripes,
            geometry,
            read_ahead: config.read_ahead.clone(),
            clock: config.seams.clock.clone(),
            frame_wait_ms: config.frame_wait_ms,
            history: Mutex::default(),
            regions: Regions::default(),
            first_uses: config.seams.first_uses.clone(),
        }
    }

    /// Reads an absent page of `tree` that a reader waits for, and the pages that rules 1, 2 and 5
    /// say should come along.
    pub fn demand(
        &self,
        tree: TreeId,
        page: PageId,
        priority: Priority,
        meters: &mut Activity,
    ) -> Result<Demand> {
        let frame = self.wait_for_frame()?;
        // Before the page is in flight: nothing that could panic may come between that and its
        // read.
        let rest = self.rest_of_extent(tree, page, 1);
        let stripe = self.geometry.place(page).stripe;
        let class = priority.demand();
        let in_place = class == Class::Demand && self.stripes.reads_in_place(stripe);
        let has_arm = self.stripes.cost(stripe).has_arm();
        let together = match &rest {
            Some((_, pages)) if has_arm && !in_place => pages.len() as u32 + 1,
            _ => 1,
        };
        self.core.pages.pool.note_batch(frame, together);
        if !self.core.pages.pool.start(page, frame, None) {
            self.core.pages.pool.give_back(frame);
            // Its extent is not asked for again.
            if let Some((rule, pages)) = rest {
                self.start(tree, &pages, rule, Class::Speculative, meters);
            }
            return Ok(Demand::Taken);
        }
        self.want(tree, self.geometry.extent_of(page), 1);
        meters.disk += 1;
        self.core.meters.with(tree, |m| {
            m.reads.fetch_add(1, Relaxed);
            m.missed(1);
        });
        self.note_first_use(page);
        let mut batch = Vec::new();
        let demanded = match in_place {
            true => Demand::Page(self.read_in_place(page)?),
            false => {
                batch.push(self.request(page, class));
                Demand::Started(together)
            }
        };
        let behind = match rest {
            Some((rule, pages)) if has_arm && !in_place => {
                self.put_in_flight(tree, &pages, rule, meters, |p| batch.push(self.request(p, class)));
                batch.sort_unstable_by_key(|r| r.offset);
                None
            }
            rest => rest,
        };
        self.stripes.submit(stripe, &mut batch);
        if let Some((rule, pages)) = behind {
            self.start(tree, &pages, rule, Class::Speculative, meters);
        }
        Ok(demanded)
    }

    /// Notes that a tree is dropped. Older snapshots may still read its pages; they count for
    /// dropped trees.
    pub fn forget_tree(&self, tree: TreeId) {
        self.core.meters.retire(tree);
        self.regions.forget(tree);
    }

    /// Notes that a reader uses the page for the first time since it was read, or waits for the
    /// read.
    fn note_first_use(&self, page: PageId) {
        if let Some(uses) = &self.first_uses {
            uses.note(self.clock.now_ns(), self.geometry.place(page));
        }
    }

    fn read_in_place(&self, page: PageId) -> Result<PageRef> {
        #[allow(unsafe_code)]
        // SAFETY: the caller put the page in flight, and it is read nowhere else.
        let frame = unsafe { self.core.pages.pool.in_place(page) };
        let read = self.stripes.read(self.geometry.place(page), frame, Class::Demand);
        let page = self.core.arrive(page, read, Pin::Yes)?;
        Ok(page.expect("a page that arrives for a reader is pinned"))
    }

    /// Called when a reader waits for pages whose reads were begun, or soon will: the guessed ones
    /// among them go before reads without a waiter. An arm keeps to its order, in which they come
    /// soon.
    pub fn hurry(&self, pages: &[PageId], class: Class) {
        let mut places: Vec<(usize, u64)> = pages
            .iter()
            .map(|page| self.geometry.place(*page))
            .filter(|place| !self.stripes.cost(place.stripe).has_arm())
            .map(|place| (place.stripe, place.offset))
            .collect();
        places.sort_unstable();
        for of_stripe in places.chunk_by(|a, b| a.0 == b.0) {
            let offsets: Vec<u64> = of_stripe.iter().map(|(_, offset)| *offset).collect();
            self.stripes.hurry(of_stripe[0].0, &offsets, class);
        }
    }

    /// Whether hurrying can be of use on some device.
    pub fn can_hurry(&self) -> bool {
        (0..self.stripes.len()).any(|stripe| !self.stripes.cost(stripe).has_arm())
    }

    /// A frame; waits while all are pinned or in flight, and gives up after `frame_wait_ms`.
    /// Looks again and again instead of being woken, because a wake-up would make every unpin
    /// dearer for a case that is rare.
    fn wait_for_frame(&self) -> Result<u32> {
        const PAUSE_NS: u64 = 200_000;
        let begun = self.clock.now_ns();
        loop {
            if let Some(frame) = self.core.pages.pool.take_frames(1).pop() {
                return Ok(frame);
            }
            let waited_ms = (self.clock.now_ns() - begun) / 1_000_000;
            if waited_ms >= self.frame_wait_ms {
                let frames = self.core.pages.pool.frame_count() as usize;
                return Err(StoreError::PoolExhausted { frames, waited_ms });
            }
            self.clock.sleep_ns(PAUSE_NS);
        }
    }

    /// Starts the reads of exactly these absent pages of `tree` (sorted), without those that
    /// wait on the warm list of a device with an arm, and of the rest of their extents where
    /// rules 1, 2 and 5 say so. Returns how many of `pages` were started.
    pub fn plan(
        &self,
        tree: TreeId,
        pages: &[PageId],
        rule: Rule,
        priority: Priority,
        meters: &mut Activity,
    ) -> u64 {
        if self.stripes.len() == 1 {
            return self.plan_on(0, tree, pages, rule, priority, meters);
        }
        let mut of_stripes: Vec<Vec<PageId>> = vec![Vec::new(); self.stripes.len()];
        pages.iter().for_each(|p| of_stripes[self.geometry.place(*p).stripe].push(*p));
        let of_stripes = of_stripes.iter().enumerate().filter(|(_, pages)| !pages.is_empty());
        of_stripes.map(|(stripe, pages)| self.plan_on(stripe, tree, pages, rule, priority, meters)).sum()
    }

    /// [`Fetch::plan`] for pages of one stripe.
    fn plan_on(
        &self,
        stripe: usize,
        tree: TreeId,
        pages: &[PageId],
        rule: Rule,
        priority: Priority,
        meters: &mut Activity,
    ) -> u64 {
        let has_arm = self.stripes.cost(stripe).has_arm();
        let coming;
        // Pages on the warm list come soon in the device's order: no reason to call an arm away. A
        // device without an arm reads many at once, so asking it does no harm.
        let pages = if !has_arm || self.warm_up.is_done_on(stripe) {
            pages
        } else {
            coming = self.warm_up.without(pages, self.geometry);
            &coming
        };
        let mut extents = Vec::new();
        for group in pages.chunk_by(|a, b| self.geometry.extent_of(*a) == self.geometry.extent_of(*b)) {
            if let Some(rest) = self.rest_of_extent(tree, group[0], group.len() as u32) {
                extents.push(rest);
            }
            self.want(tree, self.geometry.extent_of(group[0]), group.len() as u64);
        }
        let class = priority.ahead(rule);
        if extents.is_empty() || !has_arm {
            let started = self.start(tree, pages, rule, class, meters);
            for (rule, rest) in extents {
                self.start(tree, &rest, rule, Class::Speculative, meters);
            }
            return started;
        }
        // One sorted batch, so that each extent is one device request.
        let mut batch = Vec::new();
        let started = self.put_in_flight(tree, pages, rule, meters, |p| batch.push(self.request(p, class)));
        for (rule, rest) in extents {
            self.put_in_flight(tree, &rest, rule, meters, |p| batch.push(self.request(p, class)));
        }
        batch.sort_unstable_by_key(|r| r.offset);
        self.stripes.submit(stripe, &mut batch);
        started
    }

    /// Starts the reads of absent pages and returns how many. Never waits: pages without a frame
    /// are not read.
    pub fn start(
        &self,
        tree: TreeId,
        pages: &[PageId],
        rule: Rule,
        class: Class,
        meters: &mut Activity,
    ) -> u64 {
        let mut batches = self.batches();
        let started = self.put_in_flight(tree, pages, rule, meters, |p| self.push(&mut batches, p, class));
        self.submit(batches);
        if class == Class::Speculative && started > 0 && self.can_hurry() {
            // A reader that came between flight and queue found nothing there to hurry.
            let pool = &self.core.pages.pool;
            let awaited: Vec<PageId> = pages.iter().copied().filter(|p| pool.is_awaited(*p)).collect();
            if !awaited.is_empty() {
                self.hurry(&awaited, Class::Demand);
            }
        }
        started
    }

    /// Puts those of `pages` in flight that are absent and find a frame; `started` is called
    /// for each.
    pub fn put_in_flight(
        &self,
        tree: TreeId,
        pages: &[PageId],
        rule: Rule,
        meters: &mut Activity,
        mut started: impl FnMut(PageId),
    ) -> u64 {
        let pool = &self.core.pages.pool;
        // The warm list only fills what is free.
        let taken =
            if rule == Rule::Warm { pool.take_fresh(pages.len()) } else { pool.take_frames(pages.len()) };
        debug_assert!(taken.len() <= pages.len(), "no more frames than were asked for");
        let together = taken.len() as u32;
        let mut frames = taken.into_iter();
        let mut n = 0;
        for page in pages {
            let Some(frame) = frames.next() else { break };
            pool.note_batch(frame, together);
            if pool.start(*page, frame, Some(rule)) {
                n += 1;
                started(*page);
            } else {
                pool.give_back(frame);
            }
        }
        frames.for_each(|f| pool.give_back(f));
        assert!(n <= pages.len() as u64, "no more pages are read than were asked for");
        meters.disk += n;
        meters.spec_disk += n;
        self.core.meters.with(tree, |m| {
            m.reads.fetch_add(n, Relaxed);
            m.issued(rule, n);
            if !rule.is_guess() {
                m.missed(n);
            }
        });
        n
    }

    fn batches(&self) -> Vec<Vec<Request>> {
        (0..self.stripes.len()).map(|_| Vec::new()).collect()
    }

    fn push(&self, batches: &mut [Vec<Request>], page: PageId, class: Class) {
        debug_assert_eq!(batches.len(), self.stripes.len(), "a batch for each stripe");
        batches[self.geometry.place(page).stripe].push(self.request(page, class));
    }

    fn submit(&self, batches: Vec<Vec<Request>>) {
        for (stripe, mut batch) in batches.into_iter().enumerate() {
            if !batch.is_empty() {
                batch.sort_unstable_by_key(|r| r.offset);
                self.stripes.submit(stripe, &mut batch);
            }
        }
    }

    fn request(&self, page: PageId, class: Class) -> Request {
        let offset = self.geometry.place(page).offset;
        Request { offset, buf: self.core.pages.pool.target(page), class, tag: page.0 }
    }

    /// Notes the first use of a page that was read ahead.
    pub fn used_first(&self, tree: TreeId, page: PageId, brought: Brought) {
        self.core.meters.with(tree, |m| match brought.by.is_guess() {
            _ if brought.is_counted => m.used(brought.by),
            true => m.missed(1),
            false => {}
        });
        if brought.by.is_guess() {
            self.want(tree, self.geometry.extent_of(page), 1);
        }
        self.note_first_use(page);
    }

    /// Counts wanted pages of an extent.
    fn want(&self, tree: TreeId, extent: ExtentId, pages: u64) {
        if self.heeds_regions(extent) {
            self.regions.want(tree, extent, pages);
        }
    }

    /// Whether the use of an extent's region is counted: only while it may be asked for, which ends
    /// when the pool has been full.
    fn heeds_regions(&self, extent: ExtentId) -> bool {
        let rules = &self.read_ahead;
        let cost = || self.stripes.cost(self.geometry.extent_place(extent).stripe);
        rules.auto
            && (rules.start_up || rules.extent)
            && !self.core.pages.pool.was_full()
            && cost().has_caps()
    }

    /// Use of the region of an extent of which `misses` more pages are wanted.
    fn region(&self, tree: TreeId, extent: ExtentId, misses: u32) -> RegionUse {
        if !self.heeds_regions(extent) {
            return RegionUse::default();
        }
        let space = self.core.space.read();
        let extents = extents_beside(extent).filter_map(|extent| space.extent(extent));
        let pages = extents.filter(|e| e.tree == Some(tree)).map(|e| u64::from(e.pages())).sum();
        drop(space);
        self.regions.with(tree, extent, u64::from(misses), pages)
    }

    /// Rules 1, 2 and 5: which other pages of the extent to read now that `misses` of its pages,
    /// `page` among them, are missed. The warm list knows better than the guesses of the other
    /// rules.
    fn rest_of_extent(&self, tree: TreeId, page: PageId, misses: u32) -> Option<(Rule, Vec<PageId>)> {
        let extent = self.geometry.extent_of(page);
        if let Some(listed) = self.warm_up.take(extent, self.geometry) {
            let mut pages = self.absent_in_extent(extent);
            pages.retain(|p| *p != page && listed.has(self.geometry.index_of(*p)));
            return Some((Rule::Warm, pages));
        }
        let start_up = self.read_ahead.start_up && !self.core.pages.pool.was_full();
        let again = self.missed_again(extent, misses);
        let candidates = [start_up.then_some(Rule::StartUp), again.then_some(Rule::Extent)];
        let mut candidates = candidates.into_iter().flatten().peekable();
        candidates.peek()?;
        let mut pages = self.absent_in_extent(extent);
        pages.retain(|p| *p != page);
        if pages.is_empty() {
            return None;
        }
        let region = self.region(tree, extent, misses);
        let weighs = |r: Rule| self.is_worth_it(tree, extent, region, r, pages.len());
        let chosen = |r: &Rule| !self.read_ahead.auto || weighs(*r);
        Some((candidates.find(chosen)?, pages))
    }

    /// Rule 2: true when the misses of the extent within the window have reached their number;
    /// they are counted anew then.
    fn missed_again(&self, extent: ExtentId, misses: u32) -> bool {
        let r = &self.read_ahead;
        if !r.extent {
            return false;
        }
        let now = self.clock.now_ns() / 1_000_000;
        let mut history = self.history.lock();
        let (since, count) = history.entry(extent).or_insert((now, 0));
        // Another thread may have looked at the clock earlier and come later.
        if now.saturating_sub(*since) > r.extent_window_ms {
            (*since, *count) = (now, 0);
        }
        *count += misses;
        let reached = *count >= r.extent_misses;
        if reached {
            history.remove(&extent);
        }
        reached
    }

    fn is_worth_it(
        &self,
        tree: TreeId,
        extent: ExtentId,
        region: RegionUse,
        rule: Rule,
        absent: usize,
    ) -> bool {
        let (so_far, tree_pages) = self.core.meters.with(tree, |m| (m.ahead(rule), m.pages.load(Relaxed)));
        let stripe = self.geometry.extent_place(extent).stripe;
        let extent_pages = u64::from(self.geometry.extent_pages);
        let (wanted, all_wanted) = self.core.meters.wanted(tree);
        let advice = Advice {
            absent: absent as u64,
            wanted,
            all_wanted,
            region,
            so_far,
            regret: self.core.pages.pool.regret(),
            is_full: self.core.pages.pool.was_full(),
            outstanding: self.stripes.backlog(stripe) as u64,
            crowd: self.stripes.crowd(stripe) as u64,
            frames: u64::from(self.core.pages.pool.frame_count()),
            tree_pages,
            database_pages: self.core.space.read().len() * extent_pages,
            extent_pages,
        };
        advice.is_worth_it(&self.stripes.cost(stripe))
    }

    /// The written pages of an extent that are absent.
    pub fn absent_in_extent(&self, extent: ExtentId) -> Vec<PageId> {
        let space = self.core.space.read();
        let Some(e) = space.extent(extent) else { return Vec::new() };
        let written = (0..self.geometry.extent_pages).filter(|i| e.is_written(*i));
        let pages = written.map(|i| self.geometry.page(extent, i));
        pages.filter(|p| self.core.pages.pool.peek_absent(*p)).collect()
    }

    /// Fills `buf` from consecutive pages of one extent, past the pool: for checks.
    pub fn read_past_pool(&self, first: PageId, buf: &mut [u8]) -> std::result::Result<(), IoError> {
        self.stripes.read(self.geometry.place(first), buf, Class::Speculative)
    }
}
