//! Knowledge of a stripe's disk before the first read, and the file in which it is kept.
//!
//! Beside each stripe, of a block device in the database's directory:
//!
//! | file | has |
//! |---|---|
//! | `STRIPE.profile.json` | what a probe has measured |
//! | `STRIPE.learned` | what the work has taught: see `KeptModel` |
//!
//! The later of the two counts, and what was learned counts only on the disk and the machine it is
//! of. Both are advice: a file that cannot be used costs a line in the log, never an answer.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::OFlags;
use snowmelt_io::{
    CostSource, DiskIdentity, Hints, KeptModel, KernelFiles, Prior, ProbedReads, Profile, is_block_device,
};

use crate::error::{Result, StoreError};
use crate::settings::config::DiskHints;
use crate::settings::opener::Directory;

/// Ends of the names.
pub(crate) const PROFILE: &str = ".profile.json";
/// See [`PROFILE`].
pub(crate) const LEARNED: &str = ".learned";
/// While it is written.
pub(crate) const NEW_LEARNED: &str = ".learned.new";

/// Where a probe of a stripe's device leaves its profile: beside the stripe, of a block device
/// in the database's directory.
pub fn profile_path(dir: &Path, number: usize, stripe: &Path) -> PathBuf {
    beside(dir, number, stripe, PROFILE)
}

/// Where what the work teaches about a stripe's device is kept, as [`profile_path`].
pub fn learned_path(dir: &Path, number: usize, stripe: &Path) -> PathBuf {
    beside(dir, number, stripe, LEARNED)
}

fn beside(dir: &Path, number: usize, stripe: &Path, end: &str) -> PathBuf {
    let stripe = if is_block_device(stripe) { dir.join(format!("stripe-{number}")) } else { stripe.into() };
    with_end(&stripe, end)
}

fn with_end(name: &Path, end: &str) -> PathBuf {
    let mut name = name.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// See the head of the file.
#[derive(Default)]
pub(crate) struct Known {
    /// Costs to begin with.
    pub prior: Option<Prior>,
    /// Times of reads as a probe measured them.
    pub probed: Option<ProbedReads>,
    /// The disk.
    pub disk: Option<DiskIdentity>,
    /// Lines about what was found and is not used.
    pub doubts: Vec<String>,
}

impl Known {
    /// Finds what is known of the stripe at `path`, of the database in `dir`.
    pub fn find(kernel: &KernelFiles, dir: &Path, number: usize, path: &Path, hints: DiskHints) -> Known {
        let mut doubts = Vec::new();
        let found = Hints::find(kernel, path);
        let disk = found.disk.clone();
        let (profile_at, learned_at) = (profile_path(dir, number, path), learned_path(dir, number, path));
        let profile = kept_profile(&profile_at, &mut doubts);
        let (found, learned) = match hints {
            DiskHints::Hidden => (found.hidden(), None),
            DiskHints::Used => (found, usable_model(&learned_at, disk.as_ref(), &mut doubts)),
        };
        let counts = |model: &KeptModel| profile.is_none() || is_later(model, &profile_at);
        let measured = match (learned.filter(counts), &profile) {
            (Some(model), _) => Some(Prior {
                cost: model.cost,
                source: CostSource::Kept,
                why: format!("learned by an earlier run ({})", learned_at.display()),
            }),
            (None, Some(profile)) => Some(Prior {
                cost: profile.cost,
                source: CostSource::Probed,
                why: format!("measured by a probe ({})", profile_at.display()),
            }),
            (None, None) => None,
        };
        Known { prior: found.prior(measured), probed: profile.map(|profile| profile.reads), disk, doubts }
    }
}

/// The model that an earlier run has learned of a stripe's disk, as the next opening finds it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LearnedBefore {
    /// The model, if it is of this disk.
    pub model: Option<KeptModel>,
    /// It was learned after the last probe, so that it counts.
    pub is_latest: bool,
    /// Why what was found is not used.
    pub doubt: Option<String>,
}

impl LearnedBefore {
    /// Finds the model of a stripe of the database in `dir`.
    pub fn find(kernel: &KernelFiles, dir: &Path, number: usize, stripe: &Path) -> LearnedBefore {
        let (mut doubts, disk) = (Vec::new(), Hints::find(kernel, stripe).disk);
        let model = usable_model(&learned_path(dir, number, stripe), disk.as_ref(), &mut doubts);
        let profile = profile_path(dir, number, stripe);
        let is_latest = model.as_ref().is_some_and(|model| is_later(model, &profile));
        LearnedBefore { model, is_latest, doubt: doubts.pop() }
    }
}

/// True when a model was learned after a probe. One of the future was not: the clock was wrong,
/// and no probe would count until it comes.
fn is_later(model: &KeptModel, profile: &Path) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now_s = now.map_or(0, |since| since.as_secs());
    (probed_at(profile) + 1..=now_s).contains(&model.unix_s)
}

