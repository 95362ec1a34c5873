//! Answers: rows of terms, and triples.

use std::ops::Index;
use std::sync::Arc;

use oxrdf::{Literal, NamedOrBlankNode, Term, Triple};
use snowmelt_database::meters::Activity;
use snowmelt_sparql::{QueryKind, QueryResult, TermRows as EngineRows};

use crate::error::{Error, Result};
use crate::value::{FromTerm, to_oxrdf};

/// The rows of an answer.
///
/// ```
/// # let db = snowmelt::Database::in_memory()?;
/// # db.update("INSERT DATA { <urn:a> <urn:p> 1 , 2 , 3 }")?;
/// let mut rows = db.query("SELECT ?o { ?s ?p ?o } ORDER BY ?o")?;
/// assert_eq!(rows.columns(), ["o"]);
/// let first = rows.next().expect("there are three")?;
/// assert_eq!(first.get::<i64>("o")?, 1);
/// println!("{}", rows.activity()); // what that took
/// # Ok::<(), snowmelt::Error>(())
/// ```
///
/// They are read as they are asked for: to stop early, drop it. After an
/// error there are no more.
pub struct Rows {
    source: RowSource,
    columns: Arc<[String]>,
    warnings: Box<[String]>,
}

enum RowSource {
    Rows(Box<EngineRows>),
    /// of ASK
    Answer(Box<QueryResult>),
    /// at the end, or after an error
    Done(Activity),
}

impl Rows {
    pub(crate) fn new(result: QueryResult) -> Self {
        let columns: Arc<[String]> = match result.kind() {
            QueryKind::Solutions => result.variables().into(),
            QueryKind::Boolean => ["answer".to_owned()].into(),
            QueryKind::Graph => ["subject", "predicate", "object"].map(str::to_owned).into(),
        };
        let warnings = result.warnings().into();
        let source = match result.kind() {
            QueryKind::Boolean => RowSource::Answer(Box::new(result)),
            _ => RowSource::Rows(Box::new(result.into_rows())),
        };
        Rows { source, columns, warnings }
    }

    /// Functions that the query calls and that are not there: a sentence for each. Each call of one
    /// is an error, which leaves its value unbound.
    ///
    /// ```
    /// # let db = snowmelt::Database::in_memory()?;
    /// let rows = db.query("SELECT ?x { BIND(<urn:shout>('a') AS ?x) }")?;
    /// assert!(rows.warnings()[0].starts_with("there is no function <urn:shout> of one argument"));
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The names of the columns, in the order of SELECT.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The query's counters so far: look-ups, rows moved over, pages read.
    pub fn activity(&self) -> Activity {
        match &self.source {
            RowSource::Rows(rows) => rows.result().activity(),
            RowSource::Answer(result) => result.activity(),
            RowSource::Done(activity) => *activity,
        }
    }

    fn read(&mut self) -> Result<Option<Row>> {
        let terms: Box<[Option<Term>]> = match &mut self.source {
            RowSource::Rows(rows) => {
                let Some(terms) = rows.next_row()? else { return Ok(None) };
                terms.into_iter().map(|term| term.map(to_oxrdf)).collect()
            }
            RowSource::Answer(result) => {
                let answer = result.answer()?;
                self.source = RowSource::Done(self.activity());
                [Some(Literal::from(answer).into())].into()
            }
            RowSource::Done(_) => return Ok(None),
        };
        Ok(Some(Row { columns: self.columns.clone(), terms }))
    }
}

impl Iterator for Rows {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        let read = self.read().transpose();
        if !matches!(read, Some(Ok(_))) {
            self.source = RowSource::Done(self.activity());
        }
        read
    }
}

impl std::iter::FusedIterator for Rows {}

/// The answer of a query, by its form: see [`Prepared::answer`](crate::Prepared::answer).
pub enum Answer {
    /// Of SELECT.
    Rows(Rows),
    /// Of ASK.
    Boolean(bool),
    /// Of CONSTRUCT and DESCRIBE.
    Triples(Triples),
}

