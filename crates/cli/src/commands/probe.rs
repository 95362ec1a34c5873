//! `snowmelt probe PATH`: measure a device by reading from it, and say what follows for the engine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use snowmelt_base::{say, size, tell};
use snowmelt_database::meters::as_json;
use snowmelt_io::{KeptModel, KernelFiles, ProbeLimits, Profile, RatePoint};
use snowmelt_server::control::{Command, Reply};
use snowmelt_store::superblock::{self, SuperBlockFile};
use snowmelt_store::{LearnedBefore, PAGE_BYTES, profile_path};

use crate::control::Client;
use crate::{costs, foreign};

/// Measure the device under a file, a directory or a block device, by reading only.
#[derive(Debug, clap::Args)]
pub struct ProbeArgs {
    /// A database, a file or block device, or a directory with a large file in it. A database
    /// keeps the profile and uses it.
    path: PathBuf,
    /// How to print the profile.
    #[arg(long, value_enum, default_value_t = ProbeFormat::Table)]
    format: ProbeFormat,
    /// Seconds to measure.
    #[arg(long, default_value_t = 6.0)]
    seconds: f64,
    /// Engine to measure with: uring or threads.
    #[arg(long, default_value = "uring")]
    engine: String,
    /// Also store the profile here, as JSON.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ProbeFormat {
    Table,
    Json,
}

/// Measures and prints.
pub fn run(args: ProbeArgs) -> anyhow::Result<()> {
    let engine = args.engine.parse().map_err(anyhow::Error::msg)?;
    anyhow::ensure!(args.seconds > 0.0 && args.seconds <= 3600.0, "--seconds must be between 0 and 3600");
    let limits = ProbeLimits { seconds: args.seconds, engine, ..Default::default() };
    if let Some(stripes) = stripes_of(&args.path)? {
        anyhow::ensure!(
            args.save.is_none(),
            "the profiles of a database's devices are kept beside its stripes: leave --save out"
        );
        for (i, stripe) in stripes.iter().enumerate() {
            let profile = snowmelt_io::probe(stripe, &limits)?;
            let saved = profile_path(&args.path, i, stripe);
            profile.keep(&saved)?;
            print(&profile, args.format)?;
            compare(&args.path, i, stripe, &profile);
            tell!("kept in {}: the database uses it from its next opening on", saved.display());
        }
        return Ok(());
    }
    let profile = snowmelt_io::probe(&args.path, &limits)?;
    if let Some(file) = &args.save {
        profile.save(file)?;
    }
    print(&profile, args.format)
}

/// Compares the new profile with the costs that a running server or an earlier run has learned, and
/// says where they differ.
fn compare(db: &Path, number: usize, stripe: &Path, profile: &Profile) {
    let kept = LearnedBefore::find(&KernelFiles::real(), db, number, stripe);
    kept.doubt.iter().for_each(|doubt| tell!("note: {doubt}"));
    let served = served(db, number).map(|model| ("the server that runs", model));
    let learned = served.or_else(|| Some(("an earlier run", kept.model?)));
    let Some((by, model)) = learned else { return };
    let told = costs::told(&model);
    match costs::differences(&profile.cost, &model) {
        same if same.is_empty() => tell!("{by} has learned {told}: this probe agrees"),
        apart => tell!(
            "note: {by} has learned {told}, and this probe differs: {}; something else may use the disk at one of \
             the times, a cache may have answered the probe, or the disk has changed",
            apart.join(", ")
        ),
    }
}

/// Time that a server may take for its meters.
const PATIENCE: Duration = Duration::from_secs(10);

/// Costs that the server of a database has learned of a stripe, if there is one and it has.
fn served(db: &Path, number: usize) -> Option<KeptModel> {
    let server = Client::connect(db).ok()?.within(PATIENCE).ok()?;
    let Reply::Meters(samples) = server.ask(Command::Meters).ok()? else { return None };
    let meters = foreign::tamed(as_json(&samples));
    costs::of_meters(&meters["devices"][number]["costs"])
}

/// The stripes of a database, or `None` when the path is something else.
fn stripes_of(path: &Path) -> anyhow::Result<Option<Vec<PathBuf>>> {
    if !path.join(superblock::FILE_NAME).exists() {
        return Ok(None);
    }
    // Without opening it: a server may have it open.
    let stripes = SuperBlockFile::peek(path)?.stripes;
    Ok(Some(stripes.iter().map(|stripe| path.join(stripe)).collect()))
}

fn print(profile: &Profile, format: ProbeFormat) -> anyhow::Result<()> {
    match format {
        ProbeFormat::Json => say!("{}", serde_json::to_string_pretty(profile)?),
        ProbeFormat::Table => print_table(profile),
    }
    Ok(())
}

fn print_table(profile: &Profile) {
    let cache = if profile.direct { "O_DIRECT" } else { "through the page cache" };
    say!(
        "{}: {:.1} GiB, {}, {cache}",
        profile.file.display(),
        profile.len_bytes as f64 / (1u64 << 30) as f64,
        profile.engine
    );
    say!(
        "\n{:<12} {:>6} {:>12} {:>10} {:>10} {:>10}",
        "reads",
        "depth",
        "per second",
        "MiB/s",
        "p50 µs",
        "p99 µs"
    );
    let row = |what: &str, p: &RatePoint| {
        let what = format!("{what} {}", size::about(p.request_bytes as f64));
        let mib = p.bytes_per_s / f64::from(1 << 20);
        let (p50, p99) = (p.p50_ns as f64 / 1e3, p.p99_ns as f64 / 1e3);
        say!("{what:<12} {:>6} {:>12.0} {mib:>10.1} {p50:>10.0} {p99:>10.0}", p.depth, p.per_s);
    };
    profile.random.iter().for_each(|p| row("random", p));
    profile.sequential.iter().for_each(|p| row("in order", p));
    let cost = &profile.cost;
    say!(
        "\na request alone takes {:.0} µs, one more among {} costs {:.1} µs; {:.0} MiB/s",
        cost.latency_ns as f64 / 1e3,
        cost.depth,
        cost.ns_per_request as f64 / 1e3,
        cost.bytes_per_s as f64 / f64::from(1 << 20),
    );
    let reads = &profile.reads;
    say!(
        "system statistics: a page read alone {:.0} µs (SREADTIM), {} pages in one read {:.0} µs (MREADTIM)",
        reads.single_ns / 1e3,
        reads.multi_bytes / PAGE_BYTES as u64,
        reads.multi_ns / 1e3,
    );
    say!(
        "so: read through gaps up to {}, keep {} requests outstanding, scan {} ahead,",
        size::about(cost.gap_bytes() as f64),
        cost.best_depth(),
        size::about(cost.read_ahead_bytes() as f64),
    );
    say!(
        "    read a 2 MiB extent whole when {:.0} or more of its 256 pages are wanted, {}",
        cost.extent_break_even(8192, 2 << 20).ceil().min(257.0),
        if cost.in_place() { "lone reads in place" } else { "lone reads through the queue" },
    );
    for doubt in &profile.doubts {
        say!("note: {doubt}");
    }
}
