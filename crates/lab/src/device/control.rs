//! Talking to a device's server: one line of JSON there, one back, over a socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use snowmelt_io::{Activity, Latency};

use super::medium::Refused;
use super::state::{self, Record};
use super::unsynced::{CutReport, Keep};
use crate::undo::mounts_of;
use crate::{LabError, size};

/// The device's name.
#[derive(Debug, clap::Args)]
pub struct NameArgs {
    /// Name of the device
    pub name: String,
}

/// Arguments of a power cut.
#[derive(Debug, clap::Args)]
pub struct CutArgs {
    /// Name of the device (made with --power-cut)
    pub name: String,
    /// Unsynced writes that survive
    #[arg(long, value_enum, default_value = "random")]
    pub keep: Keep,
    /// Which, of the possible outcomes
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Requests to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    Status,
    Reset,
    SpendCredits,
    Cut { keep: Keep, seed: u64 },
    PowerOn,
}

/// Answers of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    Status(Box<Status>),
    Done,
    Cut(CutReport),
    Failed(String),
}

/// How a device is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its requests since the counts were reset.
    pub activity: Activity,
    /// How late it answered.
    pub lateness: Latency,
    /// Bound of the 99th percentile of lateness, in nanoseconds.
    pub lateness_bound_ns: u64,
    /// Share of its burst credits left, where it has any.
    #[serde(default)]
    pub credits: Option<f64>,
    /// Whether it has power.
    pub on: bool,
    /// Writes a power cut could lose now.
    pub unsynced: usize,
    /// Bytes of memory that hold what was written.
    pub held_bytes: u64,
    /// Requests that the memory or file behind it refused.
    #[serde(default)]
    pub refused: Refused,
}

impl Status {
    /// Why what was measured on it does not count, if so.
    pub fn doubt(&self) -> Option<String> {
        if let Some(refused) = self.refused.show() {
            return Some(format!("on the emulated device {refused}"));
        }
        (self.lateness.p99_ns > self.lateness_bound_ns).then(|| {
            format!(
                "the emulated device answered late: p99 {} µs, bound {} µs",
                self.lateness.p99_ns / 1000,
                self.lateness_bound_ns / 1000
            )
        })
    }
}

/// A server answers from memory, but a cut of the power writes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks the server of `record`.
pub fn ask(record: &Record, ask: Ask) -> Result<Answer, LabError> {
    if !record.is_alive() {
        return Err(LabError::refused(
            format!("device {}", record.spec.name),
            "its server is gone",
            "`snowmelt-lab restore` takes away what it left",
        ));
    }
    let path = state::socket_path(&record.spec.name);
    match ask_through(&path, ask, PATIENCE) {
        Err(e) if e.kind() == std::io::ErrorKind::TimedOut => Err(LabError::refused(
            format!("device {}", record.spec.name),
            format!("its server (process {}) has not answered within {} s", record.pid, PATIENCE.as_secs()),
            "`snowmelt-lab restore` cuts it off and takes it away",
        )),
        other => other.map_err(|e| LabError::file("talk through", &path, e)),
    }
}

/// Asks, and waits for the answer for so long. The thread that waits is left behind: it can be
/// killed.
pub(super) fn ask_through(path: &Path, ask: Ask, patience: Duration) -> std::io::Result<Answer> {
    let (tell, told) = std::sync::mpsc::channel();
    let path = path.to_path_buf();
    std::thread::Builder::new().name("ask".into()).spawn(move || tell.send(talk(&path, ask, patience)))?;
    let late = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
    told.recv_timeout(patience).map_err(late)?
}

fn talk(path: &Path, ask: Ask, patience: Duration) -> std::io::Result<Answer> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(patience))?;
    let line = serde_json::to_string(&ask).expect("plain data");
    writeln!(stream, "{line}")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    serde_json::from_str(&answer).map_err(std::io::Error::other)
}

/// Serves one connection with `answer`.
pub fn serve(stream: UnixStream, answer: impl Fn(Ask) -> Answer) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(ask) => answer(ask),
        Err(e) => Answer::Failed(format!("not understood: {e}")),
    };
    let text = serde_json::to_string(&answer).expect("plain data");
    writeln!(&stream, "{text}")
}

fn expect_done(answer: Answer) -> Result<(), LabError> {
    match answer {
        Answer::Done => Ok(()),
        other => Err(unexpected(other)),
    }
}

