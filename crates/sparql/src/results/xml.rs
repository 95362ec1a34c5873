//! Solutions as XML (SPARQL Query Results XML Format).
//!
//! Ours, because writing them through the events of an XML library was 28 % of the instructions of
//! a warm BSBM Explore mix, most of them to allocate each element. Whether XML has a notation for a
//! term at all is looked at before (`refuse`).

use std::io::{self, BufWriter, Write};

use oxrdf::vocab::xsd;
use oxrdf::{BaseDirection, TermRef, VariableRef};

pub(super) struct Xml<'w> {
    out: BufWriter<&'w mut dyn Write>,
}

impl<'w> Xml<'w> {
    pub fn new(names: &[String], out: &'w mut dyn Write) -> io::Result<Self> {
        let mut out = BufWriter::new(out);
        out.write_all(
            b"<?xml version=\"1.0\"?><sparql xmlns=\"http://www.w3.org/2005/sparql-results#\"><head>",
        )?;
        for name in names {
            write!(out, "<variable name=\"{name}\"/>")?;
        }
        out.write_all(b"</head><results>")?;
        Ok(Xml { out })
    }

    pub fn row<'a>(&mut self, cells: impl Iterator<Item = (VariableRef<'a>, TermRef<'a>)>) -> io::Result<()> {
        self.raw("<result>")?;
        for (name, term) in cells {
            // a variable has no character that stands for anything else in XML
            self.raw("<binding name=\"")?;
            self.raw(name.as_str())?;
            self.raw("\">")?;
            self.term(term)?;
            self.raw("</binding>")?;
        }
        self.raw("</result>")
    }

    fn term(&mut self, term: TermRef<'_>) -> io::Result<()> {
        match term {
            TermRef::NamedNode(node) => {
                self.raw("<uri>")?;
                self.text(node.as_str())?;
                self.raw("</uri>")
            }
            TermRef::BlankNode(node) => {
                self.raw("<bnode>")?;
                self.text(node.as_str())?;
                self.raw("</bnode>")
            }
            TermRef::Literal(literal) => {
                let attribute = match literal.language() {
                    Some(tag) => Some((" xml:lang=\"", tag)),
                    None if literal.datatype() == xsd::STRING => None,
                    None => Some((" datatype=\"", literal.datatype().as_str())),
                };
                self.raw("<literal")?;
                if let Some((name, value)) = attribute {
                    self.raw(name)?;
                    self.text(value)?;
                    self.raw("\"")?;
                }
                if let Some(direction) = literal.direction() {
                    self.raw(" xmlns:its=\"http://www.w3.org/2005/11/its\" its:version=\"2.0\" its:dir=\"")?;
                    self.raw(if direction == BaseDirection::Ltr { "ltr\"" } else { "rtl\"" })?;
                }
                self.raw(">")?;
                self.text(literal.value())?;
                self.raw("</literal>")
            }
            TermRef::Triple(triple) => {
                self.raw("<triple><subject>")?;
                self.term(triple.subject.as_ref().into())?;
                self.raw("</subject><predicate>")?;
                self.term(triple.predicate.as_ref().into())?;
                self.raw("</predicate><object>")?;
                self.term(triple.object.as_ref())?;
                self.raw("</object></triple>")
            }
        }
    }

    fn raw(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    /// A text with references for what is markup, for carriage returns (a reader takes a bare one
    /// for a line feed: XML 1.0, 2.11), and for a blank at either end, which many pass over.
    fn text(&mut self, text: &str) -> io::Result<()> {
        // without branches, so that many bytes are looked at together
        let is_special = |b: u8| matches!(b, b'<' | b'>' | b'&' | b'"' | b'\r');
        let is_blank = |b: Option<&u8>| matches!(b, Some(b' ' | b'\t' | b'\n'));
        let bytes = text.as_bytes();
        let ends_blank = is_blank(bytes.first()) || is_blank(bytes.last());
        if !ends_blank && !bytes.iter().fold(false, |special, b| special | is_special(*b)) {
            return self.raw(text);
        }
        let (mut from, last) = (0, bytes.len() - 1);
        for (at, b) in text.bytes().enumerate() {
            let at_end = (at == 0 || at == last) && is_blank(Some(&b));
            if !at_end && !is_special(b) {
                continue;
            }
            self.raw(&text[from..at])?;
            self.raw(match b {
                b' ' => "&#32;",
                b'\t' => "&#9;",
                b'\n' => "&#10;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'&' => "&amp;",
                b'"' => "&quot;",
                _ => "&#13;",
            })?;
            from = at + 1;
        }
        self.raw(&text[from..])
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.raw("</results></sparql>")?;
        self.out.flush()
    }
}
