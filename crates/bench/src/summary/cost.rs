//! The driver's own cost for a query, and whether a rate may be held against a published one: what
//! the driver costs is no property of the engine, and another driver costs something else.

use serde::Serialize;
use snowmelt_workload::drive::{ClientWork, Run};

/// Largest share of a query's time that the driver may cost itself where a rate is held against one
/// that was published.
pub const MOST_SHARE: f64 = 0.10;

/// Processor time of the driver for a query, in microseconds: means over all queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OwnCost {
    /// Parameters are drawn, and records kept.
    pub drawing_us: f64,
    /// The query is sent and its answer received; of an engine in this process that is the
    /// engine's.
    pub asking_us: Option<f64>,
    /// The answer is parsed, and its terms digested.
    pub reading_us: f64,
    /// All of it.
    pub query_us: f64,
    /// Of the time from sending a query to the end of its answer.
    pub share: f64,
}

/// A published rate, and this one as its multiple.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedRate {
    /// Query mixes per hour, as published.
    pub qmph: f64,
    /// The rate of this run ÷ that.
    pub ratio: Option<f64>,
    /// Why there is no ratio.
    pub refused: Option<String>,
}

impl OwnCost {
    /// Of a run.
    pub fn new(run: &Run, in_process: bool) -> Self {
        let ClientWork { drawing_ns, asking_ns, reading_ns } = run.work;
        let each = |ns: u64| ns as f64 / 1e3 / run.records.len().max(1) as f64;
        let asking_us = (!in_process).then(|| each(asking_ns));
        let query_us = each(drawing_ns) + asking_us.unwrap_or(0.0) + each(reading_ns);
        let took_ns = run.records.iter().map(|record| record.end_ns.saturating_sub(record.start_ns)).sum();
        let took_us = each(took_ns);
        Self {
            drawing_us: each(drawing_ns),
            asking_us,
            reading_us: each(reading_ns),
            query_us,
            share: if took_us > 0.0 { query_us / took_us } else { 0.0 },
        }
    }

    /// In a line.
    pub fn line(&self) -> String {
        let asking = match self.asking_us {
            Some(us) => format!("sending and receiving {us:.1}"),
            None => "sending and receiving are the engine's here".to_owned(),
        };
        format!(
            "the driver's own cost: {:.1} µs of processor time for a query (parameters {:.1}, {asking}, reading the \
             answer {:.1}), {:.1} % of a query's time",
            self.query_us,
            self.drawing_us,
            self.reading_us,
            100.0 * self.share
        )
    }
}

impl PublishedRate {
    /// Holds a rate against a published one. `failed` queries have no answer.
    pub(super) fn hold(published: f64, qmph: f64, own: &OwnCost, failed: usize) -> Self {
        let refused = if own.share > MOST_SHARE {
            Some(format!(
                "the driver's own cost is {:.0} % of a query's time, and {:.0} % is the most; compare engines that \
                 this driver has driven",
                100.0 * own.share,
                100.0 * MOST_SHARE
            ))
        } else if failed > 0 {
            Some(format!("{failed} queries have no answer"))
        } else {
            None
        };
        let ratio = refused.is_none().then_some(qmph / published);
        Self { qmph: published, ratio, refused }
    }

    /// In a line.
    pub(super) fn line(&self) -> String {
        match (&self.ratio, &self.refused) {
            (Some(ratio), _) => format!("{ratio:.2} × the published {} QMpH", self.qmph),
            (None, why) => {
                let why = why.as_deref().unwrap_or_default();
                format!("no ratio to the published {} QMpH: {why}", self.qmph)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmelt_workload::drive::Record;

    /// 10 queries of `took_us`; the clients worked 300 µs, of which 100 µs between queries, 160 µs
    /// to ask.
    fn run(took_us: u64) -> Run {
        let record = Record { start_ns: 1000, end_ns: 1000 + took_us * 1000, ..Record::default() };
        let work = ClientWork { drawing_ns: 100_000, asking_ns: 160_000, reading_ns: 40_000 };
        Run { records: vec![record; 10], work, ..Run::default() }
    }

    #[test]
    fn the_engine_s_own_work_is_none_of_the_driver_s() {
        let over_http = OwnCost::new(&run(1000), false);
        assert_eq!((over_http.query_us, over_http.asking_us, over_http.share), (30.0, Some(16.0), 0.03));
        let in_process = OwnCost::new(&run(1000), true);
        assert_eq!((in_process.query_us, in_process.asking_us, in_process.share), (14.0, None, 0.014));
        assert!(
            over_http.line().contains("30.0 µs") && over_http.line().contains("3.0 %"),
            "{}",
            over_http.line()
        );
        assert_eq!(OwnCost::new(&Run::default(), false).share, 0.0);
    }

    #[test]
    fn a_ratio_is_refused_where_the_driver_costs_more_than_a_tenth() {
        let hold = |took_us, failed| {
            PublishedRate::hold(1000.0, 1500.0, &OwnCost::new(&run(took_us), false), failed)
        };
        assert_eq!(hold(1000, 0).ratio, Some(1.5));
        assert!(hold(1000, 0).line().contains("1.50 × the published 1000 QMpH"));
        let refused = hold(299, 0);
        assert_eq!(refused.ratio, None);
        assert!(
            refused.line().contains("no ratio") && refused.line().contains("10 % is the most"),
            "{refused:?}"
        );
        assert_eq!(hold(301, 0).ratio, Some(1.5), "just below a tenth");
        assert!(hold(1000, 2).refused.unwrap().contains("2 queries"));
    }
}
