//! The productions of elements that begin (RDF/XML 7.2.8 to 7.2.21).

use std::io::Read;

use super::super::Sink;
use super::super::scope::quoted;
use super::super::terms::{Node, Object};
use super::super::triple::{MOST_LEVELS, Within};
use super::super::vocabulary::{
    ITS, RDF, RDF_FIRST, RDF_NIL, RDF_REST, RDF_TYPE, RDF_XML_LITERAL, is_no_node, is_no_property,
    is_reserved,
};
use super::emit::too_deep;
use super::{Element, ElementKind, Property, RdfXml};
use crate::fault::ReadError;
use crate::xml::chars::is_blank;

impl<R: Read> RdfXml<R> {
    /// Whether the element that begins is `rdf:RDF`.
    pub(super) fn is_rdf_rdf(&self) -> bool {
        let name = self.xml.name();
        name.namespace == RDF && name.local == "RDF"
    }

    pub(super) fn root(&mut self, sink: &mut impl Sink) -> Result<ElementKind, ReadError> {
        // directions are for RDF 1.2, and no harm to others
        let roles = &mut self.roles;
        roles.properties.retain(|index| self.xml.attribute(*index).0.namespace != ITS);
        self.refuse_properties(sink, "rdf:RDF")?;
        let on = &self.roles;
        let present = [
            on.id,
            on.about,
            on.node_id,
            on.resource,
            on.datatype,
            on.parse_type,
            on.annotation,
            on.annotation_node,
        ];
        self.refuse(sink, &present, "rdf:RDF")?;
        Ok(ElementKind::Nodes)
    }

    /// An element that is a node; its term.
    pub(super) fn node(&mut self, sink: &mut impl Sink) -> Result<Node, ReadError> {
        let on = &self.roles;
        let (id, node_id, about) = (on.id, on.node_id, on.about);
        let present = [on.resource, on.datatype, on.parse_type, on.annotation, on.annotation_node];
        self.refuse(sink, &present, "a node")?;
        let subject = match (id, node_id, about) {
            (None, None, None) => self.terms.new_blank(),
            (Some(id), None, None) => self.id_of(id)?,
            (None, Some(node_id), None) => self.blank_of(node_id)?,
            (None, None, Some(about)) => self.iri_of(about)?,
            _ => self.bad("a node has one of rdf:ID, rdf:nodeID and rdf:about")?,
        };
        let name = self.xml.name();
        let is_rdf = name.namespace == RDF;
        if is_rdf && is_no_node(name.local) || is_reserved(name.prefix, name.local) {
            let why = format!("{} is no node", name.qualified);
            self.fault(sink, why)?;
        } else if !(is_rdf && name.local == "Description") {
            let kept = self.terms.len();
            let class = self.element_iri()?;
            self.tell(sink, subject, RDF_TYPE, Object::Node(class))?;
            self.terms.truncate(kept);
        }
        self.property_attributes(sink, subject)?;
        Ok(subject)
    }

    /// The properties that the attributes of an element say about a node.
    fn property_attributes(&mut self, sink: &mut impl Sink, subject: Node) -> Result<(), ReadError> {
        for index in 0..self.roles.properties.len() {
            let index = self.roles.properties[index];
            let kept = self.terms.len();
            let predicate = self.attribute_iri(index)?;
            if let Node::Iri(iri) = predicate
                && self.terms.str(iri) == RDF_TYPE
            {
                let class = self.iri_of(index)?;
                self.tell(sink, subject, RDF_TYPE, Object::Node(class))?;
            } else {
                self.tell_attribute(sink, subject, predicate, index)?;
            }
            self.terms.truncate(kept);
        }
        Ok(())
    }

    /// An element that is a property of `subject`.
    pub(super) fn property(&mut self, sink: &mut impl Sink, subject: Node) -> Result<ElementKind, ReadError> {
        let predicate = self.predicate()?;
        let about = self.roles.about;
        self.refuse(sink, &[about], "a property")?;
        let id = self.roles.id.map(|id| self.id_of(id)).transpose()?;
        let annotation = self.annotation()?;
        let property = Property { predicate, id, annotation, datatype: None, has_object: false };
        match self.roles.parse_type {
            Some(parse_type) => self.parsed_property(sink, subject, property, parse_type),
            None => self.plain_property(sink, subject, property),
        }
    }

    /// The reifier of a property's triple.
    fn annotation(&mut self) -> Result<Option<Node>, ReadError> {
        match (self.roles.annotation, self.roles.annotation_node) {
            (None, None) => Ok(None),
            (Some(iri), None) => self.iri_of(iri).map(Some),
            (None, Some(node)) => self.blank_of(node).map(Some),
            (Some(_), Some(_)) => {
                self.bad("a property has one of rdf:annotation and rdf:annotationNodeID").map(Some)
            }
        }
    }

    fn predicate(&mut self) -> Result<Node, ReadError> {
        let name = self.xml.name();
        if is_reserved(name.prefix, name.local) || name.namespace == RDF && is_no_property(name.local) {
            let why = format!("{} is no property", name.qualified);
            return self.bad(&why);
        }
        if name.namespace == RDF
            && name.local == "li"
            && let Some(Element { kind: ElementKind::Node { members, .. }, .. }) = self.open.last_mut()
        {
            *members += 1;
            let number = *members;
            return Ok(Node::Iri(self.member_iri(number)));
        }
        self.element_iri()
    }

