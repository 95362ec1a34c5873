//! Document type declarations (XML 1.0, 2.8 and 3 to 4.7): entities and attributes are kept, the
//! rest is looked at.
//!
//! Files that are named are not read. What is declared behind the first of them that may hold
//! declarations does not count, unless the document is said to stand alone (5.1).

use std::sync::Arc;

use super::cursor::{Cursor, Reference, Scan, Stop};
use super::entities::{Declared, DeclaredAttribute, Entity, Made, attribute_value};
use super::limits::MOST_DECLARED;

/// Parameter entities in parameter entities.
const MOST_WITHIN: usize = 16;

/// A declaration that is being read.
struct Doctype {
    declared: Declared,
    /// Parameter entities; `None` for files.
    parameters: std::collections::HashMap<Box<str>, Option<Arc<str>>>,
    stands_alone: bool,
    /// Bytes of parameter entities put in.
    expanded: usize,
    made: Made,
}

/// Passes a document type declaration, behind its `<!DOCTYPE`.
pub(super) fn doctype(cursor: &mut Cursor<'_>, stands_alone: bool) -> Scan<Declared> {
    let made = Made { most: MOST_DECLARED, ..Made::default() };
    let mut doctype = Doctype {
        declared: Declared::default(),
        parameters: Default::default(),
        stands_alone,
        expanded: 0,
        made,
    };
    cursor.must_space()?;
    cursor.name()?;
    if cursor.space()? && doctype.external(cursor, Public::NeedsSystem)? {
        doctype.declared.is_partial = !stands_alone;
        cursor.space()?;
    }
    if cursor.eat("[")? {
        doctype.declarations(cursor, 0)?;
        cursor.expect("]")?;
        cursor.space()?;
    }
    cursor.expect(">")?;
    Ok(doctype.declared)
}

/// Whether a public name needs a file beside it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Public {
    NeedsSystem,
    MayBeAlone,
}

impl Doctype {
    /// Declarations up to what is none: `]` or the end of a parameter entity.
    fn declarations(&mut self, cursor: &mut Cursor<'_>, within: usize) -> Scan<()> {
        loop {
            if within > 0 && cursor.rest().bytes().all(super::chars::is_space) {
                return Ok(());
            }
            cursor.space()?;
            if cursor.eat("<!--")? {
                cursor.comment()?;
            } else if cursor.eat("<?")? {
                cursor.instruction()?;
            } else if cursor.eat("<!ENTITY")? {
                self.entity(cursor)?;
            } else if cursor.eat("<!ATTLIST")? {
                self.attributes(cursor)?;
            } else if cursor.eat("<!ELEMENT")? {
                element(cursor)?;
            } else if cursor.eat("<!NOTATION")? {
                cursor.must_space()?;
                cursor.name()?;
                cursor.must_space()?;
                if !self.external(cursor, Public::MayBeAlone)? {
                    return cursor.bad("SYSTEM or PUBLIC should be here");
                }
                close(cursor)?;
            } else if cursor.eat("%")? {
                self.parameter(cursor, within)?;
            } else if within == 0 && cursor.peek()? == b']' {
                return Ok(());
            } else {
                return cursor.bad("no declaration begins so");
            }
        }
    }

    /// Puts in a parameter entity, behind its `%`.
    fn parameter(&mut self, cursor: &mut Cursor<'_>, within: usize) -> Scan<()> {
        let at = *cursor;
        let name = cursor.name()?;
        cursor.expect(";")?;
        let Some(Some(text)) = self.parameters.get(name) else {
            // one that is not read may declare anything
            self.declared.is_partial |= !self.stands_alone;
            return Ok(());
        };
        let text = Arc::clone(text);
        self.expanded += text.len();
        if within >= MOST_WITHIN || self.expanded > MOST_DECLARED {
            return at.bad(format!(
                "parameter entities nest more than {MOST_WITHIN} levels or stand for more than \
                 {MOST_DECLARED} bytes, the limits"
            ));
        }
        self.declarations(&mut Cursor::new(&text, 0), within + 1).or_else(|stop| match stop {
            Stop::More => at.bad(format!("the parameter entity {name} ends within a declaration")),
            Stop::Bad(_, why) => at.bad(format!("in the parameter entity {name}: {}", why.text)),
        })
    }

