//! `snowmelt-lab restore`: undoes what commands that were killed left behind.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::device;
use crate::target::held::shown_holder;
use crate::undo::{
    self, Leftover, Outcome, Step, UNMOUNT_PATIENCE, UndoError, is_trusted, left_by_root, leftovers,
    state_dirs,
};

/// For another `restore`: more than one of its steps takes, as most steps take no time.
const PATIENCE: Duration = UNMOUNT_PATIENCE.saturating_mul(2);

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
    if found == 0 && of_root.is_empty() && failures.is_empty() {
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
    // Else its owner could keep us waiting.
    if !is_trusted(dir)? {
        return Ok((found, failures));
    }
    let _turn = match args.dry_run {
        true => None,
        false => match turn(dir, PATIENCE) {
            Err(UndoError::Left(why)) => return Ok((found, why)),
            taken => taken?,
        },
    };
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

/// The turn of this command to restore what is in a folder, until it is dropped: two at once would
/// take away each other's steps. Nothing where there is no folder.
fn turn(dir: &Path, patience: Duration) -> Result<Option<File>, UndoError> {
    let waits = || crate::tell!("waiting for {}, which restores", shown_holder(dir));
    match undo::turn(dir, patience, waits) {
        Ok(Some(turn)) => Ok(Some(turn)),
        Ok(None) => Err(UndoError::Left(vec![format!(
            "what is left in {} ({} restores there and has not ended within {} s: wait for it, or end it)",
            dir.display(),
            shown_holder(dir),
            patience.as_secs()
        )])),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(UndoError::Journal { path: dir.to_path_buf(), cause }),
    }
}

fn tell(step: &Step, outcome: &io::Result<Outcome>) {
    match outcome {
        Ok(Outcome::Undone) => crate::say!("  {step}"),
        Ok(Outcome::Gone) => crate::say!("  {step}: nothing to do"),
        Ok(Outcome::Another) => crate::say!("  {step}: it is gone; another has its name, and stays"),
        Ok(Outcome::Unknown) => crate::say!(
            "  {step}: stays, as it may be another's by now (no time of birth is kept there); see whether you need it"
        ),
        Err(e) => crate::say!("  {step}: {e}"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn nothing_is_restored_while_another_restores() {
        let dir = tempfile::tempdir().unwrap();
        let first = turn(dir.path(), Duration::ZERO).unwrap();
        assert!(first.is_some());
        let refused = turn(dir.path(), Duration::ZERO).unwrap_err().to_string();
        assert!(refused.contains("restores there and has not ended"), "{refused}");
        // A folder of others is refused before its owner could keep us waiting.
        let args = RestoreArgs { dry_run: false, all: false, state: None };
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let refused = restore_in(dir.path(), &args).unwrap_err().to_string();
        assert!(refused.contains("others may write to it"), "{refused}");
        drop(first);
        assert!(turn(dir.path(), Duration::from_secs(60)).unwrap().is_some());
        assert!(turn(&dir.path().join("none"), PATIENCE).unwrap().is_none(), "there is nothing to restore");
    }
}
