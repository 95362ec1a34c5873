//! From the bytes of an RDF document to batches of terms and rows.
//!
//! 1. [`source`] opens a file, stdin or a reader, decompresses it and detects its format.
//! 2. [`guard`] measures a document's nesting before a parser recurses over it.
//! 3. [`ntriples`] scans N-Triples and N-Quads; [`rdf_xml`] and [`json_ld`] call readers of ours,
//!    and [`document`] calls oxrdfio for the other formats. All fill [`chunks`]. A lenient load
//!    finds faults in Turtle and TriG with [`turtle`].
//! 4. [`intern`] makes of each chunk its own dictionary and rows of references into it.
//!
//! Loads and transactions both build on this; nothing here knows a database.

pub(crate) mod bounded;
mod chunks;
pub(crate) mod document;
pub(crate) mod error;
mod foreign;
#[doc(hidden)]
pub mod fuzz;
mod guard;
pub(crate) mod hash;
pub(crate) mod intern;
mod json_ld;
pub(crate) mod left_out;
mod looking;
pub(crate) mod ntriples;
pub(crate) mod options;
mod rdf_xml;
mod room;
pub(crate) mod source;
mod terms;
mod turtle;
#[cfg(test)]
mod work;

use oxrdf::NamedNode;

use crate::interrupt::Interrupt;
use error::{LoadError, LoadOption};

/// Returns an error if the work was cancelled.
pub(crate) fn cancelled(cancel: &dyn Interrupt) -> Result<(), LoadError> {
    if cancel.is_set() { Err(LoadError::Cancelled) } else { Ok(()) }
}

/// The graph that an option names.
pub(crate) fn graph_name(iri: Option<&str>) -> Result<Option<NamedNode>, LoadError> {
    let Some(iri) = iri else { return Ok(None) };
    let node = NamedNode::new(iri).map_err(|e| LoadError::Option {
        option: LoadOption::Graph,
        message: format!("{iri} is no absolute IRI: {e}"),
    })?;
    Ok(Some(node))
}
