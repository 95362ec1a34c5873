//! The report of a comparison, and its lines on the screen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::report::{Bar, Bars, Column, Figure, Plot, Report, Section, Series, Table, Unit};
use crate::run::Measure;
use crate::run::compare::cell_names::CellNames;
use crate::run::compare::judge::{Judged, Pair, REPEATS, Verdict};
use crate::run::compare::loaded::LoadedRun;

/// Two runs, judged, on the way to a report.
pub(super) struct Page<'a> {
    before: &'a LoadedRun,
    after: &'a LoadedRun,
    judged: &'a Judged<'a>,
    cells: CellNames<'a>,
    /// Names of the two runs' folders.
    before_name: String,
    after_name: String,
}

impl<'a> Page<'a> {
    pub(super) fn new(before: &'a LoadedRun, after: &'a LoadedRun, judged: &'a Judged<'a>) -> Page<'a> {
        Page {
            before,
            after,
            judged,
            cells: CellNames::new(&before.comparison.keys, &judged.keys()),
            before_name: folder_name(&before.path),
            after_name: folder_name(&after.path),
        }
    }

    /// Each measure of each cell as a line for the screen.
    pub(super) fn rows(&self) -> impl Iterator<Item = String> {
        self.judged.pairs.iter().map(|pair| {
            format!(
                "{:<48} {:<16} {:>12} {:>12} {:>8}  {}",
                self.cells.name(&pair.key),
                pair.field,
                Unit::Plain.show(pair.before),
                Unit::Plain.show(pair.after),
                percent(pair),
                pair.verdict.name(),
            )
        })
    }

    /// The report.
    pub(super) fn report(&self) -> Report {
        let Judged { pairs, shown, alone } = self.judged;
        let mut report = Report::new(format!("{} against {}", self.after_name, self.before_name));
        report.summary = self.verdicts();
        if *alone > 0 {
            report.summary.push(format!("{alone} cells are in one of the runs only."));
        }
        if !shown.is_empty() {
            let alike = shown.iter().filter(|both| both.before == both.after).count();
            report.summary.push(format!("{alike} of {} cells show the same in both.", shown.len()));
            report.sections.push(Section::new("Beside each other", vec![self.shown_table()]));
        }
        if !pairs.is_empty() {
            report.sections.push(Section::new("Change by cell", self.change_figures()));
        }
        let over = self.overlaid();
        if !over.is_empty() {
            report.sections.push(Section::new("Over each other", over).with_text("Dashed: the run before."));
        }
        if !pairs.is_empty() {
            report.sections.push(Section::new("In numbers", vec![self.cell_table()]));
        }
        report.sections.push(Section::new("What else differs", vec![self.differences()]));
        report
    }

    /// A sentence or two for each measure.
    fn verdicts(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for Measure { field, .. } in &self.before.comparison.measures {
            let count = |verdict| {
                self.judged.pairs.iter().filter(|p| p.field == *field && p.verdict == verdict).count()
            };
            lines.push(format!(
                "{field}: better in {} cells, worse in {}, the same in {} (within 3 % or the repeats' own \
                 spread).",
                count(Verdict::Better),
                count(Verdict::Worse),
                count(Verdict::Same)
            ));
            let unjudged = count(Verdict::None);
            if unjudged > 0 {
                lines.push(format!(
                    "{field}: {unjudged} cells without a verdict: it takes {REPEATS} repeats in both runs."
                ));
            }
        }
        lines
    }

    /// Both values of each measure, cell by cell.
    fn cell_table(&self) -> Figure {
        let rows = self.judged.pairs.iter().map(|pair| {
            vec![
                self.cells.name(&pair.key),
                pair.field.clone(),
                Unit::Plain.show(pair.before),
                Unit::Plain.show(pair.after),
                percent(pair),
                pair.verdict.name().into(),
            ]
        });
        Figure::Table(Table {
            title: "Cell by cell".into(),
            note: String::new(),
            columns: vec![
                Column::text("cell"),
                Column::text("measure"),
                Column::number(&self.before_name),
                Column::number(&self.after_name),
                Column::number("change"),
                Column::text("verdict"),
            ],
            rows: rows.collect(),
        })
    }

    /// The fields that are shown, cell by cell.
    fn shown_table(&self) -> Figure {
        let rows = self.judged.shown.iter().flat_map(|both| {
            let fields = self.before.comparison.shown.iter().zip(both.before).zip(both.after);
            fields.map(|((field, before), after)| {
                vec![self.cells.name(both.key), field.clone(), before.clone(), after.clone()]
            })
        });
        Figure::Table(Table {
            title: "Shown by both".into(),
            columns: ["cell", "field", &self.before_name, &self.after_name].map(Column::text).into(),
            rows: rows.collect(),
            ..Table::default()
        })
    }

    /// After divided by before, cell by cell: one is no change.
    fn change_figures(&self) -> Vec<Figure> {
        let figure = |measure: &Measure| {
            let pairs = self.judged.pairs.iter().filter(|p| p.field == measure.field && p.before > 0.0);
            // Colour alone does not tell all readers the verdict.
            let told = |pair: &Pair| match pair.verdict {
                Verdict::Better | Verdict::Worse => format!(": {}", pair.verdict.name()),
                Verdict::Same | Verdict::None => String::new(),
            };
            let bars = pairs.map(|pair| Bar {
                name: self.cells.name(&pair.key) + &told(pair),
                value: pair.after / pair.before,
                range: None,
                group: pair.verdict as usize,
            });
            Figure::Bars(Bars {
                title: format!("{}: after divided by before", measure.field),
                note: format!(
                    "1 is no change, {} is better. Blue: within 3 % or the repeats' own spread; red: worse; \
                     green: better; yellow: no verdict.",
                    if measure.more_is_better { "more" } else { "less" }
                ),
                label: "ratio".into(),
                unit: Unit::Plain,
                bars: bars.collect(),
            })
        };
        self.before.comparison.measures.iter().map(figure).collect()
    }

    /// Lines that both reports have under one title.
    fn overlaid(&self) -> Vec<Figure> {
        let old = plots(&self.before.report);
        let both = plots(&self.after.report).into_iter().filter_map(|mut plot| {
            let other = old.iter().find(|o| o.title == plot.title && o.x == plot.x && o.y == plot.y)?;
            let mut series = Vec::new();
            for (i, mut line) in std::mem::take(&mut plot.series).into_iter().enumerate() {
                if let Some(same) = other.series.iter().find(|s| s.name == line.name && !s.dashed) {
                    let name = format!("{}: {}", self.before_name, line.name);
                    series.push(Series::new(name, same.points.clone()).coloured(i).dashed());
                }
                if !line.dashed {
                    line.name = format!("{}: {}", self.after_name, line.name);
                    series.push(line.coloured(i));
                }
            }
            plot.series = series;
            Some(Figure::Lines(plot))
        });
        both.collect()
    }

    /// Settings and circumstances that are not the same.
    fn differences(&self) -> Figure {
        let mut rows = Vec::new();
        let (before, after) = (self.before, self.after);
        for (a, b) in [(&before.settings, &after.settings), (&before.machine, &after.machine)] {
            let (a, b) = (values_by_path(a), values_by_path(b));
            let all: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in all {
                let (left, right) = (a.get(name), b.get(name));
                if left != right {
                    let show = |v: Option<&String>| v.cloned().unwrap_or_default();
                    rows.push(vec![name.clone(), show(left), show(right)]);
                }
            }
        }
        Figure::Table(Table {
            title: "Settings and circumstances that differ".into(),
            note: if rows.is_empty() { "None does.".into() } else { String::new() },
            columns: ["", &self.before_name, &self.after_name].map(Column::text).into(),
            rows,
        })
    }
}

pub(super) fn percent(pair: &Pair) -> String {
    let change = (pair.after / pair.before - 1.0) * 100.0;
    if change.is_finite() { format!("{change:+.1} %") } else { "–".into() }
}

fn plots(report: &Report) -> Vec<Plot> {
    let figures = report.sections.iter().flat_map(|section| &section.figures);
    figures.filter_map(|f| if let Figure::Lines(plot) = f { Some(plot.clone()) } else { None }).collect()
}

/// Every value of a JSON document by its path.
fn values_by_path(value: &Value) -> BTreeMap<String, String> {
    fn walk(path: &str, value: &Value, into: &mut BTreeMap<String, String>) {
        let below = |name: &str| if path.is_empty() { name.into() } else { format!("{path}.{name}") };
        match value {
            Value::Object(map) => map.iter().for_each(|(name, v)| walk(&below(name), v, into)),
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(i, v)| walk(&below(&i.to_string()), v, into));
            }
            Value::String(text) => drop(into.insert(path.into(), text.clone())),
            other => drop(into.insert(path.into(), other.to_string())),
        }
    }
    let mut all = BTreeMap::new();
    walk("", value, &mut all);
    all
}

/// The last part of a run's path.
fn folder_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}
