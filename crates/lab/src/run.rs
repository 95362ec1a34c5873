//! A run folder: everything that one measurement leaves.
//!
//! | file | content |
//! |---|---|
//! | `NAME.jsonl` | raw results, one JSON object per line; `functions.jsonl`: profiles |
//! | `settings.json` | kind, command line, settings, keys and measures by which runs are compared, doubts |
//! | `machine.json` | the machine, the device's queue and interrupts, how busy the machine was meanwhile |
//! | `report.json` | the figures, from which the page can be written again |
//! | `report.html` | the page |
//!
//! A folder is never written into twice.

pub(crate) mod arguments;
pub(crate) mod compare;
pub mod functions;
pub(crate) mod grid;
pub(crate) mod load;
pub(crate) mod turns;

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::LabError;
use crate::machine::interrupts::{DeviceInterrupts, InterruptCounts};
use crate::machine::others::{DiskClock, DiskDisturbance, DiskUse, Parties, in_words};
use crate::machine::program::ProcessIo;
use crate::machine::{BlockDevice, CpuClock, Disturbance, Machine};
use crate::report::Report;
use crate::undo::locked;

/// Share of the processors above which the hypervisor's or other programs' use puts a run in
/// doubt.
const STEAL_DOUBT: f64 = 0.02;
const OTHERS_DOUBT: f64 = 0.10;
/// Bytes of others below which a disk that has little to do is not disturbed.
const FEW_BYTES: u64 = 1 << 20;

/// Runs without `--out` are kept in this folder of the one that the command is run in.
const HERE: &str = "snowmelt-lab";

/// The folder of a run that has yet to begin: taken before time is spent on what is measured.
pub(crate) struct RunFolder {
    path: PathBuf,
    /// It was not there before.
    made: bool,
    kind: String,
    /// Of the folder, which no other run may be in.
    _lock: File,
}

/// A run in progress.
pub struct Run {
    folder: RunFolder,
    machine: Machine,
    devices: Vec<BlockDevice>,
    disks: BTreeMap<String, DiskClock>,
    traced: BTreeMap<String, Parties>,
    /// Processes that are measured, and are no children of this one.
    programs: HashSet<u32>,
    programs_io: ProcessIo,
    settings: Value,
    comparison: Comparison,
    doubts: Vec<String>,
    began: CpuClock,
    interrupts: InterruptCounts,
    untimed: bool,
    began_at: String,
}

/// By which fields the lines of a file are matched between runs, and which are compared.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Comparison {
    /// Name of the file, without `.jsonl`.
    pub lines: String,
    /// Fields that say which cell a line is.
    pub keys: Vec<String>,
    /// Fields that were measured.
    pub measures: Vec<Measure>,
    /// Fields that are shown beside each other, without a verdict.
    #[serde(default)]
    pub shown: Vec<String>,
}

/// A measured field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// Its name in the lines.
    pub field: String,
    /// True when more is better.
    pub more_is_better: bool,
}

/// One file of JSON lines.
pub struct JsonLines {
    path: PathBuf,
    file: BufWriter<File>,
}

impl JsonLines {
    /// Adds a line; it is in the file when this returns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, line: &impl Serialize) -> Result<(), LabError> {
        let fail = |e: std::io::Error| LabError::file("write", &self.path, e);
        serde_json::to_writer(&mut self.file, line).map_err(|e| fail(e.into()))?;
        self.file.write_all(b"\n").and_then(|()| self.file.flush()).map_err(fail)
    }
}

