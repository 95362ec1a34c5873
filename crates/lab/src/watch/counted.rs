//! Counters over the time of a watch: asked by a thread per source, kept, and shown.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::counters::{CounterSource, Counters};
use super::phase::Phase;
use crate::LabError;
use crate::report::{Axis, Column, Figure, Plot, Section, Series, Table, Unit};

/// A thread that asks one source.
pub struct Asking {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Counted>,
}

/// The answers of one source.
pub struct Counted {
    /// The source, in words.
    pub source: String,
    /// Seconds since the watch began, and the numbers then.
    pub samples: Vec<(f64, Counters)>,
    /// Answers that failed, and why the first of them did.
    pub failed: (u64, String),
}

/// A line of `counters.jsonl`.
#[derive(Serialize)]
struct CounterLine<'a> {
    source: &'a str,
    at_s: f64,
    counters: &'a Counters,
}

/// Pictures of one source; the other counters are in the table and in the file.
const MOST_PICTURES: usize = 12;
/// Rows of the table.
const MOST_ROWS: usize = 200;
/// Counters in the table of phases.
const MOST_COLUMNS: usize = 8;

impl Asking {
    /// Asks once now, so that a source that cannot be asked is told before anything is measured,
    /// then once per interval.
    ///
    /// # Errors
    /// The first answer fails.
    pub fn start(source: CounterSource, begun: Instant, interval: Duration) -> Result<Asking, LabError> {
        let first = source.ask()?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let samples = vec![(begun.elapsed().as_secs_f64(), first)];
        let mut counted = Counted { source: source.to_string(), samples, failed: (0, String::new()) };
        let ask = move || {
            let mut due = Instant::now();
            loop {
                due = (due + interval).max(Instant::now());
                while Instant::now() < due && !told.load(Ordering::Acquire) {
                    std::thread::sleep(Duration::from_millis(10));
                }
                // The time of a sample is when it was asked for: before a slow answer.
                let at = begun.elapsed().as_secs_f64();
                match source.ask() {
                    Ok(counters) => counted.samples.push((at, counters)),
                    Err(e) if counted.failed.0 == 0 => counted.failed = (1, e.to_string()),
                    Err(_) => counted.failed.0 += 1,
                }
                if told.load(Ordering::Acquire) {
                    return counted;
                }
            }
        };
        let thread = std::thread::Builder::new().name("counters".into()).spawn(ask);
        Ok(Asking { stop, thread: thread.map_err(|e| LabError::system("start a thread", e))? })
    }

    /// A last answer, and all of them.
    pub fn finish(self) -> Counted {
        self.stop.store(true, Ordering::Release);
        self.thread.join().expect("the asking thread does not panic")
    }
}

impl Counted {
    /// Writes a line per sample.
    ///
    /// # Errors
    /// A line cannot be written.
    pub fn write(&self, lines: &mut crate::JsonLines) -> Result<(), LabError> {
        self.samples.iter().try_for_each(|(at_s, counters)| {
            lines.write(&CounterLine { source: &self.source, at_s: *at_s, counters })
        })
    }

    /// A doubt, when answers failed.
    pub fn doubt(&self) -> Option<String> {
        let (n, why) = &self.failed;
        (*n > 0).then(|| format!("{n} answers of a source of counters failed; the first: {why}"))
    }

    fn names(&self) -> BTreeSet<&String> {
        self.samples.iter().flat_map(|(_, counters)| counters.keys()).collect()
    }

    fn values(&self, name: &str) -> Vec<(f64, f64)> {
        let value = |(at, counters): &(f64, Counters)| Some((*at, *counters.get(name)?));
        self.samples.iter().filter_map(value).collect()
    }

    /// The counters that changed, those that grew most first.
    fn changed(&self) -> Vec<Changed> {
        let mut changed: Vec<Changed> = self
            .names()
            .into_iter()
            .filter_map(|name| {
                let values = self.values(name);
                let ((_, first), (_, last)) = (*values.first()?, *values.last()?);
                let grows = values.windows(2).all(|two| two[0].1 <= two[1].1);
                let differs = values.iter().any(|(_, value)| *value != first);
                differs.then(|| Changed { name: name.clone(), values, first, last, grows })
            })
            .collect();
        changed.sort_by(|a, b| (b.last - b.first).abs().total_cmp(&(a.last - a.first).abs()));
        changed
    }

    /// Pictures of the counters that changed, and tables.
    pub fn section(&self, phases: &[Phase]) -> Section {
        let changed = self.changed();
        let mut figures: Vec<Figure> = changed.iter().take(MOST_PICTURES).map(Changed::picture).collect();
        figures.extend(by_phase(&changed, phases));
        figures.push(Figure::Table(Table {
            title: "Counters that changed".into(),
            note: format!(
                "{} of {} changed; a picture each for the {} that changed most; all are in counters.jsonl.",
                changed.len(),
                self.names().len(),
                changed.len().min(MOST_PICTURES)
            ),
            columns: [Column::text("counter")]
                .into_iter()
                .chain(["first", "last", "change"].map(Column::number))
                .collect(),
            rows: changed.iter().take(MOST_ROWS).map(Changed::row).collect(),
        }));
        Section::new(format!("Counters of {}", self.source), figures)
            .with_text("A counter that only grows is shown per second, any other one as it is.")
    }
}

