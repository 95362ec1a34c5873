//! Rows in XML (SPARQL Query Results XML Format; triple terms as SPARQL 1.2 has them).
//!
//! White space of literals is theirs, comments and instructions are nothing, and a section of
//! CDATA is text, as XML 1.0 says. Names count with their namespaces; elements that results do
//! not have are refused, and so is a document type, which could make much text of few bytes.
//!
//! Triple terms wait in a list while their parts are read: nothing here calls itself.

use std::io::Read;

use oxrdf::{BaseDirection, BlankNode, Literal, NamedNode, NamedOrBlankNode, Term, Triple, Variable};
use snowmelt_rdfxml::{ReadError, XML_NAMESPACE, XmlEvent, XmlParser};

use crate::columns::{Columns, MOST_TRIPLES, SolutionRow, no_rows, too_deep};
use crate::fault::Fault;

/// The namespace of results.
const RESULTS: &str = "http://www.w3.org/2005/sparql-results#";
/// The namespace of base directions.
const ITS: &str = "http://www.w3.org/2005/11/its";

/// Most bytes of a start tag. An attribute takes much more memory than the five bytes it may have.
const MOST_BYTES_OF_A_TAG: usize = 64 << 10;

/// An element of results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tag {
    Sparql,
    Head,
    Variable,
    Link,
    Boolean,
    Results,
    Result,
    Binding,
    Uri,
    Bnode,
    Literal,
    Triple,
    Subject,
    Predicate,
    Object,
}

const TAGS: [(&str, Tag); 15] = [
    ("sparql", Tag::Sparql),
    ("head", Tag::Head),
    ("variable", Tag::Variable),
    ("link", Tag::Link),
    ("boolean", Tag::Boolean),
    ("results", Tag::Results),
    ("result", Tag::Result),
    ("binding", Tag::Binding),
    ("uri", Tag::Uri),
    ("bnode", Tag::Bnode),
    ("literal", Tag::Literal),
    ("triple", Tag::Triple),
    ("subject", Tag::Subject),
    ("predicate", Tag::Predicate),
    ("object", Tag::Object),
];

/// A triple term that is being read.
#[derive(Default)]
struct Parts {
    subject: Option<NamedOrBlankNode>,
    predicate: Option<NamedNode>,
    object: Option<Term>,
}

/// Reads rows in XML.
pub(crate) struct XmlRows<R> {
    xml: XmlParser<R>,
    pub columns: Columns,
}

impl<R: Read> XmlRows<R> {
    /// Reads the head. Tokens have at most about `longest` bytes.
    pub fn new(reader: R, longest: usize) -> Result<Self, Fault> {
        let xml = XmlParser::undeclared(reader, longest, MOST_BYTES_OF_A_TAG);
        let mut rows = Self { xml, columns: Columns::default() };
        rows.must(Tag::Sparql)?;
        rows.must(Tag::Head)?;
        while let Some(tag) = rows.tag()? {
            match tag {
                Tag::Variable => {
                    let name = rows.attribute("", "name").unwrap_or_default();
                    let variable = Variable::new(name).map_err(|error| rows.wrong(error))?;
                    rows.columns.add(variable)?;
                }
                Tag::Link => {}
                _ => return Err(rows.misplaced()),
            }
            rows.must_end()?;
        }
        match rows.tag()? {
            Some(Tag::Results) => Ok(rows),
            Some(Tag::Boolean) => Err(no_rows()),
            Some(_) => Err(rows.misplaced()),
            None => Err(rows.wrong("there are no <results> behind the <head>")),
        }
    }

    /// The next row.
    pub fn next(&mut self) -> Result<Option<SolutionRow>, Fault> {
        match self.tag()? {
            Some(Tag::Result) => {}
            Some(_) => return Err(self.misplaced()),
            None => {
                self.must_end()?;
                while self.event()? != XmlEvent::Over {}
                return Ok(None);
            }
        }
        let mut row = vec![None; self.columns.all.len()];
        while let Some(tag) = self.tag()? {
            if tag != Tag::Binding {
                return Err(self.misplaced());
            }
            let name = self.attribute("", "name").unwrap_or_default();
            let Some(column) = self.columns.place(&name) else {
                return Err(self.wrong(format!("?{name} is bound, and not declared in the head")));
            };
            if row[column].replace(self.term()?).is_some() {
                return Err(self.wrong(format!("?{name} is bound twice in a result")));
            }
        }
        Ok(Some(row))
    }

