//! E1: warming a database from cold, by read-ahead rules, on disks and SSDs.

use anyhow::{Context, Result};
use serde_json::Value;
use snowmelt_lab::report::{Axis, Bar, Bars, Figure, Plot, Section, Series, Unit};
use snowmelt_lab::stats::median;

use super::Chapter;
use super::finding::Finding;
use super::steps::Steps;

/// Rules that were compared: the name there, and the setting here.
const RULES: [(&str, &str); 5] = [
    ("no read-ahead", "none"),
    ("extents (its scheme A)", "extent"),
    ("vectored (its scheme B)", "planned"),
    ("all rules", "all"),
    ("chosen by cost", "auto"),
];

/// A cell of the ablation with a pool that holds everything, as there.
struct Cells<'a>(&'a [Value]);

impl Cells<'_> {
    fn figure(&self, device: &str, rules: &str, name: &str) -> Result<f64> {
        let is_it = |cell: &&Value| {
            cell["device"] == device
                && cell["read_ahead"] == rules
                && cell["queue"] == "elevator"
                && cell["load"] == "mixes"
                && cell["pool_percent"] == 100
                && cell["clients"] == 16
        };
        let cell = self.0.iter().find(is_it).with_context(|| format!("no cell {device}, {rules}"))?;
        cell["figures"][name].as_f64().with_context(|| format!("{device}, {rules} has no {name}"))
    }
}

pub fn repeat(steps: &mut Steps<'_>) -> Result<Chapter> {
    let (products, mixes) = if steps.plan.is_quick { ("600", "20") } else { ("28480", "200") };
    // Each rule and its companions are a run of their own, in virtual time: a tenth of the data.
    let (few, few_mixes) = if steps.plan.is_quick { (products, mixes) } else { ("2785", "50") };
    let small = load(steps, "small", few)?;
    let ablation = [
        "bsbm", "run", &small, "--ablate", "--model", "hdd", "--model", "ssd", "--mixes", few_mixes,
        "--format", "json",
    ];
    let ablation = steps.json("every rule on and off, from cold, in virtual time", &ablation)?;
    let db = if few == products { small } else { load(steps, "large", products)? };
    let cells = Cells(ablation["meters"]["ablation"].as_array().context("no cells")?);
    let mut sections = Vec::new();
    let mut findings = rules(&cells, &mut sections)?;
    let mut warming = Vec::new();
    for model in ["ssd", "hdd"] {
        let device = format!("0=sim:{model}");
        let seconds = if steps.plan.is_quick { "40" } else { "300" };
        let args = [
            "bsbm",
            "run",
            &db,
            "--cold",
            "--device",
            &device,
            "--clients",
            "16",
            "--mixes",
            mixes,
            "--warmup",
            "0",
            "--cold-seconds",
            seconds,
            "--format",
            "json",
        ];
        let run = steps.json(&format!("16 clients from cold on a simulated {model}, in real time"), &args)?;
        warming.push((model, run["meters"]["cold"].clone()));
    }
    findings.extend(warm_up(&warming));
    findings.push(semi_warm(&warming));
    sections.push(curves(&warming));
    steps.remove("small");
    steps.remove("large");
    if !steps.plan.is_quick {
        sections.extend(beside_virtuoso(steps, &mut findings, products)?);
    } else {
        let why = "--quick leaves other systems out";
        findings.push(Finding::unmeasured("Virtuoso itself", "280 s to 12 of 13.5 processors on SSDs", why));
    }
    Ok(Chapter {
        title: "E1: warming a database from cold",
        source: "Published 2011: Virtuoso, BSBM Explore at 1000 million triples by 16 clients, four disks \
                 against four SSDs, read-ahead by extents or by look-ups.",
        findings,
        differs: vec![format!(
            "There: 1000 million triples in 4 stripes. Here: {products} products on one modelled device ({few} for \
             the rules, on and off). The latter are in virtual time, the same on each machine; the curves are real \
             time."
        )],
        sections,
    })
}

/// Generates and loads `products` products. Returns the database's path.
fn load(steps: &mut Steps<'_>, name: &str, products: &str) -> Result<String> {
    let (data, db) = (steps.path("data.nt"), steps.path(name));
    steps.run("data", &["bsbm", "generate", "--products", products, "-o", &data])?;
    steps.snowmelt("load", &["load", &db, &data])?;
    steps.remove("data.nt");
    Ok(db)
}

