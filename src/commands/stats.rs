//! `snowmelt stats`: what is stored. When a server holds the database, the server is asked.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use snowmelt::open::OpenArgs;
use snowmelt::running;
use snowmelt_graph::Database;

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
    let text = match (Database::open(&args.db, &args.open.config()), running::server_of(&args.db)) {
        (Ok(database), _) => {
            let stats = database.stats()?;
            match args.format {
                Format::Json => serde_json::to_string_pretty(&stats)? + "\n",
                Format::Table => stats.to_string(),
            }
        }
        (Err(_), Some(server)) => asked(&server, args.format).with_context(|| {
            format!("a server at {} has the database open, but does not answer", server.address)
        })?,
        (Err(error), None) => {
            return Err(error).with_context(|| format!("cannot open {}", args.db.display()));
        }
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// The statistics as the server that has the database open gives them.
fn asked(server: &running::Server, format: Format) -> anyhow::Result<String> {
    match format {
        Format::Table => Ok(String::from_utf8(server.get("/stats?format=table")?)?),
        Format::Json => {
            let answer: serde_json::Value = serde_json::from_slice(&server.get("/stats")?)?;
            Ok(serde_json::to_string_pretty(&answer["database"])? + "\n")
        }
    }
}
