//! `lab cap`: caps of the I/O of any program on a block device, by control groups.
//!
//! 1. The caps are set in a group (a new one, or with `--cgroup` one that is there), and read
//!    back.
//! 2. The program is started in it, or processes that run already are moved into it.
//! 3. When the program ends, or with Ctrl-C, everything is as before: the processes in their old
//!    groups, the new group removed, the old caps of one that was there.
//!
//! All messages go to standard error: the output is the program's.

mod processes;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::LabError;
use crate::cap::processes::Held;
use crate::group::caps::{CapDevice, Caps, CapsInForce, parse_bytes, parse_ops};
use crate::group::{Limited, ProgramLimits, ROOT, io_folder};
use crate::machine::BlockDevice;
use crate::machine::program::Program;
use crate::target::held::Neighbours;
use crate::undo::Undo;
use crate::undo::signals::stop_on_signal;

/// How often the end of processes is looked for.
const EVERY: Duration = Duration::from_millis(50);

/// Cap the I/O of a program on a device: one to start, processes that run, or a control group.
#[derive(Debug, clap::Args)]
pub struct CapArgs {
    /// The block device, or a file or folder on it; of a partition, the whole disk is capped
    #[arg(long, short, value_name = "DEVICE|FILE")]
    device: PathBuf,
    /// Bytes read per second: 125MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    read: Option<u64>,
    /// Bytes written per second
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    write: Option<u64>,
    /// Reads per second
    #[arg(long, value_name = "N", value_parser = parse_ops)]
    read_ops: Option<u64>,
    /// Writes per second
    #[arg(long, value_name = "N", value_parser = parse_ops)]
    write_ops: Option<u64>,
    /// Processes that run already, with what they have started; until they or Ctrl-C end it
    #[arg(long, value_name = "PID", value_delimiter = ',', group = "subject")]
    pid: Vec<u32>,
    /// A control group, where it is, until Ctrl-C: a path below /sys/fs/cgroup, or as in
    /// /proc/PID/cgroup; the way for a systemd unit
    #[arg(long, value_name = "PATH", group = "subject")]
    cgroup: Option<PathBuf>,
    /// The program to start; its exit code is that of the command
    #[arg(last = true, value_name = "CMD", group = "subject")]
    command: Vec<String>,
}

/// Runs the command; its exit code.
///
/// # Errors
/// The caps cannot be set, there is no such process or group, or the program cannot be started.
pub fn run(args: &CapArgs) -> Result<u8, LabError> {
    let caps = Caps {
        read_bytes_per_s: args.read,
        write_bytes_per_s: args.write,
        reads_per_s: args.read_ops,
        writes_per_s: args.write_ops,
    };
    if caps.is_empty() {
        return Err(LabError::Argument(
            "name a cap: --read 125MiB, --write SIZE, --read-ops N, --write-ops N".into(),
        ));
    }
    let device = CapDevice::find(&args.device)?;
    let disk = BlockDevice::find(&args.device)?;
    Neighbours::look(disk.as_slice(), None).doubts().for_each(|other| crate::tell!("note: {other}"));
    let undo = Undo::open("cap")?;
    let code = match (&args.cgroup, args.pid.as_slice(), args.command.as_slice()) {
        (Some(path), ..) => hold_group(path, &device, &caps, &undo).map(|()| 0),
        (_, pids @ [_, ..], _) => hold_processes(pids, &device, &caps, &undo).map(|()| 0),
        (.., command @ [_, ..]) => around(command, device, caps, &undo),
        _ => Err(LabError::Argument("name what to cap: --pid P, --cgroup PATH, or -- CMD".into())),
    }?;
    undo.undo()?;
    Ok(code)
}

/// Starts a program under the caps and waits for its end.
fn around(command: &[String], device: CapDevice, caps: Caps, undo: &Undo) -> Result<u8, LabError> {
    let limits = ProgramLimits { memory_bytes: None, caps: Some((device, caps)) };
    let limited = Limited::make(&limits, undo)?;
    limited.caps.iter().for_each(tell);
    let program = Program::start(&limited.enter(command), undo)?;
    program.wait(EVERY, &mut || true);
    limited.caps_changed().iter().for_each(|why| crate::tell!("warning: {why}"));
    Ok(program.exit_code())
}

/// Holds processes that run already under the caps.
fn hold_processes(pids: &[u32], device: &CapDevice, caps: &Caps, undo: &Undo) -> Result<(), LabError> {
    let programs: Vec<Program> = pids.iter().map(|pid| Program::running(*pid)).collect::<Result<_, _>>()?;
    let stop = stop_on_signal();
    let mut held = Held::make(Path::new(ROOT), pids[0], undo)?;
    if caps.hold_writes() {
        held.count_page_cache();
    }
    tell(&caps.set(held.group(), device, undo)?);
    for pid in pids {
        held.take(*pid)?;
    }
    held.homes()
        .iter()
        .filter_map(|home| loosened(home, device, caps))
        .for_each(|why| crate::tell!("note: {why}"));
    crate::tell!("{} processes are in {}; Ctrl-C moves them back", held.count(), held.group().display());
    while !stop.requested() && programs.iter().any(|program| !program.is_over()) {
        std::thread::sleep(EVERY);
    }
    undo.undo()?;
    crate::tell!("moved back");
    Ok(())
}

/// Holds the processes of a control group under the caps, where they are.
fn hold_group(path: &Path, device: &CapDevice, caps: &Caps, undo: &Undo) -> Result<(), LabError> {
    let stop = stop_on_signal();
    let group = io_folder(Path::new(ROOT), path, undo)?;
    let in_force = caps.set(&group, device, undo)?;
    tell(&in_force);
    if in_force.version == 1 && has_groups_below(&group) {
        crate::tell!("note: in control groups v1 the caps do not hold for the groups below this one");
    }
    crate::tell!("held in {}; Ctrl-C sets the old caps again", group.display());
    while !stop.requested() && group.exists() {
        std::thread::sleep(EVERY);
    }
    undo.undo()?;
    crate::tell!("the caps are as before");
    Ok(())
}

fn tell(in_force: &CapsInForce) {
    crate::tell!("{in_force}");
    if let Some(doubt) = in_force.doubt() {
        crate::tell!("note: {doubt}");
    }
}

/// Caps of a group that its processes left which do not hold meanwhile.
fn loosened(home: &Path, device: &CapDevice, caps: &Caps) -> Option<String> {
    let before = Caps::read(home, device).ok()?; // the root of v2 has none
    before.are_loosened_by(caps).then(|| {
        format!("the caps of {} ({before} on {}) do not hold meanwhile", home.display(), device.name)
    })
}

fn has_groups_below(group: &Path) -> bool {
    let entries = std::fs::read_dir(group).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
}
