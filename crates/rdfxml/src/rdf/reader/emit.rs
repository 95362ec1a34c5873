//! Triples that are known.

use std::io::Read;

use super::super::terms::{Node, Object, Terms};
use super::super::vocabulary::{RDF_OBJECT, RDF_PREDICATE, RDF_STATEMENT, RDF_SUBJECT, RDF_TYPE};
use super::super::{ReadTerm, Sink};
use super::{Property, RdfXml};
use crate::fault::ReadError;

/// Hands out a triple, or says which of its terms is invalid and why.
fn tell(
    terms: &Terms,
    sink: &mut impl Sink,
    subject: Node,
    predicate: Result<&str, &str>,
    object: Object<'_>,
) -> Result<(), String> {
    let triple = || Ok::<_, &str>((terms.node(subject)?, predicate?, terms.object(object)?));
    match triple() {
        Ok((subject, predicate, object)) => {
            sink.triple(subject, predicate, object);
            Ok(())
        }
        Err(why) => Err(why.to_owned()),
    }
}

/// The IRI of a predicate.
fn predicate_of(terms: &Terms, predicate: Node) -> Result<&str, &str> {
    match terms.node(predicate)? {
        ReadTerm::Iri(iri) => Ok(iri),
        _ => Err("a predicate is an IRI"),
    }
}

/// Hands out the triple of a property, and if it has a name the statements about it.
fn tell_whole(
    terms: &Terms,
    sink: &mut impl Sink,
    subject: Node,
    property: Property,
    object: Object<'_>,
) -> Result<(), String> {
    tell(terms, sink, subject, predicate_of(terms, property.predicate), object)?;
    let Some(id) = property.id else { return Ok(()) };
    tell(terms, sink, id, Ok(RDF_TYPE), Object::Iri(RDF_STATEMENT))?;
    tell(terms, sink, id, Ok(RDF_SUBJECT), Object::Node(subject))?;
    tell(terms, sink, id, Ok(RDF_PREDICATE), Object::Node(property.predicate))?;
    tell(terms, sink, id, Ok(RDF_OBJECT), object)
}

impl<R: Read> RdfXml<R> {
    /// A triple whose terms all stand in the text of terms.
    pub(super) fn tell(
        &mut self,
        sink: &mut impl Sink,
        subject: Node,
        predicate: &str,
        object: Object<'_>,
    ) -> Result<(), ReadError> {
        tell(&self.terms, sink, subject, Ok(predicate), object).or_else(|why| self.fault(sink, why))
    }

    /// The triple of a property.
    pub(super) fn tell_property(
        &mut self,
        sink: &mut impl Sink,
        subject: Node,
        property: Property,
        object: Object<'_>,
    ) -> Result<(), ReadError> {
        tell_whole(&self.terms, sink, subject, property, object).or_else(|why| self.fault(sink, why))
    }

    /// The triple of an attribute whose value is a literal.
    pub(super) fn tell_attribute(
        &mut self,
        sink: &mut impl Sink,
        subject: Node,
        predicate: Node,
        index: usize,
    ) -> Result<(), ReadError> {
        let (_, value) = self.xml.attribute(index);
        let language = self.languages.last().expect("the document's language stays");
        let predicate = predicate_of(&self.terms, predicate);
        tell(&self.terms, sink, subject, predicate, Object::Spoken(value, language))
            .or_else(|why| self.fault(sink, why))
    }

    /// The triple of a property whose content was text, or XML.
    pub(super) fn literal(&mut self, sink: &mut impl Sink, property: Property) -> Result<(), ReadError> {
        let subject = self.subject();
        let object = match property.datatype {
            Some(datatype) => Object::Typed(&self.text, datatype),
            None => {
                let language = self.languages.last().expect("the document's language stays");
                Object::Spoken(&self.text, language)
            }
        };
        tell_whole(&self.terms, sink, subject, property, object).or_else(|why| self.fault(sink, why))
    }
}
