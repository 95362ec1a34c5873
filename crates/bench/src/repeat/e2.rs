//! E2: the work that Explore makes, by index and by query, and how it grows with the data; by our
//! meters, and by Virtuoso's own (`virtuoso`).

mod virtuoso;

use anyhow::{Context, Result};
use serde_json::Value;
use snowmelt_lab::report::{Bar, Bars, Column, Figure, Section, Table, Unit};

use super::Chapter;
use super::finding::answers::{Answers, Measure};
use super::finding::catalogue;
use super::finding::circumstance::{Basis, Circumstance};
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
    let meanwhile = steps.last();
    steps.remove("databases");
    let growth = SizeGrowth(scale["growth"].get(0).context("two sizes make one growth")?);
    let scales = scale["scales"].as_array().context("no scales")?;
    let large = scales.last().context("no scales")?;
    let mut answers = Answers::to(catalogue::E2);
    findings(&growth, large, &meanwhile, &mut answers)?;
    let virtuoso = beside(steps, &mut answers)?;
    let mut sections = vec![meters(scales, &virtuoso), trees(large), shares(&scale)];
    sections.extend(virtuoso.last().map(virtuoso_indexes));
    Ok(Chapter {
        title: "E2: what BSBM Explore measures",
        source: "Published 2011: Virtuoso's activity meters over 2000 mixes by 16 users, at 100 and 1000 million \
                 triples.",
        findings: answers.finish(),
        differs: vec![format!(
            "There 100 and 1000 million triples, here {products} products. Each query asks for a part of the data \
             that does not grow, or grows as the data does, so what the metric measures depends on the size."
        )],
        sections,
    })
}

/// The questions to Virtuoso's meters.
const OF_VIRTUOSO: [&str; 4] =
    ["e2-virtuoso-operations", "e2-virtuoso-same-page", "e2-virtuoso-most-read", "e2-virtuoso-speculative"];
/// Those read most, as published.
const MOST_READ: [&str; 3] = ["literals", "psog", "iris"];

/// Virtuoso's own meters at two sizes, and what they say; none in the quick form or without it.
fn beside(steps: &mut Steps<'_>, answers: &mut Answers) -> Result<Vec<Metered>> {
    if steps.plan.is_quick {
        answers.none_measured(&OF_VIRTUOSO, "--quick leaves other systems out");
        return Ok(Vec::new());
    }
    let mut runs = Vec::new();
    for (products, mixes) in VIRTUOSO {
        match metered(steps, products, mixes) {
            Ok(run) => runs.push(run),
            Err(error) => {
                steps.check_stop()?;
                steps.skip("Virtuoso's own meters", &format!("{error:#}"));
                answers.none_measured(&OF_VIRTUOSO, &format!("{error:#}"));
                return Ok(Vec::new());
            }
        }
    }
    by_virtuoso(&runs, answers);
    Ok(runs)
}

fn counted(value: f64, words: String) -> Measure {
    Measure::own(value, words, Basis::OwnCounts)
}

fn by_virtuoso(runs: &[Metered], answers: &mut Answers) {
    let [small, large] = runs else { return };
    let operations = |run: &Metered| run.per_mix("rnd") + run.per_mix("seq");
    let data = large.triples as f64 / small.triples as f64;
    let times = (operations(large) / operations(small)).powf(10f64.ln() / data.ln());
    let words = format!("{times:.1}, from {} to {} triples", small.triples, large.triples);
    answers.figure(OF_VIRTUOSO[0], counted(times, words));
    let [segment, page] = ["same seg", "same pg"].map(|name| large.per_mix(name));
    let in_segment = segment / (segment + page).max(1.0) * 100.0;
    let more = format!(", of which {in_segment:.0} % stay in their segment of a column");
    same_page(OF_VIRTUOSO[1], segment + page, large.per_mix("rnd"), &more, answers);
    let read: Vec<&str> = large.indexes.iter().take(3).map(|(name, ..)| name.as_str()).collect();
    let agreeing = agreeing(read.iter().map(|name| virtuoso_name(name)));
    match read.is_empty() {
        true => answers.not_measured(OF_VIRTUOSO[2], "its statistics name no index that was read"),
        false => answers.figure(OF_VIRTUOSO[2], counted(agreeing, read.join(", then "))),
    }
    let (disk, ahead) = (large.per_mix("disk"), large.per_mix("spec disk"));
    let words = format!("{:.2}: {ahead:.0} of {disk:.0} a mix", ahead / disk);
    answers.figure(OF_VIRTUOSO[3], counted(ahead / disk, words));
}

