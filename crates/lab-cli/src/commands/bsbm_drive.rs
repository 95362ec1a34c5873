//! `snowmelt-lab bsbm drive`: the benchmark's driver for any endpoint, with the original's
//! measures.
//!
//! 1. The target is an endpoint or a database in this process; its products are counted.
//! 2. Warm-up, then the measured mixes (`snowmelt_bench::measure`, as `bsbm run`). With
//!    --warm-up the warm-up is measured, too (`warm`).
//! 3. The answers are compared with a stored run or another endpoint (`other`).
//! 4. A run folder: `result.json`, `result.xml`, `queries.jsonl` (each repeat), `answers.jsonl`,
//!    `kept.jsonl` (answers as they came) and the page.

mod options;
mod other;
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
use snowmelt_bench::summary::{RepeatFigures, Setup, Summary};
use snowmelt_bench::verify::{AnswerLine, Verification, answers};
use snowmelt_bsbm::{UseCase, read_update_transactions};
use snowmelt_database::OpenOptions;
use snowmelt_graph::GraphDatabase;
use snowmelt_lab::Run;
use snowmelt_sparql::{PlanCosts, QueryEngine, QueryOptions};
use snowmelt_store::{MemoryBudget, Store};
use snowmelt_workload::bench::{ClientLoad, products_of};
use snowmelt_workload::drive::{Rules, Run as Records};
use snowmelt_workload::in_process::InProcess;
use snowmelt_workload::kept::KeptAnswers;
use snowmelt_workload::target::Target;

use options::Output;
pub use options::{BsbmDriveArgs, long_names};
use other::Other;

/// Runs the command.
pub fn run(args: &BsbmDriveArgs) -> Result<()> {
    let stop = signals::stop_flag()?;
    warm::check(args)?;
    let other = args.verify.as_deref().map(|with| Other::new(args, with)).transpose()?;
    let transactions = args.transactions()?;
    let Opened { target, store } = args.open(&args.target)?;
    let products = args.products(&*target, transactions.as_deref())?;
    let load = args.load(products);
    let mut setup = args.setup(products, mixes(args, transactions.as_deref()));
    if let Some(other) = &other {
        other.refuse_another_size(&setup, &*target)?;
    }
    let mut folder = Run::create("bsbm", args.out.as_deref())?;
    args.say(&args.settings_line(&setup));
    let kept = KeptAnswers::new(args.keep_answers as usize);
    let streams = Streams::new(&load, transactions.clone())?;
    let (repeats, warm_up) = if args.warm_up {
        let phase = warm::Warming { target: &*target, store: store.as_ref(), load: &load, kept: &kept };
        let (measured, warm_up) = phase.measure(args, streams, &stop)?;
        setup.warmup = warm_up.mixes as u64;
        (vec![measured], Some(warm_up))
    } else {
        (args.measure(&*target, setup.mixes, streams, &kept, &stop)?, None)
    };
    folder.settings(&setup);
    let mut summary = Summary::new(setup, &load, &repeats);
    summary.warm_up = warm_up;
    if let Some(published) = args.published {
        summary.hold_against(published);
    }
    let records = Measured::joined(&repeats).run;
    let here = answers(&records.records);
    if let Some(other) = other {
        let streams = || Streams::new(&load, transactions.clone());
        let (there, theirs) = other.answers(args, summary.setup.mixes, streams()?, &here, &stop)?;
        let mut verification = Verification::new(other.name(), &here, &there);
        verification.show_answers(folder.path(), "", &kept, &theirs)?;
        verification.tell_texts(streams()?.measured(args.warmup));
        summary.verification = Some(verification);
    }
    args.print(&summary);
    if transactions.is_none()
        && let Some(doubt) = args.size_doubt(&*target)
    {
        args.say(&format!("doubt: {doubt}"));
        folder.doubt(doubt);
    }
    let page = keep(folder, args, &summary, &records, &here, &kept)?;
    args.say(&page.display().to_string());
    match &summary.verification {
        Some(verification) if verification.has_failed() => bail!("{}", verification.line()),
        _ => Ok(()),
    }
}

/// Mixes to measure in each repeat: as many as are wanted and the transactions suffice for.
fn mixes(args: &BsbmDriveArgs, transactions: Option<&[String]>) -> u64 {
    let Some(transactions) = transactions else { return args.mixes };
    let all = (transactions.len() / inserts_per_mix(args.use_case)) as u64;
    let mixes = args.mixes.min(all / u64::from(args.repeats));
    if mixes < args.mixes {
        let each = if args.repeats > 1 { " in each repeat" } else { "" };
        args.say(&format!("{} transactions are enough for {mixes} mixes{each}", transactions.len()));
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

    /// The products of the data set, and of the transactions that are still to come.
    fn products(&self, target: &dyn Target, transactions: Option<&[String]>) -> Result<u32> {
        if let Some(products) = self.products {
            return Ok(products);
        }
        // One product in each transaction, unless the generator was told otherwise.
        let stored = products_of(target).with_context(|| self.target.clone())?;
        Ok(stored + transactions.map_or(0, <[String]>::len) as u32)
    }

    /// The products that were given are not those of the data set: many queries then ask for what
    /// is not there, and are answered fast. Counted after the measurement, which it would disturb.
    fn size_doubt(&self, target: &dyn Target) -> Option<String> {
        let (given, found) = (self.products?, products_of(target).ok()?);
        (given != found)
            .then(|| format!("queries were drawn for {given} products, and {} has {found}", self.target))
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
        kept: &KeptAnswers,
        stop: &AtomicBool,
    ) -> Result<Vec<Measured>> {
        let measurement = Measurement {
            target,
            clients: self.clients.get(),
            rules: Rules { rate: self.rate, reading: content::terms, keeps_going: self.keep_going },
            warmup: self.warmup,
            mixes,
            kept: Some(kept),
            stop,
        };
        measurement.repeats(streams, self.repeats)
    }

    fn setup(&self, products: u32, mixes: u64) -> Setup {
        Setup {
            target: self.target.clone(),
            use_case: self.use_case.to_string(),
            products,
            seed: self.seed,
            clients: self.clients.get(),
            warmup: self.warmup,
            mixes,
            repeats: self.repeats,
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

    fn settings_line(&self, setup: &Setup) -> String {
        let Setup { products, mixes, repeats, .. } = setup;
        let times = if *repeats > 1 { format!(", {repeats} times") } else { String::new() };
        let loop_kind = self.rate.map_or("closed loop".to_owned(), |rate| format!("{rate} queries/s"));
        let after = if self.warm_up { "warming".to_owned() } else { format!("{} of warm-up", self.warmup) };
        format!(
            "{}; {}, {products} products, seed {}, {} clients, {loop_kind}, {mixes} mixes after {after}{times}",
            self.target, self.use_case, self.seed, self.clients
        )
    }
}

fn is_url(name: &str) -> bool {
    name.contains("://")
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
    kept: &KeptAnswers,
) -> Result<PathBuf> {
    let measures = [
        ("qmph", true),
        ("cqet", false),
        ("aqet", false),
        ("aqet_geometric", false),
        ("p50", false),
        ("p99", false),
    ];
    folder.compare_by("queries", &["query"], &measures);
    let mut lines = folder.lines("queries")?;
    summary.repeats.iter().flat_map(RepeatFigures::lines).try_for_each(|line| lines.write(&line))?;
    let mut lines = folder.lines("answers")?;
    answers.iter().try_for_each(|answer| lines.write(answer))?;
    other::write_kept(&folder, kept)?;
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
