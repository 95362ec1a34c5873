//! Horizontal bars with their values, and a thin line from the smallest to the largest of
//! several measurements.

use super::lines::{LETTER, apart, cut};
use super::scale::{Axis, fit};
use super::svg::{Anchor, Picture};
use super::{Bars, Column, Room, Table};

const TOP: f64 = 14.0;
const BAR_HEIGHT: f64 = 30.0;
/// Where there is little room the name stands above its bar.
const NAME_HEIGHT: f64 = 16.0;

pub(super) fn draw(bars: &Bars, room: Room, id: &str) -> Picture {
    let longest = bars.bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or(0);
    let (left, name_height) = match room {
        Room::Wide => ((longest as f64 * LETTER + 24.0).clamp(80.0, 500.0), 0.0),
        Room::Narrow => (8.0, NAME_HEIGHT),
    };
    let right = room.width() - if room == Room::Wide { 96.0 } else { 80.0 };
    let row = BAR_HEIGHT + name_height;
    let bottom = TOP + bars.bars.len() as f64 * row;
    let mut picture = Picture::new(room.width(), bottom + 54.0, &bars.title, &description(bars), id);
    let axis = Axis::new(&bars.label, bars.unit);
    let ends = bars.bars.iter().flat_map(|bar| [bar.value, bar.range.map_or(0.0, |range| range.1)]);
    let x = fit(&axis, ends, left, right);
    let zero = x.place(0.0).unwrap_or(left);
    for (at, label) in apart(x.ticks()) {
        picture.line((at, TOP), (at, bottom), "grid");
        picture.text((at, bottom + 18.0), Anchor::Middle, "tick", &label);
    }
    for (i, bar) in bars.bars.iter().enumerate() {
        let y = TOP + i as f64 * row + name_height;
        match room {
            Room::Wide => picture.text((left - 10.0, y + BAR_HEIGHT / 2.0 + 4.5), Anchor::End, "", &bar.name),
            Room::Narrow => {
                let name = cut(&bar.name, ((room.width() - left) / LETTER) as usize);
                picture.text((left, y), Anchor::Start, "", &name);
            }
        }
        let Some(end) = x.place(bar.value) else { continue };
        let class = format!("f{}", bar.group % super::theme::SERIES_COLOURS);
        let tip = format!("{}: {}", bar.name, bars.unit.show(bar.value));
        picture.rect(
            (zero.min(end), y + 5.0),
            ((end - zero).abs().max(1.0), BAR_HEIGHT - 10.0),
            &class,
            &tip,
        );
        let mut free = end;
        if let Some((low, high)) = bar.range
            && let (Some(low), Some(high)) = (x.place(low), x.place(high))
        {
            let middle = y + BAR_HEIGHT / 2.0;
            picture.line((low, middle), (high, middle), "whisker");
            free = free.max(high);
        }
        let value = bars.unit.show(bar.value);
        picture.text((free + 8.0, y + BAR_HEIGHT / 2.0 + 4.5), Anchor::Start, "", &value);
    }
    picture.line((zero, TOP), (zero, bottom), "axis");
    picture.text((f64::midpoint(left, right), bottom + 42.0), Anchor::Middle, "label", &bars.label);
    picture
}

fn description(bars: &Bars) -> String {
    let each: Vec<String> =
        bars.bars.iter().map(|bar| format!("{} {}", bar.name, bars.unit.show(bar.value))).collect();
    format!("{}: {}. {}", bars.label, each.join(", "), bars.note)
}

pub(super) fn data(bars: &Bars) -> Table {
    let ranges = bars.bars.iter().any(|bar| bar.range.is_some());
    let mut columns = vec![Column::text(""), Column::number(&bars.label)];
    if ranges {
        columns.extend([Column::number("smallest"), Column::number("largest")]);
    }
    let rows = bars.bars.iter().map(|bar| {
        let mut row = vec![bar.name.clone(), bars.unit.show(bar.value)];
        if ranges {
            let (low, high) = bar.range.unzip();
            row.extend([low, high].map(|v| v.map_or(String::new(), |v| bars.unit.show(v))));
        }
        row
    });
    Table { title: bars.title.clone(), note: String::new(), columns, rows: rows.collect() }
}
