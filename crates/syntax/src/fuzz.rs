//! Entry points of the fuzz targets: any bytes as a query, as an update, and as a stream.

use std::convert::Infallible;

use crate::{ParseOptions, parse_query, parse_update, read_update, shape_of, text_of};

/// Any bytes as a query, with and without a shape, as an update and as a stream.
///
/// # Panics
/// Where two ways to read a text differ.
pub fn texts(bytes: &[u8]) {
    let options = ParseOptions { base: Some("http://example.org/"), ..ParseOptions::default() };
    let Ok(text) = text_of(bytes, &options) else { return };
    let query = parse_query(text, &options);
    let shape = shape_of(text);
    assert!(query.is_err() || shape.is_some(), "{text}");
    let shaped = parse_query(text, &ParseOptions { shape: shape.as_ref(), ..options });
    assert_eq!(query.is_ok(), shaped.is_ok(), "{text}");
    if let Err(error) = &query {
        assert!(error.all().all(|error| error.span.start <= text.len()), "{error}");
        drop(error.to_string());
    }
    stream(bytes, parse_update(text, &options).is_ok());
}

/// Any bytes as a stream, which is an update or none.
fn stream(bytes: &[u8], is_update: bool) {
    let options = ParseOptions { base: Some("http://example.org/"), ..ParseOptions::default() };
    let mut reader = bytes;
    let read = read_update(&mut reader, &options, 3, |_| Ok::<(), Infallible>(()));
    assert_eq!(read.is_ok(), is_update, "{:?}", String::from_utf8_lossy(bytes));
}

#[cfg(test)]
mod tests;
