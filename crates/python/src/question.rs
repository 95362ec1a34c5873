//! A query or update with its settings, and the answer in the class of its form.

use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use snowmelt::{Answer, DescribeForm, Error, Prepared, Term};

use crate::convert;
use crate::errors;
use crate::functions::PyFunction;
use crate::interrupt::{self, Cancel};
use crate::labels::Labels;
use crate::results::{PyQueryBoolean, PyQuerySolutions, PyQueryTriples};
use crate::terms::PyVariable;

/// A text of SPARQL and how it is to be run.
#[derive(Default)]
pub struct Question {
    pub text: String,
    pub base: Option<String>,
    pub timeout: Option<Duration>,
    pub memory: Option<usize>,
    pub default_graphs: Vec<String>,
    pub named_graphs: Vec<String>,
    /// names without question mark, and values
    pub bindings: Vec<(String, Term)>,
    pub functions: Vec<PyFunction>,
    /// labels of the store that the functions belong to
    pub labels: Option<Arc<Labels>>,
    pub describe: DescribeForm,
    /// bytes of prefixes before the text, in its first line
    pub head: usize,
    pub cancel: Cancel,
}

impl Question {
    pub fn new(text: &str) -> Self {
        Question { text: text.to_owned(), ..Question::default() }
    }

    /// A text with the parameters of a call: a dict, and keyword arguments.
    pub fn with_parameters(
        text: &str,
        bindings: Option<&Bound<'_, PyDict>>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Question::new(text).with_bindings(bindings)?.with_bindings(keywords)
    }

    /// Declares prefixes before the text, without adding a line.
    pub fn with_prefixes(mut self, prefixes: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut declared = String::new();
        for (name, iri) in prefixes.into_iter().flatten() {
            declared += &format!("PREFIX {}: <{}> ", name.extract::<String>()?, iri.extract::<String>()?);
        }
        self.head = declared.len();
        self.text = declared + &self.text;
        Ok(self)
    }

    /// Adds parameters: a dict of names or variables, and of values.
    pub fn with_bindings(mut self, bindings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        for (name, value) in bindings.into_iter().flatten() {
            let name = match name.cast::<PyString>() {
                Ok(name) => name.extract::<String>()?,
                Err(_) => name.extract::<PyVariable>()?.0.into_string(),
            };
            self.bindings.push((name, convert::term_of(&value)?));
        }
        Ok(self)
    }

    /// Sets the form of descriptions by its name.
    pub fn with_describe(mut self, name: Option<&str>) -> PyResult<Self> {
        if let Some(name) = name {
            let form = DescribeForm::named(name);
            self.describe = form.ok_or_else(|| {
                let names = DescribeForm::NAMES.map(|(name, _)| name).join(", ");
                errors::value(format!("describe: there is no form {name}; there are: {names}"))
            })?;
        }
        Ok(self)
    }

    pub fn with_timeout(mut self, seconds: Option<f64>) -> PyResult<Self> {
        let limit = seconds.map(Duration::try_from_secs_f64).transpose();
        self.timeout = limit.map_err(|error| errors::value(format!("timeout: {error}")))?;
        Ok(self)
    }

    /// The settings for the text.
    pub fn on<'a>(&'a self, mut prepared: Prepared<'a>) -> Prepared<'a> {
        for (name, term) in &self.bindings {
            prepared = prepared.bind(name, term.clone());
        }
        if let Some(base) = &self.base {
            prepared = prepared.base(base);
        }
        if let Some(longest) = self.timeout {
            prepared = prepared.timeout(longest);
        }
        if let Some(bytes) = self.memory {
            prepared = prepared.memory(bytes);
        }
        for graph in &self.default_graphs {
            prepared = prepared.default_graph(graph);
        }
        for graph in &self.named_graphs {
            prepared = prepared.named_graph(graph);
        }
        for function in &self.functions {
            prepared = function.on(prepared, self.labels.as_ref(), &self.cancel);
        }
        prepared = prepared.describe(self.describe);
        prepared.cancel(Arc::clone(self.cancel.flag()))
    }

    /// The exception of an error, with its place in the text as it was given.
    pub fn failed(&self, error: Error) -> PyErr {
        let (head, text) = self.text.split_at(self.head);
        errors::of_text(text)(error.without_head(head, text))
    }

    /// Runs `work` so that Ctrl-C ends it.
    pub fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> snowmelt::Result<T> + Send,
    ) -> PyResult<T> {
        interrupt::run(py, &self.cancel, work)?.map_err(|error| self.failed(error))
    }

    /// The answer as an object: rows, triples, or a bool.
    pub fn answered(
        &self,
        py: Python<'_>,
        answer: Answer,
        labels: Option<Arc<Labels>>,
    ) -> PyResult<Py<PyAny>> {
        let warnings = match &answer {
            Answer::Rows(rows) => rows.warnings(),
            Answer::Triples(triples) => triples.warnings(),
            Answer::Boolean(_) => &[],
        };
        for warning in warnings {
            // an IRI has no byte 0
            if let Ok(text) = CString::new(warning.as_str()) {
                PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)?;
            }
        }
        Ok(match answer {
            Answer::Rows(rows) => {
                Py::new(py, PyQuerySolutions::new(rows, self.cancel.clone(), labels))?.into_any()
            }
            Answer::Triples(triples) => {
                Py::new(py, PyQueryTriples::new(triples, self.cancel.clone(), labels))?.into_any()
            }
            Answer::Boolean(answer) => Py::new(py, PyQueryBoolean(answer))?.into_any(),
        })
    }
}
