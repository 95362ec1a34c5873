//! Terms of what is open, in one text that grows and shrinks with it.

use super::scope::Language;
use super::triple::TermTriple;
use super::vocabulary::{RDF_DIR_LANG_STRING, RDF_LANG_STRING, XSD_STRING};
use super::{Direction, ReadTerm};

/// A stretch of [`Terms`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    begin: usize,
    end: usize,
}

/// An IRI or blank node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    Iri(Stretch),
    Blank(Stretch),
    /// The text is invalid; the stretch says why.
    Bad(Stretch),
}

/// The object of a triple.
#[derive(Clone, Copy)]
pub(super) enum Object<'a> {
    Node(Node),
    Iri(&'a str),
    Typed(&'a str, Node),
    Spoken(&'a str, &'a Language, Option<Direction>),
    Triple(&'a TermTriple),
}

/// The terms of all elements that are open.
#[derive(Default)]
pub(super) struct Terms {
    text: String,
    /// Blank nodes made.
    made: u64,
}

impl Terms {
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.text.truncate(len);
    }

    pub(super) fn push(&mut self, text: &str) -> Stretch {
        let begin = self.text.len();
        self.text.push_str(text);
        Stretch { begin, end: self.text.len() }
    }

    pub(super) fn str(&self, of: Stretch) -> &str {
        &self.text[of.begin..of.end]
    }

    /// A blank node that the document does not name. Its label begins with a digit, as no name
    /// does.
    pub(super) fn new_blank(&mut self) -> Node {
        let number = self.new_number();
        self.numbered(number)
    }

    /// The number of such a blank node, which lives on when its term is forgotten.
    pub(super) fn new_number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// The blank node of a number.
    pub(super) fn numbered(&mut self, number: u64) -> Node {
        let label = number.to_string();
        Node::Blank(self.push(&label))
    }

    /// The term of a node, or why it is invalid.
    pub(super) fn node(&self, node: Node) -> Result<ReadTerm<'_>, &str> {
        match node {
            Node::Iri(iri) => Ok(ReadTerm::Iri(self.str(iri))),
            Node::Blank(label) => Ok(ReadTerm::Blank(self.str(label))),
            Node::Bad(why) => Err(self.str(why)),
        }
    }

    /// The term of an object, or why it is invalid.
    pub(super) fn object<'a>(&'a self, object: Object<'a>) -> Result<ReadTerm<'a>, &'a str> {
        let (lexical, language, datatype) = match object {
            Object::Triple(triple) => return Ok(ReadTerm::Triple(triple)),
            Object::Node(node) => return self.node(node),
            Object::Iri(iri) => return Ok(ReadTerm::Iri(iri)),
            Object::Typed(lexical, datatype) => match self.node(datatype)? {
                ReadTerm::Iri(RDF_LANG_STRING) => {
                    return Err("a literal without a language tag is no rdf:langString");
                }
                ReadTerm::Iri(RDF_DIR_LANG_STRING) => {
                    return Err("a literal without a language tag is no rdf:dirLangString");
                }
                ReadTerm::Iri(iri) => (lexical, None, iri),
                _ => return Err("a datatype is an IRI"),
            },
            Object::Spoken(lexical, Language::None, _) => (lexical, None, XSD_STRING),
            Object::Spoken(lexical, Language::Tag(tag), None) => {
                (lexical, Some(tag.as_str()), RDF_LANG_STRING)
            }
            Object::Spoken(lexical, Language::Tag(tag), direction) => {
                let (language, datatype) = (Some(tag.as_str()), RDF_DIR_LANG_STRING);
                return Ok(ReadTerm::Literal { lexical, language, direction, datatype });
            }
            Object::Spoken(_, Language::Bad(why), _) => return Err(why),
        };
        Ok(ReadTerm::Literal { lexical, language, direction: None, datatype })
    }
}
