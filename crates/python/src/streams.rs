//! Sources and targets of documents: bytes, texts, files and file-like objects.

use std::fs::File;
use std::io::{self, BufWriter, Cursor, Read, Write};
use std::path::PathBuf;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors;

/// Bytes asked of a file-like object, and given to one, at a time.
const PART_BYTES: usize = 1 << 18;

/// The source of a document.
pub enum Input {
    File(PathBuf),
    Reader(Box<dyn Read + Send>),
}

impl Input {
    /// `input` is the content, or an object to read it from; `path` names a file instead.
    pub fn new(input: Option<&Bound<'_, PyAny>>, path: Option<PathBuf>) -> PyResult<Self> {
        match (input, path) {
            (Some(input), None) => match input.cast::<PyString>() {
                Ok(text) => Ok(Self::bytes(text.extract::<String>()?.into_bytes())),
                Err(_) => Self::content(input),
            },
            (None, Some(path)) => Ok(Input::File(path)),
            (None, None) => Err(errors::value("give input or path")),
            (Some(_), Some(_)) => Err(errors::value("give input or path, not both")),
        }
    }

    /// A path, or what [`Input::new`] takes but a str.
    pub fn path_or_content(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        match source.extract::<PathBuf>() {
            Ok(path) => Ok(Input::File(path)),
            Err(_) => Self::content(source),
        }
    }

    fn content(input: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = input.extract::<&[u8]>() {
            return Ok(Self::bytes(bytes.to_vec()));
        }
        if input.hasattr(intern!(input.py(), "read"))? {
            return Ok(Input::Reader(Box::new(PyReader {
                object: input.clone().unbind(),
                rest: Cursor::default(),
            })));
        }
        let class = input.get_type().name()?;
        Err(pyo3::exceptions::PyTypeError::new_err(format!(
            "a {class} is no input: give a path, bytes, or a file-like object with read()"
        )))
    }

    fn bytes(bytes: Vec<u8>) -> Self {
        Input::Reader(Box::new(Cursor::new(bytes)))
    }

    /// The reader of the input; opens a file.
    pub fn open(self) -> io::Result<Box<dyn Read + Send>> {
        match self {
            Input::File(path) => Ok(Box::new(File::open(path)?)),
            Input::Reader(read) => Ok(read),
        }
    }
}

/// Reads from an object with `read`, binary or text.
struct PyReader {
    object: Py<PyAny>,
    rest: Cursor<Vec<u8>>,
}

impl Read for PyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.position() as usize == self.rest.get_ref().len() {
            let part = Python::attach(|py| -> PyResult<Vec<u8>> {
                let part = self.object.bind(py).call_method1(intern!(py, "read"), (PART_BYTES,))?;
                match part.cast::<PyString>() {
                    Ok(text) => Ok(text.extract::<String>()?.into_bytes()),
                    Err(_) => part.extract(),
                }
            });
            self.rest = Cursor::new(part.map_err(io::Error::other)?);
        }
        self.rest.read(buffer)
    }
}

/// The target of a document.
pub enum Output {
    Memory(Vec<u8>),
    File(BufWriter<File>),
    Object(BufWriter<PyWriter>),
}

impl Output {
    /// Without an object the bytes are the result; a path is created; anything else is written to.
    pub fn new(output: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(output) = output else { return Ok(Output::Memory(Vec::new())) };
        Ok(match output.extract::<PathBuf>() {
            Ok(path) => Output::File(BufWriter::with_capacity(PART_BYTES, File::create(path)?)),
            Err(_) => {
                let object = PyWriter(output.clone().unbind());
                Output::Object(BufWriter::with_capacity(PART_BYTES, object))
            }
        })
    }

    /// Writes what is left. Returns the bytes, if they are the result.
    pub fn finish<'py>(mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        py.detach(|| self.flush()).map_err(errors::of_io)?;
        match self {
            Output::Memory(bytes) => Ok(Some(PyBytes::new(py, &bytes).into_any())),
            _ => Ok(None),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Memory(out) => out.write(bytes),
            Output::File(out) => out.write(bytes),
            Output::Object(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Memory(_) => Ok(()),
            Output::File(out) => out.flush(),
            Output::Object(out) => out.flush(),
        }
    }
}

/// Writes to an object with `write`.
pub struct PyWriter(Py<PyAny>);

impl Write for PyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = Python::attach(|py| -> PyResult<usize> {
            let part = PyBytes::new(py, bytes);
            let written = self.0.bind(py).call_method1(intern!(py, "write"), (part,))?;
            // some objects return nothing and have taken everything
            Ok(written.extract().unwrap_or(bytes.len()))
        });
        written.map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
