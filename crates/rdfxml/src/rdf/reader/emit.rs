//! Triples that are known.

use std::io::Read;

use super::super::terms::{Node, Object, Terms};
use super::super::triple::{MOST_LEVELS, TermTriple, Within};
use super::super::vocabulary::{
    RDF_OBJECT, RDF_PREDICATE, RDF_REIFIES, RDF_STATEMENT, RDF_SUBJECT, RDF_TYPE,
};
use super::super::{ReadTerm, Sink};
use super::{Property, RdfXml};
use crate::fault::ReadError;

/// The takers of triples: the sink, or the innermost triple term that is being read.
struct Out<'a, S> {
    sink: &'a mut S,
    within: Option<&'a mut Within>,
}

impl<S: Sink> Out<'_, S> {
    fn triple(&mut self, subject: ReadTerm<'_>, predicate: &str, object: ReadTerm<'_>) {
        let Some(within) = &mut self.within else {
            return self.sink.triple(subject, predicate, object);
        };
        within.triples += 1;
        if within.first.is_none() {
            within.first = Some(TermTriple::new(subject, predicate, object));
        }
    }
}

/// Hands out a triple, or says which of its terms is invalid and why.
fn tell(
    terms: &Terms,
    out: &mut Out<'_, impl Sink>,
    subject: Node,
    predicate: Result<&str, &str>,
    object: Object<'_>,
) -> Result<(), String> {
    let triple = || Ok::<_, &str>((terms.node(subject)?, predicate?, terms.object(object)?));
    match triple() {
        Ok((subject, predicate, object)) => {
            out.triple(subject, predicate, object);
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

/// Hands out the triple of a property, and if it has a reifier or a name the statements about it.
fn tell_whole(
    terms: &Terms,
    out: &mut Out<'_, impl Sink>,
    subject: Node,
    property: Property,
    object: Object<'_>,
) -> Result<(), String> {
    let predicate = predicate_of(terms, property.predicate);
    tell(terms, out, subject, predicate, object)?;
    if let Some(reifier) = property.annotation {
        let triple =
            || Ok::<_, &str>(TermTriple::new(terms.node(subject)?, predicate?, terms.object(object)?));
        let triple = triple().map_err(str::to_owned)?;
        if triple.levels() > MOST_LEVELS {
            return Err(too_deep());
        }
        tell(terms, out, reifier, Ok(RDF_REIFIES), Object::Triple(&triple))?;
    }
    let Some(id) = property.id else { return Ok(()) };
    tell(terms, out, id, Ok(RDF_TYPE), Object::Iri(RDF_STATEMENT))?;
    tell(terms, out, id, Ok(RDF_SUBJECT), Object::Node(subject))?;
    tell(terms, out, id, Ok(RDF_PREDICATE), Object::Node(property.predicate))?;
    tell(terms, out, id, Ok(RDF_OBJECT), object)
}

/// The message for triple terms with too many levels.
pub(super) fn too_deep() -> String {
    format!("triple terms nest more than {MOST_LEVELS} levels, the limit")
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
        let mut out = Out { sink: &mut *sink, within: self.within.last_mut() };
        tell(&self.terms, &mut out, subject, Ok(predicate), object).or_else(|why| self.fault(sink, why))
    }

    /// The triple of a property.
    pub(super) fn tell_property(
        &mut self,
        sink: &mut impl Sink,
        subject: Node,
        property: Property,
        object: Object<'_>,
    ) -> Result<(), ReadError> {
        let mut out = Out { sink: &mut *sink, within: self.within.last_mut() };
        tell_whole(&self.terms, &mut out, subject, property, object).or_else(|why| self.fault(sink, why))
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
        let object = Object::Spoken(value, language, self.directions.last().copied());
        let mut out = Out { sink: &mut *sink, within: self.within.last_mut() };
        tell(&self.terms, &mut out, subject, predicate, object).or_else(|why| self.fault(sink, why))
    }

    /// The triple of a property whose content was text, or XML.
    pub(super) fn literal(&mut self, sink: &mut impl Sink, property: Property) -> Result<(), ReadError> {
        let subject = self.subject();
        let object = match property.datatype {
            Some(datatype) => Object::Typed(&self.text, datatype),
            None => {
                let language = self.languages.last().expect("the document's language stays");
                Object::Spoken(&self.text, language, self.directions.last().copied())
            }
        };
        let mut out = Out { sink: &mut *sink, within: self.within.last_mut() };
        tell_whole(&self.terms, &mut out, subject, property, object).or_else(|why| self.fault(sink, why))
    }

    /// The triple of a property whose content was a triple.
    pub(super) fn triple_term(&mut self, sink: &mut impl Sink, property: Property) -> Result<(), ReadError> {
        let Some(Within { nodes, triples, first }) = self.within.pop() else { return Ok(()) };
        let (1, 1, Some(triple)) = (nodes, triples, first) else {
            let why = format!("rdf:parseType=\"Triple\" needs one triple of one subject, here are {triples}");
            return self.fault(sink, why);
        };
        let subject = self.subject();
        let object = Object::Triple(&triple);
        let mut out = Out { sink: &mut *sink, within: self.within.last_mut() };
        tell_whole(&self.terms, &mut out, subject, property, object).or_else(|why| self.fault(sink, why))
    }
}
