//! Axes: from values to places, the ticks worth a label, and values as people write them.

use serde::{Deserialize, Serialize};

/// An axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// The measured quantity.
    pub label: String,
    /// In which unit the values are.
    pub unit: Unit,
    /// How values become places.
    pub scale: Scale,
    /// Stretches with a name, drawn behind the lines of a horizontal axis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bands: Vec<Band>,
}

/// A stretch of an axis with a name: a phase of a measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Band {
    /// Its name; an empty one is not drawn.
    pub name: String,
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
}

/// Unit of values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A number: said with k, M, G.
    #[default]
    Plain,
    /// Seconds.
    Seconds,
    /// Nanoseconds: said as ns, µs, ms or s.
    Nanoseconds,
    /// Bytes: said with KiB, MiB, GiB.
    Bytes,
    /// Bytes per second: said as MB/s.
    BytesPerSecond,
    /// 100 is all.
    Percent,
}

/// How values become places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// In proportion, from zero.
    #[default]
    Linear,
    /// By the logarithm; values that are not positive are left out.
    Log,
    /// The distinct values at equal distances.
    Ordinal,
}

impl Axis {
    /// A linear axis.
    pub fn new(label: impl Into<String>, unit: Unit) -> Axis {
        Axis { label: label.into(), unit, ..Axis::default() }
    }

    /// With another scale.
    #[must_use]
    pub fn scaled(mut self, scale: Scale) -> Axis {
        self.scale = scale;
        self
    }

    /// Fitted to `values`; places go from `from` to `to`.
    pub fn fit(&self, values: impl Iterator<Item = f64>, from: f64, to: f64) -> FittedAxis {
        fit(self, values, from, to)
    }
}

impl Unit {
    /// A value with its unit, three significant digits.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Plain => {
                let (scaled, letter) = thousands(value, &["", "k", "M", "G", "T"]);
                format!("{}{letter}", digits(scaled))
            }
            Unit::Seconds | Unit::Nanoseconds if value == 0.0 => "0 s".into(),
            Unit::Seconds if value.abs() < 1.0 => Unit::Nanoseconds.show(value * 1e9),
            Unit::Seconds => format!("{} s", digits(value)),
            Unit::Nanoseconds => {
                let (scaled, unit) = thousands(value, &["ns", "µs", "ms", "s"]);
                format!("{} {unit}", digits(scaled))
            }
            Unit::Bytes => crate::size::about(value).replace(".00 ", " ").replace(".0 ", " "),
            Unit::BytesPerSecond => format!("{} MB/s", digits(value / 1e6)),
            Unit::Percent => format!("{} %", digits(value)),
        }
    }
}

fn thousands<'a>(mut value: f64, units: &[&'a str]) -> (f64, &'a str) {
    let mut unit = 0;
    while value.abs() >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    (value, units[unit])
}

/// Three significant digits, without zeros at the end of a fraction.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        v if v >= 0.09995 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// Labels of an ordinal axis.
const MOST_LABELS: usize = 24;

/// An axis fitted to values and to a range of places.
pub struct FittedAxis {
    scale: Scale,
    unit: Unit,
    low: f64,
    high: f64,
    /// The distinct values of an ordinal axis.
    values: Vec<f64>,
    from: f64,
    to: f64,
}

/// Fits `axis` to `values`; places go from `from` to `to`.
pub(super) fn fit(axis: &Axis, values: impl Iterator<Item = f64>, from: f64, to: f64) -> FittedAxis {
    let mut values: Vec<f64> =
        values.filter(|v| v.is_finite() && (axis.scale != Scale::Log || *v > 0.0)).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let (first, last) = (values.first().copied().unwrap_or(0.0), values.last().copied().unwrap_or(1.0));
    let (low, high) = match axis.scale {
        Scale::Linear => {
            let step = step(axis.unit, last.max(0.0) - first.min(0.0));
            ((first.min(0.0) / step).floor() * step, ((last / step).ceil() * step).max(step))
        }
        // At least a decade, so that ticks stand in it.
        Scale::Log => {
            let (low, high) =
                (at_or_below(first.max(f64::MIN_POSITIVE)), at_or_above(last.max(f64::MIN_POSITIVE)));
            if high / low < 10.0 { (low, low * 10.0) } else { (low, high) }
        }
        Scale::Ordinal => (first, last),
    };
    if axis.scale != Scale::Ordinal {
        values.clear();
    }
    FittedAxis { scale: axis.scale, unit: axis.unit, low, high, values, from, to }
}

