//! The read-ahead rules: which pages to read before a reader asks for them, and which rules are on.
//!
//! 1. *start-up*: until the pool has been full once, a missed page brings the rest of its extent.
//! 2. *extent*: afterwards the n-th miss of an extent within a window brings the rest.
//! 3. *planned*: the exact pages of a batch, announced by the trees with `Reader::wish`.
//! 4. *scan*: the leaves ahead of a scan, as far as `ScanAhead` says.
//! 5. *warm list*: what was resident at the last shutdown, see `warm`.
//!
//! Each can be switched off; `auto` weighs 1 and 2 before each use (`read::advice`). Read-ahead
//! never waits: without free frames it is dropped.

use crate::pool::rule::Rule;

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
    /// Rule 4: consecutive leaves that a scan visits before it begins.
    pub scan_after: u32,
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
            scan_after: 2,
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
}
