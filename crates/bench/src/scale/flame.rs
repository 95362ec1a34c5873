//! Flame graphs (Gregg, "The Flame Graph", CACM 59, 2016): a box for each function on the
//! stack, as wide as its share of the samples, above the function that called it. An SVG that
//! stands alone; what is in a box and how much shows when the pointer rests on it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Samples by stack, the outermost function first.
pub type Stacks = BTreeMap<Vec<String>, u64>;

const WIDTH: f64 = 1400.0;
const MARGIN: f64 = 12.0;
const TOP: f64 = 58.0;
const LEVEL: f64 = 17.0;
/// Narrower boxes are left out; in units of width.
const LEAST_WIDTH: f64 = 0.4;
/// Width of a letter.
const LETTER: f64 = 6.6;

const STYLE: &str = "\
text{font-family:ui-monospace,'DejaVu Sans Mono',monospace;font-size:11px;fill:#1d2733}\
.title{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;font-size:17px;font-weight:600}\
.soft{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;font-size:13px;fill:#5b6875}\
.paper{fill:#ffffff}rect.box{stroke:#ffffff;stroke-width:.5}rect.box:hover{stroke:#1d2733}";

/// A function in the place where it was called.
#[derive(Default)]
struct Call<'a> {
    samples: u64,
    callees: BTreeMap<&'a str, Call<'a>>,
}

/// The flame graph of some stacks.
pub fn svg(stacks: &Stacks, title: &str) -> String {
    let mut root = Call::default();
    for (stack, samples) in stacks {
        root.samples += samples;
        let mut call = &mut root;
        for name in stack {
            call = call.callees.entry(name).or_default();
            call.samples += samples;
        }
    }
    let levels = stacks.keys().map(Vec::len).max().unwrap_or(0) + 1;
    let height = TOP + levels as f64 * LEVEL + MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Flame graph\"><style>{STYLE}</style>\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\
         <text class=\"title\" x=\"{MARGIN}\" y=\"26\">{}</text>\
         <text class=\"soft\" x=\"{MARGIN}\" y=\"46\">{} samples; a box is as wide as its share of them</text>\n",
        escaped(title),
        root.samples
    );
    let drawing = Drawing { all: root.samples.max(1) as f64, bottom: TOP + (levels - 1) as f64 * LEVEL };
    drawing.call("all", &root, 0, 0, &mut out);
    out.push_str("</svg>\n");
    out
}

struct Drawing {
    all: f64,
    /// Where the lowest level begins.
    bottom: f64,
}

impl Drawing {
    /// A box at `level` with its first sample at number `from`, and those above it.
    fn call(&self, name: &str, call: &Call<'_>, from: u64, level: usize, out: &mut String) {
        let scale = (WIDTH - 2.0 * MARGIN) / self.all;
        let (x, width) = (MARGIN + from as f64 * scale, call.samples as f64 * scale);
        if width < LEAST_WIDTH {
            return;
        }
        let y = self.bottom - level as f64 * LEVEL;
        let share = 100.0 * call.samples as f64 / self.all;
        let _ = write!(
            out,
            "<g><title>{}: {} samples, {share:.2} %</title>\
             <rect class=\"box\" x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{LEVEL}\" fill=\"{}\"/>",
            escaped(name),
            call.samples,
            colour(name)
        );
        let letters = (width / LETTER) as usize;
        if letters > 3 {
            let text: String = short(name).chars().take(letters - 1).collect();
            let _ = write!(out, "<text x=\"{:.2}\" y=\"{}\">{}</text>", x + 3.0, y + 12.5, escaped(&text));
        }
        out.push_str("</g>\n");
        let mut at = from;
        for (name, callee) in &call.callees {
            self.call(name, callee, at, level + 1, out);
            at += callee.samples;
        }
    }
}

/// The end of a path: `Pool::quick` of `snowmelt_store::pool::Pool::quick`.
pub(super) fn short(name: &str) -> &str {
    let plain = name.find(['<', '(', ' ', '{']).map_or(name, |at| &name[..at]);
    let last = plain.rfind("::").and_then(|at| plain[..at].rfind("::"));
    last.map_or(name, |at| &name[at + 2..])
}

/// One colour for each crate: blue for ours, by name for others.
fn colour(name: &str) -> String {
    let of = name.trim_start_matches(['<', '&']).split("::").next().unwrap_or(name);
    let hash = of.bytes().fold(7u32, |hash, b| hash.wrapping_mul(31).wrapping_add(b.into()));
    match of.strip_prefix("snowmelt_") {
        Some(_) => format!("hsl({} 75% 72%)", 185 + hash % 60),
        None => format!("hsl({} 80% 70%)", 12 + hash % 45),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(of: &[(&[&str], u64)]) -> Stacks {
        of.iter().map(|(stack, n)| (stack.iter().map(|s| (*s).to_owned()).collect(), *n)).collect()
    }

    /// Width of the box with this title.
    fn width(svg: &str, title: &str) -> f64 {
        let at = svg.find(&format!("<title>{title}:")).unwrap_or_else(|| panic!("{title} in {svg}"));
        svg[at..].split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    }

    #[test]
    fn boxes_are_as_wide_as_their_share() {
        let svg = svg(
            &stacks(&[(&["t", "a", "b"], 30), (&["t", "a"], 10), (&["t", "c<&>"], 60), (&["u"], 100)]),
            "a <title>",
        );
        let all = width(&svg, "all");
        for (title, share) in [("t", 0.5), ("a", 0.2), ("b", 0.15), ("c&lt;&amp;&gt;", 0.3), ("u", 0.5)] {
            assert!((width(&svg, title) - share * all).abs() < 0.02, "{title}");
        }
        assert!(svg.contains("a &lt;title&gt;") && svg.contains("200 samples"), "{svg}");
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
    }

    #[test]
    fn names_are_shortened_where_they_are_paths() {
        assert_eq!(short("snowmelt_store::pool::Pool::quick"), "Pool::quick");
        assert_eq!(short("main"), "main");
        assert_eq!(short("<alloc::vec::Vec<T> as Clone>::clone"), "<alloc::vec::Vec<T> as Clone>::clone");
        assert_eq!(short("a::b::c::d<e::f::g>"), "c::d<e::f::g>");
    }
}