/// When a profile was written, in seconds since 1970; 0 when there is none.
fn probed_at(path: &Path) -> u64 {
    let written = std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let since = written.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_secs())
}

/// Profile of a stripe's device, if it was probed and left this file. A profile that cannot be
/// read only makes reads slower, never wrong.
fn kept_profile(path: &Path, doubts: &mut Vec<String>) -> Option<Profile> {
    if !path.exists() {
        return None;
    }
    match Profile::load_kept(path) {
        Ok(profile) => Some(profile),
        Err(error) => {
            doubts.push(format!("{error}; going on with default costs: probe the device again"));
            None
        }
    }
}

/// The model in a file; `None` when there is none.
///
/// # Errors
/// The reason why it cannot be used, in words.
pub(crate) fn kept_model(path: &Path) -> std::result::Result<Option<KeptModel>, String> {
    match read_bounded(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
        Ok(bytes) => KeptModel::decode(&bytes).map(Some).map_err(|why| why.to_string()),
    }
}

/// Reads no more bytes than such a file has: something else may have its name.
fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    const MOST_BYTES: u64 = 64 << 10;
    // A pipe of that name is not waited for.
    let nonblock = OFlags::NONBLOCK.bits() as i32;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(nonblock).open(path)?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The kept model, if it is of `disk`. One that cannot be used is reported in `doubts`.
fn usable_model(path: &Path, disk: Option<&DiskIdentity>, doubts: &mut Vec<String>) -> Option<KeptModel> {
    let model = match kept_model(path) {
        Ok(model) => model?,
        Err(why) => {
            let path = path.display();
            doubts
                .push(format!("{path}: what was learned of the disk is not used: {why}; it is learned anew"));
            return None;
        }
    };
    let why = match disk {
        None => "it is not known which disk this is",
        Some(disk) => match disk.difference(&model.disk) {
            None => return Some(model),
            Some(why) => why,
        },
    };
    let (path, then, cost) = (path.display(), model.disk.describe(), &model.cost);
    let now = disk.map_or_else(String::new, |disk| format!("; this is {}", disk.describe()));
    doubts.push(format!(
        "{path}: what was learned of {then} ({} requests/s, {} MB/s) is not used: {why}{now}",
        1_000_000_000 / cost.ns_per_request,
        cost.bytes_per_s / 1_000_000
    ));
    None
}

/// Writes what was learned of a stripe in `dir`, where it is called `name`.
pub(crate) fn keep(dir: &Directory, name: &Path, model: &KeptModel) -> Result<()> {
    let (new, kept) = (with_end(name, NEW_LEARNED), with_end(name, LEARNED));
    // A pipe of that name is not waited for.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let replace = || {
        let folder = dir.folder()?;
        folder.open_file(&new, flags)?.write_all(&model.encode())?;
        folder.rename(&new, &kept)
    };
    replace().map_err(StoreError::file(&dir.join(&kept), "keep what was learned of the disk"))
}

#[cfg(test)]
mod tests {
    use snowmelt_io::CostModel;

    use super::*;

    struct Setting {
        dir: tempfile::TempDir,
        stripe: PathBuf,
    }

    impl Setting {
        fn new() -> Setting {
            let dir = tempfile::tempdir().unwrap();
            let stripe = dir.path().join("stripe-0");
            std::fs::write(&stripe, b"").unwrap();
            Setting { dir, stripe }
        }

        fn kernel(&self) -> KernelFiles {
            KernelFiles::real()
        }

        fn known(&self, hints: DiskHints) -> Known {
            Known::find(&self.kernel(), self.dir.path(), 0, &self.stripe, hints)
        }

        /// Knowledge of the disk without any file.
        fn bare(&self) -> (Option<Prior>, DiskIdentity) {
            let hints = Hints::find(&self.kernel(), &self.stripe);
            (hints.prior(None), hints.disk.expect("every file lies on something"))
        }

        fn keep(&self, model: &KeptModel) {
            let dir = Directory::open(self.dir.path(), None).unwrap();
            keep(&dir, Path::new("stripe-0"), model).unwrap();
        }

        fn model(&self) -> KeptModel {
            KeptModel::new(CostModel::capped(2_000_000, 700.0, 9e6), [1.0, 0.5], 40, self.bare().1)
        }

        fn probe(&self, cost: CostModel) -> PathBuf {
            let profile = serde_json::json!({
                "path": "", "file": "", "len_bytes": 1, "engine": "uring", "direct": true,
                "random": [], "sequential": [], "cost": cost, "doubts": [],
            });
            let path = profile_path(self.dir.path(), 0, &self.stripe);
            std::fs::write(&path, profile.to_string()).unwrap();
            path
        }
    }

    fn source(known: &Known) -> Option<CostSource> {
        known.prior.as_ref().map(|prior| prior.source)
    }

