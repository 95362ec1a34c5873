//! Reports: the findings as figures, in one page that needs no other file.
//!
//! A [`Report`] is data. [`Report::html`] makes it one offline page, dark and light, in which
//! every figure has a description, its data as a table, and buttons that save it as SVG or PNG.
//! [`Report::pictures`] gives the figures as SVG files.

mod bars;
mod colour;
pub(crate) mod command;
pub(crate) mod gallery;
mod heat_map;
mod html;
mod legend;
mod lines;
mod picture;
mod scale;
mod svg;
mod table;
mod text;
mod theme;
mod words;

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use scale::{Axis, Band, FittedAxis, Scale, Unit};
pub use theme::Theme;

use crate::LabError;

/// Everything on a page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Its heading.
    pub title: String,
    /// The findings, a sentence or two each: the first thing read.
    pub summary: Vec<String>,
    /// Why the numbers may be wrong; filled in by [`Run::finish`](crate::Run::finish).
    pub doubts: Vec<String>,
    /// The figures, in the order in which they are looked at.
    pub sections: Vec<Section>,
    /// Circumstances: command, machine, devices; filled in by
    /// [`Run::finish`](crate::Run::finish).
    pub facts: Vec<(String, String)>,
}

/// A heading with text and figures under it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// Paragraphs before the figures.
    pub text: Vec<String>,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// A line per series.
    Lines(Plot),
    /// A dot per point.
    Scatter(Plot),
    /// A coloured cell per pair.
    HeatMap(HeatMap),
    /// A bar per name.
    Bars(Bars),
    /// A table.
    Table(Table),
}

/// Series over two axes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// Its title.
    pub title: String,
    /// The finding, as a caption; may be empty.
    pub note: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines or clouds.
    pub series: Vec<Series>,
}

/// One line or cloud of points.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// x and y, for lines in the order of x.
    pub points: Vec<(f64, f64)>,
    /// Drawn dashed: a model or a goal, or the second figure of a pair.
    pub dashed: bool,
    /// Its colour, counted from 0; by default each series has the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour: Option<usize>,
}

/// Values over two lists of names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// Its title.
    pub title: String,
    /// The finding, as a caption; may be empty.
    pub note: String,
    /// Title of the columns.
    pub x_label: String,
    /// The columns.
    pub x: Vec<String>,
    /// Title of the rows.
    pub y_label: String,
    /// The rows, from the top.
    pub y: Vec<String>,
    /// Row by row; `None` was not measured.
    pub cells: Vec<Vec<Option<f64>>>,
    /// Title of the values.
    pub unit: Unit,
    /// Colours by the logarithm.
    pub log: bool,
}

/// Horizontal bars.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// Its title.
    pub title: String,
    /// The finding, as a caption; may be empty.
    pub note: String,
    /// Title of the values.
    pub label: String,
    /// Their unit.
    pub unit: Unit,
    /// From the top.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// Its length.
    pub value: f64,
    /// Smallest and largest of several measurements, drawn as a thin line.
    pub range: Option<(f64, f64)>,
    /// Bars of one group have one colour.
    pub group: usize,
}

/// Rows and columns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Its title.
    pub title: String,
    /// The finding, as a caption; may be empty.
    pub note: String,
    /// Headings.
    pub columns: Vec<Column>,
    /// As many cells as columns.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// Numbers are set flush right.
    pub numeric: bool,
    /// Its words are verdicts, each with a colour of its own (`page.css`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub marked: bool,
}

/// The room that a drawing has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// A page on a screen or on paper.
    Wide,
    /// A part of a screen, or a telephone held sideways.
    Medium,
    /// A telephone held upright.
    Narrow,
}

impl Room {
    const ALL: [Room; 3] = [Room::Wide, Room::Medium, Room::Narrow];

    /// Its width; letters are as large in all.
    fn width(self) -> f64 {
        match self {
            Room::Wide => 920.0,
            Room::Medium => 640.0,
            Room::Narrow => 318.0,
        }
    }

    /// The height of a plot in it.
    fn plot_height(self) -> f64 {
        match self {
            Room::Wide => 352.0,
            Room::Medium => 300.0,
            Room::Narrow => 232.0,
        }
    }

    /// The class of what a page shows only where it has this room.
    fn name(self) -> &'static str {
        match self {
            Room::Wide => "wide",
            Room::Medium => "medium",
            Room::Narrow => "narrow",
        }
    }
}

