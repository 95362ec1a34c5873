//! The settings that are compared, and the conditions under which they are.

use std::fmt;

use snowmelt_io::{DeviceModel, DiskModel, Policy};
use snowmelt_sparql::PlanCosts;
use snowmelt_store::{PAGE_BYTES, ReadAhead, Rule};

use super::load::Load;

/// Device times in plans, as the name of a setting says them.
const DEVICE_COSTS: &str = "device-costs";

/// A choice of read-ahead rules, and whether plans reckon with reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// As the table calls it.
    pub name: String,
    /// The rules.
    pub rules: ReadAhead,
    /// The costs of plans.
    pub costs: PlanCosts,
}

impl Setting {
    /// A setting as on the command line: `none`, `all`, `auto`, or rules joined by commas;
    /// `-rule` at the end switches one off, `-device-costs` device times in plans.
    pub fn parse(name: &str) -> Result<Self, String> {
        let mut parts = name.split(" -");
        let mut rules = ReadAhead::parse(parts.next().expect("a text has a first part"))?;
        let mut costs = PlanCosts::Device;
        for without in parts {
            if without == DEVICE_COSTS {
                costs = PlanCosts::Warm;
                continue;
            }
            let rule = Rule::ALL.into_iter().find(|r| r.name() == without);
            switch_off(&mut rules, rule.ok_or(format!("no rule {without:?}"))?);
        }
        Ok(Self { name: name.to_owned(), rules, costs })
    }

    /// True for `auto`, which chooses; false for the fixed settings it is measured against.
    pub fn chooses(&self) -> bool {
        self.rules.auto && self.costs == PlanCosts::Device
    }

    /// True for a fixed choice of rules.
    pub fn is_fixed(&self) -> bool {
        !self.rules.auto
    }

    /// True when it reads a warm list.
    pub fn has_list(&self) -> bool {
        self.rules.warm_list
    }
}

fn switch_off(rules: &mut ReadAhead, rule: Rule) {
    match rule {
        Rule::StartUp => rules.start_up = false,
        Rule::Extent => rules.extent = false,
        Rule::Planned => rules.planned = false,
        Rule::Scan => rules.scan = false,
        Rule::Warm => rules.warm_list = false,
    }
}

/// None, each rule alone, all but each, all, and auto: with and without a warm list, and with
/// plans that take everything to be in memory.
pub fn settings() -> Vec<Setting> {
    let alone = Rule::ALL.iter().map(|rule| rule.name().to_owned());
    let without = Rule::ALL.iter().map(|rule| format!("all -{}", rule.name()));
    let names = ["none".to_owned()].into_iter().chain(alone).chain(without);
    let names =
        names.chain(["all", "auto", "auto -warm-list", "auto -warm-list -device-costs"].map(str::to_owned));
    names.map(|name| Setting::parse(&name).expect("these are settings")).collect()
}

/// A modelled device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// A disk with an arm.
    Hdd,
    /// A network volume: slow, but serving many at once.
    WideSlow,
    /// A flash drive.
    Nvme,
}

impl Model {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Hdd, Self::WideSlow, Self::Nvme];

    /// As on the command line, after `sim:`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hdd => "hdd",
            Self::WideSlow => "wide-slow",
            Self::Nvme => "nvme",
        }
    }

    /// Seconds that one small request waits when it is alone.
    pub fn visit_s(self) -> f64 {
        self.device(u64::MAX).cost(0).latency_ns as f64 / 1e9
    }

    /// Its parameters. The buffer of the disk holds at most 1/64 of `database_bytes`: that of a
    /// disk of 1 TB holds a far smaller share.
    pub fn device(self, database_bytes: u64) -> DeviceModel {
        match self {
            Self::Hdd => {
                let mut disk = DiskModel::default();
                let share = database_bytes / 64 / disk.segments as u64;
                disk.segment_bytes = disk.segment_bytes.min(share.max(PAGE_BYTES as u64));
                DeviceModel::Disk(disk)
            }
            Self::WideSlow => DeviceModel::wide_slow(),
            Self::Nvme => DeviceModel::nvme(),
        }
    }
}

/// Conditions of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// The device.
    pub model: Model,
    /// The pool, in percent of the database's pages.
    pub pool_percent: u32,
    /// The order of its queue.
    pub policy: Policy,
    /// Clients.
    pub clients: usize,
    /// Their queries.
    pub load: Load,
}

impl Conditions {
    /// True when the time to full speed judges: the whole database fits the pool, and there is
    /// enough to do after that.
    pub fn has_full_speed(&self) -> bool {
        self.pool_percent >= 100 && self.load == Load::Mixes
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = self.policy.as_str();
        let plural = if self.clients == 1 { "" } else { "s" };
        write!(
            f,
            "{}, pool {} %, {policy}, {} client{plural}",
            self.model.name(),
            self.pool_percent,
            self.clients
        )
    }
}

/// Every device × pool of 10 % and 100 % × queue × 1 and 16 clients, and for each device and
/// pool one client that scans.
pub fn conditions() -> Vec<Conditions> {
    let mut all = Vec::new();
    for model in Model::ALL {
        for pool_percent in [10, 100] {
            for policy in [Policy::Fifo, Policy::Elevator] {
                for clients in [1, 16] {
                    all.push(Conditions { model, pool_percent, policy, clients, load: Load::Mixes });
                }
            }
            let policy = Policy::Elevator;
            all.push(Conditions { model, pool_percent, policy, clients: 1, load: Load::Scan });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_on_and_off() {
        let settings = settings();
        assert_eq!((settings.len(), conditions().len()), (15, 30));
        for rule in Rule::ALL {
            let on = settings.iter().filter(|s| s.rules.is_on(rule) && s.is_fixed()).count();
            assert_eq!(on, 6, "alone, in all but the 4 others, in all: {}", rule.name());
        }
        assert!(Setting::parse("all -bogus").is_err() && Setting::parse("bogus").is_err());
        assert!(!Setting::parse("auto -warm-list").unwrap().has_list());
    }
}
