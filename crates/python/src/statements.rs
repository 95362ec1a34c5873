//! Quads as Python values.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use snowmelt::{GraphName, Quad};

use crate::parts::{item, reprs};
use crate::terms::{AnyGraph, AnySubject, AnyTerm, PyNamedNode, PyTriple};

/// A quad: a triple in a graph.
#[pyclass(name = "Quad", module = "snowmelt", frozen, eq, hash, from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PyQuad(pub Quad);

#[pymethods]
impl PyQuad {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str, &'static str) {
        ("subject", "predicate", "object", "graph_name")
    }

    #[new]
    #[pyo3(signature = (subject, predicate, object, graph_name=None))]
    fn new(
        subject: AnySubject,
        predicate: PyNamedNode,
        object: AnyTerm,
        graph_name: Option<AnyGraph>,
    ) -> Self {
        let graph = graph_name.map_or(GraphName::DefaultGraph, GraphName::from);
        PyQuad(Quad::new(subject, predicate.0, object, graph))
    }

    /// The subject.
    #[getter]
    fn subject(&self) -> AnySubject {
        self.0.subject.clone().into()
    }

    /// The predicate.
    #[getter]
    fn predicate(&self) -> PyNamedNode {
        PyNamedNode(self.0.predicate.clone())
    }

    /// The object.
    #[getter]
    fn object(&self) -> AnyTerm {
        self.0.object.clone().into()
    }

    /// The graph.
    #[getter]
    fn graph_name(&self) -> AnyGraph {
        self.0.graph_name.clone().into()
    }

    /// The triple without its graph.
    #[getter]
    fn triple(&self) -> PyTriple {
        PyTriple(self.0.clone().into())
    }

    fn __len__(&self) -> usize {
        4
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        item(self.parts(py)?, index)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.parts(py)?.try_iter()?.into_any())
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let [subject, predicate, object, graph] = reprs(&self.parts(py)?)?;
        Ok(format!("<Quad subject={subject} predicate={predicate} object={object} graph_name={graph}>"))
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.parts(py)
    }

    fn __copy__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: PyRef<'py, Self>, _memo: &Bound<'py, PyAny>) -> PyRef<'py, Self> {
        slf
    }
}

impl PyQuad {
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (self.subject(), self.predicate(), self.object(), self.graph_name()).into_pyobject(py)
    }
}
