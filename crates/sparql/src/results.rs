//! Results as text: solutions, booleans and graphs, streamed batch by batch.
//!
//! The formats are sparesults' and oxrdfio's; a row's terms are handed over borrowed, each
//! decoded once per batch. The table for terminals, and all formats of solutions, are ours.
//! Invariant: whatever is written is read back as the same terms (CSV: values); what a format
//! has no notation for ends the result with [`QueryError::Unwritable`].

mod cells;
mod csv;
mod format;
mod html;
mod json;
mod refuse;
mod returns;
mod table;
mod tsv;
mod xml;

pub use format::{RdfVersion, ResultFormat};

use std::io::{self, BufWriter, Write};
use std::ops::Range;

use oxrdf::{NamedOrBlankNodeRef, TripleRef, VariableRef};
use oxrdfio::WriterQuadSerializer;
use snowmelt_graph::{Namespaces, TermId, UNDETERMINED, untagged_name};
use sparesults::{QueryResultsFormat, QueryResultsSerializer};

use crate::QueryError;
use crate::value::{TermBuffer, TermStore, Terms};
use cells::Cell;
use csv::Csv;
use html::Html;
use json::{Json, JsonNotation};
use refuse::{refuse, refuse_triple};
use returns::Returns;
use table::TableWriter;
use tsv::{Tsv, TsvNotation};
use xml::Xml;

pub use table::TableStyle;

/// Writes the answer of an ASK query.
///
/// # Errors
/// When writing fails, or the format is one of graphs.
pub fn write_boolean(format: ResultFormat, answer: bool, out: &mut dyn Write) -> io::Result<()> {
    match format.solutions() {
        Some(format) => {
            QueryResultsSerializer::from_format(format).serialize_boolean_to_writer(out, answer)?;
            Ok(())
        }
        None if format == ResultFormat::Table => writeln!(out, "{}", if answer { "yes" } else { "no" }),
        None if format == ResultFormat::Html => {
            let mut html = Html::new(&["answer".to_owned()], out)?;
            let answer = oxrdf::Literal::from(answer);
            let cell = (VariableRef::new_unchecked("answer"), answer.as_ref().into());
            html.row(&["answer".to_owned()], std::iter::once(cell))?;
            html.finish()
        }
        None => Err(wrong(format, "a boolean")),
    }
}

fn wrong(format: ResultFormat, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{what} cannot be written as {format}"))
}

/// Writes solutions.
pub struct SolutionWriter<'w> {
    form: SolutionForm<'w>,
    format: ResultFormat,
    version: RdfVersion,
    variables: Vec<String>,
    buffers: Vec<TermBuffer>,
    cells: Vec<Cell>,
}

