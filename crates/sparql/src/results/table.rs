//! Solutions as aligned columns for a terminal.
//!
//! Widths come from the head and the first rows; later, longer cells push their row to the right instead of being cut.

use oxrdf::{TermRef, VariableRef};
use std::io::{self, Write};

/// Rows looked at before the first is written.
const LOOK_AHEAD_ROWS: usize = 200;
/// Bytes of them after which it is not waited for more.
const LOOK_AHEAD_BYTES: usize = 256 << 10;
/// No column is made wider than this for the sake of alignment, in characters.
const MOST_CHARS: usize = 60;

pub(super) struct Table<'w> {
    out: &'w mut dyn Write,
    names: Vec<String>,
    waiting: Vec<Vec<String>>,
    waiting_bytes: usize,
    widths: Option<Vec<usize>>,
    rows: u64,
}

impl<'w> Table<'w> {
    pub fn new(names: &[String], out: &'w mut dyn Write) -> Self {
        Table { out, names: names.to_vec(), waiting: Vec::new(), waiting_bytes: 0, widths: None, rows: 0 }
    }

    pub fn row<'a>(&mut self, cells: impl Iterator<Item = (VariableRef<'a>, TermRef<'a>)>) -> io::Result<()> {
        let mut row = vec![String::new(); self.names.len()];
        for (name, term) in cells {
            let at = self.names.iter().position(|n| n == name.as_str()).expect("a cell belongs to a column");
            row[at] = shown(term);
        }
        self.rows += 1;
        match &self.widths {
            Some(widths) => line(self.out, widths, &row),
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
        let widths: Vec<usize> = (0..self.names.len()).map(width).collect();
        line(self.out, &widths, &self.names)?;
        let rule: Vec<String> = widths.iter().map(|w| "─".repeat(*w)).collect();
        line(self.out, &widths, &rule)?;
        for row in std::mem::take(&mut self.waiting) {
            line(self.out, &widths, &row)?;
        }
        self.widths = Some(widths);
        Ok(())
    }

    pub fn finish(mut self) -> io::Result<()> {
        if self.widths.is_none() {
            self.flush()?;
        }
        writeln!(self.out, "({} {})", self.rows, if self.rows == 1 { "row" } else { "rows" })
    }
}

fn line(out: &mut dyn Write, widths: &[usize], cells: &[String]) -> io::Result<()> {
    let mut text = String::new();
    for (i, (cell, width)) in cells.iter().zip(widths).enumerate() {
        text.push_str(if i == 0 { "" } else { "  " });
        text.push_str(cell);
        text.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count())));
    }
    writeln!(out, "{}", text.trim_end())
}

/// Strings without quotes, numbers and dates without datatype: this is for eyes. Control characters are escaped.
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
            match literal.language() {
                Some(lang) => format!("{text} @{lang}"),
                None => text,
            }
        }
    }
}
