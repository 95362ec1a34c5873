//! The commands `backup`, `check`, `compact` and `stats` beside a running server, over a Unix
//! socket in the database's directory.
//!
//! 1. The client connects to `control` and sends one line of JSON: a [`Request`].
//! 2. The server checks the user of the client: it answers root and the user it runs as.
//! 3. It sends lines of JSON: any number of [`Reply::Progress`], then one other [`Reply`]. The
//!    request is a command's arguments and the last reply what the command prints, so both
//!    processes are of one version; another version is refused.
//! 4. A client that closes its sending side, or goes away, cancels what it asked for.
//!
//! The socket's file goes when the server ends. One that a killed server left is replaced by the
//! next: only one process has a database open for writing.

mod listen;
mod perform;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use snowmelt_database::meters::{MeterScope, Sample};
use snowmelt_graph::CompactTerms;

pub use listen::ControlSocket;
pub(crate) use listen::answer_until;

/// Name of the socket.
pub const FILE_NAME: &str = "control";
/// Version of the protocol.
pub const VERSION: u32 = 4;
/// Most bytes of a request.
pub const MOST_REQUEST_BYTES: usize = 64 << 10;

/// A client's request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// [`VERSION`]
    pub version: u32,
    /// the command
    pub command: Command,
}

/// A command and its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// what is stored
    Stats,
    /// statistics that estimate
    Statistics,
    /// all meters
    Meters,
    /// count anew
    Reset(MeterScope),
    /// verify everything
    Check,
    /// reclaim terms, move pages into order and give space back
    Compact {
        /// whether terms without quads are reclaimed
        terms: CompactTerms,
    },
    /// copy the database; paths are absolute
    Backup {
        /// the directory of the copy
        target: PathBuf,
        /// where its data goes; none: into the directory
        stripes: Vec<PathBuf>,
    },
    /// add the database to a set of backups, whose path is absolute
    BackupToSet {
        /// the directory of the set
        set: PathBuf,
    },
}

/// A server's reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// how far it is
    Progress {
        /// what is being done
        step: String,
        /// units done
        done: u64,
        /// units to do; 0 when that is not known
        total: u64,
    },
    /// the answer to [`Command::Stats`] and [`Command::Statistics`]
    Stats {
        /// for people
        table: String,
        /// for programs
        json: serde_json::Value,
    },
    /// the answer to [`Command::Meters`]: the reader makes tables and differences of it
    Meters(Vec<Sample>),
    /// the answer to [`Command::Reset`]
    Reset,
    /// the answer to [`Command::Check`]
    Checked {
        /// pages read
        pages: u64,
        /// rows read
        rows: u64,
        /// strings read
        strings: u64,
        /// the first problems
        problems: Vec<String>,
        /// how many there are
        problem_count: u64,
    },
    /// the answer to [`Command::Compact`]
    Compacted {
        /// bytes of data before
        before: u64,
        /// and after
        after: u64,
        /// what became of the terms, in words
        terms: String,
        /// pages moved, into key order or to the front
        moved: u64,
    },
    /// the answer to [`Command::Backup`]
    BackedUp {
        /// pages copied
        pages: u64,
        /// the transaction the copy is as of
        txn: u64,
    },
    /// the answer to [`Command::BackupToSet`]
    AddedToSet {
        /// the part; none: nothing has changed
        name: Option<String>,
        /// pages copied
        pages: u64,
        /// the transaction it is as of
        txn: u64,
    },
    /// the command failed, or was cancelled
    Failed {
        /// why
        message: String,
    },
}

/// An address for the socket in `dir`. An address has at most 108 bytes; the way through a
/// descriptor of the directory, which must be open while the address is used, is always short
/// enough.
pub struct Address {
    /// to be bound or connected to
    pub path: PathBuf,
    _dir: Option<File>,
}

impl Address {
    /// The address of the socket of a database.
    pub fn in_dir(dir: &Path) -> io::Result<Self> {
        /// Leaves room for the zero at the end.
        const MOST_BYTES: usize = 100;
        let path = dir.join(FILE_NAME);
        if path.as_os_str().len() <= MOST_BYTES {
            return Ok(Self { path, _dir: None });
        }
        let dir = File::open(dir)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{FILE_NAME}", dir.as_raw_fd()));
        Ok(Self { path, _dir: Some(dir) })
    }
}
