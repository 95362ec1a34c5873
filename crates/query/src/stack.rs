//! Stack space for code that recurses as deep as a query.
//!
//! Code that recurses over a query (parser, rewrites, planner, operators, drops) runs through
//! [`with_room`]: on the thread's own stack if that has enough left, as for nearly all queries,
//! else on a stack made for the call. The thread stays the same, so counters kept per thread stay
//! right. The new stack is mapped memory: only pages that are touched count.

/// Runs `f` with at least `bytes` of stack.
pub fn with_room<R>(bytes: usize, f: impl FnOnce() -> R) -> R {
    #[cfg(feature = "scarcity")]
    if let Some(less) = scarcity::less(bytes) {
        return stacker::grow(less, f);
    }
    assert!(bytes < isize::MAX as usize, "a stack has an end");
    stacker::maybe_grow(bytes, bytes, f)
}

/// For tests: calls that ask for room on this thread get a part of it, and no more.
#[cfg(feature = "scarcity")]
pub mod scarcity {
    use std::cell::Cell;

    thread_local!(static PART: Cell<(usize, usize)> = const { Cell::new((1, 0)) });

    /// From now on, `base` bytes and one n-th of what exceeds them.
    pub fn set(n: usize, base: usize) {
        PART.set((n, base));
    }

    pub(super) fn less(bytes: usize) -> Option<usize> {
        let (part, base) = PART.get();
        (part > 1).then(|| base + bytes.saturating_sub(base) / part)
    }
}

/// A value nested as deep as a query: dropped with enough stack.
#[derive(Debug)]
pub struct Deep<T> {
    // there until it is dropped
    value: Option<T>,
    bytes: usize,
}

impl<T> Deep<T> {
    /// Guards a value whose recursion takes `bytes` of stack.
    pub fn new(value: T, bytes: usize) -> Self {
        Self { value: Some(value), bytes }
    }

    /// Replaces the value by one made of it.
    pub fn map(mut self, f: impl FnOnce(T) -> T) -> Self {
        self.value = self.value.take().map(f);
        self
    }

    /// Calls `f` on the value with enough stack.
    pub fn with<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        let value = self.value.as_mut().expect("there until it is dropped");
        with_room(self.bytes, || f(value))
    }
}

impl<T> Drop for Deep<T> {
    fn drop(&mut self) {
        let value = self.value.take();
        with_room(self.bytes, || drop(value));
    }
}
