//! Other programs' use of the machine during a step, and whether a figure can be compared in
//! spite of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Shares of the processors above which a run folder puts itself in doubt. With more than `OTHERS`
/// used by other programs times are not compared.
const STEAL: f64 = 0.02;
const OTHERS: f64 = 0.10;
/// With more than this taken by the hypervisor neither. With less they are, if the verdict is the
/// same for a figure that is off by what was taken, times `UNEVEN`.
const STEAL_MOST: f64 = 0.20;
/// A cell can have more than its part of what was taken in its step.
const UNEVEN: f64 = 2.0;
/// Share of a disk's requests or bytes above which times are not compared.
const DISK: f64 = 0.10;
/// And above which counts are not: it would show in the third digit.
const DISK_COUNTS: f64 = 0.001;

/// The sort of a figure, which says what other programs can do to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// From a clock.
    Times,
    /// Counted at a device, for all programs.
    Counts,
    /// Counted for this program alone.
    OwnCounts,
    /// In virtual time: no other program has a part in it.
    VirtualTime,
    /// None.
    Nothing,
}

/// Other programs' part in a step, as shares from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Circumstance {
    /// The step.
    pub step: String,
    /// Of the processors, taken by the hypervisor.
    pub steal: f64,
    /// Of the processors, used by programs that are no part of the experiment.
    pub others: f64,
    /// By disk: of its requests or of its bytes, whichever is more; `None` where it is not known.
    #[serde(default)]
    pub disks: BTreeMap<String, Option<f64>>,
}

impl Circumstance {
    /// With the disks of `disturbance` in the step's `machine.json`.
    pub fn with_disks(mut self, disturbance: &Value) -> Self {
        for (name, disk) in disturbance["disks"].as_object().into_iter().flatten() {
            let shares = ["others_requests", "others_bytes"].map(|key| disk[key].as_f64());
            self.disks.insert(name.clone(), shares.into_iter().flatten().reduce(f64::max));
        }
        self
    }

    /// Why no figure of this sort is compared, if so.
    pub fn forbids(&self, basis: Basis) -> Option<String> {
        let busy = |who: &str, share: f64, of: &str| {
            Some(format!("{who} {} of {of} during \"{}\"", percent(share), self.step))
        };
        let most = self.disks.iter().filter_map(|(name, share)| Some((name, (*share)?)));
        let disk = most.max_by(|a, b| a.1.total_cmp(&b.1));
        let on_disk = |(name, share): (&String, f64)| {
            busy("other programs made", share, &format!("the requests to {name}"))
        };
        match basis {
            Basis::Times if self.others > OTHERS => {
                busy("other programs used", self.others, "the processors")
            }
            Basis::Times if self.steal > STEAL_MOST => Some(self.took()),
            Basis::Times => disk.filter(|(_, share)| *share > DISK).and_then(on_disk),
            Basis::Counts => disk.filter(|(_, share)| *share > DISK_COUNTS).and_then(on_disk),
            Basis::OwnCounts | Basis::VirtualTime | Basis::Nothing => None,
        }
    }

    /// The share by which a figure of this sort may be off for what the hypervisor took.
    pub fn margin(&self, basis: Basis) -> f64 {
        let counts = basis == Basis::Times && self.steal > STEAL;
        if counts { UNEVEN * self.steal } else { 0.0 }
    }

    /// The hypervisor's part, in words.
    pub fn took(&self) -> String {
        format!("the hypervisor took {} of the processors during \"{}\"", percent(self.steal), self.step)
    }

    /// As a doubt of the page.
    pub fn doubt(&self) -> Option<String> {
        self.forbids(Basis::Times).or_else(|| (self.steal > STEAL).then(|| self.took()))
    }
}

pub fn percent(share: f64) -> String {
    match share * 100.0 {
        share if share < 1.0 => format!("{share:.1} %"),
        share => format!("{share:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn on_disk(share: Option<f64>) -> Circumstance {
        let disturbance = json!({ "disks": { "loop0": { "others_requests": share, "others_bytes": null } } });
        Circumstance { step: "reads".into(), ..Circumstance::default() }.with_disks(&disturbance)
    }

    #[test]
    fn busy_processors_forbid_times_alone() {
        let forbidden = |others, steal, basis| {
            Circumstance { others, steal, ..Circumstance::default() }.forbids(basis).is_some()
        };
        assert!(!forbidden(0.09, 0.19, Basis::Times));
        assert!(forbidden(0.11, 0.0, Basis::Times) && forbidden(0.0, 0.21, Basis::Times));
        let stolen = Circumstance { steal: 0.04, ..Circumstance::default() };
        assert_eq!(stolen.margin(Basis::Times), 0.08);
        assert!(stolen.doubt().is_some(), "the page tells it");
        for basis in [Basis::Counts, Basis::OwnCounts, Basis::VirtualTime] {
            assert!(!forbidden(0.9, 0.5, basis), "{basis:?}");
            assert_eq!(stolen.margin(basis), 0.0);
        }
    }

    #[test]
    fn a_disk_that_others_touch_forbids_counts_unless_ours_are_counted_apart() {
        assert!(on_disk(Some(0.05)).forbids(Basis::Counts).is_some());
        assert!(on_disk(Some(0.0005)).forbids(Basis::Counts).is_none(), "it does not show");
        assert!(on_disk(Some(0.9)).forbids(Basis::OwnCounts).is_none());
        assert!(on_disk(Some(0.05)).forbids(Basis::Times).is_none());
        let why = on_disk(Some(0.4)).forbids(Basis::Times).unwrap();
        assert!(why.contains("loop0") && why.contains("40 %") && why.contains("reads"), "{why}");
        assert!(on_disk(None).forbids(Basis::Counts).is_none(), "not known");
    }
}
