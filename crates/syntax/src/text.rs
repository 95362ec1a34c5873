//! Whole texts: queries, updates, and bytes that should be a text.

use crate::error::SyntaxError;
use crate::lexer::Window;
use crate::options::ParseOptions;
use crate::parser::{Batches, Parser};
use crate::shape::Shape;
use crate::tree::{Query, Update};

/// A query, and its shape if the options asked for it.
#[derive(Clone, Debug)]
pub struct ParsedQuery {
    /// The tree.
    pub query: Query,
    /// The key of the text without its constants, and the constants.
    pub shape: Option<Shape>,
}

/// Parses a query.
///
/// # Errors
/// All faults that were found, the first with the others in it.
pub fn parse_query(text: &str, options: &ParseOptions<'_>) -> Result<ParsedQuery, Box<SyntaxError>> {
    let mut parser = Parser::new(Window::whole(text, options.limits.bytes), options);
    let query = parser.query()?;
    Ok(ParsedQuery { query, shape: parser.shape() })
}

/// Parses an update as a whole; [`read_update`](crate::read_update) takes one of any length.
///
/// # Errors
/// All faults that were found, the first with the others in it.
pub fn parse_update(text: &str, options: &ParseOptions<'_>) -> Result<Update, Box<SyntaxError>> {
    let mut operations = Vec::new();
    // Constants of an update are no parameters.
    let options = ParseOptions { is_shaped: false, ..*options };
    let mut sink = |operation| {
        operations.push(operation);
        true
    };
    let (base, version) =
        Parser::new(Window::whole(text, options.limits.bytes), &options).update(Batches::Whole, &mut sink)?;
    Ok(Update { operations, base, version })
}

/// Bytes as the text of a query or update.
///
/// # Errors
/// The place of the first byte that is none of UTF-8, as of half a character.
pub fn text_of<'a>(bytes: &'a [u8], options: &ParseOptions<'_>) -> Result<&'a str, Box<SyntaxError>> {
    let fault = match std::str::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(fault) => fault,
    };
    let valid = std::str::from_utf8(&bytes[..fault.valid_up_to()]).unwrap_or_default();
    Err(Parser::new(Window::cut(valid), options).encoding())
}
