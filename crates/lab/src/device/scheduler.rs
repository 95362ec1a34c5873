//! Schedulers that a command sweeps: set before a cell, read back, set back in the end.
//!
//! A scheduler that is chosen anew begins with its own defaults, so it comes before its
//! tunables, and away from a scheduler and back is the way to forget the tunables of a cell
//! before. Those that the device had at the beginning are in the journal: it has them again in
//! the end, and in cells that are to have it as it is.

use std::path::PathBuf;
use std::str::FromStr;

use serde::Serialize;

use crate::LabError;
use crate::machine::{BlockDevice, active_scheduler};
use crate::undo::Undo;

/// A kernel scheduler, with the tunables that make it what it is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Scheduler {
    /// As asked: `bfq-anticipatory`, `mq-deadline:fifo_batch=1`.
    pub name: String,
    /// As the kernel calls it; nothing leaves the device as it is.
    pub kernel: Option<String>,
    /// Files in `queue/iosched/` and their values.
    pub tunables: Vec<(String, String)>,
}

impl FromStr for Scheduler {
    type Err = String;

    fn from_str(text: &str) -> Result<Scheduler, String> {
        let mut parts = text.split(':');
        let first = parts.next().unwrap_or_default();
        let mut tunables = Vec::new();
        let kernel = match first {
            AS_IS => None,
            // The closest living relative of the anticipatory scheduler: waits for the next
            // near read of the process just served.
            "bfq-anticipatory" => {
                tunables.push(("low_latency".to_string(), "0".to_string()));
                Some("bfq")
            }
            "" => {
                return Err(
                    "a scheduler has a name: none, mq-deadline, kyber, bfq, bfq-anticipatory or as-is".into(),
                );
            }
            other => Some(other),
        };
        for part in parts {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                format!("{part:?} is no tunable: write for example mq-deadline:fifo_batch=1:read_expire=100")
            })?;
            if name.is_empty() || name.contains('/') {
                return Err(format!("{name:?} is not the name of a tunable"));
            }
            tunables.push((name.to_string(), value.to_string()));
        }
        if kernel.is_none() && !tunables.is_empty() {
            return Err("tunables belong to a named scheduler".into());
        }
        Ok(Scheduler { name: text.to_string(), kernel: kernel.map(String::from), tunables })
    }
}

/// An entry of a list of schedulers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchedulerChoice {
    /// Each that the device offers.
    All,
    /// This one.
    One(Scheduler),
}

impl FromStr for SchedulerChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<SchedulerChoice, String> {
        match text.split_once(':') {
            None if text == "all" => Ok(SchedulerChoice::All),
            Some(("all", _)) => Err("tunables belong to one scheduler: all:… is none".into()),
            _ => text.parse().map(SchedulerChoice::One),
        }
    }
}

const AS_IS: &str = "as-is";

/// The schedulers of a list, each once. Beside others, as-is is the one that is active now: a
/// cell before would have left another.
///
/// # Errors
/// A device has no such scheduler, or its settings cannot be changed.
pub fn chosen(list: &[SchedulerChoice], devices: &[BlockDevice]) -> Result<Vec<Scheduler>, LabError> {
    let mut schedulers: Vec<Scheduler> = Vec::new();
    let offered = match list.contains(&SchedulerChoice::All) {
        true => offered_by_all(devices)?,
        false => Vec::new(),
    };
    for choice in list {
        let named = match choice {
            SchedulerChoice::One(scheduler) => vec![scheduler.clone()],
            SchedulerChoice::All => {
                let of = |name: &String| Scheduler {
                    name: name.clone(),
                    kernel: Some(name.clone()),
                    tunables: Vec::new(),
                };
                offered.iter().map(of).collect()
            }
        };
        for scheduler in named {
            if !schedulers.contains(&scheduler) {
                schedulers.push(scheduler);
            }
        }
    }
    check(&schedulers, devices)?;
    if schedulers.len() > 1 {
        for scheduler in schedulers.iter_mut().filter(|scheduler| scheduler.kernel.is_none()) {
            scheduler.kernel = Some(active(devices)?);
        }
    }
    Ok(schedulers)
}

/// The scheduler that all devices have now.
fn active(devices: &[BlockDevice]) -> Result<String, LabError> {
    let mut names: Vec<&str> = devices.iter().map(|device| device.scheduler.as_str()).collect();
    names.dedup();
    match names[..] {
        [name] => Ok(name.to_string()),
        _ => Err(LabError::refused(
            format!("{AS_IS} beside other schedulers"),
            format!("the devices differ: {}", names.join(", ")),
            "name the schedulers",
        )),
    }
}

