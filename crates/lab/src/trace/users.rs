//! Users of a device: which process asked, and for which file.
//!
//! The thread at `block_bio_queue` asked, with two exceptions:
//!
//! * Write-back is done by threads of the kernel. They say which inode they begin and end with,
//!   and other events say which thread made that inode dirty, and which one gave it new data: the
//!   latter is the one that asked. A file that was dirty before the trace is the program's when the
//!   program has it open for writing.
//! * The journal and the structures of a file system belong to no program.
//!
//! The file of a bio is the one that its thread touched last: direct I/O, pages added to the
//! page cache and write-back say so before they queue their bios. Direct I/O of a bare device
//! says nothing; where no file system is mounted, all bios are the device's own.
//!
//! Numbers of processes are used again: a process is its number and its beginning.

use std::collections::{BTreeMap, HashMap, HashSet};

use hdrhistogram::Histogram;
use serde::Serialize;
use snowmelt_base::printable;

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

/// A process, as long as its number is not used again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Process {
    name: String,
    /// Threads of the kernel have none, nor has the sum of those beyond [`MOST_PROCESSES`].
    pid: Option<u32>,
    /// When the kernel told of its beginning; 0 of one from before the trace.
    born_ns: u64,
    is_kernel: bool,
    ours: bool,
}

