//! Curves of several runs side by side, and by what factor each was sooner at full speed.

mod picture;

use super::curve::FULL;
use super::drive::Run;
use super::plot::{self, Panel};

/// A run in the race.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name in the plot.
    pub title: String,
    /// When its database was begun to be opened, in nanoseconds of its clock.
    pub begun_ns: u64,
    /// Its records.
    pub run: Run,
}

/// Runs on the same queries; the last one is warm, and its rate the measure of the others.
#[derive(Clone, Debug)]
pub struct Race {
    /// From the slowest to the warm one.
    pub entries: Vec<Entry>,
}

impl Race {
    /// Queries per second of the warm run.
    pub fn warm_rate(&self) -> f64 {
        self.entries.last().map_or(0.0, |warm| warm.run.records.len() as f64 / warm.run.seconds().max(1e-9))
    }

    /// Seconds until an entry was at full speed: the first stretch of half a second's warm
    /// queries at 90 % of the warm rate.
    pub fn seconds_to_full(&self, entry: &Entry) -> Option<f64> {
        let rate = self.warm_rate();
        let mut curve = entry.run.curve();
        curve.starts_at(entry.begun_ns);
        curve.seconds_to(FULL * rate, ((rate / 2.0) as usize).max(50))
    }

    /// The curves, as shares of the warm rate.
    pub fn plot(&self, width: usize, height: usize) -> String {
        const INTERVAL_S: f64 = 0.25;
        let panels: Vec<Panel> = self.entries.iter().map(|entry| panel(entry, INTERVAL_S)).collect();
        plot::draw(&panels, self.warm_rate(), width, height)
    }

    /// The cold runs as an SVG picture that stands alone; `conditions` is its second line.
    pub fn picture(&self, conditions: &str) -> String {
        picture::draw(self, conditions)
    }

    /// The time of each run to full speed, and the factors between them.
    pub fn verdict(&self) -> String {
        let Some((_, cold)) = self.entries.split_last() else { return String::new() };
        let mut out = String::new();
        for entry in cold {
            let curve = entry.run.curve();
            let last = curve.final_rate((curve.total() as usize / 10).max(1)) / self.warm_rate();
            out.push_str(&match self.seconds_to_full(entry) {
                Some(s) => format!("  {:<14} at full speed after {s:.1} s\n", entry.title),
                None => format!(
                    "  {:<14} not at full speed in {:.0} s, at {:.0} % of it when it was stopped\n",
                    entry.title,
                    entry.run.seconds(),
                    100.0 * last
                ),
            });
        }
        if let [slow, .., fast] = cold {
            out.push_str(&self.comparison(slow, fast));
        }
        out
    }

    fn comparison(&self, slow: &Entry, fast: &Entry) -> String {
        match (self.seconds_to_full(slow), self.seconds_to_full(fast)) {
            (Some(slow), Some(fast)) => format!("  full speed came {:.0} × sooner\n", slow / fast.max(0.01)),
            (None, Some(fast)) => {
                format!("  full speed came more than {:.0} × sooner\n", slow.run.seconds() / fast.max(0.01))
            }
            _ => "  full speed was not reached, so there is nothing to compare\n".to_owned(),
        }
    }
}

fn panel(entry: &Entry, interval_s: f64) -> Panel {
    let mut curve = entry.run.curve();
    curve.starts_at(entry.begun_ns);
    Panel { title: entry.title.clone(), seconds: curve.seconds(), rates: curve.rates(interval_s) }
}

#[cfg(test)]
mod tests {
    use super::super::drive::Record;
    use super::*;

    /// A run whose queries end at these seconds.
    fn entry(title: &str, ends: impl Iterator<Item = f64>) -> Entry {
        let record = |end: f64| Record { number: 1, end_ns: (end * 1e9) as u64, ..Record::default() };
        let records: Vec<Record> = ends.map(record).collect();
        let to_ns = records.last().map_or(0, |r| r.end_ns);
        Entry { title: title.into(), begun_ns: 0, run: Run { from_ns: 0, to_ns, records, ..Run::default() } }
    }

    /// One query a second for `slow` seconds, then a hundred a second for five.
    fn warming(title: &str, slow: u32) -> Entry {
        let fast = (1..=500).map(move |i| f64::from(slow) + f64::from(i) / 100.0);
        entry(title, (1..=slow).map(f64::from).chain(fast))
    }

    #[test]
    fn how_often_sooner() {
        let race = Race { entries: vec![warming("slow", 20), warming("fast", 2), warming("warm", 0)] };
        assert!((race.warm_rate() - 100.0).abs() < 1e-6);
        let text = race.verdict();
        assert!(text.contains("slow           at full speed after 20.0 s"), "{text}");
        assert!(text.contains("10 × sooner"), "{text}");
        assert!(race.plot(80, 8).lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn the_picture_has_a_line_and_a_label_for_each_cold_run() {
        let never = entry("a <slow> one", (1..=30).map(f64::from));
        let race = Race { entries: vec![never, warming("fast", 3), warming("warm", 0)] };
        let svg = race.picture("4 clients");
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains("a &lt;slow&gt; one: not at full speed in 30 s"), "{svg}");
        assert!(svg.contains("fast: full speed after 3.0 s"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn what_was_not_reached_is_said() {
        let never = entry("slow", (1..=30).map(f64::from));
        let race = Race { entries: vec![never, warming("fast", 3), warming("warm", 0)] };
        let text = race.verdict();
        assert!(text.contains("not at full speed in 30 s, at 1 %"), "{text}");
        assert!(text.contains("more than 10 × sooner"), "{text}");
    }
}
