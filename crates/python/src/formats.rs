//! Formats of documents and of answers.

use std::path::{Path, PathBuf};

use oxrdfio::{JsonLdProfile, JsonLdProfileSet, RdfFormat};
use pyo3::prelude::*;
use sparesults::QueryResultsFormat;

use crate::errors;
use crate::value_class::format_class;

format_class! {
    /// A format of RDF documents.
    "RdfFormat": PyRdfFormat(RdfFormat)
    {
        #[classattr]
        const N3: Self = PyRdfFormat(RdfFormat::N3);
        #[classattr]
        const N_QUADS: Self = PyRdfFormat(RdfFormat::NQuads);
        #[classattr]
        const N_TRIPLES: Self = PyRdfFormat(RdfFormat::NTriples);
        #[classattr]
        const RDF_XML: Self = PyRdfFormat(RdfFormat::RdfXml);
        #[classattr]
        const TRIG: Self = PyRdfFormat(RdfFormat::TriG);
        #[classattr]
        const TURTLE: Self = PyRdfFormat(RdfFormat::Turtle);

        #[classattr]
        #[pyo3(name = "JSON_LD")]
        fn json_ld() -> Self {
            PyRdfFormat(RdfFormat::JsonLd { profile: JsonLdProfileSet::empty() })
        }

        #[classattr]
        #[pyo3(name = "STREAMING_JSON_LD")]
        fn streaming_json_ld() -> Self {
            PyRdfFormat(RdfFormat::JsonLd { profile: JsonLdProfile::Streaming.into() })
        }

        /// Whether it has named graphs.
        #[getter]
        fn supports_datasets(&self) -> bool {
            self.0.supports_datasets()
        }

        /// False: triples as terms are not supported.
        #[getter]
        fn supports_rdf_star(&self) -> bool {
            false
        }
    }
}

format_class! {
    /// A format of answers.
    "QueryResultsFormat": PyQueryResultsFormat(QueryResultsFormat)
    {
        #[classattr]
        const CSV: Self = PyQueryResultsFormat(QueryResultsFormat::Csv);
        #[classattr]
        const JSON: Self = PyQueryResultsFormat(QueryResultsFormat::Json);
        #[classattr]
        const TSV: Self = PyQueryResultsFormat(QueryResultsFormat::Tsv);
        #[classattr]
        const XML: Self = PyQueryResultsFormat(QueryResultsFormat::Xml);
    }
}

/// A format as an argument: an object, or its name, extension or media type.
pub fn rdf_format(given: &Bound<'_, PyAny>) -> PyResult<RdfFormat> {
    if let Ok(format) = given.extract::<PyRdfFormat>() {
        return Ok(format.0);
    }
    let name: String = given.extract()?;
    let short = name.to_ascii_lowercase().replace(['-', '_', ' '], "");
    let known = match short.as_str() {
        "ntriples" => Some(RdfFormat::NTriples),
        "nquads" => Some(RdfFormat::NQuads),
        "turtle" => Some(RdfFormat::Turtle),
        "rdfxml" | "rdf/xml" | "xml" => Some(RdfFormat::RdfXml),
        _ => RdfFormat::from_extension(&short).or_else(|| RdfFormat::from_media_type(&name)),
    };
    known.ok_or_else(|| unknown(&name))
}

/// The format of a document to be written, told by the name of the file where it is not given.
pub fn rdf_format_to_write(
    given: Option<&Bound<'_, PyAny>>,
    output: Option<&Bound<'_, PyAny>>,
) -> PyResult<RdfFormat> {
    match given {
        Some(given) => rdf_format(given),
        None => by_name(output.and_then(|output| output.extract().ok()), RdfFormat::from_extension),
    }
}

/// The format of a document to be read, likewise.
pub fn rdf_format_to_read(given: Option<&Bound<'_, PyAny>>, path: Option<&Path>) -> PyResult<RdfFormat> {
    match given {
        Some(given) => rdf_format(given),
        None => by_name(path.map(Path::to_owned), RdfFormat::from_extension),
    }
}

/// The format of an answer to be written.
pub fn results_format(
    given: Option<&Bound<'_, PyAny>>,
    output: Option<&Bound<'_, PyAny>>,
) -> PyResult<QueryResultsFormat> {
    let Some(given) = given else {
        return by_name(output.and_then(|output| output.extract().ok()), QueryResultsFormat::from_extension);
    };
    if let Ok(format) = given.extract::<PyQueryResultsFormat>() {
        return Ok(format.0);
    }
    let name: String = given.extract()?;
    let known = QueryResultsFormat::from_extension(&name.to_ascii_lowercase());
    known.or_else(|| QueryResultsFormat::from_media_type(&name)).ok_or_else(|| unknown(&name))
}

fn by_name<F>(path: Option<PathBuf>, from_extension: impl Fn(&str) -> Option<F>) -> PyResult<F> {
    let Some(path) = path else {
        return Err(errors::value("give the format: there is no file whose name would tell it"));
    };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    from_extension(extension).ok_or_else(|| unknown(&path.display().to_string()))
}

fn unknown(name: &str) -> PyErr {
    errors::named("FormatError", &format!("the format of {name:?} is unknown"))
}
