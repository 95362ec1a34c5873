//! Solutions as aligned columns for a terminal.
//!
//! Widths come from the head and the first rows. Without a width of the whole, later and longer
//! cells push their row to the right; with one, columns share it and longer cells are cut.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};

use oxrdf::{TermRef, VariableRef};

use crate::text::prefixes::Shortener;

/// Rows looked at before the first is written.
const LOOK_AHEAD_ROWS: usize = 200;
/// Bytes of these rows after which no more are awaited.
const LOOK_AHEAD_BYTES: usize = 256 << 10;
/// No column is made wider than this for the sake of alignment, in characters.
const MOST_CHARS: usize = 60;

/// How a table is laid out.
#[derive(Clone, Debug, Default)]
pub struct TableStyle {
    /// Most characters of a line; without a limit when absent.
    pub width: Option<usize>,
    /// Shortens IRIs; those it used are listed below the table. IRIs are whole when absent.
    pub prefixes: Option<Shortener>,
}

pub(super) struct TableWriter<'w> {
    out: &'w mut dyn Write,
    style: TableStyle,
    used: BTreeSet<String>,
    names: Vec<String>,
    waiting: Vec<Vec<String>>,
    waiting_bytes: usize,
    widths: Option<Vec<usize>>,
    rows: u64,
}

impl<'w> TableWriter<'w> {
    pub fn new(names: &[String], style: TableStyle, out: &'w mut dyn Write) -> Self {
        TableWriter {
            out,
            style,
            used: BTreeSet::new(),
            names: names.to_vec(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            widths: None,
            rows: 0,
        }
    }

    pub fn row<'a>(&mut self, cells: impl Iterator<Item = (VariableRef<'a>, TermRef<'a>)>) -> io::Result<()> {
        let mut row = vec![String::new(); self.names.len()];
        for (name, term) in cells {
            let at = self.names.iter().position(|n| n == name.as_str()).expect("a cell belongs to a column");
            row[at] = self.shown(term);
        }
        self.rows += 1;
        match &self.widths {
            Some(widths) => line(self.out, widths, self.style.width.is_some(), &row),
            None => {
                self.waiting_bytes += row.iter().map(String::len).sum::<usize>();
                self.waiting.push(row);
                let enough = self.waiting.len() >= LOOK_AHEAD_ROWS || self.waiting_bytes >= LOOK_AHEAD_BYTES;
                if enough { self.flush() } else { Ok(()) }
            }
        }
    }

    /// Fixes the widths, writes the head and what waited.
    fn flush(&mut self) -> io::Result<()> {
        let chars = |text: &String| text.chars().count();
        let width = |i: usize| {
            let longest = self.waiting.iter().map(|row| chars(&row[i])).max().unwrap_or(0);
            longest.min(MOST_CHARS).max(chars(&self.names[i]))
        };
        let mut widths: Vec<usize> = (0..self.names.len()).map(width).collect();
        if let Some(whole) = self.style.width {
            fit(&mut widths, whole);
        }
        let is_cut = self.style.width.is_some();
        line(self.out, &widths, is_cut, &self.names)?;
        let rule: Vec<String> = widths.iter().map(|w| "─".repeat(*w)).collect();
        line(self.out, &widths, is_cut, &rule)?;
        for row in std::mem::take(&mut self.waiting) {
            line(self.out, &widths, is_cut, &row)?;
        }
        self.widths = Some(widths);
        Ok(())
    }

    pub fn finish(mut self) -> io::Result<()> {
        if self.widths.is_none() {
            self.flush()?;
        }
        writeln!(self.out, "({} {})", self.rows, if self.rows == 1 { "row" } else { "rows" })?;
        let Some(prefixes) = &self.style.prefixes else { return Ok(()) };
        for prefix in &self.used {
            writeln!(self.out, "PREFIX {prefix}: <{}>", prefixes.namespace(prefix).unwrap_or_default())?;
        }
        Ok(())
    }

