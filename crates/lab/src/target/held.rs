//! Disks under measurement: one command at a time measures a disk, or sets it.
//!
//! A held disk is locked at its folder in sysfs, so that the kernel gives it free with the process,
//! and commands of other users see the lock. The step in the journal says who holds it. Below a
//! device made of others these are held as well. They are taken in the order of their names, so
//! that two commands do not wait for each other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::LabError;
use crate::machine::{BlockDevice, whole_disk};
use crate::undo::{Step, Undo, living, state_dir};

/// How often a command that waits looks again.
const LOOK: Duration = Duration::from_millis(100);

/// The choice of what happens when another command measures the disk.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Busy {
    /// Wait while another command measures the device, instead of giving up
    #[arg(long = "wait")]
    waits: bool,
}

impl Busy {
    /// Holds the disks of some devices until `undo` has undone everything.
    ///
    /// # Errors
    /// Another command measures one of them; `stop` was set while waiting.
    pub fn hold(self, devices: &[BlockDevice], undo: &Undo, stop: &AtomicBool) -> Result<(), LabError> {
        let disks: BTreeSet<PathBuf> = devices.iter().flat_map(|device| with_parts(&device.sys())).collect();
        for disk in disks {
            let mut told = false;
            while !undo.hold(&disk)? {
                let name = disk.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let holder = holder(&disk);
                if !self.waits {
                    return Err(LabError::refused(
                        name,
                        format!("is being measured by {holder}"),
                        "two measurements of one disk measure each other: wait for its end, or add --wait",
                    ));
                }
                if !told {
                    crate::tell!("waiting for {holder}, which measures {name}");
                    told = true;
                }
                if stop.load(Ordering::Relaxed) {
                    return Err(LabError::Stopped);
                }
                std::thread::sleep(LOOK);
            }
        }
        Ok(())
    }
}

/// The folder of a device, and those of all that it is made of.
fn with_parts(device: &Path) -> Vec<PathBuf> {
    let Ok(device) = fs::canonicalize(device) else { return Vec::new() };
    let parts = fs::read_dir(device.join("slaves")).into_iter().flatten().flatten();
    let below = parts.filter_map(|part| whole_disk(fs::canonicalize(part.path()).ok()?));
    let mut all: Vec<PathBuf> = below.flat_map(|disk| with_parts(&disk)).collect();
    all.push(device);
    all
}

/// The command that holds a disk, as far as its journal tells.
fn holder(disk: &Path) -> String {
    let holds = |step: &Step| matches!(step, Step::Hold { disk: held } if held == disk);
    let commands = living(&state_dir()).unwrap_or_default();
    match commands.into_iter().find(|command| command.steps.iter().any(holds)) {
        Some(command) => format!("`snowmelt-lab {}` (process {})", command.what, command.pid),
        None => "another command".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The disk of the folder for temporary files, if there is one.
    fn disk() -> Option<BlockDevice> {
        let disk = BlockDevice::find(&std::env::temp_dir()).ok()??;
        disk.sys().exists().then_some(disk)
    }

    #[test]
    fn a_disk_is_held_once_and_until_all_is_undone() {
        let Some(disk) = disk() else {
            println!("skipped: temporary files are on no block device here");
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        let undo = || Undo::open_in(dir.path(), "test").unwrap();
        let (first, second, third) = (undo(), undo(), undo());
        let stop = AtomicBool::new(false);
        let patient = Busy { waits: true };
        // Another test of this machine may measure it.
        patient.hold(&[disk.clone(), disk.clone()], &first, &stop).unwrap();
        let refused = Busy::default().hold(std::slice::from_ref(&disk), &second, &stop).unwrap_err();
        assert!(refused.to_string().contains("is being measured by"), "{refused}");
        assert!(refused.to_string().contains("--wait"), "{refused}");
        std::thread::scope(|scope| {
            let waiting =
                scope.spawn(|| patient.hold(std::slice::from_ref(&disk), &third, &AtomicBool::new(false)));
            std::thread::sleep(3 * LOOK);
            assert!(!waiting.is_finished());
            first.undo().unwrap();
            waiting.join().unwrap().unwrap();
        });
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(patient.hold(&[disk], &second, &stop), Err(LabError::Stopped)));
    }
}