    fn event(&mut self) -> Result<XmlEvent, Fault> {
        self.xml.next().map_err(|error| match error {
            ReadError::Io(error) => Fault::BrokenOff(error.to_string()),
            ReadError::Document(fault) if fault.is_cut => Fault::BrokenOff(fault.to_string()),
            ReadError::Document(fault) => Fault::Malformed(fault.to_string()),
        })
    }

    fn wrong(&mut self, why: impl std::fmt::Display) -> Fault {
        Fault::Malformed(self.xml.fault_here(why.to_string()).to_string())
    }

    fn misplaced(&mut self) -> Fault {
        let name = self.xml.name().qualified.to_owned();
        self.wrong(format!("<{name}> may not be here in results"))
    }

    /// The start tag that follows; none at the end of the element around it.
    fn tag(&mut self) -> Result<Option<Tag>, Fault> {
        loop {
            match self.event()? {
                XmlEvent::Start => break,
                XmlEvent::End | XmlEvent::Over => return Ok(None),
                XmlEvent::Comment | XmlEvent::Instruction => {}
                XmlEvent::Text if is_blank(self.xml.text()) => {}
                XmlEvent::Text => return Err(self.wrong("there may be no text here, only elements")),
            }
        }
        let name = self.xml.name();
        let known = TAGS.iter().find(|(tag, _)| *tag == name.local && is_of_results(name.namespace));
        match known {
            Some((_, tag)) => Ok(Some(*tag)),
            None => Err(self.misplaced()),
        }
    }

    /// Passes a start tag that must follow.
    fn must(&mut self, tag: Tag) -> Result<(), Fault> {
        match self.tag()? {
            Some(found) if found == tag => Ok(()),
            Some(_) => Err(self.misplaced()),
            None => Err(self.wrong(format!("there should be a {tag:?} here"))),
        }
    }

    /// Passes the end of an element.
    fn must_end(&mut self) -> Result<(), Fault> {
        if self.tag()?.is_some() { Err(self.misplaced()) } else { Ok(()) }
    }

    /// The value of an attribute of the element that begins.
    fn attribute(&self, namespace: &str, local: &str) -> Option<String> {
        let all = (0..self.xml.attributes()).map(|index| self.xml.attribute(index));
        let is_it = |of: &str| of == namespace || namespace.is_empty() && of == RESULTS;
        let mut found = all.filter(|(name, _)| name.local == local && is_it(name.namespace));
        found.next().map(|(_, value)| value.to_owned())
    }

    /// The text of the element that has begun, up to its end.
    fn text(&mut self) -> Result<String, Fault> {
        let mut text = String::new();
        loop {
            match self.event()? {
                XmlEvent::Text => text.push_str(self.xml.text()),
                XmlEvent::Comment | XmlEvent::Instruction => {}
                XmlEvent::End | XmlEvent::Over => return Ok(text),
                XmlEvent::Start => return Err(self.misplaced()),
            }
        }
    }

    /// The term in the element that has begun, up to the end of that element.
    fn term(&mut self) -> Result<Term, Fault> {
        let mut open: Vec<(Parts, Tag)> = Vec::new();
        loop {
            let mut term = match self.tag()? {
                Some(Tag::Uri) => self.iri()?.into(),
                Some(Tag::Bnode) => self.blank_node()?.into(),
                Some(Tag::Literal) => self.literal()?.into(),
                Some(Tag::Triple) if open.len() == MOST_TRIPLES => return Err(too_deep()),
                Some(Tag::Triple) => {
                    let part = self.tag()?;
                    open.push((Parts::default(), self.part(part)?));
                    continue;
                }
                Some(_) => return Err(self.misplaced()),
                None => return Err(self.wrong("there should be a term here")),
            };
            // ends with the part of a triple that follows, or with the outermost term
            loop {
                self.must_end()?;
                let Some((parts, place)) = open.last_mut() else { return Ok(term) };
                if !parts.put(*place, term) {
                    return Err(self.wrong("this is no part of a triple, or is there twice"));
                }
                if let Some(part) = self.tag()? {
                    *place = self.part(Some(part))?;
                    break;
                }
                term = match open.pop().and_then(|(parts, _)| parts.whole()) {
                    Some(triple) => triple.into(),
                    None => return Err(self.wrong("a triple has a subject, a predicate and an object")),
                };
            }
        }
    }

