//! N-Triples and N-Quads, line by line, straight from the text into references.
//!
//! The scanner knows the shape of nearly every line: terms between spaces or tabs, then a dot. It
//! finds the end of a term and asks the interner whether this spelling has been seen in the chunk.
//! Only a new spelling is checked (IRI, language tag, UTF-8) and unescaped. A line with anything
//! unusual or wrong goes to oxttl, which knows the whole grammar and reports what is wrong and
//! where. So the scanner may refuse a line that oxttl accepts, but never accepts one that oxttl
//! refuses. Only a line that tells the version of RDF is unknown to oxttl.

use memchr::{memchr, memchr2};
use oxttl::{NQuadsParser, NTriplesParser};
use snowmelt_rdfxml::OddTerms;

use crate::input::guard::TripleLevels;
use crate::input::intern::{Fault, Interner, Parsed, Ref, too_deep_message};
use crate::input::terms::TermCheck;
use crate::term::layout::{RDF_DIR_LANG_STRING, RDF_LANG_STRING, XSD_STRING};
use crate::term::{BaseDirection, MOST_TRIPLE_LEVELS, TermId, TermRef, split_direction};

/// Options for reading lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineOptions {
    /// N-Quads: a graph may follow the object.
    pub(crate) quads: bool,
    /// Leave malformed lines out instead of stopping at the first.
    pub(crate) lenient: bool,
    /// Treatment of terms that the RFCs do not allow.
    pub(crate) odd_terms: OddTerms,
}

/// The scanner does not read this line itself.
struct Odd;

/// Parses one chunk of whole lines of input `source`; the result contains the faults, too.
///
/// `graph` is the graph of statements that name none.
pub(crate) fn parse_chunk(
    interner: &mut Interner,
    source: usize,
    chunk: Parsed,
    graph: Option<&str>,
    options: LineOptions,
) -> Parsed {
    interner.begin(source, chunk);
    let text = std::mem::take(&mut interner.parsed.text);
    let default_graph = match graph {
        Some(iri) => interner.term(TermRef::Iri(iri)),
        None => TermId::DEFAULT_GRAPH.0,
    };
    let mut scanner = Scanner { interner, text: &text, at: 0, default_graph, options, subject: (0, 0, 0) };
    scanner.run();
    interner.parsed.text = text;
    interner.end()
}

struct Scanner<'a> {
    interner: &'a mut Interner,
    text: &'a [u8],
    at: usize,
    default_graph: Ref,
    options: LineOptions,
    /// The last subject: start, end and reference. Most lines have the subject of the line before.
    subject: (usize, usize, Ref),
}

