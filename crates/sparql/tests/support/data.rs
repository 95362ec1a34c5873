//! Test data: files into quads into a database.

use std::path::Path;

use oxrdf::{GraphName, Quad};
use oxrdfio::{RdfFormat, RdfParser, RdfSerializer};

/// Reads an RDF file into a graph, under the base IRI of the file.
pub fn read_file(path: &Path, base: &str, graph: &GraphName) -> Result<Vec<Quad>, String> {
    let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let format =
        RdfFormat::from_extension(extension).ok_or_else(|| format!("{}: unknown format", path.display()))?;
    let parser = RdfParser::from_format(format)
        .with_base_iri(base)
        .map_err(|e| e.to_string())?
        .with_default_graph(graph.clone())
        .rename_blank_nodes();
    parser.for_slice(&bytes).map(|quad| quad.map_err(|e| format!("{}: {e}", path.display()))).collect()
}

/// Quads as N-Quads.
pub fn n_quads(quads: &[Quad]) -> Vec<u8> {
    let mut writer = RdfSerializer::from_format(RdfFormat::NQuads).for_writer(Vec::new());
    for quad in quads {
        writer.serialize_quad(quad).expect("writing to memory does not fail");
    }
    writer.finish().expect("writing to memory does not fail")
}
