//! Two methods measured beside each other over the same looks of the same worlds: the estimator's,
//! and a robust Kalman filter under two laws. The estimator steers the world; the filter watches.
//!
//!     cargo test -p snowmelt-io --lib methods -- --nocapture

use super::kalman::{Kalman, Norm};
use super::*;
use crate::device::simulated::mechanics::troubled::Troubled;
use crate::device::simulated::troubles::{Stalls, TroubledShare, Troubles};

const STEPS_MS: [u64; 4] = [100, 300, 1_000, 2_000];
const NEAR: f64 = 0.1;
/// A belief is found again when it stays near for so long.
const STAYS_NS: u64 = 200 * MS;

/// After a second the estimator is worse than a filter by no more than this.
const NO_WORSE: f64 = 0.01;
/// Where a filter is sooner the estimator has bounds of its own: the share of cells near after each
/// step, that of a page's cost and of a long read's; the time to know a change; the share of looks
/// near on a device with troubles.
const LEAST_NEAR: [f64; 6] = [0.5, 0.85, 0.98, 0.98, 0.3, 0.98];
const PAGE_COLUMN: usize = STEPS_MS.len();
const MOST_MS: [f64; 3] = [500.0, 300.0, 1_200.0];
const LEAST_NEAR_IN_TROUBLES: [f64; 3] = [0.5, 0.8, 0.9];

/// A method, as the tables name it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Method {
    Estimator,
    Kalman(Norm),
}

const METHODS: [(&str, Method); 3] = [
    ("estimator", Method::Estimator),
    ("Kalman, sum", Method::Kalman(Norm::SUM)),
    ("Kalman, caps", Method::Kalman(Norm::CAPS)),
];

/// Replays the looks with a method, and calls back after each with the believed device time by
/// length; first before any look.
fn replay(
    method: Method,
    prior: &CostModel,
    looks: &[Seen],
    mut show: impl FnMut(Option<&Seen>, &dyn Fn(f64) -> f64),
) {
    let first = Estimator::new(prior).costs;
    show(None, &|bytes| first.ns(bytes));
    match method {
        Method::Estimator => looks.iter().for_each(|look| show(Some(look), &|bytes| look.costs.ns(bytes))),
        Method::Kalman(norm) => {
            let mut filter = Kalman::new(norm, first.request_ns, first.byte_ns);
            for look in looks {
                filter.look(look);
                show(Some(look), &|bytes| filter.ns(bytes));
            }
        }
    }
}

/// The beliefs of a method about requests of each of `lengths`, by the time of each look.
fn beliefs<const N: usize>(
    method: Method,
    prior: &CostModel,
    looks: &[Seen],
    lengths: [f64; N],
) -> Vec<(u64, [f64; N])> {
    let mut all = Vec::new();
    replay(method, prior, looks, |look, ns| all.push((look.map_or(0, |look| look.now), lengths.map(ns))));
    all
}

/// The last of them at a time.
fn at<const N: usize>(all: &[(u64, [f64; N])], ns: u64) -> [f64; N] {
    all[all.partition_point(|(now, _)| *now <= ns) - 1].1
}

/// The error of a belief. Where the device is not the limit, a belief below the measured time is no
/// error.
fn error(believed: f64, is: f64, is_limit: bool) -> f64 {
    let wrong = (believed / is).ln();
    if is_limit || wrong > 0.0 { wrong.abs().exp() - 1.0 } else { 0.0 }
}

/// A quantile of some errors or times.
fn quantile(values: &[f64], part: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part).round() as usize]
}

/// Errors of a method, in a step of time or after it, of all cells.
#[derive(Default)]
struct Column {
    errors: Vec<f64>,
}

impl Column {
    fn median(&self) -> f64 {
        quantile(&self.errors, 0.5)
    }

    /// The part of them that is near.
    fn near(&self) -> f64 {
        self.errors.iter().filter(|error| **error <= NEAR).count() as f64 / self.errors.len() as f64
    }

    fn tell(&self) -> String {
        let share = 100.0 * self.near();
        let [median, most] = [0.5, 0.9].map(|part| 100.0 * quantile(&self.errors, part));
        format!("{median:.1} %, {most:.0} %, {share:.0} %")
    }
}

/// The costs of a page and of a long read, where each is all that is read.
fn pure(model: &DeviceModel) -> [f64; 2] {
    let pages = best(model, TestLoad::MANY);
    let long = best(model, TestLoad { readers: 0, ..TestLoad::LONG });
    [pages, long].map(|[requests, _]| 1.0 / requests)
}

