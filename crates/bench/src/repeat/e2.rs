//! E2: the work that Explore makes, by index and by query, and how it grows with the data; by our
//! meters, and by Virtuoso's own (`virtuoso`).

mod virtuoso;

use anyhow::{Context, Result};
use serde_json::Value;
use snowmelt_lab::report::{Bar, Bars, Column, Figure, Section, Table, Unit};

use super::Chapter;
use super::finding::Finding;
use super::steps::Steps;
use virtuoso::{Metered, NAMES, metered};

/// Products and mixes of Virtuoso's two runs: a tenth of ours, since it loads ten times as long.
const VIRTUOSO: [(u32, u32); 2] = [(2785, 200), (28_480, 200)];
/// Published activity of 2000 mixes by Virtuoso at 100 and at 1000 million triples, by `NAMES`;
/// what was not published is 0.
const PUBLISHED: [[f64; 8]; 2] = [
    [234.3e6, 420.5e6, 0.0, 188.8e6, 29.09e6, 808.9e3, 919.9e3, 76e3],
    [1.674e9, 3.223e9, 0.0, 1.286e9, 314.8e6, 6.186e6, 6.461e6, 298.6e3],
];

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
    let scales = scale["scales"].as_array().context("no scales")?;
    let large = scales.last().context("no scales")?;
    let mut findings = findings(&growth, large)?;
    let virtuoso = beside(steps, &mut findings)?;
    let mut sections = vec![meters(scales, &virtuoso), trees(large), shares(&scale)];
    sections.extend(virtuoso.last().map(virtuoso_indexes));
    Ok(Chapter {
        title: "E2: what BSBM Explore measures",
        source: "Published 2011: Virtuoso's activity meters over 2000 mixes by 16 users, at 100 and 1000 million \
                 triples.",
        findings,
        differs: vec![format!(
            "There 100 and 1000 million triples, here {products} products. Each query asks for a part of the data \
             that does not grow, or grows as the data does, so what the metric measures depends on the size."
        )],
        sections,
    })
}

/// Virtuoso's own meters at two sizes, and what they say; none in the quick form or without it.
fn beside(steps: &mut Steps<'_>, all: &mut Vec<Finding>) -> Result<Vec<Metered>> {
    const WHAT: &str = "By Virtuoso's own meters";
    const PUBLISHED: &str = "7 times the operations for 10 times the data, 77 % of look-ups on the same page";
    if steps.plan.is_quick {
        all.push(Finding::unmeasured(WHAT, PUBLISHED, "in the quick form nothing but Snowmelt is run"));
        return Ok(Vec::new());
    }
    let mut runs = Vec::new();
    for (products, mixes) in VIRTUOSO {
        match metered(steps, products, mixes) {
            Ok(run) => runs.push(run),
            Err(error) => {
                steps.check_stop()?;
                steps.skip("Virtuoso's own meters", &format!("{error:#}"));
                all.push(Finding::unmeasured(WHAT, PUBLISHED, format!("{error:#}")));
                return Ok(Vec::new());
            }
        }
    }
    all.extend(by_virtuoso(&runs));
    Ok(runs)
}

fn by_virtuoso(runs: &[Metered]) -> Vec<Finding> {
    let [small, large] = runs else { return Vec::new() };
    let operations = |run: &Metered| run.per_mix("rnd") + run.per_mix("seq");
    let data = large.triples as f64 / small.triples as f64;
    let times = (operations(large) / operations(small)).powf(10f64.ln() / data.ln());
    let [segment, page] = ["same seg", "same pg"].map(|name| large.per_mix(name));
    let same_page = (segment + page) / large.per_mix("rnd").max(1.0);
    let read: Vec<&str> = large.indexes.iter().take(3).map(|(name, ..)| name.as_str()).collect();
    let (disk, ahead) = (large.per_mix("disk"), large.per_mix("spec disk"));
    vec![
        Finding::measured(
            "By Virtuoso's meters: ten times the data, how many times the operations?",
            "7 (from 100 to 1000 million triples)",
            format!("{times:.1}, from {} to {} triples", small.triples, large.triples),
            (5.0..=9.0).contains(&times),
        ),
        Finding::measured(
            "By Virtuoso's meters: which share of look-ups finds its page open?",
            "77 % at 1000 million triples, 81 % at 100",
            format!(
                "{:.0} %, of which {:.0} % stay in their segment of a column",
                same_page * 100.0,
                segment / (segment + page).max(1.0) * 100.0
            ),
            same_page > 0.5,
        ),
        Finding::answered(
            "By Virtuoso's meters: which index is read most, from cold?",
            "the texts of literals, then PSOG",
            read.join(", then "),
        ),
        Finding::answered(
            "By Virtuoso's meters: are there more speculative reads than reads?",
            "yes, by double counting",
            format!("{ahead:.0} of {disk:.0} a mix"),
        ),
    ]
}

