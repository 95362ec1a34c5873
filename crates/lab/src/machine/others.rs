//! The programs beside the measured one: their share of a disk, and their names.
//!
//! * The disk says how much it moved (/proc/diskstats), the kernel how much a process had moved
//!   for it (/proc/PID/io, with the children it waited for). The difference is of others.
//! * A file system writes more than it was told: its journal, its structures. Where the counts of
//!   all processes can be read, others moved no more than those say. They cannot without root, in
//!   a container, which does not see the processes outside, and where a process has the kernel
//!   throw the counts of its children away.
//! * Counts of processes are of all disks together: a program that also uses another one hides
//!   as much of the others.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use snowmelt_base::printable;

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
    /// The counts of its children are in no process.
    loses_children: bool,
    /// Grows with its work: processor time and page faults.
    work: u64,
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
        let is_root = rustix::process::geteuid().is_root();
        let numbers = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        is_root && sees_all(&numbers) && self.by_pid.get(&1).is_some_and(|init| init.bytes.is_some())
    }

    /// The counts of all but `own` and what they started hold all that they did since `before`.
    fn tells_all(&self, before: &ProcessesIo, own: &HashSet<u32>) -> bool {
        let own = self.family(before, own);
        let others = |processes: &ProcessesIo, has_lost: &dyn Fn(&u32, &Beside) -> bool| {
            let mut of = processes.by_pid.iter().filter(|(pid, of)| of.loses_children && !own.contains(pid));
            of.any(|(pid, of)| has_lost(pid, of))
        };
        let same = |of: &Beside, other: &&Beside| of.start == other.start;
        let has_worked = |pid: &u32, now: &Beside| {
            before.by_pid.get(pid).filter(|then| same(now, then)).is_none_or(|then| then.work != now.work)
        };
        let has_ended =
            |pid: &u32, then: &Beside| self.by_pid.get(pid).filter(|now| same(then, now)).is_none();
        self.is_whole() && !others(self, &has_worked) && !others(before, &has_ended)
    }

    /// `own`, and what they started until now.
    fn family(&self, before: &ProcessesIo, own: &HashSet<u32>) -> HashSet<u32> {
        let family = |processes: &ProcessesIo| with_children(own, &processes.by_pid, |of| of.parent);
        &family(self) | &family(before)
    }

    /// Bytes that all but `own` and what they started moved since `before`, by name, the most
    /// first.
    pub fn since(&self, before: &ProcessesIo, own: &HashSet<u32>) -> Vec<(String, u64)> {
        let own = self.family(before, own);
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
            false => format!("{} (pid {pid})", printable::line(&comm)),
            true => comm.split('/').next().filter(|name| *name == "kworker").unwrap_or(&comm).to_owned(),
        };
        let bytes = ProcessIo::read(pid).map(|io| io.read_bytes + io.write_bytes);
        Some(Beside {
            name,
            parent: stat.parent,
            start: stat.start,
            bytes,
            loses_children: stat.loses_children && !stat.is_kernel,
            work: stat.ticks() + stat.minor_faults,
        })
    }
}

/// The numbers of processes are the first ones: not of a container, where those outside have none.
fn sees_all(numbers: &Path) -> bool {
    numbers == Path::new("pid:[4026531836]") // PROC_PID_INIT_INO of the kernel
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
    /// False where not all processes are known: then some of `others` may be the file system's
    /// own.
    pub is_known: bool,
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
        let is_known = later.tells_all(&self.processes, &ours);
        let most = is_known.then(|| named.iter().map(|(_, bytes)| bytes).sum());
        DiskUse::new((d.read_sectors + d.write_sectors) * 512, own.read_bytes + own.write_bytes, most, named)
    }
}

impl DiskUse {
    /// `own` bytes of `bytes` are the program's; all others moved `most`, where that is known.
    fn new(bytes: u64, own: u64, most: Option<u64>, named: Vec<(String, u64)>) -> DiskUse {
        let rest = bytes.saturating_sub(own);
        DiskUse { bytes, others: most.map_or(rest, |most| rest.min(most)), is_known: most.is_some(), named }
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

    fn beside(parent: u32, start: u64, bytes: u64) -> Beside {
        let name = format!("p{start}");
        Beside { name, parent, start, bytes: Some(bytes), loses_children: false, work: 0 }
    }

    #[test]
    fn in_a_container_the_processes_outside_are_not_known() {
        assert!(sees_all(Path::new("pid:[4026531836]")));
        assert!(!sees_all(Path::new("pid:[4026532201]")) && !sees_all(Path::new("")));
    }

    #[test]
    fn processes_whose_children_were_lost_are_not_known() {
        let now = ProcessesIo::now();
        if !now.is_whole() {
            return eprintln!("skipped: needs root, and no container");
        }
        let at = |list: &[(u32, Beside)]| {
            let init = (1, now.by_pid[&1].clone());
            ProcessesIo { by_pid: list.iter().cloned().chain([init]).collect() }
        };
        let loses = |parent, work| Beside { loses_children: true, work, ..beside(parent, 7, 0) };
        let own = HashSet::from([5]);
        let tells =
            |before: &[(u32, Beside)], after: &[(u32, Beside)]| at(after).tells_all(&at(before), &own);
        assert!(tells(&[], &[]) && tells(&[], &[(7, beside(1, 7, 0))]));
        assert!(tells(&[(7, loses(1, 3))], &[(7, loses(1, 3))]), "it slept");
        assert!(!tells(&[(7, loses(1, 3))], &[(7, loses(1, 4))]), "it worked");
        assert!(!tells(&[], &[(7, loses(1, 3))]), "it has begun");
        assert!(!tells(&[(7, loses(1, 3))], &[]), "it has ended");
        assert!(tells(&[], &[(7, loses(5, 3))]), "its children are ours, and no others");
    }

    #[test]
    fn others_are_what_is_left_and_no_more_than_they_say() {
        let of = |bytes, own, most| DiskUse::new(bytes, own, most, Vec::new());
        assert_eq!((of(1000, 600, None).others, of(1000, 600, None).share()), (400, 0.4));
        assert!(!of(1000, 600, None).is_known && of(1000, 600, Some(100)).is_known);
        assert_eq!(of(1000, 600, Some(100)).others, 100, "300 are of the file system");
        assert_eq!(of(1000, 600, Some(9000)).others, 400, "mostly on other disks");
        assert_eq!((of(1000, 2000, Some(5)).others, of(0, 0, None).share()), (0, 0.0));
    }

    #[test]
    fn processes_beside_are_those_that_are_not_ours_nor_our_childrens() {
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
