//! Classes of differences, as `classes.txt` explains them.

use super::compare::{Difference, Language};

pub const NAMES: &[&str] = &[];

/// The class of a difference, if it has one.
pub fn of(_language: Language, _text: &str, _difference: &Difference) -> Option<&'static str> {
    None
}