/// The share of look-ups that find their page open. Without a look-up there is none.
fn same_page(id: &str, found: f64, lookups: f64, more: &str, answers: &mut Answers) {
    if lookups > 0.0 {
        let share = found / lookups;
        answers.figure(id, counted(share, format!("{share:.2}{more}")));
    } else {
        answers.not_measured(id, "the meters counted no look-ups");
    }
}

/// Names from the first that are those read most as published.
fn agreeing<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    names.zip(MOST_READ).take_while(|(name, published)| name == published).count() as f64
}

/// An index of Virtuoso by the name of what it holds.
fn virtuoso_name(index: &str) -> &str {
    let upper = index.to_uppercase();
    match upper.rsplit('.').next().unwrap_or_default() {
        "RDF_OBJ" => "literals",
        "RDF_QUAD" => "psog",
        "RDF_IRI" => "iris",
        _ => index,
    }
}

/// A tree of ours, likewise.
fn own_name(tree: &str) -> &str {
    match tree {
        "text" => "literals",
        "iri" => "iris",
        other => other,
    }
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

fn findings(
    growth: &SizeGrowth<'_>,
    large: &Value,
    meanwhile: &Circumstance,
    answers: &mut Answers,
) -> Result<()> {
    let timed = |value: f64, words: String| Measure::timed(value, words, &[meanwhile]);
    let names = most_read(&large["cold"]);
    let agreeing = agreeing(names.iter().map(|name| own_name(name)));
    match names.is_empty() {
        true => answers.not_measured("e2-most-read", "nothing was read from cold"),
        false => {
            answers.figure("e2-most-read", counted(agreeing, names[..names.len().min(3)].join(", then ")));
        }
    }
    let steady = most_read(&large["steady"]);
    match steady.iter().position(|name| name == "sp") {
        Some(place) => answers.figure(
            "e2-steady-sp",
            counted(place as f64 + 1.0, format!("place {}; {}", place + 1, steady.join(", "))),
        ),
        None if steady.is_empty() => answers.not_measured("e2-steady-sp", "nothing is read in steady state"),
        None => {
            // Behind all indexes, however few of them are read.
            let indexes = large["steady"]["trees"].as_array().map_or(0, Vec::len);
            let words = format!("not read at all; read are {}", steady.join(", "));
            answers.figure("e2-steady-sp", counted(indexes as f64 + 1.0, words));
        }
    }
    let operations = growth.tenfold("operations per mix")?;
    answers.figure("e2-operations", counted(operations, format!("{operations:.1}")));
    let slower = growth.tenfold("time per mix")?;
    answers.figure("e2-throughput", timed(slower, format!("{slower:.1}")));
    let activity = &large["steady"]["activity"];
    let count = |name: &str| activity[name].as_f64().unwrap_or(0.0);
    same_page("e2-same-page", count("same_seg") + count("same_pg"), count("rnd"), "", answers);
    let cold = &large["cold"]["activity"];
    let (disk, spec) = (cold["disk"].as_f64().unwrap_or(0.0), cold["spec_disk"].as_f64().unwrap_or(0.0));
    let words =
        format!("{:.2}: {spec:.0} of {disk:.0}, since a page that is read is counted once", spec / disk);
    // of no reads it is no number, which is judged as such
    answers.figure("e2-speculative", counted(spec / disk, words));
    planning(growth, large, &timed, answers)
}

/// Triples at which the share of planning was published.
const PLANNING_TRIPLES: f64 = 100e6;

fn planning(
    growth: &SizeGrowth<'_>,
    large: &Value,
    timed: &dyn Fn(f64, String) -> Measure,
    answers: &mut Answers,
) -> Result<()> {
    let (planning, time) = (growth.both("planning per mix")?, growth.both("time per mix")?);
    let (before, after) = (planning.0 / time.0, planning.1 / time.1);
    let measure = timed(after, format!("{after:.3}"));
    let triples = large["quads"].as_f64().unwrap_or(0.0);
    match (0.9..1.1).contains(&(triples / PLANNING_TRIPLES)) {
        true => answers.figure("e2-planning-share", measure),
        false => {
            let why = format!("it depends on the data, which is {:.0} million triples here", triples / 1e6);
            answers.not_comparable("e2-planning-share", measure, why);
        }
    }
    let falls = timed(before / after, format!("{:.1}: {before:.3}, then {after:.3}", before / after));
    answers.figure("e2-planning-falls", falls);
    Ok(())
}

/// Indexes that were read in a phase, by reads, most first.
fn most_read(phase: &Value) -> Vec<String> {
    let mut trees = phase["trees"].as_array().cloned().unwrap_or_default();
    trees.retain(|tree| tree["reads"].as_u64() > Some(0));
    trees.sort_by_key(|tree| std::cmp::Reverse(tree["reads"].as_u64()));
    trees.iter().map(|tree| tree["tree"].as_str().unwrap_or_default().to_owned()).collect()
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
            indexes: vec![("DB.DBA.RDF_OBJ".into(), 1.0, 9.0), ("RDF_QUAD".into(), 5.0, 2.0)],
        }
    }

    #[test]
    fn growth_is_told_for_ten_times_the_data() {
        let of = |id: &str, runs: &[Metered]| {
            let mut answers = Answers::to(catalogue::E2);
            by_virtuoso(runs, &mut answers);
            answers.finish().into_iter().find(|of| of.id == id).unwrap()
        };
        let runs = [run(100, 10.0, 30.0, 1.0), run(10_000, 100.0, 1860.0, 77.0)];
        assert!(of(OF_VIRTUOSO[0], &runs).here.starts_with("7.0, from 100 to 10000"));
        assert_eq!(of(OF_VIRTUOSO[0], &runs).verdict, Agreement::AsPublished);
        assert!(of(OF_VIRTUOSO[1], &runs).here.starts_with("0.77"));
        assert_eq!(of(OF_VIRTUOSO[1], &runs).verdict, Agreement::AsPublished);
        let read = of(OF_VIRTUOSO[2], &runs);
        assert_eq!((read.here.as_str(), read.verdict), ("DB.DBA.RDF_OBJ, then RDF_QUAD", Agreement::Weaker));
        assert_eq!(of(OF_VIRTUOSO[0], &runs[..1]).verdict, Agreement::NotMeasured);
    }

    #[test]
    fn what_was_not_counted_has_no_verdict() {
        let runs = [run(100, 10.0, 30.0, 1.0), run(1000, 0.0, 1860.0, 77.0)];
        let mut answers = Answers::to(catalogue::E2);
        by_virtuoso(&runs, &mut answers);
        let of = |id: &str, findings: &[super::super::finding::Finding]| {
            findings.iter().find(|of| of.id == id).unwrap().verdict
        };
        assert_eq!(of(OF_VIRTUOSO[1], &answers.finish()), Agreement::NotMeasured);
        // SP is read by none of the mixes: it has no place, and not the one behind all others.
        let tree = |name: &str, reads: u32| serde_json::json!({ "tree": name, "reads": reads });
        let large = serde_json::json!({
            "quads": 1e8, "cold": { "activity": {}, "trees": [] },
            "steady": { "activity": {}, "trees": [tree("text", 5), tree("psog", 5), tree("sp", 0)] },
        });
        let figure = |name: &str| serde_json::json!({ "name": name, "before": 1.0, "after": 7.0 });
        let names = ["operations per mix", "time per mix", "planning per mix"];
        let scale = serde_json::json!({ "data": 10.0, "figures": names.map(figure) });
        let mut answers = Answers::to(catalogue::E2);
        findings(&SizeGrowth(&scale), &large, &Circumstance::default(), &mut answers).unwrap();
        let all = answers.finish();
        assert_eq!(of("e2-steady-sp", &all), Agreement::Otherwise);
        for id in ["e2-most-read", "e2-same-page", "e2-speculative"] {
            assert_eq!(of(id, &all), Agreement::NotMeasured, "{id}");
        }
    }

    #[test]
    fn names_agree_from_the_first_on() {
        let of = |names: &[&str]| agreeing(names.iter().map(|name| own_name(name)));
        assert_eq!(of(&["text", "psog", "iri"]), 3.0);
        assert_eq!(of(&["text", "iri", "psog"]), 1.0);
        assert_eq!(of(&["psog", "text", "iri"]), 0.0);
        let phase = serde_json::json!({ "trees": [
            { "tree": "sp", "reads": 2 }, { "tree": "osp", "reads": 0 }, { "tree": "text", "reads": 9 },
        ] });
        assert_eq!(most_read(&phase), ["text", "sp"]);
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
