//! From the characters of a text to its syntax tree, which crate `syntax` makes.
//!
//! 1. [`syntax`] parses a text with room for its tree. Constants of a text's shape become
//!    parameters, so that texts of equal shape share a plan.
//! 2. [`terms`] makes terms of a text those that the engine computes with.

pub(crate) mod iri;
pub(crate) mod prefixes;
pub(crate) mod syntax;
pub(crate) mod terms;
