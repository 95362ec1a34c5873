//! Knowledge of a disk before its first request, from a few files of `/proc` and `/sys`.
//!
//! | part | tells |
//! |---|---|
//! | `disk` | which disk is below a file, and its identity |
//! | `caps` | how much of it the cgroups of this process may use |
//! | `names` | what clouds call their volumes, and what the kernel takes a disk for |
//! | `kept` | the model that an earlier run has learned |
//!
//! Learning begins with these hints, and drops them as soon as completions contradict them.

pub(crate) mod caps;
pub(crate) mod disk;
pub(crate) mod kept;
pub(crate) mod names;

use std::path::Path;

use crate::cost::{CostModel, CostSource};
use caps::ReadCaps;
use disk::DiskIdentity;

use crate::system::kernel_files::KernelFiles;

/// Costs to begin with, and where they are from.
#[derive(Debug, Clone, PartialEq)]
pub struct Prior {
    /// The costs.
    pub cost: CostModel,
    /// The strongest of their sources.
    pub source: CostSource,
    /// The source in words.
    pub why: String,
}

/// Hints about the disk below a file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hints {
    /// The disk; `None` when the kernel does not say.
    pub disk: Option<DiskIdentity>,
    /// Caps of the own cgroup.
    pub caps: ReadCaps,
    /// Costs by the name that a cloud has given it.
    pub named: Option<(CostModel, String)>,
    /// Costs by its kind.
    pub kind: Option<(CostModel, String)>,
}

impl Hints {
    /// About the disk below `path`, or the block device there.
    pub fn find(kernel: &KernelFiles, path: &Path) -> Hints {
        let disk = disk::disk_of(kernel, path);
        let carrier = disk.as_ref().and_then(|disk| disk.carrier());
        Hints {
            disk: disk::identity(kernel, path, disk.as_ref()),
            caps: disk.as_ref().map(|disk| caps::caps_of(kernel, disk)).unwrap_or_default(),
            named: carrier.and_then(names::of_cloud),
            kind: carrier.and_then(names::of_kind).map(|(cost, why)| (cost, why.to_owned())),
        }
    }

    /// The hints without those that `--no-hints` hides: caps and names that say what a volume can
    /// do.
    pub fn hidden(self) -> Hints {
        Hints { caps: ReadCaps::default(), named: None, ..self }
    }

    /// The costs that learning begins with: those measured on this disk if there are any, else
    /// those of its name, else those of its kind; never above the caps of the own cgroup.
    pub fn prior(&self, measured: Option<Prior>) -> Option<Prior> {
        let hint = |(cost, why): (CostModel, String)| Prior { cost, source: CostSource::Hint, why };
        let told = || self.named.clone().or_else(|| self.kind.clone()).map(hint);
        let begin = measured.or_else(told);
        if self.caps.is_none() {
            return begin;
        }
        let assumed =
            || Prior { cost: CostModel::ssd(), source: CostSource::Assumed, why: "nothing is known".into() };
        let begin = begin.unwrap_or_else(assumed);
        let cost = begin.cost.behind_caps(self.caps.requests, self.caps.bytes);
        if cost == begin.cost {
            return Some(begin);
        }
        let why = format!("{}; caps of the own cgroup", begin.why);
        Some(Prior { cost, source: CostSource::Hint, why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::kernel_files::planted;

    fn hints(caps: ReadCaps, named: Option<CostModel>, kind: Option<CostModel>) -> Hints {
        let with = |cost, why: &str| (cost, why.to_owned());
        Hints {
            disk: None,
            caps,
            named: named.map(|cost| with(cost, "name")),
            kind: kind.map(|cost| with(cost, "kind")),
        }
    }

    #[test]
    fn what_was_measured_counts_before_names_and_these_before_kinds() {
        let (gp3, none) = (CostModel::capped(1_000_000, 3e3, 1e8), ReadCaps::default());
        let all = hints(none, Some(gp3), Some(CostModel::nvme()));
        let kept = Prior { cost: CostModel::network(), source: CostSource::Kept, why: "kept".into() };
        assert_eq!(all.prior(Some(kept.clone())), Some(kept));
        let named = all.prior(None).unwrap();
        assert_eq!((named.cost, named.source, named.why.as_str()), (gp3, CostSource::Hint, "name"));
        let hidden = all.clone().hidden().prior(None).unwrap();
        assert_eq!((hidden.cost, hidden.why.as_str()), (CostModel::nvme(), "kind"));
        assert_eq!(hints(none, None, None).prior(None), None);
    }

    #[test]
    fn caps_bound_every_prior() {
        let caps = ReadCaps { requests: Some(3_000), bytes: None };
        let nvme = hints(caps, None, Some(CostModel::nvme())).prior(None).unwrap();
        assert_eq!((nvme.cost.ns_per_request, nvme.cost.bytes_per_s), (333_333, 3_000_000_000));
        assert!(nvme.why.contains("kind") && nvme.why.contains("cgroup"), "{nvme:?}");
        let nothing = hints(caps, None, None).prior(None).unwrap();
        assert_eq!((nothing.cost.ns_per_request, nothing.source), (333_333, CostSource::Hint));
        let slower = Prior { cost: CostModel::hdd(), source: CostSource::Probed, why: "a probe".into() };
        assert_eq!(hints(caps, None, None).prior(Some(slower.clone())), Some(slower));
        assert_eq!(hints(caps, None, None).hidden().prior(None), None);
    }

    #[test]
    fn a_capped_volume_of_a_cloud_is_known_from_its_files() {
        let (_dir, kernel) = planted(&[
            ("proc/self/mountinfo", "27 1 259:0 / / rw - ext4 /dev/root rw"),
            ("proc/self/cgroup", "0::/db"),
            ("sys/fs/cgroup/db/io.max", "259:0 rbps=max wbps=max riops=1000 wiops=max"),
            ("sys/dev/block/259:0/dev", "259:0"),
            ("sys/dev/block/259:0/device/model", "Amazon Elastic Block Store"),
        ]);
        let hints = Hints::find(&kernel, Path::new("/no-such-file"));
        let prior = hints.prior(None).unwrap();
        assert_eq!((prior.cost.ns_per_request, prior.cost.bytes_per_s), (1_000_000, 125 << 20));
        assert!(prior.why.contains("EBS") && hints.disk.is_some(), "{hints:?}");
        let nothing = Hints::find(&KernelFiles::below("/no-such-folder"), Path::new("/"));
        assert_eq!(nothing, Hints::default(), "without /proc and /sys nothing is known");
    }
}