struct Changed {
    name: String,
    values: Vec<(f64, f64)>,
    first: f64,
    last: f64,
    grows: bool,
}

impl Changed {
    fn picture(&self) -> Figure {
        let rates = self.values.windows(2).map(|two| {
            let ((from, a), (to, b)) = (two[0], two[1]);
            (to, (b - a) / (to - from).max(1e-9))
        });
        let points = if self.grows { rates.collect() } else { self.values.clone() };
        Figure::Lines(Plot {
            title: self.name.clone(),
            note: String::new(),
            x: Axis::new("time since the start", Unit::Seconds),
            y: Axis::new(if self.grows { "per second" } else { "value" }, Unit::Plain),
            series: vec![Series::new(self.name.clone(), points)],
        })
    }

    fn row(&self) -> Vec<String> {
        let number =
            |value: f64| if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.3}") };
        vec![self.name.clone(), number(self.first), number(self.last), number(self.last - self.first)]
    }

    /// Increase between two moments, by the first sample at or after each.
    fn increase(&self, from: f64, to: f64) -> f64 {
        let at = |moment: f64| {
            let after = self.values.iter().find(|(at, _)| *at >= moment);
            after.or(self.values.last()).map_or(0.0, |(_, value)| *value)
        };
        at(to) - at(from)
    }
}

fn by_phase(changed: &[Changed], phases: &[Phase]) -> Option<Figure> {
    let growing: Vec<&Changed> = changed.iter().filter(|c| c.grows).take(MOST_COLUMNS).collect();
    let named: Vec<&Phase> = phases.iter().filter(|phase| !phase.name.is_empty()).collect();
    if growing.is_empty() || named.is_empty() {
        return None;
    }
    let rows = named.iter().map(|phase| {
        let increases = growing.iter().map(|c| Unit::Plain.show(c.increase(phase.begin_s, phase.end_s)));
        std::iter::once(phase.name.clone()).chain(increases).collect()
    });
    Some(Figure::Table(Table {
        title: "Increase by phase".into(),
        note:
            "By the first sample after each mark: as exact as the interval, and as the server is in telling."
                .into(),
        rows: rows.collect(),
        columns: std::iter::once(Column::text("phase"))
            .chain(growing.iter().map(|c| Column::number(&c.name)))
            .collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(values: &[(f64, f64, f64)]) -> Counted {
        let sample = |(at, reads, level): &(f64, f64, f64)| {
            let pairs = [("reads", *reads), ("level", *level), ("still", 3.0)];
            (*at, pairs.map(|(name, value)| (name.to_owned(), value)).into())
        };
        Counted {
            source: "x".into(),
            samples: values.iter().map(sample).collect(),
            failed: (0, String::new()),
        }
    }

    #[test]
    fn growing_counters_are_rates_and_levels_are_levels() {
        let changed = counted(&[(0.0, 10.0, 5.0), (2.0, 30.0, 4.0), (3.0, 30.0, 6.0)]).changed();
        let names: Vec<&str> = changed.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["reads", "level"], "what did not change is left out");
        let points = |i: usize| match changed[i].picture() {
            Figure::Lines(plot) => plot.series[0].points.clone(),
            _ => panic!("lines"),
        };
        assert_eq!(points(0), [(2.0, 10.0), (3.0, 0.0)]);
        assert_eq!(points(1), [(0.0, 5.0), (2.0, 4.0), (3.0, 6.0)]);
        assert_eq!(changed[0].increase(0.0, 1.5), 20.0, "by the first sample after the end");
        assert_eq!(changed[0].increase(1.5, 3.0), 0.0);
    }

    #[test]
    fn a_source_is_asked_first_last_and_in_between() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("n");
        let path = file.display();
        let source = CounterSource::Command(format!("echo x >> {path}; echo lines $(wc -l < {path})"));
        let asking = Asking::start(source, Instant::now(), Duration::from_millis(30)).unwrap();
        std::thread::sleep(Duration::from_millis(150));
        let counted = asking.finish();
        assert!(counted.samples.len() >= 3, "{}", counted.samples.len());
        assert_eq!(counted.samples[1].1["lines"], 2.0);
        assert_eq!(counted.doubt(), None);
        let none =
            Asking::start(CounterSource::Command("exit 1".into()), Instant::now(), Duration::from_secs(1));
        assert!(none.is_err(), "told at the beginning");
    }
}
