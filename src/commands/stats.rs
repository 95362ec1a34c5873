//! `snowmelt stats`: what is stored. When a server holds the database, the server is asked.

use std::io::Write;
use std::path::PathBuf;

use snowmelt::control::{self, Found};
use snowmelt::open::OpenArgs;
use snowmelt::server::control::{Command, Reply};

/// Say what is stored: quads, terms, bytes per tree and per quad.
#[derive(clap::Args)]
pub struct Args {
    /// The database directory
    db: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    #[command(flatten)]
    open: OpenArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    Json,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<()> {
    let text = match (control::find_to_read(&args.db, &args.open.config())?, args.format) {
        (Found::Open(database), Format::Json) => serde_json::to_string_pretty(&database.stats()?)? + "\n",
        (Found::Open(database), Format::Table) => database.stats()?.to_string(),
        (Found::Served(server), format) => match (server.ask(Command::Stats)?, format) {
            (Reply::Stats { json, .. }, Format::Json) => serde_json::to_string_pretty(&json)? + "\n",
            (Reply::Stats { table, .. }, Format::Table) => table,
            (other, _) => return Err(control::unexpected(&other)),
        },
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
