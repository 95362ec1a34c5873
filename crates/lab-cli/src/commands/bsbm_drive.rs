//! `snowmelt-lab bsbm drive`: the benchmark's driver for any endpoint, with the original's
//! measures.
//!
//! 1. The target is an endpoint or a database in this process; its products are counted.
//! 2. Warm-up, then the measured mixes (`snowmelt_bench::measure`, as `bsbm run`). With
//!    --warm-up the warm-up is measured, too (`warm`).
//! 3. The answers are compared with a stored run or another endpoint.
//! 4. A run folder: `result.json`, `result.xml`, `queries.jsonl`, `answers.jsonl` and the page.

mod options;
mod warm;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use snowmelt_base::{say, signals, tell};
use snowmelt_bench::content;
use snowmelt_bench::http::{Endpoint, Protocol};
use snowmelt_bench::measure::{Measured, Measurement, Streams, inserts_per_mix};
use snowmelt_bench::report;
use snowmelt_bench::summary::{Setup, Summary};
use snowmelt_bench::verify::{AnswerLine, Verification, answers, read_answers};
use snowmelt_bsbm::{UseCase, read_update_transactions};
use snowmelt_database::OpenOptions;
use snowmelt_graph::GraphDatabase;
use snowmelt_lab::Run;
use snowmelt_sparql::{PlanCosts, QueryEngine, QueryOptions};
use snowmelt_store::{MemoryBudget, Store};
use snowmelt_workload::bench::{ClientLoad, products_of};
use snowmelt_workload::drive::{Rules, Run as Records};
use snowmelt_workload::in_process::InProcess;
use snowmelt_workload::target::Target;

use options::Output;
pub use options::{BsbmDriveArgs, long_names};

/// Runs the command.
pub fn run(args: &BsbmDriveArgs) -> Result<()> {
    let stop = signals::stop_flag()?;
    warm::check(args)?;
    let other = args.verify.as_deref().map(|with| Other::new(args, with)).transpose()?;
    let transactions = args.transactions()?;
    let Opened { target, store } = args.open(&args.target)?;
    let products = match (args.products, &transactions) {
        (Some(products), _) => products,
        // One product in each transaction, unless the generator was told otherwise.
        (None, transactions) => {
            let stored = products_of(&*target).with_context(|| args.target.clone())?;
            stored + transactions.as_ref().map_or(0, Vec::len) as u32
        }
    };
    let load = args.load(products);
    let mixes = mixes(args, transactions.as_deref());
    let mut folder = Run::create("bsbm", args.out.as_deref())?;
    args.say(&args.settings_line(products, mixes));
    let streams = Streams::new(&load, transactions.clone())?;
    let (measured, warm_up) = if args.warm_up {
        let (measured, warm_up) = warm::measure(args, &*target, store.as_ref(), &load, streams, &stop)?;
        (measured, Some(warm_up))
    } else {
        (args.measure(&*target, mixes, streams, &stop)?, None)
    };
    let mut setup = args.setup(products);
    if let Some(warm_up) = &warm_up {
        setup.warmup = warm_up.mixes as u64;
    }
    folder.settings(&setup);
    let mut summary = Summary::new(setup, &load, &measured);
    summary.warm_up = warm_up;
    let here = answers(&measured.run.records);
    if let Some(other) = other {
        let there = other.answers(args, mixes, Streams::new(&load, transactions.clone())?, &stop)?;
        let mut verification = Verification::new(other.name(), &here, &there);
        verification.tell_texts(Streams::new(&load, transactions)?.measured(args.warmup));
        summary.verification = Some(verification);
    }
    args.print(&summary);
    let page = keep(folder, args, &summary, &measured.run, &here)?;
    args.say(&page.display().to_string());
    match &summary.verification {
        Some(verification) if !verification.differences.is_empty() => bail!("{}", verification.line()),
        _ => Ok(()),
    }
}

