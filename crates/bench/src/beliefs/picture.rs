//! Looks as an SVG picture: for each figure a panel, one below the other, over the same time.
//!
//! The first second has its own part of the width, since the costs are known after the first
//! tenths of it. Figures are drawn by their logarithm: a prior may be wrong by orders of magnitude.

use snowmelt_lab::report::{Axis, FittedAxis, Scale, Unit};

use super::changing::Stretch;
use snowmelt_workload::beliefs::{DeviceLook, FINE_FOR_S, Look};
use snowmelt_workload::drawing::Strokes;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 20.0;
const TOP: f64 = 92.0;
/// Height of a panel, with its title above it.
const PANEL: f64 = 158.0;
const TITLE: f64 = 24.0;
/// The part of the width that the first second takes.
const FIRST: f64 = 0.42;
const MIB: f64 = (1 << 20) as f64;

const STYLE: &str = ".believed{stroke:#0b63c5}.moved{stroke:#c2410c;stroke-width:1.4}\
    .true{stroke:#5b6875;stroke-width:1.6;stroke-dasharray:6 5}.other{fill:#eef1f5}\
    @media(prefers-color-scheme:dark){.believed{stroke:#60a5fa}.moved{stroke:#fb923c}\
    .true{stroke:#9aa7b4}.other{fill:#1b222c}}";

/// A figure, in its panel.
struct Figure {
    title: &'static str,
    believed: fn(&DeviceLook) -> f64,
    moved: Option<fn(&DeviceLook) -> f64>,
    truly: fn(&Stretch) -> f64,
}

const PANELS: [Figure; 3] = [
    Figure {
        title: "requests per second",
        believed: |look| look.believed.requests_per_s,
        moved: Some(|look| look.requests_per_s),
        truly: |phase| phase.volume.iops,
    },
    Figure {
        title: "MiB per second",
        believed: |look| look.believed.bytes_per_s / MIB,
        moved: Some(|look| look.bytes_per_s / MIB),
        truly: |phase| phase.volume.bytes_per_s / MIB,
    },
    Figure {
        title: "milliseconds of a lone read",
        believed: |look| 1e3 * look.believed.alone_s,
        moved: None,
        truly: |phase| phase.volume.latency_us / 1e3,
    },
];

/// The picture of some looks; `conditions` is the line below its title. Of a modelled volume
/// `phases` says what it truly is like.
pub fn draw(looks: &[Look], conditions: &str, phases: &[Stretch]) -> String {
    let height = TOP + PANELS.len() as f64 * PANEL + 46.0;
    let time = Time { seconds: looks.last().map_or(1.0, |look| look.at_s).max(0.1) };
    let title = "Beliefs about the device, and what it let through";
    let mut out = Strokes::new(WIDTH, height, title, STYLE);
    out.text((18.0, 28.0), "title", "start", title);
    out.text((18.0, 49.0), "soft", "start", conditions);
    legend(&mut out, !phases.is_empty());
    for (at, panel) in PANELS.iter().enumerate() {
        let top = TOP + at as f64 * PANEL;
        let span = Span { top: top + TITLE, bottom: top + PANEL - 10.0 };
        draw_panel(&mut out, panel, &time, span, looks, phases);
    }
    let bottom = TOP + PANELS.len() as f64 * PANEL - 10.0;
    for (at_s, label) in time.ticks() {
        out.text((time.x(at_s), bottom + 20.0), "soft", "middle", &label);
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    out.text((middle, bottom + 42.0), "soft", "middle", "seconds; the first one is drawn wider");
    out.end()
}

fn legend(out: &mut Strokes, knows_truth: bool) {
    let names = [("believed", "believed"), ("moved", "let through"), ("true", "what the volume allows")];
    let mut x = 18.0;
    for (class, name) in &names[..if knows_truth { 3 } else { 2 }] {
        out.line((x, 73.0), (x + 26.0, 73.0), &format!("line {class}"));
        out.text((x + 33.0, 78.0), "", "start", name);
        x += 140.0;
    }
}

/// The horizontal axis.
struct Time {
    seconds: f64,
}

impl Time {
    /// True when the first second is drawn wider.
    fn is_broken(&self) -> bool {
        self.seconds * FIRST > FINE_FOR_S
    }

    fn x(&self, at_s: f64) -> f64 {
        let part = match at_s {
            at_s if !self.is_broken() => at_s / self.seconds,
            at_s if at_s <= FINE_FOR_S => FIRST * at_s / FINE_FOR_S,
            at_s => FIRST + (1.0 - FIRST) * (at_s - FINE_FOR_S) / (self.seconds - FINE_FOR_S),
        };
        LEFT + (RIGHT - LEFT) * part.clamp(0.0, 1.0)
    }

    /// Moments with a label: each fifth of the first second, then some whole ones.
    fn ticks(&self) -> Vec<(f64, String)> {
        let fine_s = if self.is_broken() { FINE_FOR_S } else { self.seconds };
        let fine = (0..=5).map(|fifth| f64::from(fifth) / 5.0 * fine_s);
        let fine = fine.map(|at_s| (at_s, format!("{at_s:.1}")));
        if !self.is_broken() {
            return fine.collect();
        }
        let steps = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];
        let step = steps.into_iter().find(|step| self.seconds / step <= 8.0).unwrap_or(500.0);
        let whole = (1..).map(|at| f64::from(at) * step).take_while(|at_s| *at_s <= self.seconds + 1e-3);
        let whole = whole.filter(|at_s| *at_s > FINE_FOR_S).map(|at_s| (at_s, format!("{at_s:.0}")));
        fine.chain(whole).collect()
    }
}

