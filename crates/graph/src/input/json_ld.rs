//! JSON-LD: from its reader to chunks of statements.

use std::io::Read;

use oxrdf::GraphName;
use oxrdfio::RdfFormat;
use snowmelt_jsonld::{Direction, OddNames, Options, ReadError, Told};
use snowmelt_rdfxml::OddTerms;

use super::chunks::Chunks;
use super::guard::{Bounds, Guarded};
use super::left_out::NO_LINE;
use super::options::DocumentOptions;
use crate::input::error::{DocumentSetting, LoadError};
use crate::input::intern::Fault;
use crate::interrupt::Interrupt;

/// The reason why no more statements are taken.
enum Refused {
    /// A statement cannot be taken; the reader of JSON-LD does not know its place.
    Quad(Fault),
    Load(LoadError),
}

/// Parses a document into chunks.
pub(super) fn parse_json_ld(
    read: impl Read,
    options: &DocumentOptions,
    cancel: &dyn Interrupt,
    mut chunks: Chunks<'_>,
) -> Result<(), LoadError> {
    let charge = Some(options.budget.charge("a document of JSON-LD"));
    let format = RdfFormat::JsonLd { profile: Default::default() };
    let read = Guarded::new(read, format, Bounds { longest: options.longest, charge });
    let settings = Options {
        base: options.base.clone(),
        context: None,
        contexts: options.contexts.clone(),
        direction: Direction::Literal,
        odd: match options.odd_terms {
            OddTerms::Refused => OddNames::LeftOut,
            OddTerms::Kept => OddNames::Kept,
        },
    };
    let look = || super::cancelled(cancel).map_err(Refused::Load);
    let told = |told| take(&mut chunks, told, options);
    match snowmelt_jsonld::read(read, &settings, look, told) {
        Ok(()) => chunks.end(),
        Err(ReadError::Caller(Refused::Quad(fault))) => chunks.end_at(fault),
        Err(ReadError::Caller(Refused::Load(error))) => Err(error),
        Err(ReadError::Document(fault)) => {
            // If the fault is in a context, the message tells the place.
            let (line, column) =
                if fault.context.is_some() { (0, 0) } else { (fault.line - 1, fault.column) };
            let setting = fault.is_of_remote_context().then_some(DocumentSetting::Contexts);
            chunks.end_at(Fault { line, column, message: fault.to_string(), setting })
        }
        Err(ReadError::Io(source)) => Err(options.unreadable(source, cancel)),
    }
}

fn take(chunks: &mut Chunks<'_>, told: Told, options: &DocumentOptions) -> Result<(), Refused> {
    let mut quad = match told {
        Told::Quad(quad) => quad,
        Told::Prefix { name, iri } => {
            options.namespaces.add([(&*name, &*iri)].into_iter());
            return Ok(());
        }
        Told::LeftOut(message) => {
            chunks.leave_out(Fault { line: NO_LINE, column: 0, message, setting: None });
            return Ok(());
        }
    };
    if quad.graph_name == GraphName::DefaultGraph {
        quad.graph_name = options.graph_of_triples();
    } else if options.is_one_graph {
        let message = format!("the graph {} is named here", quad.graph_name);
        return Err(Refused::Quad(Fault { line: 0, column: 0, message, setting: None }));
    }
    chunks.add(&quad);
    if let Some(message) = chunks.too_long() {
        let setting = Some(DocumentSetting::LongestTerm);
        return Err(Refused::Quad(Fault { line: 0, column: 0, message, setting }));
    }
    chunks.hand_on().map_err(Refused::Load)
}
