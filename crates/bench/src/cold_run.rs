//! A run from cold: nothing of the database in the page cache, an empty pool, and all clients
//! at once from the first moment.
//!
//! 1. Evict and prove it.
//! 2. Open, and run until the rules of the warm-up seem to hold or its mixes or seconds are
//!    through: the cold phase.
//! 3. Run the measured mixes, the same as without `--cold`: the warm throughput.
//! 4. Full speed is where the first stretch of about a second's queries began that ran at 90 %
//!    of the warm throughput. `warm_up` has the other figures.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};
use snowmelt_database::OpenOptions;
use snowmelt_database::meters::Report;
use snowmelt_store::{FirstUses, PAGE_BYTES, Seams, Store};

use super::optimum::{Caps, Optimum};
use super::warm_up::course::{Course, Interval};
use super::warm_up::{Bandwidth, WarmRules, WarmUp, WarmUpFacts, WorkingSet};
use snowmelt_workload::bench::{Bench, ClientLoad, Until};
use snowmelt_workload::cold::{self, Proof};
use snowmelt_workload::curve::FULL;
use snowmelt_workload::drive::Run;
use snowmelt_workload::process;
use snowmelt_workload::sampler::{Counts, Sample};

/// Findings of a run from cold.
#[derive(Clone, Debug, Serialize)]
pub struct ColdReport {
    /// That it was cold.
    pub proof: Proof,
    /// Seconds from exec to the start of opening: command line, counting products, eviction.
    pub exec_to_open_s: f64,
    /// Seconds that opening took.
    pub open_s: f64,
    /// Seconds from the start of opening to full speed, if that was reached.
    pub open_to_full_s: Option<f64>,
    /// Seconds of the cold phase, from the start of opening.
    pub cold_s: f64,
    /// Mixes of the cold phase.
    pub cold_mixes: usize,
    /// Bytes read in the cold phase.
    pub bytes_read: u64,
    /// Pages of those that were used.
    pub pages_used: u64,
    /// Bytes read ÷ bytes of pages used.
    pub amplification: f64,
    /// The least time for the pages that were used until full speed, and until it was warm by
    /// rules, on a volume with the given caps.
    pub optima: Vec<Optimum>,
    /// Second by second.
    pub samples: Vec<Sample>,
    /// When it was warm, by rules, and what that took.
    pub warm_up: WarmUp,
}

/// The phases of a run from cold.
pub struct ColdRun {
    /// The cold phase.
    pub cold: ColdReport,
    /// The measured mixes after it.
    pub warm: Run,
    /// Report of the cold phase.
    pub cold_meters: Report,
    /// Report of the measured mixes.
    pub warm_meters: Report,
}

/// How to run from cold.
pub struct Plan<'a> {
    /// The database.
    pub db: &'a Path,
    /// How to open it.
    pub options: &'a OpenOptions,
    /// Its options.
    pub load: ClientLoad,
    /// When it is warm.
    pub warm: WarmRules,
    /// The rate of the storage, if not as its profile says.
    pub bandwidth: Option<Bandwidth>,
    /// Caps of the volume under each stripe, for the least time.
    pub caps: Option<Caps>,
    /// Most seconds of the cold phase, that of opening included.
    pub most_seconds: u64,
    /// Measured mixes.
    pub mixes: u64,
    /// Ends it.
    pub stop: &'a AtomicBool,
    /// Called with the proof before the run, so that it is shown before the samples.
    pub on_proof: &'a dyn Fn(&Proof),
    /// Called for each second.
    pub on_sample: &'a (dyn Fn(&Sample) + Sync),
}

