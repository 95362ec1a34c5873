//! `snowmelt serve`: the SPARQL Protocol until SIGTERM or Ctrl-C.

use std::fs::DirBuilder;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;

use crate::answer::DescribeArgs;
use crate::running;
use snowmelt_base::{signals, size, tell};
use snowmelt_database::Database;
use snowmelt_graph::load::Contexts;
use snowmelt_server::logs::{AccessForm, Log, Logs};
use snowmelt_server::tls::Tls;
use snowmelt_server::tokens::Keeper;
use snowmelt_server::{Cors, Folder, QueryStyle, Served, ServerConfig, ServerLimits, serve};
use snowmelt_sparql::{LoadPermission, QueryEngine};
use snowmelt_store::{Mode, StoreConfig};
use snowmelt_switches::create::CreateArgs;
use snowmelt_switches::open::{OpenArgs, open, open_or_create};
use snowmelt_switches::published;
use snowmelt_switches::service::ServiceArgs;
use snowmelt_switches::texts::TextArgs;

/// Serve the SPARQL Protocol over HTTP.
#[derive(clap::Args)]
pub struct ServeArgs {
    /// The database directory; a missing or empty one becomes a new database. One with databases
    /// in it serves each of them below its name. Or the address of a published database, as
    /// s3://BUCKET/PREFIX
    db: Option<PathBuf>,
    /// The same, for a configuration file
    #[arg(long, value_name = "DIR", conflicts_with = "db")]
    data: Option<PathBuf>,
    /// Address and port, or a port alone; one that others reach needs --tokens or --public-read
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878", value_parser = address)]
    listen: SocketAddr,
    /// Where LOAD may read from: a folder or a file [default: nowhere]
    #[arg(long, value_name = "DIR", value_parser = LoadPermission::new)]
    allow_load: Vec<LoadPermission>,
    /// A context that uploads in JSON-LD may name, never fetched: ADDRESS=FILE, schema.org=FILE, or
    /// a folder with the file example.org/a for https://example.org/a (repeatable)
    #[arg(long, value_name = "CONTEXT")]
    context: Vec<String>,
    /// Answer to this name, too, besides localhost and loopback addresses (repeatable)
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Take the addresses of clients from the Forwarded or X-Forwarded-For of this proxy
    /// (repeatable)
    #[arg(long, value_name = "ADDRESS")]
    trusted_proxy: Vec<IpAddr>,
    /// Let pages of this site ask, like https://example.org (repeatable); *: pages of any site,
    /// which may then query and not change data
    #[arg(long, value_name = "ORIGIN")]
    cors: Vec<String>,
    /// Encrypt connections: the certificate in PEM, with those that sign it. SIGHUP has both
    /// files read again, and logs opened again
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its private key in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Let those ask that have a token of this file: see snowmelt token
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Let all query, and those change data that have a token which may
    #[arg(long)]
    public_read: bool,
    /// Let queries use the prefixes that are kept with a database (snowmelt prefix) without
    /// declaring them
    #[arg(long)]
    assume_prefixes: bool,
    #[command(flatten)]
    describe: DescribeArgs,
    /// Answer queries and refuse updates; nothing is written, and others may read the database
    /// at the same time
    #[arg(long)]
    read_only: bool,
    /// At SIGTERM or Ctrl-C, let queries and updates run on for so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    shutdown_deadline: Seconds,
    #[command(flatten)]
    service: ServiceArgs,
    #[command(flatten)]
    datasets: DatasetArgs,
    #[command(flatten)]
    create: CreateArgs,
    #[command(flatten)]
    open: OpenArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    texts: TextArgs,
    #[command(flatten)]
    logs: LogArgs,
}

/// Several databases in one server.
#[derive(clap::Args)]
#[command(next_help_heading = "Datasets")]
struct DatasetArgs {
    /// The directory is one of databases, also while there is none in it
    #[arg(long)]
    datasets: bool,
    /// The least memory that one is opened with; --memory is for all together
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "64MiB")]
    dataset_memory: u64,
    /// Close one that has had no request for so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "300")]
    dataset_idle: Seconds,
    /// Let administrators copy them below this directory
    #[arg(long, value_name = "DIR")]
    backup_dir: Option<PathBuf>,
}

/// Logs that are kept; - is standard error.
#[derive(clap::Args)]
#[command(next_help_heading = "Logs")]
struct LogArgs {
    /// Write a line for each request into a file
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,
    /// Form of these lines: common (Common Log Format) or json
    #[arg(long, value_name = "FORM", value_parser = access_form, default_value = "common")]
    access_form: AccessForm,
    /// Write queries and updates that take long into a file, as JSON with plan and reads
    #[arg(long, value_name = "FILE")]
    slow_log: Option<PathBuf>,
    /// How long that is, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "1")]
    slow_after: Seconds,
    /// Write each change into a file, as JSON: when, who, what
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
}

