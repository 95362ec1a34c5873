//! Ending a FUSE connection from outside: every request that waits for its server, and every
//! later one, fails at once.
//!
//! The kernel numbers connections by the device number of the mount, and shows each as a folder
//! of its control file system (`/sys/fs/fuse/connections/N`), whose `abort` needs no lock that
//! a hung device could hold. An unmount by force does the same first of all, and is tried where
//! there is no such folder.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use snowmelt_io::{ApartCall, apart};

use super::mounts::unescape;
use super::outcome::Outcome;
use super::state_dir::state_dir;

/// Where the control file system usually is.
const CONTROL: &str = "/sys/fs/fuse/connections";

/// An abort does not wait.
const PATIENCE: Duration = Duration::from_secs(5);

/// Fails all requests to the FUSE file system mounted on `target`, now and in future, whether
/// its server lives or not.
///
/// # Errors
/// The connection cannot be aborted, and the mount cannot be taken down by force.
pub fn abort(target: &Path) -> io::Result<Outcome> {
    let table = std::fs::read_to_string("/proc/self/mountinfo")?;
    let Some(number) = connection_in(&table, target) else { return Ok(Outcome::Gone) };
    match abort_connection(number) {
        Ok(()) => Ok(Outcome::Undone),
        Err(_) => by_force(target),
    }
}

fn abort_connection(number: u32) -> io::Result<()> {
    let abort_in = |control: &Path| {
        let path = control.join(number.to_string()).join("abort");
        apart(ApartCall::Write(&path, "1"), PATIENCE).map(drop)
    };
    match abort_in(Path::new(CONTROL)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => with_control(abort_in),
        other => other,
    }
}

/// The control file system is not mounted on every machine: for a moment it is, on a folder of
/// ours.
fn with_control(act: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let folder = state_dir().join(format!("fuse-control-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let done = apart(ApartCall::MountFuseControl(&folder), PATIENCE).and_then(|_| {
        let done = act(&folder);
        apart(ApartCall::UnmountLater(&folder), PATIENCE)?;
        done
    });
    drop(std::fs::remove_dir(&folder)); // empty, and of no use to anybody else
    done
}

fn by_force(target: &Path) -> io::Result<Outcome> {
    match apart(ApartCall::UnmountByForce(target), PATIENCE) {
        Ok(_) => Ok(Outcome::Undone),
        Err(e) => match Errno::from_io_error(&e) {
            // The requests have failed; who has files open keeps the mount.
            Some(Errno::BUSY) => Ok(Outcome::Undone),
            Some(Errno::INVAL | Errno::NOENT) => Ok(Outcome::Gone),
            _ => Err(e),
        },
    }
}

/// The number of the connection behind the FUSE mount on `target`, the topmost if there are
/// several.
fn connection_in(table: &str, target: &Path) -> Option<u32> {
    let of_target = |line: &str| {
        let (mount, source) = line.split_once(" - ")?;
        let mut fields = mount.split(' ');
        let (device, place) = (fields.nth(2)?, fields.nth(1)?);
        let kind = source.split(' ').next()?;
        let fuse = kind == "fuse" || kind.starts_with("fuse.");
        let (major, minor) = device.split_once(':')?;
        // The kernel's own form of a device number, as the folders are called.
        let number = major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?;
        (fuse && PathBuf::from(unescape(place)) == target).then_some(number)
    };
    table.lines().filter_map(of_target).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_found_by_its_mount() {
        let table = "22 1 253:0 / / rw - ext4 /dev/vda rw\n\
                     42 27 0:39 / /run/x/a\\040b.mnt rw,nosuid shared:3 - fuse.snowmelt-lab x rw,user_id=0\n\
                     43 27 0:40 / /run/x/c.mnt rw,nosuid - fuse c rw\n\
                     44 27 0:41 / /run/x/c.mnt rw,nosuid - fuse c rw\n\
                     45 27 0:42 / /run/x/d.mnt rw - tmpfs d rw\n";
        let of = |target: &str| connection_in(table, Path::new(target));
        assert_eq!(of("/run/x/a b.mnt"), Some(39));
        assert_eq!(of("/run/x/c.mnt"), Some(41), "the one on top");
        assert_eq!(of("/run/x/d.mnt"), None, "not FUSE");
        assert_eq!(of("/run/x/e.mnt"), None);
    }

    #[test]
    fn what_is_not_mounted_needs_no_abort() {
        let dir = tempfile::tempdir().expect("a folder");
        assert_eq!(abort(dir.path()).expect("looked"), Outcome::Gone);
    }
}
