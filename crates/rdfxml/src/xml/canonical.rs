//! Content as exclusive canonical XML with comments, which is the text of XML literals.
//!
//! An element declares the prefixes that it or its attributes use, unless an element around it
//! in the content declared the same. Declarations come in the order of prefixes, attributes in
//! that of namespaces and names.

use std::io::Read;

use super::namespaces::Namespaces;
use super::parser::{Event, Parser};

/// Content that is written.
#[derive(Default)]
pub(crate) struct Canonical {
    /// Prefixes declared in what was written.
    declared: Namespaces,
    /// By open element, declarations before it.
    open: Vec<usize>,
}

impl Canonical {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.declared.truncate(0);
        self.open.clear();
    }

    /// Elements that are open.
    pub(crate) fn levels(&self) -> usize {
        self.open.len()
    }

    /// Bytes held for what is open, about.
    pub(crate) fn held_bytes(&self) -> usize {
        self.declared.held_bytes() + self.open.capacity() * size_of::<usize>()
    }

    /// Writes an event.
    pub(crate) fn write<R: Read>(&mut self, event: Event, xml: &Parser<R>, out: &mut String) {
        match event {
            Event::Start => self.start(xml, out),
            Event::End => {
                self.declared.truncate(self.open.pop().unwrap_or(0));
                out.push_str("</");
                out.push_str(xml.name().qualified);
                out.push('>');
            }
            Event::Text => escape(xml.text(), TEXT, out),
            Event::Comment => {
                out.push_str("<!--");
                escape(xml.text(), RETURN, out);
                out.push_str("-->");
            }
            Event::Instruction => {
                out.push_str("<?");
                out.push_str(xml.target());
                if !xml.text().is_empty() {
                    out.push(' ');
                    escape(xml.text(), RETURN, out);
                }
                out.push_str("?>");
            }
            Event::Over => {}
        }
    }

    fn start<R: Read>(&mut self, xml: &Parser<R>, out: &mut String) {
        self.open.push(self.declared.len());
        let name = xml.name();
        out.push('<');
        out.push_str(name.qualified);
        let mut attributes: Vec<_> = (0..xml.attributes()).map(|index| xml.attribute(index)).collect();
        let mut prefixes: Vec<&str> = vec![name.prefix];
        prefixes.extend(attributes.iter().map(|(name, _)| name.prefix).filter(|prefix| !prefix.is_empty()));
        prefixes.sort_unstable();
        prefixes.dedup();
        for prefix in prefixes {
            let namespace = xml.namespace_of(prefix);
            if prefix == "xml" || self.declared.get(prefix) == namespace {
                continue;
            }
            self.declared.bind(prefix, namespace);
            out.push_str(if prefix.is_empty() { " xmlns" } else { " xmlns:" });
            out.push_str(prefix);
            value(namespace, out);
        }
        attributes.sort_unstable_by_key(|(name, _)| (name.namespace, name.local));
        for (name, text) in attributes {
            out.push(' ');
            out.push_str(name.qualified);
            value(text, out);
        }
        out.push('>');
    }
}

fn value(text: &str, out: &mut String) {
    out.push_str("=\"");
    escape(text, VALUE, out);
    out.push('"');
}

/// Characters that are written otherwise.
type Escapes = &'static [(u8, &'static str)];
const TEXT: Escapes = &[(b'&', "&amp;"), (b'<', "&lt;"), (b'>', "&gt;"), (b'\r', "&#xD;")];
const RETURN: Escapes = &[(b'\r', "&#xD;")];
const VALUE: Escapes = &[
    (b'&', "&amp;"),
    (b'<', "&lt;"),
    (b'"', "&quot;"),
    (b'\t', "&#x9;"),
    (b'\n', "&#xA;"),
    (b'\r', "&#xD;"),
];

fn escape(text: &str, escapes: Escapes, out: &mut String) {
    let mut begin = 0;
    for (at, byte) in text.bytes().enumerate() {
        if let Some((_, escaped)) = escapes.iter().find(|(escaped, _)| *escaped == byte) {
            out.push_str(&text[begin..at]);
            out.push_str(escaped);
            begin = at + 1;
        }
    }
    out.push_str(&text[begin..]);
}
