//! Tables as HTML. Where there is little room a table of words becomes a block for each row, so
//! that no column is out of sight; one of numbers is moved sideways, beside its first column.

use std::fmt::Write;

use super::Table;
use super::svg::escape;
use super::text;

/// Size of the letters in tables.
const SIZE: f64 = 14.5;
/// Room between columns.
const GAP: f64 = 14.0;
/// Width of a telephone without the space around a table.
const LEAST_ROOM: f64 = 330.0;
/// That of the narrowest page on which drawings are not those of a telephone.
const MEDIUM_ROOM: f64 = 550.0;
/// Words are broken into lines in a column of this width.
const WORDS: f64 = 118.0;

/// The `table` element, named by the title.
pub(super) fn html(table: &Table) -> String {
    let mut out =
        format!("<table class=\"{}\" aria-label=\"{}\"><thead><tr>", shape(table), escape(&table.title));
    let class = |numeric: bool| if numeric { " class=\"number\"" } else { "" };
    for column in &table.columns {
        let class = match (column.numeric, column.name.split(' ').any(is_long)) {
            (true, true) => " class=\"number words\"",
            (false, true) => " class=\"words\"",
            (numeric, false) => class(numeric),
        };
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(&column.name));
    }
    out += "</tr></thead><tbody>\n";
    for row in &table.rows {
        out += "<tr>";
        for (i, cell) in row.iter().enumerate() {
            let column = table.columns.get(i);
            let numeric = column.is_some_and(|column| column.numeric);
            let name = column.map_or("", |column| column.name.as_str());
            let class = if column.is_some_and(|column| column.marked) {
                format!(" class=\"mark mark-{}\"", escape(&cell.replace(' ', "-")))
            } else if !numeric && is_long(cell) {
                " class=\"words\"".to_owned()
            } else {
                class(numeric).to_owned()
            };
            let _ = write!(
                out,
                "<td{class} data-label=\"{}\"><span>{}</span></td>",
                escape(name),
                super::words::prose(cell)
            );
        }
        out += "</tr>\n";
    }
    out + "</tbody></table>"
}

/// Letters of words that stay on one line.
const SHORT: usize = 14;
/// Letters of a word that is not broken, as a digest.
const WHOLE: usize = 20;

fn is_long(cell: &str) -> bool {
    let most = if cell.contains(' ') { SHORT } else { WHOLE };
    cell.chars().count() > most
}

/// How the table is laid out where there is little room.
fn shape(table: &Table) -> &'static str {
    // A word that is not broken has its whole width.
    let width = |i: usize, numeric: bool| {
        let narrowed = |text: &str, is_broken: bool| {
            let width = text::width(text, SIZE);
            if is_broken { width.min(WORDS) } else { width }
        };
        let words = table.columns[i].name.split(' ').map(|word| narrowed(word, is_long(word)));
        let cells = table.rows.iter().filter_map(|row| row.get(i));
        words.chain(cells.map(|cell| narrowed(cell, !numeric && is_long(cell)))).fold(0.0, f64::max)
    };
    let columns = table.columns.iter().enumerate();
    let all: f64 = columns.map(|(i, column)| width(i, column.numeric) + GAP).sum();
    let words = table.columns.iter().skip(1).any(|column| !column.numeric);
    match (all > LEAST_ROOM, words) {
        (true, true) if all > MEDIUM_ROOM => "blocks early",
        (true, true) => "blocks",
        (true, false) => "beside",
        (false, _) => "small",
    }
}

#[cfg(test)]
mod tests {
    use super::super::Column;
    use super::*;

    #[test]
    fn verdicts_have_colours_by_their_words() {
        let table = Table {
            columns: vec![Column::text("id"), Column::verdicts("verdict"), Column::number("n")],
            rows: vec![vec!["a".into(), "not comparable".into(), "7".into()]],
            ..Table::default()
        };
        let html = html(&table);
        let verdict = "<td class=\"mark mark-not-comparable\" data-label=\"verdict\"><span>not comparable";
        assert!(html.contains(verdict), "{html}");
    }

    #[test]
    fn words_become_blocks_and_numbers_move_sideways() {
        let table = |columns: Vec<Column>, cell: &str| {
            let rows = vec![vec![cell.to_owned(); columns.len()]];
            Table { columns, rows, ..Table::default() }
        };
        let words = |n: usize| (0..n).map(|i| Column::text(format!("column {i}"))).collect::<Vec<_>>();
        let numbers = |n: usize| {
            let numbers = (0..n).map(|i| Column::number(format!("number {i}")));
            words(1).into_iter().chain(numbers).collect::<Vec<_>>()
        };
        assert_eq!(shape(&table(words(2), "short")), "small");
        assert_eq!(shape(&table(words(4), "some words of a finding")), "blocks");
        assert_eq!(shape(&table(words(6), "some words of a finding")), "blocks early");
        assert_eq!(shape(&table(numbers(9), "1234.5")), "beside");
        assert_eq!(shape(&table(numbers(2), "1234.5")), "small");
        let long = |name: &str| table(vec![Column::text(""), Column::text(name)], "0.8657718120805369");
        assert_eq!(shape(&long("read")), "blocks", "such a number is not broken");
        assert!(
            html(&long("a-folder-with-a-long-name")).contains("<th scope=\"col\" class=\"words\">a-folder")
        );
        let html = html(&table(words(4), "a \"verdict\" of some words"));
        assert!(html.contains("data-label=\"column 3\"><span>a &quot;verdict&quot;"), "{html}");
    }
}
