//! The warm lists that the cells of a setting with one begin with.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use anyhow::{Context, Result};
use snowmelt_io::{Clock, Device, SimulatedDevice};
use snowmelt_sparql::{PlanCosts, QueryEngine};
use snowmelt_store::{ReadAhead, Seams, StoreConfig};

use super::view::SharedDatabase;
use super::{Ablation, Conditions, Model, QueryLoad, cell};
use snowmelt_workload::drive::{Drive, Mixes};
use snowmelt_workload::in_process::InProcess;

/// For each size of the pool, the warm list that is there after a run.
pub(super) struct WarmLists(HashMap<u32, Vec<u8>>);

impl WarmLists {
    /// Runs the mixes once for each size of the pool that `ablation` has, on a modelled drive
    /// in virtual time like the cells, so that the same list comes out every time, and keeps
    /// it.
    pub fn collect(database: &SharedDatabase, ablation: &Ablation<'_>) -> Result<Self> {
        let mut lists = HashMap::new();
        if !ablation.settings.iter().any(|s| s.has_list()) {
            return Ok(Self(lists));
        }
        for conditions in &ablation.conditions {
            if lists.contains_key(&conditions.pool_percent) {
                continue;
            }
            let view = database.view(1)?;
            let clock = Clock::virtual_time(1);
            let config = StoreConfig {
                read_ahead: ReadAhead::parse("planned,warm-list").expect("these are rules"),
                seams: Seams { clock: clock.clone(), ..Seams::default() },
                ..cell::memory(database.pages, conditions.pool_percent)
            };
            let (model, in_time_of) = (Model::Nvme.device(database.bytes), clock.clone());
            let modelled = move |bytes| {
                Ok(Arc::new(SimulatedDevice::new(model.clone(), bytes, &in_time_of)) as Arc<dyn Device>)
            };
            let opened = view.open(config, modelled, None)?;
            let engine = Arc::new(QueryEngine::new(opened));
            let target = InProcess::new(engine, clock.clone(), cell::options(PlanCosts::Device, 1));
            let (stream, count) = QueryLoad::Mixes.stream(ablation)?;
            let mixes = Mixes::new(stream, count, &[ablation.stop]);
            Drive::new(&target, &clock, 1).run(&mixes)?;
            drop(target);
            let list = fs::read(view.list_path()).context("no warm list was saved")?;
            lists.insert(conditions.pool_percent, list);
        }
        Ok(Self(lists))
    }

    /// The list for a size of the pool. A scan finds none: that of the mixes would say nothing
    /// of it.
    pub fn get(&self, conditions: &Conditions) -> Option<&[u8]> {
        self.0
            .get(&conditions.pool_percent)
            .filter(|_| conditions.load == QueryLoad::Mixes)
            .map(Vec::as_slice)
    }
}
