//! Everything that was changed is undone: on drop, on a signal, and by a restore after kill -9
//! of the owner.
//!
//! The owner that is killed is this test program itself, run again for one test with a folder
//! to work in.

mod support;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use snowmelt_lab::restore;
use snowmelt_lab::undo::{Step, Undo, UndoError, leftovers};

const FOLDER: &str = "SNOWMELT_LAB_TEST_FOLDER";
/// When the owner ends by itself: "at-once", or "while-undone" by a signal.
const ENDS: &str = "SNOWMELT_LAB_TEST_ENDS";

fn setting(dir: &Path) -> PathBuf {
    dir.join("scheduler")
}

/// Changes a setting twice, makes a directory and a file, starts a process.
fn change_things(dir: &Path) -> Undo {
    let undo = Undo::open_in(&dir.join("state"), "test").expect("a journal");
    undo.set(&setting(dir), "kyber").expect("set");
    undo.set(&setting(dir), "bfq").expect("set again");
    undo.make_dir(&dir.join("instance")).expect("made");
    let file = dir.join("instance/file");
    undo.make(Step::RemoveFile { path: file.clone() }, || std::fs::write(&file, "x")).expect("made");
    undo
}

fn prepared() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(setting(dir.path()), "mq-deadline").expect("written");
    dir
}

fn is_changed(dir: &Path) -> bool {
    let value = std::fs::read_to_string(setting(dir)).expect("readable");
    let changed = value == "bfq" && dir.join("instance/file").exists();
    assert!(changed || (value == "mq-deadline" && !dir.join("instance").exists()), "half undone: {value}");
    changed
}

/// Not a test by itself: the program that is killed. Without the folder it does nothing.
#[test]
#[allow(clippy::zombie_processes)] // it is killed
fn owner() {
    let Some(dir) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let undo = change_things(&dir);
    let ends = std::env::var(ENDS).ok();
    let script = match ends {
        None => "touch ready; exec sleep 600",
        // It says when it is asked to stop, and takes its time.
        Some(_) => "trap 'touch asked' TERM; touch ready; while :; do sleep 0.1; done",
    };
    let sleeper = Command::new("sh")
        .args(["-c", script])
        .current_dir(&dir)
        .stdout(Stdio::null())
        .spawn()
        .expect("sh starts");
    wait_for(&dir.join("ready"));
    undo.started(sleeper.id()).expect("journalled");
    println!("\nchanged {}", sleeper.id());
    match ends.as_deref() {
        None => std::thread::sleep(std::time::Duration::from_secs(600)),
        Some("while-undone") => wait_for(&dir.join("asked")),
        Some(_) => {}
    }
    drop(undo);
}

