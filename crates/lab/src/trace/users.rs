//! Users of a device: which process asked, and for which file.
//!
//! The thread at `block_bio_queue` asked, with two exceptions:
//!
//! * Write-back is done by threads of the kernel. They say which inode they begin and end with,
//!   and another event says which thread made that inode dirty: it is the one that asked. A file
//!   that was dirty before the trace is the program's when the program has it open.
//! * The journal and the structures of a file system belong to no program.
//!
//! The file of a bio is the one that its thread touched last: direct I/O, pages added to the
//! page cache and write-back say so before they queue their bios. Direct I/O of a bare device
//! says nothing; where no file system is mounted, all bios are the device's own.

use std::collections::{BTreeMap, HashMap, HashSet};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::event::{BlockEvent, RequestKind, Touch, TouchEvent};
use super::family::{Family, group_and_parent};
use super::file_names::{FileId, FileNames};
use super::pairing::{Asker, RequestDone};
use crate::machine::others::{Moved, Parties, in_words};
use crate::machine::proc_stat::ProcStat;

/// The object of a bio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Object {
    Unknown,
    Metadata,
    Journal,
    File(FileId),
}

struct Process {
    name: String,
    /// Threads of the kernel have none.
    pid: Option<u32>,
    ours: bool,
}

struct User {
    process: usize,
    object: Object,
    moved: BTreeMap<RequestKind, Moved>,
    /// Time at the device, in ns.
    latencies: Histogram<u32>,
}

/// A process and a file, for reports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UserLine {
    /// Name of the process.
    pub process: String,
    /// Its number; none for threads of the kernel.
    pub pid: Option<u32>,
    /// It is the traced program.
    pub ours: bool,
    /// Path of the file; `inode 12` of one whose name is not known, `[metadata]`, `[journal]`.
    pub file: String,
    /// Reads.
    pub reads: Moved,
    /// Writes.
    pub writes: Moved,
    /// Mean time at the device, ns.
    pub mean_ns: f64,
    /// 99 % took no longer.
    pub p99_ns: u64,
}

impl UserLine {
    /// `dd (pid 12)`, `kworker`.
    pub fn who(&self) -> String {
        self.pid.map_or_else(|| self.process.clone(), |pid| format!("{} (pid {pid})", self.process))
    }

    /// Bytes, read and written.
    pub fn bytes(&self) -> u64 {
        self.reads.bytes + self.writes.bytes
    }
}

/// Files in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touches {
    /// As far as write-back needs them: a few events.
    WriteBack,
    /// Of every bio, with names: an event more for every page or direct read.
    All,
}

/// Inode 1 is no file: ext4 caches its free blocks under it, also while it writes a file back.
const NO_FILE: u64 = 1;

/// Rows that are kept apart; what comes later is one row for each process.
const MOST_ROWS: usize = 1000;
const HOUR_NS: u64 = 3_600_000_000_000;

/// All users so far.
#[derive(Default)]
pub struct Users {
    family: Option<Family>,
    /// Devices whose files lie on the traced one, and it.
    devs: HashSet<u32>,
    /// The object where a thread said nothing.
    bare: Option<FileId>,
    processes: Vec<Process>,
    by_process: HashMap<(Option<u32>, String), usize>,
    /// Name and process of the threads that were seen.
    threads: HashMap<u32, ([u8; 16], usize)>,
    at_work: HashMap<u32, FileId>,
    /// The process that made a file dirty.
    dirtied: HashMap<FileId, usize>,
    /// Files that the program has or had open.
    opened: HashSet<FileId>,
    users: Vec<User>,
    by_user: HashMap<(usize, Object), usize>,
    names: FileNames,
    /// Threads seen since the last look, whose files have no name yet.
    unnamed: HashSet<u32>,
    /// Processes of the program, as far as they were seen.
    running: HashSet<u32>,
    asks_names: bool,
    /// Sums by whom they were for.
    pub parties: Parties,
}

impl Users {
    /// Of a device whose files have one of `devs`; `bare` is the device where no file system is
    /// on it. The program is `family`. Names of files are asked for where all touches are traced.
    pub fn new(family: Option<Family>, devs: &[u32], bare: Option<u32>, touches: Touches) -> Users {
        let mut users = Users {
            running: family.iter().map(Family::root).collect(),
            asks_names: touches == Touches::All,
            family,
            devs: devs.iter().copied().collect(),
            bare: bare.map(|dev| FileId { dev, ino: 0 }),
            ..Users::default()
        };
        users.look();
        users
    }

    /// Bios of device `dev` itself have its name.
    pub fn name_device(&mut self, dev: u32, name: &str) {
        self.names.insert(FileId { dev, ino: 0 }, format!("/dev/{name}"));
    }

