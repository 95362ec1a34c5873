//! Answers: solutions, triples, booleans, quads.

use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict, PyInt, PyList, PyString, PyTuple};
use snowmelt::{Quad, Quads, Rows, Term, Triple, Triples};
use sparesults::{QueryResultsFormat, QueryResultsSerializer};

use crate::columns::{Columns, Table};
use crate::convert;
use crate::errors;
use crate::formats;
use crate::interrupt::Cancel;
use crate::labels::Labels;
use crate::reading::Reading;
use crate::statements::PyQuad;
use crate::streams::Output;
use crate::terms::PyTriple;
use crate::terms::{AnyTerm, PyVariable};

/// The terms of a row.
type Terms = Box<[Option<Term>]>;

/// The solutions of a SELECT, read as they are asked for: to stop early, drop it.
#[pyclass(name = "QuerySolutions", module = "snowmelt", frozen)]
pub struct PyQuerySolutions {
    reading: Reading<Terms>,
    names: Arc<[String]>,
    table: PyOnceLock<Table>,
}

impl PyQuerySolutions {
    pub fn new(rows: Rows, cancel: Cancel, labels: Option<Arc<Labels>>) -> Self {
        let names = rows.columns().into();
        let terms = rows.map(move |row| {
            let mut terms = row.map_err(errors::from_error)?.into_terms();
            if let Some(labels) = &labels {
                for term in terms.iter_mut().flatten() {
                    if let Term::BlankNode(_) | Term::Triple(_) = term {
                        *term = labels.term_found(term.clone());
                    }
                }
            }
            Ok(terms)
        });
        PyQuerySolutions { reading: Reading::new(terms, cancel), names, table: PyOnceLock::new() }
    }
}

#[pymethods]
impl PyQuerySolutions {
    /// The variables, in the order of SELECT.
    #[getter]
    fn variables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let variables = self.names.iter().map(|name| PyVariable(oxrdf::Variable::new_unchecked(name)));
        PyList::new(py, variables.collect::<Vec<_>>())
    }

    /// Their names.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.names.to_vec()
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyQuerySolution>> {
        let terms = self.reading.next(py)?;
        Ok(terms.map(|terms| PyQuerySolution { names: self.names.clone(), terms }))
    }

    /// Writes the solutions that are left: as bytes, or to a file or file-like object.
    #[pyo3(signature = (output=None, format=None))]
    fn serialize<'py>(
        &self,
        py: Python<'py>,
        output: Option<&Bound<'py, PyAny>>,
        format: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let format = formats::results_format(format, output)?;
        let mut output = Output::new(output)?;
        let variables: Vec<_> = self.names.iter().map(oxrdf::Variable::new_unchecked).collect();
        let writer = QueryResultsSerializer::from_format(format);
        let mut writer =
            writer.serialize_solutions_to_writer(&mut output, variables.clone()).map_err(errors::of_io)?;
        self.reading.drain(py, |terms| {
            let bound = variables.iter().zip(&terms).filter_map(|(name, term)| Some((name, term.as_ref()?)));
            writer.serialize(bound.map(|(name, term)| (name.as_ref(), term.as_ref()))).map_err(errors::of_io)
        })?;
        py.detach(|| writer.finish().map(drop)).map_err(errors::of_io)?;
        output.finish(py)
    }

    /// The solutions that are left as an Arrow stream, for pyarrow, Polars, DuckDB and others.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // a consumer may ask for another schema; it is allowed not to get it
        let _ = requested_schema;
        arrow(py, &self.table, &self.names, &self.reading, |terms| terms)
    }

    /// The solutions that are left as a pyarrow.Table; needs pyarrow.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        table(slf)
    }

    /// The solutions that are left as a pandas.DataFrame; needs pyarrow and pandas. Arguments are
    /// those of pyarrow.Table.to_pandas.
    #[pyo3(signature = (**options))]
    fn to_pandas<'py>(
        slf: &Bound<'py, Self>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        table(slf)?.call_method("to_pandas", (), options)
    }
}

