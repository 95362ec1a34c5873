//! Lines and clouds of dots over two axes, with the names of the series beside or above.

use super::legend::{self, Entry, Rows, Sign};
use super::scale::{FittedAxis, fit};
use super::svg::{Anchor, Picture};
use super::text::{self, BAND_SIZE, NAME_SIZE, TICK_SIZE};
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

/// Letters of an upright name.
const MOST_UPRIGHT: usize = 28;
/// Of more points than this only some have marks.
const MOST_MARKS: usize = 32;
/// Marks on a line of more points.
const FEW_MARKS: usize = 8;
/// More points than this cannot be told apart.
const MOST_POINTS: usize = 4000;
/// Values are written at the marks of at most so many series of one point.
const MOST_LONE: usize = 6;

/// Place of the names of the series.
enum SeriesNames {
    None,
    /// width of their column
    Aside(f64),
    Above(Rows),
}

impl SeriesNames {
    fn choose(plot: &Plot, drawn: &[usize], style: Style, room: Room) -> SeriesNames {
        let names: Vec<&str> = drawn.iter().map(|&i| plot.series[i].name.as_str()).collect();
        if plot.series.len() < 2 && drawn.iter().all(|&i| !plot.series[i].dashed) {
            return SeriesNames::None;
        }
        if (style, room) == (Style::Lines, Room::Wide)
            && let Some(width) = legend::aside_width(&names, room.plot_height())
        {
            return SeriesNames::Aside(width);
        }
        SeriesNames::Above(Rows::new(&names, 8.0, room.width() - 4.0))
    }
}

impl Frame {
    fn new(plot: &Plot, names: &SeriesNames, room: Room) -> Frame {
        let width = room.width();
        let beside = match names {
            SeriesNames::Aside(width) => width + 14.0,
            _ if room == Room::Narrow => 14.0,
            _ => 24.0,
        };
        let top = if let SeriesNames::Above(rows) = names { rows.height + 14.0 } else { 20.0 };
        let bottom = top + room.plot_height();
        let y = fit(&plot.y, plot.series.iter().flat_map(|s| &s.points).map(|p| p.1), bottom, top);
        let ticks = y.ticks().iter().map(|tick| text::width(&tick.1, TICK_SIZE)).fold(0.0, f64::max);
        let label = if room == Room::Narrow { 11.0 } else { 18.0 };
        Frame {
            width,
            height: bottom + 58.0,
            left: label + ticks + 20.0,
            right: width - beside,
            top,
            bottom,
            label,
        }
    }
}

pub(super) fn draw(plot: &Plot, style: Style, room: Room, id: &str) -> Picture {
    let drawn: Vec<usize> = (0..plot.series.len()).filter(|&i| has_places(plot, i)).collect();
    let names = SeriesNames::choose(plot, &drawn, style, room);
    let frame = Frame::new(plot, &names, room);
    let mut picture = Picture::new(frame.width, frame.height, &plot.title, &description(plot), id);
    let all = || plot.series.iter().flat_map(|series| &series.points);
    let x = fit(&plot.x, all().map(|p| p.0), frame.left, frame.right);
    let y = fit(&plot.y, all().map(|p| p.1), frame.bottom, frame.top);
    bands(&mut picture, plot, &x, &frame);
    axes(&mut picture, plot, &x, &y, &frame);

    let mut entries = Vec::new();
    let mut lone = Vec::new();
    for &i in &drawn {
        let points = places(&plot.series[i], &x, &y, room);
        let Some(last) = points.last() else { continue };
        let sign = draw_series(&mut picture, plot, i, style, &points);
        entries.push(Entry { name: &plot.series[i].name, colour: colour(plot, i), sign, end: last.0 });
        if points.len() == 1 {
            lone.push(*last);
        }
    }
    match names {
        SeriesNames::None => {}
        SeriesNames::Aside(_) => legend::aside(&mut picture, entries, frame.right, (frame.top, frame.bottom)),
        SeriesNames::Above(rows) => rows.draw(&mut picture, &entries),
    }
    if drawn.is_empty() {
        let middle = (f64::midpoint(frame.left, frame.right), f64::midpoint(frame.top, frame.bottom) - 8.0);
        picture.text(middle, Anchor::Middle, "label", "no values");
    } else if lone.len() == drawn.len() && style == Style::Lines {
        name_lone(&mut picture, plot, &lone, &frame);
    }
    picture
}

