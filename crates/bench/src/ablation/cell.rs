//! One run of the ablation: a setting under some conditions, from an empty pool, in virtual time.

use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;
use snowmelt_io::{Class, Clock, Device, SimulatedDevice};
use snowmelt_sparql::{PlanCosts, QueryEngine, QueryOptions};
use snowmelt_store::{IDLE_NS, PAGE_BYTES, Report, Seams, Store, StoreConfig};

use super::view::View;
use super::{Ablation, Conditions, Setting};
use snowmelt_workload::curve::FULL;
use snowmelt_workload::drive::{Drive, Mixes, Run};
use snowmelt_workload::in_process::InProcess;

/// Modelled processors.
const CORES: usize = 2;
/// Mixes for which full speed must hold.
const STRETCH_MIXES: usize = 25;
/// Memory for queries beside the pool, in bytes.
const QUERY_BYTES: u64 = 256 << 20;

/// The result of a cell. Times in seconds of virtual time, from before the database was opened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Until full speed, if it was reached.
    pub to_full_s: Option<f64>,
    /// Until all mixes were done.
    pub seconds: f64,
    /// Time of the mixes when everything is resident: their modelled processor time on the
    /// processors they can use.
    pub warm_s: f64,
    /// Pages read.
    pub reads: u64,
    /// Bytes moved, gaps included.
    pub bytes: u64,
    /// Requests the device got.
    pub requests: u64,
    /// Mean depth of its queue while busy.
    pub depth: f64,
    /// Share of pages that came ahead.
    pub ahead_share: f64,
    /// Share of those that were used.
    pub used_share: f64,
    /// Report: pages read, and those without a waiting reader when their read was started.
    pub disk: u64,
    /// See `disk`.
    pub spec_disk: u64,
    /// Time that 99 of 100 demand reads took at most, from when they were asked for; guesses that
    /// a reader came to wait for are among them, from when they were guesses.
    pub demand_p99_s: f64,
    /// Time that 99 of 100 random reads took at most on the device alone, at its best depth.
    pub own_p99_s: f64,
    /// Sum of all answers' digests.
    pub digest: u64,
}

impl Figures {
    /// The time a setting is judged by: see the module's head.
    pub fn judged_s(&self, conditions: &Conditions) -> f64 {
        if conditions.has_full_speed() { self.to_full_s.unwrap_or(self.seconds) } else { self.seconds }
    }

    /// How many times as long as on the device alone a demand read takes, of 99 in 100.
    pub fn demand_times(&self) -> f64 {
        self.demand_p99_s / self.own_p99_s
    }

    /// As cells of a row.
    pub(super) fn row(&self, name: &str) -> Vec<String> {
        let percent = |share: f64| format!("{:.0}", 100.0 * share);
        vec![
            name.to_owned(),
            self.to_full_s.map_or_else(|| "-".to_owned(), |s| format!("{s:.3}")),
            format!("{:.3}", self.seconds),
            self.reads.to_string(),
            format!("{:.1}", self.bytes as f64 / (1 << 20) as f64),
            self.requests.to_string(),
            format!("{:.1}", self.depth),
            percent(self.ahead_share),
            percent(self.used_share),
            format!("{:.1}", self.demand_times()),
        ]
    }
}

/// Bytes of a pool.
fn pool_bytes(pages: u64, percent: u32) -> u64 {
    (pages * u64::from(percent) / 100).max(u64::from(snowmelt_store::LEAST_FRAMES)) * PAGE_BYTES as u64
}

/// A pool of `pool_percent` of the database, and room for queries.
pub(super) fn memory(pages: u64, pool_percent: u32) -> StoreConfig {
    let pool = pool_bytes(pages, pool_percent);
    StoreConfig { memory_bytes: pool + QUERY_BYTES, pool_bytes: Some(pool), ..StoreConfig::default() }
}

/// Queries that may use `threads` threads.
pub(super) fn options(costs: PlanCosts, threads: usize) -> QueryOptions {
    QueryOptions { threads, costs, ..QueryOptions::default() }
}

/// Runs a cell; `list` is the warm list that it begins with.
pub(super) fn run(
    view: &View<'_>,
    list: Option<&[u8]>,
    ablation: &Ablation<'_>,
    conditions: Conditions,
    setting: &Setting,
) -> Result<Figures> {
    let clock = Clock::virtual_time(CORES);
    let config = StoreConfig {
        queue: setting.turned.queue(conditions.policy),
        read_ahead: setting.rules.clone(),
        seams: Seams { clock: clock.clone(), ..Seams::default() },
        ..memory(view.database.pages, conditions.pool_percent)
    };
    let (model, in_time_of) = (conditions.model.device(view.database.bytes), clock.clone());
    let modelled =
        move |bytes| Ok(Arc::new(SimulatedDevice::new(model.clone(), bytes, &in_time_of)) as Arc<dyn Device>);
    let database = view.open(config, modelled, list)?;
    let store = database.database().store().clone();
    let target = InProcess::new(
        QueryEngine::new(database).into(),
        clock.clone(),
        options(setting.costs, setting.threads),
    );
    let (stream, count) = conditions.load.stream(ablation)?;
    let mixes = Mixes::new(stream, count, &[ablation.stop]);
    let drive = Drive::new(&target, &clock, conditions.clients);
    let run = drive.run_beside(&mixes, Some(&|| work_in_background(&clock, &store)))?;
    let own_p99_ns = conditions.model.own_p99_ns(view.database.bytes)?;
    Ok(figures(&run, &store.report(), conditions.clients, own_p99_ns))
}

/// Reads the warm list back, as the store's own thread does in real time.
fn work_in_background(clock: &Clock, store: &Store) {
    loop {
        let pause_ns = store.step();
        if pause_ns >= IDLE_NS {
            return;
        }
        clock.sleep_ns(pause_ns);
    }
}

fn figures(run: &Run, meters: &Report, clients: usize, own_p99_ns: u64) -> Figures {
    let busy = clients.min(CORES) as f64;
    let mut curve = run.work_curve();
    curve.starts_at(0);
    let queries_per_mix = run.records.len() / run.mixes().max(1);
    let stretch = (STRETCH_MIXES * queries_per_mix).min(run.records.len()).max(1);
    let demand_p99_ns = meters.devices.iter().map(|d| d.counters.class(Class::Demand).latency.p99_ns).max();
    Figures {
        to_full_s: curve.seconds_to(FULL * busy, stretch),
        seconds: run.to_ns as f64 / 1e9,
        warm_s: curve.total() / busy,
        reads: meters.pages_read(),
        bytes: meters.bytes(),
        requests: meters.requests(),
        depth: meters.depth(),
        ahead_share: meters.ahead_share(),
        used_share: meters.used_share(),
        disk: meters.activity.disk,
        spec_disk: meters.activity.spec_disk,
        demand_p99_s: demand_p99_ns.unwrap_or(0) as f64 / 1e9,
        own_p99_s: own_p99_ns as f64 / 1e9,
        digest: run.records.iter().map(|r| r.digest).fold(0, u64::wrapping_add),
    }
}
