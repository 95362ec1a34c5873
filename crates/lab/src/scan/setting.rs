//! The devices' settings for a setup: set with a journal, read back.

use std::path::{Path, PathBuf};

use super::plan::Setup;
use crate::LabError;
use crate::device::scheduler::{Setting, check_may_set};
use crate::machine::{BlockDevice, active_scheduler};
use crate::undo::Undo;

/// Settings of a setup, in order: the scheduler first, because it changes the read-ahead.
pub fn list(setup: &Setup, devices: &[BlockDevice]) -> Vec<Setting> {
    let of_one = |device: &BlockDevice| {
        let mut settings = setup.scheduler.settings(device);
        settings.extend(read_ahead(setup, device));
        settings
    };
    devices.iter().flat_map(of_one).collect()
}

fn read_ahead(setup: &Setup, device: &BlockDevice) -> Option<Setting> {
    let path = device.sys().join("queue/read_ahead_kb");
    setup.read_ahead_kb.map(|kb| Setting { path, value: kb.to_string() })
}

/// Sets them, and reads each back.
///
/// # Errors
/// A setting is refused, or reads back otherwise.
pub fn apply(setup: &Setup, devices: &[BlockDevice], undo: &Undo) -> Result<(), LabError> {
    for device in devices {
        setup.scheduler.apply(device, undo)?;
        if let Some(setting) = read_ahead(setup, device) {
            undo.set(&setting.path, &setting.value)?;
        }
    }
    Ok(())
}

/// Refuses a read-ahead that cannot be set, before anything is changed.
///
/// # Errors
/// There is no device, or no right to change it.
pub fn check(read_ahead: &[u64], devices: &[BlockDevice]) -> Result<(), LabError> {
    if read_ahead.is_empty() { Ok(()) } else { check_may_set(devices) }
}

/// Lines of a dry run: each file with the value it has and those it would get.
pub fn describe(setups: &[Setup], devices: &[BlockDevice]) -> Vec<String> {
    let mut files: Vec<(PathBuf, Vec<String>)> = Vec::new();
    for setting in setups.iter().flat_map(|setup| list(setup, devices)) {
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
            reads: None,
            layout: Layout::Single,
            users: 1,
            data: Data::Same,
            beside: Beside::Nothing,
            queue: None,
        };
        let device = BlockDevice { name: "sdx".into(), ..BlockDevice::default() };
        let files: Vec<_> = list(&setup, std::slice::from_ref(&device))
            .into_iter()
            .map(|s| (s.path.to_string_lossy().into_owned(), s.value))
            .collect();
        let want = [
            ("/sys/block/sdx/queue/scheduler", "bfq"),
            ("/sys/block/sdx/queue/iosched/low_latency", "0"),
            ("/sys/block/sdx/queue/read_ahead_kb", "0"),
        ];
        assert_eq!(files, want.map(|(path, value)| (path.to_string(), value.to_string())));
        let error = check(&[0], &[]).expect_err("no device").to_string();
        assert!(error.contains("leave out --scheduler"), "{error}");
    }
}