fn rules(cells: &Cells<'_>, sections: &mut Vec<Section>) -> Result<Vec<Finding>> {
    for device in ["hdd", "ssd"] {
        let bar = |(number, (name, rules)): (usize, &(&str, &str))| {
            let value = cells.figure(device, rules, "seconds")?;
            Ok(Bar { name: (*name).to_owned(), value, range: None, group: number })
        };
        let bars: Result<Vec<Bar>> = RULES.iter().enumerate().map(bar).collect();
        let title = format!("{device}: seconds for the mixes, from cold");
        let bars = Bars {
            title: title.clone(),
            label: "virtual time".into(),
            unit: Unit::Seconds,
            bars: bars?,
            ..Bars::default()
        };
        sections.push(Section::new(title, vec![Figure::Bars(bars)]));
    }
    let seconds = |device: &str, rules: &str| cells.figure(device, rules, "seconds");
    let (hdd_extent, hdd_planned, hdd_none) =
        (seconds("hdd", "extent")?, seconds("hdd", "planned")?, seconds("hdd", "none")?);
    let (ssd_extent, ssd_planned, ssd_none) =
        (seconds("ssd", "extent")?, seconds("ssd", "planned")?, seconds("ssd", "none")?);
    let share = cells.figure("hdd", "extent", "ahead_share")?;
    let (gap, no_gap) = (seconds("hdd", "planned gap=10")?, seconds("hdd", "planned gap=0")?);
    let worst = ssd_none.max(ssd_extent);
    Ok(vec![
        Finding::measured(
            "On a disk, extents or look-ups?",
            "extents, incomparably: 46 min to 2000 mixes; look-ups had twice the time per read",
            format!("extents {hdd_extent:.2} s, look-ups {hdd_planned:.2} s, neither {hdd_none:.2} s"),
            hdd_extent < hdd_planned,
        ),
        Finding::measured(
            "On an SSD?",
            "look-ups, by little: 280 s; the worst setting took less than 300 s",
            format!("look-ups {ssd_planned:.3} s, extents {ssd_extent:.3} s, neither {ssd_none:.3} s"),
            ssd_planned <= ssd_extent && worst < 1.5 * ssd_planned,
        ),
        Finding::measured(
            "Which share of pages do extents bring ahead on a disk?",
            "89 %",
            format!("{:.0} %", share * 100.0),
            (0.8..=1.0).contains(&share),
        ),
        Finding::answered(
            "Is it worth reading through gaps of unwanted pages?",
            "left open: \"supposedly saves on latency; we will see\"",
            format!("look-ups on a disk take {gap:.3} s with gaps up to 10 pages, {no_gap:.3} s without"),
        ),
    ])
}

fn warm_up(warming: &[(&str, Value)]) -> Vec<Finding> {
    let seconds = |run: &Value| run["open_to_full_s"].as_f64();
    let says = |(model, run): &(&str, Value)| match seconds(run) {
        Some(took) => format!(
            "{model}: {took:.1} s, {:.0} MB read, {:.2} of what was used",
            run["bytes_read"].as_f64().unwrap_or(0.0) / 1e6,
            run["amplification"].as_f64().unwrap_or(0.0)
        ),
        None => format!("{model}: not within the time given"),
    };
    let text: Vec<String> = warming.iter().map(says).collect();
    let of = |model: &str| warming.iter().find(|(name, _)| *name == model).and_then(|(_, run)| seconds(run));
    let what = "How long until full speed?";
    let published = "SSDs 280 s, disks 46 min and still rising";
    let (ssd, hdd) = (of("ssd"), of("hdd"));
    let at_once = |took: Option<f64>| took.is_some_and(|took| took < 1.0);
    if at_once(ssd) && at_once(hdd) {
        let why = "on both within the first second: the data set is too small";
        return vec![Finding::unmeasured(what, published, why)];
    }
    let is_faster = ssd.is_some_and(|ssd| hdd.is_none_or(|hdd| ssd < hdd));
    vec![Finding::measured(what, published, text.join("; "), is_faster)]
}

/// Executions of a query from which its share is computed.
const LEAST_RUNS: u64 = 10;
/// Seconds of the shortest interval that is a point of a curve.
const LEAST_INTERVAL_S: f64 = 0.5;

/// Queries that suffer while the server is semi-warm, on the disk.
fn semi_warm(warming: &[(&str, Value)]) -> Finding {
    let what = "Which queries suffer most while the disk is semi-warm?";
    let published = "Q8 to Q12; Q5 runs at half its speed, Q12 under a tenth";
    let disk = warming.iter().find(|(model, _)| *model == "hdd").map(|(_, run)| run);
    let queries = disk.and_then(|run| run["warm_up"]["queries"].as_array()).map_or(&[][..], Vec::as_slice);
    let is_enough = |query: &&Value| query["runs"].as_u64() >= Some(LEAST_RUNS);
    let share = |query: &Value| Some((query["query"].as_u64()?, query["share"].as_f64()?));
    let mut shares: Vec<(u64, f64)> = queries.iter().filter(is_enough).filter_map(share).collect();
    shares.sort_by(|a, b| a.1.total_cmp(&b.1));
    if shares.len() < 2 {
        return Finding::unmeasured(what, published, "the server was semi-warm for too short a time");
    }
    let text: Vec<String> = shares.iter().map(|(query, share)| format!("Q{query} {share:.2}")).collect();
    let most = &shares[..shares.len().min(3)];
    let as_there = most.iter().all(|(query, _)| (8..=12).contains(query));
    Finding::measured(what, published, format!("of warm speed: {}", text.join(", ")), as_there)
}

