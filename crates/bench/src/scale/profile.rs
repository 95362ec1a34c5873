//! A profile of this process by `perf`, which runs as its child and is attached to it.
//!
//! Stacks are unwound by the debug information (`dwarf`), since the program has no frame
//! pointers. perf copies 8 KiB of stack for a sample; 199 samples a second leave the measured
//! queries as fast as they were, to a percent or so.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::flame::Stacks;
use snowmelt_workload::scratch_dir::ScratchDir;

/// Samples each second of a thread's time.
const FREQUENCY: &str = "199";

/// How long perf takes to attach to all threads.
const ATTACHED: Duration = Duration::from_millis(500);

/// A `perf record` that is attached to this process.
#[derive(Debug)]
pub struct Profiler {
    child: Child,
    dir: ScratchDir,
}

impl Profiler {
    /// Attaches. Threads that are started afterwards are sampled as well.
    ///
    /// # Errors
    /// There is no perf, or it may not sample.
    pub fn attach() -> Result<Self> {
        let dir = ScratchDir::new("snowmelt-profile")?;
        let mut perf = Command::new("perf");
        perf.args(["record", "--freq", FREQUENCY, "--call-graph", "dwarf,8192", "--pid"])
            .arg(std::process::id().to_string())
            .arg("--output")
            .arg(dir.path().join("perf.data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let child = perf.spawn().map_err(not_there)?;
        let mut profiler = Self { child, dir };
        std::thread::sleep(ATTACHED);
        if profiler.child.try_wait().context("cannot wait for perf")?.is_some() {
            bail!("perf record: {}", profiler.complaint());
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
    /// perf fails, or its records cannot be read.
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
        if !script.status.success() || stacks.is_empty() {
            bail!("perf recorded nothing: {complaint} {}", String::from_utf8_lossy(&script.stderr).trim());
        }
        Ok(stacks)
    }

    fn complaint(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            // a message that cannot be read is left out
            let _ = stderr.read_to_string(&mut text);
        }
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
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