/// Names that every device offers, in the order of the first.
fn offered_by_all(devices: &[BlockDevice]) -> Result<Vec<String>, LabError> {
    let Some((first, others)) = devices.split_first() else { return Err(no_device()) };
    let mut names = offered(first)?;
    for device in others {
        let its = offered(device)?;
        names.retain(|name| its.contains(name));
    }
    Ok(names)
}

fn offered(device: &BlockDevice) -> Result<Vec<String>, LabError> {
    let path = device.sys().join("queue/scheduler");
    let line = std::fs::read_to_string(&path).map_err(|e| LabError::file("read", &path, e))?;
    Ok(names_in(&line))
}

/// The names in a line such as `none [mq-deadline] kyber`.
fn names_in(line: &str) -> Vec<String> {
    line.split_whitespace().map(|name| name.trim_matches(['[', ']']).to_string()).collect()
}

fn no_device() -> LabError {
    LabError::refused(
        "changing a device's settings",
        "no block device can be seen below it (a file system in memory, over a network, or an overlay)",
        "leave out --scheduler and --read-ahead-kb, or name a file on a block device",
    )
}

/// Refuses to change settings where there is no device, or no right to.
///
/// # Errors
/// See above.
pub fn check_may_set(devices: &[BlockDevice]) -> Result<(), LabError> {
    if devices.is_empty() {
        return Err(no_device());
    }
    if !rustix::process::geteuid().is_root() {
        return Err(LabError::refused(
            "changing a device's settings",
            "needs root",
            "without --scheduler and --read-ahead-kb the run has the settings there are",
        ));
    }
    Ok(())
}

/// Refuses what this kernel or device does not offer, before anything is changed.
fn check(schedulers: &[Scheduler], devices: &[BlockDevice]) -> Result<(), LabError> {
    if schedulers.iter().all(|scheduler| scheduler.kernel.is_none()) {
        return Ok(());
    }
    check_may_set(devices)?;
    for device in devices {
        let offered = offered(device)?;
        let missing = |kernel: &&String| !offered.contains(kernel);
        if let Some(kernel) = schedulers.iter().filter_map(|s| s.kernel.as_ref()).find(missing) {
            return Err(LabError::refused(
                format!("scheduler {kernel} on {}", device.name),
                "this kernel or device does not offer it",
                format!("it offers {}", offered.join(", ")),
            ));
        }
    }
    Ok(())
}

/// A control file and the value it is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// In /sys.
    pub path: PathBuf,
    /// The value.
    pub value: String,
}

impl Scheduler {
    /// Its settings of one device, in order.
    pub fn settings(&self, device: &BlockDevice) -> Vec<Setting> {
        let queue = device.sys().join("queue");
        let Some(kernel) = &self.kernel else { return Vec::new() };
        let mut settings = vec![Setting { path: queue.join("scheduler"), value: kernel.clone() }];
        settings.extend(
            self.tunables.iter().map(|(name, value)| Setting {
                path: queue.join("iosched").join(name),
                value: value.clone(),
            }),
        );
        settings
    }

