//! The cells of a batch in the notation of a format, each written anew only where its column
//! changes.

use oxrdf::TermRef;
use snowmelt_graph::TermId;

use super::refuse::refuse;
use super::{RdfVersion, ResultFormat};
use crate::QueryError;
use crate::value::{TermBuffer, Terms};

/// How a format writes a term.
pub(super) trait Notation {
    /// Adds a term.
    fn cell(term: TermRef<'_>, out: &mut Vec<u8>);
}

/// The cell of a column in the row at hand.
#[derive(Default)]
pub(super) struct Cell {
    id: Option<TermId>,
    text: Vec<u8>,
    buffer: TermBuffer,
}

impl Cell {
    /// Forgets it: ids of another batch may mean something else.
    pub fn clear(&mut self) {
        self.id = None;
    }

    /// The cell of an id; an unbound one is empty.
    pub fn set<N: Notation>(
        &mut self,
        id: TermId,
        terms: &Terms,
        (format, version): (ResultFormat, RdfVersion),
    ) -> Result<(), QueryError> {
        if self.id == Some(id) {
            return Ok(());
        }
        self.id = Some(id);
        self.text.clear();
        let Some(term) = terms.term(id, &mut self.buffer) else { return Ok(()) };
        let term = TermRef::from(term);
        refuse(format, version, term)?;
        N::cell(term, &mut self.text);
        Ok(())
    }

    pub fn text(&self) -> &[u8] {
        &self.text
    }
}

/// Adds a text in quotation marks, with the escapes that JSON and Turtle have in common; `control`
/// adds any other control character.
pub(super) fn quoted(text: &str, out: &mut Vec<u8>, control: impl Fn(u8, &mut Vec<u8>)) {
    let is_special = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    out.push(b'"');
    // without branches, so that several bytes are looked at together
    if !text.bytes().fold(false, |odd, byte| odd | is_special(byte)) {
        out.extend_from_slice(text.as_bytes());
    } else {
        for byte in text.bytes() {
            match byte {
                b'"' => out.extend_from_slice(b"\\\""),
                b'\\' => out.extend_from_slice(b"\\\\"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                byte if byte < b' ' => control(byte, out),
                other => out.push(other),
            }
        }
    }
    out.push(b'"');
}
