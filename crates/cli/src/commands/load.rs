//! `snowmelt load`: RDF files into a new database, with a progress bar.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use oxrdfio::RdfFormat;
use parking_lot::Mutex;
use snowmelt_base::{signals, size, tell};
use snowmelt_graph::load::{
    self, Contexts, FormatToldBy, LeftOut, LoadError, LoadOptions, LoadProgress, LoadReport, OddTerms, Phase,
    Progress, Source,
};
use snowmelt_switches::create::CreateArgs;
use snowmelt_switches::meters::MetersArg;
use snowmelt_switches::open::OpenArgs;

/// Load RDF files: a new database is built, into a filled one they are inserted or merged.
#[derive(Debug, clap::Args)]
pub struct LoadArgs {
    /// The database directory; made if absent
    db: PathBuf,
    /// RDF files, plain or compressed with gzip or zstd; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// The graph for triples that name none [default: the default graph]
    #[arg(long, value_name = "IRI")]
    graph: Option<String>,
    /// Base IRI for relative IRIs [default: that of the file]
    #[arg(long, value_name = "IRI")]
    base: Option<String>,
    /// Threads that parse and sort [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// Leave out what cannot be read, a triple at a time, instead of stopping at the first; it is
    /// counted, and the first hundred are listed
    #[arg(long)]
    lenient: bool,
    /// With --lenient, the most that may be left out, in percent of all statements and rounded up
    /// to whole ones; if more had to go, nothing is loaded
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    lenient_most: f64,
    /// Keep IRIs and language tags that the RFCs do not allow and Turtle's grammar does, such as
    /// <http://example.org/x#a#b> and "…"@zh-classical
    #[arg(long)]
    keep_odd_terms: bool,
    /// A context that JSON-LD may name, never fetched: ADDRESS=FILE, schema.org=FILE, or a folder
    /// with the file example.org/a for https://example.org/a; may be repeated
    #[arg(long, value_name = "CONTEXT")]
    context: Vec<String>,
    /// Format of all files: nt, nq, ttl, trig, rdf, jsonld [default: by name or content]
    #[arg(long, value_name = "F")]
    format: Option<String>,
    #[command(flatten)]
    meters: MetersArg,
    #[command(flatten)]
    create: CreateArgs,
    #[command(flatten)]
    open: OpenArgs,
}

