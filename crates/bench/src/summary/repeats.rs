//! The figures of each repeat, as the lines by which runs are compared.

use serde::Serialize;
use serde_json::{Value, json};
use snowmelt_lab::report::{Column, Figure, Table};
use snowmelt_lab::stats::{median, spread};

use super::OwnCost;
use crate::report::{MixTimes, QueryReport};

/// The cell of whole mixes among those of the queries.
pub const MIX: &str = "mix";

/// The figures of one repeat.
#[derive(Clone, Debug, Serialize)]
pub struct RepeatFigures {
    /// Which, from 1.
    pub repeat: u32,
    /// Query mixes per hour.
    pub qmph: f64,
    /// Wall time.
    pub seconds: f64,
    /// Times of whole mixes.
    pub mix: MixTimes,
    /// The driver's own cost.
    pub own: OwnCost,
    /// Figures by query.
    #[serde(skip)]
    pub queries: Vec<QueryReport>,
}

impl RepeatFigures {
    /// A line for the mix, and one for each query.
    pub fn lines(&self) -> Vec<Value> {
        let MixTimes { mixes, cqet, cqet_geometric, .. } = self.mix;
        let mut lines = vec![json!({
            "query": MIX, "repeat": self.repeat, "count": mixes, "qmph": self.qmph, "cqet": cqet,
            "cqet_geometric": cqet_geometric, "seconds": self.seconds, "own_us": self.own.query_us,
        })];
        for query in &self.queries {
            let mut line = json!(query);
            line["repeat"] = self.repeat.into();
            lines.push(line);
        }
        lines
    }
}

/// The spread of the repeats, in a line; nothing of a single one.
pub(super) fn line(repeats: &[RepeatFigures]) -> Option<String> {
    let rates: Vec<f64> = repeats.iter().map(|repeat| repeat.qmph).collect();
    let of_all = spread(&rates);
    (rates.len() > 1).then(|| {
        format!(
            "{} repeats: QMpH {:.2} in the median, {:.2} to {:.2}",
            rates.len(),
            median(&rates).unwrap_or(0.0),
            of_all.min,
            of_all.max
        )
    })
}

/// The repeats as a table of the page; nothing of a single one.
pub(super) fn table(repeats: &[RepeatFigures]) -> Option<Figure> {
    let row = |of: &RepeatFigures| {
        vec![
            of.repeat.to_string(),
            format!("{:.2}", of.qmph),
            of.mix.mixes.to_string(),
            format!("{:.3}", of.seconds),
            format!("{:.5}", of.mix.cqet),
            format!("{:.1}", of.own.query_us),
        ]
    };
    let names = ["repeat", "QMpH", "mixes", "seconds", "CQET s", "driver µs per query"];
    (repeats.len() > 1).then(|| {
        Figure::Table(Table {
            title: "By repeat".into(),
            note: "Other figures are of all repeats together.".into(),
            columns: names.into_iter().map(Column::number).collect(),
            rows: repeats.iter().map(row).collect(),
        })
    })
}
