//! The members of an object (5.1.2, steps 13 to 19).

use std::rc::Rc;

use super::item::add;
use super::{Expander, Item, NodeItem, Scalar, ValueItem, Within};
use crate::context::{Container, Context, Relative, TextDirection, direction_of, is_keyword};
use crate::fault::Misuse;
use crate::json::{Json, Object, Value};

/// An object while its members are looked at.
pub(super) struct Building<'j> {
    element: &'j Json,
    /// The type of its value, as the types of the object say.
    pub input_type: Option<String>,
    pub node: NodeItem,
    value: Option<&'j Json>,
    /// Whether its types are one string.
    has_one_type: bool,
    language: Option<String>,
    direction: Option<Option<TextDirection>>,
    list: Option<Vec<Item>>,
    set: Option<Vec<Item>>,
    /// Keywords that were seen.
    keywords: Vec<&'static str>,
    has_type: bool,
}

/// Keywords of objects.
const MEMBERS: [&str; 11] = [
    "@id",
    "@type",
    "@graph",
    "@included",
    "@value",
    "@language",
    "@direction",
    "@index",
    "@list",
    "@set",
    "@reverse",
];

impl<'j> Building<'j> {
    pub fn new(element: &'j Json) -> Self {
        Self {
            element,
            input_type: None,
            node: NodeItem::default(),
            value: None,
            has_one_type: false,
            language: None,
            direction: None,
            list: None,
            set: None,
            keywords: Vec::new(),
            has_type: false,
        }
    }

    fn fault(&self, code: &'static str, message: &str) -> Misuse {
        self.element.fault(code, message)
    }

    /// Notes a keyword; each is there once, but those that add up.
    fn sees(&mut self, keyword: &'static str, place: &Json) -> Result<(), Misuse> {
        if self.keywords.contains(&keyword) && !matches!(keyword, "@included" | "@type") {
            return Err(place.fault("colliding keywords", format!("{keyword} is there twice")));
        }
        self.keywords.push(keyword);
        Ok(())
    }

    /// Returns the items that have been built: none where they would say nothing.
    pub fn finish(mut self, is_outermost: bool) -> Result<Vec<Item>, Misuse> {
        if let Some(value) = self.value.take() {
            let item = self.value_item(value)?;
            return Ok(if is_outermost { Vec::new() } else { item.into_iter().map(Item::Value).collect() });
        }
        if self.list.is_some() || self.set.is_some() {
            let most = 1 + usize::from(self.keywords.contains(&"@index"));
            if self.keywords.len() > most || !self.node.properties.is_empty() || !self.node.reverse.is_empty()
            {
                let message = "beside @list or @set there is only @index";
                return Err(self.fault("invalid set or list object", message));
            }
            return Ok(match (self.list, self.set) {
                (Some(_), _) if is_outermost => Vec::new(),
                (Some(list), _) => vec![Item::List(list)],
                (None, set) => set.unwrap_or_default(),
            });
        }
        let has_properties = !self.node.properties.is_empty() || !self.node.reverse.is_empty();
        if self.keywords == ["@language"] && !has_properties {
            return Ok(Vec::new());
        }
        // outermost nodes say something
        if is_outermost && self.node.is_idle() {
            return Ok(Vec::new());
        }
        Ok(vec![Item::Node(Box::new(self.node))])
    }

    /// A value object (step 15); `None` if the value is null.
    fn value_item(&mut self, value: &Json) -> Result<Option<Box<ValueItem>>, Misuse> {
        let allowed = ["@value", "@type", "@language", "@direction", "@index"];
        let has_other = self.keywords.iter().any(|keyword| !allowed.contains(keyword));
        let has_text = self.language.is_some() || self.direction.is_some();
        if has_other || !self.node.properties.is_empty() || !self.node.reverse.is_empty() {
            let message = "beside @value there are only @type, @language, @direction and @index";
            return Err(self.fault("invalid value object", message));
        }
        if self.has_type && has_text {
            let message = "a value has either a type, or a language or direction";
            return Err(self.fault("invalid value object", message));
        }
        let datatype = self.node.types.pop();
        if self.input_type.as_deref() == Some("@json") && datatype.as_deref() == Some("@json") {
            let mut item = ValueItem::new(Scalar::Json(value.clone()));
            item.datatype = datatype;
            return Ok(Some(Box::new(item)));
        }
        if value.is_null() || matches!(&value.value, Value::Array(elements) if elements.is_empty()) {
            return Ok(None);
        }
        let scalar = Scalar::from_json(value)
            .ok_or_else(|| value.fault("invalid value object value", "a value is a scalar or null"))?;
        if value.as_str().is_none() && self.language.is_some() {
            let message = "only a text has a language";
            return Err(value.fault("invalid language-tagged value", message));
        }
        if self.has_type {
            let is_iri = |iri: &String| oxiri::Iri::parse(iri.as_str()).is_ok();
            if !self.has_one_type || !datatype.as_ref().is_some_and(is_iri) {
                return Err(self.fault("invalid typed value", "the type of a value is one IRI"));
            }
        }
        let mut item = ValueItem::new(scalar);
        item.datatype = datatype;
        item.language = self.language.take();
        item.direction = self.direction.flatten();
        item.index = self.node.index.take();
        Ok(Some(Box::new(item)))
    }
}

