//! Events: what stands in a document, one thing after the other.

use std::io::Read;
use std::sync::Arc;

use super::chars::{is_nc_name, is_space};
use super::cursor::{Cursor, Reference, Scan, Stop};
use super::declaration::declaration;
use super::doctype::doctype;
use super::entities::{Declared, Text, check_expanded, check_nesting};
use super::limits::{Amplified, MOST_DECLARED, MOST_LEVELS, too_long};
use super::namespaces::Namespaces;
use super::tag::{Attribute, Attributes, Tag, first_twin, start_tag};
use super::window::Window;
use super::{XML, XMLNS};
use crate::fault::{FaultText, ReadError, ReadFault, TextPlace};

/// The next thing in a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// An element begins: [`Parser::name`], [`Parser::attribute`].
    Start,
    /// It ends: [`Parser::name`].
    End,
    /// A stretch of text: [`Parser::text`]. What follows may be text as well.
    Text,
    /// A comment within the root: [`Parser::text`].
    Comment,
    /// A processing instruction within the root: [`Parser::target`], [`Parser::text`].
    Instruction,
    /// The document is over.
    Over,
}

/// How far a document has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Beginning,
    Prolog { has_doctype: bool },
    Root,
    Epilog,
}

/// An element that is open.
struct Open {
    /// Where its name begins in the names.
    name: usize,
    /// Bindings of prefixes before it.
    namespaces: usize,
}

/// An entity whose text is being read.
struct Frame {
    name: Box<str>,
    text: Arc<str>,
    at: usize,
    /// Elements open when it began.
    levels: usize,
}

/// A qualified name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct XmlName<'a> {
    /// Empty for names without one.
    pub prefix: &'a str,
    /// The name behind its prefix.
    pub local: &'a str,
    /// Empty when the name is in none.
    pub namespace: &'a str,
    /// As it is written.
    pub qualified: &'a str,
}

/// Reads a document event by event.
pub struct Parser<R> {
    window: Window<R>,
    frames: Vec<Frame>,
    /// Bytes that came from the outermost of the frames.
    expanded: usize,
    declared: Declared,
    stands_alone: bool,
    stage: Stage,
    open: Vec<Open>,
    /// The names of open elements, one behind the other.
    names: String,
    colon: usize,
    namespaces: Namespaces,
    attributes: Attributes,
    /// Attributes without declarations of namespaces: places in `attributes`.
    plain: Vec<usize>,
    text: Text,
    target: Text,
    /// The last event was the end of an element, which is open until the next.
    has_ended: bool,
    /// The last event was a tag that ends itself.
    ends_itself: bool,
    /// Where the last event begins in the window.
    event_at: usize,
    longest: usize,
    longest_tag: usize,
    /// A document type declaration may come.
    may_declare: bool,
    amplified: Amplified,
}

/// The text that is read now, and where.
fn source<'a, R: Read>(window: &'a Window<R>, frames: &'a [Frame]) -> Cursor<'a> {
    match frames.last() {
        Some(frame) => Cursor::new(&frame.text, frame.at),
        None => Cursor::new(window.text(), window.at()),
    }
}

impl<R: Read> Parser<R> {
    /// A parser whose tokens have at most about `longest` bytes.
    pub(crate) fn new(read: R, longest: usize) -> Self {
        let mut namespaces = Namespaces::default();
        namespaces.bind("xml", XML);
        let mut attributes = Attributes::default();
        attributes.made.most = longest;
        Parser {
            window: Window::new(read),
            frames: Vec::new(),
            expanded: 0,
            declared: Declared::default(),
            stands_alone: false,
            stage: Stage::Beginning,
            open: Vec::new(),
            names: String::new(),
            colon: 0,
            namespaces,
            attributes,
            plain: Vec::new(),
            text: Text::default(),
            target: Text::default(),
            has_ended: false,
            ends_itself: false,
            event_at: 0,
            longest,
            longest_tag: usize::MAX,
            may_declare: true,
            amplified: Amplified::default(),
        }
    }

    /// A parser of a document without a type, so that it stands for nothing but its own bytes.
    /// Its tokens have at most about `longest` bytes, start tags at most `longest_tag`: few bytes
    /// of these take much memory.
    pub fn undeclared(read: R, longest: usize, longest_tag: usize) -> Self {
        Parser { longest_tag, may_declare: false, ..Parser::new(read, longest) }
    }