    /// The part of a triple that begins.
    fn part(&mut self, tag: Option<Tag>) -> Result<Tag, Fault> {
        match tag {
            Some(tag @ (Tag::Subject | Tag::Predicate | Tag::Object)) => Ok(tag),
            Some(_) => Err(self.misplaced()),
            None => Err(self.wrong("a triple has a subject, a predicate and an object")),
        }
    }

    fn iri(&mut self) -> Result<NamedNode, Fault> {
        let text = self.text()?;
        // no IRI has white space, but documents are indented
        NamedNode::new(trimmed(&text)).map_err(|error| self.wrong(format!("no IRI: {error}")))
    }

    fn blank_node(&mut self) -> Result<BlankNode, Fault> {
        let text = self.text()?;
        BlankNode::new(trimmed(&text)).map_err(|error| self.wrong(format!("no blank node: {error}")))
    }

    fn literal(&mut self) -> Result<Literal, Fault> {
        // an empty tag takes that of elements around it away (XML 1.0, 2.12)
        let tag = self.attribute(XML_NAMESPACE, "lang").filter(|tag| !tag.is_empty());
        let direction = match self.attribute(ITS, "dir").as_deref() {
            None => None,
            Some("ltr") => Some(BaseDirection::Ltr),
            Some("rtl") => Some(BaseDirection::Rtl),
            Some(_) => return Err(self.wrong("its:dir is ltr or rtl")),
        };
        let datatype = self.attribute("", "datatype").map(NamedNode::new).transpose();
        let datatype = datatype.map_err(|error| self.wrong(format!("no datatype: {error}")))?;
        let value = self.text()?;
        let literal = match (tag, direction) {
            (None, Some(_)) => return Err(self.wrong("its:dir may be only beside xml:lang")),
            (None, None) => {
                return Ok(match datatype {
                    Some(datatype) => Literal::new_typed_literal(value, datatype),
                    None => Literal::new_simple_literal(value),
                });
            }
            (Some(tag), None) => Literal::new_language_tagged_literal(value, tag),
            (Some(tag), Some(to)) => Literal::new_directional_language_tagged_literal(value, tag, to),
        };
        let literal = literal.map_err(|error| self.wrong(format!("no language tag: {error}")))?;
        if datatype.is_some_and(|datatype| datatype.as_ref() != literal.datatype()) {
            return Err(self.wrong("a literal with a language tag has another datatype"));
        }
        Ok(literal)
    }
}

impl Parts {
    /// Takes a part; false when it is none, or was there.
    fn put(&mut self, place: Tag, term: Term) -> bool {
        match (place, term) {
            (Tag::Subject, Term::NamedNode(node)) => self.subject.replace(node.into()).is_none(),
            (Tag::Subject, Term::BlankNode(node)) => self.subject.replace(node.into()).is_none(),
            (Tag::Predicate, Term::NamedNode(node)) => self.predicate.replace(node).is_none(),
            (Tag::Object, term) => self.object.replace(term).is_none(),
            _ => false,
        }
    }

    fn whole(self) -> Option<Triple> {
        Some(Triple { subject: self.subject?, predicate: self.predicate?, object: self.object? })
    }
}

/// Some endpoints write no namespace.
fn is_of_results(namespace: &str) -> bool {
    namespace == RESULTS || namespace.is_empty()
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

fn is_blank(text: &str) -> bool {
    text.chars().all(is_space)
}

fn trimmed(text: &str) -> &str {
    text.trim_matches(is_space)
}
