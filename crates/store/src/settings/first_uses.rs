//! First uses: the pages that readers used, each noted at its first use since it was read.
//!
//! Some work needs exactly these reads, by whatever rule and in whatever order, so the least time
//! for it on a given device can be reckoned from them. Useless reads are not among them.

use parking_lot::Mutex;

use crate::page::geometry::Place;

/// A page's first use since it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstUse {
    /// When, by the store's clock; of a read that its reader waited for, when it began.
    pub at_ns: u64,
    /// The stripe that the page lies on.
    pub stripe: usize,
    /// Where its bytes begin there.
    pub offset: u64,
}

/// First uses, in the order in which they were noted. It grows by 24 bytes with each.
#[derive(Debug, Default)]
pub struct FirstUses(Mutex<Vec<FirstUse>>);

impl FirstUses {
    pub(crate) fn note(&self, at_ns: u64, place: Place) {
        self.0.lock().push(FirstUse { at_ns, stripe: place.stripe, offset: place.offset });
    }

    /// Takes what was recorded until now.
    pub fn take(&self) -> Vec<FirstUse> {
        std::mem::take(&mut self.0.lock())
    }
}
