//! Assumptions of a plan about its reads: how much of each index is in memory, and what reading
//! the rest costs.
//!
//! Residency is known in three steps, so that a plan is good for all states of memory that a
//! query may meet under the same key of the cache ([`Reads::push_key`]).

use snowmelt_database::meters::PageTimes;
use snowmelt_graph::AnyIndex;

use super::columns::{INDEXES, index_place};

/// An index of no more pages counts as resident: any plan has read the whole MiB soon.
const FEW_PAGES: u64 = 128;

/// Pages of an index that are read soon, whatever a plan does.
const AT_HAND: u64 = 16;

/// Share of a warm index that may be absent.
const WARM_ABSENT: f64 = 0.1;

/// Whether rows of an index can be looked at without reading: of so many pages a visit finds so
/// great a share absent.
pub(crate) fn is_at_hand(pages: u64, absent: f64) -> bool {
    pages <= AT_HAND || absent <= WARM_ABSENT
}

/// How much of what is visited of an index is in memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum Residency {
    /// nine tenths or more
    #[default]
    Warm,
    Half,
    /// less than a tenth
    Cold,
}

impl Residency {
    /// Of an index with so many pages, of which a visit finds so great a share absent.
    pub fn new(pages: u64, absent: f64) -> Self {
        match absent {
            _ if pages <= FEW_PAGES => Self::Warm,
            absent if absent <= WARM_ABSENT => Self::Warm,
            absent if absent <= 0.9 => Self::Half,
            _ => Self::Cold,
        }
    }

    /// The share of its pages that a plan takes to be absent.
    pub fn absent(self) -> f64 {
        match self {
            Self::Warm => 0.0,
            Self::Half => 0.5,
            Self::Cold => 1.0,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Half => "half",
            Self::Cold => "cold",
        }
    }
}

/// Figures that decide the cost of reading an index.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct IndexPages {
    pub residency: Residency,
    pub rows: f64,
    pub leaves: f64,
}

/// Assumptions of a plan about its reads.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Reads {
    indexes: [IndexPages; INDEXES],
    /// absent while all is warm
    times: Option<PageTimes>,
    /// pages of indexes are expected to be read
    has_absent: bool,
    /// the dictionary's strings, of a query that needs texts while they are not warm
    texts: Option<(IndexPages, PageTimes)>,
}

impl Reads {
    /// Nothing has to be read.
    pub fn none() -> Self {
        Self::default()
    }

    /// Of these indexes; `times` are asked for only if one is not warm.
    pub fn new(indexes: [IndexPages; INDEXES], times: impl FnOnce() -> PageTimes) -> Self {
        let is_cold = indexes.iter().any(|index| index.residency != Residency::Warm);
        Self { indexes, times: is_cold.then(times), has_absent: is_cold, texts: None }
    }

    /// With pages that are expected to be read, be they so few that all counts as warm.
    pub fn with_absent(self, has_absent: bool) -> Self {
        Self { has_absent: self.has_absent || has_absent, ..self }
    }

    /// Whether rows can be looked at while a plan is made: nothing has to be read for that.
    pub fn can_look(&self) -> bool {
        !self.has_absent
    }

    /// With the strings of the dictionary, which the query needs.
    pub fn with_texts(self, strings: IndexPages, times: impl FnOnce() -> PageTimes) -> Self {
        let is_cold = strings.residency != Residency::Warm;
        Self { texts: is_cold.then(|| (strings, times())), ..self }
    }

    /// The strings of the dictionary and the times of reading them; `None` if none has to be read.
    pub fn texts(&self) -> Option<(IndexPages, PageTimes)> {
        self.texts
    }

    /// The times of reading pages; `None` if nothing has to be read.
    pub fn times(&self) -> Option<PageTimes> {
        self.times
    }

    pub fn index(&self, index: impl Into<AnyIndex>) -> IndexPages {
        self.indexes[index_place(index.into())]
    }

    /// Appends these assumptions to the key that a plan is kept under. Nothing where all is in
    /// memory.
    pub fn push_key(&self, key: &mut Vec<u8>) {
        if let Some((strings, _)) = &self.texts {
            // no residency of an index
            key.push(0x80 | strings.residency as u8);
        }
        let Some(times) = self.times else {
            // it is made without samples, and once more when all has been read
            key.extend(self.has_absent.then_some(0x40));
            return;
        };
        key.extend(self.indexes.iter().map(|index| index.residency as u8));
        // in steps of four times: a device may turn out slower than it was taken to be
        for us in [times.lone_us, times.request_us + times.page_us] {
            key.push((us.max(1.0).log2() / 2.0) as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residency_has_three_steps() {
        let of = |absent| Residency::new(1000, absent);
        assert_eq!([of(1.0), of(0.95)], [Residency::Cold; 2]);
        assert_eq!([of(0.9), of(0.11)], [Residency::Half; 2]);
        assert_eq!([of(0.1), of(0.0)], [Residency::Warm; 2]);
        assert_eq!(Residency::new(FEW_PAGES, 1.0), Residency::Warm);
    }

    #[test]
    fn keys_tell_states_of_memory_apart_and_warm_ones_not() {
        let key_of = |residency, lone_us, page_us| {
            let mut indexes = [IndexPages::default(); INDEXES];
            indexes[1].residency = residency;
            let times = || PageTimes { lone_us, request_us: 1.0, page_us };
            let mut key = vec![7];
            Reads::new(indexes, times).push_key(&mut key);
            key
        };
        let key = |residency, lone_us| key_of(residency, lone_us, 1.0);
        assert_ne!(key_of(Residency::Cold, 80.0, 60.0), key(Residency::Cold, 80.0));
        assert_eq!(key(Residency::Warm, 80.0), [7]);
        assert_ne!(key(Residency::Half, 80.0), key(Residency::Cold, 80.0));
        assert_eq!(key(Residency::Cold, 80.0), key(Residency::Cold, 90.0));
        assert_ne!(key(Residency::Cold, 80.0), key(Residency::Cold, 8_000.0));
    }

    #[test]
    fn few_pages_are_no_reason_to_read_them_for_a_plan() {
        let warm = || Reads::new([IndexPages::default(); INDEXES], || unreachable!("all is warm"));
        let key_of = |reads: Reads| {
            let mut key = Vec::new();
            reads.push_key(&mut key);
            key
        };
        assert!(is_at_hand(FEW_PAGES, WARM_ABSENT) && is_at_hand(AT_HAND, 1.0));
        assert!(!is_at_hand(FEW_PAGES, 1.0));
        let absent = warm().with_absent(true).with_absent(false);
        assert!(warm().can_look());
        assert!(!absent.can_look() && absent.times().is_none());
        assert_ne!(key_of(absent), key_of(warm()));
    }
}
