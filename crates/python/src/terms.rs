//! Terms as Python values: immutable, hashable, picklable, as pyoxigraph has them.

use oxrdf::BaseDirection;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};
use snowmelt::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Term, Triple};

use crate::convert;
use crate::errors;
use crate::parts::{item, reprs};
use crate::value_class::{named_term, value_class};

named_term! {
    /// An IRI.
    "NamedNode": PyNamedNode(NamedNode), ordered
    /// The IRI.
    value
    {
        #[new]
        fn new(value: &str) -> PyResult<Self> {
            NamedNode::new(value).map(Self).map_err(|error| errors::value(format!("{value:?}: {error}")))
        }
    }
}

named_term! {
    /// A blank node; without a label it gets a random one.
    "BlankNode": PyBlankNode(BlankNode), unordered
    /// The label.
    value
    {
        #[new]
        #[pyo3(signature = (value=None))]
        fn new(value: Option<&str>) -> PyResult<Self> {
            let Some(label) = value else { return Ok(Self(BlankNode::default())) };
            BlankNode::new(label).map(Self).map_err(|error| errors::value(format!("{label:?}: {error}")))
        }
    }
}

/// The base direction that a Python value names.
fn direction_of(value: &Bound<'_, PyAny>) -> PyResult<BaseDirection> {
    match value.str()?.to_string().as_str() {
        "ltr" => Ok(BaseDirection::Ltr),
        "rtl" => Ok(BaseDirection::Rtl),
        other => Err(errors::value(format!("a base direction is ltr or rtl, not {other:?}"))),
    }
}

fn direction_name(direction: BaseDirection) -> &'static str {
    match direction {
        BaseDirection::Ltr => "ltr",
        BaseDirection::Rtl => "rtl",
    }
}

value_class! {
    /// A literal: a text with a datatype or a language.
    "Literal": PyLiteral(Literal), derives [], unordered
    {
        #[classattr]
        fn __match_args__() -> (&'static str,) {
            ("value",)
        }

        #[new]
        #[pyo3(signature = (value, *, datatype=None, language=None, direction=None))]
        fn new(
            value: &Bound<'_, PyAny>,
            datatype: Option<PyNamedNode>,
            language: Option<&str>,
            direction: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let direction = direction.map(direction_of).transpose()?;
            if direction.is_some() && language.is_none() {
                return Err(errors::value("a literal with a base direction has a language, too"));
            }
            let is_plain = value.is_instance_of::<PyString>();
            let is_number = value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>();
            if !(is_plain || is_number || value.is_instance_of::<PyBool>()) {
                return Err(PyTypeError::new_err("the value of a literal is a str, an int, a float or a bool"));
            }
            let literal = convert::literal_of(value)?;
            match (language, datatype) {
                (Some(_), Some(_)) => Err(errors::value("a literal has a language or a datatype, not both")),
                (Some(language), None) if is_plain => {
                    let text = literal.value();
                    let tagged = match direction {
                        None => Literal::new_language_tagged_literal(text, language),
                        Some(to) => Literal::new_directional_language_tagged_literal(text, language, to),
                    };
                    tagged.map(Self).map_err(|error| errors::value(format!("{language:?}: {error}")))
                }
                (Some(_), None) => Err(errors::value("only a text has a language")),
                (None, Some(datatype)) => Ok(Self(Literal::new_typed_literal(literal.value(), datatype.0))),
                (None, None) => Ok(Self(literal)),
            }
        }

        /// The lexical form.
        #[getter]
        fn value(&self) -> &str {
            self.0.value()
        }

        /// The language tag, in lower case.
        #[getter]
        fn language(&self) -> Option<&str> {
            self.0.language()
        }

        /// The datatype; rdf:langString where there is a language, rdf:dirLangString where there is
        /// a base direction, too.
        #[getter]
        fn datatype(&self) -> PyNamedNode {
            PyNamedNode(self.0.datatype().into_owned())
        }

        /// The base direction of RDF 1.2: "ltr", "rtl" or None.
        #[getter]
        fn direction(&self) -> Option<&str> {
            self.0.direction().map(direction_name)
        }

        /// The Python value: int, float, Decimal, bool, datetime, date or time by datatype; the
        /// lexical form of all other literals, and of those that Python cannot hold.
        fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
            convert::literal_value(py, &self.0)
        }

        fn __str__(&self) -> String {
            self.0.to_string()
        }

        fn __repr__(&self) -> String {
            match self.0.language() {
                Some(language) => {
                    let value = self.0.value();
                    let direction = self.direction().map(|to| format!(" direction={to}")).unwrap_or_default();
                    format!("<Literal value={value} language={language}{direction}>")
                }
                None => {
                    let datatype = self.0.datatype();
                    format!("<Literal value={} datatype=<NamedNode value={}>>", self.0.value(), datatype.as_str())
                }
            }
        }

        fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((&str,), Bound<'py, PyDict>)> {
            let keywords = PyDict::new(py);
            match self.0.language() {
                Some(language) => {
                    keywords.set_item("language", language)?;
                    if let Some(direction) = self.direction() {
                        keywords.set_item("direction", direction)?;
                    }
                }
                None => keywords.set_item("datatype", self.datatype())?,
            }
            Ok(((self.value(),), keywords))
        }
    }
}

