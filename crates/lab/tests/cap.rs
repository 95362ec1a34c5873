//! Caps of I/O for real: a reader is held to its cap, and everything is as before however the
//! command ends.
//!
//! Needs root, the blkio controller of control groups v1, and a temporary folder on a block
//! device; skipped, with a line that says so, where one is missing. (v2 is tested on folders of
//! files, in the crate.)

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use snowmelt_lab::machine::BlockDevice;
use snowmelt_lab::undo::{process_start, processes_below, processes_in};
use support::{fails, lab, ok, program, turn};

const BLKIO: &str = "/sys/fs/cgroup/blkio";

/// A folder on a device that can be capped, and the turn of one test.
fn can_run() -> Option<(tempfile::TempDir, std::fs::File)> {
    let dir = tempfile::tempdir().expect("a folder");
    let why = if !rustix::process::geteuid().is_root() {
        "this needs root"
    } else if !Path::new(BLKIO).join("blkio.throttle.read_bps_device").exists() {
        "there is no blkio controller that throttles"
    } else if !matches!(BlockDevice::find(dir.path()), Ok(Some(_))) {
        "temporary files are on no block device"
    } else {
        return Some((dir, turn()));
    };
    eprintln!("skipped: {why}");
    None
}

/// `lab cap` that holds something until it is ended.
struct Holding {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// The group of which it tells.
    group: PathBuf,
}

impl Holding {
    fn start(words: &[&str]) -> Holding {
        let mut child = Command::new(program())
            .arg("cap")
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut holding = Holding { child, stderr, group: PathBuf::new() };
        let mut said = String::new();
        while holding.stderr.read_line(&mut said).expect("text") > 0 {
            let last = said.lines().last().unwrap_or_default();
            if let Some((_, rest)) = last.split_once(&format!(" in {BLKIO}")) {
                let path = rest.split(';').next().unwrap_or_default();
                holding.group = PathBuf::from(format!("{BLKIO}{path}"));
                return holding;
            }
        }
        panic!("it holds nothing: {said}");
    }

    /// Sends a signal and waits for the end; the exit code and the rest of the messages.
    fn end(mut self, signal: Option<Signal>) -> (Option<i32>, String) {
        if let Some(signal) = signal {
            kill_process(Pid::from_child(&self.child), signal).expect("signal sent");
        }
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).expect("text");
        (self.child.wait().expect("ended").code(), rest)
    }
}

/// A process with a child. When it gets a line it starts another, and an orphan.
struct Family(Child);

