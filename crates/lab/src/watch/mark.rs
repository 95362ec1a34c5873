//! `lab mark`: a mark for a watch that runs.
//!
//! A running watch has two entries in the folder of the journals: `watch-PID.marks`, a FIFO, and
//! `watch-PID.run`, a link to its run folder. Both go with its journal.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::marks::Marks;
use crate::LabError;
use crate::undo::{Step, Undo, state_dir};

/// Begin a phase in a watch that runs.
#[derive(Debug, clap::Args)]
pub struct MarkArgs {
    /// Name of the phase; an empty one only ends the phase before
    text: String,
    /// Run folder of the watch, when several run
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
}

/// Sends the mark.
///
/// # Errors
/// No watch runs, or several do and none was named.
pub fn run(args: &MarkArgs) -> Result<(), LabError> {
    if args.text.contains('\n') {
        return Err(LabError::Argument("a mark is one line".into()));
    }
    send(&state_dir(), &args.text, args.run.as_deref())
}

/// Makes a watch known, and has it take marks.
pub(super) fn register(marks: &mut Marks, run: &Path, undo: &Undo) -> Result<(), LabError> {
    register_in(&state_dir(), marks, run, undo)
}

fn register_in(dir: &Path, marks: &mut Marks, run: &Path, undo: &Undo) -> Result<(), LabError> {
    let run = std::path::absolute(run).map_err(|e| LabError::file("look at", run, e))?;
    let pid = std::process::id();
    let link = dir.join(format!("watch-{pid}.run"));
    let _ = std::fs::remove_file(&link); // of a killed process with the same number
    undo.make(Step::RemoveFile { path: link.clone() }, || std::os::unix::fs::symlink(&run, &link))?;
    marks.add_fifo(&dir.join(format!("watch-{pid}.marks")), undo)
}

/// Run folders and FIFOs of the watches in `dir`.
fn running(dir: &Path) -> Vec<(PathBuf, PathBuf)> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let links = entries.filter(|path| path.extension().is_some_and(|e| e == "run"));
    let mut found: Vec<(PathBuf, PathBuf)> = links
        .filter_map(|link| Some((std::fs::read_link(&link).ok()?, link.with_extension("marks"))))
        .collect();
    found.sort();
    found
}

fn send(dir: &Path, text: &str, run: Option<&Path>) -> Result<(), LabError> {
    let open = |fifo: &Path| {
        // Without a reader this fails: that watch was killed.
        let flags = OFlags::NONBLOCK.bits() as i32;
        std::fs::OpenOptions::new().write(true).custom_flags(flags).open(fifo).ok()
    };
    let mut alive: Vec<_> =
        running(dir).into_iter().filter_map(|(run, fifo)| Some((run, open(&fifo)?))).collect();
    let folders = |alive: &[(PathBuf, std::fs::File)]| {
        alive.iter().map(|(run, _)| run.display().to_string()).collect::<Vec<_>>().join(", ")
    };
    let all = folders(&alive);
    if let Some(run) = run {
        let wanted = std::path::absolute(run).unwrap_or_else(|_| run.to_path_buf());
        alive.retain(|(run, _)| *run == wanted);
    }
    match alive.as_mut_slice() {
        [(run, fifo)] => {
            writeln!(fifo, "{text}").map_err(|e| LabError::file("send a mark to the watch of", run, e))
        }
        [] if all.is_empty() => Err(LabError::refused(
            "sending a mark",
            "no watch of this user runs",
            "begin one with `snowmelt-lab watch`",
        )),
        [] => Err(LabError::refused(
            "sending a mark",
            "no watch writes into that folder",
            format!("those that run write into {all}"),
        )),
        _ => Err(LabError::refused(
            "sending a mark",
            "several watches run",
            format!("name one with --run: {all}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_reaches_the_watch_that_runs() {
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(dir.path(), "watch").unwrap();
        let error = send(dir.path(), "load", None).unwrap_err().to_string();
        assert!(error.contains("no watch of this user runs"), "{error}");
        let mut marks = Marks::default();
        register_in(dir.path(), &mut marks, Path::new("/some/run"), &undo).unwrap();
        send(dir.path(), "load", None).unwrap();
        send(dir.path(), "", Some(Path::new("/some/run"))).unwrap();
        assert_eq!(marks.poll(), ["load", ""]);
        let error = send(dir.path(), "x", Some(Path::new("/other"))).unwrap_err().to_string();
        assert!(error.contains("/some/run"), "{error}");
        // One that was killed has no reader at the other end.
        drop(marks);
        let error = send(dir.path(), "x", None).unwrap_err().to_string();
        assert!(error.contains("no watch"), "{error}");
    }
}
