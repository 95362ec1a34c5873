//! The rule that brought a page, kept in the page's word until its first use.
//!
//! The rules are described in `settings::read_ahead`.

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

// A word has three bits for the rule, and 0 means none.
const _: () = assert!(Rule::ALL.len() < 8, "a rule fits the bits of a word");

impl Rule {
    /// All rules, in the order of their numbers.
    pub const ALL: [Rule; 5] = [Rule::StartUp, Rule::Extent, Rule::Planned, Rule::Scan, Rule::Warm];

    /// The rule with a number; `None` for 0 and unknown numbers.
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
