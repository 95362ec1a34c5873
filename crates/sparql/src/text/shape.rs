//! The shape of a query's text: the text with its constants taken out.
//!
//! Full IRIs and literals become numbered parameters, equal ones the same number; everything
//! else stays as it is. Two texts of equal shape parse to the same algebra but for the
//! parameters, so parsing (tens of microseconds) and planning are done once per shape. One pass
//! over the bytes, no grammar: what is cut out wrongly makes a text that does not parse, and
//! then the caller falls back to the text as it is.
//!
//! Not cut out, because the algebra depends on them: IRIs of PREFIX, BASE, FROM, datatypes,
//! function calls and the property that is a path; numbers after LIMIT and OFFSET; literals with a
//! prefixed datatype; anything with an escape.
//!
//! Constants become the placeholders of [`super::parameter`].

use rustc_hash::FxHashMap;
use snowmelt_base::iri::scheme;
use spargebra::term::{Literal, NamedNode};

use super::parameter::SCHEME;
use crate::text::iri::{LIST_MEMBER, is_iri};
use crate::text::parameter::GroundTerm;

/// A text split into its shape and its parameters.
#[derive(Debug)]
pub(crate) struct Shaped {
    /// the text with placeholders; also the key
    pub text: String,
    pub params: Vec<GroundTerm>,
}

/// Splits a text; `None` where it had better be taken as it is.
pub(crate) fn shape(text: &str) -> Option<Shaped> {
    if text.contains(SCHEME) {
        return None;
    }
    let mut scan = Scanner {
        text,
        bytes: text.as_bytes(),
        at: 0,
        copied: 0,
        out: String::with_capacity(text.len()),
        params: Vec::new(),
        seen: FxHashMap::default(),
        keep_iri: false,
        keep_number: false,
    };
    scan.run()?;
    scan.out.push_str(&text[scan.copied..]);
    Some(Shaped { text: scan.out, params: scan.params })
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// the text before this has been put out
    copied: usize,
    out: String,
    params: Vec<GroundTerm>,
    /// the number of each parameter, by its source text
    seen: FxHashMap<&'a str, usize>,
    keep_iri: bool,
    keep_number: bool,
}

