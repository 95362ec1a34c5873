//! The settings that are compared, and the conditions under which they are.

use std::fmt;

use snowmelt_io::{
    CostModel, DeviceModel, DiskModel, InPlace, ModelError, QueueConfig, RaidModel, VolumeModel,
};
use snowmelt_io_experiments::{PolicyName, TunedPolicy};
use snowmelt_sparql::PlanCosts;
use snowmelt_store::{PAGE_BYTES, ReadAhead, Rule};

use super::load::QueryLoad;

/// Device times in plans, as the name of a setting says them.
const DEVICE_COSTS: &str = "device-costs";

/// A choice of read-ahead rules, of other settings of I/O, and whether plans reckon with reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// As the table calls it.
    pub name: String,
    /// The rules.
    pub rules: ReadAhead,
    /// Settings of the queue.
    pub turned: Turned,
    /// The costs of plans.
    pub costs: PlanCosts,
    /// Threads that a query may use.
    pub threads: usize,
}

/// Settings of the queue that are turned by hand; the others are as the cost model says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turned {
    /// Longest gap to read through, in pages.
    pub gap_pages: Option<u64>,
    /// Where lone reads are carried out.
    pub in_place: InPlace,
    /// Device requests outstanding.
    pub depth: Option<u32>,
    /// Knowledge of the device.
    pub known: Known,
    /// Newcomers a sweep of the elevator takes.
    pub fairness: Option<usize>,
    /// The order of waiting requests and its numbers, instead of that of the conditions.
    pub queue: Option<TunedPolicy>,
}

/// Knowledge of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Known {
    /// Its costs, as from a probe.
    #[default]
    Probed,
    /// Nothing: it is taken for a SATA SSD.
    Nothing,
    /// Nothing at first: its costs are learned.
    Learned,
    /// Its costs at first, and then what is learned.
    Both,
}

impl Known {
    fn named(name: &str) -> Result<Self, String> {
        match name {
            "probed" => Ok(Self::Probed),
            "nothing" => Ok(Self::Nothing),
            "learned" => Ok(Self::Learned),
            "both" => Ok(Self::Both),
            _ => Err(format!("costs are probed, nothing, learned or both, not {name:?}")),
        }
    }

    fn assumed(self) -> Option<CostModel> {
        matches!(self, Self::Nothing | Self::Learned).then(CostModel::ssd)
    }

    fn learns(self) -> bool {
        matches!(self, Self::Learned | Self::Both)
    }
}

impl Turned {
    /// The settings of a queue.
    pub fn queue(&self, policy: PolicyName) -> QueueConfig {
        let usual = QueueConfig::default();
        QueueConfig {
            policy: self.queue.unwrap_or(policy.into()).policy(),
            gap_bytes: self.gap_pages.map(|pages| pages * PAGE_BYTES as u64),
            in_place: self.in_place,
            depth: self.depth,
            cost: self.known.assumed(),
            learns: self.known.learns(),
            fairness: self.fairness.unwrap_or(usual.fairness),
            ..usual
        }
    }
}

impl Setting {
    /// A setting as on the command line: `none`, `all`, `auto`, or rules joined by commas. Words
    /// may follow: `-rule` switches one off; `gap=PAGES`, `in-place=on|off`, `depth=N`,
    /// `fairness=N`, `queue=NAME[:KEY=VALUE,…]`, `extent-misses=N`, `extent-window=SECONDS`,
    /// `scan-leaves=N`, `scan-after=N` and `threads=N` are the switches of these names;
    /// `-device-costs` leaves device times out of plans.
    pub fn parse(name: &str) -> Result<Self, String> {
        let mut words = name.split(' ');
        let rules = ReadAhead::parse(words.next().unwrap_or_default())?;
        let mut setting = Self {
            name: name.to_owned(),
            rules,
            turned: Turned::default(),
            costs: PlanCosts::Device,
            threads: 1,
        };
        words.try_for_each(|word| setting.turn(word))?;
        Ok(setting)
    }

