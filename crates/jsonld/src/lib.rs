//! JSON-LD 1.1 to RDF: the algorithms of "JSON-LD 1.1 Processing Algorithms and API" (W3C, 2020).
//!
//! Each module uses those above it and none below:
//!
//! | module | what it is |
//! |---|---|
//! | `fault` | errors with their places |
//! | `json` | a document as a tree with places, bounded in depth |
//! | `contexts` | contexts by their addresses: files that were named, never the network |
//! | `context` | contexts in force, and how one follows from another (section 4) |
//! | `expand` | expansion (section 5) |
//! | `emit` | from expanded nodes to quads (section 7), canonical JSON |
//!
//! A document is kept as a whole. Recursion follows the nesting of the document, which is
//! bounded ([`json::MOST_LEVELS`]); terms of a context that depend on each other are defined
//! without recursion. Results that depend on a context alone are kept.

mod context;
mod contexts;
mod emit;
mod expand;
mod fault;
mod json;

use std::cell::RefCell;
use std::io::Read;

use oxrdf::Quad;

pub use contexts::{Contexts, ContextsError};
pub use fault::{Fault, ReadError};

use context::{Context, Process};
use expand::Expander;
use fault::Misuse;

/// How text with a base direction becomes a literal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// The direction is left out.
    #[default]
    Dropped,
    /// It is in a datatype of the namespace `https://www.w3.org/ns/i18n#`.
    Datatype,
    /// A blank node has value, language and direction.
    Compound,
    /// It is that of the literal, as RDF 1.2 has it: an rdf:dirLangString. Without a language it is
    /// left out, since such a literal needs one.
    Literal,
}

/// The treatment of IRIs and language tags outside of the RFCs, such as `…#a#b`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OddNames {
    /// Quads that need them are left out, as the specification has it.
    #[default]
    LeftOut,
    /// They are kept, if Turtle's grammar allows them.
    Kept,
}

/// Statements of a document.
#[derive(Debug)]
pub enum Told {
    /// A quad.
    Quad(Quad),
    /// The reason why a quad is none: the specification leaves it out.
    LeftOut(String),
    /// A prefix that a context defines. They come at the end, each name once; few are remembered.
    Prefix {
        /// Its name.
        name: String,
        /// The IRI that it stands for.
        iri: String,
    },
}

/// How to read a document.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The IRI of the document, against which relative ones are resolved.
    pub base: Option<String>,
    /// A context in force at the beginning, as its address.
    pub context: Option<String>,
    /// Contexts that a document may name.
    pub contexts: Contexts,
    /// Text with a direction.
    pub direction: Direction,
    /// Terms outside of the RFCs.
    pub odd: OddNames,
}

/// Reads a document. `told` takes what it says; `look` is asked now and then whether to go on.
/// Either ends the reading with its error.
pub fn read<E>(
    mut input: impl Read,
    options: &Options,
    look: impl Fn() -> Result<(), E>,
    told: impl FnMut(Told) -> Result<(), E>,
) -> Result<(), ReadError<E>> {
    let mut text = Vec::new();
    input.read_to_end(&mut text)?;
    let ended = RefCell::new(None);
    let stop = || match look() {
        Ok(()) => false,
        Err(error) => {
            *ended.borrow_mut() = Some(error);
            true
        }
    };
    let process = Process::new(&options.contexts, options.base.as_deref(), text, &stop);
    let fault = |misuse: Misuse| process.error(misuse, || ended.borrow_mut().take());
    let document = process.document().map_err(fault)?;
    let mut active = Context::initial(options.base.clone());
    if let Some(address) = &options.context {
        active = process.named(&active, address).map_err(fault)?;
    }
    let mut emitter = emit::Emitter::new(options.direction, options.odd, told);
    let expander = Expander::new(&process, options.base.clone());
    // Elements of an outermost list do not depend on each other.
    let elements = match document.value {
        json::Value::Array(elements) => elements,
        _ => vec![document],
    };
    for element in elements {
        let expanded = expander.document(&active, &element).map_err(fault)?;
        drop(element);
        emitter.default_graph(&expanded)?;
        process.keeps_nothing();
    }
    process.prefixes().into_iter().try_for_each(|(name, iri)| emitter.prefix(name, iri))
}