    /// The next event.
    ///
    /// # Errors
    /// Bytes that cannot be read, or no such XML. Nothing can be read behind it.
    #[expect(clippy::should_implement_trait, reason = "an event is looked at through its parser")]
    pub fn next(&mut self) -> Result<Event, ReadError> {
        if self.ends_itself {
            (self.ends_itself, self.has_ended) = (false, true);
            return Ok(Event::End);
        }
        if self.has_ended {
            self.has_ended = false;
            self.close();
        }
        loop {
            if self.frames.is_empty() {
                self.event_at = self.window.at();
            }
            match self.scan() {
                Ok(Some(event)) => return Ok(event),
                Ok(None) => {}
                Err(Stop::More) => {
                    if !self.more()? {
                        return Ok(Event::Over);
                    }
                }
                Err(Stop::Bad(at, message)) => {
                    let at = if self.frames.is_empty() { at } else { self.event_at };
                    return Err(ReadError::Document(self.window.place_of(at).fault(message)));
                }
            }
        }
    }

    /// Gets more text; false when the document is over.
    fn more(&mut self) -> Result<bool, ReadError> {
        if let Some(frame) = self.frames.last() {
            return Err(self.wrong(format!("the entity {} ends within a tag or reference", frame.name)));
        }
        let waiting = self.window.rest().len();
        let most = if self.open.is_empty() { self.longest.max(MOST_DECLARED) } else { self.longest };
        if waiting > most {
            let why = if matches!(self.stage, Stage::Prolog { .. }) && self.window.rest().starts_with("<!") {
                format!("the DOCTYPE has more than {MOST_DECLARED} bytes, the limit").into()
            } else {
                too_long(self.longest)
            };
            return Err(self.wrong(why));
        }
        if self.window.more()? {
            return Ok(true);
        }
        if self.stage == Stage::Epilog && self.window.rest().is_empty() {
            return Ok(false);
        }
        let end = self.window.text().len();
        let place = self.window.place_of(end);
        let text = match self.open.last() {
            Some(last) => format!("the document ends within <{}>", &self.names[last.name..]),
            None if waiting > 0 => "the document ends within a tag or declaration".to_owned(),
            None => "the document has no element".to_owned(),
        };
        Err(ReadError::Document(place.fault(FaultText { text, is_too_long: false, is_cut: true })))
    }

    /// An error at the last event.
    pub(crate) fn wrong(&mut self, message: impl Into<FaultText>) -> ReadError {
        ReadError::Document(self.place().fault(message))
    }

    /// A fault at the last event, for rules of those who read it.
    pub fn fault_here(&mut self, message: impl Into<String>) -> ReadFault {
        self.place().fault(message)
    }

    /// Where the last event begins; within an entity, the place of its reference.
    pub(crate) fn place(&mut self) -> TextPlace {
        self.window.place_of(self.event_at)
    }

    /// Counts so many bytes that stand in fewer.
    pub(crate) fn amplify(&mut self, bytes: usize) -> Result<(), ReadError> {
        let read = self.window.read_bytes();
        self.amplified.add(bytes, read).map_err(|why| self.wrong(why))
    }

    /// Elements that are open.
    pub(crate) fn levels(&self) -> usize {
        self.open.len()
    }

    /// Bytes held for what is open, about.
    pub(crate) fn held_bytes(&self) -> usize {
        self.names.capacity() + self.open.capacity() * size_of::<Open>() + self.namespaces.held_bytes()
    }

    /// The first name space of each prefix that was declared so far, of few.
    pub(crate) fn declared(&self) -> impl Iterator<Item = (&str, &str)> {
        self.namespaces.declared().filter(|(prefix, _)| *prefix != "xml")
    }

    fn str(&self, of: Text) -> &str {
        self.attributes.str(source(&self.window, &self.frames).text, of)
    }

    /// The text of the event.
    pub fn text(&self) -> &str {
        self.str(self.text)
    }

    /// The target of a processing instruction.
    pub(crate) fn target(&self) -> &str {
        self.str(self.target)
    }

