//! Disks under measurement: one command at a time measures a disk, or sets it.
//!
//! A held disk is locked at its folder in sysfs, so that the kernel gives it free with the process,
//! and commands of other users see the lock. The kernel's table of locks says who holds it. Below a
//! device made of others, or of a file on another, these are held as well. They are taken in the
//! order of their names, so that two commands do not wait for each other.
//!
//! A command that was killed has given its disk free and left its settings on it: the disk is
//! refused until they are set back.
//!
//! In a container with a network of its own sysfs is another one, and so are its locks.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::LabError;
use crate::machine::stacked::loop_file;
use crate::machine::{BlockDevice, whole_disk};
use crate::undo::{Leftover, Step, Undo, left_by_root, leftovers, processes_below, state_dirs};

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
    /// Waits, whatever the command line says.
    #[cfg(test)]
    pub(crate) fn patient() -> Busy {
        Busy { waits: true }
    }

    /// Holds the disks of some devices until `undo` has undone everything. What is known of their
    /// settings must be looked at after that.
    ///
    /// # Errors
    /// Another command measures one of them, or was killed while it did; `stop` was set while
    /// waiting.
    pub fn hold(self, devices: &[BlockDevice], undo: &Undo, stop: &AtomicBool) -> Result<(), LabError> {
        let disks = disks_of(devices);
        for disk in &disks {
            let mut told = String::new();
            while !undo.hold(disk)? {
                let name = name_of(disk);
                let holder = shown_holder(disk);
                if !self.waits {
                    return Err(LabError::refused(
                        name,
                        format!("is being measured by {holder}"),
                        "two measurements of one disk measure each other: wait for its end, or add --wait",
                    ));
                }
                if told != holder {
                    crate::tell!("waiting for {holder}, which measures {name}");
                    told = holder;
                }
                if stop.load(Ordering::Relaxed) {
                    return Err(LabError::Stopped);
                }
                std::thread::sleep(LOOK);
            }
        }
        refuse_leftovers(&disks, &all_leftovers()?)
    }
}

/// Leftovers of this user and of root.
pub(crate) fn all_leftovers() -> Result<Vec<Leftover>, LabError> {
    let mut all = left_by_root();
    for dir in state_dirs() {
        all.extend(leftovers(&dir)?);
    }
    Ok(all)
}

/// Refuses a disk whose settings are those of a command that was killed.
fn refuse_leftovers(disks: &BTreeSet<PathBuf>, leftovers: &[Leftover]) -> Result<(), LabError> {
    for leftover in leftovers.iter().filter(|leftover| !leftover.kept) {
        for step in leftover.steps() {
            let Step::Set { path, old, .. } = step else { continue };
            let real = fs::canonicalize(path).unwrap_or_default();
            let Some(disk) = disks.iter().find(|disk| real.starts_with(disk)) else { continue };
            return Err(LabError::refused(
                name_of(disk),
                format!(
                    "`{}` was killed and left its settings: {} was {old:?}",
                    leftover.command.join(" "),
                    path.display()
                ),
                "`snowmelt-lab restore` sets them back, of a command of root as root",
            ));
        }
    }
    Ok(())
}

/// Commands that measure the disks which another one only looks at: reasons to doubt what it sees.
pub(crate) struct Neighbours {
    disks: BTreeSet<PathBuf>,
    /// Processes whose own measurements they are, with what they have started.
    own: Vec<u32>,
    seen: BTreeSet<String>,
}

impl Neighbours {
    /// Looks at the disks of some devices. What this process or `own` started is none.
    pub fn look(devices: &[BlockDevice], own: Option<u32>) -> Neighbours {
        let own = own.into_iter().chain([std::process::id()]).collect();
        let mut neighbours = Neighbours { disks: disks_of(devices), own, seen: BTreeSet::new() };
        neighbours.look_again();
        neighbours
    }

    fn look_again(&mut self) {
        let held: Vec<(&PathBuf, Holder)> =
            self.disks.iter().filter_map(|disk| Some((disk, holder(disk)?))).collect();
        if held.is_empty() {
            return; // the usual case, without a look at all processes
        }
        let own =
            |pid: u32| self.own.iter().any(|root| *root == pid || processes_below(*root).contains(&pid));
        let others = held.into_iter().filter(|(_, holder)| !own(holder.pid));
        self.seen.extend(
            others.map(|(disk, holder)| format!("{} measures {} meanwhile", holder.show(), name_of(disk))),
        );
    }

    /// Those there were at the first look, and those there are now.
    pub fn doubts(mut self) -> impl Iterator<Item = String> {
        self.look_again();
        self.seen.into_iter()
    }
}

/// The folders of the disks below some devices.
fn disks_of(devices: &[BlockDevice]) -> BTreeSet<PathBuf> {
    devices.iter().flat_map(|device| with_parts(&device.sys())).collect()
}