impl RunFolder {
    /// Makes the folder: `out`, or `snowmelt-lab/KIND-TIME` here. A folder with anything in it
    /// is refused.
    ///
    /// # Errors
    /// The folder is there and not empty, or cannot be made or written to.
    pub fn create(kind: &str, out: Option<&Path>) -> Result<RunFolder, LabError> {
        const OTHER: &str = "name another with --out";
        let failed = |doing: &str, path: &Path, e: std::io::Error| {
            LabError::refused(path.display(), format!("{doing} ({e})"), OTHER)
        };
        let path = match out {
            Some(path) => path.to_path_buf(),
            None => fresh(Path::new(HERE), kind).map_err(|(path, e)| failed("cannot be made", &path, e))?,
        };
        let not_alone = |why| {
            LabError::refused(path.display(), why, "a run gets a folder of its own: name another with --out")
        };
        let is_occupied = || fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_some());
        if path.is_file() || is_occupied() {
            return Err(not_alone("there is something in it already"));
        }
        let made = out.is_none() || make(&path).map_err(|e| failed("cannot be made", &path, e))?;
        // Another command may have been given the folder, and have nothing in it yet.
        let lock = alone_in(&path).map_err(|e| failed("cannot be locked", &path, e))?;
        let lock = lock.ok_or_else(|| not_alone("another run is in it"))?;
        if is_occupied() {
            return Err(not_alone("there is something in it already"));
        }
        let folder = RunFolder { path, made, kind: kind.into(), _lock: lock };
        let trial = folder.path.join("trial");
        let tried = File::create_new(&trial).and_then(|_| fs::remove_file(&trial));
        tried.map_err(|e| failed("cannot be written to", &folder.path, e))?;
        Ok(folder)
    }

    /// The run begins: from now on it is seen how busy the machine is.
    pub fn begin(self) -> Run {
        Run {
            folder: self,
            machine: Machine::here(),
            devices: Vec::new(),
            disks: BTreeMap::new(),
            traced: BTreeMap::new(),
            programs: HashSet::new(),
            programs_io: ProcessIo::default(),
            settings: Value::Null,
            comparison: Comparison::default(),
            doubts: Vec::new(),
            began: CpuClock::now(),
            interrupts: InterruptCounts::now(),
            untimed: false,
            began_at: utc_now(),
        }
    }
}

impl Run {
    /// Makes the folder, `out`, or `snowmelt-lab/KIND-TIME` here, and begins. A folder with
    /// anything in it is refused.
    ///
    /// # Errors
    /// The folder is there and not empty, or cannot be made.
    pub fn create(kind: &str, out: Option<&Path>) -> Result<Run, LabError> {
        RunFolder::create(kind, out).map(RunFolder::begin)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.folder.path
    }

    /// The settings, for `settings.json`.
    pub fn settings(&mut self, settings: &impl Serialize) {
        // A path may be no text.
        self.settings =
            serde_json::to_value(settings).unwrap_or_else(|e| json!({ "not told": e.to_string() }));
    }

    /// A device that is measured from now on, as it is set now. Work of other programs on its
    /// disk meanwhile is a doubt.
    pub fn device(&mut self, device: BlockDevice) {
        if let Some(clock) = DiskClock::start(&device.name) {
            self.disks.entry(device.name.clone()).or_insert(clock);
        }
        self.device_of_others(device);
    }

    /// A device that is used by programs of which is not known whether they are the measured
    /// ones: a server that runs already. What others do with it is not told.
    pub fn device_of_others(&mut self, device: BlockDevice) {
        self.devices.push(device);
    }

    /// A process that is measured, with all that it starts; not one that this process starts.
    pub fn program(&mut self, pid: u32) {
        self.programs.insert(pid);
    }

    /// The I/O of such processes while the devices were measured.
    pub fn programs_io(&mut self, io: ProcessIo) {
        self.programs_io = self.programs_io.plus(io);
    }

    /// A trace of a measured disk says whose its requests were.
    pub fn traced(&mut self, disk: &str, parties: Parties) {
        let sum = self.traced.entry(disk.to_owned()).or_default();
        *sum = sum.plus(parties);
    }

    /// The work of the measured disks until now.
    pub fn disk_use(&self) -> BTreeMap<String, DiskUse> {
        let now = |clock: &DiskClock| clock.now(&self.programs, self.programs_io);
        self.disks.iter().map(|(name, clock)| (name.clone(), now(clock))).collect()
    }

    /// How `lab compare` matches and judges the lines of this run: by the fields `keys`,
    /// judging each field of `measures` (with true when more is better).
    pub fn compare_by(&mut self, lines: &str, keys: &[&str], measures: &[(&str, bool)]) {
        self.comparison = Comparison {
            lines: lines.into(),
            keys: keys.iter().map(|key| (*key).into()).collect(),
            measures: measures
                .iter()
                .map(|(field, more_is_better)| Measure {
                    field: (*field).into(),
                    more_is_better: *more_is_better,
                })
                .collect(),
            shown: Vec::new(),
        };
    }

