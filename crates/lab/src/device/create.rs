//! `snowmelt-lab device create`: starts the server and waits until the device stands.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::server::StartOutcome;
use super::spec::{self, LOOP_DEPTH, Spec, default_patience_s};
use super::state::{self, Record};
use super::{hung, remove};
use crate::run::arguments::Given;
use crate::undo::{Step, Undo, UndoError, abort, process_start, state_dir};
use crate::{LabError, room, size};

/// Make an emulated device.
#[derive(Debug, Clone, clap::Args)]
pub struct CreateArgs {
    #[command(flatten)]
    given: Given,
    /// Name of the device in later commands
    pub name: String,
    /// hdd-7200, hdd-10k, gp2-100, gp3, st1-500, azure-p10, wide-slow, e3, s3, ssd, nvme, an
    /// array of them (raid0:hdd-7200*4,chunk=64k), or a TOML file (kind = "disk", "volume" or
    /// "raid0", any parameter)
    #[arg(long)]
    pub model: String,
    /// Its length; a disk's whole capacity when not given (memory is used for what is written
    /// only)
    #[arg(long, value_parser = size::parse)]
    pub size: Option<u64>,
    /// Keep the bytes in this file (made if need be) instead of in memory
    #[arg(long)]
    pub backing: Option<PathBuf>,
    /// The backing file exists: its contents may be overwritten
    #[arg(long)]
    pub destroy: bool,
    /// With --backing: its file system may have less room than the device; a write that finds it
    /// full then fails
    #[arg(long, requires = "backing")]
    pub sparse: bool,
    /// Memory for what is written; half of what is free when not given
    #[arg(long, value_parser = size::parse)]
    pub memory: Option<u64>,
    /// Seed of the model's chances
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Remember unsynced writes, so that `lab device cut` can lose them
    #[arg(long)]
    pub power_cut: bool,
    /// The kernel's scheduler: none, mq-deadline, kyber, bfq; mq-deadline for disks, none for
    /// others when not given
    #[arg(long)]
    pub scheduler: Option<String>,
    /// Requests the kernel hands to the device at once, 5 to 128; a disk's own queue (32), 128
    /// for others when not given
    #[arg(long, value_parser = clap::value_parser!(u32).range(5..=i64::from(LOOP_DEPTH)))]
    pub depth: Option<u32>,
    /// The kernel's read-ahead
    #[arg(long, default_value_t = 128)]
    pub read_ahead_kb: u32,
    /// Seconds the device may take to stand, its self-test included; then everything is taken
    /// back
    #[arg(long, default_value_t = default_patience_s(), value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub patience: u32,
}

/// Length of a device that has no capacity of its own.
const DEFAULT_BYTES: u64 = 16 << 30;

/// Runs the command.
pub fn run(args: &CreateArgs) -> Result<(), LabError> {
    let record = create(&args.spec()?)?;
    crate::say!("{}", record.device.display());
    crate::tell!(
        "{} as {}: {}, scheduler {}, depth {}; in the self-test {} reads at once reached the model, {} µs the way and back",
        record.spec.name,
        record.spec.model_name,
        size::about(record.spec.size_bytes as f64),
        record.spec.scheduler,
        record.spec.depth,
        record.proven_depth,
        record.way_ns / 1000
    );
    Ok(())
}