/// The process that made a file dirty.
struct Dirtied {
    process: usize,
    /// By data, and not by a time or an attribute of the file only.
    by_data: bool,
    /// Rises from file to file.
    order: u64,
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
    /// `dd (pid 12)`, `kworker`; a name may hold anything, and is shown as text.
    pub fn who(&self) -> String {
        let name = printable::line(&self.process);
        self.pid.map_or_else(|| name.to_string(), |pid| format!("{name} (pid {pid})"))
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

/// Rows that are kept apart, each with its latencies (20 KiB); what comes later is in one row.
const MOST_ROWS: usize = 1000;
/// Processes that are kept apart, and files of which is known who made them dirty.
const MOST_PROCESSES: usize = 4000;
const MOST_FILES: usize = 1 << 20;
/// Name of the row of all that are not kept apart.
const OTHER_PROCESSES: &str = "other processes";
const HOUR_NS: u64 = 3_600_000_000_000;

/// All users so far.
#[derive(Default)]
pub struct Users {
    family: Option<Family>,
    /// Devices whose files lie on the traced one, and it.
    devs: HashSet<u32>,
    /// File systems on it that have numbers of their own, which no device has.
    file_systems: HashSet<u32>,
    /// The object where a thread said nothing.
    bare: Option<FileId>,
    processes: Vec<Process>,
    by_process: HashMap<Process, usize>,
    /// When the kernel told of the beginning of a thread of this number.
    born: HashMap<u32, u64>,
    /// Name and process of the threads that were seen, by numbers, which are used again.
    threads: HashMap<u32, ([u8; 16], usize)>,
    at_work: HashMap<u32, FileId>,
    dirtied: HashMap<FileId, Dirtied>,
    order: u64,
    /// Files that the program has or had open for writing.
    opened: HashSet<FileId>,
    /// The program itself.
    root: Option<usize>,
    users: Vec<User>,
    by_user: HashMap<(usize, Object), usize>,
    names: FileNames,
    /// Threads seen since the last look, whose files have no name yet.
    unnamed: HashSet<u32>,
    /// Processes of the program, as far as they were seen, with their start by /proc.
    running: HashMap<u32, Option<u64>>,
    asks_names: bool,
    /// Sums by whom they were for.
    pub parties: Parties,
}

impl Users {
    /// Of a device whose files have one of `devs`; `bare` is the device where no file system is
    /// on it. The program is `family`. Names of files are asked for where all touches are traced.
    pub fn new(family: Option<Family>, devs: &[u32], bare: Option<u32>, touches: Touches) -> Users {
        let mut users = Users {
            running: family.iter().map(|family| (family.root(), None)).collect(),
            asks_names: touches == Touches::All,
            family,
            devs: devs.iter().copied().collect(),
            bare: bare.map(|dev| FileId { dev, ino: 0 }),
            ..Users::default()
        };
        let root = users.family.as_ref().map(Family::root);
        users.root = root.map(|root| users.process(root, &name_of_thread(root)));
        users.look();
        users
    }

    /// Files of a file system on the device have this number, which is no device's.
    pub fn add_file_system(&mut self, dev: u32) {
        self.file_systems.insert(dev);
        self.names.add_file_system(dev);
    }

    /// Bios of device `dev` itself have its name.
    pub fn name_device(&mut self, dev: u32, name: &str) {
        self.names.insert(FileId { dev, ino: 0 }, format!("/dev/{name}"));
    }

    /// `parent` made `child`, then.
    pub fn forked(&mut self, time_ns: u64, parent: u32, child: u32) {
        // A number that is used again is another process.
        self.threads.remove(&child);
        self.at_work.remove(&child);
        if self.family.as_ref().is_some_and(|family| family.is_birth(time_ns, child)) {
            return; // it is known, and its files are being asked for
        }
        self.born.insert(child, time_ns);
        self.running.remove(&child);
        self.names.forget(child);
        if let Some(family) = &mut self.family {
            family.forked(time_ns, parent, child);
            if family.contains(child) {
                self.running.insert(child, None);
            }
        }
    }

    /// A thread touched a file.
    pub fn touched(&mut self, event: &TouchEvent) {
        let is_device = u32::try_from(event.ino).is_ok_and(|ino| self.devs.contains(&ino));
        let is_here = self.devs.contains(&event.dev) || self.file_systems.contains(&event.dev);
        if !is_device && (event.ino == NO_FILE || !is_here) {
            return;
        }
        // Pages of the device below a file system are its structures, which it also reads while it
        // writes a file back: the thread goes on with the file.
        let is_page = event.touch == Touch::Begin && !is_here;
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
            Touch::Written => return self.written_by(event.pid, file),
        }
        if self.names.get(file).is_none() {
            self.unnamed.insert(event.pid);
        }
    }

    /// A file that was clean is not any more.
    fn dirtied_by(&mut self, pid: u32, file: FileId) {
        let process = self.process_of_thread(pid);
        self.order += 1;
        let dirtied = Dirtied { process, by_data: false, order: self.order };
        match self.dirtied.get_mut(&file) {
            // Write-back itself changes the attributes of a file.
            Some(known) if is_write_back(&self.processes[process].name) => known.by_data = false,
            Some(known) => *known = dirtied,
            None => self.keep_dirtied(file, dirtied),
        }
    }

    fn keep_dirtied(&mut self, file: FileId, dirtied: Dirtied) {
        if self.dirtied.len() < MOST_FILES {
            self.dirtied.insert(file, dirtied);
        }
    }

    /// A page of a file has new data. Reading may make a file dirty as well, by its time: the
    /// first one that wrote since it was clean is the one for which it is written back.
    fn written_by(&mut self, pid: u32, file: FileId) {
        let file = self.on_any_partition(file);
        if self.dirtied.get(&file).is_some_and(|known| known.by_data) {
            return;
        }
        let process = self.process_of_thread(pid);
        let is_write_back = is_write_back(&self.processes[process].name);
        self.order += 1;
        let dirtied = Dirtied { process, by_data: true, order: self.order };
        match self.dirtied.get_mut(&file) {
            Some(_) if is_write_back => {}
            Some(known) => *known = dirtied,
            None => self.keep_dirtied(file, dirtied),
        }
    }

    /// The event names the disk, where the number of the file system may be a partition's: of
    /// several files with this inode the one that became dirty last.
    fn on_any_partition(&self, file: FileId) -> FileId {
        if file.ino == 0 || self.dirtied.contains_key(&file) || self.file_systems.contains(&file.dev) {
            return file;
        }
        let at = |dev: &u32| {
            let file = FileId { dev: *dev, ..file };
            Some((self.dirtied.get(&file)?.order, file))
        };
        self.devs.iter().filter_map(at).max_by_key(|(order, _)| *order).map_or(file, |(_, file)| file)
    }

    fn process_of_thread(&mut self, pid: u32) -> usize {
        match self.threads.get(&pid) {
            Some((_, process)) => *process,
            None => self.process(pid, &name_of_thread(pid)),
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
    fn asked_for(&self, file: FileId) -> Option<usize> {
        match self.dirtied.get(&file) {
            Some(dirtied) => Some(dirtied.process),
            None => self.root.filter(|_| self.opened.contains(&file)),
        }
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
        let process = match kernel_name(pid, name) {
            Some(name) => Process { name, pid: None, born_ns: 0, is_kernel: true, ours },
            None => {
                let group = group_and_parent(pid).map_or(pid, |(group, _)| group);
                let of_group = if group == pid { None } else { Some(name_of_thread(group)) };
                let name = of_group.filter(|name| name != "?").unwrap_or_else(|| name.to_owned());
                let born_ns = self.born.get(&group).copied().unwrap_or(0);
                Process { name, pid: Some(group), born_ns, is_kernel: false, ours }
            }
        };
        if let Some(place) = self.by_process.get(&process) {
            return *place;
        }
        if let Some(number) = process.pid {
            if ours {
                self.running.entry(number).or_insert(None);
            }
            if self.asks_names {
                self.opened.extend(self.names.look(number).into_iter().filter(|_| ours));
            }
            if self.processes.len() >= MOST_PROCESSES {
                return self.other_processes(&process);
            }
        }
        self.add_process(process)
    }

    fn add_process(&mut self, process: Process) -> usize {
        let processes = &mut self.processes;
        *self.by_process.entry(process).or_insert_with_key(|process| {
            processes.push(process.clone());
            processes.len() - 1
        })
    }

    /// The sum of the processes that are not kept apart from others like this one.
    fn other_processes(&mut self, like: &Process) -> usize {
        self.add_process(Process {
            name: OTHER_PROCESSES.into(),
            pid: None,
            born_ns: 0,
            is_kernel: like.is_kernel,
            ours: like.ours,
        })
    }

    fn user(&mut self, process: usize, object: Object) -> usize {
        if let Some(place) = self.by_user.get(&(process, object)) {
            return *place;
        }
        let key = match self.users.len() < MOST_ROWS {
            true => (process, object),
            false => (self.other_processes(&self.processes[process].clone()), Object::Unknown),
        };
        let users = &mut self.users;
        *self.by_user.entry(key).or_insert_with(|| {
            let latencies = Histogram::new_with_bounds(1, HOUR_NS, 2).expect("valid bounds");
            users.push(User { process: key.0, object: key.1, moved: BTreeMap::new(), latencies });
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
            Process { is_kernel: true, .. } if writes || user.object == Object::Journal => {
                &mut self.parties.kernel
            }
            _ => &mut self.parties.others,
        };
        party.add(request.sectors);
    }

    /// Asks /proc for names, while those who use the files still run.
    pub fn look(&mut self) {
        // Threads have the files of their process; what has ended has none, and its number may be
        // another's.
        self.running.retain(|pid, start| match (group_and_parent(*pid), ProcStat::read(*pid)) {
            (Some((group, _)), Some(stat)) => group == *pid && *start.get_or_insert(stat.start) == stat.start,
            _ => false,
        });
        for pid in self.running.keys() {
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

#[cfg(test)]
mod tests {
    use super::super::device_number::of_dev;
    use super::super::event::{Action, Operation};
    use super::*;

    const PROGRAM: u32 = 4_190_000;

    fn bio(pid: u32, name: &str, letters: &str) -> BlockEvent {
        let mut comm = [0; 16];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        BlockEvent {
            time_ns: 1,
            cpu: 0,
            action: Action::Queue,
            op: Operation::parse(letters.as_bytes()),
            sector: 0,
            sectors: 8,
            split_at: 0,
            pid,
            error: 0,
            comm,
        }
    }

    fn done(event: &BlockEvent, asker: Asker) -> RequestDone {
        RequestDone {
            sector: event.sector,
            sectors: event.sectors,
            op: event.op,
            queued_ns: 1,
            issued_ns: 2,
            completed_ns: 3,
            asker: Some(asker),
            error: 0,
        }
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let mut users = Users::new(Some(Family::new(PROGRAM, 0)), &[7], None, Touches::WriteBack);
        let compiler = PROGRAM + 1;
        let mut ask = |time_ns, parent| {
            users.forked(time_ns, parent, compiler);
            users.asker(&bio(compiler, "cc1", "R"))
        };
        let asked = [ask(1, PROGRAM), ask(2, 1), ask(3, PROGRAM), ask(4, 1)];
        assert_eq!(asked.map(|asker| asker.ours), [true, false, true, false]);
        let rows: HashSet<usize> = asked.iter().map(|asker| asker.user).collect();
        assert_eq!(rows.len(), 4, "each has its own row");
        // The program's own number.
        assert!(users.asker(&bio(PROGRAM, "dd", "R")).ours);
        users.forked(5, 1, PROGRAM);
        assert!(!users.asker(&bio(PROGRAM, "dd", "R")).ours && users.running.is_empty());
    }

    #[test]
    fn any_number_of_processes_has_so_many_rows() {
        let mut users = Users::new(Some(Family::new(PROGRAM, 0)), &[7], Some(7), Touches::WriteBack);
        let many = 3 * MOST_PROCESSES as u64;
        for n in 0..many {
            let (pid, parent) = (PROGRAM + 1 + n as u32, if n % 2 == 0 { PROGRAM } else { 1 });
            users.forked(n + 1, parent, pid);
            let event = bio(pid, "sh", "R");
            let asker = users.asker(&event);
            assert_eq!(asker.ours, n % 2 == 0);
            users.done(&done(&event, asker));
        }
        assert!(users.users.len() <= MOST_ROWS + 3 && users.processes.len() <= MOST_PROCESSES + 4);
        let lines = users.lines();
        let requests = |ours: bool| -> u64 {
            lines.iter().filter(|line| line.ours == ours).map(|line| line.reads.requests).sum()
        };
        assert_eq!((requests(true), requests(false)), (many / 2, many / 2), "none is lost");
        let rest: Vec<_> = lines.iter().filter(|line| line.process == OTHER_PROCESSES).collect();
        assert_eq!(rest.iter().map(|line| line.reads.requests).sum::<u64>(), many - MOST_ROWS as u64);
        assert_eq!(
            (rest.len(), rest[0].who()),
            (2, OTHER_PROCESSES.to_owned()),
            "the program's, and others'"
        );
        let parties = users.parties;
        assert_eq!((parties.own.requests, parties.others.requests), (many / 2, many / 2));
    }

    /// A file that was dirty before the trace.
    #[test]
    fn a_file_is_written_back_for_the_program_that_has_it_open_for_writing() {
        use std::os::unix::fs::MetadataExt;
        let file = tempfile::NamedTempFile::new().unwrap();
        let [reader, writer] = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap().into_temp_path());
        let (read, written) =
            (std::fs::File::open(&reader).unwrap(), std::fs::File::create(&writer).unwrap());
        let (dev, own) = (of_dev(file.as_file().metadata().unwrap().dev()), std::process::id());
        let mut users = Users::new(Some(Family::new(own, 0)), &[dev], None, Touches::All);
        let mut is_ours = |file: &std::fs::File| {
            let ino = file.metadata().unwrap().ino();
            users.touched(&TouchEvent { time_ns: 1, pid: 4_190_900, touch: Touch::Begin, dev, ino });
            users.asker(&bio(4_190_900, "kworker/u8:1", "W")).ours
        };
        assert_eq!((is_ours(&read), is_ours(&written)), (false, true));
    }

    #[test]
    fn names_in_words_are_text() {
        let line = UserLine {
            process: "a\u{1b}[2J".into(),
            pid: Some(12),
            ours: false,
            file: "x".into(),
            reads: Moved::default(),
            writes: Moved::default(),
            mean_ns: 0.0,
            p99_ns: 0,
        };
        assert_eq!(line.who(), r"a\u{1b}[2J (pid 12)");
    }
}
