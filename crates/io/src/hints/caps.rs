//! Caps that the cgroups of this process put on a disk.
//!
//! Version 2: `io.max` of a group, a line for each disk with `rbps` and `riops` among others.
//! Version 1: `blkio.throttle.read_bps_device` and `.read_iops_device`, a number for each disk. The
//! kernel throttles by all groups on the way up, so the least counts. (Kernel documentation:
//! admin-guide/cgroup-v2, admin-guide/cgroup-v1/blkio-controller.)

use crate::hints::disk::BlockDisk;
use crate::system::kernel_files::{Controller, KernelFiles};

/// Most requests and bytes per second that a disk may be read with; `None`: as many as it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadCaps {
    /// Requests per second.
    pub requests: Option<u64>,
    /// Bytes per second.
    pub bytes: Option<u64>,
}

impl ReadCaps {
    /// True where nothing is capped.
    pub fn is_none(&self) -> bool {
        *self == ReadCaps::default()
    }

    fn both(self, other: ReadCaps, of: fn(u64, u64) -> u64) -> ReadCaps {
        let least = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(of(a, b)),
            (one, other) => one.or(other),
        };
        ReadCaps { requests: least(self.requests, other.requests), bytes: least(self.bytes, other.bytes) }
    }

    /// Sums of several disks; a value without a cap on one of them has no cap.
    fn sum(all: impl Iterator<Item = ReadCaps>) -> ReadCaps {
        let add = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        let both = |a: ReadCaps, b: ReadCaps| ReadCaps {
            requests: add(a.requests, b.requests),
            bytes: add(a.bytes, b.bytes),
        };
        all.reduce(both).unwrap_or_default()
    }

    /// Caps in the lines of an `io.max`; the least, if a disk should stand there twice.
    fn newer(text: &str, number: &str) -> ReadCaps {
        let of = |value: &str| match value.split_once('=') {
            Some(("rbps", most)) => ReadCaps { bytes: cap(most), ..ReadCaps::default() },
            Some(("riops", most)) => ReadCaps { requests: cap(most), ..ReadCaps::default() },
            _ => ReadCaps::default(),
        };
        let all = values(text, number).flat_map(str::split_whitespace).map(of);
        all.fold(ReadCaps::default(), |a, b| a.both(b, u64::min))
    }
}

/// The values of a disk in a text of lines `major:minor VALUES`.
fn values<'a>(text: &'a str, number: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| {
        let (of, values) = line.trim().split_once(' ')?;
        (of == number).then_some(values)
    })
}

/// The value of a cap. `max` means none, and 0 is a rule that was removed.
fn cap(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|most| *most > 0)
}

/// Caps of this process on a disk and on those that it lies on.
pub(crate) fn caps_of(kernel: &KernelFiles, disk: &BlockDisk) -> ReadCaps {
    let below = ReadCaps::sum(disk.below.iter().map(|disk| caps_of(kernel, disk)));
    // Several layers may lie on one disk, which has its caps once.
    let carriers = ReadCaps::sum(disk.carriers().into_iter().map(|disk| own_caps(kernel, disk)));
    own_caps(kernel, disk).both(below, u64::min).both(carriers, u64::min)
}

