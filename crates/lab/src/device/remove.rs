//! `snowmelt-lab device remove`: file systems, loop device, mount, server, in that order; by
//! force when the server hangs.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use snowmelt_io::{ApartCall, apart};

use super::hung::waits_in;
use super::state::{self, Record};
use crate::LabError;
use crate::undo::{UNMOUNT_PATIENCE, UndoError, abort, leftovers, mounts_of, state_dir};

/// Take devices down.
#[derive(Debug, clap::Args)]
pub struct RemoveArgs {
    /// Names of the devices
    #[arg(required_unless_present = "all")]
    pub names: Vec<String>,
    /// All there are
    #[arg(long)]
    pub all: bool,
    /// Also when a file system on it is in use
    #[arg(long)]
    pub force: bool,
}

/// A server that has not ended by then is ended by force.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the command.
pub fn run(args: &RemoveArgs) -> Result<(), LabError> {
    let records = match args.all {
        true => state::all()?,
        false => args.names.iter().map(|name| state::load(name)).collect::<Result<_, _>>()?,
    };
    records.iter().try_for_each(|record| remove(record, args.force))
}

/// Takes a device down.
pub fn remove(record: &Record, force: bool) -> Result<(), LabError> {
    if record.is_alive() {
        if !force {
            unmount_all(record)?;
        }
        end_server(record);
    }
    take_away_leftovers(record)?;
    state::remove_log(&record.spec.name);
    Ok(())
}

fn unmount_all(record: &Record) -> Result<(), LabError> {
    for target in mounts_of(&record.device).iter().rev() {
        let refused = |e: std::io::Error| {
            let why = format!(
                "{} is mounted on {} and cannot be unmounted ({e})",
                record.device.display(),
                target.display()
            );
            let instead = match e.kind() {
                ErrorKind::TimedOut => "wait until it is written out, or give --force and lose what is not",
                _ => "end what uses it, or give --force",
            };
            LabError::refused(format!("remove {}", record.spec.name), why, instead)
        };
        apart(ApartCall::Unmount(target), UNMOUNT_PATIENCE).map_err(refused)?;
    }
    Ok(())
}

/// Asks the server to end; aborts its connection and kills it when it does not.
fn end_server(record: &Record) {
    let Some(pid) = Pid::from_raw(record.pid as i32) else { return };
    let _ = kill_process(pid, Signal::TERM); // it may have ended by itself
    if ends_within(record, PATIENCE) {
        return;
    }
    crate::tell!("{}: its server does not end; its connection is aborted", record.spec.name);
    let _ = abort(&record.mount);
    let _ = kill_process(pid, Signal::KILL);
    ends_within(record, PATIENCE);
}

fn ends_within(record: &Record, patience: Duration) -> bool {
    let began = Instant::now();
    while began.elapsed() < patience {
        if !record.is_alive() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Remains of a killed server, from its journal; which is locked until the last of
/// its threads is gone.
fn take_away_leftovers(record: &Record) -> Result<(), LabError> {
    let name = &record.spec.name;
    let began = Instant::now();
    while state::record_path(name).exists() {
        restore_leftovers(name)?;
        if began.elapsed() > PATIENCE {
            let why = match record.is_alive() {
                true => format!(
                    "device {name} (its server, process {}, has not ended within {} s of SIGKILL: it waits in the kernel, {})",
                    record.pid,
                    PATIENCE.as_secs(),
                    waits_in(record.pid)
                ),
                false => format!(
                    "device {name} (its server is dead, its threads have not ended within {} s)",
                    PATIENCE.as_secs()
                ),
            };
            return Err(UndoError::Left(vec![why]).into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Undoes what is in the journals of dead servers of device `name`.
pub fn restore_leftovers(name: &str) -> Result<(), UndoError> {
    let what = format!("device-{name}");
    let of_device = leftovers(&state_dir())?.into_iter().filter(|leftover| leftover.what == what);
    of_device.into_iter().try_for_each(|leftover| leftover.restore(&mut |_, _| {}))
}
