//! The figures as a table, and what follows from them.

use snowmelt_store::Rule;

use super::{Cell, Conditions, Figures, QueryLoad, Setting};
use snowmelt_base::text_table::TextTable;

/// All cells of an ablation, and judgements about them.
pub struct Outcome<'a> {
    cells: &'a [Cell],
}

/// How `auto` did under some conditions.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The conditions.
    pub conditions: Conditions,
    /// `auto`, with or without a warm list.
    pub auto: String,
    /// Its time in seconds.
    pub seconds: f64,
    /// The best fixed setting that has no warm list unless `auto` has.
    pub best: String,
    /// Its time in seconds.
    pub best_seconds: f64,
}

impl Judgement {
    /// 1 when as good as the best, more when worse.
    pub fn ratio(&self) -> f64 {
        ratio(&self.conditions, self.seconds, self.best_seconds)
    }
}

/// One time divided by another; 1 when they are less than two visits of the device or 10 ms
/// apart, which is of no consequence. A shorter time counts as so long.
fn ratio(conditions: &Conditions, seconds: f64, other: f64) -> f64 {
    let least_s = (2.0 * conditions.model.visit_s()).max(0.01);
    if (seconds - other).abs() <= least_s { 1.0 } else { seconds.max(least_s) / other.max(least_s) }
}

/// A rule helps where a time is less than this share of what it was without it.
const HELPS: f64 = 0.95;

/// Where a rule helps and where it hurts.
#[derive(Clone, Debug)]
pub struct Worth {
    /// The rule.
    pub rule: Rule,
    /// Conditions under which the rule alone is better than none, or all is better than all but
    /// the rule.
    pub helps: Vec<(Conditions, f64)>,
    /// Those under which both are worse.
    pub hurts: usize,
}

impl<'a> Outcome<'a> {
    /// Judges `cells`.
    pub fn new(cells: &'a [Cell]) -> Self {
        Self { cells }
    }

    /// The figures of a setting under some conditions.
    pub fn figures(&self, conditions: Conditions, setting: &str) -> Option<&Figures> {
        let is = |cell: &&Cell| cell.conditions == conditions && cell.setting.name == setting;
        self.cells.iter().find(is).map(|cell| &cell.figures)
    }

    /// The time that judges a setting: see the module.
    pub fn seconds(&self, conditions: Conditions, setting: &str) -> Option<f64> {
        self.figures(conditions, setting).map(|figures| figures.judged_s(&conditions))
    }

    /// `auto` against the best fixed setting, under all conditions.
    pub fn judgements(&self) -> Vec<Judgement> {
        self.judge_all(Setting::chooses)
    }

    /// `auto` on devices of which nothing is known at first, against the best fixed setting.
    pub fn judgements_of_learned(&self) -> Vec<Judgement> {
        self.judge_all(Setting::learns)
    }

    fn judge_all(&self, is_auto: impl Fn(&Setting) -> bool) -> Vec<Judgement> {
        let autos = self.cells.iter().filter(|cell| is_auto(&cell.setting));
        autos.filter_map(|auto| self.judge(auto)).collect()
    }

    fn judge(&self, auto: &Cell) -> Option<Judgement> {
        let conditions = auto.conditions;
        let rival = |s: &Setting| s.is_fixed() && (!s.has_list() || auto.setting.has_list());
        let rivals = self.cells.iter().filter(|c| c.conditions == conditions && rival(&c.setting));
        let time = |cell: &Cell| cell.figures.judged_s(&conditions);
        let best = rivals.min_by(|a, b| time(a).total_cmp(&time(b)))?;
        Some(Judgement {
            conditions,
            auto: auto.setting.name.clone(),
            seconds: time(auto),
            best: best.setting.name.clone(),
            best_seconds: time(best),
        })
    }

    /// Where each rule helps.
    pub fn worth(&self) -> Vec<Worth> {
        Rule::ALL.into_iter().map(|rule| self.worth_of(rule)).collect()
    }

