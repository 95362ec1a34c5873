//! A race as an SVG picture: the query rate of each cold run over the seconds since its start,
//! in percent of the warm rate. It stands alone and follows the reader's light or dark theme.

use super::{Entry, Race};
use crate::drawing::Strokes;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = WIDTH - 22.0;
const TOP: f64 = 96.0;
const BOTTOM: f64 = HEIGHT - 46.0;
/// Percent of the warm rate at the top of the picture; faster moments are cut there.
const MOST_PERCENT: f64 = 120.0;
/// Points of a line, about.
const POINTS: f64 = 64.0;
/// Classes of the lines, from the slowest run on.
const CLASSES: [&str; 3] = ["slow", "fast", "third"];

/// The picture of a race; `conditions` is the line below its title.
pub(super) fn draw(race: &Race, conditions: &str) -> String {
    let cold = race.entries.split_last().map_or(&[][..], |(_, cold)| cold);
    let seconds = cold.iter().map(seconds).fold(1.0, f64::max).ceil();
    let scale = Scale { seconds, warm_rate: race.warm_rate() };
    let mut out = Strokes::new(WIDTH, HEIGHT, "Query rate after a cold start", "");
    out.text((LEFT, 28.0), "title", "start", "Query rate after a cold start, in % of the warm rate");
    out.text((LEFT, 49.0), "soft", "start", conditions);
    axes(&mut out, &scale);
    for (i, entry) in cold.iter().enumerate() {
        let class = CLASSES[i.min(CLASSES.len() - 1)];
        curve(&mut out, &scale, entry, class);
        let full = race.seconds_to_full(entry);
        if let Some(x) = full.map(|s| scale.x(s)) {
            out.line((x, TOP), (x, BOTTOM), &format!("at {class}"));
        }
        legend(&mut out, LEFT + i as f64 * (RIGHT - LEFT) / 2.0, class, &label(entry, full));
    }
    out.end()
}

fn label(entry: &Entry, full: Option<f64>) -> String {
    match full {
        Some(s) => format!("{}: full speed after {s:.1} s", entry.title),
        None => format!("{}: not at full speed in {:.0} s", entry.title, entry.run.seconds()),
    }
}

/// Seconds from the opening of the database to the last answer.
fn seconds(entry: &Entry) -> f64 {
    let mut curve = entry.run.curve();
    curve.starts_at(entry.begun_ns);
    curve.seconds()
}

struct Scale {
    seconds: f64,
    warm_rate: f64,
}

impl Scale {
    fn x(&self, seconds: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (seconds / self.seconds).min(1.0)
    }

    fn y(&self, percent: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * percent.clamp(0.0, MOST_PERCENT) / MOST_PERCENT
    }
}

fn axes(out: &mut Strokes, scale: &Scale) {
    for percent in [0.0, 25.0, 50.0, 75.0, 100.0] {
        let y = scale.y(percent);
        let class = match percent {
            0.0 => "axis",
            100.0 => "full",
            _ => "grid",
        };
        out.line((LEFT, y), (RIGHT, y), class);
        out.text((LEFT - 8.0, y + 5.0), "soft", "end", &format!("{percent:.0} %"));
    }
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| scale.seconds / step <= 10.0).unwrap_or(20.0);
    let mut at = 0.0;
    while at <= scale.seconds {
        out.text((scale.x(at), BOTTOM + 20.0), "soft", "middle", &format!("{at:.0}"));
        at += step;
    }
    let middle = (LEFT + RIGHT) / 2.0;
    out.text((middle, BOTTOM + 38.0), "soft", "middle", "seconds since the database was opened");
}

fn curve(out: &mut Strokes, scale: &Scale, entry: &Entry, class: &str) {
    let mut curve = entry.run.curve();
    curve.starts_at(entry.begun_ns);
    let interval_s = (scale.seconds / POINTS).max(0.05);
    let mut points = vec![(scale.x(0.0), scale.y(0.0))];
    for (i, rate) in curve.rates(interval_s).into_iter().enumerate() {
        let percent = 100.0 * rate / scale.warm_rate.max(1e-9);
        points.push((scale.x((i as f64 + 0.5) * interval_s), scale.y(percent)));
    }
    out.path(&points, &format!("line {class}"));
}

fn legend(out: &mut Strokes, x: f64, class: &str, label: &str) {
    out.line((x, 73.0), (x + 24.0, 73.0), &format!("line {class}"));
    out.text((x + 32.0, 78.0), "", "start", label);
}