fn table<'py>(answer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    answer.py().import("pyarrow")?.call_method1("table", (answer,))
}

/// The stream of what is left of an answer. Consumers may ask for one more than once, DuckDB does,
/// so what was read is kept in `table`.
fn arrow<'py, T: Send>(
    py: Python<'py>,
    table: &PyOnceLock<Table>,
    names: &[String],
    reading: &Reading<T>,
    row: impl Fn(T) -> Terms + Sync,
) -> PyResult<Bound<'py, PyCapsule>> {
    let table = table.get_or_try_init(py, || {
        let mut columns = Columns::new(names);
        reading.drain(py, |item| {
            columns.push(&row(item));
            Ok(())
        })?;
        py.detach(|| columns.into_table()).map_err(|error| errors::value(error.to_string()))
    })?;
    PyCapsule::new_with_value(py, table.stream(), c"arrow_array_stream")
}

/// One solution: terms by name, variable or position.
#[pyclass(name = "QuerySolution", module = "snowmelt", frozen, eq)]
#[derive(PartialEq, Eq)]
pub struct PyQuerySolution {
    names: Arc<[String]>,
    terms: Terms,
}

#[pymethods]
impl PyQuerySolution {
    fn __len__(&self) -> usize {
        self.terms.len()
    }

    /// The term; None where the variable is unbound.
    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<AnyTerm>> {
        Ok(self.terms[self.place(key)?].clone().map(AnyTerm::from))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let terms: Vec<_> = self.terms.iter().map(|term| term.clone().map(AnyTerm::from)).collect();
        Ok(PyTuple::new(py, terms)?.try_iter()?.into_any())
    }

    /// The value of a cell in Python's types: see `Literal.to_python`; the text of an IRI.
    fn value<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let term = &self.terms[self.place(key)?];
        term.as_ref().map(|term| convert::term_value(key.py(), term)).transpose()
    }

    /// All values, in the order of the columns.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let value = |term: &Option<Term>| term.as_ref().map(|term| convert::term_value(py, term)).transpose();
        PyTuple::new(py, self.terms.iter().map(value).collect::<PyResult<Vec<_>>>()?)
    }

    /// The names of the columns.
    fn keys(&self) -> Vec<String> {
        self.names.to_vec()
    }

    /// Names with values.
    fn asdict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in self.names.iter().zip(self.values(py)?) {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut text = "<QuerySolution".to_owned();
        for (name, term) in self.names.iter().zip(&self.terms) {
            let term = term.clone().map(AnyTerm::from).into_pyobject(py)?;
            text += &format!(" {name}={}", term.repr()?.extract::<String>()?);
        }
        Ok(text + ">")
    }
}

impl PyQuerySolution {
    fn place(&self, key: &Bound<'_, PyAny>) -> PyResult<usize> {
        if key.is_instance_of::<PyInt>() {
            let index: isize = key.extract()?;
            let at = if index < 0 { index + self.terms.len() as isize } else { index };
            let at = usize::try_from(at).ok().filter(|at| *at < self.terms.len());
            return at.ok_or_else(|| PyIndexError::new_err("index out of range"));
        }
        let name = match (key.cast::<PyString>(), key.extract::<PyVariable>()) {
            (Ok(name), _) => name.extract::<String>()?,
            (_, Ok(variable)) => variable.0.into_string(),
            _ => return Err(PyTypeError::new_err("the key of a column is a str, a Variable or an int")),
        };
        let at = self.names.iter().position(|column| *column == name);
        at.ok_or_else(|| PyKeyError::new_err(format!("{name}; there are: {}", self.names.join(", "))))
    }
}

/// The answer of an ASK.
#[pyclass(name = "QueryBoolean", module = "snowmelt", frozen, eq)]
#[derive(PartialEq, Eq)]
pub struct PyQueryBoolean(pub bool);

