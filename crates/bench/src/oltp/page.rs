//! The page: rates and latencies of the transactions, the speed of the scan, alone and together.

use snowmelt_lab::report::{Bar, Bars, Column, Figure, Report, Section, Table, Unit};
use snowmelt_lab::stats::median;

use super::{OltpPhase, OltpResult, Together};

/// The report of all that was measured.
pub fn report(result: &OltpResult) -> Report {
    let mut report = Report::new("Transactions beside a scan");
    let settings = settings(&result.phases);
    report.summary.extend(settings.iter().filter_map(|(engine, scheduler)| {
        let of = Of { phases: &result.phases, engine, scheduler };
        of.words()
    }));
    report.summary.extend(result.left_out.iter().map(|why| format!("Left out: {why}.")));
    for (engine, version, words) in &result.engines {
        let schedulers: Vec<&str> =
            settings.iter().filter(|(name, _)| name == engine).map(|(_, scheduler)| *scheduler).collect();
        let rates = bars(
            &schedulers,
            ("Transactions per second", "committed per second", Unit::Plain),
            &[Together::Transactions, Together::Both],
            &|scheduler, phase| Of { phases: &result.phases, engine, scheduler }.median(phase, |p| p.per_s),
        );
        let tails = bars(
            &schedulers,
            ("Latency of a transaction, 99th percentile", "p99", Unit::Nanoseconds),
            &[Together::Transactions, Together::Both],
            &|scheduler, phase| {
                Of { phases: &result.phases, engine, scheduler }
                    .median(phase, |p| Some(p.latency.p99_ns as f64))
            },
        );
        let scans = bars(
            &schedulers,
            ("Speed of the scan", "read", Unit::BytesPerSecond),
            &[Together::Scan, Together::Both],
            &|scheduler, phase| {
                Of { phases: &result.phases, engine, scheduler }
                    .median(phase, |p| p.scan_mb_per_s.map(|mb| mb * 1e6))
            },
        );
        let figures = vec![rates, tails, scans, Figure::Table(table(&result.phases, engine))];
        report.sections.push(Section::new(engine.clone(), figures).with_text(format!("{version}: {words}.")));
    }
    report
}

/// Engines and schedulers, in the order in which they come first.
fn settings(phases: &[OltpPhase]) -> Vec<(&str, &str)> {
    let mut settings = Vec::new();
    for phase in phases {
        let setting = (phase.engine.as_str(), phase.scheduler.as_str());
        if !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    settings
}

/// The phases of an engine under a scheduler.
struct Of<'a> {
    phases: &'a [OltpPhase],
    engine: &'a str,
    scheduler: &'a str,
}

impl Of<'_> {
    /// The median of the rounds.
    fn median(&self, phase: Together, value: impl Fn(&OltpPhase) -> Option<f64>) -> Option<f64> {
        let is_it =
            |p: &&OltpPhase| p.engine == self.engine && p.scheduler == self.scheduler && p.phase == phase;
        median(&self.phases.iter().filter(is_it).filter_map(value).collect::<Vec<f64>>())
    }

    fn words(&self) -> Option<String> {
        let rate = |phase| self.median(phase, |p| p.per_s);
        let tail = |phase| self.median(phase, |p| Some(p.latency.p99_ns as f64 / 1e6));
        let scan = |phase| self.median(phase, |p| p.scan_mb_per_s);
        Some(format!(
            "{}, {}: {:.0} transactions per second alone and {:.0} beside the scan, p99 {:.1} and {:.1} ms; the scan \
             {:.0} MB/s alone and {:.0} beside them.",
            self.engine,
            self.scheduler,
            rate(Together::Transactions)?,
            rate(Together::Both)?,
            tail(Together::Transactions)?,
            tail(Together::Both)?,
            scan(Together::Scan)?,
            scan(Together::Both)?
        ))
    }
}

fn bars(
    schedulers: &[&str],
    (title, label, unit): (&str, &str, Unit),
    phases: &[Together],
    value: &dyn Fn(&str, Together) -> Option<f64>,
) -> Figure {
    let mut bars = Vec::new();
    for scheduler in schedulers {
        for (group, phase) in phases.iter().enumerate() {
            let name = format!("{scheduler}, {}", phase.words());
            bars.extend(value(scheduler, *phase).map(|value| Bar { name, value, group, ..Bar::default() }));
        }
    }
    Figure::Bars(Bars { title: title.into(), label: label.into(), unit, bars, ..Bars::default() })
}

fn table(phases: &[OltpPhase], engine: &str) -> Table {
    let numbers = [
        "round",
        "transactions",
        "failed",
        "per s",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "p99.9 ms",
        "most ms",
        "scan MB/s",
    ];
    let mut columns = vec![Column::text("scheduler"), Column::text("phase")];
    columns.extend(numbers.map(Column::number));
    let row = |p: &OltpPhase| {
        let shown = |number: Option<f64>| number.map_or("–".into(), |number| format!("{number:.1}"));
        let ms = |ns: u64| p.per_s.map_or("–".into(), |_| format!("{:.2}", ns as f64 / 1e6));
        let l = &p.latency;
        let mut row = vec![p.scheduler.clone(), p.phase.words().into(), p.round.to_string()];
        row.extend([p.transactions.to_string(), p.failed.to_string(), shown(p.per_s)]);
        row.extend([l.p50_ns, l.p90_ns, l.p99_ns, l.p99_9_ns, l.max_ns].map(ms));
        row.push(shown(p.scan_mb_per_s));
        row
    };
    Table {
        title: "All phases".into(),
        note: "Latency is from a transaction's beginning until its commit was known.".into(),
        columns,
        rows: phases.iter().filter(|p| p.engine == engine).map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use snowmelt_lab::stats::LatencySummary;

    use super::*;

    #[test]
    fn alone_and_together_stand_beside_each_other() {
        let phase = |phase: Together, per_s: f64, scan: f64| OltpPhase {
            engine: "postgresql".into(),
            scheduler: "none".into(),
            phase,
            round: 1,
            seconds: 1.0,
            transactions: per_s as u64,
            failed: 0,
            per_s: (per_s > 0.0).then_some(per_s),
            latency: LatencySummary { p99_ns: 2_000_000, ..LatencySummary::default() },
            scan_mb_per_s: (scan > 0.0).then_some(scan),
        };
        let phases = vec![
            phase(Together::Transactions, 500.0, 0.0),
            phase(Together::Scan, 0.0, 90.0),
            phase(Together::Both, 200.0, 40.0),
        ];
        let engines = vec![("postgresql".into(), "15".into(), "words")];
        let result = OltpResult { phases, engines, left_out: vec!["no x".into()], doubts: Vec::new() };
        let page = report(&result);
        assert!(page.summary[0].contains("500 transactions per second alone and 200 beside"), "{page:?}");
        assert!(page.summary[0].contains("90 MB/s alone and 40") && page.summary[1].contains("no x"));
        let Figure::Bars(rates) = &page.sections[0].figures[0] else { panic!("bars") };
        assert_eq!(rates.bars.iter().map(|bar| bar.value).collect::<Vec<_>>(), [500.0, 200.0]);
        let Figure::Table(table) = &page.sections[0].figures[3] else { panic!("a table") };
        assert_eq!(table.rows[1][5], "–", "a scan alone has no transactions");
    }
}
