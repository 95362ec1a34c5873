//! The attributes of an element by their roles, and the terms they say.

use std::io::Read;

use oxiri::Iri;
use twox_hash::XxHash3_128;

use super::super::Sink;
use super::super::scope::{Base, Language, OddTerms, direction_of, quoted};
use super::super::terms::{Node, Stretch};
use super::super::vocabulary::{ITS, RDF, Role, is_reserved, role_in_rdf, role_without_namespace};
use super::{OnFault, RdfXml};
use crate::fault::ReadError;
use crate::xml::XML;
use crate::xml::chars::is_nc_name;
use crate::xml::parser::XmlName;

/// The attributes of the element that begins: places among them.
#[derive(Default)]
pub(super) struct Roles {
    pub(super) id: Option<usize>,
    pub(super) about: Option<usize>,
    pub(super) node_id: Option<usize>,
    pub(super) resource: Option<usize>,
    pub(super) datatype: Option<usize>,
    pub(super) parse_type: Option<usize>,
    pub(super) annotation: Option<usize>,
    pub(super) annotation_node: Option<usize>,
    pub(super) properties: Vec<usize>,
}

/// Namespaces whose soundness is remembered.
const MOST_SOUND: usize = 16;

fn role(name: XmlName<'_>, is_newer: bool) -> Role {
    match name.namespace {
        "" => role_without_namespace(name.local),
        RDF => role_in_rdf(name.local),
        ITS if is_newer && name.local == "dir" => Role::Direction,
        ITS if is_newer && name.local == "version" => Role::Version,
        _ => Role::Property,
    }
}

impl Roles {
    fn place(&mut self, role: Role) -> Option<&mut Option<usize>> {
        match role {
            Role::Id => Some(&mut self.id),
            Role::About => Some(&mut self.about),
            Role::NodeId => Some(&mut self.node_id),
            Role::Resource => Some(&mut self.resource),
            Role::Datatype => Some(&mut self.datatype),
            Role::ParseType => Some(&mut self.parse_type),
            Role::Annotation => Some(&mut self.annotation),
            Role::AnnotationNode => Some(&mut self.annotation_node),
            Role::Version | Role::Property | Role::Direction | Role::Forbidden => None,
        }
    }
}

impl<R: Read> RdfXml<R> {
    /// Tells the attributes of the element apart, and opens the base and language they say.
    pub(super) fn sort_attributes(&mut self, sink: &mut impl Sink) -> Result<(), ReadError> {
        let mut properties = std::mem::take(&mut self.roles.properties);
        properties.clear();
        self.roles = Roles { properties, ..Roles::default() };
        self.note_version();
        let (mut base, mut language, mut direction) = (None, None, None);
        for index in 0..self.xml.attributes() {
            let (name, value) = self.xml.attribute(index);
            if is_reserved(name.prefix, name.local) {
                if name.namespace == XML && name.local == "lang" {
                    language = Some(Language::parse(value, self.odd));
                } else if name.namespace == XML && name.local == "base" {
                    base = Some(self.base().within(value));
                }
                continue;
            }
            match role(name, self.is_newer) {
                Role::Property => self.roles.properties.push(index),
                Role::Version => {}
                Role::Direction => match direction_of(value) {
                    Ok(known) => direction = Some(known),
                    Err(why) => self.fault(sink, why)?,
                },
                Role::Forbidden => {
                    let why = refused(name);
                    self.fault(sink, why)?;
                }
                role => {
                    let known = self.roles.place(role).map(|place| place.replace(index));
                    if let Some(Some(_)) = known {
                        let why = format!("rdf:{} is there twice, once without its prefix", name.local);
                        self.fault(sink, why)?;
                    }
                }
            }
        }
        self.directions.extend(direction);
        self.open_scope(base, language)
    }

    /// Looks whether RDF 1.2 is announced, which says what other attributes are.
    fn note_version(&mut self) {
        for index in 0..self.xml.attributes() {
            let (name, value) = self.xml.attribute(index);
            if name.local == "version" && name.namespace == RDF && value.starts_with("1.2") {
                self.is_newer = true;
            }
        }
    }

    fn open_scope(&mut self, base: Option<Base>, language: Option<Language>) -> Result<(), ReadError> {
        if self.on_fault == OnFault::Stop {
            if let Some(Base::Bad(why)) = &base {
                return Err(self.xml.wrong(why));
            }
            if let Some(Language::Bad(why)) = &language {
                return Err(self.xml.wrong(why));
            }
        }
        if let Some(Base::Iri(iri)) = &base {
            let bytes = iri.as_str().len();
            self.xml.amplify(bytes)?;
        }
        self.enter(base, language);
        Ok(())
    }

    /// Refuses attributes that may not be on this element.
    pub(super) fn refuse(
        &mut self,
        sink: &mut impl Sink,
        present: &[Option<usize>],
        on: &str,
    ) -> Result<(), ReadError> {
        for index in present.iter().flatten() {
            let (name, _) = self.xml.attribute(*index);
            let why = format!("{} may not be on {on}", name.qualified);
            self.fault(sink, why)?;
        }
        Ok(())
    }

