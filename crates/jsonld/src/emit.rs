//! From expanded nodes to quads (section 7).
//!
//! Terms that are no well-formed IRI, blank node or language tag say nothing in RDF, nor do
//! relative IRIs: what they are part of is left out, as the specification has it, and told. So are
//! properties that are blank nodes.

mod canonical;

use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BaseDirection, BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use snowmelt_base::iri::{is_turtle_iri, is_turtle_tag};

use crate::context::TextDirection;
use crate::expand::{Item, NodeItem, Scalar, ValueItem};
use crate::fault::ReadError;
use crate::{Direction, OddNames, Told};

const I18N: &str = "https://www.w3.org/ns/i18n#";
const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

/// Why something is no term; `None` where there is nothing to tell.
type Absent = Option<String>;

/// Hands quads over.
pub(crate) struct Emitter<Q> {
    direction: Direction,
    odd: OddNames,
    told: Q,
    /// blank nodes made so far
    blanks: u64,
}

impl<Q> Emitter<Q> {
    pub fn new(direction: Direction, odd: OddNames, told: Q) -> Self {
        Self { direction, odd, told, blanks: 0 }
    }

    pub fn default_graph<E>(&mut self, items: &[Item]) -> Result<(), ReadError<E>>
    where
        Q: FnMut(Told) -> Result<(), E>,
    {
        self.graph(items, &GraphName::DefaultGraph)
    }

    fn graph<E>(&mut self, items: &[Item], graph: &GraphName) -> Result<(), ReadError<E>>
    where
        Q: FnMut(Told) -> Result<(), E>,
    {
        for item in items {
            // it is what its edges say of it
            let _term = self.item(item, graph)?;
        }
        Ok(())
    }

    /// The term of an item, after what is said of it.
    fn item<E>(&mut self, item: &Item, graph: &GraphName) -> Result<Result<Term, Absent>, ReadError<E>>
    where
        Q: FnMut(Told) -> Result<(), E>,
    {
        match item {
            Item::Node(node) => Ok(self.node(node, graph)?.map(Into::into)),
            Item::Value(value) => self.value(value, graph),
            Item::List(items) => self.list(items, graph).map(Ok),
        }
    }

    fn node<E>(
        &mut self,
        node: &NodeItem,
        graph: &GraphName,
    ) -> Result<Result<NamedOrBlankNode, Absent>, ReadError<E>>
    where
        Q: FnMut(Told) -> Result<(), E>,
    {
        let subject = match &node.id {
            Some(Some(id)) => self.resource(id),
            Some(None) if node.is_idle() => Err(None),
            _ => Ok(self.blank().into()),
        };
        for datatype in &node.types {
            let object = self.resource(datatype).map(Into::into);
            self.triple(&subject, &Ok(rdf::TYPE.into_owned()), object, graph)?;
        }
        for (property, items) in &node.properties {
            let predicate = self.property(property);
            for item in items {
                let object = self.item(item, graph)?;
                self.triple(&subject, &predicate, object, graph)?;
            }
        }
        for (property, items) in &node.reverse {
            let predicate = self.property(property);
            for item in items {
                let from = match item {
                    Item::Node(node) => self.node(node, graph)?,
                    _ => Err(None),
                };
                self.triple(&from, &predicate, subject.clone().map(Into::into), graph)?;
            }
        }
        if let Some(items) = &node.graph {
            match &subject {
                Ok(name) => self.graph(items, &name.clone().into())?,
                Err(Some(why)) => {
                    (self.told)(Told::LeftOut(format!("a graph: {why}"))).map_err(ReadError::Caller)?;
                }
                Err(None) => {}
            }
        }
        self.graph(&node.included, graph)?;
        Ok(subject)
    }

