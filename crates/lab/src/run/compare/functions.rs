//! The profiles of two runs beside each other: profiles of the same name, or the only one of each.

use std::path::Path;

use crate::LabError;
use crate::report::Section;
use crate::run::functions::{FunctionChange, changes, read, row, table};

/// Functions on the screen, and on the page.
const SHOWN: usize = 15;
const ON_PAGE: usize = 100;

/// Two profiles.
#[derive(Debug)]
pub(super) struct ProfilePair {
    name: String,
    changes: Vec<FunctionChange>,
}

/// The profiles that both runs have.
pub(super) fn compare(before: &Path, after: &Path) -> Result<Vec<ProfilePair>, LabError> {
    let (before, after) = (read(before)?, read(after)?);
    if let ([(a, ours)], [(b, theirs)]) = (&before[..], &after[..]) {
        let name = if a == b { a.clone() } else { format!("{a}, and {b}") };
        return Ok(vec![ProfilePair { name, changes: changes(ours, theirs) }]);
    }
    let pair = |(name, ours): &(String, Vec<_>)| {
        let (_, theirs) = after.iter().find(|(other, _)| other == name)?;
        Some(ProfilePair { name: name.clone(), changes: changes(ours, theirs) })
    };
    Ok(before.iter().filter_map(pair).collect())
}

/// A pair as lines for the screen.
pub(super) fn lines(pair: &ProfilePair) -> Vec<String> {
    let head = format!("\nfunctions, {}: own share before, after, difference in points", pair.name);
    let line = |change: &FunctionChange| {
        let [before, after, points, .., chance] = row(change);
        let chance = if chance == "no" { "  may be chance" } else { "" };
        format!("{before:>6} % {after:>6} % {points:>7}  {}{chance}", change.function)
    };
    [head].into_iter().chain(pair.changes.iter().take(SHOWN).map(line)).collect()
}

/// All pairs as a part of the page; nothing where there is none.
pub(super) fn section(pairs: &[ProfilePair]) -> Option<Section> {
    let figures: Vec<_> = pairs.iter().map(|pair| table(&pair.name, &pair.changes, ON_PAGE)).collect();
    (!figures.is_empty()).then(|| Section::new("Functions in both profiles", figures))
}
