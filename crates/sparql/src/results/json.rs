//! Solutions as JSON (SPARQL 1.1 Query Results JSON Format).
//!
//! Ours, because most of the time of a large answer goes into it: a cell is written once and
//! copied as long as its column does not change.

use std::io::{self, BufWriter, Write};

use oxrdf::vocab::xsd;
use oxrdf::{BaseDirection, TermRef};

use super::cells::{Notation, quoted};

pub(super) struct Json<'w> {
    out: BufWriter<&'w mut dyn Write>,
    /// `"name":` of each column
    names: Vec<Vec<u8>>,
    rows: u64,
}

impl<'w> Json<'w> {
    pub fn new(names: &[String], out: &'w mut dyn Write) -> io::Result<Self> {
        let mut quoted: Vec<Vec<u8>> = names.iter().map(|name| Vec::with_capacity(name.len() + 3)).collect();
        names.iter().zip(&mut quoted).for_each(|(name, quoted)| string(name, quoted));
        let mut out = BufWriter::new(out);
        out.write_all(b"{\"head\":{\"vars\":[")?;
        out.write_all(&quoted.join(&b","[..]))?;
        out.write_all(b"]},\"results\":{\"bindings\":[")?;
        quoted.iter_mut().for_each(|quoted| quoted.push(b':'));
        Ok(Self { out, names: quoted, rows: 0 })
    }

    /// Writes a row: the cells in the notation of [`cell`], an unbound one empty.
    pub fn row<'c>(&mut self, cells: impl Iterator<Item = &'c [u8]>) -> io::Result<()> {
        self.out.write_all(if self.rows == 0 { b"{" } else { b",{" })?;
        self.rows += 1;
        let mut is_first = true;
        for (name, cell) in self.names.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
            if !is_first {
                self.out.write_all(b",")?;
            }
            is_first = false;
            self.out.write_all(name)?;
            self.out.write_all(cell)?;
        }
        self.out.write_all(b"}")
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.out.write_all(b"]}}")?;
        self.out.flush()
    }
}

pub(super) struct JsonNotation;

impl Notation for JsonNotation {
    fn cell(term: TermRef<'_>, out: &mut Vec<u8>) {
        match term {
            TermRef::NamedNode(node) => value(b"{\"type\":\"uri\",\"value\":", node.as_str(), out),
            TermRef::BlankNode(node) => value(b"{\"type\":\"bnode\",\"value\":", node.as_str(), out),
            TermRef::Literal(literal) => {
                value(b"{\"type\":\"literal\",\"value\":", literal.value(), out);
                if let Some(tag) = literal.language() {
                    value(b",\"xml:lang\":", tag, out);
                    out.extend_from_slice(match literal.direction() {
                        None => b"",
                        Some(BaseDirection::Ltr) => b",\"its:dir\":\"ltr\"",
                        Some(BaseDirection::Rtl) => b",\"its:dir\":\"rtl\"",
                    });
                } else if literal.datatype() != xsd::STRING {
                    value(b",\"datatype\":", literal.datatype().as_str(), out);
                }
            }
            TermRef::Triple(triple) => {
                out.extend_from_slice(b"{\"type\":\"triple\",\"value\":{\"subject\":");
                JsonNotation::cell(triple.subject.as_ref().into(), out);
                out.extend_from_slice(b",\"predicate\":");
                JsonNotation::cell(triple.predicate.as_ref().into(), out);
                out.extend_from_slice(b",\"object\":");
                JsonNotation::cell(triple.object.as_ref(), out);
                out.push(b'}');
            }
        }
        out.push(b'}');
    }
}

fn value(before: &[u8], text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(before);
    string(text, out);
}

/// A string of JSON (RFC 8259, section 7).
fn string(text: &str, out: &mut Vec<u8>) {
    quoted(text, out, |control, out| out.extend_from_slice(format!("\\u{control:04x}").as_bytes()));
}