    #[test]
    fn what_was_learned_is_what_the_next_run_begins_with() {
        let at = Setting::new();
        let model = at.model();
        at.keep(&model);
        let known = at.known(DiskHints::Used);
        // Caps of this machine's own cgroup may bound it.
        let prior = known.prior.unwrap();
        assert!(prior.cost.ns_per_request >= model.cost.ns_per_request && known.doubts.is_empty());
        assert!(prior.why.contains("stripe-0.learned"), "{}", prior.why);
        let hidden = at.known(DiskHints::Hidden);
        assert_ne!(source(&hidden), Some(CostSource::Kept));
        assert!(hidden.doubts.is_empty(), "what is hidden is not looked at");
        use std::os::unix::fs::PermissionsExt;
        let kept = learned_path(at.dir.path(), 0, &at.stripe);
        assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600, "its owner's alone");
        assert!(!with_end(&at.stripe, NEW_LEARNED).exists());
    }

    #[test]
    fn the_later_of_a_probe_and_what_was_learned_counts() {
        let at = Setting::new();
        let probed = at.probe(CostModel::hdd());
        let written = |path: &Path, s: u64| {
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(s);
            std::fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
        };
        let model = at.model();
        at.keep(&model);
        written(&probed, model.unix_s - 10);
        let cost = |known: Known| known.prior.unwrap().cost.latency_ns;
        assert_eq!(cost(at.known(DiskHints::Used)), model.cost.latency_ns);
        assert_eq!(cost(at.known(DiskHints::Hidden)), CostModel::hdd().latency_ns, "a probe is no hint");
        let mut ahead = model.clone();
        ahead.unix_s += 86_400;
        at.keep(&ahead);
        assert_eq!(cost(at.known(DiskHints::Used)), CostModel::hdd().latency_ns, "of a clock that was ahead");
        at.keep(&model);
        written(&probed, model.unix_s + 10);
        assert_eq!(cost(at.known(DiskHints::Used)), CostModel::hdd().latency_ns);
        assert!(at.known(DiskHints::Used).probed.is_some());
    }

    #[test]
    fn what_is_of_another_disk_or_damaged_costs_a_line_and_no_more() {
        let at = Setting::new();
        let (bare, disk) = at.bare();
        let kept = learned_path(at.dir.path(), 0, &at.stripe);
        let other_machine = DiskIdentity { machine: "another".into(), ..disk.clone() };
        let other_disk = DiskIdentity { model: "another".into(), ..disk.clone() };
        for (disk, why) in [(other_machine, "another machine"), (other_disk, "another disk")] {
            let mut model = at.model();
            model.disk = disk;
            at.keep(&model);
            let known = at.known(DiskHints::Used);
            assert_eq!((&known.prior, known.doubts.len()), (&bare, 1));
            let line = &known.doubts[0];
            assert!(line.contains(why) && line.contains("700 requests/s"), "{line}");
        }
        at.keep(&at.model());
        let good = std::fs::read(&kept).unwrap();
        let cut = &good[..good.len() / 2];
        let long = good.repeat(1000);
        for bad in [&b""[..], cut, &long, b"\xff\xfe", b"{}\n0\n"] {
            std::fs::write(&kept, bad).unwrap();
            let known = at.known(DiskHints::Used);
            assert_eq!(known.prior, bare);
            assert!(known.doubts.len() == 1 && known.doubts[0].contains("damaged"), "{:?}", known.doubts);
        }
        std::fs::remove_file(&kept).unwrap();
        std::fs::create_dir(&kept).unwrap();
        let known = at.known(DiskHints::Used);
        assert_eq!((known.prior, known.doubts.len()), (bare, 1), "a folder of that name");
    }

    #[test]
    fn whatever_has_the_names_of_these_files_is_passed_by() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        type Thing = (&'static str, fn(&Path));
        let of_kinds: [Thing; 5] = [
            ("a pipe", |path| mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap()),
            ("a folder", |path| std::fs::create_dir(path).unwrap()),
            ("a link to itself", |path| std::os::unix::fs::symlink(path, path).unwrap()),
            ("an endless file", |path| std::os::unix::fs::symlink("/dev/zero", path).unwrap()),
            ("a huge one", |path| std::fs::File::create(path).unwrap().set_len(1 << 40).unwrap()),
        ];
        let (done, all_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for (what, make) in of_kinds {
                for end in [PROFILE, LEARNED, NEW_LEARNED] {
                    let at = Setting::new();
                    let bare = at.bare().0;
                    make(&with_end(&at.stripe, end));
                    let known = at.known(DiskHints::Used);
                    assert_eq!(known.prior, bare, "{what} as {end}");
                    assert!(known.doubts.len() <= 1, "{what} as {end}: {:?}", known.doubts);
                    let dir = Directory::open(at.dir.path(), None).unwrap();
                    let _ = keep(&dir, Path::new("stripe-0"), &at.model());
                }
            }
            done.send(()).unwrap();
        });
        all_done.recv_timeout(std::time::Duration::from_secs(60)).expect("none is waited for");
    }
}
