//! A file system made on a device, and mounted.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use crate::LabError;
use crate::undo::{Step, StepId, Undo, UndoError, state_dir};

/// A kind of file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[allow(missing_docs)] // their names say it
pub enum FileSystemKind {
    Ext4,
    Xfs,
    Btrfs,
}

impl FileSystemKind {
    /// As the kernel calls it.
    pub fn name(self) -> &'static str {
        match self {
            FileSystemKind::Ext4 => "ext4",
            FileSystemKind::Xfs => "xfs",
            FileSystemKind::Btrfs => "btrfs",
        }
    }

    /// Switches of its mkfs: whatever is there is overwritten, and nothing is discarded, because
    /// the loop device's file would get holes.
    fn switches(self) -> &'static [&'static str] {
        match self {
            FileSystemKind::Ext4 => &["-q", "-F", "-E", "nodiscard"],
            FileSystemKind::Xfs => &["-q", "-f", "-K"],
            FileSystemKind::Btrfs => &["-q", "-f", "-K"],
        }
    }

    fn package(self) -> &'static str {
        match self {
            FileSystemKind::Ext4 => "e2fsprogs",
            FileSystemKind::Xfs => "xfsprogs",
            FileSystemKind::Btrfs => "btrfs-progs",
        }
    }
}

/// A mounted file system.
pub(super) struct Volume {
    pub kind: FileSystemKind,
    /// Where it is mounted.
    pub folder: PathBuf,
    /// How it was made, in words.
    pub made: String,
    steps: [StepId; 2],
}

impl Volume {
    /// Makes it on a device and mounts it; or why that cannot be done here.
    ///
    /// # Errors
    /// Its mount cannot be journalled.
    pub fn make(
        kind: FileSystemKind,
        device: &Path,
        undo: &Undo,
    ) -> Result<Result<Volume, String>, LabError> {
        let name = kind.name();
        let left_out = |why: String| Ok(Err(format!("{name} was left out: {why}")));
        let program = format!("mkfs.{name}");
        let Some(path) = found(&program) else {
            return left_out(format!("there is no {program}; `apt-get install -y {}`", kind.package()));
        };
        let output = Command::new(&path).args(kind.switches()).arg(device).output();
        let output = output.map_err(|e| LabError::file("start", &path, e))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
            return left_out(format!("{program} failed on {}: {}", device.display(), last.trim()));
        }
        let folder = state_dir().join(format!("file-systems-{}-{name}", std::process::id()));
        let folder_step = undo.make_dir(&folder)?;
        let step = Step::Unmount { target: folder.clone() };
        let attempt = || mount(device, &folder, name, MountFlags::empty(), None).map_err(io::Error::from);
        match undo.make(step, attempt) {
            Ok((mount_step, ())) => {
                let made = format!("{name}: {program} {}; mounted {}", words_of(kind), options(&folder));
                Ok(Ok(Volume { kind, folder, made, steps: [mount_step, folder_step] }))
            }
            Err(UndoError::NotMade { cause, .. }) => {
                undo.undo_one(folder_step)?;
                match Errno::from_io_error(&cause) {
                    Some(Errno::NODEV) => left_out("this kernel has no such file system".into()),
                    _ => left_out(format!("it cannot be mounted ({cause})")),
                }
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Unmounts it.
    ///
    /// # Errors
    /// It is in use.
    pub fn take_down(self, undo: &Undo) -> Result<(), LabError> {
        self.steps.into_iter().try_for_each(|step| undo.undo_one(step))?;
        Ok(())
    }
}

fn words_of(kind: FileSystemKind) -> String {
    kind.switches().join(" ")
}

/// A program on the PATH, or where those of root are.
fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let root = ["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let folders = std::env::split_paths(&path).chain(root);
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Its options of mounting, as the kernel shows them.
fn options(folder: &Path) -> String {
    let table = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let of_folder = |line: &str| {
        let mut fields = line.split(' ');
        (Path::new(fields.nth(1)?) == folder).then(|| fields.nth(1).unwrap_or_default().to_owned())
    };
    table.lines().filter_map(of_folder).next_back().unwrap_or_default()
}
