//! Heat maps: a coloured cell with its value for every pair of names.

use super::colour::{Rgb, luminance};
use super::svg::{Anchor, Picture};
use super::text::{self, LINE_HEIGHT, NAME_SIZE, TICK_SIZE};
use super::{Column, HeatMap, Room, Table};

/// The title of the rows stands above them.
const TOP: f64 = 28.0;
const CELL_HEIGHT: f64 = 46.0;
/// A cell is no narrower than this and than its value: the page moves sideways instead.
const LEAST_CELL: f64 = 46.0;
/// A cell is no wider.
const MOST_CELL: f64 = 150.0;
/// Lines of a name.
const MOST_LINES: usize = 3;

/// The viridis colours (public domain), from low to high: they keep their order in grey and for
/// the colour-blind.
const COLOURS: [Rgb; 9] = [
    (68, 1, 84),
    (71, 44, 122),
    (59, 81, 139),
    (44, 113, 142),
    (33, 144, 141),
    (39, 173, 129),
    (92, 200, 99),
    (170, 220, 50),
    (253, 231, 37),
];

/// Widths, and the names in lines.
struct MapLayout {
    left: f64,
    cell_width: f64,
    rows: Vec<Vec<String>>,
    columns: Vec<Vec<String>>,
}

impl MapLayout {
    fn new(map: &HeatMap, room: Room) -> MapLayout {
        let widest = |names: &[String]| names.iter().map(|n| text::width(n, TICK_SIZE)).fold(0.0, f64::max);
        let most = if room == Room::Narrow { 96.0 } else { 220.0 };
        let left = (widest(&map.y) + 18.0).clamp(30.0, most);
        let shown: Vec<String> = values(map).map(|value| map.unit.show(value)).collect();
        let shown = shown.iter().map(|value| text::width(value, NAME_SIZE)).fold(0.0, f64::max);
        let least = (shown + 8.0).clamp(LEAST_CELL, MOST_CELL);
        let cell_width = (room.width() - left - 6.0) / map.x.len().max(1) as f64;
        let cell_width = cell_width.clamp(least, MOST_CELL);
        let wrap = |names: &[String], room: f64| -> Vec<Vec<String>> {
            names.iter().map(|name| text::wrap(name, room, TICK_SIZE, MOST_LINES)).collect()
        };
        let (rows, columns) = (wrap(&map.y, left - 14.0), wrap(&map.x, cell_width - 4.0));
        MapLayout { left, cell_width, rows, columns }
    }
}

pub(super) fn draw(map: &HeatMap, room: Room, id: &str) -> Picture {
    let layout = MapLayout::new(map, room);
    let MapLayout { left, cell_width, .. } = layout;
    let cells = map.x.len() as f64 * cell_width;
    let bottom = TOP + map.y.len() as f64 * CELL_HEIGHT;
    let below = layout.columns.iter().map(Vec::len).max().unwrap_or(1) as f64 * LINE_HEIGHT;
    let label_width = text::width(&map.x_label, NAME_SIZE).max(text::width(&map.y_label, NAME_SIZE));
    let width = (left + cells + 6.0).max((label_width + 8.0).min(room.width()));
    let mut picture = Picture::new(width, bottom + below + 36.0, &map.title, &description(map), id);
    let title = text::cut(&map.y_label, width - 8.0, NAME_SIZE);
    picture.text((4.0, 15.0), Anchor::Start, "label", &title);
    for (r, lines) in layout.rows.iter().enumerate() {
        let middle = TOP + (r as f64 + 0.5) * CELL_HEIGHT - (lines.len() - 1) as f64 * LINE_HEIGHT / 2.0;
        for (i, line) in lines.iter().enumerate() {
            let at = (left - 8.0, middle + 4.0 + i as f64 * LINE_HEIGHT);
            picture.text(at, Anchor::End, "tick", line);
        }
    }
    draw_cells(&mut picture, map, &layout);
    for (c, lines) in layout.columns.iter().enumerate() {
        let x = left + (c as f64 + 0.5) * cell_width;
        for (i, line) in lines.iter().enumerate() {
            picture.text((x, bottom + 17.0 + i as f64 * LINE_HEIGHT), Anchor::Middle, "tick", line);
        }
    }
    let label = text::cut(&map.x_label, width - 8.0, NAME_SIZE);
    let half = text::width(&label, NAME_SIZE) / 2.0;
    let middle = (left + cells / 2.0).min(width - half - 4.0).max(half + 4.0);
    picture.text((middle, bottom + below + 24.0), Anchor::Middle, "label", &label);
    picture
}

