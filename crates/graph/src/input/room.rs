//! A stack as large as what the guard lets through is deep.
//!
//! The reader of JSON-LD calls itself for what is nested. The guard bounds that
//! ([`super::guard`]); this is the stack that suffices for the most it lets through. The thread's
//! own is used while it has that much left.

use super::guard::MOST_JSON_LEVELS;

/// Stack bytes that the reader takes for each level: at least twice what was measured without
/// optimisation.
const LEVEL_STACK_BYTES: usize = 32 << 10;

/// Stack of the rest.
const BASE_BYTES: usize = 512 << 10;

/// Stack for any document that the guard lets through.
const STACK_BYTES: usize = BASE_BYTES + MOST_JSON_LEVELS * LEVEL_STACK_BYTES;

/// Runs a reader with that stack. Memory is mapped for it; only what is touched counts.
pub(super) fn with_room<R>(parse: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(stack_bytes(), stack_bytes(), parse)
}

#[cfg(not(test))]
fn stack_bytes() -> usize {
    STACK_BYTES
}

/// In tests half of it: the figures hold a twofold reserve in a build without optimisation.
#[cfg(test)]
fn stack_bytes() -> usize {
    BASE_BYTES + (STACK_BYTES - BASE_BYTES) / 2
}
