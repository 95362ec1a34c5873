//! Rows in TSV (SPARQL 1.1 Query Results CSV and TSV Formats, 4).
//!
//! Each line has an end, so an answer that ends within one was cut. Triple terms are taken off a
//! term from the outside, so that how deep they are is no matter of recursion.

use std::io::{BufRead, BufReader, Read};
use std::str::FromStr;

use oxrdf::{NamedNode, NamedOrBlankNode, Term, Triple, Variable};

use crate::columns::{Columns, MOST_COLUMNS, MOST_TRIPLES, SolutionRow, no_rows, too_deep, too_wide};
use crate::fault::Fault;

/// Bytes read at once.
const PIECE: usize = 64 << 10;

/// Reads rows in TSV.
pub(crate) struct TsvRows<R> {
    reader: BufReader<R>,
    /// the line with its end
    line: Vec<u8>,
    lines: u64,
    pub columns: Columns,
}

impl<R: Read> TsvRows<R> {
    /// Reads the line of variables.
    pub fn new(reader: R) -> Result<Self, Fault> {
        let reader = BufReader::with_capacity(PIECE, reader);
        let (line, columns) = (Vec::new(), Columns::default());
        let mut rows = Self { reader, line, lines: 0, columns };
        if !rows.read_line()? {
            return Err(Fault::BrokenOff("it ends before its head".to_owned()));
        }
        let line = rows.text()?;
        if line.eq_ignore_ascii_case("true") || line.eq_ignore_ascii_case("false") {
            return Err(no_rows());
        }
        too_wide(line.split('\t').take(MOST_COLUMNS + 1).count())?;
        let names = line.split('\t').filter(|_| !line.is_empty());
        let variables: Vec<_> = names.map(|name| Variable::from_str(name.trim())).collect();
        for variable in variables {
            let variable = variable.map_err(|error| rows.wrong(error))?;
            rows.columns.add(variable)?;
        }
        Ok(rows)
    }

    /// The next row.
    pub fn next(&mut self) -> Result<Option<SolutionRow>, Fault> {
        if !self.read_line()? {
            return Ok(None);
        }
        let (line, columns) = (self.text()?, self.columns.all.len());
        if columns == 0 && line.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let row: SolutionRow = line.split('\t').map(|cell| self.value(cell)).collect::<Result<_, _>>()?;
        if row.len() != columns {
            return Err(self.wrong(format!("{} values in {columns} columns", row.len())));
        }
        Ok(Some(row))
    }

    /// Reads a line; false at the end.
    fn read_line(&mut self) -> Result<bool, Fault> {
        self.line.clear();
        self.lines += 1;
        let read = self.reader.read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| Fault::BrokenOff(error.to_string()))?;
        if read > 0 && !self.line.ends_with(b"\n") {
            return Err(Fault::BrokenOff("it ends within a line".to_owned()));
        }
        Ok(read > 0)
    }

    /// The line without its end.
    fn text(&self) -> Result<&str, Fault> {
        let text = std::str::from_utf8(&self.line).map_err(|error| self.wrong(error))?;
        Ok(text.trim_end_matches(['\n', '\r']))
    }

    fn wrong(&self, why: impl std::fmt::Display) -> Fault {
        Fault::Malformed(format!("line {}: {why}", self.lines))
    }

    fn value(&self, cell: &str) -> Result<Option<Term>, Fault> {
        let cell = cell.trim();
        if cell.is_empty() {
            return Ok(None);
        }
        let mut around = Vec::new();
        let mut inner = cell;
        while let Some(parts) = inner.strip_prefix("<<(") {
            if around.len() == MOST_TRIPLES {
                return Err(too_deep());
            }
            let (subject, rest) = first(parts);
            let (predicate, rest) = first(rest);
            let object = rest.strip_suffix(")>>").ok_or_else(|| self.wrong("<<( needs a )>>"))?;
            let subject = match self.term(subject)? {
                Term::NamedNode(node) => NamedOrBlankNode::from(node),
                Term::BlankNode(node) => node.into(),
                other => return Err(self.wrong(format!("{other} is no subject"))),
            };
            let predicate = NamedNode::from_str(predicate).map_err(|error| self.wrong(error))?;
            around.push((subject, predicate));
            inner = object.trim();
        }
        let triple = |object, (subject, predicate)| Triple { subject, predicate, object }.into();
        Ok(Some(around.into_iter().rev().fold(self.term(inner)?, triple)))
    }

    fn term(&self, text: &str) -> Result<Term, Fault> {
        Term::from_str(text).map_err(|error| self.wrong(error))
    }
}

/// The IRI or the label that a text begins with, and all behind it.
fn first(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let end = match text.strip_prefix('<') {
        Some(iri) => iri.find('>').map(|len| len + 2),
        None => text.find(|c: char| c == '<' || c.is_whitespace()),
    };
    let (first, rest) = text.split_at(end.unwrap_or(text.len()));
    (first, rest.trim_end())
}
