//! The read-ahead rules: what to read that nobody has asked for yet.
//!
//! 1. *start-up*: until the pool has been full once, a missed page brings the rest of its extent.
//! 2. *extent*: afterwards the n-th miss of an extent within a window brings the rest.
//! 3. *planned*: the exact pages of a batch, announced by the trees with `Reader::wish`.
//! 4. *scan*: the leaves ahead of a scan, as far as [`ScanAhead`] says.
//! 5. *warm list*: what was resident at the last shutdown, see `warm`.
//!
//! Each can be switched off; `auto` weighs 1 and 2 by the device's cost model, the pool's fill and what the rule's pages
//! were worth so far. Read-ahead never waits: without free frames it is dropped.

use crate::meters::AheadStats;

/// The rule that brought a page. The numbers 1 to 5 are stored in the page's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Rule {
    /// The pool was never full: the whole extent.
    StartUp = 1,
    /// Repeated misses of an extent: the rest of it.
    Extent = 2,
    /// Exactly the pages of a batch.
    Planned = 3,
    /// Leaves ahead of a scan.
    Scan = 4,
    /// Resident at the last shutdown.
    Warm = 5,
}

impl Rule {
    /// All rules, in the order of their numbers.
    pub const ALL: [Rule; 5] = [Rule::StartUp, Rule::Extent, Rule::Planned, Rule::Scan, Rule::Warm];

    /// The rule with a number; `None` for 0 and what does not exist.
    pub fn from_bits(bits: u8) -> Option<Rule> {
        Self::ALL.get((bits as usize).checked_sub(1)?).copied()
    }

    /// Position in [`Rule::ALL`].
    pub fn index(self) -> usize {
        self as usize - 1
    }

    /// True when its pages may well never be used, so that they enter the pool at the cold end.
    pub fn is_guess(self) -> bool {
        matches!(self, Rule::StartUp | Rule::Extent | Rule::Warm)
    }

    /// Name in options, tables and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Rule::StartUp => "start-up",
            Rule::Extent => "extent",
            Rule::Planned => "planned",
            Rule::Scan => "scan",
            Rule::Warm => "warm-list",
        }
    }
}

/// Which rules are on, and their sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAhead {
    /// Rule 1.
    pub start_up: bool,
    /// Rule 2.
    pub extent: bool,
    /// Rule 3.
    pub planned: bool,
    /// Rule 4.
    pub scan: bool,
    /// Rule 5.
    pub warm_list: bool,
    /// Use a rule that is on only where it is expected to pay.
    pub auto: bool,
    /// Rule 2: misses of an extent that trigger.
    pub extent_misses: u32,
    /// Rule 2: milliseconds within which they must fall.
    pub extent_window_ms: u64,
    /// Rule 4: most leaves ahead.
    pub scan_leaves: u32,
    /// Rule 5: seconds between savings of the list.
    pub warm_save_s: u64,
}

impl ReadAhead {
    /// Every rule, weighed.
    pub fn auto() -> Self {
        ReadAhead { auto: true, ..Self::all() }
    }

    /// Every rule, always.
    pub fn all() -> Self {
        ReadAhead {
            start_up: true,
            extent: true,
            planned: true,
            scan: true,
            warm_list: true,
            auto: false,
            extent_misses: 2,
            extent_window_ms: 20_000,
            scan_leaves: 3000,
            warm_save_s: 300,
        }
    }

    /// No rule: every page is read when it is asked for.
    pub fn none() -> Self {
        ReadAhead {
            start_up: false,
            extent: false,
            planned: false,
            scan: false,
            warm_list: false,
            ..Self::all()
        }
    }

    /// Reads `auto`, `none`, `all`, or a comma-separated list of rule names.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => return Ok(Self::auto()),
            "none" => return Ok(Self::none()),
            "all" => return Ok(Self::all()),
            _ => {}
        }
        let mut r = Self::none();
        for name in text.split(',') {
            let rule = Rule::ALL.into_iter().find(|r| r.name() == name.trim());
            let rule = rule.ok_or_else(|| {
                format!("no read-ahead rule {name:?}: start-up, extent, planned, scan, warm-list, none, all or auto")
            })?;
            *r.switch(rule) = true;
        }
        Ok(r)
    }

    fn switch(&mut self, rule: Rule) -> &mut bool {
        match rule {
            Rule::StartUp => &mut self.start_up,
            Rule::Extent => &mut self.extent,
            Rule::Planned => &mut self.planned,
            Rule::Scan => &mut self.scan,
            Rule::Warm => &mut self.warm_list,
        }
    }

    /// True when the rule is switched on.
    pub fn is_on(&self, rule: Rule) -> bool {
        match rule {
            Rule::StartUp => self.start_up,
            Rule::Extent => self.extent,
            Rule::Planned => self.planned,
            Rule::Scan => self.scan,
            Rule::Warm => self.warm_list,
        }
    }
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self::auto()
    }
}