    /// Refuses properties as attributes.
    pub(super) fn refuse_properties(&mut self, sink: &mut impl Sink, on: &str) -> Result<(), ReadError> {
        for index in 0..self.roles.properties.len() {
            let index = self.roles.properties[index];
            self.refuse(sink, &[Some(index)], on)?;
        }
        Ok(())
    }

    /// The IRI that an attribute says.
    pub(super) fn iri_of(&mut self, index: usize) -> Result<Node, ReadError> {
        let (_, value) = self.xml.attribute(index);
        let base = self.bases.last().expect("the document's base stays");
        let len = value.len();
        match base.resolve_as(value, self.odd, &mut self.iri) {
            Ok(()) => {
                self.xml.amplify(self.iri.len().saturating_sub(len))?;
                Ok(Node::Iri(self.terms.push(&self.iri)))
            }
            Err(why) => self.bad(&why),
        }
    }

    /// The blank node that `rdf:nodeID` says.
    pub(super) fn blank_of(&mut self, index: usize) -> Result<Node, ReadError> {
        let (_, value) = self.xml.attribute(index);
        if is_nc_name(value) {
            return Ok(Node::Blank(self.terms.push(value)));
        }
        let why = format!("rdf:nodeID {} is no name without a colon", quoted(value));
        self.bad(&why)
    }

    /// The IRI that `rdf:ID` says, which may be said once.
    pub(super) fn id_of(&mut self, index: usize) -> Result<Node, ReadError> {
        let (_, value) = self.xml.attribute(index);
        if !is_nc_name(value) {
            let why = format!("rdf:ID {} is no name without a colon", quoted(value));
            return self.bad(&why);
        }
        let reference = format!("#{value}");
        let base = self.bases.last().expect("the document's base stays");
        if let Err(why) = base.resolve_as(&reference, self.odd, &mut self.iri) {
            return self.bad(&why);
        }
        self.xml.amplify(self.iri.len().saturating_sub(reference.len()))?;
        let hash = XxHash3_128::oneshot(self.iri.as_bytes());
        if self.on_fault == OnFault::Stop && !self.ids.insert(hash) {
            return Err(self.xml.wrong(format!(
                "rdf:ID {} is there twice; where the same node is meant, write rdf:about={reference:?}",
                quoted(&reference[1..])
            )));
        }
        Ok(Node::Iri(self.terms.push(&self.iri)))
    }

    /// The IRI of the element's name.
    pub(super) fn element_iri(&mut self) -> Result<Node, ReadError> {
        let made = iri_of_name(self.xml.name(), self.odd, &mut self.iri, &mut self.sound);
        self.named(made)
    }

    /// The IRI of an attribute's name.
    pub(super) fn attribute_iri(&mut self, index: usize) -> Result<Node, ReadError> {
        let (mut name, _) = self.xml.attribute(index);
        if name.namespace.is_empty() {
            // one of the few that need no prefix
            name.namespace = RDF;
        }
        let made = iri_of_name(name, self.odd, &mut self.iri, &mut self.sound);
        self.named(made)
    }

    fn named(&mut self, made: Result<(), String>) -> Result<Node, ReadError> {
        match made {
            Ok(()) => {
                self.xml.amplify(self.iri.len())?;
                Ok(Node::Iri(self.terms.push(&self.iri)))
            }
            Err(why) => self.bad(&why),
        }
    }

    /// The property of a member: `rdf:_1` and so on.
    pub(super) fn member_iri(&mut self, number: u64) -> Stretch {
        self.terms.push(&format!("{RDF}_{number}"))
    }
}

/// Why an attribute is refused.
fn refused(name: XmlName<'_>) -> String {
    let qualified = name.qualified;
    if name.namespace.is_empty() {
        return format!("the attribute {qualified} has no namespace; in RDF/XML it needs one");
    }
    format!("{qualified} is no attribute of RDF/XML")
}

/// Replaces `iri` by the IRI of a name.
fn iri_of_name(
    name: XmlName<'_>,
    odd: OddTerms,
    iri: &mut String,
    sound: &mut Vec<Box<str>>,
) -> Result<(), String> {
    iri.clear();
    iri.push_str(name.namespace);
    iri.push_str(name.local);
    if name.local.is_ascii() && sound.iter().any(|known| **known == *name.namespace) {
        return Ok(());
    }
    if name.namespace.is_empty() {
        return Err(format!("{} has no namespace; in RDF/XML it needs one", name.qualified));
    }
    if let Err(error) = Iri::parse(iri.as_str()) {
        if odd.allows_iri(iri) {
            return Ok(());
        }
        return Err(format!("the name {} makes {}, which is no IRI: {error}", name.qualified, quoted(iri)));
    }
    // names in ASCII behind these are IRIs, too
    if name.namespace.ends_with(['#', '/']) && sound.len() < MOST_SOUND {
        let is_new = !sound.iter().any(|known| **known == *name.namespace);
        sound.extend((is_new && Iri::parse(name.namespace).is_ok()).then(|| name.namespace.into()));
    }
    Ok(())
}