/// Whether a series has a point that the axes can show.
fn has_places(plot: &Plot, i: usize) -> bool {
    let has = |axis: &super::Axis, value: f64| {
        value.is_finite() && (axis.scale != super::Scale::Log || value > 0.0)
    };
    plot.series[i].points.iter().any(|(x, y)| has(&plot.x, *x) && has(&plot.y, *y))
}

/// The values beside points that no line leads to, each where it covers no other.
fn name_lone(picture: &mut Picture, plot: &Plot, points: &[Placed], frame: &Frame) {
    if points.len() > MOST_LONE {
        return;
    }
    let mut taken: Vec<f64> = Vec::new();
    for ((x, y), (_, value)) in points {
        if taken.iter().any(|other| (other - y).abs() < text::LINE_HEIGHT + 1.0) {
            continue;
        }
        taken.push(*y);
        let shown = plot.y.unit.show(*value);
        let is_right = x + 10.0 + text::width(&shown, NAME_SIZE) <= frame.right;
        let (at, anchor) = if is_right { (x + 10.0, Anchor::Start) } else { (x - 10.0, Anchor::End) };
        picture.text((at, y + 4.5), anchor, "", &shown);
    }
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
    for Tick { at, label_at, label } in apart(x.ticks(), frame.width) {
        picture.line((at, bottom), (at, bottom + 5.0), "axis");
        picture.text((label_at, bottom + 20.0), Anchor::Middle, "tick", &label);
    }
    picture.line((left, bottom), (right, bottom), "axis");
    let label = text::cut(&plot.x.label, right - left, NAME_SIZE);
    picture.text((f64::midpoint(left, right), frame.height - 12.0), Anchor::Middle, "label", &label);
    let label = text::cut(&plot.y.label, bottom - frame.top, NAME_SIZE);
    picture.upright((frame.label, f64::midpoint(frame.top, bottom)), "label", &label);
}

/// A tick of a horizontal axis.
pub(super) struct Tick {
    pub(super) at: f64,
    /// The middle of its label, which stays within the drawing.
    pub(super) label_at: f64,
    pub(super) label: String,
}

/// Ticks of a horizontal axis whose labels do not cover each other, from the first on, in a drawing
/// of some width.
pub(super) fn apart(ticks: Vec<(f64, String)>, width: f64) -> Vec<Tick> {
    let mut free = f64::NEG_INFINITY;
    let tick = |(at, label): (f64, String)| {
        let half = text::width(&label, TICK_SIZE) / 2.0;
        let label_at = at.min(width - half - 2.0).max(half + 2.0);
        (label_at - half >= free).then(|| {
            free = label_at + half + 5.0;
            Tick { at, label_at, label }
        })
    };
    ticks.into_iter().filter_map(tick).collect()
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
        let (long, middle) = (text::width(&band.name, BAND_SIZE), f64::midpoint(from, to));
        if to - from > long + 6.0 {
            picture.text((middle, top + 13.0), Anchor::Middle, "band-name", &band.name);
        } else if to - from > 12.0 {
            let name: String = band.name.chars().take(MOST_UPRIGHT).collect();
            let length = text::width(&name, BAND_SIZE);
            picture.upright((middle + 4.0, top + length / 2.0 + 6.0), "band-name", &name);
        }
    }
}

