//! A stripe's disk: its file system, the settings of its block device, its profile.

use std::fs;
use std::io::IoSliceMut;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{major, minor};
use snowmelt_base::random::lcg;
use snowmelt_base::size;
use snowmelt_io::{
    AlignedBuf, CostModel, FileDevice, Hints, KeptModel, Prior, Profile, ReadCaps, ReadDevice,
};
use snowmelt_store::{LearnedBefore, PAGE_BYTES, profile_path};

use super::finding::Finding;
use super::kernel::{KernelFiles, MountPoint};
use super::trial;
use crate::costs;

/// Bytes of a file from which a probe measures.
pub const PROBED_BYTES: u64 = 64 << 20;

/// File systems in memory.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// Facts of a stripe.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskFacts {
    /// Its number.
    pub number: usize,
    /// Its file or block device.
    pub path: PathBuf,
    /// Bytes of it; `None` of a block device.
    pub bytes: Option<u64>,
    /// Its file system; none of a block device.
    pub mount: Option<MountPoint>,
    /// Settings of its block device.
    pub block: Option<BlockFacts>,
    /// Whether it is read past the page cache; `None` when it could not be opened.
    pub direct: Option<bool>,
    /// The profile of a probe.
    pub profile: KeptProfile,
    /// Costs that were learned from the work.
    pub learned: LearnedBefore,
    /// Costs by its name or its kind.
    pub hint: Option<Prior>,
    /// Median time of a page read alone now.
    pub read: Option<Duration>,
}

/// Settings of a block device, from `/sys`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockFacts {
    /// Its name.
    pub name: String,
    /// The kernel takes it to turn.
    pub turns: bool,
    /// The I/O scheduler in force.
    pub scheduler: String,
    /// Requests that its queue takes.
    pub requests: u64,
    /// Read-ahead of the page cache.
    pub read_ahead_kib: u64,
}

/// The profile that a probe left, if it left one.
#[derive(Clone, Debug, PartialEq)]
pub enum KeptProfile {
    /// Nothing.
    Absent,
    /// A file that is no profile, and why.
    Unreadable(String),
    /// A profile.
    Kept {
        /// The costs that plans reckon with.
        cost: CostModel,
        /// It was measured past the page cache.
        direct: bool,
        /// Reasons to doubt it.
        doubts: Vec<String>,
        /// It is older than the stripe: of another disk, or of the place the files came from.
        is_older: bool,
    },
}

impl DiskFacts {
    /// Whether its file system is in memory.
    pub fn is_in_memory(&self) -> bool {
        self.mount.as_ref().is_some_and(|mount| IN_MEMORY.contains(&mount.kind.as_str()))
    }
}

/// Collects the facts of a stripe of the database in `dir`.
pub fn collect(kernel: &KernelFiles, dir: &Path, number: usize, path: &Path) -> DiskFacts {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let meta = fs::metadata(&path).ok();
    let device = meta.as_ref().filter(|meta| meta.file_type().is_block_device()).map(MetadataExt::rdev);
    let mount = if device.is_some() { None } else { kernel.mount_of(&path) };
    let id = match device {
        Some(device) => Some(format!("{}:{}", major(device), minor(device))),
        None => mount.as_ref().map(|mount| mount.device.clone()),
    };
    let file = trial::open_direct(&path).ok();
    let bytes = meta.as_ref().filter(|meta| meta.is_file()).map(fs::Metadata::len);
    DiskFacts {
        number,
        bytes,
        block: id.and_then(|id| block(kernel, &id)),
        direct: file.as_ref().map(FileDevice::is_direct),
        profile: profile(&profile_path(dir, number, &path), &path),
        learned: LearnedBefore::find(kernel, dir, number, &path),
        // The caps of this command's cgroup are not those of a server.
        hint: Hints { caps: ReadCaps::default(), ..Hints::find(kernel, &path) }.prior(None),
        read: file.filter(FileDevice::is_direct).and_then(|file| time_reads(&file)),
        mount,
        path,
    }
}

