//! The program that is observed: started here, or running already; with the kernel's counts of
//! its I/O.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde::Serialize;

use crate::LabError;
use crate::undo::{Undo, process_start};

/// A program, with everything it starts.
pub struct Program {
    pid: u32,
    start: u64,
    child: Option<Child>,
    began: Instant,
}

/// Where the output of a program goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// To ours.
    Inherited,
    /// Into pipes, for [`Program::take_output`].
    Piped,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ended {
    /// Its exit code; nothing when it was ended by a signal or was not started here.
    pub code: Option<i32>,
    /// Seconds from start (or from when we began to look) to end.
    pub elapsed_s: f64,
    /// Its own I/O and that of the children it waited for; nothing when /proc does not say.
    pub io: Option<ProcessIo>,
}

impl Program {
    /// Starts `command`. If this process ends first, undoing the journal stops it.
    ///
    /// # Errors
    /// The program cannot be started or journalled.
    pub fn start(command: &[String], undo: &Undo) -> Result<Program, LabError> {
        Program::start_with(command, Output::Inherited, undo)
    }

    /// As [`Program::start`], with its output where `output` says.
    ///
    /// # Errors
    /// The program cannot be started or journalled.
    pub fn start_with(command: &[String], output: Output, undo: &Undo) -> Result<Program, LabError> {
        let stdio = || match output {
            Output::Inherited => Stdio::inherit(),
            Output::Piped => Stdio::piped(),
        };
        let (name, args) =
            command.split_first().ok_or_else(|| LabError::Argument("no command was given".into()))?;
        let began = Instant::now();
        let child =
            Command::new(name).args(args).stdout(stdio()).stderr(stdio()).spawn().map_err(|e| {
                LabError::refused(format!("starting {name}"), e.to_string(), "check its path")
            })?;
        let pid = child.id();
        undo.started(pid)?;
        Ok(Program { pid, start: process_start(pid).unwrap_or(0), child: Some(child), began })
    }

    /// A process that runs already.
    ///
    /// # Errors
    /// There is no such process.
    pub fn running(pid: u32) -> Result<Program, LabError> {
        let start = process_start(pid)
            .ok_or_else(|| LabError::Argument(format!("there is no process {pid}; `ps` lists them")))?;
        Ok(Program { pid, start, child: None, began: Instant::now() })
    }

    /// The pipes of its output, once.
    pub fn take_output(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        self.child.as_mut().map_or((None, None), |child| (child.stdout.take(), child.stderr.take()))
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// True when it is over; it is not reaped yet, so that its counts can still be read.
    pub fn is_over(&self) -> bool {
        match &self.child {
            None => process_start(self.pid) != Some(self.start),
            Some(child) => {
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
                !matches!(waitid(WaitId::Pid(Pid::from_child(child)), options), Ok(None))
            }
        }
    }

    /// Waits until it is over, or `tick` says to stop; `tick` is called every `every`.
    pub fn wait(&self, every: Duration, tick: &mut dyn FnMut() -> bool) {
        while !self.is_over() && tick() {
            let until = Instant::now() + every;
            while Instant::now() < until && !self.is_over() {
                std::thread::sleep(every.min(Duration::from_millis(2)));
            }
        }
    }

    /// Its exit code, once it is over: 128 and the signal when one ended it, as shells say it.
    pub fn exit_code(mut self) -> u8 {
        let status = self.child.as_mut().and_then(|child| child.wait().ok());
        status.and_then(code_of).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
    }

    /// Its counts now, and, when it is over and was started here, the last of them.
    pub fn end(mut self) -> Ended {
        let elapsed_s = self.began.elapsed().as_secs_f64();
        let io = ProcessIo::read(self.pid);
        let over = self.is_over();
        let status = self.child.as_mut().filter(|_| over).and_then(|child| child.wait().ok());
        Ended { code: status.and_then(code_of), elapsed_s, io }
    }
}

/// The end of a program that outlives the measurement for which it was started.
pub(crate) fn ended_with(measurement: &str) -> String {
    format!(
        "The program still ran at the end of the {measurement} and is ended with it (SIGTERM, after 3 s SIGKILL): \
         one that is to run on is started by itself, and named by --pid."
    )
}

/// The exit code of a program: 128 and the signal when one ended it.
fn code_of(status: ExitStatus) -> Option<i32> {
    status.code().or_else(|| Some(128 + status.signal()?))
}

/// /proc/PID/io, with the names of the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ProcessIo {
    /// Bytes asked of read calls (not of io_uring, whose reads the kernel does not count here).
    pub rchar: u64,
    /// Bytes given to write calls.
    pub wchar: u64,
    /// Read calls.
    pub syscr: u64,
    /// Write calls.
    pub syscw: u64,
    /// Bytes fetched from storage for it.
    pub read_bytes: u64,
    /// Bytes it made to be written to storage.
    pub write_bytes: u64,
}

impl ProcessIo {
    /// Of a process, with the children it has waited for.
    pub fn read(pid: u32) -> Option<ProcessIo> {
        ProcessIo::parse(&std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?)
    }

    /// Of this process, with the children it has waited for; zero where /proc does not say.
    pub fn own() -> ProcessIo {
        ProcessIo::read(std::process::id()).unwrap_or_default()
    }

    fn parse(text: &str) -> Option<ProcessIo> {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line?.trim().parse().ok()
        };
        Some(ProcessIo {
            rchar: field("rchar")?,
            wchar: field("wchar")?,
            syscr: field("syscr")?,
            syscw: field("syscw")?,
            read_bytes: field("read_bytes")?,
            write_bytes: field("write_bytes")?,
        })
    }

    /// Field by field, for sums over processes.
    pub fn plus(self, other: ProcessIo) -> ProcessIo {
        ProcessIo {
            rchar: self.rchar + other.rchar,
            wchar: self.wchar + other.wchar,
            syscr: self.syscr + other.syscr,
            syscw: self.syscw + other.syscw,
            read_bytes: self.read_bytes + other.read_bytes,
            write_bytes: self.write_bytes + other.write_bytes,
        }
    }

    /// The increase since `before`.
    pub fn since(self, before: ProcessIo) -> ProcessIo {
        ProcessIo {
            rchar: self.rchar.saturating_sub(before.rchar),
            wchar: self.wchar.saturating_sub(before.wchar),
            syscr: self.syscr.saturating_sub(before.syscr),
            syscw: self.syscw.saturating_sub(before.syscw),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            write_bytes: self.write_bytes.saturating_sub(before.write_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_by_name() {
        let text = "rchar: 100\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5\n";
        let io = ProcessIo::parse(text).expect("all there");
        assert_eq!((io.rchar, io.syscw, io.write_bytes), (100, 4, 8192));
        assert_eq!(ProcessIo::parse("rchar: 1\n"), None);
    }

    #[test]
    fn the_counts_of_a_program_survive_its_end() {
        let dir = tempfile::tempdir().expect("a folder");
        let undo = Undo::open_in(dir.path(), "test").expect("a journal");
        let command = ["head", "-c", "100000", "/dev/zero"].map(String::from);
        let program = Program::start(&command, &undo).expect("it starts");
        program.wait(Duration::from_millis(5), &mut || true);
        let ended = program.end();
        assert_eq!(ended.code, Some(0));
        let io = ended.io.expect("the kernel says");
        assert!(io.rchar >= 100_000 && io.wchar >= 100_000, "{io:?}");
        let error = Program::start(&["/nowhere/at/all".to_string()], &undo).err().expect("there is none");
        assert!(error.to_string().contains("/nowhere/at/all"));
        assert!(Program::running(4_194_304).is_err());
    }
}