impl LogArgs {
    fn open(&self) -> anyhow::Result<Logs> {
        let open = |path: &Option<PathBuf>| {
            let open =
                |path: &PathBuf| Log::open(path).with_context(|| format!("cannot open {}", path.display()));
            path.as_ref().map(open).transpose()
        };
        Ok(Logs {
            access: open(&self.access_log)?,
            access_form: self.access_form,
            slow: open(&self.slow_log)?.map(|log| (log, self.slow_after.0)),
            audit: open(&self.audit_log)?,
        })
    }
}

fn access_form(name: &str) -> Result<AccessForm, String> {
    match name {
        "common" => Ok(AccessForm::Common),
        "json" => Ok(AccessForm::Json),
        _ => Err("use common or json".to_owned()),
    }
}

/// Bounds on what clients may ask for; the defaults are those of [`ServerLimits`].
#[derive(clap::Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Cancel queries and updates that run longer than this many seconds; 0: never
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value_t = default_timeout())]
    timeout: Seconds,
    /// Queries that run at the same time; others wait
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value_t = ServerLimits::default().queries)]
    queries: usize,
    /// Threads that one query may use, whatever it asks for [default: as many as there are
    /// processors]
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value_t = ServerLimits::default().threads, hide_default_value = true)]
    threads: usize,
    /// Updates and uploads on their way at the same time; others wait
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value_t = ServerLimits::default().changes)]
    changes: usize,
    /// How long they wait before they are refused (503)
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value_t = Seconds(ServerLimits::default().wait))]
    wait: Seconds,
    /// Largest query, and largest operation of an update but for INSERT DATA and DELETE DATA (413)
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value_t = ServerLimits::default().body_bytes)]
    max_update: u64,
    /// Largest graph or update that is uploaded (413)
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value_t = ServerLimits::default().document_bytes)]
    max_document: u64,
    /// Connections at the same time; others are refused (503)
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value_t = ServerLimits::default().connections)]
    connections: usize,
    /// Connections of one address; those of this machine and of a --trusted-proxy are not counted,
    /// but the requests that a proxy passes on for one are (503)
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value_t = ServerLimits::default().per_address)]
    connections_per_address: usize,
    /// The head of a request must come within so many seconds (408)
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value_t = Seconds(ServerLimits::default().head))]
    head_deadline: Seconds,
    /// A connection without a request is closed after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value_t = Seconds(ServerLimits::default().idle))]
    idle_deadline: Seconds,
    /// A client that sends less than 16 KiB of a body (408), or reads nothing of its answer,
    /// for so many seconds is closed
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value_t = Seconds(ServerLimits::default().stall))]
    stall_deadline: Seconds,
    /// An update waits for endpoints for so many seconds in all, since other changes wait
    /// meanwhile; 0: without end
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value_t = default_service_wait(), help_heading = "Federation")]
    service_wait: Seconds,
}

impl LimitArgs {
    fn limits(&self) -> ServerLimits {
        ServerLimits {
            queries: self.queries,
            threads: self.threads,
            changes: self.changes,
            wait: self.wait.0,
            timeout: Some(self.timeout.0).filter(|timeout| !timeout.is_zero()),
            body_bytes: self.max_update,
            document_bytes: self.max_document,
            connections: self.connections,
            per_address: self.connections_per_address,
            head: self.head_deadline.0,
            idle: self.idle_deadline.0,
            stall: self.stall_deadline.0,
            remote_wait: Some(self.service_wait.0).filter(|wait| !wait.is_zero()),
        }
    }
}

/// An address with a port, or a port of 127.0.0.1.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>();
    let of_port = port.ok().map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let named = || text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    of_port
        .or_else(|| text.parse().ok())
        .or_else(|| named().map(|port: u16| SocketAddr::from(([127, 0, 0, 1], port))))
        .ok_or_else(|| "give a port (7878), or an address and a port (127.0.0.1:7878)".to_owned())
}

/// A time on the command line, in seconds.
#[derive(Clone, Copy, Debug)]
struct Seconds(Duration);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.as_secs_f64())
    }
}

fn default_service_wait() -> Seconds {
    Seconds(ServerLimits::default().remote_wait.unwrap_or_default())
}

fn default_timeout() -> Seconds {
    Seconds(ServerLimits::default().timeout.unwrap_or_default())
}

fn seconds(text: &str) -> Result<Seconds, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds")?;
    // Later times than in ten years cannot be told from never.
    const MOST: f64 = 315_360_000.0;
    if (0.0..=MOST).contains(&seconds) {
        Ok(Seconds(Duration::from_secs_f64(seconds)))
    } else {
        Err(format!("use 0 to {MOST} seconds"))
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    /// Each slot may take a thread.
    const MOST: usize = 10_000;
    match text.parse() {
        Ok(n) if (1..=MOST).contains(&n) => Ok(n),
        _ => Err(format!("use 1 to {MOST}")),
    }
}

