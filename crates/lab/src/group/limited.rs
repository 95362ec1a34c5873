//! A program in groups of its own, with limits of its memory and of its I/O.

use std::fs;
use std::path::{Path, PathBuf};

use super::caps::{CapDevice, Caps, CapsInForce};
use super::{Controller, Group, Members, ROOT, Seat};
use crate::LabError;
use crate::undo::{Undo, UndoError, signals};

/// Limits of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramLimits {
    /// Memory, page cache included.
    pub memory_bytes: Option<u64>,
    /// I/O on a device.
    pub caps: Option<(CapDevice, Caps)>,
}

impl ProgramLimits {
    /// True when nothing is limited.
    pub fn is_empty(&self) -> bool {
        self.memory_bytes.is_none() && self.caps.is_none()
    }
}

/// New groups with limits, for a program to be started in.
pub struct Limited {
    /// The group of its memory if that is limited, else of its I/O.
    pub group: Group,
    /// Caps of its I/O, as they read back after they were set.
    pub caps: Option<CapsInForce>,
    /// Each folder that the program enters: in v1 one per controller.
    folders: Vec<PathBuf>,
    capped: Option<(PathBuf, CapDevice)>,
}

impl Limited {
    /// Makes the groups. They are removed with the journal; processes left in them are killed.
    ///
    /// # Errors
    /// A controller is not there, or cannot be used without root.
    pub fn make(limits: &ProgramLimits, undo: &Undo) -> Result<Limited, LabError> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut places = Places { own, made: Vec::new(), undo };
        let memory = limits.memory_bytes.map(|bytes| limit_memory(bytes, &mut places)).transpose()?;
        let mut made = Limited {
            group: Group { procs: PathBuf::new(), memory: memory.clone() },
            caps: None,
            folders: Vec::new(),
            capped: None,
        };
        if let Some((device, caps)) = &limits.caps {
            let folder = places.group(Controller::Io, &format!("capping the I/O on {}", device.name))?;
            if caps.hold_writes() {
                places.count_page_cache();
            }
            made.caps = Some(caps.set(&folder, device, undo)?);
            made.capped = Some((folder, device.clone()));
        }
        made.folders = places.made.into_iter().map(|(_, folder)| folder).collect();
        made.group.procs = made.folders.first().cloned().unwrap_or_default();
        Ok(made)
    }

    /// A command that enters the groups before it becomes `command`: so all its memory and I/O
    /// counts.
    pub fn enter(&self, command: &[String]) -> Vec<String> {
        let enter: String = (1..=self.folders.len()).map(|n| format!("echo $$ > \"${n}\" && ")).collect();
        let script = format!("{enter}shift {} && exec \"$@\"", self.folders.len());
        let shell = ["sh", "-c", &script, "sh"].map(String::from);
        let procs = self.folders.iter().map(|folder| folder.join("cgroup.procs").display().to_string());
        shell.into_iter().chain(procs).chain(command.iter().cloned()).collect()
    }

    /// The difference, if the caps read otherwise now than after they were set.
    pub fn caps_changed(&self) -> Option<String> {
        let (folder, device) = self.capped.as_ref()?;
        let before = self.caps.as_ref()?;
        match CapsInForce::read(folder, device) {
            _ if signals::ending() => None, // they are being taken back
            Ok(now) if now.caps == before.caps => None,
            Ok(now) => Some(format!("the caps were changed meanwhile: {before}; at the end {now}")),
            Err(e) => Some(format!("the caps could not be read at the end: {e}")),
        }
    }
}

/// Groups made so far.
struct Places<'a> {
    own: String,
    made: Vec<(Seat, PathBuf)>,
    undo: &'a Undo,
}

impl Places<'_> {
    /// The group in which a controller limits: one made before, or a new one.
    fn group(&mut self, controller: Controller, doing: &str) -> Result<PathBuf, LabError> {
        let failed = |e: UndoError| {
            let instead = match controller {
                Controller::Memory => "systemd-run -p MemoryMax=… with --unit is another way",
                Controller::Io => "systemd-run -p IOReadBandwidthMax=… is another way",
            };
            LabError::refused(doing, e.to_string(), instead)
        };
        let Some(seat) = Seat::find(Path::new(ROOT), controller, &self.own) else {
            let why =
                format!("no {} controller of control groups is mounted below {ROOT}", controller.name());
            return Err(LabError::refused(doing, why, "it needs root and a kernel that has it"));
        };
        seat.enable(controller, self.undo).map_err(failed)?;
        if let Some((_, folder)) = self.made.iter().find(|(made, _)| made.unified && seat.unified) {
            return Ok(folder.clone());
        }
        let folder = seat.make_group(&Members::Started, self.undo).map_err(failed)?;
        self.made.push((seat, folder.clone()));
        Ok(folder)
    }

    /// Has v2 count the page cache by group, so that writing it back is capped too. Without it
    /// the caps hold for other writes, which the doubt says.
    fn count_page_cache(&self) {
        if let Some((seat, _)) = self.made.iter().find(|(seat, _)| seat.unified) {
            let _ = seat.enable(Controller::Memory, self.undo);
        }
    }
}