/// The place of a panel from the top of the picture.
#[derive(Clone, Copy)]
struct Span {
    top: f64,
    bottom: f64,
}

fn draw_panel(
    out: &mut Strokes,
    panel: &Figure,
    time: &Time,
    span: Span,
    looks: &[Look],
    phases: &[Stretch],
) {
    let Span { top, bottom } = span;
    for phase in phases.chunks(2).filter_map(|pair| pair.get(1)) {
        let end_s = phases.iter().map(|p| p.from_s).find(|s| *s > phase.from_s).unwrap_or(time.seconds);
        out.area((time.x(phase.from_s), top), (time.x(end_s), bottom), "other");
    }
    let y = Axis::new(panel.title, Unit::Plain).scaled(Scale::Log);
    let y = y.fit(values(panel, looks, phases).into_iter(), bottom, top);
    out.text((LEFT, top - 8.0), "", "start", panel.title);
    for (at, label) in y.ticks() {
        out.line((LEFT, at), (RIGHT, at), "grid");
        out.text((LEFT - 7.0, at + 5.0), "soft", "end", &label);
    }
    out.line((LEFT, bottom), (RIGHT, bottom), "axis");
    if time.is_broken() {
        out.line((time.x(FINE_FOR_S), top), (time.x(FINE_FOR_S), bottom), "axis at");
    }
    let place = |at_s: f64, value: f64| (time.x(at_s), height(&y, value, span));
    let stripes = looks.iter().map(|look| look.devices.len()).max().unwrap_or(0);
    let line = |stripe: usize, figure: fn(&DeviceLook) -> f64| -> Vec<(f64, f64)> {
        let looks = looks.iter().filter_map(|look| Some((look.at_s, look.devices.get(stripe)?)));
        looks.map(|(at_s, device)| place(at_s, figure(device))).collect()
    };
    for stripe in 0..stripes {
        if let Some(moved) = panel.moved {
            // A rate is of the time before its look, so there is none at the first one.
            out.path(line(stripe, moved).get(1..).unwrap_or_default(), "line moved");
        }
    }
    for (i, phase) in phases.iter().enumerate() {
        let end_s = phases.get(i + 1).map_or(time.seconds, |next| next.from_s);
        let truly = (panel.truly)(phase);
        out.line(place(phase.from_s, truly), place(end_s, truly), "true");
    }
    for stripe in 0..stripes {
        out.path(&line(stripe, panel.believed), "line believed");
    }
}

/// The values that the axis must show. Rates of a device that is hardly used are left out.
fn values(panel: &Figure, looks: &[Look], phases: &[Stretch]) -> Vec<f64> {
    /// Rates below this share of the least believed value are not drawn.
    const LEAST: f64 = 0.1;
    let devices = || looks.iter().flat_map(|look| &look.devices);
    let mut values: Vec<f64> = devices().map(panel.believed).chain(phases.iter().map(panel.truly)).collect();
    let least = LEAST * values.iter().copied().fold(f64::INFINITY, f64::min);
    let moved = panel.moved.into_iter().flat_map(|moved| devices().map(moved));
    values.extend(moved.filter(|rate| *rate >= least));
    values
}

/// The place of a value within the panel. Zero, which has none on a logarithmic scale, is at the
/// bottom.
fn height(y: &FittedAxis, value: f64, span: Span) -> f64 {
    y.place(value).map_or(span.bottom, |at| at.clamp(span.top, span.bottom))
}
