//! `snowmelt demo`: what planning the reads is worth, seen in under two minutes.
//!
//! Generate and load a data set; run the Explore queries from cold on a simulated volume that
//! is slow but serves many requests at once (in real time), first page by page on demand, then
//! with planned reads; then warm on the real device.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use snowmelt_base::output::Stdout;
use snowmelt_base::{say, signals, tell};
use snowmelt_bsbm::{DEFAULT_SEED, UseCase, WordLists};
use snowmelt_database::OpenOptions;
use snowmelt_database::meters::Report;
use snowmelt_graph::load::{LoadOptions, LoadProgress, Progress};
use snowmelt_io::{Clock, Device, DeviceModel, SimulatedDevice};
use snowmelt_sparql::PlanCosts;
use snowmelt_store::{DeviceWrap, ReadAhead, Seams};
use snowmelt_workload::bench::{Bench, ClientLoad, Until};
use snowmelt_workload::cold;
use snowmelt_workload::dataset;
use snowmelt_workload::race::{Entry, Race};
use snowmelt_workload::sampler::Sample;
use snowmelt_workload::scratch_dir::ScratchDir;

/// The run page by page is stopped after so many seconds.
const MOST_ON_DEMAND_S: u64 = 40;
/// The planned run ends when it is steady, at the latest after so many seconds.
const MOST_PLANNED_S: u64 = 20;
/// The warm run, and the one before it that warms.
const WARM_S: u64 = 4;
/// The simulated volume, as people know such volumes.
const VOLUME: &str = "3 ms, 32 at once, 3000 IOPS, 125 MiB/s";
/// Columns of the plot.
const WIDTH: usize = 80;

/// Generate, load, and query from cold on a slow simulated volume: without and with planned reads.
#[derive(clap::Args)]
pub struct DemoArgs {
    /// Products in the data set; 2785 give a million triples
    #[arg(long, default_value = "2785", value_parser = clap::value_parser!(u32).range(1..))]
    products: u32,
    /// Make the database here and keep it [default: a temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Draw the two cold runs into this file (SVG)
    #[arg(long, value_name = "FILE.svg")]
    picture: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: DemoArgs) -> Result<()> {
    let stop = signals::stop_flag()?;
    let begun = Instant::now();
    let home = Home::new(args.dir.as_deref())?;
    writeln!(Stdout, "Snowmelt demo: the same queries from cold, without and with planned reads\n")?;
    make(args.products, home.path(), &stop)?;
    let load = ClientLoad {
        products: args.products,
        seed: DEFAULT_SEED,
        use_case: UseCase::Explore,
        clients: 4,
        threads: 0,
        costs: PlanCosts::Device,
    };
    let demo = Demo { db: home.path(), load, stop: &stop };
    writeln!(
        Stdout,
        "\nExplore from cold, {} clients, on a simulated network volume ({VOLUME})",
        load.clients
    )?;
    let (slow, slow_meters) =
        demo.cold("page by page", ReadAhead::none(), Until::steady(MOST_ON_DEMAND_S))?;
    let (fast, meters) = demo.cold("planned", ReadAhead::auto(), Until::steady(MOST_PLANNED_S))?;
    let warm = demo.warm()?;
    let race = Race { entries: vec![slow, fast, warm] };
    writeln!(
        Stdout,
        "\nThroughput, of {:.0} query mixes per hour when warm:\n",
        race.warm_rate() / 25.0 * 3600.0
    )?;
    writeln!(Stdout, "{}\n{}", race.plot(WIDTH, 8), race.verdict())?;
    if let Some(file) = &args.picture {
        let conditions = format!("BSBM Explore, {} clients; a volume of {VOLUME}", load.clients);
        std::fs::write(file, race.picture(&conditions))
            .with_context(|| format!("cannot write {}", file.display()))?;
        writeln!(Stdout, "the picture is in {}\n", file.display())?;
    }
    writeln!(Stdout, "page by page   {}", slow_meters.activity)?;
    writeln!(Stdout, "planned        {}", meters.activity)?;
    writeln!(Stdout, "\nplanned: {}", meters.reads_line())?;
    writeln!(Stdout, "trees, most read first:\n{}", meters.trees_text())?;
    what_next(home.kept());
    tell!("({:.0} s in all)", begun.elapsed().as_secs_f64());
    home.keep();
    Ok(())
}

/// Where the database is, and whether it stays.
enum Home {
    Temporary {
        _goes_with_it: ScratchDir,
        db: PathBuf,
    },
    /// Removed unless the demo comes to its end.
    Asked {
        dir: PathBuf,
        finished: bool,
    },
}

impl Home {
    fn new(dir: Option<&Path>) -> Result<Self> {
        let Some(dir) = dir else {
            let scratch = ScratchDir::new("snowmelt-demo")?;
            let db = scratch.path().join("db");
            return Ok(Self::Temporary { _goes_with_it: scratch, db });
        };
        if dir.exists() {
            bail!("{} exists: name a directory that does not, the demo makes it", dir.display());
        }
        Ok(Self::Asked { dir: dir.to_owned(), finished: false })
    }

