//! Start tags: names and attributes, normalised (XML 1.0, 3.1 and 3.3.3).

use std::collections::HashMap;

use super::cursor::{Cursor, Scan};
use super::doctype::tokens;
use super::entities::{Declared, DeclaredAttribute, Made, Text, attribute_value};

/// Attributes up to which comparing each with each is fastest.
const FEW: usize = 8;

/// An attribute as it is written.
#[derive(Clone, Copy)]
pub(super) struct Attribute {
    pub(super) name: Text,
    /// Where in its name the colon is; 0 without one.
    pub(super) colon: usize,
    pub(super) value: Text,
}

/// A tag without its attributes.
pub(super) struct Tag {
    pub(super) name: Text,
    pub(super) colon: usize,
    /// It ends itself.
    pub(super) is_empty: bool,
}

/// Attributes of a tag.
#[derive(Default)]
pub(super) struct Attributes {
    pub(super) all: Vec<Attribute>,
    pub(super) made: Made,
}

impl Attributes {
    /// A stretch of the text that is read or of what was made of it.
    pub(super) fn str<'a>(&'a self, text: &'a str, of: Text) -> &'a str {
        if of.is_made { &self.made.text[of.begin..of.end] } else { &text[of.begin..of.end] }
    }
}

/// Passes a start tag, behind its `<`.
pub(super) fn start_tag(
    cursor: &mut Cursor<'_>,
    declared: &Declared,
    attributes: &mut Attributes,
) -> Scan<Tag> {
    attributes.all.clear();
    attributes.made.text.clear();
    attributes.made.expanded = 0;
    let (name, colon) = qualified_name(cursor)?;
    loop {
        let spaced = cursor.space()?;
        let is_empty = match cursor.peek()? {
            b'>' => false,
            b'/' => {
                cursor.expect("/>")?;
                cursor.at -= 1;
                true
            }
            _ if !spaced => return cursor.bad("white space should be before an attribute"),
            _ => {
                let (name, colon) = qualified_name(cursor)?;
                cursor.space()?;
                cursor.expect("=")?;
                cursor.space()?;
                let value = attribute_value(cursor, declared, &mut attributes.made)?;
                attributes.all.push(Attribute { name, colon, value });
                continue;
            }
        };
        cursor.at += 1;
        if let Some(known) = declared.attributes.get(&cursor.text[name.begin..name.end]) {
            add_declared(cursor.text, known, attributes);
        }
        return Ok(Tag { name, colon, is_empty });
    }
}

fn qualified_name(cursor: &mut Cursor<'_>) -> Scan<(Text, usize)> {
    let begin = cursor.at;
    let name = cursor.name()?;
    match super::chars::colon_of(name) {
        Ok(colon) => Ok((Text { begin, end: cursor.at, is_made: false }, colon.unwrap_or(0))),
        Err(()) => Cursor::new(cursor.text, begin).bad(format!("{name} is no name with at most one prefix")),
    }
}

/// Declared attributes that are not written, and lists of names as they are declared.
fn add_declared(text: &str, known: &[DeclaredAttribute], attributes: &mut Attributes) {
    let written: HashMap<String, usize> = (0..attributes.all.len())
        .map(|i| (attributes.str(text, attributes.all[i].name).to_owned(), i))
        .collect();
    for DeclaredAttribute { name, is_tokens, default } in known {
        match (written.get(&**name), default) {
            (Some(index), _) if *is_tokens => {
                let value = tokens(attributes.str(text, attributes.all[*index].value));
                attributes.all[*index].value = push(&mut attributes.made, &value);
            }
            (None, Some(default)) => {
                let colon = super::chars::colon_of(name).ok().flatten().unwrap_or(0);
                let name = push(&mut attributes.made, name);
                let value = push(&mut attributes.made, default);
                attributes.made.expanded += value.end - name.begin;
                attributes.all.push(Attribute { name, colon, value });
            }
            _ => {}
        }
    }
}

fn push(made: &mut Made, text: &str) -> Text {
    let begin = made.text.len();
    made.text.push_str(text);
    Text { begin, end: made.text.len(), is_made: true }
}

/// The first of equal keys that comes again.
pub(super) fn first_twin<K: Eq + std::hash::Hash>(
    keys: impl ExactSizeIterator<Item = K> + Clone,
) -> Option<usize> {
    if keys.len() <= FEW {
        return keys
            .clone()
            .enumerate()
            .find_map(|(i, key)| keys.clone().take(i).any(|k| k == key).then_some(i));
    }
    let mut seen = std::collections::HashSet::with_capacity(keys.len());
    keys.enumerate().find_map(|(i, key)| (!seen.insert(key)).then_some(i))
}
