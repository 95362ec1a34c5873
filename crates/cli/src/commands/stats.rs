//! `snowmelt stats`: what is stored, with `--statistics` what the optimiser estimates by, or with
//! `--meters` what was read. When a server holds the database, the server is asked.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::bail;
use snowmelt_base::output::Stdout;
use snowmelt_base::{say, signals};
use snowmelt_database::meters::{MeterScope, Sample, TREE_COLUMNS, as_json, as_text, since, sort_trees};
use snowmelt_graph::GraphDatabase;
use snowmelt_server::control::{Command, Reply};

use crate::control::{self, Client, Found};
use snowmelt_switches::open::OpenArgs;

/// Say what is stored: quads, terms, bytes per tree and per quad. With --meters: what was read.
#[derive(clap::Args)]
pub struct StatsArgs {
    /// The database directory
    db: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = StatsFormat::Table)]
    format: StatsFormat,
    /// Say instead what estimates are made of: of each predicate rows, different subjects and
    /// objects, and how many rows these have; and the sets of predicates that subjects have
    #[arg(long, conflicts_with_all = ["meters", "reset"])]
    statistics: bool,
    /// Say what was read instead: by account, tree and device; of the server that has the database
    /// open, else of opening it
    #[arg(long)]
    meters: bool,
    /// With --meters: order of the trees, by a column of their table
    #[arg(long, value_name = "COLUMN", requires = "meters", value_parser = TREE_COLUMNS)]
    sort: Option<String>,
    /// With --meters: show what happened in each interval of so many seconds, until Ctrl-C
    #[arg(long, value_name = "SECONDS", requires = "meters", value_parser = interval)]
    every: Option<Duration>,
    /// Have the server count anew: all, tree:NAME or account:NAME [without a value: all]. With
    /// --meters they are shown first
    #[arg(
        long,
        value_name = "WHAT",
        num_args = 0..=1,
        default_missing_value = "all",
        conflicts_with = "every"
    )]
    reset: Option<MeterScope>,
    #[command(flatten)]
    open: OpenArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StatsFormat {
    Table,
    Json,
}

/// `1`, `0.5`, `1s`, `200ms`
fn interval(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    /// A day.
    const MOST: f64 = 86_400.0;
    match number.parse::<f64>() {
        Ok(n) if (0.01..=MOST).contains(&(n * unit)) => Ok(Duration::from_secs_f64(n * unit)),
        _ => Err("use a number of seconds from 0.01 to 86400".to_owned()),
    }
}

/// Runs the command.
pub fn run(args: StatsArgs) -> anyhow::Result<()> {
    let found = control::find_to_read(&args.db, &args.open)?;
    if !args.meters && args.reset.is_none() {
        return show(&args.stored(found)?);
    }
    let mut source = StatsSource::open(found, &args.db);
    if args.meters {
        match args.every {
            Some(every) => args.watch(&mut source, every)?,
            None => say!("{}", args.shown(source.samples()?, None)?.trim_end_matches('\n')),
        }
    }
    match args.reset {
        Some(scope) => source.reset(scope),
        None => Ok(()),
    }
}

fn show(text: &str) -> anyhow::Result<()> {
    Ok(Stdout.write_all(text.as_bytes()).and_then(|()| Stdout.flush())?)
}

/// Where meters come from.
enum StatsSource {
    /// this process
    Here(Arc<GraphDatabase>),
    /// a server, and a connection to it that was not used yet
    Server(PathBuf, Option<Client>),
}

impl StatsSource {
    fn open(found: Found, db: &Path) -> Self {
        match found {
            Found::Open(database) => Self::Here(database),
            Found::Served(client) => Self::Server(db.to_owned(), Some(client)),
        }
    }

    fn samples(&mut self) -> anyhow::Result<Vec<Sample>> {
        if let Self::Here(database) = self {
            return Ok(database.database().report().samples());
        }
        match self.ask(Command::Meters)? {
            Reply::Meters(samples) => Ok(samples),
            other => Err(control::unexpected(&other)),
        }
    }

    fn reset(&mut self, scope: MeterScope) -> anyhow::Result<()> {
        if let Self::Here(_) = self {
            bail!("no server has the database open: meters are those of a process, and begin with it");
        }
        match self.ask(Command::Reset(scope))? {
            Reply::Reset => Ok(()),
            other => Err(control::unexpected(&other)),
        }
    }

    /// A server answers one command on a connection.
    fn ask(&mut self, command: Command) -> anyhow::Result<Reply> {
        let Self::Server(db, unused) = self else { bail!("there is no server") };
        match unused.take() {
            Some(client) => client.ask(command),
            None => Client::connect(db)?.ask(command),
        }
    }
}

impl StatsArgs {
    /// The text about what is stored.
    fn stored(&self, found: Found) -> anyhow::Result<String> {
        let command = if self.statistics { Command::Statistics } else { Command::Stats };
        let (table, json) = match found {
            Found::Open(database) if self.statistics => {
                let report = database.statistics_report()?;
                (report.to_string(), serde_json::to_string_pretty(&report)?)
            }
            Found::Open(database) => {
                let stats = database.stats()?;
                (stats.to_string(), serde_json::to_string_pretty(&stats)?)
            }
            Found::Served(server) => match server.ask(command)? {
                Reply::Stats { table, json } => (table, serde_json::to_string_pretty(&json)?),
                other => return Err(control::unexpected(&other)),
            },
        };
        Ok(match self.format {
            StatsFormat::Json => json + "\n",
            StatsFormat::Table => table,
        })
    }

    /// Samples as text; those of an interval with its length.
    fn shown(&self, mut samples: Vec<Sample>, seconds: Option<f64>) -> anyhow::Result<String> {
        if let Some(column) = &self.sort {
            // clap knows the columns
            sort_trees(&mut samples, column);
        }
        Ok(match (self.format, seconds) {
            (StatsFormat::Table, None) => as_text(&samples),
            (StatsFormat::Table, Some(s)) => format!("in {s:.2} s:\n{}\n", as_text(&samples)),
            (StatsFormat::Json, None) => serde_json::to_string_pretty(&as_json(&samples))? + "\n",
            // a line for each
            (StatsFormat::Json, Some(s)) => {
                format!("{}\n", serde_json::json!({ "seconds": s, "meters": as_json(&samples) }))
            }
        })
    }

    /// Interval after interval, until Ctrl-C.
    fn watch(&self, source: &mut StatsSource, every: Duration) -> anyhow::Result<()> {
        const LOOK: Duration = Duration::from_millis(20);
        let stop = signals::stop_flag()?;
        let (mut at, mut before) = (Instant::now(), source.samples()?);
        loop {
            let until = at + every;
            while Instant::now() < until {
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
            }
            let now = source.samples()?;
            let seconds = at.elapsed().as_secs_f64();
            at = Instant::now();
            show(&self.shown(since(&now, &before), Some(seconds))?)?;
            before = now;
        }
    }
}
