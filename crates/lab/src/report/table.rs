//! Tables as HTML.

use std::fmt::Write;

use super::Table;
use super::svg::escape;

/// The `table` element; the title is its caption.
pub(super) fn html(table: &Table) -> String {
    let mut out = format!("<table><caption>{}</caption><thead><tr>", escape(&table.title));
    let class = |numeric: bool| if numeric { " class=\"number\"" } else { "" };
    for column in &table.columns {
        let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(column.numeric), escape(&column.name));
    }
    out += "</tr></thead><tbody>\n";
    for row in &table.rows {
        out += "<tr>";
        for (i, cell) in row.iter().enumerate() {
            let column = table.columns.get(i);
            let numeric = column.is_some_and(|column| column.numeric);
            let class = match column.is_some_and(|column| column.marked) {
                true => format!(" class=\"mark mark-{}\"", escape(&cell.replace(' ', "-"))),
                false => class(numeric).to_owned(),
            };
            let _ = write!(out, "<td{class}>{}</td>", escape(cell));
        }
        out += "</tr>\n";
    }
    out + "</tbody></table>"
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
        let cells =
            "<td>a</td><td class=\"mark mark-not-comparable\">not comparable</td><td class=\"number\">7</td>";
        assert!(html.contains(cells), "{html}");
    }
}
