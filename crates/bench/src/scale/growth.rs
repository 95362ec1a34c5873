//! Exponents of growth between neighbouring scales.

use serde::Serialize;

use super::{Phase, ScaleRun};

/// Growth from one scale to the next.
#[derive(Clone, Debug, Serialize)]
pub struct Growth {
    /// Products of the smaller data set.
    pub from: u32,
    /// And of the larger one.
    pub to: u32,
    /// Quads of the larger ÷ quads of the smaller.
    pub data: f64,
    /// Figure by figure.
    pub figures: Vec<GrowthFigure>,
}

/// The growth of one figure.
#[derive(Clone, Debug, Serialize)]
pub struct GrowthFigure {
    /// Name of the figure.
    pub name: String,
    /// At the smaller scale.
    pub before: f64,
    /// At the larger.
    pub after: f64,
    /// Its exponent; none where one of the two is 0.
    pub exponent: Option<f64>,
}

/// The exponent x of a figure that goes from `before` to `after` while the data goes from
/// `smaller` to `larger`: `after = before · (larger ÷ smaller)^x`. None where it has none.
pub fn exponent(before: f64, after: f64, smaller: f64, larger: f64) -> Option<f64> {
    let has_one = before > 0.0 && after > 0.0 && smaller > 0.0 && larger > 0.0 && smaller != larger;
    has_one.then(|| (after / before).ln() / (larger / smaller).ln())
}

/// The growth between each scale and the next.
pub fn growths(runs: &[ScaleRun]) -> Vec<Growth> {
    runs.windows(2).map(|pair| between(&pair[0], &pair[1])).collect()
}

/// A figure of a run, by name.
type Figure = (&'static str, fn(&ScaleRun) -> f64);

const FIGURES: [Figure; 9] = [
    ("operations per mix", |run| run.steady.operations_per_mix()),
    ("look-ups per mix", |run| run.steady.per_mix(run.steady.activity.rnd)),
    ("rows moved over per mix", |run| run.steady.per_mix(run.steady.activity.seq)),
    ("reads per mix, from cold", |run| run.cold.reads_per_mix()),
    ("reads per mix, steady", |run| run.steady.reads_per_mix()),
    ("forks per mix", |run| run.steady.per_mix(run.steady.activity.fork)),
    ("operations per second", |run| run.steady.operations_per_second),
    ("time per mix", |run| mix_seconds(&run.steady)),
    ("planning per mix", |run| mix_seconds(&run.steady) * run.steady.planning_share),
];

/// The figures of one scale, and the mean times of its queries, by name.
pub fn figures_of(run: &ScaleRun) -> Vec<(String, f64)> {
    let figures = FIGURES.iter().map(|(name, of)| ((*name).to_owned(), of(run)));
    figures.chain(run.steady.queries.iter().map(|q| (format!("time of Q{}", q.query), q.mean_s))).collect()
}

/// Time of a mix's queries.
fn mix_seconds(phase: &Phase) -> f64 {
    phase.queries.iter().map(|q| q.mean_s * q.count as f64).sum::<f64>() / phase.mixes.max(1) as f64
}

fn between(small: &ScaleRun, large: &ScaleRun) -> Growth {
    let (from, to) = (small.quads as f64, large.quads as f64);
    let figure = |name: String, before: f64, after: f64| GrowthFigure {
        name,
        before,
        after,
        exponent: exponent(before, after, from, to),
    };
    let mut figures: Vec<GrowthFigure> =
        FIGURES.iter().map(|(name, of)| figure((*name).to_owned(), of(small), of(large))).collect();
    for q in &small.steady.queries {
        if let Some(same) = large.steady.queries.iter().find(|other| other.query == q.query) {
            figures.push(figure(format!("time of Q{}", q.query), q.mean_s, same.mean_s));
        }
    }
    Growth { from: small.products, to: large.products, data: to / from.max(1.0), figures }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_of_known_series() {
        let close = |x: Option<f64>, to: f64| assert!((x.unwrap() - to).abs() < 1e-12, "{x:?} is not {to}");
        close(exponent(5.0, 5.0, 1e6, 1e7), 0.0);
        close(exponent(5.0, 50.0, 1e6, 1e7), 1.0);
        close(exponent(3.0, 300.0, 1e6, 1e7), 2.0);
        close(exponent(8.0, 4.0, 1e6, 4e6), -0.5);
        // E2: ten times the data, seven times the operations
        close(exponent(1.0, 7.0, 1.0, 10.0), 7f64.log10());
        for (before, after, smaller, larger) in
            [(0.0, 1.0, 1.0, 2.0), (1.0, 0.0, 1.0, 2.0), (1.0, 2.0, 3.0, 3.0), (1.0, 2.0, 0.0, 3.0)]
        {
            assert_eq!(exponent(before, after, smaller, larger), None);
        }
    }
}
