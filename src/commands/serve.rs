//! `snowmelt serve`: the SPARQL Protocol until SIGTERM or Ctrl-C.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use snowmelt::open::OpenArgs;
use snowmelt::{running, signals};
use snowmelt_server::{Limits, ServerConfig, serve};
use snowmelt_sparql::Engine;

/// Serve the SPARQL Protocol over HTTP on loopback.
#[derive(clap::Args)]
pub struct Args {
    /// The database directory
    db: PathBuf,
    /// Address and port, loopback only
    #[arg(long, default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// Cancel queries that run longer than this many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    #[command(flatten)]
    open: OpenArgs,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<()> {
    let stop = signals::stop_flag()?;
    let database = args.open.open(&args.db)?;
    let engine = Arc::new(Engine::new(database));
    let config = ServerConfig {
        listen: args.listen,
        limits: Limits { timeout: args.timeout.map(Duration::from_secs_f64), ..Limits::default() },
        shutdown_deadline: Duration::from_secs(10),
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
