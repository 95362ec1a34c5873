//! `snowmelt dump`: all quads, on standard output.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, bail};
use snowmelt_base::output::Stdout;
use snowmelt_graph::DumpFormat;
use snowmelt_switches::meters::MetersArg;
use snowmelt_switches::open::OpenArgs;

/// Write all quads as RDF.
#[derive(clap::Args)]
pub struct DumpArgs {
    /// The database directory
    db: PathBuf,
    /// nq, nt, ttl or trig; nt and ttl leave out in which graph a triple is
    #[arg(long, default_value = "nq", value_parser = ["nq", "nt", "ttl", "trig"])]
    format: String,
    #[command(flatten)]
    meters: MetersArg,
    #[command(flatten)]
    open: OpenArgs,
}

/// Runs the command.
pub fn run(args: DumpArgs) -> anyhow::Result<()> {
    let Some(format) = DumpFormat::named(&args.format) else { bail!("unknown format {}", args.format) };
    let database = args.open.open_to_read(&args.db)?;
    let _meters = args.meters.at_end(&database);
    let mut out = BufWriter::with_capacity(1 << 18, Stdout);
    let written = database.dump(format, &mut out).map_err(anyhow::Error::from).and_then(|_| Ok(out.flush()?));
    written.with_context(|| format!("cannot dump {}", args.db.display()))
}