    /// Worth of device times in plans: under each condition the time of `auto` without a
    /// warm list with plans as if everything were in memory, by that with plans that reckon
    /// with reads.
    pub fn worth_of_device_costs(&self) -> Vec<(Conditions, f64)> {
        let of = |conditions: Conditions| {
            let (with, without) = ("auto -warm-list", "auto -warm-list -device-costs");
            let (with, without) = (self.figures(conditions, with)?, self.figures(conditions, without)?);
            // All mixes: another plan is chosen long before the pool is warm or never.
            Some((conditions, ratio(&conditions, without.seconds, with.seconds)))
        };
        self.all_conditions().into_iter().filter_map(of).collect()
    }

    fn worth_of(&self, rule: Rule) -> Worth {
        let mut worth = Worth { rule, helps: Vec::new(), hurts: 0 };
        for conditions in self.all_conditions() {
            let compare = |with: &str, without: &str| {
                Some(ratio(&conditions, self.seconds(conditions, with)?, self.seconds(conditions, without)?))
            };
            let alone = compare(rule.name(), "none").unwrap_or(1.0);
            let among = compare("all", &format!("all -{}", rule.name())).unwrap_or(1.0);
            if alone.min(among) < HELPS {
                worth.helps.push((conditions, 1.0 / alone.min(among)));
            } else if alone.min(among) > 1.0 / HELPS {
                worth.hurts += 1;
            }
        }
        worth
    }

    fn all_conditions(&self) -> Vec<Conditions> {
        let mut all: Vec<Conditions> = self.cells.iter().map(|cell| cell.conditions).collect();
        all.dedup();
        all
    }

    /// Everything as text.
    pub fn text(&self, mixes: u64) -> String {
        let mut out = String::new();
        for conditions in self.all_conditions() {
            out.push_str(&format!("\n{conditions}\n{}", self.block(conditions, mixes)));
        }
        out.push_str(&self.summary());
        out
    }

    fn block(&self, conditions: Conditions, mixes: u64) -> String {
        let all = if conditions.load == QueryLoad::Mixes {
            format!("{mixes} mixes s")
        } else {
            "scan s".to_owned()
        };
        let head =
            ["read-ahead", "90 % s", &all, "reads", "MiB", "requests", "depth", "ahead %", "used %", "p99 ×"];
        let mut table = TextTable::new(&head);
        for cell in self.cells.iter().filter(|cell| cell.conditions == conditions) {
            table.row(cell.figures.row(&cell.setting.name));
        }
        table.render()
    }

    /// `auto` under all conditions, and what every rule is worth.
    pub fn summary(&self) -> String {
        let mut out =
            String::from("\nauto against the best fixed setting (without a warm list: of those without)\n");
        let mut table = TextTable::new(&["conditions", "setting", "s", "best fixed", "s", "ratio"]);
        for j in self.judgements().into_iter().chain(self.judgements_of_learned()) {
            table.row(vec![
                j.conditions.to_string(),
                j.auto.clone(),
                format!("{:.3}", j.seconds),
                j.best.clone(),
                format!("{:.3}", j.best_seconds),
                format!("{:.2}", j.ratio()),
            ]);
        }
        out.push_str(&table.render());
        out.push_str(&self.turned());
        out.push_str(&self.one_by_one());
        out.push_str("\nwhat each rule is worth (alone against none, or all against all without it)\n");
        let total = self.all_conditions().len();
        for worth in self.worth() {
            out.push_str(&format!("  {}\n", worth.text(total)));
        }
        out.push_str("\nwhat device times in plans are worth (auto -warm-list: time with warm plans by time with them)\n");
        for (conditions, times) in self.worth_of_device_costs() {
            out.push_str(&format!("  {times:.2} × ({conditions}, {})\n", conditions.load.name()));
        }
        if let Some(share) = self.extent_share() {
            out.push_str(&format!(
                "\npages from read-ahead batches, extent rule alone on the HDD: {:.0} % (Virtuoso in 2011, second read within 20 s: 89 %)\n",
                100.0 * share
            ));
        }
        out
    }

