//! Solutions as CSV (SPARQL 1.1 Query Results CSV Format): values without types, fields quoted
//! where they must be.
//!
//! Ours, because an IRI may have a comma or an apostrophe in it like any other value.

use std::io::{self, BufWriter, Write};

use oxrdf::{TermRef, VariableRef};

pub(super) struct Csv<'w> {
    out: BufWriter<&'w mut dyn Write>,
    names: Vec<String>,
}

impl<'w> Csv<'w> {
    pub fn new(names: &[String], out: &'w mut dyn Write) -> io::Result<Self> {
        let mut out = BufWriter::new(out);
        out.write_all(names.join(",").as_bytes())?;
        out.write_all(b"\r\n")?;
        Ok(Csv { out, names: names.to_vec() })
    }

    pub fn row<'a>(&mut self, cells: impl Iterator<Item = (VariableRef<'a>, TermRef<'a>)>) -> io::Result<()> {
        let mut column = 0;
        for (name, term) in cells {
            // cells come in the order of the columns, without the unbound ones
            while self.names[column] != name.as_str() {
                self.out.write_all(b",")?;
                column += 1;
            }
            self.field(term)?;
            if column + 1 < self.names.len() {
                self.out.write_all(b",")?;
            }
            column += 1;
        }
        for _ in column + 1..self.names.len() {
            self.out.write_all(b",")?;
        }
        self.out.write_all(b"\r\n")
    }

    fn field(&mut self, term: TermRef<'_>) -> io::Result<()> {
        let whole;
        let text = match term {
            TermRef::Triple(_) => {
                whole = term.to_string();
                &whole
            }
            TermRef::NamedNode(node) => node.as_str(),
            TermRef::BlankNode(node) => {
                self.out.write_all(b"_:")?;
                node.as_str()
            }
            TermRef::Literal(literal) => literal.value(),
        };
        if !text.bytes().fold(false, |odd, b| odd | matches!(b, b'"' | b',' | b'\n' | b'\r')) {
            return self.out.write_all(text.as_bytes());
        }
        self.out.write_all(b"\"")?;
        for (i, part) in text.split('"').enumerate() {
            self.out.write_all(if i == 0 { b"" } else { b"\"\"" })?;
            self.out.write_all(part.as_bytes())?;
        }
        self.out.write_all(b"\"")
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}
