//! The folder of the journals.

use std::path::{Path, PathBuf};

/// Where journals are kept: in /run, which ends with the boot as most changes do; without root
/// in the folder for temporary files.
pub fn state_dir() -> PathBuf {
    let user = rustix::process::geteuid();
    match user.is_root() && Path::new("/run").is_dir() {
        true => PathBuf::from("/run/snowmelt-lab"),
        false => std::env::temp_dir().join(format!("snowmelt-lab-{}", user.as_raw())),
    }
}