fn wait_for(path: &Path) {
    let begun = std::time::Instant::now();
    while !path.exists() {
        assert!(begun.elapsed().as_secs() < 60, "{} does not come", path.display());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Starts the owner; answers it and its sleeping child when everything is changed.
#[allow(clippy::zombie_processes)] // the callers wait; a panic ends the test
fn start_owner(dir: &Path, ends: Option<&str>) -> (Child, u32) {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program)
        .args(["--exact", "owner", "--nocapture"])
        .env(FOLDER, dir)
        .envs(ends.map(|ends| (ENDS, ends)))
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    for line in lines {
        if let Some(pid) = line.expect("text").strip_prefix("changed ") {
            return (child, pid.parse().expect("a number"));
        }
    }
    panic!("the owner ended too early");
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("signal sent");
}

fn runs(pid: u32) -> bool {
    snowmelt_lab::undo::process_start(pid).is_some()
}

#[test]
fn dropping_undoes_in_reverse() {
    let dir = prepared();
    let undo = change_things(dir.path());
    assert!(is_changed(dir.path()));
    drop(undo);
    assert!(!is_changed(dir.path()));
    assert_eq!(std::fs::read_dir(dir.path().join("state")).expect("readable").count(), 0, "no journal stays");
}

#[test]
fn after_kill_9_restore_undoes() {
    let dir = prepared();
    let (mut child, sleeper) = start_owner(dir.path(), None);
    let state = dir.path().join("state");
    assert!(leftovers(&state).expect("read").is_empty(), "the owner still lives");
    send(&child, Signal::KILL);
    child.wait().expect("ended");
    assert!(is_changed(dir.path()) && runs(sleeper));
    let args = |dry_run| restore::RestoreArgs { dry_run, all: false, state: Some(state.clone()) };
    restore::run(&args(true)).expect("shown");
    assert!(is_changed(dir.path()) && runs(sleeper), "a dry run changes nothing");
    restore::run(&args(false)).expect("restored");
    assert!(!is_changed(dir.path()) && !runs(sleeper));
    assert!(leftovers(&state).expect("read").is_empty());
}

/// Not a test by itself, as [`owner`]: it makes files by relative paths.
#[test]
fn relative_owner() {
    let Some(dir) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let undo = Undo::open_in(&dir.join("state"), "test").expect("a journal");
    for name in ["made", "replaced", "folder"] {
        let path = PathBuf::from(name);
        if name == "folder" {
            undo.make(Step::RemoveTree { path }, || std::fs::create_dir(name)).expect("made");
        } else {
            undo.make(Step::RemoveFile { path }, || std::fs::write(name, "made")).expect("made");
        }
    }
    wait_for(&dir.join("never"));
}

#[test]
fn restore_removes_what_was_made_from_any_folder_and_nothing_else() {
    let dir = tempfile::tempdir().expect("a folder");
    let (there, names) = (dir.path().join("there"), ["made", "replaced", "folder"]);
    std::fs::create_dir(&there).expect("made");
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "relative_owner"])
        .env(FOLDER, dir.path())
        .current_dir(&there)
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let state = dir.path().join("state");
    let noted = || {
        let journals = std::fs::read_dir(&state).into_iter().flatten().flatten();
        let texts = journals.map(|entry| std::fs::read_to_string(entry.path()).unwrap_or_default());
        texts.map(|text| text.matches("\"made\":{").count()).sum::<usize>() == names.len()
    };
    let begun = std::time::Instant::now();
    while !noted() {
        assert!(begun.elapsed().as_secs() < 60, "the journal is not written");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    send(&child, Signal::KILL);
    child.wait().expect("ended");
    // The user's own by now; the new ones are there before the old ones go.
    for name in ["replaced", "folder"] {
        std::fs::rename(there.join(name), there.join(format!("old-{name}"))).expect("renamed");
    }
    std::fs::write(there.join("replaced"), "precious").expect("written");
    std::fs::create_dir(there.join("folder")).expect("made");
    std::fs::write(there.join("folder/file"), "precious").expect("written");
    // Of the same name in the folder in which restore runs.
    let here = dir.path().join("here");
    std::fs::create_dir(&here).expect("made");
    std::fs::write(here.join("made"), "precious").expect("written");
    let restored = Command::new(support::program())
        .args(["restore", "--state", state.to_str().expect("text")])
        .current_dir(&here)
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&restored.stdout);
    assert!(restored.status.success() && told.matches("another has its name").count() == 2, "{told}");
    assert!(!there.join("made").exists(), "{told}");
    for path in [here.join("made"), there.join("replaced"), there.join("folder/file")] {
        assert_eq!(std::fs::read_to_string(&path).expect("it is left"), "precious", "{}", path.display());
    }
    assert!(leftovers(&state).expect("read").is_empty());
}

#[test]
fn signals_undo_and_end() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let dir = prepared();
        let (mut child, sleeper) = start_owner(dir.path(), None);
        assert!(is_changed(dir.path()));
        send(&child, signal);
        assert_eq!(child.wait().expect("ended").code(), Some(code));
        assert!(!is_changed(dir.path()) && !runs(sleeper));
    }
}

#[test]
fn an_owner_that_ends_by_itself_beside_a_signal_undoes_all() {
    for ends in ["at-once", "while-undone"] {
        let dir = prepared();
        let (mut child, sleeper) = start_owner(dir.path(), Some(ends));
        if ends == "at-once" {
            wait_for(&dir.path().join("asked"));
        }
        send(&child, Signal::TERM);
        assert_eq!(child.wait().expect("ended").code(), Some(143), "{ends}");
        assert!(!is_changed(dir.path()) && !runs(sleeper), "{ends}");
    }
}