    fn list<E>(&mut self, items: &[Item], graph: &GraphName) -> Result<Term, ReadError<E>>
    where
        Q: FnMut(Told) -> Result<(), E>,
    {
        let mut rest: Term = rdf::NIL.into_owned().into();
        for item in items.iter().rev() {
            let cell = NamedOrBlankNode::from(self.blank());
            let object = self.item(item, graph)?;
            self.triple(&Ok(cell.clone()), &Ok(rdf::FIRST.into_owned()), object, graph)?;
            self.quad(&cell, rdf::REST.into_owned(), rest, graph)?;
            rest = cell.into();
        }
        Ok(rest)
    }

    fn value<E>(&mut self, value: &ValueItem, graph: &GraphName) -> Result<Result<Term, Absent>, ReadError<E>>
    where
        Q: FnMut(Told) -> Result<(), E>,
    {
        let datatype = match value.datatype.as_deref() {
            None => None,
            Some("@json") => Some(NamedNode::new_unchecked(format!("{RDF}JSON"))),
            Some(iri) => match self.iri(iri) {
                Ok(iri) => Some(iri),
                Err(why) => return Ok(Err(why)),
            },
        };
        if let Some(name) = datatype.as_ref().and_then(of_tagged) {
            return Ok(Err(Some(format!("a value without @language is no rdf:{name}"))));
        }
        let (text, default) = lexical(&value.value, datatype.as_ref());
        if datatype.is_none()
            && let Some(direction) = value.direction
            && matches!(self.direction, Direction::Datatype | Direction::Compound)
        {
            return self.directed(text, value.language.as_deref(), direction.name(), graph);
        }
        let direction = value.direction.filter(|_| self.direction == Direction::Literal);
        Ok(match (&value.language, datatype) {
            (Some(language), None) => self.tagged(text, language, direction),
            (_, Some(datatype)) => Ok(Literal::new_typed_literal(text, datatype).into()),
            (None, None) => Ok(Literal::new_typed_literal(text, default).into()),
        })
    }

    /// A text with a direction.
    fn directed<E>(
        &mut self,
        text: String,
        language: Option<&str>,
        direction: &str,
        graph: &GraphName,
    ) -> Result<Result<Term, Absent>, ReadError<E>>
    where
        Q: FnMut(Told) -> Result<(), E>,
    {
        if self.direction == Direction::Datatype {
            let language = language.unwrap_or_default().to_ascii_lowercase();
            let datatype = self.iri(&format!("{I18N}{language}_{direction}"));
            return Ok(datatype.map(|datatype| Literal::new_typed_literal(text, datatype).into()));
        }
        let node: NamedOrBlankNode = self.blank().into();
        let parts = [
            ("value", Some(text)),
            ("language", language.map(str::to_ascii_lowercase)),
            ("direction", Some(direction.to_owned())),
        ];
        for (name, text) in parts {
            if let Some(text) = text {
                let property = NamedNode::new_unchecked(format!("{RDF}{name}"));
                self.quad(&node, property, Literal::new_simple_literal(text), graph)?;
            }
        }
        Ok(Ok(node.into()))
    }

    fn blank(&mut self) -> BlankNode {
        self.blanks += 1;
        // those of the document begin with another letter
        BlankNode::new_unchecked(format!("g{}", self.blanks))
    }

    /// A quad, or why it is none.
    fn triple<E>(
        &mut self,
        subject: &Result<NamedOrBlankNode, Absent>,
        predicate: &Result<NamedNode, Absent>,
        object: Result<Term, Absent>,
        graph: &GraphName,
    ) -> Result<(), ReadError<E>>
    where
        Q: FnMut(Told) -> Result<(), E>,
    {
        let why = match (subject, predicate, object) {
            (Ok(subject), Ok(predicate), Ok(object)) => {
                return self.quad(subject, predicate.clone(), object, graph);
            }
            (Err(why), _, _) | (_, Err(why), _) => why.clone(),
            (_, _, Err(why)) => why,
        };
        why.map_or(Ok(()), |why| (self.told)(Told::LeftOut(why)).map_err(ReadError::Caller))
    }

