//! A JSON document as a tree. Members are sorted by name; of two of one name the later counts.

use json_event_parser::{JsonEvent, LowLevelJsonParser};

use crate::fault::{Misuse, Place};

/// Levels of arrays and objects within each other.
pub const MOST_LEVELS: usize = 256;

/// Events between two looks whether to go on.
const LOOK_EVENTS: usize = 4096;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Json {
    pub place: Place,
    pub value: Value,
}

/// Values are equal wherever they stand.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    /// As it is written.
    Number(Box<str>),
    String(Box<str>),
    Array(Vec<Json>),
    Object(Object),
}

/// Members by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    members: Vec<(Box<str>, Json)>,
}

impl Json {
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&Object> {
        match &self.value {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    pub fn is_scalar(&self) -> bool {
        !matches!(self.value, Value::Array(_) | Value::Object(_) | Value::Null)
    }

    /// The elements of an array; any other value is its only one.
    pub fn elements(&self) -> &[Json] {
        match &self.value {
            Value::Array(elements) => elements,
            _ => std::slice::from_ref(self),
        }
    }

    pub fn fault(&self, code: &'static str, message: impl Into<String>) -> Misuse {
        self.place.fault(code, message)
    }
}

impl Object {
    fn new(mut members: Vec<(Box<str>, Json)>) -> Self {
        members.reverse();
        members.sort_by(|a, b| a.0.cmp(&b.0));
        members.dedup_by(|b, a| a.0 == b.0);
        members.shrink_to_fit();
        Object { members }
    }

    pub fn get(&self, name: &str) -> Option<&Json> {
        self.get_with_name(name).map(|(_, value)| value)
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// A member, with its name as it is kept here.
    pub fn get_with_name(&self, name: &str) -> Option<(&str, &Json)> {
        let at = self.members.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        let (name, value) = &self.members[at];
        Some((name, value))
    }

    /// Members in the order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Json)> {
        self.members.iter().map(|(name, value)| (&**name, value))
    }

    /// The members of both; those of `over` count where a name is in both.
    pub fn merged(&self, over: &Object) -> Object {
        Object::new(self.members.iter().chain(&over.members).cloned().collect())
    }
}

/// An array or object that was begun.
enum Open {
    Array(Place, Vec<Json>),
    /// with the name of the member whose value comes next
    Object(Place, Vec<(Box<str>, Json)>, Option<Box<str>>),
}

/// Parses a whole text; `number` is that of its places. `stop` tells whether to end before.
pub fn parse(text: &[u8], number: u32, stop: &dyn Fn() -> bool) -> Result<Json, Misuse> {
    let mut parser = LowLevelJsonParser::new();
    let mut open: Vec<Open> = Vec::new();
    let mut document = None;
    let mut offset = 0;
    let mut events = 0;
    loop {
        let step = parser.parse_next(&text[offset..], true);
        offset += step.consumed_bytes;
        let place = Place { text: number, offset: u32::try_from(offset).unwrap_or(u32::MAX) };
        let Some(event) = step.event else { continue };
        events += 1;
        if events % LOOK_EVENTS == 0 && stop() {
            return Err(Misuse::Stopped);
        }
        let value = match event.map_err(|error| place.fault("syntax", error.message()))? {
            JsonEvent::String(text) => Value::String(text.into()),
            JsonEvent::Number(text) => Value::Number(text.into()),
            JsonEvent::Boolean(value) => Value::Bool(value),
            JsonEvent::Null => Value::Null,
            JsonEvent::StartArray => {
                deeper(&open, place)?;
                open.push(Open::Array(place, Vec::new()));
                continue;
            }
            JsonEvent::StartObject => {
                deeper(&open, place)?;
                open.push(Open::Object(place, Vec::new(), None));
                continue;
            }
            JsonEvent::ObjectKey(name) => {
                if let Some(Open::Object(.., next)) = open.last_mut() {
                    *next = Some(name.into());
                }
                continue;
            }
            JsonEvent::EndArray | JsonEvent::EndObject => {
                let (place, value) = match open.pop() {
                    Some(Open::Array(place, mut elements)) => {
                        elements.shrink_to_fit();
                        (place, Value::Array(elements))
                    }
                    Some(Open::Object(place, members, _)) => (place, Value::Object(Object::new(members))),
                    None => return Err(place.fault("syntax", "nothing is open here")),
                };
                add(&mut open, &mut document, Json { place, value });
                continue;
            }
            JsonEvent::Eof => break,
        };
        add(&mut open, &mut document, Json { place, value });
    }
    document.ok_or_else(|| Place { text: number, offset: 0 }.fault("syntax", "the document is empty"))
}

fn deeper(open: &[Open], place: Place) -> Result<(), Misuse> {
    if open.len() < MOST_LEVELS {
        return Ok(());
    }
    let message = format!("more than {MOST_LEVELS} arrays and objects within each other");
    Err(place.fault("limit", message))
}

fn add(open: &mut [Open], document: &mut Option<Json>, value: Json) {
    match open.last_mut() {
        Some(Open::Array(_, elements)) => elements.push(value),
        Some(Open::Object(_, members, name)) => {
            members.push((name.take().expect("the parser gives a name before its value"), value));
        }
        None => *document = Some(value),
    }
}
