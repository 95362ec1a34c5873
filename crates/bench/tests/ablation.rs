//! The ablation: what planning the reads is worth.
//!
//! A million triples, loaded with extents of 16 pages, so that a pool of a tenth holds several
//! of them, as it would at full scale. All cells are run once and judged by several tests.
//! `ABLATION_TABLE=1 cargo test --test ablation -- --nocapture` prints them.

use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use snowmelt_bench::ablation::{
    Ablation, Cell, Conditions, Judgement, LEARNED, Model, Outcome, QueryLoad, Setting, analytic_conditions,
    conditions, learned_conditions, learned_settings, settings,
};
use snowmelt_bsbm::{DEFAULT_SEED, UseCase, WordLists};
use snowmelt_graph::load::LoadOptions;
use snowmelt_store::StoreConfig;
use snowmelt_workload::dataset::generate_and_load;

/// A million triples with `ABLATION_FULL=1`, which takes minutes; a fifth of that otherwise.
static PRODUCTS: LazyLock<u32> = LazyLock::new(|| if is_full() { MILLION } else { 500 });
const MILLION: u32 = 2785;
const EXTENT_PAGES: u32 = 16;
const MIXES: u64 = 60;

fn is_full() -> bool {
    std::env::var_os("ABLATION_FULL").is_some()
}

/// How far `auto` may be from the best fixed setting: 1.3 at a million triples. At less a handful
/// of requests is a tenth of some times, and a tenth of the pages is four frames for each of 16
/// clients, where luck decides.
///
/// On four disks one client leaves three idle, and whole extents of 16 pages, hardly used, make use
/// of them: `auto` does not. With extents of the usual length it is as good as any.
fn near(conditions: &Conditions) -> f64 {
    match (conditions.model, conditions.pool_percent, conditions.clients) {
        _ if is_full() => 1.3,
        (Model::FourHdd, 10, 1) => 2.1,
        (_, 10, 16) => 1.5,
        _ => 1.2,
    }
}

/// How far learned costs may be from the best fixed setting, after the time in which they are
/// learned.
const LEARNED_NEAR: f64 = 2.0;
const LEARNING_S: f64 = 0.2;

/// Runs some settings under some conditions on a fresh data set.
fn run(products: u32, extent_pages: u32, settings: Vec<Setting>, conditions: Vec<Conditions>) -> Vec<Cell> {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let stop = AtomicBool::new(false);
    let store = StoreConfig { extent_pages, memory_bytes: 256 << 20, ..StoreConfig::default() };
    let options = LoadOptions { store, threads: 2, ..LoadOptions::default() };
    generate_and_load(products, WordLists::synthetic(), &db, &options, &(), &stop).unwrap();
    let ablation = Ablation {
        db,
        products,
        seed: DEFAULT_SEED,
        use_case: UseCase::Explore,
        mixes: MIXES,
        settings,
        conditions,
        threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        stop: &stop,
        progress: &|_, _| {},
    };
    let cells = ablation.run().unwrap();
    if std::env::var_os("ABLATION_TABLE").is_some() {
        println!("{}", Outcome::new(&cells).text(MIXES));
    }
    cells
}

static CELLS: LazyLock<Vec<Cell>> = LazyLock::new(|| run(*PRODUCTS, EXTENT_PAGES, settings(), conditions()));

fn outcome() -> Outcome<'static> {
    Outcome::new(&CELLS)
}

/// The time of a setting divided by that of another.
fn ratio(outcome: &Outcome<'_>, conditions: Conditions, slow: &str, fast: &str) -> f64 {
    let time = |setting| outcome.seconds(conditions, setting).expect("the cell was run");
    time(slow) / time(fast)
}

fn all_of(model: Model, pool_percent: u32) -> impl Iterator<Item = Conditions> {
    conditions()
        .into_iter()
        .filter(move |c| c.model == model && c.pool_percent == pool_percent && c.load == QueryLoad::Mixes)
}

