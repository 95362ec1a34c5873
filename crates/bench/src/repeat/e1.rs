//! E1: warming a database from cold, by read-ahead rules, on disks and SSDs.

use anyhow::{Context, Result};
use serde_json::Value;
use snowmelt_lab::report::{Axis, Bar, Bars, Figure, Plot, Section, Series, Unit};
use snowmelt_lab::stats::median;

use super::Chapter;
use super::finding::answers::{Answers, Measure};
use super::finding::catalogue;
use super::finding::circumstance::{Basis, Circumstance};
use super::steps::Steps;

/// Rules that were compared: the name there, and the setting here.
const RULES: [(&str, &str); 5] = [
    ("no read-ahead", "none"),
    ("extents (its scheme A)", "extent"),
    ("vectored (its scheme B)", "planned"),
    ("all rules", "all"),
    ("chosen by cost", "auto"),
];

/// Triples of the publication, by products of the generator.
const PUBLISHED_PRODUCTS: f64 = 2_848_260.0;
/// Seconds that may lie between the last bytes from a device and full speed. One is the length of
/// an interval of the curve.
const READING_TAIL_S: f64 = 1.0;
/// Seconds of reading from which a rate can be told, by intervals of a second.
const LEAST_READING_S: f64 = 1.5;
/// Seconds to full speed that are those of a few queries.
const AT_ONCE_S: f64 = 0.1;