/// Settings of the block device with a number; those of a partition are its disk's.
fn block(kernel: &KernelFiles, id: &str) -> Option<BlockFacts> {
    let own = format!("sys/dev/block/{id}");
    let queue = [format!("{own}/queue"), format!("{own}/../queue")];
    let queue = queue.into_iter().find(|queue| kernel.exists(queue))?;
    let number = |name: &str| kernel.number(&format!("{queue}/{name}")).unwrap_or(0);
    let schedulers = kernel.text(&format!("{queue}/scheduler")).unwrap_or_default();
    let scheduler = schedulers.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let events = kernel.text(&format!("{own}/uevent")).unwrap_or_default();
    let name = events.lines().find_map(|line| line.strip_prefix("DEVNAME=")).unwrap_or(id);
    Some(BlockFacts {
        name: name.to_owned(),
        turns: number("rotational") == 1,
        scheduler: scheduler.map_or(schedulers.as_str(), |(name, _)| name).to_owned(),
        requests: number("nr_requests"),
        read_ahead_kib: number("read_ahead_kb"),
    })
}

fn profile(kept: &Path, stripe: &Path) -> KeptProfile {
    if !kept.exists() {
        return KeptProfile::Absent;
    }
    match Profile::load_kept(kept) {
        Err(error) => KeptProfile::Unreadable(error.to_string()),
        Ok(Profile { cost, direct, doubts, .. }) => {
            let at = |path: &Path, of: fn(&fs::Metadata) -> std::io::Result<SystemTime>| {
                fs::metadata(path).and_then(|meta| of(&meta)).ok()
            };
            let (made, probed) = (at(stripe, fs::Metadata::created), at(kept, fs::Metadata::modified));
            let is_older = made.zip(probed).is_some_and(|(made, probed)| probed < made);
            KeptProfile::Kept { cost, direct, doubts, is_older }
        }
    }
}

/// The median time of pages read alone here and there; `None` for a file of few pages, which the
/// disk's own cache may hold.
fn time_reads(file: &FileDevice) -> Option<Duration> {
    const READS: usize = 33;
    const LEAST_READS: usize = 5;
    const LONGEST: Duration = Duration::from_millis(500);
    const LEAST_PAGES: u64 = 1024;
    const MOST_TRIES: usize = 1000;
    let pages = file.len().ok()? / PAGE_BYTES as u64;
    if pages < LEAST_PAGES {
        return None;
    }
    let (mut page, mut state) = (AlignedBuf::new(PAGE_BYTES), u64::from(std::process::id()));
    let (begun, mut times) = (Instant::now(), Vec::new());
    for _ in 0..MOST_TRIES {
        if times.len() == READS || begun.elapsed() >= LONGEST {
            break;
        }
        let at = (lcg(&mut state) >> 16) % pages * PAGE_BYTES as u64;
        let start = Instant::now();
        file.read_at(&mut [IoSliceMut::new(&mut page)], at).ok()?;
        // Places that were never written are not read from the disk.
        if page.iter().any(|byte| *byte != 0) {
            times.push(start.elapsed());
        }
    }
    times.sort_unstable();
    times.get(times.len() / 2).copied().filter(|_| times.len() >= LEAST_READS)
}

/// Judges a stripe's disk; `db` is the database as it was named.
pub fn judge(facts: &DiskFacts, db: &str) -> Vec<Finding> {
    let stripe = |what: &str| format!("stripe {}: {what}", facts.number);
    let mut findings = Vec::new();
    findings.extend(facts.mount.as_ref().map(|mount| file_system(stripe("file system"), mount)));
    findings.extend(facts.block.as_ref().map(|block| queue(stripe("queue"), block, facts)));
    findings.extend(facts.direct.map(|is_direct| direct(stripe("O_DIRECT"), is_direct, facts)));
    if !facts.is_in_memory() {
        findings.push(profile_of(stripe("profile"), facts, db));
    }
    findings
}

