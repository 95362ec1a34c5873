//! Callables of Python as functions of a query.
//!
//! They are called by the threads that work on the query, each with the GIL for as long as the call
//! takes. No lock of this crate is held then, but that of the answer which is read, which others
//! only try.

use std::sync::Arc;

use pyo3::exceptions::{PyException, PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use snowmelt::{Prepared, Term};

use crate::convert;
use crate::interrupt::Cancel;
use crate::labels::Labels;
use crate::terms::{AnyTerm, PyNamedNode};

/// A callable by its IRI.
pub struct PyFunction {
    iri: String,
    call: Arc<Py<PyAny>>,
    is_deterministic: bool,
}

impl PyFunction {
    /// The callables of a dict, by IRI: NamedNode or str.
    pub fn of_dict(functions: Option<&Bound<'_, PyDict>>, is_deterministic: bool) -> PyResult<Vec<Self>> {
        let functions = functions.into_iter().flatten().map(|(iri, call)| {
            let iri = match iri.cast::<PyString>() {
                Ok(iri) => iri.extract::<String>()?,
                Err(_) => iri.extract::<PyNamedNode>()?.0.into_string(),
            };
            if !call.is_callable() {
                return Err(PyTypeError::new_err(format!("the function <{iri}> cannot be called")));
            }
            Ok(PyFunction { iri, call: Arc::new(call.unbind()), is_deterministic })
        });
        functions.collect()
    }

    /// Gives the function to a text.
    pub fn on<'a>(
        &self,
        prepared: Prepared<'a>,
        labels: Option<&Arc<Labels>>,
        cancel: &Cancel,
    ) -> Prepared<'a> {
        let (call, labels, cancel) = (Arc::clone(&self.call), labels.cloned(), cancel.clone());
        let function = move |args: &[Term]| {
            Python::attach(|py| match called(py, &call, args, labels.as_deref()) {
                Ok(term) => term,
                Err(raised) => {
                    if ends_the_query(py, &raised) {
                        cancel.raise(raised);
                    }
                    None
                }
            })
        };
        match self.is_deterministic {
            true => prepared.function(&self.iri, function),
            false => prepared.varying_function(&self.iri, function),
        }
    }
}

/// Whether what a callable raised is about the program and not about a value: KeyboardInterrupt,
/// SystemExit and their like, and MemoryError.
fn ends_the_query(py: Python<'_>, raised: &PyErr) -> bool {
    !raised.is_instance_of::<PyException>(py) || raised.is_instance_of::<PyMemoryError>(py)
}

/// The term that a callable returns; `None` where it returns None.
fn called(
    py: Python<'_>,
    call: &Py<PyAny>,
    args: &[Term],
    labels: Option<&Labels>,
) -> PyResult<Option<Term>> {
    let found = |term: Term| match labels {
        Some(labels) => labels.term_found(term),
        None => term,
    };
    let args = args.iter().cloned().map(|term| AnyTerm::from(found(term)));
    let args = PyTuple::new(py, args.collect::<Vec<_>>())?;
    let result = call.bind(py).call1(args)?;
    if result.is_none() {
        return Ok(None);
    }
    let term = convert::term_of(&result)?;
    Ok(Some(match labels {
        Some(labels) => labels.term_to_find(term),
        None => term,
    }))
}
