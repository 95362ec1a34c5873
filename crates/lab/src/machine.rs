//! The machine on which numbers were taken: kernel, processors, memory, the device's queue, and
//! how busy the machine was meanwhile.

pub(crate) mod awake;
pub mod cpu;
pub(crate) mod device_work;
pub mod diskstats;
pub mod interrupts;
mod kin;
pub mod others;
pub(crate) mod proc_stat;
pub mod program;
pub(crate) mod stacked;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::machine::others::DiskDisturbance;

/// The machine, without its name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// `Linux 6.18.44`.
    pub kernel: String,
    /// Model name of the first processor.
    pub cpu: String,
    /// Processors online.
    pub cpus: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Load average of the last minute at the beginning.
    pub load: f64,
}

impl Machine {
    /// Asks the kernel; what it does not say stays empty.
    pub fn here() -> Machine {
        let uname = rustix::system::uname();
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let after = |text: &str, key: &str| {
            let line = text.lines().find(|line| line.starts_with(key))?;
            Some(line.split_once(':')?.1.trim().to_string())
        };
        let memory = after(&text("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let first_number = |text: &str| text.split_whitespace().next().and_then(|n| n.parse::<f64>().ok());
        Machine {
            kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
            cpu: after(&text("/proc/cpuinfo"), "model name").unwrap_or_default(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: first_number(&memory).unwrap_or(0.0) as u64 * 1024,
            load: first_number(&text("/proc/loadavg")).unwrap_or(0.0),
        }
    }
}

/// A block device and the settings of its queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockDevice {
    /// `vda`; of a partition, its whole disk.
    pub name: String,
    /// Major and minor number of the device itself.
    pub dev: (u32, u32),
    /// Length in bytes.
    pub size_bytes: u64,
    /// The file system it was found through, and where that is mounted; empty for the bare
    /// device.
    pub mount: String,
    /// The active scheduler.
    pub scheduler: String,
    /// All of `queue/` that bears on the numbers: `read_ahead_kb`, `rotational`, `nr_requests`
    /// …
    pub queue: BTreeMap<String, String>,
}

const QUEUE_FILES: [&str; 10] = [
    "read_ahead_kb",
    "rotational",
    "nr_requests",
    "max_sectors_kb",
    "logical_block_size",
    "physical_block_size",
    "write_cache",
    "wbt_lat_usec",
    "nomerges",
    "io_poll",
];

impl BlockDevice {
    /// The device that holds `path`: a file's, a directory's, or the block device itself.
    /// `None` where no block device is behind it (tmpfs, overlay, network file systems).
    ///
    /// # Errors
    /// The path cannot be looked at.
    pub fn find(path: &Path) -> Result<Option<BlockDevice>, LabError> {
        let meta = fs::metadata(path).map_err(|e| LabError::file("look at", path, e))?;
        let block = std::os::unix::fs::FileTypeExt::is_block_device(&meta.file_type());
        let dev = if block { meta.rdev() } else { meta.dev() };
        let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
        let own = sys_dir(major, minor).map(|dir| ((major, minor), dir));
        let Some((dev, queue_dir)) = own.or_else(|| behind_btrfs(path)) else { return Ok(None) };
        let mut device = BlockDevice { dev, ..BlockDevice::default() };
        device.name = queue_dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        device.size_bytes = number(&queue_dir.join("size")).unwrap_or(0) * 512;
        device.mount = if block { String::new() } else { mount_of(major, minor).unwrap_or_default() };
        device.read_queue(&queue_dir);
        Ok(Some(device))
    }

    /// `/sys/block/NAME`.
    pub fn sys(&self) -> PathBuf {
        Path::new("/sys/block").join(&self.name)
    }

    fn read_queue(&mut self, sys: &Path) {
        for name in QUEUE_FILES {
            if let Ok(value) = fs::read_to_string(sys.join("queue").join(name)) {
                self.queue.insert(name.into(), value.trim().into());
            }
        }
        let schedulers = fs::read_to_string(sys.join("queue/scheduler")).unwrap_or_default();
        self.scheduler = active_scheduler(&schedulers).to_string();
    }
}

/// The one in brackets: `none [mq-deadline] kyber`.
pub fn active_scheduler(line: &str) -> &str {
    line.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(line.trim(), |(name, _)| name)
}

/// The directory in /sys/block of a device, the whole disk's for a partition.
fn sys_dir(major: u32, minor: u32) -> Option<PathBuf> {
    let dir = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    whole_disk(dir)
}

/// Number and directory in /sys/block of the device that the btrfs of a path is mounted from: its
/// files have device numbers of their own. Of several devices it is the first.
fn behind_btrfs(path: &Path) -> Option<((u32, u32), PathBuf)> {
    let path = fs::canonicalize(path).ok()?;
    let source = btrfs_source(&fs::read_to_string("/proc/self/mountinfo").ok()?, &path)?;
    let dev = fs::metadata(source).ok()?.rdev();
    let dev = (rustix::fs::major(dev), rustix::fs::minor(dev));
    Some((dev, sys_dir(dev.0, dev.1)?))
}

/// The device in the table of mounts, if the innermost mount above a path is a btrfs.
fn btrfs_source(table: &str, path: &Path) -> Option<PathBuf> {
    let mounts = table.lines().filter_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        let place = mount.split(' ').nth(4)?.replace("\\040", " ");
        path.starts_with(&place).then_some((place.len(), source))
    });
    // Of several mounts on one place the last is on top.
    let (_, source) = mounts.max_by_key(|(len, _)| *len)?;
    let mut words = source.split(' ');
    (words.next()? == "btrfs").then(|| words.next().map(PathBuf::from))?
}

