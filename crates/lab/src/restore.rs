//! `snowmelt-lab restore`: undoes what commands that were killed left behind.

use std::io;
use std::path::{Path, PathBuf};

use crate::device;
use crate::undo::{Outcome, Step, UndoError, leftovers, state_dir};

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
    /// Folder of the journals (default /run/snowmelt-lab; without root a folder for temporary
    /// files)
    #[arg(long)]
    pub state: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// The journals cannot be read, or something could not be undone.
pub fn run(args: &RestoreArgs) -> Result<(), UndoError> {
    let dir = args.state.clone().unwrap_or_else(state_dir);
    let failures = restore_in(&dir, args)?;
    if failures.is_empty() { Ok(()) } else { Err(UndoError::Left(failures)) }
}

fn restore_in(dir: &Path, args: &RestoreArgs) -> Result<Vec<String>, UndoError> {
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
    if found == 0 {
        crate::say!("nothing was left behind");
    }
    Ok(failures)
}

fn tell(step: &Step, outcome: &io::Result<Outcome>) {
    match outcome {
        Ok(Outcome::Undone) => crate::say!("  {step}"),
        Ok(Outcome::Gone) => crate::say!("  {step}: nothing to do"),
        Err(e) => crate::say!("  {step}: {e}"),
    }
}