    fn shown(&mut self, term: TermRef<'_>) -> String {
        if let (Some(prefixes), TermRef::NamedNode(node)) = (&self.style.prefixes, term)
            && let Some((prefix, local)) = prefixes.shorten(node.as_str())
        {
            if !self.used.contains(prefix) {
                self.used.insert(prefix.to_owned());
            }
            return format!("{prefix}:{local}");
        }
        shown(term)
    }
}

/// Narrows the widest columns until all fit into a line, though none below a few characters.
fn fit(widths: &mut [usize], whole: usize) {
    const LEAST: usize = 8;
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > whole {
        let Some(widest) = widths.iter_mut().max().filter(|width| **width > LEAST) else { return };
        *widest -= 1;
    }
}

/// Between columns.
const GAP: &str = "  ";

/// A cell in so many characters, its end replaced by an ellipsis.
fn cut(cell: &str, width: usize) -> Cow<'_, str> {
    match cell.char_indices().nth(width) {
        None => Cow::Borrowed(cell),
        Some(_) => {
            let kept: String = cell.chars().take(width.saturating_sub(1)).collect();
            Cow::Owned(kept + "…")
        }
    }
}

fn line(out: &mut dyn Write, widths: &[usize], is_cut: bool, cells: &[String]) -> io::Result<()> {
    let mut text = String::new();
    for (i, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let cell = if is_cut { cut(cell, *width) } else { Cow::Borrowed(cell.as_str()) };
        text.push_str(if i == 0 { "" } else { GAP });
        text.push_str(&cell);
        text.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count())));
    }
    writeln!(out, "{}", text.trim_end())
}

/// Strings without quotes, numbers and dates without datatype: this is for eyes. Control
/// characters are escaped.
fn shown(term: TermRef<'_>) -> String {
    match term {
        TermRef::NamedNode(node) => format!("<{}>", node.as_str()),
        TermRef::BlankNode(node) => format!("_:{}", node.as_str()),
        TermRef::Literal(literal) => {
            let text = if literal.value().chars().any(char::is_control) {
                literal.value().escape_debug().to_string()
            } else {
                literal.value().to_owned()
            };
            match (literal.language(), literal.direction()) {
                (Some(lang), Some(direction)) => format!("{text} @{lang}--{direction}"),
                (Some(lang), None) => format!("{text} @{lang}"),
                _ => text,
            }
        }
        TermRef::Triple(triple) => {
            let [s, p, o] =
                [triple.subject.as_ref().into(), triple.predicate.as_ref().into(), triple.object.as_ref()]
                    .map(shown);
            format!("<<( {s} {p} {o} )>>")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::{Literal, NamedNode, Variable};

    fn table(style: TableStyle) -> String {
        let names = ["s".to_owned(), "name".to_owned()];
        let variables = names.clone().map(Variable::new_unchecked);
        let person = NamedNode::new_unchecked("http://xmlns.com/foaf/0.1/Person");
        let name = Literal::from("a name that is much longer than the line is wide");
        let mut out = Vec::new();
        let mut table = TableWriter::new(&names, style, &mut out);
        let cells =
            [(variables[0].as_ref(), person.as_ref().into()), (variables[1].as_ref(), name.as_ref().into())];
        table.row(cells.into_iter()).unwrap();
        table.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn iris_are_short_and_lines_fit() {
        let prefixes = Some(Shortener::new(Vec::new()));
        let text = table(TableStyle { width: Some(30), prefixes });
        assert_eq!(
            text,
            "s            name\n\
             ───────────  ─────────────────\n\
             foaf:Person  a name that is m…\n\
             (1 row)\n\
             PREFIX foaf: <http://xmlns.com/foaf/0.1/>\n"
        );
        let narrow = table(TableStyle { width: Some(3), prefixes: None });
        assert!(narrow.lines().all(|line| line.chars().count() <= 18), "{narrow}");
    }

    #[test]
    fn without_a_style_nothing_is_cut() {
        let text = table(TableStyle::default());
        assert!(text.contains(
            "<http://xmlns.com/foaf/0.1/Person>  a name that is much longer than the line is wide\n"
        ));
        assert!(text.ends_with("(1 row)\n"));
    }
}
