//! The store's counters of a run: the activity line, the trees sorted by reads, the devices
//! by class.

use serde_json::{Value, json};
use snowmelt_io::DeviceCounters;
use snowmelt_store::{Activity, AheadStats, PAGE_BYTES, Rule, Short, Store, TreeStats};

use super::text_table::TextTable;

/// All counters of a store at one moment.
#[derive(Clone, Debug)]
pub struct Meters {
    /// Activity of all queries together.
    pub activity: Activity,
    /// Tree by tree.
    pub trees: Vec<TreeStats>,
    /// Device by device.
    pub devices: Vec<DeviceCounters>,
}

impl Meters {
    /// The counters as they are now.
    pub fn of(store: &Store) -> Self {
        Self { activity: store.activity(), trees: store.tree_stats(), devices: store.device_counters() }
    }

    /// Uses of the pages that one rule read, all trees together.
    pub fn ahead(&self, rule: Rule) -> AheadStats {
        self.trees.iter().fold(AheadStats::default(), |mut sum, tree| {
            sum += tree.ahead[rule.index()];
            sum
        })
    }

    /// Uses of all pages read ahead.
    pub fn ahead_total(&self) -> AheadStats {
        Rule::ALL.iter().fold(AheadStats::default(), |mut sum, rule| {
            sum += self.ahead(*rule);
            sum
        })
    }

    /// Pages whose read was started.
    pub fn pages_read(&self) -> u64 {
        self.trees.iter().map(|tree| tree.reads).sum()
    }

    /// Pages that were read and used: those a reader waited for, and those read ahead that
    /// a reader came to use.
    pub fn pages_used(&self) -> u64 {
        self.pages_read().saturating_sub(self.activity.spec_disk) + self.ahead_total().used
    }

    /// Share of pages that came by read-ahead.
    pub fn ahead_share(&self) -> f64 {
        share(self.activity.spec_disk, self.pages_read())
    }

    /// Share of the pages read ahead that were used, among them those that were waiting when
    /// the meters were reset.
    pub fn used_share(&self) -> f64 {
        let ahead = self.ahead_total();
        share(ahead.used, ahead.issued)
    }

    /// Requests the devices got.
    pub fn requests(&self) -> u64 {
        self.devices.iter().map(DeviceCounters::device_requests).sum()
    }

    /// Bytes the devices moved, those of gaps included.
    pub fn bytes(&self) -> u64 {
        self.devices.iter().map(|device| device.bytes() + device.gap_bytes()).sum()
    }

    /// Mean number of requests outstanding while a device was busy, weighted by its requests.
    pub fn depth(&self) -> f64 {
        let sum: f64 = self.devices.iter().map(|d| d.mean_depth * d.device_requests() as f64).sum();
        sum / self.requests().max(1) as f64
    }

    /// Bytes moved ÷ bytes of the pages really used.
    pub fn amplification(&self) -> f64 {
        self.bytes() as f64 / (self.pages_used().max(1) * PAGE_BYTES as u64) as f64
    }

    /// Everything as text.
    pub fn text(&self) -> String {
        let mut out = format!("activity: {}\n{}\n", self.activity, self.reads_line());
        out.push_str("trees by reads:\n");
        out.push_str(&self.trees_text());
        out.push_str("devices:\n");
        out.push_str(&self.devices_text());
        out
    }

    /// The reads, by way and cost.
    pub fn reads_line(&self) -> String {
        format!(
            "{} pages read, {} of them ahead ({:.0} %), of which {:.0} % used; {} requests of {} on average, depth {:.1}",
            Short(self.pages_read()),
            Short(self.activity.spec_disk),
            100.0 * self.ahead_share(),
            100.0 * self.used_share(),
            Short(self.requests()),
            mean_size(self.bytes(), self.requests()),
            self.depth(),
        )
    }

