//! A report of everything that is hard to lay out: long names without a blank, many series, values
//! over orders of magnitude, and none.

use snowmelt_lab::report::{
    Axis, Band, Bar, Bars, Column, Figure, HeatMap, Plot, Report, Scale, Section, Series, Table, Unit,
};

const URL: &str =
    "http://localhost:8890/sparql?default-graph-uri=http://www.example.org/graphs/bsbm-explore-28480";
const CELL: &str =
    "io_uring 128k depth 32 buffered sequential read-ahead 2048 KiB scheduler bfq-anticipatory";

fn plot(title: &str, series: Vec<Series>) -> Plot {
    Plot {
        title: title.into(),
        note: format!("{CELL}, with --read-ahead-kb and --no-such-switch-as-this-one-of-a-great-length"),
        x: Axis::new(
            "time since the start of the measurement, without the time of its preparation",
            Unit::Seconds,
        ),
        y: Axis::new(
            "requests that the device had under way on average while it was busy at all",
            Unit::Nanoseconds,
        ),
        series,
    }
}

/// Lines, clouds and marks.
fn plots() -> Vec<Figure> {
    let wave = |name: &str, n: u32, up: f64| {
        let at = |i: u32| (f64::from(i), 1e6 * (up + f64::from(i % 7) / 9.0));
        Series::new(name, (0..n).map(at).collect())
    };
    let many = (0..30).map(|i| wave(&format!("CPU {i}"), 20, f64::from(i))).collect();
    let ends = (1..6).map(|i| wave(&format!("engine {i}"), 9 * i, 3.0)).collect();
    let mut banded = plot("Phases", vec![wave("user", 300, 1.0), wave("I/O wait", 300, 4.0)]);
    let band = |i: u32| Band {
        name: format!("phase {i} of some length"),
        from: f64::from(i) * 50.0,
        to: f64::from(i) * 50.0 + 40.0,
    };
    banded.x.bands = (0..6).map(band).collect();
    let lone = |i: u32| Series::new(format!("{CELL} {i}"), vec![(0.5, f64::from(i) * 1e3)]);
    let mut log = plot("Over orders of magnitude", vec![Series::new("a", vec![(1.0, 3.0), (9e5, 8e9)])]);
    (log.x.scale, log.y.scale) = (Scale::Log, Scale::Log);
    let mut ordinal = plot("Many names of numbers", vec![wave("a", 200, 1.0), wave("b", 200, 2.0).dashed()]);
    ordinal.x.scale = Scale::Ordinal;
    vec![
        Figure::Lines(plot("Two lines", vec![wave(URL, 20, 1.0), wave(CELL, 30, 1.2).dashed()])),
        Figure::Lines(plot("Many lines", many)),
        Figure::Lines(plot("Lines that end apart", ends)),
        Figure::Lines(banded),
        Figure::Lines(plot("Series of one point", (1..5).map(lone).collect())),
        Figure::Lines(plot("One point", vec![lone(1)])),
        Figure::Lines(plot("None", vec![])),
        Figure::Lines(log),
        Figure::Lines(ordinal),
        Figure::Scatter(plot(
            "A cloud",
            (0..5).map(|i| wave(&format!("{CELL} {i}"), 500, f64::from(i))).collect(),
        )),
    ]
}

/// Bars, maps and tables.
fn others() -> Vec<Figure> {
    let bar = |i: u32| Bar {
        name: if i == 2 { URL.into() } else { format!("{CELL} {i}") },
        value: 4.44e-3 * f64::from(i),
        range: (i != 3).then_some((1e-3, 50e-3 * f64::from(i))),
        group: i as usize,
    };
    let bars = |title: &str, range| Bars {
        title: title.into(),
        label: "time until all of the writes were durable, by the program's own clock".into(),
        unit: Unit::Seconds,
        bars: range,
        ..Bars::default()
    };
    let long = Bar { name: "x".into(), value: 50.0, range: Some((1.0, 50.0)), group: 0 };
    let map = |columns: usize, name: &str| HeatMap {
        title: format!("A map of {columns} columns"),
        x_label: "requests outstanding while the device was busy (iodepth)".into(),
        x: (0..columns).map(|i| format!("{name}{i}")).collect(),
        y_label: "request size (bs)".into(),
        y: vec!["4k".into(), URL.into(), "Virtuoso 7.2.14 (open source)".into()],
        cells: vec![vec![Some(4578.0); columns], vec![Some(1.5); columns], vec![None; columns]],
        log: true,
        ..HeatMap::default()
    };
    let verdicts = Table {
        title: format!("Findings of {URL}"),
        note: URL.into(),
        columns: ["question", "published", "here", "reason", "verdict"].map(Column::text).to_vec(),
        rows: vec![
            vec![
                CELL.into(),
                URL.into(),
                "1.64 × against 9.12 ×".into(),
                CELL.repeat(3),
                "as published".into()
            ];
            3
        ],
    };
    let mut columns = vec![Column::text("cell")];
    columns.extend((0..16).map(|i| Column::number(format!("device requests {i}"))));
    let mut row = vec![CELL.to_owned()];
    row.extend((0..16).map(|i| format!("{i}234567.89")));
    let numbers = Table { title: "All cells".into(), columns, rows: vec![row; 4], ..Table::default() };
    let mut columns = vec![Column::text("engine")];
    columns.extend(
        ["compared", "equal", "different", "of them DESCRIBE", "unstable", "no answer"].map(Column::number),
    );
    columns.push(Column::text("different by query"));
    let mut row = vec!["Virtuoso".to_owned()];
    row.extend((0..6).map(|i| format!("{i}539")));
    row.push("1539 (739 of Q8, 400 of Q11, 400 of Q12)".into());
    let answers = Table { title: "Answers".into(), columns, rows: vec![row; 3], ..Table::default() };
    let differ = Table {
        title: "Settings that differ".into(),
        columns: ["", "read", "a-second-read-with-a-long-name-of-its-folder"].map(Column::text).into(),
        rows: vec![
            vec!["disturbance.others".into(), "0.8657718120805369".into(), "0.0067114093959731".into()];
            3
        ],
        ..Table::default()
    };
    vec![
        Figure::Bars(bars("Medians and ranges", (1..7).map(bar).collect())),
        Figure::Bars(bars("A range to the end of the axis", vec![long])),
        Figure::HeatMap(map(3, "")),
        Figure::HeatMap(map(40, "Q")),
        Figure::HeatMap(map(8, "a query of a long name ")),
        Figure::Table(verdicts),
        Figure::Table(numbers),
        Figure::Table(answers),
        Figure::Table(differ),
    ]
}

/// A report of everything that is hard to lay out.
pub fn report() -> Report {
    let mut report = Report::new(format!("BSBM Explore on {URL} and /a/path/{}", "of-a-folder/".repeat(9)));
    report.summary =
        (0..40).map(|i| format!("Finding {i}: {CELL} took {i} s, with --quick, of {URL}.")).collect();
    report.doubts = (0..12).map(|i| format!("{CELL}: {}{URL}", "doubt ".repeat(i + 1))).collect();
    let mut first = Section::new(URL, others());
    first.text = vec![CELL.repeat(4), URL.repeat(3)];
    report.sections = vec![first, Section::new("Plots", plots()).with_text(URL)];
    report.facts = vec![
        ("Command".into(), format!("snowmelt-lab bsbm drive {URL} --out {URL}")),
        (URL.into(), URL.into()),
    ];
    report
}
