//! A parser of XML 1.0 (fifth edition) with namespaces, which does not validate.
//!
//! | folder | what it is |
//! |---|---|
//! | `chars` | classes of characters |
//! | `decoding` | from bytes in any encoding to characters with normalised line ends |
//! | `window` | the part of the text that is being looked at, and its place |
//! | `cursor` | a place in a text, and what may stand there |
//! | `limits` | what a document may cost |
//! | `entities` | what is declared, and what names of entities stand for |
//! | `doctype` | document type declarations |
//! | `declaration` | `<?xml … ?>` |
//! | `tag` | start tags: names and attributes, normalised |
//! | `namespaces` | the prefixes in scope |
//! | `parser` | events |
//! | `canonical` | content as exclusive canonical XML |
//!
//! 1. Bytes are decoded into a window of text. A token that does not end in it is looked at again
//!    when the window has grown by a fixed part of it, so the work is linear.
//! 2. A reference to an entity with a text pushes that text as a frame; tokens are taken from the
//!    innermost frame. Elements end in the frame they begin in.
//! 3. Nothing calls itself, but declarations in parameter entities, to a fixed depth.
//!
//! Nothing outside of the document is fetched. A document that needs more is an error.

pub(crate) mod canonical;
pub(crate) mod chars;
mod cursor;
mod declaration;
mod decoding;
mod doctype;
mod entities;
pub(crate) mod limits;
mod namespaces;
pub(crate) mod parser;
mod tag;
mod window;

/// The namespace of `xml:lang` and `xml:base`.
pub const XML: &str = "http://www.w3.org/XML/1998/namespace";
/// The namespace of declarations of namespaces.
const XMLNS: &str = "http://www.w3.org/2000/xmlns/";