/// The directory of the disk that a partition's lies in; that of a whole disk itself.
pub(crate) fn whole_disk(dir: PathBuf) -> Option<PathBuf> {
    if dir.join("partition").exists() { dir.parent().map(Path::to_path_buf) } else { Some(dir) }
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// `ext4 on /`, from the table of mounts.
fn mount_of(major: u32, minor: u32) -> Option<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let wanted = format!("{major}:{minor}");
    table.lines().find_map(|line| {
        let mut fields = line.split(' ');
        (fields.nth(2)? == wanted).then_some(())?;
        let place = fields.nth(1)?;
        let kind = line.split(" - ").nth(1)?.split(' ').next()?;
        Some(format!("{kind} on {place}"))
    })
}

/// Processor time of the whole machine since boot, in ticks, and that of this process and of all
/// that it started.
#[derive(Debug, Clone, Copy)]
pub struct CpuClock {
    total: u64,
    idle: u64,
    steal: u64,
    ours: u64,
    since_epoch_ms: u64,
}

/// How busy the machine was between two moments, as shares of all processors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Seconds between the two moments.
    pub seconds: f64,
    /// Taken by the hypervisor for others.
    pub steal: f64,
    /// Used by other processes and by the kernel outside of ours. Processes that ours started are
    /// not others, whether they still run or not.
    pub others: f64,
    /// The disks that were measured, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub disks: BTreeMap<String, DiskDisturbance>,
}

impl CpuClock {
    /// Reads it now.
    pub fn now() -> CpuClock {
        Self::with(&[])
    }

    /// Reads it now; the processes `more`, with what they started, are ours too.
    pub fn with(more: &[u32]) -> CpuClock {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut clock =
            CpuClock { total: 0, idle: 0, steal: 0, ours: 0, since_epoch_ms: since_epoch.as_millis() as u64 };
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let first = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> =
            first.split_whitespace().skip(1).take(8).filter_map(|n| n.parse().ok()).collect();
        if let [user, nice, system, idle, wait, hard, soft, steal] = ticks[..] {
            clock.total = user + nice + system + idle + wait + hard + soft + steal;
            (clock.idle, clock.steal) = (idle + wait, steal);
        }
        clock.ours = kin::ticks(&[&[std::process::id()], more].concat());
        clock
    }

    /// Ticks of children that ended, with those of what they started and waited for.
    pub fn of_children() -> u64 {
        kin::of_children()
    }

    /// The share of all processors that went to ours until then, `ticks` left out. At most 1: the
    /// kernel sums up the whole machine's time later than that of a process.
    pub fn share_of_ours(self, later: CpuClock, ticks: u64) -> f64 {
        let total = later.total.saturating_sub(self.total).max(1) as f64;
        let ours = later.ours.saturating_sub(self.ours).saturating_sub(ticks) as f64;
        (ours / total).min(1.0)
    }

