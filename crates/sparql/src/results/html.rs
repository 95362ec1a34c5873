//! Answers as a page for people.

use std::io::{self, BufWriter, Write};

use oxrdf::vocab::xsd;
use oxrdf::{TermRef, TripleRef, VariableRef};

/// Before the rows of a table.
const BEGIN: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>Answer</title>\n<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 1em; color: #1d2733; background: #fff; }
table { border-collapse: collapse; } th { text-align: left; position: sticky; top: 0; background: inherit; }
td, th { padding: .2em .8em .2em 0; border-bottom: 1px solid #d5dce2; vertical-align: top; overflow-wrap: anywhere; }
small { color: #66788a; } tr { background: inherit; } tbody, thead, table { background: inherit; }
@media (prefers-color-scheme: dark) { body { color: #dde5ec; background: #14191f; } a { color: #7fb8e8; } td, th { border-color: #33404c; } }
</style>\n";

pub(super) struct Html<'w> {
    out: BufWriter<&'w mut dyn Write>,
    columns: usize,
    rows: u64,
}

impl<'w> Html<'w> {
    /// A table with these columns.
    pub fn new(names: &[String], out: &'w mut dyn Write) -> io::Result<Self> {
        let mut html = Html { out: BufWriter::new(out), columns: names.len(), rows: 0 };
        html.raw(BEGIN)?;
        html.raw("<table>\n<thead><tr>")?;
        for name in names {
            html.raw("<th>")?;
            html.text(name)?;
        }
        html.raw("</thead>\n<tbody>\n")?;
        Ok(html)
    }

    /// A row; cells without a term are left out.
    pub fn row<'a>(
        &mut self,
        names: &[String],
        cells: impl Iterator<Item = (VariableRef<'a>, TermRef<'a>)>,
    ) -> io::Result<()> {
        self.raw("<tr>")?;
        let mut at = 0;
        for (name, term) in cells {
            while at < names.len() && names[at] != name.as_str() {
                self.raw("<td>")?;
                at += 1;
            }
            self.raw("<td>")?;
            self.term(term)?;
            at += 1;
        }
        for _ in at..self.columns {
            self.raw("<td>")?;
        }
        self.rows += 1;
        self.raw("\n")
    }

    /// A triple as a row.
    pub fn triple(&mut self, triple: TripleRef<'_>) -> io::Result<()> {
        self.raw("<tr>")?;
        for term in [triple.subject.into(), triple.predicate.into(), triple.object] {
            self.raw("<td>")?;
            self.term(term)?;
        }
        self.rows += 1;
        self.raw("\n")
    }

    fn term(&mut self, term: TermRef<'_>) -> io::Result<()> {
        match term {
            TermRef::NamedNode(node) => self.iri(node.as_str()),
            TermRef::BlankNode(node) => {
                self.raw("_:")?;
                self.text(node.as_str())
            }
            TermRef::Literal(literal) => {
                self.text(literal.value())?;
                match (literal.language(), literal.direction()) {
                    (Some(tag), Some(direction)) => self.small("@", &format!("{tag}--{direction}")),
                    (Some(tag), None) => self.small("@", tag),
                    _ if literal.datatype() == xsd::STRING => Ok(()),
                    _ => self.small("^^", literal.datatype().as_str()),
                }
            }
            TermRef::Triple(triple) => {
                self.raw("&lt;&lt;( ")?;
                self.term(triple.subject.as_ref().into())?;
                self.raw(" ")?;
                self.term(triple.predicate.as_ref().into())?;
                self.raw(" ")?;
                self.term(triple.object.as_ref())?;
                self.raw(" )&gt;&gt;")
            }
        }
    }

    /// A link, where a browser may follow it.
    fn iri(&mut self, iri: &str) -> io::Result<()> {
        let may_follow = ["http://", "https://"].iter().any(|scheme| iri.starts_with(scheme));
        if may_follow {
            self.raw("<a rel=\"noreferrer\" href=\"")?;
            self.text(iri)?;
            self.raw("\">")?;
        }
        self.text(iri)?;
        self.raw(if may_follow { "</a>" } else { "" })
    }

    fn small(&mut self, mark: &str, text: &str) -> io::Result<()> {
        self.raw(" <small>")?;
        self.raw(mark)?;
        self.text(text)?;
        self.raw("</small>")
    }

    fn raw(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some(at) = rest.find(['&', '<', '>', '"']) {
            self.raw(&rest[..at])?;
            self.raw(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                _ => "&quot;",
            })?;
            rest = &rest[at + 1..];
        }
        self.raw(rest)
    }

    pub fn finish(mut self) -> io::Result<()> {
        let rows = self.rows;
        write!(self.out, "</tbody>\n</table>\n<p>{rows} row{}\n</html>\n", if rows == 1 { "" } else { "s" })?;
        self.out.flush()
    }
}
