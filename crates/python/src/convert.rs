//! Python values as terms, and literals as Python values.

use oxrdf::vocab::xsd;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyType};
use snowmelt::{Literal, NamedNode, Term};

use crate::terms::AnyTerm;

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static DATETIME: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static DATE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static TIME: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The term of a value given for a parameter: a term, or a value of Python as a literal.
pub fn term_of(value: &Bound<'_, PyAny>) -> PyResult<Term> {
    match value.extract::<AnyTerm>() {
        Ok(term) => Ok(term.into()),
        Err(_) => Ok(literal_of(value)?.into()),
    }
}

/// The literal of a value.
pub fn literal_of(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    let py = value.py();
    let text = |method: &str| -> PyResult<String> { value.call_method0(method)?.extract() };
    // a bool is an int, and a datetime a date: the narrower come first
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Literal::new_simple_literal(text.extract::<String>()?));
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(Literal::from(value.extract::<bool>()?));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(typed(value.str()?.extract::<String>()?, xsd::INTEGER));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Literal::from(value.extract::<f64>()?));
    }
    if value.is_instance(DECIMAL.import(py, "decimal", "Decimal")?)? {
        // without an exponent
        return Ok(typed(value.call_method1("__format__", ("f",))?.extract::<String>()?, xsd::DECIMAL));
    }
    if value.is_instance(DATETIME.import(py, "datetime", "datetime")?)? {
        return Ok(typed(text("isoformat")?, xsd::DATE_TIME));
    }
    if value.is_instance(DATE.import(py, "datetime", "date")?)? {
        return Ok(typed(text("isoformat")?, xsd::DATE));
    }
    if value.is_instance(TIME.import(py, "datetime", "time")?)? {
        return Ok(typed(text("isoformat")?, xsd::TIME));
    }
    let class = value.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "a {class} is no term: give a NamedNode, a Literal, a str, a number, a bool, or a date or time"
    )))
}

fn typed(lexical: String, datatype: oxrdf::NamedNodeRef<'_>) -> Literal {
    Literal::new_typed_literal(lexical, NamedNode::from(datatype))
}

/// The Python type that fits a datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    Integer,
    Decimal,
    Float,
    Boolean,
    DateTime,
    Date,
    Time,
    Text,
}

/// The kind of a literal's datatype.
pub fn kind_of(literal: &Literal) -> ValueKind {
    const INTEGERS: [oxrdf::NamedNodeRef<'_>; 13] = [
        xsd::INTEGER,
        xsd::LONG,
        xsd::INT,
        xsd::SHORT,
        xsd::BYTE,
        xsd::UNSIGNED_LONG,
        xsd::UNSIGNED_INT,
        xsd::UNSIGNED_SHORT,
        xsd::UNSIGNED_BYTE,
        xsd::NON_NEGATIVE_INTEGER,
        xsd::NON_POSITIVE_INTEGER,
        xsd::POSITIVE_INTEGER,
        xsd::NEGATIVE_INTEGER,
    ];
    match literal.datatype() {
        xsd::STRING => ValueKind::Text,
        xsd::DOUBLE | xsd::FLOAT => ValueKind::Float,
        xsd::DECIMAL => ValueKind::Decimal,
        xsd::BOOLEAN => ValueKind::Boolean,
        xsd::DATE_TIME => ValueKind::DateTime,
        xsd::DATE => ValueKind::Date,
        xsd::TIME => ValueKind::Time,
        datatype if INTEGERS.contains(&datatype) => ValueKind::Integer,
        _ => ValueKind::Text,
    }
}

/// The value of a literal; its lexical form where Python has no value for it.
pub fn literal_value<'py>(py: Python<'py>, literal: &Literal) -> PyResult<Bound<'py, PyAny>> {
    let lexical = PyString::new(py, literal.value());
    let class = |lock: &'static PyOnceLock<Py<PyType>>, module, name| lock.import(py, module, name);
    let from_iso = |class: &Bound<'py, PyType>| {
        // before Python 3.11 an offset of Z is not understood
        let text = literal.value();
        let text = text.strip_suffix('Z').map_or_else(|| text.to_owned(), |text| format!("{text}+00:00"));
        class.call_method1(intern!(py, "fromisoformat"), (text,))
    };
    let value = match kind_of(literal) {
        ValueKind::Integer => py.get_type::<PyInt>().call1((&lexical,)),
        ValueKind::Float => py.get_type::<PyFloat>().call1((&lexical,)),
        ValueKind::Decimal => class(&DECIMAL, "decimal", "Decimal")?.call1((&lexical,)),
        ValueKind::DateTime => from_iso(class(&DATETIME, "datetime", "datetime")?),
        ValueKind::Date => from_iso(class(&DATE, "datetime", "date")?),
        ValueKind::Time => from_iso(class(&TIME, "datetime", "time")?),
        ValueKind::Boolean => match literal.value() {
            "true" | "1" => return Ok(PyBool::new(py, true).to_owned().into_any()),
            "false" | "0" => return Ok(PyBool::new(py, false).to_owned().into_any()),
            _ => return Ok(lexical.into_any()),
        },
        ValueKind::Text => return Ok(lexical.into_any()),
    };
    Ok(value.unwrap_or_else(|_| lexical.into_any()))
}

/// The value of a term: that of a literal, the text of an IRI, the label of a blank node after
/// `_:`.
pub fn term_value<'py>(py: Python<'py>, term: &Term) -> PyResult<Bound<'py, PyAny>> {
    match term {
        Term::NamedNode(iri) => Ok(PyString::new(py, iri.as_str()).into_any()),
        Term::Literal(literal) => literal_value(py, literal),
        other => Ok(PyString::new(py, &other.to_string()).into_any()),
    }
}
