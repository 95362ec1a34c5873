//! `snowmelt-lab bsbm run`: query mixes against a database in this process (or an endpoint),
//! measured.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::queue::QueueArgs;
use crate::warm_up::WarmUpArgs;
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use snowmelt_base::output::Stdout;
use snowmelt_base::{say, signals, tell};
use snowmelt_bench::ablation::{
    Ablation, Cell, Conditions, Model, Outcome, Setting, analytic_conditions, conditions, conditions_of,
    settings, turned_settings,
};
use snowmelt_bench::beliefs::picture;
use snowmelt_bench::cold_run::Plan;
use snowmelt_bench::http::{Endpoint, Protocol};
use snowmelt_bench::measure::{Measurement, Streams, inserts_per_mix};
use snowmelt_bench::optimum::Caps;
use snowmelt_bench::report::{self, QueryReport, Throughput};
use snowmelt_bench::summary::OwnCost;
use snowmelt_bsbm::{DEFAULT_SEED, UseCase, read_update_transactions};
use snowmelt_database::OpenOptions;
use snowmelt_database::meters::Report;
use snowmelt_sparql::PlanCosts;
use snowmelt_switches::open::OpenArgs;
use snowmelt_workload::bench::{Bench, ClientLoad, Until, count_products};
use snowmelt_workload::drive::{Rules, Run};
use snowmelt_workload::sampler::Sample;

/// Run a query mix in this process and measure it.
#[derive(clap::Args)]
pub struct BsbmRunArgs {
    /// The database directory
    #[arg(required_unless_present = "endpoint")]
    db: Option<PathBuf>,
    /// The queries: explore, bi or explore-and-update
    #[arg(long, default_value = "explore")]
    use_case: UseCase,
    /// Clients, each a thread with one query at a time
    #[arg(long, value_name = "C", default_value = "1")]
    clients: NonZeroUsize,
    /// Mixes to measure; with --ablate: mixes in each cell
    #[arg(long, value_name = "M", default_value = "200")]
    mixes: u64,
    /// Mixes before that, not measured
    #[arg(long, value_name = "W", default_value = "50")]
    warmup: u64,
    /// Seed of the queries' parameters
    #[arg(long, value_name = "S", default_value_t = DEFAULT_SEED)]
    seed: i64,
    /// Products in the data set [default: counted in the database]
    #[arg(long, value_name = "N")]
    products: Option<u32>,
    /// Start cold: nothing in the page cache, an empty pool, no warm list; show every second
    /// until warm, and what warming took
    #[arg(long, conflicts_with_all = ["ablate", "endpoint"])]
    cold: bool,
    /// With --cold: start with the warm list that the last run has saved
    #[arg(long, requires = "cold")]
    warm_list: bool,
    /// With --cold: the cold phase ends after so many seconds, warm or not
    #[arg(long, value_name = "SECONDS", default_value = "300", requires = "cold")]
    cold_seconds: u64,
    /// With --cold: requests and bytes per second that the volume lets through; tells the least
    /// time in which the pages that were used can be read under these caps
    #[arg(long, value_name = "REQUESTS,BYTES", requires = "cold")]
    caps: Option<Caps>,
    /// With --cold: draw what was believed of the devices until it was warm into this file (SVG)
    #[arg(long, value_name = "FILE.svg", requires = "cold")]
    picture: Option<PathBuf>,
    /// Every read-ahead rule on and off, on modelled devices, in virtual time
    #[arg(long, conflicts_with = "endpoint")]
    ablate: bool,
    /// With --ablate: this setting instead of the usual ones (repeatable): rules, and then
    /// -RULE, gap=PAGES, in-place=on|off, depth=N, fairness=N, queue=NAME[:KEY=VALUE],
    /// costs=probed|nothing|learned|both, extent-misses=N, extent-window=SECONDS, scan-leaves=N,
    /// scan-after=N, threads=N, with spaces between
    #[arg(long, value_name = "SETTING", requires = "ablate", value_parser = Setting::parse)]
    setting: Vec<Setting>,
    /// With --ablate: auto with one number turned at a time, instead of the usual settings
    #[arg(long, requires = "ablate", conflicts_with = "setting")]
    turned: bool,
    /// With --ablate: on this modelled device alone (repeatable): hdd, wide-slow, nvme, ssd,
    /// 4-hdd, 4-ssd (stripes), raid0-4-hdd, gp3, gp2-spent, s3, azure-p10, st1, e3
    #[arg(long, value_name = "MODEL", requires = "ablate", value_parser = Model::named)]
    model: Vec<Model>,
    /// Drive a SPARQL endpoint over HTTP instead of a database
    #[arg(long, value_name = "URL", conflicts_with = "db", requires = "products")]
    endpoint: Option<String>,
    /// With --endpoint: open a connection for each query, as the benchmark's original driver
    /// does
    #[arg(long, requires = "endpoint")]
    connection_per_query: bool,
    /// The update set that `bsbm generate --update-output` wrote, for explore-and-update
    #[arg(long, value_name = "FILE")]
    updates: Option<PathBuf>,
    /// Threads that a query may use [default: as many as there are processors]
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    threads: usize,
    /// Costs of plans: device reckons with what must be read, warm takes everything to be
    /// in memory
    #[arg(long, value_name = "device|warm", default_value = "device", value_parser = plan_costs)]
    costs: PlanCosts,
    /// Result format
    #[arg(long, default_value = "table")]
    format: ReportFormat,
    #[command(flatten)]
    warm_up: WarmUpArgs,
    #[command(flatten)]
    queue: QueueArgs,
    #[command(flatten)]
    open: OpenArgs,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
pub(super) enum ReportFormat {
    Table,
    Json,
}

fn plan_costs(text: &str) -> Result<PlanCosts, String> {
    match text {
        "device" => Ok(PlanCosts::Device),
        "warm" => Ok(PlanCosts::Warm),
        _ => Err("use device or warm".into()),
    }
}

/// Settings that every kind of run shares.
struct Measured {
    qmph: f64,
    queries: Vec<QueryReport>,
    meters: Value,
    seconds: f64,
    /// Lines after the table of queries.
    text: String,
}

/// Runs the command.
pub fn run(args: BsbmRunArgs) -> Result<()> {
    let stop = signals::stop_flag()?;
    if let Some(switch) = args.warm_up.given().filter(|_| !args.cold) {
        bail!("{switch} is a rule of warming: it needs --cold");
    }
    if args.use_case == UseCase::ExploreAndUpdate {
        let measured = with_updates(&args, &stop)?;
        args.print(&measured);
        return Ok(());
    }
    let measured = match (&args.endpoint, &args.db) {
        (Some(url), _) => over_http(&args, url, &stop)?,
        (None, Some(db)) => {
            let options = args.queue.applied(args.open.config());
            let load = args.load(count(&args, db, &options)?);
            match (args.cold, args.ablate) {
                (true, _) => from_cold(&args, db, options, load, &stop)?,
                (_, true) => ablate(&args, db, load, &stop)?,
                _ => warm(&args, db, &options, load, &stop)?,
            }
        }
        (None, None) => bail!("name a database or an --endpoint"),
    };
    args.print(&measured);
    Ok(())
}

impl BsbmRunArgs {
    fn load(&self, products: u32) -> ClientLoad {
        ClientLoad {
            products,
            seed: self.seed,
            use_case: self.use_case,
            clients: self.clients.get(),
            threads: self.threads,
            costs: self.costs,
        }
    }