    /// The choices of the cost model against fixed ones: E1's question about gaps.
    fn turned(&self) -> String {
        let columns = ["auto gap=0", "auto gap=10", "auto", "auto in-place=on", "auto in-place=off"];
        let head: Vec<&str> = ["conditions"].into_iter().chain(columns).collect();
        let mut table = TextTable::new(&head);
        let mut rows = 0;
        for conditions in self.all_conditions() {
            let seconds: Option<Vec<f64>> =
                columns.iter().map(|setting| self.seconds(conditions, setting)).collect();
            let Some(seconds) = seconds else { continue };
            let cells = seconds.iter().map(|s| format!("{s:.3}"));
            table.row([conditions.to_string()].into_iter().chain(cells).collect());
            rows += 1;
        }
        match rows {
            0 => String::new(),
            _ => format!(
                "\ngaps and lone reads, fixed and as the cost model says (auto), seconds\n{}",
                table.render()
            ),
        }
    }

    /// Settings with one number turned, against `auto`.
    fn one_by_one(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        let is_turned =
            |setting: &Setting| setting.name.starts_with("auto ") && setting.has_list() && setting.is_fixed();
        for cell in self.cells.iter().filter(|cell| is_turned(&cell.setting)) {
            if !names.contains(&cell.setting.name.as_str()) {
                names.push(&cell.setting.name);
            }
        }
        let mut table =
            TextTable::new(&["setting", "better", "worse", "median", "best", "where", "worst", "where"]);
        for name in names {
            let times = |conditions: Conditions| {
                let (turned, auto) = (self.seconds(conditions, name)?, self.seconds(conditions, "auto")?);
                Some((ratio(&conditions, turned, auto), conditions))
            };
            let mut all: Vec<_> = self.all_conditions().into_iter().filter_map(times).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (Some(best), Some(worst)) = (all.first(), all.last()) else { continue };
            let short = |at: &(f64, Conditions)| {
                if at.0 == 1.0 { String::new() } else { format!("{}, {}", at.1, at.1.load.name()) }
            };
            table.row(vec![
                name.to_owned(),
                all.iter().filter(|(times, _)| *times < HELPS).count().to_string(),
                all.iter().filter(|(times, _)| *times > 1.0 / HELPS).count().to_string(),
                format!("{:.2}", all[all.len() / 2].0),
                format!("{:.2}", best.0),
                short(best),
                format!("{:.2}", worst.0),
                short(worst),
            ]);
        }
        match table.is_empty() {
            true => String::new(),
            false => format!(
                "\none number turned: its time by that of auto, and in how many conditions it is 5 % better or worse\n{}",
                table.render()
            ),
        }
    }

    /// The share of pages that came ahead with the extent rule alone on the HDD, everything
    /// fitting the pool: E1's 89 %.
    fn extent_share(&self) -> Option<f64> {
        let like_e1 = |c: &&Cell| {
            c.setting.name == "extent"
                && c.conditions.model == super::Model::Hdd
                && c.conditions.has_full_speed()
        };
        let cell = self.cells.iter().filter(like_e1).max_by_key(|c| c.conditions.clients)?;
        Some(cell.figures.ahead_share)
    }
}

impl Worth {
    fn text(&self, conditions: usize) -> String {
        let name = self.rule.name();
        let best = self.helps.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        match best {
            Some((at, times)) => format!(
                "{name}: helps in {} of {conditions} conditions, hurts in {}; most {times:.1} × ({at})",
                self.helps.len(),
                self.hurts
            ),
            None => format!(
                "{name}: helps nowhere, hurts in {} of {conditions} conditions: to be removed",
                self.hurts
            ),
        }
    }
}
