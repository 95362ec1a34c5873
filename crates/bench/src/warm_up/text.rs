//! A warm-up in lines.

use snowmelt_base::text_table::TextTable;

use super::{Ideal, RuleHeld, ShareReached, WarmUp, mib};

impl WarmUp {
    /// All but the seconds: what was found, and the doubts.
    pub fn text(&self) -> String {
        let mut lines = self.lines();
        lines.push(String::new());
        lines.push(self.table().render());
        lines.extend(self.doubts.iter().map(|doubt| format!("doubt: {doubt}")));
        lines.join("\n") + "\n"
    }

    /// The figures that are not by query, a line each.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![match self.warm_s {
            Some(warm_s) => format!("warm after {warm_s:.2} s, the first of:"),
            None => format!("not warm: no rule held in {:.1} s", self.end_s()),
        }];
        lines.extend(self.rules.iter().map(RuleHeld::line));
        lines.push(format!("warm throughput {:.0} queries/s", self.warm_rate));
        lines.extend(self.reached.iter().map(|share| share.line(self.measured_from_s)));
        lines.push(self.read_line());
        lines.extend(
            self.read_ahead_used
                .map(|used| format!("read ahead: {:.1} % of the pages were used", 100.0 * used)),
        );
        if let Some(wait_s) = self.read.wait_s {
            lines.push(format!("I/O wait until then: {wait_s:.2} s ({})", self.io_wait));
        }
        lines.extend(self.ideal.map(|ideal| ideal.line()));
        lines.push(format!("processors, bytes and waits: {}", self.server));
        lines
    }

    fn end_s(&self) -> f64 {
        self.seconds.last().map_or(self.measured_from_s, |second| second.end_s)
    }

    fn read_line(&self) -> String {
        let when = if self.warm_s.is_some() { "until it was warm" } else { "in the whole warm-up" };
        let Some(bytes) = self.read.bytes else {
            return format!("bytes read {when}: not told");
        };
        let pages = self.read.pages.map_or(String::new(), |pages| format!(" in {pages:.0} pages"));
        let set = match (self.working_set, self.read_ratio) {
            (Some(set), Some(ratio)) => format!(
                ": {ratio:.2} × the working set of {:.1} MiB, the {} pages that queries used, measured mixes \
                 included",
                mib(set.bytes as f64),
                set.pages
            ),
            _ => "; the working set of this server is not known".to_owned(),
        };
        format!("{:.1} MiB read{pages} {when}{set}", mib(bytes))
    }

    /// Query by query.
    fn table(&self) -> TextTable {
        let mut table =
            TextTable::new(&["query", "semi-warm runs", "mean ms", "warm ms", "semi-warm ÷ warm"]);
        self.rows().into_iter().for_each(|row| table.row(row));
        table
    }

    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let ms = |seconds: Option<f64>| seconds.map_or("-".to_owned(), |s| format!("{:.3}", s * 1e3));
        let row = |query: &super::SemiWarm| {
            vec![
                format!("Q{}", query.query),
                query.runs.to_string(),
                ms(query.seconds),
                ms(query.warm_seconds),
                query.share.map_or("-".to_owned(), |share| format!("{share:.3}")),
            ]
        };
        self.queries.iter().map(row).collect()
    }
}

impl RuleHeld {
    fn line(&self) -> String {
        match self.held_s {
            Some(held_s) => format!("  {}: {held_s:.2} s", self.rule),
            None => format!("  {}: never", self.rule),
        }
    }
}

impl ShareReached {
    fn line(&self, measured_from_s: f64) -> String {
        let Some(seconds) = self.seconds else {
            return format!("  {} %: never for a second's worth of queries", self.percent);
        };
        let read = self.bytes.map_or(String::new(), |bytes| format!(", {:.1} MiB read", mib(bytes)));
        let late = if seconds < measured_from_s { "" } else { ", in the measured mixes only" };
        format!("  {} %: {seconds:.2} s{read}{late}", self.percent)
    }
}

impl Ideal {
    fn line(&self) -> String {
        let times =
            |ratio: Option<f64>| ratio.map_or("never".to_owned(), |ratio| format!("{ratio:.1} × that"));
        format!(
            "ideal: {:.2} s for the working set at {:.1} MiB/s; to 90 % it took {}, until warm by its rule {}",
            self.seconds,
            mib(self.bandwidth),
            times(self.ninety_ratio),
            times(self.warm_ratio)
        )
    }
}