/// Mixes to measure: as many as are wanted and the transactions suffice for.
fn mixes(args: &BsbmDriveArgs, transactions: Option<&[String]>) -> u64 {
    let Some(transactions) = transactions else { return args.mixes };
    let mixes = args.mixes.min((transactions.len() / inserts_per_mix(args.use_case)) as u64);
    if mixes < args.mixes {
        args.say(&format!("{} transactions are enough for {mixes} mixes", transactions.len()));
    }
    mixes
}

/// A target, and its store if it is a database in this process.
struct Opened {
    target: Box<dyn Target>,
    store: Option<Arc<Store>>,
}

impl BsbmDriveArgs {
    fn load(&self, products: u32) -> ClientLoad {
        ClientLoad {
            products,
            seed: self.seed,
            use_case: self.use_case,
            clients: self.clients.get(),
            threads: 0,
            costs: PlanCosts::default(),
        }
    }

    fn timeout(&self) -> Option<Duration> {
        (self.timeout_ms > 0).then(|| Duration::from_millis(self.timeout_ms))
    }

    /// The endpoint or database of that name.
    fn open(&self, name: &str) -> Result<Opened> {
        if is_url(name) {
            return Ok(Opened { target: Box::new(self.endpoint(name)?), store: None });
        }
        let path = Path::new(name);
        if !path.is_dir() {
            bail!("{name} is neither an http:// address nor a database directory");
        }
        let mut options = OpenOptions::default();
        if let Some(bytes) = self.memory {
            options.memory_bytes = bytes;
        }
        options.budget = Some(MemoryBudget::new(options.memory_bytes));
        let clock = options.seams.clock.clone();
        let database = snowmelt_switches::open::open(path, &options)?;
        let engine: Arc<QueryEngine> = Arc::new(QueryEngine::new(Arc::<GraphDatabase>::clone(&database)));
        let queries = QueryOptions { timeout: self.timeout(), ..QueryOptions::default() };
        let target = Box::new(InProcess::new(engine, clock, queries));
        Ok(Opened { target, store: Some(database.database().store().clone()) })
    }

    fn endpoint(&self, url: &str) -> Result<Endpoint> {
        let is_target = url == self.target;
        Endpoint::new(
            url,
            Protocol {
                connection_per_query: self.connection_per_query,
                timeout: self.timeout(),
                default_graph: self.default_graph.clone(),
                update_url: self.update_url.clone().filter(|_| is_target),
                update_field: self.update_field.clone(),
            },
        )
    }

    /// The update set's transactions, for the use case that needs them.
    fn transactions(&self) -> Result<Option<Vec<String>>> {
        if self.use_case != UseCase::ExploreAndUpdate {
            return Ok(None);
        }
        let file = self.updates.as_ref().context(
            "explore-and-update needs the --updates that `snowmelt-lab bsbm generate --update-output` wrote",
        )?;
        let named = || format!("cannot read {}", file.display());
        let reader = std::io::BufReader::new(fs::File::open(file).with_context(named)?);
        Ok(Some(read_update_transactions(reader).with_context(named)?))
    }

    fn measure(
        &self,
        target: &dyn Target,
        mixes: u64,
        streams: Streams,
        stop: &AtomicBool,
    ) -> Result<Measured> {
        let measurement = Measurement {
            target,
            clients: self.clients.get(),
            rules: Rules { rate: self.rate, reading: content::terms, keeps_going: self.keep_going },
            warmup: self.warmup,
            mixes,
            stop,
        };
        measurement.run(streams)
    }

    fn setup(&self, products: u32) -> Setup {
        Setup {
            target: self.target.clone(),
            use_case: self.use_case.to_string(),
            products,
            seed: self.seed,
            clients: self.clients.get(),
            warmup: self.warmup,
            rate: self.rate,
            timeout_ms: self.timeout().map(|_| self.timeout_ms),
            connection_per_query: self.connection_per_query,
            in_process: !is_url(&self.target),
        }
    }

    /// A line for people, out of the way of results for programs.
    fn say(&self, line: &str) {
        match self.format {
            Output::Table => say!("{line}"),
            Output::Json | Output::Xml => tell!("{line}"),
        }
    }

