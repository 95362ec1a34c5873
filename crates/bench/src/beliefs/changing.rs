//! Query mixes on a volume whose caps change, watched, in virtual time: the same looks on any
//! machine.
//!
//! Nothing is known of the volume at first. The pool is small, so there are reads all the time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use snowmelt_bsbm::{DEFAULT_SEED, UseCase, Workload};
use snowmelt_graph::GraphDatabase;
use snowmelt_io::{Clock, CostModel, DeviceModel, QueueConfig, Troubles, VolumeModel};
use snowmelt_sparql::{QueryEngine, QueryOptions};
use snowmelt_store::{ReadAhead, Store, StoreConfig};

use crate::modelled;
use snowmelt_workload::beliefs::{DeviceState, Look, Watch};
use snowmelt_workload::drive::{Drive, Mixes, Stream};
use snowmelt_workload::in_process::InProcess;

/// Modelled processors.
const CORES: usize = 2;
/// Seconds between looks, once the first second is over.
const PAUSE_S: f64 = 0.1;

/// The volume from some moment on.
#[derive(Clone, Debug)]
pub struct Stretch {
    /// The moment, in seconds since the beginning.
    pub from_s: f64,
    /// The volume.
    pub volume: VolumeModel,
}

/// A run on a volume that changes.
pub struct Changing<'a> {
    /// The database: one stripe.
    pub db: &'a Path,
    /// Scale of its data set.
    pub products: u32,
    /// Clients, each with one query at a time.
    pub clients: usize,
    /// Frames of the pool.
    pub frames: u64,
    /// One or more, by time; the first one from the beginning.
    pub phases: &'a [Stretch],
    /// Length of the run, in seconds.
    pub seconds: f64,
    /// Ends it.
    pub stop: &'a AtomicBool,
}

impl Changing<'_> {
    /// A gp3 with the caps that are included in its price, halved during the second third of the
    /// time.
    pub fn halved_gp3(seconds: f64) -> Vec<Stretch> {
        let DeviceModel::Volume(gp3) = DeviceModel::gp3() else { unreachable!("gp3 is a volume") };
        let phase = |(third, caps): (u32, f64)| Stretch {
            from_s: f64::from(third) * seconds / 3.0,
            volume: VolumeModel { iops: caps * gp3.iops, bytes_per_s: caps * gp3.bytes_per_s, ..gp3.clone() },
        };
        [(0, 1.0), (1, 0.5), (2, 1.0)].map(phase).into()
    }

    /// Runs it, and returns the looks.
    pub fn run(&self) -> Result<Vec<Look>> {
        let clock = Clock::virtual_time(CORES);
        let database = GraphDatabase::open(self.db, &self.config(&clock))?;
        let store = database.database().store().clone();
        let options = QueryOptions { threads: 1, ..QueryOptions::default() };
        let target = InProcess::new(Arc::new(QueryEngine::new(database)), clock.clone(), options);
        let workload = Workload::new(self.products, DEFAULT_SEED, UseCase::Explore)?;
        let end_ns = clock.now_ns() + (self.seconds * 1e9) as u64;
        let mixes = Mixes::new(Stream::Drawn(Box::new(workload)), u64::MAX, &[self.stop]).until(end_ns);
        let looks = std::sync::Mutex::new(Vec::new());
        let watch = || *looks.lock().expect("one thread looks") = self.watch(&clock, &store);
        Drive::new(&target, &clock, self.clients).run_beside(&mixes, Some(&watch))?;
        Ok(looks.into_inner().expect("one thread looks"))
    }

    fn watch(&self, clock: &Clock, store: &Store) -> Vec<Look> {
        let begun_ns = clock.now_ns();
        let since_s = || (clock.now_ns() - begun_ns) as f64 / 1e9;
        let (mut watch, prior) = Watch::begin(DeviceState::of_store(store));
        let mut looks = vec![prior];
        while since_s() + 1e-6 < self.seconds && !self.stop.load(std::sync::atomic::Ordering::Relaxed) {
            let due_s = watch.next_s(since_s() + PAUSE_S);
            clock.sleep_ns(((due_s - since_s()) * 1e9).max(1e3) as u64);
            looks.push(watch.look(since_s(), DeviceState::of_store(store)));
        }
        looks
    }

    fn config(&self, clock: &Clock) -> StoreConfig {
        let model = |phase: &Stretch| DeviceModel::Volume(phase.volume.clone());
        let later = self.phases[1..].iter();
        let becomes = later.map(|phase| ((phase.from_s * 1e9) as u64, model(phase))).collect();
        let troubles = Troubles { becomes, ..Troubles::default() };
        let first = model(&self.phases[0]);
        StoreConfig {
            queue: QueueConfig { cost: Some(CostModel::ssd()), learns: true, ..QueueConfig::default() },
            read_ahead: ReadAhead { warm_list: false, ..ReadAhead::auto() },
            ..modelled::store_config(clock, self.frames, move |_| (first.clone(), troubles.clone()))
        }
    }
}
