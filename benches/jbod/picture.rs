//! The figures as a picture: for each load a group of bars, one for each layout. The length of a
//! bar is its time relative to the longest of the group.

use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 226.0;
const RIGHT: f64 = WIDTH - 84.0;
const TOP: f64 = 66.0;
const BAR: f64 = 15.0;
const GROUP: f64 = 34.0;

const STYLE: &str = "\
text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;font-size:13px;fill:#1d2733}\
.title{font-size:17px;font-weight:600}.load{font-weight:600}.soft{fill:#5b6875}.paper{fill:#ffffff}\
.bar{fill:#9db4cc}.best{fill:#0b63c5}\
@media(prefers-color-scheme:dark){text{fill:#e6ebf1}.soft{fill:#9aa7b4}.paper{fill:#11161d}\
.bar{fill:#3d5066}.best{fill:#60a5fa}}";

/// The picture of `seconds`, by load and layout.
pub fn draw(layouts: &[&str], loads: &[&str], seconds: &[Vec<f64>]) -> String {
    let height = TOP + loads.len() as f64 * (GROUP + layouts.len() as f64 * (BAR + 4.0));
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Four disks of their own against stripe sets\"><style>{STYLE}</style>\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>"
    );
    text(&mut out, 20.0, 28.0, "title", "start", "Four disks of their own against stripe sets of them");
    let conditions =
        "Seconds from cold; tables of 64 MiB, disks of 10 000 rpm, virtual time; the best in blue";
    text(&mut out, 20.0, 49.0, "soft", "start", conditions);
    let mut y = TOP;
    for (load, row) in loads.iter().zip(seconds) {
        text(&mut out, 20.0, y + 20.0, "load", "start", load);
        y += GROUP - 6.0;
        let (least, most) = row.iter().fold((f64::MAX, 0.0f64), |(a, b), s| (a.min(*s), b.max(*s)));
        for (layout, s) in layouts.iter().zip(row) {
            let class = if *s <= least * 1.02 { "best" } else { "bar" };
            let length = (RIGHT - LEFT) * s / most;
            text(&mut out, LEFT - 10.0, y + 12.0, "soft", "end", layout);
            let _ = writeln!(
                out,
                "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{BAR}\" rx=\"2\"/>"
            );
            text(&mut out, LEFT + length + 8.0, y + 12.0, "", "start", &format!("{s:.2} s"));
            y += BAR + 4.0;
        }
        y += 6.0;
    }
    out.push_str("</svg>\n");
    out
}

fn text(out: &mut String, x: f64, y: f64, class: &str, anchor: &str, text: &str) {
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}
