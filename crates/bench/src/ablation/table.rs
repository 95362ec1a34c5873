//! The figures as a table, and what follows from them.

use snowmelt_store::Rule;

use super::{Cell, Conditions, Figures, QueryLoad, Setting, conditions};
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
    /// Conditions under which it was compared in at least one of the two ways.
    pub compared: usize,
    /// Conditions under which it was compared in both ways.
    pub in_both_ways: usize,
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
        let mut worth = Worth { rule, helps: Vec::new(), hurts: 0, compared: 0, in_both_ways: 0 };
        for conditions in self.all_conditions() {
            let compare = |with: &str, without: &str| {
                Some(ratio(&conditions, self.seconds(conditions, with)?, self.seconds(conditions, without)?))
            };
            let ways = [compare(rule.name(), "none"), compare("all", &format!("all -{}", rule.name()))];
            let Some(best) = ways.into_iter().flatten().reduce(f64::min) else { continue };
            worth.compared += 1;
            worth.in_both_ways += usize::from(ways.iter().all(Option::is_some));
            if best < HELPS {
                worth.helps.push((conditions, 1.0 / best));
            } else if best > 1.0 / HELPS {
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
        let all = match conditions.load {
            QueryLoad::Mixes => format!("{mixes} mixes s"),
            other => format!("{} s", other.name()),
        };
        let head =
            ["read-ahead", "90 % s", &all, "reads", "MiB", "requests", "depth", "ahead %", "used %", "p99 ×"];
        let mut table = TextTable::new(&head);
        for cell in self.cells.iter().filter(|cell| cell.conditions == conditions) {
            table.row(cell.figures.row(&cell.setting.name));
        }
        table.render()
    }

    /// The worth of each rule, as far as settings that show it were among those compared.
    fn rules(&self) -> String {
        let (compared, others): (Vec<Worth>, Vec<Worth>) =
            self.worth().into_iter().partition(|worth| worth.compared > 0);
        let mut out = String::new();
        if !compared.is_empty() {
            out.push_str("\nwhat each rule is worth (alone against none, or all against all without it)\n");
        }
        compared.iter().for_each(|worth| out.push_str(&format!("  {}\n", worth.text())));
        if !others.is_empty() {
            let names: Vec<&str> = others.iter().map(|worth| worth.rule.name()).collect();
            out.push_str(&format!(
                "\nnothing is said of {}: that takes the settings none and RULE, or all and 'all -RULE'\n",
                names.join(", ")
            ));
        }
        out
    }

    /// `auto` under all conditions, and what every rule is worth.
    pub fn summary(&self) -> String {
        let mut out = self.against_fixed();
        out.push_str(&self.turned());
        out.push_str(&self.one_by_one());
        out.push_str(&self.rules());
        let costs = self.worth_of_device_costs();
        if !costs.is_empty() {
            out.push_str("\nwhat device times in plans are worth (auto -warm-list: time with warm plans by time with them)\n");
        }
        for (conditions, times) in costs {
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

    /// `auto` and the best fixed setting; nothing where both were not run.
    fn against_fixed(&self) -> String {
        let judgements: Vec<Judgement> =
            self.judgements().into_iter().chain(self.judgements_of_learned()).collect();
        if judgements.is_empty() {
            return String::new();
        }
        let mut out =
            String::from("\nauto against the best fixed setting (without a warm list: of those without)\n");
        let mut table = TextTable::new(&["conditions", "setting", "s", "best fixed", "s", "ratio"]);
        for j in judgements {
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
    /// True where it is shown to be of no use: compared in both ways under all conditions.
    fn is_useless(&self) -> bool {
        self.helps.is_empty() && self.in_both_ways >= conditions().len()
    }

    fn text(&self) -> String {
        let (name, conditions) = (self.rule.name(), self.compared);
        let best = self.helps.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        match best {
            Some((at, times)) => format!(
                "{name}: helps in {} of {conditions} conditions, hurts in {}; most {times:.1} × ({at})",
                self.helps.len(),
                self.hurts
            ),
            None => {
                let advice = if self.is_useless() { ": to be removed" } else { "" };
                format!(
                    "{name}: helps in none of {conditions} conditions compared, hurts in {}{advice}",
                    self.hurts
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(conditions: Conditions, setting: &str, seconds: f64) -> Cell {
        let figures = Figures {
            to_full_s: Some(seconds),
            seconds,
            warm_s: seconds,
            reads: 1,
            bytes: 1,
            requests: 1,
            depth: 1.0,
            ahead_share: 0.0,
            used_share: 0.0,
            disk: 1,
            spec_disk: 0,
            demand_p99_s: 1.0,
            own_p99_s: 1.0,
            digest: 1,
        };
        Cell { conditions, setting: Setting::parse(setting).unwrap(), figures }
    }

    #[test]
    fn nothing_is_said_of_rules_that_were_not_compared() {
        let own = |of: Conditions| ["none", "extent"].map(|setting| cell(of, setting, 3.0));
        let cells: Vec<Cell> = conditions().into_iter().flat_map(own).collect();
        let summary = Outcome::new(&cells).summary();
        assert!(!summary.contains("to be removed"), "{summary}");
        let count =
            format!("extent: helps in none of {} conditions compared, hurts in 0\n", conditions().len());
        assert!(summary.contains(&count), "{summary}");
        let others = Rule::ALL.into_iter().filter(|rule| *rule != Rule::Extent).map(Rule::name);
        let others: Vec<&str> = others.collect();
        assert!(summary.contains(&format!("nothing is said of {}", others.join(", "))), "{summary}");
        assert!(!summary.contains("device times") && !summary.contains("best fixed"), "{summary}");
    }

    #[test]
    fn a_rule_is_to_be_removed_where_all_conditions_show_it() {
        let ways = ["none", "extent", "all", "all -extent"];
        let of = |all: Vec<Conditions>| -> String {
            let cells: Vec<Cell> =
                all.into_iter().flat_map(|c| ways.map(|setting| cell(c, setting, 3.0))).collect();
            Outcome::new(&cells).summary()
        };
        assert!(of(conditions()).contains("hurts in 0: to be removed"));
        assert!(!of(conditions()[1..].to_vec()).contains("to be removed"), "one was left out");
    }
}