#[pymethods]
impl PyQueryBoolean {
    fn __bool__(&self) -> bool {
        self.0
    }

    fn __repr__(&self) -> String {
        format!("<QueryBoolean {}>", self.0)
    }

    /// Writes the answer: as bytes, or to a file or file-like object.
    #[pyo3(signature = (output=None, format=None))]
    fn serialize<'py>(
        &self,
        py: Python<'py>,
        output: Option<&Bound<'py, PyAny>>,
        format: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let format: QueryResultsFormat = formats::results_format(format, output)?;
        let mut output = Output::new(output)?;
        let writer = QueryResultsSerializer::from_format(format);
        writer.serialize_boolean_to_writer(&mut output, self.0).map_err(errors::of_io)?;
        output.finish(py)
    }
}

/// The triples of a CONSTRUCT or DESCRIBE, each once, read as they are asked for.
#[pyclass(name = "QueryTriples", module = "snowmelt", frozen)]
pub struct PyQueryTriples {
    reading: Reading<Triple>,
    table: PyOnceLock<Table>,
}

impl PyQueryTriples {
    pub fn new(triples: Triples, cancel: Cancel, labels: Option<Arc<Labels>>) -> Self {
        let triples = triples.map(move |triple| {
            let triple = triple.map_err(errors::from_error)?;
            Ok(labels.as_ref().map_or(triple.clone(), |labels| labels.triple_found(triple)))
        });
        PyQueryTriples { reading: Reading::new(triples, cancel), table: PyOnceLock::new() }
    }
}

#[pymethods]
impl PyQueryTriples {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyTriple>> {
        Ok(self.reading.next(py)?.map(PyTriple))
    }

    /// Writes the triples that are left: as bytes, or to a file or file-like object.
    #[pyo3(signature = (output=None, format=None))]
    fn serialize<'py>(
        &self,
        py: Python<'py>,
        output: Option<&Bound<'py, PyAny>>,
        format: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let format = formats::rdf_format_to_write(format, output)?;
        let mut output = Output::new(output)?;
        let mut writer = oxrdfio::RdfSerializer::from_format(format).for_writer(&mut output);
        self.reading.drain(py, |triple| writer.serialize_triple(&triple).map_err(errors::of_io))?;
        py.detach(|| writer.finish().map(drop)).map_err(errors::of_io)?;
        output.finish(py)
    }

    /// The triples that are left as an Arrow stream: subject, predicate, object.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let names = ["subject", "predicate", "object"].map(str::to_owned);
        arrow(py, &self.table, &names, &self.reading, |triple| {
            [Some(triple.subject.into()), Some(triple.predicate.into()), Some(triple.object)].into()
        })
    }

    /// The triples that are left as a pyarrow.Table; needs pyarrow.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        table(slf)
    }

    /// The triples that are left as a pandas.DataFrame; needs pyarrow and pandas.
    #[pyo3(signature = (**options))]
    fn to_pandas<'py>(
        slf: &Bound<'py, Self>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        table(slf)?.call_method("to_pandas", (), options)
    }
}

/// The quads of a pattern, read as they are asked for.
#[pyclass(name = "Quads", module = "snowmelt", frozen)]
pub struct PyQuads {
    reading: Reading<Quad>,
}

impl PyQuads {
    pub fn new(quads: Quads, cancel: Cancel, labels: Option<Arc<Labels>>) -> Self {
        let quads = quads.cancel(Arc::clone(cancel.flag())).map(move |quad| {
            let quad = quad.map_err(errors::from_error)?;
            Ok(match &labels {
                Some(labels) => labels.quad_found(quad),
                None => quad,
            })
        });
        PyQuads { reading: Reading::new(quads, cancel) }
    }
}

#[pymethods]
impl PyQuads {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyQuad>> {
        Ok(self.reading.next(py)?.map(PyQuad))
    }
}