fn name_of(disk: &Path) -> String {
    disk.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The folder of a device, and those of all that it is made of.
fn with_parts(device: &Path) -> Vec<PathBuf> {
    let Ok(device) = fs::canonicalize(device) else { return Vec::new() };
    let parts = fs::read_dir(device.join("slaves")).into_iter().flatten().flatten();
    let below = parts.filter_map(|part| whole_disk(fs::canonicalize(part.path()).ok()?));
    let mut all: Vec<PathBuf> = below.flat_map(|disk| with_parts(&disk)).collect();
    all.extend(behind_loop(&device).into_iter().flat_map(|disk| with_parts(&disk.sys())));
    all.push(device);
    all
}

/// The disk that has the file of a loop device.
fn behind_loop(device: &Path) -> Option<BlockDevice> {
    let file = loop_file(device)?;
    // Of a file that was removed since, and is called so, the folder tells as well.
    let place = file.ancestors().find(|place| place.exists())?;
    BlockDevice::find(place).ok()?
}

/// The command that holds a disk or a control group, by its command line.
pub(crate) fn shown_holder(held: &Path) -> String {
    holder(held).map_or("another command".into(), |holder| holder.show())
}

/// The process that holds a disk.
struct Holder {
    pid: u32,
}

impl Holder {
    /// Its command line, shortened.
    fn show(&self) -> String {
        const MOST: usize = 100;
        let words = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        let mut words = words.split('\0').filter(|word| !word.is_empty());
        let Some(program) = words.next() else { return format!("another command (process {})", self.pid) };
        let program = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
        let line = std::iter::once(&*program).chain(words).collect::<Vec<_>>().join(" ");
        let cut: String = line.chars().take(MOST).collect();
        let more = if cut.len() < line.len() { " …" } else { "" };
        format!("`{cut}{more}` (process {})", self.pid)
    }
}

/// The holder of a disk, by the kernel's table of locks; processes of other containers are not in
/// it.
fn holder(disk: &Path) -> Option<Holder> {
    let meta = fs::metadata(disk).ok()?;
    let dev = meta.dev();
    let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
    let place = format!("{major:02x}:{minor:02x}:{}", meta.ino());
    holder_in(&fs::read_to_string("/proc/locks").ok()?, &place)
}

/// Lines are `1: FLOCK  ADVISORY  WRITE 1234 00:15:4711 0 EOF`; those that wait have an arrow.
fn holder_in(table: &str, place: &str) -> Option<Holder> {
    table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, "WRITE", pid, at, ..] if at == place => {
                Some(Holder { pid: pid.parse().ok().filter(|pid| *pid > 0)? })
            }
            _ => None,
        }
    })
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
        let patient = Busy::patient();
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
        let table = "1: POSIX  ADVISORY  WRITE 7 00:15:4711 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 8 00:15:471 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 9 00:15:4711 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 10 00:15:4711 0 EOF\n";
        assert_eq!(holder_in(table, "00:15:4711").map(|holder| holder.pid), Some(9));
        assert!(holder_in(table, "00:15:1").is_none());
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(patient.hold(&[disk], &second, &stop), Err(LabError::Stopped)));
    }

    #[test]
    fn the_disk_below_the_file_of_a_loop_device_is_held_too() {
        let Some(disk) = disk() else {
            println!("skipped: temporary files are on no block device here");
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(&dir.path().join("state"), "test").unwrap();
        let backing = dir.path().join("a backing file");
        std::fs::write(&backing, vec![1; 1 << 20]).unwrap();
        let attached = undo.attach_loop(&backing, &snowmelt_io::LoopOptions::default());
        let Ok((_, device)) = attached else { return println!("skipped: no loop devices here") };
        let device = BlockDevice::find(&device).unwrap().unwrap();
        let names: Vec<String> = disks_of(std::slice::from_ref(&device)).iter().map(|d| name_of(d)).collect();
        assert!(names.contains(&disk.name) && names.contains(&device.name), "{names:?}");
        std::fs::remove_file(&backing).unwrap();
        assert_eq!(disks_of(std::slice::from_ref(&device)).len(), 2, "a removed file lies there still");
        undo.undo().unwrap();
    }

    #[test]
    fn settings_of_a_killed_command_are_set_back_first() {
        let dir = tempfile::tempdir().unwrap();
        let disk = fs::canonicalize(dir.path()).unwrap().join("sdx");
        fs::create_dir_all(disk.join("queue")).unwrap();
        let setting = disk.join("queue/scheduler");
        fs::write(&setting, "none\n").unwrap();
        let journals = dir.path().join("journals");
        let undo = Undo::open_in(&journals, "scan").unwrap();
        undo.set(&setting, "bfq").unwrap();
        let text = fs::read_to_string(undo.path()).unwrap();
        let disks = BTreeSet::from([disk]);
        refuse_leftovers(&disks, &leftovers(&journals).unwrap()).unwrap(); // it lives
        undo.undo().unwrap();
        let dead = text.replace(&format!("\"pid\":{}", std::process::id()), "\"pid\":4294967295");
        assert_ne!(dead, text);
        fs::write(journals.join("dead.journal"), dead).unwrap();
        let found = leftovers(&journals).unwrap();
        let error = refuse_leftovers(&disks, &found).unwrap_err().to_string();
        assert!(error.contains("was killed") && error.contains("restore"), "{error}");
        refuse_leftovers(&BTreeSet::from([dir.path().join("sdy")]), &found).unwrap();
    }

    #[test]
    fn another_command_that_measures_is_a_reason_for_doubt() {
        let Some(disk) = disk() else {
            println!("skipped: temporary files are on no block device here");
            return;
        };
        let devices = [disk];
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(dir.path(), "test").unwrap();
        Busy::patient().hold(&devices, &undo, &AtomicBool::new(false)).unwrap();
        let it = format!("(process {}) measures {} meanwhile", std::process::id(), devices[0].name);
        let names_it = |neighbours: Neighbours| neighbours.doubts().any(|doubt| doubt.contains(&it));
        let is_foreign = Neighbours { disks: disks_of(&devices), own: Vec::new(), seen: BTreeSet::new() };
        let told = [Neighbours::look(&devices, None), is_foreign].map(names_it);
        undo.undo().unwrap();
        assert_eq!(told, [false, true], "its own is none");
    }
}
