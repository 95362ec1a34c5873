//! The page: one file, no other, for screens and paper, dark and light, with and without
//! scripts.

use std::fmt::Write;

use super::svg::escape;
use super::theme::{DRAWING, Theme};
use super::{Figure, Report, Room, Section, table};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Everything before the content.
pub(super) fn head(title: &str) -> String {
    let title = escape(title);
    let (light, dark) = (Theme::LIGHT.properties(), Theme::DARK.properties());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n\
         :root{{{light}}}\n@media (prefers-color-scheme: dark){{:root:not([data-theme=light]){{{dark}}}}}\n\
         :root[data-theme=dark]{{{dark}}}\n{STYLE}\n{DRAWING}</style>\n</head>\n<body>\n\
         <header><h1>{title}</h1>\
         <button type=\"button\" id=\"theme\" hidden>Dark / light</button></header>\n<main>\n"
    )
}

/// Everything after it.
pub(super) fn end(out: &mut String) {
    let _ = write!(out, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
}

pub(super) fn page(report: &Report) -> String {
    let mut out = head(&report.title);
    doubts(&mut out, &report.doubts);
    if !report.summary.is_empty() {
        out += "<section class=\"summary\">\n";
        report.summary.iter().for_each(|text| paragraph(&mut out, text));
        out += "</section>\n";
    }
    let mut id = 0;
    for section in &report.sections {
        draw_section(&mut out, section, &mut id);
    }
    facts(&mut out, &report.facts);
    end(&mut out);
    out
}

fn paragraph(out: &mut String, text: &str) {
    let _ = writeln!(out, "<p>{}</p>", escape(text));
}

fn doubts(out: &mut String, doubts: &[String]) {
    if doubts.is_empty() {
        return;
    }
    *out += "<section class=\"doubts\" role=\"note\"><h2>These numbers are in doubt</h2>\n<ul>\n";
    for alike in alike(doubts) {
        let first = escape(alike[0]);
        if alike.len() == 1 {
            let _ = writeln!(out, "<li>{first}</li>");
            continue;
        }
        let _ = writeln!(
            out,
            "<li><details><summary>{first}, and {} more like it</summary><ul>",
            alike.len() - 1
        );
        for doubt in &alike[1..] {
            let _ = writeln!(out, "<li>{}</li>", escape(doubt));
        }
        *out += "</ul></details></li>\n";
    }
    *out += "</ul></section>\n";
}

/// Doubts that say the same of different cells, with other numbers, side by side; in the order of
/// their first.
fn alike(doubts: &[String]) -> Vec<Vec<&str>> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for doubt in doubts {
        let says = doubt.rsplit_once(": ").map_or(doubt.as_str(), |(_, says)| says);
        let key: String = says.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect();
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, group)) => group.push(doubt),
            None => groups.push((key, vec![doubt])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

fn draw_section(out: &mut String, section: &Section, id: &mut usize) {
    let _ = writeln!(out, "<section><h2>{}</h2>", escape(&section.title));
    section.text.iter().for_each(|text| paragraph(out, text));
    for figure in &section.figures {
        draw_figure(out, figure, *id);
        *id += 1;
    }
    *out += "</section>\n";
}

fn draw_figure(out: &mut String, figure: &Figure, id: usize) {
    let note = escape(figure.note());
    let wide = figure.picture(Room::Wide, &id.to_string());
    let narrow = figure.picture(Room::Narrow, &format!("{id}n"));
    let Some((wide, narrow)) = wide.zip(narrow) else {
        let _ = writeln!(out, "<div class=\"scroll\" tabindex=\"0\">{}</div>", table::html(&figure.data()));
        if !note.is_empty() {
            let _ = writeln!(out, "<p class=\"note\">{note}</p>");
        }
        return;
    };
    let title = escape(figure.title());
    let name = super::svg::file_name(figure.title());
    let _ = write!(
        out,
        "<figure data-name=\"{name}\"><figcaption><strong>{title}</strong></figcaption>\n\
         <div class=\"scroll wide\">{}</div>\n<div class=\"scroll narrow\">{}</div>\n",
        wide.inline(),
        narrow.inline_fixed()
    );
    if !note.is_empty() {
        let _ = writeln!(out, "<p class=\"note\">{note}</p>");
    }
    let _ = writeln!(
        out,
        "<div class=\"tools\"><details><summary>Data</summary><div class=\"scroll\" tabindex=\"0\">{}</div></details>\
         <span class=\"save\" hidden><button type=\"button\" data-save=\"svg\">Save SVG</button> \
         <button type=\"button\" data-save=\"png\">Save PNG</button></span></div></figure>",
        table::html(&figure.data())
    );
}

fn facts(out: &mut String, facts: &[(String, String)]) {
    if facts.is_empty() {
        return;
    }
    *out += "<section><h2>Circumstances</h2>\n<dl>\n";
    for (name, value) in facts {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
    }
    *out += "</dl></section>\n";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_about_many_cells_is_one_line() {
        let doubts =
            ["a, 4k: 3 pages stayed", "other programs used 83 %", "b, 8k: 12 pages stayed", "odd: 4"];
        let doubts = doubts.map(String::from);
        assert_eq!(alike(&doubts), [vec![&*doubts[0], &*doubts[2]], vec![&*doubts[1]], vec![&*doubts[3]]]);
        let mut page = String::new();
        super::doubts(&mut page, &doubts);
        assert!(page.contains("<summary>a, 4k: 3 pages stayed, and 1 more like it</summary>"), "{page}");
        assert!(page.contains("12 pages stayed"), "none is lost");
    }
}