value_class! {
    /// The default graph.
    "DefaultGraph": PyDefaultGraph, derives [Copy], ordered
    {
        #[new]
        fn new() -> Self {
            PyDefaultGraph
        }

        /// An empty text.
        #[getter]
        fn value(&self) -> &'static str {
            ""
        }

        fn __str__(&self) -> &'static str {
            "DEFAULT"
        }

        fn __repr__(&self) -> &'static str {
            "<DefaultGraph>"
        }

        fn __getnewargs__<'py>(&self, py: Python<'py>) -> Bound<'py, pyo3::types::PyTuple> {
            pyo3::types::PyTuple::empty(py)
        }
    }
}

named_term! {
    /// A variable of a query.
    "Variable": PyVariable(oxrdf::Variable), ordered
    /// The name, without question mark.
    value
    {
        #[new]
        fn new(value: &str) -> PyResult<Self> {
            oxrdf::Variable::new(value).map(Self).map_err(|error| errors::value(format!("{value:?}: {error}")))
        }
    }
}

/// A triple, which may be the object of another.
#[pyclass(name = "Triple", module = "snowmelt", frozen, eq, hash, from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PyTriple(pub Triple);

#[pymethods]
impl PyTriple {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("subject", "predicate", "object")
    }

    #[new]
    fn new(subject: AnySubject, predicate: PyNamedNode, object: AnyTerm) -> Self {
        PyTriple(Triple::new(subject, predicate.0, object))
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

    fn __len__(&self) -> usize {
        3
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
        let [subject, predicate, object] = reprs(&self.parts(py)?)?;
        Ok(format!("<Triple subject={subject} predicate={predicate} object={object}>"))
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

impl PyTriple {
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (self.subject(), self.predicate(), self.object()).into_pyobject(py)
    }
}

/// Any term.
#[derive(Clone, FromPyObject, IntoPyObject)]
pub enum AnyTerm {
    NamedNode(PyNamedNode),
    BlankNode(PyBlankNode),
    Literal(PyLiteral),
    Triple(PyTriple),
}

/// A term that can be a subject.
#[derive(Clone, FromPyObject, IntoPyObject)]
pub enum AnySubject {
    NamedNode(PyNamedNode),
    BlankNode(PyBlankNode),
}

/// A name of a graph.
#[derive(Clone, FromPyObject, IntoPyObject)]
pub enum AnyGraph {
    NamedNode(PyNamedNode),
    BlankNode(PyBlankNode),
    DefaultGraph(PyDefaultGraph),
}

impl From<Term> for AnyTerm {
    fn from(term: Term) -> Self {
        match term {
            Term::NamedNode(iri) => AnyTerm::NamedNode(PyNamedNode(iri)),
            Term::BlankNode(node) => AnyTerm::BlankNode(PyBlankNode(node)),
            Term::Literal(literal) => AnyTerm::Literal(PyLiteral(literal)),
            Term::Triple(triple) => AnyTerm::Triple(PyTriple(*triple)),
        }
    }
}

impl From<AnyTerm> for Term {
    fn from(term: AnyTerm) -> Self {
        match term {
            AnyTerm::NamedNode(iri) => iri.0.into(),
            AnyTerm::BlankNode(node) => node.0.into(),
            AnyTerm::Literal(literal) => literal.0.into(),
            AnyTerm::Triple(triple) => triple.0.into(),
        }
    }
}

impl From<NamedOrBlankNode> for AnySubject {
    fn from(node: NamedOrBlankNode) -> Self {
        match node {
            NamedOrBlankNode::NamedNode(iri) => AnySubject::NamedNode(PyNamedNode(iri)),
            NamedOrBlankNode::BlankNode(node) => AnySubject::BlankNode(PyBlankNode(node)),
        }
    }
}

impl From<AnySubject> for NamedOrBlankNode {
    fn from(node: AnySubject) -> Self {
        match node {
            AnySubject::NamedNode(iri) => iri.0.into(),
            AnySubject::BlankNode(node) => node.0.into(),
        }
    }
}

impl From<GraphName> for AnyGraph {
    fn from(graph: GraphName) -> Self {
        match graph {
            GraphName::NamedNode(iri) => AnyGraph::NamedNode(PyNamedNode(iri)),
            GraphName::BlankNode(node) => AnyGraph::BlankNode(PyBlankNode(node)),
            GraphName::DefaultGraph => AnyGraph::DefaultGraph(PyDefaultGraph),
        }
    }
}

impl From<AnyGraph> for GraphName {
    fn from(graph: AnyGraph) -> Self {
        match graph {
            AnyGraph::NamedNode(iri) => iri.0.into(),
            AnyGraph::BlankNode(node) => node.0.into(),
            AnyGraph::DefaultGraph(_) => GraphName::DefaultGraph,
        }
    }
}
