//! The laboratory as a user without root meets it.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn command(dir: &Path, line: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_snowmelt-lab"));
    command.current_dir(dir).args(line);
    command
}

fn lab(dir: &Path, line: &[&str]) -> Output {
    command(dir, line).output().unwrap()
}

fn ok(dir: &Path, line: &[&str]) {
    let output = lab(dir, line);
    assert!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_watched_program_is_told_in_whole_intervals_and_in_sums() {
    let dir = tempfile::tempdir().unwrap();
    let script = "head -c 300000 /dev/zero > out; sleep 0.42; exit 3";
    let watched =
        lab(dir.path(), &["watch", "--interval-ms", "200", "--out", "run", "--", "sh", "-c", script]);
    assert_eq!(watched.status.code(), Some(3), "the exit status is the program's");
    let run = dir.path().join("run");
    let seconds = lines(&run.join("seconds.jsonl"));
    let number = |line: &Value, name: &str| line[name].as_f64().unwrap();
    let mut end = 0.0;
    for second in &seconds {
        let length = number(second, "length_s");
        assert!(length >= 0.1, "shorter than half an interval: {seconds:?}");
        end += length;
        assert!((number(second, "end_s") - end).abs() < 1e-3, "a gap: {seconds:?}");
    }
    let watch: Value =
        serde_json::from_str(&std::fs::read_to_string(run.join("watch.json")).unwrap()).unwrap();
    let total = &watch["total"];
    assert_eq!((&total["code"], watch["seconds"].as_array().unwrap()), (&Value::from(3), &seconds));
    // it is watched once it runs, which may be late on a busy machine
    assert!((number(total, "seconds") - end).abs() < 1e-3 && end > 0.2, "{total}");
    assert!(total["io"]["wchar"].as_u64().unwrap() >= 300_000, "{total}");
    assert!(std::fs::read_to_string(run.join("report.html")).unwrap().contains("</html>"));
}

#[test]
fn a_program_that_a_signal_ended_gives_128_and_the_signal() {
    let dir = tempfile::tempdir().unwrap();
    let code = |script: &str| lab(dir.path(), &["watch", "--", "sh", "-c", script]).status.code();
    assert_eq!([code("exit 0"), code("exit 1"), code("kill -9 $$")], [Some(0), Some(1), Some(137)]);
}

#[test]
fn a_program_that_outlives_its_watch_is_ended_and_that_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let script = "trap 'echo term > ended; echo last; exit' TERM; echo first; while :; do sleep 0.02; done";
    for mark_on in [&["--mark-on", "x"][..], &[]] {
        let _ = std::fs::remove_dir_all(dir.path().join("run"));
        let line = [&["watch", "--seconds", "0.3", "--out", "run"], mark_on, &["--", "sh", "-c", script]];
        let watched = lab(dir.path(), &line.concat());
        let said = String::from_utf8_lossy(&watched.stdout);
        assert_eq!(watched.status.code(), Some(0), "{said}");
        assert!(said.contains("still ran at the end of the watch") && said.contains("SIGTERM"), "{said}");
        assert!(said.contains("first\n") && said.ends_with("last\n"), "its own last words, too: {said}");
        assert_eq!(std::fs::read_to_string(dir.path().join("ended")).unwrap(), "term\n");
        std::fs::remove_file(dir.path().join("ended")).unwrap();
        let page = std::fs::read_to_string(dir.path().join("run/report.html")).unwrap();
        assert!(page.contains("still ran at the end of the watch"));
    }
}

