//! `snowmelt update`: one SPARQL Update request, all of it or nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::HumanCount;
use snowmelt_base::{signals, tell};
use snowmelt_sparql::{LoadPermission, QueryEngine, UpdateOptions};
use snowmelt_switches::meters::{MetersArg, SessionArgs};
use snowmelt_switches::open::OpenArgs;
use snowmelt_switches::service::ServiceArgs;
use snowmelt_switches::texts::{self, TextArgs};

/// Run one SPARQL Update request.
#[derive(clap::Args)]
pub struct UpdateArgs {
    /// The database directory
    db: PathBuf,
    /// The update; '-' reads it from standard input
    #[arg(conflicts_with = "file")]
    update: Option<String>,
    /// Read the update from a file
    #[arg(long, value_name = "F")]
    file: Option<PathBuf>,
    /// Where LOAD may read from: a folder or a file [default: nowhere]
    #[arg(long, value_name = "DIR", value_parser = LoadPermission::new)]
    allow_load: Vec<LoadPermission>,
    /// Give up after this many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
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
pub fn run(args: UpdateArgs) -> anyhow::Result<()> {
    let text = texts::reader(args.update.as_deref(), args.file.as_deref(), "update")?;
    let database = args.open.open(&args.db)?;
    let _meters = args.meters.at_end(&database);
    let logged = args.session.account(&database, "update")?;
    let engine = QueryEngine::with_text_limits(database, args.texts.limits());
    let options = UpdateOptions {
        timeout: args.timeout.map(Duration::from_secs_f64),
        cancel: Some(Arc::clone(&signals::stop_flag()?)),
        account: Some(Arc::clone(&logged.account)),
        allow_load: args.allow_load,
        remote: args.service.endpoints(args.open.longest_term),
        ..UpdateOptions::default()
    };
    let begun = Instant::now();
    let updated = engine.update_from(text, usize::MAX, &options);
    logged.finish()?;
    let updated = updated?;
    updated.warnings.iter().for_each(|warning| tell!("warning: {warning}"));
    let (inserted, deleted) = (HumanCount(updated.changed.inserted), HumanCount(updated.changed.deleted));
    tell!("{inserted} quads inserted, {deleted} deleted, in {:.3} s", begun.elapsed().as_secs_f64());
    Ok(())
}
