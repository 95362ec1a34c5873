//! An engine in a folder: its adapter with values in place of placeholders.
//!
//! 1. `find`: is it installed, and which version?
//! 2. `create`: an empty folder, its files, its empty database.
//! 3. `load`: a data set, with the server running or not, as the adapter says.
//! 4. `start`: a server, ready when this returns.
//! 5. `command`: a command of the adapter by name, and its output.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use snowmelt_lab::undo::Undo;

use crate::adapter::{Action, Adapter, Find, Language, ServerState, Version, Whole};
use crate::cold::bytes_on_disk;
use crate::error::EngineError;
use crate::process::{Process, Runner, UserAccount, find_program};
use crate::server::Server;
use crate::session::Session;
use crate::values::Values;

/// A limit for commands that have none: longer than any load that is waited for.
const NO_LIMIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Settings that are the same for all engines of a comparison.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Each engine gets a folder in it.
    pub folder: PathBuf,
    /// Bytes of memory.
    pub memory: u64,
    /// Processors.
    pub threads: usize,
    /// The port, and the one after it as the second; free ones without.
    pub port: Option<u16>,
    /// The folder of engines that were installed by hand.
    pub engines: PathBuf,
    /// The program `snowmelt`.
    pub snowmelt: PathBuf,
    /// The data set to load, N-Triples, or a folder of tables; for engines that load nothing it
    /// need not be there.
    pub data: PathBuf,
    /// A folder of the same in as many files as there are processors.
    pub parts: PathBuf,
}

impl Settings {
    /// With whole paths: programs run in folders of their own.
    fn absolute(&self) -> Result<Self, EngineError> {
        let whole =
            |path: &Path| std::path::absolute(path).map_err(|e| EngineError::file("complete", path, e));
        Ok(Self {
            folder: whole(&self.folder)?,
            engines: whole(&self.engines)?,
            snowmelt: whole(&self.snowmelt)?,
            data: whole(&self.data)?,
            parts: whole(&self.parts)?,
            ..self.clone()
        })
    }
}

/// The work that engines are part of: how it is undone, and whether it goes on.
#[derive(Clone)]
pub struct Work {
    /// Stops what was started if this process is killed.
    pub undo: Undo,
    /// Ends all waiting when set.
    pub stop: Arc<AtomicBool>,
}

/// An installed engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its version, as it prints it.
    pub version: String,
}

/// Why there is no version.
enum Absent {
    Program(String),
    Fails(String),
}

/// An adapter in a folder.
pub struct Engine {
    adapter: Adapter,
    /// Folders of its programs beside the PATH.
    folders: Vec<String>,
    values: Values,
    folder: PathBuf,
    account: Option<UserAccount>,
    work: Work,
}

impl Engine {
    /// Nothing is run or written yet.
    ///
    /// # Errors
    /// No port is free, or there is no working directory to complete paths with.
    pub fn new(adapter: Adapter, settings: &Settings, work: Work) -> Result<Self, EngineError> {
        let settings = settings.absolute()?;
        let folder = settings.folder.join(&adapter.name);
        let is_root = rustix::process::geteuid().is_root();
        let account = adapter.user.as_deref().filter(|_| is_root).and_then(UserAccount::named);
        let [port, second] = match settings.port {
            Some(port) => [port, port.saturating_add(1)],
            None => free_ports()?,
        };
        let mut values = Values::default();
        values.set("name", &adapter.name);
        values.set("folder", folder.display());
        values.set("port", port);
        values.set("second-port", second);
        values.set("memory", settings.memory);
        values.set("threads", settings.threads);
        values.set("engines", settings.engines.display());
        values.set("snowmelt", settings.snowmelt.display());
        values.set("data", settings.data.display());
        values.set("parts", settings.parts.display());
        let own =
            std::env::var("USER").unwrap_or_else(|_| if is_root { "root".into() } else { "nobody".into() });
        values.set("user", adapter.user.clone().filter(|_| is_root).unwrap_or(own));
        for (name, share) in &adapter.numbers {
            let whole = match share.of {
                Whole::Memory => settings.memory as f64,
                Whole::Threads => settings.threads as f64,
            };
            values.set(name, ((whole * share.share / share.unit) as u64).max(1));
        }
        let folders = folders_of(&adapter.find);
        Ok(Self { adapter, folders, values, folder, account, work })
    }

