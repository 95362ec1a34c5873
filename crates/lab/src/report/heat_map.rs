//! Heat maps: a coloured cell with its value for every pair of names.

use super::svg::{Anchor, Picture};
use super::{Column, HeatMap, Room, Table};

const TOP: f64 = 20.0;
const CELL_HEIGHT: f64 = 46.0;
/// A cell with its value in it is no narrower: the page moves sideways instead.
const LEAST_CELL: f64 = 58.0;

/// The viridis colours (public domain), from low to high: they keep their order in grey and for
/// the colour-blind.
const COLOURS: [(u8, u8, u8); 9] = [
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

pub(super) fn draw(map: &HeatMap, room: Room, id: &str) -> Picture {
    let columns = map.x.len().max(1) as f64;
    let (left, right, least) = match room {
        Room::Wide => (110.0, 20.0, 0.0),
        Room::Narrow => (88.0, 6.0, LEAST_CELL),
    };
    let cell_width = ((room.width() - left - right) / columns).clamp(least, 150.0);
    let bottom = TOP + map.y.len() as f64 * CELL_HEIGHT;
    let width = left + columns * cell_width + right;
    let mut picture = Picture::new(width.max(318.0), bottom + 58.0, &map.title, &description(map), id);
    let (low, high) = range(map);
    for (r, row) in map.cells.iter().enumerate() {
        let y = TOP + r as f64 * CELL_HEIGHT;
        let name = map.y.get(r).map_or("", String::as_str);
        picture.text((left - 10.0, y + CELL_HEIGHT / 2.0 + 4.0), Anchor::End, "tick", name);
        for (c, value) in row.iter().enumerate() {
            let at = (left + c as f64 * cell_width + 1.0, y + 1.0);
            let size = (cell_width - 2.0, CELL_HEIGHT - 2.0);
            let Some(value) = value else {
                picture.rect(at, size, "absent", "not measured");
                continue;
            };
            let share = share(*value, low, high, map.log);
            let shown = map.unit.show(*value);
            let column = map.x.get(c).map_or("", String::as_str);
            picture.cell(at, size, &colour(share), &format!("{name}, {column}: {shown}"));
            let class = if share > 0.55 { "deep" } else { "bright" };
            let middle = (at.0 + size.0 / 2.0, at.1 + size.1 / 2.0 + 4.5);
            picture.text(middle, Anchor::Middle, class, &shown);
        }
    }
    for (c, name) in map.x.iter().enumerate() {
        let x = left + (c as f64 + 0.5) * cell_width;
        picture.text((x, bottom + 18.0), Anchor::Middle, "tick", name);
    }
    picture.text((left + columns * cell_width / 2.0, bottom + 44.0), Anchor::Middle, "label", &map.x_label);
    picture.upright((18.0, f64::midpoint(TOP, bottom)), "label", &map.y_label);
    picture
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

fn colour(share: f64) -> String {
    let place = share * (COLOURS.len() - 1) as f64;
    let i = (place as usize).min(COLOURS.len() - 2);
    let between =
        |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * (place - i as f64)).round() as u8;
    let (a, b) = (COLOURS[i], COLOURS[i + 1]);
    format!("#{:02x}{:02x}{:02x}", between(a.0, b.0), between(a.1, b.1), between(a.2, b.2))
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
    use super::*;

    #[test]
    fn colours_span_the_values() {
        assert_eq!(colour(share(1.0, 1.0, 100.0, true)), "#440154");
        assert_eq!(colour(share(100.0, 1.0, 100.0, true)), "#fde725");
        assert_eq!(colour(share(10.0, 1.0, 100.0, true)), "#21908d");
        assert_eq!(share(5.0, 5.0, 5.0, false), 0.5);
    }
}
