//! RDF/XML, read as a stream of triples.
//!
//! Each folder uses those above it and none below:
//!
//! | folder | what it is |
//! |---|---|
//! | `fault` | errors and their places |
//! | `xml` | a parser of XML 1.0 (fifth edition) with namespaces, which does not validate |
//! | `rdf` | the grammar of RDF/XML 1.2 over its events |
//!
//! The parser of XML is also that of results of queries.
//!
//! Memory depends on what is open in the document, never on its length, but for the `rdf:ID`s
//! that were used: these may occur once.

mod fault;
mod rdf;
mod xml;

pub use fault::{ReadError, ReadFault};
pub use rdf::reader::{OnFault, Options, RdfXml};
pub use rdf::scope::OddTerms;
pub use rdf::triple::{OwnTerm, TermTriple};
pub use rdf::vocabulary::is_syntax_name;
pub use rdf::{Direction, ReadTerm, Sink};
pub use xml::XML as XML_NAMESPACE;
pub use xml::chars::{NAME_MORE, NAME_START, is_char, is_name_char, is_name_start};
pub use xml::parser::{Event as XmlEvent, Parser as XmlParser, XmlName};