impl<'a> Expander<'a> {
    /// Adds the members of an object. The second context is that in force for types.
    pub(super) fn members<'j>(
        &self,
        within: Within<'_>,
        contexts: (&Rc<Context>, &Rc<Context>),
        members: &'j Object,
        building: &mut Building<'j>,
    ) -> Result<(), Misuse> {
        let active = contexts.0;
        let mut nests = Vec::new();
        for (name, value) in members.iter().filter(|(name, _)| *name != "@context") {
            let Some(property) = active.vocabulary(name) else { continue };
            if property == "@nest" {
                nests.push((name, value));
            } else if is_keyword(&property) {
                let keyword = MEMBERS.iter().find(|known| **known == property);
                if within.property == Some("@reverse") && keyword.is_some() {
                    let message = "the values of @reverse are properties";
                    return Err(value.fault("invalid reverse property map", message));
                }
                let Some(keyword) = keyword else { continue };
                building.sees(keyword, value)?;
                self.keyword(within, contexts, keyword, value, building)?;
            } else if property.contains(':') {
                self.process.keeps(property.len(), value)?;
                self.property(active, (name, &property), value, building)?;
            }
        }
        for (name, value) in nests {
            self.nested(within, contexts, (name, value), building)?;
        }
        Ok(())
    }

    /// `@nest`: the members of its values are members of the object.
    fn nested<'j>(
        &self,
        within: Within<'_>,
        contexts: (&Rc<Context>, &Rc<Context>),
        nest: (&str, &'j Json),
        building: &mut Building<'j>,
    ) -> Result<(), Misuse> {
        let (active, type_scoped) = contexts;
        let (name, value) = nest;
        let scope = Within { active, property: Some(name), is_in_map: false, is_in_list: false };
        let scoped = self.scoped_to_property(scope, active)?;
        for element in value.elements() {
            let is_value = |members: &Object| {
                members.iter().any(|(name, _)| scoped.vocabulary(name).as_deref() == Some("@value"))
            };
            match element.as_object().filter(|members| !is_value(members)) {
                Some(members) => self.members(within, (&scoped, type_scoped), members, building)?,
                None => {
                    let message = "the values of @nest are objects without @value";
                    return Err(element.fault("invalid @nest value", message));
                }
            }
        }
        Ok(())
    }

    /// A member that is a keyword (step 13.4).
    fn keyword<'j>(
        &self,
        within: Within<'_>,
        contexts: (&Rc<Context>, &Rc<Context>),
        keyword: &str,
        value: &'j Json,
        building: &mut Building<'j>,
    ) -> Result<(), Misuse> {
        let (active, type_scoped) = contexts;
        let inside = |property| Within { active, property, is_in_map: false, is_in_list: false };
        match keyword {
            "@id" => {
                let text = value.as_str();
                let text =
                    text.ok_or_else(|| value.fault("invalid @id value", "the value of @id is an IRI"))?;
                let id = active.expand(text, Relative::Base);
                self.process.keeps(id.as_ref().map_or(0, String::len), value)?;
                building.node.id = Some(id);
            }
            "@type" => self.types(type_scoped, value, building)?,
            "@graph" => {
                let items = self.expand(inside(Some("@graph")), value)?;
                building.node.graph = Some(items);
            }
            "@included" => {
                let items = self.expand(inside(Some("@included")), value)?;
                let said = value.elements().iter().all(|element| element.as_object().is_some());
                if !said || items.iter().any(|item| !matches!(item, Item::Node(_))) {
                    let message = "the values of @included are nodes";
                    return Err(value.fault("invalid @included value", message));
                }
                building.node.included.extend(items);
            }
            "@value" => {
                let is_json = building.input_type.as_deref() == Some("@json");
                if !is_json && !value.is_scalar() && !value.is_null() {
                    return Err(value.fault("invalid value object value", "a value is a scalar or null"));
                }
                building.value = Some(value);
            }
            "@language" => {
                let tag = value.as_str().ok_or_else(|| {
                    value.fault("invalid language-tagged string", "the value of @language is a language tag")
                })?;
                building.language = Some(tag.to_owned());
            }
            "@direction" => building.direction = Some(direction_of(value)?),
            "@index" => {
                let text = value.as_str();
                let text = text.ok_or_else(|| value.fault("invalid @index value", "an index is a string"))?;
                building.node.index = Some(text.to_owned());
            }
            "@list" if within.is_outermost() => building.list = Some(Vec::new()),
            "@list" => {
                let inside = Within { is_in_list: true, ..inside(within.property) };
                building.list = Some(self.expand(inside, value)?);
            }
            "@set" => building.set = Some(self.expand(inside(within.property), value)?),
            _ => self.reverse(active, value, building)?,
        }
        Ok(())
    }

    /// The value of `@reverse`.
    fn reverse<'j>(
        &self,
        active: &Rc<Context>,
        value: &'j Json,
        building: &mut Building<'j>,
    ) -> Result<(), Misuse> {
        let members = value
            .as_object()
            .ok_or_else(|| value.fault("invalid @reverse value", "the value of @reverse is an object"))?;
        let within = Within { active, property: Some("@reverse"), is_in_map: false, is_in_list: false };
        let inner = self.context_of(within, members)?;
        let mut inside = Building::new(value);
        self.members(within, (&inner, &inner), members, &mut inside)?;
        for (property, items) in inside.node.reverse {
            // twice reversed
            building.node.add(&property, items);
        }
        for (property, items) in inside.node.properties {
            only_nodes(&items, value)?;
            add(&mut building.node.reverse, &property, items);
        }
        Ok(())
    }

    /// A member that is a property (steps 13.5 to 13.14).
    fn property(
        &self,
        active: &Rc<Context>,
        names: (&str, &str),
        value: &Json,
        building: &mut Building<'_>,
    ) -> Result<(), Misuse> {
        let (name, property) = names;
        let definition = active.term(name);
        let container = active.container(name);
        let within = Within { active, property: Some(name), is_in_map: false, is_in_list: false };
        let mut is_there = !value.is_null();
        let mut items = match value.as_object() {
            _ if definition.is_some_and(|d| d.datatype.as_deref() == Some("@json")) => {
                is_there = true;
                let mut item = ValueItem::new(Scalar::Json(value.clone()));
                item.datatype = Some("@json".to_owned());
                vec![Item::Value(Box::new(item))]
            }
            Some(members) if container.has(Container::LANGUAGE) => self.language_map(within, members)?,
            Some(members)
                if container.has(Container::INDEX)
                    || container.has(Container::TYPE)
                    || container.has(Container::ID) =>
            {
                self.index_map(within, members)?
            }
            _ => self.expand(within, value)?,
        };
        if !is_there {
            return Ok(());
        }
        if container.has(Container::LIST) && !matches!(items[..], [Item::List(_)] if !is_array(value)) {
            items = vec![Item::List(items)];
        }
        let is_map = container.has(Container::ID) || container.has(Container::INDEX);
        if container.has(Container::GRAPH) && !is_map {
            items = items.into_iter().map(graph_of).collect();
        }
        if definition.is_some_and(|definition| definition.is_reverse) {
            only_nodes(&items, value)?;
            add(&mut building.node.reverse, property, items);
        } else {
            building.node.add(property, items);
        }
        Ok(())
    }
}

