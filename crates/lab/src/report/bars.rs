//! Horizontal bars with their values, and a thin line from the smallest to the largest of
//! several measurements. The value stands at the end of its bar, which it belongs to; the thin
//! line runs below it.

use super::lines::{Tick, apart};
use super::scale::{Axis, FittedAxis, fit};
use super::svg::{Anchor, Picture};
use super::text::{self, LINE_HEIGHT, NAME_SIZE};
use super::{Bar, Bars, Column, Room, Table, Unit};

const TOP: f64 = 14.0;
/// The least height of a row, with the space around the bar.
const ROW_HEIGHT: f64 = 30.0;
const BAR_HEIGHT: f64 = 20.0;
/// From the end of a bar to its value.
const GAP: f64 = 8.0;
/// Lines of a name.
const MOST_LINES: usize = 3;
/// From the middle of a bar down to the line between the smallest and the largest value.
const WHISKER_DOWN: f64 = 9.0;

/// The places of a bar and of what belongs to it, from the left.
#[derive(Debug, Clone, Copy, PartialEq)]
struct BarPlaces {
    zero: f64,
    end: f64,
    /// Where its value begins.
    value: f64,
    range: Option<(f64, f64)>,
}

impl BarPlaces {
    /// `None` when the value has no place.
    fn new(bar: &Bar, x: &FittedAxis, left: f64) -> Option<BarPlaces> {
        let (zero, end) = (x.place(0.0).unwrap_or(left), x.place(bar.value)?);
        let range = bar.range.and_then(|(low, high)| Some((x.place(low)?, x.place(high)?)));
        Some(BarPlaces { zero, end, value: zero.max(end) + GAP, range })
    }
}

/// Places that are the same for all bars.
struct BarLayout {
    left: f64,
    right: f64,
    /// Names stand above their bars where there is little room.
    is_above: bool,
    names: Vec<Vec<String>>,
}

impl BarLayout {
    fn new(bars: &Bars, room: Room) -> BarLayout {
        let wide = |text: &str| text::width(text, NAME_SIZE);
        let widest = bars.bars.iter().map(|bar| wide(&bar.name)).fold(0.0, f64::max);
        let value = bars.bars.iter().map(|bar| wide(&bars.unit.show(bar.value))).fold(0.0, f64::max);
        let is_above = room == Room::Narrow;
        let most = if room == Room::Wide { 400.0 } else { 240.0 };
        let left = if is_above { 8.0 } else { (widest + 24.0).clamp(60.0, most) };
        let free = if is_above { room.width() - left - 4.0 } else { left - 20.0 };
        let names = bars.bars.iter().map(|bar| text::wrap(&bar.name, free, NAME_SIZE, MOST_LINES));
        BarLayout { left, right: room.width() - value - GAP - 6.0, is_above, names: names.collect() }
    }

    /// Height of a row.
    fn height(&self, row: usize) -> f64 {
        let names = self.names[row].len() as f64 * LINE_HEIGHT;
        if self.is_above { names + ROW_HEIGHT + 8.0 } else { ROW_HEIGHT.max(names + 6.0) }
    }

    /// The middle of the bar of a row that begins at `top`.
    fn middle(&self, row: usize, top: f64) -> f64 {
        match self.is_above {
            true => top + self.names[row].len() as f64 * LINE_HEIGHT + 14.0,
            false => top + self.height(row) / 2.0,
        }
    }
}

fn axis(bars: &Bars, layout: &BarLayout) -> FittedAxis {
    let ends = bars.bars.iter().flat_map(|bar| {
        let (low, high) = bar.range.unwrap_or((bar.value, bar.value));
        [bar.value, low, high]
    });
    fit(&Axis::new(&bars.label, bars.unit), ends, layout.left, layout.right)
}

pub(super) fn draw(bars: &Bars, room: Room, id: &str) -> Picture {
    let layout = BarLayout::new(bars, room);
    let bottom = TOP + (0..bars.bars.len()).map(|row| layout.height(row)).sum::<f64>();
    let mut picture = Picture::new(room.width(), bottom + 54.0, &bars.title, &description(bars), id);
    let BarLayout { left, right, .. } = layout;
    let x = axis(bars, &layout);
    for Tick { at, label_at, label } in apart(x.ticks(), room.width()) {
        picture.line((at, TOP), (at, bottom), "grid");
        picture.text((label_at, bottom + 18.0), Anchor::Middle, "tick", &label);
    }
    let mut top = TOP;
    for (row, bar) in bars.bars.iter().enumerate() {
        let height = layout.height(row);
        draw_names(&mut picture, &layout, row, top);
        let middle = layout.middle(row, top);
        top += height;
        if let Some(places) = BarPlaces::new(bar, &x, left) {
            draw_bar(&mut picture, bar, places, middle, bars.unit);
        }
    }
    let zero = x.place(0.0).unwrap_or(left);
    picture.line((zero, TOP), (zero, bottom), "axis");
    let label = text::cut(&bars.label, room.width() - 16.0, NAME_SIZE);
    let half = text::width(&label, NAME_SIZE) / 2.0;
    let middle = f64::midpoint(left, right).clamp(half + 4.0, (room.width() - half - 4.0).max(half + 4.0));
    picture.text((middle, bottom + 42.0), Anchor::Middle, "label", &label);
    picture
}

/// The name of a bar: beside it in the middle of its row, or above it.
fn draw_names(picture: &mut Picture, layout: &BarLayout, row: usize, top: f64) {
    let lines = &layout.names[row];
    let first = match layout.is_above {
        true => top + 13.0,
        false => top + (layout.height(row) - (lines.len() - 1) as f64 * LINE_HEIGHT) / 2.0 + 4.5,
    };
    let (at, anchor) = match layout.is_above {
        true => (layout.left, Anchor::Start),
        false => (layout.left - 10.0, Anchor::End),
    };
    for (i, line) in lines.iter().enumerate() {
        picture.text((at, first + i as f64 * LINE_HEIGHT), anchor, "", line);
    }
}

