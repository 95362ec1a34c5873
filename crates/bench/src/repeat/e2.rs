//! E2: the work that Explore makes, by index and by query, and how it grows with the data.

use anyhow::{Context, Result};
use serde_json::Value;
use snowmelt_lab::report::{Bar, Bars, Column, Figure, Section, Table, Unit};

use super::Chapter;
use super::finding::Finding;
use super::steps::Steps;

/// A figure at two sizes of the data.
struct SizeGrowth<'a>(&'a Value);

impl SizeGrowth<'_> {
    fn both(&self, name: &str) -> Result<(f64, f64)> {
        let figures = self.0["figures"].as_array().context("no figures")?;
        let figure = figures.iter().find(|figure| figure["name"] == name);
        let figure = figure.with_context(|| format!("the scale report has no {name}"))?;
        let of = |key: &str| figure[key].as_f64().with_context(|| format!("{name} has no {key}"));
        Ok((of("before")?, of("after")?))
    }

    /// How many times more with ten times the data.
    fn tenfold(&self, name: &str) -> Result<f64> {
        let (before, after) = self.both(name)?;
        let data = self.0["data"].as_f64().context("no growth of the data")?;
        Ok((after / before).powf(10f64.ln() / data.ln()))
    }
}

pub fn repeat(steps: &mut Steps<'_>) -> Result<Chapter> {
    let (products, mixes) = if steps.plan.is_quick { ("278,2785", "200") } else { ("28480,284826", "1500") };
    let dir = steps.path("databases");
    let args = [
        "bsbm",
        "scale",
        "--products",
        products,
        "--mixes",
        mixes,
        "--warmup",
        mixes,
        "--dir",
        &dir,
        "--format",
        "json",
    ];
    let scale = steps.json("Explore at two sizes, from cold and in steady state", &args)?;
    steps.remove("databases");
    let growth = SizeGrowth(scale["growth"].get(0).context("two sizes make one growth")?);
    let large = scale["scales"].as_array().and_then(|scales| scales.last()).context("no scales")?;
    Ok(Chapter {
        title: "E2: what BSBM Explore measures",
        source: "Published 2011: Virtuoso's activity meters over 2000 mixes by 16 users, at 100 and 1000 million \
                 triples.",
        findings: findings(&growth, large)?,
        differs: vec![format!(
            "There 100 and 1000 million triples, here {products} products. Each query asks for a part of the data \
             that does not grow, or grows as the data does, so what the metric measures depends on the size."
        )],
        sections: vec![trees(large), shares(&scale)],
    })
}

fn findings(growth: &SizeGrowth<'_>, large: &Value) -> Result<Vec<Finding>> {
    let activity = &large["steady"]["activity"];
    let count = |name: &str| activity[name].as_f64().unwrap_or(0.0);
    let same_page = count("same_pg") / count("rnd").max(1.0);
    let operations = growth.tenfold("operations per mix")?;
    let planning = growth.both("planning per mix")?;
    let time = growth.both("time per mix")?;
    let share = |of: fn(&(f64, f64)) -> f64| of(&planning) / of(&time);
    let cold = &large["cold"]["activity"];
    let (disk, spec) = (cold["disk"].as_f64().unwrap_or(0.0), cold["spec_disk"].as_f64().unwrap_or(0.0));
    let most_read = most_read(large);
    Ok(vec![
        Finding::measured(
            "Which index is read most, from cold?",
            "the texts of literals, then PSOG",
            format!("{}, then {}", most_read[0], most_read[1]),
            most_read[..2] == ["text", "psog"],
        ),
        Finding::measured(
            "Ten times the data, how many times the operations?",
            "7 (5.5 G against 0.75 G for 2000 mixes)",
            format!("{operations:.1}"),
            (5.0..=9.0).contains(&operations),
        ),
        Finding::measured(
            "Which share of look-ups finds its page open?",
            "77 % at 1000 million triples",
            format!("{:.0} %", same_page * 100.0),
            same_page > 0.5,
        ),
        Finding::measured(
            "Are there more speculative reads than reads?",
            "yes, by double counting",
            format!("{spec:.0} of {disk:.0}: here a page that is read is counted once"),
            spec > disk,
        ),
        Finding::measured(
            "Does the share of planning shrink as the data grows?",
            "14 % of the profile at 100 million, about a sixth of that at 1000 million",
            format!("{:.0} %, then {:.0} %", share(|both| both.0) * 100.0, share(|both| both.1) * 100.0),
            share(|both| both.1) < 0.5 * share(|both| both.0),
        ),
    ])
}

/// Indexes by reads from cold, most first.
fn most_read(large: &Value) -> Vec<String> {
    let mut trees = large["cold"]["trees"].as_array().cloned().unwrap_or_default();
    trees.sort_by_key(|tree| std::cmp::Reverse(tree["reads"].as_u64()));
    let names = trees.iter().map(|tree| tree["tree"].as_str().unwrap_or_default().to_owned());
    names.chain([String::new(), String::new()]).collect()
}

/// Reads and touches by index, from cold.
fn trees(large: &Value) -> Section {
    let list = large["cold"]["trees"].as_array().map_or(&[][..], Vec::as_slice);
    let text = |tree: &Value, key: &str| match &tree[key] {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let mut trees: Vec<&Value> = list.iter().collect();
    trees.sort_by_key(|tree| std::cmp::Reverse(tree["reads"].as_u64()));
    let keys = ["tree", "touches", "reads", "pages"];
    let rows = trees.iter().map(|tree| keys.iter().map(|key| text(tree, key)).collect()).collect();
    let columns = keys.iter().enumerate().map(|(at, key)| match at {
        0 => Column::text(*key),
        _ => Column::number(key.replace('_', " ")),
    });
    let title = "Reads by index, from cold";
    Section::new(
        title,
        vec![Figure::Table(Table {
            title: title.into(),
            columns: columns.collect(),
            rows,
            ..Table::default()
        })],
    )
}

/// Each query's share of the time, at each size.
fn shares(scale: &Value) -> Section {
    let scales = scale["scales"].as_array().map_or(&[][..], Vec::as_slice);
    let mut bars = Vec::new();
    for (group, scale) in scales.iter().enumerate() {
        for query in scale["steady"]["queries"].as_array().map_or(&[][..], Vec::as_slice) {
            bars.push(Bar {
                name: format!("Q{} at {} triples", query["query"], scale["quads"]),
                value: query["share"].as_f64().unwrap_or(0.0) * 100.0,
                range: None,
                group,
            });
        }
    }
    let title = "Share of each query in the time, at both sizes";
    let bars =
        Bars { title: title.into(), label: "share".into(), unit: Unit::Percent, bars, ..Bars::default() };
    Section::new(title, vec![Figure::Bars(bars)])
}
