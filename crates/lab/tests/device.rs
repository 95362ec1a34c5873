//! Emulated devices for real: a block device with the bytes written to it, power cuts, and
//! nothing left behind however the server ends.
//!
//! Needs root, /dev/fuse and loop devices; skipped, with a line that says so, where one is
//! missing.

mod support;

use std::io::{IoSlice, IoSliceMut};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use snowmelt_io::{
    Access, AlignedBuf, Device, FileDevice, LoopOptions, ReadDevice, block_claim, loop_backing,
};
use snowmelt_lab::undo::{Undo, process_start, state_dir};
use support::{fails, lab, ok, program, turn};

/// The turn of one test, where it can run.
fn can_run() -> Option<std::fs::File> {
    let missing = ["/dev/fuse", "/dev/loop-control"].into_iter().find(|path| !Path::new(path).exists());
    let why = match missing {
        Some(path) => Some(format!("{path} is missing")),
        None => (!rustix::process::geteuid().is_root()).then(|| "this needs root".to_string()),
    };
    if let Some(why) = why {
        eprintln!("skipped: {why}");
        return None;
    }
    Some(turn())
}

/// A device of this test, removed with it.
struct Made {
    name: String,
    device: PathBuf,
}

impl Made {
    fn new(name: &str, more: &[&str]) -> Made {
        let name = format!("test-{}-{name}", std::process::id());
        let model: &[&str] = if more.contains(&"--model") { &[] } else { &["--model", "nvme"] };
        let size: &[&str] = if more.contains(&"--size") { &[] } else { &["--size", "64m"] };
        let words = [&["device", "create", &name], size, model, more].concat();
        let device = PathBuf::from(ok(&words).trim());
        Made { name, device }
    }

    fn record(&self) -> serde_json::Value {
        let path = state_dir().join("devices").join(format!("{}.json", self.name));
        serde_json::from_slice(&std::fs::read(path).expect("a record")).expect("JSON")
    }

    fn pid(&self) -> u32 {
        self.record()["pid"].as_u64().expect("a number") as u32
    }

    fn file(&self) -> FileDevice {
        FileDevice::open(&self.device, Access::ReadWrite, true).expect("opened")
    }

    /// Everything that is on the machine because of it.
    fn traces(&self) -> Vec<String> {
        let mut found = Vec::new();
        if loop_backing(&self.device).is_some_and(|path| path.to_string_lossy().contains(&self.name)) {
            found.push("its loop device".into());
        }
        let mounts = std::fs::read_to_string("/proc/self/mounts").expect("readable");
        found.extend(mounts.lines().filter(|line| line.contains(&self.name)).map(String::from));
        for folder in [state_dir(), state_dir().join("devices")] {
            let names = std::fs::read_dir(folder).expect("the state folder").flatten().map(|e| e.file_name());
            let ours = names.filter(|name| name.to_string_lossy().contains(&self.name));
            found.extend(ours.map(|name| name.to_string_lossy().into_owned()));
        }
        found
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        lab(&["device", "remove", "--force", &self.name]);
    }
}

fn write(file: &FileDevice, offset: u64, fill: u8, sectors: usize) {
    let bytes = AlignedBuf::from_slice(&vec![fill; sectors * 512]);
    file.write_at(&[IoSlice::new(&bytes)], offset).expect("written");
}

fn read(file: &FileDevice, offset: u64, sectors: usize) -> Result<Vec<u8>, i32> {
    let mut bytes = AlignedBuf::new(sectors * 512);
    match file.read_at(&mut [IoSliceMut::new(&mut bytes)], offset) {
        Ok(()) => Ok(bytes.to_vec()),
        Err(e) => Err(e.errno().expect("the kernel's")),
    }
}

