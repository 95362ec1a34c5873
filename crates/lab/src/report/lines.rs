//! Lines and clouds of dots over two axes, named at their ends or above.

use super::scale::{FittedAxis, fit};
use super::svg::{Anchor, Picture};
use super::theme::series_class;
use super::{Column, Plot, Room, Series, Table};

/// How points are drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Lines,
    Dots,
}

/// Places of the axes, and the size of the whole.
struct Frame {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// The middle of the vertical axis' label.
    label: f64,
}

/// About the width of a letter.
pub(super) const LETTER: f64 = 7.3;
/// About the width of a letter in the name of a band.
const SMALL_LETTER: f64 = 6.2;
/// Letters of an upright name.
const MOST_UPRIGHT: usize = 28;
/// More points than this are joined without marks.
const MOST_MARKS: usize = 32;
/// More points than this cannot be told apart.
const MOST_POINTS: usize = 4000;
/// Distance between names at the ends of lines.
const NAME_HEIGHT: f64 = 17.0;

/// The names of the series stand beside the ends of lines, above dots, and above everything where
/// there is little room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SeriesNames {
    None,
    Aside,
    Above,
    Stacked,
}

impl SeriesNames {
    fn choose(plot: &Plot, style: Style, room: Room) -> SeriesNames {
        let named = plot.series.len() > 1 || plot.series.iter().any(|series| series.dashed);
        match (named, room, style) {
            (false, ..) => SeriesNames::None,
            (true, Room::Narrow, _) => SeriesNames::Stacked,
            (true, Room::Wide, Style::Lines) => SeriesNames::Aside,
            (true, Room::Wide, Style::Dots) => SeriesNames::Above,
        }
    }
}

impl Frame {
    fn new(plot: &Plot, names: SeriesNames, room: Room) -> Frame {
        let width = room.width();
        let longest = plot.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0);
        let beside = match names {
            SeriesNames::Aside => (longest as f64 * LETTER + 36.0).min(360.0),
            _ if room == Room::Narrow => 14.0,
            _ => 24.0,
        };
        let top = match names {
            SeriesNames::Above => 40.0,
            SeriesNames::Stacked => 18.0 + plot.series.len() as f64 * NAME_HEIGHT,
            _ => 20.0,
        };
        let (height, left, label) = match room {
            Room::Wide => (430.0, 86.0, 18.0),
            Room::Narrow => (top + 290.0, 72.0, 11.0),
        };
        Frame { width, height, left, right: width - beside, top, bottom: height - 58.0, label }
    }
}

pub(super) fn draw(plot: &Plot, style: Style, room: Room, id: &str) -> Picture {
    let names = SeriesNames::choose(plot, style, room);
    let frame = Frame::new(plot, names, room);
    let mut picture = Picture::new(frame.width, frame.height, &plot.title, &description(plot), id);
    let all = || plot.series.iter().flat_map(|series| &series.points);
    let x = fit(&plot.x, all().map(|p| p.0), frame.left, frame.right);
    let y = fit(&plot.y, all().map(|p| p.1), frame.bottom, frame.top);
    bands(&mut picture, plot, &x, &frame);
    axes(&mut picture, plot, &x, &y, &frame);

    let mut ends = Vec::new();
    for (i, series) in plot.series.iter().enumerate() {
        let points = places(series, &x, &y, room);
        let Some(last) = points.last() else { continue };
        ends.push((last.0, i));
        match style {
            Style::Lines => draw_line(&mut picture, plot, i, &points),
            Style::Dots => {
                let at: Vec<_> = points.iter().map(|p| p.0).collect();
                picture.dots(&at, &format!("dots {}", series_class(colour(plot, i))));
            }
        }
    }
    match names {
        SeriesNames::None => {}
        SeriesNames::Aside => name_aside(&mut picture, plot, ends, &frame),
        SeriesNames::Above => name_above(&mut picture, plot, frame.left),
        SeriesNames::Stacked => name_stacked(&mut picture, plot),
    }
    picture
}

fn colour(plot: &Plot, i: usize) -> usize {
    plot.series[i].colour.unwrap_or(i)
}

/// Places and values of a series, thinned to what can be told apart.
type Placed = ((f64, f64), (f64, f64));

fn places(series: &Series, x: &FittedAxis, y: &FittedAxis, room: Room) -> Vec<Placed> {
    let most = (MOST_POINTS as f64 * room.width() / Room::Wide.width()) as usize;
    let every = series.points.len().div_ceil(most).max(1);
    let thinned = series.points.iter().step_by(every);
    thinned.filter_map(|p| Some(((x.place(p.0)?, y.place(p.1)?), *p))).collect()
}

fn axes(picture: &mut Picture, plot: &Plot, x: &FittedAxis, y: &FittedAxis, frame: &Frame) {
    let Frame { left, right, bottom, .. } = *frame;
    for (at, label) in y.ticks() {
        picture.line((left, at), (right, at), "grid");
        picture.text((left - 9.0, at + 4.0), Anchor::End, "tick", &label);
    }
    for (at, label) in apart(x.ticks()) {
        picture.line((at, bottom), (at, bottom + 5.0), "axis");
        picture.text((at, bottom + 20.0), Anchor::Middle, "tick", &label);
    }
    picture.line((left, bottom), (right, bottom), "axis");
    picture.text((f64::midpoint(left, right), frame.height - 12.0), Anchor::Middle, "label", &plot.x.label);
    picture.upright((frame.label, f64::midpoint(frame.top, bottom)), "label", &plot.y.label);
}

