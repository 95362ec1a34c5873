//! Files and devices that are written to: every command takes them by [`Busy::take`], so that
//! nothing is lost unasked, no other command measures the disk meanwhile, and a device that is in
//! use stays as it is.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, OFlags, Statx, StatxFlags, flock, fstatfs, statx};
use rustix::io::Errno;
use snowmelt_io::{block_claim, block_mounted_on, is_block_device};

use crate::LabError;
use crate::machine::BlockDevice;
use crate::machine::stacked::loop_file;
use crate::target::data_file::{disk_below, may_be_written};
use crate::target::held::Busy;
use crate::undo::Undo;

/// A block device that is this command's alone, as of a mount, or a file that no other command of
/// the laboratory writes to, until it is dropped: others find it in use. Nothing of a file that is
/// not there yet.
#[derive(Debug)]
#[must_use = "others can use the device as soon as it is dropped"]
pub(crate) struct Claim(#[allow(dead_code, reason = "held, not looked at")] Option<File>);

impl Busy {
    /// Takes a file or device to be written to, which may have to be made first: its content may be
    /// lost where `destroy` says so, its disk and those of `beside` are held until `undo` has
    /// undone everything, and nothing else uses it.
    ///
    /// # Errors
    /// It is there and its content is not to be lost, it is in use, or a disk cannot be held.
    pub(crate) fn take(
        self,
        place: &Path,
        destroy: bool,
        beside: &[BlockDevice],
        undo: &Undo,
        stop: &AtomicBool,
    ) -> Result<Claim, LabError> {
        may_be_written(place, destroy)?;
        let mut disks = beside.to_vec();
        disks.extend(disk_below(place)?);
        self.hold(&disks, undo, stop)?;
        // Not before: it may have come into use while another command was waited for.
        Claim::of(place)
    }
}

impl Claim {
    /// Refuses to write to what others use: a mounted device, one that holds others, or what is
    /// behind a loop device.
    ///
    /// # Errors
    /// It is in use, or cannot be opened.
    pub(crate) fn of(place: &Path) -> Result<Claim, LabError> {
        if let Some(name) = loop_of(place) {
            return Err(LabError::refused(
                place.display(),
                format!("is, or shares a disk with, what is behind /dev/{name}"),
                format!("its data would be destroyed: `losetup -d /dev/{name}` first, or write elsewhere"),
            ));
        }
        if !is_block_device(place) {
            return Claim::of_file(place);
        }
        let instead = "its data would be destroyed while in use: unmount it first";
        if let Some(mounted) = block_mounted_on(place) {
            return Err(LabError::refused(place.display(), format!("is mounted on {mounted}"), instead));
        }
        // This fails while a mount, swap or another holder has the device or a part of it.
        match block_claim(place) {
            Err(e) if e.kind() == ErrorKind::ResourceBusy => Err(LabError::refused(
                place.display(),
                "is in use (mounted, swap, or held by another device)",
                instead,
            )),
            Err(e) => Err(LabError::file("open", place, e)),
            Ok(claim) => Ok(Claim(Some(claim))),
        }
    }
}

impl Claim {
    /// Of a file that may have been made since it was taken.
    ///
    /// # Errors
    /// Another command has taken it since.
    pub(crate) fn once_made(self, place: &Path) -> Result<Claim, LabError> {
        if self.0.is_some() { Ok(self) } else { Claim::of(place) }
    }

    /// One that holds the bytes of an emulated device is locked by its server.
    fn of_file(place: &Path) -> Result<Claim, LabError> {
        let failed = |e: std::io::Error| LabError::file("open", place, e);
        // A FIFO would be waited for.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = match File::options().write(true).custom_flags(flags).open(place) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Claim(None)),
            // It cannot be written to, and that is told then.
            Err(e) if matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::IsADirectory) => {
                return Ok(Claim(None));
            }
            file => file.map_err(failed)?,
        };
        if has_locks_of_its_own(&file) {
            return Ok(Claim(None));
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::BADF | Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                Ok(Claim(None))
            }
            Err(Errno::WOULDBLOCK) => Err(LabError::refused(
                place.display(),
                "is in use (the bytes of an emulated device, or another program has locked it)",
                "its data would be destroyed: `snowmelt-lab device list` names devices; name another file",
            )),
            Err(e) => Err(failed(e.into())),
            Ok(()) => Ok(Claim(Some(file))),
        }
    }
}

