//! The grammar of RDF/XML 1.1 over the events of XML.
//!
//! | folder | what it is |
//! |---|---|
//! | `vocabulary` | names with a meaning of their own |
//! | `scope` | bases and languages in scope |
//! | `terms` | terms of what is open |
//! | `reader` | productions, one per element |
//!
//! Terms of RDF 1.2 have their place: a document that announces `rdf:version="1.2"` and uses what
//! only that has is told so, instead of being read as something else.

pub(crate) mod reader;
pub(crate) mod scope;
mod terms;
pub(crate) mod vocabulary;

use crate::fault::ReadFault;

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
        /// Its datatype; `rdf:langString` with a language.
        datatype: &'a str,
    },
}

/// Takes what is read.
pub trait Sink {
    /// A triple. The subject is no literal.
    fn triple(&mut self, subject: ReadTerm<'_>, predicate: &str, object: ReadTerm<'_>);

    /// A triple that cannot be read, or something that makes none though it should; only when
    /// reading goes on behind faults.
    fn dropped(&mut self, fault: ReadFault);
}
