//! A profile of this process by `perf`, which runs as its child and is attached to it.
//!
//! Stacks are unwound by the debug information (`dwarf`), since the program has no frame
//! pointers. perf copies 8 KiB of stack for a sample; 199 samples a second leave the measured
//! queries as fast as they were, to a percent or so.
//!
//! perf takes from a tenth of a second to many seconds to attach, by the load of the machine. So it
//! begins switched off, and is switched on through a pipe; on another it says that it is
//! (`--control`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::process::{Pid, Signal, kill_process};

use super::flame::Stacks;
use snowmelt_workload::scratch_dir::ScratchDir;

/// Samples each second of a thread's time.
const FREQUENCY: &str = "199";

/// perf that has not attached by then never does.
const PATIENCE: Duration = Duration::from_secs(60);

/// The file of what perf complains of.
const COMPLAINT: &str = "complaint";

/// A `perf record` that is attached to this process.
#[derive(Debug)]
pub struct Profiler {
    child: Child,
    dir: ScratchDir,
}

impl Profiler {
    /// Attaches. Samples are taken once this returns, of threads that are started afterwards as
    /// well.
    ///
    /// # Errors
    /// There is no perf, or it may not sample; the error says what allows it.
    pub fn attach() -> Result<Self> {
        Self::attach_by("perf")
    }

    fn attach_by(program: &str) -> Result<Self> {
        let dir = ScratchDir::new("snowmelt-profile")?;
        let [control, said] = ["control", "said"].map(|name| dir.path().join(name));
        let [mut control_end, mut said_end] = [pipe(&control)?, pipe(&said)?];
        let mut perf = Command::new(program);
        perf.args(["record", "--freq", FREQUENCY, "--call-graph", "dwarf,8192", "--delay=-1", "--pid"])
            .arg(std::process::id().to_string())
            .arg(format!("--control=fifo:{},{}", control.display(), said.display()))
            .arg("--output")
            .arg(dir.path().join("perf.data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // Not a pipe, which it would wait for when it has much to say.
            .stderr(File::create(dir.path().join(COMPLAINT)).context("cannot keep what perf says")?);
        let child = perf.spawn().map_err(not_there)?;
        let mut profiler = Self { child, dir };
        control_end.write_all(b"enable\n").context("cannot switch perf on")?;
        let begun = Instant::now();
        while !has_said(&mut said_end)? {
            if profiler.child.try_wait().context("cannot wait for perf")?.is_some() {
                bail!("perf record ended: {}{}", profiler.complaint(), remedy());
            }
            if begun.elapsed() > PATIENCE {
                bail!("perf record has not attached within {} s", PATIENCE.as_secs());
            }
        }
        Ok(profiler)
    }

    /// Checks that there is a perf, before long work that needs it at its end.
    ///
    /// # Errors
    /// There is none; the error says how to install it.
    pub fn is_there() -> Result<()> {
        Command::new("perf").arg("--version").output().map_err(not_there).map(drop)
    }

    /// Ends the recording and reads it.
    ///
    /// # Errors
    /// perf fails, has no samples, or its records cannot be read.
    pub fn stacks(mut self) -> Result<Stacks> {
        kill_process(Pid::from_child(&self.child), Signal::INT).context("cannot end perf record")?;
        // Its own status says that it was ended by a signal.
        self.child.wait().context("cannot wait for perf record")?;
        let complaint = self.complaint();
        let script = Command::new("perf")
            .args(["script", "--no-inline", "--fields", "comm,ip,sym", "--input"])
            .arg(self.dir.path().join("perf.data"))
            .stdin(Stdio::null())
            .output()
            .map_err(not_there)?;
        let stacks = fold(&String::from_utf8_lossy(&script.stdout));
        if !script.status.success() {
            bail!("perf script failed: {}", String::from_utf8_lossy(&script.stderr).trim());
        }
        if stacks.is_empty() {
            bail!("perf took no sample ({complaint}): let the steady state last longer, with more --mixes");
        }
        Ok(stacks)
    }

    fn complaint(&self) -> String {
        // a message that cannot be read is left out
        let text = std::fs::read(self.dir.path().join(COMPLAINT)).unwrap_or_default();
        String::from_utf8_lossy(&text).split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Both ends of a pipe with a name, so that perf finds it whenever it comes to open it.
fn pipe(path: &Path) -> Result<File> {
    let named = || format!("cannot make the pipe {}", path.display());
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).with_context(named)?;
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map(File::from).with_context(named)
}

/// True once perf has said that it is switched on; looks for a moment.
fn has_said(pipe: &mut File) -> Result<bool> {
    let moment = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    let readable =
        poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&moment)).context("cannot wait for perf")?;
    let mut word = [0; 16];
    Ok(readable > 0 && pipe.read(&mut word).context("cannot hear perf")? > 0)
}

/// A way to be allowed to sample, where that may be the reason.
fn remedy() -> String {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    match level.trim().parse::<i32>() {
        Ok(level) if level > 1 && !rustix::process::geteuid().is_root() => format!(
            " (kernel.perf_event_paranoid is {level}: as root, `sysctl kernel.perf_event_paranoid=1`; in a \
             container, add the capability PERFMON)"
        ),
        _ => String::new(),
    }
}

fn not_there(error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!(
            "a flame graph needs perf, which is not installed: `apt install linux-perf` on Debian, \
             `apt install linux-tools-$(uname -r)` on Ubuntu, `dnf install perf` on Fedora"
        ),
        _ => anyhow::Error::new(error).context("cannot run perf"),
    }
}

