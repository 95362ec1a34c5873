//! The devices' settings for a setup: set with a journal, read back.

use std::path::{Path, PathBuf};

use super::plan::{Scheduler, Setup};
use crate::LabError;
use crate::machine::{BlockDevice, active_scheduler};
use crate::undo::Undo;

/// A control file and the value it is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// In /sys.
    pub path: PathBuf,
    /// The value.
    pub value: String,
}

/// Settings of a setup, in order: the scheduler first, because it brings its tunables with it.
pub fn of(setup: &Setup, devices: &[BlockDevice]) -> Vec<Setting> {
    let mut settings = Vec::new();
    for device in devices {
        let queue = device.sys().join("queue");
        let mut set = |path: PathBuf, value: &str| settings.push(Setting { path, value: value.to_string() });
        if let Some(kernel) = &setup.scheduler.kernel {
            set(queue.join("scheduler"), kernel);
            for (name, value) in &setup.scheduler.tunables {
                set(queue.join("iosched").join(name), value);
            }
        }
        if let Some(kb) = setup.read_ahead_kb {
            set(queue.join("read_ahead_kb"), &kb.to_string());
        }
    }
    settings
}

/// Sets them, and reads each back. A scheduler that is chosen anew begins with its own
/// defaults.
///
/// # Errors
/// A setting is refused, or reads back otherwise.
pub fn apply(setup: &Setup, devices: &[BlockDevice], undo: &Undo) -> Result<(), LabError> {
    for device in devices {
        let path = device.sys().join("queue/scheduler");
        let now = std::fs::read_to_string(&path).unwrap_or_default();
        let wanted = setup.scheduler.kernel.as_deref();
        if wanted.is_some_and(|wanted| wanted == active_scheduler(&now) && wanted != "none") {
            undo.set(&path, "none")?; // forget the tunables of the setup before
        }
    }
    for setting in of(setup, devices) {
        undo.set(&setting.path, &setting.value)?;
    }
    Ok(())
}

/// Refuses what this kernel, this device or this user cannot do, before anything is changed.
///
/// # Errors
/// A device has no such scheduler, tunable or read-ahead.
pub fn check(schedulers: &[Scheduler], read_ahead: &[u64], devices: &[BlockDevice]) -> Result<(), LabError> {
    let changes = !read_ahead.is_empty() || schedulers.iter().any(|s| s.kernel.is_some());
    if !changes {
        return Ok(());
    }
    if devices.is_empty() {
        return Err(LabError::refused(
            "changing a device's settings",
            "no block device is behind the table (a file system in memory, over a network, or an overlay)",
            "leave out --scheduler and --read-ahead-kb, or name a table on a block device",
        ));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(LabError::refused(
            "changing a device's settings",
            "needs root",
            "without --scheduler and --read-ahead-kb the sweep runs with the settings there are",
        ));
    }
    for device in devices {
        let path = device.sys().join("queue/scheduler");
        let offered = std::fs::read_to_string(&path).map_err(|e| LabError::file("read", &path, e))?;
        let offered: Vec<&str> = offered.split_whitespace().map(|s| s.trim_matches(['[', ']'])).collect();
        for scheduler in schedulers {
            if let Some(kernel) = scheduler.kernel.as_deref().filter(|kernel| !offered.contains(kernel)) {
                return Err(LabError::refused(
                    format!("scheduler {kernel} on {}", device.name),
                    "this kernel or device does not offer it",
                    format!("it offers {}", offered.join(", ")),
                ));
            }
        }
    }
    Ok(())
}

/// Lines of a dry run: each file with the value it has and those it would get.
pub fn describe(setups: &[Setup], devices: &[BlockDevice]) -> Vec<String> {
    let mut files: Vec<(PathBuf, Vec<String>)> = Vec::new();
    for setting in setups.iter().flat_map(|setup| of(setup, devices)) {
        match files.iter_mut().find(|(path, _)| *path == setting.path) {
            Some((_, values)) if values.contains(&setting.value) => {}
            Some((_, values)) => values.push(setting.value),
            None => files.push((setting.path, vec![setting.value])),
        }
    }
    let now = |path: &Path| match std::fs::read_to_string(path) {
        Ok(text) => format!("now {}", active_scheduler(&text)),
        Err(_) => "not there under the scheduler of now".to_string(),
    };
    files
        .iter()
        .map(|(path, values)| format!("{} ({}) to {}", path.display(), now(path), values.join(", ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Beside, Data, Layout, Workers};
    use super::*;
    use crate::run::arguments::OnOff;

    #[test]
    fn the_scheduler_comes_before_its_tunables() {
        let setup = Setup {
            scheduler: "bfq-anticipatory".parse().expect("known"),
            read_ahead_kb: Some(0),
            direct: OnOff::On,
            workers: Workers::Independent,
            chunks: "128k".parse().expect("a size"),
            layout: Layout::Single,
            users: 1,
            data: Data::Same,
            beside: Beside::Nothing,
            queue: None,
        };
        let device = BlockDevice { name: "sdx".into(), ..BlockDevice::default() };
        let files: Vec<_> = of(&setup, std::slice::from_ref(&device))
            .into_iter()
            .map(|s| (s.path.to_string_lossy().into_owned(), s.value))
            .collect();
        let want = [
            ("/sys/block/sdx/queue/scheduler", "bfq"),
            ("/sys/block/sdx/queue/iosched/low_latency", "0"),
            ("/sys/block/sdx/queue/read_ahead_kb", "0"),
        ];
        assert_eq!(files, want.map(|(path, value)| (path.to_string(), value.to_string())));
        let error = check(&[setup.scheduler], &[], &[]).expect_err("no device").to_string();
        assert!(error.contains("leave out --scheduler"), "{error}");
    }
}