/// Of a file system of another machine, where a lock may be kept from, or bind, the holder's own
/// other files (flock(2), NFS and SMB).
fn has_locks_of_its_own(file: &File) -> bool {
    /// NFS, SMB 1, CIFS, SMB 2 and 3 (statfs(2)).
    const ELSEWHERE: [u32; 4] = [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42];
    fstatfs(file).is_ok_and(|at| ELSEWHERE.iter().any(|magic| i64::from(*magic) == at.f_type))
}

/// The loop device that a file or device is attached to: that has no claim on it.
fn loop_of(place: &Path) -> Option<String> {
    let disks = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut files = disks.filter_map(|disk| Some((disk.file_name(), loop_file(&disk.path())?)));
    let (name, _) = files.find(|(_, behind)| is_one_place(behind, place))?;
    Some(name.to_string_lossy().into_owned())
}

/// True when writing to one may change the other: they are one file, a disk and a part of it, or
/// one device is made of the other.
pub(crate) fn overlap(one: &Path, other: &Path) -> bool {
    let [one, other] = [one, other].map(|path| made_of(path, true, DEEPEST));
    one.iter().any(|part| other.iter().any(|with| part.overlaps(with)))
}

/// A file or device that another is made of.
struct Part {
    path: PathBuf,
    /// All of it belongs to that one: by loop devices only.
    whole: bool,
}

impl Part {
    /// Two arrays of one disk have each their part of it; of a file they have all.
    fn overlaps(&self, other: &Part) -> bool {
        let may_share = self.whole || other.whole || !is_block_device(&self.path);
        may_share && is_one_place(&self.path, &other.path)
    }
}

/// Devices upon devices that are looked at.
const DEEPEST: usize = 8;

/// A file or device, and all that it is made of: the file behind a loop device, the devices of an
/// array.
fn made_of(path: &Path, whole: bool, deepest: usize) -> Vec<Part> {
    let mut all = vec![Part { path: path.to_path_buf(), whole }];
    let device = BlockDevice::find(path).ok().flatten().filter(|_| is_block_device(path));
    if let Some(sys) = device.map(|device| device.sys()).filter(|_| deepest > 0) {
        let slaves = std::fs::read_dir(sys.join("slaves")).into_iter().flatten().flatten();
        let slaves = slaves.map(|part| (Path::new("/dev").join(part.file_name()), false));
        let below = slaves.chain(loop_file(&sys).map(|file| (file, whole)));
        all.extend(below.flat_map(|(part, whole)| made_of(&part, whole, deepest - 1)));
    }
    all
}

/// True when they are one file, or a disk and itself or a part of it.
fn is_one_place(one: &Path, other: &Path) -> bool {
    let (Some(first), Some(second)) = (looked_at(one), looked_at(other)) else { return false };
    let is_block = |stat: &Statx| FileType::from_raw_mode(stat.stx_mode.into()) == FileType::BlockDevice;
    let file = |stat: &Statx| (stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino);
    if file(&first) == file(&second) {
        return true;
    }
    if !(is_block(&first) && is_block(&second)) {
        return false;
    }
    let (Ok(Some(one)), Ok(Some(other))) = (BlockDevice::find(one), BlockDevice::find(other)) else {
        return false;
    };
    let is_whole = |device: &BlockDevice| {
        let number = std::fs::read_to_string(device.sys().join("dev")).unwrap_or_default();
        number.trim() == format!("{}:{}", device.dev.0, device.dev.1)
    };
    one.name == other.name && (one.dev == other.dev || is_whole(&one) || is_whole(&other))
}

