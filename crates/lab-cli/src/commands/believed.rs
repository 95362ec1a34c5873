//! `snowmelt-lab believed FILE.svg`: what is believed of a volume that changes while queries run on
//! it, in virtual time.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result, bail};
use snowmelt_base::{say, signals};
use snowmelt_bench::beliefs::changing::Changing;
use snowmelt_bench::beliefs::picture;
use snowmelt_bsbm::WordLists;
use snowmelt_graph::load::LoadOptions;
use snowmelt_workload::beliefs::Look;
use snowmelt_workload::dataset;
use snowmelt_workload::scratch_dir::ScratchDir;

/// Draw what is believed of a volume whose caps are halved for some seconds.
#[derive(clap::Args)]
pub struct BelievedArgs {
    /// The picture (SVG)
    file: PathBuf,
    /// Products in the data set; 2785 give a million triples
    #[arg(long, default_value = "2785", value_parser = clap::value_parser!(u32).range(1..))]
    products: u32,
}

/// Runs the command.
pub fn run(args: &BelievedArgs) -> Result<()> {
    const SECONDS: f64 = 12.0;
    const FRAMES: u64 = 64;
    let stop = signals::stop_flag()?;
    let scratch = ScratchDir::new("snowmelt-believed")?;
    let (db, products) = (scratch.path().join("db"), args.products);
    let options = LoadOptions::default();
    dataset::generate_and_load(products, WordLists::synthetic(), &db, &options, &(), &stop)?;
    let phases = Changing::halved_gp3(SECONDS);
    let run = Changing {
        db: &db,
        products,
        clients: 16,
        frames: FRAMES,
        phases: &phases,
        seconds: SECONDS,
        stop: &stop,
    };
    let looks = run.run()?;
    if stop.load(Ordering::Relaxed) {
        bail!("interrupted; nothing is left behind");
    }
    say!("       s{}", Look::HEAD);
    looks.iter().for_each(|look| say!("{:>8.2}{}", look.at_s, look.columns()));
    let conditions = "a gp3 of which nothing is known, its caps halved from 4 to 8 s; virtual time";
    let file = args.file.display();
    std::fs::write(&args.file, picture::draw(&looks, conditions, &phases))
        .with_context(|| format!("cannot write {file}"))?;
    say!("the picture is in {file}");
    Ok(())
}
