//! Hostile values of every switch of the laboratory are refused, or taken, and never a panic.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Numbers at which arithmetic ends, and words that are none.
const VALUES: [&str; 9] =
    ["0", "-1", "nan", "inf", "1e30", "4294967295", "18446744073709551615", "1,18446744073709551615", ""];

/// A name that is no text.
const BYTES: &[u8] = b"f\xff\x1b[2J";

/// Commands that measure nothing as they stand here, and change nothing.
const LINES: [&[&str]; 13] = [
    &["read", "precious"],
    &["read", "precious", "--model", "nvme"],
    &["write", "precious"],
    &["compare", "nothing-here", "nothing-here"],
    &["report", "nothing-here"],
    &["gallery", "nothing-here"],
    &["trace", "--device", "nothing-here", "--", "true"],
    &["watch", "--", "true"],
    &["mark", "x", "--run", "nothing-here"],
    &["cap", "--device", "nothing-here", "--read", "1m", "--", "true"],
    &["scan", "precious", "--dry-run"],
    &["scan", "precious", "--dry-run", "--dop", "4096", "--engine", "uring", "--depth", "1"],
    &["file-systems", "nothing-here"],
];

/// The line with a switch in place of its own, before the program behind `--`.
fn with_switch(line: &[&str], switch: &str, value: &OsStr) -> Vec<OsString> {
    let behind = line.iter().position(|word| *word == "--").unwrap_or(line.len());
    let mut words: Vec<OsString> = Vec::new();
    let mut own = line[..behind].iter();
    while let Some(word) = own.next() {
        if *word == format!("--{switch}") {
            own.next();
        } else {
            words.push(word.into());
        }
    }
    let mut assigned = OsString::from(format!("--{switch}="));
    assigned.push(value);
    words.push(assigned);
    words.extend(line[behind..].iter().map(OsString::from));
    words
}

/// Each switch with a value of the command that a line is of.
fn switches(line: &[&str]) -> Vec<String> {
    let commands = snowmelt_lab_cli::command();
    let command = commands.find_subcommand(line[0]).expect("a command of this name");
    let valued = command.get_arguments().filter(|arg| arg.get_action().takes_values());
    valued.filter_map(|arg| Some(arg.get_long()?.to_owned())).collect()
}

/// The end of a command within some seconds: its exit code, and standard error.
fn run(dir: &Path, words: &[OsString]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_snowmelt-lab"));
    command.current_dir(dir).args(words).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let begun = Instant::now();
    while child.try_wait().expect("it is ours").is_none() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = child.kill(); // one that has ended is not there
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Runs all lines, and answers those that ended otherwise than by 0, 1 or 2, or that panicked.
fn failures(dir: &Path, lines: &[Vec<OsString>]) -> Vec<String> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(words) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (code, said) = run(dir, words);
            if !matches!(code, Some(0..=2)) || said.contains("panicked") {
                failed.lock().expect("no panics").push(format!("{words:?}: {code:?} {said}"));
            }
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    failed.into_inner().expect("no panics")
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("precious"), "data").unwrap();
    dir
}

#[test]
fn hostile_values_of_switches_are_no_panics() {
    let dir = folder();
    let with_all = |line: &&[&str]| -> Vec<Vec<OsString>> {
        let of = |switch: &String| VALUES.map(|value| with_switch(line, switch, value.as_ref()));
        switches(line).iter().flat_map(of).collect()
    };
    let lines: Vec<_> = LINES.iter().flat_map(with_all).collect();
    assert!(lines.len() > 1000, "{}", lines.len());
    let failed = failures(dir.path(), &lines);
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), lines.len(), failed.join("\n"));
    assert_eq!(std::fs::read(dir.path().join("precious")).unwrap(), b"data");
}

#[test]
fn names_that_are_no_text_are_refused_in_one_line() {
    let dir = folder();
    let bytes = OsStr::from_bytes(BYTES);
    std::fs::write(dir.path().join(bytes), vec![1; 1 << 20]).unwrap();
    let mut lines: Vec<Vec<OsString>> = Vec::new();
    for line in LINES {
        lines.extend(switches(line).iter().map(|switch| with_switch(line, switch, bytes)));
        for at in (1..line.len()).filter(|at| !line[*at].starts_with("--")) {
            let mut words: Vec<OsString> = line.iter().map(OsString::from).collect();
            words[at] = bytes.to_owned();
            lines.push(words);
        }
    }
    lines.push(["write", "--size", "1m", "--writes", "10"].map(OsString::from).to_vec());
    lines.last_mut().expect("just added").push(bytes.to_owned());
    for words in &lines {
        let (code, said) = run(dir.path(), words);
        let is_refused = code == Some(1) && said.lines().count() == 1 && said.contains("is not UTF-8");
        assert!(is_refused && !said.trim_end().contains(char::is_control), "{words:?}: {code:?} {said}");
    }
    // A folder, in which a name is relative.
    let folder = dir.path().join(OsStr::from_bytes(b"d\xff"));
    std::fs::create_dir(&folder).unwrap();
    let (code, said) = run(&folder, &["watch", "--", "true"].map(OsString::from));
    assert!(code == Some(1) && said.contains("is not UTF-8"), "{code:?} {said}");
}

/// The difference from clocks: seconds that none counts, in commands that would measure.
#[test]
fn times_that_no_clock_counts_are_refused() {
    let dir = folder();
    std::fs::write(dir.path().join("file"), vec![1; 1 << 20]).unwrap();
    for (line, switch) in [
        (&["read", "file", "--sizes", "4k", "--depth", "1"][..], "runtime"),
        (&["write", "file", "--destroy", "--sizes", "4k", "--writes", "1"], "runtime"),
        (&["watch", "--", "true"], "seconds"),
        (&["watch", "--", "true"], "interval-ms"),
        (&["trace", "--device", "file", "--", "true"], "seconds"),
        (&["trace", "--device", "file", "--", "true"], "interval-ms"),
        (&["tpch"], "random-s"),
        (&["tpch"], "interval-ms"),
        (&["bsbm", "run", "no-database"], "stretch"),
    ] {
        for value in ["nan", "-1", "1e30", "18446744073709551615"] {
            let (code, said) = run(dir.path(), &with_switch(line, switch, value.as_ref()));
            assert!(matches!(code, Some(1 | 2)), "{line:?} {switch} {value}: {code:?} {said}");
            assert!(!said.contains("panicked"), "{line:?} {switch} {value}: {said}");
        }
    }
}
