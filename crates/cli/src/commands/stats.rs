//! `snowmelt stats`: what is stored. When a server holds the database, the server is asked.

use std::io::Write;
use std::path::PathBuf;

use crate::control::{self, Found};
use crate::switches::open::OpenArgs;
use snowmelt_server::control::{Command, Reply};

/// Say what is stored: quads, terms, bytes per tree and per quad.
#[derive(clap::Args)]
pub struct StatsArgs {
    /// The database directory
    db: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = StatsFormat::Table)]
    format: StatsFormat,
    #[command(flatten)]
    open: OpenArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StatsFormat {
    Table,
    Json,
}

/// Runs the command.
pub fn run(args: StatsArgs) -> anyhow::Result<()> {
    let text = match (control::find_to_read(&args.db, &args.open.config())?, args.format) {
        (Found::Open(database), StatsFormat::Json) => {
            serde_json::to_string_pretty(&database.stats()?)? + "\n"
        }
        (Found::Open(database), StatsFormat::Table) => database.stats()?.to_string(),
        (Found::Served(server), format) => match (server.ask(Command::Stats)?, format) {
            (Reply::Stats { json, .. }, StatsFormat::Json) => serde_json::to_string_pretty(&json)? + "\n",
            (Reply::Stats { table, .. }, StatsFormat::Table) => table,
            (other, _) => return Err(control::unexpected(&other)),
        },
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