impl Plan<'_> {
    /// Runs it.
    pub fn run(&self) -> Result<ColdRun> {
        let proof = cold::make_cold(self.db)?;
        (self.on_proof)(&proof);
        let clock = &self.options.seams.clock;
        let exec_to_open_s = process::seconds_since_exec().unwrap_or(0.0);
        let begun_ns = clock.now_ns();
        let cpu_s = process::cpu_seconds();
        let first_uses = self.caps.map(|_| Arc::new(FirstUses::default()));
        let options = OpenOptions {
            seams: Seams { first_uses: first_uses.clone(), ..self.options.clone().seams },
            ..self.options.clone()
        };
        let mut bench = Bench::open(self.db, &options, self.load)?;
        let open_s = (clock.now_ns() - begun_ns) as f64 / 1e9;
        let store = bench.database.database().store().clone();
        let mut course = Course { intervals: vec![opening(&store, open_s, cpu_s)], done: Vec::new() };
        let bandwidth = self.bandwidth.or_else(|| Bandwidth::of_store(&store));
        let rules = self.warm;
        let seems_warm = |samples: &[Sample], per_mix: usize| rules.seem_kept(samples, per_mix);
        let left = Duration::from_secs(self.most_seconds).saturating_sub(Duration::from_secs_f64(open_s));
        let until = Until::enough(&seems_warm, rules.most_mixes(), left);
        let (first, samples) = bench.run(until, 1.0, self.stop, self.on_sample)?;
        let cold_meters = store.report();
        store.reset_meters();
        let (warm, warm_samples) = bench.run(Until::mixes(self.mixes), 1.0, self.stop, &|_| {})?;
        let warm_meters = store.report();

        let rate = warm.records.len() as f64 / warm.seconds().max(1e-9);
        let mut curve = first.curve();
        curve.starts_at(begun_ns);
        let stretch = (rate as usize).max(100);
        course.add_phase(begun_ns, &first, &samples, self.load.queries_per_mix());
        course.add_phase(begun_ns, &warm, &warm_samples, self.load.queries_per_mix());
        let measured_from_s = warm.from_ns.saturating_sub(begun_ns) as f64 / 1e9;
        let facts = self.facts(&cold_meters, &warm_meters, bandwidth);
        let warm_up = WarmUp::new(&course, measured_from_s, &self.warm, facts);
        let open_to_full_s = curve.seconds_to(FULL * rate, stretch);
        let moments = [open_to_full_s, warm_up.warm_s];
        let optima = self.caps.zip(first_uses).map_or(Vec::new(), |(caps, uses)| {
            let uses = uses.take();
            let of = |until_s: &f64| Optimum::find(&uses, begun_ns, *until_s, caps);
            moments.iter().flatten().map(of).collect()
        });
        let cold = ColdReport {
            proof,
            exec_to_open_s,
            open_s,
            open_to_full_s,
            cold_s: curve.seconds(),
            cold_mixes: first.mixes(),
            bytes_read: cold_meters.bytes(),
            pages_used: cold_meters.pages_used(),
            amplification: cold_meters.amplification(),
            optima,
            samples,
            warm_up,
        };
        Ok(ColdRun { cold, warm, cold_meters, warm_meters })
    }

    fn facts(&self, cold: &Report, warm: &Report, bandwidth: Option<Bandwidth>) -> WarmUpFacts {
        let ahead = cold.ahead_total();
        let pages = cold.pages_used() + warm.pages_used();
        WarmUpFacts {
            clients: self.load.clients,
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            working_set: Some(WorkingSet {
                pages,
                bytes: pages * PAGE_BYTES as u64,
                is_exact: warm.pool.left == 0,
                // Resetting the meters forgets the fate of these.
                missing_at_most: ahead.issued.saturating_sub(ahead.used),
            }),
            read_ahead: Some((ahead.issued, ahead.used)),
            bandwidth,
            io_wait: READERS_WAIT.into(),
            server: "this process, its clients included, and the meters of its store".into(),
        }
    }
}

/// The I/O wait of a store in this process, in words.
pub const READERS_WAIT: &str = "the sum over all readers that were blocked for pages";

/// The time of opening as an interval.
fn opening(store: &Store, open_s: f64, cpu_before_s: f64) -> Interval {
    let counts = Counts::of_store(store);
    let count = |n: Option<u64>| n.map(|n| n as f64);
    Interval {
        begin_s: 0.0,
        end_s: open_s,
        cpu_s: counts.cpu_s.map(|cpu_s| cpu_s - cpu_before_s),
        queries: 0.0,
        bytes: count(counts.bytes),
        pages: count(counts.pages),
        wait_s: counts.wait_s,
    }
}

impl ColdReport {
    /// The time to full speed and its cost, in a few lines.
    pub fn text(&self) -> String {
        let full = match self.open_to_full_s {
            Some(s) => format!(
                "90 % of warm throughput {s:.2} s after the start of opening, {:.2} s after exec",
                s + self.exec_to_open_s
            ),
            None => format!("90 % of warm throughput not reached in {:.0} s", self.cold_s),
        };
        let warm_up = self.warm_up.text();
        let optima: String = self.optima.iter().map(|optimum| format!("{}\n", optimum.text())).collect();
        format!(
            "{full}\nopening took {:.3} s; {} mixes in the cold phase of {:.1} s\n{:.1} MiB read, {:.2} × the pages really used\n{optima}\nwarm-up:\n{warm_up}",
            self.open_s,
            self.cold_mixes,
            self.cold_s,
            self.bytes_read as f64 / (1 << 20) as f64,
            self.amplification
        )
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmelt_bsbm::{DEFAULT_SEED, UseCase, WordLists};
    use snowmelt_graph::load::LoadOptions;
    use snowmelt_sparql::PlanCosts;
    use snowmelt_store::StoreConfig;
    use snowmelt_workload::dataset::generate_and_load;

    #[test]
    fn the_cold_phase_ends_with_its_mixes_or_its_seconds() {
        let dir = tempfile::tempdir().unwrap();
        let db = dir.path().join("db");
        let options = StoreConfig { memory_bytes: 128 << 20, ..StoreConfig::default() };
        let stop = AtomicBool::new(false);
        let load = LoadOptions { store: options.clone(), threads: 1, ..LoadOptions::default() };
        generate_and_load(70, WordLists::synthetic(), &db, &load, &(), &stop).unwrap();
        let run = |mixes: u64, most_seconds: u64| {
            let plan = Plan {
                db: &db,
                options: &options,
                load: ClientLoad {
                    products: 70,
                    seed: DEFAULT_SEED,
                    use_case: UseCase::Explore,
                    clients: 2,
                    threads: 1,
                    costs: PlanCosts::default(),
                },
                warm: WarmRules { mixes, ..WarmRules::PUBLISHED },
                bandwidth: None,
                caps: None,
                most_seconds,
                mixes: 3,
                stop: &stop,
                on_proof: &|_| {},
                on_sample: &|_| {},
            };
            plan.run().unwrap().cold
        };
        let by_mixes = run(7, 300);
        assert_eq!((by_mixes.cold_mixes, by_mixes.warm_up.mixes), (7, 7));
        assert!(by_mixes.warm_up.warm_s.is_some(), "7 mixes are warm by the rule of mixes: {by_mixes:?}");
        let by_seconds = run(1_000_000_000, 1);
        assert!(by_seconds.cold_mixes > 7 && by_seconds.cold_s < 3.0, "{by_seconds:?}");
    }
}