#[test]
fn a_device_holds_what_is_written_and_leaves_nothing() {
    let Some(_turn) = can_run() else { return };
    let made = Made::new("bytes", &[]);
    assert!(made.record()["proven_depth"].as_u64() >= Some(64));
    {
        let file = made.file();
        assert_eq!(file.len().expect("known"), 64 << 20);
        write(&file, 1 << 20, 7, 4096); // 2 MiB: several requests
        assert_eq!(read(&file, (1 << 20) - 512, 2).expect("read"), [vec![0; 512], vec![7; 512]].concat());
        assert_eq!(read(&file, 1 << 20, 4096).expect("read"), vec![7; 2 << 20]);
    }
    let status = ok(&["device", "status", &made.name]);
    assert!(status.contains("2.00 MiB") && status.contains("lateness"), "{status}");
    assert!(ok(&["device", "list"]).contains(&made.name));
    let again = fails(&["device", "create", &made.name, "--model", "nvme"]);
    assert!(again.contains("there is one of that name"), "{again}");
    let no_cut = fails(&["device", "cut", &made.name]);
    assert!(no_cut.contains("--power-cut"), "{no_cut}");
    ok(&["device", "remove", &made.name]);
    assert_eq!(made.traces(), [""; 0]);
    assert!(fails(&["device", "status", &made.name]).contains("no device is called"));
}

#[test]
fn a_block_device_that_holds_the_bytes_is_the_devices_alone() {
    let Some(_turn) = can_run() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("file");
    std::fs::File::create(&file).expect("made").set_len(64 << 20).expect("a length");
    let undo = Undo::open_in(&dir.path().join("state"), "test").expect("a journal");
    let (_, disk) = undo.attach_loop(&file, &LoopOptions::default()).expect("a loop device");
    let path = disk.to_str().expect("text").to_string();
    let name = format!("test-{}-taken", std::process::id());
    let words = ["--model", "nvme", "--size", "64m", "--backing", &path, "--destroy"];
    // As mounted.
    let claim = block_claim(&disk).expect("it is free");
    let refused = fails(&[&["device", "create", &name], &words[..]].concat());
    assert!(refused.contains("is in use") && refused.contains(&path), "{refused}");
    drop(claim);
    let made = Made::new("on-disk", &words);
    assert!(block_claim(&disk).is_err_and(|e| e.kind() == std::io::ErrorKind::ResourceBusy));
    let out = dir.path().join("run").display().to_string();
    let refused = fails(&["read", &path, "--runtime", "0.1", "--out", &out]);
    assert!(refused.contains("is being measured by") && refused.contains("device serve"), "{refused}");
    ok(&["device", "remove", &made.name]);
    drop(block_claim(&disk).expect("it is free again"));
    undo.undo().expect("undone");
}

#[test]
fn a_power_cut_loses_only_what_was_not_synced() {
    let Some(_turn) = can_run() else { return };
    let made = Made::new("cut", &["--power-cut"]);
    for seed in ["1", "2", "3"] {
        {
            let file = made.file();
            write(&file, 0, 1, 64);
            file.sync().expect("synced");
            write(&file, 0, 2, 64);
            write(&file, 1 << 20, 2, 8);
            ok(&["device", "cut", &made.name, "--seed", seed]);
            assert_eq!(read(&file, 0, 1), Err(5), "EIO without power");
        }
        ok(&["device", "power-on", &made.name]);
        let file = made.file();
        let survived = read(&file, 0, 64).expect("power is on");
        for sector in survived.chunks(512) {
            assert!(sector == [1; 512] || sector == [2; 512], "a sector is old or new, whole");
        }
        // For the next round.
        write(&file, 1 << 20, 0, 8);
        file.sync().expect("synced");
    }
    {
        let file = made.file();
        write(&file, 0, 3, 64);
        ok(&["device", "cut", &made.name, "--keep", "none"]);
    }
    ok(&["device", "power-on", &made.name]);
    let survived = read(&made.file(), 0, 64).expect("power is on");
    assert!(!survived.contains(&3), "nothing unsynced was to survive");
}