    /// As [`compare_by`](Self::compare_by) for lines with nothing to judge: `fields` are shown
    /// beside each other.
    pub fn show_by(&mut self, lines: &str, keys: &[&str], fields: &[&str]) {
        self.compare_by(lines, keys, &[]);
        self.comparison.shown = fields.iter().map(|field| (*field).into()).collect();
    }

    /// A new file `NAME.jsonl` in the folder.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn lines(&self, name: &str) -> Result<JsonLines, LabError> {
        let path = self.folder.path.join(format!("{name}.jsonl"));
        let file = File::create_new(&path).map_err(|e| LabError::file("create", &path, e))?;
        Ok(JsonLines { path, file: BufWriter::new(file) })
    }

    /// None of its numbers comes from a clock: who else used the machine meanwhile does not
    /// matter.
    pub fn untimed(&mut self) {
        self.untimed = true;
    }

    /// Something that makes the run's numbers doubtful; told at the end and in the report.
    pub fn doubt(&mut self, why: impl Into<String>) {
        let why = why.into();
        if !self.doubts.contains(&why) {
            self.doubts.push(why);
        }
    }

    /// Writes settings, machine and page; the path of the page.
    ///
    /// # Errors
    /// A file of the folder cannot be written.
    pub fn finish(mut self, mut report: Report) -> Result<PathBuf, LabError> {
        let mut busy = self.began.until(CpuClock::now());
        let used = self.disk_use();
        busy.disks = used.iter().map(|(name, used)| (name.clone(), self.disturbed(name, used))).collect();
        if !self.untimed {
            self.judge(&busy);
            used.iter().for_each(|(name, used)| self.judge_disk(name, used, &busy.disks[name]));
        }
        report.doubts = self.doubts.clone();
        let now = InterruptCounts::now();
        let interrupts: Vec<_> =
            self.devices.iter().filter_map(|device| self.interrupts.until(&now, device)).collect();
        report.facts = self.facts(&busy, &interrupts);
        let settings = json!({
            "kind": self.folder.kind,
            "version": env!("CARGO_PKG_VERSION"),
            "began": self.began_at,
            "command": command_line(),
            "settings": self.settings,
            "comparison": self.comparison,
            "doubts": self.doubts,
        });
        let machine = json!({
            "machine": self.machine,
            "devices": self.devices,
            "interrupts": interrupts,
            "disturbance": busy,
        });
        self.write("settings.json", &settings)?;
        self.write("machine.json", &machine)?;
        self.write("report.json", &report)?;
        let page = self.folder.path.join("report.html");
        fs::write(&page, report.html()).map_err(|e| LabError::file("write", &page, e))?;
        Ok(page)
    }

    fn write(&self, name: &str, value: &impl Serialize) -> Result<(), LabError> {
        let path = self.folder.path.join(name);
        let text = serde_json::to_string_pretty(value).expect("plain data");
        fs::write(&path, text + "\n").map_err(|e| LabError::file("write", &path, e))
    }

    /// The share of others: by the trace of the disk, where there was one.
    fn disturbed(&self, disk: &str, used: &DiskUse) -> DiskDisturbance {
        let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
        match self.traced.get(disk) {
            None => DiskDisturbance { others_requests: None, others_bytes: used.share() },
            Some(parties) => DiskDisturbance {
                others_requests: Some(share(parties.others.requests, parties.all().requests)),
                others_bytes: share(parties.others.bytes, parties.all().bytes),
            },
        }
    }

    fn judge_disk(&mut self, disk: &str, used: &DiskUse, busy: &DiskDisturbance) {
        let bytes = self.traced.get(disk).map_or(used.others, |parties| parties.others.bytes);
        let by_bytes = busy.others_bytes > OTHERS_DOUBT;
        if bytes < FEW_BYTES || !(by_bytes || busy.others_requests.is_some_and(|n| n > OTHERS_DOUBT)) {
            return;
        }
        let requests = busy.others_requests.map(|n| format!(" and {} of the requests", percent(n)));
        let who = in_words(&used.named).map(|names| format!(" (all their I/O: {names})"));
        let is_known = used.is_known || self.traced.contains_key(disk);
        self.doubt(format!(
            "{} of the bytes{} of the disk {disk} were other programs'{}{}",
            percent(busy.others_bytes),
            requests.unwrap_or_default(),
            if is_known { "" } else { ", or the file system's own" },
            who.unwrap_or_default()
        ));
    }

    fn judge(&mut self, busy: &Disturbance) {
        if busy.steal > STEAL_DOUBT {
            self.doubt(format!(
                "the hypervisor took {} of the processors for others (steal)",
                percent(busy.steal)
            ));
        }
        if busy.others > OTHERS_DOUBT {
            self.doubt(format!("other programs used {} of the processors", percent(busy.others)));
        }
    }

    /// Name and value of what the page tells about the circumstances.
    fn facts(&self, busy: &Disturbance, interrupts: &[DeviceInterrupts]) -> Vec<(String, String)> {
        let m = &self.machine;
        let command: Vec<String> = command_line().iter().map(|arg| quoted(arg)).collect();
        let mut facts = vec![
            ("Command".into(), command.join(" ")),
            ("Begun".into(), self.began_at.clone()),
            ("Took".into(), format!("{:.0} s", busy.seconds)),
            ("Kernel".into(), m.kernel.clone()),
            ("Processors".into(), format!("{} × {}", m.cpus, m.cpu)),
            ("Memory".into(), crate::size::about(m.memory_bytes as f64)),
            (
                "Others meanwhile".into(),
                format!(
                    "{:.1} % of the processors by other programs, {:.1} % steal, load {:.1} at the beginning",
                    busy.others * 100.0,
                    busy.steal * 100.0,
                    m.load
                ),
            ),
        ];
        facts.extend(busy.disks.iter().map(|(disk, busy)| {
            let requests = busy.others_requests.map(|n| format!(", {:.1} % of the requests", n * 100.0));
            let bytes = format!("{:.1} % of the bytes", busy.others_bytes * 100.0);
            (format!("Others on disk {disk}"), bytes + &requests.unwrap_or_default())
        }));
        facts.extend(self.devices.iter().map(device_fact));
        facts.extend(interrupts.iter().map(|of| (format!("Interrupts of {}", of.device), of.show())));
        facts
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A device and what of its queue's settings bears on the numbers.
fn device_fact(device: &BlockDevice) -> (String, String) {
    let setting = |name: &str| device.queue.get(name).cloned().unwrap_or_else(|| "?".into());
    let cache = match setting("write_cache").as_str() {
        "write back" => "on (write back)".into(),
        "write through" => "off or never volatile (write through)".into(),
        other => other.to_string(),
    };
    let value = format!(
        "{}, {}scheduler {}, read-ahead {} KiB, rotational {}, nr_requests {}, the drive's write cache {cache}",
        crate::size::about(device.size_bytes as f64),
        if device.mount.is_empty() { String::new() } else { format!("{}, ", device.mount) },
        device.scheduler,
        setting("read_ahead_kb"),
        setting("rotational"),
        setting("nr_requests"),
    );
    (format!("Device {}", device.name), value)
}

impl Drop for RunFolder {
    /// A run that failed before anything was measured leaves no folder.
    fn drop(&mut self) {
        let entries = || fs::read_dir(&self.path).into_iter().flatten().flatten();
        if self.made && entries().all(|entry| entry.metadata().is_ok_and(|m| m.is_file() && m.len() == 0)) {
            entries().for_each(|entry| drop(fs::remove_file(entry.path())));
            drop(fs::remove_dir(&self.path));
            if self.path.parent() == Some(Path::new(HERE)) {
                drop(fs::remove_dir(HERE)); // while no other run is in it
            }
        }
    }
}

/// Makes `KIND-TIME` in a folder, with a number behind it where another command has that.
fn fresh(above: &Path, kind: &str) -> Result<PathBuf, (PathBuf, std::io::Error)> {
    let name = format!("{kind}-{}", utc_now().replace(':', ""));
    let mut path = above.join(&name);
    for n in 2.. {
        match make(&path) {
            Ok(true) => return Ok(path),
            Ok(false) => path = above.join(format!("{name}-{n}")),
            Err(e) => return Err((path, e)),
        }
    }
    unreachable!("a number is free")
}

/// The lock of a run's folder; nothing while another run has it, or has just removed it.
fn alone_in(folder: &Path) -> std::io::Result<Option<File>> {
    match locked(folder, File::options().read(true)) {
        Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
        lock => lock,
    }
}

/// Makes a folder, with those above it; false when it was there.
fn make(path: &Path) -> std::io::Result<bool> {
    use std::io::ErrorKind::{AlreadyExists, NotFound};
    const ATTEMPTS: usize = 1000;
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let mut attempts = 0;
    loop {
        attempts += 1;
        // A run that was refused removes the one above, which it had made: anew, then.
        let again = attempts < ATTEMPTS;
        match above.map_or(Ok(()), fs::create_dir_all) {
            Err(e) if again && matches!(e.kind(), NotFound | AlreadyExists) => continue,
            made => made?,
        }
        match fs::create_dir(path) {
            Ok(()) => return Ok(true),
            Err(e) if e.kind() == AlreadyExists => return Ok(false),
            Err(e) if again && e.kind() == NotFound => {}
            Err(e) => return Err(e),
        }
    }
}

fn command_line() -> Vec<String> {
    std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect()
}

fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./,:=+@%".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) {
        arg.into()
    } else {
        format!("'{}'", arg.replace('\'', r"'\''"))
    }
}

