//! One thing after another on a thread, not one within another.
//!
//! A store may answer within the call that asks it. That answer lets the next request begin, which
//! may be answered at once as well: with thousands of waiting requests, calls within calls would
//! overflow the stack. So work that comes up during other work of this kind is done after it, by
//! the same thread.

use std::cell::RefCell;
use std::collections::VecDeque;

type Deed = Box<dyn FnOnce()>;

thread_local! {
    /// Work that waits for the one being done; `None` when none is.
    static WAITING: RefCell<Option<VecDeque<Deed>>> = const { RefCell::new(None) };
}

/// Does `deed`: now, or after the one that this thread is doing.
pub(super) fn in_turn(deed: Deed) {
    let mut next = WAITING.with_borrow_mut(|waiting| match waiting {
        Some(waiting) => {
            waiting.push_back(deed);
            None
        }
        None => {
            *waiting = Some(VecDeque::new());
            Some(deed)
        }
    });
    let _idle = next.is_some().then(|| Idle);
    while let Some(deed) = next {
        deed();
        next = WAITING.with_borrow_mut(|waiting| waiting.as_mut().and_then(VecDeque::pop_front));
    }
}

/// Says that the thread does nothing, also when it panics.
struct Idle;

impl Drop for Idle {
    fn drop(&mut self) {
        // Dropped outside of the cell, since they may have more to do.
        let left = WAITING.with_borrow_mut(Option::take);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn calls_do_not_nest() {
        /// Calls that were made, and how deep they are now.
        type Calls = Rc<Cell<(u32, u32)>>;
        fn again(left: u32, calls: Calls) {
            let (made, depth) = calls.get();
            assert_eq!(depth, 0);
            calls.set((made + 1, depth + 1));
            if left > 1 {
                let calls = calls.clone();
                in_turn(Box::new(move || again(left - 1, calls)));
            }
            calls.set((calls.get().0, depth));
        }
        let calls = Calls::default();
        in_turn(Box::new({
            let calls = calls.clone();
            move || again(100_000, calls)
        }));
        assert_eq!(calls.get(), (100_000, 0));
    }

    #[test]
    fn work_goes_on_after_a_panic() {
        let panics = std::panic::catch_unwind(|| in_turn(Box::new(|| panic!("as it should"))));
        assert!(panics.is_err());
        let done = Rc::new(Cell::new(false));
        let told = done.clone();
        in_turn(Box::new(move || told.set(true)));
        assert!(done.get());
    }
}
