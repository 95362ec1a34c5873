//! Draws processors in use from cold, of runs of `bsbm run --cold --format json` side by side.
//!
//!     cargo run --release -p snowmelt-benches --example cold_curves -- \
//!         TITLE NAME=RUN.json... > FILE.svg

use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;
use snowmelt_lab::report::{Axis, Figure, Plot, Report, Section, Series, Theme, Unit};

/// Seconds that a point is the mean of.
const MEAN_S: usize = 5;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let title = args.next().context("TITLE")?;
    let series = args.map(|arg| curve(&arg)).collect::<Result<Vec<_>>>()?;
    let plot = Plot {
        title,
        note: format!("Processors in use, mean of {MEAN_S} seconds."),
        x: Axis::new("seconds since the start", Unit::Seconds),
        y: Axis::new("processors in use", Unit::Plain),
        series,
    };
    let mut report = Report::new("");
    report.sections.push(Section::new("", vec![Figure::Lines(plot)]));
    let (_, svg) = report.pictures(Theme::LIGHT).pop().context("a plot is a picture")?;
    print!("{svg}");
    Ok(())
}

/// The samples of a run's cold phase.
fn curve(arg: &str) -> Result<Series> {
    let (name, file) = arg.split_once('=').context("use NAME=RUN.json")?;
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
    let run: Value = serde_json::from_str(&text).with_context(|| format!("{file} is not JSON"))?;
    let samples = run["meters"]["cold"]["samples"].as_array().context("no run from cold")?;
    let points: Vec<(f64, f64)> = samples
        .iter()
        .map(|sample| Some((sample["end_s"].as_f64()?, sample["cpus"].as_f64()?)))
        .collect::<Option<_>>()
        .context("a sample without seconds or processors")?;
    let mean = |points: &[(f64, f64)]| {
        let cpus: f64 = points.iter().map(|(_, cpus)| cpus).sum();
        (points[points.len() / 2].0, cpus / points.len() as f64)
    };
    Ok(Series::new(name, points.windows(MEAN_S).map(mean).collect()))
}
