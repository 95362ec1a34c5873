//! The laboratory as a program, and the turn of tests that use the whole machine.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The turn of one test: a device that hangs on purpose is in the way of all others, and a
/// restore is for all, also for those of another run.
#[allow(dead_code, reason = "not each program of tests needs it")]
pub fn turn() -> File {
    let folder = snowmelt_lab::undo::state_dir();
    std::fs::create_dir_all(&folder).expect("the state folder");
    let turn = File::create(folder.join("tests.lock")).expect("a file");
    rustix::fs::flock(&turn, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    turn
}

/// The laboratory as a program: the example that cargo builds along with the tests.
pub fn program() -> PathBuf {
    let here = std::env::current_exe().expect("this program");
    here.parent().and_then(std::path::Path::parent).expect("target/PROFILE/deps").join("examples/lab")
}

#[allow(dead_code, reason = "not each program of tests needs it")]
pub fn lab(words: &[&str]) -> Output {
    Command::new(program()).args(words).output().expect("`cargo test -p snowmelt-lab` builds examples/lab")
}

#[allow(dead_code, reason = "not each program of tests needs it")]
pub fn ok(words: &[&str]) -> String {
    let output = lab(words);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{words:?}: {out}{err}");
    out.into_owned()
}

#[allow(dead_code, reason = "not each program of tests has one that fails")]
pub fn fails(words: &[&str]) -> String {
    let output = lab(words);
    assert!(!output.status.success(), "{words:?} succeeds");
    String::from_utf8_lossy(&output.stderr).into_owned()
}
