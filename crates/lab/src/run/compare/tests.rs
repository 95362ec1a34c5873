//! Runs made by hand, compared.

use std::path::Path;

use serde_json::{Value, json};

use super::cell_names::CellNames;
use super::judge::{Judged, Pair, REPEATS, Verdict, judge};
use super::loaded::Key;
use super::page::percent;
use super::*;
use crate::report::{Figure, Plot, Report, Section, Series};
use crate::run::Measure;

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
    let (a, b) = (LoadedRun::read(&a).unwrap(), LoadedRun::read(&b).unwrap());
    let Judged { pairs, alone, .. } = Judged::new(&a, &b);
    let verdicts: Vec<_> = pairs.iter().map(|p| (p.key[0].as_u64(), p.field.as_str(), p.verdict)).collect();
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
    let (mut old, mut new) = (LoadedRun::read(&old).unwrap(), LoadedRun::read(&new).unwrap());
    key_alike(&mut old, &mut new);
    let Judged { pairs, alone, .. } = Judged::new(&old, &new);
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
        let names = CellNames::new(&keys, &cells);
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
    run(&CompareArgs { before: make("a", "yes"), after: make("b", "no"), out: Some(out.clone()) }).unwrap();
    let report = Report::load(&out).unwrap();
    assert_eq!(report.summary, ["1 of 2 cells show the same in both."]);
    let Figure::Table(table) = &report.sections[0].figures[0] else { panic!("a table comes first") };
    assert_eq!(table.rows, [["Is it so?", "here", "yes", "no"], ["How often?", "here", "7", "7"]]);
}

#[test]
fn the_report_shows_both_and_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    let a = make(dir.path(), "a", "read", &[cell(4, 100.0, 1.0), cell(4, 100.0, 1.0), cell(4, 100.0, 1.0)]);
    let b = make(dir.path(), "b", "read", &[cell(4, 150.0, 1.0), cell(4, 150.0, 1.0), cell(4, 150.0, 1.0)]);
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
    let error = LoadedRun::read(dir.path()).err().unwrap().to_string();
    assert!(error.contains("settings.json"), "{error}");
}