fn draw_bar(picture: &mut Picture, bar: &Bar, places: BarPlaces, middle: f64, unit: Unit) {
    let BarPlaces { zero, end, value, range } = places;
    let class = format!("f{}", bar.group % super::theme::SERIES_COLOURS);
    let shown = unit.show(bar.value);
    let size = ((end - zero).abs().max(1.0), BAR_HEIGHT);
    let corner = (zero.min(end), middle - BAR_HEIGHT / 2.0);
    picture.rect(corner, size, &class, &format!("{}: {shown}", bar.name));
    // The value is above the line of the range, which may run on below it.
    let baseline = if range.is_some() { middle + 2.5 } else { middle + 4.5 };
    if let (Some((low, high)), Some((least, most))) = (range, bar.range) {
        let tip = format!("{}: {} to {}", bar.name, unit.show(least), unit.show(most));
        picture.whisker(low, high, middle + WHISKER_DOWN, &tip);
    }
    picture.text((value, baseline), Anchor::Start, "", &shown);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of SplitMix64's (public domain).
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        }

        /// From 0 to 1.
        fn share(&mut self) -> f64 {
            self.next() as f64 / u64::MAX as f64
        }
    }

    /// Bars of several measurements each, over some orders of magnitude.
    fn some(random: &mut Random) -> Bars {
        let units = [Unit::Plain, Unit::Seconds, Unit::Nanoseconds, Unit::Bytes, Unit::Percent];
        let bar = |random: &mut Random, i: u64| {
            let scale = 10f64.powf(random.share() * 9.0 - 3.0);
            let count = 1 + random.next() % 9;
            let mut all: Vec<f64> = (0..count).map(|_| random.share() * scale).collect();
            all.sort_by(f64::total_cmp);
            let range = (all.len() > 1).then(|| (all[0], all[all.len() - 1]));
            let letters = (random.next() % 70) as usize;
            Bar {
                name: "a name ".repeat(letters / 7 + 1),
                value: all[all.len() / 2],
                range,
                group: i as usize,
            }
        };
        let unit = units[(random.next() % 5) as usize];
        let bars = (0..1 + random.next() % 6).map(|i| bar(random, i)).collect();
        Bars { label: "a label of the values".into(), unit, bars, ..Bars::default() }
    }

    #[test]
    fn a_median_stands_between_its_least_and_most_and_its_value_beside_it() {
        let seed = std::env::var("SNOWMELT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(31);
        println!("SNOWMELT_SEED={seed}");
        let mut random = Random(seed);
        for _ in 0..500 {
            let bars = some(&mut random);
            for room in [Room::Wide, Room::Medium, Room::Narrow] {
                let layout = BarLayout::new(&bars, room);
                let x = axis(&bars, &layout);
                for bar in &bars.bars {
                    let places = BarPlaces::new(bar, &x, layout.left).unwrap();
                    let BarPlaces { zero, end, value, range } = places;
                    assert!(layout.left <= zero && zero <= end && end <= layout.right + 1e-6, "{places:?}");
                    if let Some((low, high)) = range {
                        assert!(low <= end + 1e-9 && end <= high + 1e-9, "{bar:?}: {places:?}");
                        assert!(zero <= low && high <= layout.right + 1e-6, "{bar:?}: {places:?}");
                    }
                    assert!((value - end - GAP).abs() < 1e-9, "the value is its bar's: {places:?}");
                    let written = value + text::width(&bars.unit.show(bar.value), NAME_SIZE);
                    assert!(written <= room.width(), "{bar:?}: {written}");
                }
            }
        }
    }

    #[test]
    fn the_value_is_drawn_at_the_end_of_its_bar_and_above_the_range() {
        let bar = Bar { name: "rung".into(), value: 4.44e-3, range: Some((1e-3, 50e-3)), group: 0 };
        let bars = Bars { unit: Unit::Seconds, bars: vec![bar], ..Bars::default() };
        for room in [Room::Wide, Room::Medium, Room::Narrow] {
            let svg = draw(&bars, room, "0").inline();
            let number = |from: &str, name: &str| -> f64 {
                let from = &svg[svg.find(from).unwrap_or_else(|| panic!("no {from} in {svg}"))..];
                let from = &from[from.find(name).unwrap() + name.len()..];
                from[..from.find(['"', ' ', 'V', 'H', 'M']).unwrap()].parse().unwrap()
            };
            let before = svg.find(">4.44 ms</text>").unwrap();
            let text = svg[..before].rfind("<text").unwrap();
            let (x, y) = (number(&svg[text..before], " x=\""), number(&svg[text..before], " y=\""));
            let drawn = svg.rfind("<rect").unwrap();
            let end = number(&svg[drawn..], " x=\"") + number(&svg[drawn..], " width=\"");
            assert!((x - end - GAP).abs() < 0.2, "{room:?}: the value at {x}, the bar's end at {end}");
            let whisker = svg.find("class=\"whisker\"").unwrap();
            let path = svg[..whisker].rfind("<path").unwrap();
            let upper = number(&svg[path..], " d=\"M").max(0.0);
            assert!(upper < end, "{room:?}: it begins at the least value");
            let from: Vec<f64> = svg[path..whisker]
                .split(['M', 'V', 'H', ' ', '"'])
                .filter_map(|word| word.parse().ok())
                .collect();
            assert!(y + 3.0 < from[1], "{room:?}: a text at {y} in the line at {from:?}");
        }
    }
}