/// A run from cold on a simulated device.
struct Warming {
    model: &'static str,
    /// its `meters.cold`
    report: Value,
    meanwhile: Circumstance,
}

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
    let mut answers = Answers::to(catalogue::E1);
    rules(&cells, &mut answers, &mut sections)?;
    let mut warming = Vec::new();
    for model in ["ssd", "hdd"] {
        let device = format!("0=sim:{model}");
        let seconds = if steps.plan.is_quick { "40" } else { "300" };
        // Full speed is a share of their speed: of a second's mixes it would be that of a moment.
        let warm_mixes = if steps.plan.is_quick { "200" } else { "2000" };
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
            warm_mixes,
            "--warmup",
            "0",
            "--cold-seconds",
            seconds,
            "--format",
            "json",
        ];
        let run = steps.json(&format!("16 clients from cold on a simulated {model}, in real time"), &args)?;
        warming.push(Warming { model, report: run["meters"]["cold"].clone(), meanwhile: steps.last() });
    }
    let scale = products.parse().unwrap_or(0.0) / PUBLISHED_PRODUCTS;
    warm_up(&warming, scale, &mut answers);
    semi_warm(&warming, &mut answers);
    sections.push(curves(&warming));
    steps.remove("small");
    steps.remove("large");
    if !steps.plan.is_quick {
        sections.extend(beside_virtuoso(steps, &mut answers, products)?);
    } else {
        answers.not_measured("e1-virtuoso", "--quick leaves other systems out");
    }
    Ok(Chapter {
        title: "E1: warming a database from cold",
        source: "Published 2011: Virtuoso, BSBM Explore at 1000 million triples by 16 clients, four disks \
                 against four SSDs, read-ahead by extents or by look-ups.",
        findings: answers.finish(),
        differs: vec![format!(
            "There: 1000 million triples in 4 stripes. Here: {products} products on one modelled device ({few} for \
             the rules, on and off). The latter are in virtual time, the same on each machine; the curves are real \
             time. Data of this size is read whole within seconds, by extents one behind the other: a modelled disk \
             gives the same bytes nearly as fast as a modelled SSD. From then on processors decide, and the time to \
             full speed is none of the device's."
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

fn rules(cells: &Cells<'_>, answers: &mut Answers, sections: &mut Vec<Section>) -> Result<()> {
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
    let of = |device: &str| {
        Ok::<_, anyhow::Error>([
            seconds(device, "extent")?,
            seconds(device, "planned")?,
            seconds(device, "none")?,
        ])
    };
    let [hdd_extent, hdd_planned, hdd_none] = of("hdd")?;
    let [ssd_extent, ssd_planned, ssd_none] = of("ssd")?;
    let words = |extent: f64, planned: f64, none: f64| {
        format!("extents {extent:.3} s, look-ups {planned:.3} s, neither {none:.3} s")
    };
    let virtually = |value: f64, words: String| Measure::own(value, words, Basis::VirtualTime);
    let disk = words(hdd_extent, hdd_planned, hdd_none);
    answers.figure("e1-disk-rule", virtually(hdd_planned / hdd_extent, disk));
    let ssd = words(ssd_extent, ssd_planned, ssd_none);
    answers.figure("e1-ssd-rule", virtually(ssd_extent / ssd_planned, ssd.clone()));
    answers.figure("e1-ssd-worst", virtually(ssd_none.max(ssd_extent) / ssd_planned, ssd));
    let [by_planned, by_extent] = [page_s(cells, "planned")?, page_s(cells, "extent")?];
    let pages =
        format!("a page takes {:.2} ms by look-ups, {:.2} ms by extents", by_planned * 1e3, by_extent * 1e3);
    answers.figure("e1-disk-read-times", virtually(by_planned / by_extent, pages));
    let share = cells.figure("hdd", "extent", "ahead_share")?;
    answers.figure("e1-extent-share", virtually(share, format!("{share:.2}")));
    let (gap, no_gap) = (seconds("hdd", "planned gap=10")?, seconds("hdd", "planned gap=0")?);
    let gaps = format!("look-ups on a disk take {gap:.3} s with gaps up to 10 pages, {no_gap:.3} s without");
    answers.figure("e1-gaps", virtually(no_gap / gap, gaps));
    Ok(())
}

/// Mean time of a page at the disk: by Little's law, requests outstanding × time ÷ pages.
fn page_s(cells: &Cells<'_>, rules: &str) -> Result<f64> {
    let of = |name: &str| cells.figure("hdd", rules, name);
    Ok(of("depth")? * of("seconds")? / of("reads")?.max(1.0))
}

impl Warming {
    /// From the start of opening to full speed.
    fn seconds(&self) -> Option<f64> {
        self.report["open_to_full_s"].as_f64()
    }

    /// When the device had given all but a hundredth of the bytes of the cold phase, and bytes per
    /// second until then.
    fn reading(&self) -> Option<(f64, f64)> {
        let samples = self.report["samples"].as_array()?;
        let of = |sample: &Value, key: &str| sample[key].as_f64().unwrap_or(0.0);
        let all: f64 = samples.iter().map(|sample| of(sample, "bytes")).sum();
        let (mut read, mut seconds) = (0.0, 0.0);
        for sample in samples {
            (read, seconds) = (read + of(sample, "bytes"), seconds + of(sample, "length_s"));
            if all > 0.0 && read >= 0.99 * all {
                return Some((seconds, read / seconds.max(1e-9)));
            }
        }
        None
    }

    fn words(&self) -> String {
        match self.seconds() {
            Some(took) => format!(
                "{}: {took:.1} s, {:.0} MB read, {:.2} of what was used",
                self.model,
                self.report["bytes_read"].as_f64().unwrap_or(0.0) / 1e6,
                self.report["amplification"].as_f64().unwrap_or(0.0)
            ),
            None => format!("{}: not within the time given", self.model),
        }
    }

    /// Why its time to full speed says nothing about the device, if so.
    fn why_not_device(&self) -> Option<String> {
        let (full, (read, _)) = self.seconds().zip(self.reading())?;
        (full > read + READING_TAIL_S).then(|| {
            format!(
                "on the {} all was read within {read:.1} s, and full speed came at {full:.1} s: processors decided",
                self.model
            )
        })
    }
}

/// `scale`: our data by the published.
fn warm_up(warming: &[Warming], scale: f64, answers: &mut Answers) {
    let of = |model: &str| warming.iter().find(|run| run.model == model);
    let (Some(ssd), Some(hdd)) = (of("ssd"), of("hdd")) else { return };
    let circumstances = [&ssd.meanwhile, &hdd.meanwhile];
    let size = format!("the data is {:.2} % of the published", scale * 100.0);
    match ssd.seconds() {
        None => answers.not_measured("e1-ssd-seconds", "full speed was not reached within the time given"),
        Some(took) => {
            let measure = Measure::timed(took, format!("{took:.1} s"), &[&ssd.meanwhile]);
            match scale < 0.5 {
                true => answers.not_comparable("e1-ssd-seconds", measure, size),
                false => answers.figure("e1-ssd-seconds", measure),
            }
        }
    }
    match hdd.reading() {
        None => answers.not_measured("e1-disk-rate", "nothing was read"),
        Some((seconds, _)) if seconds < LEAST_READING_S => {
            answers.not_measured(
                "e1-disk-rate",
                "all was read within the first second: the data set is too small",
            );
        }
        Some((seconds, rate)) => {
            let words = format!("{:.0} MB/s until all was read, {seconds:.1} s", rate / 1e6);
            answers.figure("e1-disk-rate", Measure::timed(rate / 1e6, words, &[&hdd.meanwhile]));
        }
    }
    let words = format!("{}; {}", ssd.words(), hdd.words());
    match (ssd.seconds(), hdd.seconds()) {
        (Some(fast), Some(slow)) if fast.min(slow) < AT_ONCE_S => {
            let why =
                format!("full speed came at once, so the data set is too small: {fast:.2} s and {slow:.2} s");
            answers.not_measured("e1-disk-ssd", why);
        }
        (Some(fast), Some(slow)) => {
            let measure =
                Measure::timed(slow / fast, format!("{:.2} times ({words})", slow / fast), &circumstances);
            match ssd.why_not_device().or_else(|| hdd.why_not_device()) {
                Some(why) => answers.not_comparable("e1-disk-ssd", measure, why),
                None => answers.figure("e1-disk-ssd", measure),
            }
        }
        _ => answers.not_measured("e1-disk-ssd", words),
    }
}

/// Executions of a query from which its share is computed.
const LEAST_RUNS: u64 = 10;
/// Queries that are told as those that suffer most.
const MOST: usize = 3;
/// Seconds of the shortest interval that is a point of a curve.
const LEAST_INTERVAL_S: f64 = 0.5;

/// Queries that suffer while the server is semi-warm, on the disk.
fn semi_warm(warming: &[Warming], answers: &mut Answers) {
    const IDS: [&str; 3] = ["e1-semi-warm-queries", "e1-semi-warm-q5", "e1-semi-warm-q12"];
    let Some(disk) = warming.iter().find(|run| run.model == "hdd") else { return };
    let queries = disk.report["warm_up"]["queries"].as_array().map_or(&[][..], Vec::as_slice);
    let is_enough = |query: &&Value| query["runs"].as_u64() >= Some(LEAST_RUNS);
    let share = |query: &Value| Some((query["query"].as_u64()?, query["share"].as_f64()?));
    let mut shares: Vec<(u64, f64)> = queries.iter().filter(is_enough).filter_map(share).collect();
    shares.sort_by(|a, b| a.1.total_cmp(&b.1));
    if shares.len() < MOST {
        answers.none_measured(&IDS, "the server was semi-warm for too short a time");
        return;
    }
    let text: Vec<String> = shares.iter().map(|(query, share)| format!("Q{query} {share:.2}")).collect();
    let text = format!("of warm speed: {}", text.join(", "));
    let timed = |value: f64, words: String| Measure::timed(value, words, &[&disk.meanwhile]);
    let as_there = shares[..MOST].iter().filter(|(query, _)| (8..=12).contains(query)).count();
    answers.figure(IDS[0], timed(as_there as f64, text));
    for (id, number) in [(IDS[1], 5), (IDS[2], 12)] {
        match shares.iter().find(|(query, _)| *query == number) {
            Some((_, share)) => answers.figure(id, timed(*share, format!("{share:.2}"))),
            None => answers.not_measured(id, format!("fewer than {LEAST_RUNS} of it ran while semi-warm")),
        }
    }
}

fn curves(warming: &[Warming]) -> Section {
    let series = |run: &Warming| {
        let samples = run.report["samples"].as_array().map_or(&[][..], Vec::as_slice);
        let is_whole = |sample: &&Value| sample["length_s"].as_f64().is_none_or(|s| s >= LEAST_INTERVAL_S);
        let point = |sample: &Value| Some((sample["since_exec"].as_f64()?, sample["qmph"].as_f64()?));
        Series::new(run.model, samples.iter().filter(is_whole).filter_map(point).collect())
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

fn beside_virtuoso(steps: &mut Steps<'_>, answers: &mut Answers, products: &str) -> Result<Option<Section>> {
    const ID: &str = "e1-virtuoso";
    let args =
        ["compare-engines", "--engines", "snowmelt,virtuoso", "--products", products, "--clients", "16"];
    let step = steps.lab("Snowmelt and Virtuoso, cold and warm", "engines", "turns", &args)?;
    let skipped = step.report.summary.iter().find(|line| line.contains("Virtuoso") && line.contains("skip"));
    match (skipped, from_cold(&step.lines, "snowmelt"), from_cold(&step.lines, "virtuoso")) {
        (None, Some(ours), Some(theirs)) => {
            let text = |name: &str, (share, warm): (f64, f64)| {
                format!("{name} {:.0} % of {warm:.0} mixes/h", share * 100.0)
            };
            let here = format!("{}; {}", text("Snowmelt", ours), text("Virtuoso", theirs));
            answers.figure(ID, Measure::timed(ours.0 / theirs.0, here, &[&step.meanwhile]));
        }
        (Some(why), ..) => answers.not_measured(ID, why.as_str()),
        _ => answers.not_measured(ID, "not all turns of both were whole"),
    }
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

    use super::super::finding::{Agreement, Finding};
    use super::*;

    fn on(model: &'static str, report: Value) -> Warming {
        Warming { model, report, meanwhile: Circumstance::default() }
    }

    fn found(warming: &[Warming]) -> impl Fn(&str) -> Finding + use<> {
        let mut answers = Answers::to(catalogue::E1);
        warm_up(warming, 0.01, &mut answers);
        semi_warm(warming, &mut answers);
        let findings = answers.finish();
        move |id| findings.iter().find(|of| of.id == id).unwrap().clone()
    }

    #[test]
    fn the_queries_that_suffer_most_are_told_first() {
        let warming = |shares: [f64; 4]| {
            let queries = [5, 8, 11, 12].iter().zip(shares);
            let queries: Vec<Value> =
                queries.map(|(query, share)| json!({"query": query, "share": share, "runs": 10})).collect();
            [on("ssd", json!({})), on("hdd", json!({"warm_up": {"queries": queries}}))]
        };
        let of = found(&warming([0.5, 0.3, 0.2, 0.08]));
        let [most, half, tenth] = ["queries", "q5", "q12"].map(|of_it| of(&format!("e1-semi-warm-{of_it}")));
        assert_eq!(most.here, "of warm speed: Q12 0.08, Q11 0.20, Q8 0.30, Q5 0.50");
        assert_eq!([most, half, tenth].map(|of| of.verdict), [Agreement::AsPublished; 3]);
        let of = found(&warming([0.1, 0.3, 0.2, 0.5]));
        assert_eq!(of("e1-semi-warm-queries").verdict, Agreement::Weaker, "two of three");
        assert_eq!(of("e1-semi-warm-q5").verdict, Agreement::Otherwise, "slower by far");
        assert_eq!(of("e1-semi-warm-q12").verdict, Agreement::Weaker);
        let few = json!({"warm_up": {"queries": [{"query": 1, "share": 0.1, "runs": 9}]}});
        for run in [json!({}), few] {
            let of = found(&[on("ssd", json!({})), on("hdd", run)]);
            assert_eq!(of("e1-semi-warm-q5").verdict, Agreement::NotMeasured);
        }
    }

    /// Seconds to full speed, where all bytes came within the first second.
    fn full_at(seconds: f64) -> Value {
        let samples = [(1.0, 200e6), (1.0, 50e6), (1.0, 0.0)];
        let samples = samples.map(|(length, bytes)| json!({"length_s": length, "bytes": bytes}));
        json!({"open_to_full_s": seconds, "bytes_read": 250e6, "samples": samples})
    }

    #[test]
    fn full_speed_long_after_the_last_byte_is_none_of_the_device() {
        let of = found(&[on("ssd", full_at(7.9)), on("hdd", full_at(1.6))]);
        let ratio = of("e1-disk-ssd");
        assert_eq!(ratio.verdict, Agreement::NotComparable);
        assert!(ratio.reason.contains("ssd all was read within 2.0 s"), "{}", ratio.reason);
        let of = found(&[on("ssd", full_at(0.1)), on("hdd", full_at(1.6))]);
        assert_eq!(of("e1-disk-ssd").verdict, Agreement::AsPublished, "16 times");
        assert_eq!(
            found(&[on("ssd", full_at(0.4)), on("hdd", full_at(1.6))])("e1-disk-ssd").verdict,
            Agreement::Weaker
        );
        assert_eq!(of("e1-ssd-seconds").verdict, Agreement::NotComparable, "a hundredth of the data");
        assert_eq!(of("e1-disk-rate").here_value, Some(125.0));
        let of = found(&[on("ssd", full_at(0.01)), on("hdd", full_at(1.6))]);
        assert_eq!(of("e1-disk-ssd").verdict, Agreement::NotMeasured, "no ratio to nothing");
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