    fn print(&self, summary: &Summary) {
        match self.format {
            Output::Table => {
                say!("\n{}", report::table(&summary.queries));
                summary.lines().iter().for_each(|line| say!("{line}"));
                if let Some(warm_up) = &summary.warm_up {
                    say!("\nwarm-up:\n{}", warm_up.text().trim_end_matches('\n'));
                }
            }
            Output::Json => say!("{}", json(summary)),
            Output::Xml => say!("{}", summary.xml().trim_end_matches('\n')),
        }
    }

    fn settings_line(&self, products: u32, mixes: u64) -> String {
        let loop_kind = self.rate.map_or("closed loop".to_owned(), |rate| format!("{rate} queries/s"));
        let after = if self.warm_up { "warming".to_owned() } else { format!("{} of warm-up", self.warmup) };
        format!(
            "{}; {}, {products} products, seed {}, {} clients, {loop_kind}, {mixes} mixes after {after}",
            self.target, self.use_case, self.seed, self.clients
        )
    }
}

fn is_url(name: &str) -> bool {
    name.contains("://")
}

/// The side that a run is verified with.
enum Other {
    Endpoint(String, Box<dyn Target>),
    Stored(PathBuf, Vec<AnswerLine>),
}

impl Other {
    /// Looks at it before anything is measured.
    fn new(args: &BsbmDriveArgs, with: &str) -> Result<Self> {
        if is_url(with) {
            if args.use_case == UseCase::ExploreAndUpdate && args.clients.get() > 1 {
                bail!(
                    "several clients update in no certain order: --verify with an endpoint needs --clients 1"
                );
            }
            return Ok(Self::Endpoint(with.to_owned(), Box::new(args.endpoint(with)?)));
        }
        let path = Path::new(with).join("answers.jsonl");
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{with} is no run of bsbm drive: cannot read {}", path.display()))?;
        let lines = read_answers(&text).with_context(|| path.display().to_string())?;
        Ok(Self::Stored(with.into(), lines))
    }

    fn name(&self) -> &str {
        match self {
            Self::Endpoint(url, _) => url,
            Self::Stored(path, _) => path.to_str().unwrap_or("the stored run"),
        }
    }

    /// Its answers to the queries of the run: an endpoint is asked, one mix after the other.
    fn answers(
        &self,
        args: &BsbmDriveArgs,
        mixes: u64,
        streams: Streams,
        stop: &AtomicBool,
    ) -> Result<Vec<AnswerLine>> {
        let (url, target) = match self {
            Self::Stored(_, lines) => return Ok(lines.clone()),
            Self::Endpoint(url, target) => (url, target),
        };
        let measurement = Measurement {
            target: &**target,
            clients: 1,
            rules: Rules { rate: None, reading: content::terms, keeps_going: args.keep_going },
            warmup: 0,
            mixes,
            stop,
        };
        let same = Streams::only(streams.measured(args.warmup));
        let there = measurement.run(same).with_context(|| format!("verifying with {url}"))?;
        Ok(answers(&there.run.records))
    }
}

fn json(summary: &Summary) -> String {
    serde_json::to_string_pretty(summary).expect("plain data")
}

/// Writes the run folder; the path of its page.
fn keep(
    mut folder: Run,
    args: &BsbmDriveArgs,
    summary: &Summary,
    run: &Records,
    answers: &[AnswerLine],
) -> Result<PathBuf> {
    let measures = [("aqet", false), ("aqet_geometric", false), ("p50", false), ("p99", false)];
    folder.compare_by("queries", &["query"], &measures);
    let mut lines = folder.lines("queries")?;
    summary.queries.iter().try_for_each(|query| lines.write(query))?;
    let mut lines = folder.lines("answers")?;
    answers.iter().try_for_each(|answer| lines.write(answer))?;
    let write = |path: &Path, text: &str| {
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    write(&folder.path().join("result.json"), &(json(summary) + "\n"))?;
    write(&folder.path().join("result.xml"), &summary.xml())?;
    if let Some(path) = &args.xml {
        write(path, &summary.xml())?;
    }
    summary.doubts().into_iter().for_each(|doubt| folder.doubt(doubt));
    Ok(folder.finish(summary.page(run))?)
}