fn limit_memory(bytes: u64, places: &mut Places<'_>) -> Result<PathBuf, LabError> {
    if bytes < 1 << 20 {
        return Err(LabError::Argument("--memory-limit must be at least 1m".into()));
    }
    let folder = places
        .group(Controller::Memory, &format!("a memory limit of {}", crate::size::about(bytes as f64)))?;
    let (limit, swap) = match places.made.iter().any(|(seat, made)| seat.unified && *made == folder) {
        true => ("memory.max", ("memory.swap.max", 0)),
        false => ("memory.limit_in_bytes", ("memory.memsw.limit_in_bytes", bytes)),
    };
    let path = folder.join(limit);
    fs::write(&path, bytes.to_string()).map_err(|e| LabError::file("set the limit in", &path, e))?;
    // Swap would be memory beyond the limit; a kernel without it lacks the file.
    let _ = fs::write(folder.join(swap.0), swap.1.to_string());
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_memory(bytes: u64) -> ProgramLimits {
        ProgramLimits { memory_bytes: Some(bytes), caps: None }
    }

    #[test]
    fn a_program_stays_below_its_limit_and_the_group_goes_with_all_that_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(dir.path(), "test").unwrap();
        let limited = match Limited::make(&of_memory(64 << 20), &undo) {
            Ok(limited) => limited,
            Err(e) => return println!("skipped: {e}"),
        };
        let folder = limited.group.procs.clone();
        let file = dir.path().join("data");
        // 128 MiB through the page cache, then a process that stays.
        let line =
            format!("dd if=/dev/zero of={} bs=1M count=128 status=none; sleep 600 & true", file.display());
        let command = limited.enter(&["sh".into(), "-c".into(), line]);
        assert!(std::process::Command::new(&command[0]).args(&command[1..]).status().unwrap().success());
        let total = limited.group.total().expect("the kernel counts");
        assert!(total.most_bytes <= 64 << 20 && total.most_bytes > 32 << 20, "{total:?}");
        assert_eq!(limited.group.memory().unwrap().limit_bytes, Some(64 << 20));
        let left: Vec<u32> = limited.group.pids().into_iter().collect();
        assert_eq!(left.len(), 1, "sleep is still there");
        undo.undo().unwrap();
        assert!(!folder.exists() && crate::undo::process_start(left[0]).is_none());
        assert!(Limited::make(&of_memory(1000), &undo).is_err());
    }

    #[test]
    fn a_program_has_both_limits_and_its_arguments_as_they_were() {
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(dir.path(), "test").unwrap();
        let device = match CapDevice::find(dir.path()) {
            Ok(device) => device,
            Err(e) => return println!("skipped: {e}"),
        };
        let caps = Caps { reads_per_s: Some(5000), ..Caps::default() };
        let limits = ProgramLimits { memory_bytes: Some(64 << 20), caps: Some((device, caps)) };
        let limited = match Limited::make(&limits, &undo) {
            Ok(limited) => limited,
            Err(e) => return println!("skipped: {e}"),
        };
        assert_eq!(limited.caps.as_ref().unwrap().caps, caps);
        let (folder, device) = limited.capped.clone().unwrap();
        let script = "cat \"$1\" /proc/self/cgroup";
        let list = folder.join("cgroup.procs").display().to_string();
        let command = limited.enter(&["sh", "-c", script, "a b", &list].map(String::from));
        let output = std::process::Command::new(&command[0]).args(&command[1..]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        for folder in &limited.folders {
            let name = folder.file_name().unwrap().to_str().unwrap();
            assert!(text.contains(name), "{name}: {text}");
        }
        assert!(text.starts_with(|c: char| c.is_ascii_digit()), "it is in the list: {text}");
        assert_eq!(limited.caps_changed(), None);
        undo.cap(&folder, &device.number, crate::undo::IoLimit::ReadOps, 77).unwrap();
        assert!(limited.caps_changed().unwrap().contains("77 reads/s"));
        undo.undo().unwrap();
        assert!(limited.folders.iter().all(|folder| !folder.exists()));
    }
}
