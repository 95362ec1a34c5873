//! The page: one file, no other, for screens and paper, dark and light, with and without
//! scripts.

use std::fmt::Write;

use super::svg::escape;
use super::theme::{DRAWING, Theme};
use super::{Figure, Report, Room, Section, table};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub(super) fn page(report: &Report) -> String {
    let title = escape(&report.title);
    let (light, dark) = (Theme::LIGHT.properties(), Theme::DARK.properties());
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n\
         :root{{{light}}}\n@media (prefers-color-scheme: dark){{:root:not([data-theme=light]){{{dark}}}}}\n\
         :root[data-theme=dark]{{{dark}}}\n{STYLE}\n{DRAWING}</style>\n</head>\n<body>\n\
         <header><h1>{title}</h1>\
         <button type=\"button\" id=\"theme\" hidden>Dark / light</button></header>\n<main>\n"
    );
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
    let _ = write!(out, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
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
    for doubt in doubts {
        let _ = writeln!(out, "<li>{}</li>", escape(doubt));
    }
    *out += "</ul></section>\n";
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
