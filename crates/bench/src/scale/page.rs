//! The scales as a page.

use snowmelt_lab::functions::table;
use snowmelt_lab::report::{Column, Figure, Report, Section, Table, Unit};

use super::growth::{GrowthFigure, figures_of, growths};
use super::text::four;
use super::{Profile, ScaleRun, function_changes};

/// Functions of each comparison.
const FUNCTIONS: usize = 100;

/// The page of the runs, smallest scale first.
pub fn scale_page(runs: &[ScaleRun]) -> Report {
    let products: Vec<String> = runs.iter().map(|run| run.products.to_string()).collect();
    let mut report = Report::new(format!("BSBM Explore at {} products", products.join(", ")));
    report.summary = runs.iter().map(summary).collect();
    report.sections.push(Section::new("Figures", vec![figures(runs)]));
    if runs.len() > 1 {
        report.sections.push(Section::new("Growth", vec![growth(runs)]).with_text(
            "A figure that is multiplied by b when the data is multiplied by a has the exponent log b ÷ log a: 0 \
             for a look-up, 1 for a scan.",
        ));
    }
    let changed = function_changes(runs);
    let tables: Vec<Figure> = changed
        .iter()
        .map(|(from, to, changes)| table(&format!("From {from} to {to} products"), changes, FUNCTIONS))
        .collect();
    if !tables.is_empty() {
        report.sections.push(Section::new("Functions", tables));
    }
    report
}

fn summary(run: &ScaleRun) -> String {
    let profile = match &run.profile {
        Some(Profile::Missing(why)) => format!("; no flame graph: {why}"),
        _ => String::new(),
    };
    format!(
        "{} products, {} quads: {:.0} QMpH by query time in steady state{profile}",
        run.products, run.quads, run.steady.throughput.qmph_query_time
    )
}

/// Each figure of growth, at each scale.
fn figures(runs: &[ScaleRun]) -> Figure {
    let mut columns = vec![Column::text("figure")];
    columns.extend(runs.iter().map(|run| Column::number(format!("{} products", run.products))));
    let all: Vec<_> = runs.iter().map(figures_of).collect();
    let row = |(name, _): &(String, f64)| {
        let value = |figures: &Vec<(String, f64)>| {
            let found = figures.iter().find(|(other, _)| other == name);
            found.map_or("–".to_owned(), |(name, value)| shown(name, *value))
        };
        [name.clone()].into_iter().chain(all.iter().map(value)).collect()
    };
    Figure::Table(Table {
        title: "In steady state, unless said otherwise".into(),
        columns,
        rows: all.first().map_or(Vec::new(), |first| first.iter().map(row).collect()),
        ..Table::default()
    })
}

/// A figure with its unit: times, and counts for a mix or a second.
fn shown(name: &str, value: f64) -> String {
    let is_time = name.starts_with("time ") || name.starts_with("planning ");
    if is_time { Unit::Seconds.show(value) } else { four(value) }
}

fn growth(runs: &[ScaleRun]) -> Figure {
    let growths = growths(runs);
    let mut columns = vec![Column::text("figure")];
    columns.extend(growths.iter().map(|g| Column::number(format!("{} to {}", g.from, g.to))));
    let row = |at: usize| {
        let exponent = |figure: Option<&GrowthFigure>| {
            figure.and_then(|figure| figure.exponent).map_or("–".to_owned(), |x| format!("{x:.2}"))
        };
        let name = growths[0].figures[at].name.clone();
        let cells = growths.iter().map(|g| exponent(g.figures.iter().find(|f| f.name == name)));
        [name.clone()].into_iter().chain(cells.collect::<Vec<_>>()).collect()
    };
    Figure::Table(Table {
        title: "Exponents of growth".into(),
        columns,
        rows: (0..growths[0].figures.len()).map(row).collect(),
        ..Table::default()
    })
}