    /// The name of the element that begins or ends.
    pub fn name(&self) -> XmlName<'_> {
        let begin = self.open.last().map_or(0, |last| last.name);
        self.resolved(&self.names[begin..], self.colon, self.namespaces.get(""))
    }

    /// How many attributes the element has that begins; declarations of namespaces are none.
    pub fn attributes(&self) -> usize {
        self.plain.len()
    }

    /// The name of an attribute of the element that begins, and its value.
    pub fn attribute(&self, index: usize) -> (XmlName<'_>, &str) {
        let Attribute { name, colon, value } = self.attributes.all[self.plain[index]];
        (self.resolved(self.str(name), colon, ""), self.str(value))
    }

    fn resolved<'a>(&'a self, qualified: &'a str, colon: usize, unprefixed: &'a str) -> XmlName<'a> {
        if colon == 0 {
            return XmlName { prefix: "", local: qualified, namespace: unprefixed, qualified };
        }
        let (prefix, local) = (&qualified[..colon], &qualified[colon + 1..]);
        XmlName { prefix, local, namespace: self.namespaces.get(prefix), qualified }
    }

    /// The namespace of a prefix in scope.
    pub(crate) fn namespace_of(&self, prefix: &str) -> &str {
        self.namespaces.get(prefix)
    }

    fn go_to(&mut self, at: usize) {
        match self.frames.last_mut() {
            Some(frame) => frame.at = at,
            None => self.window.go_to(at),
        }
    }

    /// Looks at what follows; `None` when it is no event.
    fn scan(&mut self) -> Scan<Option<Event>> {
        let mut cursor = source(&self.window, &self.frames);
        if self.stage == Stage::Beginning {
            if cursor.eat("<?xml")? && is_space(cursor.peek()?) {
                self.stands_alone = declaration(&mut cursor)?;
                let end = cursor.at;
                self.go_to(end);
            }
            self.stage = Stage::Prolog { has_doctype: false };
            return Ok(None);
        }
        match cursor.rest().as_bytes().first() {
            None => match self.frames.pop() {
                Some(frame) if frame.levels < self.open.len() => {
                    let name = &self.names[self.open[frame.levels].name..];
                    let why = format!("<{name}> begins in the entity {} and does not end in it", frame.name);
                    Err(Stop::Bad(self.event_at, why.into()))
                }
                Some(_) => Ok(None),
                None => Err(Stop::More),
            },
            Some(b'<') => self.markup(),
            Some(b'&') if self.stage == Stage::Root => self.reference(),
            Some(_) if self.stage == Stage::Root => self.characters(),
            Some(_) => {
                let spaces = cursor.rest().bytes().take_while(|b| is_space(*b)).count();
                if spaces == 0 {
                    return cursor.bad("text may stand only within the document's element");
                }
                let end = cursor.at + spaces;
                self.go_to(end);
                Ok(None)
            }
        }
    }

    fn characters(&mut self) -> Scan<Option<Event>> {
        let cursor = source(&self.window, &self.frames);
        let rest = cursor.rest().as_bytes();
        let mut len = rest.len();
        if let Some(end) = memchr::memchr2(b'<', b'&', rest) {
            len = end;
        } else if self.frames.is_empty() {
            // "]]>" may go on in what is not there yet
            len -= rest.iter().rev().take(2).take_while(|byte| **byte == b']').count();
            if len == 0 {
                return Err(Stop::More);
            }
        }
        if memchr::memchr(b']', &rest[..len]).is_some()
            && let Some(at) = memchr::memmem::find(&rest[..len], b"]]>")
        {
            return Err(Stop::Bad(cursor.at + at, "]]> may not be in a text; write ]]&gt;".into()));
        }
        let begin = cursor.at;
        self.text = Text { begin, end: begin + len, is_made: false };
        self.go_to(begin + len);
        Ok(Some(Event::Text))
    }

    fn reference(&mut self) -> Scan<Option<Event>> {
        let mut cursor = source(&self.window, &self.frames);
        let at = cursor;
        cursor.at += 1;
        let reference = cursor.reference()?;
        let end = cursor.at;
        let name = match reference {
            Reference::Char(c) => {
                self.go_to(end);
                self.make_text(c);
                return Ok(Some(Event::Text));
            }
            Reference::Entity(name) => name,
        };
        let text = Arc::clone(self.declared.text(name).or_else(|why| at.bad(why))?);
        check_nesting(name, self.frames.iter().map(|frame| &*frame.name)).or_else(|why| at.bad(why))?;
        let expanded = if self.frames.is_empty() { 0 } else { self.expanded } + text.len();
        let outermost = self.frames.first().map_or(name, |frame| &*frame.name);
        check_expanded(outermost, expanded).or_else(|why| at.bad(why))?;
        self.amplified.add(text.len(), self.window.read_bytes()).or_else(|why| at.bad(why))?;
        let frame = Frame { name: name.into(), text, at: 0, levels: self.open.len() };
        self.expanded = expanded;
        self.go_to(end);
        self.frames.push(frame);
        Ok(None)
    }

    fn make_text(&mut self, c: char) {
        let made = &mut self.attributes.made.text;
        made.clear();
        made.push(c);
        self.text = Text { begin: 0, end: made.len(), is_made: true };
    }

    fn markup(&mut self) -> Scan<Option<Event>> {
        let mut cursor = source(&self.window, &self.frames);
        cursor.at += 1;
        match cursor.peek()? {
            b'/' => self.end(),
            b'?' => {
                cursor.at += 1;
                let (target, data) = cursor.instruction()?;
                let target_begin = source(&self.window, &self.frames).at + 2;
                let text_begin = cursor.at - 2 - data.len();
                self.target = Text { begin: target_begin, end: target_begin + target.len(), is_made: false };
                self.outside_tags(text_begin, data.len(), cursor.at, Event::Instruction)
            }
            b'!' if cursor.eat("!--")? => {
                let text = cursor.comment()?;
                self.outside_tags(cursor.at - 3 - text.len(), text.len(), cursor.at, Event::Comment)
            }
            b'!' if self.stage == Stage::Root && cursor.eat("![CDATA[")? => {
                let text = cursor.until("]]>")?;
                self.outside_tags(cursor.at - 3 - text.len(), text.len(), cursor.at, Event::Text)
            }
            b'!' if !self.may_declare && cursor.eat("!DOCTYPE")? => {
                source(&self.window, &self.frames).bad("there may be no DOCTYPE in this document")
            }
            b'!' if self.stage == (Stage::Prolog { has_doctype: false }) && cursor.eat("!DOCTYPE")? => {
                let declared = doctype(&mut cursor, self.stands_alone)?;
                if cursor.at - self.window.at() > MOST_DECLARED {
                    return source(&self.window, &self.frames)
                        .bad(format!("the DOCTYPE has more than {MOST_DECLARED} bytes, the limit"));
                }
                let end = cursor.at;
                self.declared = declared;
                self.stage = Stage::Prolog { has_doctype: true };
                self.go_to(end);
                Ok(None)
            }
            b'!' => source(&self.window, &self.frames).bad("nothing that begins so may stand here"),
            _ if self.stage == Stage::Epilog => {
                source(&self.window, &self.frames).bad("a document has one element, and it has ended")
            }
            _ => self.start(),
        }
    }

    /// Passes what is neither tag nor text; an event when it is within the root.
    fn outside_tags(&mut self, begin: usize, len: usize, end: usize, event: Event) -> Scan<Option<Event>> {
        self.text = Text { begin, end: begin + len, is_made: false };
        self.go_to(end);
        // the end of an instruction without data is before its text
        Ok((self.stage == Stage::Root).then_some(event))
    }

    fn end(&mut self) -> Scan<Option<Event>> {
        let mut cursor = source(&self.window, &self.frames);
        let at = cursor;
        cursor.at += 2;
        let name = cursor.name()?;
        let Some(last) = self.open.last() else { return at.bad(format!("</{name}> ends nothing")) };
        let opened = &self.names[last.name..];
        if name != opened {
            return at.bad(format!("</{name}> should be </{opened}>"));
        }
        if let Some(frame) = self.frames.last()
            && self.open.len() <= frame.levels
        {
            return at.bad(format!("</{name}> is in the entity {}, but its beginning is not", frame.name));
        }
        self.colon = memchr::memchr(b':', name.as_bytes()).unwrap_or(0);
        cursor.space()?;
        cursor.expect(">")?;
        let end = cursor.at;
        self.go_to(end);
        self.has_ended = true;
        Ok(Some(Event::End))
    }

    /// Forgets the element that has ended.
    fn close(&mut self) {
        if let Some(last) = self.open.pop() {
            self.names.truncate(last.name);
            self.namespaces.truncate(last.namespaces);
        }
        if self.open.is_empty() {
            self.stage = Stage::Epilog;
        }
    }

    fn start(&mut self) -> Scan<Option<Event>> {
        let at = source(&self.window, &self.frames);
        let most = at.text.floor_char_boundary(at.at.saturating_add(self.longest_tag));
        let mut cursor = Cursor::new(&at.text[..most], at.at + 1);
        let mut attributes = std::mem::take(&mut self.attributes);
        let scanned = start_tag(&mut cursor, &self.declared, &mut attributes);
        let end = cursor.at;
        self.attributes = attributes;
        let tag = match scanned {
            Err(Stop::More) if most < at.text.len() => {
                return at.bad(format!("a tag has more than {} bytes, the limit", self.longest_tag));
            }
            scanned => scanned?,
        };
        if self.open.len() >= MOST_LEVELS {
            return at.bad(format!("the document nests more than {MOST_LEVELS} levels, the limit"));
        }
        self.opened(&tag)?;
        let expanded = self.attributes.made.expanded;
        if expanded > 0 {
            let read = self.window.read_bytes();
            self.amplified.add(expanded, read).or_else(|why| source(&self.window, &self.frames).bad(why))?;
        }
        self.go_to(end);
        self.stage = Stage::Root;
        self.ends_itself = tag.is_empty;
        Ok(Some(Event::Start))
    }

    /// Opens an element: prefixes are bound, then names are looked up.
    fn opened(&mut self, tag: &Tag) -> Scan<()> {
        let cursor = source(&self.window, &self.frames);
        let bad = |name: Text, why: String| {
            let at = if name.is_made { cursor.at } else { name.begin };
            Err(Stop::Bad(at, why.into()))
        };
        let name = |attribute: &Attribute| self.attributes.str(cursor.text, attribute.name);
        let all = &self.attributes.all;
        if let Some(twin) = first_twin(all.iter().map(name)) {
            return bad(all[twin].name, format!("the attribute {} is there twice", name(&all[twin])));
        }
        self.open.push(Open { name: self.names.len(), namespaces: self.namespaces.len() });
        self.names.push_str(&cursor.text[tag.name.begin..tag.name.end]);
        self.colon = tag.colon;
        self.plain.clear();
        for (index, attribute) in all.iter().enumerate() {
            let value = self.attributes.str(cursor.text, attribute.value);
            match name(attribute).strip_prefix("xmlns") {
                Some("") => {
                    check_binding("", value).or_else(|why| bad(attribute.name, why))?;
                    self.namespaces.bind("", value);
                }
                Some(prefixed) if prefixed.starts_with(':') => {
                    check_binding(&prefixed[1..], value).or_else(|why| bad(attribute.name, why))?;
                    self.namespaces.bind(&prefixed[1..], value);
                }
                _ => self.plain.push(index),
            }
        }
        let prefix = &cursor.text[tag.name.begin..tag.name.begin + tag.colon];
        if tag.colon > 0 && self.namespaces.get(prefix).is_empty() {
            return bad(tag.name, undeclared(prefix));
        }
        let mut prefixed = 0;
        for index in &self.plain {
            let Attribute { name: text, colon, .. } = all[*index];
            let prefix = &name(&all[*index])[..colon];
            if colon > 0 && self.namespaces.get(prefix).is_empty() {
                return bad(text, undeclared(prefix));
            }
            prefixed += usize::from(colon > 0);
        }
        if prefixed > 1 {
            let in_namespace = self.plain.iter().map(|index| &all[*index]).filter(|one| one.colon > 0);
            let found: Vec<&Attribute> = in_namespace.collect();
            let expanded = |one: &&Attribute| {
                let name = name(one);
                (self.namespaces.get(&name[..one.colon]), &name[one.colon + 1..])
            };
            if let Some(twin) = first_twin(found.iter().map(expanded)) {
                let (namespace, local) = expanded(&found[twin]);
                return bad(found[twin].name, format!("the attribute {local} of {namespace} is there twice"));
            }
        }
        Ok(())
    }
}

fn undeclared(prefix: &str) -> String {
    format!("the prefix {prefix} is not declared; add xmlns:{prefix}=\"…\"")
}

/// An error when a prefix may not be bound so.
fn check_binding(prefix: &str, namespace: &str) -> Result<(), String> {
    let wrong = match (prefix, namespace) {
        ("xml", XML) | ("", "") => return Ok(()),
        ("xml", _) => "the prefix xml has a namespace of its own".to_owned(),
        ("xmlns", _) => "the prefix xmlns cannot be declared".to_owned(),
        (_, XML | XMLNS) => format!("{namespace} has a prefix of its own"),
        (_, "") => format!("the prefix {prefix} needs a namespace"),
        _ if !prefix.is_empty() && !is_nc_name(prefix) => format!("{prefix} is no prefix"),
        _ => return Ok(()),
    };
    Err(wrong)
}