    /// Gives a device the scheduler, without the tunables of a cell before; as it was, with those
    /// of before the first cell.
    ///
    /// # Errors
    /// A setting is refused, or reads back otherwise.
    pub fn apply(&self, device: &BlockDevice, undo: &Undo) -> Result<(), LabError> {
        let path = device.sys().join("queue/scheduler");
        let now = std::fs::read_to_string(&path).unwrap_or_default();
        let again = self.kernel.as_deref().is_some_and(|kernel| kernel == active_scheduler(&now));
        if again && self.kernel.as_deref() != Some("none") {
            undo.set(&path, "none")?;
        }
        for setting in self.settings(device) {
            undo.set(&setting.path, &setting.value)?;
        }
        if self.name == AS_IS {
            undo.set_back_reset_by(&path)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_carry_their_tunables() {
        let parsed: Scheduler = "mq-deadline:fifo_batch=1:read_expire=100".parse().expect("well formed");
        assert_eq!(parsed.kernel.as_deref(), Some("mq-deadline"));
        assert_eq!(parsed.tunables[1], ("read_expire".to_string(), "100".to_string()));
        let anticipatory: Scheduler = "bfq-anticipatory".parse().expect("known");
        assert_eq!((anticipatory.kernel.as_deref(), anticipatory.tunables.len()), (Some("bfq"), 1));
        for bad in ["", "bfq:x", "as-is:x=1", "bfq:../x=1"] {
            assert!(bad.parse::<Scheduler>().is_err(), "{bad}");
        }
        assert!("all:x=1".parse::<SchedulerChoice>().is_err());
    }

    #[test]
    fn all_are_those_in_the_line_of_the_kernel() {
        assert_eq!("all".parse(), Ok(SchedulerChoice::All));
        assert_eq!(names_in("none [mq-deadline] kyber\n"), ["none", "mq-deadline", "kyber"]);
        let error = chosen(&[SchedulerChoice::All], &[]).expect_err("no device").to_string();
        assert!(error.contains("leave out --scheduler"), "{error}");
    }

    #[test]
    fn as_is_is_left_alone_and_one_of_devices_that_agree() {
        let one: SchedulerChoice = "as-is".parse().expect("known");
        let chosen = chosen(&[one.clone(), one], &[]).expect("nothing is set");
        assert_eq!((chosen.len(), &chosen[0].kernel), (1, &None));
        let with = |scheduler: &str| BlockDevice { scheduler: scheduler.into(), ..BlockDevice::default() };
        assert_eq!(active(&[with("bfq"), with("bfq")]).expect("they agree"), "bfq");
        let error = active(&[with("bfq"), with("none")]).expect_err("they differ").to_string();
        assert!(error.contains("bfq, none"), "{error}");
    }

    #[test]
    fn tunables_of_the_administrator_are_those_of_as_is_and_are_set_back() {
        let dir = tempfile::tempdir().unwrap();
        let undo = |what: &str| Undo::open_in(&dir.path().join("state"), what).unwrap();
        let (device_undo, sweep) = (undo("device"), undo("sweep"));
        let backing = dir.path().join("backing");
        std::fs::write(&backing, vec![1; 1 << 20]).unwrap();
        let attached = device_undo.attach_loop(&backing, &snowmelt_io::LoopOptions::default());
        let Ok((_, device)) = attached else { return println!("skipped: no loop devices here") };
        let look = || BlockDevice::find(&device).unwrap().unwrap();
        let queue = look().sys().join("queue");
        if !offered(&look()).unwrap().iter().any(|name| name == "mq-deadline") {
            return println!("skipped: this kernel has no mq-deadline");
        }
        device_undo.set(&queue.join("scheduler"), "mq-deadline").unwrap();
        let own = [("iosched/fifo_batch", "5"), ("iosched/read_expire", "400"), ("nr_requests", "77")];
        let read = |name: &str| std::fs::read_to_string(queue.join(name)).unwrap().trim().to_string();
        let usual = read("iosched/fifo_batch");
        own.iter().for_each(|(name, value)| std::fs::write(queue.join(name), value).unwrap());
        let has_own = || own.iter().all(|(name, value)| read(name) == *value);
        assert!(has_own(), "they can be set");
        let list = ["none", "as-is", "mq-deadline"].map(|name| name.parse().unwrap());
        let all = chosen(&list, &[look()]).unwrap();
        for round in 0..2 {
            all[0].apply(&look(), &sweep).unwrap();
            all[1].apply(&look(), &sweep).unwrap();
            assert!(has_own(), "round {round}");
            all[2].apply(&look(), &sweep).unwrap();
            assert_eq!(read("iosched/fifo_batch"), usual, "as the kernel chooses it");
        }
        sweep.undo().unwrap();
        assert_eq!(look().scheduler, "mq-deadline");
        assert!(has_own(), "set back in the end");
        device_undo.undo().unwrap();
    }

    #[test]
    fn as_is_beside_others_is_the_first_one_and_tunables_do_not_outlast_their_cell() {
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(&dir.path().join("state"), "test").unwrap();
        let backing = dir.path().join("backing");
        std::fs::write(&backing, vec![1; 1 << 20]).unwrap();
        let attached = undo.attach_loop(&backing, &snowmelt_io::LoopOptions::default());
        let Ok((_, device)) = attached else { return println!("skipped: no loop devices here") };
        let look = || BlockDevice::find(&device).unwrap().unwrap();
        if !offered(&look()).unwrap().iter().any(|name| name == "mq-deadline") {
            return println!("skipped: this kernel has no mq-deadline");
        }
        undo.set(&look().sys().join("queue/scheduler"), "mq-deadline").unwrap();
        let list = ["none", "as-is", "mq-deadline:fifo_batch=3"].map(|name| name.parse().unwrap());
        let all = chosen(&list, &[look()]).unwrap();
        let kernel: Vec<_> = all.iter().map(|scheduler| scheduler.kernel.as_deref()).collect();
        assert_eq!(kernel, [Some("none"), Some("mq-deadline"), Some("mq-deadline")]);
        let batch = || std::fs::read_to_string(look().sys().join("queue/iosched/fifo_batch")).unwrap();
        let usual = batch();
        all[2].apply(&look(), &undo).unwrap();
        assert_eq!(batch().trim(), "3");
        all[1].apply(&look(), &undo).unwrap();
        assert_eq!(batch(), usual);
        all[0].apply(&look(), &undo).unwrap();
        assert_eq!(look().scheduler, "none");
        undo.undo().unwrap();
    }
}
