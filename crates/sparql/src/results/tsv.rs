//! Solutions as TSV (SPARQL 1.1 Query Results CSV and TSV Formats): terms as Turtle has them,
//! numbers and booleans in their short forms.

use std::io::{self, BufWriter, Write};

use oxrdf::vocab::xsd;
use oxrdf::{BaseDirection, TermRef};

use super::cells::{Notation, quoted};

pub(super) struct Tsv<'w> {
    out: BufWriter<&'w mut dyn Write>,
}

impl<'w> Tsv<'w> {
    pub fn new(names: &[String], out: &'w mut dyn Write) -> io::Result<Self> {
        let mut out = BufWriter::new(out);
        let head: Vec<String> = names.iter().map(|name| format!("?{name}")).collect();
        writeln!(out, "{}", head.join("\t"))?;
        Ok(Self { out })
    }

    /// Writes a row: the cells in the notation of [`TsvNotation`], an unbound one empty.
    pub fn row<'c>(&mut self, cells: impl Iterator<Item = &'c [u8]>) -> io::Result<()> {
        for (column, cell) in cells.enumerate() {
            if column > 0 {
                self.out.write_all(b"\t")?;
            }
            self.out.write_all(cell)?;
        }
        self.out.write_all(b"\n")
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

pub(super) struct TsvNotation;

impl Notation for TsvNotation {
    fn cell(term: TermRef<'_>, out: &mut Vec<u8>) {
        match term {
            TermRef::NamedNode(node) => iri(node.as_str(), out),
            TermRef::BlankNode(node) => {
                out.extend_from_slice(b"_:");
                out.extend_from_slice(node.as_str().as_bytes());
            }
            TermRef::Literal(literal) => {
                let (text, datatype) = (literal.value(), literal.datatype());
                let is_short = match datatype {
                    xsd::BOOLEAN => matches!(text, "true" | "false"),
                    xsd::INTEGER => is_integer(text),
                    xsd::DECIMAL => is_decimal(text),
                    xsd::DOUBLE => is_double(text),
                    _ => false,
                };
                if is_short {
                    return out.extend_from_slice(text.as_bytes());
                }
                quoted(text, out, |control, out| out.push(control));
                if let Some(tag) = literal.language() {
                    out.push(b'@');
                    out.extend_from_slice(tag.as_bytes());
                    if let Some(direction) = literal.direction() {
                        out.extend_from_slice(if direction == BaseDirection::Ltr {
                            b"--ltr"
                        } else {
                            b"--rtl"
                        });
                    }
                } else if datatype != xsd::STRING {
                    out.extend_from_slice(b"^^");
                    iri(datatype.as_str(), out);
                }
            }
            TermRef::Triple(triple) => {
                let terms = [
                    triple.subject.as_ref().into(),
                    triple.predicate.as_ref().into(),
                    triple.object.as_ref(),
                ];
                out.extend_from_slice(b"<<(");
                for term in terms {
                    out.push(b' ');
                    TsvNotation::cell(term, out);
                }
                out.extend_from_slice(b" )>>");
            }
        }
    }
}

fn iri(text: &str, out: &mut Vec<u8>) {
    out.push(b'<');
    out.extend_from_slice(text.as_bytes());
    out.push(b'>');
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// INTEGER of Turtle.
fn is_integer(text: &str) -> bool {
    let digits = unsigned(text);
    !digits.is_empty() && is_digits(digits)
}

/// DECIMAL of Turtle.
fn is_decimal(text: &str) -> bool {
    unsigned(text)
        .split_once('.')
        .is_some_and(|(whole, part)| is_digits(whole) && is_digits(part) && !part.is_empty())
}

/// DOUBLE of Turtle.
fn is_double(text: &str) -> bool {
    let Some((number, exponent)) = unsigned(text).split_once(['e', 'E']) else { return false };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    is_digits(whole) && is_digits(part) && !(whole.is_empty() && part.is_empty()) && is_integer(exponent)
}
