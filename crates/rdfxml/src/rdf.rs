//! The grammar of RDF/XML 1.2 over the events of XML.
//!
//! | folder | what it is |
//! |---|---|
//! | `vocabulary` | names with a meaning of their own |
//! | `scope` | bases and languages in scope |
//! | `triple` | triple terms |
//! | `terms` | terms of what is open |
//! | `reader` | productions, one per element |
//!
//! Base directions and `rdf:parseType="Triple"` count only where `rdf:version="1.2"` is announced;
//! annotations of triples count in any document.

pub(crate) mod reader;
pub(crate) mod scope;
mod terms;
pub(crate) mod triple;
pub(crate) mod vocabulary;

use crate::fault::ReadFault;
use triple::TermTriple;

/// A base direction of text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// Left to right.
    Ltr,
    /// Right to left.
    Rtl,
}

/// A term of a triple that was read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReadTerm<'a> {
    /// An absolute IRI.
    Iri(&'a str),
    /// The label of a blank node: an XML name where the document gives one, else digits.
    Blank(&'a str),
    /// A literal.
    Literal {
        /// Its lexical form.
        lexical: &'a str,
        /// Its language tag, in lower case.
        language: Option<&'a str>,
        /// Its base direction; only with a language.
        direction: Option<Direction>,
        /// Its datatype; `rdf:langString` with a language, `rdf:dirLangString` with a direction,
        /// too.
        datatype: &'a str,
    },
    /// A triple; only as an object.
    Triple(&'a TermTriple),
}

/// Takes what is read.
pub trait Sink {
    /// A triple. The subject is an IRI or a blank node.
    fn triple(&mut self, subject: ReadTerm<'_>, predicate: &str, object: ReadTerm<'_>);

    /// A triple that cannot be read, or something that makes none though it should; only when
    /// reading goes on behind faults.
    fn dropped(&mut self, fault: ReadFault);
}