#[test]
fn a_scan_by_a_command_that_fails_is_no_scan() {
    // In memory: other tests measure the disk.
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else { return println!("skipped: no /dev/shm") };
    std::fs::write(dir.path().join("file"), vec![1; 1 << 20]).unwrap();
    for (switch, command) in [("--exec", "exit 3"), ("--before", "exit 3"), ("--exec", "kill -9 $$")] {
        let line = ["scan", "file", "--dop", "1", "--no-trace", "--out", "run", switch, command];
        let output = lab(dir.path(), &line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{switch} {command}: {said}");
        let code = if command.starts_with("kill") { "137" } else { "3" };
        assert!(said.contains(&format!("`{command}`: it ended with code {code}")), "{said}");
        assert!(output.stdout.is_empty() && !dir.path().join("run").exists(), "nothing was measured");
    }
}

#[test]
fn all_of_a_program_s_output_reaches_a_slow_reader() {
    use std::io::Read;
    let dir = tempfile::tempdir().unwrap();
    let script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done";
    let line = ["watch", "--out", "run", "--mark-on", "line 19999$", "--", "sh", "-c", script];
    let mut child = command(dir.path(), &line).stdout(Stdio::piped()).spawn().unwrap();
    let (mut said, mut bytes) = (Vec::new(), [0; 8192]);
    let mut out = child.stdout.take().unwrap();
    while let Ok(n @ 1..) = out.read(&mut bytes) {
        said.extend_from_slice(&bytes[..n]);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(child.wait().unwrap().success());
    let said = String::from_utf8(said).unwrap();
    let lines = said.lines().filter(|line| line.starts_with("line ")).count();
    assert_eq!(lines, 20_000);
    assert!(said.find("line 19999") < said.find("major faults"), "its output stands before ours");
}

#[test]
fn a_reader_that_has_gone_and_a_full_disk_are_no_panics() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    let full = || Stdio::from(std::fs::File::create("/dev/full").unwrap());
    for line in [
        &["--help"][..],
        &["bsbm", "run", "--help", "io"],
        &["bsbm", "generate", "--products", "100"],
        &["restore"],
        &["watch", "--out", "run", "--", "true"],
    ] {
        let _ = std::fs::remove_dir_all(path.join("run"));
        for (stdout, code) in [(closed(), 0), (full(), 1)] {
            let _ = std::fs::remove_dir_all(path.join("run"));
            let output = command(path, line).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
            let output = output.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{line:?}: {said}");
            assert!(!said.contains("panicked"), "{line:?}: {said}");
            assert!(code == 0 || said.contains("o space left"), "{line:?}: {said}");
        }
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_as_a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let limited = "ulimit -f 100; exec \"$0\" bsbm generate --products 200 -o data.nt";
    let program = env!("CARGO_BIN_EXE_snowmelt-lab");
    let output = Command::new("sh").current_dir(dir.path()).args(["-c", limited, program]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no space left for the data set"), "{said}");
    assert!(!dir.path().join("data.nt").exists(), "a cut data set looks like a whole one");
}

#[test]
fn a_disk_is_measured_by_one_command_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), vec![1; 1 << 20]).unwrap();
    // Past the page cache, as a buffered cell ends once it has read every place.
    let line = |runtime: &'static str, out: &'static str| {
        ["read", "file", "--bs", "4k", "--iodepth", "1", "--runtime", runtime, "--out", out]
    };
    let quick = |more: &[&str]| {
        let _ = std::fs::remove_dir_all(dir.path().join("quick"));
        let output = lab(dir.path(), &[&line("0.1", "quick")[..], more].concat());
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (done, said) = quick(&["--wait"]);
    if !done && said.contains("no block device") {
        println!("skipped: temporary files are on no block device here");
        return;
    }
    assert!(done, "{said}");
    let mut first = command(dir.path(), &[&line("60", "first")[..], &["--wait"]].concat())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let holder = format!("(process {})", first.id());
    // Other tests may measure the disk before it.
    let begun = Instant::now();
    let refused = loop {
        let (done, said) = quick(&[]);
        let names = said.contains("is being measured by `snowmelt-lab read file") && said.contains(&holder);
        if !done && names {
            break said;
        }
        assert!(begun.elapsed() < Duration::from_secs(50), "{holder}: {done} {said}");
        // It looks now and then whether the disk is free: one that asks without pause is first.
        std::thread::sleep(Duration::from_millis(300));
    };
    assert!(refused.contains("--wait"), "{refused}");
    first.kill().unwrap();
    first.wait().unwrap();
    let (done, said) = quick(&["--wait"]);
    assert!(done, "the kernel gives the disk free with its holder: {said}");
}

#[test]
fn a_user_who_may_only_read_a_file_scans_it_past_the_page_cache() {
    let dir = tempfile::tempdir().unwrap();
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return println!("skipped: only root can be another user for once");
    }
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    std::fs::write(dir.path().join("table"), vec![1; 2 << 20]).unwrap();
    std::fs::create_dir(dir.path().join("runs")).unwrap();
    open(dir.path(), 0o755);
    open(&dir.path().join("runs"), 0o777);
    let scan = |direct: &str| {
        let line = [
            "scan", "../table", "--dop", "1", "--repeat", "1", "--wait", "--direct", direct, "--out", direct,
        ];
        let output = command(&dir.path().join("runs"), &line).uid(65534).gid(65534).output();
        let output = match output {
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => return Err("skipped".into()),
            output => output.unwrap(),
        };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(said) }
    };
    match scan("on") {
        Err(said) if said == "skipped" || said.contains("O_DIRECT") => return println!("skipped: {said}"),
        scanned => scanned.unwrap(),
    }
    let said = scan("off").unwrap_err();
    assert!(said.contains("only to its owner") && said.contains("--direct on needs no proof"), "{said}");
}