#[test]
fn whatever_ends_the_server_nothing_is_left() {
    let Some(_turn) = can_run() else { return };
    let made = Made::new("term", &[]);
    let pid = made.pid();
    kill_process(Pid::from_raw(pid as i32).expect("a process"), Signal::TERM).expect("sent");
    for _ in 0..500 {
        if process_start(pid).is_none() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(made.traces(), [""; 0], "after SIGTERM");

    let made = Made::new("kill", &["--depth", "16", "--scheduler", "kyber"]);
    kill_process(Pid::from_raw(made.pid() as i32).expect("a process"), Signal::KILL).expect("sent");
    assert!(!made.traces().is_empty(), "kill -9 leaves something to restore");
    let listed = ok(&["restore", "--dry-run"]);
    assert!(listed.contains(&format!("device-{}", made.name)) && listed.contains("detach"), "{listed}");
    ok(&["device", "remove", &made.name]);
    assert_eq!(made.traces(), [""; 0], "after kill -9 and remove");
    // The depth was raised again: the next device on the same loop device proves it in its
    // self-test.
    let next = Made::new("next", &[]);
    assert!(next.record()["proven_depth"].as_u64() >= Some(64));
}

#[test]
fn a_hung_server_is_ended_by_force() {
    let Some(_turn) = can_run() else { return };
    let made = Made::new("hung", &[]);
    kill_process(Pid::from_raw(made.pid() as i32).expect("a process"), Signal::STOP).expect("sent");
    ok(&["device", "remove", &made.name]);
    assert_eq!(made.traces(), [""; 0]);
}

#[test]
fn an_interrupted_create_leaves_nothing() {
    let Some(_turn) = can_run() else { return };
    for after_ms in [20, 60, 150, 250] {
        let made =
            Made { name: format!("test-{}-int", std::process::id()), device: PathBuf::from("/dev/null") };
        let words = ["device", "create", &made.name, "--model", "hdd-7200"];
        let mut create = Command::new(program()).args(words).spawn().expect("it starts");
        std::thread::sleep(Duration::from_millis(after_ms));
        kill_process(Pid::from_child(&create), Signal::INT).expect("sent");
        let ended = create.wait().expect("waited");
        if ended.success() {
            eprintln!("after {after_ms} ms the device stood already");
            ok(&["device", "remove", &made.name]);
        }
        // The server takes its own things down.
        let began = Instant::now();
        while !made.traces().is_empty() && began.elapsed().as_secs() < 10 {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(made.traces(), [""; 0], "after {after_ms} ms");
        let journals = std::fs::read_dir(state_dir()).expect("the state folder").flatten();
        let create_pid = format!("create-device-{}-", create.id());
        let left = journals.filter(|j| j.file_name().to_string_lossy().starts_with(&create_pid)).count();
        assert_eq!(left, 0, "after {after_ms} ms");
    }
}

/// Loop devices whose file lies in a file system that is mounted nowhere any more.
fn lost_loops() -> Vec<PathBuf> {
    let loops = std::fs::read_dir("/sys/block").expect("sysfs").flatten();
    let lost = |path: &PathBuf| std::fs::read_to_string(path).is_ok_and(|file| file.trim() == "/disk");
    loops.map(|entry| entry.path().join("loop/backing_file")).filter(lost).collect()
}

fn tasks(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, |tasks| tasks.count())
}

/// The server of a device that is being made, as soon as it is `ready`.
fn server_of(name: &str, ready: impl Fn(u32) -> bool) -> u32 {
    let (what, begun) = (format!("device-{name}-"), Instant::now());
    loop {
        assert!(begun.elapsed().as_secs() < 60, "the server does not come so far");
        let journals = std::fs::read_dir(state_dir()).into_iter().flatten().flatten();
        let mut names = journals.filter_map(|entry| entry.file_name().into_string().ok());
        let pid = names.find_map(|name| name.strip_prefix(&what)?.split('-').next()?.parse().ok());
        if let Some(pid) = pid.filter(|pid| ready(*pid)) {
            return pid;
        }
    }
}

/// The self-test reads the server's own device: a server that ends just then waits for itself.
#[test]
fn a_server_that_ends_in_its_self_test_leaves_nothing() {
    let Some(_turn) = can_run() else { return };
    let lost_before = lost_loops();
    for round in 0..12 {
        let name = format!("test-{}-self-{round}", std::process::id());
        let made = Made { name, device: PathBuf::from("/dev/null") };
        // A slow disk: its self-test takes a second, which a busy machine does not miss.
        let words = ["device", "create", &made.name, "--model", "hdd-7200", "--size", "64m"];
        let mut create =
            Command::new(program()).args(words).stderr(Stdio::null()).spawn().expect("it starts");
        let server = server_of(&made.name, |pid| tasks(pid) > 64); // its readers are there
        match round % 2 {
            0 => kill_process(Pid::from_raw(server as i32).expect("a process"), Signal::KILL).expect("sent"),
            _ => kill_process(Pid::from_child(&create), Signal::INT).expect("sent"),
        }
        let begun = Instant::now();
        loop {
            let ended = create.try_wait().expect("asked");
            assert!(ended.is_none_or(|status| !status.success()));
            let mut lost = lost_loops();
            lost.retain(|path| !lost_before.contains(path));
            let left = (tasks(server), made.traces(), lost);
            if ended.is_some() && left == (0, vec![], vec![]) {
                break;
            }
            assert!(begun.elapsed().as_secs() < 20, "round {round}, create {ended:?}: {left:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn what_cannot_be_made_is_said_and_leaves_nothing() {
    let Some(_turn) = can_run() else { return };
    let name = format!("test-{}-bad", std::process::id());
    let create = |more: &[&str]| fails(&[&["device", "create", name.as_str()], more].concat());
    assert!(create(&["--model", "floppy"]).contains("hdd-10k"));
    assert!(create(&["--model", "hdd-10k", "--size", "1t"]).contains("--size"));
    let dir = tempfile::tempdir().expect("a folder");
    let precious = dir.path().join("precious");
    std::fs::write(&precious, "data").expect("written");
    let refused = create(&["--model", "nvme", "--backing", precious.to_str().expect("text")]);
    assert!(refused.contains("--destroy"), "{refused}");
    assert_eq!(std::fs::read_to_string(&precious).expect("still there"), "data");
    let scheduler = create(&["--model", "nvme", "--size", "64m", "--scheduler", "cfq"]);
    assert!(scheduler.contains("cfq"), "{scheduler}");
    let made = Made { name, device: PathBuf::from("/dev/null") };
    assert_eq!(made.traces(), [""; 0]);
}

/// A file as it stands, of sysfs.
fn setting(device: &Path, name: &str) -> String {
    let name_of = device.file_name().expect("a name").to_string_lossy().into_owned();
    let path = format!("/sys/block/{name_of}/queue/{name}");
    std::fs::read_to_string(&path).expect(&path).trim().to_string()
}

#[test]
fn models_that_never_answer_are_refused_before_anything_is_made() {
    let dir = tempfile::tempdir().expect("a folder");
    let model = dir.path().join("never.toml");
    let name = format!("test-{}-never", std::process::id());
    for (parameter, says) in
        [("latency_us = 1e300", "10000000"), ("latency_us = nan", "NaN"), ("iops = 1e-9", "0.1")]
    {
        std::fs::write(&model, format!("kind = \"volume\"\n{parameter}\n")).expect("written");
        let path = model.to_str().expect("text");
        let refused = fails(&["device", "create", &name, "--model", path, "--size", "64m"]);
        assert!(
            refused.contains(parameter.split(' ').next().expect("a word")) && refused.contains(says),
            "{refused}"
        );
    }
}

/// A model as slow as models may be: attaching it holds up no other, and the self-test ends when
/// it is told to.
#[test]
fn a_device_that_does_not_stand_in_time_is_taken_back() {
    let Some(_turn) = can_run() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let model = dir.path().join("slow.toml");
    std::fs::write(&model, "kind = \"volume\"\nlatency_us = 9000000.0\nwidth = 128\n").expect("written");
    let made = Made { name: format!("test-{}-late", std::process::id()), device: PathBuf::from("/dev/null") };
    let begun = Instant::now();
    let path = model.to_str().expect("text");
    let words = ["device", "create", &made.name, "--model", path, "--size", "64m", "--patience", "1"];
    let mut create = Command::new(program()).args(words).stderr(Stdio::piped()).spawn().expect("it starts");
    std::thread::sleep(Duration::from_millis(300));
    let beside = Made::new("beside", &[]); // it does not wait for the slow one
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(8), "{took:?}");
    drop(beside);
    let ended = create.wait().expect("waited");
    let mut said = String::new();
    std::io::Read::read_to_string(&mut create.stderr.take().expect("a pipe"), &mut said).expect("text");
    assert!(!ended.success() && said.contains("self-test") && said.contains("--patience"), "{said}");
    assert_eq!(made.traces(), [""; 0]);
}

/// The server lives but answers nothing, and a reader waits in the kernel: a caller that makes a
/// device is told, and a restore ends it all.
#[test]
fn a_restore_cuts_off_a_live_server_that_hangs() {
    let Some(_turn) = can_run() else { return };
    let made = Made::new("cutoff", &[]);
    let healthy = Made::new("healthy", &[]);
    let pid = made.pid();
    kill_process(Pid::from_raw(pid as i32).expect("a process"), Signal::STOP).expect("sent");
    let file = made.file();
    let reader = std::thread::spawn(move || read(&file, 0, 8));
    let begun = Instant::now();
    let refused =
        fails(&["device", "create", &format!("{}-2", made.name), "--model", "nvme", "--size", "64m"]);
    assert!(refused.contains(&made.name) && refused.contains("lab restore"), "{refused}");
    assert!(ok(&["restore", "--dry-run"]).contains(&format!("device {} hangs", made.name)));
    assert!(!reader.is_finished(), "nobody has answered it");
    ok(&["restore"]);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert!(reader.join().expect("no panic").is_err(), "its read has failed");
    assert_eq!((made.traces(), process_start(pid)), (vec![], None));
    ok(&["device", "status", &healthy.name]); // which answers, and is left alone
    drop(Made::new("cutoff-3", &[]));
}

/// The work of mkfs and others on a device changes its read-ahead: kept while it stands, put right
/// before it is measured, and as it was when it is gone.
#[test]
fn the_read_ahead_is_kept_and_given_back() {
    let Some(_turn) = can_run() else { return };
    let all = || std::fs::read_dir("/sys/block").expect("sysfs").flatten();
    let before: Vec<(std::ffi::OsString, Option<String>)> = all()
        .map(|entry| {
            (entry.file_name(), std::fs::read_to_string(entry.path().join("queue/read_ahead_kb")).ok())
        })
        .collect();
    let made = Made::new("ahead", &["--model", "hdd-10k"]);
    let device = made.device.clone();
    assert_eq!(setting(&device, "read_ahead_kb"), "128");
    drop(snowmelt_io::block_discard(&device, 0, 1 << 20)); // refused
    drop(snowmelt_io::block_zero(&device, 0, 1 << 20));
    assert_eq!(setting(&device, "read_ahead_kb"), "128", "after a discard");
    let path =
        format!("/sys/block/{}/queue/read_ahead_kb", device.file_name().expect("a name").to_string_lossy());
    std::fs::write(&path, "2048").expect("written");
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("run");
    ok(&[
        "read",
        device.to_str().expect("text"),
        "--sizes",
        "4k",
        "--depth",
        "1",
        "--engine",
        "inline",
        "--runtime",
        "0.2",
        "--repeats",
        "1",
        "--out",
        out.to_str().expect("text"),
    ]);
    assert_eq!(setting(&device, "read_ahead_kb"), "128", "set again before the first cell");
    std::fs::write(&path, "2048").expect("written");
    ok(&["device", "remove", &made.name]);
    let old = before.into_iter().find(|(name, _)| Some(name.as_os_str()) == device.file_name());
    // A loop device made for this has the usual one.
    let old = old.and_then(|(_, kb)| kb).unwrap_or("128".into());
    assert_eq!(setting(&device, "read_ahead_kb"), old.trim(), "as before it was made");
}

/// A server that stops amid everything, with readers that wait for it in the kernel: `create`
/// ends, and leaves nothing.
#[test]
fn a_server_that_says_nothing_is_given_up() {
    let Some(_turn) = can_run() else { return };
    let made = Made { name: format!("test-{}-mute", std::process::id()), device: PathBuf::from("/dev/null") };
    let words = ["device", "create", &made.name, "--model", "hdd-7200", "--size", "64m", "--patience", "1"];
    let begun = Instant::now();
    let mut create = Command::new(program()).args(words).stderr(Stdio::piped()).spawn().expect("it starts");
    let server = server_of(&made.name, |pid| tasks(pid) > 64);
    kill_process(Pid::from_raw(server as i32).expect("a process"), Signal::STOP).expect("sent");
    let ended = create.wait().expect("waited");
    let mut said = String::new();
    std::io::Read::read_to_string(&mut create.stderr.take().expect("a pipe"), &mut said).expect("text");
    assert!(!ended.success() && said.contains("self-test has not ended within 11 s"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!((made.traces(), tasks(server)), (vec![], 0));
}

/// A server that was told to end unmounts first, which takes as long as the device: nothing cuts
/// it off meanwhile.
#[test]
fn a_server_that_writes_out_for_long_is_no_hung_one() {
    let Some(_turn) = can_run() else { return };
    if Command::new("mkfs.ext4").arg("-V").stderr(Stdio::null()).status().is_err() {
        eprintln!("skipped: there is no mkfs.ext4");
        return;
    }
    const BYTES: usize = 40 << 20;
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| dir.path().join(name).to_str().expect("text").to_string();
    std::fs::write(path("slow.toml"), "kind = \"volume\"\nlatency_us = 100.0\nbytes_per_s = 4000000.0\n")
        .expect("written");
    let words = ["--model", &path("slow.toml"), "--backing", &path("bytes")];
    let made = Made::new("writes", &[&words[..], &["--size", "128m"]].concat());
    let other = format!("{}-other", made.name);
    let refused = fails(&[&["device", "create", &other, "--size", "64m", "--destroy"], &words[..]].concat());
    assert!(refused.contains("is in use") && refused.contains("bytes of an emulated device"), "{refused}");
    let device = made.device.to_str().expect("text").to_string();
    let mkfs =
        Command::new("mkfs.ext4").args(["-q", "-O", "^has_journal", &device]).status().expect("it runs");
    assert!(mkfs.success());
    std::fs::create_dir(path("mount")).expect("made");
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount(&device, path("mount"), "ext4", flags, None).expect("mounted");
    std::fs::write(path("mount/file"), vec![0xa7; BYTES]).expect("written");
    let pid = made.pid();
    kill_process(Pid::from_raw(pid as i32).expect("a process"), Signal::TERM).expect("sent");
    std::thread::sleep(Duration::from_millis(200));
    assert!(process_start(pid).is_some(), "it writes out");
    let said = ok(&["restore"]);
    assert!(!said.contains("hangs"), "{said}");
    let begun = Instant::now();
    while process_start(pid).is_some() {
        assert!(begun.elapsed() < Duration::from_secs(120), "it does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(made.traces(), [""; 0]);
    let there = std::fs::read(path("bytes")).expect("read").iter().filter(|byte| **byte == 0xa7).count();
    assert!(there >= BYTES, "{there} of {BYTES} bytes were written out");
}

#[test]
fn a_trace_tells_the_splits_of_an_emulated_array() {
    let Some(_turn) = can_run() else { return };
    let made = Made::new("splits", &["--model", "raid0:nvme*2,chunk=64k"]);
    let dir = tempfile::tempdir().expect("a folder");
    let (out, device) = (dir.path().join("run"), made.device.to_str().expect("text"));
    let input = format!("if={device}");
    // Reads of 128 KiB, each of two chunks.
    let dd = ["dd", &input, "of=/dev/null", "bs=128k", "count=20", "iflag=direct", "status=none"];
    let words =
        [&["trace", "--device", device, "--out", out.to_str().expect("text"), "--"][..], &dd].concat();
    let said = match lab(&words) {
        traced if traced.status.success() => String::from_utf8_lossy(&traced.stdout).into_owned(),
        failed => return eprintln!("skipped: {}", String::from_utf8_lossy(&failed.stderr)),
    };
    let summary = std::fs::read_to_string(out.join("summary.jsonl")).expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    let reads = summary["kinds"].as_array().and_then(|kinds| kinds.iter().find(|of| of["kind"] == "read"));
    // The kernel may have cut the reads already: at chunks, or elsewhere.
    let requests = reads.and_then(|reads| reads["issued"].as_u64()).expect("reads");
    let splits = summary["emulated_splits"].as_u64().unwrap_or(0);
    assert!(requests + splits >= 40, "{requests} requests, {splits} splits");
    if requests < 40 {
        assert!(said.contains(&format!("the emulated array: X {splits}")), "{said}");
    }
}
