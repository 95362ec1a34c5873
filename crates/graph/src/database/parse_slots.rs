//! Slots for parsing documents. A parser holds buffers and tables that are not charged to the
//! memory budget, so the number of documents parsed at once is limited by the budget.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::interrupt::Interrupt;

/// Bytes of the memory budget per document parsed at the same time.
const BYTES_EACH: u64 = 128 << 20;

/// Most documents parsed at once, whatever the memory.
const MOST: usize = 8;

/// How often a waiting document checks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// The slots of a database.
#[derive(Debug, Default)]
pub(crate) struct ParseSlots {
    taken: Mutex<usize>,
    freed: Condvar,
}

/// A slot, held until it is dropped.
pub(crate) struct ParseSlot {
    slots: Arc<ParseSlots>,
}

impl ParseSlots {
    /// Waits for a slot under a memory budget of `budget_bytes`; `None` once the work is cancelled.
    /// The value that `waits` returns is held while it waits.
    pub fn take<W>(
        self: &Arc<Self>,
        budget_bytes: u64,
        waits: impl FnOnce() -> W,
        cancel: &dyn Interrupt,
    ) -> Option<ParseSlot> {
        let most = ((budget_bytes / BYTES_EACH) as usize).clamp(1, MOST);
        let mut taken = self.taken.lock();
        if *taken >= most {
            let _wait = waits();
            while *taken >= most {
                if cancel.is_set() {
                    return None;
                }
                self.freed.wait_for(&mut taken, LOOK);
            }
        }
        *taken += 1;
        Some(ParseSlot { slots: Arc::clone(self) })
    }
}

impl Drop for ParseSlot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken.lock();
        assert!(*taken > 0, "a turn is given back once");
        *taken -= 1;
        drop(taken);
        self.slots.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn few_parse_at_once_and_who_waits_can_be_stopped() {
        let slots = Arc::<ParseSlots>::default();
        let go_on = AtomicBool::new(false);
        let first = slots.take(BYTES_EACH, || (), &go_on).unwrap();
        assert!(slots.take(BYTES_EACH, || (), &AtomicBool::new(true)).is_none(), "there is one turn");
        let second = slots.take(2 * BYTES_EACH, || (), &go_on).unwrap();
        drop(first);
        assert!(slots.take(BYTES_EACH, || (), &AtomicBool::new(true)).is_none(), "the second still has it");
        drop(second);
        slots.take(1, || (), &go_on).unwrap();
    }
}