#[test]
fn a_file_may_have_settings_of_both_programs() {
    let dir = tempfile::tempdir().unwrap();
    let text =
        "timeout = 60\nread-only = true\nclients = 2\n[serve]\nlisten = \"1\"\n[scan-index]\nthreads = 1\n";
    std::fs::write(dir.path().join("both.toml"), text).unwrap();
    std::fs::write(dir.path().join("wrong.toml"), "clientss = 2\n").unwrap();
    std::fs::write(dir.path().join("lab.toml"), "[lab]\nclients = 2\n").unwrap();
    let error = |file: &str| {
        let output = lab(dir.path(), &["--config", file, "scan-index", "nowhere", "psog"]);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(error("both.toml").contains("nowhere"), "{}", error("both.toml"));
    assert!(error("wrong.toml").contains("clientss is not a switch"), "{}", error("wrong.toml"));
    assert!(error("lab.toml").contains("[lab] has no switches of its own"), "{}", error("lab.toml"));
}

#[test]
fn runs_on_a_model_are_compared_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    std::fs::write(path.join("file"), vec![1; 1 << 20]).unwrap();
    let cells =
        ["--bs", "4k,16k", "--iodepth", "1,8", "--direct", "on", "--model", "wide-slow", "--runtime", "0.2"];
    for run in ["one", "two"] {
        ok(path, &[&["read", "file", "--out", run][..], &cells].concat());
        assert_eq!(lines(&path.join(run).join("cells.jsonl")).len(), 4);
    }
    for cell in lines(&path.join("one/cells.jsonl")) {
        let number = |name: &str| cell[name].as_u64().unwrap();
        assert_eq!(number("io_bytes"), number("total_ios") * number("bs"), "{cell}");
        assert!(number("total_ios") > 0 && cell["iops"].as_f64().unwrap() > 0.0, "{cell}");
    }
    ok(path, &["compare", "one", "two", "--out", "both"]);
    ok(path, &["gallery", ".", "--out", "all.html"]);
    ok(&path.join("one"), &["gallery", "..", "--out", "../all-2.html"]);
    for page in ["all.html", "all-2.html"] {
        let page = std::fs::read_to_string(path.join(page)).unwrap();
        assert!(page.contains("href=\"one/report.html\"") && page.contains("href=\"two/report.html\""));
    }
    ok(path, &["report", "one", "--svg", "svg", "--png", "png"]);
    let drawn = |folder: &str| std::fs::read_dir(path.join(folder)).unwrap().count();
    assert!(drawn("svg") > 0 && drawn("svg") == drawn("png"));
}