/// In extents of 2 MiB, as in the demo: with less, a start is over before the device's width
/// and bandwidth matter.
#[test]
fn planned_beats_demand_on_a_wide_slow_volume() {
    let conditions: Vec<Conditions> = all_of(Model::WideSlow, 100).collect();
    let settings = ["none", "auto -warm-list"].map(|name| Setting::parse(name).unwrap()).into();
    let cells = run(MILLION, 256, settings, conditions.clone());
    let outcome = Outcome::new(&cells);
    for conditions in conditions {
        let least = if conditions.clients == 1 { 8.0 } else { 2.5 };
        let times = ratio(&outcome, conditions, "none", "auto -warm-list");
        assert!(times >= least, "{conditions}: only {times:.1} × instead of {least} ×");
    }
}

/// Joins and groups of much of the data announce what they read.
#[test]
fn planned_beats_demand_for_analytic_queries() {
    let conditions = analytic_conditions(&[Model::WideSlow]);
    let settings = ["none", "auto -warm-list"].map(|name| Setting::parse(name).unwrap()).into();
    let cells = run(*PRODUCTS, 256, settings, conditions.clone());
    let outcome = Outcome::new(&cells);
    for conditions in conditions {
        let times = ratio(&outcome, conditions, "none", "auto -warm-list");
        // with a small pool most pages of so little data are read twice
        let least = if conditions.pool_percent == 100 { 2.0 } else { 1.2 };
        assert!(times >= least, "{conditions}: only {times:.1} × instead of {least} ×");
    }
}

#[test]
fn extents_beat_exact_pages_on_a_disk() {
    for conditions in all_of(Model::Hdd, 100) {
        let times = ratio(&outcome(), conditions, "planned", "extent");
        assert!(times > 1.0, "{conditions}: extent is not better than planned ({times:.2})");
    }
}

#[test]
fn exact_pages_beat_extents_on_flash_with_a_small_pool() {
    for conditions in all_of(Model::Nvme, 10) {
        let times = ratio(&outcome(), conditions, "extent", "planned");
        assert!(times > 1.0, "{conditions}: planned is not better than extent ({times:.2})");
    }
}

#[test]
fn auto_is_near_the_best_everywhere() {
    let judgements = outcome().judgements();
    assert_eq!(judgements.len(), 2 * conditions().len());
    let far: Vec<String> = judgements
        .iter()
        .filter(|j| j.ratio() > near(&j.conditions))
        .map(|j| {
            format!("{}: {} {:.3} s, {} {:.3} s", j.conditions, j.auto, j.seconds, j.best, j.best_seconds)
        })
        .collect();
    assert!(far.is_empty(), "auto is too far from the best in\n{}", far.join("\n"));
    let mut ratios: Vec<f64> = judgements.iter().map(|j| j.ratio()).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    assert!(ratios[ratios.len() / 2] <= 1.1, "the median of {ratios:?}");
}

#[test]
fn speculative_reads_are_reads() {
    for cell in CELLS.iter() {
        let f = &cell.figures;
        assert!(
            f.spec_disk <= f.disk,
            "{} {}: {} of {}",
            cell.conditions,
            cell.setting.name,
            f.spec_disk,
            f.disk
        );
        assert!(f.disk > 0, "{} {}: nothing was read", cell.conditions, cell.setting.name);
    }
}