    /// Its adapter.
    pub fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    /// The value of a placeholder.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name)
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Folders of its programs beside the PATH.
    pub fn folders(&self) -> &[String] {
        &self.folders
    }

    /// The folder or file of its stored data.
    pub fn data(&self) -> PathBuf {
        self.values.fill(&self.adapter.data).into()
    }

    /// The bytes it has stored.
    ///
    /// # Errors
    /// Its folder cannot be read.
    pub fn bytes(&self) -> Result<u64, EngineError> {
        bytes_on_disk(&self.data())
    }

    /// The address of its endpoint.
    pub fn endpoint(&self) -> Option<String> {
        self.adapter.endpoint.as_deref().map(|url| self.values.fill(url))
    }

    /// Looks whether it is installed, in a version that the adapter is for.
    ///
    /// # Errors
    /// A part is missing, does not run, or is of another version; the message says how it is
    /// installed.
    pub fn find(&self) -> Result<Found, EngineError> {
        // The version first: an old one lacks parts, and is no missing engine for that.
        let version = self.version();
        if let Ok(Some(line)) = &version {
            self.check_version(line)?;
        }
        let needs = self.values.fill_all(&self.adapter.find.needs);
        if let Some(need) = needs.iter().find(|need| find_program(need, &self.folders).is_none()) {
            return Err(self.missing(format!("no {need}")));
        }
        let is_there = !needs.is_empty();
        match version {
            Ok(version) => Ok(Found { version: version.unwrap_or_default() }),
            Err(Absent::Program(name)) => Err(self.missing(format!("no {name}"))),
            Err(Absent::Fails(why)) if is_there => {
                let (engine, install) = (self.adapter.title.clone(), self.install());
                Err(EngineError::Unusable { engine, why, install })
            }
            Err(Absent::Fails(why)) => Err(self.missing(why)),
        }
    }

    /// The line with its version, as it prints it; none where the adapter does not ask for one.
    fn version(&self) -> Result<Option<String>, Absent> {
        let find = &self.adapter.find;
        let words = self.values.fill_all(&find.version);
        let Some((name, rest)) = words.split_first() else { return Ok(None) };
        let program = find_program(name, &self.folders).ok_or_else(|| Absent::Program(name.clone()))?;
        let output = Command::new(program).args(rest).envs(self.environment()).output();
        let output = output.map_err(|error| Absent::Fails(format!("`{}`: {error}", words.join(" "))))?;
        let text =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let line = lines.find(|line| line.starts_with(&find.version_line)).unwrap_or_default().to_owned();
        // Some print their version and fail.
        if !output.status.success() && (line.is_empty() || find.version_line.is_empty()) {
            let last = text.lines().last().unwrap_or("no output");
            return Err(Absent::Fails(format!("`{}` failed: {last}", words.join(" "))));
        }
        Ok(Some(line))
    }

    fn check_version(&self, line: &str) -> Result<(), EngineError> {
        let Find { least, below, .. } = &self.adapter.find;
        let Some(found) = Version::first_in(line) else { return Ok(()) };
        if least.as_ref().is_none_or(|least| found >= *least)
            && below.as_ref().is_none_or(|below| found < *below)
        {
            return Ok(());
        }
        let from = least.as_ref().map(|least| format!("{least} or later"));
        let until = below.as_ref().map(|below| format!("a version before {below}"));
        Err(EngineError::Version {
            engine: self.adapter.title.clone(),
            found: found.to_string(),
            wanted: from.into_iter().chain(until).collect::<Vec<_>>().join(" and "),
            install: self.install(),
        })
    }

    fn missing(&self, missing: String) -> EngineError {
        EngineError::Missing { engine: self.adapter.title.clone(), missing, install: self.install() }
    }

