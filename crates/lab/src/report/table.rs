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
            let numeric = table.columns.get(i).is_some_and(|column| column.numeric);
            let _ = write!(out, "<td{}>{}</td>", class(numeric), escape(cell));
        }
        out += "</tr>\n";
    }
    out + "</tbody></table>"
}