/// Runs the command.
pub fn run(mut args: ServeArgs) -> anyhow::Result<()> {
    let stop = signals::stop_flag()?;
    let deadline = args.shutdown_deadline.0;
    let Some(dir) = args.db.clone().or(args.data.clone()) else {
        anyhow::bail!("which database? name its directory, or put data = \"DIR\" into the configuration");
    };
    args.read_only |= published::address(&dir).is_some();
    let is_folder = args.datasets.datasets || holds_databases(&dir);
    let served = if is_folder { Served::Many(folder(&args, &dir)?) } else { Served::One(one(&args, &dir)?) };
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some(Arc::new(Tls::of_files(cert, key)?)),
        _ => None,
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    let logs = Arc::new(args.logs.open()?);
    let (renewed, reopened) = (tls.clone(), Arc::clone(&logs));
    signals::hear(&[signals::SIGHUP], move |_| reload(renewed.as_deref(), &reopened))?;
    let config = ServerConfig {
        listen: args.listen,
        tls,
        limits: args.limits.limits(),
        allow_hosts: args.allow_host,
        trusted_proxies: args.trusted_proxy,
        cors: Cors::from_origins(&args.cors)?,
        keeper: Arc::new(match (&args.tokens, args.public_read) {
            (Some(file), public_read) => Keeper::of_file(file, public_read)?,
            (None, true) => Keeper::public_read(),
            (None, false) => Keeper::open_to_all(),
        }),
        logs,
        allow_load: args.allow_load,
        remote: args.service.endpoints(args.open.longest_term),
        contexts: Contexts::from_args(&args.context)?,
        style: QueryStyle { describe: args.describe.form(), assume_prefixes: args.assume_prefixes },
        read_only: args.read_only,
        // A database that is only read is not written to for this, either: commands open it
        // beside the server.
        control: (!args.read_only && !is_folder).then(|| dir.clone()),
        shutdown_deadline: deadline,
    };
    let mut announcement = None;
    let announce = |address| {
        let is_alone = !args.read_only && !is_folder;
        announcement = is_alone.then(|| running::Announcement::write(&dir, address)).flatten();
        let path = if is_folder { "datasets" } else { "sparql" };
        tell!("snowmelt: serving {} at {scheme}://{address}/{path}", dir.display());
    };
    let stopped = async move {
        while !stop.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let served = serve(served, config, announce, stopped);
    drop(announcement);
    served?;
    Ok(())
}

/// SIGHUP: reads the certificate again, and goes on in new logs.
fn reload(tls: Option<&Tls>, logs: &Logs) {
    match tls.map(Tls::reload) {
        Some(Ok(())) => tell!("snowmelt: the certificate was read again"),
        Some(Err(error)) => tell!("snowmelt: the certificate stays as it was: {error}"),
        None => {}
    }
    match logs.reopen() {
        Ok(()) => tell!("snowmelt: the logs were opened again"),
        Err(error) => tell!("snowmelt: a log goes on where it was: {error}"),
    }
}

/// The settings of the store.
fn options(args: &ServeArgs) -> StoreConfig {
    // Changes that the deadline leaves unwritten stay in the journal.
    let close_ms = args.shutdown_deadline.0.as_millis() as u64;
    let mode = if args.read_only { Mode::ReadOnly } else { Mode::ReadWrite };
    StoreConfig { close_ms, mode, ..args.open.config_to_create(&args.create) }
}

fn one(args: &ServeArgs, dir: &Path) -> anyhow::Result<Arc<QueryEngine>> {
    let options = options(args);
    let database = match args.read_only {
        true if published::address(dir).is_some() => args.open.read(dir, &options)?,
        true => open(dir, &options)?,
        false => open_or_create(dir, &args.create, &options)?,
    };
    Ok(Arc::new(QueryEngine::with_text_limits(database, args.texts.limits())))
}

/// Whether a directory is no database and holds some.
fn holds_databases(dir: &Path) -> bool {
    let below = || std::fs::read_dir(dir).into_iter().flatten().flatten();
    !Database::is_at(dir) && below().any(|entry| Database::is_at(&entry.path()))
}

fn folder(args: &ServeArgs, dir: &Path) -> anyhow::Result<Folder> {
    args.create.refuse_stripes()?;
    let mut maker = DirBuilder::new();
    let made = maker.recursive(true).mode(0o700).create(dir);
    made.with_context(|| format!("cannot make {}", dir.display()))?;
    if Database::is_at(dir) {
        anyhow::bail!("{} is a database: --datasets needs a directory of databases", dir.display());
    }
    if !args.read_only {
        snowmelt_store::remove_dropped(dir)?;
    }
    let (options, create, texts) = (options(args), args.create.clone(), args.texts.limits());
    let memory = options.memory_bytes;
    let read_only = args.read_only;
    let open = move |path: &Path, memory_bytes: u64, make: bool| {
        // The budget is that of all; a pool takes its part of it.
        let options = StoreConfig { memory_bytes, ..options.clone() };
        let database = match make && !read_only {
            true => open_or_create(path, &create, &options),
            false => open(path, &options),
        };
        let database = database.map_err(|error| format!("{error:#}"))?;
        Ok(Arc::new(QueryEngine::with_text_limits(database, texts)))
    };
    Ok(Folder {
        dir: dir.to_owned(),
        memory,
        floor: args.datasets.dataset_memory.min(memory),
        idle: args.datasets.dataset_idle.0,
        backups: args.datasets.backup_dir.clone(),
        open: Arc::new(open),
    })
}
