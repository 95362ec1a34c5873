//! Programs under way: their logs, their end, and the end of everything they started.
//!
//! A program is a process group of its own, so that Ctrl-C at a terminal reaches only us and we
//! decide how it ends. Its number is in the journal of `undo` while it lives: a killed command
//! leaves nothing running that `lab restore` would not find.

use std::fs::{self, File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use snowmelt_lab::undo::{StepId, Undo, processes_below};

use crate::error::{EngineError, log_tail};

/// An account of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserAccount {
    pub uid: u32,
    pub gid: u32,
}

impl UserAccount {
    /// The account of that name in /etc/passwd.
    pub fn named(name: &str) -> Option<Self> {
        Self::find(&fs::read_to_string("/etc/passwd").ok()?, name)
    }

    fn find(passwd: &str, name: &str) -> Option<Self> {
        let line = passwd.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let mut fields = line.split(':').skip(1);
        Some(Self { uid: fields.next()?.parse().ok()?, gid: fields.next()?.parse().ok()? })
    }
}

/// How programs of an engine are run.
pub struct Runner<'a> {
    /// For messages.
    pub engine: &'a str,
    /// Searched before the PATH.
    pub folders: &'a [String],
    /// Where they run.
    pub folder: &'a Path,
    /// Other than ours.
    pub account: Option<UserAccount>,
    /// Variables beside ours.
    pub environment: Vec<(String, String)>,
    /// Holds the programs that must be stopped if this process is killed.
    pub undo: &'a Undo,
}

/// A program that was started.
pub struct Process {
    child: Child,
    step: Option<StepId>,
    undo: Undo,
    pub log: PathBuf,
    over: bool,
}

impl Runner<'_> {
    /// Starts a program; its output goes to `out`, or with its messages to `log`.
    pub fn spawn(&self, words: &[String], log: &Path, out: Option<&Path>) -> Result<Process, EngineError> {
        let output = match out {
            Some(path) => File::create(path).map_err(|e| EngineError::file("create", path, e))?,
            None => append(log)?,
        };
        self.start(words, log, Stdio::null(), output.into())
    }

    /// Starts a program that is spoken to; its messages go to `log`.
    pub fn converse(
        &self,
        words: &[String],
        log: &Path,
    ) -> Result<(Process, ChildStdin, ChildStdout), EngineError> {
        let mut process = self.start(words, log, Stdio::piped(), Stdio::piped())?;
        let (input, output) = (process.child.stdin.take(), process.child.stdout.take());
        Ok((process, input.expect("its input is a pipe"), output.expect("its output is a pipe")))
    }

    fn start(
        &self,
        words: &[String],
        log: &Path,
        input: Stdio,
        output: Stdio,
    ) -> Result<Process, EngineError> {
        let (name, rest) = words.split_first().expect("commands were checked to have words");
        let program = find_program(name, self.folders).unwrap_or_else(|| PathBuf::from(name));
        let mut command = Command::new(&program);
        command.args(rest).current_dir(self.folder).process_group(0);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(input).stdout(output).stderr(append(log)?);
        if let Some(UserAccount { uid, gid }) = self.account {
            command.uid(uid).gid(gid);
        }
        let child = command.spawn().map_err(|error| EngineError::System {
            doing: format!("start {} for {}", program.display(), self.engine),
            error,
        })?;
        let mut process =
            Process { step: None, undo: self.undo.clone(), log: log.into(), over: false, child };
        process.step = Some(self.undo.started(process.pid())?);
        Ok(process)
    }
}

fn append(log: &Path) -> Result<File, EngineError> {
    let open = OpenOptions::new().create(true).append(true).open(log);
    open.map_err(|e| EngineError::file("open", log, e))
}

/// A program by its path, or by name in `folders` and on the PATH.
pub fn find_program(name: &str, folders: &[String]) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.exists());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = folders.iter().map(PathBuf::from).chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

impl Process {
    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().ok().flatten();
        if status.is_some() && !self.over {
            self.over = true;
            // When the journal cannot be written, it names a process that is gone: harmless.
            let _ = self.step.map(|step| self.undo.done(step));
        }
        status
    }

    /// Waits for its end. `None` when it has not ended after `limit`, or `stopped` is true before.
    pub fn wait(&mut self, limit: Duration, stopped: &dyn Fn() -> bool) -> Option<ExitStatus> {
        let begun = Instant::now();
        let mut nap = Duration::from_millis(1);
        loop {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            if stopped() || begun.elapsed() >= limit {
                return None;
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(20));
        }
    }

    /// SIGTERM to the program itself.
    pub fn ask_to_end(&self) {
        signal(self.pid(), Signal::TERM);
    }

    /// SIGINT to the program itself: clients cancel the statement they wait for.
    pub fn interrupt(&self) {
        signal(self.pid(), Signal::INT);
    }

    /// SIGKILL to it and to everything it started, all at once; then it is waited for.
    pub fn kill(&mut self) {
        if self.ended().is_some() {
            return;
        }
        let mut all = processes_below(self.pid());
        all.insert(0, self.pid());
        all.iter().for_each(|pid| signal(*pid, Signal::KILL));
        self.wait(Duration::from_secs(10), &|| false);
    }

    /// The end of its log, for a message.
    pub fn log_tail(&self) -> String {
        log_tail(&self.log)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid as i32) {
        let _ = kill_process(pid, signal); // it may have ended by itself
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runner<'a>(folder: &'a Path, undo: &'a Undo) -> Runner<'a> {
        Runner { engine: "x", folders: &[], folder, account: None, environment: Vec::new(), undo }
    }

    fn sh(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(String::from).to_vec()
    }

    #[test]
    fn accounts_are_found_by_their_whole_name() {
        let passwd = "postgresx:x:1:2::/:/bin/sh\npostgres:x:101:104:P:/var:/bin/bash\n";
        assert_eq!(UserAccount::find(passwd, "postgres"), Some(UserAccount { uid: 101, gid: 104 }));
        assert_eq!(UserAccount::find(passwd, "postgre"), None);
    }

    #[test]
    fn a_killed_program_takes_what_it_started_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(dir.path(), "test").unwrap();
        let log = dir.path().join("log");
        let mut process = runner(dir.path(), &undo)
            .spawn(&sh("setsid sleep 600 & echo $! > child; wait"), &log, None)
            .unwrap();
        let child = || fs::read_to_string(dir.path().join("child")).ok()?.trim().parse::<u32>().ok();
        while child().is_none_or(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm")).ok().is_none_or(|c| c != "sleep\n")
        }) {
            std::thread::sleep(Duration::from_millis(5));
        }
        process.kill();
        let begun = Instant::now();
        while snowmelt_lab::undo::process_start(child().unwrap()).is_some() {
            assert!(begun.elapsed() < Duration::from_secs(5), "the child lives on");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(process.ended().is_some());
    }

    #[test]
    fn output_and_messages_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(dir.path(), "test").unwrap();
        let (log, out) = (dir.path().join("log"), dir.path().join("out"));
        let runner = runner(dir.path(), &undo);
        let mut process = runner.spawn(&sh("echo good; echo bad >&2; exit 3"), &log, Some(&out)).unwrap();
        let status = process.wait(Duration::from_secs(20), &|| false).unwrap();
        assert_eq!(status.code(), Some(3));
        assert_eq!(fs::read_to_string(&out).unwrap(), "good\n");
        assert!(process.log_tail().ends_with("  bad"));
        let error = runner.spawn(&["nowhere-at-all".into()], &log, None).err().unwrap().to_string();
        assert!(error.contains("start nowhere-at-all for x"), "{error}");
    }
}