fn draw_cells(picture: &mut Picture, map: &HeatMap, layout: &MapLayout) {
    let (low, high) = range(map);
    for (r, row) in map.cells.iter().enumerate() {
        let name = map.y.get(r).map_or("", String::as_str);
        for (c, value) in row.iter().enumerate() {
            let corner = (layout.left + c as f64 * layout.cell_width, TOP + r as f64 * CELL_HEIGHT);
            let at = (corner.0 + 1.0, corner.1 + 1.0);
            let size = (layout.cell_width - 2.0, CELL_HEIGHT - 2.0);
            let Some(value) = value else {
                picture.rect(at, size, "absent", "not measured");
                continue;
            };
            let share = share(*value, low, high, map.log);
            let shown = map.unit.show(*value);
            let column = map.x.get(c).map_or("", String::as_str);
            picture.cell(at, size, &hex(colour(share)), &format!("{name}, {column}: {shown}"));
            let middle = (at.0 + size.0 / 2.0, at.1 + size.1 / 2.0 + 4.5);
            picture.text(middle, Anchor::Middle, letters(colour(share)), &shown);
        }
    }
}

/// The class of letters that can be read on a colour.
fn letters(colour: Rgb) -> &'static str {
    let on = luminance(colour);
    let (bright, deep) = (1.05 / (on + 0.05), (on + 0.05) / 0.05);
    if bright > deep { "bright" } else { "deep" }
}

fn values(map: &HeatMap) -> impl Iterator<Item = f64> {
    map.cells.iter().flatten().flatten().copied().filter(|v| v.is_finite())
}

fn range(map: &HeatMap) -> (f64, f64) {
    values(map).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}

/// Where `value` lies between `low` and `high`, from 0 to 1.
fn share(value: f64, low: f64, high: f64, log: bool) -> f64 {
    let log = log && low > 0.0;
    let at = |v: f64| if log { v.ln() } else { v };
    let share = (at(value) - at(low)) / (at(high) - at(low));
    if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.5 }
}

fn colour(share: f64) -> Rgb {
    let place = share * (COLOURS.len() - 1) as f64;
    let i = (place as usize).min(COLOURS.len() - 2);
    let between =
        |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * (place - i as f64)).round() as u8;
    let (a, b) = (COLOURS[i], COLOURS[i + 1]);
    (between(a.0, b.0), between(a.1, b.1), between(a.2, b.2))
}

fn hex((red, green, blue): Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn description(map: &HeatMap) -> String {
    let (low, high) = range(map);
    let mut text = format!("{} by {} and {}.", map.title, map.y_label, map.x_label);
    if low <= high {
        text += &format!(" From {} to {}.", map.unit.show(low), map.unit.show(high));
    }
    if !map.note.is_empty() {
        text += " ";
        text += &map.note;
    }
    text
}

pub(super) fn data(map: &HeatMap) -> Table {
    let mut columns = vec![Column::text(&map.y_label)];
    columns.extend(map.x.iter().map(Column::number));
    let rows = map.cells.iter().enumerate().map(|(r, row)| {
        let mut cells = vec![map.y.get(r).cloned().unwrap_or_default()];
        cells.extend(row.iter().map(|value| value.map_or(String::new(), |v| map.unit.show(v))));
        cells
    });
    Table { title: map.title.clone(), note: map.x_label.clone(), columns, rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use super::super::colour::contrast;
    use super::*;

    #[test]
    fn colours_span_the_values() {
        assert_eq!(hex(colour(share(1.0, 1.0, 100.0, true))), "#440154");
        assert_eq!(hex(colour(share(100.0, 1.0, 100.0, true))), "#fde725");
        assert_eq!(hex(colour(share(10.0, 1.0, 100.0, true))), "#21908d");
        assert_eq!(share(5.0, 5.0, 5.0, false), 0.5);
    }

    #[test]
    fn values_can_be_read_on_every_colour() {
        for hundredth in 0..=100 {
            let on = colour(f64::from(hundredth) / 100.0);
            let letters = if letters(on) == "bright" { (255, 255, 255) } else { (0, 0, 0) };
            let contrast = contrast(letters, on);
            assert!(contrast >= 4.5, "{contrast} at {hundredth} %");
        }
    }

    #[test]
    fn long_names_and_many_columns_keep_their_values_readable() {
        let names = |n: usize, name: &str| (0..n).map(|i| format!("{name} {i}")).collect::<Vec<_>>();
        let map = HeatMap {
            x_label: "a long title of the columns that there are".into(),
            x: names(40, "a query with a long name"),
            y: names(2, "http://example.org/an-engine-with-a-long-name/and/no/blank"),
            cells: vec![vec![Some(1234.5); 40]; 2],
            ..HeatMap::default()
        };
        for room in [Room::Wide, Room::Medium, Room::Narrow] {
            let layout = MapLayout::new(&map, room);
            assert!(layout.cell_width >= text::width("1.23k", NAME_SIZE), "{}", layout.cell_width);
            let fits = |lines: &Vec<Vec<String>>, room: f64| {
                lines.iter().flatten().all(|line| text::width(line, TICK_SIZE) <= room)
            };
            assert!(fits(&layout.rows, layout.left - 8.0) && fits(&layout.columns, layout.cell_width));
            assert!(draw(&map, room, "0").width > room.width(), "it is moved sideways");
        }
    }
}