    /// `SYSTEM "file"` or `PUBLIC "name" "file"`; whether it is there.
    fn external(&mut self, cursor: &mut Cursor<'_>, public: Public) -> Scan<bool> {
        if cursor.eat("SYSTEM")? {
            cursor.must_space()?;
            cursor.quoted()?;
            return Ok(true);
        }
        if !cursor.eat("PUBLIC")? {
            return Ok(false);
        }
        cursor.must_space()?;
        let at = *cursor;
        let is_public = |b: u8| b.is_ascii_alphanumeric() || b" \n-'()+,./:=?;!*#@$_%".contains(&b);
        if !cursor.quoted()?.bytes().all(is_public) {
            return at.bad("a public name has other characters");
        }
        let spaced = cursor.space()?;
        if public == Public::MayBeAlone && !matches!(cursor.peek()?, b'"' | b'\'') {
            return Ok(true);
        }
        if !spaced {
            return cursor.bad("white space should be here");
        }
        cursor.quoted()?;
        Ok(true)
    }

    /// An entity, behind its `<!ENTITY`. The first declaration of a name counts.
    fn entity(&mut self, cursor: &mut Cursor<'_>) -> Scan<()> {
        cursor.must_space()?;
        let is_parameter = cursor.eat("%")?;
        if is_parameter {
            cursor.must_space()?;
        }
        let name = cursor.name()?;
        cursor.must_space()?;
        let text = if self.external(cursor, Public::NeedsSystem)? {
            let spaced = cursor.space()?;
            if !is_parameter && cursor.eat("NDATA")? {
                if !spaced {
                    return cursor.bad("white space should be before NDATA");
                }
                cursor.must_space()?;
                cursor.name()?;
            }
            None
        } else {
            Some(entity_value(cursor)?)
        };
        close(cursor)?;
        if self.declared.is_partial {
            return Ok(());
        }
        if is_parameter {
            self.parameters.entry(name.into()).or_insert(text.map(Into::into));
        } else {
            let entity = text.map_or(Entity::Outside, |text| Entity::Text(text.into()));
            self.declared.entities.entry(name.into()).or_insert(entity);
        }
        Ok(())
    }

    /// Attributes of an element, behind `<!ATTLIST`. The first declaration of one counts.
    fn attributes(&mut self, cursor: &mut Cursor<'_>) -> Scan<()> {
        cursor.must_space()?;
        let element = cursor.name()?;
        loop {
            let spaced = cursor.space()?;
            if cursor.eat(">")? {
                return Ok(());
            }
            if !spaced {
                return cursor.bad("white space should be here");
            }
            let name = cursor.name()?;
            cursor.must_space()?;
            let is_tokens = attribute_type(cursor)?;
            cursor.must_space()?;
            let default = self.default(cursor)?;
            if self.declared.is_partial {
                continue;
            }
            let default = default.map(|value| if is_tokens { tokens(&value) } else { value }.into());
            let known = self.declared.attributes.entry(element.into()).or_default();
            if !known.iter().any(|one| *one.name == *name) {
                known.push(DeclaredAttribute { name: name.into(), is_tokens, default });
            }
        }
    }

    fn default(&mut self, cursor: &mut Cursor<'_>) -> Scan<Option<String>> {
        if cursor.eat("#REQUIRED")? || cursor.eat("#IMPLIED")? {
            return Ok(None);
        }
        if cursor.eat("#FIXED")? {
            cursor.must_space()?;
        }
        self.made.text.clear();
        let value = attribute_value(cursor, &self.declared, &mut self.made);
        let value = value.map_err(|stop| match stop {
            Stop::Bad(at, why) if why.is_too_long => {
                let why = format!("a default value has more than {MOST_DECLARED} bytes, the limit");
                Stop::Bad(at, why.into())
            }
            stop => stop,
        })?;
        let from = if value.is_made { self.made.text.as_str() } else { cursor.text };
        Ok(Some(from[value.begin..value.end].to_owned()))
    }
}

/// The end of a declaration.
fn close(cursor: &mut Cursor<'_>) -> Scan<()> {
    cursor.space()?;
    cursor.expect(">")
}

