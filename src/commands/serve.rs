//! `snowmelt serve`: the SPARQL Protocol until SIGTERM or Ctrl-C.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use snowmelt::open::{OpenArgs, open};
use snowmelt::{running, signals};
use snowmelt_server::{Limits, ServerConfig, serve};
use snowmelt_sparql::{Engine, LoadPermission};
use snowmelt_store::StoreConfig;

/// Serve the SPARQL Protocol over HTTP on loopback.
#[derive(clap::Args)]
pub struct Args {
    /// The database directory
    db: PathBuf,
    /// Address and port, loopback only
    #[arg(long, default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// Where LOAD may read from: a folder or a file [default: nowhere]
    #[arg(long, value_name = "DIR", value_parser = LoadPermission::new)]
    allow_load: Vec<LoadPermission>,
    /// Answer queries and refuse updates
    #[arg(long)]
    read_only: bool,
    /// At SIGTERM or Ctrl-C, let queries and updates run on for so many seconds
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    shutdown_deadline: f64,
    /// Cancel queries and updates that run longer than this many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    #[command(flatten)]
    open: OpenArgs,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<()> {
    let stop = signals::stop_flag()?;
    let deadline = Duration::from_secs_f64(args.shutdown_deadline);
    // What the deadline leaves unwritten stays in the journal.
    let options = StoreConfig { close_ms: deadline.as_millis() as u64, ..args.open.config() };
    let database = open(&args.db, &options)?;
    let engine = Arc::new(Engine::new(database));
    let config = ServerConfig {
        listen: args.listen,
        limits: Limits { timeout: args.timeout.map(Duration::from_secs_f64), ..Limits::default() },
        allow_load: args.allow_load,
        read_only: args.read_only,
        shutdown_deadline: deadline,
    };
    let mut announcement = None;
    let announce = |address| {
        announcement = running::Announcement::write(&args.db, address);
        eprintln!("snowmelt: serving {} at http://{address}/sparql", args.db.display());
    };
    let stopped = async move {
        while !stop.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let served = serve(engine, config, announce, stopped);
    drop(announcement);
    served?;
    Ok(())
}