    fn turn(&mut self, word: &str) -> Result<(), String> {
        if let Some(rule) = word.strip_prefix('-') {
            if rule == DEVICE_COSTS {
                self.costs = PlanCosts::Warm;
                return Ok(());
            }
            let rule = Rule::ALL.into_iter().find(|r| r.name() == rule).ok_or(format!("no rule {rule:?}"))?;
            switch_off(&mut self.rules, rule);
            return Ok(());
        }
        let (key, value) = word.split_once('=').ok_or(format!("{word:?} is no setting: write KEY=VALUE"))?;
        let number = || value.parse::<u32>().map_err(|_| format!("{key} is {value:?}, which is no number"));
        match key {
            "gap" => self.turned.gap_pages = Some(number()?.into()),
            "in-place" => self.turned.in_place = value.parse()?,
            "costs" => self.turned.known = Known::named(value)?,
            "depth" => self.turned.depth = Some(number()?.max(1)),
            "queue" => self.turned.queue = Some(value.parse()?),
            "fairness" => self.turned.fairness = Some(number()? as usize),
            "extent-misses" => self.rules.extent_misses = number()?,
            "extent-window" => {
                let seconds = value.parse::<f64>().ok().filter(|s| s.is_finite() && *s >= 0.0);
                let seconds = seconds.ok_or_else(|| format!("{key} is {value:?}, no seconds"))?;
                self.rules.extent_window_ms = (seconds * 1e3) as u64;
            }
            "scan-leaves" => self.rules.scan_leaves = number()?,
            "scan-after" => self.rules.scan_after = number()?,
            "threads" => self.threads = number()?.max(1) as usize,
            other => return Err(format!("no setting is called {other:?}")),
        }
        Ok(())
    }

    /// True for `auto`, which chooses everything.
    pub fn chooses(&self) -> bool {
        let usual = ReadAhead { warm_list: self.rules.warm_list, ..ReadAhead::auto() };
        let is_usual = self.turned == Turned::default() && self.threads == 1;
        self.rules == usual && is_usual && self.costs == PlanCosts::Device
    }

    /// True for the settings that `auto` is measured against: of these something is fixed that it
    /// chooses, the plans are its own, and the device was probed.
    pub fn is_fixed(&self) -> bool {
        !self.chooses() && self.costs == PlanCosts::Device && self.turned.known == Known::Probed
    }

    /// True for `auto` on a device of which nothing is known at first.
    pub fn learns(&self) -> bool {
        let turned = Turned { known: Known::Learned, ..Turned::default() };
        self.turned == turned && Self { turned: Turned::default(), ..self.clone() }.chooses()
    }

    /// True when it reads a warm list.
    pub fn has_list(&self) -> bool {
        self.rules.warm_list
    }

    /// True when it is of interest under these conditions: a queue that is not sorted has
    /// hardly a gap to read through, and no order to keep.
    pub fn is_for(&self, conditions: &Conditions) -> bool {
        self.turned == Turned::default() || conditions.policy == PolicyName::Elevator
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
/// plans that take everything to be in memory; and what the cost model chooses, fixed: gaps of 0
/// and 10 pages, lone reads in place and not.
pub fn settings() -> Vec<Setting> {
    let alone = Rule::ALL.iter().map(|rule| rule.name().to_owned());
    let without = Rule::ALL.iter().map(|rule| format!("all -{}", rule.name()));
    let names = ["none".to_owned()].into_iter().chain(alone).chain(without);
    let autos = ["auto", "auto -warm-list", LEARNED, "auto -warm-list -device-costs"];
    let names = names.chain(["all"].into_iter().chain(autos).map(str::to_owned));
    let names = names.chain(TURNED.map(str::to_owned));
    names.map(|name| Setting::parse(&name).expect("these are settings")).collect()
}

/// `auto` on a device of which nothing is known.
pub const LEARNED: &str = "auto -warm-list costs=learned";

/// The settings that [`LEARNED`] is measured against, and itself: without a warm list.
pub fn learned_settings() -> Vec<Setting> {
    settings()
        .into_iter()
        .filter(|setting| !setting.has_list() && setting.costs == PlanCosts::Device)
        .collect()
}

/// `auto`, and `auto` with one number turned that a user can turn.
pub fn turned_settings() -> Vec<Setting> {
    let one = |name: &&str| Setting::parse(&format!("auto {name}")).expect("these are settings");
    [Setting::parse("auto").expect("a setting")]
        .into_iter()
        .chain(TURNED_ONE_BY_ONE.iter().map(one))
        .collect()
}

/// Each number at values on both sides of the usual one: extents read at their second miss within
/// 20 s, scans 3000 leaves ahead from their third leaf, 1024 newcomers in a sweep, one thread.
const TURNED_ONE_BY_ONE: [&str; 24] = [
    "extent-misses=1",
    "extent-misses=4",
    "extent-window=0.1",
    "extent-window=600",
    "scan-leaves=30",
    "scan-leaves=300",
    "scan-after=0",
    "scan-after=16",
    "gap=0",
    "gap=10",
    "in-place=on",
    "in-place=off",
    "depth=4",
    "depth=16",
    "depth=128",
    "fairness=0",
    "fairness=65536",
    "queue=fifo",
    "queue=deadline:read-expire=50",
    "queue=anticipatory:anticipate=2",
    "queue=fair:quantum=5",
    "threads=2",
    "threads=8",
    "threads=32",
];

/// Settings of which one thing is fixed that the cost model chooses.
const TURNED: [&str; 6] =
    ["auto gap=0", "auto gap=10", "planned gap=0", "planned gap=10", "auto in-place=on", "auto in-place=off"];

/// A modelled device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// A disk with an arm.
    Hdd,
    /// A network volume: slow, but serving many at once.
    WideSlow,
    /// A flash drive behind an old interface.
    Ssd,
    /// A flash drive.
    Nvme,
    /// Four disks, each a stripe (E1).
    FourHdd,
    /// Four flash drives, each a stripe (E1).
    FourSsd,
    /// Four disks as one RAID 0, in chunks of 64 KiB.
    RaidHdd,
    /// A general purpose volume of AWS.
    Gp3,
    /// An older one, whose credits are gone.
    Gp2Spent,
    /// Object storage.
    S3,
    /// A premium volume of Azure.
    AzureP10,
    /// A volume on disks.
    St1,
    /// The volume of the restart experiment.
    E3,
}

impl Model {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Hdd,
        Self::WideSlow,
        Self::Nvme,
        Self::Ssd,
        Self::FourHdd,
        Self::FourSsd,
        Self::RaidHdd,
        Self::Gp3,
        Self::Gp2Spent,
        Self::S3,
        Self::AzureP10,
        Self::St1,
        Self::E3,
    ];