impl CreateArgs {
    fn spec(&self) -> Result<Spec, LabError> {
        self.given.refuse_idle(&[
            ("destroy", self.backing.is_none(), "memory has nothing to be overwritten; add --backing FILE"),
            ("memory", self.backing.is_some(), "the bytes are in the backing file; leave it out"),
        ])?;
        spec::check_name(&self.name)?;
        let model = spec::model(&self.model, self.seed)?;
        let disk = Spec::is_disk(&model);
        let capacity = model.capacity_bytes().unwrap_or(DEFAULT_BYTES);
        let size_bytes = self.size.unwrap_or(capacity) / 4096 * 4096;
        if size_bytes < 1 << 20 || (disk && size_bytes > capacity) {
            return Err(LabError::Argument(format!(
                "--size must be between 1m and what the model holds, {}",
                size::about(capacity as f64)
            )));
        }
        let backing = self.backing.as_deref().map(|path| absolute(path, self.destroy)).transpose()?;
        // A block device has the room that it has.
        let is_file = |path: &&Path| !snowmelt_io::is_block_device(path);
        if let Some(path) = backing.as_deref().filter(|_| !self.sparse).filter(is_file) {
            let instead = "name a smaller --size or another --backing, or --sparse if less will be written";
            room::check(path, size_bytes, instead)?;
        }
        let device_depth = if disk { 32 } else { LOOP_DEPTH };
        let scheduler = if disk { "mq-deadline" } else { "none" };
        Ok(Spec {
            name: self.name.clone(),
            model_name: self.model.clone(),
            model,
            size_bytes,
            memory_bytes: self.memory.unwrap_or_else(half_of_free_memory),
            backing,
            power_cut: self.power_cut,
            scheduler: self.scheduler.clone().unwrap_or_else(|| scheduler.to_string()),
            depth: self.depth.unwrap_or(device_depth),
            read_ahead_kb: self.read_ahead_kb,
            patience_s: self.patience,
        })
    }
}

/// The server works from another folder; and data is never overwritten unasked.
fn absolute(path: &Path, destroy: bool) -> Result<PathBuf, LabError> {
    if path.exists() && !destroy {
        return Err(LabError::refused(
            format!("keep a device's bytes in {}", path.display()),
            "the file exists, and a device is there to be written to",
            "give --destroy if it may be overwritten, or another name",
        ));
    }
    std::path::absolute(path).map_err(|e| LabError::file("find", path, e))
}

fn half_of_free_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    kib.unwrap_or(2 << 20) * 1024 / 2
}

/// Makes the device; when it fails, or is interrupted, nothing is left.
pub fn create(spec: &Spec) -> Result<Record, LabError> {
    check_machine()?;
    refuse_beside_hung()?;
    if let Ok(record) = state::load(&spec.name) {
        let instead = match record.is_alive() {
            true => format!("`snowmelt-lab device remove {}` first, or use another name", spec.name),
            false => "its server is gone: `snowmelt-lab restore` takes away what it left".to_string(),
        };
        return Err(LabError::refused(
            format!("make device {}", spec.name),
            "there is one of that name",
            instead,
        ));
    }
    let undo = Undo::open(state::CREATOR)?;
    std::fs::create_dir_all(state::folder()).map_err(|e| LabError::file("make", &state::folder(), e))?;
    let path = state::log_path(&spec.name);
    let (log, file) = undo
        .make(Step::RemoveFile { path: path.clone() }, || state::begin_log(&path))
        .map_err(|e| match e {
            UndoError::NotMade { cause, .. } if cause.kind() == ErrorKind::WouldBlock => LabError::refused(
                format!("make device {}", spec.name),
                "another command makes one of that name, or its server has not ended",
                "`snowmelt-lab device list` shows those that stand; or use another name",
            ),
            e => e.into(),
        })?;
    let mut server = start_server(spec, file)?;
    let step = undo.started(server.id())?;
    let outcome = wait_until_it_stands(spec, &mut server); // never for ever
    // The server looks after itself from now on, or is gone. (After Ctrl-C this does not
    // return: the signal's thread ends us.)
    undo.done(step)?;
    if outcome.is_ok() {
        undo.done(log)?;
    }
    outcome
}

