//! The rows of an answer, in each of the formats of results.
//!
//! | format | reader |
//! |---|---|
//! | JSON | a library's, behind the bounds of [`crate::nesting`] |
//! | XML  | [`crate::xml`]: the library's drops white space of literals |
//! | TSV  | [`crate::tsv`]: the library's takes a cut for the end |
//!
//! A literal without a language tag that says it is of a datatype of those with one is no term
//! (RDF 1.2 Concepts and Abstract Data Model, 3.4). Each format can say it, and none of the
//! readers looks for it but this one.

use std::io::Read;

use oxrdf::vocab::rdf;
use oxrdf::{Term, Variable};
use sparesults::{
    QueryResultsFormat, QueryResultsParseError, QueryResultsParser, ReaderQueryResultsParserOutput,
    ReaderSolutionsParser,
};

use crate::columns::{SolutionRow, no_rows};
use crate::fault::Fault;
use crate::nesting::NestingReader;
use crate::tsv::TsvRows;
use crate::xml::XmlRows;

/// Reads rows in any of the formats.
pub(crate) enum RowReader<R: Read, F: FnMut(Fault)> {
    Json(Box<ReaderSolutionsParser<NestingReader<R, F>>>),
    Xml(Box<XmlRows<R>>),
    Tsv(TsvRows<R>),
}

impl<R: Read, F: FnMut(Fault)> RowReader<R, F> {
    /// Reads the head of an answer. `tell` is told an error that the library would hide.
    pub fn new(reader: R, format: QueryResultsFormat, longest: usize, tell: F) -> Result<Self, Fault> {
        match format {
            QueryResultsFormat::Xml => Ok(Self::Xml(Box::new(XmlRows::new(reader, longest)?))),
            QueryResultsFormat::Tsv => Ok(Self::Tsv(TsvRows::new(reader)?)),
            _ => {
                let parser = QueryResultsParser::from_format(format);
                match parser.for_reader(NestingReader::new(reader, tell)).map_err(wrong)? {
                    ReaderQueryResultsParserOutput::Solutions(rows) => Ok(Self::Json(Box::new(rows))),
                    ReaderQueryResultsParserOutput::Boolean(_) => Err(no_rows()),
                }
            }
        }
    }

    pub fn variables(&self) -> &[Variable] {
        match self {
            Self::Json(rows) => rows.variables(),
            Self::Xml(rows) => &rows.columns.all,
            Self::Tsv(rows) => &rows.columns.all,
        }
    }

    /// The values of the next row in these columns, each of which is there once.
    pub fn next(&mut self, columns: &[usize]) -> Result<Option<SolutionRow>, Fault> {
        let picked = |mut row: SolutionRow| columns.iter().map(|column| row[*column].take()).collect();
        let row: Option<SolutionRow> = match self {
            Self::Json(rows) => rows.next().transpose().map_err(wrong)?.map(|row| {
                let values = row.values();
                columns.iter().map(|column| values[*column].clone()).collect()
            }),
            Self::Xml(rows) => rows.next()?.map(picked),
            Self::Tsv(rows) => rows.next()?.map(picked),
        };
        if row.iter().flatten().flatten().any(lacks_tag) {
            let why = "a literal without a language tag is no rdf:langString or rdf:dirLangString";
            return Err(Fault::Malformed(why.to_owned()));
        }
        Ok(row)
    }
}

fn wrong(error: QueryResultsParseError) -> Fault {
    Fault::Malformed(error.to_string())
}

fn lacks_tag(mut term: &Term) -> bool {
    while let Term::Triple(triple) = term {
        term = &triple.object;
    }
    let Term::Literal(literal) = term else { return false };
    literal.language().is_none() && [rdf::LANG_STRING, rdf::DIR_LANG_STRING].contains(&literal.datatype())
}