/// The activity of one mix, by engine and size.
fn meters(scales: &[Value], virtuoso: &[Metered]) -> Section {
    let short = |value: f64| Unit::Plain.show(value);
    let mut columns = vec![Column::text("meter")];
    let of = |engine: &str, triples: f64| Column::number(format!("{engine}, {}", short(triples)));
    columns.extend(scales.iter().map(|scale| of("Snowmelt", scale["quads"].as_f64().unwrap_or(0.0))));
    columns.extend(virtuoso.iter().map(|run| of("Virtuoso", run.triples as f64)));
    columns.extend([1e8, 1e9].map(|triples| of("published", triples)));
    let row = |(at, name): (usize, &&str)| {
        let mut row = vec![(*name).to_owned()];
        row.extend(scales.iter().map(|scale| {
            let cold = &scale["cold"];
            let count = cold["activity"][name.replace(' ', "_")].as_f64().unwrap_or(0.0);
            short(count / cold["mixes"].as_f64().unwrap_or(1.0).max(1.0))
        }));
        row.extend(virtuoso.iter().map(|run| short(run.per_mix(name))));
        row.extend(PUBLISHED.iter().map(|counts| match counts[at] {
            0.0 => "—".into(),
            count => short(count / 2000.0),
        }));
        row
    };
    let title = "Activity of one mix, from cold";
    let table = Table {
        title: title.into(),
        note: "By engine and number of triples. rnd: look-ups; seq: rows moved over; same seg, pg, par: look-ups that stayed in their segment, \
               page, or under their parent; disk: pages read; spec disk: ahead of them; fork: threads started."
            .into(),
        columns,
        rows: NAMES.iter().enumerate().map(row).collect(),
    };
    Section::new(title, vec![Figure::Table(table)]).with_text(
        "The names are the same, the plans are not. Virtuoso's figures are of one session, the published ones of \
         16 users in steady state.",
    )
}

/// Virtuoso's statistics by index.
fn virtuoso_indexes(run: &Metered) -> Section {
    let row = |(name, touches, reads): &(String, f64, f64)| {
        vec![name.clone(), Unit::Plain.show(*touches), Unit::Plain.show(*reads)]
    };
    let title = format!("Virtuoso's reads by index, from cold, {} triples", run.triples);
    let table = Table {
        title: title.clone(),
        columns: vec![Column::text("index"), Column::number("touches"), Column::number("reads")],
        rows: run.indexes.iter().take(12).map(row).collect(),
        ..Table::default()
    };
    Section::new(title, vec![Figure::Table(table)])
}

fn findings(growth: &SizeGrowth<'_>, large: &Value) -> Result<Vec<Finding>> {
    let activity = &large["steady"]["activity"];
    let count = |name: &str| activity[name].as_f64().unwrap_or(0.0);
    let same_page = (count("same_seg") + count("same_pg")) / count("rnd").max(1.0);
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

#[cfg(test)]
mod tests {
    use super::super::finding::Agreement;
    use super::*;

    fn run(triples: u64, rnd: f64, seq: f64, same_page: f64) -> Metered {
        let activity = [("rnd", rnd), ("seq", seq), ("same pg", same_page)];
        Metered {
            triples,
            mixes: 10,
            activity: activity.map(|(name, count)| (name.to_owned(), count)).into(),
            indexes: vec![("OBJ".into(), 1.0, 9.0), ("QUAD".into(), 5.0, 2.0)],
        }
    }

    #[test]
    fn growth_is_told_for_ten_times_the_data() {
        let findings = by_virtuoso(&[run(100, 10.0, 30.0, 1.0), run(10_000, 100.0, 1860.0, 77.0)]);
        assert!(findings[0].here.starts_with("7.0, from 100 to 10000"), "{}", findings[0].here);
        assert!(findings[1].here.starts_with("77 %"), "{}", findings[1].here);
        assert_eq!(findings[1].verdict, Agreement::Same);
        assert_eq!(findings[2].here, "OBJ, then QUAD");
        assert!(by_virtuoso(&[run(100, 1.0, 1.0, 1.0)]).is_empty());
    }

    #[test]
    fn every_meter_is_shown_for_one_mix_of_each_engine() {
        let scale = serde_json::json!({
            "quads": 100, "cold": { "mixes": 4, "activity": { "rnd": 40, "same_pg": 8 } },
        });
        let section = meters(&[scale], &[run(100, 20.0, 30.0, 5.0)]);
        let Figure::Table(table) = &section.figures[0] else { panic!("a table") };
        assert_eq!(table.rows.len(), NAMES.len());
        assert_eq!(table.rows[0][..3], ["rnd", "10", "2"]);
        assert_eq!(table.rows[3][..3], ["same pg", "2", "0.5"]);
        assert_eq!(table.rows[2][4], "—");
    }
}
