//! Updates of any length: operations one after the other, data in parts.
//!
//! At most a token, an operation that is no data, and a batch of quads are in memory, and a hash of
//! each label of a blank node.

use std::io::{self, Read};

use thiserror::Error;

use crate::error::SyntaxError;
use crate::lexer::Window;
use crate::options::ParseOptions;
use crate::parser::Parser;
use crate::tree::UpdateOperation;

/// Quads of data that go out together, unless the caller wants other parts.
pub const BATCH_QUADS: usize = 4096;

/// Why an update was not read to its end. Operations before that place have been handed on.
#[derive(Debug, Error)]
pub enum StreamError<E> {
    /// The text is no update.
    #[error(transparent)]
    Syntax(Box<SyntaxError>),
    /// The stream could not be read.
    #[error("the update could not be read: {0}")]
    Read(io::Error),
    /// The one who takes the operations ended it.
    #[error("{0}")]
    Sink(E),
}

/// Reads an update and hands its operations on while it reads. Data come in parts of
/// `batch_quads`; all but the first part of an operation say that they go on.
///
/// # Errors
/// The first fault of the text, of the stream or of the sink.
pub fn read_update<E>(
    reader: &mut dyn Read,
    options: &ParseOptions<'_>,
    batch_quads: usize,
    mut sink: impl FnMut(UpdateOperation) -> Result<(), E>,
) -> Result<(), StreamError<E>> {
    let mut refused = None;
    let mut take = |operation| match sink(operation) {
        Ok(()) => true,
        Err(error) => {
            refused = Some(error);
            false
        }
    };
    let window = Window::stream(reader, options.limits.token_bytes, options.limits.bytes);
    let mut parser = Parser::new(window, options);
    let parsed = parser.update(Some(batch_quads), &mut take);
    let failed = parser.take_read_error();
    drop(parser);
    match (parsed, refused, failed) {
        (_, Some(error), _) => Err(StreamError::Sink(error)),
        (Err(_), None, Some(error)) => Err(StreamError::Read(error)),
        (Err(error), None, None) => Err(StreamError::Syntax(error)),
        (Ok(_), None, _) => Ok(()),
    }
}