/// Runs the command.
pub fn run(args: LoadArgs) -> Result<()> {
    let defaults = LoadOptions::default();
    args.create.check(&args.db)?;
    let options = LoadOptions {
        graph: args.graph,
        base: args.base,
        stripes: args.create.paths(),
        threads: args.threads.map_or(defaults.threads, usize::from),
        lenient: args.lenient,
        lenient_most: args.lenient_most / 100.0,
        odd_terms: if args.keep_odd_terms { OddTerms::Kept } else { OddTerms::Refused },
        contexts: Contexts::from_args(&args.context)?,
        format: args.format.as_deref().map(load::format_named).transpose()?,
        store: args.open.config_to_create(&args.create),
        ..defaults
    };
    let sources = args.files.iter().map(|file| Source::from_arg(file)).collect();
    let stop = signals::stop_flag()?;
    let bar = Bar::new();
    let result = load::load(&args.db, sources, &options, &bar, &stop);
    bar.drawn.finish_and_clear();
    let inputs = bar.inputs.into_inner();
    match result {
        Ok(report) => {
            say(&inputs, &report);
            if let Some(meters) = &report.meters {
                args.meters.say(meters);
            }
            Ok(())
        }
        Err(error) => {
            if let LoadError::TooManyLeftOut { listed, .. } = &error {
                list(listed);
            }
            Err(with_guess(error, &inputs))
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number: f64 = text.trim_end_matches('%').parse().map_err(|_| format!("{text} is no number"))?;
    if (0.0..=100.0).contains(&number) { Ok(number) } else { Err("a percentage is from 0 to 100".to_owned()) }
}

/// Lists what was left out.
fn list(left_out: &[LeftOut]) {
    left_out.iter().for_each(|left_out| tell!("left out: {left_out}"));
}

/// An input, its format, and how that is known.
type Input = (String, RdfFormat, FormatToldBy);

/// Adds to an error that the format of the input was guessed.
fn with_guess(error: LoadError, inputs: &[Input]) -> anyhow::Error {
    let LoadError::Syntax { file, .. } = &error else { return error.into() };
    let is_guessed = |(name, _, told_by): &&Input| name == file && *told_by == FormatToldBy::Content;
    match inputs.iter().find(is_guessed) {
        Some((_, format, _)) => {
            anyhow::anyhow!("{error} (read as {}, by its content; --format sets another)", format.name())
        }
        None => error.into(),
    }
}

/// A progress bar: phase, how much of it is done, triples, rate, time left.
struct Bar {
    drawn: ProgressBar,
    inputs: Mutex<Vec<Input>>,
}

impl Bar {
    /// Drawn only when standard error is a terminal.
    fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar { drawn: bar, inputs: Mutex::default() }
    }

    /// The layout of a phase: with a bar when its end is known.
    fn style(progress: &Progress) -> ProgressStyle {
        let amount = if progress.phase == Phase::Read { "{decimal_bytes}" } else { "{human_pos}" };
        let known = progress.total.is_some();
        let template = match known {
            true => format!("{{prefix:>8}} {{bar:30}} {{percent:>3}} % {amount} {{msg}}, {{eta}} left"),
            false => format!("{{prefix:>8}} {{spinner}} {amount} {{msg}}, {{elapsed}}"),
        };
        ProgressStyle::with_template(&template).expect("the templates are well-formed")
    }
}

impl LoadProgress for Bar {
    fn input(&self, name: &str, format: RdfFormat, told_by: FormatToldBy) {
        self.inputs.lock().push((name.to_owned(), format, told_by));
    }

    fn report(&self, progress: &Progress) {
        let bar = &self.drawn;
        if bar.prefix() != progress.phase.name() {
            bar.reset();
            bar.set_prefix(progress.phase.name());
            bar.set_style(Self::style(progress));
            bar.set_length(progress.total.unwrap_or(0));
        }
        bar.set_position(progress.done);
        if progress.phase == Phase::Read {
            let seconds = bar.elapsed().as_secs_f64().max(0.001);
            let rate = (progress.triples as f64 / seconds) as u64;
            bar.set_message(format!("{} triples, {}/s", HumanCount(progress.triples), HumanCount(rate)));
        } else {
            bar.set_message("");
        }
    }
}

/// Prints the load's report on standard error.
fn say(inputs: &[Input], report: &LoadReport) {
    const MOST: usize = 8;
    for (name, format, told_by) in inputs.iter().take(MOST) {
        let how = match told_by {
            FormatToldBy::Caller => "as asked",
            FormatToldBy::Name => "by its name",
            FormatToldBy::Content => "by its content; --format sets another",
        };
        tell!("{name}: {}, {how}", format.name());
    }
    if inputs.len() > MOST {
        tell!("… and {} more", inputs.len() - MOST);
    }
    let seconds = report.total_seconds();
    let rate = HumanCount((report.triples as f64 / seconds) as u64);
    tell!("{} triples in {seconds:.2} s, {rate} triples/s", HumanCount(report.triples));
    let phases = report.seconds.iter().map(|(phase, s)| format!("{} {s:.2}", phase.name()));
    tell!("seconds: {}", phases.collect::<Vec<_>>().join(", "));
    let bytes = size::precise(report.database_bytes);
    // Below a million the extents that are begun hide what a quad takes.
    let each = match report.quads {
        quads if quads < 1_000_000 => String::new(),
        quads => format!(", {:.1} bytes each", report.database_bytes as f64 / quads as f64),
    };
    tell!("{} quads in the database, {bytes}{each}", HumanCount(report.quads));
    let peak = size::precise(report.peak_bytes);
    tell!("peak memory {peak}, temporary files {}", size::precise(report.temporary_bytes));
    if report.skipped > 0 {
        list(&report.left_out);
        tell!("{} statements left out that cannot be read", HumanCount(report.skipped));
    }
}