/// The text of an entity: characters are put in for their numbers, names stay.
fn entity_value(cursor: &mut Cursor<'_>) -> Scan<String> {
    let begin = *cursor;
    let mut inner = Cursor::new(begin.text, begin.at + 1);
    let end = inner.at + cursor.quoted()?.len();
    let mut text = String::new();
    while inner.at < end {
        let rest = &begin.text[inner.at..end];
        let plain = memchr::memchr2(b'&', b'%', rest.as_bytes()).unwrap_or(rest.len());
        text.push_str(&rest[..plain]);
        inner.at += plain;
        if plain == rest.len() {
            break;
        }
        let at = inner;
        inner.at += 1;
        if rest.as_bytes()[plain] == b'%' {
            return at.bad("a parameter entity may not be in a declaration here; write &#37;");
        }
        match inner.reference()? {
            Reference::Char(c) if begin.text[at.at..].starts_with("&#") => text.push(c),
            _ => text.push_str(&begin.text[at.at..inner.at]),
        }
        if inner.at > end {
            return at.bad("the entity ends within a reference");
        }
    }
    Ok(text)
}

/// A value that is a list of names, with one space between two of them.
pub(super) fn tokens(value: &str) -> String {
    value.split(' ').filter(|token| !token.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The type of an attribute; whether its values are lists of names.
fn attribute_type(cursor: &mut Cursor<'_>) -> Scan<bool> {
    if cursor.eat("(")? {
        return choice(cursor, |cursor| cursor.name_token().map(drop));
    }
    let at = *cursor;
    match cursor.name()? {
        "CDATA" => Ok(false),
        "ID" | "IDREF" | "IDREFS" | "ENTITY" | "ENTITIES" | "NMTOKEN" | "NMTOKENS" => Ok(true),
        "NOTATION" => {
            cursor.must_space()?;
            cursor.expect("(")?;
            choice(cursor, |cursor| cursor.name().map(drop))
        }
        other => at.bad(format!("{other} is no type of attributes")),
    }
}

/// A list to choose from, behind its `(`.
fn choice(cursor: &mut Cursor<'_>, one: impl Fn(&mut Cursor<'_>) -> Scan<()>) -> Scan<bool> {
    loop {
        cursor.space()?;
        one(cursor)?;
        cursor.space()?;
        if cursor.eat(")")? {
            return Ok(true);
        }
        cursor.expect("|")?;
    }
}

/// The content of an element, behind `<!ELEMENT`: its parentheses and what is between them.
fn element(cursor: &mut Cursor<'_>) -> Scan<()> {
    cursor.must_space()?;
    cursor.name()?;
    cursor.must_space()?;
    if cursor.eat("EMPTY")? || cursor.eat("ANY")? {
        return close(cursor);
    }
    cursor.expect("(")?;
    cursor.space()?;
    if cursor.eat("#PCDATA")? {
        return mixed(cursor);
    }
    // by open parenthesis, the separator in it
    let mut open = vec![None];
    loop {
        cursor.space()?;
        if cursor.eat("(")? {
            open.push(None);
            continue;
        }
        cursor.name()?;
        repetition(cursor)?;
        loop {
            cursor.space()?;
            let at = *cursor;
            let separator = cursor.peek()?;
            cursor.at += separator_len(separator);
            match (separator, open.last_mut()) {
                (b')', _) => {
                    open.pop();
                    repetition(cursor)?;
                    if open.is_empty() {
                        return close(cursor);
                    }
                }
                (b'|' | b',', Some(known)) if known.is_none_or(|one| one == separator) => {
                    *known = Some(separator);
                    break;
                }
                _ => return at.bad("this is no content of an element"),
            }
        }
    }
}

fn separator_len(byte: u8) -> usize {
    usize::from(matches!(byte, b')' | b'|' | b','))
}

fn repetition(cursor: &mut Cursor<'_>) -> Scan<()> {
    if matches!(cursor.peek()?, b'?' | b'*' | b'+') {
        cursor.at += 1;
    }
    Ok(())
}

/// Text with elements in it, behind its `(#PCDATA`.
fn mixed(cursor: &mut Cursor<'_>) -> Scan<()> {
    let mut names = 0;
    loop {
        cursor.space()?;
        if cursor.eat(")*")? {
            return close(cursor);
        }
        if names == 0 && cursor.eat(")")? {
            return close(cursor);
        }
        cursor.expect("|")?;
        cursor.space()?;
        cursor.name()?;
        names += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Scan<Declared> {
        doctype(&mut Cursor::new(text, 0), false)
    }

    #[track_caller]
    fn entity(declared: &Declared, name: &str) -> String {
        declared.text(name).unwrap().to_string()
    }

    #[test]
    fn entities_of_either_quote() {
        let declared = read(
            " r [<!-- > --><?pi ]> ?><!ENTITY a 'x\"&#38;#60;&b;'>\n<!ENTITY b \"y'\" ><!ENTITY a 'other'>
             <!ENTITY f SYSTEM 'file'><!ENTITY g PUBLIC \"p\" 'file' NDATA n><!NOTATION n PUBLIC 'p'>] >",
        )
        .unwrap();
        assert_eq!(entity(&declared, "a"), "x\"&#60;&b;");
        assert_eq!(entity(&declared, "b"), "y'");
        assert!(declared.text("f").is_err() && declared.text("g").is_err() && !declared.is_partial);
    }

    #[test]
    fn parameter_entities_between_declarations() {
        let declared = read(" r [<!ENTITY % p \"<!ENTITY a 'x'> \">%p;]>").unwrap();
        assert_eq!(entity(&declared, "a"), "x");
        let declared = read(" r [<!ENTITY % p SYSTEM 'f'>%p;<!ENTITY a 'x'>]>").unwrap();
        assert!(declared.is_partial && declared.text("a").unwrap_err().contains("another file"));
        assert!(read(" r PUBLIC 'a' 'b'>").unwrap().is_partial);
        assert!(!doctype(&mut Cursor::new(" r SYSTEM 'b'>", 0), true).unwrap().is_partial);
    }

    #[test]
    fn attributes_and_their_defaults() {
        let declared = read(
            " r [<!ENTITY e 'x'><!ATTLIST a b CDATA ' &e;\n' c NMTOKENS #FIXED ' 1  2 ' d (x|y ) #IMPLIED>
             <!ATTLIST a b CDATA 'other' e NOTATION ( n ) #REQUIRED><!ATTLIST z>]>",
        )
        .unwrap();
        let all: Vec<_> =
            declared.attributes["a"].iter().map(|one| (&*one.name, one.default.as_deref())).collect();
        assert_eq!(all, [("b", Some(" x ")), ("c", Some("1 2")), ("d", None), ("e", None)]);
    }

    #[test]
    fn what_is_no_declaration() {
        for text in [
            "r>",
            " >",
            " r [<!ENTITY>]>",
            " r [<!ENTITY a>]>",
            " r [<!ENTITY a 'x' y>]>",
            " r [<!ENTITY a '&'>]>",
            " r [<!ENTITY a '&x'><!ENTITY b 'y;'>]>",
            " r [<!ENTITY a '%x;'>]>",
            " r [<!ENTITY a '&#0;'>]>",
            " r [<!ENTITY % a SYSTEM 'x' NDATA n>]>",
            " r [<!ENTITY a PUBLIC 'x'>]>",
            " r [<!ENTITY a PUBLIC '{' 'x'>]>",
            " r [<!ENTITY % p '<!ENTITY a'>%p;]>",
            " r [<!ENTITY % p '%p;'>%p;]>",
            " r [<!ATTLIST a b CDATA>]>",
            " r [<!ATTLIST a b CDATA '&x;'>]>",
            " r [<!ATTLIST a b CDATA '<'>]>",
            " r [<!ATTLIST a b FOO 'x'>]>",
            " r [<!ATTLIST a b () 'x'>]>",
            " r [<!ATTLIST a b CDATA'x'>]>",
            " r [<!ELEMENT a>]>",
            " r [<!ELEMENT a (b,)>]>",
            " r [<!ELEMENT a (b,c|d)>]>",
            " r [<!ELEMENT a (b))>]>",
            " r [<!ELEMENT a (#PCDATA|b)>]>",
            " r [<!ELEMENT a (b,#PCDATA)>]>",
            " r [<!NOTATION n>]>",
            " r [<!FOO>]>",
            " r [<![IGNORE[]]>]>",
            " r [x]>",
            " r [<!-- -- -->]>",
            " r [<?xml x?>]>",
            " r []x>",
        ] {
            assert!(matches!(read(text), Err(Stop::Bad(..))), "{text}: {:?}", read(text).is_ok());
        }
        for text in [
            " r [<!ELEMENT a (b , (c|d)* ,e?)+><!ELEMENT a EMPTY ><!ELEMENT b ANY>]>",
            " r [<!ELEMENT a (#PCDATA)><!ELEMENT a ( #PCDATA )* ><!ELEMENT a (#PCDATA | b|c )*>]>",
            " r [<!ELEMENT a (((((b)))))>]>",
        ] {
            assert!(read(text).is_ok(), "{text}");
            for len in 0..text.len() {
                assert!(matches!(read(&text[..len]), Err(Stop::More)), "{}", &text[..len]);
            }
        }
    }
}
