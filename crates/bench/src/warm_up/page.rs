//! The section of a page about a warm-up: a table, courses second by second, and the queries.

use snowmelt_lab::report::{Axis, Column, Figure, Plot, Section, Series, Table, Unit};

use super::text::BY_QUERY;
use super::{WarmSecond, WarmUp};

impl WarmUp {
    /// Courses, and a table by query.
    pub fn section(&self) -> Section {
        let mut figures =
            vec![self.table(), self.course("Queries per second", Unit::Plain, |second| Some(second.rate))];
        type Course = (&'static str, Unit, fn(&WarmSecond) -> Option<f64>);
        let courses: [Course; 3] = [
            ("Processors of the server", Unit::Plain, |second| second.cpus),
            ("Read from storage per second", Unit::Bytes, |second| second.bytes),
            ("I/O wait, seconds per second", Unit::Plain, |second| second.io_wait),
        ];
        let is_told = |of: fn(&WarmSecond) -> Option<f64>| self.seconds.iter().any(|s| of(s).is_some());
        let told = courses.into_iter().filter(|(_, _, of)| is_told(*of));
        figures.extend(told.map(|(title, unit, of)| self.course(title, unit, of)));
        figures.push(self.by_query());
        Section::new("Warming", figures)
    }

    fn table(&self) -> Figure {
        Figure::Table(Table {
            title: "From cold to warm".into(),
            note: "Times are seconds since the beginning of the warm-up.".into(),
            columns: ["figure", "value"].into_iter().map(Column::text).collect(),
            rows: self.figures().into_iter().map(Vec::from).collect(),
        })
    }

    fn course(&self, title: &str, unit: Unit, of: impl Fn(&WarmSecond) -> Option<f64>) -> Figure {
        let points = self.seconds.iter().filter_map(|second| Some((second.end_s, of(second)?)));
        Figure::Lines(Plot {
            title: title.to_owned(),
            note: format!("The measured mixes begin at {:.1} s.", self.measured_from_s),
            x: Axis::new("time since the start", Unit::Seconds),
            y: Axis::new(title, unit),
            series: vec![Series::new(title, points.collect())],
        })
    }

    fn by_query(&self) -> Figure {
        Figure::Table(Table {
            title: "Queries while semi-warm".into(),
            note: "Semi-warm: the server's processor use is 15 to 45 % of its plateau. The last column is \
                   the query's throughput then, one over its mean time, by that when warm."
                .into(),
            columns: BY_QUERY.into_iter().map(Column::number).collect(),
            rows: self.rows(),
        })
    }
}
