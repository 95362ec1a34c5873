//! An adapter file: everything the laboratory knows about an engine.
//!
//! ```toml
//! name = "postgresql"
//! title = "PostgreSQL"
//! answers = ["sql"]
//! install = ["apt-get install -y postgresql-15"]
//! data = "{folder}/db"                 # whose bytes are the size of the database
//! start = ["postgres", "-D", "{folder}/db", "-p", "{port}"]
//! ready = { tcp = "127.0.0.1:{port}", seconds = 60 }
//! [find]                               # programs, and a command that succeeds if installed
//! version = ["postgres", "--version"]
//! [[create]]                           # commands that make an empty database
//! run = ["initdb", "-D", "{folder}/db"]
//! ```
//!
//! Commands are lists of words; no shell is between. A file is checked when it is read, so that
//! a fault shows before hours are spent: unknown keys and placeholders are errors with their
//! line.

mod built_in;
mod check;
mod version;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::EngineError;
pub use built_in::names;
pub use version::Version;

/// A language that an engine answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// At an HTTP endpoint.
    Sparql,
    /// By a command.
    Sql,
}

/// An engine, as its file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Adapter {
    /// The word on the command line.
    pub name: String,
    /// The name in reports.
    pub title: String,
    /// Languages it answers.
    pub answers: Vec<Language>,
    /// Commands that install it, for people.
    pub install: Vec<String>,
    /// Facts that a reader of its figures must know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The account it runs as when we are root, for engines that refuse to be root.
    pub user: Option<String>,
    /// How to find it.
    #[serde(default)]
    pub find: Find,
    /// Numbers that are computed from the memory and threads it may use.
    #[serde(default)]
    pub numbers: BTreeMap<String, Share>,
    /// Environment variables of all its commands.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Files that are written before anything is run.
    #[serde(default)]
    pub file: Vec<WrittenFile>,
    /// Commands that make an empty database.
    #[serde(default)]
    pub create: Vec<Action>,
    /// How a data set is loaded.
    pub load: Option<LoadCommands>,
    /// How tables are loaded: scripts and CSV files in the folder `{data}`.
    pub load_tables: Option<LoadCommands>,
    /// The server, in the foreground.
    pub start: Vec<String>,
    /// When it is ready.
    pub ready: Ready,
    /// How it is stopped; by SIGTERM unless said otherwise.
    #[serde(default)]
    pub stop: Stop,
    /// The folder or file of the stored data.
    pub data: String,
    /// Address of its SPARQL endpoint.
    pub endpoint: Option<String>,
    /// The graph its data is in, if not the default graph.
    pub default_graph: Option<String>,
    /// Other commands, by name; they can have placeholders of their own.
    #[serde(default)]
    pub commands: BTreeMap<String, Vec<String>>,
    /// A process that asks statements, one after the other.
    pub session: Option<SessionCommand>,
    /// Folder of the file, for the files it names; none for a built-in one.
    #[serde(skip)]
    pub(crate) beside: Option<PathBuf>,
}

/// How to find an engine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Find {
    /// Programs on the PATH or in `folders`, and paths of files.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Folders of programs beside the PATH; a `*` is any one name, later versions first.
    #[serde(default)]
    pub folders: Vec<String>,
    /// A command that succeeds if it is installed and tells its version.
    #[serde(default)]
    pub version: Vec<String>,
    /// The line of its output that has the version begins so; otherwise its first.
    #[serde(default)]
    pub version_line: String,
    /// The oldest version that the adapter is for.
    pub least: Option<Version>,
    /// The first version that it is not for any more.
    pub below: Option<Version>,
}

/// A part of the memory or threads, in units.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Share {
    /// The whole.
    pub of: Whole,
    /// The part of it.
    pub share: f64,
    /// Its unit in bytes or threads; rounded down, at least 1.
    pub unit: f64,
}

/// A quantity that is given to an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Whole {
    /// Bytes of memory.
    Memory,
    /// Processors.
    Threads,
}

/// A file that the engine needs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WrittenFile {
    /// Where it is written.
    pub path: String,
    /// Its text.
    pub text: Option<String>,
    /// A file beside the adapter whose text it is; not filled.
    pub from: Option<String>,
}

/// A command, once or in several sessions side by side.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Action {
    /// The words.
    pub run: Vec<String>,
    /// Sessions that run it at the same time.
    pub sessions: Option<String>,
}

/// How a data set is loaded.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LoadCommands {
    /// Whether its server runs meanwhile.
    pub server: ServerState,
    /// The commands, one after the other.
    pub steps: Vec<Action>,
}

/// A process that reads statements from its input and answers them one by one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SessionCommand {
    /// The words.
    pub run: Vec<String>,
    /// Sent for a statement `{text}`: rows come back as lines, fields with `|` between them, then
    /// the line `{mark} false`, or `{mark} true REASON` of a statement that failed.
    pub ask: String,
}

/// Whether a server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// It runs.
    Running,
    /// It does not.
    Stopped,
}

/// When a server is ready: all of what is given holds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ready {
    /// Something accepts connections at this address.
    pub tcp: Option<String>,
    /// A GET of this address is answered with a status below 400.
    pub http: Option<String>,
    /// A command succeeds.
    #[serde(default)]
    pub command: Vec<String>,
    /// Time limit.
    pub seconds: u64,
}

/// How a server is stopped.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Stop {
    /// The command that asks it to; SIGTERM without one.
    #[serde(default)]
    pub command: Vec<String>,
    /// Time limit, after which it is killed.
    #[serde(default = "Stop::default_seconds")]
    pub seconds: u64,
}

impl Default for Stop {
    fn default() -> Self {
        Self { command: Vec::new(), seconds: Self::default_seconds() }
    }
}

impl Stop {
    fn default_seconds() -> u64 {
        60
    }
}

impl Adapter {
    /// The built-in adapter of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Self, EngineError> {
        let Some(text) = built_in::text(name) else {
            return Err(EngineError::Unknown {
                name: name.into(),
                known: names().collect::<Vec<_>>().join(", "),
            });
        };
        check::parse(text, &format!("adapter {name}"), None)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is wrong; the error names the line.
    pub fn read(path: &Path) -> Result<Self, EngineError> {
        let text = std::fs::read_to_string(path).map_err(|e| EngineError::file("read", path, e))?;
        check::parse(&text, &path.display().to_string(), Some(crate::error::folder_of(path)))
    }

    /// The text of a file beside the adapter.
    pub(crate) fn text_beside(&self, name: &str) -> Result<String, EngineError> {
        match &self.beside {
            None => built_in::side_file(name).map(str::to_owned).ok_or_else(|| EngineError::Cannot {
                engine: self.title.clone(),
                what: format!("file {name}"),
            }),
            Some(folder) => {
                let path = folder.join(name);
                std::fs::read_to_string(&path).map_err(|e| EngineError::file("read", &path, e))
            }
        }
    }

    /// True if it answers queries of that language.
    pub fn can(&self, language: Language) -> bool {
        self.answers.contains(&language)
    }

    /// The load of data for queries of that language.
    pub fn load_for(&self, language: Language) -> Option<&LoadCommands> {
        match language {
            Language::Sparql => self.load.as_ref(),
            Language::Sql => self.load_tables.as_ref(),
        }
    }

    /// The install lines as one.
    pub fn install_line(&self) -> String {
        self.install.join(" && ")
    }
}
