//! The page of a comparison of file systems: a table and bars of each cell on all of them.

use super::{Compared, OnFileSystem};
use crate::report::{Bar, Bars, Column, Figure, Report, Section, Table};
use crate::stats::median;

pub(super) fn report(compared: &Compared) -> Report {
    let mut report = Report::new("The same reads and writes on several file systems");
    report.summary.extend(compared.left_out.iter().map(|why| format!("{why}.")));
    let systems = names(compared.cells.iter().map(|cell| cell.file_system.as_str()));
    for (what, title, text) in [
        ("read", "Reads", "Reads per second of one file, which was written whole before."),
        (
            "write",
            "Writes",
            "Writes per second until all were durable, scattered over a file that was written whole before.",
        ),
    ] {
        let of: Vec<&OnFileSystem> = compared.cells.iter().filter(|cell| cell.what == what).collect();
        let cells = names(of.iter().map(|cell| cell.cell.as_str()));
        if cells.is_empty() {
            continue;
        }
        report.summary.extend(cells.iter().map(|cell| best(&of, cell, &systems)));
        let mut figures = vec![Figure::Table(table(title, &of, &cells, &systems))];
        figures.extend(cells.iter().map(|cell| Figure::Bars(bars(&of, cell, &systems))));
        report.sections.push(Section::new(title, figures).with_text(text));
    }
    let made = compared.made.iter().map(|made| vec![made.clone()]).collect();
    report.sections.push(Section::new(
        "How they were made",
        vec![Figure::Table(Table {
            title: "mkfs and mount".into(),
            note: "Each on the whole device, one after the other.".into(),
            columns: vec![Column::text("file system")],
            rows: made,
        })],
    ));
    report
}

/// Names in the order in which they come first.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    all.for_each(|name| {
        if !names.contains(&name) {
            names.push(name);
        }
    });
    names
}

/// The median of the turns of a cell.
fn value(of: &[&OnFileSystem], cell: &str, system: &str, value: fn(&OnFileSystem) -> f64) -> Option<f64> {
    let is_it = |one: &&&OnFileSystem| one.cell == cell && one.file_system == system;
    median(&of.iter().filter(is_it).map(|one| value(one)).collect::<Vec<f64>>())
}

/// The fastest and the slowest of a cell.
fn best(of: &[&OnFileSystem], cell: &str, systems: &[&str]) -> String {
    let rate = |system: &&str| Some((value(of, cell, system, |one| one.per_s)?, (*system).to_owned()));
    let mut rates: Vec<(f64, String)> = systems.iter().filter_map(rate).collect();
    rates.sort_by(|a, b| b.0.total_cmp(&a.0));
    match (rates.first(), rates.last()) {
        (Some((most, first)), Some((least, last))) if first != last => {
            format!("{cell}: {first} {most:.0} per second, {last} {least:.0} ({:.2} ×).", most / least)
        }
        (Some((most, only)), _) => format!("{cell}: {only} {most:.0} per second."),
        _ => format!("{cell}: nothing was measured."),
    }
}

fn table(title: &str, of: &[&OnFileSystem], cells: &[&str], systems: &[&str]) -> Table {
    let mut columns = vec![Column::text("cell")];
    for system in systems {
        columns.extend(["per s", "p50 µs", "p99 µs"].map(|name| Column::number(format!("{system} {name}"))));
    }
    let row = |cell: &&str| {
        let mut row = vec![(*cell).to_owned()];
        for system in systems {
            let shown = |number: Option<f64>| number.map_or("–".into(), |number| format!("{number:.0}"));
            row.push(shown(value(of, cell, system, |one| one.per_s)));
            row.push(shown(value(of, cell, system, |one| one.p50_ns as f64 / 1e3)));
            row.push(shown(value(of, cell, system, |one| one.p99_ns as f64 / 1e3)));
        }
        row
    };
    Table {
        title: format!("{title} by file system"),
        note: "Medians of the turns; the latency of a buffered write is that of the copy to memory.".into(),
        columns,
        rows: cells.iter().map(row).collect(),
    }
}

fn bars(of: &[&OnFileSystem], cell: &str, systems: &[&str]) -> Bars {
    let bar = |(group, system): (usize, &&str)| {
        let value = value(of, cell, system, |one| one.per_s)?;
        Some(Bar { name: (*system).to_owned(), value, group, ..Bar::default() })
    };
    Bars {
        title: cell.to_owned(),
        label: "per second".into(),
        bars: systems.iter().enumerate().filter_map(bar).collect(),
        ..Bars::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_stands_beside_itself_on_each_file_system() {
        let cell = |file_system: &str, cell: &str, per_s| OnFileSystem {
            file_system: file_system.into(),
            what: "read",
            cell: cell.into(),
            per_s,
            p50_ns: 1000,
            p99_ns: 2000,
        };
        let cells = vec![
            cell("ext4", "4k", 100.0),
            cell("ext4", "4k", 300.0),
            cell("ext4", "8k", 50.0),
            cell("xfs", "4k", 400.0),
        ];
        let left_out = vec!["btrfs was left out: there is no mkfs.btrfs".to_owned()];
        let page = report(&Compared { cells, made: vec!["ext4: mkfs".into()], left_out });
        assert!(page.summary.contains(&"btrfs was left out: there is no mkfs.btrfs.".into()));
        assert!(page.summary.contains(&"4k: xfs 400 per second, ext4 200 (2.00 ×).".into()), "{page:?}");
        let Figure::Table(table) = &page.sections[0].figures[0] else { panic!("a table") };
        assert_eq!(table.rows[0][..5], ["4k", "200", "1", "2", "400"]);
        assert_eq!(table.rows[1][4], "–", "not measured on xfs");
    }
}