impl Report {
    /// An empty report.
    pub fn new(title: impl Into<String>) -> Report {
        Report { title: title.into(), ..Report::default() }
    }

    /// Reads `report.json` of a run folder.
    ///
    /// # Errors
    /// The folder has no report, or one that cannot be read.
    pub fn load(run: &Path) -> Result<Report, LabError> {
        let path = run.join("report.json");
        let text = fs::read_to_string(&path).map_err(|e| LabError::file("read", &path, e))?;
        serde_json::from_str(&text).map_err(|e| {
            LabError::Argument(format!("{}: not a report of this laboratory: {e}", path.display()))
        })
    }

    /// The page.
    pub fn html(&self) -> String {
        html::page(self)
    }

    /// Name and SVG document of every figure that is a picture.
    pub fn pictures(&self, theme: Theme) -> Vec<(String, String)> {
        let figures = self.sections.iter().flat_map(|section| &section.figures).enumerate();
        figures
            .filter_map(|(i, figure)| {
                let picture = figure.picture(Room::Wide, &i.to_string())?;
                let name = format!("{:02}-{}", i + 1, svg::file_name(figure.title()));
                Some((name, picture.document(theme)))
            })
            .collect()
    }
}

impl Section {
    /// A section without text.
    pub fn new(title: impl Into<String>, figures: Vec<Figure>) -> Section {
        Section { title: title.into(), text: Vec::new(), figures }
    }

    /// With a paragraph before the figures.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Section {
        self.text.push(text.into());
        self
    }
}

impl Figure {
    /// Its title.
    pub fn title(&self) -> &str {
        match self {
            Figure::Lines(plot) | Figure::Scatter(plot) => &plot.title,
            Figure::HeatMap(map) => &map.title,
            Figure::Bars(bars) => &bars.title,
            Figure::Table(table) => &table.title,
        }
    }

    /// The finding, as a caption.
    pub fn note(&self) -> &str {
        match self {
            Figure::Lines(plot) | Figure::Scatter(plot) => &plot.note,
            Figure::HeatMap(map) => &map.note,
            Figure::Bars(bars) => &bars.note,
            Figure::Table(table) => &table.note,
        }
    }

    /// The drawing; `None` for tables. `id` makes the names in it unique on the page.
    fn picture(&self, room: Room, id: &str) -> Option<svg::Picture> {
        match self {
            Figure::Lines(plot) => Some(lines::draw(plot, lines::Style::Lines, room, id)),
            Figure::Scatter(plot) => Some(lines::draw(plot, lines::Style::Dots, room, id)),
            Figure::HeatMap(map) => Some(heat_map::draw(map, room, id)),
            Figure::Bars(bars) => Some(bars::draw(bars, room, id)),
            Figure::Table(_) => None,
        }
    }

    /// Its data as a table.
    fn data(&self) -> Table {
        match self {
            Figure::Lines(plot) | Figure::Scatter(plot) => lines::data(plot),
            Figure::HeatMap(map) => heat_map::data(map),
            Figure::Bars(bars) => bars::data(bars),
            Figure::Table(table) => table.clone(),
        }
    }
}

impl Column {
    /// A column of words.
    pub fn text(name: impl Into<String>) -> Column {
        Column { name: name.into(), ..Column::default() }
    }

    /// A column of numbers.
    pub fn number(name: impl Into<String>) -> Column {
        Column { name: name.into(), numeric: true, ..Column::default() }
    }

    /// Of verdicts, in colour.
    pub fn verdicts(name: impl Into<String>) -> Column {
        Column { name: name.into(), marked: true, ..Column::default() }
    }
}

impl Series {
    /// A measured series; points that are not finite, which no file could keep, are left out.
    pub fn new(name: impl Into<String>, mut points: Vec<(f64, f64)>) -> Series {
        points.retain(|(x, y)| x.is_finite() && y.is_finite());
        Series { name: name.into(), points, dashed: false, colour: None }
    }

    /// Dashed.
    #[must_use]
    pub fn dashed(mut self) -> Series {
        self.dashed = true;
        self
    }

    /// In the `i`th colour.
    #[must_use]
    pub fn coloured(mut self, i: usize) -> Series {
        self.colour = Some(i);
        self
    }
}

#[cfg(test)]
mod tests;