impl<'a> Scanner<'a> {
    fn run(&mut self) -> Option<()> {
        while let Some(&b) = self.bytes.get(self.at) {
            match b {
                b'#' => self.skip_while(|b| b != b'\n' && b != b'\r'),
                b'<' => self.iri()?,
                b'"' | b'\'' => self.string()?,
                b'0'..=b'9' => self.number()?,
                b'.' if self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit) => self.number()?,
                b'?' | b'$' | b'@' => {
                    self.at += 1;
                    self.skip_while(is_name);
                }
                b if b.is_ascii_alphabetic() || b >= 0x80 || b == b'_' || b == b':' => self.word(),
                b'\\' => return None,
                _ => self.at += 1,
            }
        }
        Some(())
    }

    fn skip_while(&mut self, f: impl Fn(u8) -> bool) {
        while self.bytes.get(self.at).is_some_and(|b| f(*b)) {
            self.at += 1;
        }
    }

    /// A keyword or a prefixed name.
    fn word(&mut self) {
        let start = self.at;
        self.skip_while(|b| is_name(b) || matches!(b, b':' | b'-' | b'.' | b'%' | b'\\'));
        // a final dot ends the triple
        while self.bytes[self.at - 1] == b'.' {
            self.at -= 1;
        }
        let word = &self.text[start..self.at];
        let is = |k: &str| word.eq_ignore_ascii_case(k);
        if is("PREFIX") || is("BASE") || is("FROM") || is("NAMED") {
            self.keep_iri = true;
        } else if !word.ends_with(':') {
            self.keep_iri = false;
        }
        self.keep_number = is("LIMIT") || is("OFFSET");
    }

    /// The end of an IRI that starts here, after the closing bracket.
    fn iri_end(&self, start: usize) -> Option<usize> {
        let rest = &self.bytes[start + 1..];
        let end = rest.iter().position(|b| {
            *b == b'>' || *b <= b' ' || matches!(b, b'<' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`' | b'\\')
        })?;
        (rest[end] == b'>').then_some(start + 1 + end + 1)
    }

    fn iri(&mut self) -> Option<()> {
        let start = self.at;
        let Some(end) = self.iri_end(start) else {
            self.at += 1;
            return Some(());
        };
        self.at = end;
        if std::mem::take(&mut self.keep_iri) || self.call_follows() {
            return Some(());
        }
        let iri = &self.text[start + 1..end - 1];
        // relative and malformed IRIs are left to the parser
        if scheme(iri).is_none() || iri == LIST_MEMBER {
            return Some(());
        }
        if !is_iri(iri) {
            return None;
        }
        debug_assert!(self.copied <= start, "a text is put out once");
        let number =
            self.param(start, |iri| GroundTerm::Iri(NamedNode::new_unchecked(&iri[1..iri.len() - 1])));
        self.out.push('<');
        self.out.push_str(SCHEME);
        push_number(&mut self.out, number);
        self.out.push('>');
        Some(())
    }

    fn call_follows(&self) -> bool {
        self.bytes[self.at..].iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'(')
    }

    fn string(&mut self) -> Option<()> {
        let start = self.at;
        let quote = self.bytes[start];
        if self.bytes[start..].starts_with(&[quote; 3]) {
            let end = self.text[start + 3..].find(if quote == b'"' { "\"\"\"" } else { "'''" })?;
            self.at = start + 3 + end + 3;
            // long strings stay; an escaped quote inside would end them wrongly
            return if self.text[start..self.at].contains('\\') { None } else { self.skip_annotation() };
        }
        let rest = &self.bytes[start + 1..];
        let end = rest.iter().position(|b| *b == quote || *b == b'\\' || *b == b'\n' || *b == b'\r')?;
        if rest[end] != quote {
            return None;
        }
        let close = start + 1 + end;
        self.at = close + 1;
        match self.bytes.get(self.at) {
            Some(b'@') => {
                self.at += 1;
                self.skip_while(|b| b.is_ascii_alphanumeric() || b == b'-');
                let tag = self.text[close + 2..self.at].to_ascii_lowercase();
                let value = &self.text[start + 1..close];
                let literal = Literal::new_language_tagged_literal(value, tag).ok()?;
                self.literal(start, literal);
            }
            Some(b'^')
                if self.bytes.get(self.at + 1) == Some(&b'^')
                    && self.bytes.get(self.at + 2) == Some(&b'<') =>
            {
                let from = self.at + 2;
                self.at = self.iri_end(from)?;
                let datatype = &self.text[from + 1..self.at - 1];
                if scheme(datatype).is_none() || !is_iri(datatype) {
                    return None;
                }
                let value = &self.text[start + 1..close];
                let literal = Literal::new_typed_literal(value, NamedNode::new_unchecked(datatype));
                self.literal(start, literal);
            }
            Some(b'^') => return self.skip_annotation(),
            _ => {
                let literal = Literal::new_simple_literal(&self.text[start + 1..close]);
                self.literal(start, literal);
            }
        }
        Some(())
    }

    /// Leaves a literal's annotation where it is.
    fn skip_annotation(&mut self) -> Option<()> {
        if self.bytes[self.at..].starts_with(b"^^") {
            self.at += 2;
            self.keep_iri = true;
        }
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        self.skip_while(|b| b.is_ascii_digit());
        let mut datatype = "integer";
        if self.bytes.get(self.at) == Some(&b'.')
            && self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit)
        {
            datatype = "decimal";
            self.at += 1;
            self.skip_while(|b| b.is_ascii_digit());
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            datatype = "double";
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.skip_while(|b| b.is_ascii_digit());
        }
        if std::mem::take(&mut self.keep_number) {
            return Some(());
        }
        let datatype = NamedNode::new_unchecked(format!("http://www.w3.org/2001/XMLSchema#{datatype}"));
        let literal = Literal::new_typed_literal(&self.text[start..self.at], datatype);
        self.literal(start, literal);
        Some(())
    }

    fn literal(&mut self, start: usize, literal: Literal) {
        let number = self.param(start, |_| GroundTerm::Literal(literal));
        self.out.push('"');
        push_number(&mut self.out, number);
        self.out.push_str("\"^^<");
        self.out.push_str(SCHEME);
        self.out.push('>');
    }

    /// Puts out the text before `start`, skips to here, and numbers what is between.
    fn param(&mut self, start: usize, term: impl FnOnce(&'a str) -> GroundTerm) -> usize {
        self.out.push_str(&self.text[self.copied..start]);
        self.copied = self.at;
        let source = &self.text[start..self.at];
        if let Some(number) = self.seen.get(source) {
            return *number;
        }
        self.seen.insert(source, self.params.len());
        self.params.push(term(source));
        self.params.len() - 1
    }
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

fn push_number(out: &mut String, number: usize) {
    use std::fmt::Write;
    write!(out, "{number}").expect("a string takes all that is written");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(text: &str) -> (String, usize) {
        let s = shape(text).expect("has a shape");
        (s.text.replace(SCHEME, "P"), s.params.len())
    }

    #[test]
    fn constants_become_numbered_parameters() {
        let (text, n) = shaped(
            "PREFIX a: <http://x/> SELECT * { <http://x/1> a:p7 ?v1 ; a:q \"x\"@en, 'y', 5 . FILTER(?v1 > 5 && ?v1 != <http://x/1>) } LIMIT 10",
        );
        assert_eq!(
            text,
            "PREFIX a: <http://x/> SELECT * { <P0> a:p7 ?v1 ; a:q \"1\"^^<P>, \"2\"^^<P>, \"3\"^^<P> . FILTER(?v1 > \"3\"^^<P> && ?v1 != <P0>) } LIMIT 10"
        );
        assert_eq!(n, 4);
    }

    #[test]
    fn what_the_algebra_depends_on_stays() {
        for text in [
            "SELECT * FROM <http://a> FROM NAMED <http://b> { ?s ?p \"1\"^^a:b } OFFSET 5",
            "SELECT (<http://f> (?x) AS ?y) {} # 5 <http://c>",
            "SELECT * { ?s ?p ?o FILTER(?a<?b) } LIMIT 3",
            "SELECT * { _:b1 <rel> ?v2 }",
        ] {
            assert_eq!(shaped(text), (text.to_owned(), 0));
        }
        assert!(shape("SELECT * { ?s ?p \"a\\n\" }").is_none());
    }

    #[test]
    fn typed_literals_and_numbers_keep_their_type() {
        let s = shape("{ 1.5 2e3 \"2008-06-20T00:00:00\"^^<http://www.w3.org/2001/XMLSchema#dateTime> }")
            .unwrap();
        let types: Vec<_> = s
            .params
            .iter()
            .map(|p| {
                if let GroundTerm::Literal(l) = p {
                    l.datatype().as_str().rsplit('#').next().unwrap().to_owned()
                } else {
                    unreachable!()
                }
            })
            .collect();
        assert_eq!(types, ["decimal", "double", "dateTime"]);
    }
}