    /// Those that are in [`learned_conditions`] alone.
    const VOLUMES: [Self; 6] = [Self::Gp3, Self::Gp2Spent, Self::S3, Self::AzureP10, Self::St1, Self::E3];

    /// Those that are compared with both queues: the others with the elevator alone.
    const WITH_FIFO: [Self; 3] = [Self::Hdd, Self::WideSlow, Self::Nvme];

    /// As the table calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hdd => "hdd",
            Self::WideSlow => "wide-slow",
            Self::Ssd => "ssd",
            Self::Nvme => "nvme",
            Self::FourHdd => "4-hdd",
            Self::FourSsd => "4-ssd",
            Self::RaidHdd => "raid0-4-hdd",
            Self::Gp3 => "gp3",
            Self::Gp2Spent => "gp2-spent",
            Self::S3 => "s3",
            Self::AzureP10 => "azure-p10",
            Self::St1 => "st1",
            Self::E3 => "e3",
        }
    }

    /// The model of that name.
    pub fn named(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|model| model.name() == name);
        named.ok_or_else(|| {
            format!("no model is called {name:?}: there are {}", Self::ALL.map(Self::name).join(", "))
        })
    }

    /// Stripes that the database is dealt to.
    pub fn stripes(self) -> u32 {
        match self {
            Self::FourHdd | Self::FourSsd => 4,
            _ => 1,
        }
    }

    /// Seconds that one small request waits when it is alone.
    pub fn visit_s(self) -> f64 {
        self.device(u64::MAX).cost(0).latency_ns as f64 / 1e9
    }

    /// Time that 99 of 100 random reads of a page take at most, when nothing else is done and as
    /// many are outstanding as fill the device of a stripe, in nanoseconds.
    pub(super) fn own_p99_ns(self, database_bytes: u64) -> Result<u64, ModelError> {
        let span = database_bytes / u64::from(self.stripes());
        self.device(database_bytes).p99_at_best_depth_ns(span, PAGE_BYTES as u64)
    }

    /// Parameters of the device of each stripe. The buffer of a disk holds at most 1/64 of the
    /// bytes on it, of `database_bytes`: that of a disk of 1 TB holds a far smaller share.
    pub fn device(self, database_bytes: u64) -> DeviceModel {
        let disk = |bytes_on_it: u64| {
            let mut disk = DiskModel::default();
            let share = bytes_on_it / 64 / disk.segments as u64;
            disk.segment_bytes = disk.segment_bytes.min(share.max(PAGE_BYTES as u64));
            DeviceModel::Disk(disk)
        };
        match self {
            Self::Hdd => disk(database_bytes),
            Self::FourHdd => disk(database_bytes / 4),
            Self::RaidHdd => DeviceModel::Raid0(RaidModel {
                member: Box::new(disk(database_bytes / 4)),
                members: 4,
                chunk_bytes: 64 << 10,
            }),
            Self::WideSlow => DeviceModel::wide_slow(),
            Self::Ssd | Self::FourSsd => DeviceModel::ssd(),
            Self::Nvme => DeviceModel::nvme(),
            Self::Gp3 => DeviceModel::gp3(),
            Self::Gp2Spent => match DeviceModel::gp2(500) {
                DeviceModel::Volume(v) => {
                    DeviceModel::Volume(VolumeModel { io_credits: 0.0, burst_iops: None, ..v })
                }
                other => other,
            },
            Self::S3 => DeviceModel::s3(),
            Self::AzureP10 => DeviceModel::azure_p10(),
            Self::St1 => DeviceModel::st1(500),
            Self::E3 => DeviceModel::e3(),
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
    pub policy: PolicyName,
    /// Clients.
    pub clients: usize,
    /// Their queries.
    pub load: QueryLoad,
}

impl Conditions {
    /// True when the time to full speed judges: the whole database fits the pool, and there is
    /// enough to do after that.
    pub fn has_full_speed(&self) -> bool {
        self.pool_percent >= 100 && self.load == QueryLoad::Mixes
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
/// pool one client that scans. The queue without order only on three kinds of devices.
pub fn conditions() -> Vec<Conditions> {
    let models = Model::ALL.into_iter().filter(|model| !Model::VOLUMES.contains(model));
    models.flat_map(conditions_of).collect()
}

/// Those of one model.
pub fn conditions_of(model: Model) -> Vec<Conditions> {
    let mut all = Vec::new();
    for pool_percent in [10, 100] {
        let both = Model::WITH_FIFO.contains(&model);
        for policy in [PolicyName::Fifo, PolicyName::Elevator].into_iter().skip(usize::from(!both)) {
            for clients in [1, 16] {
                all.push(Conditions { model, pool_percent, policy, clients, load: QueryLoad::Mixes });
            }
        }
        let policy = PolicyName::Elevator;
        all.push(Conditions { model, pool_percent, policy, clients: 1, load: QueryLoad::Scan });
    }
    all
}

/// Those of one client with analytic queries: each of some devices with both pools.
pub fn analytic_conditions(models: &[Model]) -> Vec<Conditions> {
    let with = |(model, pool_percent)| Conditions {
        model,
        pool_percent,
        policy: PolicyName::Elevator,
        clients: 1,
        load: QueryLoad::Analysis,
    };
    models.iter().flat_map(|model| [(*model, 10), (*model, 100)]).map(with).collect()
}

/// Those in which learned costs are compared with probed ones: the mixes, in the elevator's order.
pub fn learned_conditions() -> Vec<Conditions> {
    let of = |model| [(10, 1), (10, 16), (100, 1), (100, 16)].map(|load| (model, load));
    let all = Model::ALL.into_iter().flat_map(of);
    let with = |(model, (pool_percent, clients))| Conditions {
        model,
        pool_percent,
        policy: PolicyName::Elevator,
        clients,
        load: QueryLoad::Mixes,
    };
    all.map(with).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_on_and_off() {
        let settings = settings();
        assert_eq!((settings.len(), conditions().len()), (22, 54));
        let plain = settings.iter().filter(|s| !s.rules.auto && s.turned == Turned::default());
        let plain: Vec<&Setting> = plain.collect();
        for rule in Rule::ALL {
            let on = plain.iter().filter(|s| s.rules.is_on(rule)).count();
            assert_eq!(on, 6, "alone, in all but the 4 others, in all: {}", rule.name());
        }
        assert!(Setting::parse("all -bogus").is_err() && Setting::parse("bogus").is_err());
        assert!(!Setting::parse("auto -warm-list").unwrap().has_list());
    }

    #[test]
    fn only_auto_with_nothing_fixed_chooses() {
        let chooses = |name| Setting::parse(name).unwrap().chooses();
        assert!(chooses("auto") && chooses("auto -warm-list"));
        let fixed =
            ["auto gap=0", "auto in-place=on", "auto depth=3", "auto scan-after=9", "all", "auto -scan"];
        fixed.into_iter().for_each(|name| assert!(!chooses(name), "{name}"));
    }

    #[test]
    fn every_number_is_turned_both_ways() {
        let all = turned_settings();
        assert!(all[0].chooses() && all[1..].iter().all(|setting| setting.is_fixed()));
    }

    #[test]
    fn words_turn_what_they_name() {
        let text = "extent,scan gap=10 in-place=off depth=3 fairness=0 extent-misses=4 extent-window=1 \
                    scan-leaves=100 scan-after=8 threads=3";
        let s = Setting::parse(text).unwrap();
        let r = &s.rules;
        assert_eq!((r.extent_misses, r.extent_window_ms, r.scan_leaves, r.scan_after), (4, 1000, 100, 8));
        assert_eq!(s.threads, 3);
        let q = s.turned.queue(PolicyName::Fifo);
        assert_eq!((q.gap_bytes, q.in_place, q.depth, q.fairness), (Some(81_920), InPlace::Off, Some(3), 0));
        assert_eq!(Setting::parse("auto").unwrap().turned.queue(PolicyName::Fifo).gap_bytes, None);
        for wrong in ["auto gap", "auto gap=x", "auto in-place=x", "auto bogus=1", "auto extent-window=-1"] {
            assert!(Setting::parse(wrong).is_err(), "{wrong}");
        }
    }
}