    /// The change since the first look.
    pub fn until(self, later: CpuClock) -> Disturbance {
        let total = later.total.saturating_sub(self.total).max(1) as f64;
        let steal = later.steal.saturating_sub(self.steal) as f64;
        let idle = later.idle.saturating_sub(self.idle) as f64;
        let ours = later.ours.saturating_sub(self.ours) as f64;
        Disturbance {
            seconds: later.since_epoch_ms.saturating_sub(self.since_epoch_ms) as f64 / 1e3,
            steal: steal / total,
            others: ((total - idle - steal - ours) / total).max(0.0),
            disks: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let machine = Machine::here();
        assert!(machine.kernel.starts_with("Linux ") && machine.cpus > 0 && machine.memory_bytes > 1 << 20);
    }

    #[test]
    fn the_active_scheduler_is_in_brackets() {
        assert_eq!(active_scheduler("none [mq-deadline] kyber bfq\n"), "mq-deadline");
        assert_eq!(active_scheduler("none\n"), "none");
    }

    #[test]
    fn the_device_of_a_btrfs_is_in_the_table_of_mounts() {
        let table = "22 1 253:0 / / rw - ext4 /dev/vda rw\n\
                     40 22 0:40 / /mnt/a\\040b rw shared:3 - btrfs /dev/loop1 rw,space_cache=v2\n\
                     41 40 0:41 / /mnt/a\\040b/tmp rw - tmpfs none rw\n";
        let of = |path: &str| btrfs_source(table, Path::new(path));
        assert_eq!(of("/mnt/a b/sub/file"), Some("/dev/loop1".into()));
        assert_eq!((of("/mnt/a b/tmp/file"), of("/mnt/file")), (None, None));
    }

    #[test]
    fn shares_of_the_machine() {
        let clock =
            |total, idle, steal, ours| CpuClock { total, idle, steal, ours, since_epoch_ms: total * 5 };
        let busy = clock(1000, 500, 10, 100).until(clock(1200, 600, 20, 150));
        assert_eq!((busy.seconds, busy.steal, busy.others), (1.0, 0.05, 0.2));
        let ours = |ticks| clock(1000, 500, 10, 100).share_of_ours(clock(1004, 500, 10, 106), ticks);
        assert_eq!((ours(0), ours(4), ours(9)), (1.0, 0.5, 0.0));
    }

    #[test]
    fn processes_that_were_started_are_no_others() {
        use std::process::{Command, Stdio};
        let dir = tempfile::tempdir().unwrap();
        // A process below a process, as long as the file is there: no longer than this test.
        let spin = "sh -c 'while [ -e spin ]; do :; done'; true";
        std::fs::write(dir.path().join("spin"), "").unwrap();
        let own = || proc_stat::ProcStat::read(std::process::id()).unwrap().ticks();
        let begun = CpuClock::now();
        let below = begun.ours.saturating_sub(own());
        let mut shell =
            Command::new("sh").args(["-c", spin]).current_dir(&dir).stdout(Stdio::null()).spawn().unwrap();
        let running = loop {
            let now = CpuClock::now();
            // Without the use of this program, which looks and looks.
            if now.ours.saturating_sub(own()) >= below + 5 {
                break now;
            }
            assert!(now.since_epoch_ms < begun.since_epoch_ms + 20_000, "its processor time is not ours");
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        // It still runs, so it is in no sum of children that ended.
        assert!(shell.try_wait().unwrap().is_none());
        std::fs::remove_file(dir.path().join("spin")).unwrap();
        shell.wait().unwrap();
        let ended = CpuClock::now();
        assert!(ended.ours >= running.ours, "time of a process that ended is not lost");
        let apart = CpuClock::with(&[1]).ours;
        assert!(apart >= ended.ours, "the first process and all below it are more than ours");
    }

    #[test]
    fn memory_file_systems_have_no_device() {
        if Path::new("/dev/shm").is_dir() {
            assert_eq!(BlockDevice::find(Path::new("/dev/shm")).unwrap(), None);
        }
        assert!(
            BlockDevice::find(Path::new("/nowhere/at/all")).unwrap_err().to_string().contains("/nowhere")
        );
    }
}