#[test]
fn what_cannot_be_undone_stays_in_the_journal() {
    let dir = prepared();
    let undo = change_things(dir.path());
    std::fs::write(dir.path().join("instance/foreign"), "not ours").expect("written");
    let Err(UndoError::Left(left)) = undo.undo() else { panic!("a directory with a foreign file stays") };
    assert_eq!(left.len(), 1, "{left:?}");
    // The holder of something that stays must stay too, so that it is found again.
    let outer = Undo::open_in(&dir.path().join("state"), "test").expect("a journal");
    outer.make_dir(&dir.path().join("outer")).expect("made");
    outer.make_dir(&dir.path().join("outer/inner")).expect("made");
    std::fs::write(dir.path().join("outer/inner/foreign"), "not ours").expect("written");
    let Err(UndoError::Left(left)) = outer.undo() else { panic!("both stay") };
    assert_eq!(left.len(), 2, "{left:?}");
    std::fs::remove_file(dir.path().join("outer/inner/foreign")).expect("removed");
    outer.undo().expect("both go");
    std::fs::remove_file(dir.path().join("instance/foreign")).expect("removed");
    undo.undo().expect("now everything is undone");
    assert!(!dir.path().join("instance").exists());
}

#[test]
fn kept_things_wait_for_all() {
    let dir = prepared();
    let undo = change_things(dir.path());
    undo.keep().expect("kept");
    drop(undo);
    let state = dir.path().join("state");
    restore::run(&restore::RestoreArgs { dry_run: false, all: false, state: Some(state.clone()) })
        .expect("nothing to do");
    assert!(is_changed(dir.path()));
    restore::run(&restore::RestoreArgs { dry_run: false, all: true, state: Some(state) }).expect("restored");
    assert!(!is_changed(dir.path()));
}

#[test]
fn a_value_that_is_refused_is_an_error_that_names_it() {
    let dir = prepared();
    let undo = Undo::open_in(&dir.path().join("state"), "test").expect("a journal");
    let error = undo.set(&dir.path().join("absent"), "1").expect_err("there is no such setting").to_string();
    assert!(error.contains("absent") && error.contains("does not have it"), "{error}");
}

#[test]
fn a_file_that_gets_another_name_goes_by_that() {
    let dir = tempfile::tempdir().unwrap();
    let undo = Undo::open_in(&dir.path().join("journals"), "test").unwrap();
    let (draft, path) = (dir.path().join("draft"), dir.path().join("file"));
    undo.make(Step::RemoveFile { path: draft.clone() }, || std::fs::write(&draft, "x")).unwrap();
    undo.rename(&draft, &path).unwrap();
    assert!(path.exists() && !draft.exists());
    let error = undo.rename(&draft, &path).unwrap_err().to_string();
    assert!(error.contains("rename") && error.contains("draft"), "{error}");
    undo.undo().unwrap();
    assert!(!path.exists());
}

#[test]
fn a_command_within_another_shares_its_disks() {
    let dir = tempfile::tempdir().unwrap();
    let disk = dir.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let open = |what| Undo::open_in(&dir.path().join("journals"), what).unwrap();
    let (outer, other) = (open("outer"), open("other"));
    assert!(outer.hold(&disk).unwrap() && !other.hold(&disk).unwrap());
    let inner = Undo::open_within(&outer, "inner").unwrap();
    assert!(inner.hold(&disk).unwrap());
    inner.undo().unwrap();
    assert!(!other.hold(&disk).unwrap(), "the outer one holds it still");
    outer.undo().unwrap();
    assert!(other.hold(&disk).unwrap());
}

#[test]
fn a_folder_goes_with_everything_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let undo = Undo::open_in(&dir.path().join("journals"), "test").unwrap();
    let (_, first) = undo.make_tree(dir.path(), "data").unwrap();
    let (_, second) = undo.make_tree(dir.path(), "data").unwrap();
    assert!(first != second && first.is_dir());
    std::fs::create_dir(first.join("deep")).unwrap();
    std::fs::write(first.join("deep/file"), "x").unwrap();
    undo.undo().unwrap();
    assert!(!first.exists() && !second.exists() && dir.path().exists());
}