/// What `auto` knows when it weighs rule 1 or 2 for an extent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advice {
    pub rule: Rule,
    /// What became of the pages the rule brought for this tree.
    pub so_far: AheadStats,
    pub frames: u64,
    pub tree_pages: u64,
    pub database_pages: u64,
}

impl Advice {
    /// Pages a guess counts for, against what was measured: eight extents of the default size.
    const PRIOR_WEIGHT: f64 = 2048.0;

    /// The chance that an absent page of the extent will be used while it is in the pool.
    ///
    /// Before anything was measured: even when the whole database fits the pool, less the smaller the pool is. Afterwards
    /// the share of pages used, of those whose fate is known once pages are evicted, else of all.
    pub fn chance(&self) -> f64 {
        let fits = (self.frames as f64 / self.database_pages.max(1) as f64).min(1.0);
        let prior = match self.rule {
            Rule::StartUp => 0.6 * fits,
            _ => 0.2 + 0.4 * fits,
        };
        let known = if self.so_far.evicted_unused > 0 {
            self.so_far.used + self.so_far.evicted_unused
        } else {
            self.so_far.issued
        };
        // A small tree cannot outvote the prior by its few pages.
        let weight = Self::PRIOR_WEIGHT.min(self.tree_pages as f64 + 1.0);
        (self.so_far.used as f64 + prior * weight) / (known as f64 + weight)
    }
}

/// How far a scan reads ahead (rule 4). One per scan.
///
/// After two consecutive leaves the distance starts at `FIRST` leaves; it doubles while the consumer finds leaves not yet there, and shrinks by an
/// eighth for each leaf that was there long before it was needed.
#[derive(Clone, Debug)]
pub struct ScanAhead {
    consecutive: u32,
    distance: u32,
    ready: u32,
    most: u32,
}

impl ScanAhead {
    const FIRST: u32 = 8;
    /// Leaves found ready in a row before the distance shrinks.
    const PATIENCE: u32 = 64;

    /// A scan that may read `most` leaves ahead; 0 switches the rule off.
    pub fn new(most: u32) -> Self {
        ScanAhead { consecutive: 0, distance: Self::FIRST.min(most), ready: 0, most }
    }

    /// Tells that the scan has visited its next leaf and whether it had to wait for it. Answers how many leaves beyond this
    /// one should be read or on their way now.
    pub fn visited(&mut self, waited: Waited) -> u32 {
        self.consecutive += 1;
        if self.consecutive < 2 {
            return 0;
        }
        match waited {
            Waited::Yes => {
                self.ready = 0;
                self.distance = (self.distance * 2).min(self.most);
            }
            Waited::No => {
                self.ready += 1;
                if self.ready > Self::PATIENCE {
                    self.distance = (self.distance - self.distance / 8).max(Self::FIRST.min(self.most));
                    self.ready = 0;
                }
            }
        }
        self.distance
    }

    /// The scan jumped: what it reads next is not the next leaf.
    pub fn jumped(&mut self) {
        self.consecutive = 0;
    }
}

/// Whether a page was there when it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The reader waited for a device.
    Yes,
    /// The page was resident.
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_parse() {
        assert_eq!(ReadAhead::parse("none"), Ok(ReadAhead::none()));
        assert_eq!(ReadAhead::parse("auto"), Ok(ReadAhead::auto()));
        let r = ReadAhead::parse("start-up,planned").unwrap();
        assert!(r.start_up && r.planned && !r.extent && !r.scan && !r.warm_list && !r.auto);
        assert!(ReadAhead::parse("start-up,bogus").unwrap_err().contains("bogus"));
        for rule in Rule::ALL {
            assert!(ReadAhead::parse(rule.name()).unwrap().is_on(rule));
            assert_eq!(Rule::from_bits(rule as u8), Some(rule));
        }
        assert_eq!(Rule::from_bits(0), None);
        assert_eq!(Rule::from_bits(7), None);
    }

    #[test]
    fn scan_distance_follows_the_consumer() {
        let mut s = ScanAhead::new(3000);
        assert_eq!(s.visited(Waited::Yes), 0, "one leaf is no scan");
        let mut last = 0;
        for _ in 0..20 {
            let d = s.visited(Waited::Yes);
            assert!(d >= last);
            last = d;
        }
        assert_eq!(last, 3000);
        for _ in 0..10_000 {
            last = s.visited(Waited::No);
        }
        assert_eq!(last, ScanAhead::FIRST);
        s.jumped();
        assert_eq!(s.visited(Waited::No), 0);
        let mut off = ScanAhead::new(0);
        assert_eq!((off.visited(Waited::Yes), off.visited(Waited::Yes)), (0, 0));
    }
}
