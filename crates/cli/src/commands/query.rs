//! `snowmelt query`: one query, its answer on standard output.

use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;

use crate::answer::{AnswerFormat, DescribeArgs};
use crate::prompt::{Prompt, terminal_width};
use snowmelt_base::output::Stdout;
use snowmelt_base::{signals, tell};
use snowmelt_sparql::{QueryEngine, QueryOptions, Shortener, TableStyle, prefixes_for};
use snowmelt_switches::meters::{MetersArg, SessionArgs};
use snowmelt_switches::open::OpenArgs;
use snowmelt_switches::service::ServiceArgs;
use snowmelt_switches::texts::{self, TextArgs};

/// Answer one SPARQL query.
#[derive(clap::Args)]
pub struct QueryArgs {
    /// The database directory
    db: PathBuf,
    /// The query; '-' reads it from standard input. Without one, a prompt asks for queries
    #[arg(conflicts_with = "file")]
    query: Option<String>,
    /// Read the query from a file
    #[arg(long, value_name = "F")]
    file: Option<PathBuf>,
    /// Result format; a table (or N-Triples for graphs) when not given. json is also a form of
    /// plans
    #[arg(long)]
    format: Option<AnswerFormat>,
    /// Show the plan with its estimates instead of running it
    #[arg(long, conflicts_with = "analyze")]
    explain: bool,
    /// Run the query and show the plan with rows, batches, time and meters per operator
    #[arg(long)]
    analyze: bool,
    #[command(flatten)]
    describe: DescribeArgs,
    /// Give up after this many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// Threads that the query may use [default: as many as there are processors]
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    threads: usize,
    #[command(flatten)]
    service: ServiceArgs,
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    meters: MetersArg,
    #[command(flatten)]
    open: OpenArgs,
    #[command(flatten)]
    texts: TextArgs,
}

/// Runs the command.
pub fn run(args: QueryArgs) -> anyhow::Result<()> {
    let is_prompt = args.query.is_none() && args.file.is_none() && std::io::stdin().is_terminal();
    // the text first: a mistake there is told without opening anything
    let text =
        if is_prompt { String::new() } else { texts::text(args.query.as_deref(), args.file.as_deref())? };
    let database = args.open.open_to_read(&args.db)?;
    let _meters = args.meters.at_end(&database);
    let logged = args.session.account(&database, "query")?;
    let stop = signals::stop_flag()?;
    let options = QueryOptions {
        timeout: args.timeout.map(std::time::Duration::from_secs_f64),
        cancel: Some(stop.clone()),
        account: Some(Arc::clone(&logged.account)),
        threads: args.threads,
        remote: args.service.endpoints(args.open.longest_term),
        describe: args.describe.form(),
        prefixes: Arc::new(database.namespaces()),
        ..QueryOptions::default()
    };
    let engine = QueryEngine::with_text_limits(database, args.texts.limits());
    let answered = match is_prompt {
        true => Prompt::new(Arc::new(engine), options, stop).run(&args.db),
        false => answer(&args, &engine, &text, &options),
    };
    logged.finish().and(answered)
}

fn answer(args: &QueryArgs, engine: &QueryEngine, text: &str, options: &QueryOptions) -> anyhow::Result<()> {
    if args.explain || args.analyze {
        return explain(args, engine, text, options);
    }
    let result = engine.query(text, options)?;
    result.warnings().iter().for_each(|warning| tell!("warning: {warning}"));
    let terminal = std::io::stdout().is_terminal();
    let mut out = BufWriter::with_capacity(if terminal { 4096 } else { 1 << 18 }, Stdout);
    let prefixes = prefixes_for(text, &options.prefixes);
    let style = TableStyle {
        width: terminal.then(terminal_width).flatten(),
        prefixes: Some(Shortener::of_namespaces(&prefixes)),
    };
    AnswerFormat::write(args.format, result, style, &prefixes, &mut out)?;
    Ok(out.flush()?)
}

/// The plan, and with --analyze what it did.
fn explain(args: &QueryArgs, engine: &QueryEngine, text: &str, options: &QueryOptions) -> anyhow::Result<()> {
    let is_json = match args.format {
        None | Some(AnswerFormat::Table) => false,
        Some(AnswerFormat::Json) => true,
        Some(_) => bail!("a plan is text, or JSON with --format json"),
    };
    let plan = match args.explain {
        true => engine.explanation(text, options)?,
        false => engine.analysis(text, options)?,
    };
    let shown = if is_json { format!("{:#}\n", plan.json()) } else { plan.to_string() };
    Ok(Stdout.write_all(shown.as_bytes())?)
}
