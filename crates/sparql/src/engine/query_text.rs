//! The text of a query, and what is found out about it, each at most once.

use std::borrow::Cow;
use std::cell::OnceCell;

use snowmelt_syntax::tree::Term;
use snowmelt_syntax::{Shape, shape_of};

use crate::text::iri::LIST_MEMBER;

/// The text of a query. One that is asked about before it is run is looked at once.
pub struct QueryText<'a> {
    text: Cow<'a, str>,
    shape: OnceCell<Shape>,
}

impl<'a> QueryText<'a> {
    /// A text.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: text.into(), shape: OnceCell::new() }
    }

    /// The text as it was given.
    pub fn given(&self) -> &str {
        &self.text
    }

    /// Its shape.
    pub(super) fn shape(&self) -> &Shape {
        let shape = || shape_of(&self.text).filter(has_no_path);
        self.shape.get_or_init(|| shape().unwrap_or_else(|| Shape::whole(&self.text)))
    }
}

/// Whether a text may have a SERVICE: it has the word, or an escape that may stand for it. A long
/// one is not looked through.
pub fn may_ask_endpoints(text: &str) -> bool {
    const WORD: &[u8] = b"service";
    const LONG_BYTES: usize = 64 << 10;
    let bytes = text.as_bytes();
    bytes.len() > LONG_BYTES
        || bytes.windows(2).any(|part| part == b"\\u" || part == b"\\U")
        || bytes.windows(WORD.len()).any(|part| part.eq_ignore_ascii_case(WORD))
}

/// Whether no constant is the property that is a path, on which the algebra depends.
fn has_no_path(shape: &Shape) -> bool {
    !shape.params.iter().any(|term| matches!(term, Term::Iri(iri) if **iri == *LIST_MEMBER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_may_ask_endpoints() {
        for text in ["ASK { SERVICE <http://e/> {} }", "ASK{seRvice ?e{}}", "ASK { \\u0053ERVICE ?e {} }"] {
            assert!(may_ask_endpoints(text), "{text}");
        }
        assert!(!may_ask_endpoints("SELECT * { ?s ?p 'a serv\\tice' }") && !may_ask_endpoints("ASK {}"));
        assert!(may_ask_endpoints(&" ".repeat(1 << 20)));
    }
}
