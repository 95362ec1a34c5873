//! Maps as values of a property: by language, index, type and id (5.1.2, steps 13.7 and 13.8).

use std::rc::Rc;

use super::object::graph_of;
use super::{Expander, Item, Scalar, ValueItem, Within};
use crate::context::{Adoption, Container, Relative};
use crate::fault::Misuse;
use crate::json::{Json, Object, Value};

impl Expander<'_> {
    pub(super) fn language_map(&self, within: Within<'_>, members: &Object) -> Result<Vec<Item>, Misuse> {
        let direction = within.definition().and_then(|definition| definition.direction);
        let direction = direction.unwrap_or(within.active.direction);
        let mut items = Vec::new();
        for (language, value) in members.iter() {
            let is_none = within.active.vocabulary(language).as_deref() == Some("@none");
            for text in value.elements().iter().filter(|text| !text.is_null()) {
                if text.as_str().is_none() {
                    let message = "the values of a map of languages are texts";
                    return Err(text.fault("invalid language map value", message));
                }
                let mut item = ValueItem::new(Scalar::from_json(text).expect("a text"));
                item.language = (!is_none).then(|| language.to_owned());
                item.direction = direction;
                items.push(Item::Value(Box::new(item)));
            }
        }
        Ok(items)
    }

    pub(super) fn index_map(&self, within: Within<'_>, members: &Object) -> Result<Vec<Item>, Misuse> {
        let Within { active, property, .. } = within;
        let name = property.expect("a map is the value of a property");
        let container = active.container(name);
        let is_by_type = container.has(Container::TYPE);
        let mut items = Vec::new();
        for (index, value) in members.iter() {
            let mut inner = Rc::clone(active);
            if is_by_type || container.has(Container::ID) {
                inner = active.previous.clone().unwrap_or(inner);
            }
            if is_by_type && let Some(scoped) = inner.term(index).and_then(|term| term.context.clone()) {
                let how = Adoption { propagates: false, ..Adoption::default() };
                inner = self.process.adopt_scoped(&inner, &scoped, how)?;
            }
            let is_none = active.vocabulary(index).as_deref() == Some("@none");
            let inside = Within { active: &inner, property, is_in_map: true, is_in_list: false };
            for item in self.expand(inside, value)? {
                let item = match &item {
                    Item::Node(node) if node.is_graph() => item,
                    _ if container.has(Container::GRAPH) => graph_of(item),
                    _ => item,
                };
                items.push(if is_none { item } else { self.indexed(within, index, item, value)? });
            }
        }
        Ok(items)
    }

    /// An item of a map, with what its index says.
    fn indexed(&self, within: Within<'_>, index: &str, mut item: Item, place: &Json) -> Result<Item, Misuse> {
        let active = within.active;
        let name = within.property.expect("a map is the value of a property");
        let container = active.container(name);
        let by_property = within.definition().and_then(|definition| definition.index.clone());
        if let Some(property) = by_property.filter(|_| container.has(Container::INDEX)) {
            let Item::Node(node) = &mut item else {
                let message = "values have no property beside them that could hold the index";
                return Err(place.fault("invalid value object", message));
            };
            let text = Json { place: place.place, value: Value::String(index.into()) };
            let value = self.scalar(active, &property, &text)?;
            let iri = active.vocabulary(&property).unwrap_or_else(|| property.to_string());
            self.process.keeps(iri.len(), place)?;
            node.add(&iri, vec![value]);
        } else if container.has(Container::INDEX) {
            self.process.keeps(index.len(), place)?;
            match &mut item {
                Item::Node(node) => _ = node.index.get_or_insert_with(|| index.to_owned()),
                Item::Value(value) => _ = value.index.get_or_insert_with(|| index.to_owned()),
                Item::List(_) => {}
            }
        } else if let Item::Node(node) = &mut item {
            let is_id = container.has(Container::ID);
            let iri = active.expand(index, if is_id { Relative::Base } else { Relative::Both });
            self.process.keeps(iri.as_ref().map_or(0, String::len), place)?;
            if is_id {
                node.id.get_or_insert(iri);
            } else if let Some(iri) = iri {
                node.types.insert(0, iri);
            }
        }
        Ok(item)
    }
}
