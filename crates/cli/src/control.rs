//! Asking the server that has a database open, over the socket in its directory
//! ([`snowmelt_server::control`]).

use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use snowmelt_graph::{GraphDatabase, GraphError};
use snowmelt_server::control::{Address, Command, FILE_NAME, Reply, Request, VERSION};
use snowmelt_store::{StoreConfig, StoreError};

use crate::foreign;
use snowmelt_base::signals;
use snowmelt_switches::open::OpenArgs;
use snowmelt_switches::published;

/// A database as a command finds it.
pub enum Found {
    /// it is free
    Open(Arc<GraphDatabase>),
    /// a server has it open, and runs commands for this process
    Served(Client),
}

/// Opens a database, or finds the server that has it open.
pub fn find(path: &Path, config: &StoreConfig) -> anyhow::Result<Found> {
    published::refuse(path)?;
    let opened = GraphDatabase::open(path, config).with_context(|| format!("cannot open {}", path.display()));
    found(path, opened)
}

/// Opens a database to read it, or finds the server that has it open.
pub fn find_to_read(path: &Path, open: &OpenArgs) -> anyhow::Result<Found> {
    found(path, open.open_to_read(path))
}

fn found(path: &Path, opened: anyhow::Result<Arc<GraphDatabase>>) -> anyhow::Result<Found> {
    let is_lock =
        |e: &anyhow::Error| matches!(e.downcast_ref(), Some(GraphError::Store(StoreError::Locked { .. })));
    let locked = opened.as_ref().is_err_and(is_lock);
    match (opened, locked) {
        (Err(error), true) if path.join(FILE_NAME).exists() => {
            let why = || format!("{error}; it was asked over {FILE_NAME} and does not answer");
            Client::connect(path).map(Found::Served).with_context(why)
        }
        (opened, _) => Ok(Found::Open(opened?)),
    }
}

/// A connection to a server.
pub struct Client {
    stream: UnixStream,
    socket: PathBuf,
}

impl Client {
    /// Connects to the server of a database.
    ///
    /// # Errors
    /// There is none.
    pub fn connect(dir: &Path) -> io::Result<Self> {
        let address = Address::in_dir(dir)?;
        Ok(Self { stream: UnixStream::connect(&address.path)?, socket: dir.join(FILE_NAME) })
    }

    /// Sets the time after which a read without an answer fails.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn within(self, patience: Duration) -> anyhow::Result<Self> {
        self.stream.set_read_timeout(Some(patience))?;
        Ok(self)
    }

    /// Has the server run a command, shows its progress, and returns its last reply. Ctrl-C
    /// cancels.
    pub fn ask(self, command: Command) -> anyhow::Result<Reply> {
        let socket = self.socket.display();
        let mut line = serde_json::to_vec(&Request { version: VERSION, command })?;
        line.push(b'\n');
        (&self.stream).write_all(&line).with_context(|| format!("cannot ask over {socket}"))?;
        let done = Arc::new(AtomicBool::new(false));
        let watcher = self.cancel_at_stop(&done)?;
        let last = self.replies().with_context(|| format!("the server's answer over {socket}"));
        done.store(true, Ordering::Relaxed);
        let _ = watcher.join();
        match last? {
            Reply::Failed { message } => bail!("the server that has the database open: {message}"),
            reply => Ok(reply),
        }
    }

    /// Closes the sending side at Ctrl-C, by which the server cancels the command.
    fn cancel_at_stop(&self, done: &Arc<AtomicBool>) -> anyhow::Result<std::thread::JoinHandle<()>> {
        let (stop, done, stream) = (signals::stop_flag()?, Arc::clone(done), self.stream.try_clone()?);
        Ok(std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                if stop.load(Ordering::Relaxed) {
                    let _ = stream.shutdown(Shutdown::Write);
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }))
    }

    fn replies(&self) -> anyhow::Result<Reply> {
        let bar = bar()?;
        for line in BufReader::new(&self.stream).lines() {
            match reply(&line.map_err(late)?)? {
                Reply::Progress { step, done, total } => show(&bar, step, done, total),
                reply => {
                    bar.finish_and_clear();
                    return Ok(reply);
                }
            }
        }
        bail!("it broke off: has the server ended?")
    }
}

/// A reply, its text fit for a terminal.
fn reply(line: &str) -> serde_json::Result<Reply> {
    serde_json::from_value(foreign::readable(serde_json::from_str(line)?))
}

/// An error of reading; a timeout in words.
fn late(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "it does not answer"),
        _ => error,
    }
}

/// A bar that shows how far a command is.
pub fn bar() -> anyhow::Result<ProgressBar> {
    let style = ProgressStyle::with_template("{msg:<24} [{bar:40}] {human_pos}/{human_len} {eta}")?;
    Ok(ProgressBar::new(0).with_style(style))
}

/// Shows a step of a command, and how much of it is done.
pub fn show(bar: &ProgressBar, step: String, done: u64, total: u64) {
    bar.set_message(step);
    bar.set_length(total.max(done));
    bar.set_position(done);
}

/// A reply that does not answer the command.
pub fn unexpected(reply: &Reply) -> anyhow::Error {
    anyhow::anyhow!("the server answered something else: {reply:?}")
}