/// Draws a series. Returns the sign that stands for it.
fn draw_series(picture: &mut Picture, plot: &Plot, i: usize, style: Style, points: &[Placed]) -> Sign {
    let (series, colour) = (&plot.series[i], colour(plot, i));
    let at: Vec<_> = points.iter().map(|p| p.0).collect();
    let class = series_class(colour);
    if style == Style::Dots {
        picture.dots(&at, &format!("dots {class}"));
        return Sign::Dots;
    }
    let is_lone = points.len() == 1;
    let dashed = if series.dashed { " dashed" } else { "" };
    let thin = if points.len() > 200 { " thin" } else { "" };
    if !is_lone {
        picture.path(&at, &format!("line {class}{dashed}{thin}"));
    }
    if series.dashed && !is_lone {
        return Sign::Dashed;
    }
    if points.len() > MOST_MARKS && plot.series.len() < 2 {
        return Sign::Line;
    }
    // Shapes tell lines apart where colours do not; on a long line some are enough. Each line
    // begins elsewhere, so that lines of the same values show each other's.
    let every = if points.len() > MOST_MARKS { points.len().div_ceil(FEW_MARKS) } else { 1 };
    let first = if every > 1 { (i * every / 3 + every / 4) % every } else { 0 };
    for (at, value) in points.iter().skip(first).step_by(every) {
        let tip = format!("{}: {} at {}", series.name, plot.y.unit.show(value.1), plot.x.unit.show(value.0));
        picture.mark(*at, colour, &tip);
    }
    if is_lone { Sign::Marks } else { Sign::LineAndMarks }
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
        assert!(svg.contains(">a</text>") && svg.contains(">a name that") && svg.contains("upright</text>"));
        let ticks: Vec<(f64, String)> = (0..20).map(|i| (f64::from(i) * 15.0, "1000 s".into())).collect();
        let kept = apart(ticks, 290.0);
        assert_eq!(kept[0].at, 0.0);
        let half = text::width("1000 s", TICK_SIZE) / 2.0;
        assert!(kept.windows(2).all(|w| w[1].label_at - w[0].label_at > 2.0 * half));
        assert!(kept.iter().all(|tick| tick.label_at >= half && tick.label_at + half <= 290.0));
        assert!(kept.len() > 4, "{}", kept.len());
    }

    /// Number of marks outside of a legend, which have a tip.
    fn marks(svg: &str) -> usize {
        svg.split("class=\"mark")
            .skip(1)
            .filter(|rest| rest[..rest.find('/').unwrap()].contains("<title>"))
            .count()
    }

    #[test]
    fn a_series_of_one_point_is_a_mark_with_its_value() {
        let lone = |name: &str, value: f64| Series::new(name, vec![(1.0, value)]);
        let series = vec![lone("a", 4.0), lone("goal", 2.0).dashed(), Series::new("none", vec![])];
        let plot = Plot { series, ..Plot::default() };
        for room in [Room::Wide, Room::Medium, Room::Narrow] {
            let svg = draw(&plot, Style::Lines, room, "0").inline();
            assert_eq!(marks(&svg), 2, "{svg}");
            assert!(!svg.contains("class=\"line"), "no line of one point: {svg}");
            assert!(
                svg.contains(">4</text>") && svg.contains(">goal</text>") && !svg.contains(">none</text>")
            );
        }
        let empty = Plot { series: vec![Series::new("none", vec![])], ..Plot::default() };
        assert!(draw(&empty, Style::Lines, Room::Wide, "0").inline().contains(">no values</text>"));
    }

    #[test]
    fn each_series_is_named_once_and_long_lines_have_some_marks() {
        let line = |name: &str| Series::new(name, (0..500).map(|i| (f64::from(i), 1.0)).collect());
        let plot = Plot { series: vec![line("first"), line("second")], ..Plot::default() };
        for style in [Style::Lines, Style::Dots] {
            for room in [Room::Wide, Room::Medium, Room::Narrow] {
                let svg = draw(&plot, style, room, "0").inline();
                for name in [">first</text>", ">second</text>"] {
                    assert_eq!(svg.matches(name).count(), 1, "{svg}");
                }
                let expected = if style == Style::Lines { 2 * FEW_MARKS } else { 0 };
                assert_eq!(marks(&svg), expected, "{room:?}");
            }
        }
    }
}