/// As the kernel has it in memory: a server that hangs, elsewhere or that of an emulated device, is
/// not waited for.
fn looked_at(path: &Path) -> Option<Statx> {
    statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use snowmelt_io::LoopOptions;

    use super::*;

    #[test]
    fn a_mounted_device_is_in_use() {
        let device = BlockDevice::find(Path::new("/")).ok().flatten().and_then(|disk| {
            let path = PathBuf::from(format!("/dev/{}", disk.name));
            let root = std::fs::metadata("/").ok()?.dev();
            std::fs::metadata(&path).is_ok_and(|m| m.rdev() == root).then_some(path)
        });
        let Some(device) = device.filter(|path| File::open(path).is_ok()) else {
            println!("skipped: the root's device cannot be opened here");
            return;
        };
        let message = Claim::of(&device).unwrap_err().to_string();
        assert!(message.contains("is mounted on /") && message.contains("unmount"), "{message}");
    }

    #[test]
    fn a_device_that_is_taken_is_in_use_for_others_until_it_is_given_free() {
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(&dir.path().join("state"), "test").unwrap();
        let backing = dir.path().join("backing");
        std::fs::write(&backing, vec![1; 1 << 20]).unwrap();
        let Ok((_, device)) = undo.attach_loop(&backing, &LoopOptions::default()) else {
            return println!("skipped: no loop devices here");
        };
        let stop = AtomicBool::new(false);
        let take = |destroy| Busy::patient().take(&device, destroy, &[], &undo, &stop);
        assert!(take(false).unwrap_err().to_string().contains("would be overwritten"));
        let claim = take(true).unwrap();
        assert!(take(true).unwrap_err().to_string().contains("is in use"));
        drop(claim);
        drop(take(true).unwrap());
        undo.undo().unwrap();
    }

    #[test]
    fn a_loop_device_overlaps_its_file_which_is_in_use_by_it() {
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(&dir.path().join("state"), "test").unwrap();
        let [table, other] = ["a table", "other"].map(|name| dir.path().join(name));
        for file in [&table, &other] {
            std::fs::write(file, vec![1; 1 << 20]).unwrap();
        }
        let attach = || undo.attach_loop(&table, &LoopOptions::default()).map(|(_, device)| device);
        let (Ok(device), Ok(second)) = (attach(), attach()) else {
            return println!("skipped: no loop devices here");
        };
        assert!(overlap(&device, &table) && overlap(&table, &device) && overlap(&device, &second));
        assert!(!overlap(&device, &other) && !overlap(&other, &device) && !overlap(&other, &table));
        let take = |place: &Path| {
            let stop = AtomicBool::new(false);
            Busy::patient().take(place, true, &[], &undo, &stop).map_err(|e| e.to_string())
        };
        let refused = take(&table).unwrap_err();
        assert!(refused.contains("what is behind /dev/loop"), "{refused}");
        drop(take(&other).unwrap());
        // Devices over a device have each all of it, whatever its node is called.
        let over = || undo.attach_loop(&device, &LoopOptions::default()).map(|(_, device)| device).unwrap();
        let (upper, another) = (over(), over());
        assert!(overlap(&upper, &another) && overlap(&upper, &table) && !overlap(&upper, &other));
        assert!(made_of(&upper, true, DEEPEST).iter().all(|part| part.whole), "all of each");
        let of = |whole| Part { path: device.clone(), whole };
        assert!(of(true).overlaps(&of(false)) && of(false).overlaps(&of(true)));
        assert!(!of(false).overlaps(&of(false)), "each its part");
        let node = dir.path().join("node");
        let number = std::fs::metadata(&device).unwrap().rdev();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &node, rustix::fs::FileType::BlockDevice, mode, number).unwrap();
        for place in [&device, &node] {
            let refused = take(place).unwrap_err();
            assert!(refused.contains("what is behind /dev/loop"), "{refused}");
        }
        drop(take(&upper).unwrap());
        undo.undo().unwrap();
        drop(Claim::of(&table).unwrap());
    }

    #[test]
    fn a_file_is_taken_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let early = Claim::of(&file).unwrap();
        std::fs::write(&file, "x").unwrap();
        let claim = early.once_made(&file).unwrap();
        let refused = Claim::of(&file).unwrap_err().to_string();
        assert!(refused.contains("is in use") && refused.contains("device list"), "{refused}");
        drop(claim);
        let begun = std::time::Instant::now();
        // A program that another test is just starting may hold it for a moment.
        while Claim::of(&file).is_err() {
            assert!(begun.elapsed() < std::time::Duration::from_secs(60), "it is free again");
        }
    }

    #[test]
    fn a_file_overlaps_itself_by_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("a"), "x").unwrap();
        std::fs::write(at("b"), "x").unwrap();
        std::fs::hard_link(at("a"), at("hard")).unwrap();
        std::os::unix::fs::symlink("a", at("soft")).unwrap();
        for name in ["a", "hard", "soft"] {
            assert!(overlap(&at("a"), &at(name)), "{name}");
        }
        assert!(!overlap(&at("a"), &at("b")) && !overlap(&at("a"), &at("none")));
    }
}
