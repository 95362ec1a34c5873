//! Long lists of IRIs after DESCRIBE.
//!
//! The parser nests one binding per IRI, and compares each with all others. So a long list is cut
//! out of the text, except its first IRI, and parsed as rows of VALUES behind the same
//! declarations. Blanks take its place, so that errors keep theirs.

use std::borrow::Cow;

use spargebra::Query;
use spargebra::algebra::GraphPattern;
use spargebra::term::{GroundTerm, NamedNode};

use super::syntax::parse;
use super::tokens::Tokens;

/// IRIs that the parser is left to bind.
const FEW: usize = 64;

/// A text, and what was taken out of it.
pub(crate) struct ParsedApart<'a> {
    /// the query that is left
    pub text: Cow<'a, str>,
    /// a query whose rows are what was taken out
    pub rows: Option<String>,
}

impl<'a> ParsedApart<'a> {
    /// Nothing is taken out.
    pub fn whole(text: &'a str) -> Self {
        ParsedApart { text: Cow::Borrowed(text), rows: None }
    }

    /// Takes the list out of a text if it has a long one.
    pub fn split(text: &'a str) -> Self {
        let Some((keyword, iris)) = listed(text) else { return Self::whole(text) };
        let [_, rest @ ..] = &iris[..] else { return Self::whole(text) };
        if rest.len() < FEW {
            return Self::whole(text);
        }
        let mut left = text.as_bytes().to_vec();
        let mut rows = format!("{} SELECT * {{ VALUES ?i {{", &text[..keyword]);
        for (at, iri) in rest {
            left[*at..at + iri.len()].fill(b' ');
            rows.push(' ');
            rows.push_str(iri);
        }
        rows.push_str(" } }");
        let left = String::from_utf8(left).expect("whole tokens became blanks");
        ParsedApart { text: Cow::Owned(left), rows: Some(rows) }
    }

    /// The IRIs that were taken out; `None` where they are none.
    pub fn iris(&self, base: Option<&str>) -> Option<Vec<NamedNode>> {
        let Some(rows) = &self.rows else { return Some(Vec::new()) };
        let Ok(Query::Select { pattern: GraphPattern::Project { inner, .. }, .. }) = parse(rows, base) else {
            return None;
        };
        let GraphPattern::Values { bindings, .. } = *inner else { return None };
        let iris = bindings.into_iter().flatten().map(|term| match term {
            Some(GroundTerm::NamedNode(iri)) => Some(iri),
            _ => None,
        });
        iris.collect()
    }
}

/// The place of DESCRIBE, and the IRIs behind it with theirs.
fn listed(text: &str) -> Option<(usize, Vec<(usize, &str)>)> {
    let mut tokens = Tokens::new(text).peekable();
    let keyword = loop {
        let (at, token) = tokens.next()?;
        let is = |keyword: &str| token.eq_ignore_ascii_case(keyword);
        match () {
            () if is("PREFIX") => drop((tokens.next()?, tokens.next()?)),
            () if is("BASE") => drop(tokens.next()?),
            () if is("DESCRIBE") => break at,
            () => return None,
        }
    };
    let is_iri = |token: &str| token.len() > 1 && token.starts_with('<') || token.contains(':');
    let is_variable = |token: &str| token.starts_with(['?', '$']);
    let listed = tokens.take_while(|(_, token)| is_iri(token) || is_variable(token));
    Some((keyword, listed.filter(|(_, token)| !is_variable(token)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_taken_out_and_the_rest_keeps_its_place() {
        let iris: String = (0..100).map(|n| format!("<i{n}> ?v{n} e:{n}\n")).collect();
        let text = format!(
            "BASE <urn:b/> PREFIX e: <urn:e/> # DESCRIBE <x>\nDESCRIBE {iris} FROM <g> {{ ?v1 <p> <o> }}"
        );
        let cut = ParsedApart::split(&text);
        assert_eq!(cut.text.len(), text.len());
        assert_eq!(cut.text.find("FROM"), text.find("FROM"));
        assert_eq!(cut.text.matches('\n').count(), text.matches('\n').count());
        assert!(cut.text.contains("DESCRIBE <i0> ?v0") && !cut.text.contains("<i1>"), "{}", cut.text);
        let iris = cut.iris(None).unwrap();
        assert_eq!(iris.len(), 199);
        assert_eq!((iris[0].as_str(), iris[1].as_str()), ("urn:e/0", "urn:b/i1"));
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        let many = "<i> ".repeat(200);
        for text in [
            "DESCRIBE <a> <b>".to_owned(),
            format!("SELECT * {{ VALUES ?x {{ {many} }} }}"),
            format!("DESCRIBE ?x {{ VALUES ?x {{ {many} }} }}"),
            String::new(),
        ] {
            let cut = ParsedApart::split(&text);
            assert!(cut.rows.is_none() && cut.text == text, "{text}");
        }
    }
}
