//! The programs beside the measured one: their share of a disk, and their names.
//!
//! * The disk says how much it moved (/proc/diskstats), the kernel how much a process had moved
//!   for it (/proc/PID/io, with the children it waited for). The difference is of others.
//! * A file system writes more than it was told: its journal, its structures. Where the counts of
//!   all processes can be read (root), others moved no more than those say.
//! * Counts of processes are of all disks together: a program that also uses another one hides
//!   as much of the others.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::machine::diskstats::DiskCounts;
use crate::machine::proc_stat::{ProcStat, pids, with_children};
use crate::machine::program::ProcessIo;
use crate::size::about;

/// Requests and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// How many.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Moved {
    /// One more.
    pub fn add(&mut self, sectors: u32) {
        self.requests += 1;
        self.bytes += u64::from(sectors) * 512;
    }

    /// Both together.
    pub fn plus(self, other: Moved) -> Moved {
        Moved { requests: self.requests + other.requests, bytes: self.bytes + other.bytes }
    }
}

/// Requests by whom they were for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Parties {
    /// The program and what it started.
    pub own: Moved,
    /// Other programs, and reads by threads of the kernel (below loop devices).
    pub others: Moved,
    /// Of no program: journals, structures of file systems, write-back of unknown origin,
    /// requests from before the trace.
    pub kernel: Moved,
}

impl Parties {
    /// All of them.
    pub fn all(&self) -> Moved {
        self.own.plus(self.others).plus(self.kernel)
    }

    /// Field by field, for sums over traces.
    pub fn plus(self, more: Parties) -> Parties {
        Parties {
            own: self.own.plus(more.own),
            others: self.others.plus(more.others),
            kernel: self.kernel.plus(more.kernel),
        }
    }
}

/// The share of others in a disk's work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskDisturbance {
    /// Of its requests, by a trace; null without one.
    pub others_requests: Option<f64>,
    /// Of its bytes.
    pub others_bytes: f64,
}

/// A process in /proc.
#[derive(Debug, Clone)]
struct Beside {
    name: String,
    parent: u32,
    start: u64,
    /// Bytes it had moved; nothing where that is not shown to us.
    bytes: Option<u64>,
}

/// All processes at one moment.
#[derive(Debug, Clone, Default)]
pub struct ProcessesIo {
    by_pid: HashMap<u32, Beside>,
}

impl ProcessesIo {
    /// Reads /proc.
    pub fn now() -> ProcessesIo {
        ProcessesIo { by_pid: pids().filter_map(|pid| Some((pid, Beside::read(pid)?))).collect() }
    }

    /// The counts of all processes are shown to us.
    fn is_whole(&self) -> bool {
        rustix::process::geteuid().is_root() && self.by_pid.get(&1).is_some_and(|init| init.bytes.is_some())
    }

    /// Bytes that all but `own` and what they started moved since `before`, by name, the most
    /// first.
    pub fn since(&self, before: &ProcessesIo, own: &HashSet<u32>) -> Vec<(String, u64)> {
        let family = |processes: &ProcessesIo| with_children(own, &processes.by_pid, |of| of.parent);
        let own: HashSet<u32> = &family(self) | &family(before);
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (pid, now) in self.by_pid.iter().filter(|(pid, _)| !own.contains(pid)) {
            let then = before.by_pid.get(pid).filter(|then| then.start == now.start);
            let bytes = now.bytes.unwrap_or(0).saturating_sub(then.and_then(|then| then.bytes).unwrap_or(0));
            if bytes > 0 {
                *sums.entry(&now.name).or_default() += bytes;
            }
        }
        let mut sums: Vec<(String, u64)> = sums.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
        sums.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        sums
    }
}

impl Beside {
    fn read(pid: u32) -> Option<Beside> {
        let (comm, stat) = ProcStat::read_named(pid)?;
        let name = match stat.is_kernel {
            false => format!("{comm} (pid {pid})"),
            true => comm.split('/').next().filter(|name| *name == "kworker").unwrap_or(&comm).to_owned(),
        };
        let bytes = ProcessIo::read(pid).map(|io| io.read_bytes + io.write_bytes);
        Some(Beside { name, parent: stat.parent, start: stat.start, bytes })
    }
}

/// A disk and the processes from one moment on.
#[derive(Debug, Clone)]
pub struct DiskClock {
    disk: String,
    counts: DiskCounts,
    own: ProcessIo,
    processes: ProcessesIo,
}

/// A disk's work, and the part of it that others asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// Bytes the disk moved.
    pub bytes: u64,
    /// Those of others.
    pub others: u64,
    /// The others by name with the bytes they moved, on any disk; the most first.
    pub named: Vec<(String, u64)>,
}

