//! Buffers that lookups, scans and counts hand on to the next one of their thread.
//!
//! A query makes many small lookups; allocating a descent and a cursor for each would cost as
//! much as the probe. What is handed on is memory, never content.

use std::cell::RefCell;

use crate::format::tuple::leaf::LeafCursor;
use crate::tree::descent::Descent;

/// Most sets of buffers a thread keeps.
const KEPT: usize = 16;

/// The buffers of one operation.
#[derive(Default)]
pub(crate) struct Spare {
    pub plan: Descent,
    pub cursor: LeafCursor,
    pub bytes: Vec<u8>,
}

thread_local! {
    static SPARE: RefCell<Vec<Spare>> = const { RefCell::new(Vec::new()) };
}

/// Buffers for an operation on a tree of `arity` columns.
pub(crate) fn take(arity: usize) -> Spare {
    let mut spare = SPARE.with(|s| s.borrow_mut().pop()).unwrap_or_default();
    spare.plan.reset();
    spare.cursor.reset(arity);
    spare
}

/// Hands buffers on.
pub(crate) fn give(spare: Spare) {
    // A thread that is ending has no place for them any more.
    let _ = SPARE.try_with(|s| {
        let mut kept = s.borrow_mut();
        if kept.len() < KEPT {
            kept.push(spare);
        }
    });
}
