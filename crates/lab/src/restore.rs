//! `snowmelt-lab restore`: undoes what commands that were killed left behind.

use std::io;
use std::path::{Path, PathBuf};

use crate::device;
use crate::undo::{Leftover, Outcome, Step, UndoError, left_by_root, leftovers, state_dirs};

/// Undo what killed commands left behind, and end devices that hang: settings, loop devices,
/// mounts, trace instances, cgroups, processes.
#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// Only show what would be undone
    #[arg(long)]
    pub dry_run: bool,
    /// Also what was left in place on purpose
    #[arg(long)]
    pub all: bool,
    /// Folder of the journals (default /run/snowmelt-lab; without root those below XDG_RUNTIME_DIR
    /// and in the folder for temporary files)
    #[arg(long)]
    pub state: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// The journals cannot be read, or something could not be undone.
pub fn run(args: &RestoreArgs) -> Result<(), UndoError> {
    let dirs = match &args.state {
        Some(dir) => vec![std::fs::canonicalize(dir).unwrap_or_else(|_| dir.clone())],
        None => state_dirs(),
    };
    let (mut found, mut failures) = (0, Vec::new());
    for dir in &dirs {
        let (here, failed) = restore_in(dir, args)?;
        found += here;
        failures.extend(failed);
    }
    // Asked for a folder, it answers for that one.
    let of_root = if args.state.is_none() { left_by_root() } else { Vec::new() };
    of_root.iter().for_each(tell_of_root);
    if found == 0 && of_root.is_empty() {
        crate::say!("nothing was left behind");
    }
    if failures.is_empty() { Ok(()) } else { Err(UndoError::Left(failures)) }
}

fn tell_of_root(leftover: &Leftover) {
    let (what, command) = (&leftover.what, leftover.command.join(" "));
    match leftover.kept {
        true => crate::say!("{what}: left in place on purpose by `{command}` of root"),
        false => crate::say!("{what}: left by `{command}` of root, and only root can restore it"),
    }
}

/// Restores what the journals in a folder say; how much was found, and failures.
fn restore_in(dir: &Path, args: &RestoreArgs) -> Result<(usize, Vec<String>), UndoError> {
    let mut failures = Vec::new();
    let mut found = 0;
    // Those that hang first: cut off, they take their things down or die, and nothing waits for
    // them any more.
    for hung in device::hung(dir)? {
        found += 1;
        crate::say!("device {} hangs: its server (process {}) {}", hung.name, hung.pid, hung.why);
        if args.dry_run {
            crate::say!("  would abort its connection and end it");
            continue;
        }
        crate::say!("  abort its connection and end it");
        failures.extend(hung.end().err());
    }
    for leftover in leftovers(dir)? {
        let command = leftover.command.join(" ");
        if leftover.kept && !args.all {
            crate::say!("{}: left in place on purpose by `{command}`; --all undoes it", leftover.what);
            continue;
        }
        found += 1;
        crate::say!("{}: left by `{command}`", leftover.what);
        if args.dry_run {
            leftover.steps().for_each(|step| crate::say!("  would {step}"));
            continue;
        }
        if let Err(UndoError::Left(more)) = leftover.restore(&mut |step, outcome| tell(step, outcome)) {
            failures.extend(more);
        }
    }
    Ok((found, failures))
}

fn tell(step: &Step, outcome: &io::Result<Outcome>) {
    match outcome {
        Ok(Outcome::Undone) => crate::say!("  {step}"),
        Ok(Outcome::Gone) => crate::say!("  {step}: nothing to do"),
        Ok(Outcome::Another) => crate::say!("  {step}: it is gone; another has its name, and stays"),
        Err(e) => crate::say!("  {step}: {e}"),
    }
}