#[test]
fn an_index_is_scanned_in_every_order() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    drop(snowmelt_graph::GraphDatabase::create(&db, &[], &Default::default()).unwrap());
    for queue in ["elevator", "fifo", "deadline:batch=4", "anticipatory", "fair:quantum=5"] {
        ok(dir.path(), &["scan-index", "db", "psog", "--threads", "2", "--queue", queue]);
    }
    let refused = lab(dir.path(), &["scan-index", "db", "psog", "--queue", "fair:batch=4"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("it has quantum"), "{refused:?}");
}

#[test]
fn what_cannot_be_measured_is_refused_in_one_line_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    std::fs::write(path.join("precious"), "data").unwrap();
    for (line, says) in [
        (&["read", "nothing-here"][..], "nothing-here"),
        (&["read", "precious", "--bs", "1,1m", "--model", "nvme"], "precious: has only 4 bytes"),
        (&["write", "precious"], "--destroy"),
        (&["watch"], "--pid"),
        (&["watch", "--", "./no-such-program"], "no-such-program"),
        (&["trace", "--device", "precious-device"], "precious-device"),
        (&["cap", "--device", "precious", "--", "true"], "--read 125MiB"),
        (&["cap", "--device", "nothing-here", "--read", "1m", "--", "true"], "nothing-here"),
        (&["watch", "--cap-read", "1m", "--", "true"], "--cap-device"),
        (&["compare", "nothing-here", "precious"], "nothing-here"),
        (&["device", "check", "--model", "no-such-model"], "no-such-model"),
    ] {
        let output = lab(path, line);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{line:?}: {error}");
        assert!(error.lines().count() == 1 && error.contains(says), "{line:?}: {error}");
        assert!(output.stdout.is_empty(), "{line:?}: nothing was measured");
    }
    assert_eq!(std::fs::read(path.join("precious")).unwrap(), b"data");
    assert_eq!(std::fs::read_dir(path).unwrap().count(), 1, "no folder is left");
}

/// A file system of a few MiB, unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None`, said, where this user may not mount one.
    fn mount(bytes: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let size = format!("size={bytes}");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(dir.path()).output();
        if !mount.is_ok_and(|output| output.status.success()) {
            println!("skipped: a file system can be mounted by root only");
            return None;
        }
        Some(Self(dir))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_disk_without_room_is_told_before_anything_is_written() {
    let Some(disk) = SmallDisk::mount("80m") else { return };
    let path = disk.0.path();
    for line in [
        &["bsbm", "generate", "--products", "2785", "-o", "data.nt"][..],
        &[
            "bsbm",
            "generate",
            "--products",
            "2785",
            "--update-transactions",
            "2700",
            "-o",
            "/dev/null",
            "--update-output",
            "u.nt",
        ],
        &["bsbm", "scale", "--products", "2785", "--dir", "."],
        &["write", "file", "--size", "1g"],
        &["scan", ".", "--table", "1g"],
        &["device", "create", "test-no-room", "--model", "ssd", "--size", "1g", "--backing", "disk"],
        &["repeat", "e2", "--quick", "--out", "e2"],
    ] {
        let output = lab(path, line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line:?}: {said}");
        assert!(said.contains("are needed and") && said.contains("80.0 MiB free"), "{line:?}: {said}");
        let left: Vec<_> = std::fs::read_dir(path).unwrap().flatten().map(|entry| entry.path()).collect();
        assert!(left.is_empty(), "{line:?} left {left:?}");
    }
    ok(path, &["bsbm", "generate", "--products", "100", "-o", "data.nt"]);
}