    /// `parent` made `child`.
    pub fn forked(&mut self, parent: u32, child: u32) {
        // A number that is used again is another process.
        self.threads.remove(&child);
        self.at_work.remove(&child);
        if let Some(family) = &mut self.family {
            family.forked(parent, child);
            if family.contains(child) {
                self.running.insert(child);
            }
        }
    }

    /// A thread touched a file.
    pub fn touched(&mut self, event: &TouchEvent) {
        let is_device = u32::try_from(event.ino).is_ok_and(|ino| self.devs.contains(&ino));
        if !is_device && (event.ino == NO_FILE || !self.devs.contains(&event.dev)) {
            return;
        }
        // Pages of the device below a file system are its structures, which it also reads while it
        // writes a file back: the thread goes on with the file.
        let is_page = event.touch == Touch::Begin && !self.devs.contains(&event.dev);
        if is_device && is_page && self.bare.is_none() {
            return;
        }
        // The inode of a device has the device's number.
        let file = match is_device {
            true => FileId { dev: event.ino as u32, ino: 0 },
            false => FileId { dev: event.dev, ino: event.ino },
        };
        match event.touch {
            Touch::Begin => drop(self.at_work.insert(event.pid, file)),
            Touch::End => drop(self.at_work.remove(&event.pid)),
            Touch::Dirty => self.dirtied_by(event.pid, file),
        }
        if self.names.get(file).is_none() {
            self.unnamed.insert(event.pid);
        }
    }

    fn dirtied_by(&mut self, pid: u32, file: FileId) {
        let process = match self.threads.get(&pid) {
            Some((_, process)) => *process,
            None => self.process(pid, &name_of_thread(pid)),
        };
        // Write-back itself changes what is known of a file.
        if !is_write_back(&self.processes[process].name) || !self.dirtied.contains_key(&file) {
            self.dirtied.insert(file, process);
        }
    }

    /// The one that asked for a bio that is queued.
    pub fn asker(&mut self, event: &BlockEvent) -> Asker {
        let comm = trimmed(&event.comm);
        let mut process = match self.threads.get(&event.pid) {
            Some((name, process)) if *name == event.comm => *process,
            _ => {
                let process = self.process(event.pid, &String::from_utf8_lossy(comm));
                self.threads.insert(event.pid, (event.comm, process));
                process
            }
        };
        let object = self.object(event, comm);
        if let (Object::File(file), true) = (object, is_write_back(&self.processes[process].name)) {
            process = self.asked_for(file).unwrap_or(process);
        }
        let ours = self.processes[process].ours;
        Asker { pid: event.pid, ours, user: self.user(process, object), comm: event.comm }
    }

    /// The process for which a file is written back.
    fn asked_for(&mut self, file: FileId) -> Option<usize> {
        if let Some(process) = self.dirtied.get(&file) {
            return Some(*process);
        }
        let root = self.family.as_ref().filter(|_| self.opened.contains(&file))?.root();
        Some(self.process(root, &name_of_thread(root)))
    }

    fn object(&mut self, event: &BlockEvent, comm: &[u8]) -> Object {
        if comm.starts_with(b"jbd2/") || comm.starts_with(b"xfsaild/") {
            return Object::Journal;
        }
        match self.at_work.get(&event.pid) {
            _ if event.op.meta => Object::Metadata,
            Some(file) => Object::File(*file),
            None => self.bare.map_or(Object::Unknown, Object::File),
        }
    }

    /// Place of the process of a thread with this name.
    fn process(&mut self, pid: u32, name: &str) -> usize {
        let ours = self.family.as_mut().is_some_and(|family| family.contains_named(pid, name.as_bytes()));
        let (number, name) = match kernel_name(pid, name) {
            Some(name) => (None, name),
            None => {
                let group = group_and_parent(pid).map_or(pid, |(group, _)| group);
                let of_group = if group == pid { None } else { Some(name_of_thread(group)) };
                (Some(group), of_group.filter(|name| name != "?").unwrap_or_else(|| name.to_owned()))
            }
        };
        let processes = &mut self.processes;
        let before = processes.len();
        let place = *self.by_process.entry((number, name)).or_insert_with_key(|(pid, name)| {
            processes.push(Process { name: name.clone(), pid: *pid, ours });
            before
        });
        if let Some(number) = number.filter(|_| self.processes.len() > before) {
            self.running.extend(ours.then_some(number));
            if self.asks_names {
                self.opened.extend(self.names.look(number).into_iter().filter(|_| ours));
            }
        }
        place
    }