    /// A line for people, out of the way of JSON.
    ///
    /// # Errors
    /// Its reader has gone: what is still to be measured has none.
    fn say(&self, line: &str) -> Result<()> {
        match self.format {
            ReportFormat::Table => writeln!(Stdout, "{line}")?,
            ReportFormat::Json => tell!("{line}"),
        }
        Ok(())
    }

    fn print(&self, measured: &Measured) {
        let Measured { qmph, queries, meters, seconds, text } = measured;
        if self.format == ReportFormat::Json {
            let all = json!({ "qmph": qmph, "queries": queries, "meters": meters, "seconds": seconds });
            return say!("{all:#}");
        }
        if !queries.is_empty() {
            say!("{}", report::table(queries));
        }
        if !text.is_empty() {
            say!("{}", text.trim_end_matches('\n'));
        }
    }
}

fn count(args: &BsbmRunArgs, db: &Path, options: &OpenOptions) -> Result<u32> {
    args.products.map_or_else(|| count_products(db, options), Ok)
}

fn interrupted(stop: &AtomicBool) -> Result<()> {
    if stop.load(std::sync::atomic::Ordering::Relaxed) { bail!("interrupted") } else { Ok(()) }
}

fn warm(
    args: &BsbmRunArgs,
    db: &Path,
    options: &OpenOptions,
    load: ClientLoad,
    stop: &AtomicBool,
) -> Result<Measured> {
    let mut bench = Bench::open(db, options, load)?;
    args.say(&format!("{}; {}", machine(), settings_line(args, load)))?;
    bench.run(Until::mixes(args.warmup), 1.0, stop, &|_| {})?;
    bench.database.database().store().reset_meters();
    let (run, _) = bench.run(Until::mixes(args.mixes), 1.0, stop, &|_| {})?;
    interrupted(stop)?;
    let meters = bench.database.database().report();
    Ok(measured(load, &run, &meters, json!({})))
}

/// Explore and update. Every commit is durable before its client goes on; the run ends when the
/// update set does.
fn with_updates(args: &BsbmRunArgs, stop: &AtomicBool) -> Result<Measured> {
    if args.cold || args.ablate {
        bail!("explore-and-update runs warm, in real time: leave out --cold and --ablate");
    }
    let file =
        args.updates.as_ref().context("explore-and-update needs the --updates that bsbm generate wrote")?;
    let named = || format!("cannot read {}", file.display());
    let reader = std::io::BufReader::new(std::fs::File::open(file).with_context(named)?);
    let transactions = read_update_transactions(reader).with_context(named)?;
    let options = args.queue.applied(args.open.config());
    let products = match (&args.db, args.products) {
        (_, Some(products)) => products,
        // One product in each transaction, unless the generator was told otherwise.
        (Some(db), None) => count_products(db, &options)? + transactions.len() as u32,
        (None, None) => bail!("--endpoint needs --products"),
    };
    let load = args.load(products);
    let mixes = args.mixes.min((transactions.len() / inserts_per_mix(load.use_case)) as u64);
    if mixes < args.mixes {
        args.say(&format!("{} transactions are enough for {mixes} mixes", transactions.len()))?;
    }
    args.say(&format!("{}; {}", machine(), settings_line(args, load)))?;
    if let Some(url) = &args.endpoint {
        return endpoint(args, url, load, mixes, Some(transactions), stop);
    }
    let warm = ClientLoad { use_case: UseCase::Explore, ..load }.stream()?;
    let stream = load.update_stream(transactions)?;
    let db = args.db.as_ref().context("name a database or an --endpoint")?;
    let mut bench = Bench::with_stream(db, &options, load, stream)?;
    bench.warm_up(warm, args.warmup, stop)?;
    bench.database.database().store().reset_meters();
    let (run, _) = bench.run(Until::mixes(mixes), 1.0, stop, &|_| {})?;
    interrupted(stop)?;
    Ok(measured(load, &run, &bench.database.database().report(), json!({})))
}

fn from_cold(
    args: &BsbmRunArgs,
    db: &Path,
    mut options: OpenOptions,
    load: ClientLoad,
    stop: &AtomicBool,
) -> Result<Measured> {
    if args.warm_list && !db.join("warm").exists() {
        bail!("{} has no warm list: it is saved when a run without --cold, or a server, ends", db.display());
    }
    options.read_ahead.warm_list &= args.warm_list;
    args.say(&format!("{}; {}", machine(), settings_line(args, load)))?;
    let plan = Plan {
        db,
        options: &options,
        load,
        warm: args.warm_up.rules(),
        bandwidth: args.warm_up.bandwidth(),
        caps: args.caps,
        most_seconds: args.cold_seconds,
        mixes: args.mixes,
        stop,
        on_proof: &|proof| drop(args.say(&format!("{}\n{}", proof.text(), Sample::head()))),
        on_sample: &|sample| drop(args.say(&sample.line())),
    };
    let run = plan.run()?;
    interrupted(stop)?;
    if let Some(file) = &args.picture {
        let looks: Vec<_> = run.cold.samples.iter().flat_map(|sample| sample.looks.clone()).collect();
        let svg = picture::draw(&looks, &settings_line(args, load), &[]);
        std::fs::write(file, svg).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let extra = json!({ "cold": run.cold.json(), "cold_meters": run.cold_meters.json() });
    let mut measured = measured(load, &run.warm, &run.warm_meters, extra);
    measured.text =
        format!("{}\ncold phase:\n{}\nwarm:\n{}", run.cold.text(), run.cold_meters.text(), measured.text);
    Ok(measured)
}

fn over_http(args: &BsbmRunArgs, url: &str, stop: &AtomicBool) -> Result<Measured> {
    let load = args.load(args.products.context("--endpoint needs --products")?);
    let how = if args.connection_per_query { "a connection per query" } else { "a connection per client" };
    args.say(&format!("{}; {url}, {how}; {}", machine(), settings_line(args, load)))?;
    endpoint(args, url, load, args.mixes, None, stop)
}

/// Measures an endpoint; with transactions, their updates too.
fn endpoint(
    args: &BsbmRunArgs,
    url: &str,
    load: ClientLoad,
    mixes: u64,
    transactions: Option<Vec<String>>,
    stop: &AtomicBool,
) -> Result<Measured> {
    let protocol = Protocol { connection_per_query: args.connection_per_query, ..Protocol::default() };
    let target = Endpoint::new(url, protocol)?;
    let measurement = Measurement {
        target: &target,
        clients: load.clients,
        rules: Rules::default(),
        warmup: args.warmup,
        mixes,
        kept: None,
        stop,
    };
    let run = measurement.run(Streams::new(&load, transactions)?)?.run;
    let (throughput, own) = (Throughput::new(&run, load.queries_per_mix()), OwnCost::new(&run, false));
    Ok(Measured {
        qmph: throughput.qmph(load.clients),
        queries: report::queries(&run.records),
        meters: json!({ "throughput": throughput, "own": own }),
        seconds: run.seconds(),
        text: format!("{}{}\n", throughput.text(&run), own.line()),
    })
}

fn measured(load: ClientLoad, run: &Run, meters: &Report, extra: Value) -> Measured {
    let (throughput, own) = (Throughput::new(run, load.queries_per_mix()), OwnCost::new(run, true));
    let mut all = meters.json();
    if let (Some(all), Value::Object(extra)) = (all.as_object_mut(), extra) {
        all.insert("throughput".into(), json!(throughput));
        all.insert("own".into(), json!(own));
        all.extend(extra);
    }
    Measured {
        qmph: throughput.qmph(load.clients),
        queries: report::queries(&run.records),
        meters: all,
        seconds: run.seconds(),
        text: format!("{}{}\n{}", throughput.text(run), own.line(), meters.text()),
    }
}

fn ablate(args: &BsbmRunArgs, db: &Path, load: ClientLoad, stop: &AtomicBool) -> Result<Measured> {
    let begun = Instant::now();
    let bar = ProgressBar::new(0).with_style(
        ProgressStyle::with_template("{bar:40} {pos} of {len} cells, {elapsed}, {eta} to go")
            .expect("well-formed"),
    );
    let ablation = Ablation {
        db: db.to_owned(),
        products: load.products,
        seed: load.seed,
        use_case: load.use_case,
        mixes: args.mixes,
        settings: match (args.turned, &args.setting[..]) {
            (true, _) => turned_settings(),
            (false, []) => settings(),
            (false, named) => named.to_vec(),
        },
        conditions: conditions_on(&args.model),
        threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        stop,
        progress: &|done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        },
    };
    args.say(&format!(
        "{}; {} products, {} mixes a cell, virtual time",
        machine(),
        load.products,
        args.mixes
    ))?;
    let cells = ablation.run();
    bar.finish_and_clear();
    let cells = cells?;
    let outcome = Outcome::new(&cells);
    let fastest = cells.iter().map(|cell| cell.figures.warm_s).fold(f64::INFINITY, f64::min);
    Ok(Measured {
        qmph: args.mixes as f64 / fastest * 3600.0,
        queries: Vec::new(),
        meters: json!({ "ablation": cells.iter().map(Cell::json).collect::<Vec<_>>(), "summary": outcome.summary() }),
        seconds: begun.elapsed().as_secs_f64(),
        text: format!(
            "{}\n{} cells in {:.0} s\n",
            outcome.text(args.mixes),
            cells.len(),
            begun.elapsed().as_secs_f64()
        ),
    })
}

/// The conditions with these models; with all if none is named.
fn conditions_on(models: &[Model]) -> Vec<Conditions> {
    let all = match models {
        [] => conditions(),
        models => models.iter().flat_map(|model| conditions_of(*model)).collect(),
    };
    let mut known: Vec<Model> = all.iter().map(|conditions| conditions.model).collect();
    known.dedup();
    all.into_iter().chain(analytic_conditions(&known)).collect()
}

/// Program, system and processors.
pub(super) fn machine() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    format!("snowmelt {}, Linux {}, {processors} processors", env!("CARGO_PKG_VERSION"), kernel.trim())
}

fn settings_line(args: &BsbmRunArgs, load: ClientLoad) -> String {
    let ClientLoad { products, seed, use_case, clients, .. } = load;
    format!(
        "{use_case}, {products} products, seed {seed}, {clients} clients, {} mixes after {} of warm-up",
        args.mixes, args.warmup
    )
}
