//! RDF/XML: entities, texts and attributes, XML literals, and elements that are open.

use super::entities::Entities;
use super::{ByteScan, MOST_LEVELS};

/// Bytes of the tags of open elements: each may hold a base that those within it keep.
const MOST_OPEN: usize = 64 << 20;

/// Longest name of an entity that is looked up.
const NAME: usize = 256;

/// Where the scanner is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum XmlState {
    Text,
    /// Behind `<`.
    Begin,
    /// In a tag; the quote of an attribute if in one.
    Tag(Option<u8>),
    /// In `<! …`, not yet told what.
    Mark,
    Comment,
    CData,
    /// So many `<` are open.
    DocType(usize),
    Instruction,
}

pub(super) struct Xml {
    longest: usize,
    at: XmlState,
    entities: Entities,
    /// the name of the reference that is being read
    name: Option<Vec<u8>>,
    /// the last bytes
    last: [u8; 9],
    /// bytes of the text since the last tag, of the tag, and of an XML literal
    text: usize,
    tag: usize,
    literal: usize,
    /// the level at which an XML literal begins
    literal_from: Option<usize>,
    /// behind `parseType` of a tag
    parse_type: bool,
    is_literal: bool,
    closes: bool,
    /// by open element, the longest tag so far
    open: Vec<u32>,
}

impl Xml {
    pub(super) fn new(longest: usize) -> Self {
        Xml {
            longest,
            at: XmlState::Text,
            entities: Entities::default(),
            name: None,
            last: [0; 9],
            text: 0,
            tag: 0,
            literal: 0,
            literal_from: None,
            parse_type: false,
            is_literal: false,
            closes: false,
            open: Vec::new(),
        }
    }

    /// Elements that are open.
    pub(super) fn levels(&self) -> usize {
        self.open.len()
    }

    fn ends_with(&self, end: &[u8]) -> bool {
        self.last.ends_with(end)
    }

    /// The reference that ends with this byte, or does not go on with it.
    fn reference(&mut self, byte: u8) -> usize {
        match (&mut self.name, byte) {
            (_, b'&') => self.name = Some(Vec::new()),
            (Some(name), b';') => {
                let size = self.entities.size(name);
                self.name = None;
                return size;
            }
            (Some(name), _) if name.len() < NAME => name.push(byte),
            (name, _) => *name = None,
        }
        0
    }

    fn measure(&self) -> Result<(), String> {
        let longest = self.text.max(self.tag).max(self.literal);
        if longest > self.longest {
            return Err(format!(
                "a text, tag or XML literal has more than {} bytes, the longest term allowed; --longest-term SIZE changes that",
                self.longest
            ));
        }
        Ok(())
    }

    /// A tag began.
    fn begin(&mut self, byte: u8) {
        (self.tag, self.parse_type, self.is_literal, self.closes) = (1, false, false, byte == b'/');
        self.at = match byte {
            b'!' => XmlState::Mark,
            b'?' => XmlState::Instruction,
            _ => XmlState::Tag(None),
        };
    }

    fn tag(&mut self, byte: u8, quote: Option<u8>) -> Result<(), String> {
        self.tag += 1 + self.reference(byte);
        if self.ends_with(b"parseType") && quote.is_none() {
            self.parse_type = true;
        } else if self.parse_type && !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'=' | b'"' | b'\'') {
            // whatever is neither Resource nor Collection is a literal
            self.is_literal |= !matches!(byte, b'R' | b'C');
            self.parse_type = false;
        }
        self.at = match (quote, byte) {
            (None, b'>') => return self.end_of_tag(),
            (None, b'"' | b'\'') => XmlState::Tag(Some(byte)),
            (Some(open), _) if open == byte => XmlState::Tag(None),
            _ => XmlState::Tag(quote),
        };
        Ok(())
    }

    fn end_of_tag(&mut self) -> Result<(), String> {
        let empty = self.ends_with(b"/>");
        if self.closes {
            self.open.pop();
            if self.literal_from.is_some_and(|from| self.open.len() < from) {
                (self.literal_from, self.literal) = (None, 0);
            }
        } else if !empty {
            let above = self.open.last().copied().unwrap_or(0);
            self.open.push(above.max(u32::try_from(self.tag).unwrap_or(u32::MAX)));
            let longest = self.open[self.open.len() - 1] as usize;
            if self.open.len() > MOST_LEVELS {
                return Err(format!("the document nests more than {MOST_LEVELS} levels, the limit"));
            }
            if self.open.len().saturating_mul(longest) > MOST_OPEN {
                return Err(format!(
                    "the tags of nested elements have more than {MOST_OPEN} bytes, the limit"
                ));
            }
            if self.is_literal && self.literal_from.is_none() {
                self.literal_from = Some(self.open.len());
            }
        }
        (self.at, self.tag, self.text) = (XmlState::Text, 0, 0);
        Ok(())
    }

    /// The kind of a `<!`, once that is told.
    fn mark(&mut self) {
        if self.ends_with(b"<!--") {
            self.at = XmlState::Comment;
        } else if self.ends_with(b"<![CDATA[") {
            self.at = XmlState::CData;
        } else if self.ends_with(b"<!DOCTYPE") {
            self.at = XmlState::DocType(1);
        } else if self.ends_with(b">") {
            self.at = XmlState::Text;
        }
    }
}

impl ByteScan for Xml {
    fn byte(&mut self, byte: u8) -> Result<(), String> {
        self.last.rotate_left(1);
        self.last[8] = byte;
        if self.literal_from.is_some() {
            self.literal += 1;
        }
        match self.at {
            XmlState::Text if byte == b'<' => self.at = XmlState::Begin,
            XmlState::Text => self.text += 1 + self.reference(byte),
            XmlState::Begin => self.begin(byte),
            XmlState::Tag(quote) => self.tag(byte, quote)?,
            XmlState::Mark => self.mark(),
            XmlState::Comment if self.ends_with(b"-->") => (self.at, self.tag) = (XmlState::Text, 0),
            XmlState::Comment => self.tag += 1,
            XmlState::CData if self.ends_with(b"]]>") => (self.at, self.tag) = (XmlState::Text, 0),
            XmlState::CData => self.text += 1,
            XmlState::Instruction if self.ends_with(b"?>") => (self.at, self.tag) = (XmlState::Text, 0),
            XmlState::Instruction => self.tag += 1,
            XmlState::DocType(open) => {
                self.entities.byte(byte)?;
                let open = open + usize::from(byte == b'<') - usize::from(byte == b'>');
                self.at = if open == 0 { XmlState::Text } else { XmlState::DocType(open) };
            }
        }
        self.measure()
    }
}
