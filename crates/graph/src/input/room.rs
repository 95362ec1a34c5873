//! A stack as large as what the guard lets through is deep.
//!
//! The parser of JSON-LD calls itself for a term that is defined by another, and for contexts in
//! contexts. The guard bounds both ([`super::guard`]); this is the stack that suffices for the
//! most it lets through. The thread's own is used while it has that much left.

use super::guard::{LEVEL_STACK_BYTES, MOST_JSON_LEVELS, MOST_TERMS, TERM_STACK_BYTES};

/// Stack of whatever else a parser calls.
const BASE_BYTES: usize = 512 << 10;

/// Stack for any document that the guard lets through.
const STACK_BYTES: usize = BASE_BYTES + MOST_TERMS * TERM_STACK_BYTES + MOST_JSON_LEVELS * LEVEL_STACK_BYTES;

/// Runs a parser with that stack. Memory is mapped for it; what is touched counts, and has been
/// charged by the guard.
pub(super) fn with_room<R>(parse: impl FnOnce() -> R) -> R {
    stacker::grow(stack_bytes(), parse)
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