const LONG_BYTES: f64 = (256 << 10) as f64;

/// Of each method, the errors after each step at the load's own length, and at the last one of a
/// page and of a long read.
fn measured_cells() -> [Vec<Column>; 3] {
    let empty = || (0..STEPS_MS.len() + 2).map(|_| Column::default()).collect();
    let mut columns: [Vec<Column>; 3] = std::array::from_fn(|_| empty());
    for name in VOLUMES {
        let model = DeviceModel::named(name).unwrap();
        let pure = pure(&model);
        for (load, prior) in
            TestLoad::ALL.iter().flat_map(|load| priors().into_iter().map(move |p| (load, p)))
        {
            let mut world = World::with(&model, &prior);
            world.run(*load, 1_000);
            let is = world.run(*load, 1_000);
            let lengths = [is.bytes_per_request(), PAGE as f64, LONG_BYTES];
            let is_limit = world.estimator.is_limit;
            for ((_, method), columns) in METHODS.iter().zip(&mut columns) {
                let all = beliefs(*method, &prior, &world.looks, lengths);
                for (ms, column) in STEPS_MS.iter().zip(columns.iter_mut()) {
                    let [believed, ..] = at(&all, ms * MS);
                    column.errors.push(error(believed, is.ns_per_request(), is_limit));
                }
                let [_, others @ ..] = at(&all, u64::MAX);
                for (i, column) in columns[STEPS_MS.len()..].iter_mut().enumerate() {
                    if load.long > 0 {
                        column.errors.push(error(others[i], pure[i], true));
                    }
                }
            }
        }
    }
    columns
}

/// A volume with caps so many times as high.
fn scaled(name: &str, times: f64) -> DeviceModel {
    let DeviceModel::Volume(v) = DeviceModel::named(name).unwrap() else { unreachable!("{name}") };
    DeviceModel::Volume(VolumeModel {
        iops: v.iops * times,
        bytes_per_s: v.bytes_per_s * times,
        burst_iops: v.burst_iops.map(|iops| iops * times),
        burst_bytes_per_s: v.burst_bytes_per_s.map(|bytes| bytes * times),
        ..v
    })
}

const CHANGES: [f64; 3] = [0.5, 2.0, 0.1];

/// Of each change and method, the milliseconds until what is believed stays near, in each cell.
fn measured_changes() -> [[Vec<f64>; 3]; 3] {
    CHANGES.map(|times| {
        let mut all: [Vec<f64>; 3] = std::array::from_fn(|_| Vec::new());
        for (name, load) in VOLUMES[..5].iter().flat_map(|name| TestLoad::ALL.map(|load| (name, load))) {
            let mut world = World::new(&scaled(name, 1.0));
            world.run(load, 2_000);
            world.becomes(&scaled(name, times));
            let from = world.now;
            world.run(load, 2_000);
            let is = world.run(load, 500);
            for ((_, method), found) in METHODS.iter().zip(&mut all) {
                let beliefs = beliefs(*method, &CostModel::ssd(), &world.looks, [is.bytes_per_request()]);
                let wrong = |[believed]: [f64; 1]| {
                    error(believed, is.ns_per_request(), world.estimator.is_limit) > NEAR
                };
                found.push(time_found(&beliefs, wrong, from, world.now));
            }
        }
        all
    })
}

/// Milliseconds after `from` until a belief stays near.
fn time_found(beliefs: &[(u64, [f64; 1])], wrong: impl Fn([f64; 1]) -> bool, from: u64, until: u64) -> f64 {
    let mut since = from;
    for (now, believed) in beliefs.iter().filter(|(now, _)| *now > from) {
        if now - since >= STAYS_NS {
            break;
        }
        if wrong(*believed) {
            since = *now;
        }
    }
    (since.min(until) - from) as f64 / MS as f64
}

