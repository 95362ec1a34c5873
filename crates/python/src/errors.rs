//! Errors as exceptions: the classes of `snowmelt._errors`, which are also the built-in ones that
//! fit, so that programs written for either catch them.

use std::io;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use snowmelt::Error;

/// The exception of an error. `text` is the query or update that it may be about.
pub fn of_text(text: &str) -> impl Fn(Error) -> PyErr + '_ {
    move |error| Python::attach(|py| exception(py, error, Some(text)).unwrap_or_else(|failed| failed))
}

/// The exception of an error.
pub fn from_error(error: Error) -> PyErr {
    Python::attach(|py| exception(py, error, None).unwrap_or_else(|failed| failed))
}

/// An exception by the name of its class.
pub fn named(class: &str, message: &str) -> PyErr {
    Python::attach(|py| match class_named(py, class) {
        Ok(class) => PyErr::from_type(class, message.to_owned()),
        Err(failed) => failed,
    })
}

/// A place in a text, from 1; 0 where it is not known.
#[derive(Clone, Copy, Default)]
pub struct TextPlace {
    pub line: u64,
    pub column: u64,
}

/// A document or text that is not what it should be, with its place.
pub fn syntax(class: &str, message: &str, file: &str, place: TextPlace, text: &str) -> PyErr {
    let made = Python::attach(|py| -> PyResult<PyErr> {
        let TextPlace { line, column } = place;
        let line_number = usize::try_from(line).unwrap_or(usize::MAX);
        let line_text = text.lines().nth(line_number.saturating_sub(1));
        let place = (file, line, column, line_text).into_pyobject(py)?;
        let class = class_named(py, class)?;
        let args = (message, place).into_pyobject(py)?;
        Ok(PyErr::from_value(class.call1(args.cast::<PyTuple>()?)?))
    });
    made.unwrap_or_else(|failed| failed)
}

/// The exception of a failed transfer: the one that a file-like object raised, else an OSError.
pub fn of_io(error: io::Error) -> PyErr {
    match error.get_ref().and_then(|cause| cause.downcast_ref::<PyErr>()) {
        Some(raised) => Python::attach(|py| raised.clone_ref(py)),
        None => PyErr::from(error),
    }
}

/// An argument that has no meaning here.
pub fn value(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

fn class_named<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    Ok(py.import("snowmelt._errors")?.getattr(name)?.cast_into::<PyType>()?)
}

fn exception(py: Python<'_>, error: Error, text: Option<&str>) -> PyResult<PyErr> {
    let message = error.to_string();
    let text = text.unwrap_or_default();
    let class = match error {
        Error::Syntax { line, column, message, faults } => {
            let place = TextPlace { line: line as u64, column: column as u64 };
            let raised = syntax("QuerySyntaxError", &message, "<sparql>", place, text);
            raised.value(py).setattr("report", faults.to_string())?;
            return Ok(raised);
        }
        Error::Document { name, line, column, message } => {
            return Ok(syntax("DocumentError", &message, &name, TextPlace { line, column }, ""));
        }
        Error::Input { source, .. } if source.get_ref().is_some_and(|cause| cause.is::<PyErr>()) => {
            return Ok(of_io(source));
        }
        Error::Input { name, source } => {
            let is_missing = source.kind() == io::ErrorKind::NotFound;
            let class = class_named(py, if is_missing { "InputNotFoundError" } else { "InputError" })?;
            return Ok(match source.raw_os_error() {
                Some(number) => PyErr::from_type(class, (number, source.to_string(), name)),
                None => PyErr::from_type(class, message),
            });
        }
        Error::Unsupported { .. } => "UnsupportedError",
        Error::Parameter { .. } => "ParameterError",
        Error::Form { .. } | Error::Column { .. } | Error::Setting { .. } => "SettingError",
        Error::Timeout(_) => "QueryTimeout",
        Error::Cancelled => "Cancelled",
        Error::Memory(_) => "MemoryLimitError",
        Error::Busy(_) => "BusyError",
        Error::TooLarge(_) => "TooLargeError",
        Error::Format { .. } => "FormatError",
        Error::NotADatabase { .. } => "NotADatabaseError",
        Error::Exists { .. } => "ExistsError",
        Error::Locked { .. } => "LockedError",
        Error::ReadOnly { .. } => "ReadOnlyError",
        Error::DiskFull { .. } => "DiskFullError",
        Error::Damaged(_) => "DamagedError",
        Error::TransactionFailed | Error::InTransaction => "TransactionError",
        Error::InMemory => "InMemoryError",
        _ => "Error",
    };
    Ok(PyErr::from_type(class_named(py, class)?, message))
}
