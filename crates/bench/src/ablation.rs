//! The worth of each read-ahead rule, and of other settings of I/O: every rule on and off, on
//! modelled devices, in virtual time.
//!
//! 1. `settings`: no rule, each alone, all but each, all, and `auto`; and `auto` with one thing
//!    fixed that the cost model chooses otherwise (gaps, lone reads in place). With the
//!    conditions (device, pool, queue, clients) they make the cells.
//! 2. `view`: the same database, opened many times at once, its bytes in memory; `warm_lists`: the
//!    lists of pages that some settings begin with.
//! 3. `cell`: one run. The device's time is its model's, the processors' time that of
//!    [`CpuModel`](snowmelt_workload::cpu_model::CpuModel), so a cell gives the same figures on any
//!    machine, and an hour of a slow disk takes seconds.
//! 4. `table`: the figures, which rule helped where, and how near `auto` comes to the best
//!    fixed setting.
//!
//! Two measures, since a pool of a tenth may never be at full speed:
//! * *time to 90 %*: when the first stretch of 25 mixes began in which the processors were busy
//!   with queries 90 % of the time (of as many processors as there are clients to use them).
//!   Warm, they are busy all the time; so this is 90 % of warm throughput. It judges the cells
//!   whose pool holds the whole database. Where it was not reached, the whole run's time stands
//!   for it.
//! * *time for all mixes*: judges the cells with the smaller pool, and those of the scan and of
//!   analytic queries.
//!
//! The disk's own buffer would hold all of a small database; so it is cut to a share of the
//! database that a real one would have of a larger one (see `Model::device`).

mod cell;
mod load;
mod settings;
mod table;
mod view;
mod warm_lists;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, bail};
use snowmelt_bsbm::UseCase;

pub use cell::Figures;
pub use load::QueryLoad;
pub use settings::{
    Conditions, Known, LEARNED, Model, Setting, Turned, analytic_conditions, conditions, conditions_of,
    learned_conditions, learned_settings, settings, turned_settings,
};
pub use table::{Judgement, Outcome, Worth};
use view::SharedDatabase;
use warm_lists::WarmLists;

/// The cells to run.
pub struct Ablation<'a> {
    /// The database.
    pub db: PathBuf,
    /// Scale of its data set.
    pub products: u32,
    /// Seed of the queries' parameters.
    pub seed: i64,
    /// The mix.
    pub use_case: UseCase,
    /// Mixes in every cell.
    pub mixes: u64,
    /// Read-ahead settings.
    pub settings: Vec<Setting>,
    /// Under which conditions.
    pub conditions: Vec<Conditions>,
    /// Cells at a time.
    pub threads: NonZeroUsize,
    /// Ends it.
    pub stop: &'a AtomicBool,
    /// Called with the number of cells done and of all.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

/// One cell of the table.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Under which conditions.
    pub conditions: Conditions,
    /// With which rules.
    pub setting: Setting,
    /// Results of the cells.
    pub figures: Figures,
}

impl Cell {
    /// As JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "device": self.conditions.model.name(), "pool_percent": self.conditions.pool_percent,
            "queue": self.conditions.policy, "clients": self.conditions.clients, "load": self.conditions.load.name(),
            "read_ahead": self.setting.name, "figures": self.figures,
        })
    }
}

impl Ablation<'_> {
    /// The cells: of a database too large for memory only those with as many stripes as it has.
    fn tasks(&self, database: &SharedDatabase) -> Vec<(Conditions, &Setting)> {
        let possible = self.conditions.iter().filter(|c| database.has_stripes(c.model.stripes()));
        let cells = |c: &Conditions| {
            let c = *c;
            self.settings.iter().filter(move |s| s.is_for(&c)).map(move |s| (c, s))
        };
        possible.flat_map(cells).collect()
    }

    /// Runs all cells; their order is that of the conditions, then that of the settings.
    pub fn run(&self) -> Result<Vec<Cell>> {
        let mut stripes: Vec<u32> = self.conditions.iter().map(|c| c.model.stripes()).collect();
        stripes.push(1); // for the warm lists
        stripes.sort_unstable();
        stripes.dedup();
        let database = SharedDatabase::open(&self.db, &stripes)?;
        let lists = WarmLists::collect(&database, self)?;
        let tasks = self.tasks(&database);
        let next = AtomicUsize::new(0);
        let done = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        thread::scope(|scope| -> Result<()> {
            let worker = || -> Result<()> {
                let mut views = HashMap::new();
                while !self.stop.load(Ordering::Relaxed) {
                    let task = next.fetch_add(1, Ordering::Relaxed);
                    let Some((conditions, setting)) = tasks.get(task) else { break };
                    let view = match views.entry(conditions.model.stripes()) {
                        Entry::Occupied(view) => view.into_mut(),
                        Entry::Vacant(none) => none.insert(database.view(conditions.model.stripes())?),
                    };
                    let list = lists.get(conditions).filter(|_| setting.has_list());
                    let figures = cell::run(view, list, self, *conditions, setting)?;
                    let cell = Cell { conditions: *conditions, setting: (*setting).clone(), figures };
                    results.lock().expect("no thread panics while it holds this lock").push((task, cell));
                    (self.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, tasks.len());
                }
                Ok(())
            };
            let workers: Vec<_> = (0..self.threads.get()).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().try_for_each(|w| w.join().expect("a worker panicked"))
        })?;
        if self.stop.load(Ordering::Relaxed) {
            bail!("stopped after {} of {} cells", done.into_inner(), tasks.len());
        }
        let mut cells = results.into_inner().expect("no thread panics while it holds this lock");
        cells.sort_by_key(|(task, _)| *task);
        Ok(cells.into_iter().map(|(_, cell)| cell).collect())
    }
}