/// Ways in which a device misbehaves without being another one.
fn troubled(name: &str) -> [(&'static str, Troubles); 3] {
    let latency_ns = DeviceModel::named(name).unwrap().cost(SPAN).latency_ns;
    let stalls = Some(Stalls { pause_ns: 500 * MS, least_ns: 20 * MS, most_ns: 2_000 * MS });
    let tail = Some(TroubledShare { share: 0.05, ns: 20 * latency_ns });
    [
        ("stalls", Troubles { stalls, ..Troubles::default() }),
        ("answers out of order", Troubles { scatter_ns: 2 * latency_ns, ..Troubles::default() }),
        ("a long tail", Troubles { tail, ..Troubles::default() }),
    ]
}

/// Of each trouble and method, the errors after each look at a device that is the limit, at the
/// look's own length.
fn measured_troubles() -> [(&'static str, [Column; 3]); 3] {
    let mut all = troubled(VOLUMES[0]).map(|(what, _)| (what, std::array::from_fn(|_| Column::default())));
    for name in &VOLUMES[..5] {
        let model = DeviceModel::named(name).unwrap();
        let [page_ns, long_ns] = pure(&model);
        for load in TestLoad::ALL {
            for ((_, troubles), (_, columns)) in troubled(name).into_iter().zip(&mut all) {
                let mut world = World::new(&model);
                world.device = Box::new(Troubled::new(&model, troubles).unwrap());
                world.run(load, 8_000);
                for ((_, method), column) in METHODS.iter().zip(columns) {
                    replay(*method, &CostModel::ssd(), &world.looks, |look, ns| {
                        let Some(look) = look.filter(|look| look.now > 1_000 * MS) else { return };
                        let is = page_ns.max(long_ns * look.bytes / LONG_BYTES);
                        column.errors.push(error(ns(look.bytes), is, look.is_limit));
                    });
                }
            }
        }
    }
    all
}

/// Rows of a table: a column for each method.
fn print_rows(head: &str, rows: impl Iterator<Item = (String, [String; 3])>) {
    println!("\n| {head} | {} |\n|---|---|---|---|", METHODS.map(|(name, _)| name).join(" | "));
    rows.for_each(|(what, cells)| println!("| {what} | {} |", cells.join(" | ")));
}

/// The figures that are worse of the estimator than it should be.
fn judge_cells(whats: &[String], cells: &[Vec<Column>; 3]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (i, least) in LEAST_NEAR.into_iter().enumerate() {
        let [estimator, filters @ ..] = cells.each_ref().map(|columns| &columns[i]);
        let is_known = i < STEPS_MS.len() && STEPS_MS[i] >= 1_000;
        for filter in filters.into_iter().filter(|_| is_known || i == PAGE_COLUMN) {
            let (median, near) = (filter.median() + NO_WORSE, filter.near() - NO_WORSE);
            if estimator.near() < near || (is_known && estimator.median() > median) {
                wrong.push(format!("{}: {}, a filter has {}", whats[i], estimator.tell(), filter.tell()));
            }
        }
        if estimator.near() < least {
            wrong.push(format!("{}: {}, should be within 10 %: {least}", whats[i], estimator.tell()));
        }
    }
    wrong
}

#[test]
fn after_a_second_the_estimator_is_no_worse_than_a_robust_kalman_filter() {
    let steps = STEPS_MS.map(|ms| format!("after {:.1} s", ms as f64 / 1e3));
    let whats: Vec<String> = steps.into_iter().chain(["a page", "256 KiB"].map(str::to_owned)).collect();
    let cells = measured_cells();
    let told =
        whats.iter().enumerate().map(|(i, what)| (what.clone(), cells.each_ref().map(|c| c[i].tell())));
    print_rows("error: median, 90 %, within 10 %", told);
    let changes = measured_changes();
    let ms = |all: &Vec<f64>| format!("{:.0}, {:.0}", quantile(all, 0.5), quantile(all, 0.9));
    let told =
        CHANGES.iter().zip(&changes).map(|(times, all)| (format!("× {times}"), all.each_ref().map(ms)));
    print_rows("ms until within 10 %: median, 90 %", told);
    let troubles = measured_troubles();
    let told = troubles.iter().map(|(what, all)| (what.to_string(), all.each_ref().map(Column::tell)));
    print_rows("error with troubles: median, 90 %, within 10 %", told);
    let mut wrong = judge_cells(&whats, &cells);
    for ((times, all), most) in CHANGES.iter().zip(&changes).zip(MOST_MS) {
        let is = quantile(&all[0], 0.5);
        if is > most {
            wrong.push(format!("× {times}: known anew after {is:.0} ms, should be {most:.0}"));
        }
    }
    for ((what, [estimator, ..]), least) in troubles.iter().zip(LEAST_NEAR_IN_TROUBLES) {
        if estimator.near() < least {
            wrong.push(format!("{what}: {}, should be within 10 %: {least}", estimator.tell()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
