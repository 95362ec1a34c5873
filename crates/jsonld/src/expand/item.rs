//! Expanded nodes, values and lists.

use crate::context::TextDirection;
use crate::json::{Json, Value};

/// An expanded element. Sets are taken apart.
#[derive(Debug)]
pub(crate) enum Item {
    Node(Box<NodeItem>),
    Value(Box<ValueItem>),
    List(Vec<Item>),
}

/// A node.
#[derive(Debug, Default)]
pub(crate) struct NodeItem {
    /// `Some(None)`: an `@id` that means nothing.
    pub id: Option<Option<String>>,
    pub types: Vec<String>,
    pub properties: Vec<(String, Vec<Item>)>,
    pub reverse: Vec<(String, Vec<Item>)>,
    pub graph: Option<Vec<Item>>,
    pub included: Vec<Item>,
    pub index: Option<String>,
}

impl NodeItem {
    pub fn reference(id: Option<String>) -> Self {
        Self { id: Some(id), ..Self::default() }
    }

    fn has_no_edges(&self) -> bool {
        self.types.is_empty()
            && self.properties.is_empty()
            && self.reverse.is_empty()
            && self.included.is_empty()
    }

    /// Nothing but a graph, which is then the default one.
    pub fn is_graph_alone(&self) -> bool {
        self.graph.is_some() && self.id.is_none() && self.index.is_none() && self.has_no_edges()
    }

    /// A graph, perhaps with a name.
    pub fn is_graph(&self) -> bool {
        self.graph.is_some() && self.has_no_edges()
    }

    /// It says nothing where it is no value.
    pub fn is_idle(&self) -> bool {
        self.has_no_edges() && self.graph.is_none() && self.index.is_none()
    }

    pub fn add(&mut self, property: &str, items: Vec<Item>) {
        add(&mut self.properties, property, items);
    }
}

/// Adds items of a property. It may be there already: each entry is emitted by itself.
pub(crate) fn add(all: &mut Vec<(String, Vec<Item>)>, property: &str, items: Vec<Item>) {
    all.push((property.to_owned(), items));
}

/// A literal, still as it was written.
#[derive(Debug)]
pub(crate) struct ValueItem {
    pub value: Scalar,
    pub datatype: Option<String>,
    pub language: Option<String>,
    pub direction: Option<TextDirection>,
    pub index: Option<String>,
}

impl ValueItem {
    pub fn new(value: Scalar) -> Self {
        Self { value, datatype: None, language: None, direction: None, index: None }
    }
}

/// The value of a literal.
#[derive(Debug)]
pub(crate) enum Scalar {
    Bool(bool),
    Number(Box<str>),
    String(Box<str>),
    /// Of the type `@json`.
    Json(Json),
}

impl Scalar {
    /// `None` for null, arrays and objects.
    pub fn from_json(json: &Json) -> Option<Self> {
        Some(match &json.value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(text) => Self::Number(text.clone()),
            Value::String(text) => Self::String(text.clone()),
            _ => return None,
        })
    }
}
