//! The names of the series of a plot, each once: beside the ends of their lines, or in rows above
//! the plot.

use super::svg::{Anchor, Picture};
use super::text::{self, LINE_HEIGHT, NAME_SIZE};
use super::theme::series_class;

/// Room of the sign before a name.
const SIGN: f64 = 30.0;
/// Distance between names.
const GAP: f64 = 18.0;
/// Lines of a name.
const MOST_LINES: usize = 3;
/// Height of a name of one line with the space around it.
const NAME_HEIGHT: f64 = 17.0;
/// Widest column of names beside a plot.
const MOST_ASIDE: f64 = 300.0;
/// A line that ends farther from its name has nothing drawn between: it would cross the plot.
const MOST_LEADER: f64 = 60.0;

/// The way in which a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Line,
    Marks,
    LineAndMarks,
    Dashed,
    Dots,
}

/// A series in the legend.
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) colour: usize,
    pub(super) sign: Sign,
    /// Where its line ends.
    pub(super) end: (f64, f64),
}

/// Width of a column of names beside a plot that is `height` high; `None` if they do not fit there.
pub(super) fn aside_width(names: &[&str], height: f64) -> Option<f64> {
    let widest = names.iter().map(|name| text::width(name, NAME_SIZE)).fold(0.0, f64::max);
    let column = widest.min(MOST_ASIDE - SIGN);
    let all: f64 = names.iter().map(|name| entry_height(&lines(name, column))).sum();
    (all <= height).then_some(column + SIGN)
}

fn lines(name: &str, room: f64) -> Vec<String> {
    text::wrap(name, room, NAME_SIZE, MOST_LINES)
}

fn entry_height(lines: &[String]) -> f64 {
    NAME_HEIGHT + (lines.len() - 1) as f64 * LINE_HEIGHT
}

/// Names beside the ends of their lines, moved apart where they would cover each other.
pub(super) fn aside(picture: &mut Picture, mut entries: Vec<Entry<'_>>, right: f64, span: (f64, f64)) {
    entries.sort_by(|a, b| a.end.1.total_cmp(&b.end.1));
    let room = picture.width - right - SIGN - 6.0;
    let names: Vec<_> = entries.iter().map(|entry| lines(entry.name, room)).collect();
    let heights: Vec<f64> = names.iter().map(|lines| entry_height(lines)).collect();
    let wanted: Vec<f64> = entries.iter().map(|entry| entry.end.1 - NAME_HEIGHT / 2.0).collect();
    let tops = spread_out(&wanted, &heights, span.0 - NAME_HEIGHT / 2.0, span.1 + NAME_HEIGHT / 2.0);
    for ((entry, lines), top) in entries.iter().zip(&names).zip(tops) {
        let y = top + NAME_HEIGHT / 2.0;
        if right - entry.end.0 <= MOST_LEADER {
            let class = format!("leader {}", series_class(entry.colour));
            picture.path(&[(entry.end.0 + 6.0, entry.end.1), (right + 6.0, y)], &class);
        }
        draw_entry(picture, entry, (right + 8.0, y), lines);
    }
}

/// Moves entries apart, sorted by the places that they want: none covers another, and all are
/// between `top` and `bottom` while there is room.
fn spread_out(wanted: &[f64], heights: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut places = Vec::with_capacity(wanted.len());
    let mut free = top;
    for (y, height) in wanted.iter().zip(heights) {
        places.push(y.max(free));
        free = places.last().expect("just added") + height;
    }
    let mut end = bottom;
    for (y, height) in places.iter_mut().zip(heights).rev() {
        *y = y.min(end - height);
        end = *y;
    }
    places
}

/// Names in rows, each in the first row with room for it.
pub(super) struct Rows {
    /// Corner and lines of each name.
    places: Vec<((f64, f64), Vec<String>)>,
    pub(super) height: f64,
}

impl Rows {
    pub(super) fn new(names: &[&str], left: f64, right: f64) -> Rows {
        let (mut x, mut y, mut row) = (left, 4.0, NAME_HEIGHT);
        let mut places = Vec::with_capacity(names.len());
        for name in names {
            let lines = lines(name, right - left - SIGN);
            let wide = SIGN + lines.iter().map(|line| text::width(line, NAME_SIZE)).fold(0.0, f64::max);
            if x > left && x + wide > right {
                (x, y, row) = (left, y + row, NAME_HEIGHT);
            }
            row = row.max(entry_height(&lines));
            places.push(((x, y), lines));
            x += wide + GAP;
        }
        let height = if names.is_empty() { 0.0 } else { y + row };
        Rows { places, height }
    }

    pub(super) fn draw(&self, picture: &mut Picture, entries: &[Entry<'_>]) {
        for (entry, ((x, y), lines)) in entries.iter().zip(&self.places) {
            draw_entry(picture, entry, (*x, y + NAME_HEIGHT / 2.0), lines);
        }
    }
}

/// The sign, and the name after it; `at` is the left end of the first line's middle.
fn draw_entry(picture: &mut Picture, entry: &Entry<'_>, at: (f64, f64), lines: &[String]) {
    let (x, y) = at;
    let class = series_class(entry.colour);
    match entry.sign {
        Sign::Dashed => picture.line((x, y), (x + 22.0, y), &format!("line dashed {class}")),
        Sign::Dots => picture.dots(&[(x + 9.0, y), (x + 13.0, y)], &format!("dots large {class}")),
        Sign::Line | Sign::LineAndMarks => picture.line((x, y), (x + 22.0, y), &format!("line {class}")),
        Sign::Marks => {}
    }
    if matches!(entry.sign, Sign::Marks | Sign::LineAndMarks) {
        picture.mark((x + 11.0, y), entry.colour, "");
    }
    for (i, line) in lines.iter().enumerate() {
        let baseline = y + 4.5 + i as f64 * LINE_HEIGHT;
        picture.text((x + SIGN - 3.0, baseline), Anchor::Start, "", line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beside_lines_do_not_cover_each_other() {
        let heights = [17.0, 33.0, 17.0, 17.0, 17.0];
        let places = spread_out(&[100.0, 101.0, 102.0, 399.0, 400.0], &heights, 20.0, 400.0);
        for i in 1..5 {
            assert!(places[i] - places[i - 1] >= heights[i - 1] - 1e-9, "{places:?}");
        }
        assert!(places[0] >= 20.0 && places[4] + 17.0 <= 400.0, "{places:?}");
        assert_eq!(spread_out(&[30.0, 200.0], &heights, 20.0, 400.0), [30.0, 200.0]);
        assert_eq!(spread_out(&[9.0, 20.0, 21.0], &[17.0; 3], 20.0, 400.0), [20.0, 37.0, 54.0]);
    }

    #[test]
    fn too_many_names_stand_above_the_plot_in_rows() {
        let few = ["a", "b"];
        assert!(aside_width(&few, 350.0).is_some_and(|width| width < 60.0));
        let many = vec!["a name of a series"; 40];
        assert_eq!(aside_width(&many, 350.0), None);
        let rows = Rows::new(&many, 8.0, 310.0);
        for (at, ((x, y), lines)) in rows.places.iter().enumerate() {
            let end = x + SIGN + text::width(&lines[0], NAME_SIZE);
            assert!(*x >= 8.0 && end <= 310.0 && *y + NAME_HEIGHT <= rows.height, "{x} {y}");
            let free = rows.places.iter().skip(at + 1).all(|((left, top), _)| *left >= end || *top > *y);
            assert!(free, "one covers another");
        }
    }
}
