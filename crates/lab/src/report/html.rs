//! The page: one file, no other, for screens and paper, dark and light, with and without
//! scripts.

use std::fmt::Write;

use super::svg::escape;
use super::theme::{DRAWING, Theme};
use super::words::prose;
use super::{Figure, Report, Room, Section, table};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Tables whose rows are blocks.
const BLOCKS: &str = include_str!("blocks.css");

/// A title of more letters is set in smaller ones.
const LONG_TITLE: usize = 60;

/// Everything before the content.
pub(super) fn head(title: &str) -> String {
    let long = if title.chars().count() > LONG_TITLE { " class=\"long\"" } else { "" };
    let title = escape(title);
    let early = BLOCKS.replace(".blocks", ".early");
    let (light, dark) = (Theme::LIGHT.properties(), Theme::DARK.properties());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n\
         :root{{{light}}}\n\
         @media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme=light]){{{dark}}} }}\n\
         @media screen {{ :root[data-theme=dark]{{{dark}}} }}\n{STYLE}\n{DRAWING}\n\
         @media screen and (max-width: 640px) {{\n{BLOCKS}}}\n\
         @media screen and (max-width: 960px) {{\n{early}}}\n</style>\n</head>\n<body>\n\
         <header><h1{long}>{title}</h1>\
         <button type=\"button\" id=\"theme\" hidden>Dark / light</button></header>\n<main>\n"
    )
}

/// Everything after it.
pub(super) fn end(out: &mut String) {
    let _ = write!(out, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
}

/// Lines of findings, of doubts and of text that stand above the first figure on a telephone; the
/// rest is folded or below it, so that the figure is on the first screen.
const MOST_SUMMARY: usize = 5;
const MOST_DOUBTS: usize = 3;
const MOST_INTRODUCTION: usize = 3;
/// Letters of a line there.
const LINE: usize = 42;

pub(super) fn page(report: &Report) -> String {
    let mut out = head(&report.title);
    doubts(&mut out, &report.doubts);
    summary(&mut out, &report.summary);
    let mut id = 0;
    for (i, section) in report.sections.iter().enumerate() {
        let before = match i {
            0 => fitting(section.text.iter().map(String::as_str), MOST_INTRODUCTION),
            _ => section.text.len(),
        };
        draw_section(&mut out, section, before, &mut id);
    }
    facts(&mut out, &report.facts);
    end(&mut out);
    out
}

/// How many texts have at most so many lines together on a telephone.
fn fitting<'a>(texts: impl Iterator<Item = &'a str>, most: usize) -> usize {
    let mut lines = 0;
    let fits = |text: &&str| {
        lines += text.chars().count().div_ceil(LINE);
        lines <= most
    };
    texts.take_while(fits).count()
}

fn summary(out: &mut String, summary: &[String]) {
    if summary.is_empty() {
        return;
    }
    *out += "<section class=\"summary\">\n";
    let shown = fitting(summary.iter().map(String::as_str), MOST_SUMMARY);
    summary[..shown].iter().for_each(|text| paragraph(out, text));
    let mut rest: Vec<&str> = summary[shown..].iter().map(String::as_str).collect();
    if shown == 0 {
        let (begin, end) = divided(&summary[0], MOST_SUMMARY * LINE);
        paragraph(out, begin);
        rest[0] = end;
    }
    rest.retain(|text| !text.is_empty());
    if !rest.is_empty() {
        let findings = if rest.len() == 1 { "finding" } else { "findings" };
        let _ = writeln!(out, "<details class=\"more\"><summary>{} more {findings}</summary>", rest.len());
        rest.iter().for_each(|text| paragraph(out, text));
        *out += "</details>\n";
    }
    *out += "</section>\n";
}

/// A text in two, the first with at most so many letters: between sentences, else between words.
fn divided(text: &str, most: usize) -> (&str, &str) {
    let Some((limit, _)) = text.char_indices().nth(most) else { return (text, "") };
    let place = [". ", "; ", " "].iter().find_map(|end| Some(text[..limit].rfind(end)? + end.len()));
    let (begin, end) = text.split_at(place.unwrap_or(limit));
    (begin.trim_end(), end)
}

fn paragraph(out: &mut String, text: &str) {
    let _ = writeln!(out, "<p>{}</p>", prose(text));
}

fn doubts(out: &mut String, doubts: &[String]) {
    if doubts.is_empty() {
        return;
    }
    *out += "<section class=\"doubts\" role=\"note\"><h2>These numbers are in doubt</h2>\n";
    let alike = alike(doubts);
    let shown = fitting(alike.iter().map(|group| group[0]), MOST_DOUBTS);
    let list = |out: &mut String, groups: &[Vec<&str>]| {
        *out += "<ul>\n";
        groups.iter().for_each(|group| draw_doubts(out, group));
        *out += "</ul>\n";
    };
    if shown == 0 {
        let (begin, _) = divided(alike[0][0], MOST_DOUBTS * LINE);
        let more = match doubts.len() - 1 {
            0 => "in full".to_owned(),
            more => format!("in full, and {more} more"),
        };
        let _ = writeln!(
            out,
            "<details class=\"more\"><summary>{}… <span class=\"fold\">{more}</span></summary>",
            prose(begin)
        );
    } else {
        list(out, &alike[..shown]);
        let more: usize = alike[shown..].iter().map(Vec::len).sum();
        let doubts = if more == 1 { "doubt" } else { "doubts" };
        if more > 0 {
            let _ = writeln!(out, "<details class=\"more\"><summary>{more} more {doubts}</summary>");
        }
    }
    if shown < alike.len() {
        list(out, &alike[shown..]);
        *out += "</details>\n";
    }
    *out += "</section>\n";
}