fn file_system(about: String, mount: &MountPoint) -> Finding {
    let measured = format!("{} at {}", mount.kind, mount.place.display());
    let has = |names: &[&str]| mount.options.iter().find(|option| names.contains(&option.as_str())).cloned();
    if IN_MEMORY.contains(&mount.kind.as_str()) {
        let why = "it is memory: all is lost when the machine is switched off, and counts as used memory";
        return Finding::problem(about, measured, why, "move the database to a disk: snowmelt backup");
    }
    if let Some(option) = has(&["nobarrier", "barrier=0"]) {
        let why = "syncs do not reach the disk: a power loss loses commits and may damage the database";
        let change =
            format!("mount -o remount,barrier=1 {}, and take it out of /etc/fstab", mount.place.display());
        return Finding::problem(about, format!("{measured}, {option}"), why, change);
    }
    if mount.options.iter().any(|option| option == "ro") {
        let why = "it is mounted for reading only: updates fail";
        let change = format!("mount -o remount,rw {}, or serve --read-only", mount.place.display());
        return Finding::advice(about, format!("{measured}, read-only"), why, change);
    }
    match mount.kind.as_str() {
        "nfs" | "nfs4" | "cifs" | "smb3" | "9p" | "ceph" | "glusterfs" | "virtiofs" => Finding::advice(
            about,
            measured,
            "each sync goes over the network, and locks of another machine may not be seen",
            "put the database on a local disk or a network volume; one machine at a time opens it",
        ),
        kind if kind.starts_with("fuse") => Finding::advice(
            about,
            measured,
            "each request passes through another process",
            "put the database on a file system of the kernel",
        ),
        "overlay" => Finding::advice(
            about,
            measured,
            "the first change of a file copies it whole, and the data goes with the container",
            "mount a volume: -v /srv/snowmelt:/data for containers",
        ),
        "btrfs" if has(&["nodatacow"]).is_none() => Finding::advice(
            about,
            measured,
            "each write moves the page to another place: the file falls to pieces, scans become slow",
            "chattr +C on an empty folder, then load or snowmelt restore into it",
        ),
        "zfs" => Finding::advice(
            about,
            measured,
            "records of 128 KiB are read and written whole for each page, and are cached a second time",
            "zfs set recordsize=16k primarycache=metadata on the data set, before the database is loaded",
        ),
        "ext4" | "ext3" if has(&["data=journal"]).is_some() => Finding::advice(
            about,
            format!("{measured}, data=journal"),
            "everything is written twice, and O_DIRECT is refused",
            "mount with data=ordered",
        ),
        _ => Finding::ok(about, measured),
    }
}

fn queue(about: String, block: &BlockFacts, facts: &DiskFacts) -> Finding {
    let BlockFacts { name, turns, scheduler, requests, read_ahead_kib } = block;
    let kind = if *turns { "said to turn" } else { "flash" };
    let measured = format!(
        "{name}, {kind}, scheduler {scheduler}, {requests} requests, read-ahead {read_ahead_kib} KiB"
    );
    let of_disk = |file: &str| format!("/sys/class/block/{name}/queue/{file}");
    let depth = match (&facts.profile, &facts.learned.model) {
        (_, Some(model)) if facts.learned.is_latest => model.cost.best_depth(),
        (KeptProfile::Kept { cost, .. }, _) => cost.best_depth(),
        _ => CostModel::ssd().best_depth(),
    };
    if scheduler == "bfq" {
        let why = "bfq shares a disk among programs by pausing; the database orders its requests itself";
        return Finding::advice(about, measured, why, format!("echo none > {}", of_disk("scheduler")));
    }
    if *requests > 0 && *requests < u64::from(depth) {
        let why = format!("the disk is fastest with {depth} requests outstanding; more than {requests} wait");
        let change = format!("echo {} > {}", depth.next_power_of_two().max(64), of_disk("nr_requests"));
        return Finding::advice(about, measured, why, change);
    }
    if facts.direct == Some(false) && *read_ahead_kib > 256 {
        let why =
            "without O_DIRECT the kernel reads ahead of each read, beside the database's own read-ahead";
        return Finding::advice(about, measured, why, format!("echo 16 > {}", of_disk("read_ahead_kb")));
    }
    Finding::ok(about, measured)
}

