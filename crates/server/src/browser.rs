//! Limits on what a browser may make of an answer.
//!
//! A browser must take each answer for what its Content-Type says, without sniffing. HTML may ask
//! this server and nothing else, and runs no scripts: markup that came in with data does nothing.

use hyper::header::{self, HeaderMap, HeaderValue};

const AS_IT_SAYS: HeaderValue = HeaderValue::from_static("nosniff");
const NO_SCRIPTS: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
);

/// Puts the bounds into the headers of an answer.
pub fn bound(headers: &mut HeaderMap) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, AS_IT_SAYS);
    let is_html = |kind: &HeaderValue| kind.as_bytes().starts_with(b"text/html");
    if headers.get(header::CONTENT_TYPE).is_some_and(is_html) {
        headers.insert(header::CONTENT_SECURITY_POLICY, NO_SCRIPTS);
    }
}