/// `2026-11-20T19:30:00Z`.
fn utc_now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_date(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// The date `days` after 1970-01-01, in the Gregorian calendar: 400 years are 146 097 days, and
/// years begin in March, so that the day added in leap years is the last.
fn civil_date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 0000-03-01
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153; // 0 is March
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::others::Moved;

    #[test]
    fn runs_of_one_second_have_folders_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let above = dir.path().join("here");
        let folders: std::collections::BTreeSet<PathBuf> = std::thread::scope(|scope| {
            let begun: Vec<_> = (0..8).map(|_| scope.spawn(|| fresh(&above, "read").unwrap())).collect();
            begun.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(folders.len(), 8);
        assert!(folders.iter().all(|folder| folder.is_dir()));
    }

    #[test]
    fn a_folder_is_made_while_others_remove_the_one_above() {
        let dir = tempfile::tempdir().unwrap();
        let above = dir.path().join("above");
        let ended = std::sync::atomic::AtomicBool::new(false);
        let mut failed = Vec::<String>::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                    drop(fs::remove_dir(&above));
                    std::thread::sleep(std::time::Duration::from_micros(200));
                }
            });
            for _ in 0..2000 {
                let made = make(&above.join("run"));
                drop(fs::remove_dir(above.join("run")));
                failed.extend(
                    made.map(|made| (!made).then(|| "it was there".into()))
                        .unwrap_or_else(|e| Some(e.to_string())),
                );
            }
            ended.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(failed, [""; 0]);
        assert!(make(Path::new("")).is_err());
        fs::create_dir(&above).ok();
        assert!(!make(&above).unwrap(), "it was there");
    }

    #[test]
    fn dates() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_088, (2024, 12, 31)),
        ] {
            assert_eq!(civil_date(days), date);
        }
    }

    #[test]
    fn a_run_leaves_its_files_and_never_writes_into_a_folder_twice() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("run");
        let mut run = Run::create("read", Some(&out)).unwrap();
        run.settings(&json!({ "sizes": [4096] }));
        run.compare_by("cells", &["bs"], &[("iops", true)]);
        let mut cells = run.lines("cells").unwrap();
        cells.write(&json!({ "bs": 4096, "iops": 17.5 })).unwrap();
        run.doubt("a planted doubt");
        run.doubt("a planted doubt");
        let page = run.finish(Report::new("A title")).unwrap();
        assert_eq!(page, out.join("report.html"));
        assert_eq!(fs::read_to_string(out.join("cells.jsonl")).unwrap(), "{\"bs\":4096,\"iops\":17.5}\n");
        let settings: Value =
            serde_json::from_str(&fs::read_to_string(out.join("settings.json")).unwrap()).unwrap();
        assert_eq!(settings["kind"], "read");
        assert_eq!(
            settings["doubts"].as_array().unwrap().iter().filter(|d| *d == "a planted doubt").count(),
            1
        );
        assert!(fs::read_to_string(&page).unwrap().contains("a planted doubt"));
        let again = Run::create("read", Some(&out)).err().unwrap().to_string();
        assert!(again.contains("something in it already") && again.contains("--out"), "{again}");
    }

    #[test]
    fn settings_with_a_path_that_is_no_text_are_no_panic() {
        use std::os::unix::ffi::OsStrExt;
        let dir = tempfile::tempdir().unwrap();
        let mut run = Run::create("read", Some(dir.path())).unwrap();
        run.settings(&Path::new(std::ffi::OsStr::from_bytes(b"f\xff")));
        assert!(run.settings["not told"].as_str().unwrap().contains("UTF-8"), "{}", run.settings);
    }

    #[test]
    fn a_run_that_measured_nothing_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("run");
        let run = Run::create("read", Some(&out)).unwrap();
        let lines = run.lines("cells").unwrap();
        drop((run, lines));
        assert!(!out.exists());
        let run = Run::create("read", Some(&out)).unwrap();
        run.lines("cells").unwrap().write(&json!({ "bs": 4096 })).unwrap();
        drop(run);
        assert!(out.join("cells.jsonl").exists(), "what was measured is kept");
    }

    #[test]
    fn of_two_runs_one_has_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("run");
        let waiting = RunFolder::create("read", Some(&out)).unwrap();
        for kind in ["read", "write"] {
            let refused = RunFolder::create(kind, Some(&out)).err().unwrap().to_string();
            assert!(refused.contains("another run is in it") && refused.contains("--out"), "{refused}");
        }
        assert!(out.exists());
        drop(waiting);
        assert!(!out.exists());
        drop(RunFolder::create("write", Some(&out)).unwrap());
    }

    #[test]
    fn a_disturbed_run_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = Run::create("read", Some(dir.path())).unwrap();
        let busy = |steal, others| Disturbance { seconds: 1.0, steal, others, disks: BTreeMap::new() };
        run.judge(&busy(0.019, 0.09));
        assert!(run.doubts.is_empty());
        run.judge(&busy(0.07, 0.5));
        assert!(run.doubts[0].contains("7 %") && run.doubts[1].contains("50 %"), "{:?}", run.doubts);
    }

    #[test]
    fn a_disk_that_others_use_is_a_doubt_by_bytes_and_by_requests() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = Run::create("read", Some(dir.path())).unwrap();
        let named = vec![("dd (pid 7)".to_owned(), 30 << 20)];
        let used = |bytes, others| DiskUse { bytes, others, is_known: true, named: named.clone() };
        let tell = |run: &mut Run, used: &DiskUse| {
            let busy = run.disturbed("vda", used);
            run.judge_disk("vda", used, &busy);
            busy
        };
        let quiet = tell(&mut run, &used(100 << 20, 9 << 20));
        tell(&mut run, &used(1 << 20, 1 << 19)); // half of nearly nothing
        assert!(run.doubts.is_empty() && quiet.others_requests.is_none(), "{:?}", run.doubts);
        tell(&mut run, &used(100 << 20, 20 << 20));
        assert_eq!(
            run.doubts,
            ["20 % of the bytes of the disk vda were other programs' (all their I/O: dd (pid 7) 30.0 MiB)"]
        );
        tell(&mut run, &DiskUse { is_known: false, ..used(100 << 20, 30 << 20) });
        assert!(run.doubts.pop().unwrap().contains("were other programs', or the file system's own (all"));
        // Small requests of others: few bytes, half of the requests.
        let moved = |requests, bytes| Moved { requests, bytes };
        run.traced(
            "vda",
            Parties { own: moved(50, 95 << 20), others: moved(50, 5 << 20), ..Parties::default() },
        );
        let busy = tell(&mut run, &used(100 << 20, 20 << 20));
        assert_eq!(busy, DiskDisturbance { others_requests: Some(0.5), others_bytes: 0.05 });
        assert!(run.doubts[1].starts_with("5 % of the bytes and 50 % of the requests of the disk"));
        let json = serde_json::to_value(Disturbance {
            disks: [("vda".into(), busy)].into(),
            ..Disturbance::default()
        });
        assert_eq!(json.unwrap()["disks"], json!({"vda": {"others_requests": 0.5, "others_bytes": 0.05}}));
        let none = serde_json::to_value(Disturbance::default()).unwrap();
        assert!(none.get("disks").is_none(), "{none}");
    }
}