fn direct(about: String, is_direct: bool, facts: &DiskFacts) -> Finding {
    if is_direct || facts.is_in_memory() {
        return Finding::ok(about, if is_direct { "can be used" } else { "refused, as of memory" });
    }
    Finding::advice(
        about,
        "refused",
        "pages are cached twice, in the pool and by the kernel, and the kernel's read-ahead is not planned",
        "move the database to ext4, xfs or a block device: snowmelt backup",
    )
}

fn profile_of(about: String, facts: &DiskFacts, db: &str) -> Finding {
    /// Factor by which a read may differ from the profile: other programs use the disk as well.
    const APART: f64 = 3.0;
    const WHY: &str = "which pages are read together and ahead follows from the costs of the disk";
    let probe = format!("snowmelt probe {db}");
    let us = |time: f64| format!("{time:.0} µs");
    let now = facts.read.map(|time| 1e6 * time.as_secs_f64());
    let read_now = now.map_or_else(String::new, |now| format!("; a page takes {} now", us(now)));
    if let Some(model) = facts.learned.model.as_ref().filter(|_| facts.learned.is_latest) {
        return Finding::ok(about, format!("{}{read_now}", learned(model, &facts.profile)));
    }
    let doubt = facts.learned.doubt.as_ref().map_or_else(String::new, |doubt| format!("; {doubt}"));
    let read_now = format!("{read_now}{doubt}");
    let (cost, is_direct, doubts, is_older) = match &facts.profile {
        KeptProfile::Absent if facts.bytes.is_some_and(|bytes| bytes < PROBED_BYTES) => {
            let least = size::about(PROBED_BYTES as f64);
            return Finding::ok(about, format!("none: the stripe has less than the {least} of a probe"));
        }
        KeptProfile::Absent => {
            let (cost, why) = match &facts.hint {
                Some(hint) => (hint.cost, hint.why.as_str()),
                None => (CostModel::ssd(), "as of a SATA SSD"),
            };
            let assumed = us(cost.latency_ns as f64 / 1e3);
            let measured = format!(
                "none, and nothing was learned yet: a page is assumed to take {assumed}, {why}{read_now}"
            );
            return Finding::advice(about, measured, WHY, probe);
        }
        KeptProfile::Unreadable(error) => {
            return Finding::advice(about, format!("cannot be read: {error}"), WHY, probe);
        }
        KeptProfile::Kept { cost, direct, doubts, is_older } => (cost, *direct, doubts, *is_older),
    };
    let kept = cost.latency_ns as f64 / 1e3;
    let measured = format!("a page takes {}, best with {} requests{read_now}", us(kept), cost.best_depth());
    if is_older {
        let why = "the profile is older than the stripe: it may be of another disk";
        return Finding::advice(about, measured, why, probe);
    }
    if facts.direct == Some(true) && !is_direct {
        let why = "the profile was measured through the page cache, not of the disk";
        return Finding::advice(about, measured, why, probe);
    }
    if let Some(now) = now.filter(|now| *now > APART * kept || *now * APART < kept) {
        let measured = format!("a page takes {} by the profile, {} now", us(kept), us(now));
        let why = "the disk is another one, or busy: plans reckon with wrong costs";
        return Finding::advice(about, measured, why, format!("{probe}, when little runs"));
    }
    // Another probe would have the same doubt.
    let doubt = doubts.first().map_or_else(String::new, |doubt| format!("; {doubt}"));
    Finding::ok(about, format!("{measured}{doubt}"))
}

/// Learned costs, and whether the last probe measured others.
fn learned(model: &KeptModel, profile: &KeptProfile) -> String {
    let lone_us = model.cost.latency_ns as f64 / 1e3;
    let told = format!(
        "learned by earlier runs: {}, best with {} requests, a page alone takes {lone_us:.0} µs",
        costs::told(model),
        model.cost.best_depth()
    );
    let differences = match profile {
        KeptProfile::Kept { cost, .. } => costs::differences(cost, model),
        _ => Vec::new(),
    };
    if differences.is_empty() {
        return told;
    }
    format!("{told}; the last probe differs: {}", differences.join(", "))
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
