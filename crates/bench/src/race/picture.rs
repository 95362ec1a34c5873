//! A race as an SVG picture: the query rate of each cold run over the seconds since its start,
//! in percent of the warm rate. It stands alone and follows the reader's light or dark theme.

use std::fmt::Write as _;

use super::{Entry, Race};

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

const STYLE: &str = "\
text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;font-size:14px;fill:#1d2733}\
.title{font-size:17px;font-weight:600}.soft{fill:#5b6875}\
.paper{fill:#ffffff}.grid{stroke:#dfe4ea}.axis{stroke:#8b97a4}.full{stroke:#5b6875;stroke-dasharray:5 5}\
.line{fill:none;stroke-width:2.6;stroke-linejoin:round;stroke-linecap:round}\
.slow{stroke:#c2410c}.fast{stroke:#0b63c5}.third{stroke:#5b6875}\
.at{stroke-width:1.4;stroke-dasharray:2 4}\
@media(prefers-color-scheme:dark){text{fill:#e6ebf1}.soft{fill:#9aa7b4}.paper{fill:#11161d}\
.grid{stroke:#28313c}.axis{stroke:#65717e}.full{stroke:#9aa7b4}\
.slow{stroke:#fb923c}.fast{stroke:#60a5fa}.third{stroke:#9aa7b4}}";

/// The picture of a race; `conditions` is the line below its title.
pub(super) fn draw(race: &Race, conditions: &str) -> String {
    let cold = race.entries.split_last().map_or(&[][..], |(_, cold)| cold);
    let seconds = cold.iter().map(seconds).fold(1.0, f64::max).ceil();
    let scale = Scale { seconds, warm_rate: race.warm_rate() };
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"Query rate after a cold start\"><style>{STYLE}</style>\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\"/>"
    );
    text(&mut out, (LEFT, 28.0), "title", "start", "Query rate after a cold start, in % of the warm rate");
    text(&mut out, (LEFT, 49.0), "soft", "start", conditions);
    axes(&mut out, &scale);
    for (i, entry) in cold.iter().enumerate() {
        let class = CLASSES[i.min(CLASSES.len() - 1)];
        curve(&mut out, &scale, entry, class);
        let full = race.seconds_to_full(entry);
        if let Some(x) = full.map(|s| scale.x(s)) {
            line(&mut out, (x, TOP), (x, BOTTOM), &format!("at {class}"));
        }
        legend(&mut out, LEFT + i as f64 * (RIGHT - LEFT) / 2.0, class, &label(entry, full));
    }
    out.push_str("</svg>\n");
    out
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

fn axes(out: &mut String, scale: &Scale) {
    for percent in [0.0, 25.0, 50.0, 75.0, 100.0] {
        let y = scale.y(percent);
        let class = match percent {
            0.0 => "axis",
            100.0 => "full",
            _ => "grid",
        };
        line(out, (LEFT, y), (RIGHT, y), class);
        text(out, (LEFT - 8.0, y + 5.0), "soft", "end", &format!("{percent:.0} %"));
    }
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| scale.seconds / step <= 10.0).unwrap_or(20.0);
    let mut at = 0.0;
    while at <= scale.seconds {
        text(out, (scale.x(at), BOTTOM + 20.0), "soft", "middle", &format!("{at:.0}"));
        at += step;
    }
    let middle = (LEFT + RIGHT) / 2.0;
    text(out, (middle, BOTTOM + 38.0), "soft", "middle", "seconds since the database was opened");
}

fn curve(out: &mut String, scale: &Scale, entry: &Entry, class: &str) {
    let mut curve = entry.run.curve();
    curve.starts_at(entry.begun_ns);
    let interval_s = (scale.seconds / POINTS).max(0.05);
    let mut points = format!("{:.1},{:.1}", scale.x(0.0), scale.y(0.0));
    for (i, rate) in curve.rates(interval_s).into_iter().enumerate() {
        let (x, y) =
            (scale.x((i as f64 + 0.5) * interval_s), scale.y(100.0 * rate / scale.warm_rate.max(1e-9)));
        let _ = write!(points, " {x:.1},{y:.1}");
    }
    let _ = writeln!(out, "<polyline class=\"line {class}\" points=\"{points}\"/>");
}

fn legend(out: &mut String, x: f64, class: &str, label: &str) {
    line(out, (x, 73.0), (x + 24.0, 73.0), &format!("line {class}"));
    text(out, (x + 32.0, 78.0), "", "start", label);
}

fn line(out: &mut String, from: (f64, f64), to: (f64, f64), class: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(
        out,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

fn text(out: &mut String, at: (f64, f64), class: &str, anchor: &str, text: &str) {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let (x, y) = at;
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{escaped}</text>"
    );
}