/// Conditions that must hold before anything is made, each with its remedy.
fn check_machine() -> Result<(), LabError> {
    let instead = "models in the process need no rights: `--device sim:hdd` of the database's commands, `snowmelt-lab device check --model`";
    if !rustix::process::geteuid().is_root() {
        return Err(LabError::refused(
            "emulate a block device",
            "mounting and loop devices need root",
            instead,
        ));
    }
    for (path, number, what) in
        [("/dev/fuse", (10, 229), "FUSE"), ("/dev/loop-control", (10, 237), "loop devices")]
    {
        if let Some(why) = not_the_node(Path::new(path), number, what) {
            return Err(LabError::refused("emulate a block device", why, instead));
        }
    }
    Ok(())
}

/// Why a path is not the character device of that number, if so: containers bind other nodes there.
/// The numbers are the kernel's (Documentation/admin-guide/devices.txt).
fn not_the_node(path: &Path, (major, minor): (u32, u32), what: &str) -> Option<String> {
    let shown = path.display();
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Some(format!("{shown} is missing: this kernel or container has no {what}"));
        }
        Err(e) => return Some(format!("{shown} cannot be looked at ({e})")),
    };
    let right = format!("the node of {what} is a character device {major}:{minor}");
    if !meta.file_type().is_char_device() {
        return Some(format!("{shown} is no character device: {right}"));
    }
    let found = (rustix::fs::major(meta.rdev()), rustix::fs::minor(meta.rdev()));
    (found != (major, minor)).then(|| {
        format!("{shown} is the device {}:{}, put there by a container perhaps: {right}", found.0, found.1)
    })
}

/// A device that hangs holds locks of the kernel that making another one waits for.
fn refuse_beside_hung() -> Result<(), LabError> {
    match hung::hung(&state_dir())?.first() {
        None => Ok(()),
        Some(hung) => Err(LabError::refused(
            "make a device",
            format!("device {} hangs: its server (process {}) {}", hung.name, hung.pid, hung.why),
            "`snowmelt-lab restore` cuts it off and takes it away; then try again",
        )),
    }
}

/// Starts this program again as `… device serve`: the words of our own command line up to
/// `device` lead there.
fn start_server(spec: &Spec, log: File) -> Result<Child, LabError> {
    let program = std::env::current_exe().map_err(|e| LabError::system("find this program", e))?;
    let words: Vec<_> = std::env::args_os().skip(1).take_while(|word| word != "device").collect();
    let mut server = Command::new(&program)
        .args(words)
        .args(["device", "serve"])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(|e| LabError::file("start", &program, e))?;
    let line = serde_json::to_string(spec).expect("plain data") + "\n";
    let mut stdin = server.stdin.take().expect("it was piped");
    stdin.write_all(line.as_bytes()).map_err(|e| LabError::system("describe the device to its server", e))?;
    Ok(server)
}

fn wait_until_it_stands(spec: &Spec, server: &mut Child) -> Result<Record, LabError> {
    let mut said = Said::new(server);
    // The server gives up its self-test by itself; this is for all else it could wait for.
    let deadline = Instant::now() + Duration::from_secs(spec.patience_s.into()) + GRACE;
    let mut doing = "starting".to_string();
    loop {
        let line = match said.line(deadline) {
            Heard::Line(line) => line,
            Heard::End => return Err(gone(spec, server, String::new())),
            Heard::Nothing => return Err(give_up(spec, server, &doing)),
        };
        match serde_json::from_str(&line) {
            Ok(StartOutcome::Doing(what)) => doing = what,
            Ok(StartOutcome::Ready(record)) => return Ok(*record),
            Ok(StartOutcome::Failed(why)) => {
                // It has undone everything, and has only to end.
                let _ = ends_within(server, END_PATIENCE);
                return Err(LabError::Argument(why));
            }
            Err(_) => return Err(gone(spec, server, line)),
        }
    }
}

/// Longer than the server itself is given, so that its own word about it comes first.
const GRACE: Duration = Duration::from_secs(10);