/// A doubt, with those alike folded behind it.
fn draw_doubts(out: &mut String, alike: &[&str]) {
    let first = prose(alike[0]);
    if alike.len() == 1 {
        let _ = writeln!(out, "<li>{first}</li>");
        return;
    }
    let _ = writeln!(
        out,
        "<li><details class=\"more\"><summary>{first}, and {} more like it</summary><ul>",
        alike.len() - 1
    );
    for doubt in &alike[1..] {
        let _ = writeln!(out, "<li>{}</li>", prose(doubt));
    }
    *out += "</ul></details></li>\n";
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

/// A section; of its text so many paragraphs stand before its first figure, the rest after it.
fn draw_section(out: &mut String, section: &Section, before: usize, id: &mut usize) {
    let _ = writeln!(out, "<section><h2>{}</h2>", escape(&section.title));
    let (above, below) = section.text.split_at(before);
    above.iter().for_each(|text| paragraph(out, text));
    for (i, figure) in section.figures.iter().enumerate() {
        draw_figure(out, figure, *id, figure.title() == section.title);
        *id += 1;
        if i == 0 {
            below.iter().for_each(|text| paragraph(out, text));
        }
    }
    if section.figures.is_empty() {
        below.iter().for_each(|text| paragraph(out, text));
    }
    *out += "</section>\n";
}

/// `is_titled`: the heading above it is its title already.
fn draw_figure(out: &mut String, figure: &Figure, id: usize, is_titled: bool) {
    let (title, name) = (escape(figure.title()), super::svg::file_name(figure.title()));
    let _ = writeln!(out, "<figure data-name=\"{name}\">");
    if !is_titled && !title.is_empty() {
        let _ = writeln!(out, "<figcaption><strong>{title}</strong></figcaption>");
    }
    let mut is_picture = false;
    for room in Room::ALL {
        let Some(picture) = figure.picture(room, &format!("{id}{}", room.name())) else { continue };
        is_picture = true;
        let drawing = if room == Room::Narrow || picture.width > room.width() {
            picture.inline_fixed()
        } else {
            picture.inline()
        };
        scrolled(out, &format!("{} ", room.name()), &title, &drawing);
    }
    let data = table::html(&figure.data());
    if !is_picture {
        scrolled(out, "", &title, &data);
    }
    if !figure.note().is_empty() {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", prose(figure.note()));
    }
    if is_picture {
        *out += "<div class=\"tools\"><details><summary>Data</summary>";
        scrolled(out, "", &title, &data);
        *out += "</details><span class=\"save\" hidden><button type=\"button\" data-save=\"svg\">Save SVG</button> \
                 <button type=\"button\" data-save=\"png\">Save PNG</button></span></div>";
    }
    *out += "</figure>\n";
}

/// A box that is moved sideways where its content is wider, and then says so.
pub(super) fn scrolled(out: &mut String, class: &str, title: &str, content: &str) {
    let _ = writeln!(
        out,
        "<div class=\"{class}sideways\"><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\
         {content}</div><p class=\"hint\" aria-hidden=\"true\">move sideways for the rest →</p></div>"
    );
}

fn facts(out: &mut String, facts: &[(String, String)]) {
    if facts.is_empty() {
        return;
    }
    *out += "<section><h2>Circumstances</h2>\n<dl>\n";
    for (name, value) in facts {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), prose(value));
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

    #[test]
    fn long_findings_and_doubts_are_folded_and_none_is_lost() {
        let finding = |i: usize| format!("finding {i} {}", "with many words ".repeat(8));
        let mut report = Report::new("r");
        report.summary = (0..9).map(finding).collect();
        report.doubts =
            (0..7).map(|i| format!("{} doubts of {}", "x".repeat(i + 1), "many kinds ".repeat(7))).collect();
        report.sections.push(Section::new("first", Vec::new()).with_text("y ".repeat(400)));
        let page = page(&report);
        let above = |page: &str| {
            let body = page.find("</header>").unwrap();
            let end = page.find("<h2>first</h2>").unwrap();
            let mut text = page[body..end].to_owned();
            while let Some(at) = text.find("<details") {
                let end = text.find("</summary>").unwrap();
                text.replace_range(at..=end, "");
                let close = text.find("</details>").unwrap();
                text.replace_range(at.min(close)..close, "");
                text = text.replacen("</details>", "", 1);
            }
            text
        };
        let shown = above(&page);
        assert!(shown.len() < (MOST_SUMMARY + MOST_DOUBTS) * LINE + 400, "{}: {shown}", shown.len());
        assert!(shown.contains("finding 0") && shown.contains("x doubts"), "{shown}");
        for i in 0..9 {
            assert!(page.contains(&format!("<p>finding {i} ")), "{i}");
        }
        assert!(page.contains(" more findings</summary>") && page.contains("xxxxxxx doubts"));
        let long = format!("{}. And {}", "a b".repeat(100), "more ".repeat(100));
        report.summary = vec![long.clone()];
        report.doubts = vec![long];
        let page = super::page(&report);
        assert!(page.contains("1 more finding<") && page.contains("in full</span>"), "{page}");
    }

    #[test]
    fn a_text_is_divided_between_sentences() {
        assert_eq!(divided("One. Two. Three.", 11), ("One. Two.", "Three."));
        assert_eq!(divided("One two three", 9), ("One two", "three"));
        assert_eq!(divided("Onetwothree", 4), ("Onet", "wothree"));
        assert_eq!(divided("One", 4), ("One", ""));
    }
}
