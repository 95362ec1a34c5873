//! Whole texts: queries, updates, and bytes that should be a text.

use crate::error::SyntaxError;
use crate::lexer::Window;
use crate::options::ParseOptions;
use crate::parser::Parser;
use crate::tree::{Query, Update};

/// Parses a query.
///
/// # Errors
/// All faults that were found, the first with the others in it.
///
/// # Panics
/// The shape of the options is that of another text.
pub fn parse_query(text: &str, options: &ParseOptions<'_>) -> Result<Query, Box<SyntaxError>> {
    let params = options.shape.map_or(&[][..], |shape| shape.places_in(text));
    Parser::new(Window::whole(text, options.limits.bytes), options).with_params(params).query()
}

/// Parses an update as a whole; [`read_update`](crate::read_update) takes one of any length.
///
/// # Errors
/// All faults that were found, the first with the others in it.
pub fn parse_update(text: &str, options: &ParseOptions<'_>) -> Result<Update, Box<SyntaxError>> {
    let mut operations = Vec::new();
    let mut sink = |operation| {
        operations.push(operation);
        true
    };
    let window = Window::whole(text, options.limits.bytes);
    let version = Parser::new(window, options).update(None, &mut sink)?;
    Ok(Update { operations, version })
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