impl Family {
    fn start() -> Family {
        let script = "sleep 600 & echo begun; read line; (sleep 600 &); sleep 600 & echo grown; wait";
        let mut shell = Command::new("sh");
        let child = shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut family = Family(child.spawn().expect("sh starts"));
        family.says("begun\n");
        family
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn grow(&mut self) {
        self.0.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("written");
        self.says("grown\n");
    }

    /// By its word: a count of its processes is right for a moment in between, too.
    fn says(&mut self, expected: &str) {
        let mut said = vec![0; expected.len()];
        self.0.stdout.as_mut().expect("a pipe").read_exact(&mut said).expect("it says so");
        assert_eq!(String::from_utf8_lossy(&said), expected);
    }

    /// All its processes that are in this group itself.
    fn inside(&self, group: &Path) -> usize {
        let inside = processes_in(group).unwrap_or_default();
        let all = processes_below(self.pid()).into_iter().chain([self.pid()]);
        all.filter(|pid| inside.contains(pid)).count()
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        for pid in processes_below(self.pid()).into_iter().chain([self.pid()]) {
            let _ = kill_process(Pid::from_raw(pid as i32).expect("a number"), Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// A group of the test's own, so that `home` is not the root.
struct TestGroup(PathBuf);

impl TestGroup {
    fn make(name: &str) -> TestGroup {
        let path = Path::new(BLKIO).join(format!("snowmelt-test-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).expect("a group");
        TestGroup(path)
    }

    fn enter(&self, family: &Family) {
        for pid in processes_below(family.pid()).into_iter().chain([family.pid()]) {
            std::fs::write(self.0.join("cgroup.procs"), pid.to_string()).expect("moved");
        }
    }
}

impl Drop for TestGroup {
    fn drop(&mut self) {
        let begun = Instant::now();
        while std::fs::remove_dir(&self.0).is_err() && begun.elapsed() < Duration::from_secs(5) {
            for pid in processes_in(&self.0).unwrap_or_default() {
                let _ = kill_process(Pid::from_raw(pid as i32).expect("a number"), Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn groups_of(pid: u32) -> usize {
    let name = format!("snowmelt-lab-{pid}-");
    let entries = std::fs::read_dir(BLKIO).expect("the controller").flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&name)).count()
}

#[test]
fn a_direct_reader_stays_below_its_cap() {
    let Some((dir, _turn)) = can_run() else { return };
    let file = dir.path().join("data").display().to_string();
    const BYTES: u64 = 16 << 20;
    const CAP: u64 = 4 << 20;
    std::fs::write(&file, vec![7; BYTES as usize]).expect("written");
    std::fs::File::open(&file).and_then(|file| file.sync_all()).expect("on the disk");
    let script = format!("dd if={file} iflag=direct bs=256k status=none | wc -c; exit 7");
    let begun = Instant::now();
    let output = lab(&["cap", "--device", &file, "--read", "4m", "--", "sh", "-c", &script]);
    let seconds = begun.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "the program's: {said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), BYTES.to_string(), "its output alone: {said}");
    assert!(said.contains("read 4.00 MiB/s on ") && said.contains("read back"), "{said}");
    // A second's worth may go at once.
    let most = CAP as f64 * (seconds + 1.0);
    assert!(BYTES as f64 <= most, "{BYTES} bytes in {seconds} s under a cap of {CAP} per second");
}

#[test]
fn after_kill_9_restore_moves_all_back_and_removes_the_group() {
    let Some((dir, _turn)) = can_run() else { return };
    let home = TestGroup::make("home");
    let mut family = Family::start();
    home.enter(&family);
    let (device, pid) = (dir.path().display().to_string(), family.pid().to_string());
    let holding = Holding::start(&["--device", &device, "--read-ops", "5000", "--pid", &pid]);
    family.grow();
    let group = holding.group.clone();
    assert!(group.starts_with(&home.0));
    let cap = std::fs::read_to_string(group.join("blkio.throttle.read_iops_device")).expect("readable");
    assert!(cap.trim().ends_with(" 5000"), "{cap}");
    holding.end(Some(Signal::KILL));
    let count = |group: &Path| processes_in(group).unwrap_or_default().len();
    assert_eq!((family.inside(&group), count(&group), count(&home.0)), (3, 4, 0), "with the orphan");
    ok(&["restore"]);
    assert_eq!((family.inside(&home.0), count(&home.0), group.exists()), (3, 4, false));
}

/// A read of a MiB waits for minutes under the cap, and its process cannot be killed meanwhile.
#[test]
fn a_reader_that_waits_is_ended_by_restore() {
    let Some((dir, _turn)) = can_run() else { return };
    let file = dir.path().join("data").display().to_string();
    std::fs::write(&file, vec![7; 1 << 20]).expect("written");
    std::fs::File::open(&file).and_then(|file| file.sync_all()).expect("on the disk");
    let reader = format!("echo \"it is in {BLKIO}\" >&2; exec dd if={file} iflag=direct bs=1M status=none");
    let holding = Holding::start(&["--device", &file, "--read", "4k", "--", "sh", "-c", &reader]);
    let command = holding.child.id();
    let reader = processes_below(command)[0];
    let begun = Instant::now();
    let waits =
        || std::fs::read_to_string(format!("/proc/{reader}/stat")).is_ok_and(|s| s.contains("(dd) D"));
    while !waits() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not come to wait");
        std::thread::sleep(Duration::from_millis(5));
    }
    let Holding { mut child, .. } = holding;
    kill_process(Pid::from_child(&child), Signal::KILL).expect("signal sent");
    child.wait().expect("ended");
    assert!(waits() && groups_of(command) == 1);
    ok(&["restore"]);
    assert_eq!((process_start(reader), groups_of(command)), (None, 0));
}

#[test]
fn each_process_goes_back_to_its_own_group_with_what_it_has_started() {
    let Some((dir, _turn)) = can_run() else { return };
    let groups = [TestGroup::make("one"), TestGroup::make("two")];
    let mut families = [Family::start(), Family::start()];
    groups.iter().zip(&families).for_each(|(group, family)| group.enter(family));
    let device = dir.path().display().to_string();
    let pids = families.each_ref().map(|family| family.pid().to_string()).join(",");
    let holding = Holding::start(&["--device", &device, "--read", "100m", "--pid", &pids]);
    families.iter_mut().for_each(Family::grow);
    let group = holding.group.clone();
    assert_eq!(families.each_ref().map(|family| family.inside(&group)), [3, 3]);
    let (code, said) = holding.end(Some(Signal::INT));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("moved back") && !group.exists(), "{said}");
    for (own, family) in groups.iter().zip(&families) {
        assert_eq!(family.inside(&own.0), 3);
    }
}

#[test]
fn it_ends_with_the_process_and_a_group_that_was_there_gets_its_old_caps() {
    let Some((dir, _turn)) = can_run() else { return };
    let device = dir.path().display().to_string();
    let family = Family::start();
    let holding =
        Holding::start(&["--device", &device, "--write", "50m", "--pid", &family.pid().to_string()]);
    let (pid, group) = (holding.child.id(), holding.group.clone());
    drop(family);
    let (code, said) = holding.end(None);
    assert_eq!((code, group.exists(), groups_of(pid)), (Some(0), false, 0), "{said}");

    let own = TestGroup::make("caps");
    let BlockDevice { name, .. } = BlockDevice::find(dir.path()).expect("looked at").expect("one");
    let number = std::fs::read_to_string(format!("/sys/block/{name}/dev")).expect("readable");
    let number = number.trim();
    let rules = || {
        ["read_bps", "write_iops"].map(|rule| {
            let file = own.0.join(format!("blkio.throttle.{rule}_device"));
            std::fs::read_to_string(file).expect("readable").trim().to_string()
        })
    };
    let old = own.0.join("blkio.throttle.write_iops_device");
    std::fs::write(old, format!("{number} 999")).expect("capped");
    let path = own.0.display().to_string();
    let words = ["--device", &device, "--read", "9m", "--write-ops", "77", "--cgroup", &path];
    let holding = Holding::start(&words);
    assert_eq!(rules(), [format!("{number} {}", 9 << 20), format!("{number} 77")]);
    let (code, said) = holding.end(Some(Signal::TERM));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(rules(), [String::new(), format!("{number} 999")]);
}

#[test]
fn what_cannot_be_capped_is_said() {
    let Some((dir, _turn)) = can_run() else { return };
    let device = dir.path().display().to_string();
    for (words, says) in [
        (&["--pid", "4194304"][..], "there is no process 4194304"),
        (&["--pid", "2"], "threads of the kernel"),
        (&["--cgroup", "/no-such-group"], "/no-such-group"),
        (&["--cgroup", "/"], "whole machine"),
    ] {
        let error = fails(&[&["cap", "--device", &device, "--read", "1m"][..], words].concat());
        assert!(error.contains(says), "{words:?}: {error}");
    }
    assert_eq!(groups_of(std::process::id()), 0);
    let output = lab(&["cap", "--device", &device, "--read", "1m", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(output.status.code(), Some(137), "as a shell says it");
}

#[test]
fn a_watched_program_is_told_with_its_caps() {
    let Some((dir, _turn)) = can_run() else { return };
    let run = dir.path().join("run");
    let paths = [dir.path(), &run].map(|path| path.display().to_string());
    let words = ["--device", &paths[0], "--cap-read", "8m", "--cap-write-ops", "500", "--out", &paths[1]];
    let said = ok(&[&["watch"][..], &words, &["--", "true"]].concat());
    assert!(said.contains("read 8.00 MiB/s, 500 writes/s on "), "{said}");
    let text = std::fs::read_to_string(run.join("watch.json")).expect("written");
    let watch: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let caps = &watch["total"]["caps"];
    assert_eq!(
        (caps["read_bytes_per_s"].as_u64(), caps["writes_per_s"].as_u64()),
        (Some(8 << 20), Some(500))
    );
    let page = std::fs::read_to_string(run.join("report.html")).expect("written");
    assert!(
        page.contains("Its I/O was capped: read 8.00 MiB/s") && page.contains("root group"),
        "with the doubt"
    );
}
