//! A run folder, read: its settings, its report, its lines by cell.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::LabError;
use crate::report::Report;
use crate::run::Comparison;

/// A run folder, read.
pub(super) struct LoadedRun {
    pub(super) path: PathBuf,
    pub(super) kind: String,
    pub(super) comparison: Comparison,
    pub(super) settings: Value,
    pub(super) machine: Value,
    pub(super) doubts: Vec<String>,
    pub(super) report: Report,
    pub(super) lines: Vec<Value>,
    pub(super) cells: Cells,
    pub(super) shown: Texts,
}

/// Identity of a cell: the values of the keys.
pub(super) type Key = Vec<Value>;

/// Values of each measure, repeat by repeat, cell by cell.
pub(super) type Cells = Vec<(Key, BTreeMap<String, Vec<f64>>)>;

/// Fields that are shown, as texts, line by line.
pub(super) type Texts = Vec<(Key, Vec<String>)>;

impl LoadedRun {
    /// Reads the folder of a run.
    pub(super) fn read(path: &Path) -> Result<LoadedRun, LabError> {
        let settings = json(&path.join("settings.json"))?;
        let strange = |what: &str| {
            let file = path.join("settings.json");
            LabError::Argument(format!("{}: {what}: not a run folder of this laboratory", file.display()))
        };
        let kind = settings["kind"].as_str().ok_or_else(|| strange("no kind"))?.to_string();
        let comparison: Comparison = serde_json::from_value(settings["comparison"].clone())
            .map_err(|e| strange(&format!("comparison: {e}")))?;
        if comparison.lines.is_empty() {
            return Err(LabError::Argument(format!("runs of `{kind}` have nothing to compare")));
        }
        let doubts = settings["doubts"].as_array().cloned().unwrap_or_default();
        let lines = lines(path, &comparison)?;
        let (cells, shown) = (cells(&lines, &comparison), shown(&lines, &comparison));
        Ok(LoadedRun {
            path: path.into(),
            kind,
            comparison,
            settings: settings["settings"].clone(),
            machine: json(&path.join("machine.json"))?,
            doubts: doubts.iter().filter_map(|d| d.as_str().map(String::from)).collect(),
            report: Report::load(path)?,
            lines,
            cells,
            shown,
        })
    }
}

fn json(path: &Path) -> Result<Value, LabError> {
    let text = fs::read_to_string(path).map_err(|e| LabError::file("read", path, e))?;
    serde_json::from_str(&text).map_err(|e| LabError::Argument(format!("{}: {e}", path.display())))
}

/// Gives both runs the keys of either: a run from before a setting was a key has no value of it,
/// as one that leaves the setting alone.
pub(super) fn key_alike(before: &mut LoadedRun, after: &mut LoadedRun) {
    let mut keys = before.comparison.keys.clone();
    keys.extend(after.comparison.keys.iter().filter(|key| !before.comparison.keys.contains(key)).cloned());
    for loaded in [before, after] {
        if loaded.comparison.keys != keys {
            loaded.comparison.keys = keys.clone();
            loaded.cells = cells(&loaded.lines, &loaded.comparison);
            loaded.shown = shown(&loaded.lines, &loaded.comparison);
        }
    }
}

/// The lines of the run in folder `run`.
fn lines(run: &Path, comparison: &Comparison) -> Result<Vec<Value>, LabError> {
    let path = &run.join(format!("{}.jsonl", comparison.lines));
    let text = fs::read_to_string(path).map_err(|e| LabError::file("read", path, e))?;
    let parse = |(i, line)| {
        serde_json::from_str(line)
            .map_err(|e| LabError::Argument(format!("{}, line {}: {e}", path.display(), i + 1)))
    };
    text.lines().enumerate().map(parse).collect()
}

fn key_of(line: &Value, comparison: &Comparison) -> Key {
    comparison.keys.iter().map(|key| line[key].clone()).collect()
}

/// The texts of each cell.
fn shown(lines: &[Value], comparison: &Comparison) -> Texts {
    if comparison.shown.is_empty() {
        return Vec::new();
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let texts = |line: &Value| comparison.shown.iter().map(|field| text(&line[field])).collect();
    lines.iter().map(|line| (key_of(line, comparison), texts(line))).collect()
}

/// The lines of a run, by cell, in the order in which cells first come.
fn cells(lines: &[Value], comparison: &Comparison) -> Cells {
    let mut cells: Cells = Vec::new();
    for line in lines {
        let key = key_of(line, comparison);
        let place = cells.iter().position(|(k, _)| *k == key).unwrap_or_else(|| {
            cells.push((key, BTreeMap::new()));
            cells.len() - 1
        });
        for measure in &comparison.measures {
            if let Some(value) = line[&measure.field].as_f64() {
                cells[place].1.entry(measure.field.clone()).or_default().push(value);
            }
        }
    }
    cells
}
