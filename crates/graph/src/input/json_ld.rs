//! JSON-LD, from the reader of it to chunks of statements.

use std::cell::RefCell;
use std::io::Read;

use oxrdf::GraphName;
use oxrdfio::RdfFormat;
use snowmelt_jsonld::{Direction, OddNames, Options, ReadError, Told};

use super::document::{DocumentOptions, add};
use super::guard::{Bounds, Guarded};
use super::left_out::NO_LINE;
use crate::input::error::LoadError;
use crate::input::intern::{Fault, Interner, Parsed};
use crate::input::terms::OddTerms;
use crate::interrupt::Interrupt;

fn settings(options: &DocumentOptions) -> Options {
    Options {
        base: options.base.clone(),
        context: None,
        contexts: options.contexts.clone(),
        direction: Direction::Dropped,
        odd: match options.odd_terms {
            OddTerms::Refused => OddNames::LeftOut,
            OddTerms::Kept => OddNames::Kept,
        },
    }
}

/// Parses input number `source`; otherwise as [`super::document::parse_document`].
pub(super) fn parse_json_ld(
    read: impl Read,
    source: usize,
    options: DocumentOptions,
    cancel: &dyn Interrupt,
    mut empty: impl FnMut() -> Result<Parsed, LoadError>,
    mut full: impl FnMut(Parsed) -> Result<(), LoadError>,
    name: &str,
) -> Result<(), LoadError> {
    let charge = Some(options.budget.charge("a document of JSON-LD"));
    let format = RdfFormat::JsonLd { profile: Default::default() };
    let read = Guarded::new(read, format, Bounds { longest: options.longest, charge });
    let settings = settings(&options);
    let graph = options.graph.clone().map_or(GraphName::DefaultGraph, GraphName::NamedNode);
    let interner = RefCell::new(Interner::new());
    interner.borrow_mut().begin(source, empty()?);
    let named_graph = RefCell::new(None);
    let told = |told: Told| {
        let mut interner = interner.borrow_mut();
        let mut quad = match told {
            Told::Quad(quad) => quad,
            Told::LeftOut(message) => {
                interner.parsed.leave_out(Fault { line: NO_LINE, column: 0, message });
                return Ok(());
            }
        };
        if quad.graph_name == GraphName::DefaultGraph {
            quad.graph_name = graph.clone();
        } else if options.is_one_graph {
            *named_graph.borrow_mut() = Some(format!("the graph {} is named here", quad.graph_name));
            return Err(LoadError::Cancelled);
        }
        add(&mut interner, &quad);
        let parsed = &interner.parsed;
        if parsed.longest > options.longest {
            *named_graph.borrow_mut() = parsed.too_long(options.longest);
            return Err(LoadError::Cancelled);
        }
        if parsed.rows.len() >= options.chunk_rows || parsed.extra.len() >= options.chunk_bytes {
            full(interner.end())?;
            interner.begin(source, empty()?);
        }
        Ok(())
    };
    let ended = snowmelt_jsonld::read(read, &settings, || super::cancelled(cancel), told);
    let mut interner = interner.into_inner();
    if let Some(message) = named_graph.into_inner() {
        interner.parsed.fault = Some(Fault { line: 0, column: 0, message });
        return full(interner.end());
    }
    match ended {
        Ok(()) => full(interner.end()),
        Err(ReadError::Document(fault)) => {
            let line = if fault.context.is_some() { 0 } else { fault.line - 1 };
            let column = if fault.context.is_some() { 0 } else { fault.column };
            interner.parsed.fault = Some(Fault { line, column, message: fault.to_string() });
            full(interner.end())
        }
        Err(ReadError::Io(source)) => {
            super::cancelled(cancel)?;
            Err(LoadError::Input { file: name.to_owned(), source })
        }
        Err(ReadError::Caller(error)) => Err(error),
    }
}