/// A server that has ended, or was told to, is gone by then.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// The server ended without a word. When it was killed amid its self-test, its reads wait for a
/// device without a server, until that is taken away.
fn gone(spec: &Spec, server: &mut Child, said: String) -> LabError {
    if let Err(e) = remove::restore_leftovers(&spec.name) {
        return e.into();
    }
    let _ = ends_within(server, END_PATIENCE); // its parts wait for what was just taken away
    let why = std::fs::read_to_string(state::log_path(&spec.name)).unwrap_or_default();
    let why = if said.is_empty() { why } else { said };
    LabError::system("start the device's server", std::io::Error::other(why.trim().to_string()))
}

/// The server takes too long: cut off from the kernel it can take its things down, or be
/// killed.
fn give_up(spec: &Spec, server: &mut Child, doing: &str) -> LabError {
    let seconds = Duration::from_secs(spec.patience_s.into()) + GRACE;
    let waits = hung::waits_in(server.id());
    // Where it is not mounted yet there is nothing to abort.
    let _ = abort(&state::mount_path(&spec.name));
    for signals in [&[Signal::TERM, Signal::CONT][..], &[Signal::KILL]] {
        // It may have ended by itself.
        signals.iter().for_each(|signal| kill_process(Pid::from_child(server), *signal).unwrap_or(()));
        if ends_within(server, END_PATIENCE) {
            break;
        }
    }
    let left = remove::restore_leftovers(&spec.name).err();
    let instead = match (process_start(server.id()), left) {
        (None, None) => {
            "nothing of it is left; if it happens again, `snowmelt-lab restore` ends devices that hang".into()
        }
        (None, Some(e)) => e.to_string(),
        (Some(_), _) => format!(
            "its process {} waits in the kernel, probably for another device that hangs: end that (`snowmelt-lab restore`, or 1 written to \
             /sys/fs/fuse/connections/N/abort), then `snowmelt-lab restore` takes away what is left of this one",
            server.id()
        ),
    };
    let why = format!("{doing} has not ended within {} s (the kernel: {waits})", seconds.as_secs());
    LabError::refused(format!("make device {}", spec.name), why, instead)
}

fn ends_within(server: &mut Child, patience: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < patience {
        if !matches!(server.try_wait(), Ok(None)) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Lines of the server.
struct Said {
    pipe: ChildStdout,
    server: u32,
    bytes: Vec<u8>,
}

enum Heard {
    Line(String),
    /// The server is dead.
    End,
    /// It lives, but says nothing.
    Nothing,
}

impl Said {
    fn new(server: &mut Child) -> Said {
        Said { pipe: server.stdout.take().expect("it was piped"), server: server.id(), bytes: Vec::new() }
    }

    /// The next line. A dead server is noticed although one of its threads, waiting for the
    /// device, keeps the pipe open.
    fn line(&mut self, deadline: Instant) -> Heard {
        let tick = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.bytes.drain(..=end).collect();
                return Heard::Line(String::from_utf8_lossy(&line).into_owned());
            }
            match poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], Some(&tick)) {
                Ok(0) | Err(Errno::INTR) if process_start(self.server).is_none() => return Heard::End,
                Ok(0) | Err(Errno::INTR) if Instant::now() >= deadline => return Heard::Nothing,
                Ok(0) | Err(Errno::INTR) => {}
                _ => {
                    let mut part = [0; 4096];
                    match self.pipe.read(&mut part) {
                        Ok(0) | Err(_) => return Heard::End,
                        Ok(n) => self.bytes.extend_from_slice(&part[..n]),
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_known_by_its_number() {
        let not = |path: &str, number| not_the_node(Path::new(path), number, "FUSE");
        assert_eq!(not("/dev/null", (1, 3)), None);
        let told = not("/dev/null", (10, 229)).expect("another device");
        assert!(told.contains("is the device 1:3") && told.contains("10:229"), "{told}");
        assert!(not("/proc/self/stat", (10, 229)).expect("a file").contains("no character device"));
        assert!(not("/dev/no-such-node", (10, 229)).expect("nothing").contains("is missing"));
    }
}
