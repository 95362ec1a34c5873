//! Productions of the grammar, one per element that begins.
//!
//! 1. An element that begins is a node, a property or part of an XML literal, by the element
//!    around it. Its attributes are told apart by their roles.
//! 2. Triples are handed out as soon as all their terms are known: a literal's when its property
//!    ends, all others when the object begins.
//! 3. An invalid term is kept as the reason why it is invalid. Each triple that needs it is
//!    dropped, or ends the reading.

mod attributes;
mod elements;
mod emit;

use std::collections::HashSet;
use std::io::Read;

use super::scope::{Base, Language, OddTerms, first_base};
use super::terms::{Node, Terms};
use super::triple::Within;
use super::{Direction, Sink};
use crate::fault::{ReadError, ReadFault};
use crate::xml::canonical::Canonical;
use crate::xml::chars::is_blank;
use crate::xml::limits::too_long;
use crate::xml::parser::{Event, Parser};
use attributes::Roles;

/// Bytes of what is open: its names, terms, bases and languages.
const MOST_OPEN: usize = 64 << 20;

/// The fate of a triple that is no RDF, in XML that is well formed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnFault {
    /// Reading ends.
    Stop,
    /// The triple that cannot be read is dropped, and reading goes on. An `rdf:ID` may come
    /// again.
    Drop,
}

/// How to read.
#[derive(Clone, Debug)]
pub struct Options {
    /// The document's own IRI.
    pub base: Option<String>,
    /// The fate of faults.
    pub on_fault: OnFault,
    /// Treatment of terms outside of the RFCs.
    pub odd: OddTerms,
    /// Bytes of the longest term and tag.
    pub longest: usize,
}

/// A property element.
#[derive(Clone, Copy)]
struct Property {
    predicate: Node,
    /// The name of the triple, if it has one.
    id: Option<Node>,
    /// The reifier of the triple, if it has one.
    annotation: Option<Node>,
    datatype: Option<Node>,
    /// Its object has been told.
    has_object: bool,
}

/// The role of an open element.
#[derive(Clone, Copy)]
enum ElementKind {
    /// `rdf:RDF`.
    Nodes,
    Node {
        subject: Node,
        members: u64,
    },
    Property(Property),
    /// A property whose content is an XML literal.
    Literal(Property),
    /// A property whose content is a list; the number of its last cell so far.
    Collection(Property, Option<u64>),
    /// A property whose content is a triple.
    Triple(Property),
}

/// An element that is open, and what there was before it.
struct Element {
    kind: ElementKind,
    terms: usize,
    bases: usize,
    languages: usize,
    directions: usize,
    was_newer: bool,
}

/// Reads a document, triple by triple.
pub struct RdfXml<R> {
    xml: Parser<R>,
    on_fault: OnFault,
    odd: OddTerms,
    longest: usize,
    open: Vec<Element>,
    terms: Terms,
    bases: Vec<Base>,
    languages: Vec<Language>,
    directions: Vec<Direction>,
    /// Triple terms that are being read, outermost first.
    within: Vec<Within>,
    /// Bytes of bases and languages.
    scope_bytes: usize,
    roles: Roles,
    /// Text of the property that is open.
    text: String,
    /// IRIs that are being made.
    iri: String,
    canonical: Canonical,
    /// Hashes of the `rdf:ID`s used, with their bases.
    ids: HashSet<u128>,
    /// Namespaces whose names are IRIs.
    sound: Vec<Box<str>>,
    /// RDF 1.2 is announced around or on what is open.
    is_newer: bool,
}

impl<R: Read> RdfXml<R> {
    /// A reader of a document.
    ///
    /// # Errors
    /// A base that is no IRI, in words.
    pub fn new(read: R, options: &Options) -> Result<Self, String> {
        Ok(RdfXml {
            xml: Parser::new(read, options.longest),
            on_fault: options.on_fault,
            odd: options.odd,
            longest: options.longest,
            open: Vec::new(),
            terms: Terms::default(),
            bases: vec![first_base(options.base.as_deref())?],
            languages: vec![Language::None],
            directions: Vec::new(),
            within: Vec::new(),
            scope_bytes: 0,
            roles: Roles::default(),
            text: String::new(),
            iri: String::new(),
            canonical: Canonical::default(),
            ids: HashSet::new(),
            sound: Vec::new(),
            is_newer: false,
        })
    }

    /// Bytes held for what is open and for the `rdf:ID`s that were used, about.
    pub fn held_bytes(&self) -> usize {
        self.open_bytes() + self.ids.capacity() * (size_of::<u128>() + 1)
    }

    fn open_bytes(&self) -> usize {
        self.xml.held_bytes()
            + self.canonical.held_bytes()
            + self.open.capacity() * size_of::<Element>()
            + self.terms.len()
            + self.scope_bytes
            + self.within.iter().filter_map(|within| Some(within.first.as_ref()?.bytes())).sum::<usize>()
    }

    /// The prefixes declared so far, with the first namespace of each; few are remembered.
    pub fn declared(&self) -> impl Iterator<Item = (&str, &str)> {
        self.xml.declared()
    }

    /// Elements that are open.
    pub fn levels(&self) -> usize {
        self.xml.levels()
    }

    /// A fault at what was read last, for limits that the caller sets.
    pub fn fault_here(&mut self, message: impl Into<String>) -> ReadFault {
        self.xml.place().fault(message)
    }