    fn user(&mut self, process: usize, object: Object) -> usize {
        let full = self.users.len() >= MOST_ROWS && !self.by_user.contains_key(&(process, object));
        let object = if full { Object::Unknown } else { object };
        let users = &mut self.users;
        *self.by_user.entry((process, object)).or_insert_with(|| {
            let latencies = Histogram::new_with_bounds(1, HOUR_NS, 2).expect("valid bounds");
            users.push(User { process, object, moved: BTreeMap::new(), latencies });
            users.len() - 1
        })
    }

    /// A request is over.
    pub fn done(&mut self, request: &RequestDone) {
        if request.op.kind == RequestKind::Flush {
            return; // asked for by several, or by none
        }
        let Some(asker) = request.asker else { return self.parties.kernel.add(request.sectors) };
        let user = &mut self.users[asker.user];
        user.moved.entry(request.op.kind).or_default().add(request.sectors);
        user.latencies.saturating_record(request.device_ns().unwrap_or(0).max(1));
        let writes = request.op.kind != RequestKind::Read;
        let party = match self.processes[user.process] {
            _ if asker.ours => &mut self.parties.own,
            Process { pid: None, .. } if writes || user.object == Object::Journal => &mut self.parties.kernel,
            _ => &mut self.parties.others,
        };
        party.add(request.sectors);
    }

    /// Asks /proc for names, while those who use the files still run.
    pub fn look(&mut self) {
        // Threads have the files of their process; what has ended has none.
        self.running.retain(|pid| group_and_parent(*pid).is_some_and(|(group, _)| group == *pid));
        for pid in &self.running {
            self.opened.extend(self.names.look(*pid));
        }
        if !self.asks_names {
            return;
        }
        for pid in std::mem::take(&mut self.unnamed) {
            if let Some((group, _)) = group_and_parent(pid) {
                self.names.look(group);
            }
        }
    }

    /// The last look, for names that are missing.
    pub fn finish(&mut self) {
        self.look();
        if !self.asks_names {
            return;
        }
        let files = self.users.iter().filter_map(|user| match user.object {
            Object::File(file) if file.ino != 0 => Some(file),
            _ => None,
        });
        self.names.look_around(&files.collect());
    }

    /// Name of the file of a request's user.
    pub fn file(&self, user: usize) -> String {
        match self.users[user].object {
            Object::Unknown => "-".into(),
            Object::Metadata => "[metadata]".into(),
            Object::Journal => "[journal]".into(),
            Object::File(file) => match self.names.get(file) {
                Some(name) => name.to_owned(),
                None if file.ino == 0 => "[device]".into(),
                None => format!("inode {}", file.ino),
            },
        }
    }

    /// Name of the process of a request's user.
    pub fn process_name(&self, user: usize) -> &str {
        &self.processes[self.users[user].process].name
    }

    /// All of them, those that moved most first.
    pub fn lines(&self) -> Vec<UserLine> {
        let line = |(place, user): (usize, &User)| {
            let process = &self.processes[user.process];
            let of = |kind| user.moved.get(&kind).copied().unwrap_or_default();
            UserLine {
                process: process.name.clone(),
                pid: process.pid,
                ours: process.ours,
                file: self.file(place),
                reads: of(RequestKind::Read),
                writes: of(RequestKind::Write),
                mean_ns: user.latencies.mean(),
                p99_ns: user.latencies.value_at_quantile(0.99),
            }
        };
        let used = self.users.iter().enumerate().filter(|(_, user)| !user.moved.is_empty());
        let mut lines: Vec<UserLine> = used.map(line).collect();
        lines.sort_by_key(|line| {
            std::cmp::Reverse((line.bytes(), line.reads.requests + line.writes.requests))
        });
        lines
    }
}

/// Those that are not the program, with their bytes, in words: `dd (pid 12) 1.00 GiB`.
pub fn others(lines: &[UserLine]) -> Option<String> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for line in lines.iter().filter(|line| !line.ours) {
        *sums.entry(line.who()).or_default() += line.bytes();
    }
    let mut sums: Vec<(String, u64)> = sums.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
    sums.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    in_words(&sums)
}

/// A thread of the kernel that writes back for others.
fn is_write_back(process: &str) -> bool {
    process == "kworker"
}

/// The name of a thread of the kernel, without a worker's number; nothing for others.
fn kernel_name(pid: u32, name: &str) -> Option<String> {
    if name.starts_with("kworker/") {
        return Some("kworker".into());
    }
    ProcStat::read(pid)?.is_kernel.then(|| name.to_owned())
}

/// `?` of one that has ended.
fn name_of_thread(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    name.map_or_else(|_| "?".into(), |name| name.trim_end().to_owned())
}

/// Up to the first zero byte.
pub fn trimmed(comm: &[u8; 16]) -> &[u8] {
    &comm[..comm.iter().position(|byte| *byte == 0).unwrap_or(16)]
}