fn own_caps(kernel: &KernelFiles, disk: &BlockDisk) -> ReadCaps {
    let number = disk.number.as_str();
    // A file of one version is not in the folders of the other.
    let texts = |file: &str| kernel.cgroup("self", Controller::Io, file, file);
    let older = |file: &str| -> Vec<u64> {
        texts(file).iter().flat_map(|text| values(text, number)).filter_map(cap).collect()
    };
    let least = |all: Vec<u64>| all.into_iter().min();
    let older = ReadCaps {
        requests: least(older("blkio.throttle.read_iops_device")),
        bytes: least(older("blkio.throttle.read_bps_device")),
    };
    let newer = texts("io.max").into_iter().map(|text| ReadCaps::newer(&text, number));
    newer.fold(older, |a, b| a.both(b, u64::min))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::kernel_files::planted;

    fn disk(number: &str, below: Vec<BlockDisk>) -> BlockDisk {
        BlockDisk { number: number.into(), below, ..BlockDisk::default() }
    }

    const V2: [(&str, &str); 4] = [
        ("proc/self/cgroup", "0::/a/b"),
        ("sys/fs/cgroup/a/b/io.max", "8:0 rbps=max wbps=7 riops=4000 wiops=1\n8:16 rbps=100 riops=max"),
        ("sys/fs/cgroup/a/io.max", "8:0 rbps=131072000 wbps=max riops=3000 wiops=max"),
        ("sys/fs/cgroup/io.max", "8:1 rbps=1 riops=1"),
    ];

    #[test]
    fn the_least_cap_on_the_way_up_counts() {
        let (_dir, kernel) = planted(&V2);
        let of = |number: &str| caps_of(&kernel, &disk(number, Vec::new()));
        assert_eq!(of("8:0"), ReadCaps { requests: Some(3000), bytes: Some(131_072_000) });
        assert_eq!(of("8:16"), ReadCaps { requests: None, bytes: Some(100) });
        assert!(of("8:2").is_none() && of("8:160").is_none());
        let (_dir, kernel) = planted(&[
            ("proc/self/cgroup", "4:memory:/x\n7:blkio:/a/b\n0::/"),
            ("sys/fs/cgroup/blkio/a/b/blkio.throttle.read_iops_device", "7:0 3000\n8:0 500"),
            ("sys/fs/cgroup/blkio/a/blkio.throttle.read_bps_device", "7:0 131072000\n8:0 0"),
            ("sys/fs/cgroup/blkio/c/blkio.throttle.read_iops_device", "7:0 1"),
        ]);
        let of = |number: &str| caps_of(&kernel, &disk(number, Vec::new()));
        assert_eq!(of("7:0"), ReadCaps { requests: Some(3000), bytes: Some(131_072_000) });
        assert_eq!(of("8:0"), ReadCaps { requests: Some(500), bytes: None }, "0 is no cap");
    }

    #[test]
    fn caps_of_disks_below_count_together() {
        let (_dir, kernel) = planted(&V2);
        let below = |numbers: &[&str]| numbers.iter().map(|number| disk(number, Vec::new())).collect();
        let of = |numbers: &[&str]| caps_of(&kernel, &disk("253:0", below(numbers)));
        assert_eq!(of(&["8:0"]), ReadCaps { requests: Some(3000), bytes: Some(131_072_000) });
        assert_eq!(of(&["8:0", "8:16"]), ReadCaps { requests: None, bytes: Some(131_072_100) });
        assert!(of(&["8:0", "8:2"]).is_none());
        let thin = disk("253:3", vec![disk("253:2", below(&["8:0"])), disk("253:1", below(&["8:0"]))]);
        assert_eq!(caps_of(&kernel, &thin), of(&["8:0"]), "two layers on one disk share its caps");
        assert_eq!(thin.carrier().map(|disk| disk.number.as_str()), Some("8:0"));
        let on_top = caps_of(&kernel, &disk("8:16", below(&["8:0"])));
        assert_eq!(on_top, ReadCaps { requests: Some(3000), bytes: Some(100) }, "both layers throttle");
    }

    #[test]
    fn of_a_disk_that_stands_there_twice_the_least_counts() {
        let text = "8:0 rbps=100 riops=max\n8:0 rbps=max riops=7\n8:0 rbps=200";
        assert_eq!(ReadCaps::newer(text, "8:0"), ReadCaps { requests: Some(7), bytes: Some(100) });
    }

    #[test]
    fn garbage_is_no_cap() {
        let texts = [
            "",
            "8:0",
            "8:0 rbps",
            "8:0 rbps= riops=x",
            "8:0 rbps=-1",
            "8:0 riops=99999999999999999999999",
            "8:0  =",
        ];
        for text in texts {
            assert!(ReadCaps::newer(text, "8:0").is_none(), "{text:?}");
        }
        let (_dir, kernel) = planted(&[
            ("proc/self/cgroup", "nonsense\n0::\n::::\n7:blkio:/a"),
            ("sys/fs/cgroup/blkio/a/blkio.throttle.read_iops_device", "8:0\n8:0 many\nTotal 7"),
        ]);
        assert!(caps_of(&kernel, &disk("8:0", Vec::new())).is_none());
    }
}
