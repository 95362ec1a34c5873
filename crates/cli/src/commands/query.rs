//! `snowmelt query`: one query, its answer on standard output.

use std::io::{BufWriter, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use crate::open::OpenArgs;
use crate::signals;
use crate::texts::TextArgs;
use anyhow::{Context, bail};
use snowmelt_sparql::{Engine, QueryKind, QueryOptions, ResultFormat};

/// Answer one SPARQL query.
#[derive(clap::Args)]
pub struct QueryArgs {
    /// The database directory
    db: PathBuf,
    /// The query; '-' reads it from standard input
    #[arg(conflicts_with = "file")]
    query: Option<String>,
    /// Read the query from a file
    #[arg(long, value_name = "F")]
    file: Option<PathBuf>,
    /// Result format; a table (or N-Triples for graphs) when not given
    #[arg(long)]
    format: Option<AnswerFormat>,
    /// Show the plan with its estimates instead of running it
    #[arg(long, conflicts_with = "analyze")]
    explain: bool,
    /// Run the query and show the plan with rows, batches, time and meters per operator
    #[arg(long)]
    analyze: bool,
    /// Give up after this many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    #[command(flatten)]
    texts: TextArgs,
    #[command(flatten)]
    open: OpenArgs,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum AnswerFormat {
    Table,
    Json,
    Xml,
    Csv,
    Tsv,
    Nt,
    Ttl,
}

impl AnswerFormat {
    /// The writer for this format, if it fits the kind of answer.
    fn of(format: Option<Self>, kind: QueryKind) -> anyhow::Result<ResultFormat> {
        let graph = matches!(kind, QueryKind::Graph);
        Ok(match (format, graph) {
            (None | Some(Self::Table), false) => ResultFormat::Table,
            (Some(Self::Json), false) => ResultFormat::Json,
            (Some(Self::Xml), false) => ResultFormat::Xml,
            (Some(Self::Csv), false) => ResultFormat::Csv,
            (Some(Self::Tsv), false) => ResultFormat::Tsv,
            (None | Some(Self::Nt | Self::Table), true) => ResultFormat::NTriples,
            (Some(Self::Ttl), true) => ResultFormat::Turtle,
            (Some(Self::Xml), true) => ResultFormat::RdfXml,
            (_, false) => {
                bail!("this format is for graphs: use table, json, xml, csv or tsv for SELECT and ASK")
            }
            (_, true) => bail!("this format is for solutions: use nt, ttl or xml for CONSTRUCT and DESCRIBE"),
        })
    }
}

/// Runs the command.
pub fn run(args: QueryArgs) -> anyhow::Result<()> {
    let text = query_text(&args)?;
    let engine = Engine::with_text_limits(args.open.open_to_read(&args.db)?, args.texts.limits());
    let options = QueryOptions {
        timeout: args.timeout.map(std::time::Duration::from_secs_f64),
        cancel: Some(Arc::clone(&signals::stop_flag()?)),
        ..QueryOptions::default()
    };
    if args.explain || args.analyze {
        let report =
            if args.explain { engine.explain(&text, &options)? } else { engine.analyze(&text, &options)? };
        std::io::stdout().write_all(report.as_bytes())?;
        return Ok(());
    }
    let result = engine.query(&text, &options)?;
    let format = AnswerFormat::of(args.format, result.kind())?;
    let stdout = std::io::stdout().lock();
    let terminal = stdout.is_terminal();
    let mut out = BufWriter::with_capacity(if terminal { 4096 } else { 1 << 18 }, stdout);
    match result.write(format, &mut out).map_err(anyhow::Error::from).and_then(|_| Ok(out.flush()?)) {
        Err(error) if is_closed_pipe(&error) => Ok(()),
        other => other,
    }
}

fn query_text(args: &QueryArgs) -> anyhow::Result<String> {
    match (&args.query, &args.file) {
        (_, Some(file)) => {
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
        }
        (Some(text), None) if text != "-" => Ok(text.clone()),
        (None, None) if std::io::stdin().is_terminal() => {
            bail!("no query: give it as an argument, with --file F, or on standard input")
        }
        _ => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("cannot read the query from standard input")?;
            Ok(text)
        }
    }
}

/// A reader that stopped reading (`| head`) is not an error.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