    fn path(&self) -> &Path {
        match self {
            Self::Temporary { db, .. } => db,
            Self::Asked { dir, .. } => dir,
        }
    }

    fn kept(&self) -> Option<&Path> {
        match self {
            Self::Temporary { .. } => None,
            Self::Asked { dir, .. } => Some(dir),
        }
    }

    fn keep(mut self) {
        if let Self::Asked { finished, .. } = &mut self {
            *finished = true;
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Self::Asked { dir, finished: false } = self
            && dir.exists()
            && let Err(error) = std::fs::remove_dir_all(&dir)
        {
            tell!("snowmelt: {} could not be removed: {error}", dir.display());
        }
    }
}

/// Generates and loads.
fn make(products: u32, db: &Path, stop: &AtomicBool) -> Result<()> {
    let bar = spinner("generating and loading");
    let options = LoadOptions::default();
    let report =
        dataset::generate_and_load(products, WordLists::synthetic(), db, &options, &LoadBar(&bar), stop);
    bar.finish_and_clear();
    let report = report?;
    let seconds = report.total_seconds();
    writeln!(
        Stdout,
        "{products} products: {} triples generated and loaded in {seconds:.1} s, {} on disk",
        HumanCount(report.triples),
        HumanBytes(report.database_bytes),
    )?;
    Ok(())
}

struct LoadBar<'a>(&'a ProgressBar);

impl LoadProgress for LoadBar<'_> {
    fn report(&self, progress: &Progress) {
        self.0.set_message(format!("{} triples, {}", HumanCount(progress.triples), progress.phase.name()));
    }
}

/// The runs on one database.
struct Demo<'a> {
    db: &'a Path,
    load: ClientLoad,
    stop: &'a AtomicBool,
}

impl Demo<'_> {
    fn cold(&self, title: &str, mut read_ahead: ReadAhead, until: Until<'_>) -> Result<(Entry, Report)> {
        read_ahead.warm_list = false;
        let clock = Clock::real();
        let in_time_of = clock.clone();
        let devices = DeviceWrap::new(move |_, file| {
            Ok(Arc::new(SimulatedDevice::new(DeviceModel::wide_slow(), file, &in_time_of)) as Arc<dyn Device>)
        });
        let options = OpenOptions {
            read_ahead,
            seams: Seams { devices: Some(devices), clock, ..Seams::default() },
            ..OpenOptions::default()
        };
        cold::make_cold(self.db)?;
        let (entry, bench) = self.run(title, &options, until)?;
        Ok((entry, bench.database.database().report()))
    }

    fn warm(&self) -> Result<Entry> {
        let mut read_ahead = ReadAhead::auto();
        read_ahead.warm_list = false;
        let options = OpenOptions { read_ahead, ..OpenOptions::default() };
        let (_, mut bench) = self.run("warming", &options, Until::seconds(WARM_S))?;
        let bar = spinner("warm, on the real device");
        let begun_ns = options.seams.clock.now_ns();
        let run = bench.run(Until::seconds(WARM_S), 0.5, self.stop, &|sample| show(&bar, sample));
        bar.finish_and_clear();
        self.go_on()?;
        Ok(Entry { title: "warm".into(), begun_ns, run: run?.0 })
    }

    fn run(&self, title: &str, options: &OpenOptions, until: Until<'_>) -> Result<(Entry, Bench)> {
        let bar = spinner(title);
        let begun_ns = options.seams.clock.now_ns();
        let mut bench = Bench::open(self.db, options, self.load)?;
        let run = bench.run(until, 0.5, self.stop, &|sample| show(&bar, sample));
        bar.finish_and_clear();
        self.go_on()?;
        Ok((Entry { title: title.into(), begun_ns, run: run?.0 }, bench))
    }

    fn go_on(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { bail!("interrupted; nothing is left behind") } else { Ok(()) }
    }
}

fn spinner(title: &str) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{spinner} {prefix:24} {elapsed:>4}  {msg}").expect("well-formed");
    let bar = ProgressBar::new_spinner().with_style(style).with_prefix(title.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn show(bar: &ProgressBar, sample: &Sample) {
    bar.set_message(format!(
        "{:>9} mixes/h, {:>5.0} reads/s, {:>6.1} MiB/s",
        HumanCount(sample.qmph as u64).to_string(),
        sample.requests.unwrap_or(0.0),
        sample.bytes.unwrap_or(0.0) / (1 << 20) as f64
    ));
}

fn what_next(kept: Option<&Path>) {
    say!("Go on with");
    if kept.is_none() {
        say!("  snowmelt demo --dir demo-db              the same, and keeps the database");
    }
    let db = kept.map_or("demo-db".into(), Path::to_string_lossy);
    say!("  snowmelt serve {db}                   SPARQL over HTTP at http://127.0.0.1:7878/sparql");
    say!("  snowmelt query {db} 'SELECT * {{ ?s ?p ?o }} LIMIT 5' --analyze");
    say!("  snowmelt lab bsbm run {db} --ablate   what each read-ahead rule is worth (with snowmelt-lab)");
}