    /// Tells of a prefix.
    pub fn prefix<E>(&mut self, name: String, iri: String) -> Result<(), ReadError<E>>
    where
        Q: FnMut(Told) -> Result<(), E>,
    {
        (self.told)(Told::Prefix { name, iri }).map_err(ReadError::Caller)
    }

    fn quad<E>(
        &mut self,
        subject: &NamedOrBlankNode,
        predicate: NamedNode,
        object: impl Into<Term>,
        graph: &GraphName,
    ) -> Result<(), ReadError<E>>
    where
        Q: FnMut(Told) -> Result<(), E>,
    {
        let quad = Quad::new(subject.clone(), predicate, object, graph.clone());
        (self.told)(Told::Quad(quad)).map_err(ReadError::Caller)
    }

    fn iri(&self, text: &str) -> Result<NamedNode, Absent> {
        let kept = || self.odd == OddNames::Kept && is_turtle_iri(text);
        match NamedNode::new(text) {
            Ok(node) => Ok(node),
            Err(_) if kept() => Ok(NamedNode::new_unchecked(text)),
            Err(_) => Err(Some(format!("<{text}> is no absolute IRI of RFC 3987"))),
        }
    }

    fn property(&self, text: &str) -> Result<NamedNode, Absent> {
        match text.starts_with("_:") {
            true => Err(Some(format!("{text} is a blank node, and no property"))),
            false => self.iri(text),
        }
    }

    /// The IRI or blank node of a text.
    fn resource(&self, text: &str) -> Result<NamedOrBlankNode, Absent> {
        match text.strip_prefix("_:") {
            Some(label) if BlankNode::new(label).is_ok() => {
                Ok(BlankNode::new_unchecked(format!("d{label}")).into())
            }
            Some(_) => Err(Some(format!("{text} is no label of a blank node"))),
            None => self.iri(text).map(Into::into),
        }
    }

    fn tagged(&self, text: String, tag: &str, direction: Option<TextDirection>) -> Result<Term, Absent> {
        let is_kept = self.odd == OddNames::Kept && is_turtle_tag(tag);
        if !is_kept && Literal::new_language_tagged_literal("", tag).is_err() {
            return Err(Some(format!("{tag} is no language tag of RFC 5646")));
        }
        let tag = tag.to_ascii_lowercase();
        let direction = direction.map(|direction| match direction {
            TextDirection::LeftToRight => BaseDirection::Ltr,
            TextDirection::RightToLeft => BaseDirection::Rtl,
        });
        Ok(match direction {
            None => Literal::new_language_tagged_literal_unchecked(text, tag).into(),
            Some(to) => Literal::new_directional_language_tagged_literal_unchecked(text, tag, to).into(),
        })
    }
}

/// The name of a datatype that only texts with a language tag have.
fn of_tagged(datatype: &NamedNode) -> Option<&str> {
    let name = datatype.as_str().strip_prefix(RDF);
    name.filter(|name| matches!(*name, "langString" | "dirLangString"))
}

/// The lexical form of a value, and its datatype where none is named.
fn lexical(value: &Scalar, datatype: Option<&NamedNode>) -> (String, NamedNode) {
    match value {
        Scalar::Bool(value) => (value.to_string(), xsd::BOOLEAN.into_owned()),
        Scalar::String(text) => (text.to_string(), xsd::STRING.into_owned()),
        Scalar::Json(json) => (canonical::canonical(json), xsd::STRING.into_owned()),
        Scalar::Number(text) => {
            let is_double = datatype.is_some_and(|datatype| *datatype == xsd::DOUBLE);
            match canonical::integer(text).filter(|_| !is_double) {
                Some(integer) => (integer, xsd::INTEGER.into_owned()),
                None => (canonical::double(text), xsd::DOUBLE.into_owned()),
            }
        }
    }
}