    /// Reads on for one event of XML; false at the end. What it hands out is bounded by the
    /// longest tag.
    ///
    /// # Errors
    /// Bytes that cannot be read, no XML, or no RDF when faults stop it. Nothing can be read
    /// behind it.
    pub fn step(&mut self, sink: &mut impl Sink) -> Result<bool, ReadError> {
        match self.xml.next()? {
            Event::Start => self.start(sink)?,
            Event::End => self.end(sink)?,
            Event::Text => self.content(sink)?,
            event @ (Event::Comment | Event::Instruction) => {
                if let Some(Element { kind: ElementKind::Literal(_), .. }) = self.open.last() {
                    self.canonical.write(event, &self.xml, &mut self.text);
                    self.check_length()?;
                }
            }
            Event::Over => return Ok(false),
        }
        Ok(true)
    }

    fn check_length(&mut self) -> Result<(), ReadError> {
        if self.text.len() > self.longest { Err(self.xml.wrong(too_long(self.longest))) } else { Ok(()) }
    }

    /// Something is wrong that makes no triple.
    fn fault(&mut self, sink: &mut impl Sink, why: impl Into<String>) -> Result<(), ReadError> {
        if self.on_fault == OnFault::Stop {
            return Err(self.xml.wrong(why));
        }
        sink.dropped(self.xml.place().fault(why));
        Ok(())
    }

    /// An invalid term: each triple that needs it will be dropped.
    fn bad(&mut self, why: &str) -> Result<Node, ReadError> {
        if self.on_fault == OnFault::Stop {
            return Err(self.xml.wrong(why));
        }
        Ok(Node::Bad(self.terms.push(why)))
    }

    fn content(&mut self, sink: &mut impl Sink) -> Result<(), ReadError> {
        match self.open.last().map(|element| element.kind) {
            Some(ElementKind::Property(Property { has_object: false, .. })) => {
                self.text.push_str(self.xml.text());
                self.check_length()
            }
            Some(ElementKind::Literal(_)) => {
                self.canonical.write(Event::Text, &self.xml, &mut self.text);
                self.check_length()
            }
            _ if is_blank(self.xml.text()) => Ok(()),
            _ => self.fault(sink, "there may be no text here, only elements"),
        }
    }

    fn start(&mut self, sink: &mut impl Sink) -> Result<(), ReadError> {
        let parent = self.open.last().map(|element| element.kind);
        if let Some(ElementKind::Literal(_)) = parent {
            self.canonical.write(Event::Start, &self.xml, &mut self.text);
            return self.check_length();
        }
        let before = (self.terms.len(), self.bases.len(), self.languages.len());
        let (directions, was_newer) = (self.directions.len(), self.is_newer);
        self.sort_attributes(sink)?;
        let of = |subject| ElementKind::Node { subject, members: 0 };
        let kind = match parent {
            None if self.is_rdf_rdf() => self.root(sink)?,
            None | Some(ElementKind::Nodes | ElementKind::Literal(_)) => of(self.node(sink)?),
            Some(ElementKind::Node { subject, .. }) => self.property(sink, subject)?,
            Some(ElementKind::Property(property)) => of(self.object_node(sink, property)?),
            Some(ElementKind::Collection(property, last)) => of(self.member(sink, property, last)?),
            Some(ElementKind::Triple(_)) => {
                if let Some(within) = self.within.last_mut() {
                    within.nodes += 1;
                }
                of(self.node(sink)?)
            }
        };
        let (terms, bases, languages) = before;
        self.open.push(Element { kind, terms, bases, languages, directions, was_newer });
        if self.open_bytes() > MOST_OPEN {
            return Err(self.xml.wrong(format!(
                "nested elements with their names, IRIs and bases have more than {MOST_OPEN} bytes, the limit"
            )));
        }
        Ok(())
    }

    fn end(&mut self, sink: &mut impl Sink) -> Result<(), ReadError> {
        let Some(element) = self.open.last() else { return Ok(()) };
        match element.kind {
            ElementKind::Literal(_) if self.canonical.levels() > 0 => {
                self.canonical.write(Event::End, &self.xml, &mut self.text);
                return self.check_length();
            }
            ElementKind::Literal(property) | ElementKind::Property(property) if !property.has_object => {
                self.literal(sink, property)?;
            }
            ElementKind::Collection(property, last) => self.last_member(sink, property, last)?,
            ElementKind::Triple(property) => self.triple_term(sink, property)?,
            ElementKind::Literal(_)
            | ElementKind::Property(_)
            | ElementKind::Nodes
            | ElementKind::Node { .. } => {}
        }
        if let Some(Element { terms, bases, languages, directions, was_newer, .. }) = self.open.pop() {
            self.directions.truncate(directions);
            self.is_newer = was_newer;
            self.terms.truncate(terms);
            for base in self.bases.drain(bases..) {
                self.scope_bytes -= base.held_bytes();
            }
            for language in self.languages.drain(languages..) {
                self.scope_bytes -= language.held_bytes();
            }
        }
        Ok(())
    }

    fn base(&self) -> &Base {
        self.bases.last().expect("the document's base stays")
    }

    /// Opens a base and a language.
    fn enter(&mut self, base: Option<Base>, language: Option<Language>) {
        self.scope_bytes += base.as_ref().map_or(0, Base::held_bytes);
        self.scope_bytes += language.as_ref().map_or(0, Language::held_bytes);
        self.bases.extend(base);
        self.languages.extend(language);
    }

    /// The subject of the node that the innermost property is of.
    fn subject(&self) -> Node {
        let node = self.open.iter().rev().find_map(|element| match element.kind {
            ElementKind::Node { subject, .. } => Some(subject),
            _ => None,
        });
        node.expect("a property is within a node")
    }
}