impl Scanner<'_> {
    fn run(&mut self) {
        while self.at < self.text.len() {
            let start = self.at;
            match self.line() {
                Ok(row) => self.interner.parsed.rows.extend(row),
                Err(Odd) => {
                    let len = memchr(b'\n', &self.text[start..]);
                    let end = len.map_or(self.text.len(), |len| start + len);
                    self.at = (end + 1).min(self.text.len());
                    self.odd_line(start, end);
                    if self.interner.parsed.fault.is_some() {
                        return;
                    }
                }
            }
            self.interner.parsed.lines += 1;
        }
    }

    /// Reads a line and moves past its end.
    fn line(&mut self) -> Result<Option<[Ref; 4]>, Odd> {
        self.blanks();
        if !matches!(self.peek(), b'<' | b'_') {
            return self.end_of_line().map(|()| None);
        }
        let subject = self.subject()?;
        self.blanks();
        if self.peek() != b'<' {
            return Err(Odd);
        }
        let predicate = self.iri()?;
        self.blanks();
        let object = self.object(0)?;
        self.blanks();
        let mut graph = self.default_graph;
        if self.options.quads {
            graph = match self.peek() {
                b'<' => self.iri()?,
                b'_' => self.blank()?,
                _ => graph,
            };
            self.blanks();
        }
        if self.peek() != b'.' {
            return Err(Odd);
        }
        self.at += 1;
        self.blanks();
        self.end_of_line()?;
        Ok(Some([subject, predicate, object, graph]))
    }

    /// The next byte; NUL, which no line may contain outside a literal, at the end.
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t') {
            self.at += 1;
        }
    }

    /// Moves past the end of the line; only a comment may precede it.
    fn end_of_line(&mut self) -> Result<(), Odd> {
        if self.peek() == b'\r' {
            self.at += 1;
        }
        match self.text.get(self.at) {
            None => {}
            Some(b'\n') => self.at += 1,
            Some(b'#') => {
                let rest = &self.text[self.at..];
                let len = memchr(b'\n', rest).unwrap_or(rest.len());
                // A lone carriage return also ends a comment; oxttl reads the rest.
                if memchr(b'\r', &rest[..len]).is_some_and(|cr| cr + 1 < len) {
                    return Err(Odd);
                }
                self.at += rest.len().min(len + 1);
            }
            Some(_) => return Err(Odd),
        }
        Ok(())
    }

    /// An object within so many triple terms.
    #[inline]
    fn object(&mut self, levels: usize) -> Result<Ref, Odd> {
        match self.peek() {
            b'<' if self.text.get(self.at + 1) == Some(&b'<') => self.triple(levels + 1),
            b'<' => self.iri(),
            b'"' => self.literal(),
            b'_' => self.blank(),
            _ => Err(Odd),
        }
    }

    /// `<<( … )>>`, the triple term of this level.
    fn triple(&mut self, level: usize) -> Result<Ref, Odd> {
        self.sign(b"<<(")?;
        if level > MOST_TRIPLE_LEVELS {
            return Err(Odd);
        }
        self.blanks();
        let subject = match self.peek() {
            b'<' => self.iri()?,
            b'_' => self.blank()?,
            _ => return Err(Odd),
        };
        self.blanks();
        if self.peek() != b'<' {
            return Err(Odd);
        }
        let predicate = self.iri()?;
        self.blanks();
        let object = self.object(level)?;
        self.blanks();
        self.sign(b")>>")?;
        Ok(self.interner.triple([subject, predicate, object]))
    }

    fn sign(&mut self, sign: &[u8]) -> Result<(), Odd> {
        if !self.text[self.at..].starts_with(sign) {
            return Err(Odd);
        }
        self.at += sign.len();
        Ok(())
    }

    fn subject(&mut self) -> Result<Ref, Odd> {
        let (start, end, reference) = self.subject;
        if end > start && self.text[self.at..].starts_with(&self.text[start..end]) {
            self.at += end - start;
            return Ok(reference);
        }
        if self.peek() == b'_' {
            return self.blank();
        }
        let start = self.at;
        let reference = self.iri()?;
        self.subject = (start, self.at, reference);
        Ok(reference)
    }

    fn iri(&mut self) -> Result<Ref, Odd> {
        let start = self.at;
        let len = memchr(b'>', &self.text[start..]).ok_or(Odd)?;
        let end = start + len + 1;
        let written = Interner::written(&self.text[start..end]);
        let reference = match self.interner.find(written) {
            Some(reference) => reference,
            None => {
                if !self.is_iri(&self.text[start + 1..end - 1]) {
                    return Err(Odd);
                }
                let iri = &self.text[start + 1..end - 1];
                let reference = self.interner.iri(iri, Some(start + 1));
                self.interner.remember(written, reference);
                reference
            }
        };
        self.at = end;
        Ok(reference)
    }

    /// A blank node whose label is letters, digits, `-` and `_`, followed by a space.
    fn blank(&mut self) -> Result<Ref, Odd> {
        let start = self.at;
        if self.text.get(start + 1) != Some(&b':') {
            return Err(Odd);
        }
        let label = &self.text[start + 2..];
        let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        let len = label.iter().position(|b| !plain(b)).ok_or(Odd)?;
        if len == 0 || label[0] == b'-' || !matches!(label[len], b' ' | b'\t') {
            return Err(Odd);
        }
        let end = start + 2 + len;
        let written = Interner::written(&self.text[start..end]);
        let reference = match self.interner.find(written) {
            Some(reference) => reference,
            None => {
                let label = &self.text[start + 2..end];
                let reference = self.interner.blank(label, Some(start + 2));
                self.interner.remember(written, reference);
                reference
            }
        };
        self.at = end;
        Ok(reference)
    }

    fn literal(&mut self) -> Result<Ref, Odd> {
        let start = self.at;
        let (close, escaped) = closing_quote(&self.text[start + 1..])?;
        let close = start + 1 + close;
        let end = match self.text.get(close + 1) {
            Some(b'@') => {
                let tag = &self.text[close + 2..];
                let in_tag = |b: &u8| b.is_ascii_alphanumeric() || *b == b'-';
                close + 2 + tag.iter().position(|b| !in_tag(b)).ok_or(Odd)?
            }
            Some(b'^') => {
                let datatype = &self.text[close + 1..];
                if !datatype.starts_with(b"^^<") {
                    return Err(Odd);
                }
                close + 1 + memchr(b'>', datatype).ok_or(Odd)? + 1
            }
            _ => close + 1,
        };
        let written = Interner::written(&self.text[start..end]);
        let reference = match self.interner.find(written) {
            Some(reference) => reference,
            None => {
                let reference = self.new_literal(start + 1, close, escaped, end)?;
                self.interner.remember(written, reference);
                reference
            }
        };
        self.at = end;
        Ok(reference)
    }

    fn new_literal(&mut self, start: usize, close: usize, escaped: bool, end: usize) -> Result<Ref, Odd> {
        let text = self.text;
        let lexical = std::str::from_utf8(&text[start..close]).map_err(|_| Odd)?;
        if memchr2(b'\n', b'\r', lexical.as_bytes()).is_some() {
            return Err(Odd);
        }
        let unescaped = if escaped { Some(unescape(lexical).ok_or(Odd)?) } else { None };
        enum After<'a> {
            Tag(String, Option<BaseDirection>),
            Type(&'a str),
        }
        let after = match text.get(close + 1) {
            Some(b'@') if end > close + 1 => {
                let tag = std::str::from_utf8(&text[close + 2..end]).map_err(|_| Odd)?;
                let (tag, direction) = split_direction(tag);
                if !self.is_tag(tag) {
                    return Err(Odd);
                }
                After::Tag(tag.to_ascii_lowercase(), direction)
            }
            Some(b'^') if end > close + 1 => {
                let datatype = &text[close + 4..end - 1];
                let of_tags = [RDF_LANG_STRING.as_bytes(), RDF_DIR_LANG_STRING.as_bytes()];
                if !self.is_iri(datatype) || of_tags.contains(&datatype) {
                    return Err(Odd);
                }
                After::Type(std::str::from_utf8(datatype).map_err(|_| Odd)?)
            }
            _ => After::Type(XSD_STRING),
        };
        let lexical = unescaped.as_deref().unwrap_or(lexical);
        let place = (!escaped).then_some(start);
        Ok(match after {
            After::Tag(tag, direction) => self.interner.tagged(lexical, &tag, direction, place),
            After::Type(datatype) => self.interner.typed(lexical, datatype, place),
        })
    }

    fn is_iri(&self, bytes: &[u8]) -> bool {
        let is_odd = |iri| self.options.odd_terms == OddTerms::Kept && OddTerms::Kept.allows_iri(iri);
        is_iri(bytes) || std::str::from_utf8(bytes).is_ok_and(is_odd)
    }

    fn is_tag(&self, tag: &str) -> bool {
        is_tag(tag) || self.options.odd_terms == OddTerms::Kept && OddTerms::Kept.allows_tag(tag)
    }

    /// Has oxttl read a line that the scanner does not: a statement, or the fault.
    fn odd_line(&mut self, start: usize, end: usize) {
        let line = &self.text[start..end];
        if is_version(line) {
            return;
        }
        if nests_too_deep(line) {
            let (line, message) = (self.interner.parsed.lines, too_deep_message());
            return self.fault(Fault { line, column: 0, message, setting: None });
        }
        // a lenient oxttl parser checks no terms
        let is_kept = self.options.odd_terms == OddTerms::Kept;
        let quads: Result<Vec<_>, _> = if self.options.quads {
            let parser = NQuadsParser::new();
            let parser = if is_kept { parser.lenient() } else { parser };
            parser.for_slice(line).collect()
        } else {
            let parser = NTriplesParser::new();
            let parser = if is_kept { parser.lenient() } else { parser };
            let in_default = |triple: oxrdf::Triple| triple.in_graph(oxrdf::GraphName::DefaultGraph);
            parser.for_slice(line).map(|triple| triple.map(in_default)).collect()
        };
        match quads {
            Ok(quads) => {
                let mut check = is_kept.then(|| TermCheck::new(self.options.odd_terms));
                if let Some(message) = quads.iter().find_map(|quad| check.as_mut()?.fault_of(quad)) {
                    let line = self.interner.parsed.lines;
                    return self.fault(Fault { line, column: 0, message, setting: None });
                }
                for quad in &quads {
                    let row = self.quad(quad);
                    self.interner.parsed.rows.push(row);
                }
            }
            Err(error) => {
                // oxttl also counts carriage returns as line ends; here a line ends where
                // chunks are cut.
                let before = line.get(..error.location().start.offset as usize).unwrap_or(line);
                self.fault(Fault {
                    line: self.interner.parsed.lines,
                    column: String::from_utf8_lossy(before).chars().count() as u64 + 1,
                    message: error.message().to_owned(),
                    setting: None,
                });
            }
        }
    }

    fn fault(&mut self, fault: Fault) {
        match self.options.lenient {
            true => self.interner.parsed.leave_out(fault),
            false => self.interner.parsed.fault = Some(fault),
        }
    }

    fn quad(&mut self, quad: &oxrdf::Quad) -> [Ref; 4] {
        // In the order of the terms in the line: numbers go by first occurrence.
        let subject = self.interner.term(quad.subject.as_ref().into());
        let predicate = self.interner.term(quad.predicate.as_ref().into());
        let object = self.interner.term(quad.object.as_ref().into());
        let graph = match &quad.graph_name {
            oxrdf::GraphName::DefaultGraph => self.default_graph,
            oxrdf::GraphName::NamedNode(node) => self.interner.term(node.as_ref().into()),
            oxrdf::GraphName::BlankNode(node) => self.interner.term(node.as_ref().into()),
        };
        [subject, predicate, object, graph]
    }
}

