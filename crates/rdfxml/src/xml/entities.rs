//! Declarations, and the texts that names of entities stand for (XML 1.0, 3.3.3 and 4.4).

use std::collections::HashMap;
use std::sync::Arc;

use super::cursor::{Cursor, Reference, Scan, Stop};
use super::limits::{MOST_EXPANDED, MOST_NESTED, too_long};

/// A declared entity.
pub(super) enum Entity {
    /// Its text, with references to characters replaced.
    Text(Arc<str>),
    /// An external entity.
    Outside,
}

/// A declared attribute.
pub(super) struct DeclaredAttribute {
    pub(super) name: Box<str>,
    /// Its value is a list of names: spaces around and between them count as one.
    pub(super) is_tokens: bool,
    /// Its value where it is not written.
    pub(super) default: Option<Box<str>>,
}

/// All declarations of a document.
#[derive(Default)]
pub(super) struct Declared {
    pub(super) entities: HashMap<Box<str>, Entity>,
    /// By element.
    pub(super) attributes: HashMap<Box<str>, Vec<DeclaredAttribute>>,
    /// Some declarations are in other files, which are not read.
    pub(super) is_partial: bool,
}

impl Declared {
    /// The text of an entity.
    pub(super) fn text(&self, name: &str) -> Result<&Arc<str>, String> {
        match self.entities.get(name) {
            Some(Entity::Text(text)) => Ok(text),
            Some(Entity::Outside) => Err(format!(
                "the entity {name} is another file, which is not read; put its text into the document"
            )),
            None if self.is_partial => Err(format!(
                "the entity {name} is declared in another file, which is not read; declare it in the document"
            )),
            None => Err(format!("the entity {name} is not declared; write &amp; for an ampersand")),
        }
    }
}

/// A stretch of the text that is read, or of what was made from it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Text {
    pub(super) begin: usize,
    pub(super) end: usize,
    pub(super) is_made: bool,
}

/// Values that do not stand in the text as they are.
#[derive(Default)]
pub(super) struct Made {
    pub(super) text: String,
    /// Bytes that came from entities and defaults.
    pub(super) expanded: usize,
    /// Bytes it may have.
    pub(super) most: usize,
}

/// Bytes of attribute values that are no characters of theirs, or end them.
const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let special = b"\"'<&\t\n\r";
    let mut i = 0;
    while i < special.len() {
        table[special[i] as usize] = true;
        i += 1;
    }
    table
};

/// Bytes of a text up to a special one.
fn plain_len(text: &str) -> usize {
    text.bytes().position(|byte| SPECIAL[usize::from(byte)]).unwrap_or(text.len())
}

/// Passes the value of an attribute with its quotes.
pub(super) fn attribute_value(cursor: &mut Cursor<'_>, declared: &Declared, made: &mut Made) -> Scan<Text> {
    let quote = cursor.peek()?;
    if !matches!(quote, b'"' | b'\'') {
        return cursor.bad("the value of an attribute stands in quotes");
    }
    cursor.at += 1;
    let begin = cursor.at;
    cursor.at += plain_len(cursor.rest());
    if cursor.peek()? == quote {
        cursor.at += 1;
        return Ok(Text { begin, end: cursor.at - 1, is_made: false });
    }
    let made_begin = made.text.len();
    made.text.push_str(&cursor.text[begin..cursor.at]);
    loop {
        match cursor.peek()? {
            byte if byte == quote => break,
            b'<' => return cursor.bad("< may not be in the value of an attribute; write &lt;"),
            b'&' => {
                let at = *cursor;
                cursor.at += 1;
                match cursor.reference()? {
                    Reference::Char(c) => made.text.push(c),
                    Reference::Entity(name) => expand(name, declared, made).or_else(|e| at.bad(e))?,
                }
            }
            byte @ (b'"' | b'\'') => {
                made.text.push(char::from(byte));
                cursor.at += 1;
            }
            _ => {
                made.text.push(' ');
                cursor.at += 1;
            }
        }
        let plain = plain_len(cursor.rest());
        made.text.push_str(&cursor.rest()[..plain]);
        cursor.at += plain;
        if made.text.len() > made.most {
            return cursor.bad(too_long(made.most));
        }
    }
    cursor.at += 1;
    Ok(Text { begin: made_begin, end: made.text.len(), is_made: true })
}

/// Appends what a name stands for in the value of an attribute.
fn expand(name: &str, declared: &Declared, made: &mut Made) -> Result<(), String> {
    let mut within = vec![(name, Cursor::new(declared.text(name)?, 0))];
    let mut expanded = 0;
    while let Some((name, cursor)) = within.last_mut() {
        let plain = plain_len(cursor.rest());
        made.text.push_str(&cursor.rest()[..plain]);
        expanded += plain;
        cursor.at += plain;
        let Some(byte) = cursor.rest().bytes().next() else {
            within.pop();
            continue;
        };
        cursor.at += 1;
        expanded += 1;
        match byte {
            b'<' => return Err(format!("the entity {name} has a <, so no attribute may have it")),
            b'"' | b'\'' => made.text.push(char::from(byte)),
            b'&' => match cursor.reference() {
                Ok(Reference::Char(c)) => made.text.push(c),
                Ok(Reference::Entity(inner)) => {
                    let text = declared.text(inner)?;
                    check_nesting(inner, within.iter().map(|(name, _)| *name))?;
                    within.push((inner, Cursor::new(text, 0)));
                }
                Err(Stop::Bad(_, why)) => return Err(format!("in the entity {name}: {}", why.text)),
                Err(Stop::More) => return Err(format!("the entity {name} ends within a reference")),
            },
            _ => made.text.push(' '),
        }
        check_expanded(within[0].0, expanded)?;
    }
    made.expanded += expanded;
    Ok(())
}

/// An error when an entity is within itself, or in too many.
pub(super) fn check_nesting<'a>(name: &str, mut within: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut levels = 0;
    if within.by_ref().inspect(|_| levels += 1).any(|outer| outer == name) {
        return Err(format!("the entity {name} is within itself"));
    }
    if levels >= MOST_NESTED {
        return Err(format!("entities nest more than {MOST_NESTED} levels, the limit"));
    }
    Ok(())
}

/// An error when a reference stands for too much.
pub(super) fn check_expanded(name: &str, bytes: usize) -> Result<(), String> {
    if bytes <= MOST_EXPANDED {
        return Ok(());
    }
    Err(format!("the entity {name} stands for more than {MOST_EXPANDED} bytes, the limit"))
}
