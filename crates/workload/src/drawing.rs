//! Lines and texts of SVG pictures that stand alone and follow the reader's light or dark theme.

use std::fmt::Write as _;

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

/// Places: from the left, and from the top.
pub type Point = (f64, f64);

/// A picture that is drawn.
pub struct Strokes {
    out: String,
}

impl Strokes {
    /// An empty one; `label` says it to those who cannot see it, `style` is added to the usual one.
    pub fn new(width: f64, height: f64, label: &str, style: &str) -> Self {
        let label = escape(label);
        let mut out = String::new();
        let _ = writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"{label}\"><style>{STYLE}{style}</style>\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>"
        );
        Self { out }
    }

    /// A straight line.
    pub fn line(&mut self, from: Point, to: Point, class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.out,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    /// A line through points.
    pub fn path(&mut self, points: &[Point], class: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(self.out, "<polyline class=\"{class}\" points=\"{}\"/>", points.join(" "));
    }

    /// A filled rectangle between two corners.
    pub fn area(&mut self, left_top: Point, right_bottom: Point, class: &str) {
        let ((left, top), (right, bottom)) = (left_top, right_bottom);
        let (width, height) = (right - left, bottom - top);
        let _ = writeln!(
            self.out,
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    }

    /// A text; `anchor` is start, middle or end.
    pub fn text(&mut self, at: Point, class: &str, anchor: &str, text: &str) {
        let (x, y) = at;
        let text = escape(text);
        let _ = writeln!(
            self.out,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    /// The document.
    pub fn end(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