/// Ticks of a horizontal axis whose labels do not cover each other, from the first on.
pub(super) fn apart(ticks: Vec<(f64, String)>) -> Vec<(f64, String)> {
    let mut free = f64::NEG_INFINITY;
    let has_room = |(at, label): &(f64, String)| {
        let half = label.chars().count() as f64 * SMALL_LETTER / 2.0;
        let fits = at - half >= free;
        if fits {
            free = at + half + 5.0;
        }
        fits
    };
    ticks.into_iter().filter(has_room).collect()
}

/// The named stretches of the horizontal axis, behind everything: each second one darker, names
/// upright where they are narrow.
fn bands(picture: &mut Picture, plot: &Plot, x: &FittedAxis, frame: &Frame) {
    let Frame { left, right, top, bottom, .. } = *frame;
    let mut odd = false;
    for band in plot.x.bands.iter().filter(|band| !band.name.is_empty()) {
        let (Some(from), Some(to)) = (x.place(band.from), x.place(band.to)) else { continue };
        let (from, to) = (from.clamp(left, right), to.clamp(left, right));
        let class = if odd { "band-odd" } else { "band" };
        odd = !odd;
        let unit = plot.x.unit;
        let tip = format!("{}: {} to {}", band.name, unit.show(band.from), unit.show(band.to));
        picture.rect((from, top), (to - from, bottom - top), class, &tip);
        let (letters, middle) = (band.name.chars().count(), f64::midpoint(from, to));
        if to - from > letters as f64 * SMALL_LETTER + 6.0 {
            picture.text((middle, top + 13.0), Anchor::Middle, "band-name", &band.name);
        } else if to - from > 12.0 {
            let name: String = band.name.chars().take(MOST_UPRIGHT).collect();
            let length = name.chars().count() as f64 * SMALL_LETTER;
            picture.upright((middle + 4.0, top + length / 2.0 + 6.0), "band-name", &name);
        }
    }
}

fn draw_line(picture: &mut Picture, plot: &Plot, i: usize, points: &[Placed]) {
    let series = &plot.series[i];
    let dashed = if series.dashed { " dashed" } else { "" };
    let thin = if points.len() > 200 { " thin" } else { "" };
    let at: Vec<_> = points.iter().map(|p| p.0).collect();
    let colour = colour(plot, i);
    picture.path(&at, &format!("line {}{dashed}{thin}", series_class(colour)));
    if points.len() > MOST_MARKS || series.dashed {
        return;
    }
    for (at, value) in points {
        let tip = format!("{}: {} at {}", series.name, plot.y.unit.show(value.1), plot.x.unit.show(value.0));
        picture.mark(*at, colour, &tip);
    }
}

/// Labels at the line ends, moved apart where they would cover each other.
fn name_aside(picture: &mut Picture, plot: &Plot, mut ends: Vec<((f64, f64), usize)>, frame: &Frame) {
    let right = frame.right;
    ends.sort_by(|a, b| a.0.1.total_cmp(&b.0.1));
    let wanted: Vec<f64> = ends.iter().map(|end| end.0.1).collect();
    for ((end, i), y) in ends.iter().zip(spread_out(&wanted, frame.top + 4.0, frame.bottom)) {
        let colour = colour(plot, *i);
        let class = format!("leader {}", series_class(colour));
        picture.path(&[(end.0 + 6.0, end.1), (right + 6.0, y), (right + 12.0, y)], &class);
        if plot.series[*i].dashed {
            let class = format!("line dashed {}", series_class(colour));
            picture.line((right + 11.0, y), (right + 25.0, y), &class);
        } else {
            picture.mark((right + 18.0, y), colour, "");
        }
        picture.text((right + 28.0, y + 4.5), Anchor::Start, "", &plot.series[*i].name);
    }
}

/// Moves sorted places apart to at least a name's height, staying between `top` and `bottom`
/// while there is room.
fn spread_out(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut places = Vec::with_capacity(wanted.len());
    let mut free = top;
    for y in wanted {
        places.push(y.max(free));
        free = places.last().expect("just added") + NAME_HEIGHT;
    }
    let mut free = bottom;
    for y in places.iter_mut().rev() {
        *y = y.min(free).max(top);
        free = *y - NAME_HEIGHT;
    }
    places
}

fn name_above(picture: &mut Picture, plot: &Plot, left: f64) {
    let mut at = left;
    for (i, series) in plot.series.iter().enumerate() {
        picture.mark((at + 6.0, 18.0), colour(plot, i), "");
        picture.text((at + 16.0, 22.5), Anchor::Start, "", &series.name);
        at += series.name.chars().count() as f64 * LETTER + 40.0;
    }
}

