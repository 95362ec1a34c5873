//! `bsbm scale` on two small data sets: the figures add up, and text and JSON say the same.

use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};
use snowmelt_bench::scale::{Phase, ScalePlan, ScaleRun, growth_text, growths, scale_text};
use snowmelt_bsbm::{DEFAULT_SEED, UseCase, WordLists};
use snowmelt_graph::load::LoadOptions;
use snowmelt_sparql::PlanCosts;
use snowmelt_store::StoreConfig;
use snowmelt_workload::bench::ClientLoad;
use snowmelt_workload::dataset::generate_and_load;

const MIXES: u64 = 12;

fn runs() -> Vec<ScaleRun> {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreConfig { memory_bytes: 128 << 20, ..StoreConfig::default() };
    let stop = AtomicBool::new(false);
    let one = |products: u32| {
        let db = dir.path().join(format!("{products}.db"));
        let load = LoadOptions { store: options.clone(), threads: 1, ..LoadOptions::default() };
        generate_and_load(products, WordLists::synthetic(), &db, &load, &(), &stop).unwrap();
        let load = ClientLoad {
            products,
            seed: DEFAULT_SEED,
            use_case: UseCase::Explore,
            clients: 2,
            threads: 0,
            costs: PlanCosts::default(),
        };
        let plan = ScalePlan {
            db: &db,
            options: &options,
            load,
            warmup: MIXES,
            mixes: 2 * MIXES,
            flame: None,
            stop: &stop,
        };
        plan.run().unwrap()
    };
    vec![one(70), one(140)]
}

fn adds_up(phase: &Phase, mixes: u64) {
    assert_eq!(phase.mixes, mixes);
    let count: usize = phase.queries.iter().map(|q| q.count).sum();
    assert_eq!(count as u64, mixes * 25, "a mix has 25 queries");
    let shares: f64 = phase.queries.iter().map(|q| q.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "shares sum to {shares}");
    let planning: f64 = phase.queries.iter().map(|q| q.share * q.planning_share).sum();
    assert!((planning - phase.planning_share).abs() < 1e-9);
    assert!(planning > 0.0 && planning < 1.0, "{planning}");
    let busy: f64 = phase.queries.iter().map(|q| q.mean_s * q.count as f64).sum();
    for q in &phase.queries {
        assert!((q.share - q.mean_s * q.count as f64 / busy).abs() < 1e-6, "Q{}", q.query);
    }
    let operations = phase.operations_per_second * phase.seconds;
    assert!((operations - phase.operations_per_mix() * mixes as f64).abs() < 1.0);
    assert!(phase.activity.rnd > 0 && phase.activity.seq > 0);
}

/// Cells of the line of a table that begins with this name.
fn line<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let found = text.lines().map(str::trim).find(|line| line.starts_with(&format!("{name} ")));
    let found = found.unwrap_or_else(|| panic!("{name} in\n{text}"));
    found[name.len()..].split_whitespace().collect()
}

fn text_says_what_json_says(run: &ScaleRun) {
    let (text, json) = (scale_text(run), json!(run));
    let head = text.lines().next().unwrap();
    assert_eq!(head.split(' ').next(), Some(&*json["products"].to_string()));
    assert!(head.contains(&format!("{} quads", json["quads"])), "{head}");
    let steady = &json["steady"];
    for q in steady["queries"].as_array().unwrap() {
        let cells = line(&text, &format!("Q{}", q["query"]));
        assert_eq!(cells[0], q["count"].to_string());
        let percent = |value: &Value| format!("{:.1}", 100.0 * value.as_f64().unwrap());
        assert_eq!(cells[2..4], [percent(&q["share"]), percent(&q["planning_share"])]);
        assert_eq!(cells[4], q["digest"].as_str().unwrap());
    }
    let (_, after) = text.split_once("\nsteady, ").unwrap();
    for tree in steady["trees"].as_array().unwrap() {
        let cells = line(after, tree["tree"].as_str().unwrap());
        if tree["reads"].as_u64().unwrap() < 10_000 {
            assert_eq!(cells[0], tree["reads"].to_string());
        }
    }
}

#[test]
fn the_figures_of_two_scales_add_up() {
    let runs = runs();
    for run in &runs {
        adds_up(&run.cold, MIXES);
        adds_up(&run.steady, 2 * MIXES);
        assert_eq!(run.proof.cached_after, 0);
        let (cold, steady) = (run.cold.reads_per_mix(), run.steady.reads_per_mix());
        assert!(cold > 0.0, "a cold start reads");
        assert!(steady * run.steady.mixes as f64 <= cold * run.cold.mixes as f64, "what is read stays");
        text_says_what_json_says(run);
    }
    assert!(runs[1].quads > runs[0].quads * 3 / 2, "twice the products");
    let growths = growths(&runs);
    assert_eq!((growths.len(), growths[0].from, growths[0].to), (1, 70, 140));
    let rate = runs[1].quads as f64 / runs[0].quads as f64;
    assert!((growths[0].data - rate).abs() < 1e-9);
    let text = growth_text(&growths);
    for figure in &growths[0].figures {
        let Some(x) = figure.exponent else {
            assert_eq!(line(&text, &figure.name), ["-"]);
            continue;
        };
        assert!((figure.before * rate.powf(x) - figure.after).abs() < 1e-6 * figure.after, "{figure:?}");
        assert_eq!(line(&text, &figure.name), [format!("{x:.2}")]);
    }
    let names: Vec<&str> = growths[0].figures.iter().map(|figure| &*figure.name).collect();
    assert!(names.contains(&"operations per mix") && names.contains(&"time of Q5"), "{names:?}");
}
