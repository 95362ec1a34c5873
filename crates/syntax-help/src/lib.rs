//! Syntax errors of SPARQL for people and programs.
//!
//! Crate `syntax` says facts: the place, the token there, those that were expected. This crate
//! guesses from them and shows the result. The edges of the product use it, the engine does not:
//! a guess changes neither a verdict nor a tree.
//!
//! | module | what it is |
//! |---|---|
//! | `near` | the word that another is a misspelling of |
//! | `cause` | the likely cause of an error |
//! | `report` | errors with carets and causes, as text and as JSON |

mod cause;
mod near;
mod report;

pub use cause::likely_cause;
pub use report::Report;