    /// The trees that were touched or read, most read first.
    pub fn trees_text(&self) -> String {
        let head = ["tree", "touches", "reads", "read %", "ahead", "used", "unused", "resident", "pages"];
        let mut table = TextTable::new(&head);
        for tree in self.by_reads() {
            let ahead = tree.ahead_total();
            table.row(vec![
                tree.name.clone(),
                Short(tree.touches).to_string(),
                Short(tree.reads).to_string(),
                tree.read_percent().to_string(),
                Short(ahead.issued).to_string(),
                Short(ahead.used).to_string(),
                Short(ahead.evicted_unused).to_string(),
                Short(tree.resident).to_string(),
                Short(tree.pages).to_string(),
            ]);
        }
        table.render()
    }

    /// The classes of each device that had requests.
    pub fn devices_text(&self) -> String {
        let head = ["device", "class", "wanted", "requests", "MiB", "gap MiB", "p50 ms", "p99 ms", "max ms"];
        let mut table = TextTable::new(&head);
        for device in &self.devices {
            for class in device.classes.iter().filter(|class| class.requests > 0) {
                let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
                table.row(vec![
                    short_name(&device.device),
                    serde_json::to_value(class.class)
                        .map_or(String::new(), |v| v.as_str().unwrap_or("").to_owned()),
                    Short(class.requests).to_string(),
                    Short(class.device_requests).to_string(),
                    format!("{:.1}", class.bytes as f64 / (1 << 20) as f64),
                    format!("{:.1}", class.gap_bytes as f64 / (1 << 20) as f64),
                    ms(class.latency.p50_ns),
                    ms(class.latency.p99_ns),
                    ms(class.latency.max_ns),
                ]);
            }
        }
        table.render()
    }

    /// Everything as JSON.
    pub fn json(&self) -> Value {
        let a = &self.activity;
        let trees = self.by_reads().into_iter().map(|t| {
            let rules =
                Rule::ALL.iter().map(|rule| (rule.name().to_owned(), ahead_json(&t.ahead[rule.index()])));
            json!({
                "tree": t.name, "touches": t.touches, "reads": t.reads, "read_percent": t.read_percent(),
                "resident": t.resident, "pages": t.pages, "ahead": rules.collect::<serde_json::Map<_, _>>(),
            })
        });
        json!({
            "activity": {
                "line": a.to_string(), "rnd": a.rnd, "seq": a.seq, "same_seg": a.same_seg, "same_pg": a.same_pg,
                "same_par": a.same_par, "disk": a.disk, "spec_disk": a.spec_disk, "fork": a.fork,
                "pages": a.pages, "waits": a.waits, "wait_ns": a.wait_ns,
            },
            "pages_read": self.pages_read(), "pages_used": self.pages_used(), "bytes_read": self.bytes(),
            "ahead_share": self.ahead_share(), "ahead_used_share": self.used_share(),
            "amplification": self.amplification(), "mean_depth": self.depth(),
            "trees": trees.collect::<Vec<_>>(), "devices": self.devices,
        })
    }

    fn by_reads(&self) -> Vec<&TreeStats> {
        let mut trees: Vec<_> = self.trees.iter().filter(|t| t.reads + t.touches + t.resident > 0).collect();
        trees.sort_by_key(|t| std::cmp::Reverse((t.reads, t.touches)));
        trees
    }
}

fn ahead_json(ahead: &AheadStats) -> Value {
    json!({ "issued": ahead.issued, "used": ahead.used, "evicted_unused": ahead.evicted_unused })
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// `24.3 KiB`
fn mean_size(bytes: u64, requests: u64) -> String {
    format!("{:.1} KiB", bytes as f64 / requests.max(1) as f64 / 1024.0)
}

/// The last two parts of a path.
fn short_name(device: &str) -> String {
    let mut parts = device.rsplit('/');
    match (parts.next(), parts.next()) {
        (Some(file), Some(dir)) => format!("{dir}/{file}"),
        _ => device.to_owned(),
    }
}