    /// A property without `rdf:parseType`.
    fn plain_property(
        &mut self,
        sink: &mut impl Sink,
        subject: Node,
        mut property: Property,
    ) -> Result<ElementKind, ReadError> {
        let on = &self.roles;
        let (resource, node_id, datatype) = (on.resource, on.node_id, on.datatype);
        self.text.clear();
        if resource.is_none() && node_id.is_none() && on.properties.is_empty() {
            property.datatype = datatype.map(|datatype| self.iri_of(datatype)).transpose()?;
            return Ok(ElementKind::Property(property));
        }
        let object = match (resource, node_id) {
            (Some(resource), None) => self.iri_of(resource)?,
            (None, Some(node_id)) => self.blank_of(node_id)?,
            (None, None) => self.terms.new_blank(),
            (Some(_), Some(_)) => self.bad("a property has one of rdf:resource and rdf:nodeID")?,
        };
        if resource.is_some() || node_id.is_some() {
            self.refuse(sink, &[datatype], "a property with rdf:resource or rdf:nodeID")?;
        }
        self.tell_property(sink, subject, property, Object::Node(object))?;
        self.property_attributes(sink, object)?;
        Ok(ElementKind::Property(Property { has_object: true, ..property }))
    }

    /// A property with `rdf:parseType`.
    fn parsed_property(
        &mut self,
        sink: &mut impl Sink,
        subject: Node,
        property: Property,
        parse_type: usize,
    ) -> Result<ElementKind, ReadError> {
        let on = &self.roles;
        let present = [on.resource, on.node_id, on.datatype];
        self.refuse(sink, &present, "a property with rdf:parseType")?;
        self.refuse_properties(sink, "a property with rdf:parseType")?;
        self.text.clear();
        let (_, value) = self.xml.attribute(parse_type);
        match value {
            "Resource" => {
                let object = self.terms.new_blank();
                self.tell_property(sink, subject, property, Object::Node(object))?;
                Ok(ElementKind::Node { subject: object, members: 0 })
            }
            "Collection" => Ok(ElementKind::Collection(property, None)),
            // without the version it says nothing
            "Triple" if !self.is_newer => Ok(self.xml_literal(Property { has_object: true, ..property })),
            "Triple" if self.within.len() >= MOST_LEVELS => Err(self.xml.wrong(too_deep())),
            "Triple" => {
                self.within.push(Within::default());
                Ok(ElementKind::Triple(property))
            }
            // others are taken for this one
            _ => Ok(self.xml_literal(property)),
        }
    }

    fn xml_literal(&mut self, property: Property) -> ElementKind {
        self.canonical.clear();
        let datatype = Node::Iri(self.terms.push(RDF_XML_LITERAL));
        ElementKind::Literal(Property { datatype: Some(datatype), ..property })
    }

    /// A node that is the object of a property.
    pub(super) fn object_node(
        &mut self,
        sink: &mut impl Sink,
        property: Property,
    ) -> Result<Node, ReadError> {
        let object = self.node(sink)?;
        let why = if property.has_object {
            Some("a property has one object, and this one has it already".to_owned())
        } else if property.datatype.is_some() {
            Some("a property with rdf:datatype has a text, no node".to_owned())
        } else if !is_blank(&self.text) {
            Some(format!("a property has a text or a node; beside this one is {}", quoted(self.text.trim())))
        } else {
            None
        };
        match (why, self.subject()) {
            (Some(why), _) => self.fault(sink, why)?,
            (None, subject) => self.tell_property(sink, subject, property, Object::Node(object))?,
        }
        if let Some(Element { kind: ElementKind::Property(property), .. }) = self.open.last_mut() {
            property.has_object = true;
        }
        Ok(object)
    }

    /// A node in a list: a cell more.
    pub(super) fn member(
        &mut self,
        sink: &mut impl Sink,
        property: Property,
        last: Option<u64>,
    ) -> Result<Node, ReadError> {
        let number = self.terms.new_number();
        let cell = self.terms.numbered(number);
        if let Some(last) = last {
            let last = self.terms.numbered(last);
            self.tell(sink, last, RDF_REST, Object::Node(cell))?;
        } else {
            let subject = self.subject();
            self.tell_property(sink, subject, property, Object::Node(cell))?;
        }
        let node = self.node(sink)?;
        self.tell(sink, cell, RDF_FIRST, Object::Node(node))?;
        if let Some(Element { kind: ElementKind::Collection(_, last), .. }) = self.open.last_mut() {
            *last = Some(number);
        }
        Ok(node)
    }

    /// The end of a list.
    pub(super) fn last_member(
        &mut self,
        sink: &mut impl Sink,
        property: Property,
        last: Option<u64>,
    ) -> Result<(), ReadError> {
        match last {
            Some(last) => {
                let last = self.terms.numbered(last);
                self.tell(sink, last, RDF_REST, Object::Iri(RDF_NIL))
            }
            None => {
                let subject = self.subject();
                self.tell_property(sink, subject, property, Object::Iri(RDF_NIL))
            }
        }
    }
}
