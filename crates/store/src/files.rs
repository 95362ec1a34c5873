//! The files of a database beside super-block and journal: stripes, lock, reserve.

pub(crate) mod beside;
pub(crate) mod block_stripe;
pub(crate) mod known;
pub(crate) mod lock;
pub(crate) mod owner;
pub(crate) mod reserve;
pub(crate) mod stripes;
pub(crate) mod watch;

use std::path::{Path, PathBuf};

/// Permissions of the folder of a database, and of its files: the owner's alone.
pub const PRIVATE_DIR: u32 = 0o700;
/// See [`PRIVATE_DIR`].
pub const PRIVATE_FILE: u32 = 0o600;

/// Where the stripe named `path` in the super-block is.
pub(crate) fn resolve(dir: &Path, path: &Path) -> PathBuf {
    if path.is_absolute() { path.to_path_buf() } else { dir.join(path) }
}
