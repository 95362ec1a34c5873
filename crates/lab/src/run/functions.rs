//! Functions in two profiles: which one's share of the processors grew.
//!
//! A profile is a number of samples of stacks. A function's *own* share is that of the samples in
//! which it runs itself, its share *with callees* that of those in which it is on the stack. Of
//! shares that rest on samples, a difference of less than twice its standard error is chance.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::report::{Column, Figure, Table};

/// Name of the file of a run folder that has these lines, without `.jsonl`.
pub const FILE: &str = "functions";

/// A function in a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionShare {
    /// Name of the profile within its run.
    pub profile: String,
    /// Samples of the whole profile.
    pub samples: u64,
    /// The function.
    pub function: String,
    /// Its own samples ÷ all.
    pub own: f64,
    /// Samples with it on the stack ÷ all.
    pub with_callees: f64,
}

/// A function in two profiles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionChange {
    /// The function.
    pub function: String,
    /// Its own share before; 0 where it has no sample.
    pub before: f64,
    /// And after.
    pub after: f64,
    /// Its shares with callees.
    pub with_callees: [f64; 2],
    /// The difference of its own shares is more than twice its standard error.
    pub is_beyond_chance: bool,
}

impl FunctionChange {
    /// After less before, as a share of all samples.
    pub fn difference(&self) -> f64 {
        self.after - self.before
    }
}

/// The functions of a run, by profile, in the order in which the profiles come. A run without
/// profiles has none.
///
/// # Errors
/// The file cannot be read.
pub fn read(run: &Path) -> Result<Vec<(String, Vec<FunctionShare>)>, LabError> {
    let path = run.join(FILE).with_extension("jsonl");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(&path).map_err(|e| LabError::file("read", &path, e))?;
    let mut profiles: Vec<(String, Vec<FunctionShare>)> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let share: FunctionShare = serde_json::from_str(line)
            .map_err(|e| LabError::Argument(format!("{}, line {}: {e}", path.display(), i + 1)))?;
        match profiles.iter_mut().find(|(name, _)| *name == share.profile) {
            Some((_, shares)) => shares.push(share),
            None => profiles.push((share.profile.clone(), vec![share])),
        }
    }
    Ok(profiles)
}

/// All functions of both profiles; those whose own share changed most come first.
pub fn changes(before: &[FunctionShare], after: &[FunctionShare]) -> Vec<FunctionChange> {
    let samples = |of: &[FunctionShare]| of.first().map_or(0, |share| share.samples) as f64;
    let (n, m) = (samples(before), samples(after));
    let mut both: BTreeMap<&str, [Option<&FunctionShare>; 2]> = BTreeMap::new();
    before.iter().for_each(|share| both.entry(&share.function).or_default()[0] = Some(share));
    after.iter().for_each(|share| both.entry(&share.function).or_default()[1] = Some(share));
    let change = |(function, shares): (&str, [Option<&FunctionShare>; 2])| {
        let [before, after] = shares.map(|share| share.map_or(0.0, |share| share.own));
        let pooled = (before * n + after * m) / (n + m).max(1.0);
        let error = (pooled * (1.0 - pooled) * (1.0 / n.max(1.0) + 1.0 / m.max(1.0))).sqrt();
        FunctionChange {
            function: function.to_owned(),
            before,
            after,
            with_callees: shares.map(|share| share.map_or(0.0, |share| share.with_callees)),
            is_beyond_chance: (after - before).abs() > 2.0 * error,
        }
    };
    let mut changes: Vec<FunctionChange> = both.into_iter().map(change).collect();
    changes.sort_by(|a, b| b.difference().abs().total_cmp(&a.difference().abs()));
    changes
}

/// Head of [`row`].
pub const HEAD: [&str; 6] =
    ["own before %", "own after %", "points", "with callees before %", "after %", "beyond chance"];

/// A change as cells, after the function's name.
pub fn row(change: &FunctionChange) -> [String; 6] {
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let [before, after] = change.with_callees.map(percent);
    let chance = if change.is_beyond_chance { "yes" } else { "no" };
    let points = format!("{:+.1}", change.difference() * 100.0);
    [percent(change.before), percent(change.after), points, before, after, chance.to_owned()]
}

/// The changes as a table of a page.
pub fn table(title: &str, changes: &[FunctionChange], most: usize) -> Figure {
    let mut columns = vec![Column::text("function")];
    columns.extend(HEAD.into_iter().map(Column::number));
    let cells = |change: &FunctionChange| {
        [change.function.clone()].into_iter().chain(row(change)).collect::<Vec<String>>()
    };
    Figure::Table(Table {
        title: title.to_owned(),
        note: "Shares of the samples, those that changed most first. Own: the function itself runs. Beyond \
               chance: the difference is more than twice its standard error."
            .into(),
        columns,
        rows: changes.iter().take(most).map(cells).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(function: &str, samples: u64, own: f64) -> FunctionShare {
        FunctionShare { profile: "p".into(), samples, function: function.into(), own, with_callees: own }
    }

    #[test]
    fn the_largest_change_comes_first_and_chance_is_told() {
        let before = [share("compare", 1000, 0.10), share("compile", 1000, 0.14), share("gone", 1000, 0.02)];
        let after = [share("compare", 1000, 0.31), share("compile", 1000, 0.13), share("new", 1000, 0.04)];
        let changes = changes(&before, &after);
        let names: Vec<&str> = changes.iter().map(|change| change.function.as_str()).collect();
        assert_eq!(names, ["compare", "new", "gone", "compile"]);
        assert_eq!(row(&changes[0])[..3], ["10.0", "31.0", "+21.0"].map(str::to_owned));
        assert_eq!((changes[1].before, changes[2].after), (0.0, 0.0));
        let beyond: Vec<bool> = changes.iter().map(|change| change.is_beyond_chance).collect();
        assert_eq!(beyond, [true, true, true, false]);
        let few = self::changes(&[share("compare", 20, 0.10)], &[share("compare", 20, 0.31)]);
        assert!(!few[0].is_beyond_chance, "20 samples: {few:?}");
    }

    #[test]
    fn profiles_come_back_from_their_file() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap().is_empty());
        let shares = [share("f", 9, 0.5), FunctionShare { profile: "q".into(), ..share("f", 8, 0.25) }];
        let text: String = shares.iter().map(|s| serde_json::to_string(s).unwrap() + "\n").collect();
        std::fs::write(dir.path().join("functions.jsonl"), text + "{}\n").unwrap();
        assert!(read(dir.path()).unwrap_err().to_string().contains("line 3"));
        let text: String = shares.iter().map(|s| serde_json::to_string(s).unwrap() + "\n").collect();
        std::fs::write(dir.path().join("functions.jsonl"), text).unwrap();
        let profiles = read(dir.path()).unwrap();
        assert_eq!(profiles.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["p", "q"]);
        assert_eq!(profiles[1].1, shares[1..]);
    }
}