/// Virtual time depends on nothing but the program: the same cells again give the same figures,
/// evictions among 16 clients included.
#[test]
fn cells_are_repeatable() {
    let conditions: Vec<Conditions> = all_of(Model::Hdd, 10).filter(|c| c.clients == 16).collect();
    let settings: Vec<Setting> = ["none", "auto"].map(|name| Setting::parse(name).unwrap()).into();
    let again = run(*PRODUCTS, EXTENT_PAGES, settings, conditions);
    let differ: Vec<String> = again
        .iter()
        .filter_map(|cell| {
            let same = |c: &&Cell| c.conditions == cell.conditions && c.setting == cell.setting;
            let first = CELLS.iter().find(same).expect("all cells were run");
            let (a, b) = (&first.figures, &cell.figures);
            (a != b).then(|| format!("{} {}: {a:?}\n  {b:?}", cell.conditions, cell.setting.name))
        })
        .collect();
    assert!(differ.is_empty(), "not repeatable:\n{}", differ.join("\n"));
}

#[test]
fn every_setting_gives_the_same_answers() {
    for cell in CELLS.iter() {
        let first =
            CELLS.iter().find(|c| c.conditions.load == cell.conditions.load).expect("the cell itself");
        assert_eq!(cell.figures.digest, first.figures.digest, "{} {}", cell.conditions, cell.setting.name);
    }
}

#[test]
fn every_rule_helps_somewhere() {
    for worth in outcome().worth() {
        assert!(!worth.helps.is_empty(), "{} helps nowhere", worth.rule.name());
    }
}

/// In extents of the usual length: costs learned from nothing, and what they are measured against.
static OF_LEARNED: LazyLock<Vec<Cell>> = LazyLock::new(|| {
    let settings = match is_full() {
        true => learned_settings(),
        // The best fixed setting is one of these nearly everywhere.
        false => ["planned", "planned gap=10", "all -warm-list", LEARNED]
            .map(|name| Setting::parse(name).unwrap())
            .into(),
    };
    run(*PRODUCTS, 256, settings, learned_conditions())
});

/// Of a device nothing is known at first: in the median cell that costs nothing against the best
/// fixed setting, of which most know the device.
///
/// The worst cells are those in which all could be over before anything is learned: a volume whose
/// tokens of a tenth of a second are worth the whole database.
#[test]
fn learned_costs_are_nearly_as_good_as_known_ones() {
    let judgements = Outcome::new(&OF_LEARNED).judgements_of_learned();
    assert_eq!(judgements.len(), learned_conditions().len());
    let mut ratios: Vec<f64> = judgements.iter().map(Judgement::ratio).collect();
    ratios.sort_by(f64::total_cmp);
    assert!(ratios[ratios.len() / 2] <= 1.05, "the median of {ratios:?}");
    let far: Vec<String> = judgements
        .iter()
        .filter(|j| j.seconds > LEARNED_NEAR * j.best_seconds + LEARNING_S)
        .map(|j| format!("{}: {:.2} × {}", j.conditions, j.ratio(), j.best))
        .collect();
    assert!(far.is_empty(), "learned costs are too far from the best in\n{}", far.join("\n"));
}

/// Guesses, and a depth that is too great, make those wait who know what they need.
#[test]
fn a_demand_read_waits_little_longer_than_on_the_device_alone() {
    let cells = OF_LEARNED.iter().filter(|cell| cell.setting.name == LEARNED);
    let mut far: Vec<(f64, String)> = cells
        .map(|cell| (cell.figures.demand_times(), cell.conditions))
        .filter(|(times, conditions)| *times > most_times(conditions))
        .map(|(times, conditions)| (times, format!("{conditions}: {times:.1} × as long")))
        .collect();
    far.sort_by(|a, b| b.0.total_cmp(&a.0));
    let far: Vec<String> = far.into_iter().map(|(_, what)| what).collect();
    assert!(far.is_empty(), "demand reads wait too long in {}\n{}", far.len(), far.join("\n"));
}

/// Three times; more where 16 clients with a tenth of the pool ask for more than the device can
/// give all the time: a volume of 3,000 reads per second answers 16 of them in 5 ms, whichever is
/// first, and one of two at its best depth in 0.7.
fn most_times(conditions: &Conditions) -> f64 {
    if (conditions.pool_percent, conditions.clients) == (10, 16) { 8.0 } else { 3.1 }
}