impl DiskClock {
    /// Begins now, for a disk by its name; nothing for what is not in /proc/diskstats.
    pub fn start(disk: &str) -> Option<DiskClock> {
        Some(DiskClock {
            disk: disk.to_owned(),
            counts: DiskCounts::now(disk)?,
            own: ProcessIo::own(),
            processes: ProcessesIo::now(),
        })
    }

    /// Until now. Beside this process and what it starts, `programs` are not others, and had
    /// `io` moved for them.
    pub fn now(&self, programs: &HashSet<u32>, io: ProcessIo) -> DiskUse {
        let Some(counts) = DiskCounts::now(&self.disk) else { return DiskUse::default() };
        let d = counts.since(&self.counts);
        let own = ProcessIo::own().since(self.own).plus(io);
        let later = ProcessesIo::now();
        let mut ours = programs.clone();
        ours.insert(std::process::id());
        let named = later.since(&self.processes, &ours);
        let most = later.is_whole().then(|| named.iter().map(|(_, bytes)| bytes).sum());
        DiskUse::new((d.read_sectors + d.write_sectors) * 512, own.read_bytes + own.write_bytes, most, named)
    }
}

impl DiskUse {
    /// `own` bytes of `bytes` are the program's; all others moved `most`, where that is known.
    fn new(bytes: u64, own: u64, most: Option<u64>, named: Vec<(String, u64)>) -> DiskUse {
        let rest = bytes.saturating_sub(own);
        DiskUse { bytes, others: most.map_or(rest, |most| rest.min(most)), named }
    }

    /// The others' share of its bytes.
    pub fn share(&self) -> f64 {
        self.others as f64 / self.bytes.max(1) as f64
    }
}

/// The first few of these names with their bytes; nothing of none.
pub fn in_words(sums: &[(String, u64)]) -> Option<String> {
    const MOST: usize = 4;
    let word = |(name, bytes): &(String, u64)| format!("{name} {}", about(*bytes as f64));
    let mut words: Vec<String> = sums.iter().take(MOST).map(word).collect();
    if let Some((_, rest)) = sums.split_at_checked(MOST).filter(|(_, rest)| !rest.is_empty()) {
        let bytes: u64 = rest.iter().map(|(_, bytes)| bytes).sum();
        words.push(format!("{} more {}", rest.len(), about(bytes as f64)));
    }
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_what_is_left_and_no_more_than_they_say() {
        let of = |bytes, own, most| DiskUse::new(bytes, own, most, Vec::new());
        assert_eq!((of(1000, 600, None).others, of(1000, 600, None).share()), (400, 0.4));
        assert_eq!(of(1000, 600, Some(100)).others, 100, "300 are of the file system");
        assert_eq!(of(1000, 600, Some(9000)).others, 400, "mostly on other disks");
        assert_eq!((of(1000, 2000, Some(5)).others, of(0, 0, None).share()), (0, 0.0));
    }

    #[test]
    fn processes_beside_are_those_that_are_not_ours_nor_our_childrens() {
        let beside =
            |parent, start, bytes| Beside { name: format!("p{start}"), parent, start, bytes: Some(bytes) };
        let at = |list: &[(u32, Beside)]| ProcessesIo { by_pid: list.iter().cloned().collect() };
        let before = at(&[(1, beside(0, 1, 10)), (5, beside(1, 5, 100)), (7, beside(1, 7, 70))]);
        let after = at(&[
            (1, beside(0, 1, 10)),
            (5, beside(1, 5, 500)),
            (6, beside(5, 6, 900)), // ours by its parent
            (7, beside(1, 70, 30)), // another one with an old number
            (8, beside(1, 8, 500)),
        ]);
        let named = after.since(&before, &HashSet::from([5]));
        assert_eq!(named, [("p8".to_owned(), 500), ("p70".to_owned(), 30)]);
        assert_eq!(in_words(&named).as_deref(), Some("p8 500 B, p70 30 B"));
        assert_eq!(in_words(&[]), None);
        let many: Vec<(String, u64)> = (0..6).map(|n| (format!("n{n}"), 1)).collect();
        assert!(in_words(&many).unwrap().ends_with("n3 1 B, 2 more 2 B"));
    }

    #[test]
    fn this_process_is_in_proc() {
        let now = ProcessesIo::now();
        let own = &now.by_pid[&std::process::id()];
        assert!(own.name.contains("(pid ") && own.start > 0 && own.bytes.is_some(), "{own:?}");
        let children = with_children(&HashSet::from([own.parent]), &now.by_pid, |of| of.parent);
        assert!(children.contains(&std::process::id()));
    }
}
