//! Writing SVG: elements with escaped text, and documents that stand alone.

use std::fmt::Write;

use super::theme::{DRAWING, Theme};

/// Places: from the left, and from the top.
type Point = (f64, f64);
/// Width and height.
type Size = (f64, f64);

/// A drawing: its elements, without the `svg` around them.
pub(super) struct Picture {
    pub(super) width: f64,
    pub(super) height: f64,
    title: String,
    description: String,
    id: String,
    body: String,
}

/// Text as it must be written in XML and HTML, also within quotes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Not allowed in XML at all.
            c if c.is_control() && !matches!(c, '\n' | '\t') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A title as part of a file name: small letters, digits, single hyphens.
pub(super) fn file_name(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    name.chars().take(60).collect()
}

/// Where a text's anchor is.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

impl Picture {
    pub(super) fn new(width: f64, height: f64, title: &str, description: &str, id: &str) -> Picture {
        let mut picture = Picture {
            width,
            height,
            title: title.into(),
            description: description.into(),
            id: id.into(),
            body: String::new(),
        };
        picture.rect((0.0, 0.0), (width, height), "back", "");
        picture
    }

    pub(super) fn text(&mut self, at: Point, anchor: Anchor, class: &str, text: &str) {
        let (x, y) = at;
        let (anchor, text) = (anchor.name(), escape(text));
        self.put(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>"
        ));
    }

    /// Text that runs upward.
    pub(super) fn upright(&mut self, at: Point, class: &str, text: &str) {
        let (x, y) = at;
        let text = escape(text);
        self.put(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 {x:.1} {y:.1})\" class=\"{class}\">{text}</text>"
        ));
    }

    pub(super) fn line(&mut self, from: Point, to: Point, class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.put(format_args!("<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" class=\"{class}\"/>"));
    }

    /// From the smallest to the largest value at a height, with ends; `tip` is shown under the
    /// pointer.
    pub(super) fn whisker(&mut self, low: f64, high: f64, y: f64, tip: &str) {
        let (above, below) = (y - 3.0, y + 3.0);
        let d = format!(
            "M{low:.1} {above:.1}V{below:.1}M{low:.1} {y:.1}H{high:.1}M{high:.1} {above:.1}V{below:.1}"
        );
        self.shape(&format!("path d=\"{d}\" class=\"whisker\""), "path", tip);
    }

    /// A line through all points.
    pub(super) fn path(&mut self, points: &[Point], class: &str) {
        let mut d = String::new();
        for (i, (x, y)) in points.iter().enumerate() {
            let _ = write!(d, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
        }
        self.put(format_args!("<path d=\"{d}\" class=\"{class}\"/>"));
    }

    /// A dot at every point.
    pub(super) fn dots(&mut self, points: &[Point], class: &str) {
        let mut d = String::new();
        for (x, y) in points {
            let _ = write!(d, "M{x:.1} {y:.1}h0");
        }
        self.put(format_args!("<path d=\"{d}\" class=\"{class}\"/>"));
    }

    /// A rectangle; `tip` is shown under the pointer.
    pub(super) fn rect(&mut self, corner: Point, size: Size, class: &str, tip: &str) {
        let ((x, y), (width, height)) = (corner, size);
        self.shape(
            &format!(
                "rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" class=\"{class}\""
            ),
            "rect",
            tip,
        );
    }

    /// A rectangle of a colour of its own.
    pub(super) fn cell(&mut self, corner: Point, size: Size, colour: &str, tip: &str) {
        let ((x, y), (width, height)) = (corner, size);
        self.shape(
            &format!("rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"3\" fill=\"{colour}\""),
            "rect",
            tip,
        );
    }

    /// The mark of a series at a point: each of the first six series has a shape of its own, so
    /// that colour is not all.
    pub(super) fn mark(&mut self, at: Point, series: usize, tip: &str) {
        let (x, y) = at;
        let class = format!("mark f{}", series % super::theme::SERIES_COLOURS);
        let polygon = |offsets: &[Point]| {
            let points: Vec<String> =
                offsets.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy)).collect();
            format!("polygon points=\"{}\" class=\"{class}\"", points.join(" "))
        };
        let (element, name) = match series % 6 {
            0 => (format!("circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.2\" class=\"{class}\""), "circle"),
            1 => (polygon(&[(-3.9, -3.9), (3.9, -3.9), (3.9, 3.9), (-3.9, 3.9)]), "polygon"),
            2 => (polygon(&[(0.0, -5.2), (5.0, 3.8), (-5.0, 3.8)]), "polygon"),
            3 => (polygon(&[(0.0, -5.4), (5.4, 0.0), (0.0, 5.4), (-5.4, 0.0)]), "polygon"),
            4 => (polygon(&[(0.0, 5.2), (5.0, -3.8), (-5.0, -3.8)]), "polygon"),
            _ => (
                polygon(&[(-2.4, -5.0), (2.4, -5.0), (5.0, 0.0), (2.4, 5.0), (-2.4, 5.0), (-5.0, 0.0)]),
                "polygon",
            ),
        };
        self.shape(&element, name, tip);
    }

    fn shape(&mut self, element: &str, name: &str, tip: &str) {
        if tip.is_empty() {
            self.put(format_args!("<{element}/>"));
        } else {
            let tip = escape(tip);
            self.put(format_args!("<{element}><title>{tip}</title></{name}>"));
        }
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        self.body.write_fmt(element).expect("a string takes everything");
        self.body.push('\n');
    }

    /// For use inside a page, which brings the style.
    pub(super) fn inline(&self) -> String {
        // No larger than drawn, whatever room there is: letters stay the same from figure to
        // figure.
        self.element(&format!(" style=\"max-width:{:.0}px\"", self.width))
    }

    /// For use inside a page, exactly as large as drawn: what is too wide is moved sideways.
    pub(super) fn inline_fixed(&self) -> String {
        self.element(&format!(" style=\"width:{0:.0}px;max-width:{0:.0}px\"", self.width))
    }

    /// A document of its own.
    pub(super) fn document(&self, theme: Theme) -> String {
        let style = theme.resolve(DRAWING);
        let namespace = format!(
            " xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0}\" height=\"{:.0}\"",
            self.width, self.height
        );
        let svg = self.element(&namespace);
        let inside = svg.find('>').map_or(0, |i| i + 1);
        format!("{}\n<style>{style}</style>{}\n", &svg[..inside], &svg[inside..])
    }

    fn element(&self, attributes: &str) -> String {
        let Picture { width, height, id, body, .. } = self;
        let (title, description) = (escape(&self.title), escape(&self.description));
        format!(
            "<svg{attributes} viewBox=\"0 0 {width:.0} {height:.0}\" class=\"drawing\" role=\"img\" aria-labelledby=\"t{id} d{id}\">\
             <title id=\"t{id}\">{title}</title><desc id=\"d{id}\">{description}</desc>\n{body}</svg>"
        )
    }
}
