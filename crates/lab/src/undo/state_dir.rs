//! The folder of the journals.
//!
//! A journal is obeyed, so only its user may be able to make one: a folder that belongs to another
//! user, or that others may write to, is refused. That of root can be read by all users, who see
//! there what was left on a disk that they measure.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::UndoError;

/// That of root: in /run, which ends with the boot as most changes do.
pub(super) const OF_ROOT: &str = "/run/snowmelt-lab";

/// Where journals are kept: for root in /run; for others in the folder of XDG_RUNTIME_DIR where
/// there is one, else in that for temporary files.
pub fn state_dir() -> PathBuf {
    if geteuid().is_root() && Path::new("/run").is_dir() {
        return PathBuf::from(OF_ROOT);
    }
    in_runtime_dir(std::env::var_os("XDG_RUNTIME_DIR")).unwrap_or_else(in_temporary)
}

/// All folders in which this user's commands may have left journals: they run with and without a
/// session.
pub fn state_dirs() -> Vec<PathBuf> {
    let mut all = vec![state_dir()];
    // None of ours is in another user's folder.
    let other = Some(in_temporary()).filter(|dir| !geteuid().is_root() && check(dir).unwrap_or(false));
    all.extend(other);
    all.dedup();
    all
}

fn in_temporary() -> PathBuf {
    // A relative TMPDIR is another folder for each command.
    let temporary = Some(std::env::temp_dir()).filter(|dir| dir.is_absolute());
    temporary.unwrap_or("/tmp".into()).join(format!("snowmelt-lab-{}", geteuid().as_raw()))
}

/// The XDG Base Directory Specification wants an absolute path, of the user's own.
fn in_runtime_dir(named: Option<OsString>) -> Option<PathBuf> {
    let dir = PathBuf::from(named?);
    (dir.is_absolute() && refusal(&dir).is_ok_and(|why| why.is_none())).then(|| dir.join("snowmelt-lab"))
}

/// True when the folder is there, and a safe place for journals.
///
/// # Errors
/// Others can write into it, or it cannot be looked at.
pub fn check(dir: &Path) -> Result<bool, UndoError> {
    match refusal(dir) {
        Ok(None) => Ok(true),
        Ok(Some((why, remedy))) => Err(UndoError::Folder { path: dir.to_path_buf(), why, remedy }),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(UndoError::Journal { path: dir.to_path_buf(), cause }),
    }
}

/// Makes the folder where it is not there.
///
/// # Errors
/// It cannot be made, or others can write into it.
pub(super) fn make(dir: &Path) -> Result<(), UndoError> {
    if check(dir)? {
        return Ok(());
    }
    let mode = if geteuid().is_root() { 0o755 } else { 0o700 };
    let made = DirBuilder::new().recursive(true).mode(mode).create(dir);
    made.map_err(|cause| UndoError::Journal { path: dir.to_path_buf(), cause })?;
    check(dir).map(drop) // another may have made it just now
}

/// Why no journal in the folder can be trusted, if so, and what makes it good.
fn refusal(dir: &Path) -> io::Result<Option<(String, &'static str)>> {
    let meta = std::fs::symlink_metadata(dir)?;
    let (owner, user) = (meta.uid(), geteuid().as_raw());
    Ok(if !meta.is_dir() {
        Some(("it is no folder".into(), "remove it"))
    } else if owner != user {
        Some((format!("it belongs to user {owner}, not to {user}"), "have it removed"))
    } else {
        let remedy = "look at its journals, then `chmod go-w` it";
        (meta.mode() & 0o022 != 0).then(|| ("others may write to it".into(), remedy))
    })
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        assert!(!check(&state).unwrap());
        make(&state).unwrap();
        assert!(check(&state).unwrap());
        assert_eq!(std::fs::metadata(&state).unwrap().mode() & 0o022, 0);
        for mode in [0o770, 0o702] {
            std::fs::set_permissions(&state, Permissions::from_mode(mode)).unwrap();
            for error in [check(&state).unwrap_err(), make(&state).unwrap_err()] {
                assert!(error.to_string().contains("others may write to it"), "{error}");
            }
        }
        std::fs::set_permissions(&state, Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(&state, dir.path().join("link")).unwrap();
        assert!(check(&dir.path().join("link")).unwrap_err().to_string().contains("no folder"));
        if !geteuid().is_root() {
            return println!("skipped in part: only root can give a folder away");
        }
        std::os::unix::fs::chown(&state, Some(65_534), None).unwrap();
        let error = check(&state).unwrap_err().to_string();
        assert!(error.contains("belongs to user 65534"), "{error}");
    }

    #[test]
    fn the_folder_of_a_session_is_used_where_it_is_the_users_own() {
        let dir = tempfile::tempdir().unwrap();
        let named = |path: &Path| in_runtime_dir(Some(path.as_os_str().to_owned()));
        assert_eq!(named(dir.path()), Some(dir.path().join("snowmelt-lab")));
        assert_eq!(in_runtime_dir(None), None);
        assert_eq!(named(Path::new("relative")), None);
        assert_eq!(named(&dir.path().join("none")), None);
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        assert_eq!(named(dir.path()), None);
    }
}
