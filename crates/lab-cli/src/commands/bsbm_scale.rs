//! `snowmelt-lab bsbm scale`: how the benchmark's work grows with its data.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::json;
use snowmelt_base::output::Stdout;
use snowmelt_base::{say, signals, size, tell};
use snowmelt_bench::scale::room::{self, Kept};
use snowmelt_bench::scale::{
    Profile, Profiler, ScalePlan, ScaleRun, figures_of, function_changes, function_text, growth_text,
    growths, scale_page, scale_text,
};
use snowmelt_bsbm::{DEFAULT_SEED, UseCase, WordLists};
use snowmelt_database::OpenOptions;
use snowmelt_graph::load::LoadOptions;
use snowmelt_lab::room::bytes_free as free_room;
use snowmelt_lab::{Run, functions};
use snowmelt_sparql::PlanCosts;
use snowmelt_workload::bench::{ClientLoad, count_products};
use snowmelt_workload::dataset;
use snowmelt_workload::scratch_dir::ScratchDir;

use super::bsbm_run::{ReportFormat, machine};
use snowmelt_switches::open::OpenArgs;

/// Run the Explore mix on data sets of several sizes, and say what grows how.
#[derive(clap::Args)]
pub struct BsbmScaleArgs {
    /// The data sets, by products: 2785 give 1 million triples, 28480 give 10, 284826 give 100
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', default_value = "2785,28480", value_parser = clap::value_parser!(u32).range(1..))]
    products: Vec<u32>,
    /// Keep the databases in this directory, and use those that are there already
    /// [default: a temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Mixes in steady state
    #[arg(long, value_name = "M", default_value = "500", value_parser = clap::value_parser!(u64).range(1..))]
    mixes: u64,
    /// Mixes before that, from a cold start
    #[arg(long, value_name = "W", default_value = "500", value_parser = clap::value_parser!(u64).range(1..))]
    warmup: u64,
    /// Clients, each a thread with one query at a time
    #[arg(long, value_name = "C", default_value = "1")]
    clients: NonZeroUsize,
    /// Seed of the queries' parameters
    #[arg(long, value_name = "S", default_value_t = DEFAULT_SEED)]
    seed: i64,
    /// Directory of titlewords.txt and givennames.txt, for the very data of the original tool
    /// [default: made-up words]
    #[arg(long, value_name = "DIR")]
    words: Option<PathBuf>,
    /// Draw where the processors are in steady state into this file, as a flame graph; with
    /// several data sets their products come into the name, and a table says which functions'
    /// shares changed. Where perf cannot record, the figures come without it, and the reason
    #[arg(long, value_name = "FILE.svg")]
    flame: Option<PathBuf>,
    /// Run folder, new or empty, with the figures, the functions of the flame graph and a page,
    /// for `compare` [default: none]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Result format
    #[arg(long, default_value = "table")]
    format: ReportFormat,
    #[command(flatten)]
    open: OpenArgs,
}

/// Runs the command.
pub fn run(args: BsbmScaleArgs) -> Result<()> {
    let stop = signals::stop_flag()?;
    let folder = args.out.as_deref().map(|out| Run::create("bsbm-scale", Some(out))).transpose()?;
    let can_draw = args.flame.as_ref().map(|_| Profiler::is_there());
    if let Some(Err(why)) = can_draw {
        tell!("{why:#}; the figures come without it");
    }
    let mut scales = args.products.clone();
    scales.sort_unstable();
    scales.dedup();
    let place = Place::new(args.dir.as_deref())?;
    let missing: Vec<u32> = scales.iter().copied().filter(|n| !place.db(*n).exists()).collect();
    let needed = room::bytes_at_once(&missing, place.kept());
    args.say(&machine())?;
    args.say(&format!(
        "{} of {} databases to make in {}: {} needed, {} free",
        missing.len(),
        scales.len(),
        place.path().display(),
        size::about(needed as f64),
        free_room(place.path())?.map_or_else(|| "unknown room".into(), |free| size::about(free as f64))
    ))?;
    room::check(place.path(), needed)?;
    let mut runs: Vec<ScaleRun> = Vec::new();
    for products in &scales {
        let run = args.scale(*products, scales.len(), &place, &stop)?;
        args.say(&format!("\n{}", scale_text(&run)))?;
        runs.push(run);
    }
    let growths = growths(&runs);
    args.say(&growth_text(&growths))?;
    let changed = function_changes(&runs);
    args.say(&function_text(&changed))?;
    if args.format == ReportFormat::Json {
        let functions: Vec<_> = changed
            .iter()
            .map(|(from, to, changes)| json!({ "from": from, "to": to, "functions": changes }))
            .collect();
        let all = json!({ "machine": machine(), "scales": runs, "growth": growths, "functions": functions });
        say!("{all:#}");
    }
    if let Some(folder) = folder {
        args.say(&keep(folder, &args, &runs)?.display().to_string())?;
    }
    Ok(())
}