enum SolutionForm<'w> {
    Json(Json<'w>),
    Tsv(Tsv<'w>),
    Csv(Csv<'w>),
    Xml(Xml<'w>),
    Html(Html<'w>),
    Table(TableWriter<'w>),
}

type Out<'w> = BufWriter<Returns<&'w mut dyn Write>>;

fn buffered(format: ResultFormat, out: &mut dyn Write) -> Out<'_> {
    BufWriter::new(if format == ResultFormat::RdfXml { Returns::of_xml(out) } else { Returns::of_other(out) })
}

impl<'w> SolutionWriter<'w> {
    /// Writes the head: the variables' names, without question mark, in the order of the
    /// columns.
    ///
    /// # Errors
    /// When writing fails, or the format is one of graphs.
    pub fn new(format: ResultFormat, variables: &[String], out: &'w mut dyn Write) -> io::Result<Self> {
        let form = match format.solutions() {
            Some(QueryResultsFormat::Csv) => SolutionForm::Csv(Csv::new(variables, out)?),
            Some(QueryResultsFormat::Xml) => SolutionForm::Xml(Xml::new(variables, out)?),
            Some(QueryResultsFormat::Tsv) => SolutionForm::Tsv(Tsv::new(variables, out)?),
            Some(_) => SolutionForm::Json(Json::new(variables, out)?),
            None if format == ResultFormat::Table => {
                return Ok(Self::table(variables, TableStyle::default(), out));
            }
            None if format == ResultFormat::Html => SolutionForm::Html(Html::new(variables, out)?),
            None => return Err(wrong(format, "a table of solutions")),
        };
        Ok(Self::with_form(form, format, variables))
    }

    /// Writes the head of a table that is laid out as asked.
    pub fn table(variables: &[String], style: TableStyle, out: &'w mut dyn Write) -> Self {
        let form = SolutionForm::Table(TableWriter::new(variables, style, out));
        Self::with_form(form, ResultFormat::Table, variables)
    }

    fn with_form(form: SolutionForm<'w>, format: ResultFormat, variables: &[String]) -> Self {
        let buffers = variables.iter().map(|_| TermBuffer::default()).collect();
        let cells = variables.iter().map(|_| Cell::default()).collect();
        let (version, variables) = (RdfVersion::default(), variables.to_vec());
        SolutionWriter { form, format, version, variables, buffers, cells }
    }

    /// For readers of a version of RDF.
    #[must_use]
    pub fn of_version(mut self, version: RdfVersion) -> Self {
        self.version = version;
        self
    }

    /// Writes a batch: `cols[i]` are the ids of variable i.
    ///
    /// # Errors
    /// When writing or reading terms fails.
    pub fn write(
        &mut self,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        cols: &[Vec<TermId>],
        rows: usize,
    ) -> Result<(), QueryError> {
        assert_eq!(cols.len(), self.variables.len(), "one column per variable");
        terms.begin_batch();
        terms.in_parts(0..rows, &mut |terms, part| {
            terms.prefetch(store, cols.iter().flat_map(|col| &col[part.clone()]).copied())?;
            self.write_rows(terms, cols, part)
        })
    }

    /// Writes rows whose terms can be read.
    fn write_rows(
        &mut self,
        terms: &Terms,
        cols: &[Vec<TermId>],
        rows: Range<usize>,
    ) -> Result<(), QueryError> {
        if let SolutionForm::Json(_) | SolutionForm::Tsv(_) = self.form {
            return self.write_cells(terms, cols, rows);
        }
        for row in rows {
            if terms.poll(64 * cols.len()).is_none() {
                terms.fault()?;
            }
            let mut seen = Ok(());
            let cells =
                self.variables.iter().zip(cols).zip(&mut self.buffers).filter_map(|((name, col), buffer)| {
                    let term = oxrdf::TermRef::from(terms.term(col[row], buffer)?);
                    if seen.is_ok() {
                        seen = refuse(self.format, self.version, term);
                    }
                    Some((VariableRef::new_unchecked(name), term))
                });
            match &mut self.form {
                SolutionForm::Json(_) | SolutionForm::Tsv(_) => unreachable!("these have cells"),
                SolutionForm::Csv(csv) => csv.row(cells)?,
                SolutionForm::Xml(xml) => xml.row(cells)?,
                SolutionForm::Html(html) => html.row(&self.variables, cells)?,
                SolutionForm::Table(table) => table.row(cells)?,
            }
            seen?;
        }
        Ok(())
    }

    /// Writes rows in formats whose cells do not depend on their row.
    fn write_cells(
        &mut self,
        terms: &Terms,
        cols: &[Vec<TermId>],
        rows: Range<usize>,
    ) -> Result<(), QueryError> {
        self.cells.iter_mut().for_each(Cell::clear);
        let form = (self.format, self.version);
        for row in rows {
            if terms.poll(64 * cols.len()).is_none() {
                terms.fault()?;
            }
            for (cell, col) in self.cells.iter_mut().zip(cols) {
                match &self.form {
                    SolutionForm::Json(_) => cell.set::<JsonNotation>(col[row], terms, form)?,
                    _ => cell.set::<TsvNotation>(col[row], terms, form)?,
                }
            }
            let cells = self.cells.iter().map(Cell::text);
            match &mut self.form {
                SolutionForm::Json(json) => json.row(cells)?,
                SolutionForm::Tsv(tsv) => tsv.row(cells)?,
                _ => unreachable!("the others have no cells"),
            }
        }
        Ok(())
    }

    /// Writes the end.
    ///
    /// # Errors
    /// When writing fails.
    pub fn finish(self) -> io::Result<()> {
        match self.form {
            SolutionForm::Json(json) => json.finish(),
            SolutionForm::Tsv(tsv) => tsv.finish(),
            SolutionForm::Csv(csv) => csv.finish(),
            SolutionForm::Xml(xml) => xml.finish(),
            SolutionForm::Html(html) => html.finish(),
            SolutionForm::Table(table) => table.finish(),
        }
    }
}

/// A literal with a datatype of tagged texts and without a tag, or the triple term around it, with
/// the tag that a dump gives it ([`snowmelt_graph::UNDETERMINED`]). Programs before took such
/// literals, and no format of RDF has them.
fn tagged(object: oxrdf::TermRef<'_>) -> Option<oxrdf::Term> {
    match object {
        oxrdf::TermRef::Literal(literal) if literal.language().is_none() => {
            untagged_name(literal.datatype().as_str())?;
            let tagged = oxrdf::Literal::new_language_tagged_literal_unchecked(literal.value(), UNDETERMINED);
            Some(tagged.into())
        }
        oxrdf::TermRef::Triple(triple) => {
            let object = tagged(triple.object.as_ref())?;
            Some(oxrdf::Triple { object, ..triple.clone() }.into())
        }
        _ => None,
    }
}

/// Writes the triples of CONSTRUCT and DESCRIBE.
pub struct GraphWriter<'w> {
    form: GraphForm<'w>,
    format: ResultFormat,
    version: RdfVersion,
    buffers: [TermBuffer; 3],
}

enum GraphForm<'w> {
    Standard(Box<WriterQuadSerializer<Out<'w>>>),
    Html(Html<'w>),
}

impl<'w> GraphWriter<'w> {
    /// Starts a graph; in Turtle and TriG with these prefixes. A table is written as N-Triples.
    ///
    /// # Errors
    /// When the format is not one of graphs.
    pub fn new(format: ResultFormat, prefixes: &Namespaces, out: &'w mut dyn Write) -> io::Result<Self> {
        let form = match format.graph() {
            Some(standard) => {
                let writer = prefixes.serializer(standard).for_writer(buffered(format, out));
                GraphForm::Standard(Box::new(writer))
            }
            None if format == ResultFormat::Html => {
                let names = ["subject", "predicate", "object"].map(str::to_owned);
                GraphForm::Html(Html::new(&names, out)?)
            }
            None => return Err(wrong(format, "a graph")),
        };
        // a table of triples is N-Triples
        let format = if format == ResultFormat::Table { ResultFormat::NTriples } else { format };
        Ok(GraphWriter { form, format, version: RdfVersion::default(), buffers: Default::default() })
    }

    /// For readers of a version of RDF.
    #[must_use]
    pub fn of_version(mut self, version: RdfVersion) -> Self {
        self.version = version;
        self
    }

    /// Writes a batch of triples: subjects, predicates, objects. Those RDF does not allow
    /// (unbound parts, literals as subjects) are left out, as CONSTRUCT demands.
    ///
    /// # Errors
    /// When writing or reading terms fails.
    pub fn write(
        &mut self,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        triples: [&[TermId]; 3],
    ) -> Result<(), QueryError> {
        assert!(triples.iter().all(|col| col.len() == triples[0].len()), "a triple has three terms");
        terms.begin_batch();
        terms.in_parts(0..triples[0].len(), &mut |terms, part| {
            terms.prefetch(store, triples.iter().flat_map(|col| &col[part.clone()]).copied())?;
            self.write_triples(terms, triples.map(|col| &col[part.clone()]))
        })
    }

    /// Writes triples whose terms can be read.
    fn write_triples(&mut self, terms: &Terms, triples: [&[TermId]; 3]) -> Result<(), QueryError> {
        let [subjects, predicates, objects] = triples;
        for ((s, p), o) in subjects.iter().zip(predicates).zip(objects) {
            if terms.poll(256).is_none() {
                terms.fault()?;
            }
            let [sb, pb, ob] = &mut self.buffers;
            let parts = (terms.term(*s, sb), terms.term(*p, pb), terms.term(*o, ob));
            let (Some(s), Some(p), Some(o)) = parts else { continue };
            let subject: NamedOrBlankNodeRef<'_> = match s.into() {
                oxrdf::TermRef::NamedNode(node) => node.into(),
                oxrdf::TermRef::BlankNode(node) => node.into(),
                oxrdf::TermRef::Literal(_) | oxrdf::TermRef::Triple(_) => continue,
            };
            let oxrdf::TermRef::NamedNode(predicate) = p.into() else { continue };
            let object = oxrdf::TermRef::from(o);
            let tagged = tagged(object);
            let object = tagged.as_ref().map_or(object, oxrdf::Term::as_ref);
            for term in [subject.into(), predicate.into(), object] {
                refuse(self.format, self.version, term)?;
            }
            if self.format == ResultFormat::RdfXml {
                refuse_triple(predicate, object)?;
            }
            let triple = TripleRef::new(subject, predicate, object);
            match &mut self.form {
                GraphForm::Standard(writer) => writer.serialize_triple(triple)?,
                GraphForm::Html(html) => html.triple(triple)?,
            }
        }
        Ok(())
    }

    /// Writes the end.
    ///
    /// # Errors
    /// When writing fails.
    pub fn finish(self) -> io::Result<()> {
        match self.form {
            GraphForm::Standard(writer) => writer.finish()?.flush(),
            GraphForm::Html(html) => html.finish(),
        }
    }
}

#[cfg(test)]
mod tests;
