//! `lab compare RUN RUN`: the same cells of two runs beside each other.
//!
//! The run itself names the fields that make two lines the same cell, and the measured fields
//! (`settings.json`). Of several repeats the median is taken. A difference counts only when it
//! is larger than 3 %, and than the differences among the repeats of either run; and only where
//! both runs have three repeats or more: two say nothing about their own spread. Lines of the
//! two reports that have the same name are drawn over each other. Fields that are no measures,
//! as findings in words, are shown beside each other.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::report::{Bar, Bars, Column, Figure, Plot, Report, Section, Series, Table, Unit};
use crate::run::{Comparison, Measure};
use crate::stats::{median, spread};
use crate::{LabError, Run};

/// Put two runs of the same kind beside each other.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// The run to compare with: its folder.
    before: PathBuf,
    /// The run that is judged: its folder.
    after: PathBuf,
    /// Folder for the report, new or empty.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Differences up to this are none, however steady the runs were.
const LEAST: f64 = 0.03;
/// Repeats of a cell, in either run, from which there is a verdict.
const REPEATS: usize = 3;

/// A run folder, read.
struct Loaded {
    path: PathBuf,
    kind: String,
    comparison: Comparison,
    settings: Value,
    machine: Value,
    doubts: Vec<String>,
    report: Report,
    lines: Vec<Value>,
    cells: Cells,
    shown: Texts,
}

/// Identity of a cell: the values of the keys.
type Key = Vec<Value>;

/// Values of each measure, repeat by repeat, cell by cell.
type Cells = Vec<(Key, BTreeMap<String, Vec<f64>>)>;

/// Fields that are shown, as texts, line by line.
type Texts = Vec<(Key, Vec<String>)>;

/// One measure of one cell in both runs.
struct Pair {
    key: Key,
    field: String,
    before: f64,
    after: f64,
    verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Same,
    Worse,
    Better,
    /// too few repeats for one
    None,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Worse => "WORSE",
            Self::Better => "better",
            Self::None => "too few repeats",
        }
    }
}

/// Compares, and says where the report is.
pub fn run(args: &CompareArgs) -> Result<(), LabError> {
    let (mut before, mut after) = (Loaded::read(&args.before)?, Loaded::read(&args.after)?);
    if before.kind != after.kind {
        return Err(LabError::Argument(format!(
            "{} is a run of `{}` and {} one of `{}`: only runs of one kind can be compared",
            before.path.display(),
            before.kind,
            after.path.display(),
            after.kind
        )));
    }
    key_alike(&mut before, &mut after);
    let (pairs, alone) = pair_up(&before, &after);
    let beside = beside(&before, &after);
    if pairs.is_empty() && beside.is_empty() {
        return Err(LabError::Argument(format!(
            "{} and {} have no cell in common",
            before.path.display(),
            after.path.display()
        )));
    }
    let keys: Vec<&Key> = pairs.iter().map(|pair| &pair.key).chain(beside.iter().map(|b| b.key)).collect();
    let names = Names::of(&before.comparison.keys, &keys);
    for pair in &pairs {
        crate::say!("{}", said(&names, pair));
    }
    let report = report((&before, &after), &pairs, &beside, &names, alone);
    report.summary.iter().for_each(|line| crate::say!("{line}"));
    let mut run = Run::create("compare", args.out.as_deref())?;
    run.untimed();
    for loaded in [&before, &after] {
        loaded.doubts.iter().for_each(|doubt| run.doubt(format!("{}: {doubt}", loaded.path.display())));
    }
    crate::say!("\n{}", run.finish(report)?.display());
    Ok(())
}