/// A row of an answer.
///
/// ```
/// # let db = snowmelt::Database::in_memory()?;
/// # db.update("INSERT DATA { <urn:ann> <urn:name> 'Ann' ; <urn:age> 30 }")?;
/// let text = "SELECT * { ?s <urn:name> ?name ; <urn:age> ?age OPTIONAL { ?s <urn:mail> ?mail } }";
/// for row in db.query(text)? {
///     let row = row?;
///     let (name, age): (String, i64) = (row.get("name")?, row.get("age")?);
///     let mail: Option<String> = row.get("mail")?;
///     assert_eq!((name.as_str(), age, mail), ("Ann", 30, None));
///     assert_eq!(row["name"].to_string(), "\"Ann\""); // the term, in N-Triples syntax
/// }
/// # Ok::<(), snowmelt::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    columns: Arc<[String]>,
    terms: Box<[Option<Term>]>,
}

impl Row {
    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The term of a column; `None` if it is unbound or there is no such column.
    pub fn term(&self, column: &str) -> Option<&Term> {
        let at = self.columns.iter().position(|name| name == column)?;
        self.terms[at].as_ref()
    }

    /// The value of a column, as the type that is asked for: `Option` where it may be unbound.
    ///
    /// # Errors
    /// [`Error::Column`] if there is no such column, it is unbound, or not of that type.
    pub fn get<T: FromTerm>(&self, column: &str) -> Result<T> {
        let failed = |why: String| Error::Column { name: column.to_owned(), why };
        if !self.columns.iter().any(|name| name == column) {
            return Err(failed(format!("no such column; there are: {}", self.columns.join(", "))));
        }
        T::from_term(self.term(column)).map_err(failed)
    }

    /// The terms in the order of the columns.
    pub fn terms(&self) -> &[Option<Term>] {
        &self.terms
    }

    /// The terms in the order of the columns, taken out of the row.
    pub fn into_terms(self) -> Box<[Option<Term>]> {
        self.terms
    }

    /// Columns with their terms.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&Term>)> {
        self.columns.iter().map(String::as_str).zip(self.terms.iter().map(Option::as_ref))
    }
}

/// The term of a column. Panics if it is unbound or there is no such column: see [`Row::term`] and
/// [`Row::get`].
impl Index<&str> for Row {
    type Output = Term;

    fn index(&self, column: &str) -> &Term {
        self.term(column).unwrap_or_else(|| panic!("the row has no value for ?{column}"))
    }
}

/// The triples of a CONSTRUCT or DESCRIBE, each once. They are read as they are asked for.
///
/// ```
/// # let db = snowmelt::Database::in_memory()?;
/// # db.update("INSERT DATA { <urn:ann> <urn:age> 30 }")?;
/// let triples = db.construct("DESCRIBE <urn:ann>")?.collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(triples.len(), 1);
/// # Ok::<(), snowmelt::Error>(())
/// ```
pub struct Triples {
    rows: Rows,
}

impl Triples {
    pub(crate) fn new(result: QueryResult) -> Self {
        Triples { rows: Rows::new(result) }
    }

    /// Functions that are not there: see [`Rows::warnings`].
    pub fn warnings(&self) -> &[String] {
        self.rows.warnings()
    }

    /// The query's counters so far.
    pub fn activity(&self) -> Activity {
        self.rows.activity()
    }
}

impl Iterator for Triples {
    type Item = Result<Triple>;

    fn next(&mut self) -> Option<Result<Triple>> {
        Some(self.rows.next()?.map(|row| {
            let [subject, predicate, object] =
                <[Option<Term>; 3]>::try_from(row.terms.into_vec()).expect("triples have three columns");
            let (Some(subject), Some(Term::NamedNode(predicate)), Some(object)) =
                (subject, predicate, object)
            else {
                unreachable!("the engine leaves out what is no triple")
            };
            let subject = NamedOrBlankNode::try_from(subject).expect("subjects are no literals");
            Triple::new(subject, predicate, object)
        }))
    }
}
