//! Curves as text, side by side on one time scale.
//!
//! Every panel has as many columns as its run took time, so that a second is equally wide
//! everywhere; bars are drawn in eighths of a line. The height is a share of one common full
//! speed.

/// Columns of the scale at the left.
const SCALE: usize = 6;
/// Columns between panels.
const GAP: usize = 2;
/// Least width of a panel, so that its title has room.
const LEAST: usize = 9;

/// One curve.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Short name of the curve.
    pub title: String,
    /// Seconds of the run.
    pub seconds: f64,
    /// Rates at equal intervals over those seconds.
    pub rates: Vec<f64>,
}

/// Draws `panels` into lines of at most `width` columns, with `height` lines of bars, where
/// `full` is the rate of a full bar.
pub fn draw(panels: &[Panel], full: f64, width: usize, height: usize) -> String {
    let total: f64 = panels.iter().map(|panel| panel.seconds).sum();
    let room = width.saturating_sub(SCALE + GAP * panels.len()).max(LEAST * panels.len());
    // Narrow panels are widened at the cost of the others.
    let narrow = panels.iter().filter(|p| p.seconds * (room as f64) < total * LEAST as f64).count();
    let wide_s: f64 =
        panels.iter().map(|p| p.seconds).filter(|s| s * room as f64 >= total * LEAST as f64).sum();
    let column_s = nice(wide_s.max(1e-9) / (room - narrow * LEAST).max(1) as f64);
    let bars: Vec<Vec<f64>> = panels.iter().map(|panel| resample(panel, column_s)).collect();
    let widths: Vec<usize> = bars.iter().map(|b| b.len().max(LEAST)).collect();

    let mut out = String::new();
    let titles = panels.iter().zip(&widths).map(|(p, w)| format!("{:<w$.w$}", p.title));
    line(&mut out, "", titles);
    for row in (0..height).rev() {
        let label = match row {
            r if r + 1 == height => "100 %",
            r if 2 * (r + 1) == height => " 50 %",
            _ => "",
        };
        let cells = bars.iter().zip(&widths).map(|(bars, w)| {
            let cells: String = bars.iter().map(|rate| cell(rate / full * height as f64, row)).collect();
            format!("{cells:<w$}")
        });
        line(&mut out, label, cells);
    }
    let axes = panels.iter().zip(&widths).map(|(p, w)| format!("{:<w$.w$}", axis(p.seconds, *w)));
    line(&mut out, "  0 %", axes);
    out
}

fn line(out: &mut String, label: &str, cells: impl Iterator<Item = String>) {
    let mut text = format!("{label:>5}");
    for cell in cells {
        text.push_str(&" ".repeat(GAP));
        text.push_str(&cell);
    }
    out.push_str(text.trim_end());
    out.push('\n');
}

/// Columns of a panel: its rates, each standing for `column_s` seconds.
fn resample(panel: &Panel, column_s: f64) -> Vec<f64> {
    let columns = (panel.seconds / column_s).round().max(1.0) as usize;
    let n = panel.rates.len();
    let column = |c: usize| {
        let from = (c * n / columns).min(n.saturating_sub(1));
        let to = ((c + 1) * n / columns).clamp(from + 1, n.max(1));
        let part = panel.rates.get(from..to).unwrap_or(&[]);
        part.iter().sum::<f64>() / part.len().max(1) as f64
    };
    (0..columns).map(column).collect()
}

/// The part of a bar of `height` lines that falls on line `row`.
fn cell(height: f64, row: usize) -> char {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let part = ((height - row as f64) * 8.0).round().clamp(0.0, 8.0) as usize;
    // A little is not nothing.
    if row == 0 && part == 0 && height > 0.0 { '▁' } else { EIGHTHS[part] }
}

/// `└──── 40 s` as wide as its panel.
fn axis(seconds: f64, width: usize) -> String {
    let label = if seconds < 9.95 { format!(" {seconds:.1} s") } else { format!(" {seconds:.0} s") };
    let dashes = width.saturating_sub(label.chars().count() + 1);
    format!("└{}{label}", "─".repeat(dashes))
}

/// The next larger of 1, 2, 5 times a power of ten, in quarters.
fn nice(seconds: f64) -> f64 {
    let power = 10f64.powf(seconds.log10().floor());
    let steps = [1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.5, 10.0];
    power * steps.into_iter().find(|step| step * power >= seconds * 0.999_999).unwrap_or(10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(title: &str, seconds: f64, rates: Vec<f64>) -> Panel {
        Panel { title: title.into(), seconds, rates }
    }

    #[test]
    fn bars_in_eighths() {
        assert_eq!((cell(2.0, 0), cell(2.0, 1), cell(2.0, 2)), ('█', '█', ' '));
        assert_eq!((cell(1.5, 1), cell(0.001, 0), cell(0.0, 0)), ('▄', '▁', ' '));
    }

    #[test]
    fn never_wider_than_asked() {
        let slow = panel("page by page", 40.0, (0..400).map(|i| i as f64 / 4.0).collect());
        let fast = panel("planned", 8.0, vec![100.0; 80]);
        let warm = panel("warm", 5.0, vec![100.0; 50]);
        for width in [60, 80, 120] {
            let text = draw(&[slow.clone(), fast.clone(), warm.clone()], 100.0, width, 8);
            let widest = text.lines().map(|l| l.chars().count()).max().unwrap();
            assert!(widest <= width, "{widest} of {width}:\n{text}");
            assert!(widest >= width * 2 / 3, "{widest} of {width}:\n{text}");
            assert_eq!(text.lines().count(), 10);
        }
    }

    #[test]
    fn full_speed_fills_the_panel() {
        let text = draw(&[panel("a", 10.0, vec![50.0; 10]), panel("b", 10.0, vec![100.0; 10])], 100.0, 40, 4);
        let lines: Vec<&str> = text.lines().collect();
        let count = |line: &str| line.chars().filter(|c| *c == '█').count();
        let (top, bottom) = (count(lines[1]), count(lines[4]));
        assert!(top > 5 && bottom == 2 * top, "{text}");
    }

    #[test]
    fn column_widths_are_round() {
        assert_eq!(nice(0.7), 0.75);
        assert_eq!(nice(1.0), 1.0);
        assert!((nice(0.012) - 0.0125).abs() < 1e-12);
    }
}