impl Loaded {
    fn read(path: &Path) -> Result<Loaded, LabError> {
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
        Ok(Loaded {
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
fn key_alike(before: &mut Loaded, after: &mut Loaded) {
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

/// A cell's texts in both runs.
struct Beside<'a> {
    key: &'a Key,
    before: &'a [String],
    after: &'a [String],
}

/// Texts of the cells that both runs have.
fn beside<'a>(before: &'a Loaded, after: &'a Loaded) -> Vec<Beside<'a>> {
    let pair = |(key, texts): &'a (Key, Vec<String>)| {
        let (_, others) = after.shown.iter().find(|(other, _)| other == key)?;
        Some(Beside { key, before: texts, after: others })
    };
    before.shown.iter().filter_map(pair).collect()
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

/// All measures of cells that both runs have, and the number of cells that only one has.
fn pair_up(before: &Loaded, after: &Loaded) -> (Vec<Pair>, usize) {
    let mut pairs = Vec::new();
    let mut common = 0;
    for (key, ours) in &before.cells {
        let Some((_, theirs)) = after.cells.iter().find(|(k, _)| k == key) else { continue };
        common += 1;
        for measure in &before.comparison.measures {
            let (Some(a), Some(b)) = (ours.get(&measure.field), theirs.get(&measure.field)) else { continue };
            pairs.push(judge(key, measure, a, b));
        }
    }
    (pairs, before.cells.len() + after.cells.len() - 2 * common)
}

fn judge(key: &Key, measure: &Measure, a: &[f64], b: &[f64]) -> Pair {
    let (before, after) = (median(a).unwrap_or(0.0), median(b).unwrap_or(0.0));
    let noise = LEAST.max(spread(a).variation).max(spread(b).variation);
    let change = if before == after { 0.0 } else { after / before - 1.0 };
    let verdict = if a.len().min(b.len()) < REPEATS {
        Verdict::None
    } else if change.abs() <= noise {
        Verdict::Same
    } else if (change > 0.0) == measure.more_is_better {
        Verdict::Better
    } else {
        Verdict::Worse
    };
    Pair { key: key.clone(), field: measure.field.clone(), before, after, verdict }
}

/// How cells are called: by what tells them apart.
struct Names<'a> {
    keys: &'a [String],
    /// Whether the cells differ in it; all of them where there is one cell.
    tells: Vec<bool>,
}

impl<'a> Names<'a> {
    fn of(keys: &'a [String], cells: &[&Key]) -> Names<'a> {
        let differs = |i: usize| cells.iter().any(|key| key[i] != cells[0][i]);
        let mut tells: Vec<bool> = (0..keys.len()).map(differs).collect();
        if !tells.contains(&true) {
            tells.fill(true);
        }
        Names { keys, tells }
    }

    fn name(&self, key: &Key) -> String {
        let telling = self.keys.iter().zip(key).zip(&self.tells).filter(|(_, tells)| **tells);
        let shown = telling.filter_map(|((name, value), _)| {
            Some(match value {
                Value::Null => return None,
                Value::String(text) if text.is_empty() => return None,
                Value::String(text) => text.clone(),
                other => format!("{name}={other}"),
            })
        });
        shown.collect::<Vec<_>>().join(" ")
    }
}

fn said(names: &Names, pair: &Pair) -> String {
    format!(
        "{:<48} {:<16} {:>12} {:>12} {:>8}  {}",
        names.name(&pair.key),
        pair.field,
        Unit::Plain.show(pair.before),
        Unit::Plain.show(pair.after),
        percent(pair),
        pair.verdict.name(),
    )
}

fn percent(pair: &Pair) -> String {
    let change = (pair.after / pair.before - 1.0) * 100.0;
    if change.is_finite() { format!("{change:+.1} %") } else { "–".into() }
}

/// A sentence or two for each measure.
fn verdicts(measures: &[Measure], pairs: &[Pair]) -> Vec<String> {
    let mut lines = Vec::new();
    for measure in measures {
        let of = |verdict| pairs.iter().filter(|p| p.field == measure.field && p.verdict == verdict).count();
        lines.push(format!(
            "{}: better in {} cells, worse in {}, the same in {} (within 3 % or the repeats' own spread).",
            measure.field,
            of(Verdict::Better),
            of(Verdict::Worse),
            of(Verdict::Same)
        ));
        let unjudged = of(Verdict::None);
        if unjudged > 0 {
            lines.push(format!(
                "{}: {unjudged} cells without a verdict: it takes {REPEATS} repeats in both runs.",
                measure.field
            ));
        }
    }
    lines
}

fn report(
    (before, after): (&Loaded, &Loaded),
    pairs: &[Pair],
    beside: &[Beside],
    cells: &Names,
    alone: usize,
) -> Report {
    let names = (short(&before.path), short(&after.path));
    let mut report = Report::new(format!("{} against {}", names.1, names.0));
    report.summary = verdicts(&before.comparison.measures, pairs);
    if alone > 0 {
        report.summary.push(format!("{alone} cells are in one of the runs only."));
    }
    let rows = pairs.iter().map(|p| {
        vec![
            cells.name(&p.key),
            p.field.clone(),
            Unit::Plain.show(p.before),
            Unit::Plain.show(p.after),
            percent(p),
            p.verdict.name().into(),
        ]
    });
    let table = Table {
        title: "Cell by cell".into(),
        note: String::new(),
        columns: vec![
            Column::text("cell"),
            Column::text("measure"),
            Column::number(&names.0),
            Column::number(&names.1),
            Column::number("change"),
            Column::text("verdict"),
        ],
        rows: rows.collect(),
    };
    if !beside.is_empty() {
        let alike = beside.iter().filter(|b| b.before == b.after).count();
        report.summary.push(format!("{alike} of {} cells show the same in both.", beside.len()));
        let table = shown_table(&before.comparison.shown, beside, cells, &names);
        report.sections.push(Section::new("Beside each other", vec![table]));
    }
    if !pairs.is_empty() {
        report.sections.push(Section::new("Change by cell", change_figures(before, pairs, cells)));
    }
    let over = overlaid(before, after, &names);
    if !over.is_empty() {
        report.sections.push(Section::new("Over each other", over).with_text("Dashed: the run before."));
    }
    if !pairs.is_empty() {
        report.sections.push(Section::new("In numbers", vec![Figure::Table(table)]));
    }
    report
        .sections
        .push(Section::new("What else differs", vec![Figure::Table(differences(before, after, &names))]));
    report
}

/// The fields that are shown, cell by cell.
fn shown_table(fields: &[String], beside: &[Beside], cells: &Names, names: &(String, String)) -> Figure {
    let rows = beside.iter().flat_map(|both| {
        let fields = fields.iter().zip(both.before).zip(both.after);
        fields.map(|((field, before), after)| {
            vec![cells.name(both.key), field.clone(), before.clone(), after.clone()]
        })
    });
    Figure::Table(Table {
        title: "Shown by both".into(),
        columns: ["cell", "field", &names.0, &names.1].map(Column::text).into(),
        rows: rows.collect(),
        ..Table::default()
    })
}

/// After divided by before, cell by cell: one is no change.
fn change_figures(before: &Loaded, pairs: &[Pair], names: &Names) -> Vec<Figure> {
    let figure = |measure: &Measure| {
        let of = pairs.iter().filter(|p| p.field == measure.field && p.before > 0.0);
        let bars = of.map(|p| Bar {
            name: names.name(&p.key),
            value: p.after / p.before,
            range: None,
            group: p.verdict as usize,
        });
        Figure::Bars(Bars {
            title: format!("{}: after divided by before", measure.field),
            note: format!(
                "1 is no change, {} is better. Blue: within 3 % or the repeats' own spread; red: worse; green: better.",
                if measure.more_is_better { "more" } else { "less" }
            ),
            label: "ratio".into(),
            unit: Unit::Plain,
            bars: bars.collect(),
        })
    };
    before.comparison.measures.iter().map(figure).collect()
}

/// Lines that both reports have under one title.
fn overlaid(before: &Loaded, after: &Loaded, names: &(String, String)) -> Vec<Figure> {
    let lines = |report: &Report| -> Vec<Plot> {
        let figures = report.sections.iter().flat_map(|s| &s.figures);
        figures.filter_map(|f| if let Figure::Lines(plot) = f { Some(plot.clone()) } else { None }).collect()
    };
    let old = lines(&before.report);
    let both = lines(&after.report).into_iter().filter_map(|mut plot| {
        let other = old.iter().find(|o| o.title == plot.title && o.x == plot.x && o.y == plot.y)?;
        let mut series = Vec::new();
        for (i, mut line) in std::mem::take(&mut plot.series).into_iter().enumerate() {
            if let Some(same) = other.series.iter().find(|s| s.name == line.name && !s.dashed) {
                let points = same.points.clone();
                series.push(Series::new(format!("{}: {}", names.0, line.name), points).coloured(i).dashed());
            }
            if !line.dashed {
                line.name = format!("{}: {}", names.1, line.name);
                series.push(line.coloured(i));
            }
        }
        plot.series = series;
        Some(Figure::Lines(plot))
    });
    both.collect()
}

/// Settings and circumstances that are not the same.
fn differences(before: &Loaded, after: &Loaded, names: &(String, String)) -> Table {
    let mut rows = Vec::new();
    for (a, b) in [(&before.settings, &after.settings), (&before.machine, &after.machine)] {
        let (a, b) = (flat(a), flat(b));
        let all: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for name in all {
            let (left, right) = (a.get(name), b.get(name));
            if left != right {
                let show = |v: Option<&String>| v.cloned().unwrap_or_default();
                rows.push(vec![name.clone(), show(left), show(right)]);
            }
        }
    }
    Table {
        title: "Settings and circumstances that differ".into(),
        note: if rows.is_empty() { "None does.".into() } else { String::new() },
        columns: vec![Column::text(""), Column::text(&names.0), Column::text(&names.1)],
        rows,
    }
}

/// Every value of a JSON document by its path.
fn flat(value: &Value) -> BTreeMap<String, String> {
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

fn short(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn make(dir: &Path, name: &str, kind: &str, cells: &[Value]) -> PathBuf {
        let path = dir.join(name);
        let mut run = Run::create(kind, Some(&path)).unwrap();
        run.settings(&json!({ "runtime_s": 3, "name": name }));
        run.compare_by("cells", &["bs", "depth"], &[("iops", true), ("elapsed_s", false)]);
        let mut lines = run.lines("cells").unwrap();
        cells.iter().for_each(|cell| lines.write(cell).unwrap());
        let plot = Plot {
            title: "IOPS".into(),
            series: vec![Series::new("direct", vec![(1.0, 2.0)])],
            ..Plot::default()
        };
        let mut report = Report::new(name);
        report.sections.push(Section::new("", vec![Figure::Lines(plot)]));
        run.finish(report).unwrap();
        path
    }

    fn cell(bs: u64, iops: f64, elapsed_s: f64) -> Value {
        json!({ "bs": bs, "depth": 1, "iops": iops, "elapsed_s": elapsed_s })
    }

    #[test]
    fn cells_are_matched_and_judged() {
        let dir = tempfile::tempdir().unwrap();
        let thrice = |cells: &[Value]| [cells; REPEATS].concat();
        let a = thrice(&[cell(4, 100.0, 1.0), cell(8, 100.0, 1.0), cell(16, 5.0, 5.0)]);
        let b = thrice(&[cell(8, 102.0, 0.5), cell(4, 80.0, 1.02), cell(32, 5.0, 5.0)]);
        let (a, b) = (make(dir.path(), "a", "read", &a), make(dir.path(), "b", "read", &b));
        let (a, b) = (Loaded::read(&a).unwrap(), Loaded::read(&b).unwrap());
        let (pairs, alone) = pair_up(&a, &b);
        let verdicts: Vec<_> =
            pairs.iter().map(|p| (p.key[0].as_u64(), p.field.as_str(), p.verdict)).collect();
        assert_eq!(
            verdicts,
            [
                (Some(4), "iops", Verdict::Worse),
                (Some(4), "elapsed_s", Verdict::Same),
                (Some(8), "iops", Verdict::Same),
                (Some(8), "elapsed_s", Verdict::Better),
            ]
        );
        assert_eq!(alone, 2);
        assert_eq!(percent(&pairs[0]), "-20.0 %");
    }

    #[test]
    fn a_run_from_before_a_key_has_its_cells_in_common_with_those_that_leave_it_alone() {
        let dir = tempfile::tempdir().unwrap();
        let old = make(dir.path(), "old", "read", &[cell(4, 100.0, 1.0), cell(8, 100.0, 1.0)]);
        let new = dir.path().join("new");
        let mut run = Run::create("read", Some(&new)).unwrap();
        run.compare_by("cells", &["scheduler", "bs", "depth"], &[("iops", true)]);
        let mut lines = run.lines("cells").unwrap();
        lines.write(&cell(4, 50.0, 1.0)).unwrap();
        lines.write(&json!({ "bs": 8, "depth": 1, "iops": 50.0, "scheduler": "bfq" })).unwrap();
        run.finish(Report::new("new")).unwrap();
        let (mut old, mut new) = (Loaded::read(&old).unwrap(), Loaded::read(&new).unwrap());
        key_alike(&mut old, &mut new);
        let (pairs, alone) = pair_up(&old, &new);
        assert_eq!(pairs.iter().map(|p| p.key[0].as_u64()).collect::<Vec<_>>(), [Some(4)]);
        assert_eq!(alone, 2, "8 under bfq is another cell than 8");
    }

    #[test]
    fn cells_are_called_by_what_tells_them_apart() {
        let keys = ["ioengine".to_string(), "bs".into(), "queue".into()];
        let pair = |bs: u64| Pair {
            key: vec![json!("io_uring"), json!(bs), Value::Null],
            field: "iops".into(),
            before: 1.0,
            after: 1.0,
            verdict: Verdict::Same,
        };
        let names = |pairs: &[Pair]| {
            let cells: Vec<&Key> = pairs.iter().map(|pair| &pair.key).collect();
            let names = Names::of(&keys, &cells);
            pairs.iter().map(|p| names.name(&p.key)).collect::<Vec<_>>()
        };
        assert_eq!(names(&[pair(4), pair(8)]), ["bs=4", "bs=8"]);
        assert_eq!(names(&[pair(4)]), ["io_uring bs=4"]);
    }

    #[test]
    fn repeats_that_differ_among_themselves_prove_nothing() {
        let measure = Measure { field: "iops".into(), more_is_better: true };
        let judged = |a: &[f64], b: &[f64]| judge(&vec![], &measure, a, b).verdict;
        assert_eq!(judged(&[100.0, 100.0, 101.0], &[120.0, 121.0, 120.0]), Verdict::Better);
        assert_eq!(judged(&[70.0, 100.0, 130.0], &[120.0, 121.0, 120.0]), Verdict::Same);
        assert_eq!(judged(&[100.0; 3], &[0.0; 3]), Verdict::Worse);
        assert_eq!(judged(&[100.0; 3], &[0.0; 2]), Verdict::None, "two repeats have no spread");
    }

    #[test]
    fn texts_are_shown_beside_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, here: &str| {
            let path = dir.path().join(name);
            let mut run = Run::create("e9", Some(&path)).unwrap();
            run.show_by("findings", &["what"], &["here"]);
            let mut lines = run.lines("findings").unwrap();
            lines.write(&json!({ "what": "Is it so?", "here": here })).unwrap();
            lines.write(&json!({ "what": "How often?", "here": 7 })).unwrap();
            run.finish(Report::new(name)).unwrap();
            path
        };
        let out = dir.path().join("out");
        run(&CompareArgs { before: make("a", "yes"), after: make("b", "no"), out: Some(out.clone()) })
            .unwrap();
        let report = Report::load(&out).unwrap();
        assert_eq!(report.summary, ["1 of 2 cells show the same in both."]);
        let Figure::Table(table) = &report.sections[0].figures[0] else { panic!("a table comes first") };
        assert_eq!(table.rows, [["Is it so?", "here", "yes", "no"], ["How often?", "here", "7", "7"]]);
    }

    #[test]
    fn the_report_shows_both_and_what_differs() {
        let dir = tempfile::tempdir().unwrap();
        let a =
            make(dir.path(), "a", "read", &[cell(4, 100.0, 1.0), cell(4, 100.0, 1.0), cell(4, 100.0, 1.0)]);
        let b =
            make(dir.path(), "b", "read", &[cell(4, 150.0, 1.0), cell(4, 150.0, 1.0), cell(4, 150.0, 1.0)]);
        let out = dir.path().join("out");
        run(&CompareArgs { before: a.clone(), after: b, out: Some(out.clone()) }).unwrap();
        let report = Report::load(&out).unwrap();
        assert!(report.summary[0].contains("better in 1 cells"), "{:?}", report.summary);
        let text = serde_json::to_string(&report).unwrap();
        assert!(text.contains("a: direct") && text.contains("b: direct"), "the lines lie over each other");
        assert!(text.contains("+50.0 %") && text.contains("\"name\",\"a\",\"b\""), "{text}");

        let other = make(dir.path(), "c", "write", &[cell(4, 100.0, 1.0)]);
        let error = run(&CompareArgs { before: a, after: other, out: None }).unwrap_err().to_string();
        assert!(error.contains("only runs of one kind"), "{error}");
        let error = Loaded::read(dir.path()).err().unwrap().to_string();
        assert!(error.contains("settings.json"), "{error}");
    }
}
