//! From expanded nodes to quads (section 7).
//!
//! Terms that are no well-formed IRI, blank node or language tag say nothing in RDF, nor do
//! relative IRIs: what they are part of is left out, as the specification has it. So are
//! properties that are blank nodes.

mod canonical;

use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};

use crate::Direction;
use crate::expand::{Item, NodeItem, Scalar, ValueItem};
use crate::fault::ReadError;

const I18N: &str = "https://www.w3.org/ns/i18n#";
const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

/// Hands quads over.
pub(crate) struct Emitter<Q> {
    direction: Direction,
    quad: Q,
    /// blank nodes made so far
    blanks: u64,
}

impl<Q> Emitter<Q> {
    pub fn new(direction: Direction, quad: Q) -> Self {
        Self { direction, quad, blanks: 0 }
    }

    pub fn default_graph<E>(&mut self, items: &[Item]) -> Result<(), ReadError<E>>
    where
        Q: FnMut(Quad) -> Result<(), E>,
    {
        self.graph(items, &GraphName::DefaultGraph)
    }

    fn graph<E>(&mut self, items: &[Item], graph: &GraphName) -> Result<(), ReadError<E>>
    where
        Q: FnMut(Quad) -> Result<(), E>,
    {
        for item in items {
            self.item(item, graph)?;
        }
        Ok(())
    }

    /// The term of an item, after what is said of it; `None` if it is no term.
    fn item<E>(&mut self, item: &Item, graph: &GraphName) -> Result<Option<Term>, ReadError<E>>
    where
        Q: FnMut(Quad) -> Result<(), E>,
    {
        match item {
            Item::Node(node) => Ok(self.node(node, graph)?.map(Into::into)),
            Item::Value(value) => self.value(value, graph),
            Item::List(items) => self.list(items, graph).map(Some),
        }
    }

    fn node<E>(
        &mut self,
        node: &NodeItem,
        graph: &GraphName,
    ) -> Result<Option<NamedOrBlankNode>, ReadError<E>>
    where
        Q: FnMut(Quad) -> Result<(), E>,
    {
        let subject = match &node.id {
            Some(Some(id)) => resource(id),
            Some(None) if node.is_idle() => None,
            _ => Some(self.blank().into()),
        };
        for datatype in &node.types {
            if let (Some(subject), Some(object)) = (&subject, resource(datatype)) {
                self.quad(subject, rdf::TYPE.into_owned(), object, graph)?;
            }
        }
        for (property, items) in &node.properties {
            let predicate = NamedNode::new(property).ok();
            for item in items {
                let object = self.item(item, graph)?;
                if let (Some(subject), Some(predicate), Some(object)) = (&subject, &predicate, object) {
                    self.quad(subject, predicate.clone(), object, graph)?;
                }
            }
        }
        for (property, items) in &node.reverse {
            let predicate = NamedNode::new(property).ok();
            for item in items {
                let from = match item {
                    Item::Node(node) => self.node(node, graph)?,
                    _ => None,
                };
                if let (Some(from), Some(predicate), Some(subject)) = (from, &predicate, &subject) {
                    self.quad(&from, predicate.clone(), subject.clone(), graph)?;
                }
            }
        }
        if let Some(items) = &node.graph
            && let Some(name) = &subject
        {
            self.graph(items, &name.clone().into())?;
        }
        self.graph(&node.included, graph)?;
        Ok(subject)
    }

    fn list<E>(&mut self, items: &[Item], graph: &GraphName) -> Result<Term, ReadError<E>>
    where
        Q: FnMut(Quad) -> Result<(), E>,
    {
        let mut rest: Term = rdf::NIL.into_owned().into();
        for item in items.iter().rev() {
            let cell = self.blank().into();
            if let Some(object) = self.item(item, graph)? {
                self.quad(&cell, rdf::FIRST.into_owned(), object, graph)?;
            }
            self.quad(&cell, rdf::REST.into_owned(), rest, graph)?;
            rest = cell.into();
        }
        Ok(rest)
    }

    fn value<E>(&mut self, value: &ValueItem, graph: &GraphName) -> Result<Option<Term>, ReadError<E>>
    where
        Q: FnMut(Quad) -> Result<(), E>,
    {
        let Some(datatype) = datatype(value) else { return Ok(None) };
        let (text, default) = lexical(&value.value, datatype.as_ref());
        if datatype.is_none()
            && let Some(direction) = value.direction
            && self.direction != Direction::Dropped
        {
            return self.directed(text, value.language.as_deref(), direction.name(), graph);
        }
        Ok(match (&value.language, datatype) {
            (Some(language), None) => {
                Literal::new_language_tagged_literal(text, language).ok().map(Into::into)
            }
            (_, Some(datatype)) => Some(Literal::new_typed_literal(text, datatype).into()),
            (None, None) => Some(Literal::new_typed_literal(text, default).into()),
        })
    }

    /// A text with a direction.
    fn directed<E>(
        &mut self,
        text: String,
        language: Option<&str>,
        direction: &str,
        graph: &GraphName,
    ) -> Result<Option<Term>, ReadError<E>>
    where
        Q: FnMut(Quad) -> Result<(), E>,
    {
        if self.direction == Direction::Datatype {
            let language = language.unwrap_or_default().to_ascii_lowercase();
            let datatype = NamedNode::new(format!("{I18N}{language}_{direction}")).ok();
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
        Ok(Some(node.into()))
    }

    fn blank(&mut self) -> BlankNode {
        self.blanks += 1;
        // those of the document begin with another letter
        BlankNode::new_unchecked(format!("g{}", self.blanks))
    }

    fn quad<E>(
        &mut self,
        subject: &NamedOrBlankNode,
        predicate: NamedNode,
        object: impl Into<Term>,
        graph: &GraphName,
    ) -> Result<(), ReadError<E>>
    where
        Q: FnMut(Quad) -> Result<(), E>,
    {
        (self.quad)(Quad::new(subject.clone(), predicate, object, graph.clone())).map_err(ReadError::Caller)
    }
}

/// The IRI or blank node of a text.
fn resource(text: &str) -> Option<NamedOrBlankNode> {
    match text.strip_prefix("_:") {
        Some(label) => {
            BlankNode::new(label).ok()?;
            Some(BlankNode::new_unchecked(format!("d{label}")).into())
        }
        None => NamedNode::new(text).ok().map(Into::into),
    }
}

/// The datatype that a value names; `None` outside: it is no IRI, and the value says nothing.
fn datatype(value: &ValueItem) -> Option<Option<NamedNode>> {
    match value.datatype.as_deref() {
        None => Some(None),
        Some("@json") => Some(Some(NamedNode::new_unchecked(format!("{RDF}JSON")))),
        Some(iri) => NamedNode::new(iri).ok().map(Some),
    }
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