/// Whether a line tells the version of RDF: `VERSION "1.2"`.
fn is_version(line: &[u8]) -> bool {
    let Some(rest) = line.trim_ascii_start().strip_prefix(b"VERSION") else { return false };
    let Some(rest) = rest.trim_ascii_start().strip_prefix(b"\"") else { return false };
    let Some(end) = memchr2(b'"', b'\\', rest).filter(|end| rest[*end] == b'"') else { return false };
    let after = rest[end + 1..].trim_ascii_start();
    after.is_empty() || after.starts_with(b"#")
}

/// Whether triple terms nest in a line so deep that oxttl would overflow the stack when it drops
/// them.
pub(super) fn nests_too_deep(line: &[u8]) -> bool {
    TripleLevels::default().scan(line).is_err()
}

/// End of the literal that begins `text`, and whether it contains escapes.
fn closing_quote(text: &[u8]) -> Result<(usize, bool), Odd> {
    let mut at = 0;
    let mut escaped = false;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..).ok_or(Odd)?).ok_or(Odd)?;
        if text[at] == b'"' {
            return Ok((at, escaped));
        }
        escaped = true;
        at += 2;
    }
}

/// Resolves the escapes of a literal; `None` if one is malformed, which oxttl then reports.
fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let escape = *rest.as_bytes().get(at + 1)?;
        let mut len = 2;
        out.push(match escape {
            b't' => '\t',
            b'b' => '\u{8}',
            b'n' => '\n',
            b'r' => '\r',
            b'f' => '\u{c}',
            b'"' => '"',
            b'\'' => '\'',
            b'\\' => '\\',
            b'u' | b'U' => {
                let digits = if escape == b'u' { 4 } else { 8 };
                let hex = rest.get(at + 2..at + 2 + digits)?;
                if !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return None;
                }
                len += digits;
                char::from_u32(u32::from_str_radix(hex, 16).ok()?)?
            }
            _ => return None,
        });
        rest = &rest[at + len..];
    }
    out.push_str(rest);
    Some(out)
}

