//! `parse` and `serialize`: documents without a database.

use std::path::PathBuf;

use oxrdfio::{RdfFormat, RdfParseError, RdfParser, RdfSerializer, WriterQuadSerializer};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use snowmelt::Quad;
use snowmelt_rdfxml::{OnFault, ReadError};

use crate::errors::{self, TextPlace};
use crate::formats;
use crate::interrupt::Cancel;
use crate::rdf_xml::RdfXmlQuads;
use crate::reading::Reading;
use crate::statements::PyQuad;
use crate::streams::{Input, Output};
use crate::terms::PyTriple;

/// The quads of a document, parsed as they are asked for.
#[pyclass(name = "QuadParser", module = "snowmelt", frozen)]
pub struct PyQuadParser {
    reading: Reading<Quad>,
}

#[pymethods]
impl PyQuadParser {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyQuad>> {
        Ok(self.reading.next(py)?.map(PyQuad))
    }
}

/// Parses a document: its content or an object to read it from as `input`, or a file as `path`.
#[pyfunction]
#[pyo3(signature = (input=None, format=None, *, path=None, base_iri=None, without_named_graphs=false,
                    rename_blank_nodes=false, lenient=false))]
pub fn parse(
    input: Option<&Bound<'_, PyAny>>,
    format: Option<&Bound<'_, PyAny>>,
    path: Option<PathBuf>,
    base_iri: Option<&str>,
    without_named_graphs: bool,
    rename_blank_nodes: bool,
    lenient: bool,
) -> PyResult<PyQuadParser> {
    let format = formats::rdf_format_to_read(format, path.as_deref())?;
    let name = path.as_ref().map_or_else(|| "<input>".to_owned(), |path| path.display().to_string());
    let read = Input::new(input, path)?.open()?;
    if format == RdfFormat::RdfXml {
        let on_fault = if lenient { OnFault::Drop } else { OnFault::Stop };
        let quads = RdfXmlQuads::new(read, base_iri, on_fault, rename_blank_nodes).map_err(errors::value)?;
        let quads = quads.map(move |quad| quad.map_err(|error| not_read(error, &name)));
        return Ok(PyQuadParser { reading: Reading::new(quads, Cancel::default()) });
    }
    let mut parser = RdfParser::from_format(format);
    if let Some(base) = base_iri {
        parser = parser.with_base_iri(base).map_err(|error| errors::value(format!("{base:?}: {error}")))?;
    }
    if without_named_graphs {
        parser = parser.without_named_graphs();
    }
    if rename_blank_nodes {
        parser = parser.rename_blank_nodes();
    }
    if lenient {
        parser = parser.lenient();
    }
    let quads = parser.for_reader(read).map(move |quad| quad.map_err(|error| failed(error, &name)));
    Ok(PyQuadParser { reading: Reading::new(quads, Cancel::default()) })
}

fn failed(error: RdfParseError, name: &str) -> PyErr {
    match error {
        RdfParseError::Io(error) => errors::of_io(error),
        RdfParseError::Syntax(error) => {
            let place = error
                .location()
                .map(|place| TextPlace { line: place.start.line + 1, column: place.start.column + 1 });
            errors::syntax("DocumentError", &error.to_string(), name, place.unwrap_or_default(), "")
        }
    }
}

fn not_read(error: ReadError, name: &str) -> PyErr {
    match error {
        ReadError::Io(error) => errors::of_io(error),
        ReadError::Document(fault) => {
            let place = TextPlace { line: fault.line, column: fault.column };
            errors::syntax("DocumentError", &fault.message, name, place, "")
        }
    }
}

/// Writes triples or quads as a document: as bytes, or to a file or file-like object.
#[pyfunction]
#[pyo3(signature = (input, output=None, format=None, *, prefixes=None, base_iri=None))]
pub fn serialize<'py>(
    py: Python<'py>,
    input: &Bound<'py, PyAny>,
    output: Option<&Bound<'py, PyAny>>,
    format: Option<&Bound<'py, PyAny>>,
    prefixes: Option<&Bound<'py, PyDict>>,
    base_iri: Option<&str>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let format = formats::rdf_format_to_write(format, output)?;
    let mut output = Output::new(output)?;
    let mut writer = serializer(format, prefixes, base_iri)?.for_writer(&mut output);
    for statement in input.try_iter()? {
        write_one(&mut writer, &statement?, format)?;
    }
    writer.finish().map_err(errors::of_io)?;
    output.finish(py)
}

fn write_one(
    writer: &mut WriterQuadSerializer<&mut Output>,
    statement: &Bound<'_, PyAny>,
    format: oxrdfio::RdfFormat,
) -> PyResult<()> {
    if let Ok(triple) = statement.cast::<PyTriple>() {
        return writer.serialize_triple(&triple.get().0).map_err(errors::of_io);
    }
    let quad = &statement.cast::<PyQuad>()?.get().0;
    if !format.supports_datasets() && !quad.graph_name.is_default_graph() {
        return Err(errors::value(format!("{format} has no named graphs")));
    }
    writer.serialize_quad(quad).map_err(errors::of_io)
}

/// A serializer with prefixes and a base.
pub fn serializer(
    format: oxrdfio::RdfFormat,
    prefixes: Option<&Bound<'_, PyDict>>,
    base_iri: Option<&str>,
) -> PyResult<RdfSerializer> {
    let bad = |iri: &str, error: &dyn std::fmt::Display| errors::value(format!("{iri:?}: {error}"));
    let mut serializer = RdfSerializer::from_format(format);
    for (name, iri) in prefixes.into_iter().flatten() {
        let (name, iri): (String, String) = (name.extract()?, iri.extract()?);
        serializer = serializer.with_prefix(name, &iri).map_err(|error| bad(&iri, &error))?;
    }
    if let Some(base) = base_iri {
        serializer = serializer.with_base_iri(base).map_err(|error| bad(base, &error))?;
    }
    Ok(serializer)
}