fn unexpected(answer: Answer) -> LabError {
    match answer {
        Answer::Failed(why) => LabError::Argument(why),
        other => {
            LabError::Argument(format!("the device's server answered {other:?}: is it of this version?"))
        }
    }
}

/// The status of a device.
pub fn status_of(record: &Record) -> Result<Status, LabError> {
    match ask(record, Ask::Status)? {
        Answer::Status(status) => Ok(*status),
        other => Err(unexpected(other)),
    }
}

/// `lab device status`.
pub fn status(args: &NameArgs) -> Result<(), LabError> {
    let record = state::load(&args.name)?;
    let status = status_of(&record)?;
    let a = status.activity;
    crate::say!("{} on {}, {}", record.spec.model_name, record.device.display(), power(&status));
    crate::say!(
        "  {} reads ({}), {} writes ({}), {} flushes",
        a.reads,
        size::about(a.read_bytes as f64),
        a.writes,
        size::about(a.written_bytes as f64),
        a.flushes
    );
    crate::say!("  {} outstanding now, {} at most", a.outstanding, a.most_outstanding);
    if a.splits > 0 {
        crate::say!("  {} splits at the borders of the array's chunks", a.splits);
    }
    if let Some(credits) = status.credits {
        crate::say!("  burst credits: {:.1} % left", credits * 100.0);
    }
    let l = status.lateness;
    crate::say!(
        "  lateness p50 {} µs, p99 {} µs, most {} µs (bound of p99: {} µs)",
        l.p50_ns / 1000,
        l.p99_ns / 1000,
        l.max_ns / 1000,
        status.lateness_bound_ns / 1000
    );
    if let Some(doubt) = status.doubt() {
        crate::say!("  INVALID: {doubt}");
    }
    Ok(())
}

/// Whether it runs, and with what losses.
pub(super) fn power(status: &Status) -> String {
    let refused = status.refused.show().map(|refused| format!(", {refused}")).unwrap_or_default();
    let power = match (status.on, status.unsynced) {
        (false, _) => "without power".into(),
        (true, 0) => "running".into(),
        (true, n) => format!("running, {n} writes unsynced"),
    };
    power + &refused
}

/// `lab device reset`.
pub fn reset(args: &NameArgs) -> Result<(), LabError> {
    expect_done(ask(&state::load(&args.name)?, Ask::Reset)?)
}

/// `lab device spend-credits`.
pub fn spend_credits(args: &NameArgs) -> Result<(), LabError> {
    let record = state::load(&args.name)?;
    if status_of(&record)?.credits.is_none() {
        return Err(LabError::Argument(format!(
            "{} is {}, which has no burst credits to spend; gp2-100, st1-500 and azure-p10 have",
            args.name, record.spec.model_name
        )));
    }
    expect_done(ask(&record, Ask::SpendCredits)?)
}

/// `lab device cut`.
pub fn cut(args: &CutArgs) -> Result<(), LabError> {
    let record = state::load(&args.name)?;
    match ask(&record, Ask::Cut { keep: args.keep, seed: args.seed })? {
        Answer::Cut(CutReport { unsynced, kept, torn, lost }) => {
            crate::say!("{unsynced} writes were not durable: {kept} kept, {torn} torn, {lost} lost");
            crate::say!("unmount what is mounted from it, then `snowmelt-lab device power-on {}`", args.name);
            Ok(())
        }
        other => Err(unexpected(other)),
    }
}

/// `lab device power-on`.
pub fn power_on(args: &NameArgs) -> Result<(), LabError> {
    let record = state::load(&args.name)?;
    if let Some(target) = mounts_of(&record.device).first() {
        return Err(LabError::refused(
            format!("switch {} on", args.name),
            format!("it is mounted on {}, whose file system still holds what the cut lost", target.display()),
            "unmount it first",
        ));
    }
    forget_cached(&record.device)?;
    expect_done(ask(&record, Ask::PowerOn)?)
}

/// Has the kernel forget what it caches of a block device: dirty pages fail to be written while
/// the power is off, and are then dropped with the others.
fn forget_cached(device: &Path) -> Result<(), LabError> {
    let file = std::fs::File::open(device).map_err(|e| LabError::file("open", device, e))?;
    drop(file.sync_all()); // fails, since the power is off
    let advice = rustix::fs::Advice::DontNeed;
    rustix::fs::fadvise(&file, 0, None, advice).map_err(|e| LabError::file("drop the cache of", device, e))
}