/// Samples as `perf script` writes them: a line with the thread's name, the frames from the
/// innermost on, an empty line.
fn fold(script: &str) -> Stacks {
    let mut stacks: Stacks = BTreeMap::new();
    for sample in script.split("\n\n") {
        let mut lines = sample.lines().filter(|line| !line.trim().is_empty());
        let Some(thread) = lines.next().map(str::trim) else { continue };
        let mut stack: Vec<String> = lines.filter_map(frame).collect();
        if stack.is_empty() {
            continue;
        }
        // perf names a thread it did not see begin by its number
        stack.push(if thread.starts_with(':') { "thread" } else { thread }.to_owned());
        stack.reverse();
        *stacks.entry(stack).or_default() += 1;
    }
    stacks
}

/// `  55d5c0d3 snowmelt_store::pool::Pool::quick` without the address.
fn frame(line: &str) -> Option<String> {
    let (address, name) = line.trim().split_once(' ')?;
    let is_address = address.bytes().all(|b| b.is_ascii_hexdigit());
    is_address.then(|| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perf_that_cannot_record_is_told_with_its_own_words() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perf");
        std::fs::write(&path, "#!/bin/sh\necho 'No permission to enable cycles event.' >&2\nexit 1\n")
            .unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let error = Profiler::attach_by(path.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains("No permission to enable cycles event."), "{error}");
        let error = Profiler::attach_by("no-such-perf").unwrap_err().to_string();
        assert!(error.contains("apt install"), "{error}");
    }

    #[test]
    fn samples_are_taken_from_the_moment_it_is_attached() {
        let profiler = match Profiler::attach() {
            Ok(profiler) => profiler,
            Err(why) => return println!("skipped: {why:#}"),
        };
        let work = || {
            let from = snowmelt_workload::process::thread_cpu_ns();
            while snowmelt_workload::process::thread_cpu_ns() < from + 200_000_000 {}
        };
        std::thread::Builder::new().name("begun-after".into()).spawn(work).unwrap().join().unwrap();
        let stacks = profiler.stacks().unwrap();
        let samples: u64 = stacks.iter().filter(|(stack, _)| stack[0] == "begun-after").map(|(_, n)| n).sum();
        assert!(samples >= 10, "200 ms of work, a sample each 5 ms: {samples} of {stacks:?}");
    }

    #[test]
    fn samples_are_folded_from_the_outermost_frame_on() {
        let script = "snowmelt \n\t  55d0 inner::<u8>\n\t  55d1 outer\n\n\
                      snowmelt \n\t  55d9 inner::<u8>\n\t  55d1 outer\n\n\
                      perf \n\n:30334 \n\t 2 outer\n\nother thread\n\t 1 [unknown]\n\n";
        let expected: Vec<(Vec<&str>, u64)> = vec![
            (vec!["other thread", "[unknown]"], 1),
            (vec!["snowmelt", "outer", "inner::<u8>"], 2),
            (vec!["thread", "outer"], 1),
        ];
        let found = fold(script);
        let found: Vec<(Vec<&str>, u64)> =
            found.iter().map(|(stack, n)| (stack.iter().map(String::as_str).collect(), *n)).collect();
        assert_eq!(found, expected);
    }
}
