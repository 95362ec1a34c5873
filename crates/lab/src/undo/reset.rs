//! Settings that the kernel resets when another one changes: a scheduler that is chosen anew begins
//! with its own tunables, its own number of requests, and write-back throttled as it sees fit.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Settings of a queue beside its scheduler, in the order in which they are journalled, which is
/// the reverse of setting them back: a number of requests changes the others.
const BESIDE: [&str; 3] = ["async_depth", "wbt_lat_usec", NR_REQUESTS];

/// Requests that a scheduler holds; of a queue without one, those at the device.
pub(super) const NR_REQUESTS: &str = "nr_requests";

/// The settings that are there and begin anew when this one is set; none for most.
pub(super) fn reset_by(setting: &Path) -> Vec<PathBuf> {
    let Some(queue) = queue_of(setting) else { return Vec::new() };
    let tunables = fs::read_dir(queue.join("iosched")).into_iter().flatten().flatten();
    let mut settings: Vec<PathBuf> = tunables.map(|entry| entry.path()).collect();
    settings.sort();
    settings.extend(BESIDE.map(|name| queue.join(name)));
    settings.retain(|path| can_be_set(path));
    settings
}

/// True when the setting at `path` begins anew with the one at `setting`.
pub(super) fn is_reset_by(path: &Path, setting: &Path) -> bool {
    let Some(queue) = queue_of(setting) else { return false };
    let folder = path.parent();
    folder == Some(&queue.join("iosched")) || BESIDE.iter().any(|name| path == queue.join(name))
}

/// The folder of a queue whose scheduler the setting is.
fn queue_of(setting: &Path) -> Option<&Path> {
    setting.parent().filter(|_| setting.ends_with("queue/scheduler"))
}

fn can_be_set(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o200 != 0)
}
