//! A warm-up in lines, and as rows of tables.

use snowmelt_base::text_table::TextTable;

use super::{Ideal, RuleHeld, SemiWarm, ShareReached, WarmUp, mib};

/// Columns of the table by query.
pub(super) const BY_QUERY: [&str; 5] = ["query", "semi-warm runs", "mean ms", "warm ms", "semi-warm ÷ warm"];

impl WarmUp {
    /// All but the seconds: what was found, and the doubts.
    pub fn text(&self) -> String {
        let mut lines: Vec<String> =
            self.figures().iter().map(|[name, value]| format!("  {name}: {value}")).collect();
        let mut table = TextTable::new(&BY_QUERY);
        self.rows().into_iter().for_each(|row| table.row(row));
        lines.extend([String::new(), table.render()]);
        lines.extend(self.doubts.iter().map(|doubt| format!("doubt: {doubt}")));
        lines.join("\n") + "\n"
    }

    /// The figures that are not by query: name and value.
    pub(super) fn figures(&self) -> Vec<[String; 2]> {
        let mut figures = vec![figure(
            "warm",
            match self.warm_s {
                Some(warm_s) => format!("after {warm_s:.2} s"),
                None => format!("never; {:.1} s were watched", self.end_s()),
            },
        )];
        figures.extend(self.rules.iter().map(|held| held.figure(self.measured_from_s)));
        let lasted = format!("{} mixes in {:.2} s", self.mixes, self.measured_from_s);
        figures.push(figure("warm-up until the measured mixes", lasted));
        figures.push(figure("warm throughput", format!("{:.0} queries/s", self.warm_rate)));
        figures.extend(self.reached.iter().map(|share| share.figure(self.measured_from_s)));
        figures.push(self.read());
        figures.extend(
            self.read_ahead_used
                .map(|used| figure("read ahead", format!("{:.1} % of the pages were used", 100.0 * used))),
        );
        figures.extend(
            self.read
                .wait_s
                .map(|wait_s| figure("I/O wait until then", format!("{wait_s:.2} s, {}", self.io_wait))),
        );
        figures.extend(self.ideal.map(|ideal| ideal.figure()));
        figures.push(figure("counters of", self.server.clone()));
        figures
    }

    fn end_s(&self) -> f64 {
        self.seconds.last().map_or(self.measured_from_s, |second| second.end_s)
    }

    fn read(&self) -> [String; 2] {
        let name = if self.warm_s.is_some() { "read until warm" } else { "read before the measured mixes" };
        let Some(bytes) = self.read.bytes else {
            return figure(name, "not told".into());
        };
        let pages = self.read.pages.map_or(String::new(), |pages| format!(" in {pages:.0} pages"));
        let set = match (self.working_set, self.read_ratio) {
            (Some(set), Some(ratio)) => format!(
                ", {ratio:.2} × the working set of {:.1} MiB: the {} pages that queries used, those of the \
                 measured mixes included",
                mib(set.bytes as f64),
                set.pages
            ),
            _ => "; the working set is not known".to_owned(),
        };
        figure(name, format!("{:.1} MiB{pages}{set}", mib(bytes)))
    }

    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        self.queries.iter().map(SemiWarm::row).collect()
    }
}

fn figure(name: &str, value: String) -> [String; 2] {
    [name.to_owned(), value]
}

/// A remark on a moment that the warm-up did not see.
fn late(at_s: f64, measured_from_s: f64) -> &'static str {
    if at_s <= measured_from_s { "" } else { ", in the measured mixes only" }
}

impl SemiWarm {
    fn row(&self) -> Vec<String> {
        let ms = |seconds: Option<f64>| seconds.map_or("-".to_owned(), |s| format!("{:.3}", s * 1e3));
        vec![
            format!("Q{}", self.query),
            self.runs.to_string(),
            ms(self.seconds),
            ms(self.warm_seconds),
            self.share.map_or("-".to_owned(), |share| format!("{share:.3}")),
        ]
    }
}

impl RuleHeld {
    fn figure(&self, measured_from_s: f64) -> [String; 2] {
        let held = self
            .held_s
            .map_or("never".to_owned(), |held_s| format!("{held_s:.2} s{}", late(held_s, measured_from_s)));
        [format!("rule {}", self.rule), held]
    }
}

impl ShareReached {
    fn figure(&self, measured_from_s: f64) -> [String; 2] {
        let name = format!("{} % of it", self.percent);
        let Some(seconds) = self.seconds else {
            return [name, "never for a second's worth of queries".into()];
        };
        let read = self.bytes.map_or(String::new(), |bytes| format!(", {:.1} MiB read", mib(bytes)));
        [name, format!("{seconds:.2} s{read}{}", late(seconds, measured_from_s))]
    }
}

impl Ideal {
    fn figure(&self) -> [String; 2] {
        let times =
            |ratio: Option<f64>| ratio.map_or("never".to_owned(), |ratio| format!("{ratio:.1} × that"));
        let value = format!(
            "{:.3} s for the working set at {:.1} MiB/s, {}; to 90 % it took {}, until warm {}",
            self.seconds,
            mib(self.bandwidth.bytes_per_s),
            self.bandwidth.source,
            times(self.ninety_ratio),
            times(self.warm_ratio)
        );
        figure("ideal", value)
    }
}
