//! Worth of device times in plans on a database: the cells of the ablation that tell, on
//! the three modelled devices, for pools of a tenth and of all of it.
//!
//!     cargo run --release -p snowmelt-benches --example device_costs -- DB explore|bi [MIXES]

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use snowmelt_bench::ablation::{Ablation, Conditions, Model, Outcome, QueryLoad, Setting};
use snowmelt_bsbm::DEFAULT_SEED;
use snowmelt_database::OpenOptions;
use snowmelt_io_experiments::PolicyName;
use snowmelt_workload::bench::count_products;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let db = PathBuf::from(args.next().context("DB")?);
    let use_case = args.next().context("explore or bi")?.parse().map_err(anyhow::Error::msg)?;
    let mixes = args.next().map_or(Ok(20), |mixes| mixes.parse())?;
    let products = count_products(&db, &OpenOptions::default())?;
    let names = ["auto -warm-list", "auto -warm-list -device-costs"];
    let settings = names.map(Setting::parse).into_iter().collect::<Result<_, _>>();
    let policy = PolicyName::Elevator;
    let conditions = Model::ALL.into_iter().flat_map(|model| {
        [10, 100].map(|pool_percent| Conditions {
            model,
            pool_percent,
            policy,
            clients: 1,
            load: QueryLoad::Mixes,
        })
    });
    let stop = AtomicBool::new(false);
    let ablation = Ablation {
        db,
        products,
        seed: DEFAULT_SEED,
        use_case,
        mixes,
        settings: settings.map_err(anyhow::Error::msg)?,
        conditions: conditions.collect(),
        threads: NonZeroUsize::MIN,
        stop: &stop,
        progress: &|_, _| {},
    };
    let cells = ablation.run()?;
    let outcome = Outcome::new(&cells);
    for (conditions, times) in outcome.worth_of_device_costs() {
        let of = |setting| outcome.figures(conditions, setting).expect("it was run");
        let (with, without) = (of(names[0]), of(names[1]));
        println!(
            "{conditions}: {:.3} s and {} pages with device times, {:.3} s and {} pages without: {times:.2} ×",
            with.seconds, with.reads, without.seconds, without.reads
        );
    }
    Ok(())
}