/// Accepts common language tags quickly: a short primary tag, then short parts.
fn is_tag(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let primary = parts.next().unwrap_or("");
    let letters = |s: &str| s.bytes().all(|b| b.is_ascii_alphabetic());
    if !(2..=3).contains(&primary.len()) || !letters(primary) {
        return oxrdf::Literal::new_language_tagged_literal("", tag).is_ok();
    }
    match (parts.next(), parts.next()) {
        (None, None) => true,
        (Some(region), None) if region.len() == 2 && letters(region) => true,
        _ => oxrdf::Literal::new_language_tagged_literal("", tag).is_ok(),
    }
}

/// Whether these bytes are an absolute IRI without escapes.
///
/// Common ones are recognised byte by byte; oxiri, inside oxrdf, decides about the others.
fn is_iri(bytes: &[u8]) -> bool {
    is_common_iri(bytes) || std::str::from_utf8(bytes).is_ok_and(|iri| oxrdf::NamedNode::new(iri).is_ok())
}

/// `http://host/rest` or https, with plain characters and at most one fragment.
fn is_common_iri(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.strip_prefix(b"http://").or_else(|| bytes.strip_prefix(b"https://")) else {
        return false;
    };
    let host = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    let end = rest.iter().position(|b| !host(b)).unwrap_or(rest.len());
    if end == 0 {
        return false;
    }
    match rest.get(end) {
        None => return true,
        Some(b'/' | b'?' | b'#') => {}
        Some(_) => return false,
    }
    let path = &rest[end..];
    let mut hashes = 0;
    for &b in path {
        hashes += u32::from(b == b'#');
        if !PLAIN[usize::from(b)] {
            return false;
        }
    }
    hashes <= 1
}

/// Characters that may occur anywhere in path, query and fragment (the fragment's `#` is counted
/// separately).
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut b = 0;
    while b < 128 {
        plain[b] = (b as u8).is_ascii_alphanumeric();
        b += 1;
    }
    let marks = b"-._~!$&'()*+,;=:@/?#";
    let mut i = 0;
    while i < marks.len() {
        plain[marks[i] as usize] = true;
        i += 1;
    }
    plain
};

#[cfg(test)]
#[path = "ntriples_tests.rs"]
mod tests;