/// A line for each name, below one another, cut where the drawing ends.
fn name_stacked(picture: &mut Picture, plot: &Plot) {
    let letters = ((picture.width - 40.0) / LETTER) as usize;
    for (i, series) in plot.series.iter().enumerate() {
        let y = 14.0 + i as f64 * NAME_HEIGHT;
        if series.dashed {
            let class = format!("line dashed {}", series_class(colour(plot, i)));
            picture.line((4.0, y), (20.0, y), &class);
        } else {
            picture.mark((12.0, y), colour(plot, i), "");
        }
        picture.text((26.0, y + 4.5), Anchor::Start, "", &cut(&series.name, letters));
    }
}

/// So many letters of a name, with dots for what is left out.
pub(super) fn cut(name: &str, letters: usize) -> String {
    match name.char_indices().nth(letters) {
        Some(_) => name.chars().take(letters.saturating_sub(1)).chain(['…']).collect(),
        None => name.to_owned(),
    }
}

/// Description for readers who cannot see the picture.
fn description(plot: &Plot) -> String {
    let mut text = format!("{} over {}.", plot.y.label, plot.x.label);
    for series in &plot.series {
        let values = || series.points.iter().map(|p| p.1).filter(|v| v.is_finite());
        let (low, high) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        if low <= high {
            let show = |v| plot.y.unit.show(v);
            text += &format!(" {}: from {} to {}.", series.name, show(low), show(high));
        }
    }
    if !plot.note.is_empty() {
        text += " ";
        text += &plot.note;
    }
    text
}

/// A row per x, a column per series; clouds and long lines one row per point, the first of them
/// only.
pub(super) fn data(plot: &Plot) -> Table {
    let mut xs: Vec<f64> = plot.series.iter().flat_map(|s| s.points.iter().map(|p| p.0)).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    const MOST_ROWS: usize = 400;
    let mut columns = vec![Column::number(&plot.x.label)];
    columns.extend(plot.series.iter().map(|series| Column::number(&series.name)));
    let value_at = |series: &Series, x: f64| {
        let point = series.points.iter().find(|p| p.0 == x);
        point.map_or(String::new(), |p| plot.y.unit.show(p.1))
    };
    let every = xs.len().div_ceil(MOST_ROWS).max(1);
    let row = |x: &f64| {
        let mut row = vec![plot.x.unit.show(*x)];
        row.extend(plot.series.iter().map(|series| value_at(series, *x)));
        row
    };
    let rows = xs.iter().step_by(every).map(row).collect();
    let note = if every > 1 { format!("every {every}th of {} rows", xs.len()) } else { String::new() };
    Table { title: plot.title.clone(), note, columns, rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_drawn_behind_the_lines_with_their_names() {
        let band = |name: &str, from, to| super::super::Band { name: name.into(), from, to };
        let mut plot =
            Plot { series: vec![Series::new("a", vec![(0.0, 1.0), (100.0, 2.0)])], ..Plot::default() };
        plot.x.bands = vec![band("load", 0.0, 50.0), band("", 50.0, 52.0), band("a long name", 52.0, 60.0)];
        let svg = draw(&plot, Style::Lines, Room::Wide, "0").inline();
        let place = |what: &str| svg.find(what).unwrap_or_else(|| panic!("no {what} in {svg}"));
        assert!(place("class=\"band\"") < place("class=\"line"), "behind");
        assert!(
            svg.contains(">load</text>") && svg.contains("rotate") && svg.contains(">a long name</text>")
        );
        assert_eq!(svg.matches("class=\"band").count() - svg.matches("band-name").count(), 2, "{svg}");
    }

    #[test]
    fn little_room_has_names_above_and_ticks_apart() {
        let series = |name: &str| Series::new(name, vec![(0.0, 1.0), (1e6, 2.0)]);
        let long = "a name that is much longer than a telephone is wide when it is held upright";
        let plot = Plot { series: vec![series("a"), series(long)], ..Plot::default() };
        let picture = draw(&plot, Style::Lines, Room::Narrow, "0");
        assert!(picture.width <= 350.0, "{}", picture.width);
        let svg = picture.inline();
        assert!(svg.contains(">a</text>") && svg.contains(">a name that") && !svg.contains("upright</text>"));
        let ticks: Vec<(f64, String)> = (0..20).map(|i| (f64::from(i) * 15.0, "1000 s".into())).collect();
        let kept = apart(ticks);
        assert_eq!(kept[0].0, 0.0);
        assert!(kept.windows(2).all(|w| w[1].0 - w[0].0 > 6.0 * SMALL_LETTER), "{kept:?}");
        assert!(kept.len() > 4, "{kept:?}");
    }

    #[test]
    fn names_do_not_cover_each_other() {
        let places = spread_out(&[100.0, 101.0, 102.0, 399.0, 400.0], 20.0, 400.0);
        assert!(places.windows(2).all(|w| w[1] - w[0] >= NAME_HEIGHT - 1e-9), "{places:?}");
        assert!(places[0] >= 20.0 && places[4] <= 400.0);
        assert_eq!(spread_out(&[30.0, 200.0], 20.0, 400.0), [30.0, 200.0]);
    }
}