fn curves(warming: &[(&str, Value)]) -> Section {
    let series = |(model, run): &(&str, Value)| {
        let samples = run["samples"].as_array().map_or(&[][..], Vec::as_slice);
        let is_whole = |sample: &&Value| sample["length_s"].as_f64().is_none_or(|s| s >= LEAST_INTERVAL_S);
        let point = |sample: &Value| Some((sample["since_exec"].as_f64()?, sample["qmph"].as_f64()?));
        Series::new(*model, samples.iter().filter(is_whole).filter_map(point).collect())
    };
    let plot = Plot {
        title: "Query mixes per hour, second by second".into(),
        x: Axis::new("time since the start", Unit::Seconds),
        y: Axis::new("query mixes per hour", Unit::Plain),
        series: warming.iter().map(series).collect(),
        ..Plot::default()
    };
    Section::new("From cold to full speed", vec![Figure::Lines(plot)])
}

fn beside_virtuoso(
    steps: &mut Steps<'_>,
    findings: &mut Vec<Finding>,
    products: &str,
) -> Result<Option<Section>> {
    let args =
        ["compare-engines", "--engines", "snowmelt,virtuoso", "--products", products, "--clients", "16"];
    let step = steps.lab("Snowmelt and Virtuoso, cold and warm", "engines", "turns", &args)?;
    const WHAT: &str = "Beside Virtuoso: which share of warm throughput do the first mixes from cold reach?";
    let published = "nearly none at first; 280 s to 0.89 of it on SSDs";
    let skipped = step.report.summary.iter().find(|line| line.contains("Virtuoso") && line.contains("skip"));
    findings.push(match (skipped, from_cold(&step.lines, "snowmelt"), from_cold(&step.lines, "virtuoso")) {
        (None, Some(ours), Some(theirs)) => {
            let text = |name: &str, (share, warm): (f64, f64)| {
                format!("{name} {:.0} % of {warm:.0} mixes/h", share * 100.0)
            };
            let here = format!("{}; {}", text("Snowmelt", ours), text("Virtuoso", theirs));
            Finding::answered(WHAT, published, here)
        }
        (Some(why), ..) => Finding::unmeasured(WHAT, published, why),
        _ => Finding::unmeasured(WHAT, published, "not all turns of both were whole"),
    });
    Ok(Some(step.section("Beside Virtuoso", &step.report.summary.join(" "), &[""])))
}

/// Medians of an engine's turns: throughput from cold as a share of that when warm, and that.
fn from_cold(turns: &[Value], engine: &str) -> Option<(f64, f64)> {
    let of_engine = turns.iter().filter(|turn| turn["engine"] == engine);
    let pairs = of_engine.filter_map(|turn| Some((turn["cold_qmph"].as_f64()?, turn["warm_qmph"].as_f64()?)));
    let (shares, warm): (Vec<f64>, Vec<f64>) = pairs.map(|(cold, warm)| (cold / warm, warm)).unzip();
    median(&shares).zip(median(&warm))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::finding::Agreement;
    use super::*;

    #[test]
    fn the_queries_that_suffer_most_are_told_first() {
        let warming = |shares: [f64; 4]| {
            let queries = [5, 8, 11, 12].iter().zip(shares);
            let queries: Vec<Value> =
                queries.map(|(query, share)| json!({"query": query, "share": share, "runs": 10})).collect();
            [("ssd", json!({})), ("hdd", json!({"warm_up": {"queries": queries}}))]
        };
        let finding = semi_warm(&warming([0.5, 0.3, 0.2, 0.08]));
        assert_eq!(finding.here, "of warm speed: Q12 0.08, Q11 0.20, Q8 0.30, Q5 0.50");
        assert_eq!(finding.verdict, Agreement::Same);
        assert_eq!(semi_warm(&warming([0.1, 0.3, 0.2, 0.08])).verdict, Agreement::Otherwise);
        let few = json!({"warm_up": {"queries": [{"query": 1, "share": 0.1, "runs": 9}]}});
        for run in [json!({}), few] {
            assert_eq!(semi_warm(&[("hdd", run)]).verdict, Agreement::Unmeasured);
        }
    }

    #[test]
    fn a_broken_turn_counts_for_nothing() {
        let turn = |engine: &str, cold, warm| json!({"engine": engine, "cold_qmph": cold, "warm_qmph": warm});
        let turns = [
            turn("a", Some(50.0), Some(100.0)),
            turn("a", Some(10.0), Some(200.0)),
            turn("a", Some(90.0), Some(100.0)),
            turn("a", None, Some(1e9)),
            turn("b", Some(1.0), None),
        ];
        assert_eq!(from_cold(&turns, "a"), Some((0.5, 100.0)));
        assert_eq!(from_cold(&turns, "b"), None);
    }
}