fn is_array(value: &Json) -> bool {
    matches!(value.value, Value::Array(_))
}

/// A graph of one element, without a name.
pub(super) fn graph_of(item: Item) -> Item {
    Item::Node(Box::new(NodeItem { graph: Some(vec![item]), ..NodeItem::default() }))
}

fn only_nodes(items: &[Item], place: &Json) -> Result<(), Misuse> {
    match items.iter().all(|item| matches!(item, Item::Node(_))) {
        true => Ok(()),
        false => {
            let message = "the values of a reverse property are nodes";
            Err(place.fault("invalid reverse property value", message))
        }
    }
}

impl Expander<'_> {
    fn types(&self, type_scoped: &Context, value: &Json, building: &mut Building<'_>) -> Result<(), Misuse> {
        let invalid =
            || value.fault("invalid type value", "the value of @type is an IRI, or an array of IRIs");
        for element in value.elements() {
            let name = element.as_str().ok_or_else(invalid)?;
            let iri = type_scoped.expand(name, Relative::Both);
            self.process.keeps(iri.as_ref().map_or(0, String::len), element)?;
            building.node.types.extend(iri);
        }
        building.has_one_type = value.as_str().is_some() && building.node.types.len() == 1;
        building.has_type = true;
        Ok(())
    }
}