/// Writes the run folder; the path of its page.
fn keep(mut folder: Run, args: &BsbmScaleArgs, runs: &[ScaleRun]) -> Result<PathBuf> {
    folder.settings(&json!({
        "products": runs.iter().map(|run| run.products).collect::<Vec<_>>(),
        "mixes": args.mixes,
        "warmup": args.warmup,
        "clients": args.clients,
        "seed": args.seed,
    }));
    folder.show_by("figures", &["products", "figure"], &["value"]);
    let mut lines = folder.lines("figures")?;
    for run in runs {
        for (figure, value) in figures_of(run) {
            lines.write(&json!({ "products": run.products, "figure": figure, "value": value }))?;
        }
    }
    let mut lines = folder.lines(functions::FILE)?;
    for run in runs {
        match &run.profile {
            Some(Profile::Functions(shares)) => shares.iter().try_for_each(|share| lines.write(share))?,
            Some(Profile::Missing(why)) => {
                folder.doubt(format!("{} products: no flame graph: {why}", run.products))
            }
            None => {}
        }
    }
    Ok(folder.finish(scale_page(runs))?)
}

impl BsbmScaleArgs {
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

    /// Makes the database of a scale, if it is not there, and runs on it.
    fn scale(&self, products: u32, of: usize, place: &Place, stop: &AtomicBool) -> Result<ScaleRun> {
        let (db, options) = (place.db(products), self.open.config());
        match db.exists() {
            true => is_of(products, &db, &options)?,
            false => self.make(products, &db, &options, stop)?,
        }
        let load = ClientLoad {
            products,
            seed: self.seed,
            use_case: UseCase::Explore,
            clients: self.clients.get(),
            threads: 0,
            costs: PlanCosts::default(),
        };
        let flame = self.flame.as_ref().map(|file| named(file, products, of));
        let plan = ScalePlan {
            db: &db,
            options: &options,
            load,
            warmup: self.warmup,
            mixes: self.mixes,
            flame: flame.as_deref(),
            stop,
        };
        let run = plan.run()?;
        if place.kept() == Kept::No {
            std::fs::remove_dir_all(&db).with_context(|| format!("cannot remove {}", db.display()))?;
        }
        Ok(run)
    }

    fn make(&self, products: u32, db: &Path, options: &OpenOptions, stop: &AtomicBool) -> Result<()> {
        let begun = Instant::now();
        let words =
            self.words.as_ref().map_or_else(|| Ok(WordLists::synthetic()), |d| WordLists::from_dir(d))?;
        let load = LoadOptions { store: options.clone(), ..LoadOptions::default() };
        let report = dataset::generate_and_load(products, words, db, &load, &(), stop)?;
        let seconds = begun.elapsed().as_secs_f64();
        self.say(&format!(
            "{products} products: {} triples made and loaded in {seconds:.1} s",
            report.triples
        ))?;
        Ok(())
    }
}

/// Whether a database that was there is that of a scale.
fn is_of(products: u32, db: &Path, options: &OpenOptions) -> Result<()> {
    let found = count_products(db, options)?;
    if found != products {
        bail!("{} has {found} products, not {products}: remove it, or name another --dir", db.display());
    }
    Ok(())
}

/// The file of a scale's flame graph.
fn named(file: &Path, products: u32, of: usize) -> PathBuf {
    if of == 1 {
        return file.to_owned();
    }
    let stem = file.file_stem().map_or_else(|| "flame".into(), |stem| stem.to_string_lossy());
    let extension = file.extension().map_or_else(|| "svg".into(), |extension| extension.to_string_lossy());
    file.with_file_name(format!("{stem}-{products}.{extension}"))
}

/// Where the databases are.
enum Place {
    Temporary(ScratchDir),
    Asked(PathBuf),
}

impl Place {
    fn new(dir: Option<&Path>) -> Result<Self> {
        let Some(dir) = dir else { return Ok(Self::Temporary(ScratchDir::new("snowmelt-scale")?)) };
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        Ok(Self::Asked(dir.to_owned()))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Temporary(dir) => dir.path(),
            Self::Asked(dir) => dir,
        }
    }

    fn kept(&self) -> Kept {
        match self {
            Self::Temporary(_) => Kept::No,
            Self::Asked(_) => Kept::Yes,
        }
    }

    /// The database of a scale.
    fn db(&self, products: u32) -> PathBuf {
        self.path().join(format!("{products}.db"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scale_has_a_flame_graph_of_its_own() {
        let file = Path::new("a/b.c.svg");
        assert_eq!(named(file, 70, 1), file);
        assert_eq!(named(file, 70, 2), Path::new("a/b.c-70.svg"));
        assert_eq!(named(Path::new("a"), 140, 2), Path::new("a-140.svg"));
    }
}
