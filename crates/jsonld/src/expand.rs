//! Expansion (section 5): from a document and its contexts to nodes and values without contexts.

mod item;
mod maps;
mod object;

use std::rc::Rc;

use crate::context::{Adoption, Container, Context, Process, Relative, TermDef};
use crate::fault::Misuse;
use crate::json::{Json, Value};
pub(crate) use item::{Item, NodeItem, Scalar, ValueItem};
use object::Building;

/// Expands the elements of a document.
pub(crate) struct Expander<'a> {
    process: &'a Process<'a>,
    base: Option<String>,
}

/// Where an element stands.
#[derive(Clone, Copy)]
struct Within<'a> {
    active: &'a Rc<Context>,
    /// The property it is a value of; `None` at the outermost level.
    property: Option<&'a str>,
    /// It is a value of a map: the context of the map stays in force.
    is_in_map: bool,
    /// It is a value of `@list`: arrays in it are lists, as deep as they go.
    is_in_list: bool,
}

impl<'a> Within<'a> {
    fn definition(&self) -> Option<&'a Rc<TermDef>> {
        self.active.term(self.property?)
    }

    /// Values that are no nodes have no place here.
    fn is_outermost(&self) -> bool {
        matches!(self.property, None | Some("@graph"))
    }
}

impl<'a> Expander<'a> {
    pub fn new(process: &'a Process<'a>, base: Option<String>) -> Self {
        Self { process, base }
    }

    /// An element of the outermost level: the nodes of the default graph.
    pub fn document(&self, active: &Rc<Context>, element: &Json) -> Result<Vec<Item>, Misuse> {
        let within = Within { active, property: None, is_in_map: false, is_in_list: false };
        let mut items = self.expand(within, element)?;
        if let [Item::Node(node)] = &mut items[..]
            && node.is_graph_alone()
        {
            return Ok(node.graph.take().unwrap_or_default());
        }
        Ok(items)
    }

    /// Expansion of an element (5.1.2). Sets are taken apart; null gives nothing.
    fn expand(&self, within: Within<'_>, element: &Json) -> Result<Vec<Item>, Misuse> {
        match &element.value {
            Value::Null => Ok(Vec::new()),
            Value::Array(elements) => {
                let is_list = within.is_in_list
                    || within.property.is_some_and(|p| within.active.container(p).has(Container::LIST));
                let mut items = Vec::new();
                for element in elements {
                    let expanded = self.expand(within, element)?;
                    // a list within a list
                    let is_inner = is_list && matches!(element.value, Value::Array(_));
                    if is_inner { items.push(Item::List(expanded)) } else { items.extend(expanded) }
                }
                Ok(items)
            }
            Value::Object(members) => self.object(within, element, members),
            _ if within.is_outermost() => Ok(Vec::new()),
            _ => {
                let active = self.scoped_to_property(within, within.active)?;
                let property = within.property.expect("it is not outermost");
                Ok(vec![self.scalar(&active, property, element)?])
            }
        }
    }

    /// The context within a property's values.
    fn scoped_to_property(&self, within: Within<'_>, active: &Rc<Context>) -> Result<Rc<Context>, Misuse> {
        match within.definition().and_then(|definition| definition.context.as_ref()) {
            Some(scoped) => {
                let how = Adoption { overrides_protected: true, ..Adoption::default() };
                self.process.adopt_scoped(active, scoped, how)
            }
            None => Ok(Rc::clone(active)),
        }
    }

    /// Value expansion (5.3).
    fn scalar(&self, active: &Context, property: &str, element: &Json) -> Result<Item, Misuse> {
        let definition = active.term(property);
        let datatype = definition.and_then(|definition| definition.datatype.as_deref());
        if let (Some(text), Some("@id" | "@vocab")) = (element.as_str(), datatype) {
            let relative = if datatype == Some("@id") { Relative::Base } else { Relative::Both };
            let id = active.expand(text, relative);
            self.process.keeps(id.as_ref().map_or(0, String::len), element)?;
            return Ok(Item::Node(Box::new(NodeItem::reference(id))));
        }
        let mut value = ValueItem::new(Scalar::from_json(element).expect("the caller saw a scalar"));
        match datatype {
            Some(datatype) if !matches!(datatype, "@id" | "@vocab" | "@none") => {
                value.datatype = Some(datatype.to_owned());
            }
            _ if element.as_str().is_some() => {
                let language = definition.and_then(|definition| definition.language.clone());
                value.language = language.unwrap_or_else(|| active.language.clone()).map(|l| l.to_string());
                let direction = definition.and_then(|definition| definition.direction);
                value.direction = direction.unwrap_or(active.direction);
            }
            _ => {}
        }
        let named = [&value.datatype, &value.language].into_iter().flatten();
        self.process.keeps(named.map(String::len).sum(), element)?;
        Ok(Item::Value(Box::new(value)))
    }

    fn object(
        &self,
        within: Within<'_>,
        element: &Json,
        members: &crate::json::Object,
    ) -> Result<Vec<Item>, Misuse> {
        self.process.stopped()?;
        let active = self.context_of(within, members)?;
        let type_scoped = Rc::clone(&active);
        let active = self.scoped_to_types(active, &type_scoped, members)?;
        let mut building = Building::new(element);
        building.input_type = input_type(&active, members);
        self.members(within, (&active, &type_scoped), members, &mut building)?;
        building.finish(within.is_outermost())
    }

    /// The context in force in an object, but for its types: back to the previous one, that of
    /// the property, its own.
    fn context_of(&self, within: Within<'_>, members: &crate::json::Object) -> Result<Rc<Context>, Misuse> {
        let mut active = Rc::clone(within.active);
        if let Some(previous) = &within.active.previous
            && !within.is_in_map
        {
            let means = |name: &str| within.active.vocabulary(name);
            let is_value = members.iter().any(|(name, _)| means(name).as_deref() == Some("@value"));
            let mut all = members.iter();
            let is_reference =
                all.len() == 1 && all.next().is_some_and(|(name, _)| means(name).as_deref() == Some("@id"));
            if !is_value && !is_reference {
                active = Rc::clone(previous);
            }
        }
        let active = self.scoped_to_property(within, &active)?;
        match members.get("@context") {
            Some(local) => self.process.adopt(&active, local, self.base.as_deref(), Adoption::default()),
            None => Ok(active),
        }
    }

    /// With the contexts of the types of a node.
    fn scoped_to_types(
        &self,
        mut active: Rc<Context>,
        type_scoped: &Rc<Context>,
        members: &crate::json::Object,
    ) -> Result<Rc<Context>, Misuse> {
        for (_, value) in members.iter().filter(|(name, _)| is_type(type_scoped, name)) {
            let mut types: Vec<&str> = value.elements().iter().filter_map(Json::as_str).collect();
            types.sort_unstable();
            for name in types {
                if let Some(scoped) = type_scoped.term(name).and_then(|term| term.context.as_ref()) {
                    let how = Adoption { propagates: false, ..Adoption::default() };
                    active = self.process.adopt_scoped(&active, scoped, how)?;
                }
            }
        }
        Ok(active)
    }
}

fn is_type(active: &Context, name: &str) -> bool {
    active.vocabulary(name).as_deref() == Some("@type")
}

/// The last type of the first member that gives types.
fn input_type(active: &Context, members: &crate::json::Object) -> Option<String> {
    let (_, value) = members.iter().find(|(name, _)| is_type(active, name))?;
    let last = value.elements().iter().filter_map(Json::as_str).max()?;
    active.vocabulary(last)
}
