//! The page of a measurement.

use snowmelt_lab::report::{Axis, Bar, Bars, Column, Figure, Plot, Report, Section, Series, Table, Unit};

use super::{Summary, repeats};
use crate::report::QueryReport;
use crate::verify::{Verification, differences_table};
use crate::warm_up::WarmUp;
use snowmelt_workload::drive::Run;

impl Summary {
    /// Figures and tables; `run` gives the course of the throughput.
    pub fn page(&self, run: &Run) -> Report {
        let setup = &self.setup;
        let loop_kind = match setup.rate {
            Some(rate) => format!("an open loop of {rate} queries/s"),
            None => "a closed loop".to_owned(),
        };
        let mut report = Report::new(format!("BSBM {} on {}", setup.use_case, setup.target));
        let warm_up = match &self.warm_up {
            Some(_) => "warmed up from cold".to_owned(),
            None => format!("{} mixes of warm-up", setup.warmup),
        };
        report.summary.push(format!(
            "{} products, seed {}, {} clients in {loop_kind}, {warm_up}",
            setup.products, setup.seed, setup.clients
        ));
        report.summary.extend(self.lines());
        let throughput = [course(run)].into_iter().chain(repeats::table(&self.repeats));
        report.sections = vec![
            Section::new("Throughput", throughput.collect()),
            Section::new("Times", vec![self.times(), self.table()]).with_text(
                "A query's time ends with the last byte of its answer. It begins when the query is sent, \
                 in an open loop when it should have been.",
            ),
        ];
        report.sections.extend(self.warm_up.as_ref().map(WarmUp::section));
        report.sections.extend(self.verification.as_ref().map(differences));
        report
    }

    fn times(&self) -> Figure {
        let bar = |query: &QueryReport| Bar {
            name: format!("Q{}", query.query),
            value: query.p50,
            range: Some((query.min, query.p99)),
            group: 0,
        };
        Figure::Bars(Bars {
            title: "Time of a query".into(),
            note: "The median; the thin line is from the shortest to the 99th percentile.".into(),
            label: "time".into(),
            unit: Unit::Seconds,
            bars: self.queries.iter().map(bar).collect(),
        })
    }

    fn table(&self) -> Figure {
        let names = [
            "query",
            "runs",
            "failed",
            "timeouts",
            "AQET ms",
            "geometric",
            "min",
            "p50",
            "p90",
            "p99",
            "p99.9",
            "max",
            "queries/s",
            "rows",
            "least",
            "most",
        ];
        let mut columns: Vec<Column> = names.into_iter().map(Column::number).collect();
        columns.push(Column::number("digest"));
        Figure::Table(Table {
            title: "By query".into(),
            note: "Times in milliseconds; rows are solutions or distinct triples.".into(),
            columns,
            rows: self.queries.iter().map(|query| self.row(query)).collect(),
        })
    }

    fn row(&self, q: &QueryReport) -> Vec<String> {
        let times = [q.aqet, q.aqet_geometric, q.min, q.p50, q.p90, q.p99, q.p99_9, q.max];
        let mut row = vec![format!("Q{}", q.query)];
        row.extend([q.count, q.failed, q.timeouts].map(|count| count.to_string()));
        row.extend(times.map(|seconds| format!("{:.3}", seconds * 1e3)));
        row.push(format!("{:.1}", self.qps(q)));
        row.extend([
            format!("{:.2}", q.rows),
            q.min_rows.to_string(),
            q.max_rows.to_string(),
            q.digest.clone(),
        ]);
        row
    }
}

/// Queries per second over the time of the run.
fn course(run: &Run) -> Figure {
    let interval_s = (run.seconds() / 60.0).clamp(0.1, 60.0);
    let rates = run.curve().rates(interval_s);
    let points = rates.iter().enumerate().map(|(i, rate)| ((i as f64 + 0.5) * interval_s, *rate));
    Figure::Lines(Plot {
        title: "Queries per second".into(),
        note: format!("In intervals of {interval_s:.2} s."),
        x: Axis::new("time", Unit::Seconds),
        y: Axis::new("queries per second", Unit::Plain),
        series: vec![Series::new("answered", points.collect())],
    })
}

/// Answers that differ; what was compared where none does.
fn differences(verification: &Verification) -> Section {
    let differing =
        (!verification.differences.is_empty()).then(|| differences_table("this run", verification));
    Section::new("Verification", differing.into_iter().collect()).with_text(verification.line())
}
