//! A stack large enough for the deepest document that the guard lets through.
//!
//! The reader of JSON-LD recurses once per level, and the guard bounds the levels
//! ([`super::guard`]). The stack provided here suffices for that bound. The thread's own stack is
//! used if enough of it is left.

use super::guard::MOST_JSON_LEVELS;

/// Stack bytes that the reader takes per level: at least twice the measurement without
/// optimisation.
const LEVEL_STACK_BYTES: usize = 32 << 10;

/// Stack bytes besides the levels.
const BASE_BYTES: usize = 512 << 10;

/// Stack for any document that the guard lets through.
const STACK_BYTES: usize = BASE_BYTES + MOST_JSON_LEVELS * LEVEL_STACK_BYTES;

/// Runs a reader with that stack. The memory is mapped; only touched pages count.
pub(super) fn with_room<R>(parse: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(stack_bytes(), stack_bytes(), parse)
}

#[cfg(not(test))]
fn stack_bytes() -> usize {
    STACK_BYTES
}

/// In tests half of it: this checks that the sizes hold a twofold reserve without optimisation.
#[cfg(test)]
fn stack_bytes() -> usize {
    BASE_BYTES + (STACK_BYTES - BASE_BYTES) / 2
}