impl FittedAxis {
    /// Where a value lies; `None` when it has no place.
    pub fn place(&self, value: f64) -> Option<f64> {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log if value <= 0.0 => return None,
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Ordinal => {
                let i = self.values.iter().position(|v| *v == value)?;
                (i as f64 + 0.5) / self.values.len() as f64
            }
        };
        share.is_finite().then_some(self.from + share * (self.to - self.from))
    }

    /// Places and labels of the ticks.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let values = match self.scale {
            Scale::Linear => linear_ticks(self.unit, self.low, self.high),
            Scale::Log => log_ticks(self.low, self.high),
            // No more labels than fit beside each other.
            Scale::Ordinal => {
                let every = self.values.len().div_ceil(MOST_LABELS).max(1);
                self.values.iter().step_by(every).copied().collect()
            }
        };
        let show = |value: f64| match self.unit {
            Unit::Plain if self.scale == Scale::Ordinal && value.abs() < 10_000.0 => format!("{value}"),
            unit => unit.show(value),
        };
        values.into_iter().filter_map(|v| Some((self.place(v)?, show(v)))).collect()
    }
}

/// 1, 2 or 5 times a power of ten, so that about five of them make up `range`.
fn nice_step(range: f64) -> f64 {
    if range <= 0.0 || !range.is_finite() {
        return 1.0;
    }
    let rough = range / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let factor = match rough / power {
        f if f <= 1.0 => 1.0,
        f if f <= 2.0 => 2.0,
        f if f <= 5.0 => 5.0,
        _ => 10.0,
    };
    factor * power
}

/// Distance of ticks: bytes are said in powers of two, and stand at them.
fn step(unit: Unit, range: f64) -> f64 {
    if unit == Unit::Bytes && range > 5.0 {
        return 2f64.powf((range / 5.0).log2().ceil());
    }
    nice_step(range)
}

fn linear_ticks(unit: Unit, low: f64, high: f64) -> Vec<f64> {
    let step = step(unit, high - low);
    let count = ((high - low) / step).round() as usize;
    (0..=count).map(|i| low + i as f64 * step).collect()
}

/// Powers of ten, with 2 and 5 between them when there is room.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let factors: &[f64] = if last - first <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    (first..=last)
        .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
        .filter(|v| *v >= low * 0.999 && *v <= high * 1.001)
        .collect()
}

/// The largest of 1, 2, 5 times a power of ten that is not above `value`.
fn at_or_below(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let factor = [5.0, 2.0, 1.0].into_iter().find(|factor| factor * power <= value * 1.000_001);
    factor.unwrap_or(1.0) * power
}

fn at_or_above(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= value * 0.999_999);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        fit(axis, values.iter().copied(), 0.0, 100.0).ticks().into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn values_as_people_write_them() {
        assert_eq!(Unit::Plain.show(4578.0), "4.58k");
        assert_eq!(Unit::Plain.show(0.5), "0.5");
        assert_eq!(Unit::Nanoseconds.show(1_250_000.0), "1.25 ms");
        assert_eq!(Unit::Seconds.show(0.0045), "4.5 ms");
        assert_eq!(Unit::Seconds.show(65.0), "65 s");
        assert_eq!(Unit::BytesPerSecond.show(37.5e6), "37.5 MB/s");
        assert_eq!(Unit::Bytes.show(8192.0), "8 KiB");
        assert_eq!(Unit::Percent.show(100.0), "100 %");
        assert_eq!(Unit::Plain.show(0.0), "0");
    }

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        assert_eq!(labels(&Axis::new("", Unit::Plain), &[3.0, 4600.0]), ["0", "1k", "2k", "3k", "4k", "5k"]);
        let log = Axis::new("", Unit::Plain).scaled(Scale::Log);
        assert_eq!(labels(&log, &[3.0, 70.0]), ["2", "5", "10", "20", "50", "100"]);
        assert_eq!(labels(&log, &[1.0, 1e6]).len(), 7);
        let bytes = Axis::new("", Unit::Bytes);
        assert_eq!(labels(&bytes, &[93.8e6]), ["0 B", "32 MiB", "64 MiB", "96 MiB"]);
        assert_eq!(labels(&Axis::new("", Unit::Nanoseconds), &[9e6])[..2], ["0 s", "2 ms"]);
        let ordinal = Axis::new("", Unit::Plain).scaled(Scale::Ordinal);
        assert_eq!(labels(&ordinal, &[80.0, 1.0, 2.0, 1.0]), ["1", "2", "80"]);
    }

    #[test]
    fn degenerate_values_have_an_axis() {
        for scale in [Scale::Linear, Scale::Log, Scale::Ordinal] {
            for values in [&[][..], &[0.0], &[7.0], &[f64::NAN, f64::INFINITY], &[-1.0]] {
                let fitted = fit(&Axis::new("", Unit::Plain).scaled(scale), values.iter().copied(), 0.0, 1.0);
                assert!(fitted.ticks().iter().all(|(place, _)| place.is_finite()), "{scale:?} {values:?}");
            }
        }
    }
}