    fn install(&self) -> String {
        self.values.fill(&self.adapter.install_line())
    }

    /// Makes its folder anew, writes its files, and makes an empty database.
    ///
    /// # Errors
    /// The folder or a file cannot be made, or a command fails.
    pub fn create(&self) -> Result<(), EngineError> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder).map_err(|e| EngineError::file("remove", &self.folder, e))?;
        }
        fs::create_dir_all(&self.folder)
            .map_err(|e| EngineError::file("make the folder", &self.folder, e))?;
        self.give(&self.folder)?;
        for file in &self.adapter.file {
            let path = PathBuf::from(self.values.fill(&file.path));
            let text = match (&file.text, &file.from) {
                (Some(text), _) => self.values.fill(text),
                (None, from) => self.adapter.text_beside(from.as_deref().unwrap_or_default())?,
            };
            if let Some(above) = path.parent() {
                fs::create_dir_all(above).map_err(|e| EngineError::file("make the folder", above, e))?;
                self.give(above)?;
            }
            fs::write(&path, text).map_err(|e| EngineError::file("write", &path, e))?;
            self.give(&path)?;
        }
        self.adapter.create.iter().try_for_each(|action| self.act(action, &self.values))
    }

    /// Loads the data set, for queries of that language. The seconds it took, without starting
    /// and stopping a server for it.
    ///
    /// # Errors
    /// The adapter has no way to load, a command fails, or the server does.
    pub fn load(&self, language: Language) -> Result<f64, EngineError> {
        let section = if language == Language::Sql { "[load-tables]" } else { "[load]" };
        let load = self.adapter.load_for(language).ok_or_else(|| self.cannot(section))?;
        let server = match load.server {
            ServerState::Running => Some(self.start()?),
            ServerState::Stopped => None,
        };
        let begun = Instant::now();
        load.steps.iter().try_for_each(|action| self.act(action, &self.values))?;
        let seconds = begun.elapsed().as_secs_f64();
        server.map(Server::stop).transpose()?;
        Ok(seconds)
    }

    /// True if [`load`](Self::load) wants the data in parts.
    pub fn wants_parts(&self, language: Language) -> bool {
        let load = self.adapter.load_for(language);
        let words = load.iter().flat_map(|load| &load.steps).flat_map(|action| &action.run);
        words.into_iter().any(|word| word.contains("{parts}"))
    }

    /// Starts its server, which is ready when this returns. Dropping the server stops it.
    ///
    /// # Errors
    /// The port is in use, the server ends, or is not ready in time; the error has the end of its
    /// log.
    pub fn start(&self) -> Result<Server<'_>, EngineError> {
        self.check_ports()?;
        Server::start(self)
    }

    /// Looks whether its ports are free.
    ///
    /// # Errors
    /// Another program listens at one of them.
    pub fn check_ports(&self) -> Result<(), EngineError> {
        for name in ["port", "second-port"] {
            let port = self.values.get(name).and_then(|port| port.parse().ok()).unwrap_or(0);
            if TcpListener::bind(("127.0.0.1", port)).is_err() {
                return Err(EngineError::PortInUse { engine: self.adapter.title.clone(), port });
            }
        }
        Ok(())
    }

    /// Runs a command of the adapter, with values for its own placeholders; its output.
    ///
    /// # Errors
    /// There is no such command, or it fails; the error has the end of its messages.
    pub fn command(&self, name: &str, values: &[(&str, &str)]) -> Result<String, EngineError> {
        let words = self.adapter.commands.get(name).ok_or_else(|| self.cannot(&format!("command {name}")))?;
        let words = self.values.with(values).fill_all(words);
        let out = self.log_path(&format!("{name}.out"));
        let process = self.runner().spawn(&words, &self.fresh_log(name)?, Some(&out))?;
        self.wait_for(process, &words)?;
        fs::read_to_string(&out).map_err(|e| EngineError::file("read", &out, e))
    }

    /// Starts a session, while the server runs.
    ///
    /// # Errors
    /// The adapter has none, or its program cannot be started.
    pub fn session(&self) -> Result<Session<'_>, EngineError> {
        let command = self.adapter.session.as_ref().ok_or_else(|| self.cannot("[session]"))?;
        Session::start(self, command)
    }

    /// Runs an action in all its sessions, side by side.
    fn act(&self, action: &Action, values: &Values) -> Result<(), EngineError> {
        let words = values.fill_all(&action.run);
        let sessions = action.sessions.as_deref().map_or(Ok(1), |text| values.fill(text).parse::<usize>());
        let sessions = sessions.map_err(|_| self.cannot("number of sessions that is one"))?;
        let start = |i: usize| self.runner().spawn(&words, &self.fresh_log(&format!("command-{i}"))?, None);
        let started = (0..sessions.max(1)).map(start).collect::<Result<Vec<_>, _>>()?;
        started.into_iter().try_for_each(|process| self.wait_for(process, &words))
    }

    fn wait_for(&self, mut process: Process, words: &[String]) -> Result<(), EngineError> {
        match process.wait(NO_LIMIT, &|| self.is_interrupted()) {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(EngineError::Command {
                engine: self.adapter.title.clone(),
                command: words.join(" "),
                status: status.to_string(),
                log: process.log_tail(),
            }),
            None => Err(EngineError::Interrupted),
        }
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.work.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn values(&self) -> &Values {
        &self.values
    }

    pub(crate) fn runner(&self) -> Runner<'_> {
        Runner {
            engine: &self.adapter.title,
            folders: &self.folders,
            folder: &self.folder,
            account: self.account,
            environment: self.environment(),
            undo: &self.work.undo,
        }
    }

    fn environment(&self) -> Vec<(String, String)> {
        let filled = |(name, value): (&String, &String)| (name.clone(), self.values.fill(value));
        self.adapter.environment.iter().map(filled).collect()
    }

    fn cannot(&self, what: &str) -> EngineError {
        EngineError::Cannot { engine: self.adapter.title.clone(), what: what.into() }
    }

    /// Logs lie beside the folder, which may belong to another account.
    pub(crate) fn log_path(&self, name: &str) -> PathBuf {
        self.folder.with_file_name(format!("{}-{name}", self.adapter.name))
    }

    /// The path of an empty log.
    pub(crate) fn fresh_log(&self, name: &str) -> Result<PathBuf, EngineError> {
        let path = self.log_path(&format!("{name}.log"));
        fs::write(&path, "").map_err(|e| EngineError::file("create", &path, e))?;
        Ok(path)
    }

    /// Makes a file or folder the engine's account's.
    fn give(&self, path: &Path) -> Result<(), EngineError> {
        let Some(UserAccount { uid, gid }) = self.account else { return Ok(()) };
        chown(path, Some(uid), Some(gid)).map_err(|e| EngineError::file("change the owner of", path, e))
    }
}

/// The folders of an adapter, of later versions first; those that have all its programs before
/// others, which may be of a client alone.
fn folders_of(find: &Find) -> Vec<String> {
    let mut folders: Vec<String> = Vec::new();
    for pattern in &find.folders {
        let Some((before, after)) = pattern.split_once('*') else {
            folders.push(pattern.clone());
            continue;
        };
        let entries = fs::read_dir(before).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by_key(|name| std::cmp::Reverse((Version::first_in(name), name.clone())));
        folders.extend(names.iter().map(|name| format!("{before}{name}{after}")));
    }
    let has_all = |folder: &String| find.needs.iter().all(|need| Path::new(folder).join(need).is_file());
    folders.sort_by_key(|folder| !has_all(folder));
    folders
}

/// Two ports that are free now.
fn free_ports() -> Result<[u16; 2], EngineError> {
    let system = |error| EngineError::System { doing: "find a free port".into(), error };
    let bind = || TcpListener::bind("127.0.0.1:0").map_err(system);
    // Both are held until both are known, or they would be one.
    let (first, second) = (bind()?, bind()?);
    let port = |listener: &TcpListener| listener.local_addr().map(|at| at.port()).map_err(system);
    Ok([port(&first)?, port(&second)?])
}
